"""The catalogue of findings of the XRay formats, from which docs and `fxf explain` are made.

The second value of a rule is the severity of its findings.
"""

from __future__ import annotations

from functools import partial

from fx_xray.format import KIND_NAMES, OF_LAST, OF_THIS
from fxframework.errors import Catalogue, Refusals, Rule, Severity
from fxframework.wire.rules import writing

INFO = Severity.INFO
WARNING = Severity.WARNING
DATA_LOSS = Severity.DATA_LOSS
ERROR = Severity.ERROR

LIBRARY = "LLVM lib/XRay, compiler-rt lib/xray"
library_rule = partial(Rule, section=LIBRARY)
"""A rule that no document has: it follows from LLVM's sources."""

# --- the file and its header ---

NO_FILE_HEADER = Rule(
    "FXX0001",
    DATA_LOSS,
    "too few bytes for the file header",
    f"XRay FDR format of LLVM, Header; {LIBRARY}",
    "A trace begins with a header of 32 bytes.",
    detail="{value} bytes",
    readers="llvm-xray: File '…' too small for XRay, or of 4 bytes and more Failed loading YAML "
    "Data.",
    ours="All of it is one `damaged` record.",
    remedy="The writer was cut off before it wrote anything; `fxf info` of another file "
    "of the run may help.",
)
UNKNOWN_VERSION = Rule(
    "FXX0002",
    ERROR,
    "an undefined version",
    f"XRay FDR format of LLVM, Header; {LIBRARY}",
    "Versions are 1 to 5, of basic mode 1 to 3.",
    detail="version {value}",
    readers="llvm-xray: Unsupported version for Basic/Naive Mode logging, and of the flight data "
    "recorder Failed loading YAML Data; fdr-dump does not look.",
    ours="Read as the nearest version that we know; invalid bytes there are `damaged`.",
    remedy="Look for a newer fxframework, or give -f xray or -f xray-basic if the file "
    "is of another kind.",
)
OTHER_MODE = Rule(
    "FXX0003",
    WARNING,
    "the header names the other mode",
    f"XRay FDR format of LLVM, Header; {LIBRARY}",
    "The type is 1 of the flight data recorder, 0 of basic mode.",
    detail="type {value}",
    readers="llvm-xray chooses by it: Unsupported version for Basic/Naive Mode logging, with 256 "
    "times the version; fdr-dump does not look.",
    ours="Read as the format that was asked for.",
)
NO_RECORDS = library_rule(
    "FXX0004",
    INFO,
    "a trace without records",
    rule="A trace has records behind its header.",
    readers="llvm-xray: Failed loading YAML Data, which hides that it wants a buffer at least.",
    ours="An empty capture: nothing was recorded, or nothing took long enough.",
    remedy="XRAY_OPTIONS func_duration_threshold_us=0 keeps short calls too.",
)
TSC_NOT_CONSTANT = Rule(
    "FXX0005",
    INFO,
    "the time-stamp counter may not be constant",
    f"XRay FDR format of LLVM, Header bit field; {LIBRARY}",
    "A counter that runs at one rate in every state of the CPU is constant (bit 0).",
    readers="llvm-xray does not look.",
    ours="Times are ticks by the one frequency of the header: they may be wrong where "
    "the rate changed.",
)
TSC_MAY_STOP = Rule(
    "FXX0006",
    INFO,
    "the time-stamp counter may have stopped",
    f"XRay FDR format of LLVM, Header bit field; {LIBRARY}",
    "A counter that runs on while the CPU sleeps is nonstop (bit 1).",
    readers="llvm-xray does not look.",
    ours="Times leave out what the counter did not count.",
)
NO_FREQUENCY = library_rule(
    "FXX0007",
    WARNING,
    "the frequency of the counter is not known",
    rule="The header has the ticks per second.",
    readers="llvm-xray shows ticks.",
    ours="Ticks are taken for nanoseconds.",
    remedy="Give the frequency with -o cycle_frequency=HZ.",
)

# --- framing of the flight data recorder's records ---

