"""Schemas of the tables of logs, and numbers that blocks share; ``capture.py`` makes the columns.

The tables are the standard `logs` and `args`, and `log_tags`.
"""

from __future__ import annotations

from typing import Final

from fx_log.severity import Level
from fxframework.model.schema import NAME, STANDARD_TABLES, Column, TableSchema

GIVEN_MESSAGE: Final = 1
GIVEN_PID: Final = 2
GIVEN_TID: Final = 4
GIVEN_LINE: Final = 8
IS_PRINTF: Final = 128
"""Internal bit of the raw column: the message is the format of a printf."""

WELL_KNOWN: Final = (
    b"", b"pid", b"tid", b"tag", b"message", b"file", b"line", b"num_dropped", b"dropped_logs",
    b"verbosity", b"rolled_out", b"moniker", b"url", b"printf", b"$__moniker", b"$__url",
    b"$__rolled_out", b"UNKNOWN",
)  # fmt: skip
"""First strings of a capture's pool, which the scans know by code."""
LEVEL_NAMES: Final = tuple(level.name.encode() for level in Level)
"""Strings that follow WELL_KNOWN in the pool."""
LOGS = STANDARD_TABLES["logs"].extended(
    Column("log_url", "code", "URL of the component"),
    Column("log_tag", "u8", "tag bits of the record; of a ring, the entry's whole tag"),
    Column("log_rolled_out", "u8", "logs rolled out of the buffer before this one"),
    Column("log_verbosity", "i8", "verbosity, as writers of 2022 gave it; 0 not given"),
    Column("log_given", "u1", "what the record has, added: 1 message, 2 pid, 4 tid, 8 line"),
)
LOG_TAGS = TableSchema(
    "log_tags",
    "a tag of a log; they are in the order of the record",
    (Column("parent", "i8", "row of `logs`"), NAME),
    parent_table="logs",
)

# --- Numbers for kernels --------------------------------------------------------------------------

LOW32 = 0xFFFFFFFF
(
    EMPTY, PID, TID, TAG, MESSAGE, FILE, LINE, NUM_DROPPED, DROPPED_LOGS, VERBOSITY, ROLLED_OUT,
    MONIKER, URL, PRINTF, OWN_MONIKER, OWN_URL, OWN_ROLLED_OUT, UNKNOWN,
) = range(len(WELL_KNOWN))  # fmt: skip
"""Codes of the strings that the pool begins with."""
CODES: Final = {name.decode(): code for code, name in enumerate(WELL_KNOWN)}
"""The same, by the string."""
NO_STRING = -1
HAS_VERBOSITY = 64
