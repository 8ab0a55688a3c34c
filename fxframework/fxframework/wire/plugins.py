"""Plugins: the descriptors of declared formats, which a plugin registers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from fxframework.registry import Confidence, Probe, Reader, Writer, lazy_type

if TYPE_CHECKING:
    from fxframework.io.sink import Sink
    from fxframework.io.source import Source
    from fxframework.io.words import FieldView
    from fxframework.kit.salvage import Loss
    from fxframework.model.capture import Capture, OpenRequest
    from fxframework.model.diagnostics import Diagnostics
    from fxframework.model.selection import Selection
    from fxframework.registry import ExportSession, RecordWriter
    from fxframework.wire.format import Format

Lazy = Callable[[], "Format"]
Sniff = Callable[[Probe], Confidence]


def _loaded(declared: Any) -> Lazy:
    """Return a function that gives the format, which may be declared as ``module:NAME``."""

    @functools.cache
    def load() -> Format:
        return cast("Format", lazy_type(declared)() if isinstance(declared, str) else declared)

    return load


def reader(
    name: str, declared: Any, *, title: str = "", suffixes: tuple[str, ...] = (),
    magic: bytes = b"", sniff: Sniff | None = None, **options: Any,
) -> Reader:  # fmt: skip
    """Return the reader of a declared format.

    ``declared`` is the format, or ``"module:NAME"``, which is imported when a file of it is read.
    Further options are those of ``Reader``.
    """
    load = _loaded(declared)

    def open_(source: Source, request: OpenRequest) -> Capture:
        """Open a file of the format."""
        from fxframework.wire.capture import open_capture

        return open_capture(load(), source, request)

    open_.declared = load  # type: ignore[attr-defined]  # what `fxf plugins --check` looks at

    def sample(nbytes: int) -> bytes:
        """Make a typical file of about that many bytes."""
        return load().sample(nbytes)

    def explain(source: Source, offset: int) -> list[FieldView]:
        """Return the record at a byte offset as annotated fields."""
        from fxframework.wire.walk import explain

        return explain(load(), source, offset)

    descriptor: dict[str, Any] = {
        "title": title or name,
        "suffixes": suffixes or (f".{name}",),
        "magic": magic,
        "rules": lambda: load().rules,
        "explain": explain,
        "sample": sample,
    }
    if sniff is not None:
        descriptor["sniff"] = sniff
    return Reader(format=name, open=open_, **{**descriptor, **options})


def writer(
    name: str, declared: Any, *, title: str = "", suffixes: tuple[str, ...] = (),
    salvaged_by: str = "", **options: Any,
) -> Writer:  # fmt: skip
    """Return the writer of a declared format. See ``reader``.

    A class of its own, ``"module:CLASS"``, may copy what is sound (``verbs.copies.CopyReader``).
    """
    load = _loaded(declared)

    def open_(sink: Sink, options: Mapping[str, Any], diagnostics: Diagnostics) -> RecordWriter:
        """Open a writer of records."""
        del options, diagnostics
        from fxframework.wire.encoder import open_writer

        return open_writer(load(), sink)

    def extract(
        capture: Any, selection: Selection, sink: Sink, options: Mapping[str, Any]
    ) -> Mapping[str, int]:
        """Write the selected records, with those that they need."""
        del options
        from fxframework.wire.verbs.copies import extract

        return extract(load(), capture, selection, sink)

    def salvage(capture: Any, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
        """Write the sound records; yield what is left out."""
        del options
        from fxframework.wire.verbs.copies import CopyReader, salvage

        made_by = lazy_type(salvaged_by)() if salvaged_by else CopyReader
        return salvage(load(), capture, sink, made_by)

    def merge(sink: Sink, options: Mapping[str, Any]) -> ExportSession:
        """Open a session that merges captures in the order of time."""
        del options
        from fxframework.wire.verbs.merge import Merger

        return Merger(load(), sink)

    descriptor = {
        "lossless": True,
        "title": title or name,
        "suffixes": suffixes or (f".{name}",),
        "extract": extract,
        "salvage": salvage,
        "merge": merge,
        "accepts": name,
        "derived": lambda: load().derived,
    }
    return Writer(format=name, open=open_, **{**descriptor, **options})


def reader_of(format: Format, **options: Any) -> Reader:
    """Return the reader of a format that is imported already."""
    return reader(
        format.name, format, title=format.title, suffixes=format.suffixes, magic=format.constant,
        **options,
    )  # fmt: skip


def writer_of(format: Format, **options: Any) -> Writer:
    """Return the writer of a format that is imported already."""
    if format.parts_depend:
        options = {"extract": None, **options}
    if not format.merges:
        options = {"merge": None, "accepts": frozenset(), **options}
    return writer(format.name, format, title=format.title, suffixes=format.suffixes, **options)
