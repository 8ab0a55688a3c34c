"""Account: how often each function was called, and how long its calls took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import numpy as np

from fxframework.analysis.calls import UNMATCHED_EXIT, Calls, Function, dense, thread_names
from fxframework.analysis.figures import FIELDS, RECURSIONS, SORTS
from fxframework.analysis.spread import ALL, Spread, spreads
from fxframework.errors import UsageError, did_you_mean
from fxframework.model.capture import Capture

__all__ = ["Account", "Entry", "account"]


@attrs.frozen
class Entry:
    """One function, or one function on one thread."""

    function: Function
    spread: Spread
    unmatched: int = 0
    """Ends of calls whose beginning is missing."""
    thread: str | None = None

    def sort_key(self, by: str) -> tuple[bool, int | str]:
        """What it is sorted by: what has no figure comes first."""
        if by == "func":
            return True, self.function.name
        figure = FIELDS.get(by, by)
        value = self.function.id if by == "funcid" else getattr(self.spread, figure)
        return value is not None, value or 0


@attrs.frozen
class Account:
    """The account of a capture's calls, and what does not show in it."""

    entries: Sequence[Entry]
    per_second: int
    """Units of the figures in a second; 0: not known."""
    asynchronous: int
    """Slices that nest in no stack."""

    def sorted(self, by: str, *, descending: bool = False, top: int | None = None) -> list[Entry]:
        """The entries by one of SORTS, those that are alike by their order in the account.

        Raises UsageError for another one.
        """
        if by not in SORTS:
            raise UsageError(
                f"an account is not sorted by {by!r}{did_you_mean(by, SORTS)}",
                remedy=f"there are {', '.join(SORTS)}",
            )
        entries = sorted(self.entries, key=lambda entry: entry.sort_key(by), reverse=descending)
        return entries if top is None else entries[:top]


def account(
    capture: Capture, *, by: str = "", recursion: str = "all", per_thread: bool = False
) -> Account:
    """The account of a capture's calls, identified by ``by`` (see ``Calls.of``).

    ``recursion`` is one of RECURSIONS. Raises UsageError for another one, and where there are no
    slices.
    """
    if recursion not in RECURSIONS:
        raise UsageError(
            f"an account knows no recursion {recursion!r}{did_you_mean(recursion, RECURSIONS)}",
            remedy=f"there are {', '.join(RECURSIONS)}",
        )
    calls = Calls.of(capture, by)
    chosen = summed = ALL
    if recursion != "all":
        inner, recursive = calls.recursion()
        if recursion == "only":
            chosen = recursive
        else:
            summed = 1 - inner
    functions = calls.functions
    if per_thread:
        pairs = calls.thread.astype(np.int64) * len(functions) + calls.function
        group, numbers = dense(pairs)
        names = thread_names(capture)
        whose = [
            (functions[number % len(functions)], names.get(number // len(functions)))
            for number in numbers.tolist()
        ]
    else:
        group = calls.function
        whose = [(function, None) for function in functions]
    found = spreads(group, len(whose), calls.parent, calls.length, chosen=chosen, summed=summed)
    missing = _unmatched(capture, per_thread=per_thread) if by in {"", "id", "name"} else Counter()
    entries = []
    for (function, thread), spread in zip(whose, found, strict=True):
        unmatched = missing.pop((function.name, thread), 0)
        if spread.count or spread.unfinished or unmatched:
            entries.append(Entry(function, spread, unmatched, thread))
    nothing = Spread(count=0, unfinished=0, sum=0, own=0)
    known = _by_name(capture) if missing and by in {"", "id"} else {}
    for (name, thread), count in missing.items():
        entries.append(Entry(known.get(name, Function(name)), nothing, count, thread))
    return Account(entries, calls.per_second, calls.asynchronous)


def _by_name(capture: Capture) -> dict[str, Function]:
    """The functions that the capture numbers, by their names; the first of each name."""
    found: dict[str, Function] = {}
    if capture.calls is not None:
        table = capture.table(capture.calls.functions)
        columns = table.array("id").tolist(), table.texts("name"), table.texts("source")
        for number, name, source in zip(*columns, strict=True):
            found.setdefault(name or str(number), Function(name or str(number), number, source))
    return found


def _unmatched(capture: Capture, *, per_thread: bool) -> Counter[tuple[str, str | None]]:
    """How many ends have no beginning, by name, and by thread where asked."""
    found: Counter[tuple[str, str | None]] = Counter()
    if "instants" not in capture.schemas:
        return found
    names = thread_names(capture) if per_thread else {}
    for batch in capture.batches("instants"):
        categories = batch.array("category")  # strings may be known only once a column is made
        category = capture.strings.code(UNMATCHED_EXIT)
        mine = categories == category
        if category < 0 or not mine.any():
            continue
        codes = batch.array("name")[mine].tolist()
        texts = capture.strings
        threads = batch.array("thread")[mine].tolist()
        for code, thread in zip(codes, threads, strict=True):
            if code >= 0:
                found[texts[code], names.get(thread)] += 1
    return found
