"""Rules and catalogues: names, numbers and messages of findings."""

from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from fxframework import rules
from fxframework.errors import Catalogue, LimitError, Rule, Severity, WriteRefusedError, refusal
from fxframework.model.diagnostics import Diagnostics, Found

from ..cases import cases

CUT_OFF = Rule(
    "DRUM0102",
    Severity.DATA_LOSS,
    "the last record is cut off",
    "Drums, Records",
    "A record has 24 bytes.",
    detail="{value} bytes of 0x{word:x}",
    remedy="Write it again.",
)
OTHER = Rule("BEAT0102", Severity.INFO, "another", "Beats", "None.", detail="{name}: {value!r}")


def test_a_rule_is_its_number_and_equals_no_rule_of_another_format() -> None:
    assert (int(CUT_OFF), CUT_OFF == 102, CUT_OFF == OTHER, CUT_OFF != OTHER) == (
        102, True, False, True,
    )  # fmt: skip
    assert {CUT_OFF: 1}[102] == 1
    assert repr(CUT_OFF) == "Rule('DRUM0102', 'the last record is cut off')"


def test_copies_of_a_rule_are_the_rule() -> None:
    for again in (pickle.loads(pickle.dumps(CUT_OFF)), copy.deepcopy(CUT_OFF)):
        assert (again, int(again), again.detail) == (CUT_OFF, 102, CUT_OFF.detail)
    assert int(attrs.evolve(CUT_OFF, code="DRUM0103")) == 103


@cases("code", ["DRUM102", "drum0102", "0102", "DRUM01022", ""])
def test_a_code_has_a_prefix_and_four_digits(code: str) -> None:
    with pytest.raises(ValueError, match="invalid code"):
        Rule(code, Severity.INFO, "", "", "")


def test_messages_are_the_title_and_the_detail() -> None:
    title = CUT_OFF.title
    assert CUT_OFF.message() == title
    assert CUT_OFF.message(1) == f"{title}: 1 byte of 0x1"
    assert CUT_OFF.message(-2) == f"{title}: -2 bytes of 0xfffffffffffffffe"
    assert OTHER.message(b"{x}", name="{y}") == "another: {y}: b'{x}'"
    assert rules.BUG.message("no detail is declared") == rules.BUG.title


def test_a_catalogue_has_the_rules_of_a_module() -> None:
    names = {"CUT_OFF": CUT_OFF, "__name__": "drums", "Rule": Rule, "LIMIT": 7}
    catalogue = Catalogue.of(names)
    assert dict(catalogue) == {"DRUM0102": CUT_OFF}
    assert (catalogue.numbered(102), catalogue.numbers) == (CUT_OFF, 103)
    with pytest.raises(KeyError, match="no rule 'DRUM0103'"):
        catalogue["DRUM0103"]
    with pytest.raises(ValueError, match="BEAT0102 and DRUM0102 have the same number"):
        Catalogue([OTHER, CUT_OFF])
    with pytest.raises(ValueError, match="DRUM0102 is declared twice"):
        Catalogue([CUT_OFF, attrs.evolve(CUT_OFF)])


def test_findings_are_reported_by_rule() -> None:
    found = Diagnostics(Catalogue([CUT_OFF]))
    found.report([Found(CUT_OFF, 80, 5), Found(rules.EMPTY_INPUT, 0)], 4)
    assert [(each.code, each.offset, each.record) for each in found] == [
        ("DRUM0102", 80, 4), ("FXF0102", 0, 4),
    ]  # fmt: skip
    assert found[0].message == "the last record is cut off: 5 bytes of 0x5"


def test_errors_have_the_code_and_the_remedy_of_their_rule() -> None:
    error = refusal(CUT_OFF, "too short")
    assert isinstance(error, WriteRefusedError)
    assert (error.code, error.remedy) == ("DRUM0102", "Write it again.")
    assert (LimitError("x").code, LimitError("x").remedy) == ("FXF0003", "")
    assert LimitError("x", rule=CUT_OFF, remedy="y").remedy == "y"
