"""Where files are cut short: around the edges of all records, and inside one of each kind."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework.model.capture import Record, kind_of

__all__ = ["sizes_of"]


def sizes_of(records: Iterable[Record], *, inside: int = 0) -> list[int]:
    """Return sizes, none of them the whole, to which a file with these records is cut.

    Each record is cut in front of its first byte, behind it, and in front of its last one; the
    first of each kind is cut in its middle, too, or after every ``inside`` bytes.
    """
    sizes = {0}
    known_kinds = set()
    end = 0
    for record in records:
        end = record.offset + record.nbytes
        sizes |= {record.offset, record.offset + 1, end - 1}
        kind = kind_of(record)
        if kind not in known_kinds:
            known_kinds.add(kind)
            sizes |= {*range(record.offset, end, inside or max(record.nbytes // 2, 1))}
    return sorted(size for size in sizes if size < end)
