"""The documentation is complete, current, and its code runs."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

import fxframework as fxf
from fxframework.errors import Severity
from fxframework.registry import LIMIT_OPTIONS

from ..cases import cases
from ..properties import FEW

ROOT = Path(__file__).resolve().parents[2]
PYTHON_PAGES = (
    "docs/python.md",
    "docs/tables.md",
    "docs/analysis.md",
    "docs/compare.md",
    "docs/records.md",
    "docs/writing.md",
    "docs/writing-logs.md",
    "docs/writing-inspect.md",
    "docs/writing-xray.md",
    "docs/emulator.md",
    "docs/plugins/how-to.md",
    "docs/reference/plugin.md",
    "docs/reference/kit.md",
    "docs/reference/wire.md",
)
MADE_UP = """
__all__ = ["LIMIT", "Base", "Part", "two"]
LIMIT = 5
'''The most.'''

class Base:
    '''A base.'''
    a: int = 1
    '''First.'''
    b: list = attrs.field(factory=list)
    _secret = 1

class _Hidden(Base):
    hidden: int = 3
    '''Hidden.'''
    def run(self): ...
    def inherited(self): ...

class Part(_Hidden):
    a = 2
    def run(self, x: int = 1, *, y: str) -> None:
        '''Run.'''

def two(a: int) -> int:
    '''Two.'''
"""
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"<!-- generated: .*?<!-- end -->", re.DOTALL)
NEEDED = re.compile(r"^(?:import|from) (?P<package>pyarrow|duckdb|polars|pandas)\b", re.MULTILINE)


@functools.cache
def generate() -> ModuleType:
    """docs/generate.py, as it stands."""
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@functools.cache
def everything() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in generate().pages())


def blocks(name: str) -> Iterator[str]:
    """Python of a page, but for what is generated: signatures."""
    return (found["code"] for found in BLOCK.finditer(GENERATED.sub("", page(name))))


def section(text: str, title: str) -> str:
    """What stands under a heading of level 3, up to the next heading."""
    found = re.search(
        rf"^### {re.escape(title)}\n(.*?)(?=^#{{1,3}} |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"there is no section {title}"
    return found[1]


# --- Current -------------------------------------------------------------------------------------


def test_generated_parts_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"run `python docs/generate.py`: {done.stdout}{done.stderr}"


def test_every_part_stands_somewhere() -> None:
    wanted = {name for name, make in generate().parts().items() if make().count("\n") > 3}
    placed = re.findall(r"<!-- generated: (.*?) -->", everything())
    assert wanted <= set(placed)
    begun = re.findall(r"<!-- (?:generated|measured): ", everything())
    assert len(begun) == everything().count("<!-- end -->")


def test_check_finds_a_stale_part() -> None:
    makers = {"limits": lambda: "new"}
    old = "before <!-- generated: limits -->\nold\n<!-- end --> after"
    filled = generate().filled(old, makers)
    assert filled == "before <!-- generated: limits -->\n\nnew\n<!-- end --> after"
    assert generate().filled(filled, makers) == filled
    with pytest.raises(KeyError):
        generate().filled(old, {})


# --- Complete ------------------------------------------------------------------------------------


def test_every_hook_has_its_exact_arguments() -> None:
    text = page("docs/plugins/hooks.md")
    for name, hook in generate().hooks().items():
        assert f"def {generate().signature(hook)}: ..." in section(text, f"`{name}`")


def test_every_public_name_is_in_the_reference() -> None:
    """With what it is, and each of its fields and methods."""
    api = generate().loaded("docs_api", ROOT / "docs" / "api.py")
    for shown in api.PACKAGES:
        text = page(f"docs/reference/{shown}.md")
        for module in api.modules(shown):
            for name in importlib.import_module(module).__all__:
                home = api.defined(module, name)[0]
                assert f"### `{name}`\n" in text or home.split(".")[1] != shown, f"{module}.{name}"
    modules = [module for shown in api.PACKAGES for module in api.modules(shown)]
    found = [thing for module in modules for thing in api.things(module)]
    for package in api.EXPORTS:
        home = f"fxframework.{package}"
        found += [api.thing(home, name) for name in api.public(home)]
    for thing in found:
        assert thing.doc, f"{thing.module}.{thing.name} has no docstring"
        if isinstance(thing.node, ast.ClassDef):
            for field in api.fields(thing):
                assert field.doc, f"{thing.module}.{thing.name}.{field.name}: say what it means"
            for method, _ in api.members(thing):
                assert ast.get_docstring(method), f"{thing.name}.{method.name}"


@cases("shown", ["plugin", "kit", "wire"])
def test_every_name_for_plugins_has_an_example(shown: str) -> None:
    """That uses it."""
    module = importlib.import_module(f"fxframework.{shown}")
    parts = GENERATED.sub("", page(f"docs/reference/{shown}.md")).split("\n## ")[1:]
    for part in parts:
        name = part.partition("\n")[0].strip("`")
        code = BLOCK.search(part)
        assert code is not None, name
        assert re.search(rf"import .*\b{name}\b|\b{shown}\.{name}\b", code["code"]), name
        assert getattr(module, name) is not None


def test_the_reference_follows_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it finds in a module that is made up."""
    api = generate().loaded("docs_api_of_a_test", ROOT / "docs" / "api.py")
    package = tmp_path / "fxframework"
    package.mkdir()
    (package / "errors.py").write_text(MADE_UP)
    monkeypatch.setattr(api, "ROOT", tmp_path)
    monkeypatch.setattr(api, "PACKAGES", ("errors",))
    monkeypatch.setattr(api, "EXPORTS", ())
    assert api.modules("errors") == ["fxframework.errors"]
    limit, base, part, _ = api.things("fxframework.errors")
    assert (limit.name, limit.doc) == ("LIMIT", "The most.")
    assert [(f.name, f.default, f.doc) for f in api.fields(base)] == [
        ("a", "1", "First."), ("b", "list()", ""),
    ]  # fmt: skip
    assert [(f.name, f.default, f.doc) for f in api.fields(part)] == [
        ("a", "2", "First."), ("hidden", "3", "Hidden."),
    ]  # fmt: skip
    assert [method.name for method, _ in api.members(part)] == ["run", "inherited"]
    text = api.page_of("errors")
    assert "**`run(x: int=1, *, y: str) -> None`**" in text
    assert "```python\ntwo(a: int) -> int\n```" in text
    assert "_secret" not in text
    with pytest.raises(KeyError):
        api.defined("fxframework.errors", "no_such_name")


