"""What recorders' tests share: a counter that tests turn, a plain reader, and a plain model."""

from __future__ import annotations

import struct
from typing import Any

import attrs

FUNCTIONS = ("enter", "exit", "tail_exit", "enter_arg")
WRAPS = {1: 2**32 - 1, 2: 2**32 - 1, 3: 2**32 - 1, 4: 2**32 - 1, 5: 2**31 - 1}


@attrs.define
class Counter:
    """A counter whose time and CPU are what a test says (``TimestampCounter``)."""

    tsc: int = 1000
    cpu: int = 0
    frequency: int = 1_000_000_000
    constant: bool = True
    nonstop: bool = True
    node: int = 0

    def read_tsc(self) -> int:
        return self.tsc

    def read_tscp(self) -> tuple[int, int]:
        return self.tsc, self.node << 12 | self.cpu


@attrs.frozen
class Block:
    """A buffer of a file: whose it is, and what is in it, each with its time and CPU."""

    thread: int
    process: int
    wall: tuple[int, int]
    items: list[tuple[Any, ...]]
    raw: list[str]
    """The records by their names, in order."""


def blocks_of(file: bytes) -> list[Block]:
    """The buffers of a file of the flight recorder, read straight from the notes."""
    version, kind, _, _, buffer_size, _ = struct.unpack_from("<HHIQQQ", file)
    assert kind == 1
    blocks = []
    at = 32
    while at < len(file):
        if version == 1:
            blocks.append(block_of(file[at : at + buffer_size], version))
            at += buffer_size
        else:
            assert file[at] == 0x0F
            (size,) = struct.unpack_from("<Q", file, at + 1)
            assert at + 16 + size <= len(file)
            blocks.append(block_of(file[at + 16 : at + 16 + size], version))
            at += 16 + size
    return blocks


def block_of(data: bytes, version: int) -> Block:
    """One buffer, which must hold whole records and begin as all do."""
    names = ("new_buffer", "end", "new_cpu", "wrap", "wall", "custom", "argument", "", "typed")
    at, base, cpu = 0, 0, -1
    thread = process = 0
    wall = (0, 0)
    items: list[tuple[Any, ...]] = []
    raw: list[str] = []
    while at < len(data):
        if not data[at] & 1:
            word, delta = struct.unpack_from("<II", data, at)
            base += delta
            name = FUNCTIONS[word >> 1 & 7]
            raw.append(name)
            items.append((name, word >> 4, base, cpu))
            at += 8
            continue
        kind = data[at] >> 1
        raw.append("pid" if kind == 9 else names[kind])
        fields = data[at + 1 : at + 16]
        assert len(fields) == 15
        at += 16
        match raw[-1]:
            case "new_buffer":
                (thread,) = struct.unpack_from("<i", fields)
            case "wall":
                wall = struct.unpack_from("<qi", fields)
            case "pid":
                (process,) = struct.unpack_from("<i", fields)
            case "new_cpu":
                cpu, base = struct.unpack_from("<HQ", fields)
                items.append(("metadata", base, cpu))
            case "wrap":
                (base,) = struct.unpack_from("<Q", fields)
                items.append(("metadata", base, cpu))
            case "argument":
                items[-1] = (*items[-1], *struct.unpack_from("<Q", fields))
            case "custom" | "typed" as name:
                size, delta = struct.unpack_from("<ii", fields)
                when = base + delta
                if version < 5:
                    _, when = struct.unpack_from("<iQ", fields)
                else:
                    base = when
                payload = data[at : at + size]
                assert len(payload) == size
                at += size
                type_at = 8 if version >= 5 else 12
                types = struct.unpack_from("<H", fields, type_at) if name == "typed" else ()
                items.append((name, payload, when, cpu if version >= 5 else None, *types))
            case "end":
                assert version == 1
                # llvm-xray takes what follows for records: zeros, and one that makes them whole.
                odd = (len(data) - at) % 8
                assert data[at : at + 5] == (b"\x0b" + bytes([odd, 0, 0, 0]) if odd else bytes(5))
                assert not any(data[at + 5 :])
                break
    return Block(thread, process, wall, items, raw)


@attrs.define
class Model:
    """What a thread's buffers should hold, by the rules of the notes (§2.3), done right."""

    version: int
    buffer_size: int
    threshold: int
    thread: int
    process: int = 1
    buffers: list[list[tuple[Any, ...]]] = attrs.field(factory=list)
    used: int = 0

    @property
    def last(self) -> tuple[Any, ...]:
        return self.buffers[-1][-1]

    def since(self) -> tuple[int, int]:
        """Time and CPU that the next record counts from: none behind typed events of old versions.

        llvm-xray takes those for others, and its times are wrong until the next metadata.
        """
        away = 0
        for item in reversed(self.buffers[-1]):
            if item[0] == "metadata":
                return item[1] ^ away, item[2]
            if item[0] not in ("custom", "typed") or self.version >= 5:
                return item[2] ^ away, item[3]
            if item[0] == "typed":
                away = 1 << 63
        raise AssertionError

    def before(self, room: int, tsc: int, cpu: int, *, absolute: bool = False) -> bool:
        """Begin a buffer, or add metadata, where a record needs it; whether one did."""
        capacity = self.buffer_size - 40 * (self.version == 1)
        if not self.buffers or self.used + room > capacity:
            self.buffers.append([])
            self.used = 48 if self.version >= 3 else 32
        else:
            latest, on = self.since()
            wraps = not 0 <= tsc - latest <= WRAPS[self.version]
            if absolute or (on == cpu and not wraps):
                return False
        self.buffers[-1].append(("metadata", tsc, cpu))
        self.used += 16
        return True

    def add(self, size: int, *item: Any) -> None:
        self.buffers[-1].append(item)
        self.used += size

    def enter(self, function: int, arguments: tuple[int, ...], tsc: int, cpu: int) -> None:
        size = 8 + 16 * len(arguments)
        self.before(16 + size, tsc, cpu)
        name = "enter_arg" if arguments and self.version >= 4 else "enter"
        self.add(size, name, function, tsc, cpu, *arguments)

    def leave(self, name: str, function: int, tsc: int, cpu: int) -> None:
        if not self.before(24, tsc, cpu):
            last = self.last
            # An entry without arguments, the very last record, and short.
            if (
                last[:2] == ("enter", function)
                and len(last) == 4
                and tsc - last[2] < self.threshold
            ):
                self.buffers[-1].pop()
                self.used -= 8
                return
        self.add(8, name, function, tsc, cpu)

    def event(self, name: str, data: bytes, tsc: int, cpu: int, *types: int) -> None:
        new = self.version >= 5
        self.before(32 + len(data), tsc, cpu, absolute=not new)
        self.add(16 + len(data), name, data, tsc, cpu if new else None, *types)
