"""The reference of public names, from the sources: nothing is imported, so that it is quick."""

# ruff: noqa: INP001 (a module beside the pages)

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import attrs

__all__ = ["EXPORTS", "PACKAGES", "Thing", "entry", "modules", "page_of", "public", "things"]

ROOT = Path(__file__).resolve().parents[1] / "fxframework"
PACKAGES = ("model", "io", "registry", "findings", "errors", "testing")
"""Packages and modules of fxframework whose names are documented."""
EXPORTS = ("kit", "wire")
"""Packages of which what they export is documented: a section of a page for each name."""
HIDDEN = {"fxframework.testing.contracts", "fxframework.testing.pytest_plugin"}
"""Whose names are those of `fxframework.testing`, or fixtures."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen
class Thing:
    """A public name, and where it is defined."""

    module: str
    """The module that it is imported from."""
    name: str
    node: ast.AST
    doc: str
    bases: tuple[str, ...] = ()


# --- Sources -------------------------------------------------------------------------------------


@functools.cache
def source(module: str) -> ast.Module:
    """A module's syntax tree."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text("utf-8"))


def modules(name: str) -> list[str]:
    """The modules of a package, or the module, that have public names."""
    path = ROOT / "fxframework" / name
    module_names = [f"fxframework.{name}"]
    if path.is_dir():
        for file in sorted(path.rglob("*.py")):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            if not name.endswith("__init__") and not name.startswith(tuple(HIDDEN)):
                module_names.append(name)
    return [name for name in module_names if public(name)]


