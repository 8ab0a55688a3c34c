"""C++ and Rust names as their source has them, spelled as LLVM spells them.

A library reads mangled C++ names; local names, lambdas and `char8_t` are added to it here, and what
neither knows (expressions) stays mangled. Its own spelling differs from LLVM's in constructors, in
literals of templates and in where the qualifiers of a member function are, so the spelling is ours.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from fx_xray.read.rust_names import demangle_rust

__all__ = ["demangle"]

MANGLED: Final = ("_Z", "__Z")
RUST: Final = "_R"
LONGEST_NAME: Final = 1 << 13
"""Characters of a mangled name that is looked at."""
LONGEST_RESULT: Final = 1 << 16
STEPS: Final = 100_000
"""Calls that the library may take for one name. Real names take hundreds to some ten thousand; by
substitutions that double themselves, a hundred characters could take for ever."""

_BUILTINS: Final[Mapping[str, str]] = {
    "__float80": "long double",
    "_Float16": "half",
    "_Decimal32": "decimal32",
    "_Decimal64": "decimal64",
    "_Decimal128": "decimal128",
}
_SUFFIXES: Final[Mapping[str, str]] = {
    "int": "",
    "unsigned int": "u",
    "long": "l",
    "unsigned long": "ul",
    "long long": "ll",
    "unsigned long long": "ull",
}
"""What LLVM writes behind a number of such a type; before others it writes the type."""
_PREFIXED: Final[Mapping[str, str]] = {
    "vtable": "vtable for ",
    "vtt": "VTT for ",
    "typeinfo": "typeinfo for ",
    "typeinfo_name": "typeinfo name for ",
    "nonvirt_thunk": "non-virtual thunk to ",
    "virt_thunk": "virtual thunk to ",
    "guard_variable": "guard variable for ",
}
_ABBREVIATED: Final = ("allocator", "basic_string", "string", "istream", "ostream", "iostream")
"""What the ABI has two letters for, in `std`."""
_SHORT: Final = tuple(f"std::{name}" for name in _ABBREVIATED[2:])
_QUALIFIERS: Final = ("const", "volatile", "restrict")
_PACKS: Final = ("tpl_arg_pack", "tpl_args")
_REFERENCES: Final = ("lvalue", "rvalue")


class _UnknownFormError(Exception):
    """A part of a name that is not spelled here."""


class _TooLongError(Exception):
    """A name that would take too long."""


@lru_cache(maxsize=1 << 14)
def demangle(name: str) -> str:
    """The name as in its source; the name itself where it is not mangled, or not understood."""
    if not name.startswith((*MANGLED, RUST)) or len(name) > LONGEST_NAME:
        return name
    mangled, dot, suffix = name.partition(".")
    try:
        shown = demangle_rust(mangled) if name.startswith(RUST) else _within_allowance(mangled)
    except Exception:  # noqa: BLE001 (the library raises what it likes for names it cannot read)
        return name
    return f"{shown} (.{suffix})" if dot else shown


def _within_allowance(mangled: str) -> str:
    """The name, in so many calls. Raises something for one that cannot be spelled."""
    before = sys.getprofile()
    if before is not None and len(mangled) > 1 << 8:
        # Somebody counts already.
        raise _TooLongError
    left = STEPS

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooLongError

    if before is None:
        sys.setprofile(count)
    try:
        return _spell(_parse(mangled))
    finally:
        if before is None:
            sys.setprofile(None)


def _parse(mangled: str) -> Any:
    # Not its `parse`, which goes on to put packs of arguments in their places, without `&&`.
    cursor = _cursor()(mangled)
    tree = _library()._parse_mangled_name(cursor)  # noqa: SLF001
    if tree is None or not cursor.at_end():
        raise _UnknownFormError
    return tree


@lru_cache(maxsize=1)
def _library() -> Any:
    """An instance of the library that is ours alone, with what it cannot read added."""
    spec = importlib.util.find_spec("itanium_demangler")
    assert spec is not None  # noqa: S101 (it is installed with us)
    assert spec.loader is not None  # noqa: S101 (as above)
    library: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    parse_name, parse_type = library._parse_name, library._parse_type  # noqa: SLF001
    parse_encoding = library._parse_encoding  # noqa: SLF001
    node = library.Node

    def number(cursor: Any) -> str:
        """What tells closures and unnamed types of one function apart, up to an underscore."""
        digits = cursor.advance_until("_")
        if digits is None or not (digits == "" or digits.isdigit()):
            raise _UnknownFormError
        return str(digits)

    def name_of(cursor: Any, is_nested: bool = False) -> Any:
        if cursor.accept("Z"):
            return local_name(cursor)
        if cursor.in_lambda and cursor.accept("T"):
            made = node("auto", number(cursor))
            cursor.add_subst(made)
            return made
        if is_nested:
            cursor.accept("M")  # what follows initializes the member before
        if cursor.accept("Ut"):
            return node("name", f"'unnamed{number(cursor)}'")
        if cursor.accept("Ul"):
            types = []
            cursor.in_lambda += 1
            while not cursor.accept("E"):
                types.append(type_of(cursor))
            cursor.in_lambda -= 1
            return node("name", f"'lambda{number(cursor)}'({_listed(types)})")
        return parse_name(cursor, is_nested)

    def type_of(cursor: Any) -> Any:
        return node("builtin", "char8_t") if cursor.accept("Du") else parse_type(cursor)

    def function(cursor: Any, name: Any) -> Any:
        """The types of a function, up to an E or to the end of the name."""
        result, parameters = None, []
        if _returns(name):
            result = type_of(cursor)
        while not (cursor.at_end() or cursor.accept("E")):
            parameters.append(type_of(cursor))
        if None in parameters:
            raise _UnknownFormError
        made = library.FuncNode("func", name, tuple(parameters), result)
        return library._expand_template_args(made)  # noqa: SLF001

    def local_name(cursor: Any) -> Any:
        """What is declared within a function."""
        known = len(cursor._substs)  # noqa: SLF001
        around = name_of(cursor)
        if around is None or cursor.accept("d"):
            raise _UnknownFormError
        arguments = _template_arguments(around)
        if not cursor.accept("E"):
            around = function(cursor, around)
        # Its template parameters are others than those of what is around the name.
        for place in range(known, len(cursor._substs)):  # noqa: SLF001
            cursor._substs[place] = _with(arguments, cursor._substs[place])  # noqa: SLF001
        entity = node("name", "string literal") if cursor.accept("s") else name_of(cursor)
        if cursor.accept("__"):
            number(cursor)
        elif cursor.accept("_"):
            cursor.advance(1)
        return node("local", (around, entity))

    def encoding(cursor: Any) -> Any:
        if not cursor.accept("Z"):
            return parse_encoding(cursor)
        name = local_name(cursor)
        return name if cursor.at_end() else function(cursor, name)

    library._parse_name, library._parse_type = name_of, type_of  # noqa: SLF001
    library._parse_encoding = encoding  # noqa: SLF001
    return library


def _bare(name: Any) -> Any:
    """A name without what qualifies its object, and without the function that it is local to."""
    while name.kind in ("cv_qual", "local", *_REFERENCES):
        name = name.value[1] if name.kind == "local" else name.value
    return name


def _template_arguments(name: Any) -> tuple[Any, ...]:
    """The arguments of a function's template; none of a function without one."""
    name = _bare(name)
    if name.kind != "qual_name" or name.value[-1].kind != "tpl_args":
        return ()
    return tuple(_unpacked(name.value[-1].value))


