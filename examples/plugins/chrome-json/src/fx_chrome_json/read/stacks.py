"""Stacks: frames and samples, which a document may have beside its events."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson

from fx_chrome_json.read.rows import Raw, clipped
from fx_chrome_json.read.tasks import Codes, Tasks, number_of
from fx_chrome_json.read.times import nanoseconds
from fxframework.model.clock import NS_MAX, NS_MIN

__all__ = ["EMPTY", "FRAMES", "SAMPLES", "frames", "member", "samples"]

FRAMES, SAMPLES = "stackFrames", "samples"
LARGEST = 1 << 26
"""Bytes of a member that are taken apart."""
_DTYPES: dict[str, dict[str, Any]] = {
    FRAMES: dict.fromkeys(("id", "parent", "name", "category"), np.int32),
    SAMPLES: {"ts": np.int64, "cpu": np.uint16, "thread": np.int32, "name": np.int32,
              "weight": np.float64, "frame": np.int32},
}  # fmt: skip
Wrong = Callable[[str], None]
"""Takes what is wrong with a frame or a sample."""


def _columns(key: str, offset: int, rows: list[tuple[Any, ...]]) -> Raw:
    dtypes = _DTYPES[key]
    columns: list[Any] = list(zip(*rows, strict=True)) or [()] * len(dtypes)
    made = {
        name: np.array(values, dtype)
        for (name, dtype), values in zip(dtypes.items(), columns, strict=True)
    }
    return {"offset": np.full(len(rows), offset, np.int64), **made}


EMPTY = {key: _columns(key, 0, []) for key in (FRAMES, SAMPLES)}


def member(raw: memoryview) -> Any:
    """The value of a member. Raises ValueError for one that is too large, or is not JSON."""
    if raw.nbytes > LARGEST:
        raise ValueError(f"it has more than {LARGEST} bytes")
    try:
        return orjson.loads(raw)
    except ValueError:
        pass
    try:
        return json.loads(bytes(raw).decode("utf-8", "surrogateescape"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def frames(value: Any, offset: int, codes: Codes, wrong: Wrong) -> Raw:
    """The rows of `chrome_frames`, of an object of frames by their ids."""
    rows = []
    if not isinstance(value, dict):
        wrong("stackFrames is not an object")
        value = {}
    for id, frame in value.items():
        if not isinstance(frame, dict):
            wrong(f"frame {id!a:.40} is not an object")
            continue
        texts = (_text(frame.get(key)) for key in ("parent", "name", "category"))
        rows.append((codes[id], *(codes[text] for text in texts)))
    return _columns(FRAMES, offset, rows)


def samples(value: Any, offset: int, tasks: Tasks, codes: Codes, wrong: Wrong) -> Raw:
    """The rows of `chrome_samples`, of an array of samples."""
    rows = []
    if not isinstance(value, list):
        wrong("samples is not an array")
        value = []
    for sample in value:
        given = sample if isinstance(sample, dict) else {}
        ts = nanoseconds(str(given.get("ts")))
        if ts is None or not NS_MIN <= ts <= NS_MAX:
            wrong(f"the time of a sample is {given.get('ts')!a:.40}")
            continue
        tid = number_of(_text(given.get("tid"))) or 0
        known = tasks.by_tid.get(tid)
        if "pid" in given:
            known = tasks.thread(number_of(_text(given["pid"])) or 0, tid)
        weight = given.get("weight")
        rows.append((
            ts,
            clipped(given.get("cpu"), 0, 0xFFFF),
            tasks.thread(0, tid) if known is None else known,
            codes[_text(given.get("name"))],
            float(weight) if type(weight) is float or (type(weight) is int and weight < 1 << 64)
            else 1.0,
            codes[_text(given.get("sf"))],
        ))  # fmt: skip
    tasks.settle(offset)
    return _columns(SAMPLES, offset, rows)


def _text(value: Any) -> str | None:
    """An id or a name as a text: numbers are ids too."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) else None
