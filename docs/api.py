"""The reference of public names, from the sources: nothing is imported, so that it is quick."""

# ruff: noqa: INP001 (a module beside the pages)

from __future__ import annotations

import ast
import functools
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
    found = [f"fxframework.{name}"]
    if path.is_dir():
        for file in sorted(path.rglob("*.py")):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            if not name.endswith("__init__") and not name.startswith(tuple(HIDDEN)):
                found.append(name)
    return [name for name in found if public(name)]


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
        if home == module or home.startswith((*HIDDEN, *(f"fxframework.{x}." for x in EXPORTS))):
            yield thing(module, name)


def thing(module: str, name: str) -> Thing:
    """A public name of a module, wherever it is defined."""
    _, node, doc = defined(module, name)
    bases = tuple(map(ast.unparse, node.bases)) if isinstance(node, ast.ClassDef) else ()
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
    raise KeyError(f"{module}.{name}")


def targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """What an assignment binds."""
    found = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each.id for target in found for each in ast.walk(target) if isinstance(each, ast.Name)]


def beside(body: list[ast.stmt], index: int) -> str:
    """The text behind an assignment, which documents it."""
    after = body[index + 1] if index + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        value = after.value.value
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
    found = [thing.node]
    module = defined(thing.module, thing.name)[0]
    for base in thing.bases:
        try:
            home, node, doc = defined(module, base)
        except (KeyError, FileNotFoundError):
            continue  # of the standard library
        if isinstance(node, ast.ClassDef):
            bases = tuple(map(ast.unparse, node.bases))
            found += lineage(Thing(home, base, node, doc, bases))
    return found


def shown(thing: Thing) -> list[ast.ClassDef]:
    """A class, and its bases that have no entry of their own."""
    return [node for node in lineage(thing) if node is thing.node or node.name not in names()]


@functools.cache
def names() -> frozenset[str]:
    """All names that have an entry."""
    found = {name for each in PACKAGES for module in modules(each) for name in public(module)}
    return found.union(*(public(f"fxframework.{package}") for package in EXPORTS))


def fields(thing: Thing) -> list[Field]:
    """The public fields of a class; one that overrides another without a word has its words."""
    found: dict[str, Field] = {}
    own = shown(thing)
    for node in lineage(thing):
        for field in declared(node):
            known = found.get(field.name)
            if known is None and node in own:
                found[field.name] = field
            elif known is not None and not known.doc:
                found[field.name] = attrs.evolve(known, doc=field.doc)
    return list(found.values())


def declared(node: ast.ClassDef) -> Iterator[Field]:
    """What the body of a class declares."""
    for index, each in enumerate(node.body):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            name, kind, value = each.target.id, ast.unparse(each.annotation), each.value
        elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            name, kind, value = each.targets[0].id, "", each.value
        else:
            continue
        if not name.startswith("_"):
            if kind.startswith("ClassVar["):
                kind = kind.removeprefix("ClassVar[").removesuffix("]")
            doc = beside(node.body, index) or helped(value)
            yield Field(name, kind, "" if value is None else default(value), doc)


def helped(value: ast.expr | None) -> str:
    """What a limit, or a parameter of a step, says of itself."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in {"_limit", "parameter"}:
        given = {each.arg: each.value for each in value.keywords}
        said = given["help"] if "help" in given else value.args[1]
        text: str = ast.literal_eval(said)
        return f"{text[:1].upper()}{text[1:]}."
    return ""


def default(value: ast.expr) -> str:
    """The default of a field, as attrs takes it; the empty string where it must be given."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in {"attrs.field", "attr.ib"}:
        given = {each.arg: each.value for each in value.keywords}
        if "default" in given:
            return ast.unparse(given["default"])
        return f"{ast.unparse(given['factory'])}()" if "factory" in given else ""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "parameter":
        return ast.unparse(value.args[0]) if value.args else ""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in {"_named", "_suffixed"}:
        of = ast.literal_eval(value.args[0])
        return f"its {of}" if ast.unparse(value.func) == "_named" else f"its {of} as a suffix"
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "_limit":
        return ast.unparse(value.args[0])
    return ast.unparse(value)


def members(thing: Thing) -> Iterator[tuple[Function, set[str]]]:
    """Public methods and properties, with their decorators."""
    seen = set()
    for each in (each for node in shown(thing) for each in node.body):
        if not isinstance(each, Function) or each.name in seen:
            continue
        marks = {ast.unparse(mark).partition("(")[0] for mark in each.decorator_list}
        setters = any(mark.endswith((".setter", ".default", ".validator")) for mark in marks)
        if each.name.startswith("_") or setters or "overload" in marks:
            continue
        seen.add(each.name)
        yield each, marks


def signature(node: Function, name: str = "", *, bound: bool = False) -> str:
    """A call, with types and defaults."""
    arguments = ast.parse(ast.unparse(node)).body[0].args  # type: ignore[attr-defined]
    if bound:
        (arguments.posonlyargs or arguments.args)[:1] = []
    gives = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"{name or node.name}({ast.unparse(arguments)}){gives}"


# --- Markdown ------------------------------------------------------------------------------------


def page_of(name: str) -> str:
    """The reference of a package or a module."""
    parts = []
    for module in modules(name):
        said = list(things(module))
        if said:
            about = prose(ast.get_docstring(source(module)) or "")
            entries = [f"### `{thing.name}`\n\n{thing_text(thing)}" for thing in said]
            parts.append(f"## `{module}`\n\n{about}\n\n" + "\n".join(entries))
    return "\n".join(parts)


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
    value = "" if node.value is None else ast.unparse(node.value)
    shown = f"{thing.name} = {value}" if len(value) <= 100 else f"{thing.name} = ..."
    return f"{code(shown)}\n{prose(thing.doc)}\n"


def class_text(node: ast.ClassDef, thing: Thing) -> str:
    """A class: what it is, how it is made, its fields, its members."""
    made = next((each for each in node.body if isinstance(each, Function)
                 and each.name == "__init__"), None)  # fmt: skip
    bases = f"({', '.join(thing.bases)})" if thing.bases else ""
    head = f"class {node.name}{bases}"
    if made is not None:
        head += "\n" + signature(made, node.name, bound=True).removesuffix(" -> None")
    parts = [code(head), prose(thing.doc)]
    rows = [
        f"| `{each.name}` | {coded(each.type)} | {coded(each.default)} | {cell(each.doc) or '–'} |"
        for each in fields(thing)
    ]
    if rows:
        parts.append("| field | type | default | meaning |\n| --- | --- | --- | --- |\n"
                     + "\n".join(rows))  # fmt: skip
    tests = []
    for each, marks in members(thing):
        doc = ast.get_docstring(each) or ""
        if each.name.startswith("test_"):
            tests.append(f"| `{each.name}` | {cell(doc)} |")
        elif {"property", "functools.cached_property"} & marks:
            gives = "" if each.returns is None else f": {ast.unparse(each.returns)}"
            parts.append(f"**`{each.name}{gives}`**\n\n{prose(doc)}")
        else:
            bound = "staticmethod" not in marks
            parts.append(f"**`{signature(each, bound=bound)}`**\n\n{prose(doc)}")
    if tests:
        parts.append("| test | what must hold |\n| --- | --- |\n" + "\n".join(tests))
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


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
