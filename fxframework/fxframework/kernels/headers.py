"""Writes the headers of kernels: what C needs to know, from the annotations in the sources.

A kernel is a module that imports names of ``fxframework.kernels.annotations``. For each, this
module gives the header (``.pxd``) and the source that Cython compiles with it, in which constants
are literals of 64 bits, and attributes can be read and set from Python as in plain Python.

It needs the standard library only: it is used where fxframework is built.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from fxframework.kernels.constants import Constants, Statements
from fxframework.kernels.declarations import (
    DTYPES,
    FAILED,
    LARGE,
    MARKS,
    MOST,
    NUMBERS,
    OBJECT,
    PYTHON,
    REAL,
    RESULTS,
    VOID,
    WHOLE,
    Class,
    DeclarationError,
    Method,
    Type,
    number,
)
from fxframework.kernels.native import is_kernel

__all__ = ["DeclarationError", "Kernels", "Module"]

Edit = tuple[int, int, int, int, str]
"""Where a piece of a source begins and ends (line, byte of the line), and what replaces it."""
ANNOTATIONS = "fxframework.kernels.annotations"
"""The module of the names: importing it makes a module a kernel."""


class Kernels:
    """The kernels of some packages, and those that they use of others.

    ``roots`` maps top-level packages to their folders. Other packages are found as installed.
    """

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self.given = dict(roots)
        self.roots = dict(roots)
        self._others: dict[str, Path | None] = {}
        self._modules: dict[str, Module | None] = {}
        self.constants = Constants(self)

    def path_of(self, name: str) -> Path | None:
        """Return the path of a module's source, or None."""
        top, *inside = name.split(".")
        root = self.roots.get(top) or self._found(top)
        if root is None:
            return None
        path = root.joinpath(*inside)
        source = path / "__init__.py" if path.is_dir() else path.with_name(f"{path.name}.py")
        return source if source.is_file() else None

    def _found(self, top: str) -> Path | None:
        """Return the folder of an installed package."""
        if top not in self._others:
            try:
                spec = find_spec(top)
            except (ImportError, ValueError):
                spec = None
            places = list(spec.submodule_search_locations or ()) if spec is not None else []
            self._others[top] = Path(places[0]) if places else None
            if top == "fxframework" and places:
                self.roots[top] = Path(places[0])
        return self._others[top]

    def module(self, name: str) -> Module | None:
        """Return a kernel by name, or None if there is none. Raises DeclarationError."""
        if name not in self._modules:
            path = self.path_of(name)
            self._modules[name] = None
            if path is not None and is_kernel(path.read_bytes()):
                found = self._modules[name] = self.raw(name, path)
                found.declare()
        return self._modules[name]

    @functools.cache  # noqa: B019 (one object a build)
    def raw(self, name: str, path: Path) -> Module:
        """Return a kernel whose classes were not looked at."""
        return Module(self, name, path)

    def names(self) -> Iterator[str]:
        """Names of all kernels below the roots."""
        for top, folder in self.given.items():
            for path in sorted(folder.rglob("*.py")):
                if is_kernel(path.read_bytes()):
                    yield ".".join((top, *path.relative_to(folder).with_suffix("").parts))

    def class_of(self, owner: tuple[str, str]) -> Class | None:
        """Return a class of a kernel, or None."""
        module = self.module(owner[0])
        return module.classes.get(owner[1]) if module is not None else None

    def line(self, owner: Class | None) -> Iterator[Class]:
        """A class and those that it derives from."""
        while owner is not None:
            yield owner
            owner = self.class_of(owner.base) if owner.base is not None else None

    def attribute(self, kind: Type, name: str) -> Type | Method | None:
        """Return an attribute or C method of a class, its bases included."""
        for each in self.line(self.class_of(kind.owner)):
            if name in each.attributes:
                return each.attributes[name]
            if name in each.methods:
                return each.methods[name]
        return None


