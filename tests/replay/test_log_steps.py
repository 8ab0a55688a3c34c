"""Threads that log, manifests, and logs driven anew do what they say."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import orjson
import pytest

import fxframework as fxf
from fx_log.sample import sample
from fx_log.write.writer import LogWriter
from fxframework.host import Host
from fxframework.kit.arguments import Null
from fxframework.replay import Report
from fxframework.testing.cli import run_cli

from ..cases import cases

Runner = Callable[..., Report]
SOCKET = '[device.l]\nkind = "log_socket"\n'
RUN = '[[step]]\ndo = "target.run"\n'
NULL = "FXL0110"
"""The reference reader takes a null for the number 1."""
TARGET = '[target]\nstart = "2s"\nsuspended = "1s"\n'


def step(do: str, text: str = "") -> str:
    return f'[[step]]\ndo = "{do}"\n{text}\n'


def thread(*script: str, process: str = "p", extra: str = "") -> str:
    return step(
        "log.thread",
        f'socket = "l"\nprocess = "{process}"\nthread = "t"\n'
        f"script = [{', '.join(script)}]\n{extra}",
    )


def manifest(tag: int, moniker: str, url: str = "u") -> str:
    return step("log.manifest", f'socket = "l"\ntag = {tag}\nmoniker = "{moniker}"\nurl = "{url}"')


def snapshot(name: str = "a.fxlog") -> str:
    return step("target.snapshot", f'device = "l"\nas = "{name}"')


def drop(datagram: int, count: int = 1) -> str:
    return step("fault.drop", f'device = "l"\ndatagram = {datagram}\ncount = {count}')


def done(run: Runner, *parts: str, head: str = TARGET + SOCKET, **options: Any) -> Report:
    """A run that must hold, to its end and with the log at the end."""
    report = run(head + "".join(parts) + RUN + snapshot(), **options)
    assert report.ok, report.to_text()
    return report


def opened(report: Report, name: str = "a.fxlog") -> Any:
    return fxf.open(report.outputs[name], format="log")


def rows(report: Report, *names: str, warned: Collection[str] = frozenset()) -> list[Any]:
    """The rows of the logs, of these columns; nothing else may be warned of."""
    with opened(report) as capture:
        logs = capture.table("logs")
        found = [logs.plain(name) for name in names]
        capture.scan()
        codes = {each.code for each in capture.diagnostics if each.severity >= fxf.Severity.WARNING}
        assert codes == warned
    return list(zip(*found, strict=True)) if len(names) > 1 else list(found[0])


# --- What a thread logs --------------------------------------------------------------------------


def test_a_record_has_all_that_the_script_says(run: Runner) -> None:
    report = done(
        run,
        thread(
            '{ loop = 2, as = "i", body = [{ log = "m{i}", severity = "ERROR", tags = ["t{i}"], '
            'keys = { "k{i}" = "{i}", s = "<{i}>", f = 0.5, b = true, u = { uint64 = "{i}" }, '
            'd = { double = 2 }, n = { null = true }, x = { string = "{i}" } }, '
            'file = "../f{i}.cc", line = 7 }] }',
            extra='tag = 5\ntags = ["all"]',
        ),
    )
    pid, tid = report.steps[0].facts["pid"], report.steps[0].facts["tid"]
    assert pid != tid
    names = ("message", "severity_name", "pid", "tid", "tags", "file", "line", "log_tag")
    assert rows(report, *names, warned={NULL}) == [
        (f"m{i}", "ERROR", pid, tid, f"t{i},all", f"f{i}.cc", 7, 5) for i in range(2)
    ]
    with opened(report) as capture:
        keys = [
            {each.name: (each.type, each.value) for each in record.args}
            for record in capture.records()
        ]
    for i, found in enumerate(keys):
        assert found[f"k{i}"] == ("int64", i)
        assert found["s"] == ("string", f"<{i}>")
        assert found["f"] == ("double", 0.5)
        assert found["b"] == ("bool", True)
        assert found["u"] == ("uint64", i)
        assert found["d"] == ("double", 2.0)
        assert found["n"] == ("null", None)
        assert found["x"] == ("string", str(i))


def test_severities_are_levels_or_bytes(run: Runner) -> None:
    levels = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]
    script = [f'{{ log = "m", severity = "{level}" }}' for level in levels]
    report = done(run, thread(*script, '{ log = "m", severity = 0x2f }', '{ log = "m" }'))
    assert rows(report, "severity") == [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x2F, 0x30]


@pytest.mark.parametrize(("clock", "ahead"), [("boot", 10**9), ("monotonic", 0)])
def test_times_are_those_of_the_targets_clock(run: Runner, clock: str, ahead: int) -> None:
    script = thread(
        '{ log = "a" }', '{ sleep = "5ms" }', '{ log = "b" }', '{ run = "1ms" }', '{ log = "c" }',
        extra=f'clock = "{clock}"',
    )  # fmt: skip
    start = 2_000_000_000 + ahead
    assert rows(done(run, script), "ts") == [start, start + 5_000_000, start + 6_000_000]


def test_it_does_what_every_thread_does(run: Runner) -> None:
    first = thread(
        "{ migrate = 1 }", "{ yield = true }", '{ wait = "go" }', '{ log = "second" }',
        '{ wait = "never", timeout = "1ms" }', '{ log = "third" }',
    )  # fmt: skip
    second = thread('{ log = "first" }', '{ run = "1ms", jitter = "1ms" }', '{ signal = "go" }')
    report = done(run, first, second)
    assert rows(report, "message") == ["first", "second", "third"]


def test_one_process_may_trace_and_log(run: Runner) -> None:
    tracing = step(
        "trace.thread",
        'provider = "a"\nprocess = "p"\nthread = "traces"\n'
        'script = [{ wait = "logged" }, { log = "of the trace" }]',
    )
    report = done(
        run, tracing, thread('{ log = "of the log" }', '{ signal = "logged" }'),
        head=TARGET + SOCKET + '[device.a]\nkind = "trace_provider"\n',
    )  # fmt: skip
    assert report.steps[0].facts["pid"] == report.steps[1].facts["pid"]
    assert rows(report, "message") == ["of the log"]


def test_the_same_seed_gives_the_same_bytes(run: Runner) -> None:
    script = thread(
        '{ loop = 9, as = "i", body = [{ run = "1us", jitter = "1ms" }, { log = "m{i}" }] }'
    )
    outputs = [
        done(run, script, thread('{ log = "x" }', process="q"), seed=seed).outputs["a.fxlog"]
        for seed in (1, 2, 1)
    ]
    assert outputs[0] == outputs[2] != outputs[1]


@cases(
    ("action", "path", "message"),
    [
        ('{ log = "m", severity = "WARM" }', ".severity", "did you mean 'WARN'?"),
        ('{ log = "m", severity = 256 }', ".severity", "must be 255 or less"),
        ('{ log = "m", line = 3 }', "", "`line` needs `file`"),
        ('{ log = "m", keys = { k = { koid = 3 } } }', ".keys.k", "double, int64, null, string"),
        ('{ log = "m", keys = { k = { string = 3 } } }', ".keys.k", "not a value"),
        ('{ datagram = "xyz" }', "", "non-hexadecimal"),
        ('{ slice = "s" }', "", "not one of datagram, log, loop, migrate, run"),
        ('{ loop = 2, body = [{ instant = "i" }] }', ".body[0]", "not one of"),
    ],
)
def test_what_no_action_can_be(faults: Any, action: str, path: str, message: str) -> None:
    found = faults(SOCKET + thread(action))
    assert message in found[f"step[0].script[0]{path}"]


@pytest.mark.parametrize("kind", ["vmo", "trace_provider"])
@pytest.mark.parametrize("text", [thread('{ log = "m" }'), manifest(1, "m")])
def test_logs_go_to_sockets_only(faults: Any, kind: str, text: str) -> None:
    found = faults(f'[device.l]\nkind = "{kind}"\n' + text)
    assert found == {
        "step[0].socket": f"'l' is a device of kind {kind}, not a device of kind log_socket"
    }


# --- Who logs ------------------------------------------------------------------------------------


def test_manifests_name_components_from_there_on(run: Runner) -> None:
    report = done(
        run,
        thread('{ log = "a" }', extra="tag = 1"),
        RUN,
        manifest(1, "core/net", "fuchsia-pkg://net"),
        manifest(2, "core/bt"),
        thread('{ log = "b" }', extra="tag = 1"),
        thread('{ log = "c" }', extra="tag = 2"),
        thread('{ log = "d" }'),
    )
    assert rows(report, "message", "component", "log_url") == [
        ("a", "UNKNOWN", ""),
        ("b", "core/net", "fuchsia-pkg://net"),
        ("c", "core/bt", "u"),
        ("d", None, None),
    ]


def test_a_manifest_that_is_dropped_names_nobody(run: Runner) -> None:
    report = done(run, drop(0), manifest(1, "core/net"), thread('{ log = "a" }', extra="tag = 1"))
    assert report.steps[1].facts == {"taken": False}
    assert rows(report, "component", "dropped") == [("UNKNOWN", 0)]


# --- What is dropped -----------------------------------------------------------------------------

MANY = '{ loop = 20, as = "i", body = [{ log = "m{i}", keys = { i = "{i}" } }, { run = "1us" }] }'


def test_the_next_record_tells_of_dropped_ones(run: Runner) -> None:
    report = done(run, drop(3, 4), drop(15), thread(MANY))
    found = rows(report, "message", "dropped")
    assert found[3:5] == [("m7", 4), ("m8", 0)]
    assert [count for _, count in found if count] == [4, 1]
    assert len(found) == 15
    facts = report.steps[-1].facts
    assert (facts["records"], facts["dropped"], facts["invalid"]) == (15, 5, 0)


def test_each_process_tells_of_its_own(run: Runner) -> None:
    one = thread('{ log = "a" }', '{ sleep = "3ms" }', '{ log = "d" }')
    other = thread(
        '{ sleep = "1ms" }', '{ log = "b" }', '{ log = "c" }', '{ sleep = "3ms" }', '{ log = "e" }',
        process="q",
    )  # fmt: skip
    report = done(run, drop(0, 3), one, other)
    assert rows(report, "message", "dropped") == [("d", 1), ("e", 2)]


@pytest.mark.parametrize("limit", ["capacity = 500", "datagrams = 4"])
def test_a_full_socket_takes_more_once_the_service_has_read(run: Runner, limit: str) -> None:
    report = run(
        TARGET + SOCKET + limit + "\n" + thread(MANY, '{ sleep = "1ms" }', '{ log = "last" }')
        + RUN + 'for = "500us"\n' + snapshot("early.fxlog") + RUN + snapshot()
    )  # fmt: skip
    assert report.ok, report.to_text()
    found = rows(report, "message", "dropped")
    early = len(found) - 1
    assert 1 < early < 20
    assert found == [*((f"m{i}", 0) for i in range(early)), ("last", 20 - early)]
    assert report.outputs["a.fxlog"].startswith(report.outputs["early.fxlog"])
    assert f"{20 - early} dropped" in report.steps[-1].message


@pytest.mark.parametrize(
    ("behaviour", "records", "facts"),
    [
        ("count", ["a", "b"], {"records": 2, "dropped": 0, "invalid": 1, "lost": 0}),
        ("disconnect", ["a"], {"records": 1, "dropped": 0, "invalid": 1, "lost": 1}),
    ],
)
def test_what_is_no_record_is_not_in_the_log(
    run: Runner, behaviour: str, records: list[str], facts: dict[str, int]
) -> None:
    script = thread('{ log = "a" }', '{ datagram = "00ff" }', '{ log = "b" }')
    report = done(run, script, head=TARGET + SOCKET + f'invalid = "{behaviour}"\n')
    assert rows(report, "message") == records
    assert report.steps[-1].facts == {"bytes": len(report.outputs["a.fxlog"]), **facts}


# --- Logs driven anew ----------------------------------------------------------------------------


def replayed(run: Runner, tmp_path: Path, data: bytes) -> Report:
    (tmp_path / "in.fxlog").write_bytes(data)
    return run(step("log.replay", 'capture = "in.fxlog"\nas = "a.fxlog"'))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A log of 30 records, a millisecond from one to the next, behind a manifest."""
    path = tmp_path / "in.fxlog"
    with LogWriter(path, pid=1, tid=2) as writer:
        writer.manifest(3, "core/net", "u")
        for n in range(30):
            time = 10**15 + n * 1_000_000
            writer.write("INFO", f"m{n}", {"n": n, "none": Null()}, time=time, tag_bits=3)
    return path


