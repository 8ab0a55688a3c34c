"""Numbers that the kernels share: types of blocks and of properties."""

from fx_inspect.format import BlockType

# Types of blocks, as layout.BlockType has them, and what other records have in their place.
(
    FREE, RESERVED, HEADER, NODE, INT, UINT, DOUBLE, BUFFER, EXTENT, NAME, TOMBSTONE, ARRAY, LINK,
    BOOL, STRING,
) = (int(type) for type in BlockType)  # fmt: skip
UNKNOWN = 253
PADDING = 254
DAMAGED = 255

# Types of properties, as tables.TYPES has them.
IS_INT = 1
IS_UINT = 2
IS_DOUBLE = 3
IS_BOOL = 4
IS_STRING = 5
IS_BYTES = 6
IS_INTS = 7
IS_UINTS = 8
IS_DOUBLES = 9
IS_STRINGS = 10

# Formats of buffers.
UTF8 = 0
BYTES = 1
STRING_REFERENCE = 2

# Formats of arrays, and slots of the smallest histogram of each.
FLAT = 0
LINEAR = 1
EXPONENTIAL = 2
LINEAR_SLOTS = 5
EXPONENTIAL_SLOTS = 6

# Dispositions of links.
CHILD = 0
INLINE = 1
