"""The scan: structured records to raw rows, which ``row_scan.py`` adds.

``framing.py`` checks the sizes of records; here strings become codes (``LogScan.text``).

It decodes the same bytes as ``decoder.py`` and ``entries.py``, which are written for clarity, and
shares only numbers with them; tests compare the results. Words are signed 64-bit integers.
"""

from __future__ import annotations

from fx_log import format as wire
from fx_log import rules
from fx_log.read import tables
from fx_log.read.framing import Framer
from fx_log.read.row_scan import RowScan
from fx_log.read.rows import Totals
from fxframework.kernels.annotations import Array, Fallible, View, flag, i64, status
from fxframework.kernels.buffers import room
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool

__all__ = ["LogScan"]

# The names that nearly all records have, as words.
WORD_PID = 0x646970
WORD_TID = 0x646974
WORD_TAG = 0x676174
WORD_MESSAGE = 0x6567617373656D
COMPONENT_BITS = 30
COMPONENT_MASK = 0x3FFFFFFF
NOT_NAMED = 0
LOW24 = 0xFFFFFF
LOW56 = 0xFFFFFFFFFFFFFF
ONE = 1
NOT_ASCII = -0x7F7F7F7F7F7F7F80


class LogScan(RowScan):
    """Decodes the structured records that a framer finds."""

    words: View[i64]
    components: PairMap
    with_printf: flag
    with_limits: flag
    in_entries: flag
    pending: Array[i64]
    pendings: i64
    last_ident: i64
    last_moniker: i64
    last_url: i64
    index: i64
    spot: i64
    end: i64
    control: flag
    odd: flag
    unpadded: flag
    lost: i64
    messages: i64
    arguments: i64
    known: i64
    tail: i64
    printing: flag
    printed: flag
    here: i64
    kind: i64
    name: i64
    name_bytes: i64
    value: i64
    value_at: i64
    value_bytes: i64
    failed: i64

    def __init__(
        self,
        framer: Framer,
        data: memoryview,
        words: memoryview,
        pool: Pool,
        notes: Notes,
        totals: Totals,
    ) -> None:
        RowScan.__init__(self, framer, data, pool, notes, totals, 4200)
        self.words = memoryview(words)
        self.components = PairMap()
        self.with_printf = 0
        self.with_limits = 0
        self.in_entries = 0
        # Findings about the meaning of arguments, which a manifest does not have.
        self.pending = room(3 * wire.MOST_ARGUMENTS, "i8")
        # The component of the last tag that was looked up.
        self.last_ident = tables.NO_STRING
        self.last_moniker = tables.NO_STRING
        self.last_url = tables.NO_STRING
        # The current record.
        self.index = 0
        self.spot = 0
        self.end = 0
        self.control = 0
        self.odd = 0
        self.unpadded = 0
        self.lost = 0
        self.clear()
        # The current argument.
        self.here = 0
        self.kind = 0
        self.name = tables.EMPTY
        self.name_bytes = 0
        self.value = 0
        self.value_at = 0
        self.value_bytes = 0
        self.failed = 0

    def clear(self) -> i64:
        """Reset the state of the last record."""
        self.clear_row()
        self.messages = 0
        self.arguments = 0
        self.known = 0
        self.tail = tables.NO_STRING
        self.printing = 0
        self.printed = 0
        self.pendings = 0
        return 0

    def configure(self, *, printf: bool, limits: bool, era_2022: bool, in_entries: bool) -> None:
        """Set the reader's options; ``in_entries``: records are in entries of a ring."""
        self.with_printf = int(printf)
        self.with_limits = int(limits)
        self.era_2022 = int(era_2022)
        self.in_entries = int(in_entries)

    def step(self) -> Fallible[i64]:
        """Decode records up to the limits ``until`` and ``most``."""
        self.pool.source = self.words
        while (
            self.framer.pos < self.until
            and self.logs.rows < self.most
            and self.args.rows < self.most
            and self.tags.rows < self.most
        ):
            if not self.framer.advance():
                self.done = 1
                break
            self.record()
        return 0

    # --- Records ---

    def record(self) -> status:
        """Decode the record that the framer found."""
        start = self.framer.start
        end = start + self.framer.size
        word = self.words[start]
        self.index = self.framer.index
        self.spot = self.framer.place(start)
        self.end = end
        self.severity = wire.HEADER_SEVERITY.get(word)
        self.control = 1 if wire.HEADER_TAG.get(word) & wire.CONTROL else 0
        self.header(word)
        self.clear()
        first_arg = self.args.rows
        first_tag = self.tags.rows
        first_positional = self.positional.rows
        at = start + wire.MIN_RECORD_WORDS
        while at < end:
            at = self.argument(at)
        if self.with_limits and self.arguments > wire.FIDL_ARGUMENTS:
            self.notes.add(rules.MANY_ARGUMENTS, self.spot, self.index, self.arguments)
        if self.control and not self.knows(tables.ROLLED_OUT):
            self.manifest(word, first_arg)
            self.args.rows = first_arg
            self.tags.rows = first_tag
            self.positional.rows = first_positional
            return 0
        if self.pendings:
            self.report_pending()
        self.attribute(self.framer.tag, self.framer.suffix)
        if self.control:
            self.rolled_out = self.lost
        self.complete()
        return self.row(self.words[start + 1], self.joined(first_tag))

    def header(self, word: i64) -> status:
        """Report findings about the header of a record."""
        self.odd = 0
        self.unpadded = 0
        if wire.RESERVED.get(word):
            self.notes.add(rules.RESERVED_BITS, self.spot, self.index, word)
            self.odd = 1
        bits = wire.HEADER_TAG.get(word)
        if bits and self.notes.count(rules.TAG_BITS) == 0:
            self.notes.add(rules.TAG_BITS, self.spot, self.index, bits)
        if self.between_levels(self.severity):
            self.notes.add(rules.SEVERITY_NOT_A_LEVEL, self.spot, self.index, self.severity)
        return 0

    def complete(self) -> i64:
        """Set what follows from all arguments of the record."""
        if self.knows(tables.MESSAGE):
            self.given |= tables.GIVEN_MESSAGE
        if self.knows(tables.PID):
            self.given |= tables.GIVEN_PID
        if self.knows(tables.TID):
            self.given |= tables.GIVEN_TID
        if self.knows(tables.LINE):
            self.given |= tables.GIVEN_LINE
        if self.knows(tables.VERBOSITY):
            self.given |= tables.HAS_VERBOSITY
            if self.era_2022:
                self.severity = tables.DEBUG_LEVEL
        return 0

    def knows(self, name: i64) -> flag:
        """Return whether the record has a well-known argument."""
        return self.known & (ONE << name) != 0

    # --- Arguments ---

    def argument(self, at: i64) -> Fallible[i64]:
        """Decode the argument at word ``at``. Return the start of the next one."""
        word = self.words[at]
        kind = wire.ARG_TYPE.get(word)
        size = wire.ARG_SIZE.get(word)
        left = self.end - at
        self.arguments += 1
        self.here = self.framer.place(at)
        self.kind = kind
        self.failed = 0
        self.value = 0
        self.value_bytes = 0
        if word >> wire.AFTER_NAME and not self.odd:
            # From bit 32 on all bits are reserved, except a string's reference and a bool's bit.
            shift = (
                wire.AFTER_VALUE
                if kind == wire.STRING
                else wire.AFTER_FLAG
                if kind == wire.BOOL
                else wire.AFTER_NAME
            )
            if word >> shift:
                self.notes.add(rules.RESERVED_BITS, self.here, self.index, word)
                self.odd = 1
        if kind > wire.BOOL:
            self.notes.add(rules.UNKNOWN_TYPE, self.here, self.index, kind)
        inner = self.read_name(at, wire.NAME_REF.get(word))
        self.value_at = inner
        if not self.failed:
            inner = self.read_value(word, at, inner)
        if self.failed:
            self.notes.add(self.failed, self.here, self.index, kind)
            if self.tail >= 0:
                self.misplace()
            return at + size if 1 <= size <= left else self.end
        if size != inner - at and word:
            self.notes.add(rules.SIZE_DIFFERS, self.here, self.index, size)
        if self.name_bytes > wire.FIDL_NAME_BYTES and self.with_limits:
            self.notes.add(rules.LONG_NAME, self.here, self.index, self.name_bytes)
        self.meaning()
        return inner

    def read_name(self, at: i64, ref: i64) -> Fallible[i64]:
        """Read the name of the argument at word ``at``. Return the word after it."""
        self.name = tables.EMPTY
        self.name_bytes = 0
        inner = at + 1
        if ref >= wire.INLINE:
            nbytes = ref & wire.MAX_STRING
            self.name_bytes = nbytes
            inner += (nbytes + 7) // 8
            if inner > self.end:
                self.failed = rules.STRING_TRUNCATED
                return inner
            if nbytes:
                self.check_padding(inner, nbytes)
                self.name = self.name_code(at + 1, nbytes)
                return inner
            self.notes.add(rules.EMPTY_INLINE_STRING, self.here, self.index, 0)
        elif ref:
            self.failed = rules.RESERVED_REFERENCE
            return inner
        if self.kind != wire.NULL:
            self.notes.add(rules.EMPTY_NAME, self.here, self.index, 0)
        return inner

    def name_code(self, start: i64, nbytes: i64) -> Fallible[i64]:
        """Return the code of the name at word ``start``."""
        first = self.words[start]
        if nbytes == 3:
            first &= LOW24
            if first == WORD_PID:
                return tables.PID
            if first == WORD_TID:
                return tables.TID
            if first == WORD_TAG:
                return tables.TAG
        elif nbytes == 7 and first & LOW56 == WORD_MESSAGE:
            self.messages += 1
            return tables.MESSAGE
        return self.text(start, nbytes)

    def text(self, start: i64, nbytes: i64) -> Fallible[i64]:
        """Return the code of a string at word ``start``; report invalid UTF-8."""
        code = self.pool.intern(start, nbytes)
        if not self.pool.valid[code]:
            self.notes.add(rules.NOT_UTF8, self.here, self.index, code)
        return code

    def check_padding(self, end: i64, nbytes: i64) -> status:
        """Report non-zero padding before word ``end``, once per record."""
        if nbytes % 8 and not self.unpadded and self.words[end - 1] >> (8 * (nbytes % 8)):
            self.notes.add(rules.PADDING_NOT_ZERO, self.here, self.index, 0)
            self.unpadded = 1
        return 0

    def read_value(self, word: i64, at: i64, inner: i64) -> Fallible[i64]:
        """Read the value at word ``inner`` of the argument at ``at``. Return the word after it."""
        kind = self.kind
        if kind == wire.UINT64 or kind == wire.INT64 or kind == wire.DOUBLE:
            if inner >= self.end:
                self.failed = rules.NUMBER_MISSING
                return inner
            self.value = self.words[inner]
            return inner + 1
        if kind == wire.STRING:
            return self.read_string(wire.VALUE_REF.get(word), inner)
        if kind == wire.BOOL:
            self.value = wire.VALUE_REF.get(word) % 2
            return inner
        if kind == wire.NULL:
            self.notes.add(rules.NULL_ARGUMENT, self.here, self.index, 0)
            return inner
        size = wire.ARG_SIZE.get(word)
        if not inner - at <= size <= self.end - at:
            self.failed = rules.UNKNOWN_SIZE
            return inner
        self.value = self.pool.intern(inner, 8 * (at + size - inner))
        if kind < wire.BOOL:
            self.notes.add(rules.TRACE_TYPE, self.here, self.index, kind)
        return at + size

    def read_string(self, ref: i64, start: i64) -> Fallible[i64]:
        """Read the string at word ``start``. Return the word after it."""
        if ref < wire.INLINE:
            if ref:
                self.failed = rules.RESERVED_REFERENCE
            return start
        nbytes = ref & wire.MAX_STRING
        inner = start + ((nbytes + 7) // 8)
        if inner > self.end:
            self.failed = rules.STRING_TRUNCATED
            return inner
        self.value_bytes = nbytes
        if nbytes == 0:
            self.notes.add(rules.EMPTY_INLINE_STRING, self.here, self.index, 0)
            return inner
        self.check_padding(inner, nbytes)
        if self.name == tables.MESSAGE:
            self.check_message(start, inner)
        else:
            self.value = self.text(start, nbytes)
        return inner

    def check_message(self, start: i64, end: i64) -> status:
        """Report a message, words ``start`` to ``end``, that is not UTF-8."""
        every = 0
        for at in range(start, end):
            every |= self.words[at]
        if every & NOT_ASCII and not self.utf8.valid(8 * start, self.value_bytes):
            code = rules.MESSAGE_NOT_UTF8 if self.messages == 1 else rules.NOT_UTF8
            self.notes.add(code, self.here, self.index, 0)
        return 0

    # --- Well-known arguments; all others are ordinary keys ---

    def meaning(self) -> status:
        """Store the argument in its column of the row, or add it as a key."""
        name = self.name
        attribution = tables.OWN_MONIKER <= name <= tables.OWN_ROLLED_OUT
        if attribution and self.is_attribution():
            if self.tail < 0:
                self.tail = self.args.rows
        else:
            if self.tail >= 0:
                self.misplace()
            if attribution:
                self.pend(rules.ATTRIBUTION_NOT_LAST, self.here, name)
        if self.printing:
            if name == tables.EMPTY:
                self.printed = 1
                return self.positional_value()
            if self.printed:
                self.printing = 0
        if name == tables.EMPTY:
            return self.key()
        if name <= tables.VERBOSITY:
            fits = name != tables.LINE or 0 <= self.value <= tables.LOW32
            if self.kind == self.wanted_kind(name) and fits:
                return self.well_known(name)
            self.pend(rules.WELL_KNOWN_OF_OTHER_TYPE, self.here, name)
        elif name == tables.ROLLED_OUT:
            if self.control and self.kind == wire.UINT64:
                self.known |= ONE << tables.ROLLED_OUT
                self.lost = self.value
                return 0
        elif name == tables.PRINTF:
            if self.with_printf and self.kind == wire.UINT64 and not self.value and not self.given:
                self.given = tables.IS_PRINTF
                self.printing = 1
                return 0
        return self.key()

    def is_attribution(self) -> flag:
        """Return whether the argument has the type of an attribution argument."""
        if self.name == tables.OWN_ROLLED_OUT:
            return self.kind == wire.UINT64
        return self.kind == wire.STRING

    def wanted_kind(self, name: i64) -> i64:
        """Return the type of a well-known argument."""
        if name == tables.TAG or name == tables.MESSAGE or name == tables.FILE:
            return wire.STRING
        return wire.INT64 if name == tables.VERBOSITY else wire.UINT64

    def well_known(self, name: i64) -> status:
        """Store a well-known argument of the right type."""
        value = self.value
        if name == tables.TAG:
            return self.tag_row(value, self.here)
        if name == tables.NUM_DROPPED or name == tables.DROPPED_LOGS:
            if value:
                self.dropped = value
            return 0
        if self.knows(name):
            self.pend(rules.WELL_KNOWN_TWICE, self.here, name)
        self.known |= ONE << name
        if name == tables.MESSAGE:
            self.message_at = 8 * self.value_at
            self.message_bytes = self.value_bytes
        elif name == tables.PID:
            self.pid = value
        elif name == tables.TID:
            self.tid = value
        elif name == tables.FILE:
            self.file = value
        elif name == tables.LINE:
            self.line = value
        else:
            self.verbosity = value
        return 0

    def key(self) -> status:
        """Add the argument as a row of `args`."""
        row = self.args.add_row()
        self.args.type[row] = self.kind
        self.args.name[row] = self.name
        self.args.parent[row] = self.logs.first + self.logs.rows
        self.args.offset[row] = self.here
        self.args.value[row] = self.value
        self.totals.types_seen |= ONE << self.kind
        return 0

    def positional_value(self) -> status:
        """Keep the argument for the format of a structured printf."""
        row = self.positional.add_row()
        self.positional.parent[row] = self.logs.first + self.logs.rows
        self.positional.type[row] = self.kind
        self.positional.value[row] = self.value
        return 0

    def misplace(self) -> status:
        """Report attribution arguments that are not at the end of the record."""
        for row in range(self.tail, self.args.rows):
            self.pend(rules.ATTRIBUTION_NOT_LAST, self.args.offset[row], self.args.name[row])
        self.tail = tables.NO_STRING
        return 0

    def pend(self, code: i64, offset: i64, value: i64) -> i64:
        """Note a finding, which is reported unless the record is a manifest."""
        at = 3 * self.pendings
        self.pending[at] = code
        self.pending[at + 1] = offset
        self.pending[at + 2] = value
        self.pendings += 1
        return 0

    def report_pending(self) -> status:
        """Report the noted findings."""
        for number in range(self.pendings):
            at = 3 * number
            self.notes.add(self.pending[at], self.pending[at + 1], self.index, self.pending[at + 2])
        return 0

    # --- Attribution ---

    def manifest(self, word: i64, first: i64) -> status:
        """Store the component that a manifest names in rows of `args` from ``first`` on."""
        moniker = tables.NO_STRING
        url = tables.NO_STRING
        for row in range(first, self.args.rows):
            if self.args.type[row] == wire.STRING:
                if self.args.name[row] == tables.MONIKER:
                    moniker = self.args.value[row]
                elif self.args.name[row] == tables.URL:
                    url = self.args.value[row]
        self.last_ident = tables.NO_STRING
        if moniker < 0 or url < 0:
            self.notes.add(rules.MANIFEST_INCOMPLETE, self.spot, self.index, 0)
            return 0
        named = ((moniker << COMPONENT_BITS) | url) + 1
        self.components.put(wire.HEADER_TAG.get(word) & wire.COMPONENT, 0, named)
        return 0

    def attribute(self, tag: i64, suffix: i64) -> status:
        """Set component and URL from the record itself, its suffix, or a manifest."""
        if suffix >= 0:
            self.read_suffix(suffix)
        if self.tail >= 0:
            self.read_tail()
        if self.moniker >= 0:
            return 0
        ident = tag & wire.COMPONENT
        if ident != self.last_ident or self.control:
            self.look_up(ident)
        self.moniker = self.last_moniker
        if self.url < 0:
            self.url = self.last_url
        return 0

    def look_up(self, ident: i64) -> status:
        """Look up the component of a tag."""
        self.last_ident = tables.NO_STRING if self.control else ident
        self.last_moniker = tables.NO_STRING
        self.last_url = tables.NO_STRING
        found = self.components.get(ident, 0)
        if found > NOT_NAMED:
            self.last_moniker = (found - 1) >> COMPONENT_BITS
            self.last_url = (found - 1) & COMPONENT_MASK
        elif self.control or (ident and not self.in_entries):
            self.last_moniker = tables.UNKNOWN
            self.last_url = tables.EMPTY
            if not self.control and found < 0:
                self.notes.add(rules.TAG_NOT_NAMED, self.framer.offset, self.index, ident)
                self.components.put(ident, 0, NOT_NAMED)
        return 0

    def read_suffix(self, at: i64) -> status:
        """Read the suffix of the record, at word ``at``."""
        word = self.words[at]
        length = wire.MONIKER_BYTES.get(word)
        self.rolled_out = self.words[at + 1]
        self.moniker = self.pool.intern(at + wire.SUFFIX_WORDS, length)
        url_at = at + wire.SUFFIX_WORDS + (length + 7) // 8
        self.url = self.pool.intern(url_at, wire.URL_BYTES.get(word))
        return 0

    def read_tail(self) -> status:
        """Store attribution at the end of the record, which was added as keys."""
        for row in range(self.tail, self.args.rows):
            name = self.args.name[row]
            if name == tables.OWN_MONIKER:
                self.moniker = self.args.value[row]
            elif name == tables.OWN_URL:
                self.url = self.args.value[row]
            else:
                self.rolled_out = self.args.value[row]
        self.args.rows = self.tail
        return 0
