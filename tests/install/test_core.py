"""A core install: what needs no extra works, and what needs one says which."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import fxframework as fxf

from ..samples import one_of_each, samples
from .environments import Environment, Here, modules, optional_modules

CODE = re.compile(r"^error\[(FX\w\d{4})\]", re.MULTILINE)
INSTALL = re.compile(r"-m pip install \S")
TESTING = ("hypothesis", "pytest")
"""What the test kit needs: no extra, as whoever uses it has them."""
SAMPLE = "boot.fxt"
EMPTY = {
    "magic.fxt": bytes.fromhex("1000044678541600"),
    "header.xray": samples()["calls.xray"][1][:32],
}
"""Sound captures without an event."""
VERBS = {
    "batch": "print(fxf.batch('in', 'dataset', jobs=1).outcomes)",
    "compare": "print(fxf.compare('in/boot.fxt', 'in/boot.fxt'))",
    "convert": """
for kind in ("csv", "jsonl", "html", "pftrace", "fxt"):
    print(fxf.convert("in/boot.fxt", f"convert.{kind}").nbytes)
""",
    "diff": "print(fxf.diff('in/boot.fxt', 'in/boot.fxt').same)",
    "split": "print(fxf.split('in/boot.fxt', 'split.fxt', '2'))",
    "open": """
with fxf.open("in/boot.fxt") as capture:
    print(capture.summary().records, capture.row_counts())
    for name in capture.tables:
        table = capture.table(name)
        print(name, len(table), table.columns, [row for row in table][:1], table)
        print(sum(map(len, capture.batches(name))))
    print(capture.select(fxf.Selection(threads=("main",))).summary().rows)
    capture.export("open.csv", table="slices")
""",
    "salvage": "print(fxf.salvage('in/boot.fxt', 'salvage.fxt').count)",
    "sql": """
with fxf.open("in/boot.fxt") as capture:
    print(fxf.sql(capture, "select count(*) from slices"))
""",
    "verify": "print(fxf.verify('in/boot.fxt'))",
    "why": "print(fxf.why('in/boot.fxt', 'launch').slowest[0].parts)",
}
METHODS = {
    "frame": "capture.frame('slices')",
    "frame with arguments": "capture.frame('slices', args=True)",
    "to_arrow": "capture.table('slices').to_arrow()",
    "to_pandas": "capture.table('slices').to_pandas()",
    "to_polars": "capture.table('slices').to_polars()",
    "Arrow's C stream": "capture.table('slices').__arrow_c_stream__()",
    "an address": "fxf.open('https://localhost/a.fxt')",
}
NEEDS_AN_EXTRA = {"batch", "sql", *METHODS}
PROGRAM = """
import fxframework as fxf
try:
    {code}
except fxf.FxError as error:
    print(f"error[{{error.code}}]: {{error.message}}\\n{{error.remedy}}")
    raise SystemExit(int(error.exit_code))
"""
IMPORT = """
import importlib
import json
import sys
from fxframework.errors import FxError
found = {{}}
for name in {names}:
    try:
        importlib.import_module(name)
    except FxError as error:
        found[name] = [error.code, error.remedy]
    except ModuleNotFoundError as error:
        found[name] = ["missing", error.name]
print(json.dumps(found))
"""
OWN = re.compile(r"^(?: {{4}})?(?:import|from) ({})\b", re.MULTILINE)


@pytest.fixture(params=["core", "full"])
def installed(request: pytest.FixtureRequest) -> Environment:
    """A core install, and one with every extra."""
    environment: Environment = request.getfixturevalue(
        "core" if request.param == "core" else "here"
    )
    return environment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / SAMPLE).write_bytes(samples()[SAMPLE][1])
    return tmp_path


def test_a_core_install_has_nothing_of_an_extra(core: Environment, tmp_path: Path) -> None:
    optional = sorted(optional_modules())
    assert {"pyarrow", "duckdb", "polars", "pandas", "pytest", "hypothesis"} <= set(optional)
    program = f"""
