"""Texts as JSON strings."""

from __future__ import annotations

import orjson


def json_string(text: str) -> str:
    r"""The text as a JSON string that Perfetto's parser takes too.

    That stumbles over a backslash right before the closing quote, and over a DEL.
    """
    made = orjson.dumps(text).decode()
    if made.endswith('\\\\"'):
        made = made[:-3] + r'\u005c"'
    return made.replace("\x7f", r"\u007f")
