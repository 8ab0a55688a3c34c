"""llvm-xray and we read the same XRay logs alike: records, events, calls and their statistics.

llvm-xray's expected outputs of the real logs are held in the plugin's own tests; here the one that
is installed speaks, of the real logs and of generated ones.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import fxframework as fxf
from fxframework.model.capture import Capture
from fxframework.testing.cli import run_cli

from ..properties import share
from . import xray_logs, xray_tool
from .xray_tool import Event, RefusedError

FILES = Path(__file__).parents[1] / "conformance" / "xray"
LOGS = sorted(
    path.relative_to(FILES).as_posix()
    for path in FILES.rglob("*.xray")
    if "damaged" not in path.parts and "-empty-" not in path.name
)
BUGS = ("fdr5-typed-shortextents-clang16.xray", "fdr5-tailmigrate-corrupt-clang19.xray")
"""What llvm-xray refuses: the two bugs of the runtime."""
SOUND = [name for name in LOGS if name not in BUGS]
RECORDER = [
    name
    for name in SOUND
    if not any(word in name for word in ("basic", "naive", "llvm/fdr-log-arg1.xray"))
]
"""Of these fdr-dump is right; the last one has padding, which it takes for records."""
SINGLE = (
    "fdr5-single-clang19.xray",
    "fdr5-deep-clang14.xray",
    "fdr5-deep-clang16.xray",
    "fdr5-deep-thr1us-clang16.xray",
)
"""One thread and one buffer each: of such, llvm-xray's account is right."""
generated = settings(
    share(2 / 3),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
EVENTS = (
    "function-enter",
    "function-exit",
    "function-tail-exit",
    "function-enter-arg",
    "",
    "custom-event",
    "typed-event",
)
"""By the kind of an event of ours; 4 is an argument, which llvm-xray puts with its call."""
_NUMBERS = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def _oracle() -> None:
    """Every test here needs it."""
    xray_tool.llvm_xray()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("xray")


def written(folder: Path, data: bytes) -> Path:
    path = folder / f"{next(_NUMBERS)}.xray"
    path.write_bytes(data)
    return path


def opened(path: Path) -> Capture:
    """A log, in the format that its header says."""
    mode = path.read_bytes()[2]
    return fxf.open(path, format="xray" if mode else "xray-basic")


# --- Ours in llvm-xray's terms -------------------------------------------------------------------


def events(capture: Capture) -> Iterator[Event]:
    """The events of our columns as llvm-xray has them; no CPU where ours is not known."""
    pids, tids = capture.event_threads()
    calls: dict[int, Event] = {}
    for chunk in capture.events():
        columns = zip(
            chunk.kind.tolist(), chunk.function.tolist(), chunk.tsc.tolist(), chunk.cpu.tolist(),
            chunk.thread.tolist(), chunk.value.tolist(), chunk.size.tolist(), strict=True,
        )  # fmt: skip
        for kind, function, tsc, cpu, thread, value, size in columns:
            if not EVENTS[kind]:
                call = calls[thread]
                calls[thread] = attrs.evolve(call, args=(*call.args, value & xray_logs.U64))
                continue
            if thread in calls:
                yield calls.pop(thread)
            event = Event(
                tsc=tsc,
                kind=EVENTS[kind],
                function=0 if size else function,
                cpu=0 if cpu == xray_tool.NO_CPU else cpu,
                thread=int(tids[thread]),
                process=int(pids[thread]),
                type=function if EVENTS[kind] == "typed-event" else 0,
                data=capture.source.read(value, size).decode("ascii", "replace") if size else "",
            )
            calls[thread] = event
    yield from calls.values()


def theirs(converted: xray_tool.Converted) -> Iterator[Event]:
    """llvm-xray's events, without what it makes up.

    Events carry the function before them, and calls the type of the event before them. Payloads are
    compared where they are plain words.
    """
    version = int(converted.header["version"])
    recorder = converted.header["type"] == "1"
    early = version < xray_tool.EVENT_CPU_VERSION
    nobody = not recorder and version < xray_tool.BASIC_PID_VERSION
    for one in converted.events:
        process = 0 if nobody else one.process
        unknown = one.cpu == xray_tool.NO_CPU or (early and one.kind == "custom-event")
        event = attrs.evolve(one, process=process, cpu=0 if unknown else one.cpu)
        if event.kind == "custom-event":
            yield attrs.evolve(event, function=0, type=0, name="")
        elif event.kind == "typed-event":
            yield attrs.evolve(event, function=0, name="")
        else:
            yield attrs.evolve(event, type=0, name="", data="")


def plain(event: Event) -> Event:
    """An event, its payload left out where YAML would quote it."""
    return event if event.data.isalpha() else attrs.evolve(event, data="")


def assert_events_agree(path: Path) -> None:
    converted = xray_tool.convert(path)
    with opened(path) as capture:
        ours = Counter(map(plain, events(capture)))
    assert ours == Counter(plain(event) for event in theirs(converted))


# --- Records -------------------------------------------------------------------------------------


def assert_dumps_agree(path: Path) -> None:
    with opened(path) as capture:
        ours = xray_tool.dump(record.to_json() for record in capture.records())
    assert ours == xray_tool.fdr_dump(path)


@pytest.mark.parametrize("name", RECORDER)
def test_the_records_of_real_logs(name: str) -> None:
    assert_dumps_agree(FILES / name)


@pytest.mark.parametrize("version", xray_logs.FDR_VERSIONS)
@generated
@given(data=st.data())
def test_the_records_of_generated_logs(version: int, data: st.DataObject, folder: Path) -> None:
    assert_dumps_agree(written(folder, data.draw(xray_logs.fdr_logs(version))))


@pytest.mark.parametrize("name", BUGS)
def test_what_llvm_xray_refuses_is_read_here(name: str) -> None:
    with pytest.raises(RefusedError):
        xray_tool.convert(FILES / name)
    with opened(FILES / name) as capture:
        assert len(capture.table("slices")) > 5


# --- Events --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOUND)
def test_the_events_of_real_logs(name: str) -> None:
    assert_events_agree(FILES / name)


@pytest.mark.parametrize("version", xray_logs.FDR_VERSIONS)
@generated
@given(data=st.data())
def test_the_events_of_generated_logs(version: int, data: st.DataObject, folder: Path) -> None:
    assert_events_agree(written(folder, data.draw(xray_logs.fdr_logs(version))))


@pytest.mark.parametrize("version", xray_logs.BASIC_VERSIONS)
@generated
@given(data=st.data())
def test_the_events_of_generated_basic_logs(
    version: int, data: st.DataObject, folder: Path
) -> None:
    assert_events_agree(written(folder, data.draw(xray_logs.basic_logs(version))))


# --- Calls ---------------------------------------------------------------------------------------


def inclusive(capture: Capture) -> dict[tuple[int, tuple[str, ...]], int]:
    """Ticks of each path of calls by thread, from our slices."""
    slices = capture.table("slices")
    tids = capture.table("threads").array("tid")
    names = slices.texts("name")
    paths: list[tuple[str, ...]] = []
    found: dict[tuple[int, tuple[str, ...]], int] = {}
    columns = (slices.array(name).tolist() for name in ("thread", "parent", "xray_ticks"))
    for name, (thread, parent, ticks) in zip(names, zip(*columns, strict=True), strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), f"#{name}"))
        key = int(tids[thread]), paths[-1]
        found[key] = found.get(key, 0) + max(ticks, 0)
    return found


