"""The catalogue of findings of the log formats, from which docs and `fxf explain` are made.

The second value of a rule is the severity of its findings.
"""

from __future__ import annotations

from fxframework.errors import Catalogue, Refusals, Rule, Severity
from fxframework.wire.rules import writing

INFO, WARNING, DATA_LOSS = Severity.INFO, Severity.WARNING, Severity.DATA_LOSS
ERROR = Severity.ERROR

REFUSES = "The Rust parser refuses the record: {}."
STOPS = "ffx ends the stream there."

# --- framing of structured records ---

NOT_A_RECORD = Rule(
    "FXL0001",
    DATA_LOSS,
    "no log record begins here",
    "logs-encoding, Records",
    "A record's type is 9.",
    detail="a word of type {value}",
    readers="The Rust parser: ValueOutOfValidRange (message layer: InvalidRecordType). " + STOPS,
    ours="The words up to the next place where plausible records follow are `damaged`.",
    remedy="`fxf salvage` writes the sound records; `fxf cat --records` shows the bytes.",
)
RECORD_TOO_SMALL = Rule(
    "FXL0002",
    DATA_LOSS,
    "a record is shorter than its header and time",
    "logs-encoding, Records",
    "A record is at least two words long.",
    detail="a record of {value} words",
    readers="The Rust parser: ValueOutOfValidRange. " + STOPS,
    ours="The words up to the next place where plausible records follow are `damaged`.",
)
RECORD_TRUNCATED = Rule(
    "FXL0003",
    DATA_LOSS,
    "a record runs past the end of the file",
    "logs-encoding, Records",
    "A record's size, in words, ends within the file.",
    detail="a record of {value} words",
    readers="The Rust parser: ValueOutOfValidRange. ffx: Truncated record at end of stream.",
    ours="The rest, up to the next place where plausible records follow or to the end, is "
    "`damaged`.",
    remedy="The writer was cut off, or the file was; all records before it are sound.",
)
ODD_BYTES = Rule(
    "FXL0004",
    DATA_LOSS,
    "too few bytes for a record's header",
    "logs-encoding, Primitives",
    "Records are whole numbers of 8-byte words.",
    detail="{value} bytes",
    readers="The Rust parser: InvalidHeader (message layer: ShortRead). ffx: Invalid "
    "record size in header.",
    ours="The odd bytes are `damaged`.",
)
TIME_TRUNCATED = Rule(
    "FXL0005",
    DATA_LOSS,
    "a record's header without its time",
    "logs-encoding, Records",
    "A record's time follows its header.",
    readers="The Rust parser: InvalidTimestamp. ffx: Truncated record at end of stream.",
    ours="The bytes are `damaged`.",
)
ZERO_WORDS = Rule(
    "FXL0006",
    WARNING,
    "zero words between records",
    "logs-encoding, Records",
    "Records follow each other without gaps.",
    detail="{value} zero words",
    readers="The Rust parser: ValueOutOfValidRange. ffx: Invalid record size in header.",
    ours="They are `padding`.",
)
OVER_MAX_RECORD = Rule(
    "FXL0008",
    DATA_LOSS,
    "a record is over the limit",
    "docs, Limits",
    "-o max_record=BYTES bounds the size of one record.",
    detail="a record of {value} bytes",
    readers="The format itself allows 32,760 bytes.",
    ours="The record is `damaged`.",
    remedy="Raise it with -o max_record=BYTES.",
)

OFF_ALIGNMENT = Rule(
    "FXL0009",
    DATA_LOSS,
    "records off the alignment",
    "logs-encoding, Primitives",
    "Records begin at multiples of 8 bytes.",
    ours="Reading finds none; `fxf salvage` moves them where three follow one another.",
    remedy="Bytes are missing or were put in: fetch the file again, in binary mode.",
)

# --- inside a record ---

