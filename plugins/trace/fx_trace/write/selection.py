"""The hot loops of cutting: mark the records that a part of a trace needs, and copy them.

Like ``kernels.py``, whose conventions they share: words are int64, the plain-Python body is the
reference, and all state lies in arrays of the caller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from fx_trace.read.legacy import (
    NOT_NEGATIVE,
    SIGN,
    Map,
    args_fit,
    length_of,
    map_get,
    map_put,
    minimum,
    size_of,
    sound_after,
)
from fxframework.io.jit import kernel

I64 = NDArray[Any]
U8 = NDArray[Any]

# --- Choosing events ---------------------------------------------------------------------------

MAYBE = 2
"""Mark of a sound blob, object or large record, of which ``needed`` decides."""
KEEP, CLOSE, DROP = 0, 1, 2
"""What becomes of slices that reach beyond the stretch of time."""


class Chosen(NamedTuple):
    """What decides about rows."""

    threads: U8
    """By thread id: 1 where it is wanted."""
    categories: U8
    """By string code: 1 where it is wanted."""
    slices: U8
    """By slice row: 1 where the slice is kept; filled by ``choose_slices``."""
    flows: U8
    """By flow row: 1 where its flow is kept."""


@kernel
def choose_slices(events, count, time, dur, first, start, last, how, chosen):  # type: ignore[no-untyped-def]
    """Say of each slice that begins in ``count`` events whether it is kept.

    ``time`` is the events' times and ``dur`` all slices' lengths, in ns; ``first`` is the row of
    the first slice here. A slice is kept where any of it lies in ``start`` to ``last`` (this
    included); with ``how`` DROP, where all of it does.
    """
    row = first
    for event in range(count):
        kind = events.kind[event]
        if kind != 4 and kind != 2 and kind != 5:
            continue
        now = time[event]
        length = dur[row & NOT_NEGATIVE]
        if length < 0 and kind == 4:
            length = 0  # it ends before it begins: a moment
        inside = now >= start and now <= last
        if how == 2:
            inside = inside and length >= 0 and length - 1 <= length_of(now, last)
        elif now < start:
            inside = length < 0 or length > length_of(now, start)
        chosen.slices[row & NOT_NEGATIVE] = (
            inside
            and chosen.threads[events.thread[event] & NOT_NEGATIVE] != 0
            and chosen.categories[events.category[event] & NOT_NEGATIVE] != 0
        )
        row += 1


@kernel
def choose_events(events, count, time, ends, first, start, last, chosen, mark):  # type: ignore[no-untyped-def]
    """Mark the records of the events that are kept: ``mark`` is by word of the file.

    ``ends`` is the slice that each end event closes; ``first`` holds the first slice row, end and
    flow row here.
    """
    row = first[0]
    end = first[1]
    flow = first[2]
    for event in range(count):
        kind = events.kind[event]
        keep = False
        if kind == 4 or kind == 2 or kind == 5:
            keep = chosen.slices[row & NOT_NEGATIVE] != 0
            row += 1
        else:
            closed = -1
            inside = (
                time[event] >= start
                and time[event] <= last
                and chosen.threads[events.thread[event] & NOT_NEGATIVE] != 0
                and chosen.categories[events.category[event] & NOT_NEGATIVE] != 0
            )
            if kind == 3 or kind == 7:
                closed = ends[end & NOT_NEGATIVE]
                end += 1
            elif 8 <= kind <= 10:
                inside = inside and chosen.flows[flow & NOT_NEGATIVE] != 0
                flow += 1
            keep = chosen.slices[closed & NOT_NEGATIVE] != 0 if closed >= 0 else inside
        if keep:
            mark[events.offset[event] >> 3] = 1


@kernel
def follow_flows(order, ids, phases, open_flows, flow, first):  # type: ignore[no-untyped-def]
    """Number the flows that points belong to: ``flow`` is by point, -1 where none began.

    ``order`` are points by time, ``phases`` 0 a begin, 1 a step, 2 an end. A flow goes on, in
    whatever process, until it ends; a begin of its id is a point of it till then. ``open_flows``
    (Map) has room for an entry a point; ``first`` takes the point that began each flow. Gives how
    many there are.
    """
    flows = 0
    for place in range(len(order)):
        point = order[place]
        found = max(map_get(open_flows, 0, ids[point]), 0)
        if phases[point] == 0 and found == 0:
            first[flows] = point
            flows += 1
            found = flows
        flow[point] = found - 1
        if phases[point] == 2 and found:
            found = 0
        map_put(open_flows, 0, ids[point], found)
    return flows


# --- What the kept records need ----------------------------------------------------------------

C_POS, C_EPOCH, C_EPOCHS, C_PROVIDER, C_CLOCK, C_LARGE, C_GENERATION = 0, 1, 2, 3, 4, 5, 6
CARRIED = 8
"""Scalars that ``needed`` carries."""
EPOCH_OF, INTRODUCED, CLOCK_OF = 0, 1, 2
"""What is known of a provider."""
P_OBJECTS, P_BLOBS, P_OTHER, P_PROFILER = 0, 1, 2, 3
POLICIES = 4
"""Of each kind of record that has no row: 0 dropped, 1 kept. Behind them stands max_record."""
WORD_MASK = (1 << 40) - 1
ROOM_FOR_LINKS = 1 + 2 * 32
"""Elements of ``links`` that one object can take: two for each of 15 arguments, and two more."""
ROOM = 64
"""Entries that one record can put into a map."""


class Registered(NamedTuple):
    """Where what records refer to was registered last, as a word of the file."""

    strings: Map
    """By (epoch of the provider, index)."""
    threads: Map
    objects: Map
    """By (0, koid) and (process koid with bit 63 turned, pointer)."""
    providers: Map
    """By (id, EPOCH_OF, INTRODUCED or CLOCK_OF)."""
    people: Map
    """By (0, koid), processes and threads whose names are wanted; by (1, koid), threads of
    scheduling records, whose process a thread record says."""


class Recent(NamedTuple):
    """By index, of the provider that speaks: its generation << 40 | the word of the record.

    Passing maps on to helpers costs more than all the rest; most indices are found here.
    """

    strings: I64
    threads: I64


@kernel
def enter(table, key, numbers):  # type: ignore[no-untyped-def]
    """Put all numbers into a map, under one key."""
    for place in range(len(numbers)):
        map_put(table, key, numbers[place], 0)


@kernel
def find(index, table, epoch, providers):  # type: ignore[no-untyped-def]
    """Where an index was registered, by the provider itself or else by provider 0; -1 nowhere."""
    at = map_get(table, epoch, index)
    if at < 0:
        at = map_get(table, map_get(providers, 0, EPOCH_OF), index)
    return at


@kernel
def need(index, table, epoch, providers, mark):  # type: ignore[no-untyped-def]
    """Mark the record that registered an index; gives its word, or -1."""
    if index == 0 or index >= 0x8000:
        return -1
    at = find(index, table, epoch, providers)
    if at >= 0:
        mark[at] = 1
    return at


@kernel
def refer(owner, at, mark, links):  # type: ignore[no-untyped-def]
    """Mark the record at word ``at`` where that at ``owner`` is marked; else note the need."""
    if at < 0:
        return
    if mark[owner]:
        mark[at] = 1
        return
    count = links[0]
    links[count + 1] = owner
    links[count + 2] = at
    links[0] = count + 2


@kernel
def refer_string(owner, index, epoch, registered, mark, links):  # type: ignore[no-untyped-def]
    """Mark or note the string at an index."""
    if index != 0 and index < 0x8000:
        at = find(index, registered.strings, epoch, registered.providers)
        refer(owner, at, mark, links)


@kernel
def refer_args(owner, words, at, count, epoch, pid, registered, mark, links):  # type: ignore[no-untyped-def]
    """Mark or note what arguments need: strings, and the objects of their pointers and koids."""
    for _ in range(count):
        word = words[at]
        name = (word >> 16) & 0xFFFF
        refer_string(owner, name, epoch, registered, mark, links)
        kind = word & 15
        if kind == 6:
            refer_string(owner, (word >> 32) & 0xFFFF, epoch, registered, mark, links)
        elif kind == 7 or kind == 8:
            value = at + 1
            if name & 0x8000:
                value += ((name & 0x7FFF) + 7) >> 3
            whose = 0 if kind == 8 else pid ^ SIGN
            refer(owner, map_get(registered.objects, whose, words[value]), mark, links)
        at += (word >> 4) & 0xFFF


@kernel
def process_of(words, at, index, epoch, registered):  # type: ignore[no-untyped-def]
    """Process koid of a thread reference whose inline form would stand at ``at``."""
    if index == 0:
        return words[at]
    found = find(index, registered.threads, epoch, registered.providers)
    return words[found + 1] if found >= 0 else 0


@kernel
def wanted_thread(words, at, index, epoch, registered, identities, threads):  # type: ignore[no-untyped-def]
    """Whether the thread of a reference is wanted."""
    pid = process_of(words, at, index, epoch, registered)
    if index == 0:
        tid = words[at + 1]
    else:
        found = find(index, registered.threads, epoch, registered.providers)
        tid = words[found + 2] if found >= 0 else 0
    known = map_get(identities, pid, tid)
    return known >= 0 and threads[known] != 0


@kernel
def event_fits(words, pos, end):  # type: ignore[no-untyped-def]
    """Whether an event's strings and arguments fit it."""
    word = words[pos]
    at = pos + 2
    if (word >> 24) & 0xFF == 0:
        at += 2
    if (word >> 47) & 1:
        at += (((word >> 32) & 0x7FFF) + 7) >> 3
    if (word >> 63) & 1:
        at += (((word >> 48) & 0x7FFF) + 7) >> 3
    count = (word >> 20) & 15
    return at <= end and (count == 0 or args_fit(words, at, end, count) >= 0)


