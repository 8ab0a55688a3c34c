"""Parameters of the kernel ``jsonlines.py`` for a layout, derived from ``format.py``."""

from __future__ import annotations

import functools

import numpy as np
import orjson
from numpy.typing import NDArray

from fx_inspect import format as wire
from fx_inspect.format import BlockType
from fx_inspect.read.jsonlines import KINDS, TEXTS, JsonLines
from fx_inspect.read.scan import Scan
from fxframework.io.words import U64_MAX
from fxframework.kernels.buffers import view

__all__ = ["block_lines"]

U8 = NDArray[np.uint8]
SHOWN = {BlockType.INT_VALUE: "signed", BlockType.DOUBLE_VALUE: "real"}
"""Form of the value of a type, if it is not a natural number."""
NAMES = {
    (BlockType.BOOL_VALUE, "value"): {0: False, 1: True},
    (BlockType.BUFFER_VALUE, "format"): wire.BUFFER_FORMATS,
    (BlockType.LINK_VALUE, "disposition"): wire.DISPOSITIONS,
}
"""Names of a field's values; the kernel gets a literal for each value."""
NAMED = 16
FIELD = 5
"""Numbers per field."""
HOLDING = {BlockType.EXTENT, BlockType.NAME, BlockType.STRING_REFERENCE}
"""Types with bytes from the second word on."""


def block_lines(data: U8, layout: str, scan: Scan, most: int) -> JsonLines:
    """Return the kernel at the beginning of a file of this layout; ``most`` is in bytes."""
    whole = data[: data.size // wire.UNIT * wire.UNIT]
    words, doubles = whole.view("<i8"), whole.view("<f8")
    file = view(data, np.uint8), view(words, np.int64), view(doubles, np.float64)
    return JsonLines(scan, file, *_known(layout), most)


@functools.cache
def _known(layout: str) -> tuple[list[memoryview], list[bytes]]:
    """Return the arrays and the literals of ``JsonLines``."""
    from fx_inspect.read.records import NUMBERS, RESERVED_MASKS

    types = wire.LAYOUTS[layout]
    kind = wire.HEADS[layout].type
    texts: list[bytes] = []
    masks: list[int] = []
    bounds = [0]
    fields: list[int] = []

    def literal(text: bytes) -> int:
        texts.append(text)
        return len(TEXTS) + len(texts) - 1

    for type in types:
        known = [wire.ORDER.mask | kind.mask, U64_MAX if type in HOLDING else 0]
        prefix = "" if layout == "new" else f',"layout":"{layout}"'
        text = f',"type":"{wire.TYPE_NAMES[type]}","order":'
        fields += [
            literal(text.encode()),
            0,
            wire.ORDER.low,
            wire.ORDER.limit,
            KINDS.index("natural"),
        ]
        for word, low, limit, name in NUMBERS[layout, type]:
            known[word] |= limit << low
            fields += [literal(f'{prefix},"{name}":'.encode()), word, low, limit]
            prefix = ""
            names = NAMES.get((BlockType(type), name))
            if names is None:
                shown = SHOWN.get(BlockType(type), "natural") if name == "value" else "natural"
                fields.append(KINDS.index(shown))
            else:
                fields.append(len(TEXTS) + len(texts))
                for value in range(NAMED):
                    literal(orjson.dumps(names.get(value, value)))
        masks += [*RESERVED_MASKS[layout, type], *(U64_MAX & ~word for word in known)]
        bounds.append(len(fields) // FIELD)
    arrays = (np.array(each, np.uint64).view("<i8") for each in (masks, bounds, fields))
    return [array.data for array in arrays], texts
