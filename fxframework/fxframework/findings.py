"""Findings: severities, the rules of a format by name, and catalogues of rules by code.

The lowest layer: it imports no other module of the framework.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Self

import attrs

__all__ = ["Catalogue", "Refusals", "Rule", "Severity"]

U64_MAX = (1 << 64) - 1
ONE_ARE = re.compile(r"\b1 (byte|word)s are\b")
"""A plural with its verb after the number 1: ``1 words are``."""
SINGULAR = re.compile(
    r"\b1 ((?:zero |short )?(?:argument|byte|call|link|microsecond|slice|slot|tick|word))s\b"
)
"""A plural after the number 1: ``1 words``."""


def singular(text: str) -> str:
    """Return a text with ``1 byte`` in place of ``1 bytes``, and so on."""
    text = ONE_ARE.sub(r"1 \1 is", text)
    return SINGULAR.sub(r"1 \1", text)


class Severity(IntEnum):
    """How much a finding matters."""

    INFO = 0
    """Worth knowing; changes no exit status."""
    WARNING = 1
    """Violates the format; nothing was lost."""
    DATA_LOSS = 2
    """Some data could not be read."""
    ERROR = 3
    """Reading or writing cannot continue."""

    @property
    def word(self) -> str:
        """The name in messages: ``data loss`` for DATA_LOSS."""
        return self.key.replace("_", " ")

    @property
    def key(self) -> str:
        """The name in JSON and in tables: ``data_loss`` for DATA_LOSS."""
        return self.name.lower()


@attrs.frozen(slots=False, eq=False, repr=False)  # an int has no room for slots
class Rule(int):
    """A rule of a format: what can be wrong, how much it matters, and what messages say about it.

    ``rules.py`` of a format gives each rule a name, which is used everywhere else. A rule is an
    integer, the number in its code (``DRUM0104`` is 104), because kernels note findings as numbers.
    """

    code: str
    """The format's prefix and a number of four digits, such as ``DRUM0104``; it never changes."""
    severity: Severity
    """The severity of a finding by this rule."""
    title: str
    """The finding in a few words, without values."""
    section: str
    """The section of the format's document that requires it."""
    rule: str
    """What the format requires."""
    detail: str = attrs.field(default="", kw_only=True)
    """What a finding says after the title: a format string with the fields ``value``, ``word``
    (``value`` as an unsigned number of 64 bits), and others that the reader passes by name."""
    readers: str = attrs.field(default="", kw_only=True)
    """What the reference readers do."""
    ours: str = attrs.field(default="", kw_only=True)
    """What this reader does."""
    remedy: str = attrs.field(default="", kw_only=True)
    """What the user can do."""

    def __new__(cls, code: str, *_: Any, **__: Any) -> Self:
        """Return the integer of a code. Raises ValueError for a code without a number."""
        match = re.fullmatch(r"[A-Z]+([0-9]{4})", code)
        if match is None:
            msg = f"invalid code {code!r}: must be capital letters, then four digits"
            raise ValueError(msg)
        return super().__new__(cls, int(match[1]))

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]  # that of __new__
        return (self.code,)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rule):
            return self.code == other.code
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__

    def __repr__(self) -> str:
        return f"Rule({self.code!r}, {self.title!r})"

    def message(self, value: object = None, **values: object) -> str:
        """Return the message of a finding: the title, then ``detail`` with the values of this case.

        Without a value it is the title.
        """
        if value is None and not values:
            return self.title
        word = value
        if isinstance(value, int):
            word = value & U64_MAX
        detail = singular(self.detail.format(value=value, word=word, **values))
        return f"{self.title}: {detail}" if detail else self.title

    def advice(self, name: str, offset: int | None, *, explains: bool = True) -> str:
        """Return what to do about a finding at an offset of a file: the remedy, or the rule.

        ``explains`` says whether the format explains its bytes.
        """
        if self.remedy or offset is None or name == "-":
            return self.remedy or self.rule
        if not explains:
            return f"{self.rule} `fxf cat --records {shlex.quote(name)}` shows the record there."
        place = shlex.quote(f"{name}@{offset:#x}")
        return f"{self.rule} `fxf explain {place}` shows what is there."


class Catalogue(Mapping[str, Rule]):
    """A format's rules by code. Raises ValueError for two rules with the same code or number."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules: dict[str, Rule] = {}
        self._numbered: dict[int, Rule] = {}
        for rule in rules:
            number = int(rule)
            earlier_rule = self._numbered.get(number)
            if earlier_rule is not None:
                msg = f"rule {rule.code} is declared twice"
                if earlier_rule.code != rule.code:
                    msg = f"rules {earlier_rule.code} and {rule.code} have the same number"
                raise ValueError(msg)
            self._rules[rule.code] = rule
            self._numbered[number] = rule

    @classmethod
    def of(cls, names: Mapping[str, object]) -> Catalogue:
        """Return the catalogue of the rules in a namespace: ``RULES = Catalogue.of(globals())``."""
        return cls(value for value in names.values() if isinstance(value, Rule))

    def __getitem__(self, code: str) -> Rule:
        try:
            return self._rules[code]
        except KeyError:
            raise KeyError(f"the catalogue has no rule {code!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    @property
    def numbers(self) -> int:
        """One more than the greatest number: the length of an array with an entry per number."""
        return max(self._numbered, default=-1) + 1

    def numbered(self, number: int) -> Rule:
        """Return the rule of a number that a kernel noted."""
        return self._numbered[number]


@attrs.frozen
class Refusals:
    """The rules of errors in records given as JSON (``fxframework.kit.json_fields``)."""

    name: Rule
    """An unknown name of a record or of a value."""
    fields: Rule
    """A field that is missing or unknown."""
    type: Rule
    """A value of a wrong type."""
    range: Rule
    """A number that does not fit its field."""
