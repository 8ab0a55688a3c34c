"""Repetition: contract that reading is reproducible, and that time and memory are bounded."""

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
from fxframework.testing.contracts.base import RoundTrips, descriptors, open_bytes
from fxframework.testing.contracts.checks import rows_of, skip

__all__ = ["Repetition", "answer", "ask", "digest_of", "growth", "hashes_of"]

SMALLEST, LARGEST = 1 << 15, 1 << 19
"""Least and greatest size in bytes of the large sample for comparing times."""
TIMES = 8
"""Ratio of the sizes of the large and the small sample."""
SLOWER = 3.0
"""Allowed ratio of the time per byte of the large sample to that of the small one."""
NOTICED = 0.08
"""Least CPU seconds of the large sample for a meaningful comparison."""
BATCH = 256
STREAMED = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
"""Sizes of samples to read in batches, until a larger one takes no more memory."""
SLOW = 0.2
"""If reading takes more CPU seconds, no larger sample is tried."""
STEEP = 8
"""Growth in bytes of memory per byte of file that buffers cannot explain."""
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
    """Return everything in a capture as comparable values."""
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
    """Answer a request in the other process: hashes by name, or an ``error``."""
    try:
        sys.path[:0] = [folder for folder in asked["path"] if folder not in sys.path]
        importlib.invalidate_caches()
        module = importlib.import_module(asked["plugin"])
        readers: list[Reader] = descriptors(module, "fx_readers")
        reader = next(reader for reader in readers if reader.format == asked["format"])
        with open_bytes(reader, bytes.fromhex(asked["data"])) as capture:
            if "exporter" in asked:
                return _exported(asked, capture)
            return hashes_of(digest_of(capture))
    except Exception as error:  # noqa: BLE001 (code of plugins; the answer)
        return {"error": f"{type(error).__name__}: {error}"}


def _exported(asked: Mapping[str, Any], capture: Capture) -> dict[str, str]:
    """Return hashes of the output of an exporter."""
    module = importlib.import_module(asked["exporter_plugin"])
    exporters: list[Exporter] = descriptors(module, "fx_exporters")
    exporter = exporters[asked["exporter"]]
    sink = Sink.memory()
    session = exporter.open(sink, asked["options"])
    session.write(capture)
    dropped = session.close()
    return hashes_of({"output": sink.getvalue(), "dropped": sorted((dropped or {}).items())})


@functools.cache
def _other_process() -> subprocess.Popen[str]:
    """Return the cached process with another hash seed."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    child = subprocess.Popen(  # noqa: S603 (this interpreter, with the code above)
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
    """Return the answer of another process, with another hash seed."""
    child = _other_process()
    _say(child, asked)
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line, "another process ended while it read a sample"
    found: dict[str, str] = json.loads(line)
    return found


def hashes_of(digest: Mapping[str, Any]) -> dict[str, str]:
    """Return a hash of each part of a digest."""
    return {
        name: hashlib.sha256(repr(value).encode()).hexdigest() for name, value in digest.items()
    }


class Repetition(RoundTrips):
    """Contract of repeated reading: in other orders, threads and processes, and of larger files."""

    slower: ClassVar[float] = SLOWER
    """Allowed ratio of the time per byte of a large file to that of a small one."""

    def large(self, nbytes: int) -> bytes:
        """Return a sound input of about ``nbytes``, by default from the reader's ``sample``.

        Without one, tests of time and memory are skipped.
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
        except Exception as error:  # noqa: BLE001 (code of plugins; the result)
            return f"{type(error).__name__}: {error}"

    def test_files_do_not_disturb_each_other(self) -> None:
        """A file reads the same before and after another one, and while another one is open."""
        small = self._small()[:4]
        if len(small) < 2:
            small = [*small, *small]
        first = [self._digest(sample.data) for sample in small]
        again = [self._digest(sample.data) for sample in reversed(small)][::-1]
        for sample, one, other in zip(small, first, again, strict=True):
            _same(one, other, f"{sample.name} reads differently once other files were read")
        with self._open(small[0].data) as open_one:
            under_way = open_one.records()
            next(under_way, None)
            for sample, one in zip(small, first, strict=True):
                other = self._digest(sample.data)
                _same(one, other, f"{sample.name} reads differently while another file is read")

    def test_threads_read_the_same(self) -> None:
        """Several threads, each with its own capture, read the same at once."""
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
                    _same(alone, other, f"{sample.name} reads differently in several threads")
        finally:
            threading.settrace(before)

    def test_another_process_reads_the_same(self) -> None:
        """Another process, with another hash seed, reads the same."""
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

    # --- Time and memory ---------------------------------------------------------------------

    def test_time_follows_the_size(self) -> None:
        """Time grows in proportion to the file: 8 times the size takes about 8 times as long."""
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
            for _ in range(3):  # other programs may disturb a measurement
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
        """Batches of a large file take no more memory than those of a small file."""
        with self._open(self._small()[0].data) as capture:
            if type(capture)._batches is Capture._batches:  # noqa: SLF001 (the kit belongs to the host)
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
            if len(peaks) > 1 and growth(*peaks[-2:]) < 1:
                return
        if len(peaks) < len(STREAMED) and (len(peaks) < 2 or growth(*peaks[-2:]) < STEEP):
            skip(
                f"samples of {', '.join(f'{size:,}' for size, _ in peaks)} bytes are too small to "
                "show whether memory in batches is bounded"
            )
        shown = ", ".join(f"{size:,} bytes of file take {peak:,}" for size, peak in peaks)
        raise AssertionError(
            f"memory in batches grows with the file: {shown} bytes of memory; batches of {BATCH} "
            "rows must not keep earlier rows"
        )

    def _peak(self, data: bytes) -> int:
        """Return the peak memory of reading in batches, in bytes, without the input."""
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
    """Return a trace function that yields to other threads at every line of a package."""

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            time.sleep(0)
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        module = str(frame.f_globals.get("__name__", ""))
        return line if module.partition(".")[0] == package else None

    return call


def growth(small: tuple[int, int], large: tuple[int, int]) -> float:
    """Return the growth of memory in bytes per byte of file, of (size of file, peak memory).

    Kept rows take several times the bytes of their records, an index of the file less than one.
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