RESERVED_BITS = Rule(
    "FXL0101",
    WARNING,
    "bits that are reserved are set",
    "logs-encoding, Records and Argument header",
    "Reserved bits are zero.",
    readers="Ignored.",
    ours="Kept (raw), otherwise ignored.",
)
PADDING_NOT_ZERO = Rule(
    "FXL0102",
    WARNING,
    "padding of a string is not zero",
    "logs-encoding, Primitives",
    "A string is padded with zero bytes to a whole word.",
    readers="Ignored.",
    ours="Kept (raw), otherwise ignored.",
)
SIZE_DIFFERS = Rule(
    "FXL0104",
    WARNING,
    "an argument's size is not that of its contents",
    "logs-encoding, Argument header",
    "SizeWords counts the header, the name and the value.",
    detail="size_words is {value}",
    readers="The Rust parser never looks at it; add_dropped_count walks by it.",
    ours="The contents count; the size is kept (raw).",
)
TAG_BITS = Rule(
    "FXL0105",
    INFO,
    "records have tags, where the document reserves the bits",
    "logs-encoding, Records",
    "The document reserves bits 16 to 55; today 16 to 47 hold a tag and the control bit.",
    detail="tag bits 0x{word:x}",
    readers="Newer ones use the tag; older ones ignore it.",
    ours="The tag is read. Reported once.",
)
SEVERITY_NOT_A_LEVEL = Rule(
    "FXL0106",
    INFO,
    "a severity other than the six levels",
    "docs, Logs",
    "Severities are 0x10 to 0x60 in steps of 0x10; numbers in between are verbosities.",
    detail="severity 0x{word:02x}",
    readers="Named by its band, with raw_severity beside it; readers of 2022: Unsupported.",
    ours="Named by its band; the byte is kept.",
)
NOT_UTF8 = Rule(
    "FXL0107",
    WARNING,
    "a string is not UTF-8",
    "logs-encoding, Primitives",
    "Strings are UTF-8.",
    detail="{value!r}",
    readers=REFUSES.format("ValueOutOfValidRange")
    + " In 2022 the arguments ended there in silence.",
    ours="The bytes are kept; text output shows bytes that are not UTF-8 as U+FFFD.",
)
MESSAGE_NOT_UTF8 = Rule(
    "FXL0108",
    WARNING,
    "the message is not UTF-8",
    "logs-encoding, Primitives",
    "Strings are UTF-8.",
    readers="The Rust parser replaces bytes of the first `message` that are not UTF-8 by U+FFFD.",
    ours="The bytes are kept; text output shows bytes that are not UTF-8 as U+FFFD.",
)
RESERVED_REFERENCE = Rule(
    "FXL0109",
    DATA_LOSS,
    "a string reference of a reserved kind",
    "logs-encoding, Primitives",
    "A string reference is 0, or has its highest bit set.",
    readers=REFUSES.format("Unsupported"),
    ours="The argument is kept as damaged; the others are read.",
)
NULL_ARGUMENT = Rule(
    "FXL0110",
    WARNING,
    "an argument without a value",
    "logs-encoding, Argument header",
    "The document has no type 0.",
    readers="The Rust parser takes it as the number 1; zero words at the end of a record "
    "read as such arguments.",
    ours="Kept as null.",
)
TRACE_TYPE = Rule(
    "FXL0112",
    WARNING,
    "an argument of a type that only traces have",
    "logs-encoding, Argument header",
    "Argument types are int64, uint64, double, string and bool.",
    detail="type {value}",
    readers=REFUSES.format("Unsupported"),
    ours="Its words are kept; the other arguments are read.",
)
UNKNOWN_TYPE = Rule(
    "FXL0113",
    WARNING,
    "an argument of an unknown type",
    "logs-encoding, Argument header",
    "Argument types are int64, uint64, double, string and bool.",
    detail="type {value}",
    readers=REFUSES.format("ValueOutOfValidRange"),
    ours="Its words are kept; the other arguments are read.",
)
STRING_TRUNCATED = Rule(
    "FXL0114",
    DATA_LOSS,
    "a name or a value is longer than its record",
    "logs-encoding, Argument header",
    "Names and values end within their record.",
    readers=REFUSES.format("ValueOutOfValidRange"),
    ours="The argument is kept as damaged; reading goes on where its size ends.",
)
NUMBER_MISSING = Rule(
    "FXL0115",
    DATA_LOSS,
    "the value of a number is missing",
    "logs-encoding, Argument header",
    "A number is one word behind the name.",
    readers=REFUSES.format("InvalidArgument"),
    ours="The argument is kept as damaged.",
)
UNKNOWN_SIZE = Rule(
    "FXL0116",
    DATA_LOSS,
    "an argument of an unknown type with an invalid size",
    "logs-encoding, Argument header",
    "SizeWords counts the header, the name and the value, and ends within the record.",
    readers=REFUSES.format("Unsupported or ValueOutOfValidRange"),
    ours="The argument is kept as damaged.",
)
EMPTY_INLINE_STRING = Rule(
    "FXL0117",
    INFO,
    "an inline string of length zero",
    "logs-encoding, Primitives",
    "An empty string is the reference 0.",
    readers="Taken as empty.",
    ours="Taken as empty; the reference is kept (raw).",
)
EMPTY_NAME = Rule(
    "FXL0118",
    WARNING,
    "an argument without a name",
    "logs-encoding, Arguments",
    "Keys are never empty.",
    readers="Nobody checks it; writers of a structured printf relied on it.",
    ours="Kept.",
)

