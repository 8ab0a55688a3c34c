"""The catalogue of findings of the trace format, from which docs and `fxf explain` are made.

The second value of a rule is the severity of its findings.
"""

from __future__ import annotations

from fxframework.errors import Catalogue, Refusals, Rule, Severity
from fxframework.kit.shown import shortened
from fxframework.wire.rules import writing

INFO = Severity.INFO
WARNING = Severity.WARNING
DATA_LOSS = Severity.DATA_LOSS
ERROR = Severity.ERROR

_RESUMED = "up to the next record that its contents fill exactly, or three of sound sizes,"
"""Where reading goes on after damage."""

# --- framing: where records begin and end ---

SIZE_ZERO = Rule(
    "FXT0001",
    DATA_LOSS,
    "a record has size zero",
    "Record header",
    "A record is at least one word long, its header.",
    readers="Perfetto refuses the file (Unexpected record of size 0), the 2022 C++ reader stops "
    "there; the Rust crate goes on.",
    ours=f"The words {_RESUMED} are `damaged`.",
    remedy="`fxf salvage` writes the sound records; `fxf cat --records` shows the bytes.",
)
PAST_THE_END = Rule(
    "FXT0002",
    DATA_LOSS,
    "a record runs past the end of the file",
    "Record header",
    "A record's size, in words, ends within the file.",
    detail="{value} words",
    readers="Perfetto and the Rust crate drop the record silently; trace2json fails.",
    ours=f"The words {_RESUMED} or to the end, are `damaged`.",
    remedy="The writer was cut off, or the file was; all records before it are sound.",
)
TOO_SHORT = Rule(
    "FXT0003",
    DATA_LOSS,
    "a record is shorter than its type allows",
    "Record header",
    "A record is at least as long as the words that its type always has.",
    detail="{value} words",
    readers="Perfetto counts fuchsia_record_read_error and skips it by its size.",
    ours=f"The words {_RESUMED} are `damaged`.",
)
CONTENTS_OVERRUN = Rule(
    "FXT0004",
    DATA_LOSS,
    "the contents do not fit the record",
    "Record header",
    "Inline strings, threads, arguments and payloads end within their record.",
    detail="{value}",
    readers="Perfetto counts fuchsia_record_read_error and skips it by its size.",
    ours="The record, by its size, is `damaged`; the next one is read.",
)
ODD_BYTES = Rule(
    "FXT0005",
    DATA_LOSS,
    "the size of the file is not a multiple of 8 bytes",
    "Atoms",
    "A file is a whole number of 8-byte words.",
    detail="{value}",
    readers="Perfetto ignores the odd bytes.",
    ours="The odd bytes are `damaged`.",
    remedy="The file was cut off, or its writer does not pad to whole words.",
)
ZERO_WORDS = Rule(
    "FXT0006",
    WARNING,
    "zero words between records",
    "Record header",
    "Records follow each other without gaps.",
    detail="{value} words",
    readers="The newer C++ reader skips them silently; Perfetto refuses the file (Unexpected "
    "record of size 0).",
    ours="They are `padding`.",
)
UNKNOWN_RECORD = Rule(
    "FXT0007",
    WARNING,
    "a record type that the format does not define",
    "Extending the format",
    "Unknown record types are skipped by their size.",
    detail="type {value}",
    readers="All readers skip it.",
    ours="Kept as `unknown`.",
)
RECORD_OVER_LIMIT = Rule(
    "FXT0008",
    DATA_LOSS,
    "a record is over the limit",
    "Large record header",
    "-o max_record=BYTES bounds the size of one record.",
    detail="{value} bytes",
    readers="The reference reader allows a large record 256 KiB.",
    ours="The record is `damaged`.",
    remedy="Raise it with -o max_record=BYTES.",
)

OFF_ALIGNMENT = Rule(
    "FXT0009",
    DATA_LOSS,
    "records off the alignment",
    "Atoms",
    "Records begin at multiples of 8 bytes.",
    ours="Reading finds none; `fxf salvage` moves them where three follow one another.",
    remedy="Bytes are missing or were put in: fetch the file again, in binary mode.",
)

# --- inside a record: what departs from the layout, with nothing lost ---

