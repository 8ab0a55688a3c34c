"""Snapshots: what a VMO was at one moment, while its writer goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fx_emulator.memory import Memory as TargetMemory
from fx_emulator.vmo import Vmo
from fx_inspect.format import FROZEN_GENERATION
from fx_inspect.read import snapshot
from fx_inspect.read.snapshot import MappedFile, Snapshot
from fx_inspect.rules import RULES
from fx_inspect.write.writer import Inspector
from fxframework.errors import UnreadableError
from fxframework.io.memory import BytesMemory

from ...cases import cases
from .trees import read, shown


@pytest.fixture(autouse=True)
def no_pauses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else runs while a test of one process waits."""
    if "two_processes" not in request.node.name:
        monkeypatch.setattr(snapshot, "_LONGEST_PAUSE", 0.0)
        monkeypatch.setattr(snapshot, "_PAUSE", 0.0)


def refused(source: Any, **options: Any) -> str:
    with pytest.raises(UnreadableError) as caught:
        Snapshot.take(source, **options)
    assert caught.value.code in RULES
    assert caught.value.remedy
    return caught.value.code


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("where", ["plain", "bytes memory", "vmo", "file", "bytes"])
def test_a_vmo_at_rest(version: int, where: str, tmp_path: Path) -> None:
    path = tmp_path / "live.inspect"
    memory: Any = {
        "plain": lambda: None,
        "bytes memory": lambda: BytesMemory(4096),
        "vmo": lambda: Vmo.create(4096, resizable=True),
        "file": lambda: TargetMemory.file(path, 4096),
        "bytes": lambda: None,
    }[where]()
    inspector = Inspector(memory, version=version)
    inspector.root.create_string("text", "s" * 6000)
    source: Any = {"file": path, "bytes": inspector.copy()}.get(where, inspector.memory)
    taken = Snapshot.take(source)
    assert (taken.generation, taken.attempts, taken.frozen) == (2, 1, False)
    assert taken.data == inspector.copy()


def test_the_header_says_how_many_bytes_there_are() -> None:
    memory = BytesMemory(1 << 16)
    Inspector(memory)
    assert len(Snapshot.take(memory).data) == 4096
    old = BytesMemory(1 << 16)
    Inspector(old, version=1)
    assert len(Snapshot.take(old).data) == 1 << 16


class Growing(BytesMemory):
    """A memory that has grown by the time that its header was read."""

    def __init__(self, before: bytes, after: bytes) -> None:
        super().__init__(before)
        self.grow(len(after))
        self.after: bytes | None = after

    def read(self, offset: int, n: int) -> bytes:
        data = super().read(offset, n)
        if self.after is not None:
            self.write(0, self.after)
            self.after = None
        return data


def test_a_vmo_that_grows_while_its_header_is_read_is_copied_whole() -> None:
    inspector = Inspector(BytesMemory(4096))
    before = inspector.copy()
    inspector.root.create_string("text", "s" * 6000)
    after = inspector.copy()
    assert len(before) < len(after)
    assert Snapshot.take(Growing(before, after)).data == after


class Restless(BytesMemory):
    """A memory whose writer goes on between a reader's loads."""

    def __init__(self, contents: bytes, generations: Iterator[int]) -> None:
        super().__init__(contents)
        self.generations = generations

    def load_u64(self, offset: int) -> int:
        if offset == 8:
            self.store_u64(8, next(self.generations, super().load_u64(8)))
        return super().load_u64(offset)


def some(version: int = 2) -> bytes:
    inspector = Inspector(version=version)
    inspector.root.create_int("value", 5)
    return inspector.copy() or b""


def test_it_is_tried_again_while_the_writer_is_at_work() -> None:
    # Odd; even, and another one behind the copy; even, and odd behind; then at rest.
    memory = Restless(some(), iter([3, 4, 6, 6, 7, 8, 8]))
    taken = Snapshot.take(memory)
    assert (taken.generation, taken.attempts) == (8, 4)


def test_it_is_given_up_after_as_many_attempts_as_the_reference_makes() -> None:
    memory = BytesMemory(some())
    memory.store_u64(8, 3)
    assert refused(memory) == "FXI0501"
    assert refused(memory, attempts=1) == "FXI0501"
    loads = []

    class Counting(BytesMemory):
        def load_u64(self, offset: int) -> int:
            loads.append(offset)
            return super().load_u64(offset)

    counting = Counting(memory.read(0, memory.size))
    assert refused(counting) == "FXI0501"
    assert len(loads) == 1025


