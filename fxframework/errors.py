"""What can go wrong: severities, the rule catalogue, the exception tree and the exit codes.

The lowest room of the house: it imports nothing of ours, so that every other room may raise.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum

import attrs

__all__ = [
    "FRAMEWORK_RULES",
    "Catalogue",
    "ExitCode",
    "FxError",
    "LimitError",
    "MissingExtraError",
    "NoReaderError",
    "Rule",
    "Severity",
    "StrictError",
    "UnreadableError",
    "UsageError",
    "WriteRefusedError",
    "did_you_mean",
]


class Severity(IntEnum):
    """How much a finding matters (CONTRACTS §2)."""

    INFO = 0
    """Worth knowing; changes no exit status."""
    WARNING = 1
    """Departs from the format; nothing was lost."""
    DATA_LOSS = 2
    """Something was there that could not be read."""
    ERROR = 3
    """Cannot go on."""

    @property
    def word(self) -> str:
        """The word a person reads: ``data loss`` for DATA_LOSS."""
        return self.key.replace("_", " ")

    @property
    def key(self) -> str:
        """The word in JSON and in tables: ``data_loss`` for DATA_LOSS."""
        return self.name.lower()


class ExitCode(IntEnum):
    """Exit statuses of the command line (CONTRACTS §2)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FINDINGS = 3
    NO_READER = 4
    MISSING_EXTRA = 5


@attrs.frozen(kw_only=True)
class Rule:
    """One row of a format's rule catalogue: what `fxf explain CODE` and the docs are made from."""

    code: str
    """Stable for ever: prefix of the format and a number, such as ``FXT0104``."""
    severity: Severity
    title: str
    """The finding in a few words, without values."""
    rule: str
    """What the format says, or what we hold it to."""
    section: str
    """Where the format's document says so."""
    readers: str = ""
    """What the reference readers do about it."""
    ours: str = ""
    """What we do about it."""
    remedy: str = ""
    """What a person can do."""


