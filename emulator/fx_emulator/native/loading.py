"""Puts an object file into an address space, with what the target provides for it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from fx_emulator.native.calls import Call
from fx_emulator.native.elf import Chunk, ObjectFile
from fx_emulator.native.errors import LoadError
from fx_emulator.native.known_calls import known_calls
from fx_emulator.native.routines import ROUTINES, TLS_DESCRIPTOR
from fx_emulator.native.space import PAGE, READ, RUN, WRITE, Space, round_up

TRAPS_AT = 0x0F00_0000
"""Address of the first trap, to which a thread's first function returns."""
TRAP_BYTES = 16
_TRAP = b"\xc3".ljust(TRAP_BYTES, b"\xcc")
"""RET, then INT3: a hook calls the function of the target before the RET."""
_DESCRIPTOR = "tls descriptor"
_OFFSET_TABLE = "_GLOBAL_OFFSET_TABLE_"

GUARD_WORD = 0x5BD1E995_2F0B4A00
"""The stack protector's word."""

_VARIABLES = {
    "stdout": bytes(8),
    "stderr": bytes(8),
    "environ": bytes(8),
    "__dso_handle": bytes(8),
    "__stack_chk_guard": GUARD_WORD.to_bytes(8, "little"),
    # Referenced by type_info, but unread without dynamic_cast and exceptions.
    "_ZTVN10__cxxabiv117__class_type_infoE": bytes(64),
    "_ZTVN10__cxxabiv120__si_class_type_infoE": bytes(64),
    "_ZTVN10__cxxabiv121__vmi_class_type_infoE": bytes(64),
}
"""Variables that the target provides, with their initial bytes."""


@attrs.define
class Provided:
    """What the target provides for one object file, by address."""

    addresses: dict[str, int] = attrs.field(factory=dict)
    """Addresses of the file's undefined symbols, by name."""
    calls: dict[int, Call] = attrs.field(factory=dict)
    """Functions that are called at a trap, by its address."""
    descriptor: int = 0
    """Address of the routine that a TLS descriptor calls."""
    traps_end: int = 0
    code_end: int = 0
    """Address after the routines, which follow the traps."""
    names: dict[int, str] = attrs.field(factory=dict)
    """Names of functions and variables, by address."""


def map_chunk(space: Space, chunk: Chunk) -> None:
    """Map a segment; a page that two segments share gets the permissions of both."""
    page_address = chunk.start & -PAGE
    chunk_end = round_up(chunk.start + chunk.size)
    while page_address < chunk_end and space.find(page_address) is not None:
        space.protect(page_address, PAGE, READ | WRITE | RUN)
        page_address += PAGE
    if page_address < chunk_end:
        space.map(chunk.name, page_address, chunk_end - page_address, chunk.permissions)
    # The bytes may lie in two regions: that of the shared page, and the one mapped here.
    written_bytes = 0
    while written_bytes < len(chunk.data):
        address = chunk.start + written_bytes
        region = space.find(address)
        assert region is not None  # noqa: S101 (it was mapped above)
        chunk_part = chunk.data[written_bytes : written_bytes + region.end - address]
        space.write(address, chunk_part)
        written_bytes += len(chunk_part)


def map_offset_table(space: Space, file: ObjectFile, provided: Provided) -> int:
    """Allocate the words that relocations of the object file need. Return their address."""
    if file.kind == "relocatable":
        table_bytes = 32 * len(file.relocations) + 8
    else:
        # A linked file has its own; this one is for stubs of its ifuncs only.
        table_bytes = PAGE + 16 * sum(symbol.kind == "ifunc" for symbol in file.functions)
    file_end = max(round_up(chunk.start + chunk.size) for chunk in file.chunks)
    region = space.map("offset table", file_end + PAGE, table_bytes, READ | WRITE | RUN)
    provided.addresses[_OFFSET_TABLE] = region.start
    return region.start


