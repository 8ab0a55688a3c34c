"""The options that choose logs, on `cat` and `convert`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
import toy
import toy_log
from toy_log import alias, log

from fxframework.errors import ExitCode
from fxframework.host import Host
from fxframework.testing.cli import run_cli

from ..cases import cases

LINES = (
    alias("7", "core/disk"),
    log("ready", 1_000, severity=0x30, component="core/app", tags=["net"], pid=1, tid=11),
    log("slow", 2_000, severity=0x40, component="7", tags=["io", "a,b"], pid=2, tid=21,
        args={"ms": 7}),
    log("gone", 3_000, severity=0x50, component="7", tags=["io"], pid=2, tid=22),
    log("panic", 4_000, severity=0x60, component="klog", pid=0, tid=0),
)  # fmt: skip


@pytest.fixture
def logs(host: Host, tmp_path: Path) -> Path:
    """A log of four lines, and a host that reads it."""
    host.register(toy_log, name="toylog")
    assert not host.failures
    path = tmp_path / "a.toylog"
    path.write_bytes(b"".join(LINES))
    return path


@cases(
    ("arguments", "messages"),
    [
        (["--severity", "warn"], "slow gone panic"),
        (["--severity", "0x50"], "gone panic"),
        (["--tag", "net", "--tag", "A,B"], "ready slow"),
        (["--exclude-tags", "io"], "ready panic"),
        (["--component", "DISK"], "slow gone"),
        (["--component", "DISK", "--case-sensitive"], ""),
        (["--filter", "o", "--exclude", "panic"], "ready slow gone"),
        (["--filter", "s", "--exclude", "low"], "gone"),
        (["--kernel"], "panic"),
        (["--pid", "2", "--tid", "0x16"], "gone"),
        (["--severity", "warn", "--until", "2us"], "slow"),
    ],
)
def test_text_of_the_logs_that_are_chosen(
    host: Host, logs: Path, arguments: list[str], messages: str
) -> None:
    shown = run_cli("cat", *arguments, logs, host=host)
    assert shown.exit_code == ExitCode.OK
    assert [line.split(": ")[1].split()[0] for line in shown.text.splitlines()] == messages.split()
    again = run_cli("cat", "--table", "logs", "--json", *arguments, logs, host=host)
    assert [row["message"] for row in again.json_lines()] == messages.split()
    records = run_cli("cat", "--records", *arguments, logs, host=host).json_lines()
    assert [record["record"] for record in records] == ["alias"] + ["log"] * len(messages.split())


def test_nothing_chosen_is_nothing_printed(host: Host, logs: Path, sample: Path) -> None:
    shown = run_cli("cat", "--filter", "nowhere", logs, host=host)
    assert (shown.exit_code, shown.stdout) == (ExitCode.OK, b"")
    assert "the selected part is empty" in shown.stderr
    shown = run_cli("cat", "--since", "1s", sample, host=host)
    assert (shown.exit_code, shown.stdout) == (ExitCode.OK, b"")


def test_arguments_come_with_their_logs(host: Host, logs: Path) -> None:
    assert run_cli("cat", "--tag", "io", logs, host=host).text == (
        "2000 core/disk: slow ms=7\n3000 core/disk: gone\n"
    )
    rows = run_cli("cat", "--table", "toy_tags", "--json", "--severity", "warn", logs, host=host)
    assert [row["name"] for row in rows.json_lines()] == ["io", "a,b", "io"]


def test_a_log_of_some_of_its_records(host: Host, logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.toylog"
    done = run_cli("convert", logs, out, "--severity", "warn", "--until", "2500ns", "-v", host=host)
    assert done.exit_code == ExitCode.OK
    assert out.read_bytes() == LINES[0] + LINES[2] + LINES[3]
    assert "outside of the part: 2 logs" in done.stderr
    assert run_cli("cat", out, host=host).text.splitlines()[0] == "2000 core/disk: slow ms=7"
    rest = run_cli("convert", logs, "-", "-t", "toylog", "--since", "@9000", host=host)
    assert rest.stdout == LINES[0]


def test_a_part_of_a_records_file_is_not_all_of_it(host: Host, logs: Path, tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    assert run_cli("convert", logs, lines, host=host).exit_code == ExitCode.OK
    out = run_cli("convert", lines, "-", "-t", "toylog", "--kernel", host=host)
    assert out.stdout == LINES[0] + LINES[4]


def test_damage_stays_and_is_told(host: Host, logs: Path, tmp_path: Path) -> None:
    logs.write_bytes(LINES[1] + b"damage\n" + LINES[2])
    out = tmp_path / "out.toylog"
    done = run_cli("convert", logs, out, "--severity", "warn", host=host)
    assert out.read_bytes() == b"damage\n" + LINES[2]
    assert done.exit_code == ExitCode.FINDINGS


def test_exporters_take_the_part(host: Host, logs: Path) -> None:
    csv = run_cli("convert", logs, "-", "-t", "csv", "--tag", "net", host=host).text
    assert [line.count("ready") for line in csv.splitlines()] == [0, 1]


@cases(
    ("arguments", "told"),
    [
        (["--severity", "wran"], "did you mean 'WARN'"),
        (["--severity", "256"], "0 to 255"),
        (["--pid", "me"], "invalid koid"),
        (["--tid", "-1"], "invalid koid"),
        (["--thread", "main"], "--pid and --tid"),
        (["--process", "main"], "--pid and --tid"),
        (["--category", "x"], "no category 'x'"),
    ],
)
@cases("command", ["cat", "convert"])
def test_what_makes_no_sense_is_refused(
    host: Host, logs: Path, tmp_path: Path, command: str, arguments: list[str], told: str
) -> None:
    out = [tmp_path / "out.toylog"] if command == "convert" else []
    done = run_cli(command, *arguments, logs, *out, host=host)
    assert done.exit_code == ExitCode.USAGE
    assert told in done.stderr
    assert not (tmp_path / "out.toylog").exists()


@pytest.mark.parametrize("arguments", [["--kernel"], ["--filter", "x"], ["--pid", "1"]])
def test_a_capture_without_logs(
    host: Host, sample: Path, tmp_path: Path, arguments: list[str]
) -> None:
    for command in (
        ["cat", sample],
        ["cat", "--table", "slices", sample],
        ["cat", "--records", sample],
        ["convert", sample, tmp_path / "out.toy"],
    ):
        done = run_cli(*command, *arguments, host=host)
        assert done.exit_code == ExitCode.USAGE
        assert "toy captures have no logs" in done.stderr


def test_records_that_have_no_rows_cannot_follow_logs(
    host: Host, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy_log.LogToy, "row_table", None)
    done = run_cli("cat", "--records", "--kernel", logs, host=host)
    assert done.exit_code == ExitCode.USAGE
    assert "nor by what logs say" in done.stderr
    done = run_cli("convert", "--kernel", logs, tmp_path / "out.toylog", host=host)
    assert "can be extracted" in done.stderr


def test_a_writer_that_cuts_by_itself_does_not_choose_logs(
    host: Host, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def extract(*arguments: Any) -> Any:
        pytest.fail("it was asked")

    def item(made: Any) -> Any:
        return attrs.evolve(made, extract=extract)

    monkeypatch.setattr(toy_log.LogToy, "row_table", None)
    entries = host._items["writers"]
    host._items["writers"] = [(item(made), plugin) for made, plugin in entries]
    done = run_cli("convert", "--kernel", logs, tmp_path / "out.toylog", host=host)
    assert done.exit_code == ExitCode.USAGE
    assert "log options cannot select a part of" in done.stderr


def test_help_has_them_under_a_title(host: Host) -> None:
    for command in ("cat", "convert"):
        text = run_cli(command, "--help", host=host).text
        places = [text.index(title) for title in ("\nOptions:", "\nParts:", "\nLog options:",
                                                  "\nEverywhere:")]  # fmt: skip
        assert places == sorted(places)
        assert places[2] < text.index("--severity LEVEL") < places[3]


def test_names_on_cat(host: Host, sample: Path) -> None:
    shown = run_cli("cat", "--table", "instants", "--json", "--thread", "main", sample, host=host)
    assert [row["name"] for row in shown.json_lines()] == ["one", "three"]
    none = run_cli("cat", "--records", "--thread", "main", sample, host=host)
    assert none.exit_code == ExitCode.USAGE
    assert run_cli("cat", "--thread", "mian", sample, host=host).exit_code == ExitCode.USAGE


# --- Colours -------------------------------------------------------------------------------------

RED = b"\x1b[31m1 None: clear \\x1b[2J me\x1b[0m\n"


@cases(
    ("terminal", "arguments", "coloured"),
    [
        (True, [], True),
        (True, ["--color", "never"], False),
        (True, ["-o", "color=no"], False),
        (True, ["-o", "color=yes", "--color", "never"], True),
        (False, [], False),
    ],
)
def test_text_that_can_be_coloured(
    host: Host, logs: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool, arguments: list[str],
    coloured: bool,
) -> None:  # fmt: skip
    """Colours reach a terminal, and nothing else that would drive it."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    logs.write_bytes(log("clear \x1b[2J me", 1))
    shown = run_cli("cat", logs, *arguments, host=host, terminal=terminal).stdout
    if coloured:
        assert shown == RED
    else:
        assert b"\x1b[31m" not in shown
        assert (b"\x1b[2J" in shown) is not terminal


def test_colours_that_are_asked_for_go_into_a_pipe(host: Host, logs: Path) -> None:
    assert run_cli("cat", logs, "--color", "always", host=host).text.count("\x1b[31m") == 4


# --- The header of records files, and facts ------------------------------------------------------


def test_records_say_how_they_were_read(host: Host, logs: Path, tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    options = ("-o", "utc_offset_ns=5", "-o", "suffix=yes", "-o", "max_findings=7")
    run_cli("convert", logs, lines, *options, host=host)
    header = json.loads(lines.read_bytes().splitlines()[0])
    assert header["reading"] == {"utc_offset_ns": 5, "suffix": True}
    with host.open(lines) as capture:
        assert (capture.utc_offset_ns, capture.between(0, 1).utc_offset_ns) == (5, 5)
        assert capture.request.options == {"utc_offset_ns": 5, "suffix": True}
    again = run_cli("convert", lines, "-", "-t", "records", host=host)
    assert again.stdout == lines.read_bytes()
    assert b"reading" not in run_cli("convert", logs, "-", "-t", "records", host=host).stdout


def test_ways_of_reading_that_make_no_sense(host: Host, logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    header = {"fxframework": "records", "format": "toylog", "version": 1}
    for reading, bad in (({"shiny": 1}, 1), ({"suffix": "maybe", "utc_offset_ns": 3.5}, 2),
                         ({"suffix": "yes"}, 0), ([7], 0), (None, 0)):  # fmt: skip
        path.write_text(json.dumps({**header, "reading": reading}) + "\n")
        with host.open(path) as capture:
            assert capture.diagnostics.counts.get("FXF0103", 0) == bad
            assert capture.utc_offset_ns is None


FACTS = {
    "clock": "boot (stated)",
    "utc_offset": 1_700_000_000_000_000_005,
    "severities": {"FATAL": 1, "INFO": 1500},
    "components": [{"component": "core/app", "logs": 1500}, {"component": None, "logs": 1}],
    "tags": [],
    "dropped": 0,
    "ranges": {"seen": [1, 2]},
}


def test_facts_of_logs_read_well(host: Host, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = toy_log.LogToy.summary
    monkeypatch.setattr(
        toy_log.LogToy, "summary", lambda self: attrs.evolve(made(self), facts=FACTS)
    )
    lines = run_cli("info", logs, host=host).text.splitlines()
    at = next(at for at, line in enumerate(lines) if "clock" in line)
    assert lines[at:-1] == [
        "  clock       boot (stated)",
        "  utc offset  1700000000000000005 ns: time 0 is 2023-11-14 22:13:20.000000005 UTC",
        "  severities  FATAL 1, INFO 1,500",
        "  components  core/app, logs 1,500",
        "              –, logs 1",
        "  dropped     0",
        "  ranges      seen 1; 2",
    ]


def test_toys_know_no_other_clock(host: Host) -> None:
    assert host.open(toy.SAMPLE).utc_offset_ns is None
