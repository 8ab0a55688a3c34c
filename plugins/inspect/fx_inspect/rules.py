"""The catalogue of findings of Inspect VMOs, from which docs and `fxf explain` are made.

The second value of a rule is the severity of its findings.

"Inspect VMO format" is the public document on version 2; docs/formats/inspect.md corrects it.
"""

from __future__ import annotations

from fxframework.errors import Catalogue, Refusals, Rule, Severity
from fxframework.wire.rules import writing

INFO = Severity.INFO
WARNING = Severity.WARNING
DATA_LOSS = Severity.DATA_LOSS
ERROR = Severity.ERROR

BOTH = "Rust: {} C++: {}"
DROPS = "C++ drops the value silently."
REFUSES = "Rust refuses the whole file ({}). "
REFUSED = "Refused; nothing is written."
CUT = "The file was cut off; everything before that is sound."

# --- the header, and where blocks begin ---

NO_HEADER = Rule(
    "FXI0001",
    DATA_LOSS,
    "the file does not begin with a header",
    "Inspect VMO format, HEADER",
    "The block of index 0 is of type HEADER.",
    readers=BOTH.format(
        "MissingHeaderOrLocked.", "an error, or an empty root where only the type is wrong."
    ),
    ours="The blocks are read in the layout of versions 1 and 2.",
    remedy="`fxf cat --records` shows what is there.",
)
OTHER_MAGIC = Rule(
    "FXI0002",
    WARNING,
    "the header has another magic",
    "Inspect VMO format, HEADER",
    'Bytes 4 to 7 of the header are "INSP".',
    detail="0x{word:08x}",
    readers=BOTH.format("MissingHeaderOrLocked.", "ZX_ERR_INTERNAL.")
    + ' An early writer of version 0 may have left "PSNI".',
    ours="Read anyway.",
)
UNKNOWN_VERSION = Rule(
    "FXI0003",
    WARNING,
    "unknown version",
    "Inspect VMO format, HEADER",
    "The version is 0 in the old layout, and up to 2 in the new one.",
    detail="version {value}",
    readers=BOTH.format("MissingHeaderOrLocked.", "ZX_ERR_INTERNAL."),
    ours="Read in the layout that the first bytes show.",
)
VERSION_ZERO_IN_NEW_LAYOUT = Rule(
    "FXI0004",
    INFO,
    "version 0 in the layout of versions 1 and 2",
    "docs, Inspect: What is read",
    "Version 0 has its own layout.",
    readers="Read as version 1 or 2; tests of the C++ reader have such files.",
    ours="The bytes decide the layout, not the version.",
)
LOCKED = Rule(
    "FXI0005",
    WARNING,
    "the file was copied during a change",
    "Inspect VMO format, reader algorithm",
    "The generation of a copy at rest is even.",
    readers=BOTH.format("MissingHeaderOrLocked.", "does not look, offline."),
    ours="Read anyway; values that were being changed may be inconsistent.",
    remedy="Take the copy again, by the protocol that `fxf watch` follows.",
)
FROZEN_VMO = Rule(
    "FXI0006",
    INFO,
    "the VMO was frozen",
    "docs, Writing Inspect",
    "A frozen VMO has the generation 0xFFFFFFFFFFFFFFFE.",
    readers="Read without checking the generation again.",
    ours="The same.",
)
NO_SIZE = Rule(
    "FXI0007",
    WARNING,
    "invalid size in the header",
    "docs, Inspect: What is read",
    "The size holds the header, is a multiple of 16, and at most 128 MiB.",
    detail="{value} bytes",
    readers="Ignored in a file; of a live VMO, this many bytes would be copied.",
    ours="Ignored; the size of the file counts.",
)
SHORTER_THAN_ITS_SIZE = Rule(
    "FXI0008",
    DATA_LOSS,
    "the file is shorter than its header says",
    "docs, Inspect: What is read",
    "A file has as many bytes as its header says.",
    detail="the header says {value} bytes",
    readers="Ignored in a file.",
    ours="The bytes that exist are read.",
    remedy=CUT,
)
LONGER_THAN_ITS_SIZE = Rule(
    "FXI0009",
    INFO,
    "the file is longer than its header says",
    "docs, Inspect: What is read",
    "A VMO may be larger than its heap.",
    detail="the header says {value} bytes",
    readers="All of a file is scanned.",
    ours="The same.",
)
LARGE_BLOCK = Rule(
    "FXI0010",
    INFO,
    "a block larger than the reference writes",
    "docs, Inspect: Notes",
    "The reference's blocks have at most 2048 bytes; larger ones are legal.",
    detail="{value} bytes",
    readers="Read, up to order 15 in Rust, and up to order 11 in C++.",
    ours="Read.",
)
BLOCK_PAST_THE_END = Rule(
    "FXI0011",
    DATA_LOSS,
    "a block runs past the end of the file",
    "Inspect VMO format, block header",
    "A block ends within the file.",
    detail="order {value}",
    readers="The scan stops there silently.",
    ours="The rest of the file is `damaged`.",
    remedy=CUT,
)
NO_BLOCK = Rule(
    "FXI0012",
    DATA_LOSS,
    "no block can begin here",
    "Inspect VMO format, block header",
    "The order of a block fits the file.",
    detail="order {value}",
    readers="The scan stops there silently.",
    ours="The bytes up to the next place from which 32 blocks follow, or all up to the end, are "
    "`damaged`.",
)
TRAILING_BYTES = Rule(
    "FXI0013",
    DATA_LOSS,
    "bytes after the last block",
    "Inspect VMO format, block header",
    "The size of a file is a multiple of 16 bytes.",
    detail="{value} bytes",
    readers="Ignored.",
    ours="They are `damaged`.",
    remedy=CUT,
)
BLOCK_OVER_LIMIT = Rule(
    "FXI0014",
    DATA_LOSS,
    "the block is over the limit",
    "docs, Limits",
    "-o max_record=BYTES bounds the size of one block.",
    detail="{value} bytes",
    readers="The format itself allows 512 KiB.",
    ours="The block is `damaged`.",
    remedy="Raise it with -o max_record=BYTES.",
)
SECOND_HEADER = Rule(
    "FXI0015",
    WARNING,
    "a second header",
    "Inspect VMO format, HEADER",
    "Only the block of index 0 is of type HEADER.",
    readers="Ignored.",
    ours="Kept as a block, otherwise ignored.",
)