PAST_BUFFER = library_rule(
    "FXX0101",
    DATA_LOSS,
    "a record runs past the end of its buffer",
    rule="A record ends within the buffer that its extents bound.",
    detail="a record of {value} bytes",
    readers="llvm-xray: Buffer over-read; the whole file is refused.",
    ours="The rest of the buffer is `damaged`; reading goes on with the next buffer.",
    remedy="compiler-rt counts too few bytes for typed events (up to LLVM 19 at least): "
    "the end of each such buffer was never written.",
)
PAST_FILE = library_rule(
    "FXX0102",
    DATA_LOSS,
    "a record runs past the end of the file",
    rule="A record ends within the file.",
    detail="a record of {value} bytes",
    readers="llvm-xray: Failed reading, or Invalid offset.",
    ours="It is `damaged`, up to the next valid buffer or the end of the file.",
    remedy="The writer was cut off, or the file was; all records before it are sound.",
)
EXTENTS_PAST_FILE = library_rule(
    "FXX0103",
    DATA_LOSS,
    "a buffer runs past the end of the file",
    rule="The extents of a buffer end within the file.",
    detail="by {word} bytes",
    readers="llvm-xray does not notice where the cut falls between records. Extents of 4 GiB and "
    "more, which it counts in 32 bits: Failed to find the next BufferExtents record.",
    ours="Read up to the end of the file.",
    remedy="The writer was cut off, or the file was; all records before the end are sound.",
)
BAD_FUNCTION = Rule(
    "FXX0104",
    DATA_LOSS,
    "a function record of unknown kind",
    f"XRay FDR format of LLVM, Function Records; {LIBRARY}",
    "Kinds are 0 to 3.",
    detail="kind {value}",
    readers="llvm-xray: Unknown function record type; the whole file is refused.",
    ours="Skipped by its size (`damaged`).",
)
UNKNOWN_METADATA = Rule(
    "FXX0105",
    WARNING,
    "a metadata record of unknown kind",
    f"XRay FDR format of LLVM, Metadata Records; {LIBRARY}",
    "Kinds are 0 to 9.",
    detail="kind {value}",
    readers="llvm-xray: Invalid metadata record type; the whole file is refused.",
    ours="Skipped by its size (`unknown`).",
)
BAD_SIZE = library_rule(
    "FXX0106",
    DATA_LOSS,
    "an event of negative size",
    rule="The size of an event's payload is positive.",
    detail="size {value}",
    readers="llvm-xray: Invalid size for custom event.",
    ours="The rest of the buffer is `damaged`; reading goes on with the next buffer.",
)
EMPTY_EVENT = library_rule(
    "FXX0107",
    WARNING,
    "an event without payload",
    rule="The size of an event's payload is positive.",
    readers="llvm-xray: Invalid size for custom event; the whole file is refused. The "
    "runtime writes such events.",
    ours="Read.",
)
NO_EXTENTS = library_rule(
    "FXX0108",
    WARNING,
    "records outside of a buffer",
    rule="From version 2 on every record lies in a buffer, behind its extents.",
    readers="llvm-xray up to LLVM 19 skips byte by byte to the next extents: Failed to find the "
    "next BufferExtents record, if there are none. It reads on where the extents end in a record: "
    "Buffer over-read.",
    ours="Read; the records belong to the buffer before them.",
    remedy="The extents of that buffer count too few bytes, or extents are missing.",
)
GARBAGE = library_rule(
    "FXX0109",
    DATA_LOSS,
    "bytes that are not records",
    rule="Between buffers there is nothing.",
    detail="{value} bytes",
    readers="llvm-xray: Failed to find the next BufferExtents record, or Invalid metadata"
    " record type.",
    ours="They are `damaged`, up to the next buffer.",
)
END_RECORD = library_rule(
    "FXX0110",
    WARNING,
    "an end of buffer in a version that has none",
    rule="EndOfBuffer is a record of version 1 alone.",
    readers="llvm-xray: End of buffer records are no longer supported starting version 2 "
    "of the log.",
    ours="Read, and passed over.",
)
NEWER_RECORD = library_rule(
    "FXX0111",
    WARNING,
    "a record that this version does not have",
    rule="Extents are there from version 2 on, process ids and typed events from version 3 on.",
    detail="{value}",
    readers="llvm-xray reads it.",
    ours="Read.",
)
NO_END_RECORD = Rule(
    "FXX0112",
    INFO,
    "a buffer without an end",
    f"XRay FDR format of LLVM, Buffer; {LIBRARY}",
    "In version 1 a buffer ends with EndOfBuffer.",
    readers="The readers of LLVM 5 and 6: an error. Later ones read on.",
    ours="Read up to the size of buffers, or to the end of the file.",
)
STALE_SPACE = library_rule(
    "FXX0113",
    INFO,
    "old bytes behind the end of a buffer",
    rule="In version 1 the space behind EndOfBuffer means nothing.",
    detail="{value} bytes",
    readers="llvm-xray since LLVM 7 reads it as records, and leaves out their events.",
    ours="Kept (`padding` with `raw`), otherwise ignored.",
)
RECORD_TOO_LARGE = Rule(
    "FXX0114",
    DATA_LOSS,
    "a record is over the limit",
    "docs, Limits",
    "-o max_record=BYTES bounds the size of one record.",
    detail="a record of {value} bytes",
    readers="llvm-xray knows no limit.",
    ours="The record is `damaged`.",
    remedy="Raise it with -o max_record=BYTES.",
)
LOST_TAIL = library_rule(
    "FXX0115",
    WARNING,
    "the end of a buffer may be missing",
    rule="The extents of a buffer count all of its records.",
    detail="up to {value} bytes",
    readers="llvm-xray does not notice where the cut falls between records.",
    ours="All that is in the file is read. compiler-rt (LLVM 8 to 19 at least) does not "
    "count the headers of typed events: 16 bytes for each are missing at the end of a "
    "buffer. It is reported for buffers with typed events whose padding is not zero, as "
    "compiler-rt writes them.",
    remedy="Calls near the end of the buffer may lack their exits; record without typed "
    "events to have all.",
)
EXTENTS_OVERLAP = library_rule(
    "FXX0116",
    WARNING,
    "the extents of a buffer reach into the next buffer",
    rule="The extents of a buffer count its records and nothing behind them.",
    detail="by {value} bytes",
    readers="llvm-xray takes the next extents for those of the same buffer.",
    ours="The next buffer begins at its own extents.",
    remedy="The extents before this offset count too many bytes.",
)
BAD_WALL_TIME = Rule(
    "FXX0117",
    WARNING,
    "a wall time whose microseconds are out of range",
    "XRay FDR format of LLVM, Metadata Records",
    "Microseconds are 0 to 999,999.",
    detail="{value} microseconds",
    readers="llvm-xray sorts the buffers of a thread by the bytes at that place.",
    ours="Read as it is.",
)