@pytest.mark.parametrize("name", SINGLE[:1])
def test_the_paths_of_calls(name: str) -> None:
    flame = xray_tool.flame(FILES / name, "time")
    with opened(FILES / name) as capture:
        ours = inclusive(capture)
    assert ours == flame


def accounted(path: Path) -> dict[str, list[str]]:
    """What ``fxf account --csv`` says by function id: what llvm-xray says too, but for names."""
    done = run_cli("account", "--csv", path)
    # Of slow counters the times may not fit 64 bits of nanoseconds, which is data loss; statistics
    # are of ticks, and hold all the same.
    with opened(path) as capture:
        capture.scan()
        lost = "FXX0305" in capture.diagnostics.counts
    assert done.exit_code == (3 if lost else 0), done.stderr
    assert ("FXX0305" in done.stderr) == lost
    lines = list(csv.reader(io.StringIO(done.text)))[1:]
    return {line[0]: line[:8] for line in lines}


def assert_accounts_agree(path: Path) -> None:
    wanted = {line[0]: line[:8] for line in xray_tool.account(path)}
    ours = {id: line for id, line in accounted(path).items() if line[1] != "0"}
    assert ours == wanted


@pytest.mark.parametrize("name", SINGLE)
def test_the_account_of_real_logs(name: str) -> None:
    assert_accounts_agree(FILES / name)


@generated
@given(data=xray_logs.single_logs())
@example(data=xray_logs.single_log(3, 1 << 40, [(1, 0, 5), (1, 1, 7)]))
def test_the_account_of_generated_logs(data: bytes, folder: Path) -> None:
    assert_accounts_agree(written(folder, data))


def test_the_account_of_several_threads_has_every_call() -> None:
    # llvm-xray takes threads in the order of a hash table, and loses calls of this log.
    path = FILES / "fdr5-mt-clang16.xray"
    theirs = {line[0]: int(line[1]) for line in xray_tool.account(path)}
    ours = {id: int(line[1]) for id, line in accounted(path).items()}
    assert all(ours[id] >= count for id, count in theirs.items())
    with opened(path) as capture:
        closed = int((capture.table("slices").array("dur") >= 0).sum())
    assert sum(ours.values()) == closed


@pytest.mark.parametrize("label", ["sum", "count", "max", "99p"])
@pytest.mark.parametrize("name", SINGLE)
def test_the_graph_of_real_logs(name: str, label: str) -> None:
    done = run_cli("graph", "-e", label, FILES / name)
    assert done.exit_code == 0, done.stderr
    ours = {
        (int(caller), int(callee)): words
        for caller, callee, words in xray_tool.EDGE.findall(done.text)
    }
    assert ours == xray_tool.graph(FILES / name, label)
