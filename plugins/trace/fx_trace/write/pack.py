"""The hot loops of bulk writing: columns to the words of records.

Like ``kernels.py``, whose conventions they share: words are int64, the plain-Python body is the
reference, and all state lies in arrays of the caller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from fx_trace.read.legacy import (
    LATEST,
    NOT_NEGATIVE,
)
from fxframework.io.jit import kernel

I64 = NDArray[Any]
U8 = NDArray[Any]

SWITCH, WAKEUP, LEGACY_SWITCH, LOG = 16, 17, 18, 19
"""Kinds of items beyond the event types."""
RECORD_WORDS = 0xFFF
ARGUMENTS = 15
INLINE_BYTES = 8000
"""Bytes of a string that stands inline, because the string table is full; the rest is cut."""
D_ARGUMENTS, D_TOO_LARGE, D_UNKNOWN = 0, 1, 2
"""Arguments that are dropped: beyond 15, without room in a record, of types that are not ours."""


class Items(NamedTuple):
    """What is to be written, one record an item. A column of one element holds for all."""

    kind: U8
    """An event type, or SWITCH and its like."""
    time: I64
    thread: I64
    """Id of the thread; -1 none."""
    category: I64
    name: I64
    word: I64
    """Of a complete event its length; counter id, correlation id; an instant's scope, 0 none; of
    other kinds the row of ``Rows``."""


class ArgumentItems(NamedTuple):
    """Arguments by item, in ascending order of ``item``. A column of one element holds for all."""

    item: I64
    name: I64
    type: U8
    whole: I64
    real: I64
    """Bits of the double."""
    text: I64


class Rows(NamedTuple):
    """What only scheduling and log records have, by row; ``bits`` are those of the header."""

    bits: I64
    prev: I64
    next: I64
    """Koids of threads; of a legacy switch their ids."""
    start: I64
    """First byte of a log's message."""
    length: I64
    message: U8


class Slotted(NamedTuple):
    """How strings and threads are referred to, and what stands inline."""

    strings: I64
    """By code + 1: the reference."""
    words: I64
    starts: I64
    lengths: I64
    """Of the pool, by code; ``words`` holds the bytes."""
    threads: I64
    """By thread id + 1: the index, 0 inline."""
    pids: I64
    tids: I64


@kernel
def count_uses(items, args, strings, threads):  # type: ignore[no-untyped-def]
    """Count, by code + 1 and by thread id + 1, how often strings and threads are referred to.

    False where a code is none of the pool's; threads have been looked at.
    """
    one_kind = len(items.kind) == 1
    codes = len(strings) - 1
    for item in range(len(items.time)):
        kind = items.kind[0 if one_kind else item]
        if kind <= 10:
            category = items.category[item]
            name = items.name[item]
            if category < -1 or name < -1 or category >= codes or name >= codes:
                return False
            strings[(category + 1) & NOT_NEGATIVE] += 1
            strings[(name + 1) & NOT_NEGATIVE] += 1
        if kind <= 10 or kind == 19:
            threads[(items.thread[item] + 1) & NOT_NEGATIVE] += 1
    one_type = len(args.type) == 1
    one_text = len(args.text) == 1
    for row in range(len(args.item)):
        name = args.name[row]
        text = args.text[0 if one_text else row]
        if name < -1 or text < -1 or name >= codes or text >= codes:
            return False
        strings[(name + 1) & NOT_NEGATIVE] += 1
        if args.type[0 if one_type else row] == 6:
            strings[(text + 1) & NOT_NEGATIVE] += 1
    return True


@kernel
def in_order(time, depth):  # type: ignore[no-untyped-def]
    """Whether times do not step back, and at one time what encloses comes before what it does."""
    for row in range(1, len(time)):
        if time[row] < time[row - 1] or (
            time[row] == time[row - 1] and depth[row] < depth[row - 1]
        ):
            return False
    return True


PAIRED, ALONE, APART = 1, 2, 3
"""How a slice is told: by a begin and an end, by a begin alone (it never ended), or in one event,
because what never ended within it would take its end; 0 where it is none of these."""