# --- order of its records, as llvm-xray's block verifier asks for it ---

OUT_OF_ORDER = library_rule(
    "FXX0201",
    WARNING,
    "a record that may not follow the one before",
    rule="In a buffer are NewBuffer, WallTime, Pid (from version 3 on), NewCPUId, "
    "then the body; a CallArgument follows a function record or another "
    "CallArgument.",
    detail="{value}",
    readers="llvm-xray: BlockVerifier: Invalid transition; the whole file is refused.",
    ours="Read as it is.",
)
ENDS_IN_PREAMBLE = library_rule(
    "FXX0202",
    WARNING,
    "a buffer that ends before its body",
    rule="A buffer ends behind NewCPUId, TSCWrap, an event, a function record, a "
    "CallArgument or EndOfBuffer.",
    detail="{value}",
    readers="llvm-xray: Failed loading YAML Data, which hides BlockVerifier: Invalid terminal "
    "condition, malformed block.",
    ours="Read as it is.",
)
NO_TIME = library_rule(
    "FXX0203",
    DATA_LOSS,
    "records before any NewCPUId",
    rule="The time of a buffer's records is counted from its NewCPUId.",
    readers="llvm-xray: BlockVerifier: Invalid transition.",
    ours="Records show no `tsc`; in tables the wall time of the buffer, by the "
    "counter's frequency, is used for it, so that lengths are right and moments"
    " about right.",
)
NO_THREAD = library_rule(
    "FXX0204",
    WARNING,
    "a buffer without a thread",
    rule="A buffer begins with NewBuffer, which names its thread.",
    readers="llvm-xray: BlockVerifier: Invalid transition.",
    ours="Its thread is 0.",
)
CUT_RECORD = library_rule(
    "FXX0205",
    DATA_LOSS,
    "a record that the recorder cut in half",
    rule="A NewCPUId or TSCWrap has 16 bytes.",
    detail="its time is {word} ticks",
    readers="llvm-xray takes the bytes that overwrote the second half for the time, and "
    "loses the record that they are; BlockVerifier: Invalid transition, if an "
    "argument follows.",
    ours="Records are shown as they are. In tables the time is mended from the half "
    "that is there, and the record that was swallowed is read.",
    remedy="compiler-rt rewinds a tail exit too far when the thread had changed its CPU "
    "(up to LLVM 19 at least).",
)
TIME_JUMP = library_rule(
    "FXX0206",
    INFO,
    "a time far from the one before",
    rule="A thread's times follow each other.",
    detail="{value:+} ticks",
    readers="llvm-xray does not look.",
    ours="Read as it is.",
)
ORPHAN_ARGUMENT = library_rule(
    "FXX0207",
    INFO,
    "an argument without a call",
    rule="A CallArgument follows the record of its call.",
    readers="llvm-xray: BlockVerifier: Invalid transition.",
    ours="It is in `args` with parent -1.",
)

# --- basic mode ---