def test_a_frozen_vmo_is_read_without_a_second_look() -> None:
    inspector = Inspector()
    inspector.root.create_int("value", 5)
    frozen = inspector.freeze() or b""
    assert Snapshot.take(frozen).frozen
    memory = Restless(frozen, iter([FROZEN_GENERATION, 3]))
    taken = Snapshot.take(memory)
    assert taken.frozen
    assert taken.attempts == 1


def test_bytes_that_were_copied_in_the_middle_are_refused_at_once() -> None:
    data = bytearray(some())
    data[8] |= 1
    assert refused(bytes(data)) == "FXI0501"


@cases(
    ("head", "code"),
    [
        ("00" * 32, "FXI0502"),
        ("01020200494e5351", "FXI0502"),
        ("01030200494e5350", "FXI0502"),
        ("01020300494e5350", "FXI0502"),
        ("20010000494e5350", "FXI0502"),
    ],
)
@cases("live", [False, True])
def test_what_is_no_vmo_is_refused_at_once(head: str, code: str, live: bool) -> None:
    data = bytes.fromhex(head).ljust(64, b"\0")
    assert refused(BytesMemory(data) if live else data) == code


@cases("size", [0, 16, 31, 4104, 1 << 31])
def test_a_size_that_is_none_is_refused(size: int) -> None:
    memory = BytesMemory(some())
    memory.store_u64(16, size)
    assert refused(memory) == "FXI0503"
    # Of bytes the size is not used.
    assert Snapshot.take(memory.read(0, 4096)).data == memory.read(0, 4096)


def test_too_few_bytes_are_refused(tmp_path: Path) -> None:
    assert refused(some()[:15]) == "FXI0503"
    assert refused(BytesMemory(8)) == "FXI0503"
    path = tmp_path / "short"
    path.write_bytes(b"")
    assert refused(path) == "FXI0503"
    with pytest.raises(UnreadableError, match="No such file"):
        Snapshot.take(tmp_path / "none")


def test_a_file_is_followed_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "live.inspect"
    inspector = Inspector(TargetMemory.file(path, 4096))
    with MappedFile(path) as memory:
        assert len(Snapshot.take(memory).data) == 4096
        inspector.root.create_bytes("more", bytes(10_000))
        taken = Snapshot.take(memory)
        assert taken.data == inspector.copy()
        assert memory.size == len(taken.data) == 12288
        for refuse in (
            lambda: memory.store_u64(0, 1),
            lambda: memory.write(0, bytes(8)),
            lambda: memory.grow(1 << 20),
            lambda: memory.load_u64(4),
            lambda: memory.read(12288, 1),
        ):
            with pytest.raises(ValueError, match=r"mapped for reading|no "):
                refuse()
    memory.close()


WRITER = """
import sys
import time
from fx_emulator.memory import Memory
from fx_inspect.write.writer import Inspector

inspector = Inspector(Memory.file(sys.argv[1], 4096), max_size=1 << 18)
with inspector.transaction():
    first = inspector.root.create_uint("first", 0)
    node = inspector.root.create_child("node")
    second = node.create_uint("second", 0)
    text = node.create_string("text", "0")
print("ready", flush=True)
count = 0
while count < 1_000_000:
    count += 1
    with inspector.transaction():
        first.set(count)
        if count % 5 == 0 and count < 500:
            node.create_child(f"child {count}").create_string("long", str(count) * 99)
        second.set(count)
        text.set(str(count) * (count % 50))
    time.sleep(50e-6)  # some 10,000 transactions a second
"""


def test_two_processes_and_no_torn_tree(tmp_path: Path) -> None:
    path = tmp_path / "live.inspect"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    seen = []
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with MappedFile(path) as memory:
            # On a busy machine many snapshots in a row are of the same moment.
            deadline = time.monotonic() + 30
            number = -1
            while number < 150 or (len(set(seen)) <= 20 and time.monotonic() < deadline):
                number += 1
                taken = Snapshot.take(memory)
                assert not taken.generation & 1
                count = taken.generation // 2 - 1
                if number % 5 == 0:
                    check_whole(taken.data, count)
                seen.append(count)
    finally:
        process.kill()
        process.communicate()
    assert seen == sorted(seen)
    assert len(set(seen)) > 20


def check_whole(data: bytes, count: int) -> None:
    """The tree is that of the moment which the generation says."""
    tree, findings = read(data)
    assert findings == []
    root = shown(tree)
    assert root["properties"] == [{"name": "first", "uint": count}]
    (node,) = root["children"]
    values = {each.pop("name"): each for each in node["properties"]}
    text = str(count) * (count % 50) if count else "0"
    assert values == {"second": {"uint": count}, "text": {"string": text}}
    made = range(5, min(count + 1, 500), 5)
    assert {each["name"] for each in node["children"]} == {f"child {number}" for number in made}