# --- blocks ---

UNKNOWN_TYPE = Rule(
    "FXI0101",
    WARNING,
    "unknown block type",
    "Inspect VMO format, types",
    "Types are 0 to 14; in version 0 they are 0 to 12.",
    detail="type {value}",
    readers=BOTH.format(
        "InvalidBlockTypeNumber, and the whole read fails.", "the block is skipped."
    ),
    ours="Skipped by its size, and kept as `unknown`.",
)
RESERVED_BLOCK = Rule(
    "FXI0102",
    INFO,
    "reserved block",
    "Inspect VMO format, RESERVED",
    "A block is reserved only while it is being made.",
    readers="Ignored.",
    ours="Ignored.",
)
INVALID_BOOL = Rule(
    "FXI0103",
    INFO,
    "bool that is neither 0 nor 1",
    "docs, Inspect: What is read",
    "Writers write 0 or 1.",
    detail="0x{word:x}",
    readers="Anything but 0 is true.",
    ours="Also true; the record keeps the word (raw).",
)

# --- the tree ---

NAME_WITHOUT_BLOCK = Rule(
    "FXI0201",
    DATA_LOSS,
    "name index without a block",
    "Inspect VMO format, VALUE",
    "The name of a value is the index of a block.",
    detail="index {value}",
    readers=REFUSES.format("ParseName") + DROPS,
    ours="The value is dropped, with everything below it.",
)
NAME_OF_ANOTHER_TYPE = Rule(
    "FXI0202",
    DATA_LOSS,
    "name index of another block type",
    "Inspect VMO format, VALUE",
    "The name of a value is a NAME, or in version 2 a STRING_REFERENCE.",
    detail="index {value}",
    readers=REFUSES.format("ParseName") + DROPS,
    ours="The value is dropped, with everything below it.",
)
NAME_PAST_ITS_BLOCK = Rule(
    "FXI0203",
    DATA_LOSS,
    "name longer than its block",
    "Inspect VMO format, NAME",
    "The length of a NAME is within its block.",
    detail="{value} bytes",
    readers="Rust reads on into the next block. " + DROPS,
    ours="The value is dropped, with everything below it.",
)
NOT_UTF8 = Rule(
    "FXI0204",
    WARNING,
    "name or string that is not UTF-8",
    "Inspect VMO format, NAME and STRING_REFERENCE",
    "Names and strings are UTF-8.",
    readers="Rust refuses the whole file for a NAME (ParseName), and replaces invalid "
    "bytes of strings by U+FFFD. C++ passes the bytes through.",
    ours="The bytes are kept; in text, invalid bytes become U+FFFD.",
)
CHAIN_WITHOUT_EXTENT = Rule(
    "FXI0205",
    DATA_LOSS,
    "chain of extents with a block that is not an EXTENT",
    "Inspect VMO format, EXTENT",
    "The next extent is the index of an EXTENT.",
    detail="index {value}",
    readers="Rust refuses the whole file (GetBlock) for an index outside of it, and reads "
    "any block as an extent. C++ cuts the value there.",
    ours="The value is cut there.",
)
CHAIN_CYCLE = Rule(
    "FXI0206",
    DATA_LOSS,
    "chain of extents that is a ring",
    "Inspect VMO format, EXTENT",
    "A chain has each extent once.",
    detail="index {value}",
    readers="Both repeat it up to the declared length, which may be 4 GiB; C++ "
    "stops at the file's size, but not for string references.",
    ours="The value is cut there.",
)
CHAIN_TOO_SHORT = Rule(
    "FXI0207",
    DATA_LOSS,
    "chain of extents that ends early",
    "Inspect VMO format, EXTENT",
    "The extents have as many bytes as the size in the value.",
    detail="{value} bytes are missing",
    readers="Rust pads with zero bytes up to the declared length. C++ cuts the value.",
    ours="The value is cut there.",
)
CHAINS_OVER_THE_FILE = Rule(
    "FXI0208",
    DATA_LOSS,
    "chains of extents with more bytes than the file",
    "Inspect VMO format, EXTENT",
    "Each extent belongs to one value, so that all values fit the file.",
    detail="{value} bytes are left out",
    readers="Not bounded.",
    ours="The value is cut where the sum of all, in the order of the file, reaches the "
    "file's size.",
)
UNKNOWN_FORMAT = Rule(
    "FXI0209",
    DATA_LOSS,
    "unknown buffer format",
    "Inspect VMO format, BUFFER_VALUE; docs, Inspect: What is read",
    "Formats are 0 (UTF-8), 1 (bytes) and, not in the document, 2 (string reference).",
    detail="format {value}",
    readers=REFUSES.format("InvalidFlags") + DROPS,
    ours="The value is dropped.",
)
NO_STRING = Rule(
    "FXI0210",
    DATA_LOSS,
    "string index without a STRING_REFERENCE",
    "docs, Inspect: What is read",
    "A buffer of format 2 has the index of a STRING_REFERENCE.",
    detail="index {value}",
    readers="Rust refuses the whole file. " + DROPS,
    ours="The value is dropped.",
)
UNKNOWN_ENTRIES = Rule(
    "FXI0211",
    DATA_LOSS,
    "invalid entry type of an array",
    "Inspect VMO format, ARRAY_VALUE",
    "Entries are of type 4, 5, 6 or 14.",
    detail="type {value}",
    readers=REFUSES.format("InvalidArrayType or InvalidBlockTypeNumber") + DROPS,
    ours="The value is dropped.",
)
TOO_MANY_SLOTS = Rule(
    "FXI0212",
    DATA_LOSS,
    "array with more slots than fit its block",
    "Inspect VMO format, ARRAY_VALUE",
    "The slots are within the block.",
    detail="{value} slots",
    readers=REFUSES.format("AttemptedToReadTooManyArraySlots")
    + "C++ drops the value silently; its check lets one slot too many pass.",
    ours="The value is dropped.",
)
EMPTY_HISTOGRAM = Rule(
    "FXI0213",
    DATA_LOSS,
    "histogram without slots",
    "Inspect VMO format, ARRAY_VALUE; docs, Inspect: From blocks to tables",
    "A histogram has its parameters and a bucket between under- and overflow.",
    readers=REFUSES.format("MissingHistogramElements")
    + "The validator accepts it. C++ drops any array without slots.",
    ours="The value is dropped, as is an array without slots of an unknown format; a flat "
    "array may be empty.",
)
FEW_SLOTS = Rule(
    "FXI0214",
    WARNING,
    "histogram with too few slots",
    "docs, Inspect: From blocks to tables",
    "A linear histogram has at least 5 slots, an exponential one 6.",
    detail="{value} slots",
    readers=REFUSES.format("MissingHistogramElements") + "C++ does not look.",
    ours="Kept as an array of that format.",
)
UNKNOWN_ARRAY_FORMAT = Rule(
    "FXI0215",
    WARNING,
    "unknown array format",
    "Inspect VMO format, ARRAY_VALUE",
    "Formats are 0 (flat), 1 (linear) and 2 (exponential).",
    detail="format {value}",
    readers="Rust panics. C++ shows it flat.",
    ours="Read as flat.",
)
SLOT_WITHOUT_STRING = Rule(
    "FXI0216",
    DATA_LOSS,
    "slot without a STRING_REFERENCE",
    "docs, Inspect: What is read",
    "A slot of an array of strings is 0, for an empty one, or the index of a STRING_REFERENCE.",
    detail="slot {value}",
    readers="Rust refuses the whole file. " + DROPS,
    ours="The slot is an empty string; reported once for each array.",
)
UNKNOWN_DISPOSITION = Rule(
    "FXI0217",
    WARNING,
    "unknown link disposition",
    "Inspect VMO format, LINK_VALUE",
    "A disposition is 0 (child) or 1 (inline).",
    detail="disposition {value}",
    readers=REFUSES.format("InvalidFlags") + "C++ keeps it, and calls it invalid later.",
    ours="Kept, and never followed.",
)
NO_CONTENT = Rule(
    "FXI0218",
    DATA_LOSS,
    "link without a valid content",
    "Inspect VMO format, LINK_VALUE",
    "The content of a link is the index of a NAME or a STRING_REFERENCE.",
    detail="index {value}",
    readers="Rust refuses the whole file. " + DROPS,
    ours="The link is dropped.",
)
ORPHAN = Rule(
    "FXI0221",
    DATA_LOSS,
    "value without a parent node",
    "Inspect VMO format, VALUE",
    "The parent of a value is 0, for the root, or the index of a NODE_VALUE.",
    detail="the parent has index {value}",
    readers="Dropped silently.",
    ours="The value is not in the tree, and neither is anything below it.",
    remedy="`fxf cat --records` shows it.",
)
CYCLE = Rule(
    "FXI0222",
    DATA_LOSS,
    "nodes in a cycle",
    "Inspect VMO format, VALUE",
    "The parents of every node lead to the root.",
    readers="Dropped silently; a node that is its own parent may fail in Rust "
    "(ParentIndexNotFound).",
    ours="They are not in the tree, and neither is anything below them. Reported at the "
    "first node of the cycle.",
    remedy="`fxf cat --records` shows them.",
)
DELETED_WITH_VALUES = Rule(
    "FXI0223",
    INFO,
    "deleted node that still has values",
    "Inspect VMO format, TOMBSTONE",
    "A node that is deleted before its values is a TOMBSTONE until they are gone.",
    readers="It is not in the tree, and neither is anything below it.",
    ours="The same.",
)
SAME_CHILDREN = Rule(
    "FXI0224",
    INFO,
    "children of the same name",
    "docs, Inspect: Where readers disagree",
    "The format allows it.",
    readers="Both are kept, in the order of their blocks; JSON then has one key twice.",
    ours="Both are kept.",
)
SAME_PROPERTIES = Rule(
    "FXI0225",
    INFO,
    "properties of the same name",
    "docs, Inspect: Where readers disagree",
    "The format allows it.",
    readers="Both are kept, in the order of their blocks; JSON then has one key twice.",
    ours="Both are kept.",
)
STRING_OVER_LIMIT = Rule(
    "FXI0226",
    DATA_LOSS,
    "the string is over the limit",
    "docs, Limits",
    "-o max_string=BYTES bounds the strings that tables keep.",
    detail="{value} bytes",
    ours="Cut there.",
    remedy="Raise it with -o max_string=BYTES.",
)