def test_a_log_comes_back_byte_for_byte(run: Runner, tmp_path: Path, made: Path) -> None:
    for data in (made.read_bytes(), sample(30_000)):
        report = replayed(run, tmp_path, data)
        assert report.ok, report.to_text()
        assert report.outputs["a.fxlog"] == data


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
    assert report.outputs["a.fxlog"] == data


VECTORS = Path(__file__).resolve().parents[1] / "conformance" / "log" / "records.json"


@pytest.mark.parametrize(
    "vector", orjson.loads(VECTORS.read_bytes()), ids=lambda each: each["name"]
)
def test_so_does_every_record_there_can_be(
    run: Runner, tmp_path: Path, vector: dict[str, Any]
) -> None:
    data = bytes.fromhex(vector["hex"])
    report = replayed(run, tmp_path, data)
    assert report.ok, report.to_text()
    assert report.outputs["a.fxlog"] == data


def test_records_are_sent_at_their_own_times(run: Runner, made: Path) -> None:
    report = run(
        step("log.replay", f'capture = "{made.name}"\nas = "a.fxlog"') + RUN + 'until = "1s"\n'
    )
    assert report.ok, report.to_text()
    assert report.steps[1].facts["ns"] == 1_000_000_000 - 29_000_000


def test_a_log_into_a_socket_of_ones_own(run: Runner, made: Path) -> None:
    report = run(
        SOCKET + drop(0) + drop(10, 5) + step("log.replay", 'capture = "in.fxlog"\nsocket = "l"')
        + snapshot()
    )  # fmt: skip
    assert report.ok, report.to_text()
    assert report.steps[2].facts == {"records": 25, "dropped": 6}
    found = rows(report, "message", "dropped", "component", warned={NULL})
    assert found[0] == ("m0", 1, "UNKNOWN")
    assert [each[:2] for each in found if each[1]] == [("m0", 1), ("m14", 5)]
    assert made.name == "in.fxlog"


@pytest.mark.parametrize("extra", ["", 'as = "x"\nsocket = "l"'])
def test_a_replay_goes_to_one_place(faults: Any, extra: str) -> None:
    found = faults(SOCKET + step("log.replay", f'capture = "pyproject.toml"\n{extra}'))
    assert "either `as` or `socket`" in found["step[0]"]


def test_a_recorded_log_replays_byte_for_byte(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli("record", made, "--out", "again.toml", host=host).exit_code == 0
    done = run_cli("replay", "again.toml", "--out", "out", "-v", host=host)
    assert done.exit_code == 0, done.text + done.stderr
    assert (tmp_path / "out" / "replayed.fxlog").read_bytes() == made.read_bytes()
