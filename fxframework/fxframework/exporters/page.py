"""Pages: one HTML file from a template in ``pages`` and its data; it loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import orjson

from fxframework.kit.json_fields import encodable


def page(name: str, data: Mapping[str, Any]) -> bytes:
    """Return the page of the template ``name`` (.html) within page.html, with its data.

    Its style follows that of all pages, page.css, which has their colours, dark ones too.
    """
    json_text = orjson.dumps(encodable(data)).decode()
    replacements = {
        "{page}": template(f"{name}.html"),
        "{style}": template("page.css"),
        # Escape `<`, so that no data can end the script element.
        "{data}": json_text.replace("<", "\\u003c"),
    }
    text = template("page.html")
    for mark, replacement in replacements.items():
        before, _, behind = text.partition(mark)
        text = before + replacement + behind
    return text.encode()


def template(name: str) -> str:
    """Return a file that pages are made of."""
    return files("fxframework.exporters").joinpath("pages", name).read_text("utf-8")
