"""Plugins: the descriptors of declared formats, which a plugin registers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from fxframework.registry import Confidence, Probe, Reader, Writer, lazy, lazy_type

if TYPE_CHECKING:
    from fxframework.wire.format import Format

Lazy = Callable[[], "Format"]
Sniff = Callable[[Probe], Confidence]


def _loaded(declared: Any) -> Lazy:
    """Return a function that gives the format, which may be declared as ``module:NAME``."""

    @functools.cache
    def load() -> Format:
        return cast("Format", lazy_type(declared)() if isinstance(declared, str) else declared)

    return load


def _of_format(load: Lazy, target: str, count: int, **further: str) -> Callable[..., Any]:
    """Return a function that calls ``module:attribute`` with a format and its first arguments.

    There are ``count`` of these; what a writer is given beside, such as options, declared formats
    do not have. ``further`` arguments are passed on by name.
    """
    function = lazy(target)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return function(load(), *arguments[:count], **further)

    return call


def reader(
    name: str, declared: Any, *, title: str = "", suffixes: tuple[str, ...] = (),
    magic: bytes = b"", sniff: Sniff | None = None, **options: Any,
) -> Reader:  # fmt: skip
    """Return the reader of a declared format.

    ``declared`` is the format, or ``"module:NAME"``, which is imported when a file of it is read.
    Further options are those of ``Reader``.
    """
    load = _loaded(declared)
    open_ = _of_format(load, "fxframework.wire.capture:open_capture", 2)
    open_.declared = load  # type: ignore[attr-defined]  # what `fxf plugins --check` looks at
    descriptor: dict[str, Any] = {
        "title": title or name,
        "suffixes": suffixes or (f".{name}",),
        "magic": magic,
        "rules": lambda: load().rules,
        "explain": _of_format(load, "fxframework.wire.walk:explain", 2),
        "sample": _of_format(load, "fxframework.wire.sample:sample", 1),
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
    descriptor = {
        "lossless": True,
        "title": title or name,
        "suffixes": suffixes or (f".{name}",),
        "extract": _of_format(load, "fxframework.wire.verbs.copies:extract", 3),
        "salvage": _of_format(
            load, "fxframework.wire.verbs.copies:salvage", 2, made_by=salvaged_by
        ),
        "merge": _of_format(load, "fxframework.wire.verbs.merge:Merger", 1),
        "accepts": name,
        "derived": lambda: load().derived,
    }
    open_ = _of_format(load, "fxframework.wire.encoder:open_writer", 1)
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