@kernel
def unfold(order, thread, time, dur, parent, told, nearest, below, top, rows, ends):  # type: ignore[no-untyped-def]
    """Tell slices by begins and ends, so that those of no length nest as they did, too.

    ``order`` are rows by time, empty where they stand so; ``parent`` is the row of the slice that
    encloses one, or -1; ``told`` says how each is told, and may become APART. ``nearest`` and
    ``below`` have room for all rows, ``top`` is -1 by thread id + 1. ``rows`` and ``ends`` (1 an
    end, 0 all else) take the events, in an order that holds within each thread; gives how many.
    """
    total = len(time)
    for row in range(total):
        if told[row] == ALONE:
            outer = parent[row]
            while outer >= 0 and (told[outer] == 0 or told[outer] == PAIRED):
                told[outer] = APART
                outer = parent[outer]
    count = 0
    for place in range(total):
        row = order[place] if len(order) else place
        # The nearest enclosing slice that awaits an end.
        outer = parent[row]
        if outer >= 0 and told[outer] != PAIRED:
            outer = nearest[outer]
        nearest[row] = outer
        who = thread[row] + 1
        open_slice = top[who]
        # What does not enclose the slice ends before it begins, unless its time says otherwise.
        while (
            open_slice >= 0
            and open_slice != outer
            and time[open_slice] + dur[open_slice] <= time[row]
        ):
            rows[count] = open_slice
            ends[count] = 1
            count += 1
            open_slice = below[open_slice]
        rows[count] = row
        ends[count] = 0
        count += 1
        if told[row] == PAIRED:
            below[row] = open_slice
            open_slice = row
        top[who] = open_slice
    for who in range(len(top)):
        open_slice = top[who]
        while open_slice >= 0:
            rows[count] = open_slice
            ends[count] = 1
            count += 1
            open_slice = below[open_slice]
    return count


@kernel
def put_string(words, start, nbytes, out, at):  # type: ignore[no-untyped-def]
    """Copy the first ``nbytes`` bytes at word ``start``, padded; gives the place behind them."""
    whole = nbytes >> 3
    for index in range(whole):
        out[at + index] = words[start + index]
    if nbytes & 7:
        out[at + whole] = words[start + whole] & ((1 << (8 * (nbytes & 7))) - 1)
        whole += 1
    return at + whole


@kernel
def put_bytes(data, start, nbytes, out, at):  # type: ignore[no-untyped-def]
    """Copy ``nbytes`` bytes from ``start``, padded; gives the place behind them."""
    for first in range(0, nbytes, 8):
        word = 0
        for place in range(min(8, nbytes - first)):
            byte = data[start + first + place] + 0
            if place == 7 and byte >= 128:
                word |= (byte - 256) << 56
            else:
                word |= byte << (8 * place)
        out[at] = word
        at += 1
    return at


@kernel
def string_words(ref):  # type: ignore[no-untyped-def]
    """Words that stand inline for a reference."""
    return ((ref & 0x7FFF) + 7) >> 3 if ref & 0x8000 else 0