def provide(
    space: Space, file: ObjectFile, symbols: Mapping[str, Any], *, needs_all: bool
) -> Provided:
    """Map what the target provides for the undefined symbols of a file.

    ``symbols`` are functions, addresses and variables (bytes) beside those of the target, by name.
    Raises LoadError that lists unresolved symbols (unless ``needs_all`` is false), or names one of
    ``symbols`` that the file does not use.
    """
    definitions: dict[str, Any] = {**_VARIABLES, **known_calls()}
    for name, definition in symbols.items():
        if callable(definition):
            definitions[name] = Call.of(name, definition)
        else:
            definitions[name] = definition
    provided = Provided()
    trap_code = bytearray(_TRAP)  # the first trap is that of a thread's end
    variables: dict[str, bytes] = {}
    missing_names: list[str] = []
    for name, symbol in file.undefined.items():
        match definitions.get(name):
            case int(address):
                provided.addresses[name] = address
            case bytes() | bytearray() as initial_bytes:
                variables[name] = bytes(initial_bytes)
            case Call() as call:
                provided.addresses[name] = TRAPS_AT + len(trap_code)
                provided.calls[TRAPS_AT + len(trap_code)] = call
                trap_code += _TRAP
            case _ if symbol.weak:
                provided.addresses[name] = 0
            case _ if name not in ROUTINES and name != _OFFSET_TABLE:
                missing_names.append(name)
    if missing_names and needs_all:
        raise LoadError(_unresolved(file, missing_names))
    unused_names = sorted(symbols.keys() - file.undefined.keys())
    if unused_names:
        raise LoadError(
            f"{file.path}: has no undefined symbol {unused_names[0]!r}; declare it extern "
            "and use it, or remove it from symbols="
        )
    provided.traps_end = TRAPS_AT + len(trap_code)
    routines = _append_routines(trap_code, file, provided)
    provided.descriptor = routines[_DESCRIPTOR]
    provided.code_end = TRAPS_AT + len(trap_code)
    space.map("calls", TRAPS_AT, len(trap_code), READ | RUN)
    space.write(TRAPS_AT, trap_code)
    _map_variables(space, TRAPS_AT + round_up(len(trap_code)), variables, provided)
    named = {**routines, **provided.addresses}
    provided.names = {address: name for name, address in named.items() if address}
    return provided


def _append_routines(code: bytearray, file: ObjectFile, provided: Provided) -> dict[str, int]:
    """Append the routines in machine code. Return their addresses by name."""
    routines: dict[str, int] = {}
    for name, body in {**ROUTINES, _DESCRIPTOR: TLS_DESCRIPTOR}.items():
        routines[name] = TRAPS_AT + len(code)
        if name in file.undefined:
            provided.addresses.setdefault(name, routines[name])
        code += body.ljust(round_up(len(body), TRAP_BYTES), b"\xcc")
    return routines


def _map_variables(
    space: Space, start: int, variables: Mapping[str, bytes], provided: Provided
) -> None:
    """Map variables from an address on, each at a multiple of 16."""
    if not variables:
        return
    total_bytes = sum(round_up(len(data), 16) for data in variables.values())
    space.map("variables of the target", start, total_bytes, READ | WRITE)
    address = start
    for name, data in variables.items():
        provided.addresses[name] = address
        space.write(address, data)
        address += round_up(len(data), 16)


# --- unresolved symbols ------------------------------------------------------------------------


_RUST_ADVICE = (
    "\nThe target provides what Rust's standard library needs for allocation, panics and output; "
    "threads, files and sockets are not there. Avoid them, or build the library without std: "
    "#![no_std], -C panic=abort, -C link-arg=-nostdlib"
)


def _unresolved(file: ObjectFile, missing: Sequence[str]) -> str:
    """Return one message that lists all unresolved symbols, each with advice."""
    known_names = [*known_calls(), *ROUTINES]
    advice_lines = "".join(f"\n  {name}: {_advice(name, known_names)}" for name in sorted(missing))
    is_rust = any("rust_eh_personality" in name for name in file.symbols)
    rust_advice = _RUST_ADVICE if is_rust else ""
    return f"{file.path}: {len(missing)} unresolved symbols:{advice_lines}{rust_advice}"


def _advice(name: str, known: Iterable[str]) -> str:
    """Return what to do about an unresolved symbol."""
    near_names = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    definition = f"symbols={{{name!r}: function}}"
    if near_names:
        return f"did you mean {near_names[0]}? Or define it: {definition}"
    if name.startswith(("zx_", "_zx_")):
        return f"the target lacks this call; define it: {definition}"
    if name.startswith(("_ZN", "_ZSt", "_ZTV", "__gxx")):
        return "part of the C++ library: link with -static-libstdc++, or avoid it"
    return f"link its object, or define it: {definition}"


def similar_names(name: str, symbols: Iterable[str]) -> str:
    """Return a hint for an unknown name, empty if no symbol is similar."""
    near_names = difflib.get_close_matches(name, symbols, n=3)
    if not near_names:
        return ""
    return f"; did you mean {', '.join(map(repr, near_names))}?"