def test_every_command_and_every_option() -> None:
    text = page("docs/cli.md")
    everywhere = section(text, "`fxf`")
    for name, (command, _) in generate().commands(generate().bundled()).items():
        own = section(text, f"`{name}`")
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                if option.startswith("-"):
                    assert re.search(rf"(?<![\w-]){option}(?![\w-])", own + everywhere), option


def test_every_finding_of_every_catalogue() -> None:
    for format, rules in generate().catalogues(generate().bundled()).items():
        for code in rules:
            assert f"`{code}`" in everything(), f"{code} of {format}"


def test_every_table_and_every_column() -> None:
    standard = page("docs/tables.md")
    for name, schema in generate().STANDARD_TABLES.items():
        text = section(standard, f"`{name}`")
        for column in schema.all_columns:
            assert f"| `{column.name}` |" in text, f"{name}.{column.name}"
    host = generate().bundled()
    for format in host.readers:
        for name, schema in generate().schemas(host, format).items():
            text = page(f"docs/formats/{format}.md")
            assert f"`{name}`" in text
            known = generate().STANDARD_TABLES.get(name)
            for column in schema.all_columns:
                if known is None or column not in known.all_columns:
                    assert f"| `{column.name}` |" in text, f"{format}: {name}.{column.name}"


def test_every_option_and_every_limit() -> None:
    text = page("docs/cli.md")
    for whose, options in generate().options(generate().bundled()):
        for option in options:
            assert f"| {whose} | `{option.name}` |" in text
    for option in LIMIT_OPTIONS:
        assert f"| `{option.name}` | {generate()._default(option.default)} |" in text