RESERVED_BITS = Rule(
    "FXT0101",
    WARNING,
    "bits that are reserved are set",
    "Atoms",
    "Reserved bits are zero.",
    detail="0x{word:016x}",
    readers="Ignored.",
    ours="Kept (raw), otherwise ignored.",
)
PADDING_NOT_ZERO = Rule(
    "FXT0102",
    WARNING,
    "padding of a stream is not zero",
    "Atoms",
    "A stream is padded with zero bytes to a whole word.",
    readers="Ignored.",
    ours="Kept (raw), otherwise ignored.",
)
WORDS_LEFT_OVER = Rule(
    "FXT0103",
    WARNING,
    "words beyond what the record needs",
    "Extending the format",
    "A record ends where its last field ends.",
    detail="{value} words",
    readers="Ignored by all but the Rust crate, which refuses some.",
    ours="Kept (raw), otherwise ignored.",
)
STRING_NOT_REGISTERED = Rule(
    "FXT0104",
    DATA_LOSS,
    "a string reference was never registered",
    "String references",
    "An indexed string was registered by the same provider before its use.",
    detail="index {value}",
    readers="Perfetto drops the record (fuchsia_invalid_string_ref).",
    ours="The record is kept; the string shows as <str#N>.",
    remedy="The beginning of the capture, or of a circular buffer, is missing.",
)
THREAD_NOT_REGISTERED = Rule(
    "FXT0105",
    DATA_LOSS,
    "a thread reference was never registered",
    "Thread references",
    "An indexed thread was registered by the same provider before its use.",
    detail="index {value}",
    readers="Perfetto takes pid 0, tid 0 silently; the C++ reader drops the record.",
    ours="The record is kept; the thread shows as <thr#N>.",
    remedy="The beginning of the capture, or of a circular buffer, is missing.",
)
OF_DEFAULT_PROVIDER = Rule(
    "FXT0106",
    WARNING,
    "a reference resolves only in the default provider",
    "Provider section metadata",
    "Each provider has string and thread tables of its own.",
    detail="index {value}",
    readers="ocaml-trace writes such files; the Rust crate has one thread table for all.",
    ours="Resolved in provider 0.",
)
NOT_UTF8 = Rule(
    "FXT0107",
    WARNING,
    "a string is not UTF-8",
    "String references",
    "Strings are UTF-8.",
    detail="{value!r}",
    readers="Perfetto interns the bytes; the Rust crate fails the record.",
    ours="The bytes are kept and shown beside the text.",
)
OBJECT_NOT_UTF8 = Rule(
    "FXT0108",
    INFO,
    "the name of a kernel object is not UTF-8",
    "Kernel object record",
    "Names of kernel objects may be any bytes (newer editions of the document).",
    detail="{value!r}",
    readers="Raw bytes.",
    ours="The bytes are kept and shown beside the text.",
)
INDEX_ZERO = Rule(
    "FXT0109",
    INFO,
    "string or thread record with index 0",
    "String record",
    "Index 0 is not for registering; such a record is ignored.",
    readers="Ignored.",
    ours="Ignored.",
)
UNKNOWN_ARGUMENT = Rule(
    "FXT0110",
    WARNING,
    "an argument type that the format does not define",
    "Argument types",
    "Unknown argument types are skipped by their size.",
    detail="type {value}",
    readers="Skipped, with a message; Perfetto shows the text `unknown`.",
    ours="Kept with its bytes.",
)
UNKNOWN_KIND = Rule(
    "FXT0111",
    WARNING,
    "a kind of event or record that the format does not define",
    "Extending the format",
    "Unknown kinds are skipped by their size.",
    detail="{value}",
    readers="Skipped, with a message; by Perfetto without one.",
    ours="Kept with its bytes; not in the tables.",
)
TWO_WORD_PROCESS = Rule(
    "FXT0112",
    WARNING,
    "an inline process reference has two words",
    "Userspace object record",
    "An inline process is one word, the process koid.",
    readers="The C++ serializer writes two, process and thread.",
    ours="Read either way, as the record's size tells.",
)
ONE_WORD_THREAD = Rule(
    "FXT0113",
    WARNING,
    "an inline thread of a profiler record has one word",
    "Profiler record",
    "Module and mmap records name process and thread, two words.",
    readers="The Rust crate reads and tests one word.",
    ours="Read either way, as the record's size tells.",
)
ARGUMENT_LEFT_OVER = Rule(
    "FXT0114",
    WARNING,
    "an argument has words beyond its value",
    "Argument header",
    "An argument ends where its value ends.",
    detail="{value} words",
    readers="Skipped by its size; the Rust crate fails the record.",
    ours="Kept (raw), otherwise ignored.",
)
UNKNOWN_SCOPE = Rule(
    "FXT0115",
    WARNING,
    "an instant has a scope that the format does not define",
    "Instant event",
    "The scope word is 0 thread, 1 process or 2 global.",
    detail="scope {value}",
    readers="Perfetto ignores the word.",
    ours="The number is kept.",
)
STRING_OVER_LIMIT = Rule(
    "FXT0116",
    DATA_LOSS,
    "a string is over the limit",
    "String references",
    "-o max_string=BYTES bounds the strings that tables keep.",
    detail="{value} bytes",
    ours="Tables hold its beginning; records hold all of it.",
    remedy="Raise it with -o max_string=BYTES.",
)
OTHER_MAGIC = Rule(
    "FXT0117",
    WARNING,
    "a magic number record with another number",
    "Magic number record",
    "The magic number is 0x16547846.",
    detail="0x{word:08x}",
    readers="Perfetto does not recognise a file that begins with it, and else ignores it.",
    ours="The number is kept.",
)
INVALID_STATE = Rule(
    "FXT0118",
    WARNING,
    "a thread state that the format does not allow",
    "Thread states",
    "States are 0 to 5, and a legacy context switch leaves no thread running (1).",
    detail="thread state {value}",
    readers="Perfetto shows a switch without an end state.",
    ours="The number is kept.",
)
UNKNOWN_BLOB_TYPE = Rule(
    "FXT0119",
    WARNING,
    "a blob type that the format does not define",
    "Blob types",
    "Types are 1 data, 2 last branch records and 3 Perfetto.",
    detail="blob type {value}",
    readers="Perfetto ignores all types but 3.",
    ours="The number is kept.",
)

