"""The ring of ring.c as a capture: its records in the order of their numbers, as FXT."""

from __future__ import annotations

import struct

MAGIC = 0x31474E4952545846
PROLOGUE_WORD = 8
SLOT_WORDS = 8
RECORD_WORDS = 6


def records(image: bytes) -> dict[int, tuple[int, ...]]:
    """The words of each committed record by its number; none before the ring is made."""
    words = struct.unpack(f"<{len(image) // 8}Q", image)
    if words[0] != MAGIC:
        return {}
    slot_count = words[2]
    first_slot = words[4]
    slots_end = first_slot + slot_count * SLOT_WORDS
    record_by_number = {}
    for slot in range(first_slot, slots_end, SLOT_WORDS):
        mark = words[slot]
        is_committed = mark and not mark & 1
        if is_committed:
            number = mark // 2 - 1
            record_by_number[number] = words[slot + 1 : slot + 1 + RECORD_WORDS]
    return record_by_number


def extract(image: bytes) -> bytes | None:
    """The ring as an FXT archive."""
    words = struct.unpack(f"<{len(image) // 8}Q", image)
    if words[0] != MAGIC:
        return None
    prologue_words = words[3]
    archive = list(words[PROLOGUE_WORD : PROLOGUE_WORD + prologue_words])
    for _, record in sorted(records(image).items()):
        archive += record
    return struct.pack(f"<{len(archive)}Q", *archive)


def check_payload(image: bytes) -> None:
    """The two arguments of each record belong together."""
    for number, record in records(image).items():
        assert record[3] ^ record[5] == (1 << 64) - 1, f"record {number} is of two minds"