class Module:
    """A kernel: its classes and functions as C has them."""

    def __init__(self, kernels: Kernels, name: str, path: Path) -> None:
        self.kernels = kernels
        self.name = name
        self.path = path
        self.source = path.read_text("utf-8")
        try:
            self.tree = ast.parse(self.source)
        except SyntaxError as problem:
            raise DeclarationError(path, problem.lineno or 0, str(problem.msg)) from None
        self.imports: dict[str, tuple[str, str | None]] = {}
        """By name: the module, and the name in it, or None for the module itself."""
        self.types: dict[str, str] = {}
        """By name here: the name in ``annotations``."""
        self.assigned: dict[str, ast.stmt] = {}
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Method] = {}
        self._literals: dict[str, str] = {}
        for node in self.tree.body:
            self._enter(node)

    def error(self, node: ast.AST | int, text: str) -> DeclarationError:
        """Return an error about a line."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 0)
        return DeclarationError(self.path, line, text)

    def _enter(self, node: ast.stmt) -> None:
        """Enter what a statement of the module binds."""
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    name = each.asname or each.name
                    if each.name == "*":
                        raise self.error(node, f"import the names of {module} that are used")
                    if module == ANNOTATIONS:
                        self.types[name] = each.name
                    elif self.kernels.path_of(f"{module}.{each.name}") is not None:
                        self.imports[name] = (f"{module}.{each.name}", None)
                    else:
                        self.imports[name] = (module, each.name)
            case ast.Import(names=names):
                for each in names:
                    name = each.asname or each.name.partition(".")[0]
                    self.imports[name] = (each.name if each.asname else name, None)
            case ast.If(body=body, orelse=orelse):
                for inside in [*body, *orelse]:
                    self._enter(inside)
            case ast.Try(body=body):
                for inside in body:
                    self._enter(inside)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                self.assigned[name] = node
            case ast.Assign(targets=targets):
                for target in targets:
                    for part in ast.walk(target):
                        if isinstance(part, ast.Name):
                            self.assigned[part.id] = node
            case ast.AnnAssign(target=ast.Name(id=name)):
                self.assigned[name] = node

    # --- Declarations ---

    def declare(self) -> None:
        """Find classes and functions of C. Raises DeclarationError."""
        nodes = {each.name: each for each in self.tree.body if isinstance(each, ast.ClassDef)}
        for node in nodes.values():
            base = self._base(node)
            if base is not None or self._has_types(node):
                final = "final" in self._decorators(node)
                self.classes[node.name] = Class(node.name, node, base, final)
        for each in self.classes.values():
            self._declare_class(each)
        for part in self.tree.body:
            if isinstance(part, ast.FunctionDef) and self._is_c(part):
                self.functions[part.name] = self._method(part, None)

    def _base(self, node: ast.ClassDef) -> tuple[str, str] | None:
        """Return the kernel's class that a class derives from."""
        for base in node.bases:
            owner = self._class_named(base)
            if owner is not None:
                return owner
        return None

    def _class_named(self, node: ast.expr) -> tuple[str, str] | None:
        """Return the kernel's class that an expression names."""
        if not isinstance(node, ast.Name):
            return None
        if node.id in self.classes:
            return (self.name, node.id)
        module, name = self.imports.get(node.id, ("", None))
        if name is not None and self.kernels.class_of((module, name)) is not None:
            return (module, name)
        return None

    def _has_types(self, node: ast.ClassDef) -> bool:
        """Return whether a class has attributes or methods of C."""
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and part.value is None:
                if any(isinstance(n, ast.Name) and n.id in self.types
                       for n in ast.walk(self._unquoted(part.annotation))):  # fmt: skip
                    return True
            elif isinstance(part, ast.FunctionDef) and self._is_c(part):
                return True
        return False

    @staticmethod
    def _decorators(node: ast.ClassDef | ast.FunctionDef) -> set[str]:
        return {each.id for each in node.decorator_list if isinstance(each, ast.Name)}

    def _unquoted(self, node: ast.expr) -> ast.expr:
        """Return an annotation that may be written as a string."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                return ast.copy_location(ast.parse(node.value, mode="eval").body, node)
            except SyntaxError:
                raise self.error(node, f"{node.value!r} is not a type") from None
        return node

    def _is_c(self, node: ast.FunctionDef) -> bool:
        """Return whether a function is one of C: its result is a type of C."""
        if node.returns is None:
            return False
        result = self._unquoted(node.returns)
        if isinstance(result, ast.Subscript):
            result = result.value
        return isinstance(result, ast.Name) and self.types.get(result.id) in RESULTS

    def type_of(self, node: ast.expr, *, python: bool = False) -> Type:
        """Return the type that an annotation names. Raises DeclarationError.

        With ``python``, ``int``, ``bool`` and ``float`` are numbers of C.
        """
        node = self._unquoted(node)
        match node:
            case ast.Name(id=name) if name in self.types:
                known = self.types[name]
                if known in NUMBERS:
                    return number(NUMBERS[known])
                if known == "Bytes":
                    return Type("const unsigned char[::1]", "array")
                raise self.error(node, f"{name} is not the type of a value")
            case ast.Name(id=name) if python and name in PYTHON:
                return number(PYTHON[name])
            case ast.Subscript(value=ast.Name(id=name), slice=inside) if name in self.types:
                known = self.types[name]
                element = self.type_of(inside)
                if known not in {"Array", "Column", "View"} or element.c not in DTYPES:
                    raise self.error(node, f"{ast.unparse(node)} is not the type of a value")
                const = "const " if known == "View" else ""
                return Type(f"{const}{element.c}[::1]", "array")
            case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
                kind = self.type_of(left, python=python)
                if kind.kind in {"class", "object"}:
                    return kind
                raise self.error(node, "a number of C cannot be None")
            case ast.Name(id=name):
                owner = self._class_named(node)
                if owner is not None:
                    return Type(owner[1], "class", owner)
                known_names = (self.imports, self.assigned, vars(__import__("builtins")))
                if not any(name in each for each in known_names):
                    raise self.error(node, f"{name} is not defined")
                if name in {"list", "dict", "tuple", "bytes", "set"}:
                    return Type(name, "object")
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            return self.type_of(node.value)
        return OBJECT

    def _declare_class(self, owner: Class) -> None:
        """Find attributes and methods of a class."""
        inherited = list(self.kernels.line(owner))[1:]
        for node in owner.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
                if node.value is not None or "ClassVar" in ast.unparse(node.annotation):
                    continue
                if name in owner.attributes or any(name in each.attributes for each in inherited):
                    raise self.error(node, f"{owner.name}.{name} is declared twice")
                owner.attributes[name] = self.type_of(node.annotation)
                owner.lines[name] = node.lineno
                if isinstance(node.annotation, ast.Subscript):
                    given = node.annotation.value
                    if isinstance(given, ast.Name) and self.types.get(given.id) == "Column":
                        owner.columns.append(name)
            elif isinstance(node, ast.FunctionDef):
                if self._is_c(node):
                    owner.methods[node.name] = self._method(node, owner)
                elif marks := self._decorators(node) & MARKS & {*self.types.values()}:
                    text = f"{owner.name}.{node.name} is {min(marks)}, but its result is not of C"
                    raise self.error(node, f"{text} of C: status, void or a number")
        for name, method in owner.methods.items():
            before = next((each.methods[name] for each in inherited if name in each.methods), None)
            if before is None:
                continue
            if before.final:
                text = f"{name} of {owner.name} overrides a method that is not @virtual"
                raise self.error(method.node, text)
            if before.signature() != method.signature():
                text = f"{name} of {owner.name} has other types than the method that it overrides"
                raise self.error(method.node, text)
            method.overrides = True
        if not owner.final:
            for method in owner.methods.values():
                if "public" in method.marks and "with_gil" not in method.marks:
                    text = f"{method.name} is @public: make {owner.name} @final"
                    raise self.error(method.node, text)

    def _method(self, node: ast.FunctionDef, owner: Class | None) -> Method:
        """Return the declaration of a C method or function."""
        given = node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
            raise self.error(node, f"{node.name}: parameters of C are by position")
        parameters: list[tuple[str, Type | None, str | None]] = []
        defaults: list[ast.expr | None] = [None] * (len(given.args) - len(given.defaults))
        for each, default in zip(given.args, [*defaults, *given.defaults], strict=True):
            if owner is not None and not parameters:
                parameters.append((each.arg, None, None))
                continue
            kind = WHOLE
            if each.annotation is not None:
                kind = self.type_of(each.annotation, python=True)
            text = None if default is None else ast.unparse(default)
            parameters.append((each.arg, kind, text))
        assert node.returns is not None  # noqa: S101 (_is_c)
        result = self._unquoted(node.returns)
        raising = "noexcept"
        if isinstance(result, ast.Subscript):
            kind = self.type_of(result.slice)
            raising = f"except? {-1 if kind.c == 'bint' else FAILED}"
        else:
            known = self.types[result.id] if isinstance(result, ast.Name) else ""
            if known == "status":
                kind, raising = number("int"), "except -1"
            else:
                kind = VOID if known == "void" else number(NUMBERS[known])
        marks = frozenset(self.types[each] for each in self._decorators(node) if each in self.types)
        return Method(node.name, node, parameters, kind, raising, marks)

    # --- Methods ---

    @functools.cached_property
    def bodies(self) -> list[tuple[Class | None, Method]]:
        """All C methods and functions, with the types of their variables."""
        found: list[tuple[Class | None, Method]] = [
            (each, method) for each in self.classes.values() for method in each.methods.values()
        ]
        found += [(None, each) for each in self.functions.values() if "external" not in each.marks]
        for owner, method in found:
            Body(self, owner, method).declare()
        return found

    def constant(self, node: ast.expr) -> int | float | None:
        """Return the number that a name, or the name of a module's, stands for; or None."""
        value = self._value(node)
        return None if isinstance(value, list) else value

    def field(self, node: ast.expr) -> tuple[int, int] | None:
        """Return the lowest bit and the greatest value of the field of a word, or None."""
        value = self._value(node)
        if not isinstance(value, list):
            return None
        low, limit = value
        if limit > MOST:
            raise self.error(node, f"{ast.unparse(node)} is a whole word, not bits of one")
        return low, limit

    def _value(self, node: ast.expr) -> int | float | list[int] | None:
        """Return what a name in upper case, or such a name of a module's, stands for."""
        match node:
            case ast.Name(id=name) if name in self.assigned or name in self.imports:
                module = self.name
            case ast.Attribute(value=ast.Name(id=alias), attr=name):
                module, inside = self.imports.get(alias, ("", ""))
                if not module or inside is not None:
                    return None
            case _:
                return None
        if not name.isupper():
            return None
        value = self.kernels.constants.value(module, name)
        if isinstance(value, str):
            raise self.error(node, f"the value of {name} cannot be computed: {value}")
        return value

    def literal(self, label: str, value: float) -> str:
        """Return the name by which the header has a number."""
        if not isinstance(value, int):
            text = f'const double {{}} "{value!r}"'
        elif value > MOST:
            text = f'const unsigned long long {{}} "{value:#x}ULL"'
        elif value < -MOST:
            text = f'const long long {{}} "(-{MOST:#x}LL - 1)"'
        else:
            text = f'const long long {{}} "{f"({value}LL)" if value < 0 else f"{value}LL"}"'
        for name, other in self._literals.items():
            if other == text and name.startswith(f"_{label}"):
                return name
        name = f"_{label}"
        while name in self._literals or name in self.assigned or name in self.imports:
            name += "_"
        self._literals[name] = text
        return name

    def imported(self, name: str) -> Method | None:
        """Return the inline function of another module that a name stands for."""
        found, inside = self.imports.get(name, ("", None))
        other = self.kernels.module(found) if inside is not None else None
        return other.functions.get(inside or "") if other is not None and other.included else None

    # --- What Cython gets ---

    @functools.cached_property
    def staged(self) -> str:
        """The source that Cython compiles; lines stay, but for those behind each class."""
        marks = [mark for each in self.classes.values() for mark in each.node.decorator_list]
        marks += [mark for _, method in self.bodies for mark in method.node.decorator_list]
        edits: list[Edit] = [
            (mark.lineno, mark.col_offset - 1, *_span(mark)[2:], "")
            for mark in marks
            if isinstance(mark, ast.Name) and (mark.id in self.types or mark.id == "final")
        ]
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                left = [
                    each for each in node.names if self.imported(each.asname or each.name) is None
                ]
                if node.module == ANNOTATIONS or not left:
                    edits.append((*_span(node), "pass"))
                elif len(left) < len(node.names):
                    text = ast.unparse(ast.ImportFrom(node.module, left, node.level))
                    edits.append((*_span(node), text))
        for method in self.functions.values():
            if "external" in method.marks:
                mark = method.node.decorator_list[0]
                edits.append((mark.lineno, 0, *_span(method.node)[2:], "pass"))
        for owner, method in self.bodies:
            edits += Body(self, owner, method).edits()
        lines = [line.encode() for line in self.source.split("\n")]
        for first, start, last, end, text in sorted(edits, reverse=True):
            kept = b"\n" * (last - first)
            lines[first - 1] = lines[first - 1][:start] + text.encode() + kept + (
                lines[last - 1][end:]
            )  # fmt: skip
            del lines[first:last]
            if last > first:
                lines[first - 1 : first] = lines[first - 1].split(b"\n")
        for owner_ in sorted(self.classes.values(), key=lambda each: -each.node.lineno):
            lines.insert(owner_.node.end_lineno or 0, self._accessors(owner_).encode())
        return b"\n".join(lines).decode()

    def _accessors(self, owner: Class) -> str:
        """Return what makes the attributes of a class visible to Python, as lines."""
        names = [name for each in self.kernels.line(owner) for name in each.attributes]
        known = {each.name for each in owner.node.body if isinstance(each, ast.FunctionDef)}
        if not owner.attributes or "__getattr__" in known:
            return ""
        lines = []
        if owner.columns:
            columns = tuple(
                (each, DTYPES[owner.attributes[each].element.c]) for each in owner.columns
            )
            lines.append(f"COLUMNS = {columns!r}")
        lines.append("def __getattr__(self, _name):")
        for name in names:
            lines += [f"    if _name == {name!r}:", f"        return self.{name}"]
        lines += ["    raise AttributeError(_name)", "def __setattr__(self, _name, _value):"]
        for index, name in enumerate(names):
            lines.append(f"    {'el' if index else ''}if _name == {name!r}:")
            lines.append(f"        self.{name} = _value")
        lines += ["    else:", "        object.__setattr__(self, _name, _value)"]
        return "\n".join(f"    {line}" for line in lines)

    @functools.cached_property
    def uses(self) -> list[str]:
        """Names of the other kernels whose classes it knows."""
        found: dict[str, None] = {}
        for owner in self.classes.values():
            if owner.base is not None:
                found[owner.base[0]] = None
            types = [*owner.attributes.values()]
            types += [kind for each in owner.methods.values() for _, kind, _ in each.parameters
                      if kind is not None]  # fmt: skip
            found |= {kind.owner[0]: None for kind in types if kind.owner[0]}
        found |= {
            module: None
            for module, name in self.imports.values()
            if name is not None and self.kernels.class_of((module, name)) is not None
        }
        found |= {self.imports[name][0]: None for name in self.imports if self.imported(name)}
        found.pop(self.name, None)
        return sorted(found)

    @functools.cached_property
    def sources(self) -> list[str]:
        """Names of the modules of the framework and of its package that it was made from."""
        given = {
            module
            for module, name in self.imports.values()
            if self.kernels.path_of(module) is not None
            and (name.isupper() if name is not None else module.partition(".")[0] in self._near)
        }
        return sorted({*self.uses, *given} - {self.name})

    @property
    def _near(self) -> set[str]:
        """The packages whose modules may have its constants."""
        return {"fxframework", self.name.partition(".")[0]}

    @functools.cached_property
    def loops(self) -> bool:
        """Whether a C method has a loop."""
        bodies = [method.node for _, method in self.bodies]
        return any(isinstance(n, ast.While | ast.For) for body in bodies for n in ast.walk(body))

    @functools.cached_property
    def header(self) -> str:
        """The header. Raises DeclarationError."""
        _ = self.staged  # which enters the literals
        for owner in self.classes.values():
            self._check(owner)
        lines = ["cimport cython", "from libc.stdint cimport int64_t"]
        wanted = {
            (module, name): local
            for local, (module, name) in sorted(self.imports.items())
            if name is not None
            and (self.kernels.class_of((module, name)) or self.imported(local)) is not None
        }
        for (module, name), local in wanted.items():
            alias = "" if local == name else f" as {local}"
            lines.append(f"from {module} cimport {name}{alias}")
        if self._literals:
            lines += ["", "cdef extern from *:"]
            lines += [f"    {text.format(name)}" for name, text in self._literals.items()]
        lines += self._external()
        lines += [""] if self.classes else []
        lines += [f"cdef class {name}" for name in self.classes]
        for owner in self.classes.values():
            base = f"({owner.base[1]})" if owner.base is not None else ""
            lines += ["", *(["@cython.final"] if owner.final else [])]
            lines.append(f"cdef class {owner.name}{base}:")
            lines += [f"    cdef {kind.c} {name}" for name, kind in owner.attributes.items()]
            for method in owner.methods.values():
                lines += [f"    {line}" for line in self._declared(method, owner)]
            if not owner.attributes and not owner.methods:
                lines.append("    pass")
        for method in self.functions.values():
            if "external" in method.marks:
                continue
            lines += ["", *(self._included(method) if self.included else self._declared(method))]
        return "\n".join(lines) + "\n"

    def _external(self) -> list[str]:
        """Return the source of C that the module has, and the functions of it."""
        found = [each for each in self.functions.values() if "external" in each.marks]
        texts = [
            node.value.value
            for node in self.tree.body
            if isinstance(node, ast.AnnAssign)
            and self.types.get(ast.unparse(node.annotation)) == "c_source"
            and isinstance(node.value, ast.Constant)
        ]
        if not found and not texts:
            return []
        source = [line for text in texts for line in str(text).replace("\\", "\\\\").splitlines()]
        lines = [
            "",
            "cdef extern from *:",
            '    """',
            *(f"    {line}" for line in source),
            '    """',
        ]
        return [*lines, *(f"    {each.declaration()}" for each in found)]

    @functools.cached_property
    def included(self) -> bool:
        """Whether it is not compiled: kernels include its functions, which are all inline."""
        inline = [method for method in self.functions.values() if "inline" in method.marks]
        if inline and (self.classes or len(inline) < len(self.functions)):
            raise self.error(inline[0].node, "a module of inline functions has nothing else of C")
        return bool(inline)

    def _included(self, method: Method) -> list[str]:
        """Return an inline function, with its body, for the header."""
        body = method.node.body
        lines = self.staged.split("\n")[body[0].lineno - 1 : body[-1].end_lineno]
        types = [f"    cdef {kind.c} {name}" for name, kind in sorted(method.locals.items())]
        return [f"{method.declaration()}:", *types, *lines]

    @staticmethod
    def _declared(method: Method, owner: Class | None = None) -> list[str]:
        """Return the lines of a method in the header."""
        lines = []
        if owner is not None and not owner.final and method.final and "public" not in method.marks:
            lines.append("@cython.final")
        if method.locals:
            given = ", ".join(f'{name}="{kind.c}"' for name, kind in sorted(method.locals.items()))
            lines.append(f"@cython.locals({given})")
        return [*lines, method.declaration()]

    def _check(self, owner: Class) -> None:
        """Check that attributes are declared, and set in ``__init__``."""
        line = list(self.kernels.line(owner))
        declared = {name for each in line for name in each.attributes}
        methods = {each.name: each for each in owner.node.body if isinstance(each, ast.FunctionDef)}
        assigned: dict[str, set[str]] = {name: set() for name in methods}
        for name, node in methods.items():
            for part in ast.walk(node):
                match part:
                    case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Store()):
                        assigned[name].add(attr)
                        if attr not in declared:
                            text = f"{owner.name}.{attr} is not declared: annotate it in the class"
                            raise self.error(part, text)
        first: set[str] = set()
        waiting, seen = ["__init__"], set()
        while waiting:
            name = waiting.pop()
            if name in seen or name not in methods:
                continue
            seen.add(name)
            first |= assigned[name]
            waiting += [
                part.attr for part in ast.walk(methods[name]) if isinstance(part, ast.Attribute)
            ]
        for name in owner.attributes:
            if name not in first and name not in owner.columns:
                text = f"{owner.name}.{name} is not set in __init__"
                raise self.error(owner.lines[name], text)


