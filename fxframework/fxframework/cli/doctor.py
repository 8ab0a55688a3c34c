"""``fxf doctor``: checks this installation."""

from __future__ import annotations

import platform
import re
import sys
from collections import defaultdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

import fxframework
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.errors import ExitCode, install_line

if TYPE_CHECKING:
    from fxframework.host import Host

DISTRIBUTION = "fxframework"
CORE = ("attrs", "click", "numpy", "orjson", "pluggy")
"""Required packages."""
_REQUIREMENT = re.compile(r"""([A-Za-z0-9._-]+).*extra\s*==\s*['"]([^'"]+)['"]""")


@attrs.frozen
class Check:
    """The result of a check. ``state`` is ``ok``, ``note`` (works with limits) or ``broken``."""

    name: str
    state: str
    text: str


@_command(name="doctor")
def command(session: Session) -> ExitCode:
    """Check this installation: interpreter, packages, plugins, extras.

    The exit status is 1 if something is broken.
    """
    session.whole("doctor")
    session.lists_failures = True
    root = click.get_current_context().find_root()
    root.command.list_commands(root)  # type: ignore[attr-defined]  # plugins add theirs
    checks = [
        _interpreter(),
        _package(),
        *(_core(name) for name in CORE),
        _plugins(session.host),
        *_extras(),
    ]
    sound = all(check.state != "broken" for check in checks)
    screen = session.screen
    if session.settings.json:
        check_documents = [attrs.asdict(check) for check in checks]
        screen.json("doctor", {"sound": sound, "checks": check_documents})
    else:
        colours = {"ok": "green", "note": "yellow", "broken": "red"}
        name_width = max(len(check.name) for check in checks)
        for check in checks:
            state = screen.paint(check.state.ljust(6), fg=colours[check.state])
            screen.print(f"  {state}  {check.name.ljust(name_width)}  {check.text}")
        verdict = "all is well"
        if not sound:
            verdict = "something is broken"
        screen.print(verdict)
    if sound:
        return ExitCode.OK
    return ExitCode.FAILED


def _interpreter() -> Check:
    text = f"{platform.python_implementation()} {platform.python_version()}, {platform.platform()}"
    state = "ok" if sys.version_info >= (3, 11) else "broken"
    return Check("python", state, f"{text}, {sys.executable}")


def _package() -> Check:
    folder = Path(fxframework.__file__).parent
    try:
        installed_version = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        text = f"{fxframework.__version__} from {folder}, a checkout that is not installed"
        return Check(DISTRIBUTION, "note", text)
    return Check(DISTRIBUTION, "ok", f"{installed_version} from {folder}")


def _core(name: str) -> Check:
    try:
        return Check(name, "ok", metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(name, "broken", f"is missing: pip install {name}")


def _plugins(host: Host) -> Check:
    if host.failures:
        text = "; ".join(
            f"{failure.plugin} ({failure.distribution}): {failure.error}"
            for failure in host.failures
        )
        return Check("plugins", "broken", text)
    names_by_status: dict[str, list[str]] = defaultdict(list)
    for plugin in host.plugins():
        names_by_status[plugin.status].append(plugin.name)
    if not host.readers:
        return Check("plugins", "broken", "no format can be read; is fxframework installed?")
    text = ", ".join(names_by_status["loaded"])
    if names_by_status["disabled"]:
        text += f"; disabled: {', '.join(names_by_status['disabled'])}"
    return Check("plugins", "ok", text)


def _extras() -> list[Check]:
    """Check the packages of the extras that the installed distribution declares."""
    packages_by_extra: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        requirements = []
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match and match[1] != DISTRIBUTION:
            packages_by_extra.setdefault(match[2], []).append(match[1])
    return [_extra(name, packages) for name, packages in sorted(packages_by_extra.items())]


def _extra(name: str, packages: list[str]) -> Check:
    version_texts = []
    for package in packages:
        try:
            version_texts.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            return Check(f"[{name}]", "note", f"not installed: {install_line(name, package)}")
    return Check(f"[{name}]", "ok", ", ".join(version_texts))
