"""The hot loops: the bytes of a VMO to blocks, blocks to raw columns, and these into their order.

``frame`` finds the blocks, ``read_texts`` what strings there are, ``read_values`` and ``attach`` give
nodes and values in block order, ``walk`` and ``arrange`` the order of the tree; others fill columns
that are asked for. None of them calls itself, and each looks at every block a fixed number of
times, whatever the blocks say. ``records.py`` and ``tree.py`` read the same bytes for clarity, and
share nothing with this; tests hold the two against each other. Words are int64 (their bits as they
are), so that the plain-Python body and the compiled one compute the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from fxframework.io.jit import kernel
from fxframework.model.strings import intern_words, utf8_valid

# Arrays of shape (n,); the name says the dtype, which numba checks.
I64 = NDArray[Any]
I32 = NDArray[Any]
U32 = NDArray[Any]
U8 = NDArray[Any]

# --- Parameters of a layout ----------------------------------------------------------------------
TYPE_AT, TYPE_MASK, INDEX_AT, INDEX_MASK, NAME_AT, TYPES, MAX_VERSION = 0, 1, 2, 3, 4, 5, 6
"""Lowest bit and limit of the type; of parents and of indexes of next blocks; of names; types
from here on are not known; greatest version."""
RESERVED_BITS = 7
"""From here on, two words a type: bits that are zero in a sound block."""

# --- Types of blocks, as layout.BlockType has them, and what stands for other records ------------
(
    FREE, RESERVED, HEADER, NODE, INT, UINT, DOUBLE, BUFFER, EXTENT, NAME, TOMBSTONE, ARRAY, LINK,
    BOOL, STRING,
) = range(15)  # fmt: skip
UNKNOWN, PADDING, DAMAGED = 253, 254, 255

# --- Types of properties, as tables.TYPES has them -----------------------------------------------
(
    IS_INT, IS_UINT, IS_DOUBLE, IS_BOOL, IS_STRING, IS_BYTES, IS_INTS, IS_UINTS, IS_DOUBLES,
    IS_STRINGS,
) = range(1, 11)  # fmt: skip

# --- Scalars of the state ------------------------------------------------------------------------
N_BLOCKS, N_NODES, N_VALUES, N_EXTENTS, N_STRINGS, N_LINKS = 0, 1, 2, 3, 4, 5
MAX_RECORD, MAX_STRING, RESUMED, SEEN_TYPES, USED_VALUES, USED_LINKS = 6, 7, 8, 9, 10, 11
ROOM, FAULT, DAMAGED_BYTES, UNKNOWN_BYTES, PADDING_BYTES, N_BUFFERS = 12, 13, 14, 15, 16, 17
SCALARS = 24
"""SEEN_TYPES has a bit for each type of properties, ROOM the bytes that chains of extents may still
give."""

FINDING_FIELDS = 4
CODES = 1000
"""Findings have numbers below this."""
MAGIC = 0x50534E49
FROZEN = -2
MAX_ORDER = 7
MAX_VMO = 128 << 20
LOW32 = 0xFFFFFFFF


class Notes(NamedTuple):
    """Findings: four numbers each, and counts."""

    findings: I64
    """Code, offset, record (-1 none), value."""
    counts: I64
    """How many are kept; the limit of a code; then how often each code was found."""


class Blocks(NamedTuple):
    """Records in the order of the file: blocks, and what is none."""

    unit: I32
    """Its index."""
    type: U8
    order: U8
    number: I32
    """Which node, extent, string or buffer it is. Nodes count from 1: the root is 0."""


class Extents(NamedTuple):
    """Extents in the order of the file."""

    owner: I32
    """1 + the record whose chain it was in last; 0 none."""
    twice: U8
    """Whether it is in more than one chain."""


class Strings(NamedTuple):
    """NAMEs and STRING_REFERENCEs in the order of the file."""

    length: I64
    """Bytes that it has; -1 where it says more than its block holds."""
    uses: I32
    """Names, contents of links and slots that refer to it."""
    refs: I32
    """Whatever refers to it, in the tree or not."""
    code: I32
    """Its code in the pool, where it has uses."""


class Nodes(NamedTuple):
    """Nodes in the order of the file, the root first."""

    unit: I32
    parent: I32
    """Its parent among them; -1 none."""
    name: I32
    """Its name among the strings."""
    block: I32
    """Which record it is."""


class Values(NamedTuple):
    """Properties in the order of the file."""

    unit: I32
    node: I32
    """-1 where it belongs to none."""
    name: I32
    type: U8
    format: U8
    value: I64
    """Of a number its bits; of a bool 0 or 1."""
    source: I32
    """Index of the block that its text is taken from."""
    length: U32
    """Bytes of text, or slots of an array."""
    block: I32


class Links(NamedTuple):
    """Links in the order of the file."""

    unit: I32
    node: I32
    name: I32
    content: I32
    disposition: U8
    block: I32


@kernel
def note(notes, code, offset, record, value):  # type: ignore[no-untyped-def]
    """Report a finding: counted always, kept while its code is under the limit.

    Where there is no room for it either, ``counts[0]`` says how much would have been needed.
    """
    counts = notes.counts
    counts[code + 2] += 1
    if counts[code + 2] <= counts[1]:
        row = counts[0] * 4
        counts[0] += 1
        if row + 4 > len(notes.findings):
            return
        notes.findings[row] = code
        notes.findings[row + 1] = offset
        notes.findings[row + 2] = record
        notes.findings[row + 3] = value


@kernel
def fits(words, lay, unit, units):  # type: ignore[no-untyped-def]
    """Units of the block at a unit; 0 where none can stand."""
    word = words[2 * unit]
    order = word & 15
    if order > MAX_ORDER or (1 << order) > units - unit:
        return 0
    if (word >> lay[TYPE_AT]) & lay[TYPE_MASK] >= lay[TYPES]:
        return 0
    # In the later layout the bits between the order and the type are zero.
    if lay[TYPE_AT] == 8 and (word >> 4) & 15 != 0:
        return 0
    return 1 << order


@kernel
def resume(words, lay, unit, units, leads, scalars):  # type: ignore[no-untyped-def]
    """The next unit from which blocks lead to the end, or else where one fits, or else the end.

    ``leads`` is filled when it is first needed.
    """
    if scalars[RESUMED] == 0:
        scalars[RESUMED] = 1
        leads[units] = 1
        for at in range(units - 1, -1, -1):
            size = fits(words, lay, at, units)
            leads[at] = 1 if size > 0 and leads[at + size] != 0 else 0
    if scalars[RESUMED] == 1:
        for at in range(unit + 1, units):
            if leads[at]:
                return at
        scalars[RESUMED] = 2
    for at in range(unit + 1, units):
        if fits(words, lay, at, units) > 0:
            return at
    return units


@kernel
def frame(words, nbytes, lay, blocks, kinds, leads, tally, notes, scalars):  # type: ignore[no-untyped-def]
    """Find the blocks and what is between them, and report what each but the header is by itself.

    ``kinds`` gets, at each unit where a block begins, 1 + its number << 4 | its type; ``tally``
    counts records by type and order.
    """
    units = len(words) // 2
    unit = 0
    count = 0
    while 16 * unit < nbytes:
        at = 16 * unit
        following = units
        found = DAMAGED
        order = 0
        fault = 0
        value = 0
        if unit == units:
            fault = 13
            value = nbytes - at
            following = units + 1
        else:
            word = words[2 * unit]
            payload = words[2 * unit + 1]
            order = word & 15
            size = 1 << order
            type = (word >> lay[TYPE_AT]) & lay[TYPE_MASK]
            run = unit
            if word == 0 and payload == 0:
                while run < units and words[2 * run] == 0 and words[2 * run + 1] == 0:
                    run += 1
            if run > unit + 1:
                found = PADDING
                following = run
                scalars[PADDING_BYTES] += 16 * (run - unit)
            elif size > units - unit:
                value = order
                if order <= MAX_ORDER and type < lay[TYPES]:
                    fault = 11
                    following = units + 1  # what is left behind the last unit goes with it
                else:
                    fault = 12
                    following = resume(words, lay, unit, units, leads, scalars)
            else:
                following = unit + size
                if (16 << order) > scalars[MAX_RECORD]:
                    fault = 14
                    value = 16 << order
                else:
                    found = UNKNOWN
                    if type < lay[TYPES]:
                        found = type
                    value = type
                    if found == UNKNOWN:
                        fault = 101
                    elif type == RESERVED:
                        fault = 102
                    elif type == BOOL and payload != 0 and payload != 1:
                        fault = 103
                        value = payload
                    elif type == HEADER and unit > 0:
                        fault = 15
                    if order > MAX_ORDER:
                        note(notes, 10, at, count, 16 << order)
                    mask = RESERVED_BITS + 2 * type
                    if found != UNKNOWN and (word & lay[mask] | payload & lay[mask + 1]) != 0:
                        note(notes, 301, at, count, word)
        if fault != 0:
            note(notes, fault, at, count, value)
        if unit == 0 and found != HEADER:
            note(notes, 1, 0, count, found)
        blocks.unit[count] = unit
        blocks.type[count] = found
        blocks.order[count] = order
        number = 0
        if found == NODE:
            if unit > 0:  # index 0 is the root, whatever stands there
                scalars[N_NODES] += 1
                number = scalars[N_NODES]
        elif found == EXTENT:
            number = scalars[N_EXTENTS]
            scalars[N_EXTENTS] += 1
        elif found == NAME or found == STRING:
            number = scalars[N_STRINGS]
            scalars[N_STRINGS] += 1
        elif found == LINK:
            scalars[N_LINKS] += 1
        elif INT <= found <= BUFFER or found == ARRAY or found == BOOL:
            scalars[N_VALUES] += 1
            if found == BUFFER:
                number = scalars[N_BUFFERS]
                scalars[N_BUFFERS] += 1
        elif found == DAMAGED:
            scalars[DAMAGED_BYTES] += min(16 * following, nbytes) - at
        elif found == UNKNOWN:
            scalars[UNKNOWN_BYTES] += 16 << order
        blocks.number[count] = number
        if found < UNKNOWN:
            kinds[unit] = 1 + (number << 4 | found)
        tally[16 * found + order] += 1
        count += 1
        unit = following
    scalars[N_BLOCKS] = count


@kernel
def look_at_header(words, nbytes, lay, notes):  # type: ignore[no-untyped-def]
    """Report what there is to say of the header, which is the first block."""
    word = words[0]
    payload = words[1]
    magic = (word >> 32) & LOW32
    if magic != MAGIC:
        note(notes, 2, 0, 0, magic)
    version = (word >> lay[INDEX_AT]) & ((1 << (32 - lay[INDEX_AT])) - 1)
    if version > lay[MAX_VERSION]:
        note(notes, 3, 0, 0, version)
    elif version == 0 and lay[MAX_VERSION] > 0:
        note(notes, 4, 0, 0, 0)
    if payload & 1:
        note(notes, 5, 0, 0, payload)
    elif payload == FROZEN:
        note(notes, 6, 0, 0, 0)
    order = word & 15
    if order > 0:
        size = words[2] & LOW32
        if size < (16 << order) or size > MAX_VMO or size % 16 != 0:
            note(notes, 7, 0, 0, size)
        elif size > nbytes:
            note(notes, 8, 0, 0, size)
        elif size < nbytes:
            note(notes, 9, 0, 0, size)


@kernel
def copy_text(words, data, lay, unit, nbytes, out, at):  # type: ignore[no-untyped-def]
    """Copy the first ``nbytes`` bytes of the text of a block to ``out[at:]``.

    The block is a NAME, a STRING_REFERENCE or a BUFFER_VALUE with extents; it was found that it
    has so many.
    """
    header = words[2 * unit]
    type = (header >> lay[TYPE_AT]) & lay[TYPE_MASK]
    extent = 0
    if type == NAME:
        begin = 16 * unit + 8
        size = nbytes
    elif type == STRING:
        begin = 16 * unit + 12
        size = min(nbytes, (16 << (header & 15)) - 12)
        extent = (header >> lay[INDEX_AT]) & lay[INDEX_MASK]
    else:
        begin = 0
        size = 0
        extent = (words[2 * unit + 1] >> 32) & 0xFFFFFFF
    while True:
        for index in range(size):
            out[at + index] = data[begin + index]
        at += size
        nbytes -= size
        if nbytes <= 0:
            return
        header = words[2 * extent]
        begin = 16 * extent + 8
        size = min(nbytes, (16 << (header & 15)) - 8)
        extent = (header >> lay[INDEX_AT]) & lay[INDEX_MASK]


@kernel
def copy_texts(words, data, lay, source, offsets, out):  # type: ignore[no-untyped-def]
    """Copy the texts of blocks to where ``offsets`` says."""
    for row in range(len(source)):
        size = offsets[row + 1] - offsets[row]
        if size > 0:
            copy_text(words, data, lay, source[row], size, out, offsets[row])


@kernel
def find(kinds, unit):  # type: ignore[no-untyped-def]
    """What ``kinds`` has of the block of this index, less 1; -1 where none begins there."""
    return kinds[unit] - 1 if unit < len(kinds) else -1


@kernel
def find_string(kinds, unit):  # type: ignore[no-untyped-def]
    """Which string the STRING_REFERENCE of this index is; -1 where it is none. Index 0 is none."""
    found = find(kinds, unit)
    return found >> 4 if unit > 0 and found >= 0 and found & 15 == STRING else -1


@kernel
def follow(words, lay, kinds, extents, owner, unit, wanted, scalars):  # type: ignore[no-untyped-def]
    """How many bytes of ``wanted`` the chain from ``unit`` gives to the record ``owner``.

    ``scalars[ROOM]`` bounds what all chains give together. The code of what ended it early is left
    in ``scalars[FAULT]``, 0 where nothing did.
    """
    given = 0
    scalars[FAULT] = 0
    while given < wanted:
        if unit == 0:
            scalars[FAULT] = 207
            return given
        found = find(kinds, unit)
        if found < 0 or found & 15 != EXTENT:
            scalars[FAULT] = 205
            return given
        extent = found >> 4
        if extents.owner[extent] == owner + 1:
            scalars[FAULT] = 206
            return given
        if extents.owner[extent] != 0:
            extents.twice[extent] = 1
        extents.owner[extent] = owner + 1
        part = min((16 << (words[2 * unit] & 15)) - 8, wanted - given)
        if part > scalars[ROOM]:
            given += scalars[ROOM]
            scalars[ROOM] = 0
            scalars[FAULT] = 208
            return given
        given += part
        scalars[ROOM] -= part
        unit = (words[2 * unit] >> lay[INDEX_AT]) & lay[INDEX_MASK]
    return given


@kernel
def read_texts(words, data, lay, blocks, kinds, extents, strings, buffers, scratch, notes, scalars):  # type: ignore[no-untyped-def]
    """Find how many bytes each string and each buffer in extents has, and whether they are UTF-8.

    ``scratch`` has room for as many bytes as the file has.
    """
    for record in range(len(blocks.unit)):
        type = blocks.type[record]
        if type != BUFFER and type != STRING and type != NAME:
            continue
        unit = blocks.unit[record]
        at = 16 * unit
        number = blocks.number[record]
        word = words[2 * unit]
        payload = words[2 * unit + 1]
        size = 16 << blocks.order[record]
        inline = 0
        begin = at + 8
        text = True
        fault = 0
        if type == NAME:
            length = (word >> lay[INDEX_AT]) & 0xFFF
            if length > size - 8:
                strings.length[number] = -1
                continue
            inline = length
        elif type == STRING:
            begin = at + 12
            total = payload & LOW32
            inline = min(total, size - 12)
            length = inline
            if unit == 0:
                strings.length[number] = length
                continue
            if total > inline:
                first = (word >> lay[INDEX_AT]) & lay[INDEX_MASK]
                length += follow(words, lay, kinds, extents, record, first, total - inline, scalars)
                fault = scalars[FAULT]
        else:
            format = (payload >> 60) & 15
            if unit == 0 or format > 1:
                continue
            text = format == 0
            total = payload & LOW32
            first = (payload >> 32) & 0xFFFFFFF
            length = follow(words, lay, kinds, extents, record, first, total, scalars)
            fault = scalars[FAULT]
        if fault != 0:
            note(notes, fault, at, record, total - length)
        elif text and unit > 0:
            if length <= inline:
                valid = utf8_valid(data, begin, length)
            else:
                copy_text(words, data, lay, unit, length, scratch, 0)
                valid = utf8_valid(scratch, 0, length)
            if not valid:
                note(notes, 204, at, record, 0)
        if length > scalars[MAX_STRING]:
            note(notes, 226, at, record, length)
            length = scalars[MAX_STRING]
        if type == BUFFER:
            buffers[number] = length
        else:
            strings.length[number] = length


@kernel
def name_of(kinds, lengths, unit):  # type: ignore[no-untyped-def]
    """Which string the name of this index is; where it is none, less 0 the code of why."""
    found = find(kinds, unit)
    if found < 0:
        return -201
    type = found & 15
    if type == NAME:
        return found >> 4 if lengths[found >> 4] >= 0 else -203
    return found >> 4 if type == STRING and unit > 0 else -202


@kernel
def refer(kinds, refs, unit):  # type: ignore[no-untyped-def]
    """Count a reference to a string, if there is one of this index."""
    found = find(kinds, unit)
    if found >= 0 and (found & 15 == NAME or found & 15 == STRING):
        refs[found >> 4] += 1


@kernel
def read_slots(words, kinds, uses, refs, unit, count, sound):  # type: ignore[no-untyped-def]
    """Count what the slots of an array of strings refer to; the first slot of nothing, or -1.

    ``sound`` says whether the array is in the tree.
    """
    wrong = -1
    for slot in range(count):
        word = words[2 * unit + 2 + slot // 2]
        target = (word >> (32 * (slot & 1))) & LOW32
        refer(kinds, refs, target)
        if target == 0:
            continue
        string = find_string(kinds, target)
        if string < 0:
            if wrong < 0:
                wrong = slot
        elif sound:
            uses[string] += 1
    return wrong


@kernel
def array_fault(payload, size):  # type: ignore[no-untyped-def]
    """The code of why an array in a block of so many bytes is none; 0 for one that is sound."""
    entry = payload & 15
    count = (payload >> 8) & 0xFF
    if entry != STRING and (entry < INT or entry > DOUBLE):
        return 211
    if count > (size - 16) // (4 if entry == STRING else 8):
        return 212
    return 213 if count == 0 and (payload >> 4) & 15 != 0 else 0


@kernel
def read_values(  # type: ignore[no-untyped-def]
    words, lay, blocks, kinds, strings, buffers, children, nodes, values, links, notes, scalars
):
    """Read nodes, properties and links in the order of the file.

    Their parents stay indexes of blocks, until ``attach``; a node that is dropped has the name -1.
    ``children`` counts what has each index as parent.
    """
    # Tuples of arrays are not handed over here, but where something is wrong: that takes long.
    lengths = strings.length
    uses = strings.uses
    refs = strings.refs
    row = 0
    link = 0
    seen = 0
    for record in range(len(blocks.unit)):
        type = blocks.type[record]
        unit = blocks.unit[record]
        if type < NODE or type > BOOL or unit == 0 or EXTENT <= type <= NAME:
            continue
        word = words[2 * unit]
        payload = words[2 * unit + 1]
        at = 16 * unit
        parent = (word >> lay[INDEX_AT]) & lay[INDEX_MASK]
        target = (word >> lay[NAME_AT]) & lay[INDEX_MASK]
        if parent < len(children):
            children[parent] += 1
        refer(kinds, refs, target)
        if type == TOMBSTONE:
            note(notes, 223, at, record, payload)
            continue
        name = name_of(kinds, lengths, target)
        fault = 0
        if name < 0:
            fault = -name
            name = -1
        kind = 0
        format = 0
        source = unit
        length = 0
        content = -1
        odd = 0
        oddity = 0
        if type == NODE:
            node = blocks.number[record]
            nodes.unit[node] = unit
            nodes.parent[node] = parent
            nodes.name[node] = name
            nodes.block[node] = record
        elif type == LINK:
            target = payload & 0xFFFFF
            refer(kinds, refs, target)
            content = name_of(kinds, lengths, target)
            format = (payload >> 60) & 15
            if fault == 0 and content < 0:
                fault = 218
            if format > 1:
                odd = 217
                oddity = format
        elif type == BUFFER:
            format = (payload >> 60) & 15
            kind = IS_BYTES if format == 1 else IS_STRING
            if format < 2:
                length = buffers[blocks.number[record]]
            elif format == 2:
                target = (payload >> 32) & 0xFFFFFFF
                refer(kinds, refs, target)
                string = find_string(kinds, target)
                source = target
                if string >= 0:
                    length = lengths[string]
                elif fault == 0:
                    fault = 210
            elif fault == 0:
                target = format
                fault = 209
        elif type == ARRAY:
            entry = payload & 15
            format = (payload >> 4) & 15
            length = (payload >> 8) & 0xFF
            kind = IS_STRINGS if entry == STRING else IS_INTS + entry - INT
            wrong = array_fault(payload, 16 << blocks.order[record])
            if fault == 0 and wrong != 0:
                target = payload & 0xFFFF
                fault = wrong
            if entry == STRING and wrong != 212:
                slot = read_slots(words, kinds, uses, refs, unit, length, fault == 0)
                if fault == 0 and slot >= 0:
                    note(notes, 216, at, record, slot)
            if format > 2 or (entry == STRING and format > 0):
                odd = 215
                oddity = format
                format = 0
            elif (format == 1 and length < 5) or (format == 2 and length < 6):
                odd = 214
                oddity = length
        else:
            kind = IS_BOOL if type == BOOL else IS_INT + type - INT
            if type == BOOL and payload != 0:
                payload = 1
        if fault != 0:
            note(notes, fault, at, record, target)
            continue
        if odd != 0:
            note(notes, odd, at, record, oddity)
        uses[name] += 1
        if type == LINK:
            uses[content] += 1
            links.unit[link] = unit
            links.node[link] = parent
            links.name[link] = name
            links.content[link] = content
            links.disposition[link] = format
            links.block[link] = record
            link += 1
        elif type != NODE:
            values.unit[row] = unit
            values.node[row] = parent
            values.name[row] = name
            values.type[row] = kind
            values.format[row] = format
            values.value[row] = payload
            values.source[row] = source
            values.length[row] = length
            values.block[row] = record
            seen |= 1 << kind
            row += 1
    scalars[SEEN_TYPES] = seen
    scalars[USED_VALUES] = row
    scalars[USED_LINKS] = link


@kernel
def parent_of(kinds, names, parent):  # type: ignore[no-untyped-def]
    """The node of this index; -1 where it was dropped or deleted, -2 where there is none."""
    if parent == 0:
        return 0
    found = find(kinds, parent)
    if found >= 0 and found & 15 == NODE:
        return found >> 4 if names[found >> 4] >= 0 else -1
    return -1 if found >= 0 and found & 15 == TOMBSTONE else -2


@kernel
def attach(kinds, names, units, records, parents, notes):  # type: ignore[no-untyped-def]
    """Make nodes of the indexes of ``parents``, and report orphans: their parent is -1.

    ``names`` are those of nodes; ``units`` and ``records`` say where the rows stand.
    """
    for row in range(len(units)):
        above = parent_of(kinds, names, parents[row])
        if above == -2:
            note(notes, 221, 16 * units[row], records[row], parents[row])
            above = -1
        parents[row] = above


@kernel
def find_cycles(nodes, seen, notes):  # type: ignore[no-untyped-def]
    """Report nodes that are below themselves, each cycle at its first; ``seen`` are zeros."""
    for start in range(1, len(nodes.unit)):
        node = start
        while node > 0 and seen[node] == 0:
            seen[node] = start
            node = nodes.parent[node]
        if node <= 0 or seen[node] != start:
            continue
        first = node
        around = nodes.parent[node]
        while around != node:
            first = min(first, around)
            around = nodes.parent[around]
        # Once around is enough: what leads here later has been seen.
        note(notes, 222, 16 * nodes.unit[first], nodes.block[first], 0)


@kernel
def find_duplicates(order, place, first, following, nodes, values, rows, strings, seen, notes):  # type: ignore[no-untyped-def]
    """Report children of one name, and properties of one name, of the nodes in ``order``.

    ``first`` and ``following`` are the lists of children that ``walk`` made, ``rows`` the
    properties in order; ``seen`` are zeros, as many as there are strings in the pool.
    """
    for number in range(len(order)):
        child = first[order[number]]
        while child >= 0:
            code = strings.code[nodes.name[child]]
            if seen[code] == number + 1:
                note(notes, 224, 16 * nodes.unit[child], nodes.block[child], 0)
            seen[code] = number + 1
            child = following[child]
    nodes_seen = len(order) + 1
    for index in range(len(rows)):
        row = rows[index]
        code = strings.code[values.name[row]]
        number = nodes_seen + place[values.node[row]]
        if seen[code] == number:
            note(notes, 225, 16 * values.unit[row], values.block[row], 0)
        seen[code] = number


@kernel
def validate(words, lay, blocks, extents, strings, children, notes):  # type: ignore[no-untyped-def]
    """Report what only the inspect validator looks at: counts, double use, what is not used."""
    for record in range(len(blocks.unit)):
        type = blocks.type[record]
        unit = blocks.unit[record]
        if unit == 0:
            continue
        at = 16 * unit
        if type == NODE or type == TOMBSTONE:
            if words[2 * unit + 1] != children[unit]:
                note(notes, 304, at, record, words[2 * unit + 1])
        elif type == NAME or type == STRING:
            refs = strings.refs[blocks.number[record]]
            if refs == 0:
                note(notes, 306, at, record, 0)
            elif type == NAME:
                if refs > 1:
                    note(notes, 302, at, record, refs)
            elif (words[2 * unit] >> lay[NAME_AT]) & 0xFFFFFF != refs:
                note(notes, 305, at, record, refs)
        elif type == EXTENT:
            extent = blocks.number[record]
            if extents.owner[extent] == 0:
                note(notes, 306, at, record, 0)
            elif extents.twice[extent]:
                note(notes, 303, at, record, 0)


@kernel
def walk(parents, first, following, place, order):  # type: ignore[no-untyped-def]
    """Number the nodes that attach on the root, each before its children, siblings as they stand.

    ``parents`` has each node's parent, -1 for none; node 0 is the root. ``place`` gets each node's
    number or -1, ``order`` the nodes by number. Gives how many there are.
    """
    nodes = len(parents)
    for node in range(nodes):
        first[node] = -1
        place[node] = -1
    for node in range(nodes - 1, 0, -1):
        parent = parents[node]
        if parent >= 0:
            following[node] = first[parent]
            first[parent] = node
    count = 0
    node = 0
    while True:
        place[node] = count
        order[count] = node
        count += 1
        below = first[node]
        while below < 0 and node != 0:
            below = following[node]
            node = parents[node]
        if below < 0:
            return count
        node = below


@kernel
def arrange(nodes, place, starts, rows):  # type: ignore[no-untyped-def]
    """Order rows by the number of their node, stably; rows of no node are left out.

    ``nodes`` has each row's node, -1 for none; ``starts`` (one more than there are numbers, zeros)
    is filled with the first row of each, ``rows`` with the rows. Gives how many there are.
    """
    for row in range(len(nodes)):
        node = nodes[row]
        if node >= 0 and place[node] >= 0:
            starts[place[node] + 1] += 1
    for number in range(1, len(starts)):
        starts[number] += starts[number - 1]
    count = starts[len(starts) - 1]
    for row in range(len(nodes) - 1, -1, -1):
        node = nodes[row]
        if node >= 0 and place[node] >= 0:
            # Filled from the back: what is left of a number's rows ends where the next begins.
            starts[place[node] + 1] -= 1
            rows[starts[place[node] + 1]] = row
    return count


@kernel
def measure_strings(strings, out):  # type: ignore[no-untyped-def]
    """Of the strings that have uses: how many, the words that they take, bytes of the longest."""
    for string in range(len(strings.length)):
        if strings.uses[string] > 0:
            out[0] += 1
            out[1] += (strings.length[string] >> 3) + 1
            out[2] = max(out[2], strings.length[string])


@kernel
def intern_strings(words, data, lay, blocks, strings, pool, scratch, octets):  # type: ignore[no-untyped-def]
    """Enter the strings that have uses into the pool; ``octets`` are the bytes of ``scratch``."""
    for record in range(len(blocks.unit)):
        type = blocks.type[record]
        if type != NAME and type != STRING:
            continue
        string = blocks.number[record]
        strings.code[string] = -1
        if strings.uses[string] == 0:
            continue
        nbytes = strings.length[string]
        scratch[nbytes >> 3] = 0
        copy_text(words, data, lay, blocks.unit[record], nbytes, octets, 0)
        strings.code[string] = intern_words(scratch, 0, nbytes, pool)


@kernel
def measure_paths(names, parents, pool, longest, budget, lengths):  # type: ignore[no-untyped-def]
    """Bytes of the path of each node, parents first; gives the words that all of them take.

    -1 where a path would have more than ``longest``, or all so far more than ``budget``, and of
    all that is below such a one.
    """
    filled = 0
    words = 0
    for node in range(len(names)):
        nbytes = pool.lengths[names[node]]
        parent = parents[node]
        if parent >= 0:
            nbytes += lengths[parent] + 1
        if (parent >= 0 and lengths[parent] < 0) or nbytes > longest or filled + nbytes > budget:
            lengths[node] = -1
            continue
        lengths[node] = nbytes
        filled += nbytes
        words += (nbytes >> 3) + 1
    return words


@kernel
def name_paths(names, parents, lengths, pool, scratch, octets, texts, out):  # type: ignore[no-untyped-def]
    """Codes of the paths of nodes; -1 where there is none.

    ``octets`` are the bytes of ``scratch``, ``texts`` those of the pool's words.
    """
    for node in range(len(names)):
        total = lengths[node]
        out[node] = -1
        if total < 0:
            continue
        scratch[total >> 3] = 0
        name = names[node]
        parent = parents[node]
        start = 0
        if parent >= 0:
            above = out[parent]
            start = pool.lengths[above] + 1
            begin = 8 * pool.starts[above]
            for index in range(start - 1):
                octets[index] = texts[begin + index]
            octets[start - 1] = 0x2F
        begin = 8 * pool.starts[name]
        for index in range(total - start):
            octets[start + index] = texts[begin + index]
        out[node] = intern_words(scratch, 0, total, pool)


@kernel
def slot_numbers(words, units, types, starts, wanted, first, out):  # type: ignore[no-untyped-def]
    """The slots of arrays of a type as they stand, of other arrays zeros.

    Array ``i`` has the slots from ``starts[i]`` to ``starts[i + 1]``; ``out`` gets those from
    ``first`` on, as many as it has room for.
    """
    for row in range(len(units)):
        begin = max(starts[row], first)
        end = min(starts[row + 1], first + len(out))
        if types[row] == wanted:
            word = 2 * units[row] + 2 - starts[row]
            for slot in range(begin, end):
                out[slot - first] = words[word + slot]
        else:
            for slot in range(begin, end):
                out[slot - first] = 0


@kernel
def slot_codes(words, units, types, starts, first, kinds, texts, out):  # type: ignore[no-untyped-def]
    """Codes of the slots of arrays of strings, -1 for those of other arrays.

    ``texts`` are the codes of strings.
    """
    for row in range(len(units)):
        begin = max(starts[row], first)
        end = min(starts[row + 1], first + len(out))
        text = types[row] == IS_STRINGS
        for slot in range(begin, end):
            code = -1
            if text:
                code = 0
                place = slot - starts[row]
                word = words[2 * units[row] + 2 + place // 2]
                target = (word >> (32 * (place & 1))) & LOW32
                string = find_string(kinds, target)
                if string >= 0:
                    code = texts[string]
            out[slot - first] = code


@kernel
def pick(values, types, rows, wanted, out):  # type: ignore[no-untyped-def]
    """The values of rows whose type has its bit in ``wanted``, zeros for others."""
    for at in range(len(rows)):
        row = rows[at]
        out[at] = values[row] if (wanted >> types[row]) & 1 else 0


@kernel
def slot_places(starts, first_row, first, stop, parents, places):  # type: ignore[no-untyped-def]
    """Of the slots from ``first`` to ``stop`` the row of the array, and which of its slots it is.

    ``starts`` has the first slot of each row from ``first_row`` on.
    """
    for row in range(len(starts) - 1):
        begin = max(starts[row], first)
        for slot in range(begin, min(starts[row + 1], stop)):
            parents[slot - first] = first_row + row
            places[slot - first] = slot - starts[row]


@kernel
def slot_offsets(units, starts, first, stop, out):  # type: ignore[no-untyped-def]
    """Of the slots from ``first`` to ``stop`` where their array stands."""
    for row in range(len(units)):
        begin = max(starts[row], first)
        for slot in range(begin, min(starts[row + 1], stop)):
            out[slot - first] = 16 * units[row]