def test_every_bundled_format_with_a_catalogue_has_a_page() -> None:
    host = generate().bundled()
    for format in generate().catalogues(host).keys() & host.readers.keys():
        assert f"<!-- generated: rules {format} -->" in page(f"docs/formats/{format}.md")


def test_every_kind_of_trace_record_has_an_example() -> None:
    from fx_trace import format as wire

    text = page("docs/records.md")
    kinds = {record.name.lower() for record in wire.RecordType}
    for kind in kinds | {"unknown", "padding", "damaged"}:
        assert f'"record": "{kind}"' in section(text, f"`{kind}`")
    for names in (wire.METADATA_NAMES, wire.SCHEDULING_NAMES, wire.PROFILER_NAMES):
        for name in names.values():
            assert f'"kind": "{name}"' in text
    for name in wire.EVENT_NAMES.values():
        assert f'"event": "{name}"' in text
    for name in wire.ARG_NAMES.values():
        assert f'"type": "{name}"' in text


def test_a_core_install_takes_what_the_page_says() -> None:
    page = (
        (ROOT / "docs" / "extras.md")
        .read_text("utf-8")
        .partition("## What a core install takes")[2]
    )
    listed = {name.lower() for name in re.findall(r"[A-Za-z-]{4,}", page)}
    waiting, needed = ["fxframework"], set()
    while waiting:
        for requirement in metadata.requires(waiting.pop()) or ():
            name = re.split(r"[^A-Za-z0-9_-]", requirement)[0].lower().replace("_", "-")
            rest = requirement.partition(";")[2]
            if name not in needed and "extra" not in rest and "python_version <" not in rest:
                needed.add(name)
                waiting.append(name)
    assert needed
    assert needed <= listed


def test_pages_name_no_machine() -> None:
    text = everything() + page("README.md")
    for found in re.findall(r"/(?:home|work|tmp|Users|root)/[\w/.-]*", text):
        pytest.fail(f"a path of somebody's machine: {found}")


def test_links_between_pages_lead_somewhere() -> None:
    for path in generate().pages():
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


# --- Its code runs -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, which programs may change."""
    return Path(shutil.copytree(ROOT / "examples", tmp_path_factory.mktemp("copy") / "examples"))


@cases(
    ("name", "number"),
    [(name, number) for name in PYTHON_PAGES for number, _ in enumerate(blocks(name))],
)
def test_python_blocks_run(
    name: str, number: int, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes seconds: every program of the pages runs in a folder of its own."""
    code = list(blocks(name))[number]
    for found in NEEDED.finditer(code):
        pytest.importorskip(found["package"], reason=f"{found['package']} is not installed")
    (tmp_path / "examples").symlink_to(examples)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["block"])
    block = compile(code, f"{name}, block {number}", "exec", dont_inherit=True)
    exec(block, {"__name__": "__main__"})
    made_here = ("*.fxt*", "*.fxlog", "*.fxring", "*.xray")
    for made in (path for pattern in made_here for path in tmp_path.glob(pattern)):
        with fxf.open(made) as capture:
            capture.scan()
            worst = capture.diagnostics.worst
            assert worst is None or worst < Severity.WARNING, made.name


@pytest.mark.slow
def test_the_plugin_of_the_page_keeps_the_contracts(tmp_path: Path) -> None:
    """Takes seconds, as contracts do: the page is what authors copy."""
    package = tmp_path / "fx_beats"
    package.mkdir()
    (package / "__init__.py").write_text('"""Beats."""\n')
    for code in blocks("docs/plugins/by-hand.md"):
        first = code.partition("\n")[0]
        if first.startswith("# ") and first.endswith(".py"):
            (tmp_path / first.removeprefix("# ")).write_text(code)
    (tmp_path / "few.py").write_text(FEW)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environ.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "few", "-p", "no:cacheprovider",
         "test_beats.py"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    seen = subprocess.run(
        [sys.executable, "-c", "import fx_beats.watch as w; print(w.fx_diagnostic.__name__)"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert seen.stdout.strip() == "fx_diagnostic", seen.stderr
