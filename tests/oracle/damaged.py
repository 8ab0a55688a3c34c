"""Damaged traces: sound and odd records in any order, and what happens to files.

Everything comes from a seed, so that a file can be made again by its number.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from . import fxt

STYLES = (
    tuple(fxt.EVENTS),
    ("duration_begin", "duration_end", "duration_complete", "duration_complete", "instant"),
    ("async_begin", "async_end", "async_instant"),
    ("flow_begin", "flow_step", "flow_end", "duration_begin", "duration_end", "instant"),
)
"""Kinds of events that a trace has."""
ARG_KINDS = (
    "null", "int32", "uint32", "int64", "uint64", "double", "string", "pointer", "koid", "bool",
    "blob",
)  # fmt: skip
NAMES = ("a", "b", "", "name of more than eight bytes", "process", "weight", "incoming_weight")
RATES = (1_000_000_000, 1_000_000_000, 24_000_001, 1, 3, 0, (1 << 64) - 1)
THREADS = ((11, 12), (11, 12), (11, 13), (21, 22), (0, 0), (1 << 63 | 11, 12))
TIMES = 60


class Maker:
    """Makes one trace from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0
        self.kinds = self.random.choice(STYLES)
        self.careless = self.random.random() < 0.3
        """Whether references are often to what is not there."""
        self.makers: tuple[tuple[int, Callable[[], bytes]], ...] = (
            (30, self.event),
            (6, self.string),
            (4, self.thread),
            (3, self.scheduling),
            (2, self.kernel_object),
            (2, self.provider),
            (1, self.initialization),
            (2, self.other),
        )

    def trace(self) -> bytes:
        """A trace of sound records, of which some refer to what is not there, then damage."""
        count = self.random.choice((3, 20, 80, 200))
        weights = [weight for weight, _ in self.makers]
        chosen = self.random.choices([make for _, make in self.makers], weights, k=count)
        start = [fxt.string(1, "one"), fxt.string(2, "two"), fxt.thread(1, 11, 12)]
        if self.careless:
            start = start[self.random.randint(0, 3) :]
        return fxt.MAGIC + damage(self.random, b"".join([*start, *(make() for make in chosen)]))

    # --- Records ---

    def text(self) -> fxt.Text:
        if self.random.random() < 0.3:
            return self.random.choice((1, 2, 3, 77) if self.careless else (1, 2))
        return self.random.choice(NAMES[:4])

    def who(self) -> fxt.Who:
        if self.random.random() < 0.5:
            return self.random.choice((1, 2, 9)) if self.careless else 1
        return self.random.choice(
            ((11, 12), (11, 12), (11, 13), (21, 22), (0, 0), (1 << 63 | 11, 12))
        )

    def arg(self) -> fxt.Arg:
        kind = self.random.choice(ARG_KINDS)
        number = self.random.choice((0, 1, 5, (1 << 31) - 1))
        values = {"double": 1.5, "string": self.text(), "blob": b"blob", "null": None}
        name = self.random.choice((self.text(), *NAMES))
        return name, kind, values.get(kind, number)

    def args(self) -> list[fxt.Arg]:
        return [self.arg() for _ in range(self.random.choice((0, 0, 0, 1, 2, 15)))]

    def time(self) -> int:
        if self.random.random() < 0.02:
            return self.random.choice((1 << 63, (1 << 63) - 1, (1 << 64) - 1, 1 << 60))
        self.now += self.random.choice((0, 0, 1, 2, 5))
        if self.random.random() < 0.05:
            return self.random.randint(0, TIMES)
        return self.now

    def event(self) -> bytes:
        kind = self.random.choice(self.kinds)
        ticks = self.time()
        word = self.random.randint(0, 3)
        if kind == "duration_complete":
            word = ticks + self.random.choice((-1, 0, 0, 1, 3, 10, 20, 1 << 62))
        category = self.random.choice(("cat", "cat", "dog", self.text()))
        return fxt.event(
            kind, ticks, self.who(), self.text(), self.args(), category=category, word=word
        )

    def string(self) -> bytes:
        return fxt.string(self.random.randint(0, 3), self.random.choice(NAMES))

    def thread(self) -> bytes:
        return fxt.thread(self.random.randint(0, 2), self.random.choice((11, 21)), 12)

    def scheduling(self) -> bytes:
        cpu = 4096 if self.random.random() < 0.005 else self.random.choice((0, 1, 4095))
        args = self.args()
        if self.random.random() < 0.5:
            kind = self.random.choice(("int32", "int32", "int64"))
            name = self.random.choice(("weight", "incoming_weight", "outgoing_weight"))
            args = [(name, kind, self.random.choice((1, -(1 << 31))))]
        choice = self.random.randint(0, 2)
        if choice == 0:
            prio = self.random.choice((0, 5))
            return fxt.legacy_context_switch(
                self.time(), cpu & 0xFF, self.who(), self.who(), 3, prio, 7
            )
        if choice == 1:
            return fxt.context_switch(self.time(), cpu, 12, self.random.choice((13, 0)), 3, args)
        return fxt.wakeup(self.time(), cpu, 13, args)

    def kernel_object(self) -> bytes:
        args = self.args()
        if self.random.random() < 0.5:
            args = [("process", self.random.choice(("koid", "uint64")), 11)]
        koid = self.random.choice((11, 12, 13, 1 << 40))
        return fxt.kernel_object(self.random.choice((1, 2, 4)), koid, self.text(), args)

    def provider(self) -> bytes:
        number = self.random.randint(0, 2)
        return self.random.choice(
            (fxt.provider_info(number, "p"), fxt.provider_section(number), fxt.provider_event(1))
        )

    def initialization(self) -> bytes:
        return fxt.initialization(self.random.choice(RATES))

    def other(self) -> bytes:
        return self.random.choice(
            (
                fxt.log(5, (11, 12), "message"),
                fxt.userspace_object(5, (11, 12), "object"),
                fxt.blob("b", b"payload"),
                fxt.profiler_backtrace(5, (11, 12), [1, 2]),
                fxt.large_blob("c", "n", b"payload"),
            )
        )


def damage(random: random.Random, data: bytes) -> bytes:
    """What happens to files: nothing, or a few bits, bytes and words changed, moved or lost."""
    damaged = bytearray(data)
    for _ in range(random.choice((0, 1, 1, 2, 4, 8))):
        if len(damaged) < 16:
            break
        word = random.randrange(len(damaged) // 8) * 8
        choice = random.randrange(8)
        if choice < 3:
            at = random.randrange(len(damaged))
            damaged[at] ^= 1 << random.randrange(8)
        elif choice == 3:
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        elif choice == 4:
            damaged[word : word + 8] = struct.pack("<Q", random.getrandbits(64))
        elif choice == 5:
            del damaged[word : word + 8 * random.randint(1, 4)]
        elif choice == 6:
            other = random.randrange(len(damaged) // 8) * 8
            damaged[word:word] = damaged[other : other + 8 * random.randint(1, 4)]
        else:
            del damaged[random.randrange(len(damaged) // 2, len(damaged)) :]
    return bytes(damaged)


def damaged_trace(seed: int) -> bytes:
    """The damaged trace of this number."""
    return Maker(seed).trace()