# --- what records mean ---

WELL_KNOWN_OF_OTHER_TYPE = Rule(
    "FXL0201",
    INFO,
    "a well-known argument of another type, or a line over 32 bits",
    "docs, Logs",
    "pid, tid, line, num_dropped and dropped_logs are uint64; message, file and tag are "
    "strings; verbosity is int64. The column `line` has 32 bits.",
    detail="{value}",
    readers="An ordinary key; in 2022 an error: UnrecognizedValue or ExpectedInteger.",
    ours="An ordinary key.",
)
WELL_KNOWN_TWICE = Rule(
    "FXL0202",
    INFO,
    "a well-known argument is repeated",
    "docs, Logs",
    "A log has one pid, tid, message, file, line and verbosity.",
    detail="{value}",
    readers="The last one counts.",
    ours="The last one counts; records keep all.",
)
TIME_DECREASES = Rule(
    "FXL0203",
    INFO,
    "a log is older than the one before it",
    "docs, Writing logs",
    "Logs come in the order of their arrival, not of their times.",
    detail="the one before it has the time {value}",
    readers="The archivist sorts by time.",
    ours="The order of the file is kept.",
)
TAG_NOT_NAMED = Rule(
    "FXL0204",
    INFO,
    "a tag that no manifest names",
    "docs, Logs",
    "A manifest names a tag before the first log that has it.",
    detail="tag {value}",
    readers="The moniker is UNKNOWN, the url empty.",
    ours="The same. Reported once a tag.",
)
MANIFEST_INCOMPLETE = Rule(
    "FXL0205",
    WARNING,
    "a control record of an unknown kind",
    "docs, Logs",
    "A control record has a moniker and a url, or rolled_out.",
    readers="Consumed and ignored.",
    ours="Kept as a record, otherwise ignored.",
)
LOGS_LOST = Rule(
    "FXL0206",
    INFO,
    "logs were dropped, or rolled out of a buffer",
    "docs, Logs",
    "A writer that drops logs says how many.",
    detail="{word} before it",
    readers="Shown beside the next log.",
    ours="Counted.",
)
ATTRIBUTION_NOT_LAST = Rule(
    "FXL0207",
    INFO,
    "attribution that is not at the end of its record",
    "docs, Logs",
    "The archivist appends $__moniker, $__url and $__rolled_out at the end.",
    detail="{value}",
    readers="Newer ones count them anywhere and cut as many arguments off the end.",
    ours="An ordinary key.",
)
SUFFIX_TRUNCATED = Rule(
    "FXL0210",
    DATA_LOSS,
    "a suffix runs past the end",
    "docs, Logs",
    "The texts of a suffix end within the file.",
    detail="it would take {value} bytes",
    readers="The message parser: OutOfBounds; the Rust reader panics.",
    ours="The bytes behind the record are read as records.",
    remedy="Without -o suffix=yes the file is read as plain records.",
)

# --- limits of the FIDL reference API, on request ---

MANY_ARGUMENTS = Rule(
    "FXL0301",
    WARNING,
    "more arguments than the FIDL record type holds",
    "docs, Logs",
    "The FIDL record type has at most 15 arguments.",
    detail="{value} arguments",
    readers="Not enforced on the wire.",
    ours="Reported with -o fidl_limits=yes.",
)
LONG_NAME = Rule(
    "FXL0302",
    WARNING,
    "a name longer than the FIDL record type holds",
    "docs, Logs",
    "The FIDL record type has names of at most 256 bytes.",
    detail="a name of {value} bytes",
    readers="Not enforced on the wire.",
    ours="Reported with -o fidl_limits=yes.",
)

# --- refusals of writers ---

