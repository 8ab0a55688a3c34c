"""``fxf record``: writes the scenario that replays a capture."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.conversion import require_readable
from fxframework.errors import ExitCode, Severity, UsageError, WriteRefusedError, readable_name
from fxframework.io.sink import Sink
from fxframework.kit.shown import amount, printable

if TYPE_CHECKING:
    from fxframework.model.capture import Capture
    from fxframework.registry import StepKind

TEMPLATE = """\
# Replays a capture on the emulated target; the same bytes must come of it.
#
#     fxf replay {scenario}

[scenario]
name = {name}
description = {description}

[[step]]
do = {do}
capture = {capture}
as = {output}

[[step]]
do = "golden.compare"
output = {output}
golden = {capture}

[[step]]
do = "capture.decode"
from = {output}
as = "replayed"
format = {format}

[[step]]
do = "capture.expect"
capture = "replayed"
records = {records}
findings = {findings}
"""


@_command(name="record")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="SCENARIO",
    help="File of the scenario; the capture is written beside it. Default: NAME.toml here.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.argument("file", metavar="FILE", shell_complete=complete.files)
def command(session: Session, out: Path | None, force: bool, file: str) -> ExitCode:
    """Write the scenario that replays a capture byte for byte.

    It also writes an unpacked copy of the capture, which the scenario reads and compares with.
    """
    session.whole("record")
    with session.open(file) as capture:
        step_kind = _step(session, capture)
        require_readable(capture)
        capture.scan()
        stem = Path(capture.source.suffix_name).stem or "capture"
        scenario = out or Path(f"{stem}.toml")
        copy = scenario.with_suffix(_suffix(session, capture))
        _check(capture, scenario, copy, force=force)
        scenario_text = _text(capture, step_kind, scenario, copy)
        is_unchanged = _same(copy, capture)
        if not is_unchanged:
            with Sink.open(copy, force=True) as sink:
                for piece in capture.source.pieces():
                    sink.write(piece)
        with Sink.open(scenario, force=force) as sink:
            sink.write(scenario_text.encode())
        nbytes = amount(capture.source.size, "byte")
        if is_unchanged:
            session.screen.note(f"wrote {scenario}, which replays {copy} ({nbytes}), unchanged")
        else:
            session.screen.note(f"wrote {scenario}, and {copy} ({nbytes})")
        if session.settings.json:
            body = {"path": capture.name, "scenario": str(scenario), "capture": str(copy)}
            session.screen.json("record", body)
        return session.status(capture)


def _step(session: Session, capture: Capture) -> StepKind:
    """Return the kind of step that replays captures of this format."""
    step_kinds = session.host.step_kinds.values()
    for kind in step_kinds:
        if capture.format in kind.replays:
            return kind
    replayed_formats = sorted({format for kind in step_kinds for format in kind.replays})
    raise UsageError(
        f"there is no step that replays {capture.format} captures",
        path=capture.name,
        remedy=f"there are steps for: {', '.join(replayed_formats) or 'no format'}",
    )


def _suffix(session: Session, capture: Capture) -> str:
    """Return the suffix of the capture's format, without compression."""
    for suffix in session.host.readers[capture.format].suffixes:
        if not suffix.endswith(".gz"):
            return suffix
    return ".capture"


def _check(capture: Capture, scenario: Path, copy: Path, *, force: bool) -> None:
    """Raise WriteRefusedError if a file would be overwritten."""
    for path in (scenario, copy):
        if path.name != readable_name(path.name):
            raise UsageError(
                "a scenario cannot hold this name, which is not UTF-8",
                path=str(path),
                remedy="name another scenario with --out",
            )
        if force or not os.path.lexists(path):
            continue
        if path == copy and _same(path, capture):
            continue  # it is not written again
        raise WriteRefusedError(
            "it already exists",
            path=str(path),
            remedy="name another scenario with --out, or give --force",
        )


def _same(path: Path, capture: Capture) -> bool:
    """Return whether a file already holds the capture's bytes, or is the capture itself."""
    if not path.is_file() or path.stat().st_size != capture.source.size:
        return False
    if capture.source.path is not None and path.samefile(capture.source.path):
        return not capture.source.unpacked
    return path.read_bytes() == capture.source.read(0, capture.source.size)


def _text(capture: Capture, kind: StepKind, scenario: Path, copy: Path) -> str:
    expected_codes = sorted(
        {finding.code for finding in capture.diagnostics if finding.severity >= Severity.WARNING}
    )
    option_values = {
        "name": f"replay of {capture.source.suffix_name}",
        "description": "Every record of a capture is written again, at its own time.",
        "do": kind.name,
        "capture": copy.name,
        "output": f"replayed{copy.suffix}",
        "format": capture.format,
        "findings": expected_codes,
    }
    # TOML's basic strings and arrays have the syntax of JSON, except for DEL and surrogate pairs.
    setting_lines = {
        name: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        for name, value in option_values.items()
    }
    name = printable(scenario.name)
    return TEMPLATE.format(**setting_lines, scenario=name, records=capture.summary().records)