@kernel
def pack(items, args, rows, slotted, order, first, shift, carried, dropped, out):  # type: ignore[no-untyped-def]
    """Write items as records until ``out`` has no room for another; gives the words written.

    ``order`` are items in the order of the file, and ``first``, of one element more than there
    are items, the place of each item's first argument; both are empty where the items stand in
    order. ``shift`` is added to all times. ``carried`` is [items done, arguments done].
    """
    natural = len(order) == 0
    total = len(items.time)
    n_args = len(args.item)
    kinds = 0 if len(items.kind) == 1 else 1
    types = 0 if len(args.type) == 1 else 1
    wholes = 0 if len(args.whole) == 1 else 1
    reals = 0 if len(args.real) == 1 else 1
    texts = 0 if len(args.text) == 1 else 1
    last_words = 0 if len(items.word) == 1 else 1
    most = len(out) - RECORD_WORDS - 1
    at = 0
    done = carried[0]
    arg = carried[1]
    while done < total and at <= most:
        item = done if natural else order[done]
        item &= NOT_NEGATIVE
        done += 1
        kind = items.kind[item * kinds]
        start = at
        head = 0
        counts = 20
        last = 0
        has_last = False
        now = items.time[item] + shift
        out[at + 1] = now
        at += 2
        word = items.word[item * last_words]
        if kind <= 10:
            thread = (items.thread[item] + 1) & NOT_NEGATIVE
            category = slotted.strings[(items.category[item] + 1) & NOT_NEGATIVE]
            name = slotted.strings[(items.name[item] + 1) & NOT_NEGATIVE]
            index = slotted.threads[thread]
            # Bit 63 makes a word negative: the inline bit of the name is taken as its sign.
            head = 4 | kind << 16 | index << 24 | category << 32
            head |= (name - 0x10000 if name & 0x8000 else name) << 48
            if index == 0:
                out[at] = slotted.pids[thread]
                out[at + 1] = slotted.tids[thread]
                at += 2
            if category & 0x8000:
                begin = slotted.starts[items.category[item]]
                at = put_string(slotted.words, begin, category & 0x7FFF, out, at)
            if name & 0x8000:
                begin = slotted.starts[items.name[item]]
                at = put_string(slotted.words, begin, name & 0x7FFF, out, at)
            if kind == 4:
                has_last = True
                last = now + word if now <= LATEST - word else now - LATEST - 1 + word - LATEST - 1
            elif kind == 0:
                has_last = word != 0
                last = word
            elif kind != 2 and kind != 3:
                has_last = True
                last = word
        elif kind == 19:
            thread = (items.thread[item] + 1) & NOT_NEGATIVE
            index = slotted.threads[thread]
            length = rows.length[word]
            head = 9 | length << 16 | index << 32
            if index == 0:
                out[at] = slotted.pids[thread]
                out[at + 1] = slotted.tids[thread]
                at += 2
            at = put_bytes(rows.message, rows.start[word], length, out, at)
        elif kind == 18:
            head = 8 | rows.bits[word]
            outgoing = slotted.threads[rows.prev[word] + 1]
            incoming = slotted.threads[rows.next[word] + 1]
            head |= outgoing << 28 | incoming << 36
            if outgoing == 0:
                out[at] = slotted.pids[rows.prev[word] + 1]
                out[at + 1] = slotted.tids[rows.prev[word] + 1]
                at += 2
            if incoming == 0:
                out[at] = slotted.pids[rows.next[word] + 1]
                out[at + 1] = slotted.tids[rows.next[word] + 1]
                at += 2
        else:
            counts = 16
            head = 8 | rows.bits[word]
            if kind == 16:
                head |= 1 << 60
                out[at] = rows.prev[word]
                at += 1
            else:
                head |= 2 << 60
            out[at] = rows.next[word]
            at += 1

        count = 0
        if not natural:
            arg = first[item]
        while arg < n_args and args.item[arg & NOT_NEGATIVE] == item:
            row = arg & NOT_NEGATIVE
            arg += 1
            kind_of_value = args.type[row * types] + 0
            name = slotted.strings[(args.name[row] + 1) & NOT_NEGATIVE]
            inline = string_words(name)
            size = 1 + inline
            text = 0
            whole = args.whole[row * wholes]
            if kind_of_value == 1 and (whole < -0x80000000 or whole > 0x7FFFFFFF):
                kind_of_value = 3
            elif kind_of_value == 2 and (whole < 0 or whole > 0xFFFFFFFF):
                kind_of_value = 4
            code = 0
            if kind_of_value == 6 or kind_of_value == 10:
                code = args.text[row * texts]
            if kind_of_value == 6:
                text = slotted.strings[(code + 1) & NOT_NEGATIVE]
                size += string_words(text)
            elif kind_of_value == 10:
                text = slotted.lengths[code] if code >= 0 else 0
                size += (text + 7) >> 3
            elif (3 <= kind_of_value <= 5) or kind_of_value == 7 or kind_of_value == 8:
                size += 1
            if count == ARGUMENTS:
                dropped[D_ARGUMENTS] += 1
                continue
            if kind_of_value > 10:
                dropped[D_UNKNOWN] += 1
                continue
            if at + size - start >= RECORD_WORDS:
                dropped[D_TOO_LARGE] += 1
                continue
            header = kind_of_value | size << 4 | name << 16
            place = at + 1
            if inline:
                begin = slotted.starts[args.name[row]]
                place = put_string(slotted.words, begin, name & 0x7FFF, out, place)
            if kind_of_value == 1 or kind_of_value == 2:
                header |= (whole - 0x100000000 if whole > 0x7FFFFFFF else whole) << 32
            elif kind_of_value == 6:
                header |= text << 32
                if text & 0x8000:
                    put_string(slotted.words, slotted.starts[code], text & 0x7FFF, out, place)
            elif kind_of_value == 10:
                header |= text << 32
                if text:
                    put_string(slotted.words, slotted.starts[code], text, out, place)
            elif kind_of_value == 5:
                out[place] = args.real[row * reals]
            elif kind_of_value == 9:
                header |= (1 if whole else 0) << 32
            elif kind_of_value != 0:
                out[place] = whole
            out[at] = header
            at += size
            count += 1
        if has_last:
            out[at] = last
            at += 1
        out[start] = head | (at - start) << 4 | count << counts
    carried[0] = done
    carried[1] = arg
    return at