def _returns(name: Any) -> bool:
    """Whether the type that a function returns is part of its mangled name."""
    name = _bare(name)
    return (
        name.kind == "qual_name"
        and name.value[-1].kind == "tpl_args"
        and name.value[-2].kind not in ("ctor", "dtor", "oper_cast")
    )


@lru_cache(maxsize=1)
def _cursor() -> type[Any]:
    """The library's place in a name, with substitutions numbered as in the ABI (5.1.10)."""
    library = _library()
    Node, base = library.Node, library._Cursor  # noqa: N806, SLF001

    abbreviated = [(Node("name", "std"), Node("name", name)) for name in _ABBREVIATED]

    class Cursor(base):  # type: ignore[misc, valid-type]
        in_lambda = 0
        """Lambdas whose parameters are being read: a template parameter is `auto` there."""

        def add_subst(self, node: Any) -> None:
            if node is not None and node.kind == "qual_name":
                parts = node.value
                if len(parts) == 1:
                    # What a nested name begins with is the same by itself.
                    node = parts[0]
                elif tuple(parts) in abbreviated or self._is_function_of_std(parts):
                    return
                else:
                    node = Node("qual_name", tuple(parts))
            super().add_subst(node)

        def _is_function_of_std(self, parts: Sequence[Any]) -> bool:
            """Whether it is the template of a function with its arguments, which is not a type."""
            return bool(
                self._raw.startswith("_ZSt")
                and parts[-1].kind == "tpl_args"
                and len(parts) == 2
                and parts[0] == self._substs.get(0)
            )

    return Cursor


# --- Spelling ------------------------------------------------------------------------------------


def _spell(node: Any) -> str:
    """A node of the tree in LLVM's spelling."""
    left, right = _halves(node)
    if len(left) + len(right) > LONGEST_RESULT:
        raise _TooLongError
    return left + right


def _halves(node: Any) -> tuple[str, str]:
    """What of a type comes before the name that it declares, and what behind it."""
    kind = node.kind
    if kind in ("pointer", *_REFERENCES):
        target, mark = node.value, {"pointer": "*", "lvalue": "&", "rvalue": "&&"}[kind]
        while kind in _REFERENCES and target.kind in _REFERENCES:
            mark = "&" if target.kind == "lvalue" else mark
            target = target.value
        left, right = _halves(target)
        if right.startswith(("(", " [")):
            return f"{left.rstrip(' ')} ({mark}", f"){right}"
        return left + mark, right
    if kind == "func" and node.name is None:
        left, right = _halves(node.ret_ty)
        return left + " ", f"({_listed(node.arg_tys)}){right}"
    if kind == "array":
        left, right = _halves(node.ty)
        return left, f" [{node.dimension.value}]{right.removeprefix(' ')}"
    if kind == "cv_qual":
        qualifiers = "".join(f" {word}" for word in _QUALIFIERS if word in node.qual)
        left, right = _halves(node.value)
        return (left, right + qualifiers) if right.startswith("(") else (left + qualifiers, right)
    return _name(node), ""