import importlib.util
print([name for name in {optional} if importlib.util.find_spec(name)])
"""
    done = core.exec(program, tmp_path)
    assert done.stdout.strip() == "[]", done


def test_modules_that_need_an_extra_import_it_themselves(core: Environment, tmp_path: Path) -> None:
    """Any other module can be imported without it."""
    names = list(modules())
    assert len(names) > 200
    done = core.exec(IMPORT.format(names=names), tmp_path)
    assert done.status == 0, done.stderr
    optional = re.compile(OWN.pattern.format("|".join(sorted(optional_modules()))), re.MULTILINE)
    for name, (code, what) in json.loads(done.stdout).items():
        place = core.site / name.replace(".", "/")
        source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if name.startswith("fxframework.testing."):
            assert (code, what.split(".")[0]) in {("missing", each) for each in TESTING}, name
            continue
        assert code == "FXF0007", (name, what)
        assert INSTALL.search(what), name
        text = source.read_text("utf-8")
        assert optional.search(text) or "import code_columns" in text, name


def offered(installed: Environment, path: Path, *given: str) -> list[dict[str, str]]:
    """What `convert --list` offers for a file."""
    done = installed.fxf("convert", "--json", *given, "--list", path.name, folder=path.parent)
    assert done.status == 0, done.stderr
    targets: list[dict[str, str]] = json.loads(done.stdout)["targets"]
    assert targets
    return targets


def check_offers(installed: Environment, path: Path, *given: str) -> set[str]:
    """Whatever is offered is made; or it is marked, and refused as the mark says.

    Gives the targets that are made. With every extra installed, only those that need one are tried.
    """
    made = set()
    targets = offered(installed, path, *given)
    if isinstance(installed, Here):
        targets = [target for target in targets if target["extra"]]
    outs = [path.with_name(f"out-{target['to']}") for target in targets]
    commands = [
        ("convert", *given, path.name, "-t", target["to"], out.name)
        for target, out in zip(targets, outs, strict=True)
    ]
    all_done = installed.fxf_many(commands, folder=path.parent)
    for target, out, done in zip(targets, outs, all_done, strict=True):
        said = f"{target}: exit status {done.status}\n{done.stderr}"
        assert "Traceback" not in done.stderr, said
        if done.status in {0, 3}:
            assert not target["install"], said
            assert not target["empty"], said
            assert out.stat().st_size, said
            made.add(target["to"])
            continue
        assert not out.exists(), said
        if target["install"]:
            assert done.status == 5, said
            assert "error[FXF0007]" in done.stderr, said
            assert f"  = {target['install']}\n" in done.stderr, said
            continue
        assert done.status == 1, said
        assert "error[FXF0002]" in done.stderr, said
        assert done.stderr.count("\n  = ") >= 2, said
        if not target["empty"]:
            # What a count of rows does not say: all slices are asynchronous, or a log is empty.
            assert re.search("there are no calls|nothing to write", done.stderr), said
    return made


@pytest.mark.parametrize("name", one_of_each())
def test_every_output_that_is_offered(installed: Environment, name: str, tmp_path: Path) -> None:
    format, data = samples()[name]
    path = tmp_path / "capture.bin"
    path.write_bytes(data)
    made = check_offers(installed, path, *(("-f", format) if format else ()))
    assert made or isinstance(installed, Here)


@pytest.mark.parametrize("name", list(EMPTY))
def test_a_capture_without_events(core: Environment, name: str, tmp_path: Path) -> None:
    """One rule for every target, and for `cat`: nothing to write is exit status 1."""
    path = tmp_path / name
    path.write_bytes(EMPTY[name])
    made = check_offers(core, path)
    assert made <= {"records", fxf.open(path).format, "csv", "text", "json", "llvm-yaml"}
    done = core.fxf("cat", name, folder=tmp_path)
    assert done.status == ("text" not in made), done


def test_every_verb_is_tried() -> None:
    functions = {name for name in fxf.__all__ if name[0].islower()} - {"hookimpl"}
    assert VERBS.keys() == functions


@pytest.mark.parametrize("verb", [*VERBS, *METHODS])
def test_every_verb_of_python(installed: Environment, verb: str, folder: Path) -> None:
    code = VERBS.get(verb) or (
        f"with fxf.open('in/{SAMPLE}') as capture:\n    print({METHODS[verb]})"
    )
    indented = code.strip().replace("\n", "\n    ")
    done = installed.exec(PROGRAM.format(code=indented), folder)
    assert "Traceback" not in done.stderr, done.stderr
    if not isinstance(installed, Here):
        assert done.status == (5 if verb in NEEDS_AN_EXTRA else 0), done
    if done.status:
        assert done.stdout.splitlines()[-2].startswith("error["), done
        assert "error[FXF0000]" not in done.stdout
        assert (done.status == 5) == bool(INSTALL.search(done.stdout))
    else:
        assert done.stdout
