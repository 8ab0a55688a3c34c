"""Checks that are ready for crashtest and explore: each image reads, and nothing committed goes.

    crashtest(program.entry("write", vmo), reads_back("inspect", findings={"FXI0005"}))

A check decodes an image with the format's reader, and compares it with the image before the last
store.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Literal

import attrs

import fxframework as fxf
from fxframework.errors import FxError, Severity

__all__ = ["ReadsBack", "reads_back"]

_FURNITURE = frozenset(
    {"BufferExtents", "BufferHeader", "Damaged", "FileHeader", "Padding", "RingHeader"}
)
"""Records that hold no data: what is in them may change."""
_PREFIXES = {"trace": "FXT", "log": "FXL", "inspect": "FXI", "xray": "FXX"}
"""What the codes of a family's findings begin with."""
_KEPT_IMAGES = 64


@attrs.frozen
class _Content:
    """What a reader makes of an image."""

    records: Counter[bytes]
    """Records that hold data, in the order of the image."""
    generation: int | None = None
    """Of an Inspect VMO: its generation count."""
    tree: tuple[Any, ...] = ()
    """Of an Inspect VMO: its nodes and properties."""


class ReadsBack:
    """A check of images; made by ``reads_back``."""

    def __init__(
        self,
        format: str,
        *,
        findings: Collection[str],
        keeps: Literal["all", "some"],
        extract: Callable[[bytes], bytes | None] | None,
        options: dict[str, Any],
    ) -> None:
        self.format = format
        self.findings = frozenset(findings)
        self.keeps = keeps
        self._extract = extract
        self._options = options
        self._content = functools.lru_cache(_KEPT_IMAGES)(self._decode)

    def __repr__(self) -> str:
        return f"<reads_back: {self.format}>"

    def __call__(self, image: bytes, before: bytes | None = None) -> None:
        """Raise AssertionError where an image does not read, or lost something."""
        now = self._content(bytes(image))
        if before is None or now is None:
            return
        try:
            then = self._content(bytes(before))
        except AssertionError:
            return  # it was reported for that image
        if then is None:
            return
        if now.generation is not None:
            self._compare_trees(then, now)
        else:
            self._compare_records(then, now)

    def _decode(self, image: bytes) -> _Content | None:
        data = image if self._extract is None else self._extract(image)
        if not data or not any(data):
            return None
        try:
            with self._open(data) as capture:
                records = list(capture.records())
                content = self._content_of(capture, data, records)
                found = [
                    each
                    for each in capture.diagnostics
                    if each.severity >= Severity.WARNING and each.code not in self.findings
                ]
        except FxError as error:
            raise AssertionError(f"the {self.format} reader refuses the image: {error}") from None
        if found:
            first = found[0]
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise AssertionError(
                f"{first.code} at byte {first.offset}: {first.message}{more}; name the code in "
                "findings= if that is allowed"
            )
        return content

    def _open(self, data: bytes) -> Any:
        """The capture: of a trace buffer, for instance, where that is what is detected."""
        with contextlib.suppress(FxError):
            capture = fxf.open(data, **self._options)
            if getattr(capture, "code_prefix", "") == _PREFIXES.get(self.format):
                return capture
            capture.close()
        return fxf.open(data, format=self.format, **self._options)

    def _content_of(self, capture: Any, data: bytes, records: list[Any]) -> _Content:
        if self.format == "inspect":
            header = records[0] if records else None
            fields = getattr(header, "fields", None) or {}
            generation = fields.get("generation", 0)
            nodes = tuple(capture.table("nodes").texts("path"))
            rows = [tuple(row)[2:] for row in capture.table("properties")]
            return _Content(Counter(), int(generation), (nodes, tuple(map(repr, rows))))
        kept = [
            data[each.offset : each.offset + each.nbytes]
            for each in records
            if type(each).__name__ not in _FURNITURE and each.nbytes
        ]
        return _Content(Counter(kept))

    def _compare_trees(self, then: _Content, now: _Content) -> None:
        """A tree changes only while its generation count is odd."""
        writing = now.generation is None or now.generation % 2
        if then.generation == now.generation and not writing and then.tree != now.tree:
            raise AssertionError(
                f"the tree changed while the generation count was {now.generation}, which tells "
                "readers that nobody writes"
            )

    def _compare_records(self, then: _Content, now: _Content) -> None:
        gone = then.records - now.records
        if not gone:
            return
        came = now.records - then.records
        if self.keeps == "some" and not came:
            return
        record = next(iter(gone))
        what = "changed" if came else "disappeared"
        raise AssertionError(
            f"a committed record {what}: {record[:48].hex(' ', 8)}"
            + (" …" if len(record) > 48 else "")
        )


def reads_back(
    format: Literal["trace", "log", "inspect", "xray"],
    *,
    findings: Collection[str] = (),
    keeps: Literal["all", "some"] = "all",
    extract: Callable[[bytes], bytes | None] | None = None,
    **options: Any,
) -> ReadsBack:
    """A check for ``crashtest`` and ``explore``: the image reads, and what was committed stays.

    The image is read with the format's reader, or another one of its family that knows it: of
    trace buffers, of rings of logs. A finding of severity WARNING or worse fails,
    except those whose codes are in ``findings``. Compared with the image before the last store:

    - ``trace``, ``log``, ``xray``: every record that was there is still there, byte by byte. With
      ``keeps="some"``, for a ring that overwrites, a store may take records away or add some, but
      not change one into another.
    - ``inspect``: while the generation count is even and stays, nodes and properties do not change.

    ``extract`` makes a capture of the image where the memory is not one: it gives its bytes, or
    None where there is nothing yet; an image of zeros is nothing yet, too. ``options`` are the
    reader's.
    """
    return ReadsBack(format, findings=findings, keeps=keeps, extract=extract, options=options)