# --- providers and clocks ---

NO_MAGIC = Rule(
    "FXT0201",
    INFO,
    "the file does not begin with the magic number",
    "Magic number record",
    "A trace begins with the magic number record.",
    readers="Perfetto does not recognise such a file (Unknown trace type provided).",
    ours="Read as little-endian.",
)
NO_RATE = Rule(
    "FXT0202",
    INFO,
    "no initialization record before the first time stamp",
    "Initialization record",
    "Without one, a tick is a nanosecond.",
    readers="The Rust crate takes one tick per second.",
    ours="1 tick = 1 ns for this provider.",
)
RATE_ZERO = Rule(
    "FXT0203",
    WARNING,
    "an initialization record says zero ticks per second",
    "Initialization record",
    "The rate is at least one tick per second.",
    readers="Perfetto drops every event (fuchsia_timestamp_overflow); trace2json keeps the "
    "previous rate.",
    ours="The previous rate stays.",
)
BASE_TIME = Rule(
    "FXT0204",
    INFO,
    "an initialization record of four words",
    "Initialization record",
    "Jane Street's extension: base tick and base wall time.",
    readers="Perfetto ignores the extra words; the Rust crate refuses them.",
    ours="Times are counted from the base tick; the wall time is shown by `fxf info`.",
)
PROVIDER_AGAIN = Rule(
    "FXT0205",
    INFO,
    "provider info again for the same id",
    "Provider info metadata",
    "A provider is introduced once.",
    detail="provider {value}",
    readers="Perfetto and the C++ reader reset its tables; the Rust crate keeps them.",
    ours="Its string and thread tables are emptied.",
)
PROVIDER_NOT_INTRODUCED = Rule(
    "FXT0206",
    WARNING,
    "a section or event of a provider that was never introduced",
    "Provider section metadata; Provider event metadata",
    "Sections and events name a provider that provider info introduced.",
    detail="provider {value}",
    readers="Perfetto drops all records of the section (fuchsia_invalid_event); the C++ reader "
    "registers it.",
    ours="Registered with an empty name; nothing is dropped.",
)
BUFFER_FULL = Rule(
    "FXT0207",
    INFO,
    "a provider's buffer was full",
    "Provider event metadata",
    "Event 0: the buffer filled up and records may have been dropped.",
    detail="provider {value}",
    readers="Perfetto ignores it.",
    ours="Counted by `fxf info`.",
    remedy="Trace fewer categories, or with a larger buffer.",
)
TIME_OVERFLOW = Rule(
    "FXT0208",
    DATA_LOSS,
    "a time does not fit 63 bits of nanoseconds",
    "Timestamps",
    "Ticks become nanoseconds as floor(ticks * 1e9 / rate).",
    readers="Perfetto drops the event (fuchsia_timestamp_overflow).",
    ours="The row is kept with the greatest time; `ticks` has the raw value.",
)
RATE_CHANGES = Rule(
    "FXT0209",
    INFO,
    "more than one rate for one provider",
    "Initialization record",
    "A provider is initialized once.",
    detail="{value} ticks per second",
    readers="Perfetto and trace2json use the last one so far.",
    ours="Each time is converted by the rate in force at its record.",
)

