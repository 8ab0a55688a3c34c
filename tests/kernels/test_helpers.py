"""What kernels are made of, held against Python's own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxframework.kernels import parts, pools, sorting, templates
from fxframework.kernels.stretches import copied, not_utf8
from fxframework.kit.row_texts import json_doubles
from fxframework.model.strings import StringPool
from fxframework.wire.findings import Findings

from ..cases import cases

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.one_of(st.binary(max_size=40), st.text(max_size=12).map(str.encode))


def numbers(values: list[int]) -> memoryview:
    return np.array(values, np.int64).data


# --- Maps --------------------------------------------------------------------------------------


@given(values=st.lists(st.integers(0, 5) | INT64), count=st.integers(0, 9))
def test_the_largest_are_the_first_of_equal_ones(values: list[int], count: int) -> None:
    places = sorted(range(len(values)), key=lambda place: -values[place])[:count]
    assert sorting.largest(np.array(values, np.int64), count).tolist() == sorted(places)


@given(keys=st.lists(st.tuples(INT64, st.integers(-3, 3)), max_size=200))
def test_a_map_is_a_dict(keys: list[tuple[int, int]]) -> None:
    found = pools.PairMap(1)
    expected: dict[tuple[int, int], int] = {}
    for key in keys:
        assert found.get(*key) == expected.get(key, -1)
        assert found.number(*key) == expected.setdefault(key, len(expected))
    for place, key in enumerate(expected):
        found.put(*key, 7 * place)
    assert [found.get(*key) for key in expected] == [7 * place for place in range(len(expected))]
    assert len(found) == len(expected)


def test_a_map_grows() -> None:
    found = pools.PairMap()
    for number in range(20_000):
        assert found.number(number << 40, -number) == number
    assert all(found.get(number << 40, -number) == number for number in range(20_000))


# --- Pools -------------------------------------------------------------------------------------


@given(values=st.lists(TEXTS, max_size=150))
def test_a_pool_numbers_distinct_strings(values: list[bytes]) -> None:
    pool = pools.Pool()
    expected: dict[bytes, int] = {}
    for value in values:
        assert pool.look_up(value) == expected.get(value, -1)
        code = expected.setdefault(value, len(expected))
        assert pool.enter(value) == pool.look_up(value) == code
        assert pool.bytes_of(code) == value
    assert pool.count == len(expected)
    assert np.asarray(pool.valid)[: pool.count].tolist() == [is_text(value) for value in expected]
    assert pool.array("lengths").tolist() == [len(value) for value in expected]


def test_a_pool_grows() -> None:
    pool = pools.Pool()
    values = [f"name {number}".encode() * (number % 5) for number in range(9_000)]
    codes = [pool.enter(value) for value in values]
    assert [pool.look_up(value) for value in values] == codes
    assert pool.count == len(set(values))
    assert [pool.bytes_of(code) for code in codes] == values


@given(numbers=st.lists(st.integers(0, 2**63 - 1), max_size=40))
def test_a_pool_enters_numbers_as_digits(numbers: list[int]) -> None:
    pool = StringPool()
    codes = pool.intern_numbers(np.array(numbers, np.int64))
    assert [pool.bytes_of(code) for code in codes.tolist()] == [b"%d" % each for each in numbers]
    assert len(pool) == len({*numbers}) + 1  # and the empty one


def is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- UTF-8 -------------------------------------------------------------------------------------

EDGES = "00 7F 80 8F 90 9F A0 BF C0 C1 C2 DF E0 E1 EC ED EE EF F0 F1 F3 F4 F5 FF"
PIECES = [bytes([byte]) for byte in bytes.fromhex(EDGES)]


@given(
    value=st.one_of(TEXTS, st.lists(st.sampled_from(PIECES), max_size=9).map(b"".join)),
    before=st.binary(max_size=3),
)
def test_utf8_is_what_python_decodes(value: bytes, before: bytes) -> None:
    data = before + value + b"\x80"
    octets = np.frombuffer(data, np.uint8)
    (is_wrong,) = not_utf8(octets, np.array([len(before)]), np.array([len(value)])).tolist()
    assert is_wrong != is_text(value)


# --- Findings ----------------------------------------------------------------------------------


@given(codes=st.lists(st.integers(0, 4), max_size=120), limit=st.integers(0, 30))
def test_findings_count_all_and_keep_the_first(codes: list[int], limit: int) -> None:
    rows = [[code, 8 * place, place, -place] for place, code in enumerate(codes)]
    findings = Findings(limit, 5)
    for begin in range(0, len(rows), 7):
        findings.add(np.array(rows[begin : begin + 7]))
    seen: Counter[int] = Counter()
    expected = []
    for row in rows:
        seen[row[0]] += 1
        if not limit or seen[row[0]] <= limit:
            expected.append(row)
    assert findings.rows.tolist() == expected
    assert findings.totals.tolist() == [seen[code] for code in range(5)]
    most = limit or len(codes)
    beyond = [(code, seen[code] - most) for code in range(5) if seen[code] > most]
    assert findings.beyond_limit() == beyond


# --- Orders ------------------------------------------------------------------------------------


@given(
    keys=st.one_of(
        st.lists(INT64, max_size=60),
        st.lists(st.integers(0, 3), max_size=300),
        st.lists(st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]), max_size=60),
    )
)
def test_an_order_is_stable(keys: list[int]) -> None:
    order, in_order = sorting.order_and_keys(np.array(keys, np.int64))
    expected = sorted(range(len(keys)), key=keys.__getitem__)
    assert (list(range(len(keys))) if order is None else order.tolist()) == expected
    assert in_order is None or in_order.tolist() == sorted(keys)


@pytest.mark.parametrize("size", [10, 5000])
def test_an_order_is_numpys(size: int) -> None:
    keys = np.random.default_rng(1).integers(-50, 50, size)
    order: Any = sorting.stable_order(keys)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    assert sorting.stable_order(np.sort(keys)) is None
    turned = np.arange(size)[::-1] - 7
    assert np.array_equal(sorting.stable_order(turned), np.argsort(turned))
    assert sorting.stable_order(keys[:0]) is None


@given(st.lists(st.integers(-5, 40)), st.sets(st.integers(0, 40)))
def test_places_among_others_are_those_of_a_list(numbers: list[int], others: set[int]) -> None:
    ascending = sorted(others)
    expected = [ascending.index(number) if number in others else -1 for number in numbers]
    places = sorting.places_among(np.array(numbers, np.int64), np.array(ascending, np.int64))
    assert places.tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4))))
def test_joined_ranges_are_those_of_python(ranges: list[tuple[int, int]]) -> None:
    begins, counts = np.array(ranges, np.int64).reshape(-1, 2).T
    expected = [number for begin, count in ranges for number in range(begin, begin + count)]
    assert sorting.joined_ranges(begins, counts).tolist() == expected


def test_slices_that_enclose_others_come_first() -> None:
    """Rows 0 and 1 are in 2, which is in 3; row 4 is earlier, and row 5 is by itself."""
    times = np.array([7, 7, 7, 7, 1, 7])
    parents = np.array([2, 2, 3, -1, -1, -1])
    assert sorting.outer_first(times, parents).tolist() == [4, 3, 2, 0, 1, 5]
    assert sorting.outer_first(times[4:], parents[4:]).tolist() == [0, 1]
    assert sorting.outer_first(-times[3:5], parents[3:5]).tolist() == [0, 1]
    assert sorting.outer_first(times[3:5], parents[3:5]).tolist() == [1, 0]


def test_a_run_of_a_number_is_found() -> None:
    ascending = np.array([1, 1, 4], np.int32)
    runs = [sorting.run_of(ascending, number) for number in (0, 1, 3, 4, 5)]
    assert [ascending[run].size for run in runs] == [0, 2, 0, 1, 0]
    assert runs[1] == slice(0, 2)


def test_a_slice_follows_a_parent_that_is_moved_itself() -> None:
    """Row 1 is in row 0, which is in row 2; a slice of no length is in the first of two."""
    assert sorting.outer_first(np.zeros(3, np.int64), np.array([2, 0, -1])).tolist() == [2, 0, 1]
    assert sorting.outer_first(np.zeros(4, np.int64), np.array([1, 3, 3, -1])).tolist() == [
        3, 1, 0, 2,
    ]  # fmt: skip


@given(st.data())
def test_what_encloses_is_first_in_any_order_of_a_file(data: st.DataObject) -> None:
    """Of rows in any order, those of one time follow their parents."""
    count = data.draw(st.integers(1, 12))
    times = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    times.sort()
    above = [data.draw(st.integers(-1, number - 1)) for number in range(count)]
    row_of = data.draw(st.permutations(range(count)))
    row_times, row_parents = np.zeros((2, count), np.int64)
    for number, parent in enumerate(above):
        row_times[row_of[number]] = times[number]
        row_parents[row_of[number]] = -1 if parent < 0 else row_of[parent]
    order = sorting.outer_first(row_times, row_parents).tolist()
    assert sorted(order) == list(range(count))
    assert row_times[order].tolist() == times
    for row, parent in enumerate(row_parents.tolist()):
        if parent >= 0 and row_times[row] == row_times[parent]:
            assert order.index(parent) < order.index(row)
    assert sorting.outer_first(np.zeros(2, np.int64), np.array([1, 0])).size == 2  # in each other


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)))
def test_distinct_numbers(values: list[int]) -> None:
    places, distinct = sorting.dense(np.array(values, np.int64))
    assert distinct.tolist() == sorted(set(values))
    assert [distinct[place] for place in places.tolist()] == values


def test_outermost_is_what_no_other_is_around() -> None:
    # 2 is in 1, which is in 0; 3 is in nothing.
    assert sorting.outermost(np.array([0, 0, 1, 3])).tolist() == [0, 0, 0, 3]
    assert sorting.outermost(np.zeros(0, np.int64)).size == 0
    assert sorting.outermost(np.array([1, 2, 0])).size == 3  # in a circle


@pytest.mark.parametrize("spread", [3, 2**21, 2**40, 2**62])
def test_an_order_of_many_is_stable_however_wide_the_keys(spread: int) -> None:
    keys = np.random.default_rng(2).integers(-spread, spread, 2500)
    keys[::9] = keys[0]
    order, in_order = sorting.order_and_keys(keys)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    assert (in_order is not None) == (2**31 < spread < 2**50)  # what sorts beside its rows
    if in_order is not None:
        assert np.array_equal(in_order, np.sort(keys))


@pytest.mark.parametrize("spread", [3, 2**21, 2**40, 2**62])
def test_an_order_of_a_few_ascending_runs_is_stable(spread: int) -> None:
    keys = np.random.default_rng(3).integers(-spread, spread, (4, 1000))
    keys.sort(axis=1)
    keys = keys.reshape(-1)
    order, in_order = sorting.order_and_keys(keys)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    if in_order is not None:
        assert np.array_equal(in_order, np.sort(keys))


# --- Columns -----------------------------------------------------------------------------------


@given(stretches=st.lists(st.tuples(st.integers(-2, 12), st.integers(0, 12)), max_size=8))
def test_stretches_are_copied_or_refused(stretches: list[tuple[int, int]]) -> None:
    source = bytes(range(100, 110))
    starts = numbers([start for start, _ in stretches])
    offsets = np.concatenate([[0], np.cumsum([size for _, size in stretches])]).astype(np.int64)
    out = np.zeros(int(offsets[-1]), np.uint8)
    fits = all(not size or 0 <= start <= 10 - size for start, size in stretches)
    assert copied(np.frombuffer(source, np.uint8), starts, offsets, out) == fits
    if fits:
        assert out.tobytes() == b"".join(source[start : start + size] if size else b""
                                         for start, size in stretches)  # fmt: skip


# --- Templates ---------------------------------------------------------------------------------


def as_seconds(ns: int) -> str:
    whole, part = divmod(abs(ns), 10**9)
    return f"{('-' if ns < 0 else '') + str(whole):>6}.{part:09d}"


def as_length(ns: int) -> str:
    for size, digits, unit in ((10**9, 9, "s"), (10**6, 6, "ms"), (1000, 3, "us")):
        if ns >= size:
            decimals = f"{ns % size:0{digits}d}".rstrip("0")
            return f"{ns // size}{'.' * bool(decimals)}{decimals}{unit}"
    return f"{ns}ns"


def as_micros(ns: int) -> str:
    return f"{'-' * (ns < 0)}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


EDGES = [
    0,
    -1,
    999,
    1000,
    1001,
    10**6 - 1,
    10**6,
    1_234_000,
    10**9,
    61 * 10**9 + 1,
    2**63 - 1,
    -(2**63),
]


@given(values=st.lists(st.one_of(INT64, st.integers(-3000, 10**10)), max_size=6).map(EDGES.__add__),
       texts=st.lists(st.binary(max_size=9), min_size=1, max_size=5))  # fmt: skip
def test_templates_write_what_python_formats(values: list[int], texts: list[bytes]) -> None:
    rows = len(values)
    made = templates.Templates(b"(", b", ", b")")
    column = np.array(values)
    numbers = np.array([made.text(texts[row % len(texts)]) for row in range(rows)])
    befores = np.where(np.arange(rows) % 2, made.text(b"m"), made.text(b"n"))
    kinds_of = np.where(np.arange(rows) % 3, parts.SIGNED, parts.HEX)
    made.hold(befores, kinds_of, column, np.full(rows, made.text(b"!")))
    bounds = np.cumsum([0, *(len(text) for text in texts)])
    copied = made.column(np.frombuffer(b"".join(texts), np.uint8), bounds)
    stops = np.minimum(np.arange(rows) + 2, rows)
    kinds = ("SIGNED", "NATURAL", "HEX", "HEX16", "MICROS", "SECONDS", "LENGTH")
    shown = [part for kind in kinds for part in (b"|", (getattr(parts, kind), column))]
    row_of = (
        (parts.TEXT, numbers), (parts.MARK, 0), *shown, b"|", (parts.SIGNED, 7),
        (parts.MEMBERS, np.arange(rows)), (parts.MEMBERS_END, stops),
        (parts.COPIED, copied[np.arange(rows) % len(texts)]), b".",
    )  # fmt: skip
    starts, ends = made.write(rows, *row_of)
    letters = made.letters().tobytes()
    for row, value in enumerate(values):
        natural = value % 2**64
        text = "|".join(
            ["", str(value), str(natural), f"{natural:x}", f"{natural:016x}", as_micros(value),
             as_seconds(value), as_length(value), "7"]
        )  # fmt: skip
        members = [
            f"{'m' if at % 2 else 'n'}{values[at] if at % 3 else f'{values[at] % 2**64:x}'}!"
            for at in range(row, stops[row])
        ]
        own = texts[row % len(texts)]
        expected = own + f"{text}({', '.join(members)})".encode() + own + b"."
        assert letters[starts[row] : ends[row]] == expected
        assert made.marks[row] - starts[row] == len(own)
    made.take()
    assert b"".join(made.pieces(rows, *row_of, most=100)) == letters
    version = made.version
    assert not made.forget(1 << 20)
    assert made.forget(0)
    assert made.version != version
    assert made.letters().size == 0


@given(st.lists(st.tuples(st.text(max_size=9), st.floats(allow_nan=False, allow_infinity=False),
                          st.booleans()), min_size=1, max_size=6))  # fmt: skip
def test_templates_write_stretches_and_doubles_as_json_and_skip_parts(
    rows: list[tuple[str, float, bool]],
) -> None:
    texts = [text.encode() for text, _, _ in rows]
    source = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    made = templates.Templates(b"", b"", b"", source=source.data)
    ends = np.cumsum([len(text) for text in texts])
    starts = ends - [len(text) for text in texts]
    reals = json_doubles(made, np.array([real for _, real, _ in rows]))
    skipped = np.where([shown for _, _, shown in rows], 0, 3)
    begins, behind = made.write(
        len(rows),
        b"[", (parts.STRETCH, starts), (parts.STRETCH_END, ends), b",", (parts.COPIED, reals),
        (parts.SKIP, skipped), b',"', (parts.STRETCH_HEX, starts), (parts.STRETCH_END, ends), b'"',
        (parts.NOTHING, 0), b"]",
    )  # fmt: skip
    letters = made.letters().tobytes()
    for (text, real, shown), begin, end in zip(rows, begins, behind, strict=True):
        wanted = [text, real, *([text.encode().hex()] if shown else [])]
        assert letters[begin:end] == orjson.dumps(wanted)


@cases("stretch", [(-1, 0), (2, 1), (0, 4)])
def test_templates_refuse_stretches_outside_of_their_source(stretch: tuple[int, int]) -> None:
    made = templates.Templates(b"", b"", b"", source=memoryview(b"abc"))
    start, end = (np.array([place]) for place in stretch)
    with pytest.raises(IndexError, match="outside of 3 bytes"):
        made.write(1, (parts.STRETCH, start), (parts.STRETCH_END, end))


def test_texts_of_every_length_are_escaped_as_orjson_does() -> None:
    """They are looked at eight bytes at a time: each byte at each place of each length up to 18."""
    strange = [0x00, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x5B, 0x5C, 0x5D, 0x7F]
    texts = [
        b"a" * place + bytes([byte]) + b"a" * (length - place - 1)
        for length in range(1, 19)
        for place in range(length)
        for byte in strange
    ]
    texts += [b"", 'é"😀\\'.encode(), "日本語の文".encode()]
    ends = np.cumsum([len(text) for text in texts])
    starts = ends - [len(text) for text in texts]
    made = templates.Templates(b"", b"", b"", source=memoryview(b"".join(texts)))
    begins, stops = made.write(len(texts), (parts.STRETCH, starts), (parts.STRETCH_END, ends))
    written = made.letters().tobytes()
    bounds = zip(begins.tolist(), stops.tolist(), strict=True)
    assert [written[begin:stop] for begin, stop in bounds] == [
        orjson.dumps(text.decode()) for text in texts
    ]


def test_numbers_of_every_length_are_written() -> None:
    powers = [10**power for power in range(20)]
    numbers = [0, *powers, *(power - 1 for power in powers), (1 << 63) + 5, (1 << 64) - 1]
    made = templates.Templates(b"", b"", b"")
    begins, stops = made.write(len(numbers), (parts.NATURAL, np.array(numbers, np.uint64)))
    written = made.letters().tobytes()
    bounds = zip(begins.tolist(), stops.tolist(), strict=True)
    assert [int(written[begin:stop]) for begin, stop in bounds] == numbers
    assert len(written) == sum(len(str(number)) for number in numbers)


def test_rows_of_texts_that_there_are_not_are_refused() -> None:
    made = templates.Templates(b"[", b",", b"]")
    number = made.text(b"a")
    (copied_number,) = made.column(np.frombuffer(b"abc", np.uint8), np.array([0, 3])).tolist()
    rows = made.write(1, (parts.TEXT, number), (parts.COPIED, copied_number))
    assert made.letters()[: int(rows[1][0])].tobytes() == b"aabc"
    for kind, wrong in ((parts.TEXT, number + 1), (parts.TEXT, -1), (parts.COPIED, 1)):
        with pytest.raises(IndexError):
            made.write(1, (kind, wrong))
