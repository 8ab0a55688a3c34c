"""Archives of several providers, where their bytes go, and the recorder that keeps the end."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace import format as wire
from fx_trace.write.archive import Archive, FlightRecorder
from fx_trace.write.writer import TraceWriter
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink

from ...cases import cases
from .test_two_decoders import agree
from .test_writer import (
    STAGE,
    Call,
    by_provider,
    calls,
    everything,
    limited,
    limits,
    policies,
    text,
    told,
    without_place,
    worst,
)


def story(archive: Archive) -> None:
    """Two providers that take turns."""
    first, second = archive.provider(1, "first"), archive.provider(2, "second")
    for step in range(4):
        first.instant("cat", f"a{step}", thread=(1, 2), timestamp=step)
        second.instant("cat", f"b{step}", {"key": "value"}, thread=(3, 4), timestamp=step)


def in_memory(**options: Any) -> bytes:
    file = io.BytesIO()
    with Archive(file, **options) as archive:
        story(archive)
    return file.getvalue()


# --- Providers ---------------------------------------------------------------------------------


@cases("big_endian", [False, True], ids=["little", "big"])
def test_providers_have_sections_and_tables_of_their_own(big_endian: bool) -> None:
    data = in_memory(big_endian=big_endian)
    assert data[:8] == (wire.MAGIC_BYTES_BIG_ENDIAN if big_endian else wire.MAGIC_BYTES)
    assert [(who, shown["name"]) for who, shown in by_provider(data)] == [
        (who, f"{letter}{step}") for step in range(4) for who, letter in ((1, "a"), (2, "b"))
    ]
    stage = [each for each in everything(data) if each["record"] in STAGE]
    info = [each for each in stage if each.get("kind") == "provider_info"]
    assert [(each["id"], each["name"]) for each in info] == [(1, "first"), (2, "second")]
    assert [each["record"] for each in stage].count("initialization") == 2
    registered = [each for each in stage if each["record"] == "string"]
    assert [each["index"] for each in registered if each["value"] == "cat"] == [1, 1]
    assert worst(data) == []
    agree(data)


def test_each_provider_has_its_own_time_and_policy() -> None:
    file = io.BytesIO()
    with Archive(file) as archive:
        slow = archive.provider(1, ticks_per_second=1000, strings="inline")
        fast = archive.provider(2, ticks_per_second=1_000_000)
        slow.instant("cat", "slow", timestamp=5)
        fast.instant("cat", "fast", timestamp=5)
        slow.instant("cat", "slow", timestamp=6)
    with fxf.open(file.getvalue()) as capture:
        assert capture.table("instants")["ts"].tolist() == [5_000_000, 5000, 6_000_000]
    strings = [each for each in everything(file.getvalue()) if each["record"] == "string"]
    assert [each["value"] for each in strings] == ["cat", "fast"]


@cases("id", [0, 1, (1 << 32) - 1])
def test_ids_of_32_bits_and_names_of_255_bytes(id: int) -> None:
    file = io.BytesIO()
    with Archive(file) as archive:
        archive.provider(id, "é" * 127 + "x").instant("cat", "name", timestamp=1)
    (info,) = [each for each in everything(file.getvalue()) if each.get("kind") == "provider_info"]
    assert (info["id"], info["name"]) == (id, "é" * 127 + "x")
    assert worst(file.getvalue()) == []


@cases(
    ("id", "name", "code"),
    [
        (1, "again", "FXT0409"),
        (-1, "x", "FXT0404"),
        (1 << 32, "x", "FXT0404"),
        (2, "x" * 256, "FXT0405"),
        (2, "é" * 128, "FXT0405"),
        (2, "\ud800", "FXT0403"),
        ("2", "x", "FXT0403"),
        (None, "x", "FXT0403"),
        ([2], "x", "FXT0403"),
        (2.0, "x", "FXT0403"),
        (2, b"x", "FXT0403"),
        (2, None, "FXT0403"),
    ],
)
@cases("make", [Archive, lambda file: FlightRecorder(1000)])
def test_providers_that_cannot_be(id: Any, name: Any, code: str, make: Any) -> None:
    file = io.BytesIO()
    archive = make(file)
    archive.provider(1, "app")
    archive.flush()
    before = file.getvalue()
    with pytest.raises(WriteRefusedError) as refused:
        archive.provider(id, name)
    assert refused.value.code == code
    archive.flush()
    assert file.getvalue() == before
    archive.provider(2, "good")


def test_an_option_that_there_is_not_takes_no_id() -> None:
    archive = Archive(io.BytesIO())
    with pytest.raises(UsageError, match="policy"):
        archive.provider(1, strings="inlined")
    archive.provider(1)


def test_a_full_buffer_is_told() -> None:
    file = io.BytesIO()
    with Archive(file) as archive:
        archive.provider(1, "first")
        archive.provider(2, "second")
        archive.buffer_full(1)
        with pytest.raises(WriteRefusedError) as refused:
            archive.buffer_full(-1)
        assert refused.value.code == "FXT0404"
    *_, last = everything(file.getvalue())
    assert last == {"record": "metadata", "kind": "provider_event", "id": 1, "event": 0}


# --- Where the bytes go ------------------------------------------------------------------------


@cases("kind", [str, Path])
def test_a_file_appears_at_the_end(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.fxt"
    with Archive(kind(path)) as archive:
        story(archive)
        archive.flush()
        assert not path.exists()
    assert path.read_bytes() == in_memory()
    assert [each.name for each in tmp_path.iterdir()] == ["out.fxt"]


def test_a_name_that_ends_in_gz_is_packed(tmp_path: Path) -> None:
    path = tmp_path / "out.fxt.gz"
    with Archive(path) as archive:
        story(archive)
    assert gzip.decompress(path.read_bytes()) == in_memory()
    with fxf.open(path) as capture:
        assert len(capture.table("instants")) == 8


def test_nothing_appears_where_an_exception_passes(tmp_path: Path) -> None:
    with contextlib.suppress(KeyError), Archive(tmp_path / "out.fxt") as archive:
        story(archive)
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_abort_forgets_the_file(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "out.fxt")
    story(archive)
    archive.abort()
    archive.close()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_stays_without_force(tmp_path: Path) -> None:
    path = tmp_path / "out.fxt"
    path.write_bytes(b"precious")
    with pytest.raises(WriteRefusedError, match="exists"):
        Archive(path)
    with contextlib.suppress(KeyError), Archive(path, force=True) as archive:
        story(archive)
        raise KeyError
    assert path.read_bytes() == b"precious"
    with Archive(path, force=True) as archive:
        story(archive)
        archive.flush()
        assert path.read_bytes() == b"precious"
    assert path.read_bytes() == in_memory()


def test_a_file_that_came_to_be_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "out.fxt"
    archive = Archive(path)
    path.write_bytes(b"precious")
    with pytest.raises(WriteRefusedError, match="exists"):
        archive.close()
    assert path.read_bytes() == b"precious"
    assert [each.name for each in tmp_path.iterdir()] == ["out.fxt"]


class Plain:
    """Nothing but a ``write``."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.parts.append(bytes(data))


