"""The operations of programs (``program.py``): a number and five operands each.

Control and reading: END and FAIL end a record; LOAD reads a word; SAVE, USE and KEEP store words
and fields in slots; CALC, CONST, MOVE and CHECKSUM compute slots; RESERVED, EXPECT and KNOWN check;
SPAN, UNTIL and REST find bytes, TRIM and ALIGN their padding, UTF8 and NONZERO look at them; PUSH,
POP and BODY bound what follows, BOUND the record; LOOP, AGAIN and MORE repeat; JUMP and JUMPZ
choose. Lines of JSON: LIT to REFNUM, REFEND and ONEOF; ONCE and KEPT let a part of a line be made
once, as long as registers stay.  State: DEFINE, CLEAR, MARKSPAN. HANDOVER leaves
the record to the object decoder.
"""

from __future__ import annotations

(
    END, FAIL, LOAD, SAVE, USE, KEEP, JUMP, JUMPZ, CALC, CONST, MOVE, RESERVED, EXPECT, SPAN,
    TRIM, UNTIL, REST, ALIGN, UTF8, PUSH, POP, LOOP, AGAIN, MORE, BODY, KNOWN, LIT,
    NATURAL, SIGNED, NAMES, TEXT, HEX, REAL, HALFREAL, REF, NATSLOT, SGNSLOT, BEGIN,
    FINISH, REFNUM, REFEND, HANDOVER,
    DEFINE, CLEAR, MARKSPAN, CHECKSUM, NONZERO, ONCE, KEPT, ONEOF, BOUND,
) = range(51)  # fmt: skip
WIDTH = 6
"""Numbers per operation: its own and the operands."""

AT_END, FULL, HANDED_OVER = range(3)
"""Why a program stopped (``program.Program``)."""
UNKNOWN, CUT, BAD_SIZE, NO_KIND, NO_ORDER, PADDING, DAMAGED = range(-1, -8, -1)
"""Why there is no record (``framing.Framing``)."""
