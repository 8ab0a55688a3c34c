"""`info`, `verify`, `explain`, `plugins` and `doctor`: what they tell, to people and as JSON."""

from __future__ import annotations

import re
import shlex
import shutil
import types
from pathlib import Path
from typing import Any

import attrs
import pytest
import toy

import fxframework
from fxframework import hookimpl
from fxframework.cli import doctor
from fxframework.cli import text as words
from fxframework.cli.app import COMMANDS, Fxf
from fxframework.errors import ExitCode
from fxframework.host import Host
from fxframework.kit import shown
from fxframework.rules import RULES as FRAMEWORK_RULES
from fxframework.testing.cli import run_cli

from ..cases import cases

DAMAGED = toy.toy(toy.mark("m", 1), toy.record(9), bytes(24), toy.record(7), b"odd")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged.toy"
    path.write_bytes(DAMAGED)
    return path


# --- info --------------------------------------------------------------------------------------


def test_info_tells_what_there_is(host: Host, damaged: Path) -> None:
    result = run_cli("info", damaged, host=host)
    lines = result.text.splitlines()
    assert lines[0] == f"{damaged}: toys, 107 bytes"
    told = dict(line.strip().split("  ", 1) for line in lines[1:] if line[2] != " ")
    assert told["records"].strip().startswith("6: damaged 2")
    assert "instants 1" in told["tables"]
    assert told["maker"].strip() == "ACME"
    assert told["findings"].strip() == "TOY0001 data loss: a record is damaged, 2 times"
    assert "data was lost (TOY0001 ×2)" in result.stderr
    assert "TOY0003" in run_cli("-v", "info", damaged, host=host).stderr


def test_info_names_the_slowest_and_the_command_that_shows_more(tmp_path: Path) -> None:
    boot = ROOT / "examples" / "scenarios" / "boot.golden" / "boot.fxt"
    lines = run_cli("info", boot).text.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("  slowest"))
    names = [line.strip().removeprefix("slowest").strip() for line in lines[first : first + 7]]
    assert names[0] == "launch: 7.335036 ms in 4 asynchronous slices, up to 2.656033 ms"
    assert names[1].startswith("bind: 3.694453 ms in 4 calls")
    assert names[5] == (
        f"… and 4 more, most time by themselves first; all: fxf account --sort self {boot}"
    )
    assert names[6] == f"why: fxf why {boot} bind"  # launch has no thread of its own
    assert run_cli("why", boot, "bind").exit_code == ExitCode.OK
    assert "no states of this call" in run_cli("why", boot, "launch").text
    document = run_cli("info", "--json", boot).json()["captures"][0]["slowest"]
    account = run_cli("account", "--json", "--top", 5, "--sort", "self", boot).json()["functions"]
    keys = ("name", "asynchronous", "count", "sum", "max", "self")
    assert [[one[key] for key in keys] for one in document] == [
        [one[key] for key in keys] for one in account
    ]
    logs = ROOT / "examples" / "scenarios" / "logs.golden" / "logs.fxlog"
    assert "slowest" not in run_cli("info", logs).text
    odd = tmp_path / "it's odd.fxt"
    odd.write_bytes(boot.read_bytes())
    assert f"fxf account --sort self {shlex.quote(str(odd))}" in run_cli("info", odd).text
    assert "fxf account --sort self FILE" in run_cli("info", "-", stdin=boot.read_bytes()).text