def test_what_the_caller_opened_stays_open(tmp_path: Path) -> None:
    sink = Sink.memory()
    plain = Plain()
    with (tmp_path / "mine.fxt").open("wb") as file:
        for where in (sink, plain, file):
            with Archive(where) as archive:
                story(archive)
        assert not file.closed
        file.write(b"more")
    sink.write(b"more")
    wanted = in_memory() + b"more"
    assert (tmp_path / "mine.fxt").read_bytes() == wanted
    assert sink.getvalue() == wanted
    assert b"".join([*plain.parts, b"more"]) == wanted


def test_bytes_are_handed_over_on_the_way() -> None:
    plain = Plain()
    archive = Archive(plain)
    writer = archive.provider(1, "app")
    writer.blob("data", bytes(3 << 20))
    assert len(plain.parts) > 1
    assert max(map(len, plain.parts)) < 2 << 20
    archive.flush()
    handed = b"".join(plain.parts)
    assert sum(each["record"] == "blob" for each in told(handed)) == -(-(3 << 20) // 32_000)


@cases("end", [Archive.close, Archive.abort])
@cases("make", [lambda: Archive(Plain()), lambda: FlightRecorder(1000)])
def test_a_closed_archive_takes_no_more(
    make: Callable[[], Archive], end: Callable[[Archive], None]
) -> None:
    archive = make()
    writer = archive.provider(1, "app")
    writer.instant("cat", "name", timestamp=1)
    end(archive)
    end(archive)
    for call in (
        lambda: writer.instant("cat", "name", timestamp=2),
        lambda: writer.log("new", timestamp=2),
        lambda: archive.provider(2, "late"),
        lambda: archive.buffer_full(1),
    ):
        with pytest.raises(UsageError, match="closed"):
            call()


def test_a_disk_that_is_full_leaves_no_file(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "out.fxt")
    story(archive)

    def full(data: bytes) -> None:
        raise OSError(28, "No space left on device")

    assert archive._owned is not None
    archive._owned.write = full  # type: ignore[method-assign, assignment]
    with pytest.raises(OSError, match="space"):
        archive.close()
    assert list(tmp_path.iterdir()) == []


# --- Flight recorder ---------------------------------------------------------------------------


def saved(recorder: FlightRecorder) -> bytes:
    file = io.BytesIO()
    recorder.save(file)
    return file.getvalue()


Said = tuple[int, int, str]
"""Provider, bytes, and what a record says, with its time."""


def said(data: bytes) -> list[Said]:
    """All records but the magic number, in order."""
    out, speaking = [], 0
    with fxf.open(data, format="trace") as capture:
        for record in capture.records():
            shown = record.to_json()
            if shown.get("kind") in ("provider_info", "provider_section"):
                speaking = shown["id"]
            if shown.get("kind") != "trace_info":
                what = text([without_place(shown), record.ns])
                out.append((speaking, shown["nbytes"], what))
    return out


def is_event(what: str) -> bool:
    return not any(f'"record": "{name}"' in what for name in STAGE)


def of_state(what: str) -> tuple[Any, ...] | None:
    """What a record that is gone leaves behind, so that a later one of the same takes its place."""
    shown = json.loads(what)[0]
    if shown["record"] == "kernel_object":
        return "kernel", shown["object_type"], shown["koid"]
    if shown["record"] == "userspace_object":
        return "userspace", shown["process"], shown["pointer"]
    return None


steps = st.lists(st.tuples(st.integers(0, 2), calls()), max_size=30)


@hypothesis.given(
    st.lists(st.tuples(policies, limits, st.sampled_from([10**7, 10**9])), min_size=1, max_size=3),
    steps,
    st.one_of(st.integers(0, 1500), st.just(1 << 20)),
    st.booleans(),
)
def test_what_is_saved_is_the_end_of_the_whole(
    providers: list[Any], made: list[tuple[int, Call]], nbytes: int, big_endian: bool
) -> None:
    file = io.BytesIO()
    whole = Archive(file, big_endian=big_endian)
    recorder = FlightRecorder(nbytes, big_endian=big_endian)
    for archive in (whole, recorder):
        writers = [
            limited(archive.provider(n, f"p{n}", ticks_per_second=rate, **policy), limit)
            for n, (policy, limit, rate) in enumerate(providers)
        ]
        for who, call in made:
            assert call.on(writers[who % len(writers)])
    whole.close()
    data = saved(recorder)
    assert saved(recorder) == data
    assert recorder._size <= nbytes

    records = said(file.getvalue())
    size, at = 0, len(records)
    while at and size + records[at - 1][1] <= nbytes:
        at -= 1
        size += records[at][1]
    left: dict[Any, tuple[int, str]] = {}
    for who, _, what in records[:at]:
        key = of_state(what)
        if key is not None:
            left[who, key] = (who, what)
    found = [(who, what) for who, _, what in said(data) if is_event(what)]
    tail = [(who, what) for who, _, what in records[at:] if is_event(what)]
    assert found[len(found) - len(tail) :] == tail
    assert sorted(found[: len(found) - len(tail)]) == sorted(left.values())
    shown = [each for each in everything(data) if each.get("kind") == "provider_info"]
    assert [(each["id"], each["name"]) for each in shown] == [
        (n, f"p{n}") for n in range(len(providers))
    ]
    # The steps also have thread states that the format does not define.
    undefined = any(each.get("outgoing_state", 0) > 5 for each in everything(data))
    assert {finding.split()[0] for finding in worst(data)} == ({"FXT0118"} if undefined else set())
    agree(data)


def record_much(recorder: FlightRecorder, **options: Any) -> list[TraceWriter]:
    """Two providers, of whose names and strings nothing is left among the events kept."""
    writers = [recorder.provider(n, f"p{n}", **options) for n in (1, 2)]
    for n, writer in enumerate(writers, 1):
        writer.process(n, f"process {n}")
        writer.thread(n, n + 10, f"thread {n}")
        writer.userspace_object(n, 0xABC, f"object {n}")
    for step in range(500):
        for n, writer in enumerate(writers, 1):
            args = {"step": step, "object": f"{step % 3}"}
            writer.instant("cat", f"n{step % 5}", args, thread=(n, n + 10), timestamp=step)
    return writers


@cases("policy", ["allocate", "reuse", "inline"])
def test_names_survive(policy: Any) -> None:
    recorder = FlightRecorder(2000)
    record_much(recorder, strings=policy, threads=policy)
    data = saved(recorder)
    with fxf.open(data) as capture:
        processes, threads = capture.table("processes"), capture.table("threads")
        assert sorted(processes.texts("name")) == ["process 1", "process 2"]
        assert sorted(threads.texts("name")) == ["thread 1", "thread 2"]
        instants = capture.table("instants")
        last = instants["ticks"].tolist()
        assert last[-2:] == [499, 499]
        assert 10 < len(last) < 100
        assert capture.table("trace_objects").texts("name")
    objects = [each["name"] for each in told(data) if each["record"] == "userspace_object"]
    assert objects == ["object 1", "object 2"]
    assert worst(data) == []


def test_saving_changes_nothing(tmp_path: Path) -> None:
    first, second = FlightRecorder(2000), FlightRecorder(2000)
    for recorder in (first, second):
        writers = record_much(recorder)
        if recorder is first:
            recorder.save(tmp_path / "one.fxt")
        for writer in writers:
            writer.instant("later", "later", timestamp=1000, thread=(1, 1))
    first.save(tmp_path / "two.fxt.gz")
    assert gzip.decompress((tmp_path / "two.fxt.gz").read_bytes()) == saved(second)
    with pytest.raises(WriteRefusedError, match="exists"):
        first.save(tmp_path / "one.fxt")
    first.save(tmp_path / "one.fxt", force=True)
    assert (tmp_path / "one.fxt").read_bytes() == saved(second)


def test_a_recorder_that_was_closed_can_still_be_saved() -> None:
    with FlightRecorder(2000) as recorder:
        record_much(recorder)
        before = saved(recorder)
    assert saved(recorder) == before


def test_an_empty_recorder_saves_an_empty_archive() -> None:
    assert saved(FlightRecorder(0)) == wire.MAGIC_BYTES
    recorder = FlightRecorder(0)
    recorder.provider(1, "app", ticks_per_second=1000).instant("c", "n", timestamp=1)
    assert told(saved(recorder)) == []
    assert [each["record"] for each in everything(saved(recorder))][:3] == [
        "metadata", "metadata", "initialization",
    ]  # fmt: skip


def test_a_full_buffer_is_kept_like_an_event() -> None:
    recorder = FlightRecorder(2000)
    writers = record_much(recorder)
    recorder.buffer_full(2)
    writers[0].instant("c", "n", timestamp=1000)
    assert {"record": "metadata", "kind": "provider_event", "id": 2, "event": 0} in everything(
        saved(recorder)
    )
