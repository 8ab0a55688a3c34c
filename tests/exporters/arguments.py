"""The arguments of a table's rows, one by one: what the stream of arguments is held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.kit.row_texts import json_double
from fxframework.model.capture import Capture
from fxframework.model.schema import TABLE_CODES

INTEGERS = frozenset({"int32", "int64"})
BITS = frozenset({"uint32", "uint64", "pointer", "koid"})
Decode = Callable[[bytes], str]


class Arguments:
    """The arguments of one table's rows, with names and values as JSON.

    ``decode`` decodes strings; by default, invalid UTF-8 becomes U+FFFD.
    """

    def __init__(self, capture: Capture, table: str, decode: Decode | None = None) -> None:
        self._decode = decode or (lambda data: data.decode("utf-8", "replace"))
        self._pool = capture.strings
        self._texts: dict[int, str] = {}
        parts: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("parent", "name", "type", "int", "uint", "float", "str")
        }
        if "args" in capture.schemas and table in TABLE_CODES:
            self._types = capture.schemas["args"].column("type").values
            for batch in capture.batches("args"):
                mine = batch.array("table") == TABLE_CODES[table]
                for name, some in parts.items():
                    some.append(batch.array(name)[mine])
        empty = np.zeros(0, np.int64)
        whole = {name: np.concatenate(some) if some else empty for name, some in parts.items()}
        order = np.argsort(whole["parent"], kind="stable")
        self._columns = {name: column[order] for name, column in whole.items()}
        self._parents = self._columns["parent"]

    def __len__(self) -> int:
        return int(self._parents.size)

    def of(self, rows: NDArray[np.int64]) -> list[range]:
        """Return for each of these rows the range of its arguments, for ``members``."""
        first = np.searchsorted(self._parents, rows, "left").tolist()
        last = np.searchsorted(self._parents, rows, "right").tolist()
        return [range(start, stop) for start, stop in zip(first, last, strict=True)]

    def members(self, places: range) -> list[tuple[str, str]]:
        """Return names and values of arguments as JSON."""
        names = self._columns["name"]
        return [(self._text(int(names[at])), self._value(at)) for at in places]

    def _text(self, code: int) -> str:
        """Return a pooled string as JSON."""
        text = self._texts.get(code)
        if text is None:
            text = orjson.dumps(self._decode(self._bytes(code))).decode()
            self._texts[code] = text
        return text

    def _bytes(self, code: int) -> bytes:
        return self._pool.bytes_of(code) if code >= 0 else b""

    def _value(self, at: int) -> str:
        columns = self._columns
        kind = self._types.get(int(columns["type"][at]), "")
        code = int(columns["str"][at])
        if code >= 0:  # a string or bytes, whatever the type
            return self._text(code) if kind == "string" else f'"{self._bytes(code).hex()}"'
        if kind in INTEGERS:
            return str(int(columns["int"][at]))
        if kind in BITS:
            return str(int(columns["uint"][at]))
        if kind == "bool":
            return "true" if columns["int"][at] else "false"
        if kind == "double":
            return json_double(float(columns["float"][at]))
        return "null"
