"""Repetition: contract that reading is reproducible, and that time and memory are bounded."""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import gc
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
    digest: dict[str, Any] = {"records": shown_of(capture), **tables_of(capture)}
    capture.scan()
    digest["findings"] = [
        (finding.code, finding.offset, finding.record, finding.message)
        for finding in capture.diagnostics
    ]
    return {**digest, "summary": attrs.asdict(capture.summary())}


def hashes_of(digest: Mapping[str, Any]) -> dict[str, str]:
    """Return a hash of each part of a digest."""
    hashes = {}
    for name, value in digest.items():
        shown_bytes = repr(value).encode()
        hashes[name] = hashlib.sha256(shown_bytes).hexdigest()
    return hashes


# --- Threads ------------------------------------------------------------------------------------


def _check_in_threads(
    threads: int, read: Callable[[], dict[str, Any]], digest_of_one: dict[str, Any], what: str
) -> None:
    """Fail if what several threads read at once is not what one alone reads."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(read) for _ in range(threads)]
        for future in futures:
            error = future.exception()
            assert error is None, f"{what}: {type(error).__name__}: {error}"
            check_same(future.result(), digest_of_one, what)


# --- Another process ----------------------------------------------------------------------------


def answer(request: Mapping[str, Any]) -> dict[str, str]:
    """Answer a request in the other process: hashes by name, or an ``error``."""
    try:
        new_folders = [folder for folder in request["path"] if folder not in sys.path]
        sys.path[:0] = new_folders
        (reader,) = descriptors(request["plugin"], "reader", request["format"])
        with open_bytes(reader, bytes.fromhex(request["data"])) as capture:
            if "exporter" not in request:
                return hashes_of(digest_of(capture))
            name, number = request["exporter"]
            exporter = descriptors(request["exporter_plugin"], "exporter", name)[number]
            sink = Sink.memory()
            session = exporter.open(sink, request["options"])
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


def ask(wanted: Mapping[str, Any], what: str, **request: Any) -> None:
    """Check that another process, with another hash seed, gives the hashes of ``wanted``."""
    child = _other_process()
    assert child.stdout is not None
    print(json.dumps({"path": sys.path, **request}), file=child.stdin, flush=True)
    line = child.stdout.readline()
    assert line, f"another process ended while {what}"
    other_hashes, hashes = json.loads(line), hashes_of(wanted)
    assert "error" not in other_hashes, (
        f"another process fails while {what}: {other_hashes['error']}"
    )
    different_names = sorted(name for name in hashes if hashes[name] != other_hashes.get(name))
    names = ", ".join(different_names)
    assert not names, f"another process with another seed of hashes differs while {what}: {names}"


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
        small_samples = self._small()[:4]
        # The first one again, after all others: none of them may have changed anything.
        samples_in_turn = (*small_samples, small_samples[0])
        digests = [(sample, self._digest(sample.data)) for sample in samples_in_turn]
        for sample, digest in reversed(digests):
            what = f"{sample.name} reads differently once other files were read"
            check_same(self._digest(sample.data), digest, what)
        with self._open(small_samples[0].data) as capture:
            records = capture.records()
            next(records, None)
            for sample, digest in digests:
                what = f"{sample.name} reads differently while another file is read"
                check_same(self._digest(sample.data), digest, what)

    def test_threads_read_the_same(self) -> None:
        """Several threads, each with its own capture, read the same at once."""
        sample = self._small()[0]
        what = f"{sample.name} reads differently in several threads"
        trace_before = threading.gettrace()
        threading.settrace(_turns(self._plugin_name.partition(".")[0]))
        try:
            digest = self._digest(sample.data)
            _check_in_threads(THREADS, lambda: self._digest(sample.data), digest, what)
        finally:
            threading.settrace(trace_before)

    def test_threads_may_share_a_capture(self) -> None:
        """Several threads that read one capture at once get what one alone gets."""
        interval_before = sys.getswitchinterval()
        sys.setswitchinterval(SHORT_TURN)
        try:
            for sample in (self._small()[0], self._small()[-1]):
                what = f"{sample.name} reads differently by several threads that share a capture"
                digest = self._digest(sample.data)
                with self._open(sample.data) as capture:
                    _check_in_threads(SHARING, functools.partial(digest_of, capture), digest, what)
        finally:
            sys.setswitchinterval(interval_before)

    def test_another_process_reads_the_same(self) -> None:
        """Another process, with another hash seed, reads the same."""
        if not isinstance(self.plugin, str):
            skip("the plugin is not a module that another process can import")
        sample = self._small()[-1]
        ask(
            self._digest(sample.data),
            f"it reads {sample.name}",
            plugin=self.plugin,
            format=self.format,
            data=sample.data.hex(),
        )

    # --- Time and memory ---------------------------------------------------------------------

    def test_time_follows_the_size(self) -> None:
        """Time grows in proportion to the file: 8 times the size takes about 8 times as long."""
        large_of_size = functools.cache(self.large)
        for view, read in VIEWS.items():
            size = SMALLEST
            while self._seconds(large_of_size(size), read) < NOTICED and size < LARGEST:
                size *= 2
            large_file = large_of_size(size)
            small_file = large_of_size(size // TIMES)
            if len(large_file) < TIMES // 2 * len(small_file):
                skip(
                    f"{len(small_file):,} and {len(large_file):,} bytes are too few to show how "
                    "time grows"
                )
            ratio = self._time_ratio(small_file, large_file, read)
            assert ratio <= self.slower, (
                f"time: {view} takes {ratio:.1f} times as long for a byte of {len(large_file):,} "
                f"as for a byte of {len(small_file):,}; it grows faster than the file"
            )

    def _time_ratio(
        self, small_file: bytes, large_file: bytes, read: Callable[[Capture], object]
    ) -> float:
        """Return the time per byte of a large file relative to a small one; 0 if none shows."""
        ratios = []
        for _ in range(3):  # other programs may disturb a measurement
            small_seconds = self._seconds(small_file, read)
            large_seconds = self._seconds(large_file, read)
            if large_seconds < NOTICED:
                break
            per_small_byte = max(small_seconds / len(small_file), 1e-9)
            ratios.append(large_seconds / len(large_file) / per_small_byte)
            if ratios[-1] <= self.slower:
                break
        return min(ratios, default=0.0)

    def _seconds(self, data: bytes, read: Callable[[Capture], object]) -> float:
        # The collector would look through what other tests hold, now and then, at any time.
        gc.disable()
        begin = time.process_time()
        try:
            with self._open(data) as capture:
                read(capture)
            return time.process_time() - begin
        finally:
            gc.enable()

    def test_memory_in_batches_is_bounded(self) -> None:
        """Batches of a large file take no more memory than those of a small file."""
        with self._open(self._small()[0].data) as capture:
            if type(capture)._batches is Capture._batches:  # noqa: SLF001 (the kit belongs to the host)
                skip(
                    f"the reader of {self.format} cuts batches from whole tables: it does not "
                    "override _batches(), so its memory follows the file"
                )
        peaks: list[tuple[int, int]] = []
        is_slow = False
        for size in STREAMED:
            data = self.large(size)
            if is_slow or (peaks and len(data) < 2 * peaks[-1][0]):
                break
            begin = time.process_time()
            with self._open(data) as capture:
                peak = peak_of(functools.partial(_read_batches, capture))
                peaks.append((len(data), peak))
            # A slow reader is not tried with larger samples; the ones so far have to show it.
            seconds_spent = time.process_time() - begin
            is_slow = seconds_spent > SLOW and len(peaks) > 1
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
    (small_size, small_peak), (large_size, large_peak) = peaks[-2:]
    return (large_peak - small_peak) / (large_size - small_size)


def peaks_shown(peaks: Sequence[tuple[int, int]]) -> str:
    """Return pairs (size of file, peak memory) as text."""
    texts = ", ".join(f"{size:,} bytes of file take {peak:,}" for size, peak in peaks)
    return f"{texts} bytes of memory"


def _turns(package: str) -> Callable[[FrameType, str, Any], Any]:
    """Return a trace function that yields to other threads at every line of a package."""

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] != package:
            return None
        if event == "line":
            time.sleep(0)
        return trace

    return trace
