"""LLVM's YAML: its way of quoting, and the reading of lists of flat mappings.

Reading goes by the parser's events, so that neither nesting nor aliases can make more of a text
than there is in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

__all__ = ["ESCAPES", "Entry", "OddYamlError", "entry_of", "items", "quoted", "sections_of"]

V = TypeVar("V")
Entry = Mapping[str, "str | Sequence[str]"]
"""A flat mapping: values are the text of scalars, or of the scalars of a list."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_^.](?:[A-Za-z0-9_^. \t-]*[A-Za-z0-9_^.-])?")
"""What needs no quotes, where it means nothing else."""
_NUMBER: Final = re.compile(
    r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    r"|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_WORDS: Final = frozenset(
    {"null", "Null", "NULL", "~", "true", "True", "TRUE", "false", "False", "FALSE"}
)
_ODD: Final = re.compile(r"[^\t -~]")
ESCAPES: Final[Mapping[str, str]] = {
    "\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r",
    "\x1b": "e", '"': '"', "\\": "\\", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P",
}  # fmt: skip
"""By character, the letter that replaces it behind a backslash."""


DEEPEST: Final = 32
"""Lists and mappings within each other, of which two levels mean something."""


class OddYamlError(Exception):
    """A text that is not YAML, or not of the form that is needed."""


# --- Writing -------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    """A scalar as LLVM writes it: plain, in single quotes, or in double ones with escapes."""
    if _ODD.search(text):
        return f'"{"".join(map(_escaped, text))}"'
    if _PLAIN.fullmatch(text) and text not in _WORDS and not _NUMBER.fullmatch(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _escaped(char: str) -> str:
    if char in ESCAPES:
        return f"\\{ESCAPES[char]}"
    if char.isprintable():
        return char
    point = ord(char)
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
    """Return the mapping that a text is. Raises OddYamlError where it is not one."""
    events = _events(data)
    first = _after_start(events)
    if first is None:
        raise OddYamlError("empty")
    entry = _mapping(events, first)
    if not entry:
        raise OddYamlError("not a mapping")
    return entry


def sections_of(data: bytes) -> Mapping[str, Entry]:
    """Return the flat mappings of a mapping, by their keys.

    Raises OddYamlError where it is not one.
    """
    events = _events(data)
    first = _after_start(events)
    if first is None or not _is(first, "MappingStart"):
        raise OddYamlError("not a mapping")
    return _pairs(events, first, _mapping)


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
    """Return the first event of the first document; None where there is none."""
    for event in events:
        if _is(event, "StreamEnd") or _is(event, "DocumentEnd"):
            return None
        if not (_is(event, "StreamStart") or _is(event, "DocumentStart")):
            return event
    return None


def _is(event: Any, name: str) -> bool:
    return type(event).__name__ == f"{name}Event"


def _mapping(events: Iterator[Any], first: Any) -> Entry:
    """Return the mapping that begins with an event; an empty one where it is something else."""
    return _pairs(events, first, _value)


def _pairs(
    events: Iterator[Any], first: Any, value_of: Callable[[Iterator[Any], Any], V | None]
) -> dict[str, V]:
    """Return the values of a mapping by their keys, those that are not None.

    An empty one as above.
    """
    found: dict[str, V] = {}
    if not _is(first, "MappingStart"):
        _skip(events, first)
        return found
    key: str | None = None
    for event in events:
        if _is(event, "MappingEnd"):
            return found
        if key is None:
            key = event.value if _is(event, "Scalar") else ""
            _skip(events, event)
        else:
            value = value_of(events, event)
            if value is not None:
                found[key] = value
            key = None
    raise OddYamlError("a mapping is not closed")


def _value(events: Iterator[Any], first: Any) -> str | Sequence[str] | None:
    """Return the text of a scalar, or of those of a list; None for anything else."""
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
