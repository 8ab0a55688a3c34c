"""``fxf explain``: explains a finding's code, or the bytes at an offset."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from fxframework.cli import complete
from fxframework.cli.options import command as _command
from fxframework.cli.session import Session
from fxframework.errors import ExitCode, UsageError
from fxframework.io.words import WORD
from fxframework.kit.shown import printable

if TYPE_CHECKING:
    from fxframework.io.words import FieldView

LABELS = {
    "rule": "the rule",
    "section": "document",
    "readers": "other readers",
    "ours": "what we do",
    "remedy": "what you can do",
}
"""The label of each field of a Rule."""
_CODE = re.compile(r"[A-Za-z]{2,}[0-9]+")


@_command(name="explain")
@click.argument("what", metavar="CODE|FILE@OFFSET", shell_complete=complete.explainable)
def command(session: Session, what: str) -> ExitCode:
    """Explain a finding's CODE, or the bytes of FILE at OFFSET, field by field.

    OFFSET is decimal, or hexadecimal with 0x, as in findings. The whole record is shown; the word
    at OFFSET is marked with >.
    """
    session.whole("explain")
    file, at_sign, offset = what.rpartition("@")
    if at_sign:
        _explain_bytes(session, file, offset)
    elif Path(what).exists() and not _CODE.fullmatch(what):
        raise UsageError(f"which byte of {what}?", remedy=f"give one: fxf explain {what}@0")
    else:
        _explain_code(session, what)
    return ExitCode.OK


def _explain_code(session: Session, code: str) -> None:
    screen = session.screen
    rule, format = session.host.rule(code)
    parts = {name: getattr(rule, name) for name in LABELS}
    if session.settings.json:
        head = {"code": rule.code, "format": format, "severity": rule.severity.key}
        screen.json("explain", {**head, "title": rule.title, **parts})
        return
    screen.print(screen.paint(f"{rule.code}: {rule.title}", bold=True))
    rows = [("severity", rule.severity.word), ("format", format)]
    rows += [(LABELS[name], text) for name, text in parts.items() if text]
    screen.wrapped_columns(rows)


def _explain_bytes(session: Session, file: str, offset_text: str) -> None:
    host = session.host
    screen = session.screen
    try:
        offset = int(offset_text, 0)
    except ValueError:
        raise UsageError(
            f"invalid offset {offset_text!r}", remedy="give bytes, as 104 or 0x68: FILE@0x68"
        ) from None
    format, path = session.named(file)
    reader = None if format is None else host.reader(format)
    source = host.source(path, options=session.settings.options)
    try:
        reader = reader or host.detect(source)
        session.check_reader_options(reader)
        if reader.explain is None:
            raise UsageError(
                f"captures of {reader.format} cannot be explained byte by byte",
                path=source.name,
                remedy="`fxf cat --records FILE` prints every record with its offset",
            )
        from fxframework.kit.explain import check_offset  # which loads numpy

        check_offset(source, offset)
        fields = host.called(reader, reader.explain, source, offset)
        if not isinstance(fields, list):
            raise host.faulty(reader, f"explain() returned {fields!r}, not a list of fields")
        if session.settings.json:
            body = {"path": source.name, "format": reader.format, "offset": offset}
            screen.json("explain", {**body, "fields": [attrs.asdict(field) for field in fields]})
        else:
            _print(session, source.name, offset, fields)
    finally:
        source.close()


def _print(session: Session, name: str, offset: int, fields: list[FieldView]) -> None:
    screen = session.screen
    screen.print(screen.paint(f"{printable(name)} @ 0x{offset:08x}", bold=True))
    rows = [("  offset", "bits", "field", "value", "meaning", "section")]
    offset_before = None
    for field in fields:
        place = ">" if field.offset <= offset < field.offset + WORD else " "
        if field.offset != offset_before:  # the offset of a word is shown once
            place += f" 0x{field.offset:08x}"
        offset_before = field.offset
        bits = str(field.low)
        if field.high != field.low:
            bits += f"–{field.high}"
        value = str(field.value)
        if field.value >= 10:
            value += f" (0x{field.value:x})"
        name = printable(field.name)
        rows.append((place, bits, name, value, printable(field.meaning), field.section))
    screen.wrapped_columns(rows)