PARTIAL_RECORD = library_rule(
    "FXX0401",
    DATA_LOSS,
    "an odd number of bytes at the end",
    rule="Records of basic mode have 32 bytes.",
    detail="{value} bytes",
    readers="llvm-xray: Unsupported version for Basic/Naive Mode logging, with 256 times the "
    "version, which hides Invalid-sized XRay data; the whole file is refused.",
    ours="They are `damaged`.",
)
BAD_TYPE = library_rule(
    "FXX0402",
    DATA_LOSS,
    "a record of unknown type",
    rule="Types are 0 and 1.",
    detail="type {value}",
    readers="llvm-xray: Unsupported version for Basic/Naive Mode logging, with 256 times the "
    "version, which hides Unknown record type; the whole file is refused.",
    ours="The record is `damaged`.",
)
BAD_KIND = library_rule(
    "FXX0403",
    DATA_LOSS,
    "a function record of unknown kind",
    rule="Kinds are 0 to 3.",
    detail="kind {value}",
    readers="llvm-xray: Unsupported version for Basic/Naive Mode logging, with 256 times the "
    "version, which hides Unknown record type; the whole file is refused.",
    ours="The record is `damaged`.",
)
BASIC_ORPHAN = library_rule(
    "FXX0404",
    WARNING,
    "an argument of another call",
    rule="An argument names the function and the thread of the record before it; from "
    "version 3 on the process too.",
    detail="of function {value}",
    readers="llvm-xray: Unsupported version for Basic/Naive Mode logging, with 256 times the "
    "version, which hides Corrupted log; the whole file is refused. It crashes at "
    "an argument before any call.",
    ours="It is in `args` with parent -1.",
)
BASIC_TAIL_EXIT = library_rule(
    "FXX0405",
    WARNING,
    "a kind that this version does not have",
    rule="Tail exits are there from version 2 on.",
    readers="llvm-xray reads it.",
    ours="Read.",
)

# --- calls ---

UNMATCHED_EXIT = library_rule(
    "FXX0301",
    INFO,
    "exits without entries",
    rule="Every call is entered before it is left.",
    detail="of function {value}",
    readers="llvm-xray account: an error, or with -k left out.",
    ours="Each is an instant of the category `unmatched_exit`. They were entered "
    "before the trace begins, or where a buffer was lost.",
)
NEVER_LEFT = library_rule(
    "FXX0302",
    INFO,
    "entries without exits",
    rule="Every call is left.",
    readers="llvm-xray account leaves them out.",
    ours="Slices that were never closed (length -1). They were still running, or their"
    " exits were lost.",
)
UNWOUND_CALL = library_rule(
    "FXX0303",
    INFO,
    "calls without a record of their exit",
    rule="Calls are left in the order opposite to that in which they were entered.",
    readers="llvm-xray account: an error, with --deduce-sibling-calls as we do.",
    ours="They end where the call around them does: an exception went through them, or"
    " records were lost.",
)
TIME_BACK = library_rule(
    "FXX0304",
    INFO,
    "a thread's times go back",
    rule="A thread's times do not decrease.",
    readers="llvm-xray sorts them, and loses the order of calls.",
    ours="Calls are matched in the order of the records.",
)
TIME_OVERFLOW = Rule(
    "FXX0305",
    DATA_LOSS,
    "times that 64 bits of nanoseconds cannot hold",
    "docs, Records",
    "Times are int64 nanoseconds.",
    readers="llvm-xray has doubles.",
    ours="The greatest time is there; `ticks` has the exact one.",
)
TOO_DEEP = Rule(
    "FXX0306",
    WARNING,
    "calls nested deeper than the limit",
    "docs, Limits",
    "-o max_depth=N bounds the depth that is recorded.",
    detail="depth {value}",
    readers="llvm-xray knows no limit.",
    ours="Deeper calls are kept at this depth.",
    remedy="Raise it with -o max_depth=N.",
)

# --- names of functions ---

