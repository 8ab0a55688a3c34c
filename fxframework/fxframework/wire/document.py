"""Document: the tables of a declared format in Markdown, for its README or its docs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fxframework.kit.shown import amount
from fxframework.wire.beside import Computed
from fxframework.wire.choices import Check, Choice, Flag
from fxframework.wire.expressions import Expression
from fxframework.wire.families import OTHER
from fxframework.wire.fields import Bits, Field, Integer, Mark, Number
from fxframework.wire.floats import Float
from fxframework.wire.lists import Listed, Texts
from fxframework.wire.records import Layout
from fxframework.wire.spans import Span, Text

if TYPE_CHECKING:
    from fxframework.wire.format import Format


def document(format: Format) -> str:
    """Return a table of fields for each record and each part of a format, as Markdown."""
    from fxframework.wire.format import every_layout

    layouts = [cls.layout for cls in format.classes]
    if format.header is not None:
        layouts.insert(0, format.header.layout)
    sections = [
        _section(layout) for layout in every_layout(layouts) if layout.kind or layout.fields
    ]
    return "\n".join(sections)


def _section(layout: Layout) -> str:
    """Return the heading, the docstring and the table of a layout."""
    title = f"### `{layout.cls.record}`"
    if layout.kind:
        kind_texts = ["other" if number == OTHER else f"{number:#x}" for number in layout.kind]
        title += f" (kind {', '.join(kind_texts)})"
    lines = [title, ""]
    description = " ".join((layout.cls.__doc__ or "").split())
    if description:
        lines += [description, ""]
    lines += ["| field | where | meaning |", "|---|---|---|", *_rows(layout)]
    return "\n".join(lines) + "\n"


def _rows(layout: Layout) -> Iterator[str]:
    places = layout.places
    for field in layout.fields:
        if isinstance(field, Check):
            continue
        place = places.get(field)
        location = _size(layout, field)
        if place is not None:
            location = f"byte {place.offset}: {location}"
        yield f"| `{field.name.lstrip('_')}` | {location} | {_meaning(field)} |"


def _size(layout: Layout, field: Field) -> str:
    """Return the size of a field in words, and where it is in its word."""
    if isinstance(field, Bits):
        nbytes, _ = layout.words[layout.word_of[field]]
        bits = f"bits {field.low}–{field.high}"
        if field.low == field.high:
            bits = f"bit {field.low}"
        return f"{bits} of {amount(nbytes, 'byte')}"
    if isinstance(field, Integer | Float):
        return amount(field.nbytes, "byte")
    if isinstance(field, Computed):
        return f"computed: {_text(field.of)}"
    if isinstance(field, Span):
        return _span(field)
    if isinstance(field, Texts):
        size = amount(field.size.nbytes, "byte")
        return f"texts, each behind its size of {size}; 0 ends them"
    if isinstance(field, Choice):
        sizes = [
            f"{number}: {_size(layout, variant)}"
            for number, variant in field.kinds.items()
            if variant is not None
        ]
        return f"by {_text(field.tag)}: " + ", ".join(sizes)
    if isinstance(field, Flag):
        return f"bit 0 of {_text(field.number)}"
    if isinstance(field, Listed):
        kinds_of_items = {Integer: "integers", Float: "floating-point numbers"}
        items = kinds_of_items.get(type(field.item)) or f"`{field.item.record}`"
        count = "to the end" if field.count is None else _text(field.count)
        return f"list of {items}, {count}"
    return ""


def _span(field: Span) -> str:
    """Return where a text or bytes end."""
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
    if field.aligned > 1:
        size += f", aligned to {field.aligned}"
    return size


def _meaning(field: Field) -> str:
    """Return what a field is for, and what is special about it."""
    remarks = [field.doc]
    if field.role:
        remarks.append("kind of the record" if field.role == "kind" else "size of the record")
        if isinstance(field, Number) and field.size_power:
            remarks.append(f"{field.size_unit} << number bytes")
    if isinstance(field, Mark):
        remarks.append(f"byte order: {field.number:#x}")
    if isinstance(field, Number):
        remarks.append(field.unit)
        if field.signed:
            remarks.append("signed")
        remarks.append(", ".join(f"{value} {name}" for value, name in field.values.items()))
        if field.refers is not None:
            remarks.append(f"number in {field.refers!r}")
        if field.equals is not None:
            remarks.append(f"equals {_text(field.equals)}")
    if field.when is not None:
        remarks.append(f"only if {_text(field.when)}")
    # What a field does not have is empty; a bar would end the cell of the table.
    return "; ".join(filter(None, remarks)).replace("|", "\\|")


def _text(value: Expression) -> str:
    """Return an expression with names of fields only: ``Event._count`` is ``count``."""
    text = repr(value).removeprefix("(").removesuffix(")")
    return " ".join(word.rpartition(".")[2].lstrip("_") for word in text.split())
