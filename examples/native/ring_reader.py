"""The ring of ring.c as a capture: its records in the order of their numbers, as FXT."""

from __future__ import annotations

import struct

MAGIC = 0x31474E4952545846
PROLOGUE_WORD, SLOT_WORDS, RECORD_WORDS = 8, 8, 6


def records(image: bytes) -> dict[int, tuple[int, ...]]:
    """The words of each committed record by its number; none before the ring is made."""
    words = struct.unpack(f"<{len(image) // 8}Q", image)
    if words[0] != MAGIC:
        return {}
    first, slots = words[4], words[2]
    found = {}
    for at in range(first, first + slots * SLOT_WORDS, SLOT_WORDS):
        mark = words[at]
        if mark and not mark & 1:
            found[mark // 2 - 1] = words[at + 1 : at + 1 + RECORD_WORDS]
    return found


def extract(image: bytes) -> bytes | None:
    """The ring as an FXT archive."""
    words = struct.unpack(f"<{len(image) // 8}Q", image)
    if words[0] != MAGIC:
        return None
    prologue = words[PROLOGUE_WORD : PROLOGUE_WORD + words[3]]
    body = [word for _, record in sorted(records(image).items()) for word in record]
    return struct.pack(f"<{len(prologue) + len(body)}Q", *prologue, *body)


def check_payload(image: bytes) -> None:
    """The two arguments of each record belong together."""
    for number, record in records(image).items():
        assert record[3] ^ record[5] == (1 << 64) - 1, f"record {number} is of two minds"