NO_SUCH_NAME, INVALID_FIELDS, WRONG_TYPE, OUT_OF_RANGE = writing("FXL", "docs, Records")[:4]
STRING_TOO_LONG = Rule(
    "FXL0405",
    ERROR,
    "a string is too long",
    "logs-encoding, Primitives",
    "A string has at most 32,767 bytes; a tag of a legacy packet has 63.",
    readers="The Rust encoder writes a corrupt reference.",
    ours="Refused; nothing is written.",
    remedy='Shorten it; of a Python writer, on_too_large="cut" cuts the message.',
)
TOO_MANY = Rule(
    "FXL0406",
    ERROR,
    "too many of something",
    "docs, Legacy log packets",
    "A legacy packet has at most 5 tags.",
    readers="The reader refuses it: TooManyTags.",
    ours="Refused; nothing is written.",
    remedy="Leave some of them out.",
)
TOO_LARGE = Rule(
    "FXL0407",
    ERROR,
    "a record is too large",
    "logs-encoding, Validation",
    "A record has at most 4,095 words, a legacy packet 32,768 bytes, an entry of a ring 65,536.",
    readers="The Rust encoder writes a corrupt size.",
    ours="Refused; nothing is written.",
    remedy='Shorten it; of a Python writer, on_too_large="cut" cuts the message.',
)
RAW_ONLY = Rule(
    "FXL0408",
    ERROR,
    "a record that has no bytes but its raw ones",
    "docs, Records",
    "A record that could not be decoded can only be written as it was.",
    ours="Refused; nothing is written.",
    remedy="Leave such records and arguments as they are.",
)
CONTRADICTION = Rule(
    "FXL0409",
    ERROR,
    "fields contradict each other",
    "docs, Records",
    "The fields of a record say one thing.",
    ours="Refused; nothing is written.",
    remedy="Change one of them.",
)
UNSUPPORTED_VALUE = Rule(
    "FXL0410",
    ERROR,
    "a value of a kind that logs do not have",
    "logs-encoding, Argument header",
    "Values are integers of 64 bits, doubles, strings and booleans.",
    ours="Refused; nothing is written.",
    remedy="Give a text instead.",
)

# --- legacy packets ---

PACKET_TOO_SHORT = Rule(
    "FXL0601",
    DATA_LOSS,
    "a packet is too short",
    "docs, Legacy log packets",
    "A packet has at least 33 bytes.",
    detail="{value} bytes",
    readers="ShortRead.",
    ours="The packet is `damaged`.",
)
PACKET_NOT_TERMINATED = Rule(
    "FXL0602",
    DATA_LOSS,
    "a packet does not end in a zero byte",
    "docs, Legacy log packets",
    "The last byte of a packet is zero.",
    readers="NotNullTerminated.",
    ours="The packet is `damaged`.",
)
MANY_TAGS = Rule(
    "FXL0603",
    DATA_LOSS,
    "a packet has too many tags",
    "docs, Legacy log packets",
    "A packet has at most 5 tags.",
    readers="TooManyTags.",
    ours="The packet is `damaged`.",
)
LONG_TAG = Rule(
    "FXL0604",
    DATA_LOSS,
    "a tag is too long",
    "docs, Legacy log packets",
    "A tag has at most 63 bytes.",
    readers="TagTooLong.",
    ours="The packet is `damaged`.",
)
PAST_THE_END = Rule(
    "FXL0605",
    DATA_LOSS,
    "a tag or the message runs past the end of the packet",
    "docs, Legacy log packets",
    "Tags and message end within the packet, the message with a zero byte.",
    readers="OutOfBounds; a tag that ends exactly at the end makes the reference panic.",
    ours="The packet is `damaged`.",
)
SEVERITY_OF_ERAS = Rule(
    "FXL0606",
    INFO,
    "a severity that the eras take differently",
    "docs, Legacy log packets",
    "Today a packet's severity is a byte; in 2022 it was -10 to 3, or a level or verbosity "
    "of today.",
    detail="severity {value}",
    readers="Today it is clamped to a byte; in 2022 named so, or refused: InvalidSeverity.",
    ours="Clamped; with -o severity_era=2022 taken as in 2022.",
)
TRAILING_BYTES = Rule(
    "FXL0607",
    WARNING,
    "bytes behind the message",
    "docs, Legacy log packets",
    "A packet ends with the zero byte of its message.",
    detail="{value} bytes",
    readers="Ignored.",
    ours="Kept (raw), otherwise ignored.",
)
PACKET_NOT_UTF8 = Rule(
    "FXL0608",
    WARNING,
    "a tag or the message is not UTF-8",
    "docs, Legacy log packets",
    "Tags and message are UTF-8.",
    readers="Other bytes become U+FFFD; in 2022 an error.",
    ours="The bytes are kept; text output shows bytes that are not UTF-8 as U+FFFD.",
)
OVER_A_DATAGRAM = Rule(
    "FXL0609",
    WARNING,
    "a packet larger than a datagram",
    "docs, Legacy log packets",
    "A packet has at most 32,768 bytes.",
    detail="{value} bytes",
    readers="A socket would not have carried it.",
    ours="Read all the same.",
)

# --- our container of legacy packets ---