def _name(node: Any) -> str:
    kind = node.kind
    if kind == "name":
        anonymous = node.value.startswith("_GLOBAL__N")
        return "(anonymous namespace)" if anonymous else str(node.value)
    if kind == "builtin":
        return _BUILTINS.get(node.value, node.value)
    if kind == "qual_name":
        return _qualified(node.value)
    if kind == "abi":
        return _name(node.value) + "".join(f"[abi:{tag}]" for tag in sorted(node.qual))
    if kind == "tpl_args":
        return f"<{', '.join(map(_spell, _unpacked(node.value)))}>"
    if kind == "literal":
        return _literal(node)
    if kind == "oper":
        word = node.value
        return f"operator {word}" if word[:1].isalpha() else f"operator{word}"
    if kind == "oper_cast":
        return f"operator {_spell(node.value)}"
    if kind == "func":
        return _function(node)
    if kind == "auto":
        return "auto"
    if kind == "local":
        around, entity = node.value
        return f"{_spell(around)}::{_spell(entity)}"
    if kind in _PREFIXED:
        return _PREFIXED[kind] + _spell(node.value)
    # A parameter that nothing stands for, a pointer to a member (behind which the library counts
    # substitutions wrongly), or what it has learned since.
    raise _UnknownFormError(kind)


def _qualified(parts: Sequence[Any]) -> str:
    shown = ""
    last = ""
    for part in parts:
        if part.kind == "tpl_args":
            shown += _name(part)
            continue
        if part.kind in ("ctor", "dtor"):
            if shown in _SHORT:
                # There LLVM writes out what the class is a template of.
                raise _UnknownFormError
            word = last if part.kind == "ctor" else f"~{last}"
        else:
            word = _name(part)
            last = word.partition("[abi:")[0]
        shown += f"::{word}" if shown else word
    return shown


def _literal(node: Any) -> str:
    value = str(node.value)
    value = f"-{value[1:]}" if value.startswith("n") else value
    type = _spell(node.ty)
    if type == "bool" and value in ("0", "1"):
        return "true" if value == "1" else "false"
    return value + _SUFFIXES[type] if type in _SUFFIXES else f"({type}){value}"


def _function(node: Any) -> str:
    """A function with its parameters; what qualifies its object comes behind them."""
    name, behind, around = node.name, "", ""
    while name.kind == "local":
        around += f"{_spell(name.value[0])}::"
        name = name.value[1]
    if name.kind in _REFERENCES:
        behind = " &" if name.kind == "lvalue" else " &&"
        name = name.value
    if name.kind == "cv_qual":
        behind = "".join(f" {word}" for word in _QUALIFIERS if word in name.qual) + behind
        name = name.value
    result, parameters = node.ret_ty, node.arg_tys
    if behind and name.kind == "qual_name" and name.value[-1].kind == "tpl_args":
        # The library looks for templates among unqualified functions alone.
        arguments = tuple(_unpacked(name.value[-1].value))
        parameters = [_with(arguments, each) for each in parameters]
        if result is not None:
            result = _with(arguments, result)
        elif name.value[-2].kind not in ("ctor", "dtor", "oper_cast"):
            result, *parameters = parameters
    left, right = "", ""
    if result is not None:
        left, right = _halves(result)
        left += "" if left.endswith((" ", "(*", "(&")) else " "
    return f"{left}{around}{_name(name)}({_listed(parameters)}){right}{behind}"


def _with(arguments: Sequence[Any], node: Any) -> Any:
    """A node with arguments in the places of a template's parameters."""
    if node.kind == "tpl_param" and node.value < len(arguments):
        return arguments[node.value]
    return node.map(lambda each: _with(arguments, each))


def _listed(nodes: Sequence[Any]) -> str:
    """Arguments, those of packs in their places."""
    shown = [_spell(node) for node in _unpacked(nodes)]
    return "" if shown == ["void"] else ", ".join(shown)


def _unpacked(nodes: Sequence[Any]) -> Iterator[Any]:
    for place, node in enumerate(nodes):
        if node.kind in _PACKS:
            yield from _unpacked(node.value)
        elif node.kind == "expand_arg_pack":
            if place != len(nodes) - 1:
                # Behind one the library counts substitutions wrongly.
                raise _UnknownFormError
            yield from _expansions(node.value)
        else:
            yield node


def _expansions(pattern: Any) -> list[Any]:
    """The pattern of an expansion, once for each argument of its pack."""
    if pattern.kind in _PACKS:
        return list(_unpacked(pattern.value))
    if pattern.kind in ("cv_qual", "pointer", *_REFERENCES):
        return [pattern._replace(value=each) for each in _expansions(pattern.value)]
    raise _UnknownFormError
