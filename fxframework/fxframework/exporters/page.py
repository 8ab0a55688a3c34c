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
    text, style, script = (
        files(package).joinpath(f"{name}.{suffix}").read_text("utf-8")
        for suffix in ("html", "css", "js")
    )
    style = files("fxframework.exporters").joinpath("page.css").read_text("utf-8") + style
    # Escape `<`, so that no data can end the script element.
    # Sums of times may have more than 64 bits, which orjson rejects.
    shown = json.dumps(encodable(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    parts = {"{style}": style, "{script}": script, "{data}": shown.replace("<", "\\u003c")}
    for mark, part in parts.items():
        before, _, after = text.partition(mark)
        text = before + part + after
    return text.encode()
