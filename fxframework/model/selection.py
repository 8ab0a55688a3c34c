"""Selection: which part of a capture is wanted. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import attrs

from fxframework.errors import UsageError, did_you_mean
from fxframework.model.schema import LOG_LEVELS

__all__ = ["Omitted", "Selection", "least_severity", "name_fits"]


def least_severity(level: str | int) -> int:
    """The least severity byte of a level's band, by its name in any case; or a number, 0 to 255.

    A band reaches from above the level below it up to the level: a byte of 0x2f is INFO. Raises
    UsageError for anything else.
    """
    if isinstance(level, str):
        known = {**LOG_LEVELS, "WARNING": LOG_LEVELS["WARN"]}
        name = level.strip().upper()
        if name in known:
            return max((level + 1 for level in known.values() if level < known[name]), default=0)
        try:
            level = int(name, 0)
        except ValueError:
            raise UsageError(
                f"unknown severity {level!r}{did_you_mean(name, known)}",
                remedy=f"there are {', '.join(LOG_LEVELS)}, and numbers from 0 to 255",
            ) from None
    if not 0 <= level <= 255:
        raise UsageError(
            f"a severity of {level} does not fit its byte",
            remedy=f"there are {', '.join(LOG_LEVELS)}, and numbers from 0 to 255",
        )
    return level


def name_fits(name: str, pattern: str) -> bool:
    """Whether a name is what a pattern says, in which only ``*`` and ``?`` are special."""
    return name == pattern or fnmatchcase(name, pattern.replace("[", "[[]"))


@attrs.frozen(kw_only=True)
class Selection:
    """A part of a capture: a stretch of time; threads, processes, categories, functions; or logs.

    Times are nanoseconds on the capture's clock, ``start_ns <= time < stop_ns``, None open-ended.
    Threads and processes are chosen by name, or by number: a thread's id, or ``pid/tid``.
    ``*`` and ``?`` in a name stand for any letters. No names at all choose everything. Functions
    are the names of slices: where some are chosen, rows of other tables that have a time do not
    belong, but for instants of such a name.

    Logs are chosen by what they say. Of several values of one field any will do; what several
    fields ask for must all hold. Case counts only with ``case_sensitive``. Where logs are chosen,
    rows of other tables that have a time do not belong.
    """

    start_ns: int | None = None
    """From this time on."""
    stop_ns: int | None = None
    """Up to this time, which is excluded."""
    threads: tuple[str, ...] = ()
    """Threads, by name, id or ``pid/tid``."""
    processes: tuple[str, ...] = ()
    """Processes, by name or pid."""
    categories: tuple[str, ...] = ()
    """Categories, by name."""
    functions: tuple[str, ...] = ()
    """Names of slices."""
    min_severity: int | None = attrs.field(
        default=None, converter=attrs.converters.optional(least_severity)
    )
    """Logs of at least this severity: a byte, or the name of a level (UsageError for none)."""
    tags: tuple[str, ...] = ()
    """Logs that have one of these tags."""
    exclude_tags: tuple[str, ...] = ()
    """Logs that have none of these tags."""
    components: tuple[str, ...] = ()
    """Logs of components whose moniker or url holds one of these."""
    filters: tuple[str, ...] = ()
    """Logs whose message, moniker or url holds one of these."""
    excludes: tuple[str, ...] = ()
    """Logs whose message, moniker and url hold none of these."""
    case_sensitive: bool = False
    """Whether case counts in what logs are chosen by."""
    kernel: bool = False
    """Logs of the kernel: their component, or a tag, is ``klog``."""
    pids: tuple[int, ...] = ()
    """Logs of these processes."""
    tids: tuple[int, ...] = ()
    """Logs of these threads."""

    @property
    def by_time_alone(self) -> bool:
        """Whether it names no thread, process, category or function, and chooses no logs."""
        named = self.threads or self.processes or self.categories or self.functions
        return not (named or self.by_logs)

    @property
    def by_logs(self) -> bool:
        """Whether it chooses logs by what they say."""
        return (
            self.min_severity is not None
            or self.kernel
            or any(
                (
                    self.tags,
                    self.exclude_tags,
                    self.components,
                    self.filters,
                    self.excludes,
                    self.pids,
                    self.tids,
                )
            )
        )

    @staticmethod
    def matches(text: str | None, patterns: Iterable[str]) -> bool:
        """Whether a name fits one of the patterns."""
        return text is not None and any(name_fits(text, pattern) for pattern in patterns)


class Omitted(dict[str, int]):
    """What is outside of a part, by name, with counts.

    ``dropped`` is what belongs to it, and had no place where it was written.
    """

    def __init__(self, outside: Mapping[str, int], dropped: Mapping[str, int]) -> None:
        super().__init__(outside)
        self.dropped = dict(dropped)
