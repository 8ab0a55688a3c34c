"""``fxf plugins``: lists plugins and failures, and runs the contract tests of a plugin."""

from __future__ import annotations

import importlib
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.cli.text import fields
from fxframework.errors import ExitCode, MissingExtraError
from fxframework.registry import LIMIT_OPTIONS, Exporter, Reader, Writer

if TYPE_CHECKING:
    from fxframework.host import Host, Plugin


@_command(name="plugins", short_help="List installed plugins, and those that failed.")
@click.option(
    "--check",
    metavar="NAME",
    shell_complete=complete.plugins,
    help="Run the contract tests of an installed plugin: exit 0 if all pass, 3 if one fails.",
)
def command(session: Session, check: str | None) -> ExitCode:
    """List plugins with their formats and exporters, and those that failed; -v adds options."""
    session.whole("plugins")
    session.lists_failures = True
    if check is not None:
        return _check(session, check)
    if session.settings.json:
        session.screen.json("plugins", _document(session.host))
    else:
        _print(session, session.host)
    return ExitCode.OK


def _check(session: Session, plugin: str) -> ExitCode:
    """Run the contract tests of a plugin; print a line for each descriptor and each failure."""
    try:
        # Import by name: the host must not depend on the test kit.
        kit = importlib.import_module("fxframework.testing.checkup")
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        purpose = "checking the contracts of a plugin"
        raise MissingExtraError(package, "testing", purpose=purpose) from error
    results = list(kit.checkup(session.host, plugin))
    failed = [result for result in results if result.status == "failed"]
    if session.settings.json:
        document = {
            "plugin": plugin,
            "ok": not failed,
            "tests": [attrs.asdict(result) for result in results],
        }
        session.screen.json("plugins-check", document)
    else:
        _print_results(session, plugin, results)
    return ExitCode.FINDINGS if failed else ExitCode.OK


def _print_results(session: Session, plugin: str, results: Sequence[Any]) -> None:
    screen = session.screen
    for (noun, item), group in itertools.groupby(results, lambda one: (one.contract, one.item)):
        tests = list(group)
        count = Counter(one.status for one in tests)
        reasons = {one.message for one in tests if one.status == "skipped"}
        counts = ", ".join(f"{n} {status}" for status, n in sorted(count.items(), reverse=True))
        reason = f": {reasons.pop()}" if len(reasons) == 1 and not count["failed"] else ""
        screen.print(f"{noun} {item}: {counts}{reason}")
        for one in tests:
            if one.status == "failed" or (session.settings.verbose and one.status == "skipped"):
                screen.print(f"  {one.status} {one.test}: {one.fault}")
    failed = sum(one.status == "failed" for one in results)
    tried = sum(one.status != "skipped" for one in results)
    verdict = f"{failed} of {tried} tests failed" if failed else f"{tried} tests passed"
    screen.print(f"plugin {plugin}: {verdict}")


def _accepts(exporter: Exporter) -> list[str]:
    if isinstance(exporter.accepts, str):
        return [exporter.accepts]
    return sorted(exporter.accepts)


def _document(host: Host) -> dict[str, Any]:
    def described(item: Reader | Writer | Exporter) -> dict[str, Any]:
        return {
            "title": item.title,
            "suffixes": item.suffixes,
            "plugin": host.owner(item).name,
            "options": [
                {**fields(option, "name default help"), "type": option.type.__name__}
                for option in item.options
            ],
        }

    return {
        "plugins": [
            {
                **fields(plugin, "name distribution version status registers observes"),
                "kernels": _kernels(plugin),
            }
            for plugin in host.plugins()
        ],
        "readers": [{"format": r.format, **described(r)} for r in host.readers.values()],
        "writers": [{"format": w.format, **described(w)} for w in host.writers.values()],
        "exporters": [
            {"name": e.name, "accepts": _accepts(e), **described(e)} for e in host.exporters
        ],
        "limits": [fields(limit, "name default help") for limit in LIMIT_OPTIONS],
        "failures": [attrs.asdict(failure) for failure in host.failures],
    }


def _print(session: Session, host: Host) -> None:
    screen = session.screen

    def section(title: str, header: Sequence[str], rows: list[Sequence[str]]) -> None:
        if rows:
            screen.print(screen.paint(title, bold=True))
            screen.columns([header, *rows])

    section(
        "Plugins",
        ("NAME", "DISTRIBUTION", "STATUS", "KERNELS", "REGISTERS"),
        [
            (
                plugin.name,
                f"{plugin.distribution} {plugin.version}".rstrip(),
                plugin.status,
                _kernels(plugin),
                _registers(plugin),
            )
            for plugin in host.plugins()
        ],
    )
    formats = list(dict.fromkeys([*host.readers, *host.writers]))
    section(
        "Formats",
        ("NAME", "CAN BE", "SUFFIXES", "WHAT IT IS"),
        [_format(host, name) for name in formats],
    )
    section(
        "Exporters",
        ("NAME", "TAKES", "SUFFIXES", "WHAT IT GIVES"),
        [(e.name, _takes(e), " ".join(e.suffixes) or "–", e.title) for e in host.exporters],
    )
    if session.settings.verbose:
        section("Options", ("OF", "NAME", "DEFAULT", "WHAT IT IS"), _all_options(host))
    section(
        "Failures",
        ("PLUGIN", "DISTRIBUTION", "WHAT HAPPENED"),
        [(f.plugin, f.distribution, f.error) for f in host.failures],
    )


def _kernels(plugin: Plugin) -> str:
    """Return how the kernels of a plugin run, and why if they are plain; a dash without kernels."""
    from fxframework.kernels.native import state_of

    if not plugin.package:
        return "–"
    state = state_of(plugin.package)
    if state.how == "none":
        return "–"
    return f"{state.how}: {state.why}" if state.why else state.how


def _registers(plugin: Plugin) -> str:
    parts = [f"{kind} {', '.join(names)}" for kind, names in plugin.registers.items()]
    if plugin.observes:
        parts.append(f"hooks {', '.join(plugin.observes)}")
    return "; ".join(parts) or "nothing"


def _format(host: Host, name: str) -> Sequence[str]:
    reader, writer = host.readers.get(name), host.writers.get(name)
    item = reader or writer
    can = [word for word, there in (("read", reader), ("written", writer)) if there is not None]
    suffixes = dict.fromkeys(
        [*(reader.suffixes if reader else ()), *(writer.suffixes if writer else ())]
    )
    title = "" if item is None else item.title
    return (name, ", ".join(can), " ".join(suffixes) or "–", title)


def _takes(exporter: Exporter) -> str:
    if isinstance(exporter.accepts, str):
        return f"{exporter.accepts} captures"
    return "every capture" if "diagnostics" in exporter.accepts else ", ".join(_accepts(exporter))


def _all_options(host: Host) -> list[Sequence[str]]:
    owners = [
        ("every reader", LIMIT_OPTIONS),
        *((f"reader {reader.format}", reader.options) for reader in host.readers.values()),
        *((f"writer {writer.format}", writer.options) for writer in host.writers.values()),
        *((f"exporter {exporter.name}", exporter.options) for exporter in host.exporters),
    ]
    return [
        (whose, option.name, _shown(option.default), option.help)
        for whose, options in owners
        for option in options
    ]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value not in {"", None} else "–"
