"""JSON documents are the same, whether an array is given whole or item by item."""

from __future__ import annotations

from typing import Any

import orjson

from fxframework.cli import render
from fxframework.kit.json_fields import encodable

from ..cases import cases


@cases("count", [0, 1, render.ITEMS - 1, render.ITEMS, 2 * render.ITEMS + 1])
@cases("item", [7, "two\nlines", [], {}, {"a": [1, {"b": None}], "c\udcff": "\udcff"}])
def test_items_of_an_iterator_are_an_array(count: int, item: Any) -> None:
    body = {"first": {"x": []}, "items": [item] * count, "last": "é"}
    document = encodable({"command": "test", **body})
    whole = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    for items in (body["items"], iter(body["items"])):
        pieces = list(render._json_pieces({"command": "test", **body, "items": items}))
        assert b"".join(pieces) == whole
