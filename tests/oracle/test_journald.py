"""What `journald` writes goes through systemd's own importer and reader, and nothing is lost."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_log.severity import LEVELS, SYSLOG

from ..plugins.log.captures import Arg, Log, export, exporter, hand_made, logs
from .journal import Entry, entries, through_the_journal, why_not

JOURNALD = exporter("journald")
LATEST = (1 << 55) - 1
_FOLDERS = itertools.count()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for journals. Without the oracle the tests skip, or fail where they must not."""
    reason = why_not()
    if reason is not None:
        if os.environ.get("FXF_REQUIRE_ORACLES"):
            pytest.fail(reason)
        pytest.skip(reason)
    return tmp_path_factory.mktemp("journals")


def imported(data: bytes, folders: Path) -> list[Entry]:
    return through_the_journal(data, folders / str(next(_FOLDERS)))


def raw(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def value_of(arg: Arg) -> bytes:
    value = arg.value
    if isinstance(value, str | bytes):
        return raw(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": b"NaN", "inf": b"Infinity", "-inf": b"-Infinity"}[str(value)]
    words = {True: b"true", False: b"false", None: b"null"}
    special = value is None or isinstance(value, bool)
    return words[value] if special else repr(value).encode()


def expected_fields(log: Log, offset: int) -> set[tuple[str, bytes]]:
    """Fields of an entry but for those of its arguments."""
    level = LEVELS[log.severity]
    fields: list[tuple[str, str | bytes | int | None]] = [
        ("__REALTIME_TIMESTAMP", min(max((log.ts + offset) // 1000, 1), LATEST)),
        ("__MONOTONIC_TIMESTAMP", max(log.ts // 1000, 0)),
        ("FUCHSIA_BOOT_TIME_NS", log.ts),
        ("PRIORITY", SYSLOG[level]),
        ("FUCHSIA_SEVERITY", level.name),
        ("FUCHSIA_SEVERITY_RAW", None if log.severity == level else log.severity),
        ("MESSAGE", log.message),
        ("SYSLOG_PID", log.pid),
        ("TID", log.tid),
        ("CODE_FILE", log.file),
        ("CODE_LINE", log.line),
        ("FUCHSIA_MONIKER", log.component),
        ("FUCHSIA_COMPONENT_URL", log.url),
        ("FUCHSIA_DROPPED", log.dropped or None),
        ("FUCHSIA_ROLLED_OUT", log.rolled_out or None),
        ("VERBOSITY", log.verbosity or None),
        *(("FUCHSIA_TAG", tag) for tag in log.tags),
    ]
    leaf = raw(log.component or b"").rpartition(b"/")[2]
    identifier = raw(log.tags[0]) if log.tags else leaf
    fields.append(("SYSLOG_IDENTIFIER", identifier or None))
    return {
        (name, str(value).encode() if isinstance(value, int) else raw(value))
        for name, value in fields
        if value is not None
    }


@given(
    some=st.lists(logs, min_size=1, max_size=8),
    offset=st.sampled_from([0, 1_700_000_000 * 10**9, -(2**63) + 1]),
)
def test_every_field_of_every_log_is_in_the_journal(
    some: list[Log], offset: int, folders: Path
) -> None:
    data, _ = export(JOURNALD, hand_made(*some), utc_offset_ns=offset, boot_id="ab" * 16)
    # The journal keeps a field that an entry repeats, value and all, once.
    written = [{field for field in entry if field[0] != "__CURSOR"} for entry in entries(data)]
    found = imported(data, folders)
    kept = [
        {field for field in entry if field[0] not in {"__CURSOR", "__SEQNUM", "__SEQNUM_ID"}}
        for entry in found
    ]
    assert kept == written
    for log, entry in zip(some, kept, strict=True):
        fixed = expected_fields(log, offset) | {("_BOOT_ID", b"ab" * 16)}
        assert fixed <= entry
        values = sorted({value for _, value in entry - fixed})
        assert values == sorted({value_of(arg) for arg in log.args})


def test_a_log_of_thousands_of_arguments_is_cut_and_the_others_are_whole(folders: Path) -> None:
    args = [Arg(name=f"k{number}", value=number) for number in range(4000)]
    tags = [f"tag{number}" for number in range(2000)]
    some = [Log(args=args), Log(tags=tags), Log(args=args, tags=tags), Log(message="the last")]
    data, dropped = export(JOURNALD, hand_made(*some), utc_offset_ns=10**18)
    counts = [len(entry) for entry in imported(data, folders)]
    assert len(counts) == 4
    assert 900 < counts[0] <= 1024
    (lost,) = dropped.values()
    written = sum(
        name.startswith(("K", "FUCHSIA_TAG")) for entry in entries(data) for name, _ in entry
    )
    assert written + lost == 2 * len(args) + 2 * len(tags)


def test_a_name_of_a_host(folders: Path) -> None:
    data, _ = export(JOURNALD, hand_made(Log()), hostname="fuchsia-1", utc_offset_ns=10**18)
    (entry,) = imported(data, folders)
    assert ("_HOSTNAME", b"fuchsia-1") in entry
