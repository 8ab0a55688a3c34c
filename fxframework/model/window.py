"""The former place of what is in ``capture``, ``selection`` and ``rows`` now."""

from fxframework.model.capture import View, Window
from fxframework.model.rows import category_mask, function_mask, thread_mask
from fxframework.model.selection import Omitted, Selection

__all__ = [
    "Omitted",
    "Selection",
    "View",
    "Window",
    "category_mask",
    "function_mask",
    "thread_mask",
]
