"""Entries: what records say beside their layout: rows of `logs`, and the component that logged.

Conversion and redaction use it for one log at a time; rows come from ``fx_log.meaning``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from fx_log import format as wire
from fx_log.format import Argument, LogRecord
from fxframework.io.words import U64_MAX


@attrs.define(kw_only=True)
class Entry:
    """A row of `logs`, with its `args` and `log_tags`; None for values that are not given."""

    ts: int
    severity: int
    """The severity byte; for a legacy packet, converted as the era defines."""
    pid: int | None = None
    tid: int | None = None
    tags: Sequence[str] = ()
    component: str | None = None
    url: str | None = None
    message: str | None = None
    file: str | None = None
    line: int | None = None
    dropped: int = 0
    rolled_out: int = 0
    verbosity: int | None = None
    args: Sequence[Argument] = ()
    """All other arguments, in order, except damaged ones."""


def has_type(argument: Argument, types: Mapping[str, wire.ArgType]) -> bool:
    """Return whether an argument has the type that belongs to its name; False for other names."""
    number = types.get(argument.name)
    return number is not None and wire.ARG_NAMES[number] == argument.type


def split_attribution(
    args: Sequence[Argument],
) -> tuple[Sequence[Argument], Mapping[str, Argument]]:
    """Split off the attribution that the archivist appended to the arguments of a log.

    Attribution arguments are taken from the end; of two with one name the last one counts.
    """
    stop = len(args)
    appended: dict[str, Argument] = {}
    while stop and has_type(args[stop - 1], wire.ATTRIBUTION):
        stop -= 1
        appended.setdefault(args[stop].name, args[stop])
    return args[:stop], appended


def last_value(args: Iterable[Argument], name: str, type: str) -> Any:
    """Return the value of the last argument of a name and a type; None if there is none."""
    value = None
    for argument in args:
        if argument.name == name and argument.type == type:
            value = argument.value
    return value


def rolled_out_of(record: LogRecord) -> int | None:
    """Return the count of lost logs of a control record; None for a manifest."""
    count: int | None = last_value(record.args, wire.CONTROL_ROLLED_OUT, "uint64")
    return count


def component_of(record: LogRecord) -> tuple[str, str] | None:
    """Return moniker and url of a manifest; None if it lacks one."""
    moniker = last_value(record.args, wire.MANIFEST_MONIKER, "string")
    url = last_value(record.args, wire.MANIFEST_URL, "string")
    return None if moniker is None or url is None else (moniker, url)


def attribution_of(moniker: str, url: str, rolled_out: int) -> list[Argument]:
    """Return the arguments that say who logged, as the archivist appends them."""
    arguments = [
        Argument(name=wire.MONIKER, type="string", value=moniker),
        Argument(name=wire.URL, type="string", value=url),
    ]
    if rolled_out:
        arguments.append(Argument(name=wire.ROLLED_OUT, type="uint64", value=rolled_out))
    return arguments


# --- Structured printf of 2022 -------------------------------------------------------------

_CONVERSION = re.compile(
    rb"%(?:%|(?P<flags>[-+ #0]*)(?P<width>\d{0,3})(?:\.(?P<precision>\d{0,3}))?"
    rb"(?:hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXeEfFgGaAcspn]))"
)


def render_printf(format: bytes, values: Sequence[Any]) -> bytes:
    """Render a structured printf: each conversion takes the next value.

    A conversion without a value, or with an unsuitable one, remains as text; values left over are
    appended, separated by spaces. Never raises.
    """
    values_left = deque(values)

    def replaced(conversion: re.Match[bytes]) -> bytes:
        if conversion[0] == b"%%":
            return b"%"
        if not values_left:
            return conversion[0]
        text = _converted(conversion, values_left[0])
        if text is None:
            return conversion[0]
        values_left.popleft()
        return text

    text = _CONVERSION.sub(replaced, format)
    return b" ".join([text, *map(_plain, values_left)])


def _plain(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if value is None:
        return b"null"
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogateescape")


def _converted(conversion: re.Match[bytes], value: Any) -> bytes | None:
    """Return a value as C shows it by a conversion; None if it is not of that kind."""
    kind = conversion["kind"]
    point = b"" if conversion["precision"] is None else b"." + conversion["precision"]
    if kind in b"diuoxX" and isinstance(value, int):
        if kind in b"oxX":
            value &= U64_MAX
    elif kind == b"s":
        value = _plain(value)
    elif kind == b"p" and isinstance(value, int):
        kind, point = b"s", b""
        value = b"%#x" % (value & U64_MAX)
    elif kind == b"c" and isinstance(value, int) and 0 <= value < 256:
        point = b""
    elif not (kind in b"eEfFgG" and isinstance(value, int | float)):
        return None
    # Python's own operator: its flags, widths and precisions are those of C.
    directive = b"%" + conversion["flags"] + conversion["width"] + point + kind
    text: bytes = directive % value
    return text