NO_FUNCTION_NAMES = library_rule(
    "FXX0601",
    INFO,
    "functions without names",
    rule="An instrumentation map names the functions of a trace.",
    detail="{value}",
    readers="llvm-xray shows their numbers.",
    ours="Their numbers stand for names.",
    remedy="Give the program, or its map: -o instr_map=FILE.",
)
NAMES_MISSING = library_rule(
    "FXX0602",
    WARNING,
    "the map names fewer functions than the trace has",
    rule="Map and trace are of one build of the program.",
    detail="{value}",
    readers="llvm-xray shows the numbers.",
    ours="The numbers stand for names.",
    remedy="Is it the program that wrote the trace? Of shared libraries, name their own "
    "maps: `-o instr_map=main,1=lib.so`.",
)
INVALID_MAP_ENTRY = library_rule(
    "FXX0603",
    WARNING,
    "an entry of the map that is invalid",
    rule="An entry has 32 bytes on 64-bit targets: address, function, kind, always-instrument, "
    "version.",
    detail="{value}",
    readers="llvm-xray: an error, for typed events too.",
    ours="The entry is left out.",
)
AMBIGUOUS_OBJECT = library_rule(
    "FXX0604",
    WARNING,
    "the object number may be another's",
    rule="The flight data recorder keeps four of an object's eight bits (LLVM 20).",
    detail="function {value}",
    readers="llvm-xray shows the number.",
    ours="Of several maps for objects with the same four bits, the first is used.",
)

# --- YAML of llvm-xray ---

NOT_YAML = library_rule(
    "FXX0701",
    ERROR,
    "not YAML of llvm-xray",
    rule="`llvm-xray convert -f yaml` writes a header and records.",
    detail="{value}",
    readers="llvm-xray: Failed loading YAML Data.",
    ours="Nothing is read.",
    remedy="Was it written by `llvm-xray convert -f yaml`?",
)
INVALID_YAML_RECORD = library_rule(
    "FXX0702",
    DATA_LOSS,
    "a record of the YAML that is invalid",
    rule="A record has type, func-id, cpu, thread, kind and tsc.",
    detail="{value}",
    readers="llvm-xray: Failed loading YAML Data.",
    ours="The record is left out.",
)
PAYLOADS_CUT_SHORT = library_rule(
    "FXX0703",
    INFO,
    "payloads that are cut short in the YAML",
    rule="llvm-xray cuts payloads that are not text at the first byte that is not UTF-8.",
    ours="The bytes that are there are read.",
    remedy="Convert the trace itself.",
)

# --- refusals of the writers ---

NO_SUCH_NAME, INVALID_FIELDS, WRONG_TYPE, OUT_OF_RANGE, WRONG_SIZE = writing(
    "FXX", "docs, Records", first=501
)[:5]
UNSUPPORTED_VERSION = library_rule(
    "FXX0506",
    ERROR,
    "a version that cannot hold it",
    rule="Typed events are there from version 3 on, custom events in the flight data "
    "recorder alone, tail exits of basic mode from version 2 on.",
    readers="compiler-rt of that version did not write it.",
    ours="Nothing of it is written.",
    remedy="Write a newer version.",
)
EVENT_TOO_LARGE = library_rule(
    "FXX0507",
    ERROR,
    "an event larger than a buffer",
    rule="An event fits into one buffer, behind its preamble.",
    readers="compiler-rt writes over the neighbouring buffer.",
    ours="Nothing of it is written.",
    remedy="Make the buffers larger.",
)
BUFFER_TOO_SMALL = library_rule(
    "FXX0508",
    ERROR,
    "a buffer too small for its preamble",
    rule="A buffer holds its preamble and one record.",
    readers="compiler-rt writes over the neighbouring buffer.",
    ours="Nothing is written.",
    remedy="Give each buffer 128 bytes at least, and no more buffers than the memory has room for.",
)
EXIT_WITHOUT_ENTRY = library_rule(
    "FXX0509",
    ERROR,
    "the exit of a function that the thread is not in",
    rule="A call is left by the thread that entered it.",
    readers="compiler-rt writes the record.",
    ours="Written with check=False; else nothing of it is.",
    remedy="Leave it out, or open the recorder with check=False.",
)
CALLS_DROPPED = library_rule(
    "FXX0510",
    DATA_LOSS,
    "calls were dropped: no buffer was free",
    rule="A recorder whose buffers are all in use drops new records.",
    detail="{value}",
    readers="compiler-rt drops them in silence.",
    ours="They are counted.",
    remedy="Make the buffers larger, or more of them.",
)

RULES = Catalogue.of(globals())
"""All of them, by code."""
REFUSALS = Refusals(NO_SUCH_NAME, INVALID_FIELDS, WRONG_TYPE, OUT_OF_RANGE)
"""What record JSON is refused by."""


def shown_value(rule: Rule, value: int) -> object:
    """Return what a finding shows of its value: OUT_OF_ORDER has two kinds of records in it."""
    if rule not in (NEWER_RECORD, ENDS_IN_PREAMBLE, OUT_OF_ORDER):
        return value
    names = (*KIND_NAMES, "nothing")
    kind = names[OF_THIS.get(value)]
    last_kind = names[OF_LAST.get(value)]
    return f"{last_kind} to {kind}" if rule == OUT_OF_ORDER else kind
