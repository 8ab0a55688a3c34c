"""LLVM's YAML: its way of quoting, and the reading of lists of flat mappings.

Reading goes by the parser's events, so that neither nesting nor aliases can make more of a text
than there is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["Entry", "OddYamlError", "entry_of", "items", "quoted", "sections_of"]

Entry = Mapping[str, "str | Sequence[str]"]
"""A flat mapping: values are the text of scalars, or of the scalars of a list."""

SAFE: Final = frozenset("_-^. \t")
"""What, beside letters and digits, may be in a scalar that is not quoted."""
INDICATORS: Final = "-?:\\,[]{}#&*!|>'\"%@`"
"""What such a scalar may not begin with."""
_WORDS: Final = frozenset(
    {"null", "Null", "NULL", "~", "true", "True", "TRUE", "false", "False", "FALSE"}
)
_ESCAPES: Final[Mapping[int, str]] = {
    0x00: "\\0",
    0x07: "\\a",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0B: "\\v",
    0x0C: "\\f",
    0x0D: "\\r",
    0x1B: "\\e",
    0x22: '\\"',
    0x5C: "\\\\",
    0x85: "\\N",
    0xA0: "\\_",
    0x2028: "\\L",
    0x2029: "\\P",
}


DEEPEST: Final = 32
"""Lists and mappings within each other, of which two levels mean something."""


class OddYamlError(Exception):
    """A text that is not YAML, or not of the form that is needed."""


# --- Writing -------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    """A scalar as LLVM writes it: plain, in single quotes, or in double ones with escapes."""
    if any((char < " " and char != "\t") or char >= "\x7f" for char in text):
        return f'"{"".join(map(_escaped, text))}"'
    if _plain(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _plain(text: str) -> bool:
    return bool(
        text
        and not text[0].isspace()
        and not text[-1].isspace()
        and text not in _WORDS
        and text[0] not in INDICATORS
        and all(char.isalnum() or char in SAFE for char in text)
        and not _numeric(text)
    )


def _numeric(text: str) -> bool:
    """Whether YAML would take it for a number."""
    import re

    return bool(
        re.fullmatch(
            r"0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
            r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?",
            text,
        )
    )


def _escaped(char: str) -> str:
    point = ord(char)
    if point in _ESCAPES:
        return _ESCAPES[point]
    if char.isprintable():
        return char
    if point <= 0xFF:
        return f"\\x{point:02X}"
    return f"\\u{point:04X}" if point <= 0xFFFF else f"\\U{point:08X}"


# --- Reading -------------------------------------------------------------------------------------


def items(data: bytes) -> Iterator[tuple[int, Entry]]:
    """The mappings of a list at the top of a text: where each begins, about, and what it says.

    Raises OddYamlError where the text is not YAML, or not a list.
    """
    events = _events(data)
    try:
        first = _after_start(events)
        if first is None:
            return
        if not _is(first, "SequenceStart"):
            raise OddYamlError("not a list")
        for event in events:
            if _is(event, "SequenceEnd"):
                return
            yield event.start_mark.index, _mapping(events, event)
    except RecursionError as error:
        raise OddYamlError("nested too deeply") from error


def entry_of(data: bytes) -> Entry:
    """The mapping that a text is. Raises OddYamlError where it is not one."""
    events = _events(data)
    first = _after_start(events)
    if first is None:
        raise OddYamlError("empty")
    entry = _mapping(events, first)
    if not entry:
        raise OddYamlError("not a mapping")
    return entry


def sections_of(data: bytes) -> Mapping[str, Entry]:
    """The flat mappings of a mapping, by their keys. Raises OddYamlError where it is not one."""
    events = _events(data)
    first = _after_start(events)
    if first is None or not _is(first, "MappingStart"):
        raise OddYamlError("not a mapping")
    found: dict[str, Entry] = {}
    key: str | None = None
    for event in events:
        if _is(event, "MappingEnd"):
            return found
        if key is None:
            key = event.value if _is(event, "Scalar") else ""
            _skip(events, event)
        else:
            found[key] = _mapping(events, event)
            key = None
    raise OddYamlError("a mapping is not closed")


def _events(data: bytes) -> Iterator[Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for event in yaml.parse(data.decode("utf-8", "replace"), Loader=loader):
            if _is(event, "SequenceStart") or _is(event, "MappingStart"):
                depth += 1
                if depth > DEEPEST:
                    raise OddYamlError(f"nested more than {DEEPEST} levels deep")
            elif _is(event, "SequenceEnd") or _is(event, "MappingEnd"):
                depth -= 1
            yield event
    except (yaml.YAMLError, ValueError) as error:
        raise OddYamlError(str(error).replace("\n", " ")) from error


def _after_start(events: Iterator[Any]) -> Any:
    """The first event of the first document; None where there is none."""
    for event in events:
        if _is(event, "StreamEnd") or _is(event, "DocumentEnd"):
            return None
        if not (_is(event, "StreamStart") or _is(event, "DocumentStart")):
            return event
    return None


def _is(event: Any, name: str) -> bool:
    return type(event).__name__ == f"{name}Event"


def _mapping(events: Iterator[Any], first: Any) -> Entry:
    """The mapping that begins with an event; an empty one where it is something else."""
    entry: dict[str, str | Sequence[str]] = {}
    if not _is(first, "MappingStart"):
        _skip(events, first)
        return entry
    key: str | None = None
    for event in events:
        if _is(event, "MappingEnd"):
            return entry
        if key is None:
            key = event.value if _is(event, "Scalar") else ""
            _skip(events, event)
        else:
            value = _value(events, event)
            if value is not None:
                entry[key] = value
            key = None
    raise OddYamlError("a mapping is not closed")


def _value(events: Iterator[Any], first: Any) -> str | Sequence[str] | None:
    """The text of a scalar, or of those of a list; None for anything else."""
    if _is(first, "Scalar"):
        return str(first.value)
    if not _is(first, "SequenceStart"):
        _skip(events, first)
        return None
    found: list[str] = []
    for event in events:
        if _is(event, "SequenceEnd"):
            return found
        if _is(event, "Scalar"):
            found.append(str(event.value))
        _skip(events, event)
    raise OddYamlError("a list is not closed")


def _skip(events: Iterator[Any], first: Any) -> None:
    """Go on behind what begins with an event."""
    depth = 0
    event = first
    while True:
        if _is(event, "MappingStart") or _is(event, "SequenceStart"):
            depth += 1
        elif _is(event, "MappingEnd") or _is(event, "SequenceEnd"):
            depth -= 1
        if not depth:
            return
        event = next(events, None)
        if event is None:
            raise OddYamlError("it is cut off")