PACKET_TRUNCATED = Rule(
    "FXL0701",
    DATA_LOSS,
    "a packet runs past the end of the file",
    "docs, Logs",
    "The length before a packet ends within the file.",
    ours="The rest of the file is `damaged`.",
    remedy="The writer or the file was cut off, or the length is damaged: then `fxf salvage` "
    "finds the packets behind it.",
)
CONTAINER_HEADER = Rule(
    "FXL0702",
    DATA_LOSS,
    "the header of the container is damaged",
    "docs, Logs",
    "The file begins with the magic, version 1 and four zero bytes.",
    ours="The header is `damaged`; the bytes behind it are read as packets.",
)

# --- rings ---

INVALID_RING = Rule(
    "FXL0801",
    DATA_LOSS,
    "invalid head or tail of the ring",
    "docs, Log rings",
    "Head and tail are multiples of 8, tail is not beyond head, and the bytes between "
    "them fit the ring.",
    detail="{value}",
    readers="BadAlignment, or TooSmall.",
    ours="No entry is read; the ring's bytes are `damaged`.",
)
ENTRY_TOO_SMALL = Rule(
    "FXL0802",
    DATA_LOSS,
    "no room for an entry between tail and head",
    "docs, Log rings",
    "An entry has at least its 16 bytes.",
    readers="TooSmall.",
    ours="The bytes up to the head are `damaged`.",
)
ENTRY_TOO_LONG = Rule(
    "FXL0803",
    DATA_LOSS,
    "an entry runs past the head",
    "docs, Log rings",
    "An entry ends at the head or before it, and has at most 65,536 bytes.",
    detail="a payload of {word} bytes",
    readers="BadLength.",
    ours="The bytes up to the head are `damaged`.",
    remedy="`fxf salvage` finds the entries behind it.",
)
RING_SIZE = Rule(
    "FXL0804",
    WARNING,
    "invalid size of the ring",
    "docs, Log rings",
    "The capacity is a whole number of pages, and at least 65,536 bytes.",
    detail="{value} bytes",
    readers="The ring cannot be created.",
    ours="Read all the same.",
)
ENTRY_WITHOUT_RECORD = Rule(
    "FXL0805",
    DATA_LOSS,
    "the payload of an entry is not a log record",
    "docs, Log rings",
    "The payload of an entry is one log record.",
    detail="{value} bytes",
    readers="The archivist skips it.",
    ours="The payload is kept as bytes.",
)
ENTRY_TRAILING_BYTES = Rule(
    "FXL0806",
    WARNING,
    "bytes behind the record of an entry",
    "docs, Log rings",
    "The payload of an entry is one log record and nothing more.",
    detail="{value} bytes",
    readers="The archivist ignores the tail.",
    ours="Kept (raw), otherwise ignored.",
)
ENTRY_PADDING_NOT_ZERO = Rule(
    "FXL0807",
    WARNING,
    "padding of an entry is not zero",
    "docs, Log rings",
    "An entry is padded to a multiple of 8 bytes.",
    readers="Ignored.",
    ours="Kept (raw), otherwise ignored.",
)
STALE_BYTES = Rule(
    "FXL0808",
    INFO,
    "unused space of the ring holds bytes",
    "docs, Log rings",
    "Only the bytes between tail and head count.",
    detail="{value} bytes",
    readers="Ignored.",
    ours="Kept as `damaged`: remains of earlier entries.",
)

# --- what writers report ---

REDACTED = Rule(
    "FXL0901",
    WARNING,
    "values were redacted",
    "docs, Writing logs",
    "With redact_keys and redact_pattern the output has less than the input, as requested.",
    detail="{value}",
    ours="Values become <redacted>; bytes that were not understood are left out.",
)
NO_ROOM_FOR_ATTRIBUTION = Rule(
    "FXL0902",
    DATA_LOSS,
    "the record has no room for its attribution",
    "docs, Writing logs",
    "A record has at most 4,095 words, its attribution included.",
    detail="{value}",
    ours="The record is written without its attribution.",
    remedy="-o attribution=manifest takes no room in the records.",
)
KEY_NOT_THERE = Rule(
    "FXL0903",
    WARNING,
    "a key to be redacted was not there",
    "docs, Writing logs",
    "Each name in redact_keys is that of a key in the input.",
    detail="{value}",
    ours="There was nothing to redact under that name: it may be misspelt.",
)

RULES = Catalogue.of(globals())
"""All of them, by code."""
REFUSALS = Refusals(NO_SUCH_NAME, INVALID_FIELDS, WRONG_TYPE, OUT_OF_RANGE)
"""What record JSON is refused by."""