# --- what only the inspect validator looks at ---

CHAIN_TOO_LONG = Rule(
    "FXI0227",
    WARNING,
    "a chain of extents that goes on behind the text",
    "Inspect VMO format, EXTENT",
    "The last extent of a chain has the next index 0, and so has a block whose text needs "
    "no extent.",
    detail="index {value}",
    readers="Ignored: readers stop at the declared length.",
    ours="Ignored.",
    remedy="The length is too small, or the next index is wrong.",
)
RESERVED_BITS_SET = Rule(
    "FXI0301",
    WARNING,
    "reserved bits are set",
    "Inspect VMO format; docs, Inspect: Where readers disagree",
    "Reserved bits are zero.",
    detail="0x{word:016x}",
    readers="Ignored; the validator fails.",
    ours="Kept (raw), otherwise ignored.",
)
NAME_USED_TWICE = Rule(
    "FXI0302",
    WARNING,
    "NAME used more than once",
    "docs, Inspect: Where readers disagree",
    "Each NAME belongs to one value; only a STRING_REFERENCE is shared.",
    readers="Ignored; the validator fails.",
    ours="Each value has the name.",
)
EXTENT_USED_TWICE = Rule(
    "FXI0303",
    WARNING,
    "EXTENT used more than once",
    "docs, Inspect: Where readers disagree",
    "Each EXTENT belongs to one chain.",
    readers="Ignored; the validator fails.",
    ours="Each chain has its bytes, as far as all together fit the file.",
)
NODE_COUNT = Rule(
    "FXI0304",
    INFO,
    "wrong reference count of a node",
    "docs, Inspect: What is read",
    "A node counts the values that have it as parent. Readers need no counts.",
    detail="it is {value}",
    readers="Ignored.",
    ours="Ignored.",
)
STRING_COUNT = Rule(
    "FXI0305",
    INFO,
    "wrong reference count of a string",
    "docs, Inspect: What is read",
    "A string counts the names, values, slots and links that refer to it. Readers need no counts.",
    detail="it should be {value}",
    readers="Ignored.",
    ours="Ignored.",
)
NOT_USED = Rule(
    "FXI0306",
    INFO,
    "unused block",
    "docs, Inspect: Where readers disagree",
    "Each NAME, STRING_REFERENCE and EXTENT is used.",
    readers="Ignored; the validator counts it as not used.",
    ours="Ignored.",
)
FREE_LIST = Rule(
    "FXI0307",
    INFO,
    "a list of free blocks goes on with another block",
    "Inspect VMO format, FREE",
    "The next index of a FREE block is 0 or the index of a FREE block of the same order.",
    detail="index {value}",
    readers="Ignored; a writer that goes on with the VMO would overwrite that block.",
    ours="Ignored.",
)

