# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: every word is compared with ``total`` before it is read.
"""Alignment: finds records of whole words that do not begin at multiples of 8 bytes."""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from fxframework.kernels.buffers import room

__all__ = ["Alignment", "Judge"]

cdef enum:
    WORD = 8
    LAST = 7
    WIDEST = 1 << 19  # Bytes of a window.
    PASSED = 1 << 17  # Bytes of a window that is walked over, not searched.
    # Bytes of a record that a window holds wherever it begins; a longer one proves nothing.
    LONGEST = 1 << 15
    SHORT = 64  # Words of a record that costs little if its header is wrong.
    # Bytes that are searched first; then twice as many, while nothing is found.
    NARROWEST = 1 << 9
    CONFIRMED = 3  # Records in a row that show where they begin.
    LONG_RUN = 16  # On the alignment, so many of these have to be among so many headers.
    FOUND = 1 << 12  # Most stretches that one ``run`` finds.


cdef class Judge:
    """Tells where records are in a window of a file, which ``words`` has (``window``: its bytes).

    ``total`` is the number of words. A format says what its records look like.
    """

    def __init__(self):
        self.window = room(WIDEST, "u1")
        self.words = memoryview(self.window).cast("q")
        self.total = 0

    cdef int64_t whole(self, int64_t at) noexcept nogil:
        """Return the words of the record at word ``at`` that its contents fill; 0 if none is.

        One that the window does not hold has to be unmistakable.
        """
        return 0

    cdef int64_t stated(self, int64_t at) noexcept nogil:
        """Return the words of a record by the header at word ``at``, which few words look like."""
        return 0

    cdef bint leads(self, int64_t at) noexcept nogil:
        """Return whether the whole record at word ``at`` is not what parts of others look like."""
        return True

    cdef int64_t behind(self, int64_t before, int64_t at) noexcept nogil:
        """Return the words of the record at word ``at``, by its header; 0 if it may be none.

        The record before it, or the one before that, begins at word ``before``.
        """
        return self.stated(at)


