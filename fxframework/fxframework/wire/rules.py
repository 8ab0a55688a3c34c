"""Rules: the findings and refusals that every declared format has, under its own prefix.

Fields report findings (``note``) and refuse values (``RefusalError``) by the numbers here; the
catalogue of a format makes codes of them: ``106`` is ``DRUM0106`` of a format with the prefix
``DRUM``. A format puts rules of its own in their place with the option ``rules``.
"""

from __future__ import annotations

from collections.abc import Iterable

from fxframework.errors import Catalogue, Refusals, Rule, Severity

# Findings of reading; READING says what each is about.
BAD_MAGIC = 101
CUT_OFF = 102
UNKNOWN_KIND = 103
BAD_SIZE = 104
RESERVED = 105
UNDEFINED_VALUE = 106
NOT_UTF8 = 107
NOT_DECLARED = 108
TIME_BEYOND = 109
BELOW_LEAST = 110
OTHER_VERSION = 111
OTHER_VERSION_LOST = 112
# Refusals of writing; see WRITING.
NO_SUCH_NAME = 401
WRONG_FIELDS = 402
WRONG_TYPE = 403
DOES_NOT_FIT = 404
WRONG_SPARE = 405
NO_SUCH_TEXT = 408
TIME_TOO_FAR = "a time that 64 bits of nanoseconds cannot hold"
"""What TIME_BEYOND says. Its record is whole, so that salvage keeps it."""

DATA_LOSS = Severity.DATA_LOSS
WARNING = Severity.WARNING
DAMAGED = "The bytes are kept as `damaged`; reading goes on where a record fits."
READING: tuple[tuple[int, Severity, str, str, str, str], ...] = (
    (
        BAD_MAGIC,
        DATA_LOSS,
        "bad magic",
        "A file, and each part of it with a byte order of its own, begins with a fixed number.",
        "{value} bytes",
        DAMAGED,
    ),
    (
        CUT_OFF,
        DATA_LOSS,
        "cut off",
        "A record is as long as its header, or its fields, say.",
        "{value} bytes",
        DAMAGED,
    ),
    (
        UNKNOWN_KIND,
        WARNING,
        "a record of an unknown kind",
        "Records are of the kinds that the format defines.",
        "kind {word:#x}",
        "The record is skipped by its size and kept as `unknown`.",
    ),
    (
        BAD_SIZE,
        DATA_LOSS,
        "a size out of bounds",
        "A record holds its fields; its kind or its header says how long it is.",
        "{value} bytes",
        DAMAGED,
    ),
    (
        RESERVED,
        WARNING,
        "reserved bits are set",
        "Bits and bytes without a meaning are zero.",
        "{word:#x}",
        "The record is read; its bytes are kept in `raw`.",
    ),
    (
        UNDEFINED_VALUE,
        WARNING,
        "a value that the format does not define",
        "Constants, repeated values and enumerations have values that the format defines.",
        "{value}",
        "The record is read; the value is kept.",
    ),
    (
        NOT_UTF8,
        WARNING,
        "text that is not UTF-8",
        "Texts are UTF-8.",
        "",
        "The record is read; record JSON has the bytes beside the text.",
    ),
    (
        NOT_DECLARED,
        WARNING,
        "a reference to something that nothing declared",
        "A record declares a number before others refer to it.",
        "{value}",
        "The number is shown instead.",
    ),
    (
        TIME_BEYOND,
        DATA_LOSS,
        TIME_TOO_FAR,
        "Times are from -2^63 to 2^63 - 1 nanoseconds.",
        "",
        "The row is kept with the nearest time.",
    ),
    (
        BELOW_LEAST,
        DATA_LOSS,
        "a length below its least",
        "A length that counts what is always there is at least that.",
        "{value} bytes",
        DAMAGED,
    ),
    (
        OTHER_VERSION,
        WARNING,
        "a record of a kind that is not of this version",
        "Records are of the kinds that the version of the file has.",
        "kind {word:#x}",
        "The record is skipped by its size and kept as `unknown`.",
    ),
    (
        OTHER_VERSION_LOST,
        DATA_LOSS,
        "a record that is not of this version, and nothing says how long it is",
        "Records are of the kinds that the version of the file has.",
        "{value} bytes",
        DAMAGED,
    ),
)
"""Number, severity, title, rule, detail, and what the reader does."""
WRITING = (
    (NO_SUCH_NAME, "no such record or name", "Records and values have the names of the format."),
    (WRONG_FIELDS, "a field is missing, or unknown", "A record has the fields of its kind."),
    (WRONG_TYPE, "a value of the wrong type", "Numbers are whole; texts are UTF-8."),
    (DOES_NOT_FIT, "a value that does not fit", "Each value fits its field."),
    (WRONG_SPARE, "bytes of another size", "Bytes without a meaning are as many as a record has."),
    (
        NO_SUCH_TEXT,
        "a text that no record declares",
        "A record declares a text before others use it.",
    ),
)


def writing(prefix: str, section: str, first: int = NO_SUCH_NAME) -> list[Rule]:
    """Return the rules by which records are refused that a format cannot hold, as in WRITING.

    ``first`` is the number that the first of them has in the format.
    """
    return [
        Rule(
            f"{prefix}{number - NO_SUCH_NAME + first:04}",
            Severity.ERROR,
            name,
            section,
            rule,
            ours="Refused; nothing of the record is written.",
            remedy="Compare it with a record that `fxf cat --records` shows.",
        )
        for number, name, rule in WRITING
    ]


def catalogue(prefix: str, title: str, more: Iterable[Rule]) -> Catalogue:
    """Return the rules of a format, with those of its author."""
    reading = (
        Rule(f"{prefix}{number:04}", severity, name, title, rule, detail=detail, ours=ours)
        for number, severity, name, rule, detail, ours in READING
    )
    return Catalogue([*reading, *writing(prefix, title), *more])


def refusals(rules: Catalogue) -> Refusals:
    """Return the rules by which JSON is refused."""
    name, fields, kind, limits = (
        rules.numbered(number) for number in (NO_SUCH_NAME, WRONG_FIELDS, WRONG_TYPE, DOES_NOT_FIT)
    )
    return Refusals(name=name, fields=fields, type=kind, range=limits)