# --- refusals of writers ---

NO_SUCH_NAME, INVALID_FIELDS, WRONG_TYPE, OUT_OF_RANGE = writing("FXI", "docs, Records")[:4]
STRING_TOO_LONG = Rule(
    "FXI0405",
    ERROR,
    "name or string too long",
    "docs, Inspect: Notes",
    "A NAME has at most 2040 bytes, and must fit its block; a string 2^32-1.",
    readers="The Rust writer cuts a name, and strips too much of a name that is not ASCII.",
    ours=REFUSED,
    remedy="Shorten it; version 2 has room for longer names.",
)
TOO_MANY = Rule(
    "FXI0406",
    ERROR,
    "too many slots",
    "docs, Inspect: Notes",
    "An array has at most 254 numbers or 255 strings.",
    readers="The Rust writer cuts the count of a larger array of strings to 8 bits, in silence.",
    ours=REFUSED,
    remedy="Make several arrays of it.",
)
TOO_LARGE = Rule(
    "FXI0407",
    ERROR,
    "block too large",
    "docs, Inspect: Notes",
    "The heap's blocks have at most 2048 bytes; the contents of a record fit its order.",
    readers="Rust: BlockSizeTooBig. C++ does nothing.",
    ours=REFUSED,
    remedy="Give a larger order, or less to hold.",
)
RAW_ONLY = Rule(
    "FXI0408",
    ERROR,
    "record without its raw bytes",
    "docs, Records",
    "A record that could not be decoded can only be written as it was.",
    ours=REFUSED,
    remedy="Leave such records as they are.",
)
CONTRADICTION = Rule(
    "FXI0409",
    ERROR,
    "fields contradict each other",
    "docs, Records",
    "The fields of a record agree; blocks follow each other without gaps.",
    ours=REFUSED,
    remedy="Change one of them.",
)
UNSUPPORTED_VALUE = Rule(
    "FXI0410",
    ERROR,
    "value of a kind that the version lacks",
    "docs, Inspect: What is read",
    "Version 0 has no bool; arrays of strings came with version 2.",
    ours=REFUSED,
    remedy="Write version 2.",
)
INDEX_OUT_OF_RANGE = Rule(
    "FXI0411",
    ERROR,
    "index out of range of its field",
    "docs, Inspect: Notes",
    "Indexes have 24 bits, in version 0 28; that of a link's content has 20: only the "
    "first 16 MiB.",
    readers="The setters do not mask it: a larger one spills into reserved bits.",
    ours=REFUSED,
    remedy="Make links before the VMO grows over 16 MiB, or keep it below.",
)
INVALID_MOVE = Rule(
    "FXI0412",
    ERROR,
    "node cannot be moved there",
    "docs, Writing Inspect",
    "The root cannot be moved, and no node can be moved to itself or below itself.",
    readers="Rust: AdoptAncestor.",
    ours=REFUSED,
    remedy="Choose another parent.",
)
TRANSACTION_STATE = Rule(
    "FXI0413",
    ERROR,
    "no transaction is open, or one still is",
    "docs, Writing Inspect",
    "A transaction that was begun is ended once; nothing is copied in between.",
    readers="An error in debug builds.",
    ours=REFUSED,
    remedy="Use `with`, which ends each transaction.",
)
INVALID_VMO_SIZE = Rule(
    "FXI0414",
    ERROR,
    "invalid size for a VMO",
    "docs, Inspect: Notes",
    "A VMO has at least 4096 bytes and at most 128 MiB.",
    ours=REFUSED,
    remedy="Give a size of that range; Inspect rounds it up to pages.",
)

