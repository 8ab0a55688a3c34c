"""Litmus tests: exactly the outcomes that the memory order allows, no fewer and no more.

What x86-TSO allows is computed by ``litmus``, which knows nothing of the emulator.
"""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pytest

from fx_emulator.native import explore
from fx_emulator.native.content import Content
from fx_emulator.target import Target

from ...cases import cases
from . import litmus
from .building import BUILDS, SOURCES
from .conftest import Builder
from .litmus import F, L, R, W

X, Y = 0, 1

# Each thread is a list of: a store (place, value), a load (place, register), a fence, or a locked
# exchange (place, value).
TESTS: dict[str, tuple[list[str], list[list[tuple[Any, ...]]]]] = {
    "message passing": (
        ["store_x_y", "mp_1"],
        [[(W, X, 1), (W, Y, 1)], [(R, Y, 10), (R, X, 11)]],
    ),
    "Dekker": (
        ["sb_0", "sb_1"],
        [[(W, X, 1), (R, Y, 8)], [(W, Y, 1), (R, X, 10)]],
    ),
    "Dekker, MFENCE": (
        ["sb_mfence_0", "sb_mfence_1"],
        [[(W, X, 1), (F,), (R, Y, 8)], [(W, Y, 1), (F,), (R, X, 10)]],
    ),
    "Dekker, MFENCE on one side": (
        ["sb_mfence_0", "sb_1"],
        [[(W, X, 1), (F,), (R, Y, 8)], [(W, Y, 1), (R, X, 10)]],
    ),
    "Dekker, SFENCE": (
        ["sb_sfence_0", "sb_sfence_1"],
        [[(W, X, 1), (R, Y, 8)], [(W, Y, 1), (R, X, 10)]],
    ),
    "Dekker, LFENCE": (
        ["sb_lfence_0", "sb_lfence_1"],
        [[(W, X, 1), (R, Y, 8)], [(W, Y, 1), (R, X, 10)]],
    ),
    "Dekker, XCHG": (
        ["sb_xchg_0", "sb_xchg_1"],
        [[(L, X, 1), (R, Y, 8)], [(L, Y, 1), (R, X, 10)]],
    ),
    "Dekker, LOCK elsewhere": (
        ["sb_lock_0", "sb_lock_1"],
        [[(W, X, 1), (F,), (R, Y, 8)], [(W, Y, 1), (F,), (R, X, 10)]],
    ),
    "load buffering": (
        ["lb_0", "lb_1"],
        [[(R, Y, 8), (W, X, 1)], [(R, X, 10), (W, Y, 1)]],
    ),
    "two by two stores": (
        ["w2_0", "w2_1"],
        [[(W, X, 1), (W, Y, 2)], [(W, Y, 1), (W, X, 2)]],
    ),
    "forwarding": (
        ["forward_0", "forward_1"],
        [
            [(W, X, 1), (R, X, 8), (R, Y, 9)],
            [(W, Y, 1), (R, Y, 10), (R, X, 11)],
        ],
    ),
    "R": (["r_0", "r_1"], [[(W, X, 1), (W, Y, 1)], [(W, Y, 2), (R, X, 10)]]),
    "IRIW": (
        ["store_x", "store_y", "iriw_2", "iriw_3"],
        [[(W, X, 1)], [(W, Y, 1)], [(R, X, 12), (R, Y, 13)], [(R, Y, 14), (R, X, 15)]],
    ),
}
SEEN = (X, Y, *range(8, 16))


def model(threads: list[list[tuple[Any, ...]]], *, buffered: bool) -> set[tuple[int, ...]]:
    everything = litmus.outcomes(threads, buffered=buffered)
    return {tuple(memory[place] for place in SEEN) for memory in everything}


def outcomes(path: Any, names: list[str], order: Any, **options: Any) -> set[tuple[int, ...]]:
    with Target(cpus=4) as target:
        program = target.load(path, memory_order=order)
        memory = target.vmo("memory", 4096)
        found = set()

        def check(image: bytes) -> None:
            words = struct.unpack_from("<16Q", image)
            found.add(tuple(words[place] for place in SEEN))

        threads = [program.entry(name, memory) for name in names]
        report = explore(threads, check, crash=False, **options)
        assert report.ok, report
        return found


@cases("order", ["program", "tso"])
@cases("name", TESTS)
def test_exactly_what_is_allowed(built: Builder, name: str, order: str) -> None:
    names, threads = TESTS[name]
    path = built(SOURCES / "litmus.c", cc="gcc", level="-O2")
    wanted = model(threads, buffered=order == "tso")
    assert outcomes(path, names, order, preemptions=None) == wanted