# --- what the events mean ---

ENDS_BEFORE_BEGIN = Rule(
    "FXT0301",
    WARNING,
    "a complete event ends before it begins",
    "Duration complete event",
    "The last word is the time at which the event ends, not its length; it is not before "
    "the time stamp.",
    detail="the last word is the time of the end, not a length",
    readers="Perfetto drops it (fuchsia_timestamp_overflow).",
    ours="Kept with dur 0.",
    remedy="Write the time of the end as the last word: the time stamp plus the length.",
)
END_WITHOUT_BEGIN = Rule(
    "FXT0302",
    INFO,
    "a duration ends that never began",
    "Duration end event",
    "Begins and ends match, thread by thread.",
    readers="Perfetto ignores it, and its arguments.",
    ours="No slice is made; the record is kept.",
    remedy="Usual where tracing started inside a function.",
)
NEVER_CLOSED = Rule(
    "FXT0303",
    INFO,
    "a duration was never closed",
    "Duration begin event",
    "Begins and ends match, thread by thread.",
    readers="Perfetto gives it dur -1.",
    ours="Kept with dur -1.",
    remedy="Usual where tracing stopped inside a function.",
)
TIMES_OUT_OF_ORDER = Rule(
    "FXT0304",
    INFO,
    "times of one thread are not in order",
    "Archives",
    "Records need not be in the order of their time stamps.",
    readers="Perfetto sorts.",
    ours="Sorted by time within each thread, stable in file order.",
)
ENDS_AFTER_PARENT = Rule(
    "FXT0305",
    INFO,
    "complete events of one thread overlap in part",
    "Duration complete event",
    "Durations of one thread nest.",
    readers="Perfetto drops the later one (slice_drop_overlapping_complete_event).",
    ours="Both are kept; the later one is nested in the earlier one.",
)
ASYNC_END_WITHOUT_BEGIN = Rule(
    "FXT0306",
    INFO,
    "an asynchronous operation ends that never began",
    "Async end event",
    "Begins and ends match by process, name and id.",
    readers="Perfetto ignores it, and its arguments.",
    ours="No slice is made; the record is kept.",
)
COUNTER_NOT_NUMERIC = Rule(
    "FXT0307",
    INFO,
    "a counter's argument is not a number",
    "Counter event",
    "Each argument of a counter is a series of numbers.",
    detail="type {value}",
    readers="Perfetto counts fuchsia_non_numeric_counters.",
    ours="It is in `args` only.",
)
TOO_DEEP = Rule(
    "FXT0308",
    INFO,
    "slices nest deeper than the limit",
    "Duration begin event",
    "-o max_depth=N bounds the depth that is recorded.",
    readers="Perfetto does not nest slices below 512 others, and does not end them.",
    ours="Deeper slices are kept at that depth.",
    remedy="Raise it with -o max_depth=N.",
)
FLOW_WITHOUT_BEGIN = Rule(
    "FXT0309",
    INFO,
    "a flow that never began",
    "Flow step event; Flow end event",
    "A flow begins, and ends, with events of the same id.",
    readers="Perfetto counts flow_step_without_start or flow_end_without_start.",
    ours="The events are in `flows`; reported once for each id, at its first event.",
    remedy="Usual where tracing started inside a flow.",
)
FLOW_WITHOUT_END = Rule(
    "FXT0310",
    INFO,
    "a flow that never ended",
    "Flow begin event",
    "A flow begins, and ends, with events of the same id.",
    readers="Perfetto draws the arrows that there are.",
    ours="The events are in `flows`; reported once for each id, at its first event.",
    remedy="Usual where tracing stopped inside a flow.",
)
ASYNC_INSTANT_WITHOUT_BEGIN = Rule(
    "FXT0311",
    INFO,
    "an asynchronous instant of an operation that never began",
    "Async instant event",
    "It is between a begin and an end of the same id.",
    readers="Perfetto shows it.",
    ours="It is in `instants`; reported once for each id, at its first event.",
)
ENDS_BY_ANOTHER_NAME = Rule(
    "FXT0312",
    INFO,
    "a duration ends by another name or category than it began with",
    "Duration end event",
    "An end closes the innermost open duration of its thread. Its name and category may be empty.",
    detail="{value}",
    readers="Perfetto takes the begin's.",
    ours="The slice has the begin's; the record is kept.",
    remedy="Look whether an event before it was lost: then the slices around it have the "
    "ends of others. `-o match=name` matches ends by their names.",
)