class Catalogue(Mapping[str, Rule]):
    """A format's rules by code. Two rules of one code are a programming error."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules: dict[str, Rule] = {}
        for rule in rules:
            if rule.code in self._rules:
                msg = f"rule {rule.code} is declared twice"
                raise ValueError(msg)
            self._rules[rule.code] = rule

    def __getitem__(self, code: str) -> Rule:
        return self._rules[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)


class FxError(Exception):
    """Anything that stops a command. Says what, where, and what can be done.

    ``code`` is stable; ``path``, ``offset`` (bytes) and ``record`` (index) say where, as far as
    known; ``remedy`` says what the reader of the message can do.
    """

    exit_code: ExitCode = ExitCode.FAILED
    default_code = "FXF0001"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        path: str | None = None,
        offset: int | None = None,
        record: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.path = path
        self.offset = offset
        self.record = record
        self.remedy = remedy

    def __str__(self) -> str:
        where = "" if self.path is None else f"{self.path}: "
        at = "" if self.offset is None else f" (at byte {self.offset})"
        return f"{where}{self.message}{at}"


class UnreadableError(FxError):
    """The file cannot be opened, or nothing in it could be read (exit 1)."""

    default_code = "FXF0001"


class WriteRefusedError(FxError):
    """The format or the exporter cannot hold what it was asked to write; nothing was written."""

    default_code = "FXF0002"


class LimitError(FxError):
    """A limit that the user can raise was reached (exit 1)."""

    default_code = "FXF0003"


class StrictError(FxError):
    """``--strict``: the first finding of DATA_LOSS or worse stops the reading (exit 1)."""

    default_code = "FXF0004"


class UsageError(FxError):
    """The caller asked for something that does not exist or does not fit together (exit 2)."""

    exit_code = ExitCode.USAGE
    default_code = "FXF0005"


class NoReaderError(FxError):
    """No reader claims the input, or several do with equal confidence (exit 4)."""

    exit_code = ExitCode.NO_READER
    default_code = "FXF0006"


class MissingExtraError(FxError):
    """An optional dependency is not installed (exit 5); the remedy is the install line."""

    exit_code = ExitCode.MISSING_EXTRA
    default_code = "FXF0007"

    def __init__(self, package: str, extra: str, *, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed",
            remedy=f"pip install 'fxframework[{extra}]'",
        )
        self.extra = extra


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` with the nearest known word, or the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


FRAMEWORK_RULES = Catalogue(
    [
        Rule(
            code="FXF0000",
            severity=Severity.ERROR,
            title="a bug",
            rule="Whatever the input, a command ends with a result or a coded error.",
            section="DESIGN §3",
            ours="The command stops with exit status 1; an output file is left as it was.",
            remedy="Report it with the input, or its first kilobytes, and what `-v` prints.",
        ),
        Rule(
            code="FXF0001",
            severity=Severity.ERROR,
            title="the input cannot be read",
            rule="An input is a file, a pipe or bytes that can be opened and that hold at least "
            "one sound record of the format asked for.",
            section="CONTRACTS §2",
            ours="The command stops with exit status 1; nothing is written.",
            remedy="Check the path and the format; `fxf cat --records` and `fxf convert IN "
            "OUT.jsonl` keep any bytes, as damaged records.",
        ),
        Rule(
            code="FXF0002",
            severity=Severity.ERROR,
            title="the output cannot hold this",
            rule="A writer or exporter refuses what its format has no place for, before anything "
            "is written.",
            section="CONTRACTS §6",
            ours="Nothing is written; an existing file is left as it was.",
            remedy="Choose another exporter or file name; `--force` allows an existing file to be "
            "replaced.",
        ),
        Rule(
            code="FXF0003",
            severity=Severity.ERROR,
            title="a limit was reached",
            rule="Limits keep memory and time in proportion to the input.",
            section="docs, Limits",
            ours="The command stops, or the finding says what was left out.",
            remedy="Raise the named limit with `-o limit=value`.",
        ),
        Rule(
            code="FXF0004",
            severity=Severity.ERROR,
            title="stopped at the first loss",
            rule="With --strict the first finding of data loss or worse ends the reading.",
            section="CONTRACTS §6",
            ours="The command stops with exit status 1; nothing is written.",
            remedy="Leave out --strict to keep what is sound.",
        ),
        Rule(
            code="FXF0005",
            severity=Severity.ERROR,
            title="the request makes no sense",
            rule="Commands, options, tables, formats and exporters have the names that "
            "`fxf plugins` and `fxf --help` list.",
            section="CONTRACTS §6",
            ours="Nothing is read or written; exit status 2.",
            remedy="See `fxf COMMAND --help`.",
        ),
        Rule(
            code="FXF0006",
            severity=Severity.ERROR,
            title="no reader, or more than one",
            rule="Exactly one reader must claim the input with the greatest confidence.",
            section="CONTRACTS §1",
            ours="Nothing is read; exit status 4.",
            remedy="Name the format with -f NAME; `fxf plugins` lists the names.",
        ),
        Rule(
            code="FXF0007",
            severity=Severity.ERROR,
            title="an optional package is missing",
            rule="Some exporters and commands need a package that is not installed by default.",
            section="docs, Extras",
            ours="Nothing is written; exit status 5.",
            remedy="Run the install line that the message gives.",
        ),
        Rule(
            code="FXF0008",
            severity=Severity.WARNING,
            title="a plugin failed",
            rule="A plugin imports, implements only hooks that exist, and registers what no other "
            "plugin has.",
            section="docs, Plugins",
            ours="What failed is left out and listed; everything else works.",
            remedy="See `fxf plugins`; FXF_DISABLE_PLUGINS=NAME leaves it out in silence.",
        ),
        Rule(
            code="FXF0101",
            severity=Severity.DATA_LOSS,
            title="the gzip stream is damaged",
            rule="A gzip input unpacks to its end with matching length and checksum.",
            section="RFC 1952",
            readers="gzip(1) and Perfetto stop at the damage.",
            ours="What could be unpacked before the damage is read.",
            remedy="Fetch the file again; what was recovered can be written with "
            "`fxf convert IN OUT`.",
        ),
        Rule(
            code="FXF0102",
            severity=Severity.DATA_LOSS,
            title="the input is empty",
            rule="A capture holds at least one byte.",
            section="CONTRACTS §2",
            ours="An empty capture is given.",
            remedy="Check that the writer of the file was stopped or flushed.",
        ),
        Rule(
            code="FXF0103",
            severity=Severity.DATA_LOSS,
            title="a line of the records file makes no sense",
            rule="Each line of a .jsonl records file is one JSON object with a known `record`, "
            "after one header line.",
            section="CONTRACTS §3",
            ours="The line is left out; the others are read.",
            remedy="Mend or remove the line at the given byte.",
        ),
        Rule(
            code="FXF0104",
            severity=Severity.INFO,
            title="more findings than are kept",
            rule="Each code keeps a bounded number of findings; the counts stay exact.",
            section="docs, Limits",
            ours="Further findings of that code are counted, not listed.",
            remedy="Raise `-o max_findings=N` to list more.",
        ),
    ]
)
