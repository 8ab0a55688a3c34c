"""Options that select a part of a capture, shared by several commands."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from fxframework.cli.options import GroupedOption
from fxframework.cli.settings import Moment
from fxframework.errors import UsageError

LOGS = "Log options"
PLACES = "Parts"
_KOIDS = 1 << 64
Choice = tuple[str, Callable[[Callable[..., Any]], Callable[..., Any]]]
"""A field of Selection, and a decorator that adds its option to a command."""


def part_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all these options to a command, which gets them as one Selection, ``names``."""
    return _with(command, (*_PLACES, *_LOGS))


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add only the options for threads, processes, categories and slices to a command."""
    return _with(command, _PLACES)


def _with(command: Callable[..., Any], options: Sequence[Choice]) -> Callable[..., Any]:
    @functools.wraps(command)
    def with_names(*arguments: Any, **values: Any) -> Any:
        from fxframework.model.selection import Selection

        fields = {field: values.pop(field) for field, _ in options}
        return command(*arguments, **values, names=Selection(**fields))

    decorated: Callable[..., Any] = with_names
    for _, option in reversed(options):
        decorated = option(decorated)
    return decorated


def _severity(text: str) -> int:
    from fxframework.model.selection import least_severity

    return least_severity(text)


def _length(text: str) -> int:
    with contextlib.suppress(UsageError):
        length = Moment.parse(text)
        if not length.absolute:
            return length.ns
    raise UsageError(f"invalid length {text!r}", remedy="give 2s, 1.5ms, 50us, 20ns or 17 (ns)")


def _koid(text: str) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if not 0 <= number < _KOIDS:
        raise UsageError(
            f"invalid koid {text!r}: must be a number below 2^64", remedy="for example --pid 1234"
        )
    return number


def _option(name: str, field: str, text: str, *, group: str = LOGS, **settings: Any) -> Choice:
    """A field of Selection, and a decorator that adds its option to a command."""
    option = click.option(name, field, cls=GroupedOption, group=group, help=text, **settings)
    return field, option


_PLACES = (
    _option("--thread", "threads",
            "Only this thread: its name, id or PID/TID, or a pattern (*, ?); repeatable.",
            group=PLACES, multiple=True, metavar="NAME"),
    _option("--process", "processes",
            "Only this process: its name, id or a pattern; repeatable.",
            group=PLACES, multiple=True, metavar="NAME"),
    _option("--category", "categories",
            "Only events of this category, or of those that match a pattern; repeatable.",
            group=PLACES, multiple=True, metavar="NAME"),
    _option("--function", "functions",
            "Only slices of this name, or whose names match a pattern; repeatable.",
            group=PLACES, multiple=True, metavar="NAME"),
    _option("--exclude-function", "exclude_functions",
            "Leave out slices of this name, or whose names match a pattern; what they enclose "
            "counts for what encloses them; repeatable.",
            group=PLACES, multiple=True, metavar="NAME"),
    _option("--min-duration", "min_duration_ns",
            "Leave out slices shorter than this (50us), except those that enclose a longer one.",
            group=PLACES, type=_length, metavar="TIME"),
)  # fmt: skip
_LOGS = (
    _option("--severity", "min_severity",
            "Only logs of this severity and above: trace, debug, info, warn, error, fatal, or a "
            "number up to 255.",
            type=_severity, metavar="LEVEL"),
    _option("--tag", "tags", "Only logs with this tag; repeatable.", multiple=True, metavar="TAG"),
    _option("--exclude-tags", "exclude_tags", "No logs with this tag; repeatable.",
            multiple=True, metavar="TAG"),
    _option("--component", "components",
            "Only logs of components whose moniker or URL contains this; repeatable.",
            multiple=True, metavar="TEXT"),
    _option("--filter", "filters",
            "Only logs whose message, moniker or URL contains this; repeatable.",
            multiple=True, metavar="TEXT"),
    _option("--exclude", "excludes",
            "No logs whose message, moniker or URL contains this; repeatable.",
            multiple=True, metavar="TEXT"),
    _option("--case-sensitive", "case_sensitive", "Match case in all of these.",
            is_flag=True),
    _option("--kernel", "kernel", "Only logs of the kernel.", is_flag=True),
    _option("--pid", "pids", "Only logs of this process; repeatable.",
            type=_koid, multiple=True, metavar="KOID"),
    _option("--tid", "tids", "Only logs of this thread; repeatable.",
            type=_koid, multiple=True, metavar="KOID"),
)  # fmt: skip