@cython.final
cdef class Alignment:
    """Finds the stretches behind which records go on off the alignment of those before them.

    ``data`` is uint8, of a big-endian file if ``mirrored``. ``run`` stops at byte ``until``, or
    when ``stretches`` is full: ``found`` pairs of bytes, where a stretch begins and ends. The last
    record before a place where none follows belongs to the stretch, since bytes may be missing in
    it, unless the header of the next one is there; so may the one before that. Records are found
    again where CONFIRMED follow one another. The time is in proportion to the data.
    """

    cdef readonly const uint8_t[::1] data
    cdef Judge judge
    cdef bint mirrored
    cdef readonly int64_t size
    cdef int64_t first
    cdef readonly int64_t pos
    cdef int64_t before, earlier
    cdef public int64_t until
    cdef int64_t searched
    cdef readonly int64_t end
    cdef readonly int64_t[::1] stretches
    cdef int64_t found

    def __init__(self, data, judge, *, mirrored=False):
        self.data = data
        self.judge = judge
        self.mirrored = mirrored
        self.size = len(self.data)
        self.first = 0
        self.pos = 0
        self.before = self.earlier = -1
        self.until = self.size
        self.searched = 0
        self.end = 0
        self.stretches = room(2 * FOUND, "i8")
        self.found = 0

    def run(self):
        """Walk up to ``until``. Return the number of stretches."""
        cdef int64_t count
        with nogil:
            count = self.find()
        return count

    cdef int64_t find(self) except? -9 nogil:
        """Find the stretches up to ``until``; return their number."""
        self.found = 0
        while self.pos < self.until and self.found < FOUND:
            self.walk()
            if self.pos < self.until and not self.goes_on(self.hold(self.pos)):
                self.resume()
        return self.found

    cdef void fill(self, int64_t place, int64_t nbytes) noexcept nogil:
        """Make the window hold the words from byte ``place`` on."""
        cdef uint8_t[::1] window
        cdef const uint8_t[::1] data
        cdef int64_t at
        nbytes = max(0, min(nbytes, self.size - place)) // WORD * WORD
        window, data = self.judge.window, self.data
        for at in range(nbytes):
            window[at] = data[place + at]
        for at in range(nbytes if self.mirrored else 0):
            window[at ^ LAST] = data[place + at]
        self.first = place
        self.judge.total = nbytes // WORD

    cdef int64_t hold(self, int64_t place) noexcept nogil:
        """Return the word of the window that byte ``place`` is, with enough of them behind it."""
        cdef int64_t at, short
        at = place - self.first
        short = at + LONGEST > WORD * self.judge.total
        if at < 0 or at % WORD or (short and not self.holds_end()):
            self.fill(place, PASSED)
            return 0
        return at // WORD

    cdef bint holds_end(self) noexcept nogil:
        """Return whether the window reaches the last word of the data."""
        return self.first + WORD * (self.judge.total + 1) > self.size

    cdef void walk(self) noexcept nogil:
        """Pass over records as long as they follow one another."""
        cdef int64_t at, size, sure, last
        at = self.hold(self.pos)
        size = self.whole(at)
        sure = False
        while size and self.pos + WORD * size <= self.size and self.pos < self.until:
            self.before = self.pos if sure or self.earlier < 0 else self.earlier
            self.earlier = self.pos
            self.pos += WORD * size
            last = at
            at += size
            size = 0
            if WORD * at + LONGEST > WORD * self.judge.total and not self.holds_end():
                at = self.hold(self.pos)
            elif at < self.judge.total:
                size = self.judge.behind(last, at)
            sure = 0 < size <= SHORT
            if not sure:
                size = self.whole(at)

    cdef int64_t whole(self, int64_t at) noexcept nogil:
        """Return the words of the record at word ``at`` of the window; 0 if none is."""
        return self.judge.whole(at) if at < self.judge.total else 0

    cdef bint goes_on(self, int64_t at) noexcept nogil:
        """Move over zero words or one record at word ``at`` behind which records go on.

        Return whether they do, on the alignment.
        """
        cdef int64_t begin, after, run, steps, size, ended
        begin = at
        while at < self.judge.total and self.judge.words[at] == 0:
            at += 1
        if at == begin:
            at += self.judge.stated(at) if at < self.judge.total else 0
        after = at
        run = 0
        steps = 0
        while at > begin and at < self.judge.total and run < CONFIRMED and steps < LONG_RUN:
            size = self.judge.whole(at)
            if size:
                run += 1
            else:
                size = self.judge.stated(at)
            if size == 0:
                return False
            steps += 1
            at += size
        ended = at == self.judge.total and self.holds_end()
        if run < CONFIRMED and not ended:
            return False
        self.pos = self.first + WORD * after
        self.before = self.earlier = -1
        return after > begin

    cdef void resume(self) noexcept nogil:
        """Go on where records follow again; enter the stretch up to there if it is off."""
        cdef int64_t first, total, place, begin
        if self.pos - self.before > LONGEST:
            self.before = -1
        first, total = self.first, self.judge.total
        place = self.search()
        if place < self.size and (place - self.pos) % WORD:
            begin = self.pos
            if self.before >= 0 and (place < begin or not self.begins()):
                begin = self.before
            self.stretches[2 * self.found] = begin
            self.stretches[2 * self.found + 1] = place
            self.found += 1
        elif place - first >= self.searched:  # what follows is in the window as it was
            self.first, self.judge.total = first, total
        self.pos = place
        self.before = self.earlier = -1

    cdef bint begins(self) noexcept nogil:
        """Return whether the header at ``pos`` certainly is that of the record there."""
        cdef int64_t before, at
        before = self.hold(self.before)
        at = before + (self.pos - self.before) // WORD
        return at < self.judge.total and self.judge.behind(before, at) > 0

    cdef int64_t search(self) noexcept nogil:
        """Return the first byte, on any alignment, where records follow; the size if none do."""
        cdef int64_t start, width, best, shift
        start = self.before if self.before >= 0 else self.pos
        width = NARROWEST
        while start < self.size:
            best = self.size
            self.searched = width
            for shift in range(WORD):
                self.fill(start + shift, width)
                best = self.first_run(best)
            if best < self.size or start + width >= self.size:
                return best
            if width < WIDEST:
                width *= 2
            else:
                start += WIDEST - <int64_t>CONFIRMED * LONGEST
        return self.size

    cdef int64_t first_run(self, int64_t best) noexcept nogil:
        """Return the first byte in the window where records follow, or ``best`` if it is before."""
        cdef int64_t at
        at = 0
        if self.first < self.pos and (self.pos - self.first) % WORD == 0:
            at = (self.pos - self.first) // WORD  # the record there follows the one before it
        while at < self.judge.total and self.first + WORD * at < best:
            if self.runs(at):
                return self.first + WORD * at
            at = max(at + 1, self.end)
        return best

    cdef bint runs(self, int64_t begin) noexcept nogil:
        """Return whether enough records follow from word ``begin``, which go on behind ``pos``.

        Set ``end`` to where they end if they are enough, but do not.
        """
        cdef int64_t at, run, here, size, short
        at = begin
        run = 0
        here = self.first
        while at < self.judge.total and (run < CONFIRMED or here + WORD * at <= self.pos):
            size = self.judge.whole(at)
            if size == 0 or size > self.judge.total - at:
                break
            at += size
            run += 1
        short = here + WORD * at <= self.pos
        self.end = at if short and run >= CONFIRMED else 0
        if short or run == 0 or not self.judge.leads(begin):
            return False
        return run >= CONFIRMED or (
            run == CONFIRMED - 1 and at == self.judge.total and self.holds_end()
        )
