"""Pages: one HTML file from a template, its style, its script and its data; it loads nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fxframework.kit.json_fields import encodable

__all__ = ["page"]


def page(package: str, name: str, data: Mapping[str, Any]) -> bytes:
    """Return the page of the template ``name`` (.html, .css, .js) of a package, with its data.

    Its style follows that of all pages, page.css, which has their colours, dark ones too.
    """
    folder = files(package)
    text = folder.joinpath(f"{name}.html").read_text("utf-8")
    shared_style = files("fxframework.exporters").joinpath("page.css").read_text("utf-8")
    # Sums of times may have more than 64 bits, which orjson rejects.
    json_text = json.dumps(
        encodable(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    replacements = {
        "{style}": shared_style + folder.joinpath(f"{name}.css").read_text("utf-8"),
        "{script}": folder.joinpath(f"{name}.js").read_text("utf-8"),
        # Escape `<`, so that no data can end the script element.
        "{data}": json_text.replace("<", "\\u003c"),
    }
    for mark, replacement in replacements.items():
        before, _, behind = text.partition(mark)
        text = before + replacement + behind
    return text.encode()
