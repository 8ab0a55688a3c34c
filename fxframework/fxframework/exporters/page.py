"""Pages: one HTML file from templates in ``pages`` and its data; it loads nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fxframework.kit.json_fields import encoded


def page(name: str, title: str, data: Mapping[str, Any]) -> bytes:
    """Return a page with its data: page.html, with the body, style and script of a name.

    Before these are the style and the script of all pages, page.css and page.js.
    """
    json_text = encoded(data).decode()
    parts = {
        "title": title,
        "page.css": template("page.css"),
        "style": template(f"{name}.css"),
        "body": template(f"{name}.html"),
        # Escape `<`, so that no data can end the script element.
        "data": json_text.replace("<", "\\u003c"),
        "page.js": template("page.js"),
        "script": template(f"{name}.js"),
    }
    # In one pass, as what is put in may contain such marks.
    text = re.sub(r"\{([\w.]+)\}", lambda mark: parts[mark[1]], template("page.html"))
    return text.encode()


def template(name: str) -> str:
    """Return a file that pages are made of."""
    return files("fxframework.exporters").joinpath("pages", name).read_text("utf-8")
