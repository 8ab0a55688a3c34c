"""Repetition: reading gives the same every time, in any process, and costs what it should."""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import hashlib
import importlib
import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, ClassVar

from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.registry import Exporter, Reader
from fxframework.testing.contracts.base import RoundTrips, open_bytes
from fxframework.testing.contracts.checks import rows_of, skip

__all__ = ["Repetition", "answer", "ask", "digest_of", "hashes_of"]

SMALLEST, LARGEST = 1 << 15, 1 << 19
"""Bytes of the large sample whose time is compared with that of a small one."""
TIMES = 8
"""How many times as large it is."""
SLOWER = 3.0
"""How much longer a byte of the large sample may take than one of the small sample."""
NOTICED = 0.08
"""CPU seconds that the large sample takes at least, where a comparison says anything."""
BATCH = 256
STREAMED = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
"""Bytes of the samples that are read in batches, until a larger one takes no more memory."""
SLOW = 0.2
"""CPU seconds of a reading after which no larger sample is tried."""
STEEP = 8
"""Bytes of memory for a byte of file that no buffer of a reader explains."""
THREADS = 4

_CHILD = """
import json, sys
answers, sys.stdout = sys.stdout, sys.stderr
sys.path[:0] = json.loads(sys.stdin.readline())
from fxframework.testing.contracts.repetition import answer
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
"""


def digest_of(capture: Capture) -> dict[str, Any]:
    """All that a capture gives, as values that can be compared."""
    found: dict[str, Any] = {
        "records": [record.to_json() for record in capture.records()],
        **{name: rows_of(capture.table(name)) for name in capture.tables},
    }
    capture.scan()
    found["findings"] = [
        (one.code, one.offset, one.record, one.message) for one in capture.diagnostics
    ]
    summary = capture.summary()
    found["summary"] = (
        summary.records, dict(summary.kinds), summary.start_ns, summary.end_ns,
        dict(summary.rows), dict(summary.facts),
    )  # fmt: skip
    return found


def answer(asked: Mapping[str, Any]) -> dict[str, str]:
    """What the other process says of some bytes: hashes by what they are of, or an ``error``."""
    try:
        sys.path[:0] = [folder for folder in asked["path"] if folder not in sys.path]
        importlib.invalidate_caches()
        readers: list[Reader] = list(importlib.import_module(asked["plugin"]).fx_readers())
        reader = next(reader for reader in readers if reader.format == asked["format"])
        with open_bytes(reader, bytes.fromhex(asked["data"])) as capture:
            if "exporter" in asked:
                return _exported(asked, capture)
            return hashes_of(digest_of(capture))
    except Exception as error:  # noqa: BLE001 (a plugin's; it is the answer)
        return {"error": f"{type(error).__name__}: {error}"}


def _exported(asked: Mapping[str, Any], capture: Capture) -> dict[str, str]:
    """Hashes of what an exporter makes of a capture."""
    module = importlib.import_module(asked["exporter_plugin"])
    exporters: list[Exporter] = list(module.fx_exporters())
    exporter = exporters[asked["exporter"]]
    sink = Sink.memory()
    session = exporter.open(sink, asked["options"])
    session.write(capture)
    dropped = session.close()
    return hashes_of({"output": sink.getvalue(), "dropped": sorted((dropped or {}).items())})


