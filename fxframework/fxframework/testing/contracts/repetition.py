"""Repetition: contract that reading is reproducible, and that time and memory are bounded."""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, ClassVar

import attrs

from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.testing.contracts.base import Captures, descriptors, open_bytes
from fxframework.testing.contracts.checks import check_same, shown_of, skip, tables_of

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
SLOW = 2.0
"""If reading takes more CPU seconds, no larger sample is tried: ten times what one takes that shows
whether memory is bounded, as machines differ."""
STEEP = 8
"""Growth in bytes of memory per byte of file that buffers cannot explain."""
THREADS = 4
"""Threads with a capture each. They are traced, and too many may not begin to be so at once."""
SHARING = 8
"""Threads that share a capture."""
SHORT_TURN = 1e-5
"""Seconds that a thread runs before another one may, so that they meet in the middle of things."""

_CHILD = """
import json, sys
answers, sys.stdout = sys.stdout, sys.stderr
sys.path[:0] = json.loads(sys.stdin.readline())
from fxframework.testing.contracts.repetition import answer
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
"""


# --- Views of a capture -------------------------------------------------------------------------


def _sum_up(capture: Capture) -> None:
    capture.scan()
    capture.summary()


VIEWS: Mapping[str, Callable[[Capture], object]] = {
    "records()": shown_of,
    "table()": lambda capture: [len(capture.table(name)) for name in capture.tables],
    "scan() and summary()": _sum_up,
}


def read_all(capture: Capture) -> None:
    """Read every view of a capture."""
    for read in VIEWS.values():
        read(capture)


def digest_of(capture: Capture) -> dict[str, Any]:
    """Return everything in a capture as comparable values."""
    found: dict[str, Any] = {"records": shown_of(capture), **tables_of(capture)}
    capture.scan()
    found["findings"] = [
        (one.code, one.offset, one.record, one.message) for one in capture.diagnostics
    ]
    return {**found, "summary": attrs.asdict(capture.summary())}


def hashes_of(digest: Mapping[str, Any]) -> dict[str, str]:
    """Return a hash of each part of a digest."""
    return {
        name: hashlib.sha256(repr(value).encode()).hexdigest() for name, value in digest.items()
    }


# --- Threads ------------------------------------------------------------------------------------