def public(module: str) -> list[str]:
    """The names in a module's ``__all__``."""
    for node in source(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def things(module: str) -> Iterator[Thing]:
    """The public names of a module, but those that another documented module defines."""
    for name in public(module):
        home = defined(module, name)[0]
        if home == module or home.startswith(
            (*HIDDEN, *(f"fxframework.{package}." for package in EXPORTS))
        ):
            yield thing(module, name)


def thing(module: str, name: str) -> Thing:
    """A public name of a module, wherever it is defined."""
    _, node, doc = defined(module, name)
    bases: tuple[str, ...] = ()
    if isinstance(node, ast.ClassDef):
        bases = tuple(map(ast.unparse, node.bases))
    return Thing(module, name, node, doc, bases)


def defined(module: str, name: str) -> tuple[str, ast.AST, str]:
    """Where a name is defined, its node, and its documentation. KeyError where it is not found."""
    body = source(module).body
    for index, node in enumerate(body):
        if isinstance(node, ast.ClassDef | Function) and node.name == name:
            return module, node, ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in targets(node):
            return module, node, beside(body, index)
    for node in ast.walk(source(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return defined(node.module, alias.name)
                if alias.name == "*":
                    with contextlib.suppress(KeyError):
                        return defined(node.module, name)
    raise KeyError(f"{module}.{name}")


def targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """What an assignment binds."""
    bound = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = itertools.chain.from_iterable(map(ast.walk, bound))
    return [part.id for part in parts if isinstance(part, ast.Name)]


def beside(body: list[ast.stmt], index: int) -> str:
    """The text behind an assignment, which documents it."""
    next_statement = next(iter(body[index + 1 :]), None)
    if isinstance(next_statement, ast.Expr) and isinstance(next_statement.value, ast.Constant):
        value = next_statement.value.value
        if isinstance(value, str):
            return value
    return ""


# --- Classes -------------------------------------------------------------------------------------


@attrs.frozen
class Field:
    """A field of a class."""

    name: str
    type: str
    default: str
    doc: str


def lineage(thing: Thing) -> list[ast.ClassDef]:
    """A class, and its bases that are of the framework, nearest first."""
    assert isinstance(thing.node, ast.ClassDef)  # noqa: S101 (who asks knows)
    classes = [thing.node]
    module = defined(thing.module, thing.name)[0]
    for base in thing.bases:
        try:
            home, node, doc = defined(module, base)
        except (KeyError, FileNotFoundError):
            continue  # of the standard library
        if isinstance(node, ast.ClassDef):
            bases = tuple(map(ast.unparse, node.bases))
            classes += lineage(Thing(home, base, node, doc, bases))
    return classes


def shown(thing: Thing) -> list[ast.ClassDef]:
    """A class, and its bases that have no entry of their own."""
    return [node for node in lineage(thing) if node is thing.node or node.name not in names()]


@functools.cache
def names() -> frozenset[str]:
    """All names that have an entry."""
    exported = {
        name
        for package_name in PACKAGES
        for module in modules(package_name)
        for name in public(module)
    }
    return exported.union(*(public(f"fxframework.{package}") for package in EXPORTS))


def fields(thing: Thing) -> list[Field]:
    """The public fields of a class; one that overrides another without a word has its words."""
    field_by_name: dict[str, Field] = {}
    own = shown(thing)
    for node in lineage(thing):
        for field in declared(node):
            declared_earlier = field_by_name.get(field.name)
            if declared_earlier is None and node in own:
                field_by_name[field.name] = field
            elif declared_earlier is not None and not declared_earlier.doc:
                field_by_name[field.name] = attrs.evolve(declared_earlier, doc=field.doc)
    return list(field_by_name.values())


def declared(node: ast.ClassDef) -> Iterator[Field]:
    """What the body of a class declares."""
    for index, statement in enumerate(node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            kind = ast.unparse(statement.annotation)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            kind = ""
        else:
            continue
        if not name.startswith("_"):
            if kind.startswith("ClassVar["):
                kind = kind.removeprefix("ClassVar[").removesuffix("]")
            doc = beside(node.body, index) or helped(statement.value)
            yield Field(name, kind, default(statement.value), doc)


def helped(value: ast.expr | None) -> str:
    """What a limit, or a parameter of a step, says of itself."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in {"_limit", "parameter"}:
        keywords = {keyword.arg: keyword.value for keyword in value.keywords}
        help_text = keywords["help"] if "help" in keywords else value.args[1]
        text: str = ast.literal_eval(help_text)
        return f"{text[:1].upper()}{text[1:]}."
    return ""


def default(value: ast.expr | None) -> str:
    """The default of a field, as attrs takes it; the empty string where it must be given."""
    if value is None:
        return ""
    if not isinstance(value, ast.Call):
        return ast.unparse(value)
    arguments = [ast.unparse(argument) for argument in value.args]
    match ast.unparse(value.func):
        case "attrs.field" | "attr.ib":
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in value.keywords}
            if "default" in keywords:
                return keywords["default"]
            if "factory" in keywords:
                return f"{keywords['factory']}()"
            return ""
        case "parameter":
            return "".join(arguments[:1])
        case "_named":
            return f"its {ast.literal_eval(value.args[0])}"
        case "_suffixed":
            return f"its {ast.literal_eval(value.args[0])} as a suffix"
        case "_limit":
            return arguments[0]
        case _:
            return ast.unparse(value)


def members(thing: Thing) -> Iterator[tuple[Function, set[str]]]:
    """Public methods and properties, with their decorators."""
    names_seen = set()
    for function in (function for node in shown(thing) for function in node.body):
        if not isinstance(function, Function) or function.name in names_seen:
            continue
        marks = {ast.unparse(mark).partition("(")[0] for mark in function.decorator_list}
        setters = any(mark.endswith((".setter", ".default", ".validator")) for mark in marks)
        if function.name.startswith("_") or setters or "overload" in marks:
            continue
        names_seen.add(function.name)
        yield function, marks


def signature(node: Function, name: str = "", *, bound: bool = False) -> str:
    """A call, with types and defaults."""
    arguments = ast.parse(ast.unparse(node)).body[0].args  # type: ignore[attr-defined]
    if bound:
        (arguments.posonlyargs or arguments.args)[:1] = []
    call = f"{name or node.name}({ast.unparse(arguments)})"
    if node.returns is not None:
        call += f" -> {ast.unparse(node.returns)}"
    return call


# --- Markdown ------------------------------------------------------------------------------------


def page_of(name: str) -> str:
    """The reference of a package or a module."""
    sections = []
    for module in modules(name):
        entries_of_module = list(things(module))
        if entries_of_module:
            about = prose(ast.get_docstring(source(module)) or "")
            entries = [
                f"### `{entry_thing.name}`\n\n{thing_text(entry_thing)}"
                for entry_thing in entries_of_module
            ]
            sections.append(f"## `{module}`\n\n{about}\n\n" + "\n".join(entries))
    return "\n".join(sections)


def entry(package: str, name: str) -> str:
    """The reference of a name that a package exports."""
    return thing_text(thing(f"fxframework.{package}", name))


def thing_text(thing: Thing) -> str:
    """All that is public of a name."""
    node = thing.node
    if isinstance(node, Function):
        return f"{code(signature(node))}\n{prose(thing.doc)}\n"
    if isinstance(node, ast.ClassDef):
        return class_text(node, thing)
    assert isinstance(node, ast.Assign | ast.AnnAssign)  # noqa: S101 (what defined() gives)
    value = ""
    if node.value is not None:
        value = ast.unparse(node.value)
    if len(value) > 100:
        value = "..."
    return f"{code(f'{thing.name} = {value}')}\n{prose(thing.doc)}\n"


def class_text(node: ast.ClassDef, thing: Thing) -> str:
    """A class: what it is, how it is made, its fields, its members."""
    head = f"class {node.name}"
    if thing.bases:
        head += f"({', '.join(thing.bases)})"
    for member in node.body:
        if isinstance(member, Function) and member.name == "__init__":
            head += "\n" + signature(member, node.name, bound=True).removesuffix(" -> None")
    paragraphs = [code(head), prose(thing.doc)]
    rows = []
    for field in fields(thing):
        meaning = cell(field.doc) or "–"
        name = f"`{field.name}`"
        rows.append(f"| {name} | {coded(field.type)} | {coded(field.default)} | {meaning} |")
    if rows:
        paragraphs.append("| field | type | default | meaning |\n| --- | --- | --- | --- |\n"
                     + "\n".join(rows))  # fmt: skip
    tests = []
    for method, marks in members(thing):
        doc = ast.get_docstring(method) or ""
        if method.name.startswith("test_"):
            tests.append(f"| `{method.name}` | {cell(doc)} |")
            continue
        if {"property", "functools.cached_property"} & marks:
            title = method.name
            if method.returns is not None:
                title += f": {ast.unparse(method.returns)}"
        else:
            title = signature(method, bound="staticmethod" not in marks)
        paragraphs.append(f"**`{title}`**\n\n{prose(doc)}")
    if tests:
        paragraphs.append("| test | what must hold |\n| --- | --- |\n" + "\n".join(tests))
    return "\n\n".join(part.rstrip() for part in paragraphs if part) + "\n"


def code(text: str) -> str:
    """A block of Python."""
    return f"```python\n{text}\n```\n"


def coded(text: str) -> str:
    """Code within a cell of a table; a dash for none."""
    return f"`{clean(text)}`" if text else "–"


def clean(text: str) -> str:
    """Code within a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def cell(text: str) -> str:
    """Documentation within a cell of a table."""
    return clean(text.replace("``", "`"))


def prose(text: str) -> str:
    """A docstring as Markdown."""
    return re.sub(r"^:return:", "- gives", text.replace("``", "`"), flags=re.MULTILINE)
