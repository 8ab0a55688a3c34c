"""Rules: the findings and refusals that every declared format has, under its own prefix."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework.errors import Catalogue, Refusals, Rule, Severity

__all__ = ["READING", "WRITING", "catalogue", "refusals"]

DATA_LOSS, WARNING = Severity.DATA_LOSS, Severity.WARNING
DAMAGED = "The bytes are kept as `damaged`; reading goes on where a record fits."
READING: tuple[tuple[int, Severity, str, str, str, str], ...] = (
    (
        101,
        DATA_LOSS,
        "bad magic",
        "A file, and each part of it with a byte order of its own, begins with a fixed number.",
        "{value} bytes",
        DAMAGED,
    ),
    (
        102,
        DATA_LOSS,
        "cut off",
        "A record is as long as its header, or its fields, say.",
        "{value} bytes",
        DAMAGED,
    ),
    (
        103,
        WARNING,
        "a record of an unknown kind",
        "Records are of the kinds that the format defines.",
        "kind {word:#x}",
        "The record is skipped by its size and kept as `unknown`.",
    ),
    (
        104,
        DATA_LOSS,
        "a size out of bounds",
        "A record holds its fields; its kind or its header says how long it is.",
        "{value} bytes",
        DAMAGED,
    ),
    (
        105,
        WARNING,
        "reserved bits are set",
        "Bits and bytes without a meaning are zero.",
        "{word:#x}",
        "The record is read; its bytes are kept in `raw`.",
    ),
    (
        106,
        WARNING,
        "a value that the format does not define",
        "Constants, repeated values and enumerations have values that the format defines.",
        "{value}",
        "The record is read; the value is kept.",
    ),
    (
        107,
        WARNING,
        "text that is not UTF-8",
        "Texts are UTF-8.",
        "",
        "The record is read; record JSON has the bytes beside the text.",
    ),
    (
        108,
        WARNING,
        "a reference to something that nothing declared",
        "A record declares a number before others refer to it.",
        "{value}",
        "The number is shown instead.",
    ),
    (
        109,
        DATA_LOSS,
        "a time that 64 bits of nanoseconds cannot hold",
        "Times are from -2^63 to 2^63 - 1 nanoseconds.",
        "",
        "The row is kept with the nearest time.",
    ),
    (
        110,
        DATA_LOSS,
        "a length below its least",
        "A length that counts what is always there is at least that.",
        "{value} bytes",
        DAMAGED,
    ),
    (
        111,
        WARNING,
        "a record of a kind that is not of this version",
        "Records are of the kinds that the version of the file has.",
        "kind {word:#x}",
        "The record is skipped by its size and kept as `unknown`.",
    ),
    (
        112,
        DATA_LOSS,
        "a record that is not of this version, and nothing says how long it is",
        "Records are of the kinds that the version of the file has.",
        "{value} bytes",
        DAMAGED,
    ),
)
"""Number, severity, title, rule, detail, and what the reader does."""
WRITING = (
    (401, "no such record or name", "Records and values have the names of the format."),
    (402, "a field is missing, or unknown", "A record has the fields of its kind."),
    (403, "a value of the wrong type", "Numbers are whole; texts are UTF-8."),
    (404, "a value that does not fit", "Each value fits its field."),
    (405, "bytes of another size", "Bytes without a meaning are as many as a record has."),
    (408, "a text that no record declares", "A record declares a text before others use it."),
)


def catalogue(prefix: str, title: str, more: Iterable[Rule]) -> Catalogue:
    """Return the rules of a format, with those of its author."""
    reading = (
        Rule(f"{prefix}{number:04}", severity, name, title, rule, detail=detail, ours=ours)
        for number, severity, name, rule, detail, ours in READING
    )
    writing = (
        Rule(
            f"{prefix}{number:04}",
            Severity.ERROR,
            name,
            title,
            rule,
            ours="Refused; nothing of the record is written.",
            remedy="Compare it with a record that `fxf cat --records` shows.",
        )
        for number, name, rule in WRITING
    )
    return Catalogue([*reading, *writing, *more])


def refusals(rules: Catalogue) -> Refusals:
    """Return the rules by which JSON is refused."""
    name, fields, kind, limits = (rules.numbered(number) for number in (401, 402, 403, 404))
    return Refusals(name=name, fields=fields, type=kind, range=limits)
