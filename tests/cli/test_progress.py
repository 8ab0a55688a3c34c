"""What a long run shows while it goes on."""

from __future__ import annotations

import pytest

from fxframework.cli.progress import Working


@pytest.mark.parametrize(
    ("done", "seconds", "text"),
    [
        ((0, 4, 0, 100_000_000), 1, "batch  0 of 4"),
        ((2, 4, 50_000_000, 100_000_000), 10, "batch  50 %, 2 of 4, 5.0 MB/s, 10 s left"),
        ((1, 100, 1_000_000, 100_000_000), 10, "batch  1 %, 1 of 100, 0.1 MB/s, 16 min left"),
        ((4, 4, 100_000_000, 100_000_000), 10, "batch  100 %, 4 of 4, 10.0 MB/s, 0 s left"),
    ],
)
def test_items_pace_and_time_left(
    done: tuple[int, int, int, int],
    seconds: float,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    working = Working("batch", "")
    now[0] += seconds
    working.count(*done)
    assert working.text() == text


def test_bytes_written_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    working = Working("converting a.fxt", "written")
    working.watch(lambda: 3_000_000, read=lambda: 20_000_000, total=40_000_000)
    now[0] += 4
    assert working.text() == "converting a.fxt  50 %, 5.0 MB/s, 4 s left, 3.0 MB written"