def _span(node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    """Return where a node begins and ends."""
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


class Body:
    """The body of a C method: types of its variables, and what is replaced in it."""

    def __init__(self, module: Module, owner: Class | None, method: Method) -> None:
        self.module = module
        self.owner = owner
        self.method = method
        self.types: dict[str, Type | None] = {}
        for name, kind, _ in method.parameters:
            if kind is None and owner is not None:
                kind = Type(owner.name, "class", (module.name, owner.name))
            self.types[name] = kind
        self.given = {*self.types}
        self.values: dict[str, list[ast.expr | None]] = {}

    def declare(self) -> None:
        """Find the types of variables, and check calls. Raises DeclarationError."""
        self._collect()
        # A variable is a number until a value says otherwise: it may be computed from itself.
        for name in self.values:
            self.types.setdefault(name, WHOLE)
        annotated = {**self.types}
        for _ in range(len(self.values) + 1):
            before = dict(self.types)
            for name, values in self.values.items():
                if annotated[name] is WHOLE and name not in self.method.locals:
                    self.types[name] = self._join(values)
            if self.types == before:
                break
        for name in self.values:
            kind = self.types[name]
            if kind is not None and kind.kind in {"whole", "real"}:
                self.method.locals[name] = kind
        if not self.method.can_raise:
            self._check_calls()

    def _collect(self) -> None:
        """Collect the variables with their annotations and values."""
        for node in self._walk(self.method.node):
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=given, value=value):
                    kind = self.module.type_of(given, python=True)
                    if name in self.given:
                        raise self.module.error(node, f"{name} is a parameter already")
                    if self.method.locals.get(name, kind) != kind:
                        raise self.module.error(node, f"{name} is declared twice")
                    self.method.locals[name] = self.types[name] = kind
                    if value is not None:
                        self._assign(node.target, value)
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._assign(target, value)
                case ast.For(target=ast.Name() as target, iter=over):
                    counted = isinstance(over, ast.Call) and ast.unparse(over.func) == "range"
                    self._assign(target, ast.Constant(0) if counted else None)
                case ast.NamedExpr(target=target, value=value):
                    self._assign(target, value)
                case ast.Import() | ast.ImportFrom():
                    for each in node.names:
                        self.values.setdefault(each.asname or each.name, []).append(None)

    def _walk(self, node: ast.AST) -> Iterator[ast.AST]:
        """A node and those in it, without what only plain Python runs."""
        yield node
        for each in ast.iter_child_nodes(node):
            if not (isinstance(each, ast.If) and ast.unparse(each.test) == "not cython.compiled"):
                yield from self._walk(each)

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        """Enter a value of a variable."""
        if isinstance(target, ast.Tuple):
            parts: list[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
                parts = [*value.elts]
            for each, part in zip(target.elts, parts, strict=True):
                self._assign(each, part)
        elif isinstance(target, ast.Name) and target.id not in self.given:
            self.values.setdefault(target.id, []).append(value)

    def _join(self, values: Iterable[ast.expr | None]) -> Type | None:
        """Return the type of a variable that gets these values; None leaves it to Cython."""
        kinds = {self.kind(value) if value is not None else None for value in values}
        first = next(iter(kinds))
        if len(kinds) == 1 and first is not None and first.kind in {"array", "class"}:
            return first
        if not all(kind is not None and kind.kind in {"whole", "real"} for kind in kinds):
            return None
        return REAL if any(kind is not None and kind.kind == "real" for kind in kinds) else WHOLE

    def kind(self, node: ast.expr) -> Type | None:
        """Return the type of an expression, None if it is not one of C."""
        match node:
            case ast.Constant(value=bool() | int()):
                return WHOLE
            case ast.Constant(value=float()):
                return REAL
            case ast.Name(id=name) if name in self.types:
                return self.types[name]
            case ast.Name() | ast.Attribute() if (value := self._constant(node)) is not None:
                return REAL if isinstance(value, float) else WHOLE
            case ast.Attribute(value=inner, attr=name):
                owner = self.kind(inner)
                if owner is not None and owner.kind == "class":
                    found = self.module.kernels.attribute(owner, name)
                    return found if isinstance(found, Type) else None
            case ast.Subscript(value=inner):
                array = self.kind(inner)
                if array is not None and array.kind == "array":
                    return array if isinstance(node.slice, ast.Slice) else array.element
            case ast.BinOp(left=left, op=op, right=right):
                joined = self._join([left, right])
                return REAL if joined is not None and isinstance(op, ast.Div) else joined
            case ast.UnaryOp(op=ast.Not()) | ast.Compare():
                return WHOLE
            case ast.UnaryOp(operand=inner) | ast.NamedExpr(value=inner):
                return self.kind(inner)
            case ast.BoolOp(values=values):
                return self._join(values)
            case ast.IfExp(body=body, orelse=orelse):
                return self._join([body, orelse])
            case ast.Call(func=called, args=given):
                return self._result(called, given)
        return None

    def _result(self, called: ast.expr, given: list[ast.expr]) -> Type | None:
        """Return the type of a call."""
        match called:
            case ast.Attribute(value=named, attr="get" | "put") if self._field(named) is not None:
                return WHOLE
            case ast.Name(id="len" | "int" | "bool"):
                return WHOLE
            case ast.Name(id="float"):
                return REAL
            case ast.Name(id="min" | "max" | "abs"):
                return self._join(given)
        method = self.called(called)
        return method.result if method is not None else None

    def called(self, node: ast.expr) -> Method | None:
        """Return the C method or function that an expression names, or None."""
        match node:
            case ast.Attribute(value=inner, attr=name):
                owner = self.kind(inner)
                if owner is not None and owner.kind == "class":
                    found = self.module.kernels.attribute(owner, name)
                    return found if isinstance(found, Method) else None
            case ast.Name(id=name):
                return self.module.functions.get(name) or self.module.imported(name)
        return None

    def _check_calls(self) -> None:
        """Refuse calls that may raise in a method that cannot."""
        for node in ast.walk(self.method.node):
            if isinstance(node, ast.Call):
                called = self.called(node.func)
                if called is not None and called.can_raise:
                    text = f"{self.method.name} cannot raise and calls {called.name}, which may: "
                    raise self.module.error(node, f"{text}declare status or Fallible[…]")

    def _is_global(self, node: ast.expr) -> bool:
        """Return whether no variable has the name that an expression begins with."""
        inner = node.value if isinstance(node, ast.Attribute) else node
        return isinstance(inner, ast.Name) and inner.id not in self.types

    def _constant(self, node: ast.expr) -> int | float | None:
        """Return the number that a name stands for."""
        return self.module.constant(node) if self._is_global(node) else None

    def _field(self, node: ast.expr) -> tuple[int, int] | None:
        """Return the lowest bit and the greatest value of the field that a name stands for."""
        return self.module.field(node) if self._is_global(node) else None

    def _bits(self, node: ast.Call, low: int, limit: int) -> Iterator[Edit]:
        """What replaces ``FIELD.get(word)`` and ``FIELD.put(value)`` around their argument."""
        method, given = node.func, node.args[0]
        assert isinstance(method, ast.Attribute)  # noqa: S101
        # A number of C that is narrower than a word is widened first.
        zero = self.module.literal("0", 0)
        begin, end = f"(({zero} | (", f")) << {low})"
        if method.attr == "get":
            begin, end = "((", f") >> {low} & {self.module.literal(f'{limit:#x}', limit)})"
        first, start, last, stop = _span(given)
        yield (node.lineno, node.col_offset, first, start, begin)
        yield (last, stop, node.end_lineno or 0, node.end_col_offset or 0, end)

    def edits(self) -> Iterator[Edit]:
        """What is replaced: constants, fields, and literals that C would take as narrower."""
        self._collect()
        self.types |= dict.fromkeys(self.values, OBJECT)
        waiting: list[ast.AST] = list(self.method.node.body)
        while waiting:
            node = waiting.pop()
            match node:
                case ast.AnnAssign(target=target, annotation=given, value=value):
                    # The type is in the header.
                    if value is None:
                        yield (*_span(node), "pass")
                    else:
                        yield (*_span(target)[2:], *_span(given)[2:], "")
                    waiting += [value] if value is not None else []
                    continue
                case ast.Call(
                    func=ast.Attribute(value=named, attr="get" | "put"), args=[word], keywords=[]
                ) if (field := self._field(named)) is not None:
                    yield from self._bits(node, *field)
                    waiting.append(word)
                    continue
                case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                    value_ = self._constant(node)
                    if value_ is not None:
                        label = node.id if isinstance(node, ast.Name) else node.attr
                        yield (*_span(node), self.module.literal(label, value_))
                        continue
                case ast.BinOp(left=ast.Constant(value=int(shifted)) as left, op=ast.LShift()):
                    if not isinstance(node.right, ast.Constant):
                        yield (*_span(left), self.module.literal(f"{shifted}", shifted))
                        waiting.append(node.right)
                        continue
                case ast.Constant(value=int(value)) if value >= LARGE:
                    yield (*_span(node), self.module.literal(f"{value:#x}", value))
            waiting += ast.iter_child_nodes(node)


def answer() -> None:
    """Compute constants, in the process of a ``Constants``."""
    Statements(Kernels({})).answer()
