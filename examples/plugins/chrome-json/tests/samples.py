"""Samples: small traces of JSON, of every phase and of both forms."""

from __future__ import annotations

import json
from typing import Any


def event(ph: str, ts: float, **more: Any) -> dict[str, Any]:
    """An event of process 1, thread 2."""
    return {"ph": ph, "ts": ts, "pid": 1, "tid": 2, **more}


EVENTS = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "shop"}},
    {"ph": "M", "pid": 1, "name": "process_labels", "args": {"labels": "blue"}},
    {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "orders"}},
    {"ph": "M", "pid": 1, "tid": 2, "name": "thread_sort_index", "args": {"sort_index": -3}},
    event("X", 10, dur=90.5, name="order", cat="shop", args={"paid": True, "lines": [1, {"x": 2}]}),
    event("B", 20.001, name="charge", cat="pay", args={"cents": 2**63, "rate": 0.5, "none": None}),
    event("i", 21, name="retry", s="p", args={"text": 'a "quoted": \\ text \u00e9'}),
    event("C", 22, name="queue", id=7, args={"long": 3, "short": 0.25, "note": "odd"}),
    event("s", 23, name="hand over", cat="flow", id=99),
    event("E", 30.5, args={"result": -1}),
    event("b", 31, name="request", cat="net", id="0x1f"),
    event("n", 31.5, name="first byte", cat="net", id="0x1f", args={"at": 1e-9}),
    {"ph": "f", "ts": 40, "pid": 1, "tid": 3, "name": "hand over", "cat": "flow", "id": 99},
    {"ph": "X", "ts": 41, "dur": 1, "pid": 1, "tid": 3, "name": "ship"},
    event("e", 45, name="request", cat="net", id="0x1f", args={"status": 200}),
    event("N", 50, name="cart", id="0xabc"),
    event("O", 51, name="cart", id="0xabc", args={"snapshot": {"items": 2}}),
    event("D", 52, name="cart", id="0xabc"),
]  # fmt: skip
ARRAY = b"[\n" + b",\n".join(json.dumps(each).encode() for each in EVENTS) + b"\n]\n"
OPEN_ARRAY = ARRAY.rstrip()[:-1] + b","
OBJECT = json.dumps(
    {
        "displayTimeUnit": "ns",
        "traceEvents": EVENTS,
        "metadata": {"trace-capture-datetime": "2024-01-01", "nested": [{"a": [1, 2]}, "]}"]},
        "stackFrames": {"1": {"name": "main", "category": "app"}},
        "samples": [],
    },
    separators=(",", ":"),
).encode()
SYSTEM = (
    b'{"displayTimeUnit":"ns","traceEvents":[{"ph":"X","ts":1.5,"dur":2,"pid":7,"tid":8,"name":"a"}'
    b'],"systemTrac\\u0065Events":{"type":"fuchsia","events":['
    b'{"ph":"k","ts":0.001,"cpu":1,"out":{"tid":0,"state":1},"in":{"tid":8,"prio":3}},\n'
    b'{"ph":"w","ts":2,"cpu":0,"tid":8}]}}\n'
)
ODD = (
    b'[{"ph":"X","ts":1,"dur":NaN,"pid":1,"tid":1,"name":"\xff"},\n'
    b'{"ph":"E","ts":2,"pid":1,"tid":1},{"ph":"i","ts":3,"ts":4,"pid":1,"name":"\\ud800"},\n'
    b'{"ph":"?","ts":"5.0000","pid":"x","tid":[]},{"ph":"i","ts":1e400},{"ph":"C","ts":1},\n'
    b'{"ph":"i","ts":1,"args":{"big":18446744073709551616}},17,{"ph":"B","ts":6,"name":"open"}]\n'
)