@cases(
    "arguments",
    [
        ("spellcheck.xray", "-m", "spellcheck.csv"),
        ("-f", "xray", "-o", "instr_map=spellcheck.csv", "spellcheck.xray"),
        ("--", "-odd.xray"),
    ],
)
def test_the_command_that_info_names_opens_the_capture_as_info_did(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("spellcheck.xray", "spellcheck.csv"):
        shutil.copy(ROOT / "examples" / "xray" / name, tmp_path)
    shutil.copy(tmp_path / "spellcheck.xray", tmp_path / "-odd.xray")
    monkeypatch.chdir(tmp_path)
    text = run_cli("info", *arguments).text
    for command in re.findall(r"(?:all|why): fxf (.*)", text):
        assert run_cli(*shlex.split(command)).exit_code == ExitCode.OK


def test_info_is_the_default_command(host: Host, sample: Path) -> None:
    expected = run_cli("info", sample, sample, host=host)
    assert run_cli(sample, sample, host=host) == expected
    assert run_cli("--json", sample, host=host) == run_cli("info", sample, "--json", host=host)
    assert run_cli("-", stdin=toy.SAMPLE, host=host).exit_code == ExitCode.OK
    assert run_cli(f"toy:{sample}", host=host).exit_code == ExitCode.OK
    assert run_cli("gone.toy", host=host).exit_code == ExitCode.FAILED


def test_a_file_of_a_commands_name_can_be_read(
    host: Host, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample.parent)
    for name in ("cat", "nameless"):
        sample.with_name(name).write_bytes(toy.SAMPLE)
    assert run_cli("info", "cat", host=host).exit_code == ExitCode.OK
    assert run_cli("nameless", host=host).exit_code == ExitCode.OK


def test_info_draws_time_on_a_terminal_only(
    host: Host, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "timeline" not in run_cli(sample, host=host).text
    monkeypatch.setenv("COLUMNS", "30")
    drawn = run_cli(sample, "--color", "never", host=host, terminal=True).text
    (line,) = [line for line in drawn.splitlines() if "▕" in line]
    assert line.startswith("    main ▕")
    assert len(line) <= 30
    assert set(line.partition("▕")[2]) <= {*words.BLOCKS, "▏"}


def test_info_as_json(host: Host, damaged: Path, sample: Path) -> None:
    result = run_cli("info", "--json", damaged, sample, "gone.toy", host=host)
    assert result.exit_code == ExitCode.FAILED
    document = result.json()
    assert (document["fxframework"], document["version"]) == ("info", 1)
    first, second, third = document["captures"]
    assert first["path"] == str(damaged)
    assert (first["format"], first["size"], first["unpacked"]) == ("toy", 107, False)
    assert (first["records"], first["kinds"]["damaged"]) == (6, 2)
    assert (first["start_ns"], first["end_ns"], first["duration_ns"]) == (1, 1, 0)
    assert first["tables"]["instants"] == 1
    assert first["facts"]["maker"] == "ACME"
    assert first["findings"][0] == {
        "code": "TOY0001",
        "severity": "data_loss",
        "count": 2,
        "title": "a record is damaged",
    }
    assert second["findings"] == []
    assert second["timeline"][0]["name"] == "main"
    assert third["error"]["code"] == "FXF0001"


def test_long_lists_are_cut_without_v(
    host: Host, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import attrs

    made = toy.ToyCapture.summary
    parts = [{"id": number, "wall_ns": 1_000_000_000 * number + 5} for number in range(30)]

    def summary(self: toy.ToyCapture) -> Any:
        facts = {"parts": parts, "none": None, "far_wall_ns": 1 << 80}
        rows = tuple((f"a row of the long name {number}", (1,)) for number in range(20))
        return attrs.evolve(made(self), facts=facts, timeline=rows)

    monkeypatch.setattr(toy.ToyCapture, "summary", summary)
    text = run_cli(sample, host=host).text
    assert "id 11" in text
    assert "id 12" not in text
    assert "… and 18 more" in text
    assert "1970-01-01 00:00:01.000000005 UTC" in text
    assert "id 29" in run_cli("-v", sample, host=host).text
    drawn = run_cli(sample, host=host, terminal=True).text
    assert "a row of the long name 0  ▕" in drawn
    assert "… and 8 more" in drawn
    assert drawn.count("▕") == 12
    assert run_cli("-v", sample, host=host, terminal=True).text.count("▕") == 20


# --- verify ------------------------------------------------------------------------------------


def test_each_finding_is_located(host: Host, damaged: Path) -> None:
    result = run_cli("verify", damaged, host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert (
        result.text
        == f"""\
data loss[TOY0001]: a record is damaged
  --> {damaged} @ 0x00000020, record 2
   0020 | 09 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
  = It is kept as `damaged`.
  = Buy another toy.
warning[TOY0002]: a kind that is not defined
  --> {damaged} @ 0x00000050, record 4
   0050 | 07 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
  = It is kept as `unknown`.
  = Kinds are 1 and 2. `fxf explain {damaged}@0x50` shows what is there.
data loss[TOY0001]: a record is damaged
  --> {damaged} @ 0x00000068, record 5
   0068 | 6f 64 64
{damaged}: departs from the format, 6 records; findings: 2 data loss, 1 warning, 1 info \
(-v lists the info)
"""
    )
    assert "info[TOY0003]" in run_cli("verify", "-v", damaged, host=host).text


def test_a_sound_file(host: Host, sample: Path) -> None:
    result = run_cli("verify", sample, host=host)
    assert result.text == f"{sample}: sound, 4 records\n"
    assert result.stderr == ""


def test_findings_beyond_the_limit_are_counted(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(toy.toy(*[toy.record(9)] * 1234))
    result = run_cli("verify", path, "-o", "max_findings=2", host=host)
    assert result.text.count("[TOY0001]") == 2
    assert "TOY0001: 1,232 more findings (-v lists them)" in result.text
    assert "findings: 1,234 data loss" in result.text
    full = run_cli("verify", path, "-v", "-o", "max_findings=2", host=host)
    assert "info[FXF0104]: 1,232 more findings of TOY0001, not listed" in full.text
    assert "max_findings" in full.text


def test_a_person_sees_the_first_three_of_a_code(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(toy.toy(*[toy.record(9)] * 50, toy.record(7)))
    text = run_cli("verify", path, host=host).text
    assert text.count("[TOY0001]") == 3
    assert "TOY0001: 47 more findings (-v lists them)" in text
    assert text.count("[TOY0002]") == 1
    assert run_cli("verify", path, "-v", host=host).text.count("[TOY0001]") == 50
    assert len(run_cli("verify", path, "--json", host=host).json()["captures"][0]["findings"]) == 51


@cases("columns", [80, 120])
def test_what_a_terminal_shows_fits(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is longer than the terminal, and none ends within a word."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.chdir(ROOT / "examples" / "scenarios")
    boot, logs = "boot.golden/boot.fxt", "logs.golden/logs.fxlog"
    commands = [["info", boot], ["info", logs], ["plugins"], ["convert", "--list", boot]]
    commands += [["cat", boot, "--table", "slices"], ["cat", logs, "--table", "logs"]]
    for command in commands:
        text = run_cli("--color", "never", *command, terminal=True).text
        for line in text.splitlines():
            assert len(line) <= columns, (command, line)
    wide = run_cli("--color", "never", "info", boot).text.split()
    narrow = run_cli("--color", "never", "info", boot, terminal=True).text.partition("timeline")[0]
    assert set(narrow.split()) <= set(wide)  # no word is broken
    rows = run_cli("--color", "never", "cat", boot, "--table", "slices", terminal=True).text
    assert "component_manager/main" in rows


def test_verify_as_json(host: Host, damaged: Path) -> None:
    document = run_cli("verify", "--json", damaged, "gone.toy", host=host).json()
    assert (document["fxframework"], document["version"]) == ("verify", 1)
    first, second = document["captures"]
    assert (first["worst"], first["records"]) == ("data_loss", 6)
    assert first["counts"] == {"TOY0001": 2, "TOY0002": 1, "TOY0003": 1}
    assert first["findings"][0] == {
        "code": "TOY0001",
        "severity": "data_loss",
        "offset": 32,
        "record": 2,
        "message": "a record is damaged",
        "title": "a record is damaged",
        "section": "Toys",
        "remedy": "Buy another toy.",
    }
    assert [one["offset"] for one in first["findings"]] == [32, 56, 80, 104]
    assert second["error"]["code"] == "FXF0001"


# --- explain -----------------------------------------------------------------------------------


def test_a_code(host: Host) -> None:
    text = run_cli("explain", "toy0001", host=host).text
    assert text.startswith("TOY0001: a record is damaged\n")
    for part in ("data loss", "Kind 9 is damage.", "Toys", "Buy another toy."):
        assert part in text
    document = run_cli("explain", "TOY0001", "--json", host=host).json()
    assert document["severity"] == "data_loss"
    assert document["format"] == "toy"


@cases("code", FRAMEWORK_RULES)
def test_every_code_of_ours(host: Host, code: str) -> None:
    result = run_cli("explain", code, host=host)
    assert result.exit_code == ExitCode.OK
    assert FRAMEWORK_RULES[code].rule in result.text


def test_bytes_at_an_offset(host: Host, sample: Path) -> None:
    for offset in ("0x21", "33"):
        result = run_cli("explain", f"{sample}@{offset}", host=host)
        assert result.text.splitlines()[0] == f"{sample} @ 0x00000021"
        assert result.text.splitlines()[2].split() == [
            ">", "0x00000020", "0–7", "kind", "2", "kind", "of", "record", "Toys",
        ]  # fmt: skip
    document = run_cli("explain", f"toy:{sample}@0x21", "--json", host=host).json()
    assert document["fields"] == [
        {
            "offset": 32,
            "low": 0,
            "high": 7,
            "name": "kind",
            "value": 2,
            "meaning": "kind of record",
            "section": "Toys",
        }
    ]


def test_a_finding_of_a_format_that_does_not_explain_names_another_command(
    damaged: Path,
) -> None:
    """`verify` names only commands that work for the format."""
    host = Host(discover=False)
    reader = attrs.evolve(toy.READER, explain=None)
    plugin = types.ModuleType("silent")
    plugin.fx_readers = hookimpl(lambda: reader)  # type: ignore[attr-defined]
    host.register(plugin, name="toy")
    text = run_cli("verify", damaged, host=host).text
    assert "fxf explain" not in text
    assert f"`fxf cat --records {damaged}` shows the record there." in text
    document = run_cli("verify", "--json", damaged, host=host).json()
    assert not [one for one in document["captures"][0]["findings"] if "explain" in one["remedy"]]


def test_bytes_of_a_format_that_does_not_explain(host: Host, sample: Path, tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    run_cli("convert", sample, lines, host=host)
    result = run_cli("explain", f"{lines}@0", host=host)
    assert result.exit_code == ExitCode.USAGE
    assert "captures of records cannot be explained" in result.stderr
    odd = tmp_path / "a@b.toy"
    odd.write_bytes(toy.SAMPLE)
    assert run_cli("explain", f"{odd}@8", host=host).exit_code == ExitCode.OK


# --- plugins and doctor ------------------------------------------------------------------------


def test_plugins_lists_everything(host: Host) -> None:
    host.register(types.ModuleType("empty"), name="empty", distribution="void", version="3")
    result = run_cli("plugins", host=host)
    assert result.exit_code == ExitCode.OK
    assert not result.stderr  # what failed is listed already
    for part in ("toys 2.0", "picture", "read, written", "void 3", "implements no hook"):
        assert part in result.text
    assert "max_findings" not in result.text
    assert "max_findings" in run_cli("plugins", "-v", host=host).text


def test_plugins_as_json(host: Host) -> None:
    host.register(types.ModuleType("empty"), name="empty", distribution="void", version="3")
    document = run_cli("plugins", "--json", host=host).json()
    assert (document["fxframework"], document["version"]) == ("plugins", 1)
    assert [p["name"] for p in document["plugins"]] == ["exporters", "toy", "empty"]
    assert {r["format"] for r in document["readers"]} == {"toy", "records"}
    text = next(e for e in document["exporters"] if (e["name"], e["plugin"]) == ("text", "toy"))
    assert (text["accepts"], text["plugin"]) == (["toy"], "toy")
    assert text["options"][0]["name"] == "loud"
    assert document["failures"][0]["distribution"] == "void"


def test_doctor(host: Host) -> None:
    result = run_cli("doctor", host=host)
    assert result.exit_code == ExitCode.OK, result.text
    assert "all is well" in result.text
    document = run_cli("doctor", "--json", host=host).json()
    states = {check["name"]: check["state"] for check in document["checks"]}
    assert states["python"] == states["plugins"] == "ok"
    host.register(types.ModuleType("empty"), name="empty", distribution="void")
    broken = run_cli("doctor", host=host)
    assert broken.exit_code == ExitCode.FAILED
    assert "something is broken" in broken.text
    assert run_cli("doctor", "--json", host=host).json()["sound"] is False


def no_readers() -> list[Any]:
    return []


def test_doctor_of_missing_packages(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    versions = {"fxframework": "1.0", "here": "3"}

    def version(name: str) -> str:
        if name == "click" or name not in {*versions, *doctor.CORE}:
            raise metadata.PackageNotFoundError(name)
        return versions.get(name, "2")

    needs = [
        "click",
        'here>=1; extra == "one"',
        "gone; extra=='two'",
        "fxframework[one]; extra=='x'",
    ]
    monkeypatch.setattr(doctor.metadata, "version", version)
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: needs)
    checks = {check.name: check for check in [*doctor._extras(),
              doctor._core("click"), doctor._core("numpy"), doctor._package()]}  # fmt: skip
    assert (checks["[one]"].state, checks["[one]"].text) == ("ok", "here 3")
    assert checks["[two]"].state == "note"
    assert checks["[two]"].text.endswith(" -m pip install gone")
    assert "[x]" not in checks
    assert checks["click"].state == "broken"
    assert checks["numpy"].state == "ok"
    assert checks["fxframework"].text.startswith("1.0 from ")


def test_doctor_of_nothing_installed() -> None:
    result = run_cli("doctor", host=Host(discover=False))
    assert result.exit_code == ExitCode.FAILED
    assert "no format can be read" in result.text


# --- options and plugins' commands -------------------------------------------------------------


def test_global_options_stand_before_or_after_the_command(host: Host, sample: Path) -> None:
    expected = run_cli("cat", sample, "--table", "instants", "--json", "-f", "toy", host=host)
    assert expected.json_lines()
    for given in (
        ("--json", "-f", "toy", "cat", "--table", "instants", sample),
        ("-f", "gone", "cat", "--json", "--table", "instants", sample, "-f", "toy"),
        ("--json", "cat", "-f", "toy", sample, "--table", "instants"),
    ):
        assert run_cli(*given, host=host) == expected
    both = run_cli("-o", "max_findings=1", "cat", "-o", "loud=1", sample, host=host)
    assert both.text.startswith("MAGIC")


def test_an_option_of_another_reader_is_passed_over_among_several(
    host: Host, sample: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "a.jsonl"
    run_cli("convert", sample, lines, host=host)
    both = run_cli("info", sample, lines, "-o", "format=toy", host=host)
    assert both.exit_code == ExitCode.OK
    assert run_cli("info", sample, "-o", "format=toy", host=host).exit_code == ExitCode.USAGE


def test_a_path_that_looks_like_a_format_is_a_path(
    host: Host, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample.parent)
    Path("toy:a").write_bytes(toy.SAMPLE)
    assert run_cli("info", "toy:a", host=host).exit_code == ExitCode.OK
    assert run_cli("info", "records:a", host=host).exit_code == ExitCode.FAILED
    assert run_cli("info", "what:a", host=host).exit_code == ExitCode.FAILED


def test_version_and_help(host: Host) -> None:

    assert run_cli("--version", host=host).text == f"fxf {fxframework.__version__}\n"
    assert run_cli("cat", "--version", host=host).text.startswith("fxf ")
    text = run_cli("--help", host=host).text
    assert run_cli("-h", host=host).text == text
    for name in COMMANDS:
        assert f"{name} " in text
        own = run_cli(name, "--help", host=host)
        assert own.exit_code == ExitCode.OK
        assert "--strict" in own.text
        command = Fxf(name="fxf").get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.name == name


def commands(**functions: Any) -> types.ModuleType:
    import click

    def fx_cli(cli: click.Group) -> None:
        for name, function in functions.items():
            if function is None:
                raise RuntimeError("no more commands")
            cli.add_command(click.Command(name, callback=function, help=f"Do {name}."))

    module = types.ModuleType("commands")
    module.fx_cli = hookimpl(fx_cli)  # type: ignore[attr-defined]
    return module


def test_plugins_add_commands(host: Host) -> None:
    import click

    host.register(commands(greet=lambda: click.echo("hello")), name="greeter")
    assert run_cli("greet", host=host).text == "hello\n"
    assert "Do greet." in run_cli("--help", host=host).text
    assert run_cli("gret", host=host).stderr.startswith("error[FXF0005]: 'gret' is neither")
    assert "did you mean 'greet'" in run_cli("gret", host=host).stderr


def test_a_command_that_is_taken_is_left_out(host: Host) -> None:
    import click

    host.register(commands(cat=lambda: click.echo("meow"), one=lambda: click.echo("1")), name="a")
    host.register(commands(one=lambda: click.echo("2"), two=lambda: click.echo("two")), name="b")
    host.register(commands(three=lambda: click.echo("3"), four=None), name="c")
    assert run_cli("one", host=host).text == "1\n"
    assert run_cli("two", host=host).text == "two\n"
    assert run_cli("three", host=host).text == "3\n"
    assert run_cli("cat", host=host).exit_code == ExitCode.USAGE
    told = [failure.error for failure in host.failures]
    assert any("command 'cat' already belongs to fxframework" in error for error in told)
    assert any("command 'one' already belongs to a (none)" in error for error in told)
    assert any("no more commands" in error for error in told)


# --- small parts -------------------------------------------------------------------------------


@cases(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1 us"),
        (1_500, "1.5 us"),
        (329_913, "329.913 us"),
        (12_345_000, "12.345 ms"),
        (1_000_000_001, "1.000000001 s"),
        (-2_500_000, "-2.5 ms"),
        (86_400_000_000_000, "86,400 s"),
    ],
)
def test_durations(ns: int, text: str) -> None:
    assert shown.duration(ns) == text


def test_sparklines_show_whatever_is_there() -> None:
    assert words.sparkline([0, 1, 1000], 10) == " ▁█"
    assert words.sparkline([], 10) == ""
    assert words.sparkline([0, 0], 10) == "  "
    assert len(words.sparkline(list(range(100)), 7)) == 7


def test_printable() -> None:
    assert shown.printable("a\tb\n\x1b[0m\x9b\x7f Zoë") == "a\\tb\\n\\x1b[0m\\x9b\\x7f Zoë"


def test_the_time_of_a_capture_counts_the_ends_of_complete_events(tmp_path: Path) -> None:
    from fx_trace.write.archive import Archive

    with Archive(tmp_path / "a.fxt") as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        app.duration_complete("c", "long", 1_000, 1_000_001_000)
        app.duration_complete("c", "short", 2_000, 3_000)
    (found,) = run_cli("info", "--json", tmp_path / "a.fxt").json()["captures"]
    times = ("start_ns", "end_ns", "duration_ns")
    assert [found[name] for name in times] == [1_000, 1_000_001_000, 1_000_000_000]


def test_a_recursive_call_is_not_slower_than_its_capture(tmp_path: Path) -> None:
    """Eleven calls of `parent` within one another, which call one `child` of 1 us."""
    from fx_trace.write.archive import Archive

    with Archive(tmp_path / "a.fxt") as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        for level in range(11):
            app.duration_complete("c", "parent", 1_000 + level, 2_022 - level)
        app.duration_complete("c", "child", 1_011, 2_011)
    (found,) = run_cli("info", "--json", tmp_path / "a.fxt").json()["captures"]
    assert [[one[key] for key in ("name", "count", "sum", "self")] for one in found["slowest"]] == [
        ["child", 1, 1_000, 1_000], ["parent", 1, 1_022, 22]
    ]  # fmt: skip
    text = run_cli("info", tmp_path / "a.fxt").text
    assert "parent: 1.022 us in 1 call; 22 ns by itself" in text