# --- live VMOs ---

NO_CONSISTENT_SNAPSHOT = Rule(
    "FXI0501",
    ERROR,
    "no consistent snapshot",
    "Inspect VMO format, reader algorithm; docs, Writing Inspect",
    "The generation is even and the same before and after copying.",
    readers="Rust gives up after 1025 attempts (InconsistentSnapshot), C++ after 1024.",
    ours="Copying ends after the given number of attempts.",
    remedy="Try again, allow more attempts, or wait between them.",
)
NO_VMO = Rule(
    "FXI0502",
    ERROR,
    "the memory holds no Inspect VMO",
    "Inspect VMO format, HEADER",
    "The header has its type, its magic, and a version up to 2.",
    readers="Rust tries again, and reports InconsistentSnapshot. C++: ZX_ERR_INTERNAL.",
    ours="Refused at once.",
    remedy="Give the memory, or the file, that a component's Inspect writes to.",
)
MEMORY_TOO_SMALL = Rule(
    "FXI0503",
    ERROR,
    "memory too small, or invalid size in its header",
    "docs, Writing Inspect",
    "The size in the header holds the header, and is within the memory.",
    readers="C++: OUT_OF_RANGE below 32 bytes.",
    ours="Refused at once.",
    remedy="Give the whole of the memory.",
)

