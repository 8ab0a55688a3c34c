"""Ready-made checks for crashtest and explore: images are readable and keep committed data.

    crashtest(program.entry("write", vmo), reads_back("inspect"))

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
from fxframework.host import default_host

__all__ = ["ReadsBack", "reads_back"]

_STRUCTURAL = frozenset(
    {"BufferExtents", "BufferHeader", "Damaged", "FileHeader", "Padding", "RingHeader"}
)
"""Records without data, whose contents may change."""
_KEPT_IMAGES = 64


@attrs.frozen
class _Content:
    """The contents of an image."""

    records: Counter[bytes]
    """Records with data, with counts."""
    generation: int | None = None
    """Generation count of an Inspect VMO."""
    tree: tuple[Any, ...] = ()
    """Nodes and properties of an Inspect VMO."""


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
        self.format = default_host().reader(format).format  # which refuses what nothing reads
        self.findings = frozenset(findings)
        self.keeps = keeps
        self._extract = extract
        self._options = options
        self._content = functools.lru_cache(_KEPT_IMAGES)(self._decode)

    def __repr__(self) -> str:
        return f"<reads_back: {self.format}>"

    def __call__(self, image: bytes, before: bytes | None = None) -> None:
        """Raise AssertionError if an image is unreadable or has lost data."""
        content = self._content(bytes(image))
        if before is None:
            return
        try:
            content_before = self._content(bytes(before))
        except AssertionError:
            return  # already reported for that image
        if content_before is None:
            return
        if content is None:
            if self.format == "inspect" and any(image):
                raise AssertionError("the header of the VMO was overwritten")
            return
        if content.generation is not None:
            self._compare_trees(content_before, content)
        else:
            self._compare_records(content_before, content)

    def final(self, image: bytes) -> None:
        """Raise AssertionError if a write is still in progress when the writer has ended.

        So is that of a VMO without a header.
        """
        content = self._content(bytes(image))
        if content is None:
            if self.format == "inspect":
                raise AssertionError(
                    "there is no Inspect VMO when the writer has ended: its header is missing; "
                    "does the writer write into the memory that it is given?"
                )
            return
        if content.generation is not None and content.generation % 2:
            raise AssertionError(
                f"the generation count is {content.generation} when the writer has ended: an odd "
                "count means that a write is in progress; a last increment is missing"
            )

    def _decode(self, image: bytes) -> _Content | None:
        data = image if self._extract is None else self._extract(image)
        if not data or not any(data):
            return None
        try:
            with self._open(data) as capture:
                records = list(capture.records())
                if self.format == "inspect" and type(records[0]).__name__ != "Header":
                    return None  # its header is written last
                content = self._content_of(capture, data, records)
                findings = [
                    finding
                    for finding in capture.diagnostics
                    if finding.severity >= Severity.WARNING and finding.code not in self.findings
                ]
        except FxError as error:
            raise AssertionError(f"the {self.format} reader rejects the image: {error}") from None
        # Readers take no image of a tree that is being changed, which may be inconsistent.
        is_changing = content.generation is not None and content.generation % 2
        if findings and not is_changing:
            first_finding = findings[0]
            message = (
                f"{first_finding.code} at byte {first_finding.offset}: {first_finding.message}"
            )
            if len(findings) > 1:
                message += f" (and {len(findings) - 1} more)"
            raise AssertionError(f"{message}; name the code in findings= if that is allowed")
        return content

    def _open(self, data: bytes) -> Any:
        """Open the detected format of the family, such as a trace buffer, or else ``format``."""
        with contextlib.suppress(FxError):
            capture = fxf.open(data, **self._options)
            rules = default_host().reader(self.format).rules
            if rules is not None and capture.rules is rules():
                return capture
            capture.close()
        return fxf.open(data, format=self.format, **self._options)

    def _content_of(self, capture: Any, data: bytes, records: list[Any]) -> _Content:
        if self.format == "inspect":
            generation = 0
            if records:
                generation = getattr(records[0], "generation", 0)
            nodes = tuple(capture.table("nodes").texts("path"))
            rows = [tuple(row)[2:] for row in capture.table("properties")]
            return _Content(Counter(), int(generation), (nodes, tuple(map(repr, rows))))
        data_records = [
            data[record.offset : record.offset + record.nbytes]
            for record in records
            if type(record).__name__ not in _STRUCTURAL and record.nbytes
        ]
        return _Content(Counter(data_records))

    def _compare_trees(self, old_content: _Content, new_content: _Content) -> None:
        """Check that a tree changes only while its generation count is odd."""
        is_writing = new_content.generation is None or new_content.generation % 2
        if (
            old_content.generation == new_content.generation
            and not is_writing
            and old_content.tree != new_content.tree
        ):
            raise AssertionError(
                f"the tree changed while the generation count was {new_content.generation}, "
                "which means that no write is in progress"
            )

    def _compare_records(self, old_content: _Content, new_content: _Content) -> None:
        lost_records = old_content.records - new_content.records
        if not lost_records:
            return
        new_records = new_content.records - old_content.records
        if self.keeps == "some" and not new_records:
            return
        record = next(iter(lost_records))
        fate = "changed" if new_records else "disappeared"
        start = record[:48].hex(" ", 8)
        if len(record) > 48:
            start += " …"
        raise AssertionError(f"a committed record {fate}: {start}")


def reads_back(
    format: Literal["trace", "log", "inspect", "xray"],
    *,
    findings: Collection[str] = (),
    keeps: Literal["all", "some"] = "all",
    extract: Callable[[bytes], bytes | None] | None = None,
    **options: Any,
) -> ReadsBack:
    """Return a check that an image is readable and keeps committed data.

    For ``crashtest`` and ``explore``. The image is read with the format's reader, or another
    reader of its family, such as for trace buffers or log rings. A finding of WARNING or worse
    fails, unless its code is in ``findings``. Compared with the image before the last store:

    - ``trace``, ``log``, ``xray``: every earlier record is still present, byte by byte. With
      ``keeps="some"``, for a ring that overwrites, a store may remove or add records, but not
      change one into another.
    - ``inspect``: while the generation count is even and unchanged, nodes and properties do not
      change. When the writer has ended, there is a header, and the count is even. While it is odd,
      findings do not fail: readers take no such image. One that has no header yet counts as
      nothing; a header does not disappear.

    ``extract`` converts the image to the bytes of a capture if the memory is not one; it returns
    None if there is nothing yet. An image of zeros also counts as nothing. ``options`` are the
    reader's. Raises UsageError for a format without a reader.
    """
    return ReadsBack(format, findings=findings, keeps=keeps, extract=extract, options=options)
