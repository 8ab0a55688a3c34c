# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""Elements: where the values of an array of JSON begin and end, without reading them.

Brackets are counted, not paired: what lies between the first and its last is for a parser to judge.
"""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

FULL, CLOSED, ENDED, OPEN = range(4)

cdef enum:
    TAB = 0x09
    NEWLINE = 0x0A
    RETURN = 0x0D
    SPACE = 0x20
    QUOTE = 0x22
    COMMA = 0x2C
    LEFT = 0x5B     # "["
    ESCAPE = 0x5C
    RIGHT = 0x5D    # "]"
    CURLY = 0x20    # by which "{" and "}" differ from "[" and "]"


cdef inline bint separates(uint8_t octet) noexcept:
    return octet in (SPACE, COMMA, NEWLINE, RETURN, TAB)


cdef int64_t behind_string(const uint8_t[::1] data, int64_t at) except -1:
    """Return the place behind a string whose quote is at ``at``; beyond the data if it is open."""
    cdef int64_t size = data.shape[0]
    at += 1
    while at < size:
        if data[at] == QUOTE:
            return at + 1
        at += 2 if data[at] == ESCAPE else 1
    return size + 1


cdef int64_t behind_value(const uint8_t[::1] data, int64_t at) except -1:
    """Return the place behind the value at ``at``; beyond the data if it does not end."""
    cdef int64_t size = data.shape[0], depth = 0
    cdef uint8_t octet = data[at]
    if octet == QUOTE:
        return behind_string(data, at)
    if octet | CURLY != LEFT | CURLY:
        # A number or a word: it has one byte at least, whatever that is.
        at += 1
        while at < size and not separates(data[at]) and data[at] not in (QUOTE, LEFT, RIGHT):
            if data[at] | CURLY in (LEFT | CURLY, RIGHT | CURLY):
                break
            at += 1
        return at
    while at < size:
        octet = data[at]
        if octet == QUOTE:
            at = behind_string(data, at)
            continue
        at += 1
        if octet | CURLY == LEFT | CURLY:
            depth += 1
        elif octet | CURLY == RIGHT | CURLY:
            depth -= 1
            if not depth:
                return at
    return size + 1


def elements(const uint8_t[::1] data, int64_t at, int64_t[::1] starts, int64_t[::1] stops):
    """Find values from byte ``at`` of an array on; return how many, where, and why it ends there.

    ``starts`` and ``stops`` get where they begin and end. Commas and spaces between them are not
    looked at. It ends behind as many values as there is room for (FULL), at the bracket that closes
    the array (CLOSED), at the end of the data (ENDED), or at a value that does not end (OPEN).
    """
    cdef int64_t size = data.shape[0], count = 0, stop
    if at < 0:
        raise IndexError(f"byte {at}")
    while True:
        while at < size and separates(data[at]):
            at += 1
        if at >= size:
            return count, size, ENDED
        if data[at] == RIGHT:
            return count, at, CLOSED
        if count == starts.shape[0]:
            return count, at, FULL
        stop = behind_value(data, at)
        if stop > size:
            return count, at, OPEN
        starts[count], stops[count] = at, stop
        count += 1
        at = stop
