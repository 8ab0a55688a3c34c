"""The target as a whole: writers on it, what it leaves, and that it does the same again."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_emulator.errors import Crash, EmulatorError
from fx_emulator.faults import CrashAfter
from fx_emulator.kernel import Event, Run, Signal, Sleep, Thread, ThreadState, Wait
from fx_emulator.memory import Memory
from fx_emulator.socket import DatagramSocket
from fx_emulator.target import Target
from fx_emulator.vmo import Vmo
from fx_trace.write.writer import TraceWriter

from ..cases import cases

MS = 1_000_000


def work(target: Target, rounds: int = 20) -> TraceWriter:
    """Two threads of one process with one writer, and the scheduler's own provider."""
    kernel = TraceWriter(target.trace_provider("kernel"), clock=target.counter)
    target.kernel.listen(kernel, ticks="tsc")
    writer = TraceWriter(target.trace_provider("app"), clock=target.counter)
    request, reply = Event("request", auto_reset=True), Event("reply", auto_reset=True)

    def client(thread: Thread) -> Iterator[Any]:
        for number in range(rounds):
            with writer.slice("app", "ask", {"number": number}, thread=thread.ids):
                yield Run(100_000)
                yield Signal(request)
                yield Wait(reply)
            yield Sleep(50_000)

    def server(thread: Thread) -> Iterator[Any]:
        while True:
            yield Wait(request)
            with writer.slice("app", "answer", thread=thread.ids):
                yield Run(30_000)
            yield Signal(reply)

    for thread in (
        target.spawn("app", "client", client),
        target.spawn("app", "server", server, priority=20, background=True),
    ):
        writer.process(thread.process.koid, thread.process.name)
        writer.thread(*thread.ids, thread.name)
    return writer


def test_writers_of_several_threads_make_a_clean_archive() -> None:
    target = Target(seed=3, cpus=2)
    work(target)
    target.run()
    target.stop()
    with fxf.open(target.archive()) as capture:
        slices = capture.table("slices")
        names = [capture.strings[int(code)] for code in slices["name"]]
        assert names.count("ask") == names.count("answer") == 20
        assert (slices["dur"] > 0).all()
        assert len(capture.table("sched")) >= 40
        capture.scan()
        assert not capture.diagnostics.counts
        client, server = target.processes["app"].threads
        tids = capture.table("threads")["tid"]
        assert {int(tids[row]) for row in slices["thread"]} == {client.koid, server.koid}
    app = target.snapshot("app")
    assert fxf.open(app, format="trace-buffer").summary().facts["mode"] == "oneshot"


def busy(target: Target) -> None:
    """More threads than CPUs."""

    def body(_thread: Thread) -> Iterator[Any]:
        yield Run(3 * MS)
        yield Run(20 * MS)

    for number in range(4):
        target.spawn("load", f"load {number}", body)


def run_once(seed: int) -> bytes:
    target = Target(seed=seed, cpus=3, offsets=(0, 100, 7_000))
    work(target)
    busy(target)
    target.run()
    return target.archive() + target.snapshot("kernel")


def test_the_same_seed_gives_the_same_bytes() -> None:
    first = run_once(1)
    assert run_once(1) == first
    assert len({run_once(seed) for seed in range(1, 6)}) == 5


def test_other_processes_and_hash_seeds_give_the_same_bytes() -> None:
    code = (
        "import hashlib; from tests.emulator.test_target import run_once;"
        "print(hashlib.sha256(run_once(1)).hexdigest())"
    )
    path = ":".join([*sys.path, str(Path(__file__).parents[2])])
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {hashlib.sha256(run_once(1)).hexdigest()}


# --- Devices ------------------------------------------------------------------------------------


def test_devices_have_names_and_koids() -> None:
    target = Target(store_log=True)
    vmo = target.vmo("inspect", 5000)
    engine = target.trace_provider("app", size=8192, mode="circular")
    socket = target.log_socket("log")
    assert [(each.kind, name) for name, each in target.devices.items()] == [
        ("vmo", "inspect"),
        ("trace", "app"),
        ("log", "log"),
    ]
    koids = [each.koid for each in target.devices.values()]
    assert len(set(koids)) == 3
    assert vmo.koid == koids[0]
    assert target.process("p").koid > max(koids)
    assert target.process("p") is target.process("p")
    assert [each.device for each in target.devices.values()] == [vmo, engine, socket]
    assert target.devices["log"].memory is None
    for name in ("inspect", "app"):
        memory = target.devices[name].memory
        assert memory is not None
        assert memory.log is not None
    vmo.store_u64(8, 7)
    assert target.snapshot("inspect") == bytes(8) + b"\7" + bytes(8192 - 9)
    assert len(target.snapshot("app")) == 8192
    assert isinstance(vmo, Vmo)
    assert isinstance(socket, DatagramSocket)


