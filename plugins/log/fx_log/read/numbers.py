"""The numbers of log formats as kernels take them: kinds, types and strings by name.

Those of the format come from ``layout`` and ``severity``, where they are defined once.
"""

from __future__ import annotations

from fx_log import layout
from fx_log.layout import ArgType
from fx_log.read import tables
from fx_log.severity import Level

# --- Layout --------------------------------------------------------------------------------------

RECORD_TYPE = layout.RECORD_TYPE
MIN_WORDS = layout.MIN_RECORD_WORDS
SOUND_RUN = layout.SOUND_RUN
CHAIN = layout.CHAIN
INLINE = layout.INLINE
MAX_STRING = layout.MAX_STRING
NULL, INT64, UINT64, DOUBLE, STRING, BOOL = map(int, ArgType)
ARGUMENT_TYPES = sum(1 << kind for kind in ArgType)
"""Types of arguments that logs have, a bit each."""
NUMBER_TYPES = sum(1 << kind for kind in layout.NUMBERS)
"""Those of them whose value is a word."""
FIDL_ARGUMENTS = layout.FIDL_ARGUMENTS
FIDL_NAME_BYTES = layout.FIDL_NAME_BYTES
MOST_ARGUMENTS = layout.MAX_RECORD_WORDS + 1
ENTRY_HEADER_WORDS = layout.RING_ENTRY >> 3
MAX_ENTRY_WORDS = layout.RING_MAX_ENTRY >> 3
PACKET_TID, PACKET_TIME, PACKET_SEVERITY, PACKET_DROPPED = 8, 16, 24, 28
"""Bytes of a legacy packet at which fields begin."""
PACKET_TAGS = layout.PACKET_HEADER
SMALLEST_PACKET = layout.MIN_PACKET
LARGEST_PACKET = layout.MAX_PACKET
MOST_TAGS = layout.MAX_TAGS
TAG_BYTES = layout.MAX_TAG_BYTES
TRACE_LEVEL, DEBUG_LEVEL, INFO_LEVEL, FATAL_LEVEL = (
    int(level) for level in (Level.TRACE, Level.DEBUG, Level.INFO, Level.FATAL)
)
LEVEL_STEP = 0x10
LOW32 = 0xFFFFFFFF
LATEST = 0x7FFFFFFFFFFFFFFF

# --- What a scan counts and enters ---------------------------------------------------------------

LOG, ATTRIBUTION, PADDING, DAMAGED, RING_HEADER, RING_ENTRY, PACKET, STREAM_HEADER = range(
    len(layout.KINDS)
)
KIND_COUNT = len(layout.KINDS)
(
    EMPTY, PID, TID, TAG, MESSAGE, FILE, LINE, NUM_DROPPED, DROPPED_LOGS, VERBOSITY, ROLLED_OUT,
    MONIKER, URL, PRINTF, OWN_MONIKER, OWN_URL, OWN_ROLLED_OUT, UNKNOWN,
) = range(len(tables.WELL_KNOWN))  # fmt: skip
"""Codes of the strings that the pool begins with."""
NO_STRING = -1
GIVEN_MESSAGE = tables.GIVEN_MESSAGE
GIVEN_PID = tables.GIVEN_PID
GIVEN_TID = tables.GIVEN_TID
GIVEN_LINE = tables.GIVEN_LINE
HAS_VERBOSITY = 64
IS_PRINTF = tables.IS_PRINTF
RARE_DROPPED = tables.DROPPED
RARE_ROLLED_OUT = tables.ROLLED_OUT
RARE_VERBOSITY = tables.VERBOSITY
END, FULL, NOT_PLAIN = range(3)
"""Why a writer of lines stopped: behind the last row, at its bound, at a row that is not plain."""