# --- what cannot be written: an edited record that the format has no place for ---

NO_SUCH_NAME, INVALID_FIELDS, WRONG_TYPE, OUT_OF_RANGE = writing("FXT", "Record types")[:4]
STRING_TOO_LONG = Rule(
    "FXT0405",
    ERROR,
    "a string or payload is too long",
    "String references",
    "Lengths have fields of their own: 15 bits for strings and blobs, 8 for other names.",
    ours="Refused.",
    remedy="Shorten it, or split a payload over several blobs of one name.",
)
TOO_MANY = Rule(
    "FXT0406",
    ERROR,
    "too many arguments or frames",
    "Arguments",
    "A record has at most 15 arguments, a backtrace at most 255 frames.",
    ours="Refused.",
    remedy="Spread them over several records.",
)
TOO_LARGE = Rule(
    "FXT0407",
    ERROR,
    "a record or argument is too large",
    "Record header",
    "Records and arguments are at most 4095 words, large records 2^32-1.",
    ours="Refused.",
    remedy="Put long strings into string records, long payloads into several records.",
)
RAW_ONLY = Rule(
    "FXT0408",
    ERROR,
    "a record that only its raw bytes can give",
    "Extending the format",
    "A record that the format does not define is written from `raw`, which must fit its fields.",
    ours="Refused if `raw` is missing or does not match the fields.",
    remedy="Leave such records as they are; `damaged` takes any bytes.",
)
CONTRADICTION = Rule(
    "FXT0409",
    ERROR,
    "fields contradict each other",
    "Userspace object record",
    "A process and its thread, where both are given, agree; the id of a provider, and an "
    "index of a trace buffer, are given once.",
    ours="Refused.",
    remedy="Change both, remove one, or take another id or index.",
)
METADATA_INSIDE_PROVIDER = Rule(
    "FXT0410",
    ERROR,
    "metadata inside a provider's records",
    "Metadata record",
    "A provider writes no metadata: the magic number and who speaks are the archive's.",
    ours="Refused.",
    remedy="Introduce providers through the archive; buffers hold one provider's records.",
)
BUFFER_TOO_SMALL = Rule(
    "FXT0411",
    ERROR,
    "the trace buffer has no room for it",
    "Trace buffer",
    "Each buffer of an image has whole records, and the size that is in the header.",
    ours="Refused; nothing is written.",
    remedy="Shorten or remove records of that buffer, or make a larger one.",
)
INVALID_BUFFER_HEADER = Rule(
    "FXT0412",
    ERROR,
    "a trace buffer's header that does not add up",
    "Trace buffer",
    "The sizes in the header are those of the buffers that follow it.",
    ours="Refused; nothing is written.",
    remedy="Leave sizes and mode as they were; FXT0501 lists the parts of a header that must stay.",
)
MIXED_BYTE_ORDERS = Rule(
    "FXT0413",
    ERROR,
    "captures of both byte orders in one archive",
    "Magic number record",
    "The magic number tells the byte order of all words of an archive.",
    ours="Refused.",
    remedy="Write one of them in the other order first, with -o big_endian=yes or no.",
)

# --- trace buffers: images of the trace engine's memory ---

