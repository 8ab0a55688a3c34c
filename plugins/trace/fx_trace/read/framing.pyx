# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Framing: where records begin and end, for blocks, the decoder, parts and salvage.

Sizes of records are checked here (``RecordBounds.fault``); who calls it reports what it returns.
"""

cimport cython
from libc.stdint cimport int64_t

from fxframework.kernels.fields cimport Field, field, get
from fxframework.kernels.rows cimport Loop

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.format import MINIMUM_WORDS, SOUND_RUN
from fx_trace.read import forms
from fx_trace.read.forms import FLAT_FORMS, FORMS
from fxframework.kernels.buffers import room, view

cdef int64_t ARG_BLOB = wire.ARG_BLOB, ARG_DOUBLE = wire.ARG_DOUBLE, ARG_INT64 = wire.ARG_INT64
cdef int64_t ARG_KOID = wire.ARG_KOID, ARG_POINTER = wire.ARG_POINTER, ARG_STRING = wire.ARG_STRING
cdef int64_t MAX_ARGS = wire.MAX_ARGS, OWN_FIELDS_AT = wire.OWN_FIELDS_AT
cdef int64_t RECORD_LARGE = wire.RECORD_LARGE, RECORD_METADATA = wire.RECORD_METADATA
cdef Field ARG_NAME = field(wire.ARG_NAME), ARG_SIZE = field(wire.ARG_SIZE)
cdef Field ARG_STRING_REF = field(wire.ARG_STRING_REF), ARG_TYPE = field(wire.ARG_TYPE)
cdef Field ARG_VALUE = field(wire.ARG_VALUE), LARGE_SIZE = field(wire.LARGE_SIZE)
cdef Field SIZE = field(wire.SIZE), STRING_REF_INDEX = field(wire.STRING_REF_INDEX)
cdef Field TYPE = field(wire.TYPE)
cdef int64_t BYTES = forms.BYTES, FIELD_WIDTH = forms.FIELD_WIDTH, FORM_VALUE = forms.FORM_VALUE
cdef int64_t FORM_WIDTH = forms.FORM_WIDTH, FORM_WORDS = forms.FORM_WORDS, MASK = forms.MASK
cdef int64_t MORE = forms.MORE, NARGS_AT = forms.NARGS_AT, SOME = forms.SOME, STRING = forms.STRING
cdef int64_t TAIL = forms.TAIL, WORDS = forms.WORDS
cdef int64_t CONTENTS_OVERRUN = rules.CONTENTS_OVERRUN, PAST_THE_END = rules.PAST_THE_END
cdef int64_t RECORD_OVER_LIMIT = rules.RECORD_OVER_LIMIT, SIZE_ZERO = rules.SIZE_ZERO
cdef int64_t TOO_SHORT = rules.TOO_SHORT, UNKNOWN_RECORD = rules.UNKNOWN_RECORD
cdef int64_t ZERO_WORDS = rules.ZERO_WORDS

__all__ = ["FrameList", "RecordBounds"]

cdef enum:
    INLINE = 0x8000
    LONG_RUN = 16  # Records that fill their sizes one after the other, of which no more is asked.
cdef int64_t RUN = SOUND_RUN
_LEAST = {int(kind): words for kind, words in MINIMUM_WORDS.items()}
_LEAST_OF_TYPES = view([_LEAST.get(kind, 0) for kind in range(16)], "i8")
_FORMS = view(FLAT_FORMS, "i8")
_FIRST_FORM = view([sum(wire.TYPE.get(form.value) < kind for form in FORMS) for kind in range(17)], "i8")


@cython.final
cdef class RecordBounds:
    """The words of a trace (int64) as records; ``least`` has, by record type, their least size.

    ``least`` is 0 for the types that the format does not define. ``max_record`` is a limit in
    bytes, 0 for none. ``damage`` (int64) has words in pairs, ascending: what begins at the first is
    damage up to the second. ``fault`` sets ``end``, the word behind what it looked at, and
    ``value``, what a finding about it shows.
    """

    def __init__(self, words, max_record=0):
        self.words = words
        self.damage = room(0, "i8")
        self.total = len(self.words)
        self.max_record = max_record
        self.end = 0
        self.value = 0
        self.least = _LEAST_OF_TYPES
        self.forms = _FORMS
        self.first_form = _FIRST_FORM

    cpdef int64_t fault(self, int64_t at) noexcept nogil:
        """Find the end of the record, zero words or damage at word ``at``.

        Return the rule of the finding about it; 0 for a record of a sound size and a known type.
        """
        cdef int64_t word, kind, size
        word = self.words[at]
        kind = get(TYPE, word)
        size = self.size_of(word)
        self.end = at + size
        self.value = size
        if word == 0:
            self.end = self.zeros_end(at)
            self.value = self.end - at
            return ZERO_WORDS
        if len(self.damage) and self.is_damage(at):
            return CONTENTS_OVERRUN
        if size == 0 or size > self.total - at or size < self.least[kind]:
            self.end = self.resume(at)
            if size > self.total - at:
                return PAST_THE_END
            return TOO_SHORT if size else SIZE_ZERO
        if self.max_record and size * 8 > self.max_record:
            self.value = size * 8
            return RECORD_OVER_LIMIT
        if self.least[kind]:
            return 0
        self.value = kind
        return UNKNOWN_RECORD

    cpdef int64_t size_of(self, int64_t word) noexcept nogil:
        """Return the number of words of the record with this header."""
        if get(TYPE, word) == RECORD_LARGE:
            return get(LARGE_SIZE, word)
        return get(SIZE, word)

    cdef int64_t zeros_end(self, int64_t at) noexcept nogil:
        """Return the word after the zero words that begin at word ``at``."""
        while at < self.total and self.words[at] == 0:
            at += 1
        return at

    cpdef int64_t sound_size(self, int64_t at) noexcept nogil:
        """Return the number of words of the record at word ``at``.

        0 where there can be none of a defined type.
        """
        cdef int64_t word, size, least
        if at >= self.total:
            return 0
        word = self.words[at]
        size = self.size_of(word)
        least = self.least[get(TYPE, word)]
        if word == 0 or least == 0 or size < least or size > self.total - at:
            return 0
        return size

    cpdef int64_t resume(self, int64_t at) noexcept nogil:
        """Return the word where records follow again after damage at word ``at``.

        The end if none do.

        That is behind the contents of the record that was damaged, if a record begins there whose
        contents fill it exactly, or the words end; else the first word before which one such
        record follows, or three of sound sizes. A header of a type and a size alone, which may
        be any small number, has to be followed by another record that is filled exactly.
        """
        cdef int64_t form, end
        form = self.first_form[get(TYPE, self.words[at])]
        while form < self.first_form[(get(TYPE, self.words[at])) + 1]:
            end = self.contents_end(at, form)
            if end and (end == self.total or self.is_exact(end)):
                return end
            form += 1
        at += 1
        while at < self.total and not self.follows(at):
            at += 1
        return at

    cpdef int64_t start_of(self, int64_t at, int64_t wanted) noexcept nogil:
        """Return the word at which the stretch begins that holds word ``wanted``.

        Stretches are those of ``fault``; one begins at word ``at``.
        """
        while at < self.total:
            self.fault(at)
            if self.end > wanted:
                return at
            at = self.end
        return at

    cdef bint follows(self, int64_t at) noexcept nogil:
        """Return whether records follow at word ``at``."""
        cdef int64_t size, after, run
        size = self.sound_size(at)
        if size == 0:
            return False
        after = at + size
        if self.is_exact(at) and (
            self.words[at] >> OWN_FIELDS_AT or after == self.total or self.is_exact(after)
        ):
            return True
        run = 1
        while run < RUN and size:
            size = self.sound_size(after)
            after += size
            run += 1
        return size != 0

    cdef bint is_damage(self, int64_t at) noexcept nogil:
        """Return whether ``damage`` has the record at word ``at``, and set ``end`` then."""
        cdef int64_t low, high, middle
        low = 0
        high = len(self.damage) // 2
        while low < high:
            middle = (low + high) // 2
            if self.damage[2 * middle] < at:
                low = middle + 1
            else:
                high = middle
        if 2 * low == len(self.damage) or self.damage[2 * low] != at:
            return False
        self.end = self.damage[2 * low + 1]
        self.value = 0
        return True

    cpdef int64_t hiding(self, int64_t at, int64_t end) noexcept nogil:
        """Return the first word from ``at`` where a record begins that hides others.

        Or where the first one from ``end`` on begins.
        """
        while at < end and self.hidden_in(at) == 0:
            self.fault(at)
            at = self.end
        return at

    cpdef int64_t hidden_in(self, int64_t at) noexcept nogil:
        """Return the word from which other records follow within the one at word ``at``.

        0 if none do. Their contents fill them exactly, and they reach its end, or are many: then
        its size is damaged.
        """
        cdef int64_t fault, end, first, run
        fault = self.fault(at)
        end = self.end
        if fault != UNKNOWN_RECORD and (fault or self.form_of(at, end) >= 0):
            return 0
        first = at + 1
        while first < end:
            run = 0
            at = first
            while at < end and run < LONG_RUN and self.is_exact(at):
                at += self.size_of(self.words[at])
                run += 1
            if run == LONG_RUN or (run >= RUN and at >= end):
                return first
            first += 1
        return 0

    cpdef bint is_exact(self, int64_t at) noexcept nogil:
        """Return whether a record begins at word ``at`` whose contents fill it exactly."""
        cdef int64_t size
        size = self.sound_size(at)
        return size != 0 and self.form_of(at, at + size) >= 0

    cdef int64_t form_of(self, int64_t at, int64_t end) noexcept nogil:
        """Return the form whose contents fill the record from word ``at`` to ``end``; or -1."""
        cdef int64_t kind, form
        kind = get(TYPE, self.words[at])
        form = self.first_form[kind]
        while form < self.first_form[kind + 1]:
            if self.contents_end(at, form) == end:
                return form
            form += 1
        return -1

    cpdef bint is_of(self, int64_t word, int64_t form) noexcept nogil:
        """Return whether a header is that of a form."""
        cdef int64_t row
        row = form * FORM_WIDTH
        return (
            word & self.forms[row + MASK] == self.forms[row + FORM_VALUE]
            and word & self.forms[row + SOME] != 0
            and word & self.forms[row + MORE] != 0
        )

    cdef int64_t contents_end(self, int64_t at, int64_t form) noexcept nogil:
        """Return the word behind the contents of a record of this form; 0 where it can be none."""
        cdef int64_t word, row, end, field, count, kind, size
        word = self.words[at]
        row = form * FORM_WIDTH
        if not self.is_of(word, form):
            return 0
        end = at + self.forms[row + FORM_WORDS]
        field = row + TAIL + 1
        while field < row + FORM_WIDTH:
            count = (word >> self.forms[field + 1]) & self.forms[field + 2]
            kind = self.forms[field]
            if kind == BYTES:
                end += (count + 7) // 8
            elif kind == STRING:
                end += self.inline_words(count)
            elif kind == WORDS:
                end += count
            elif count == 0:
                end += self.forms[field + 3]
            field += FIELD_WIDTH
        count = 0
        if self.forms[row + NARGS_AT] >= 0:
            count = (word >> self.forms[row + NARGS_AT]) & MAX_ARGS
        while count > 0:
            if end >= self.total:
                return 0
            size = get(ARG_SIZE, self.words[end])
            if size == 0 or size != self.argument_words(self.words[end]):
                return 0
            end += size
            count -= 1
        end += self.forms[row + TAIL]
        return end if end <= self.total else 0

    cpdef int64_t sizes_end(self, int64_t at, int64_t end) noexcept nogil:
        """The word at which records end that begin at word ``at``, going by their sizes alone.

        Up to a size of zero, or a record that passes word ``end``; one that fills the rest exactly
        counts, which the scan of the reference manager loses.
        """
        cdef int64_t size
        while at < end:
            size = self.size_of(self.words[at])
            if size == 0 or size > end - at:
                break
            at += size
        return at

    cpdef int64_t metadata_after(self, int64_t at, int64_t end) noexcept nogil:
        """Return the first word from ``at``, where a record begins, with a metadata record.

        Or ``end``.

        Records are framed as a scan of the words before ``end`` does.
        """
        cdef int64_t total
        total = self.total
        self.total = end
        while at < end:
            if self.fault(at) == 0 and get(TYPE, self.words[at]) == RECORD_METADATA:
                break
            at = self.end
        self.total = total
        return at

    def metadata_in(self, at, end):
        """Return the words from ``at`` to ``end`` at which metadata records begin."""
        found = []
        while at < end:
            at = self.metadata_after(at, end)
            if at < end:
                found.append(at)
                at += self.size_of(self.words[at])
        return found

    cdef int64_t inline_words(self, int64_t ref) noexcept nogil:
        """Return the number of words that a string reference has behind the header."""
        return (get(STRING_REF_INDEX, ref) + 7) // 8 if ref & INLINE else 0

    cdef int64_t argument_words(self, int64_t word) noexcept nogil:
        """Return the number of words that an argument with this header needs.

        0 for types that are not defined.
        """
        cdef int64_t kind, words
        kind = get(ARG_TYPE, word)
        if kind > ARG_BLOB:
            return 0
        words = 1 + self.inline_words(get(ARG_NAME, word))
        if kind == ARG_STRING:
            words += self.inline_words(get(ARG_STRING_REF, word))
        elif (ARG_INT64 <= kind <= ARG_DOUBLE) or kind == ARG_POINTER or kind == ARG_KOID:
            words += 1
        elif kind == ARG_BLOB:
            words += ((get(ARG_VALUE, word)) + 7) // 8
        return words


@cython.final
cdef class FrameList(Loop):
    """Lists the stretches from word ``pos`` up to ``bounds.total``, up to ``most`` in each run.

    By stretch: the word behind it (``end``); its ``fault``, the number of the rule if it is not a
    record of a known type, or 0; and the ``value`` that a finding about it shows.
    """

    cdef public RecordBounds bounds
    cdef public int64_t pos, most
    cdef public int64_t[::1] end, fault, value

    def __init__(self, bounds, most):
        self.bounds = bounds
        self.pos = 0
        self.most = most
        self.end = room(most, "i8")
        self.fault = room(most, "i8")
        self.value = room(most, "i8")

    cdef int64_t step(self) except? -9 nogil:
        """List stretches. Return how many there are: none at the end."""
        cdef int64_t row
        row = 0
        while row < self.most and self.pos < self.bounds.total:
            self.fault[row] = self.bounds.fault(self.pos)
            self.value[row] = self.bounds.value
            self.pos = self.bounds.end
            self.end[row] = self.pos
            row += 1
        return row
