"""Document: the tables of a declared format in Markdown, for its README or its docs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fxframework.wire.beside import Computed
from fxframework.wire.choices import Check, Choice, Flag
from fxframework.wire.expressions import Expression
from fxframework.wire.fields import Bits, Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.records import OTHER, Layout
from fxframework.wire.spans import Span, Text

if TYPE_CHECKING:
    from fxframework.wire.format import Format

__all__ = ["document"]


def document(format: Format) -> str:
    """Return a table of fields for each record and each part of a format, as Markdown."""
    from fxframework.wire.format import every_layout

    layouts = [cls.layout for cls in format.classes]
    if format.header is not None:
        layouts.insert(0, format.header.layout)
    parts = [_section(each) for each in every_layout(layouts) if each.kind or each.fields]
    return "\n".join(parts)


def _section(layout: Layout) -> str:
    cls = layout.cls
    doc = " ".join((cls.__doc__ or "").split())
    kind = ", ".join("other" if number == OTHER else f"{number:#x}" for number in layout.kind)
    title = f"### `{cls.record}`" + (f" (kind {kind})" if kind else "")
    lines = [title, "", *([doc, ""] if doc else []), "| field | where | meaning |", "|---|---|---|"]
    lines += _rows(layout)
    return "\n".join(lines) + "\n"


def _rows(layout: Layout) -> Iterator[str]:
    places = layout.places()
    for field in layout.fields:
        if isinstance(field, Check):
            continue
        place = places.get(field)
        where = _size(layout, field)
        if place is not None:
            where = f"byte {place.offset}: {where}"
        yield f"| `{field.name.lstrip('_')}` | {where} | {_meaning(field)} |"


def _size(layout: Layout, field: Field) -> str:
    if isinstance(field, Bits):
        nbytes = layout.words[layout.word_of[field]][0]
        bits = f"bit {field.low}" if field.low == field.high else f"bits {field.low}–{field.high}"
        return f"{bits} of {counted(nbytes)}"
    if isinstance(field, Integer | Float):
        return counted(field.nbytes)
    if isinstance(field, Computed):
        return f"computed: {_text(field.of)}"
    if isinstance(field, Span):
        return _span(field)
    if isinstance(field, Texts):
        return f"texts, each behind its size of {counted(field.size.nbytes)}; 0 ends them"
    if isinstance(field, Choice):
        kinds = (
            f"{key}: {_size(layout, each)}" for key, each in field.kinds.items() if each is not None
        )
        return f"by {_text(field.tag)}: " + ", ".join(kinds)
    if isinstance(field, Flag):
        return f"bit 0 of {_text(field.number)}"
    if isinstance(field, Listed):
        kinds_of_items = {Integer: "integers", Float: "floating-point numbers"}
        what = kinds_of_items.get(type(field.item)) or f"`{field.item.record}`"
        return f"list of {what}, " + ("to the end" if field.count is None else _text(field.count))
    return ""


def counted(nbytes: int) -> str:
    """Return a number of bytes in words."""
    return "1 byte" if nbytes == 1 else f"{nbytes} bytes"


def _span(field: Span) -> str:
    if isinstance(field, Text) and field.entry is not None:
        size = f"text of {field.entry.table!r}, number {_text(field.entry.index)}"
    elif field.until:
        size = f"up to {field.until!r}"
    elif field.nbytes is None:
        size = "to the end"
    else:
        size = f"{_text(field.nbytes)} bytes"
    if field.pad:
        size += f", padded with {field.pad!r}"
    return size + (f", aligned to {field.aligned}" if field.aligned > 1 else "")


def _meaning(field: Field) -> str:
    said = [field.doc] if field.doc else []
    if field.role:
        said.append("kind of the record" if field.role == "kind" else "size of the record")
        if isinstance(field, Number) and field.size_power:
            said.append(f"{field.size_unit} << number bytes")
    if isinstance(field, Mark):
        said.append(f"byte order: {field.number:#x}")
    if isinstance(field, Number):
        said += [field.unit] if field.unit else []
        said += ["signed"] if field.signed else []
        said += [", ".join(f"{value} {name}" for value, name in field.values.items())]
        said += [f"number in {field.refers!r}"] if field.refers is not None else []
        said += [f"equals {_text(field.equals)}"] if field.equals is not None else []
    if field.when is not None:
        said.append(f"only if {_text(field.when)}")
    return "; ".join(filter(None, said)).replace("|", "\\|")


def _text(value: Expression) -> str:
    text = repr(value).removeprefix("(").removesuffix(")")
    return " ".join(word.rpartition(".")[2].lstrip("_") for word in text.split())
