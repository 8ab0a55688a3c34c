"""Cases in one test are tried one by one, and those that fail are named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .cases import cases


def test_every_combination_is_tried_in_a_folder_of_its_own(tmp_path: Path) -> None:
    tried = []

    @cases("number", [1, 2])
    @cases("text, length", [("a", 1), ("bb", 2)], ids=["short", "long"])
    def test(tmp_path: Path, number: int, text: str, length: int) -> None:
        assert not list(tmp_path.iterdir())
        (tmp_path / text).touch()
        tried.append((number, text, length))

    test(tmp_path=tmp_path)
    assert tried == [(1, "a", 1), (1, "bb", 2), (2, "a", 1), (2, "bb", 2)]


def test_every_failure_is_named_and_the_others_are_tried() -> None:
    tried = []

    @cases("number", [1, 2, pytest.param(3, id="third")])
    def test(number: int) -> None:
        tried.append(number)
        if number == 3:
            pytest.fail("three")
        assert number == 2

    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases failed: 1; third") as failed:
        test()
    assert tried == [1, 2, 3]
    assert [error.__notes__ for error in failed.value.exceptions] == [
        ["in the case 1"],
        ["in the case third"],
    ]


def test_what_is_skipped_is_told() -> None:
    @cases("number", [1, 2, 3])
    def test(number: int) -> None:
        if number == 2:
            pytest.skip("no two here")

    with pytest.raises(pytest.skip.Exception, match="1 of 3 cases: no two here"):
        test()


def test_patches_end_with_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    @cases("name", ["FXF_CASE_A", "FXF_CASE_B"])
    def test(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        assert not {"FXF_CASE_A", "FXF_CASE_B"} & os.environ.keys()
        monkeypatch.setenv(name, "1")

    test(monkeypatch=monkeypatch)
