"""After a crash at any store a reader is told that it was in progress, or sees a whole state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fx_inspect.read.snapshot import Snapshot
from fx_inspect.write.writer import Inspector
from fxframework.errors import UnreadableError
from fxframework.testing.crashtest import RecordedMemory, crashtest

from ...cases import cases
from .trees import read, shown

TOLD = {"FXI0223", "FXI0224", "FXI0225"}


def tree_of(data: bytes) -> str:
    tree, findings = read(data)
    assert [each for each in findings if each.code not in TOLD] == []
    return repr(shown(tree))


def taken(image: bytes) -> bytes | str:
    """What a reader gets: the bytes, or the code of the reason why not."""
    try:
        return Snapshot.take(image).data
    except UnreadableError as error:
        return error.code


BEFORE = {"FXI0501", "FXI0502", "FXI0503"}
"""What a reader is told while there is no VMO yet."""


def steps(inspector: Inspector) -> list[Callable[[], Any]]:
    """What the writer does, call by call; each leaves another state."""
    root = inspector.root
    values: dict[str, Any] = {}

    def keep(name: str, make: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: values.update({name: make()})

    def do(name: str, what: str, *given: Any) -> Callable[[], Any]:
        return lambda: getattr(values[name], what)(*given)

    found = [
        keep("node", lambda: root.create_child("node")),
        keep("int", lambda: values["node"].create_int("int", 1)),
        keep("string", lambda: values["node"].create_string("string", "long " * 1000)),
        keep("bytes", lambda: root.create_bytes("bytes", bytes(range(256)) * 20)),
        keep("array", lambda: root.create_double_array("array", [1.0, 2.0, 3.0])),
        keep("counts", lambda: root.create_int_linear_histogram("counts", 0, 2, 5)),
        keep("link", lambda: values["node"].create_lazy_child("link", Inspector)),
        keep("other", lambda: root.create_child("other")),
        do("int", "set", 5),
        do("int", "add", -7),
        do("string", "set", "short"),
        do("bytes", "set", b"few"),
        do("array", "set", 1, 0.5),
        do("counts", "insert", 3),
        lambda: values["int"].reparent(values["other"]),
        do("node", "delete"),
        do("string", "delete"),
        do("link", "delete"),
        do("bytes", "delete"),
        do("array", "clear"),
    ]
    if inspector.version == 2:
        found += [
            keep("texts", lambda: root.create_string_array("texts", ["a", "b", "a"])),
            do("texts", "set", 1, "longer " * 400),
            do("texts", "delete"),
        ]
    return found


@cases("version", [0, 1, 2])
def test_every_image_is_in_progress_or_a_state_that_was(version: int) -> None:
    def write(memory: RecordedMemory) -> None:
        inspector = Inspector(memory, version=version)
        memory.note(tree_of(memory.read(0, memory.size)))
        for step in steps(inspector):
            step()
            memory.note(tree_of(memory.read(0, memory.size)))

    in_progress = [0]

    def check(image: bytes, notes: list[str]) -> None:
        found = taken(image)
        if isinstance(found, bytes):
            # The state after the last call, or the first one, which is noted a moment later.
            assert not notes or tree_of(found) == notes[-1]
        elif notes:
            assert found == "FXI0501"
            in_progress[0] += 1
        else:
            assert found in BEFORE

    report = crashtest(write, check, size=0)
    assert report.ok, report
    assert 100 < in_progress[0] < report.images


def test_within_a_transaction_no_state_shows() -> None:
    seen = set()

    def write(memory: RecordedMemory) -> None:
        inspector = Inspector(memory)
        with inspector.transaction():
            first = inspector.root.create_int("first", 0)
            second = inspector.root.create_int("second", 0)
        for count in range(1, 4):
            with inspector.transaction():
                first.set(count)
                second.set(-count)

    def check(image: bytes) -> None:
        found = taken(image)
        if isinstance(found, str):
            assert found in BEFORE
            return
        values = {each.name: each.value for each in read(found)[0].root.properties}
        if values:
            assert values["first"] == -values["second"]
        seen.add(values.get("first"))

    report = crashtest(write, check, size=0)
    assert report.ok, report
    assert seen == {None, 0, 1, 2, 3}
