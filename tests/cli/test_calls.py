"""`fxf account`, `stack` and `graph`; options of readers that have flags."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest
import toy

from fxframework import hookimpl
from fxframework.errors import ExitCode
from fxframework.exporters import plugin as exporters
from fxframework.host import Host
from fxframework.registry import Exporter, Option, Reader
from fxframework.testing.cli import run_cli

from ..cases import cases

EXAMPLES = Path(__file__).parents[2] / "examples"
BOOT = EXAMPLES / "scenarios" / "boot.golden" / "boot.fxt"
SAMPLE = EXAMPLES / "magic_trace_sample.fxt.gz"
ROWS = toy.toy(
    toy.span("one", 0, 300), toy.span("two", 400, 100), toy.span("one", 600, 500),
    toy.span("open", 2_000, -1), toy.mark("m", 3_000),
)  # fmt: skip


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.toy"
    path.write_bytes(ROWS)
    return path


# --- account -----------------------------------------------------------------------------------


def test_account_prints_a_table(host: Host, rows: Path) -> None:
    result = run_cli("account", rows, host=host)
    assert result.exit_code == ExitCode.OK
    head, first, second, third = result.text.splitlines()
    assert head.split() == [
        "function", "calls", "sum", "self", "min", "median", "90%", "99%", "max", "deviation",
        "unfinished",
    ]  # fmt: skip
    assert first.split()[:4] == ["one", "2", "800", "ns"]
    assert second.split()[0] == "two"
    assert (third.split()[0], third.split()[-1]) == ("open", "1")


def test_account_as_csv_has_the_columns_of_llvm_xray(host: Host, rows: Path) -> None:
    text = run_cli("account", "--csv", "--sort", "count", "--sort-order", "dsc", rows, host=host)
    head, first, *_ = text.text.splitlines()
    assert head == (
        "funcid,count,min,median,90%ile,99%ile,max,sum,debug,function,self,unfinished,unmatched,"
        "kind,deviation"
    )
    assert first == (
        ",2,3.000000e-07,5.000000e-07,5.000000e-07,5.000000e-07,5.000000e-07,8.000000e-07,"
        '"(unknown)","one",8.000000e-07,0,0,call,1.000000e-07'
    )
    assert len(list(csv.reader(io.StringIO(text.text)))) == 4


def test_account_as_json_has_exact_figures(host: Host, rows: Path) -> None:
    document = run_cli("account", "--json", "--top", 1, "--per-thread", rows, host=host).json()
    assert document["units_per_second"] == 1_000_000_000
    assert document["functions"] == [
        {"id": None, "name": "one", "source": None, "thread": "main (11)", "count": 2, "sum": 800,
         "self": 800, "min": 300, "median": 500, "p90": 500, "p99": 500, "max": 500,
         "deviation": 100.0,
         "unfinished": 0, "unmatched_exits": 0, "asynchronous": False}
    ]  # fmt: skip


def test_asynchronous_slices_are_among_the_functions_and_marked() -> None:
    """The slowest of the example are asynchronous."""
    result = run_cli("account", BOOT)
    head, first, *rest = (line.split() for line in result.text.splitlines())
    assert (head[0], head[-1], first[0], first[-1]) == ("function", "kind", "launch", "async")
    assert {line[-1] for line in rest} == {"call"}
    assert not result.stderr
    assert run_cli("account", "--csv", BOOT).text.count(",async,") == 1
    document = run_cli("account", "--json", BOOT).json()
    assert document["asynchronous"] == 4
    assert [one["name"] for one in document["functions"] if one["asynchronous"]] == ["launch"]
    for command in ("stack", "graph"):
        assert "4 asynchronous slices left out" in run_cli(command, BOOT).stderr


@cases(
    "arguments",
    [("--recursive-calls-only", "--no-recursion"), ("--csv", "--json"), ("--sort", "size"),
     ("--by", "colour"), ("--function", "three"), ("--top", "0")],
)  # fmt: skip
def test_account_refuses_what_makes_no_sense(
    host: Host, rows: Path, arguments: tuple[str, ...]
) -> None:
    result = run_cli("account", rows, *arguments, host=host)
    assert result.exit_code == ExitCode.USAGE
    assert not result.stdout


def test_parts_are_analysed_alone(host: Host, rows: Path) -> None:
    def names(*arguments: object) -> list[str]:
        document = run_cli("account", "--json", rows, *arguments, host=host).json()
        return [entry["name"] for entry in document["functions"]]

    assert names("--function", "o*") == ["one", "open"]
    assert names("--since", "450ns", "--until", "1us") == ["one", "two"]
    assert names("--thread", "main") == ["one", "two", "open"]
    result = run_cli("account", rows, "--function", "onr", host=host)
    assert "did you mean 'one'" in result.stderr


def test_functions_are_chosen_for_cat_and_convert_too(
    host: Host, rows: Path, tmp_path: Path
) -> None:
    text = run_cli("cat", "--table", "slices", "--function", "two", rows, host=host).text
    assert len(text.splitlines()) == 2
    out = tmp_path / "x.csv"
    assert run_cli("convert", rows, out, "--function", "one", host=host).exit_code == ExitCode.OK
    assert out.read_text().count(",one,") == 2


# --- stack -------------------------------------------------------------------------------------


def test_stack_prints_a_tree_and_its_heaviest_stacks(host: Host, rows: Path) -> None:
    text = run_cli("stack", rows, host=host).text
    tree, most, often = text.split("\n\n")
    assert tree.splitlines()[1].split() == ["one", "88.9%", "800", "ns", "800", "ns", "2"]
    assert (
        tree.splitlines()[-1]
        == "… and 1 stack with 0.0% of the time, 0 ns: below 1% (--all shows them)"
    )
    everything = run_cli("stack", "--all", rows, host=host).text.partition("\n\n")[0]
    assert everything.splitlines()[-1].startswith("open  (1 never ended)")
    assert most.splitlines()[0] == "stacks that took the most time by themselves"
    assert often.splitlines()[2].split() == ["800", "ns", "2", "one"]


def test_stack_adds_files_up(host: Host, rows: Path) -> None:
    document = run_cli("stack", "--json", rows, rows, host=host).json()
    found = {node["name"]: (node["count"], node["total"]) for node in document["nodes"]}
    assert found == {
        "all threads": (0, 1800), "one": (4, 1600), "two": (2, 200), "open": (0, 0)
    }  # fmt: skip
    assert all(node["parent"] is None or node["parent"] < node["node"]
               for node in document["nodes"])  # fmt: skip


def test_stack_shows_threads_and_hides_what_is_small(host: Host, rows: Path) -> None:
    result = run_cli("stack", "--per-thread", "--min-percent", 50, "--top", 0, rows, host=host)
    *tree, rest = result.text.splitlines()
    assert [line.split()[0] for line in tree] == ["function", "main", "one"]
    assert rest == ("… and 2 stacks with 11.1% of the time, 100 ns: below 50% (--all shows them)")


@cases("width", [60, 80, 120])
@cases("command", ["account", "stack"])
def test_tables_of_calls_fit_a_terminal_names_first(
    command: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fxframework.cli.render.Screen.width", width)
    text = run_cli(command, SAMPLE).text
    lines = text.splitlines()
    assert lines[0].startswith("function ")
    assert max(map(len, lines)) <= width
    assert "calls" in lines[0]
    assert "self" in lines[0]


def test_calls_grouped_by_their_thread_count_once(tmp_path: Path) -> None:
    """`frame` encloses what it calls: the time of the thread is that of the frames."""
    groups = run_cli("account", "--by", "thread", "--json", BOOT).json()["functions"]
    names = {one["name"]: one for one in run_cli("account", "--json", BOOT).json()["functions"]}
    render = next(one for one in groups if one["name"].startswith("render"))
    frame = names["frame"]
    for figure in ("count", "sum", "max"):
        assert render[figure] == frame[figure]
    assert render["self"] == sum(names[name]["self"] for name in ("frame", "layout", "draw"))


# --- graph -------------------------------------------------------------------------------------


def test_graph_is_dot(host: Host, rows: Path, tmp_path: Path) -> None:
    text = run_cli("graph", "-e", "count", "-c", "none", "-b", "none", rows, host=host).text
    assert text.startswith("digraph xray {\n")
    assert 'F0 -> F1 [label="2"];' in text
    out = tmp_path / "x.dot"
    first = run_cli("graph", "--out", out, rows, host=host)
    assert (first.exit_code, first.stdout) == (ExitCode.OK, b"")
    assert f"note: wrote {out}: {out.stat().st_size:,} bytes\n" in first.stderr
    assert out.read_text().startswith("digraph")
    assert run_cli("graph", "--out", out, rows, host=host).exit_code == ExitCode.FAILED
    assert run_cli("graph", "--out", out, "--force", rows, host=host).exit_code == ExitCode.OK
    edges = run_cli("graph", "--json", rows, host=host).json()["edges"]
    assert [(edge["caller"], edge["callee"], edge["count"]) for edge in edges] == [
        (0, 1, 2), (0, 2, 1), (0, 3, 0)
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["x.svg", "x.PNG", "a.b.pdf"])
def test_a_picture_is_not_what_a_graph_is_written_as(
    host: Host, rows: Path, tmp_path: Path, name: str
) -> None:
    done = run_cli("graph", "--out", tmp_path / name, rows, host=host)
    assert done.exit_code == ExitCode.USAGE
    assert f"dot -T{name.rpartition('.')[2].lower()} " in done.stderr
    assert not (tmp_path / name).exists()


def test_graphs_of_two_captures_are_compared(host: Host, rows: Path, tmp_path: Path) -> None:
    other, out = tmp_path / "other.toy", tmp_path / "x.dot"
    other.write_bytes(toy.toy(toy.span("one", 0, 400), toy.span("three", 500, 1)))
    run_cli("compare", rows, other, "--out", out, host=host)
    text = out.read_text()
    assert 'F1 [label="{one|-50.00%}" color="#A6DBA0"];' in text
    assert '[label="{two|-100.00%}" color="#1B7837"];' in text
    assert '[label="{three|new}" color="#B2182B"];' in text


# --- Options of readers with flags -------------------------------------------------------------

FLAGGED = Option(
    name="refuse", type=bool, default=False, help="refuse to be read", flags=("-m", "--refuse")
)


class Flags:
    """The toy format, whose option has flags."""

    @hookimpl
    def fx_readers(self) -> Iterable[Reader]:
        return [attrs.evolve(toy.READER, options=(FLAGGED,))]

    @hookimpl
    def fx_exporters(self) -> Iterable[Exporter]:
        return [toy.TEXT]


@pytest.fixture
def flagged() -> Host:
    host = Host(discover=False)
    host.register(exporters, name="exporters", distribution="fxframework")
    host.register(Flags(), name="toy", distribution="toys")
    assert not host.failures
    return host


@cases("command", ["info", "cat", "verify", "account", "stack", "graph", "compare", "diff"])
def test_a_flag_is_the_option(flagged: Host, rows: Path, command: str) -> None:
    files = [rows] * (2 if command in {"compare", "diff"} else 1)
    assert run_cli(command, *files, host=flagged).exit_code == ExitCode.OK
    for given in (["-m"], ["--refuse"], ["-o", "refuse=yes"]):
        result = run_cli(command, *given, *files, host=flagged)
        assert "it refuses to be read" in result.stderr


def test_help_shows_flags_under_their_format(flagged: Host) -> None:
    text = run_cli("cat", "--help", host=flagged).text
    assert "Options of toy:\n  -m, --refuse  Refuse to be read." in text
    assert "Options of toy" not in run_cli("plugins", "--help", host=flagged).text


def test_json_of_every_command_says_what_it_is(host: Host, rows: Path) -> None:
    for command in ("account", "stack", "graph"):
        document = json.loads(run_cli(command, "--json", rows, host=host).stdout)
        assert (document["fxframework"], document["version"]) == (command, 1)


def test_a_trace_is_not_cut_by_functions(tmp_path: Path) -> None:
    trace = Path(__file__).resolve().parents[2] / "examples" / "magic_trace_sample.fxt.gz"
    out = tmp_path / "part.fxt"
    result = run_cli("convert", trace, out, "--function", "_start")
    assert result.exit_code == ExitCode.USAGE
    assert "cannot be selected by functions" in result.stderr
    assert not out.exists()
