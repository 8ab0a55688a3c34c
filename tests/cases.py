"""Many cases in one test: what `pytest.mark.parametrize` does, without a test for each.

A test costs pytest some 10 ms, which is more than most cases take. `@cases` runs all of them, goes
on after a failure, and names each case that failed::

    @cases("text", ["1", "0x1"])
    @cases("base", [10, 16])
    def test_numbers(text: str, base: int) -> None: ...

Each case has its own `tmp_path` and `monkeypatch`; other fixtures are made once for all cases. A
test that takes seconds a case, or asks hypothesis for examples, takes `parametrize`: processes
share the work test by test.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

ERRORS = (Exception, pytest.fail.Exception)
"""What a case may fail with; pytest.fail raises no Exception."""
PARAM = type(pytest.param())
MARK = "cases"
"""The attribute of a test with what `cases` said of it."""


def cases(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test for every value; arguments are those of `parametrize`.

    Several of them stack: the test is run for every combination.
    """
    argument_names = names
    if isinstance(names, str):
        argument_names = [name.strip() for name in names.split(",")]
    values = list(values)
    rows = [_row(value, len(argument_names)) for value in values]
    labels = _labels(values, rows, ids)
    axis = []
    for label, row in zip(labels, rows, strict=True):
        arguments = dict(zip(argument_names, row, strict=True))
        axis.append((label, arguments))

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        return _looping(function, axis)

    return decorate


def _row(value: Any, length: int) -> Sequence[Any]:
    if isinstance(value, PARAM):
        assert not value.marks, "cases have no marks of their own"  # type: ignore[attr-defined]
        return value.values  # type: ignore[attr-defined, no-any-return]
    return (value,) if length == 1 else value


def _labels(values: list[Any], rows: list[Sequence[Any]], ids: Any) -> list[str]:
    if ids is not None and not callable(ids):
        return [str(label) for label in ids]
    labels = []
    for value, row in zip(values, rows, strict=True):
        own_label = value.id if isinstance(value, PARAM) else None
        labels.append(own_label or "-".join(_label(argument, ids) for argument in row))
    return labels


def _label(value: object, ids: Callable[[Any], object] | None) -> str:
    label = None if ids is None else ids(value)
    if label is None:
        label = getattr(value, "__name__", None)
    return repr(value)[:80] if label is None else str(label)


def _looping(
    function: Callable[..., None], axis: list[tuple[str, dict[str, Any]]]
) -> Callable[..., None]:
    """Return a test that runs a function for all combinations of its axes."""
    inner, axes = getattr(function, MARK, (function, []))
    axes = [axis, *axes]

    @functools.wraps(inner)
    def test(*args: Any, **fixtures: Any) -> None:
        outcomes = _Outcomes()
        for number, combination in enumerate(itertools.product(*axes)):
            arguments: dict[str, Any] = {}
            for _, arguments_of_axis in combination:
                arguments |= arguments_of_axis
            with outcomes.of(combination), _own(fixtures, number) as own:
                inner(*args, **own, **arguments)
        outcomes.report()

    signature = inspect.signature(inner)
    looped: set[str] = set()
    for (_, first_arguments), *_ in axes:
        looped |= first_arguments.keys()
    fixtures_only = [
        parameter for name, parameter in signature.parameters.items() if name not in looped
    ]
    del test.__wrapped__  # type: ignore[attr-defined]
    test.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=fixtures_only
    )
    setattr(test, MARK, (inner, axes))
    return test


@contextlib.contextmanager
def _own(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Yield the fixtures of a case: those of the test, but for a folder and patches of its own."""
    own = dict(fixtures)
    if "tmp_path" in own:
        own["tmp_path"] = fixtures["tmp_path"] / str(number)
        own["tmp_path"].mkdir()
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in own:
            own["monkeypatch"] = patch
        yield own


class _Outcomes:
    """What became of the cases."""

    def __init__(self) -> None:
        self.count = 0
        self.failed: dict[str, BaseException] = {}
        self.skipped: dict[str, str] = {}

    @contextlib.contextmanager
    def of(self, combination: Iterable[tuple[str, object]]) -> Iterator[None]:
        """Note what becomes of a case; go on after a failure, and after a skip."""
        label = ", ".join(label for label, _ in combination)
        self.count += 1
        try:
            yield
        except pytest.skip.Exception as reason:
            self.skipped[label] = str(reason)
        except ERRORS as error:
            error.add_note(f"in the case {label}")
            self.failed[label] = error

    def report(self) -> None:
        """Fail with a group of what failed, or skip if a case was skipped."""
        if self.failed:
            labels = "; ".join(self.failed)
            summary = f"{len(self.failed)} of {self.count} cases failed: {labels}"
            raise BaseExceptionGroup(summary, list(self.failed.values()))
        if self.skipped:
            reasons = "; ".join(sorted(set(self.skipped.values())))
            pytest.skip(f"{len(self.skipped)} of {self.count} cases: {reasons}")
