"""Profiles for callgrind: their lines, and the functions and calls that these hold."""

from __future__ import annotations

import re
from collections import Counter

from calls_of import Call, Given, Numbered, nested_calls, own_time
from hypothesis import given
from hypothesis import strategies as st

from fxframework.model.capture import Capture

from .test_profiles import LOOP, _OfToys, export

NAME = re.compile(r"(?P<key>fl|fn|cfi|cfn)=\((?P<number>\d+)\)(?: (?P<name>.+))?")


class Profile:
    """A profile as its format says: costs by function, and calls by caller and callee."""

    def __init__(self, output: bytes) -> None:
        self.own: Counter[str] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.times: Counter[tuple[str, str]] = Counter()
        self.files: dict[str, str] = {}
        names: dict[tuple[str, str], str] = {}
        where = dict.fromkeys(("fl", "fn", "cfi", "cfn"), "")
        counted = 0
        lines = output.decode().split("\n")
        assert lines[:3] == ["# callgrind format", "version: 1", "creator: fxframework"]
        assert lines[4:6] == ["positions: line", "events: ns"]
        for line in lines[7:]:
            found = NAME.fullmatch(line)
            if found is not None:
                kind = "fl" if found["key"] in {"fl", "cfi"} else "fn"
                if found["name"] is not None:
                    names[kind, found["number"]] = found["name"]
                where[found["key"]] = names[kind, found["number"]]
            elif line.startswith("calls="):
                counted = int(line[len("calls=") :].split(" ")[0])
            elif line:
                _, cost = map(int, line.split(" "))
                if counted:
                    self.calls[where["fn"], where["cfn"]] += counted
                    self.times[where["fn"], where["cfn"]] += cost
                    counted = 0
                else:
                    self.own[where["fn"]] += cost
                    self.files[where["fn"]] = where["fl"]
        assert lines[6] == f"summary: {self.own.total()}"


class TestCallgrindContract(_OfToys):
    name = "callgrind"

    def check_output(self, output: bytes, capture: Capture) -> None:
        assert Profile(output).own


def test_functions_have_their_own_time_and_that_of_their_calls() -> None:
    output, dropped = export("callgrind", Numbered(LOOP))
    profile = Profile(output)
    assert profile.own == {"f;x": 57 + 30 + 5, "g": 20, "h": 4}
    assert profile.calls == {("f;x", "g"): 1, ("g", "f;x"): 2}
    assert profile.times == {("f;x", "g"): 50, ("g", "f;x"): 35}
    assert profile.files["g"] == "g.c"
    assert dropped == {"lengths of calls that never ended": 1}


@given(calls=nested_calls(), captures=st.integers(1, 2))
def test_captures_are_added_up(calls: list[Call], captures: int) -> None:
    if not calls:
        return
    own: Counter[str] = Counter()
    times: Counter[tuple[str, str]] = Counter()
    for place, call in enumerate(calls):
        own[call.name] += captures * own_time(calls, place)
        if call.parent >= 0:
            times[calls[call.parent].name, call.name] += captures * max(call.dur, 0)
    profile = Profile(export("callgrind", *[Given(calls)] * captures)[0])
    assert +profile.own == +own
    assert +profile.times == +times


@given(name=st.text(st.characters(codec="utf-8")))
def test_any_name_is_one_line(name: str) -> None:
    calls = [Call(name, 0, 9), Call("(2) fn=(1)\nfl=x", 1, 3, parent=0, depth=1)]
    profile = Profile(export("callgrind", Given(calls))[0])
    assert profile.own.total() == 9
    assert "(2) fn=(1) fl=x" in profile.own
