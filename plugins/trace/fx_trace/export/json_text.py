"""JSON strings that Perfetto's parser accepts."""

from __future__ import annotations

import orjson


def json_string(text: str) -> str:
    r"""Return the text as a JSON string that Perfetto's parser accepts too.

    That parser fails on a backslash directly before the closing quote, and on DEL.
    """
    made = orjson.dumps(text).decode()
    if made.endswith('\\\\"'):
        made = made[:-3] + r'\u005c"'
    return made.replace("\x7f", r"\u007f")
