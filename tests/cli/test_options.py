"""Every option that help lists works, in every command."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import click
import pytest

from fxframework.cli.app import HELP, Fxf
from fxframework.cli.render import Screen
from fxframework.cli.session import Session
from fxframework.errors import ExitCode
from fxframework.host import default_host
from fxframework.testing.cli import run_cli

from ..cases import cases

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FILES = {
    "boot.fxt": EXAMPLES / "scenarios" / "boot.golden" / "boot.fxt",
    **{
        f"boot-{number}.fxt": EXAMPLES / "scenarios" / "boot.golden" / "boot.fxt"
        for number in (2, 3, 4)
    },
    "busy.inspect": EXAMPLES / "scenarios" / "inspect.golden" / "busy.inspect",
    "logs.fxlog": EXAMPLES / "scenarios" / "logs.golden" / "logs.fxlog",
    "spellcheck.xray": EXAMPLES / "xray" / "spellcheck.xray",
    "spellcheck.csv": EXAMPLES / "xray" / "spellcheck.csv",
    "logs.toml": EXAMPLES / "scenarios" / "logs.toml",
}
ARGUMENTS = {
    "info": ["boot.fxt"],
    "cat": ["boot.fxt"],
    "convert": ["boot.fxt", "out.json"],
    "verify": ["boot.fxt"],
    "diff": ["boot.fxt", "boot.fxt"],
    "why": ["boot.fxt", "bind"],
    "account": ["spellcheck.xray"],
    "stack": ["spellcheck.xray"],
    "graph": ["spellcheck.xray"],
    "odd": ["boot.fxt", "boot-2.fxt", "boot-3.fxt", "boot-4.fxt"],
    "compare": ["spellcheck.xray", "--with", "spellcheck.xray"],
    "watch": ["--count", "1", "busy.inspect"],
    "salvage": ["boot.fxt", "out.fxt"],
    "explain": ["FXF0001"],
    "replay": ["logs.toml", "--out", "replayed"],
    "record": ["boot.fxt", "--out", "recorded.toml"],
    "plugins": [],
    "doctor": [],
    "help": ["verify"],
    "sql": ["boot.fxt", "select count(*) from slices"],
    "selectors": ["busy.inspect"],
    "instr-map": ["spellcheck.csv", "--format", "csv"],
    "batch": ["boot.fxt", "--out", "dataset", "--jobs", "1"],
    "new-plugin": ["format", "beats"],
}
"""What each command is called with beside the option."""
INPUTS = {
    "--severity": "logs.fxlog", "--tag": "logs.fxlog", "--exclude-tags": "logs.fxlog",
    "--component": "logs.fxlog", "--filter": "logs.fxlog", "--exclude": "logs.fxlog",
    "--kernel": "logs.fxlog", "--pid": "logs.fxlog", "--tid": "logs.fxlog",
    "--case-sensitive": "logs.fxlog", "--function": "spellcheck.xray",
    "--exclude-function": "spellcheck.xray",
    "--instr-map": "spellcheck.xray", "--show": "boot.fxt",
}  # fmt: skip
"""Options that need another input."""
VALUES = {
    "--check": "replay",
    "--jobs": "1", "--engine": "pool", "--host": "lab", "--into": ".",
    "--of-a": "max_findings=20", "--of-b": "max_findings=20",
    "--format": None, "--option": "max_findings=20", "--since": "1us", "--until": "30ms",
    "--color": "never", "--max-time": "600", "--max-memory": "20G", "--max-output": "20G",
    "--thread": "*", "--process": "*", "--category": "*", "--function": "*",
    "--exclude-function": "*", "--min-duration": "1ns", "--split": "2",
    "--severity": "info", "--tag": "net", "--exclude-tags": "net", "--component": "core",
    "--filter": "a", "--exclude": "zzz", "--pid": "1", "--tid": "1", "--to": "json",
    "--table": "counters", "--instr-map": "spellcheck.csv", "--by": None, "--sort": "sum",
    "--sort-order": "asc", "--top": "3", "--out": "out.file", "--show": "2", "--interval": "0.01",
    "--count": "1", "--seed": "7", "--junit": "junit.xml", "--size": "1", "--runs": "1",
    "--edge-label": "sum", "--vertex-label": "count", "--edge-color": "sum",
    "--vertex-color": "sum", "--stack": "0", "--aggregate": "time", "--depth": "3",
    "--aggregation": "time", "--figure": "sum", "--min-percent": "1",
    "--align": "boot.fxt:offset=5",
    "--html": "odd.html",
    "--with": "spellcheck.xray", "--with-option": "instr_map=spellcheck.csv",
    "--with-map": "spellcheck.csv", "--threshold": "7", "--fail-on": "slower,more",
    "--widths": "before", "--anchor": "0", "--plugin": "note.py",
}  # fmt: skip
"""Values of options that take one; None: the first of the choices, or the command's own."""
OWN = {
    ("diff", "--by"): "record", ("account", "--by"): "name", ("stack", "--by"): "name",
    ("graph", "--by"): "name", ("compare", "--by"): "name", ("compare", "--out"): "out.html",
    ("instr-map", "--format"): "csv", ("sql", "--out"): "out.csv", ("replay", "--format"): "log",
}  # fmt: skip
WITH = {"--max-memory", "--max-output"}
"""Options that are given together with `--max-time`."""
FOREVER = {"--follow"}
"""Options that never end by themselves; they have tests of their own."""
ELSEWHERE = {
    ("odd", "--instr-map"),
    ("odd", "--function"),
    ("odd", "--exclude-function"),
    ("why", "--instr-map"),
    ("why", "--function"),
    ("why", "--exclude-function"),
}
"""Options that take no file, four files of one format, or (in ``test_why``) another name."""
SERVERS = {"view"}
"""Commands that wait for a browser: in ``test_view``."""