@cases("name", ["inspect", ""])
def test_a_name_is_given_once(name: str) -> None:
    target = Target()
    target.vmo("inspect", 4096)
    for make in (target.vmo, target.trace_provider, target.log_socket):
        with pytest.raises(EmulatorError, match="names must be unique"):
            make(name)
    with pytest.raises(EmulatorError, match="no device 'x'; the devices are: 'inspect'"):
        target.snapshot("x")
    with pytest.raises(EmulatorError, match="the devices are: none"):
        Target().snapshot("x")


def test_log_records_are_received() -> None:
    target = Target()
    socket = target.log_socket("log", datagrams=2)
    record = (9 | 2 << 4).to_bytes(8, "little") + bytes(8)
    assert socket.send(record)
    assert socket.send(b"short")
    assert not socket.send(record)
    assert target.snapshot("log") == record
    assert socket.send(record)
    assert target.snapshot("log") == record * 2
    assert target.log_services["log"].invalid == socket.dropped == 1


def test_memories_may_be_files(tmp_path: Path) -> None:
    path = tmp_path / "buffer.fxtbuf"
    with Target() as target, Memory.file(path, 4096) as memory:
        target.vmo("vmo", memory=Memory.file(tmp_path / "vmo", 8192)).store_u64(0, 1)
        engine = target.trace_provider("app", memory=memory)
        TraceWriter(engine, clock=target.counter).instant("c", "n", thread=(1, 2))
        assert path.read_bytes() == target.snapshot("app")
    assert (tmp_path / "vmo").read_bytes()[:8] == (1).to_bytes(8, "little")
    with fxf.open(path) as capture:
        assert len(capture.table("instants")) == 1


# --- What goes wrong ----------------------------------------------------------------------------


NO_RECORDS = {"buffer_header", "padding", "damaged"}


def open_slices(data: bytes) -> int:
    with fxf.open(data) as capture:
        return int((capture.table("slices")["dur"] < 0).sum())


def test_a_crash_of_the_machine_leaves_things_as_they_are() -> None:
    target = Target()
    work(target)
    target.run(120_000)
    before = target.snapshot("app")
    target.crash("somebody pulled the plug")
    gc.collect()
    assert target.snapshot("app") == before
    assert open_slices(target.archive()) == 2
    assert isinstance(target.crashed, Crash)
    target.crash()
    assert str(target.crashed) == "somebody pulled the plug"
    for call in (target.run, target.stop, lambda: target.spawn("p", "t", iter(()))):  # type: ignore[arg-type, return-value]
        with pytest.raises(EmulatorError, match=r"pulled the plug.*create another"):
            call()


def test_a_process_crashes_within_a_record_and_others_go_on() -> None:
    target = Target(cpus=2)
    work(target)
    busy(target)
    memory = target.devices["app"].memory
    assert memory is not None
    memory.faults.append(CrashAfter(memory.stores + 100))
    engine = target.traces.providers[1].engine
    with pytest.raises(Crash) as caught:
        target.run()
    assert 0 < engine.records < 100
    assert "of process 'app'" in caught.value.__notes__[0]
    before = target.snapshot("app")
    target.run()
    target.stop()
    assert target.snapshot("app") == before
    assert {thread.state for thread in target.processes["app"].threads} == {ThreadState.DEAD}
    assert target.traces.providers[1].crashed is caught.value
    assert target.processes["load"].threads[0].cpu_ns == 23 * MS
    with fxf.open(before) as capture:
        kinds = [record.to_json()["record"] for record in capture.records()]
    assert len([kind for kind in kinds if kind not in NO_RECORDS]) == engine.records


def test_a_killed_process_stores_nothing_on_its_way_out() -> None:
    target = Target()
    work(target)
    target.run(120_000)
    before = target.snapshot("app")
    target.kernel.kill(target.processes["app"])
    assert target.snapshot("app") == before
    # The memory takes what others store.
    assert target.traces.providers[1].engine.put((5 | 1 << 4).to_bytes(8, "little"))


def test_streaming_while_threads_run() -> None:
    target = Target(save_delay_ns=200_000)
    engine = target.trace_provider("app", size=4096, mode="streaming")
    writer = TraceWriter(engine, clock=target.clock)

    def body(thread: Thread) -> Iterator[Any]:
        for _ in range(1000):
            writer.instant("cat", "tick", thread=thread.ids)
            yield Run(10_000)

    target.spawn("app", "main", body)
    target.run()
    target.stop()
    assert engine.dropped == 0
    with fxf.open(target.archive()) as capture:
        assert capture.table("instants")["ts"].tolist() == [10_000 * at for at in range(1000)]


def test_boot_time_goes_on_in_suspend() -> None:
    target = Target(start_ns=1000, suspended_ns=500)
    target.suspend(2000)
    assert (target.clock.monotonic_ns(), target.clock.boot_ns()) == (1000, 3500)