def _check_in_threads(
    threads: int, read: Callable[[], dict[str, Any]], alone: dict[str, Any], what: str
) -> None:
    """Fail if what several threads read at once is not what one alone reads."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        every = [pool.submit(read) for _ in range(threads)]
        for one in every:
            failed = one.exception()
            assert failed is None, f"{what}: {type(failed).__name__}: {failed}"
            check_same(one.result(), alone, what)


# --- Another process ----------------------------------------------------------------------------


def answer(asked: Mapping[str, Any]) -> dict[str, str]:
    """Answer a request in the other process: hashes by name, or an ``error``."""
    try:
        sys.path[:0] = [folder for folder in asked["path"] if folder not in sys.path]
        (reader,) = descriptors(asked["plugin"], "reader", asked["format"])
        with open_bytes(reader, bytes.fromhex(asked["data"])) as capture:
            if "exporter" not in asked:
                return hashes_of(digest_of(capture))
            name, number = asked["exporter"]
            exporter = descriptors(asked["exporter_plugin"], "exporter", name)[number]
            sink = Sink.memory()
            session = exporter.open(sink, asked["options"])
            session.write(capture)
            dropped = session.close() or {}
            return hashes_of({"output": sink.getvalue(), "dropped": sorted(dropped.items())})
    except Exception as error:  # noqa: BLE001 (code of plugins; the answer)
        return {"error": f"{type(error).__name__}: {error}"}


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
    atexit.register(child.communicate)
    atexit.register(child.kill)  # the last registered runs first
    print(json.dumps(sys.path), file=child.stdin)
    return child


def ask(wanted: Mapping[str, Any], what: str, **asked: Any) -> None:
    """Check that another process, with another hash seed, gives the hashes of ``wanted``."""
    child = _other_process()
    assert child.stdout is not None
    print(json.dumps({"path": sys.path, **asked}), file=child.stdin, flush=True)
    line = child.stdout.readline()
    assert line, f"another process ended while {what}"
    there, here = json.loads(line), hashes_of(wanted)
    assert "error" not in there, f"another process fails while {what}: {there['error']}"
    differ = sorted(name for name in here if here[name] != there.get(name))
    assert not differ, (
        f"another process with another seed of hashes differs while {what}: {', '.join(differ)}"
    )


class Repetition(Captures):
    """Contract of repeated reading: in other orders, threads and processes, and of larger files."""

    slower: ClassVar[float] = SLOWER
    """Allowed ratio of the time per byte of a large file to that of a small one."""

    def large(self, nbytes: int) -> bytes:
        """Return a sound input of about ``nbytes``, by default from the reader's ``sample``.

        Without one, tests of time and memory are skipped.
        """
        make = self.reader.sample
        if make is None:
            skip(f"no large files: the reader of {self.format} has no `sample`; give large()")
        return make(nbytes)

    def _digest(self, data: bytes) -> dict[str, Any]:
        with self._open(data) as capture:
            return digest_of(capture)

    def test_files_do_not_disturb_each_other(self) -> None:
        """A file reads the same before and after another one, and while another one is open."""
        small = self._small()[:4]
        pairs = [(sample, self._digest(sample.data)) for sample in (*small, small[0])]
        for sample, wanted in reversed(pairs):
            what = f"{sample.name} reads differently once other files were read"
            check_same(self._digest(sample.data), wanted, what)
        with self._open(small[0].data) as capture:
            under_way = capture.records()
            next(under_way, None)
            for sample, wanted in pairs:
                what = f"{sample.name} reads differently while another file is read"
                check_same(self._digest(sample.data), wanted, what)

    def test_threads_read_the_same(self) -> None:
        """Several threads, each with its own capture, read the same at once."""
        sample = self._small()[0]
        what = f"{sample.name} reads differently in several threads"
        before = threading.gettrace()
        threading.settrace(_turns(self._plugin_name.partition(".")[0]))
        try:
            alone = self._digest(sample.data)
            _check_in_threads(THREADS, lambda: self._digest(sample.data), alone, what)
        finally:
            threading.settrace(before)

    def test_threads_may_share_a_capture(self) -> None:
        """Several threads that read one capture at once get what one alone gets."""
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SHORT_TURN)
        try:
            for sample in (self._small()[0], self._small()[-1]):
                what = f"{sample.name} reads differently by several threads that share a capture"
                alone = self._digest(sample.data)
                with self._open(sample.data) as capture:
                    _check_in_threads(SHARING, functools.partial(digest_of, capture), alone, what)
        finally:
            sys.setswitchinterval(interval)

    def test_another_process_reads_the_same(self) -> None:
        """Another process, with another hash seed, reads the same."""
        if not isinstance(self.plugin, str):
            skip("the plugin is not a module that another process can import")
        sample = self._small()[-1]
        ask(self._digest(sample.data), f"it reads {sample.name}", plugin=self.plugin,
            format=self.format, data=sample.data.hex())  # fmt: skip

    # --- Time and memory ---------------------------------------------------------------------

    def test_time_follows_the_size(self) -> None:
        """Time grows in proportion to the file: 8 times the size takes about 8 times as long."""
        made = functools.cache(self.large)
        for view, read in VIEWS.items():
            size = SMALLEST
            while self._seconds(made(size), read) < NOTICED and size < LARGEST:
                size *= 2
            large, small = made(size), made(size // TIMES)
            if len(large) < TIMES // 2 * len(small):
                skip(f"{len(small):,} and {len(large):,} bytes are too few to show how time grows")
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

    def _seconds(self, data: bytes, read: Callable[[Capture], object]) -> float:
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
            with self._open(data) as capture:
                peaks.append((len(data), peak_of(functools.partial(_read_batches, capture))))
            slow = time.process_time() - begin > SLOW and len(peaks) > 1
            if len(peaks) > 1 and growth(peaks) < 1:
                return
        if len(peaks) < len(STREAMED) and (len(peaks) < 2 or growth(peaks) < STEEP):
            skip(
                f"samples of {', '.join(f'{size:,}' for size, _ in peaks)} bytes are too small to "
                "show whether memory in batches is bounded"
            )
        raise AssertionError(
            f"memory in batches grows with the file: {peaks_shown(peaks)}; batches of {BATCH} "
            "rows must not keep earlier rows"
        )


def _read_batches(capture: Capture) -> None:
    for name in capture.schemas:
        for _ in capture.batches(name, BATCH):
            pass


def peak_of(run: Callable[[], object]) -> int:
    """Return the peak memory that a call takes, in bytes."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(peaks: Sequence[tuple[int, int]]) -> float:
    """Return the growth of memory in bytes per byte of file, of pairs (size of file, peak memory).

    It is that of the last two. Kept rows take several times the bytes of their records, an index
    of the file less than one.
    """
    (small, least), (large, most) = peaks[-2:]
    return (most - least) / (large - small)


def peaks_shown(peaks: Sequence[tuple[int, int]]) -> str:
    """Return pairs (size of file, peak memory) as text."""
    shown = ", ".join(f"{size:,} bytes of file take {peak:,}" for size, peak in peaks)
    return f"{shown} bytes of memory"


def _turns(package: str) -> Callable[[FrameType, str, Any], Any]:
    """Return a trace function that yields to other threads at every line of a package."""

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] != package:
            return None
        if event == "line":
            time.sleep(0)
        return trace

    return trace