@functools.cache
def commands() -> dict[str, click.Command]:
    session = Session(Screen(), default_host())
    group = Fxf(name="fxf", help=HELP)
    with group.make_context("fxf", ["plugins"], obj=session) as context:
        found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def listed(command: click.Command) -> list[click.Option]:
    """The options that a command's help lists."""
    session = Session(Screen(), default_host())
    context = click.Context(command, obj=session)
    shown = [
        param
        for param in command.get_params(context)
        if isinstance(param, click.Option) and param.get_help_record(context)
    ]
    text = command.get_help(context)
    for param in shown:
        assert max(param.opts, key=len) in text
    return shown


CASES = [
    (name, max(option.opts, key=len))
    for name, command in commands().items()
    for option in listed(command)
    if name not in SERVERS and (name, max(option.opts, key=len)) not in ELSEWHERE
    if option.opts[-1] not in {"--help", "--version"} and not (FOREVER | WITH) & set(option.opts)
]


def test_o_is_an_option_of_readers_and_exporters_in_every_command() -> None:
    meant = {
        name: [option.opts for option in listed(command) if "-o" in option.opts]
        for name, command in commands().items()
    }
    assert meant == {name: [["-o", "--option"]] for name in meant}


def test_help_is_that_of_the_command() -> None:
    whole, short = run_cli("help"), run_cli("--help")
    assert (whole.exit_code, whole.text) == (ExitCode.OK, short.text)
    for name in commands():
        assert run_cli("help", name).text == run_cli(name, "--help").text
    unknown = run_cli("help", "verfy")
    assert unknown.exit_code == ExitCode.USAGE
    assert "did you mean 'verify'" in unknown.stderr


def test_every_command_has_arguments_here() -> None:
    assert commands().keys() == ARGUMENTS.keys() | SERVERS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("options")
    for name, source in FILES.items():
        shutil.copy(source, made / name)
    (made / "note.py").write_text(
        "import fxframework\n@fxframework.hookimpl\ndef fx_readers():\n    return []\n"
    )
    shutil.copytree(EXAMPLES / "scenarios" / "logs.golden", made / "logs.golden")
    return made


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES}))
def test_every_listed_option_works(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    if name == "sql":
        pytest.importorskip("duckdb", reason="duckdb is not installed")

    @cases("flag", [flag for command, flag in CASES if command == name])
    def works(flag: str) -> None:
        option_works(name, flag)

    works()


def option_works(name: str, flag: str) -> None:
    command = commands()[name]
    option = next(one for one in listed(command) if flag in one.opts)
    arguments = [INPUTS.get(flag, word) if word in FILES else word for word in ARGUMENTS[name]]
    if (name, flag) == ("convert", "--table"):  # for exporters that write one
        arguments = ["boot.fxt", "out.csv"]
    if flag == "--align":  # for exporters that make a timeline
        arguments = ["boot.fxt", "out.pftrace"]
    value: list[str] = []
    if not (option.is_flag or option.count):
        given = OWN.get((name, flag), VALUES.get(flag))
        if given is None and isinstance(option.type, click.Choice):
            given = str(next(iter(option.type.choices)))
        if given is None and flag == "--format":
            inputs = [word for word in arguments if word in FILES] or ["boot.fxt"]
            with default_host().open(inputs[0]) as capture:
                given = capture.format
        assert given is not None, f"give a value for {flag} of {name}"
        value = [given]
    if flag == "--max-time":
        value += [word for other in sorted(WITH) for word in (other, VALUES[other] or "")]
    if name == "new-plugin":  # which replaces nothing
        arguments[1] += flag.strip("-").replace("-", "")
    force = (
        ["--force"] if name in {"batch", "convert", "salvage", "replay", "record", "sql"} else []
    )
    done = run_cli(name, *arguments, *force, flag, *value)
    assert done.exit_code != ExitCode.USAGE, done.stderr
    assert "FXF0000" not in done.stderr
    if flag == "--json" and name != "watch":  # which prints a line for each change
        assert done.stdout.lstrip()[:1] in {b"{", b"["}, done.stdout[:200]


def test_what_help_does_not_list_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = run_cli("info", "boot.fxt", "--since", "1s")
    assert done.exit_code == ExitCode.USAGE
    assert "processes whole captures" in done.stderr


@cases(
    ("arguments", "message"),
    [
        (("watch", "--interval", "nan", "busy.inspect"), "'nan' is not a number"),
        (("watch", "--interval", "1e300", "busy.inspect"), "is not in the range"),
        (("compare", "--threshold", "nan", "boot.fxt", "boot-2.fxt"), "'nan' is not a number"),
        (("stack", "--min-percent", "nan", "boot.fxt"), "'nan' is not a number"),
        (("-f", "trace:boot.fxt", "boot.fxt"), "-f takes the name of a format"),
    ],
)
def test_what_an_option_cannot_be_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(folder)
    done = run_cli(*arguments)
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr.startswith("error[FXF0005]: ")
    assert message in done.stderr
