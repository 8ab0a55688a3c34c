"""C++ names as their source has them: what the library takes apart, put together as LLVM does it.

The library reads mangled names; what it does not know (local names, lambdas, expressions) stays
mangled. Its own spelling differs from LLVM's in constructors, in literals of templates and in
where the qualifiers of a member function stand, so the spelling is ours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

__all__ = ["demangle"]

MANGLED: Final = ("_Z", "__Z")
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
    """The name as its source has it; the name itself where it is not mangled, or not understood."""
    if not name.startswith(MANGLED) or len(name) > LONGEST_NAME:
        return name
    mangled, dot, suffix = name.partition(".")
    try:
        shown = _within_allowance(mangled)
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
    import itanium_demangler

    # Not its `parse`, which goes on to put packs of arguments in their places, without `&&`.
    cursor = _cursor()(mangled)
    tree = itanium_demangler._parse_mangled_name(cursor)  # noqa: SLF001
    if tree is None or not cursor.at_end():
        raise _UnknownFormError
    return tree


@lru_cache(maxsize=1)
def _cursor() -> type[Any]:
    """The library's place in a name, with substitutions numbered as the ABI has it (5.1.10)."""
    from itanium_demangler import Node, _Cursor

    abbreviated = [(Node("name", "std"), Node("name", name)) for name in _ABBREVIATED]

    class Cursor(_Cursor):  # type: ignore[misc]
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
            """Whether it is the template of a function with its arguments, which is no type."""
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
    """What of a type stands before the name that it declares, and what behind it."""
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
    """A function with its parameters; what qualifies its object stands behind them."""
    name, behind = node.name, ""
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
        if name.value[-2].kind not in ("ctor", "dtor", "oper_cast"):
            result, *parameters = parameters
    left, right = "", ""
    if result is not None:
        left, right = _halves(result)
        left += "" if left.endswith((" ", "(*", "(&")) else " "
    return f"{left}{_name(name)}({_listed(parameters)}){right}{behind}"


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