@functools.cache
def _other_process() -> subprocess.Popen[str]:
    """A process with another seed of hashes, which reads what it is given; made once."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    child = subprocess.Popen(  # noqa: S603 (this very interpreter, on the code above)
        [sys.executable, "-c", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    atexit.register(_end, child)
    _say(child, sys.path)
    return child


def _end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


def _say(child: subprocess.Popen[str], message: Any) -> None:
    assert child.stdin is not None
    child.stdin.write(json.dumps(message) + "\n")
    child.stdin.flush()


def ask(asked: Mapping[str, Any]) -> dict[str, str]:
    """What another process, with another seed of hashes, answers."""
    child = _other_process()
    _say(child, asked)
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line, "another process ended while it read a sample"
    found: dict[str, str] = json.loads(line)
    return found


def hashes_of(digest: Mapping[str, Any]) -> dict[str, str]:
    """A hash of each part of a digest."""
    return {
        name: hashlib.sha256(repr(value).encode()).hexdigest() for name, value in digest.items()
    }


class Repetition(RoundTrips):
    """The same bytes read again: in another order, in threads, in another process; and larger."""

    slower: ClassVar[float] = SLOWER
    """How much longer a byte of a large file may take than one of a small file."""

    def large(self, nbytes: int) -> bytes:
        """A sound input of about so many bytes: what the reader's ``sample`` makes.

        Tests of time and memory are skipped where there is none.
        """
        make = self.reader.sample
        if make is None:
            skip(
                f"the reader of {self.format} has no `sample`, and the contract no large(): small "
                "samples cannot show how time and memory grow"
            )
        return make(nbytes)

    def _digest(self, data: bytes) -> dict[str, Any]:
        with self._open(data) as capture:
            return digest_of(capture)

    def _digest_or_error(self, data: bytes) -> dict[str, Any] | str:
        try:
            return self._digest(data)
        except Exception as error:  # noqa: BLE001 (a plugin's; it is the result)
            return f"{type(error).__name__}: {error}"

    def test_files_do_not_disturb_each_other(self) -> None:
        """A file reads the same before and after another one, and while that is open."""
        small = self._small()[:4]
        if len(small) < 2:
            small = [*small, *small]
        first = [self._digest(sample.data) for sample in small]
        again = [self._digest(sample.data) for sample in reversed(small)][::-1]
        for sample, one, other in zip(small, first, again, strict=True):
            _same(one, other, f"{sample.name} reads otherwise once other files were read")
        with self._open(small[0].data) as open_one:
            under_way = open_one.records()
            next(under_way, None)
            for sample, one in zip(small, first, strict=True):
                other = self._digest(sample.data)
                _same(one, other, f"{sample.name} reads otherwise while another file is read")

    def test_threads_read_the_same(self) -> None:
        """Several threads at once, each with a capture of its own."""
        sample = self._small()[0]
        alone = self._digest(sample.data)
        package = self._plugin_name.partition(".")[0]
        before = threading.gettrace()
        threading.settrace(_turns(package))
        try:
            with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
                for other in pool.map(self._digest_or_error, [sample.data] * THREADS):
                    assert not isinstance(other, str), (
                        f"{sample.name} cannot be read in several threads: {other}"
                    )
                    _same(alone, other, f"{sample.name} reads otherwise in several threads")
        finally:
            threading.settrace(before)

    def test_another_process_reads_the_same(self) -> None:
        """Whatever Python's seed of hashes is: no set and no hash decides an order."""
        if not isinstance(self.plugin, str):
            skip("the plugin is not a module that another process can import")
        sample = self._small()[-1]
        with self._open(sample.data) as capture:
            here = hashes_of(digest_of(capture))
        there = ask(
            {"path": sys.path, "plugin": self.plugin, "format": self.format,
             "data": sample.data.hex()}
        )  # fmt: skip
        assert "error" not in there, f"another process cannot read {sample.name}: {there['error']}"
        differ = sorted(name for name in here if here[name] != there.get(name))
        assert not differ, (
            f"another process with another seed of hashes reads {sample.name} otherwise: "
            f"{', '.join(differ)}"
        )

    # --- What it costs -----------------------------------------------------------------------

    def test_time_follows_the_size(self) -> None:
        """A file that is 8 times as large takes about 8 times as long, not 64 times."""
        made = functools.cache(self.large)
        for view, read in _VIEWS.items():
            size = SMALLEST
            while self._seconds(made(size), read) < NOTICED and size < LARGEST:
                size *= 2
            large, small = made(size), made(size // TIMES)
            if len(large) < TIMES // 2 * len(small):
                skip(
                    f"samples of {len(small):,} and {len(large):,} bytes are too small to show how "
                    "time grows"
                )
            ratios = []
            for _ in range(3):  # another program may have disturbed it
                short, long = self._seconds(small, read), self._seconds(large, read)
                if long < NOTICED:
                    break
                ratios.append((long / len(large)) / max(short / len(small), 1e-9))
                if ratios[-1] <= self.slower:
                    break
            assert not ratios or min(ratios) <= self.slower, (
                f"time: {view} takes {min(ratios):.1f} times as long for a byte of {len(large):,} "
                f"as for a byte of {len(small):,}; it grows faster than the file"
            )

    def _seconds(self, data: bytes, read: Callable[[Capture], None]) -> float:
        begin = time.process_time()
        with self._open(data) as capture:
            read(capture)
        return time.process_time() - begin

    def test_memory_in_batches_is_bounded(self) -> None:
        """Batches of a large file take no more memory than those of a small one."""
        with self._open(self._small()[0].data) as capture:
            if type(capture)._batches is Capture._batches:  # noqa: SLF001 (the kit is the host's)
                skip(
                    f"the reader of {self.format} cuts batches from whole tables: it does not "
                    "override _batches(), so its memory follows the file"
                )
        peaks: list[tuple[int, int]] = []
        slow = False
        for size in STREAMED:
            data = self.large(size)
            if slow or (peaks and len(data) < 2 * peaks[-1][0]):
                break
            begin = time.process_time()
            peaks.append((len(data), self._peak(data)))
            slow = time.process_time() - begin > SLOW and len(peaks) > 1
            if len(peaks) > 1 and _growth(*peaks[-2:]) < 1:
                return
        if len(peaks) < len(STREAMED) and (len(peaks) < 2 or _growth(*peaks[-2:]) < STEEP):
            skip(
                f"samples of {', '.join(f'{size:,}' for size, _ in peaks)} bytes are too small to "
                "show whether memory in batches is bounded"
            )
        shown = ", ".join(f"{size:,} bytes of file take {peak:,}" for size, peak in peaks)
        raise AssertionError(
            f"memory in batches grows with the file: {shown} bytes of memory; batches of {BATCH} "
            "rows must not keep what they gave"
        )

    def _peak(self, data: bytes) -> int:
        """Bytes of memory that batches take beside the input."""
        with self._open(data) as capture:
            tracemalloc.start()
            try:
                for name in capture.schemas:
                    for _ in capture.batches(name, BATCH):
                        pass
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()


def _turns(package: str) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that lets another thread go on at every line of a package."""

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            time.sleep(0)
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        module = str(frame.f_globals.get("__name__", ""))
        return line if module.partition(".")[0] == package else None

    return call


def _growth(small: tuple[int, int], large: tuple[int, int]) -> float:
    """Bytes of memory that each byte more of a file takes.

    Rows take several times the bytes of their records, an index of the file less than one.
    """
    return (large[1] - small[1]) / (large[0] - small[0])


def _read_records(capture: Capture) -> None:
    for record in capture.records():
        record.to_json()


def _read_tables(capture: Capture) -> None:
    for name in capture.schemas:
        capture.table(name)


def _sum_up(capture: Capture) -> None:
    capture.scan()
    capture.summary()


_VIEWS: dict[str, Callable[[Capture], None]] = {
    "records()": _read_records,
    "table()": _read_tables,
    "scan() and summary()": _sum_up,
}


def _same(one: Mapping[str, Any], other: Mapping[str, Any], what: str) -> None:
    differ = sorted(name for name in one if one[name] != other.get(name))
    assert not differ, f"{what}: {', '.join(differ)}"
