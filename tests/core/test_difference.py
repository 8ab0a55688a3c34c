"""What two captures say that the other does not: by record, by entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import hypothesis
import orjson
import pytest
import toy
from hypothesis import strategies as st

from fxframework.errors import UsageError
from fxframework.io.source import Source
from fxframework.kit import difference
from fxframework.kit.difference import Difference, compare
from fxframework.model.capture import OpenRequest


def opened(*records: bytes) -> toy.ToyCapture:
    return toy.ToyCapture(Source.open(toy.toy(*records)), OpenRequest(options={"refuse": False}))


def compared(a: list[bytes], b: list[bytes], **more: Any) -> Difference:
    return compare(opened(*a), opened(*b), **more)


MARKS = [toy.mark(name, 1_000 * at, at) for at, name in enumerate(["a", "b", "c", "d"])]


# --- By record -----------------------------------------------------------------------------------


def test_the_same_bytes_are_not_looked_into() -> None:
    one, other = opened(*MARKS), opened(*MARKS)
    found = compare(one, other)
    assert (found.identical, found.same, found.records) == (True, True, None)
    assert one.passes == other.passes == 0


def test_what_only_one_has_is_counted_and_shown() -> None:
    found = compared(MARKS, [*MARKS[:2], toy.span("x", 5, 1), MARKS[3]])
    assert not found.same
    records = found.records
    assert records is not None
    assert records.counts == (5, 5)
    assert records.only == ({"mark": 1}, {"span": 1})
    assert not records.reordered
    ((a,), (b,)) = records.shown
    assert (a.offset, a.kind) == (8 + 48, "mark")
    assert a.said == {"record": "mark", "name": "c", "ts": 2_000, "value": 2}
    assert (b.offset, b.kind, b.said["name"]) == (8 + 48, "span", "x")
    assert records.first == (a, b)


def test_where_one_has_ended() -> None:
    records = compared(MARKS, MARKS[:3]).records
    assert records is not None
    assert records.only == ({"mark": 1}, {})
    assert records.first is not None
    assert records.first[0] is not None
    assert records.first[0].said["name"] == "d"
    assert records.first[1] is None


def test_the_same_in_another_order() -> None:
    found = compared(MARKS, MARKS[::-1], by=["record"])
    assert found.records is not None
    assert found.records.reordered
    assert not found.same
    assert found.records.only == ({}, {})
    assert found.records.first is not None
    assert [one.said["name"] for one in found.records.first if one] == ["a", "d"]


def test_one_that_is_there_more_often() -> None:
    records = compared([*MARKS, MARKS[0], MARKS[0]], MARKS).records
    assert records is not None
    assert records.only == ({"mark": 2}, {})
    assert [one.offset for one in records.shown[0]] == [8 + 4 * 24, 8 + 5 * 24]


def test_no_more_are_shown_than_asked_for() -> None:
    for show in (0, 1, 3):
        records = compared(MARKS, [], show=show).records
        assert records is not None
        assert len(records.shown[0]) == show
        assert records.only[0] == {"mark": 4}


def test_raw_bytes_count_where_they_are_all_there_is() -> None:
    one, other = toy.record(7, "a"), toy.record(7, "b")
    assert not compared([one], [other], by=["record"]).same
    damage = toy.record(9, "", 1), toy.record(9, "", 2)
    assert not compared([damage[0]], [damage[1]], by=["record"]).same
    # Beside a name they do not: these differ in what is no UTF-8 alone, and show the same.
    found = compared([toy.mark(b"\xff", 1)], [toy.mark(b"\xfe", 1)], by=["record"])
    assert found.same
    assert not found.identical


@attrs.frozen
class Told:
    """A record that says what it is told to."""

    shown: dict[str, Any]
    offset: int = 0

    def to_json(self) -> dict[str, Any]:
        return self.shown


class Telling(toy.ToyCapture):
    """A capture of such records; some kinds only support others."""

    support_records = frozenset({"string"})

    def __init__(self, *shown: dict[str, Any]) -> None:
        data = repr(shown).encode()
        super().__init__(Source.open(data), OpenRequest(options={}))
        self.shown = shown

    def records(self) -> Iterator[Any]:
        return map(Told, self.shown)


def told(*shown: dict[str, Any]) -> list[dict[str, Any]]:
    """Records as pairs: where they stand, and all else."""
    return [{"record": "x", "offset": 8 * at, "nbytes": 8, **one} for at, one in enumerate(shown)]


def same(one: list[Any], other: list[Any]) -> bool:
    found = compare(Telling(*one), Telling(*other), by=["record"])
    assert not found.identical or one == other
    return found.same


def test_indexes_do_not_count_and_values_do() -> None:
    argument = {"name": "n", "value": 1}
    one = told({"text": "a", "args": [{**argument, "refs": {"name": 5}}], "refs": {"text": 1}})
    other = told({"text": "a", "args": [argument], "refs": {"text": 2, "name": 3}})
    assert same(one, other)
    assert not same(one, told({"text": "b", "args": [argument], "refs": {"text": 1}}))
    assert not same(one, told({"text": "a", "args": [{**argument, "value": 2}]}))
    tricky = told({"text": ',"refs":{"a":1}', "more": [",", "refs"]})
    assert same(tricky, [{**tricky[0], "refs": {"text": 1}}])
    assert not same(tricky, told({"text": "", "more": [",", "refs"]}))


def test_the_place_of_a_record_does_not_count() -> None:
    one = told({"text": "a"})
    assert same(one, [{**one[0], "offset": 80, "nbytes": 24}])
    # Nor does it where another kind of capture puts it elsewhere.
    odd = [{"offset": 1, "record": "x", "text": "a", "nbytes": 2}]
    assert same(one, odd)
    assert not same(told({"text": ',"offset":1,"nbytes":2'}), told({"text": ""}))


def test_records_that_only_support_others_do_not_count() -> None:
    one = told({"text": "a", "refs": {"text": 1}})
    string = {"record": "string", "offset": 0, "nbytes": 8, "index": 1, "value": "a"}
    assert same(one, [string, *one])
    found = compare(Telling(string, string, *one), Telling(*told({"text": "b"})), by=["record"])
    assert found.records is not None
    assert found.records.counts == (1, 1)
    (shown,) = found.records.shown[0]
    assert shown.said == {"record": "x", "text": "a"}


def test_raw_counts_beside_numbers_alone() -> None:
    assert not same(told({"kind": 5, "raw": "aa"}), told({"kind": 5, "raw": "bb"}))
    assert same(told({"kind": "five", "raw": "aa"}), told({"kind": "five"}))
    assert not same(told({"code": "C", "raw": "aa"}), told({"code": "C", "raw": "bb"}))


def test_a_window_knows_what_supports() -> None:
    string = {"record": "string", "offset": 0, "nbytes": 8, "value": "a"}
    one, other = (
        Telling(*told({"text": "a"})),
        Telling(string, *told({"text": "a"})),
    )
    found = compare(one.between(0, 1), other.between(0, 1), by=["record"])
    assert found.same


keys = st.sampled_from(
    ["refs", "offset", "nbytes", "raw", "code", "record", "name", "v", 'a"b', "long name", ""]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12)
    | st.sampled_from(["", ',"refs":{', '"', "\\", "\n", ',"offset":1,"nbytes":2', "12345678"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
objects = st.dictionaries(keys, values, max_size=6).map(lambda one: {"record": "x", **one})


@hypothesis.given(st.lists(st.tuples(objects, st.booleans()), max_size=6))
def test_digests_are_those_of_the_contents(shown: list[tuple[dict[str, Any], bool]]) -> None:
    # Some objects have the usual order of keys, in which they are digested without being parsed.
    records = [
        {"record": "x", "offset": 8, "nbytes": 8, **one, "refs": {"v": 1}} if usual else one
        for one, usual in shown
    ]
    contents = [orjson.dumps(difference._contents(orjson.dumps(one))) for one in records]
    found = difference._digested_side(Telling(*records)).digests.tolist()
    assert len(found) == len(contents)
    for digest, said in zip(found, contents, strict=True):
        assert digest == hash(said) % 2**64
    assert len(set(found)) == len(set(contents))


def test_a_kind_whose_first_line_has_blanks_does_not_disturb_the_next() -> None:
    names: dict[str, int] = {}
    lines = b'{"record":"a","x": 1}\n{"record":"b","x":2}\n{"record":"a","x":1}\n{"record":"b"}\n'
    digests, kinds = difference._digested(lines, names)
    assert [list(names)[kind] for kind in kinds.tolist()] == ["a", "b", "a", "b"]
    assert digests[0] == digests[2]


def test_objects_are_made_of_what_differs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    contents = difference._contents

    def counted(line: bytes) -> dict[str, Any]:
        nonlocal made
        made += 1
        return contents(line)

    monkeypatch.setattr(difference, "_contents", counted)
    many = [toy.mark("m", at, at) for at in range(5_000)]
    found = compared(many, [*many[:4_000], toy.mark("n", 1), *many[4_001:]], by=["record"])
    assert found.records is not None
    assert found.records.only == ({"mark": 1}, {"mark": 1})
    assert made < 20


few = st.lists(st.sampled_from([*MARKS, toy.record(7), toy.span("s", 1, 1)]), max_size=12)


@hypothesis.given(few, few, st.integers(1, 4))
def test_it_is_the_difference_of_two_bags(one: list[bytes], other: list[bytes], piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(difference, "PIECE", piece)
        found = compared(one, other, by=["record"], show=100)
    assert found.same == (one == other)
    assert found.identical == (one == other)
    records = found.records
    if records is None:
        return
    only = Counter(one) - Counter(other), Counter(other) - Counter(one)
    for side, (expected, given, shown) in enumerate(
        zip(only, records.only, records.shown, strict=True)
    ):
        assert sum(given.values()) == expected.total() == len(shown)
        own = (one, other)[side]
        assert Counter(own[(each.offset - 8) // 24] for each in shown) == expected
    assert records.reordered == (not any(only) and one != other)


# --- What is compared ----------------------------------------------------------------------------


def test_only_what_was_asked_for_counts() -> None:
    a, b = MARKS[:1], [toy.mark("a", 7, 7)]  # the same name, at another time
    assert not compared(a, b, by=["record"]).same
    assert not compared(a, b).same


def test_windows_are_compared_even_of_one_file() -> None:
    one, other = opened(*MARKS), opened(*MARKS)
    found = compare(one.between(0, 1_000), other.between(1_000, 2_000))
    assert not found.same
    assert compare(one.between(0, 1_000), other.between(0, 1_000)).same


def test_captures_of_two_formats_are_refused() -> None:
    other = opened()
    other.format = "other"  # type: ignore[misc]
    with pytest.raises(UsageError, match="has the format toy"):
        compare(opened(), other)