@kernel
def profiler_fits(word, size):  # type: ignore[no-untyped-def]
    """Whether a profiler record's contents fit it."""
    subtype = (word >> 16) & 15
    inline = (word >> 20) & 0xFF == 0
    need_words = 2
    if subtype == 0:
        need_words += (((word >> 44) & 0xFF) + 7) >> 3
        need_words += (((word >> 52) & 0xFF) + 7) >> 3
    elif subtype == 1:
        need_words += 3
    elif subtype == 2:
        need_words += (word >> 28) & 0xFF
    if inline:
        need_words += 1 if subtype < 2 else 2  # of a module or a mapping one word may do
    return need_words <= size


@kernel
def needed(  # type: ignore[no-untyped-def]
    words,
    total,
    mark,
    recent,
    registered,
    identities,
    clocks,
    threads,
    bounds,
    policy,
    large,
    links,
    carried,
):
    """Mark what the marked records need, and the records without a row that are to be kept.

    ``mark`` has one element more than there are words, for what needs nothing. ``bounds`` holds,
    by clock, the first tick of the stretch and the first one after it, with bit
    63 turned so that they compare as signed. ``large`` takes, of each large record kept, its
    word, the word of its category's bytes and their number. ``links`` takes, behind their count,
    pairs of words: an object and a record that it needs, if it is kept in the end. Stops where
    one of them is full; call again with larger ones until ``carried[C_POS]`` reaches ``total``.
    """
    pos = carried[C_POS]
    epoch = carried[C_EPOCH]
    generation = carried[C_GENERATION]
    string_at = recent.strings
    thread_at = recent.threads
    other = policy[P_OTHER]
    most = policy[POLICIES]
    objects = registered.objects.used[0]
    while pos < total:
        word = words[pos & NOT_NEGATIVE]
        kind = word & 15
        size = size_of(word)
        # Most records are events that are not kept.
        if (
            kind == 4
            and mark[pos & NOT_NEGATIVE] == 0
            and 2 <= size <= total - pos
            and (other == 0 or (word >> 16) & 15 <= 10)
        ):
            pos += size
            continue
        if (
            2 * (registered.strings.used[0] + ROOM) > len(registered.strings.value)
            or 2 * (registered.threads.used[0] + ROOM) > len(registered.threads.value)
            or 2 * (registered.objects.used[0] + ROOM) > len(registered.objects.value)
            or 2 * (registered.providers.used[0] + ROOM) > len(registered.providers.value)
            or 3 * carried[C_LARGE] + 3 > len(large)
            or links[0] + ROOM_FOR_LINKS > len(links)
        ):
            break
        least = minimum(kind)
        if word == 0:
            pos += 1
            continue
        if size == 0 or size > total - pos or size < least:
            pos = sound_after(words, pos + 1, total)
            if pos < 0:
                pos = total
            continue
        end = pos + size
        if most and 8 * size > most:
            mark[pos] = 0  # over the limit max_record
        elif kind == 4 and not event_fits(words, pos, end):
            mark[pos] = 0  # of a type that is not ours: those that are have rows
        elif kind == 4:
            mark[pos] = 1
            thread = (word >> 24) & 0xFF
            category = (word >> 32) & 0xFFFF
            name = (word >> 48) & 0xFFFF
            count = (word >> 20) & 15
            at = pos + 2
            if thread == 0:
                at += 2
            elif thread_at[thread] >> 40 == generation:
                mark[thread_at[thread] & WORD_MASK] = 1
            else:
                need(thread, registered.threads, epoch, registered.providers, mark)
            if category & 0x8000:
                at += ((category & 0x7FFF) + 7) >> 3
            elif string_at[category] >> 40 == generation:
                mark[string_at[category] & WORD_MASK] = 1
            else:
                need(category, registered.strings, epoch, registered.providers, mark)
            if name & 0x8000:
                at += ((name & 0x7FFF) + 7) >> 3
            elif string_at[name] >> 40 == generation:
                mark[string_at[name] & WORD_MASK] = 1
            else:
                need(name, registered.strings, epoch, registered.providers, mark)
            if count:
                plain = True
                first = at
                for _ in range(count):
                    head = words[at & NOT_NEGATIVE]
                    name = (head >> 16) & 0xFFFF
                    kind_of_value = head & 15
                    if name & 0x8000:
                        pass
                    elif string_at[name] >> 40 == generation:
                        mark[string_at[name] & WORD_MASK] = 1
                    else:
                        plain = False
                    if kind_of_value == 6:
                        name = (head >> 32) & 0xFFFF
                        if name & 0x8000:
                            pass
                        elif string_at[name] >> 40 == generation:
                            mark[string_at[name] & WORD_MASK] = 1
                        else:
                            plain = False
                    elif objects and (kind_of_value == 7 or kind_of_value == 8):
                        plain = False
                    at += (head >> 4) & 0xFFF
                if not plain:
                    pid = process_of(words, pos + 2, thread, epoch, registered)
                    refer_args(pos, words, first, count, epoch, pid, registered, mark, links)
        elif kind == 2:
            index = (word >> 16) & 0x7FFF
            length = (word >> 32) & 0x7FFF
            if index and pos + 1 + ((length + 7) >> 3) <= end:
                map_put(registered.strings, epoch, index, pos)
                string_at[index] = generation << 40 | pos
        elif kind == 3:
            index = (word >> 16) & 0xFF
            if index:
                map_put(registered.threads, epoch, index, pos)
                thread_at[index] = generation << 40 | pos
            if map_get(registered.people, 1, words[pos + 2]) >= 0:
                mark[pos] = 1
        elif kind == 0:
            subtype = (word >> 16) & 15
            number = (word >> 20) & 0xFFFFFFFF
            fits = subtype != 1 or 1 + ((((word >> 52) & 0xFF) + 7) >> 3) <= size
            if fits and (1 <= subtype <= 4 or other):
                mark[pos] = 1
            if fits and (subtype == 1 or subtype == 2):
                known = map_get(registered.providers, number, EPOCH_OF)
                again = subtype == 1 and map_get(registered.providers, number, INTRODUCED) > 0
                if known < 0 or again:
                    carried[C_EPOCHS] += 1
                    known = carried[C_EPOCHS]
                    map_put(registered.providers, number, EPOCH_OF, known)
                if subtype == 1:
                    map_put(registered.providers, number, INTRODUCED, 1)
                epoch = known
                carried[C_EPOCH] = epoch
                # What was found of the one who spoke before holds no more.
                generation += 1
                carried[C_GENERATION] = generation
                string_at[0] = generation << 40 | total
                carried[C_PROVIDER] = number
                carried[C_CLOCK] = max(map_get(registered.providers, number, CLOCK_OF), 0)
        elif kind == 1:
            mark[pos] = 1
            base = words[pos + 2] if size >= 4 else 0
            clock = map_get(clocks, words[pos + 1], base)
            if clock >= 0:
                map_put(registered.providers, carried[C_PROVIDER], CLOCK_OF, clock)
                carried[C_CLOCK] = clock
        elif kind == 8:
            subtype = (word >> 60) & 15
            if subtype > 2 and policy[P_OTHER] == 1:
                mark[pos] = 1
            if mark[pos]:
                if subtype == 0:
                    need((word >> 28) & 0xFF, registered.threads, epoch, registered.providers, mark)
                    need((word >> 36) & 0xFF, registered.threads, epoch, registered.providers, mark)
                elif subtype <= 2:
                    at = pos + (4 if subtype == 1 else 3)
                    refer_args(pos, words, at, (word >> 16) & 15, epoch, 0, registered, mark, links)
        elif kind == 9:
            if mark[pos]:
                need((word >> 32) & 0xFF, registered.threads, epoch, registered.providers, mark)
        elif kind == 5:
            if mark[pos] == MAYBE:
                mark[pos] = policy[P_BLOBS]
            if mark[pos]:
                need((word >> 16) & 0xFFFF, registered.strings, epoch, registered.providers, mark)
        elif kind == 6 or kind == 7:
            if mark[pos] != MAYBE:
                pos = end  # its contents do not fit it
                continue
            mark[pos] = 0
            name = (word >> 24) & 0xFFFF
            count = (word >> 40) & 15
            process = (word >> 16) & 0xFF
            at = pos + 2
            if name & 0x8000:
                at += ((name & 0x7FFF) + 7) >> 3
            pid = 0
            if kind == 6:
                pid = process_of(words, pos + 2, process, epoch, registered)
                if process == 0:
                    # One word or two: the record's size tells.
                    at += 1
                    after = args_fit(words, at, end, count) if at <= end else -1
                    if after != end and at < end:
                        other_end = args_fit(words, at + 1, end, count)
                        if other_end == end or (after < 0 and other_end >= 0):
                            at += 1
                else:
                    refer(
                        pos,
                        find(process, registered.threads, epoch, registered.providers),
                        mark,
                        links,
                    )
            # Whether it is kept shows later on, when strings may be gone.
            refer_string(pos, name, epoch, registered, mark, links)
            refer_args(pos, words, at, count, epoch, pid, registered, mark, links)
            owner = 0 if kind == 7 else pid ^ SIGN
            map_put(registered.objects, owner, words[pos + 1], pos)
            objects += 1
            if policy[P_OBJECTS] == 1 or (
                kind == 7 and map_get(registered.people, 0, words[pos + 1]) >= 0
            ):
                mark[pos] = 1
        elif kind == 10:
            subtype = (word >> 16) & 15
            thread = (word >> 20) & 0xFF
            keep = policy[P_PROFILER] != 0 and profiler_fits(word, size)
            if keep and subtype == 2:
                now = words[pos + 1] ^ SIGN
                clock = 2 * carried[C_CLOCK]
                keep = now >= bounds[clock] and now < bounds[clock + 1]
                if keep and (thread or size >= 4):
                    keep = policy[P_OBJECTS] != 0 or wanted_thread(
                        words, pos + 2, thread, epoch, registered, identities, threads
                    )
            if subtype > 2:
                keep = policy[P_OTHER] == 1
            if keep:
                mark[pos] = 1
                need(thread, registered.threads, epoch, registered.providers, mark)
        elif kind == 15:
            large_type = (word >> 36) & 15
            form = (word >> 40) & 15
            if large_type != 0 or form > 1 or size < 2:
                if policy[P_OTHER] == 1:
                    mark[pos] = 1
            else:
                head = words[pos + 1]
                category = head & 0xFFFF
                name = (head >> 16) & 0xFFFF
                thread = (head >> 36) & 0xFF
                at = pos + 2
                if category & 0x8000:
                    at += ((category & 0x7FFF) + 7) >> 3
                if name & 0x8000:
                    at += ((name & 0x7FFF) + 7) >> 3
                keep = mark[pos] == MAYBE
                mark[pos] = 0
                if form == 1:
                    keep = keep and policy[P_BLOBS] != 0
                else:
                    if keep:
                        now = words[at] ^ SIGN
                        clock = 2 * carried[C_CLOCK]
                        keep = now >= bounds[clock] and now < bounds[clock + 1]
                    if keep:
                        keep = policy[P_OBJECTS] != 0 or wanted_thread(
                            words, at + 1, thread, epoch, registered, identities, threads
                        )
                if keep:
                    mark[pos] = 1
                    found = need(category, registered.strings, epoch, registered.providers, mark)
                    need(name, registered.strings, epoch, registered.providers, mark)
                    row = 3 * carried[C_LARGE]
                    large[row] = pos
                    large[row + 1] = 0
                    large[row + 2] = 0
                    if category & 0x8000:
                        large[row + 1] = pos + 2
                        large[row + 2] = category & 0x7FFF
                    elif found >= 0:
                        large[row + 1] = found + 1
                        large[row + 2] = (words[found] >> 32) & 0x7FFF
                    carried[C_LARGE] += 1
                    if form == 0:
                        pid = process_of(words, at + 1, thread, epoch, registered)
                        need(thread, registered.threads, epoch, registered.providers, mark)
                        at += 1 if thread else 3
                        count = (head >> 32) & 15
                        if args_fit(words, at, end, count) >= 0:
                            refer_args(pos, words, at, count, epoch, pid, registered, mark, links)
        elif policy[P_OTHER] == 1:
            mark[pos] = 1
        pos = end
    carried[C_POS] = pos
    if pos >= total:
        # What an object needs stands before it, so that from the end each is settled in one go.
        for place in range(links[0] - 1, 0, -2):
            if mark[links[place]]:
                mark[links[place + 1]] = 1


@kernel
def copy_records(streams, positions, first, stop, sizes, out):  # type: ignore[no-untyped-def]
    """Copy the records at words ``positions[first:stop]``, one behind the other, to ``out``."""
    at = 0
    for index in range(first, stop):
        source = positions[index] & NOT_NEGATIVE
        for word in range(sizes[index]):
            out[at & NOT_NEGATIVE] = streams[source + word]
            at += 1
    return at
