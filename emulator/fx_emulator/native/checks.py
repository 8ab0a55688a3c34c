"""The checks of an exploration: functions that reject a wrong image of the memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Check = Callable[..., object]


class RejectedError(Exception):
    """A check rejected the image that a store makes."""

    def __init__(self, error: BaseException, image: bytes) -> None:
        super().__init__(str(error))
        self.error = error
        self.image = image


class Checks:
    """The checks of one exploration, which see each image once.

    ``after_stores`` tells whether images are checked after every store, or only at the end.
    """

    def __init__(self, check: Check, final: Check | None, *, after_stores: bool) -> None:
        self.check = check
        self.after_stores = after_stores
        self.images = 0
        """Number of calls of checks."""
        self._takes_before = _takes_before(check)
        final_checks = (final, getattr(check, "final", None), getattr(final, "final", None))
        self._at_end: list[Check] = [function for function in final_checks if function is not None]
        if not after_stores:
            self._at_end.append(check)
        self._checked: set[Any] = set()
        """Hashes of the images that were checked; with ``before``, of both images."""

    def needs_check(self, content_before: int, content: int) -> bool:
        """Return whether an image (its hash) is new after a store, and is to be checked now."""
        if not self.after_stores:
            return False
        key: Any = content
        if self._takes_before:
            key = (content_before, content)
        return self._add(key)

    def checks_at_end(self, content: int) -> list[Check]:
        """Return the checks of an image when all threads have ended; none if it was seen there."""
        if not self._at_end or not self._add(("final", content)):
            return []
        return self._at_end

    def _add(self, key: Any) -> bool:
        """Add a key to the checked ones. Return whether it is new."""
        if key in self._checked:
            return False
        self._checked.add(key)
        return True

    def ask(self, check: Check, image: bytes, before: bytes | None) -> None:
        """Call a check. ``before`` is the image before the last store, None for the first image.

        Raises what the check raises, and AssertionError if it returns False.
        """
        self.images += 1
        keywords = {}
        if self._takes_before and check is self.check:
            keywords["before"] = before
        answer = check(image, **keywords)
        if isinstance(answer, bool | np.bool_) and not answer:
            raise AssertionError("the check returned False")

    def first_error(self, checks: Sequence[Check], image: bytes) -> Exception | None:
        """Return the exception of the first check that rejects an image, or None."""
        try:
            for check in checks:
                self.ask(check, image, None)
        except Exception as error:  # noqa: BLE001 (any exception of a check is a failure)
            return error
        return None


def _takes_before(check: Check) -> bool:
    try:
        return "before" in inspect.signature(check).parameters
    except (TypeError, ValueError):
        return False