BUFFER_HEADER = Rule(
    "FXT0501",
    ERROR,
    "the header of a trace buffer is inconsistent",
    "Trace buffer",
    "Magic, version, mode and sizes are those that the trace engine writes; data ends lie "
    "in the buffers.",
    detail="{value}",
    readers="The trace manager refuses the buffer.",
    ours="Nothing of it is read; as records, the whole file is `damaged`.",
    remedy="Fetch the image again, whole, or try `fxf salvage -f trace-buffer`; "
    "`fxf cat --records` and `fxf convert` keep the bytes.",
)
IMAGE_TRUNCATED = Rule(
    "FXT0502",
    DATA_LOSS,
    "the image is shorter than its header says",
    "Trace buffer",
    "An image has the size that is in its header.",
    detail="{value} bytes of {total} are there",
    readers="The trace manager refuses the buffer.",
    ours="The bytes that are there are read.",
    remedy="Fetch the image again, whole.",
)
BEHIND_THE_BUFFER = Rule(
    "FXT0503",
    WARNING,
    "bytes behind the end of the trace buffer",
    "Trace buffer",
    "An image has the size that is in its header.",
    detail="{value} bytes",
    readers="The trace manager refuses the buffer.",
    ours="They are `damaged`; everything before them is read.",
)
END_BY_SCANNING = Rule(
    "FXT0504",
    INFO,
    "the end of a buffer's records was found by scanning",
    "Trace buffer",
    "The engine writes the data ends when it stops, and when it switches buffers.",
    detail="{buffer} says no end; its records take {value} bytes",
    readers="The trace manager scans as well; it loses a record that exactly fills the buffer.",
    ours="Records are read up to a zero word, or one that does not fit.",
    remedy="Usual where the program crashed or is still running.",
)
STALE_BYTES = Rule(
    "FXT0505",
    INFO,
    "stale bytes behind the records of a buffer",
    "Trace buffer",
    "In a buffer that was used before, the bytes behind the newest record are of an earlier round.",
    detail="{value} bytes",
    readers="Ignored.",
    ours="They are `damaged`.",
    remedy="Usual in circular and streaming buffers.",
)
RECORDS_END_EARLY = Rule(
    "FXT0506",
    DATA_LOSS,
    "the records end before the place that the header says",
    "Trace buffer",
    "Records follow each other without gaps up to the data end.",
    detail="records of {buffer} end {value} bytes into it, and should take {recorded}",
    readers="The trace manager stops there.",
    ours="In a oneshot buffer, the bytes behind the last record that can be reached are "
    "unused space.",
    remedy="The image was damaged, or taken while it was written; `fxf salvage` finds the records "
    "behind damage.",
)
METADATA_IN_BUFFER = Rule(
    "FXT0507",
    WARNING,
    "metadata inside a trace buffer",
    "Trace buffer",
    "A provider writes no metadata into its buffer; the trace manager adds it.",
    readers="The trace manager copies it as it is, and readers then switch providers.",
    ours="The record is kept, and has no effect.",
)
RECORDS_DROPPED = Rule(
    "FXT0508",
    INFO,
    "records were dropped",
    "Trace buffer",
    "The engine counts the records for which its buffer had no room.",
    detail="{value}",
    readers="The trace manager adds a provider event, `buffer full`.",
    ours="Counted by `fxf info`.",
    remedy="Trace fewer categories, or with a larger buffer.",
)
RESERVED_HEADER_BITS = Rule(
    "FXT0509",
    WARNING,
    "reserved bits of a trace buffer's header are set",
    "Trace buffer",
    "Reserved bits are zero.",
    readers="Ignored.",
    ours="Kept (raw), otherwise ignored.",
)
RECORDS_BEHIND_DATA_END = Rule(
    "FXT0510",
    WARNING,
    "records go on behind the data end of a oneshot buffer",
    "Trace buffer",
    "The data end is where the records of a buffer end.",
    detail="records of {buffer} take {value} bytes, and the header says {recorded}",
    readers="The trace manager scans oneshot buffers, and reads them.",
    ours="Read.",
    remedy="The data end in the header is too small.",
)

RULES = Catalogue.of(globals())
"""All of them, by code."""
REFUSALS = Refusals(NO_SUCH_NAME, INVALID_FIELDS, WRONG_TYPE, OUT_OF_RANGE)
"""What record JSON is refused by."""


def odd_bytes_detail(size: int) -> str:
    """Return what ODD_BYTES says of a file of ``size`` bytes."""
    bytes_over = size % 8
    last_bytes = "last byte is" if bytes_over == 1 else f"last {bytes_over} are"
    return f"it has {size} bytes; the {last_bytes} not a whole word"


LONGEST_NAME = 80
"""Characters of a name in a message."""


def another_name_detail(ended: str, begun: str, is_category: bool) -> str:
    """Return what ENDS_BY_ANOTHER_NAME says: the names, or the categories, of end and begin."""
    preposition = "in the category" if is_category else "as"
    end_name = shortened(ended, LONGEST_NAME)
    begin_name = shortened(begun, LONGEST_NAME)
    return f'it ended {preposition} "{end_name}" and began {preposition} "{begin_name}"'


def overrun_detail(need: int, words: int) -> str:
    """Return what CONTENTS_OVERRUN says of a record of ``words`` words whose contents need more."""
    if need <= words:
        return f"an argument does not fit its size; the record has {words} words"
    return f"the contents need at least {need} words, the record has {words}"
