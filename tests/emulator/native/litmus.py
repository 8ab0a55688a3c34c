"""What threads can leave in memory, by a machine that knows nothing of the emulator.

Each thread has a queue of stores if the machine is buffered; every interleaving is tried. A thread
is a list of: a store (W, place, value), a load (R, place, register), a fence (F,), or a locked
update (L, place, value). A value is a number, or a function of the memory, in which the registers
are. Memory and registers are 16 words.
"""

from __future__ import annotations

from typing import Any

W, R, F, L = "store", "load", "fence", "locked"
WORDS = 16

Thread = list[tuple[Any, ...]]


def outcomes(
    threads: list[Thread], *, buffered: bool, first: tuple[int, ...] = ()
) -> set[tuple[int, ...]]:
    """Every final memory, from one that begins with the words of ``first``."""
    found, seen = set(), set()
    memory = (*first, *[0] * (WORDS - len(first)))
    start = (tuple(0 for _ in threads), tuple(() for _ in threads), memory)
    todo: list[Any] = [start]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        at, queues, memory = state
        if not any(queues) and all(at[n] == len(each) for n, each in enumerate(threads)):
            found.add(memory)
        for n, queue in enumerate(queues):
            if queue:
                new = _put(memory, *queue[0])
                todo.append((at, (*queues[:n], queue[1:], *queues[n + 1 :]), new))
            if at[n] == len(threads[n]):
                continue
            on = (*at[:n], at[n] + 1, *at[n + 1 :])
            kind, *what = threads[n][at[n]]
            if kind == R:
                place, register = what
                own = [value for where, value in queue if where == place]
                todo.append((on, queues, _put(memory, register, own[-1] if own else memory[place])))
                continue
            store = (what[0], what[1](memory) if callable(what[1]) else what[1]) if what else ()
            if kind == W and buffered:
                todo.append((on, (*queues[:n], (*queue, store), *queues[n + 1 :]), memory))
            elif not queue:
                todo.append((on, queues, _put(memory, *store) if store else memory))
    return found


def _put(memory: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*memory[:place], value, *memory[place + 1 :])
