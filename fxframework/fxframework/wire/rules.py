"""Rules: the findings and refusals that every declared format has, under its own prefix."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework.errors import Catalogue, Rule, Severity

__all__ = ["MESSAGES", "READING", "WRITING", "catalogue"]

READING: tuple[tuple[int, Severity, str, str, str], ...] = (
    (
        101,
        Severity.DATA_LOSS,
        "bad magic",
        "A file, and each part of it with a byte order of its own, begins with a fixed number.",
        "The bytes are kept as `damaged`; reading goes on where a record fits.",
    ),
    (
        102,
        Severity.DATA_LOSS,
        "cut off",
        "A record is as long as its header, or its fields, say.",
        "The bytes are kept as `damaged`; reading goes on where a record fits.",
    ),
    (
        103,
        Severity.WARNING,
        "a record of an unknown kind",
        "Records are of the kinds that the format defines.",
        "The record is skipped by its size and kept as `unknown`.",
    ),
    (
        104,
        Severity.DATA_LOSS,
        "a size out of bounds",
        "A record holds its fields; its kind or its header says how long it is.",
        "The bytes are kept as `damaged`; reading goes on where a record fits.",
    ),
    (
        105,
        Severity.WARNING,
        "reserved bits are set",
        "Bits and bytes without a meaning are zero.",
        "The record is read; its bytes are kept in `raw`.",
    ),
    (
        106,
        Severity.WARNING,
        "a value that the format does not define",
        "Constants, repeated values and enumerations have values that the format defines.",
        "The record is read; the value is kept.",
    ),
    (
        107,
        Severity.WARNING,
        "text that is not UTF-8",
        "Texts are UTF-8.",
        "The record is read; record JSON has the bytes beside the text.",
    ),
    (
        108,
        Severity.WARNING,
        "a reference to something that nothing declared",
        "A record declares a number before others refer to it.",
        "The number is shown instead.",
    ),
)
"""Number, severity, title, rule and what the reader does."""
WRITING = (
    ("0401", "no such record or name", "Records and values have the names of the format."),
    ("0402", "a field is missing, or unknown", "A record has the fields of its kind."),
    ("0403", "a value of the wrong type", "Numbers are whole; texts are UTF-8."),
    ("0404", "a value that does not fit", "Each value fits its field."),
    ("0408", "a text that no record declares", "A record declares a text before others use it."),
)
MESSAGES = {
    101: "{value} bytes",
    102: "{value} bytes",
    103: "kind {word:#x}",
    104: "{value} bytes",
    105: "{word:#x}",
    106: "{value}",
    108: "{value}",
}
"""Details of findings by the number of their rule."""


def catalogue(prefix: str, title: str, more: Iterable[Rule]) -> Catalogue:
    """Return the rules of a format, with those of its author."""
    reading = (
        Rule(
            code=f"{prefix}{number:04}",
            severity=severity,
            title=name,
            rule=rule,
            section=title,
            ours=ours,
        )
        for number, severity, name, rule, ours in READING
    )
    writing = (
        Rule(
            code=f"{prefix}{number}",
            severity=Severity.ERROR,
            title=name,
            rule=rule,
            section=title,
            ours="Refused; nothing of the record is written.",
            remedy="Compare it with a record that `fxf cat --records` shows.",
        )
        for number, name, rule in WRITING
    )
    return Catalogue([*reading, *writing, *more])
