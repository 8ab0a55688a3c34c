"""Admission: validation of the descriptors that plugins register.

All faults of a descriptor are reported together, each with the expected form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from fxframework.registry import Option

HYPHENATED = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
NAMES = {
    "Reader": HYPHENATED,
    "Writer": HYPHENATED,
    "Exporter": HYPHENATED,
    "StepKind": r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+",
    "DeviceKind": r"[a-z][a-z0-9_]*",
}
"""Regular expressions for names, by class of the descriptor."""
REQUIRED = ("open", "run", "sniff")
"""Fields that must be functions."""
OPTIONAL = (
    "rules", "explain", "sample", "snapshot", "extract", "merge", "salvage", "parameters",
)  # fmt: skip
"""Fields that must be functions or None."""


def descriptor_faults(item: Any) -> list[str]:
    """Return the faults of a descriptor as short texts; an empty list if it is valid."""
    return [fault for check in _CHECKS for fault in check(item)]


def _fields(item: Any) -> dict[str, Any]:
    return {field.name: getattr(item, field.name) for field in attrs.fields(type(item))}


def _texts(item: Any) -> Iterator[str]:
    fields = _fields(item)
    noun = "format" if "format" in fields else "name"
    name = fields[noun]
    if not isinstance(name, str) or not re.fullmatch(NAMES[type(item).__name__], name):
        yield f"{noun} is {name!r}, which does not match {NAMES[type(item).__name__]}"
    title = fields["title"]
    if not isinstance(title, str):
        yield f"title is {title!r}, not a string"
    if "magic" in fields and not isinstance(fields["magic"], bytes):
        yield f"magic is {fields['magic']!r}, not bytes"


def _suffixes(item: Any) -> Iterator[str]:
    suffixes = _fields(item).get("suffixes", ())
    if isinstance(suffixes, str):
        yield f"suffixes is the string {suffixes!r}; write the tuple ({suffixes!r},)"
    elif not isinstance(suffixes, tuple | list):
        yield f"suffixes is {suffixes!r}, not a tuple of strings"
    else:
        for suffix in suffixes:
            if not isinstance(suffix, str) or not re.fullmatch(r"(\.[^./\\\s]+)+", suffix):
                yield f"suffix {suffix!r} is not a string such as '.abc'"


def _functions(item: Any) -> Iterator[str]:
    for name, value in _fields(item).items():
        if name in OPTIONAL and value is None:
            continue
        if name in {*REQUIRED, *OPTIONAL} and not callable(value):
            yield f"{name} is {value!r}, not a function"


def _sets(item: Any) -> Iterator[str]:
    fields = _fields(item)
    for name in ("accepts", "replays"):
        value = fields.get(name, frozenset())
        if name == "accepts" and isinstance(value, str) and value:
            continue  # the name of a format
        if not isinstance(value, frozenset | set):
            yield f"{name} is {value!r}, not a frozenset of names"
        elif not all(isinstance(member, str) for member in value):
            yield f"{name} is {value!r}, whose members are not all strings"


def _options(item: Any) -> Iterator[str]:
    options = _fields(item).get("options", ())
    if not isinstance(options, tuple | list):
        yield f"options is {options!r}, not a tuple of Option"
        return
    declared_names: set[str] = set()
    for option in options:
        if not isinstance(option, Option):
            yield f"options contains {option!r}, not an Option"
            continue
        yield from _option(option)
        if option.name in declared_names:
            yield f"option {option.name} is declared twice"
        declared_names.add(option.name)


def _option(option: Option) -> Iterator[str]:
    where = f"option {option.name}"
    if not isinstance(option.name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", option.name):
        yield f"option {option.name!r} needs a name such as max_size"
    if option.type not in {bool, int, float, str}:
        yield f"{where} is of type {option.type!r}, not bool, int, float or str"
    elif option.default is not None and type(option.default) is not option.type:
        yield f"{where} has the default {option.default!r}, which is not {option.type.__name__}"
    if not isinstance(option.help, str) or not option.help:
        yield f"{where} has no help text"
    flags: Any = option.flags  # of any type, as given by the plugin
    if isinstance(flags, str):
        yield f"{where} has the string {flags!r} as flags; write the tuple ({flags!r},)"


def unmet_requirement(requirements: Iterable[str], project: str, version: str) -> str:
    """Return the requirement that ``version`` of ``project`` does not meet; "" if it meets all.

    ``requirements`` are those in the metadata of a distribution, such as ``fxframework>=0.2,<1``.
    """
    for requirement in requirements:
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            continue
        required_project, clause_list = match.groups()
        if required_project.lower().replace("_", "-") != project:
            continue
        clauses = [clause.strip() for clause in clause_list.split(",") if clause.strip()]
        if not all(_holds(clause, version) for clause in clauses):
            return f"{project}{','.join(clauses)}"
    return ""


def _holds(clause: str, version: str) -> bool:
    """Return whether a version meets a clause such as ``>=0.2``; True for one of another form."""
    match = re.fullmatch(r"(~=|==|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?", clause)
    number = re.match(r"\d+(?:\.\d+)*", version)
    if match is None or number is None:
        return True
    operator, clause_number, is_prefix = match.groups()
    required = [int(part) for part in clause_number.split(".")]
    actual = [int(part) for part in number[0].split(".")]
    # 1.0 and 1.0.0 are the same version: compare with zeros for the parts that are not there.
    length = max(len(required), len(actual))
    padded_required = required + [0] * (length - len(required))
    padded_actual = actual + [0] * (length - len(actual))
    if is_prefix:  # == 1.2.*
        is_equal = padded_actual[: len(required)] == required
    else:
        is_equal = padded_actual == padded_required
    return {
        # ~= 1.2.3 means at least 1.2.3, and 1.2.*
        "~=": padded_actual >= padded_required
        and padded_actual[: len(required) - 1] == required[:-1],
        "==": is_equal,
        "!=": not is_equal,
        "<=": padded_actual <= padded_required,
        ">=": padded_actual >= padded_required,
        "<": padded_actual < padded_required,
        ">": padded_actual > padded_required,
    }[operator]


_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;()@]*)\)?\s*")
"""A requirement without a marker: the name, and the clauses of its version."""
_CHECKS: tuple[Callable[[Any], Iterator[str]], ...] = (
    _texts,
    _suffixes,
    _functions,
    _sets,
    _options,
)
