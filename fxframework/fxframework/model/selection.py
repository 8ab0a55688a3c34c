"""Selection: criteria for a part of a capture. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from numbers import Integral
from types import NoneType
from typing import Any

import attrs

from fxframework.errors import UsageError, checked_type, did_you_mean
from fxframework.model.schema import LOG_LEVELS

__all__ = ["Omitted", "Selection", "least_severity", "name_fits"]


def least_severity(level: str | int) -> int:
    """Return the least severity byte of a level, given by name in any case or as a number 0 to 255.

    A level covers the bytes above the next lower level up to its own: 0x2f is INFO. Raises
    UsageError for anything else.
    """
    if isinstance(level, str):
        severities = {**LOG_LEVELS, "WARNING": LOG_LEVELS["WARN"]}
        name = level.strip().upper()
        if name in severities:
            lower_levels = [value for value in severities.values() if value < severities[name]]
            return max(lower_levels, default=-1) + 1
        try:
            level = int(name, 0)
        except ValueError:
            raise UsageError(
                f"unknown severity {level!r}{did_you_mean(name, severities)}",
                remedy=f"there are {', '.join(LOG_LEVELS)}, and numbers from 0 to 255",
            ) from None
    checked_type(level, Integral, "a severity", "a name or an int")
    if not 0 <= level <= 255:
        raise UsageError(
            f"a severity of {level} does not fit its byte",
            remedy=f"there are {', '.join(LOG_LEVELS)}, and numbers from 0 to 255",
        )
    return level


def name_fits(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern, in which only ``*`` and ``?`` are special."""
    return name == pattern or fnmatchcase(name, pattern.replace("[", "[[]"))


def _values(criterion: Any) -> tuple[Any, ...]:
    """Return the values of a criterion; one value stands for itself."""
    # Texts and bytes can be iterated over, and are one value.
    if isinstance(criterion, str | bytes | Integral) or not isinstance(criterion, Iterable):
        return (criterion,)
    return tuple(criterion)


def _check_texts(_: Any, field: attrs.Attribute[Any], values: tuple[Any, ...]) -> None:
    for value in values:
        checked_type(value, str, f"each of {field.name}", "a str")


def _check_numbers(_: Any, field: attrs.Attribute[Any], values: tuple[Any, ...]) -> None:
    for value in values:
        checked_type(value, Integral, f"each of {field.name}", "an int")