# --- links ---

LINK_NOT_FOUND = Rule(
    "FXI0601",
    DATA_LOSS,
    "the tree of a link was not found",
    "Inspect VMO format, LINK_VALUE; docs, Inspect: From blocks to tables",
    "The content of a link is the name of an available tree.",
    detail="its content is {value!r}",
    readers="LinkNotFound. Rust uses each tree once, C++ for every link to it.",
    ours="The link stays, with the state `not found`. A tree is used for every link to it.",
    remedy="Put the file of the tree into the folder of -o links=FOLDER.",
)
LINK_UNREADABLE = Rule(
    "FXI0602",
    DATA_LOSS,
    "the tree of a link cannot be read",
    "docs, Inspect: From blocks to tables",
    "A link leads to an Inspect VMO.",
    detail="its content is {value!r}",
    readers="LinkParseFailure.",
    ours="The link stays, with the state `not readable`.",
    remedy="`fxf verify` of that file says why.",
)
LINK_CYCLE = Rule(
    "FXI0603",
    DATA_LOSS,
    "link to a tree that contains it",
    "docs, Inspect: From blocks to tables",
    "Links do not form a cycle.",
    detail="its content is {value!r}",
    readers="Not bounded in C++; in Rust the second link is LinkNotFound.",
    ours="The link stays, with the state `cycle`.",
)
LINKS_TOO_DEEP = Rule(
    "FXI0604",
    DATA_LOSS,
    "links nested deeper than the limit",
    "docs, Inspect: From blocks to tables",
    "-o link_depth=N limits how many links are followed one after another.",
    detail="its content is {value!r}",
    readers="Not bounded.",
    ours="The link stays, with the state `too deep`.",
    remedy="Raise it with -o link_depth=N.",
)
LINKS_NOT_FOLLOWED = Rule(
    "FXI0605",
    INFO,
    "links were not followed",
    "docs, Inspect: From blocks to tables",
    "A file holds only the names of the trees of its links.",
    detail="{value} links",
    readers="LinkNeverExpanded.",
    ours="The links stay, with the state `not expanded`. Reported once.",
    remedy="Give the folder that has the trees' files with -o links=FOLDER.",
)
LINKED_TREE_DAMAGED = Rule(
    "FXI0606",
    DATA_LOSS,
    "the tree of a link has lost data",
    "docs, Inspect: From blocks to tables",
    "The tree of a link can be read in full.",
    detail="its content is {value!r}",
    readers="As of any file: Rust refuses the tree (LinkParseFailure), C++ drops values silently.",
    ours="The sound parts of the tree are joined.",
    remedy="`fxf verify` of that file lists the losses.",
)

# --- what writers report ---

VMO_FULL = Rule(
    "FXI0901",
    DATA_LOSS,
    "the VMO is full",
    "docs, Writing Inspect",
    "Values that do not fit are left out, and the writer goes on.",
    readers="The same; the failed allocations are counted.",
    ours="The same, in `stats()`. Salvage, whose VMO has at most 128 MiB, reports their number.",
    remedy="Give it a greater maximum size.",
)

RULES = Catalogue.of(globals())
"""All of them, by code."""
REFUSALS = Refusals(NO_SUCH_NAME, INVALID_FIELDS, WRONG_TYPE, OUT_OF_RANGE)
"""What record JSON is refused by."""