@cases(("cc", "level"), BUILDS)
def test_dekker_by_every_compiler(built: Builder, cc: str, level: str) -> None:
    path = built(SOURCES / "litmus.c", cc=cc, level=level)
    for name in ("Dekker", "message passing"):
        names, threads = TESTS[name]
        for order in ("program", "tso"):
            wanted = model(threads, buffered=order == "tso")
            assert outcomes(path, names, order, preemptions=None) == wanted


def test_relaxed_outcomes_are_what_hardware_is_known_for() -> None:
    relaxed = {
        name
        for name, (_, threads) in TESTS.items()
        if model(threads, buffered=True) != model(threads, buffered=False)
    }
    assert relaxed == {
        "Dekker", "Dekker, MFENCE on one side", "Dekker, LFENCE", "Dekker, SFENCE",
        "forwarding", "R",
    }  # fmt: skip


def everything(path: Any, name: str, count: int, order: Any) -> tuple[Any, set[bytes], set[bytes]]:
    """The report, all images after a store, and all last images."""
    images: set[bytes] = set()
    last: set[bytes] = set()
    with Target(cpus=2) as target:
        program = target.load(path, memory_order=order)
        memory = target.vmo("memory", 4096)
        if name == "ring":
            threads = [program.entry(each, memory, count) for each in ("produce", "consume")]
        else:
            threads = [program.entry("note", memory, me, count) for me in (0, 1)]
        report = explore(
            threads,
            lambda image: images.add(image[:128]),
            final=lambda image: last.add(image[:128]),
        )
    assert report.complete
    return report, images, last


@pytest.mark.parametrize("order", ["program", "tso"])
@pytest.mark.parametrize(("name", "count"), [("ring", 3), ("note", 2)])
def test_equal_contents_are_explored_once(
    built: Builder, monkeypatch: pytest.MonkeyPatch, name: str, count: int, order: str
) -> None:
    """The same images with and without recognising states by their contents."""
    path = built(SOURCES / "litmus.c", cc="gcc", level="-O2")
    report, images, last = everything(path, name, count, order)
    numbers = itertools.count()
    monkeypatch.setattr(Content, "key", lambda *_: ("unknown", next(numbers)))
    slow, all_images, all_last = everything(path, name, count, order)
    assert (images, last) == (all_images, all_last)
    assert report.schedules <= slow.schedules
    if (name, order) == ("ring", "tso"):
        assert report.schedules < slow.schedules / 5


def test_schedules_grow_slowly_with_store_buffers(built: Builder) -> None:
    """Takes seconds: the number of schedules is what is tested."""
    path = built(SOURCES / "litmus.c", cc="gcc", level="-O2")
    counts = [everything(path, "ring", count, "tso")[0].schedules for count in (1, 2, 3, 4)]
    growth = [other / one for one, other in itertools.pairwise(counts)]
    assert growth == sorted(growth, reverse=True)
    assert counts[-1] < 1000


def test_random_schedules_stay_within_what_is_allowed(built: Builder) -> None:
    names, threads = TESTS["Dekker"]
    path = built(SOURCES / "litmus.c", cc="gcc", level="-O0")
    found = outcomes(path, names, "tso", random=range(300))
    assert found <= model(threads, buffered=True)
    assert len(found) > 2


@cases("preemptions", [0, 1, 2, 3, None])
def test_the_bound_counts_preemptions(built: Builder, preemptions: int | None) -> None:
    # Two threads each load and store a count twice: what is lost depends on who is interrupted.
    path = built(SOURCES / "litmus.c", cc="gcc", level="-O2")
    found = {each[0] for each in outcomes(path, ["add", "add"], "program", preemptions=preemptions)}
    assert found == counts(99 if preemptions is None else preemptions)
    atomic = outcomes(path, ["add_atomically"] * 2, "program", preemptions=preemptions)
    assert {each[0] for each in atomic} == {4}


def counts(preemptions: int) -> set[int]:
    """The same by trying every order of the eight steps."""
    found = set()
    for order in set(itertools.permutations([0] * 4 + [1] * 4)):
        used = sum(
            one != other and one in order[at + 1 :]
            for at, (one, other) in enumerate(itertools.pairwise(order))
        )
        if used > preemptions:
            continue
        memory, registers, at = 0, [0, 0], [0, 0]
        for thread in order:
            if at[thread] % 2:
                memory = registers[thread] + 1
            else:
                registers[thread] = memory
            at[thread] += 1
        found.add(memory)
    return found
