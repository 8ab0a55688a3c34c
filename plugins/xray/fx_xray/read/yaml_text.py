"""LLVM's YAML: its way of quoting, and the reading of what PyYAML parses.

Reading goes by the parser's events, so that neither nesting nor aliases can make more of a text
than there is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

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
_ESCAPES: Final[Mapping[str, str]] = {
    "\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r",
    "\x1b": "e", '"': '"', "\\": "\\", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P",
}  # fmt: skip
"""By character, the letter that replaces it behind a backslash."""
DEEPEST: Final = 32
"""Lists and mappings within each other, of which two levels mean something."""


class OddYamlError(ValueError):
    """A text that is not YAML, or not of the form that is needed."""


def quoted(text: str) -> str:
    """Return a scalar as LLVM writes it: plain, in single quotes, or in double ones."""
    if _ODD.search(text):
        return f'"{"".join(map(_escaped, text))}"'
    if _PLAIN.fullmatch(text) and text not in _WORDS and not _NUMBER.fullmatch(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return f"\\{_ESCAPES[char]}"
    if char.isprintable():
        return char
    point = ord(char)
    if point <= 0xFF:
        return f"\\x{point:02X}"
    return f"\\u{point:04X}" if point <= 0xFFFF else f"\\U{point:08X}"


def nodes(data: bytes, *, items: bool = False) -> Iterator[tuple[int, Any]]:
    """Yield what the first document says, or each of its ``items``, behind about where it begins.

    Scalars are strings, an alias is None, and so is what an empty document says. Raises
    OddYamlError for what is not YAML, for deep nesting, and for items of what is not a list.
    """
    import yaml

    event: Any
    item: Any

    def node(event: Any, level: int) -> Any:
        """Return what begins with an event, within ``level`` lists and mappings."""
        if not isinstance(event, yaml.CollectionStartEvent):
            return getattr(event, "value", None)
        if level == DEEPEST:
            raise OddYamlError(f"nested more than {DEEPEST} levels deep")
        parts = []
        while not isinstance(inner := next(events), yaml.CollectionEndEvent):
            parts.append(node(inner, level + 1))
        if isinstance(event, yaml.SequenceStartEvent):
            return parts
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return {key: value for key, value in pairs if isinstance(key, str)}

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events: Any = yaml.parse(data.decode("utf-8", "replace"), Loader=loader)
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                return
            if not items and isinstance(event, yaml.NodeEvent):
                yield 0, node(event, 0)
            elif isinstance(event, yaml.SequenceStartEvent):
                # Items are given one after another: a list may be longer than memory is.
                while not isinstance(item := next(events), yaml.CollectionEndEvent):
                    yield item.start_mark.index, node(item, 1)
            elif isinstance(event, yaml.NodeEvent):
                raise OddYamlError("not a list")
    except (yaml.YAMLError, ValueError) as error:
        raise OddYamlError(str(error).replace("\n", " ")) from error
