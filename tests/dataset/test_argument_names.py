"""Arguments whose names SQL takes for equal, or that have none, in the joined views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fx_trace.read.decoder import RecordEncoder
from fxframework.testing.cli import run_cli

MAGIC = {"record": "metadata", "kind": "trace_info", "info_type": 0, "magic": "0x16547846"}


def slice_of(*names: str) -> dict[str, Any]:
    return {
        "record": "event",
        "event": "duration_complete",
        "timestamp": 1,
        "end_timestamp": 2,
        "thread": [1, 2],
        "category": "c",
        "name": "n",
        "args": [
            {"name": name, "type": "int32", "value": value} for value, name in enumerate(names)
        ],
    }


@pytest.mark.parametrize("of_dataset", [False, True])
def test_arguments_have_members_of_their_own(tmp_path: Path, of_dataset: bool) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.fxt"
    encoder = RecordEncoder()
    records = (MAGIC, slice_of("koid", "KOID", "", 'quo"te'))
    path.write_bytes(b"".join(map(encoder.encode, records)))
    if of_dataset:
        assert run_cli("batch", path.parent, "--out", tmp_path / "set").exit_code == 0
        path = tmp_path / "set"
    query = 'select args.KOID, args."koid#2", args.unnamed, args."quo""te" from slices_with_names'
    result = run_cli("sql", path, query)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split()[-4:] == [b"1", b"0", b"2", b"3"]
