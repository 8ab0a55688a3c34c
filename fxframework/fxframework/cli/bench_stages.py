"""Stages for ``fxf bench``: CPU time of reading, verifying and each conversion of a capture."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.cli.measures import TABLES, touch
from fxframework.cli.session import Session
from fxframework.conversion import plan
from fxframework.errors import FxError
from fxframework.io.pending import scratch_folder
from fxframework.io.sink import Sink
from fxframework.targets import target_name, targets_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fxframework.host import Host
    from fxframework.model.capture import Capture
    from fxframework.registry import Reader

__all__ = [
    "READING",
    "StageFigure",
    "bench_stages",
    "processor_seconds",
    "samples_of",
    "show_stages",
]

MEGABYTE = 1_000_000
COPIES = 5
"""Number of copies, of which the fastest counts."""
SMALL = 10_000
"""Bytes of a sample made only to find its possible targets."""
HEADER = ("FORMAT", "STAGE", "CPU", "/COPY", "MB/S", "RECORDS/S", "OUT/IN")


@attrs.frozen
class StageFigure:
    """The figures of one stage."""

    format: str
    stage: str
    size: int
    """Bytes of the capture."""
    seconds: float
    """CPU seconds."""
    ratio: float
    """CPU time relative to copying the bytes of the capture."""
    records: int
    written: int = 0
    """Bytes of the output."""


def _batched(capture: Capture) -> None:
    for name in capture.schemas:
        for batch in capture.batches(name):
            for column in batch.columns:
                len(batch[column])


READING: dict[str, Callable[[Capture], object]] = {
    "info": lambda capture: capture.summary(),
    "verify": lambda capture: capture.scan(),
    "tables": lambda capture: touch(capture, tuple(t for t in TABLES if t in capture.tables)),
    "batches": _batched,
    "record JSON": lambda capture: deque(capture.records_json(), maxlen=0),
}
"""Stages of reading, by name."""


def processor_seconds(host: Host, path: str, format: str, stage: str, runs: int) -> float:
    """Return the least CPU seconds of some runs of a stage of reading."""

    def read() -> None:
        with host.open(path, format=format) as capture:
            READING[stage](capture)

    return _least(read, runs)


def _least(run: Callable[[], Any], runs: int) -> float:
    """Return the least CPU time of some runs, which other programs hardly affect."""

    def once() -> float:
        begin = time.process_time()
        run()
        return time.process_time() - begin

    return min(once() for _ in range(runs))


def samples_of(session: Session, folder: Path, size: int) -> Iterator[tuple[str, str]]:
    """Yield format and path of a sample of each format, or of the selected one.

    For a format that makes no samples, convert the sample of another format if possible.
    """
    wanted = session.settings.format
    for reader in session.host.readers.values():
        if wanted in {None, reader.format}:
            suffix = next(iter(reader.suffixes), "")
            path = folder / f"sample-{size}-{reader.format}{suffix}"
            with session.screen.working(f"making {size} MB of {reader.format}"):
                made = _sample(session.host, reader, size * MEGABYTE, path)
            if made:
                yield reader.format, str(path)


def _sample(host: Host, reader: Reader, nbytes: int, path: Path) -> bool:
    """Write a sample of a format; return False if it has none."""
    if reader.sample is not None:
        path.write_bytes(reader.sample(nbytes))
        return True
    for donor in host.readers.values():
        if donor.sample is None:
            continue
        with host.open(donor.sample(SMALL), format=donor.format) as capture:
            if reader.format not in map(target_name, targets_for(host, capture)):
                continue
        options = {"max_output": 0}
        with (
            host.open(donor.sample(nbytes), format=donor.format, options=options) as capture,
            host.sink(path, force=True) as sink,
        ):
            plan(host, [capture], str(path), to=reader.format).run(sink)
        return True
    return False


def _copied(data: NDArray[np.uint8]) -> tuple[float, int]:
    """Return the CPU time of copying bytes to allocated memory, and the number of bytes."""
    import numpy as np

    room = np.zeros_like(data)
    return _least(lambda: np.copyto(room, data), COPIES), int(data.size)


def _stages(session: Session, path: str, format: str, runs: int) -> Iterator[StageFigure]:
    """Measure every stage of a file: reading, writing, exporting, and other programs."""
    import numpy as np

    host = session.host
    copy, size = _copied(np.fromfile(path, np.uint8))
    with host.open(path, format=format) as capture:
        records = capture.summary().records
        targets = [target_name(target) for target in targets_for(host, capture)]

    def figure(stage: str, seconds: float, written: int = 0) -> StageFigure:
        return StageFigure(format, stage, size, seconds, seconds / copy, records, written)

    yield figure("copy", copy, size)
    for stage in READING:
        yield figure(stage, processor_seconds(host, path, format, stage, runs))
    for target in dict.fromkeys(targets):
        written = 0

        def convert(to: str = target) -> None:
            nonlocal written
            sink = Sink.nowhere()
            with host.open(path, format=format, options={"max_output": 0}) as capture:
                plan(host, [capture], "-", to=to).run(sink)
            written = sink.written

        try:
            seconds = _least(convert, runs)
        except FxError as error:
            session.screen.note(f"{format} to {target} is left out: {error.message}")
            continue
        yield figure(f"to {target}", seconds, written)
    for name, yardstick in host.reader(format).yardsticks.items():
        theirs = yardstick(Path(path))
        if theirs is not None:
            yield figure(name, theirs)


def bench_stages(session: Session, *, size: int, runs: int) -> list[StageFigure]:
    """Measure the stages of every format, or of the selected one."""
    shown: list[StageFigure] = []
    with scratch_folder("bench") as folder:
        for format, path in samples_of(session, folder, size):
            with session.screen.working(f"measuring the stages of {format}"):
                shown += _stages(session, path, format, runs)
            Path(path).unlink()
    return shown


def show_stages(session: Session, figures: list[StageFigure]) -> None:
    """Print the figures as a table."""
    rows = [HEADER]
    rows += [
            (
                one.format, one.stage, f"{1e3 * one.seconds:,.1f} ms", f"{one.ratio:,.1f} x",
                f"{one.size / one.seconds / 1e6:,.0f}",
                f"{one.records / one.seconds / 1e6:,.2f} M",
                f"{one.written / one.size:,.2f}" if one.written else "",
            )
        for one in figures
    ]  # fmt: skip
    session.screen.table(rows, [False, False, *[True] * (len(HEADER) - 2)])