def _check_time(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    checked_type(value, (Integral, NoneType), field.name, "an int (nanoseconds) or None")


def _check_length(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    _check_time(_, field, value)
    if value is not None and value < 0:
        raise UsageError(f"{field.name} is {value}", remedy="give a length of 0 ns or more")


def _check_flag(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    checked_type(value, bool, field.name, "True or False")


@attrs.frozen(kw_only=True)
class Selection:
    """A part of a capture: a time range; threads, processes, categories, functions; or logs.

    Times are nanoseconds on the capture's clock, ``start_ns <= time < stop_ns``; None leaves an
    end open, and a stop before the start raises UsageError, a value of another type BadTypeError.
    Threads and processes are chosen by name or number: a thread's id, or ``pid/tid``. ``*`` and
    ``?`` in a name are wildcards. An empty tuple does not restrict. Functions are names of slices:
    if some are chosen, other rows with a time do not match, except instants of these names. Short
    slices and those of excluded functions are skipped; other rows match as without that.

    Logs are chosen by their contents. A field with several values matches if any value matches;
    all given fields must match. Case is ignored unless ``case_sensitive``. If logs are chosen,
    rows of other tables with a time do not match.
    """

    start_ns: int | None = attrs.field(default=None, validator=_check_time)
    """The earliest time, included."""
    stop_ns: int | None = attrs.field(default=None, validator=_check_time)
    """The end of the time range, excluded."""
    threads: tuple[str, ...] = attrs.field(default=(), converter=_values, validator=_check_texts)
    """Threads, by name, id or ``pid/tid``."""
    processes: tuple[str, ...] = attrs.field(default=(), converter=_values, validator=_check_texts)
    """Processes, by name or pid."""
    categories: tuple[str, ...] = attrs.field(default=(), converter=_values, validator=_check_texts)
    """Categories, by name."""
    functions: tuple[str, ...] = attrs.field(default=(), converter=_values, validator=_check_texts)
    """Names of slices."""
    exclude_functions: tuple[str, ...] = attrs.field(
        default=(), converter=_values, validator=_check_texts
    )
    """Names of slices that are skipped: what is in them counts as in the slice around them."""
    min_duration_ns: int | None = attrs.field(default=None, validator=_check_length)
    """The least length of slices; those that enclose a longer one are not skipped."""
    min_severity: int | None = attrs.field(
        default=None, converter=attrs.converters.optional(least_severity)
    )
    """Logs of at least this severity: a byte, or the name of a level (else UsageError)."""
    tags: tuple[str, ...] = attrs.field(default=(), converter=_values, validator=_check_texts)
    """Logs that have one of these tags."""
    exclude_tags: tuple[str, ...] = attrs.field(
        default=(), converter=_values, validator=_check_texts
    )
    """Logs that have none of these tags."""
    components: tuple[str, ...] = attrs.field(default=(), converter=_values, validator=_check_texts)
    """Logs of components whose moniker or URL contains one of these."""
    filters: tuple[str, ...] = attrs.field(default=(), converter=_values, validator=_check_texts)
    """Logs whose message, moniker or URL contains one of these."""
    excludes: tuple[str, ...] = attrs.field(default=(), converter=_values, validator=_check_texts)
    """Logs whose message, moniker and URL contain none of these."""
    case_sensitive: bool = attrs.field(default=False, validator=_check_flag)
    """Whether case matters in these criteria."""
    kernel: bool = attrs.field(default=False, validator=_check_flag)
    """Logs of the kernel: their component, or a tag, is ``klog``."""
    pids: tuple[int, ...] = attrs.field(default=(), converter=_values, validator=_check_numbers)
    """Logs of these processes."""
    tids: tuple[int, ...] = attrs.field(default=(), converter=_values, validator=_check_numbers)
    """Logs of these threads."""

    def __attrs_post_init__(self) -> None:
        if self.start_ns is not None and self.stop_ns is not None and self.start_ns > self.stop_ns:
            raise UsageError(
                f"the range of times ends at {self.stop_ns} ns, before its start, {self.start_ns}",
                remedy="exchange the two times",
            )

    @property
    def by_time_alone(self) -> bool:
        """Whether time is the only criterion."""
        return self.by_time_and_skips and not self.skips

    @property
    def by_time_and_skips(self) -> bool:
        """Whether it chooses by time alone, and may skip slices."""
        by_name = self.threads or self.processes or self.categories or self.functions
        return not (by_name or self.by_logs)

    @property
    def skips(self) -> bool:
        """Whether it skips slices, short ones or calls of some functions."""
        return bool(self.exclude_functions) or self.min_duration_ns is not None

    @property
    def by_logs(self) -> bool:
        """Whether it chooses logs by their contents."""
        by_text = self.components or self.filters or self.excludes
        by_tag = self.tags or self.exclude_tags or self.kernel
        by_number = self.pids or self.tids or self.min_severity is not None
        return bool(by_text or by_tag or by_number)

    @staticmethod
    def matches(text: str | None, patterns: Iterable[str]) -> bool:
        """Return whether a name matches one of the patterns."""
        return text is not None and any(name_fits(text, pattern) for pattern in patterns)


class Omitted(dict[str, int]):
    """Counts of the records or rows outside of an extracted part, by name.

    ``dropped`` counts data of the part itself that the output could not represent.
    """

    def __init__(self, outside: Mapping[str, int], dropped: Mapping[str, int]) -> None:
        super().__init__(outside)
        self.dropped = dict(dropped)
