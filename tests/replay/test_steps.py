"""The steps of every scenario, of the target and of traces do what they say."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_trace.sample import sample
from fx_trace.write.archive import Archive
from fx_trace.write.writer import TraceWriter
from fxframework.errors import BadCallError
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.kit.steps import parameter
from fxframework.replay import Report, json_schema

from ..cases import cases

Faults = Callable[..., dict[str, str]]
Runner = Callable[..., Report]
APP = '[device.app]\nkind = "trace_provider"\n'
RUN = '[[step]]\ndo = "target.run"\n'
LAST = '[[step]]\ndo = "target.stop"\n[[step]]\ndo = "target.archive"\nas = "a.fxt"\n'
DECODE = '[[step]]\ndo = "capture.decode"\nfrom = "a.fxt"\nas = "a"\n'


def thread(*script: str, name: str = "t", extra: str = "") -> str:
    return (
        f'[[step]]\ndo = "trace.thread"\nprovider = "app"\nprocess = "p"\nthread = "{name}"\n'
        f"script = [{', '.join(script)}]\n{extra}\n"
    )


def expect(text: str) -> str:
    return f'[[step]]\ndo = "capture.expect"\ncapture = "a"\n{text}\n'


def done(run: Runner, *parts: str, target: str = "", **options: Any) -> Report:
    """A run of an application to its end, which must hold."""
    report = run(target + APP + "".join(parts) + RUN + LAST, **options)
    assert report.ok, report.to_text()
    return report


def opened(report: Report, name: str = "a.fxt") -> Any:
    return fxf.open(report.outputs[name], format="trace")


def numbers(capture: Any) -> list[int]:
    """The arguments ``n``, in order."""
    args = capture.table("args")
    names = args.texts("name")
    return [value for name, value in zip(names, args["int"].tolist(), strict=True) if name == "n"]


# --- What a thread does --------------------------------------------------------------------------


EVERY_ACTION = (
    (
        '{ slice = "s", category = "c", args = { i = 1, t = "x", b = true, f = 1.5, '
        "k = { koid = 5 }, p = { pointer = 16 }, u = { uint64 = 7 }, n = { null = true }, "
        'y = { blob = "00ff" } }, body = [{ run = "1us" }] }'
    ),
    '{ begin = "b", category = "c" }, { run = 100 }, { end = "b", category = "c" }',
    '{ complete = "x", body = [{ run = "2us" }] }',
    '{ async = "begin", name = "a", id = 1 }, { async = "instant", name = "a", id = 1 }',
    '{ async = "end", name = "a", id = 1 }',
    '{ slice = "f", body = [{ flow = "begin", name = "f", id = 2 }, { run = 10 }] }',
    '{ slice = "f", body = [{ flow = "step", name = "f", id = 2 }, { run = 10 }] }',
    '{ slice = "f", body = [{ flow = "end", name = "f", id = 2 }, { run = 10 }] }',
    '{ counter = "n", series = { a = 1, b = 2.5 }, id = 3 }',
    '{ instant = "i", scope = "global" }, { log = "line" }, { blob = "d", hex = "abcd" }',
    '{ sleep = "3us" }, { migrate = 0 }, { yield = true }, { yield = false }, { migrate = -1 }',
    '{ signal = "e" }, { wait = "e" }, { wait = "never", timeout = "1us" }',
    '{ loop = 3, as = "k", body = [{ instant = "k{k}", args = { k = "{k}", t = "<{k}>" } }] }',
)


def test_every_action(run: Runner) -> None:
    script = ", ".join(EVERY_ACTION)
    report = done(run, thread(script))
    with opened(report) as capture:
        assert capture.table("slices").texts("name") == ["s", "b", "x", "a", "f", "f", "f"]
        assert capture.table("slices")["dur"].tolist()[2] in range(1990, 2011)
        assert capture.table("flows").plain("phase") == ["begin", "step", "end"]
        assert capture.table("counters")["value"].tolist() == [1.0, 2.5]
        assert capture.table("instants").texts("name") == ["a", "i", "k0", "k1", "k2"]
        assert capture.table("instants").plain("scope")[1] == "global"
        assert list(capture.table("logs").texts("message")) == ["line"]
        assert len(capture.table("blobs")) == 1
        assert capture.table("args").plain("type")[1:10] == [
            "int32", "string", "bool", "double", "koid", "pointer", "uint64", "null", "blob",
        ]  # fmt: skip
        last = capture.table("args").select(slice(-2, None))
        assert (last["int"].tolist()[0], last.texts("str")[1]) == (2, "<2>")
        capture.scan()
        assert not capture.diagnostics.counts


def test_loops_within_loops_and_signals_that_count(run: Runner) -> None:
    producer = thread(
        '{ loop = 2, as = "i", body = [{ loop = 3, as = "j", body = ['
        '{ counter = "n", series = { at = "{i}{j}" } }, { signal = "item" }] }] }'
    )
    consumer = thread(
        '{ loop = 6, as = "i", body = [{ wait = "item" }, { instant = "got {i}" }] }', name="c"
    )
    with opened(done(run, producer, consumer)) as capture:
        assert capture.table("counters")["value_int"].tolist() == [0, 1, 2, 10, 11, 12]
        assert capture.table("instants").texts("name") == [f"got {i}" for i in range(6)]


def test_jitter_follows_from_the_seed(run: Runner) -> None:
    script = thread('{ complete = "x", body = [{ run = "1us", jitter = "1ms" }] }')

    def length(seed: int) -> int:
        with opened(done(run, script, seed=seed)) as capture:
            return int(capture.table("slices")["dur"][0])

    lengths = [length(seed) for seed in range(5)]
    assert len(set(lengths)) > 1
    assert lengths == [length(seed) for seed in range(5)]
    assert all(900 < each < 1_002_000 for each in lengths)


def test_processes_and_threads_have_names_and_one_writer(run: Runner) -> None:
    report = done(run, thread('{ instant = "a" }'), thread('{ instant = "b" }', name="u"))
    with opened(report) as capture:
        assert [name for name in capture.table("processes").texts("name") if name] == ["p"]
        assert set(capture.table("threads").texts("name")) >= {"t", "u"}
        assert capture.summary().kinds["initialization"] == 1


def test_priorities_and_cpus(run: Runner) -> None:
    low = thread('{ complete = "low", body = [{ run = "5ms" }] }', extra="cpu = 0\npriority = 1")
    high = thread(
        '{ sleep = "1ms" }, { complete = "high", body = [{ run = "1ms" }] }',
        name="h", extra="cpu = 0\npriority = 30",
    )  # fmt: skip
    with opened(done(run, low, high)) as capture:
        slices = capture.table("slices")
        length = dict(zip(slices.texts("name"), slices["dur"].tolist(), strict=True))
        assert length["high"] == pytest.approx(1_000_000, abs=100)
        assert length["low"] == pytest.approx(6_000_000, abs=100)


def test_scheduling_is_what_the_kernel_did(run: Runner) -> None:
    kernel = '[device.kernel]\nkind = "trace_provider"\n'
    listen = '[[step]]\ndo = "trace.scheduling"\nprovider = "kernel"\n'
    report = run(
        kernel + APP + listen + thread('{ run = "1ms" }, { sleep = "1ms" }, { run = "1ms" }')
        + RUN + LAST
    )  # fmt: skip
    assert report.ok, report.to_text()
    switches = report.steps[2].facts["context_switches"]  # one more when the thread began
    with opened(report) as capture:
        assert capture.table("sched").plain("kind").count("context_switch") == switches + 1
        assert capture.table("sched").plain("kind").count("wakeup") == 2


def test_a_scenario_whose_threads_wait_for_ever(run: Runner) -> None:
    report = run(APP + thread('{ wait = "never" }') + RUN)
    assert "deadlock" in report.failures[0].message
    assert "never" in report.failures[0].message
    assert run(APP + thread('{ wait = "never" }') + RUN + 'for = "1ms"\n').ok
    assert run(APP + thread('{ wait = "x" }', extra="background = true") + RUN).ok


def test_an_endless_loop_is_noticed(run: Runner) -> None:
    report = run(APP + thread("{ loop = 1000, body = [{ yield = true }] }") + RUN + "budget = 50\n")
    assert "50 steps" in report.failures[0].message


# --- The target ----------------------------------------------------------------------------------


def test_time_passes_as_long_as_it_is_let(run: Runner) -> None:
    report = run(
        APP + RUN + 'for = "2ms"\n' + RUN + 'until = "5ms"\n'
        '[[step]]\ndo = "target.suspend"\nfor = "1s"\n' + thread('{ instant = "i" }') + RUN,
        head='[scenario]\nname = "x"\n[target]\nticks_per_second = 1000\nstart = "1ms"\n',
    )
    assert report.ok, report.to_text()
    assert [step.facts["ns"] for step in report.steps if step.do == "target.run"] == [
        2_000_000, 2_000_000, 0,
    ]  # fmt: skip


def test_a_clock_that_jumps(run: Runner) -> None:
    target = "[target]\ncpus = 1\n"
    script = thread('{ instant = "a" }, { sleep = "10ms" }, { instant = "b" }')
    jump = '[[step]]\ndo = "clock.jump"\nby = "1s"\n'
    later = jump + 'at = "5ms"\n'

    def times(*parts: str) -> list[int]:
        with opened(done(run, *parts, target=target)) as capture:
            return [int(ts) for ts in capture.table("instants")["ts"]]

    assert times(script) == pytest.approx([0, 10_000_000], abs=100)
    assert times(jump, script) == pytest.approx([10**9, 1_010_000_000], abs=100)
    assert times(later, script) == pytest.approx([0, 1_010_000_000], abs=100)


def test_a_run_has_its_length_behind_a_jump_of_the_clock(run: Runner) -> None:
    jump = '[[step]]\ndo = "clock.jump"\nby = "1s"\n'
    report = run(jump + RUN + 'for = "2ms"\n' + jump + RUN + 'until = "2003ms"\n')
    assert report.ok, report.to_text()
    assert [step.facts["ns"] for step in report.steps if step.do == "target.run"] == [
        2_000_000, 1_000_000,
    ]  # fmt: skip


def test_a_core_that_is_slow(run: Runner, faults: Faults) -> None:
    target = "[target]\ncpus = 1\nconstant = false\n"
    slow = '[[step]]\ndo = "cpu.pstate"\ncpu = 0\nratio = 0.5\n'
    script = thread('{ complete = "x", body = [{ run = "1ms" }] }')
    with opened(done(run, slow, script, target=target)) as capture:
        assert int(capture.table("slices")["dur"][0]) == pytest.approx(500_000, abs=100)
    found = faults(target + APP + slow.replace("cpu = 0", "cpu = 9"))
    assert found == {"step[0].cpu": "is 9, but must be below 1, the cpus of the target"}


def test_every_device_and_its_image(run: Runner) -> None:
    report = run(
        '[device.v]\nkind = "vmo"\nsize = 5000\n[device.l]\nkind = "log_socket"\n'
        '[[step]]\ndo = "target.snapshot"\ndevice = "v"\nas = "v"\n'
        '[[step]]\ndo = "target.snapshot"\ndevice = "l"\nas = "l"\n'
        '[[step]]\ndo = "fault.drop"\ndevice = "l"\ndatagram = 0\n'
    )
    assert len(report.outputs["v"]) == 8192
    assert report.outputs["l"] == b""


def test_a_step_names_the_kinds_of_devices_that_it_takes(faults: Faults, host: Host) -> None:
    found = faults(
        '[device.v]\nkind = "vmo"\n[device.l]\nkind = "log_socket"\n'
        '[[step]]\ndo = "fault.full"\ndevice = "l"\nrecord = 0\n'
        '[[step]]\ndo = "fault.crash"\ndevice = "l"\nstores = 0\n'
        '[[step]]\ndo = "fault.crash"\ndevice = "w"\nstores = 0\n'
        '[[step]]\ndo = "fault.crash"\ndevice = "v"\nstores = 0\n'
    )
    wrong = "'l' is a device of kind log_socket, not a device of kind trace_provider"
    assert found == {
        "step[0].device": wrong,
        "step[1].device": f"{wrong} or vmo",
        "step[2].device": "there is no device of kind trace_provider or vmo 'w' at this step; "
        "there are: v",
    }
    full = next(
        each
        for each in json_schema(host)["properties"]["step"]["items"]["oneOf"]
        if each["properties"]["do"] == {"const": "fault.full"}
    )
    described = full["properties"]["device"]["description"]
    assert described == "the trace provider (a device of kind trace_provider)"


@cases("refers", ["devices", "device:", "output:vmo", "device:vmo,", ""])
def test_a_parameter_refers_to_what_there_is(refers: str) -> None:
    with pytest.raises(BadCallError, match="cannot refer to"):
        parameter(help="h", refers=refers)


def test_a_streaming_buffer_that_is_saved_by_hand(run: Runner) -> None:
    provider = APP + 'mode = "streaming"\nsize = 4096\n'
    script = thread('{ loop = 400, as = "i", body = [{ instant = "i", args = { n = "{i}" } }] }')
    text = provider + script + RUN
    saved = run('[target]\nsave = "manual"\n' + text + '[[step]]\ndo = "target.save"\n' + LAST)
    assert saved.ok, saved.to_text()
    assert saved.steps[2].facts == {"halves": 1}
    dropped = saved.steps[3].facts["app"]["dropped"]
    assert dropped > 0
    with opened(saved) as capture:
        rows = len(capture.table("instants"))
        assert rows + dropped == 400
        assert numbers(capture) == list(range(rows))
    whole = run(text + LAST)
    with opened(whole) as capture:
        assert len(capture.table("instants")) == 400


# --- Faults --------------------------------------------------------------------------------------

MANY = thread('{ loop = 50, as = "i", body = [{ instant = "i", args = { n = "{i}" } }] }')
IMAGE = '[[step]]\ndo = "target.snapshot"\ndevice = "app"\nas = "a.tbuf"\n'


def fault(kind: str, text: str) -> str:
    return f'[[step]]\ndo = "fault.{kind}"\ndevice = "app"\n{text}\n'


@cases("stores", [0, 1, 2, 3, 10, 57])
def test_a_crash_leaves_what_was_committed(run: Runner, stores: int) -> None:
    report = run(APP + MANY + fault("crash", f"stores = {stores}") + RUN + "crashes = 1\n" + IMAGE)
    assert report.ok, report.to_text()
    assert len(report.steps[2].facts["crashes"]) == 1
    assert "thread 't' of process 'p'" in report.steps[2].message
    with fxf.open(report.outputs["a.tbuf"], format="trace-buffer") as capture:
        found = numbers(capture)
        assert found == list(range(len(found)))
        assert len(found) < 50


def test_a_crash_that_nobody_expects_fails(run: Runner) -> None:
    report = run(APP + MANY + fault("crash", "stores = 9") + RUN)
    assert "1 programs crashed, not 0" in report.failures[0].message
    report = run(APP + MANY + RUN + "crashes = 1\n")
    assert "0 programs crashed, not 1: none did" in report.failures[0].message


def test_a_torn_store_and_a_flipped_bit(run: Runner) -> None:
    torn = run(
        APP + MANY + fault("torn_write", "store = 20\nnbytes = 3") + RUN + "crashes = 1\n" + IMAGE
    )
    assert torn.ok, torn.to_text()
    flipped = run(APP + MANY + fault("bit_flip", "bit = 40\nstore = 61") + RUN + IMAGE)
    sound = run(APP + MANY + RUN + IMAGE)
    a, b = (int.from_bytes(each.outputs["a.tbuf"], "little") for each in (flipped, sound))
    assert (a ^ b).bit_count() == 1
    assert torn.outputs != sound.outputs


def test_a_buffer_that_is_full_for_a_while(run: Runner) -> None:
    report = run(APP + MANY + fault("full", "record = 10\ncount = 5") + RUN + LAST)
    assert report.steps[3].facts["app"]["dropped"] == 5
    with opened(report) as capture:
        assert len(capture.table("instants")) == 45


def test_a_fault_in_what_the_kernel_traces(run: Runner) -> None:
    report = run(
        APP + '[[step]]\ndo = "trace.scheduling"\nprovider = "app"\n'
        '[device.b]\nkind = "trace_provider"\n' + fault("crash", "stores = 50")
        + thread('{ loop = 20, body = [{ sleep = "1ms" }] }').replace('"app"', '"b"')
        + RUN + "crashes = 1\n"
    )  # fmt: skip
    assert report.ok, report.to_text()
    assert "stops tracing" in report.steps[-1].message


def test_the_whole_machine_stops(run: Runner) -> None:
    report = run(
        APP + MANY + RUN + '[[step]]\ndo = "target.crash"\n' + IMAGE
        + '[[step]]\ndo = "target.archive"\nas = "a.fxt"\n' + RUN
    )  # fmt: skip
    assert [step.status for step in report.steps] == ["ok"] * 5 + ["failed"]
    assert "has crashed" in report.steps[-1].message


# --- Captures ------------------------------------------------------------------------------------

CAPTURE = APP + MANY + RUN + LAST + DECODE


@cases(
    ("text", "message"),
    [
        ('format = "log"', "the format is trace, not log"),
        ("records = 7", "there are 58 records, not 7"),
        ("kinds = { event = 49 }", "there are 50 records of kind event, not 49"),
        ("kinds = { 'event instant' = 49 }", "there are 50 records of kind event instant"),
        ("kinds = { evnt = 1 }", "did you mean 'event'?"),
        ('table = "instants"\nrows = 49', "there are 50 rows of instants, not 49"),
        ('table = "instants"\nat_least = 51', "50 rows of instants, fewer than 51"),
        ('table = "instants"\nat_most = 49', "50 rows of instants, more than 49"),
        ('table = "instants"\nwhere = { name = "j" }\nrows = 1', "0 rows of instants that were"),
        ('table = "instants"\nvalues = { name = ["i", "j"] }', "name: 'j' missing"),
        ('table = "instants"\nvalues = { name = ["j"] }', "name: 'i' not expected"),
        ('table = "args"\nwhere = { int = 3 }\nequals = { int = [4] }', "row 0 has 3, not 4"),
        ('table = "args"\nwhere = { int = 3 }\nequals = { int = [3, 4] }', "1 rows, not 2"),
        (
            'table = "args"\nwhere = { name = "n" }\ncolumns = { int = { sum = 1224 } }',
            "int: the sum is 1225, not 1224",
        ),
        (
            'table = "args"\nwhere = { name = "n" }\ncolumns = { int = { max = 48 } }',
            "int: the max is 49, not 48",
        ),
        ('table = "args"\ncolumns = { name = { max = 48 } }', "column 'name' is not numeric"),
        ('table = "args"\ncolumns = { number = { max = 48 } }', "no column 'number'"),
        ('table = "nothing"', "no table 'nothing'"),
        ('findings = ["FXT0001"]', "FXT0001 is expected, but was not found"),
        ('findings = ["FXT9999"]', "unknown code 'FXT9999'"),
    ],
)
def test_what_does_not_hold_is_told(run: Runner, text: str, message: str) -> None:
    report = run(CAPTURE + expect(text))
    assert len(report.failures) == 1
    assert message in report.failures[0].message


def test_what_holds(run: Runner) -> None:
    report = run(
        CAPTURE
        + expect('format = "trace"\nrecords = 58\nkinds = { event = 50 }\nfindings = []')
        + expect('table = "args"\nwhere = { name = "n" }\nrows = 50\nat_least = 50\nat_most = 50\n'
                 'columns = { int = { sum = 1225, min = 0, max = 49 } }')
        + expect('table = "args"\nwhere = { int = 3, name = "n" }\nequals = { int = [3] }')
    )  # fmt: skip
    assert report.ok, report.to_text()


def test_findings_that_are_expected_stay_so(run: Runner) -> None:
    text = (
        APP + MANY + fault("bit_flip", "bit = 2\nstore = 61") + RUN
        + '[[step]]\ndo = "capture.decode"\nfrom = "app"\nas = "a"\n'
    )  # fmt: skip
    report = run(text + expect(""))
    (wrong,) = report.failures[0].facts["wrong"]
    assert wrong.startswith("unexpected FXT")
    code = wrong.split()[1]
    some = 'table = "instants"\nat_least = 1'
    report = run(text + expect(f'findings = ["{code}"]') + expect(some))
    assert report.ok, report.to_text()
    assert not run(text + expect("findings = []")).ok


@cases(
    ("path", "extra", "to"),
    [
        ("a.txt", "", "text"), ("a.json", "", "json"), ("a.jsonl", "", "records"),
        ("a.csv", 'options = { table = "args" }', "csv"), ("b.fxt", "", "trace"),
        ("x", 'to = "text"', "text"),
    ],
)  # fmt: skip
def test_exports(run: Runner, host: Host, path: str, extra: str, to: str) -> None:
    report = run(
        CAPTURE + f'[[step]]\ndo = "capture.export"\ncapture = "a"\npath = "{path}"\n{extra}'
    )
    assert report.ok, report.to_text()
    assert report.steps[-1].facts["to"] == to
    if to == "trace":
        assert report.outputs[path] == report.outputs["a.fxt"]
    sink = Sink.memory()
    if to in {"text", "json", "records"}:
        with opened(report) as capture:
            session = host.exporter(to, format="trace", tables=capture.tables).open(sink, {})
            session.write(capture)
            session.close()
        assert report.outputs[path] == sink.getvalue()


@pytest.mark.parametrize(
    ("path", "extra", "message"),
    [
        ("a.xyz", "", "no target has the suffix '.xyz'"),
        ("a.txt", 'to = "txet"', "did you mean 'text'?"),
        ("a.csv", "options = { tabel = 1 }", "did you mean 'table'?"),
    ],
)
def test_exports_that_there_are_not(run: Runner, path: str, extra: str, message: str) -> None:
    report = run(
        CAPTURE + f'[[step]]\ndo = "capture.export"\ncapture = "a"\npath = "{path}"\n{extra}'
    )
    assert message in report.failures[0].message


# --- Captures driven anew ------------------------------------------------------------------------


def replayed(run: Runner, tmp_path: Path, data: bytes) -> Report:
    (tmp_path / "in.fxt").write_bytes(data)
    return run('[[step]]\ndo = "trace.replay"\ncapture = "in.fxt"\nas = "a.fxt"\n')


def test_a_capture_comes_back_byte_for_byte(run: Runner, tmp_path: Path) -> None:
    data = sample(30_000)
    report = replayed(run, tmp_path, data)
    assert report.ok, report.to_text()
    assert report.outputs["a.fxt"] == data


def test_so_does_one_of_several_providers_that_alternate(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "made.fxt"
    with Archive(path) as archive:
        writers = [archive.provider(id, f"p{id}", ticks_per_second=10**9) for id in (1, 2, 7)]
        for at in range(50):
            writers[at % 3].instant("c", f"n{at % 5}", {"i": at}, thread=(1, at), timestamp=at * 99)
            if at % 10 == 0:
                archive.buffer_full(2)
    data = path.read_bytes()
    report = replayed(run, tmp_path, data)
    assert report.ok, report.to_text()
    assert report.steps[0].facts["providers"] == 3
    assert report.outputs["a.fxt"] == data


@pytest.mark.parametrize("seed", range(20))
def test_so_does_a_damaged_one(run: Runner, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(sample(5000))
    for _ in range(rng.randrange(1, 6)):
        data[rng.randrange(16, len(data))] = rng.randrange(256)
    if seed % 3 == 0:
        del data[rng.randrange(16, len(data)) :]
    report = replayed(run, tmp_path, bytes(data))
    assert report.ok, report.to_text()
    assert report.outputs["a.fxt"] == data


def test_records_are_written_at_their_own_times(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "made.fxt"
    with Archive(path) as archive:
        writer = archive.provider(1, "p", ticks_per_second=1000)
        for at in (5000, 5001, 5500):
            writer.instant("c", "n", thread=(1, 2), timestamp=at)
    (tmp_path / "in.fxt").write_bytes(path.read_bytes())
    report = run(
        '[[step]]\ndo = "trace.replay"\ncapture = "in.fxt"\nas = "a.fxt"\n' + RUN + 'until = "1s"\n'
    )
    assert report.ok, report.to_text()
    assert report.steps[1].facts["ns"] == 500_000_000


def test_a_capture_into_a_provider_of_ones_own(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "in.fxt").write_bytes(sample(60_000))
    report = run(
        APP + 'mode = "circular"\nsize = 8192\n'
        '[[step]]\ndo = "trace.replay"\ncapture = "in.fxt"\nprovider = "app"\n' + LAST + DECODE
        + expect("findings = []") + expect('table = "slices"\nat_least = 10')
    )  # fmt: skip
    assert report.ok, report.to_text()
    assert report.steps[0].facts["records"] > 1000


@pytest.mark.parametrize("extra", ["", 'as = "x"\nprovider = "app"'])
def test_a_replay_goes_to_one_place(faults: Any, extra: str) -> None:
    found = faults(APP + f'[[step]]\ndo = "trace.replay"\ncapture = "pyproject.toml"\n{extra}')
    assert "either `as` or `provider`" in found["step[0]"]


def test_a_big_endian_capture_is_refused(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "made.fxt"
    with Archive(path, big_endian=True) as archive:
        archive.provider(1, "p", ticks_per_second=1000)
    report = replayed(run, tmp_path, path.read_bytes())
    assert "little-endian" in report.failures[0].message


def test_writers_of_steps_are_trace_writers() -> None:
    from fx_emulator.steps import Machine
    from fx_emulator.target import Target as Whole
    from fxframework.model.target import Target, Thread

    machine = Machine(Whole())
    assert isinstance(machine, Target)
    seen = []

    def program(thread: Any) -> Any:
        seen.append(isinstance(thread, Thread))
        yield thread.run(5)

    assert isinstance(machine.spawn("p", "t", program), Thread)
    machine.run()
    assert seen == [True]
    assert TraceWriter(machine.trace_buffer(100), clock=machine.counter).ticks_per_second
    machine.close()
