"""Symbols for addresses: functions from the symbol table, lines and frames from DWARF."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import attrs

from fx_emulator.native.elf import ObjectFile
from fx_emulator.native.errors import Frame
from fx_emulator.native.inlines import Inlined, Inlines, own_file, readable, source_files

_DEPTH = 64
"""Most frames of a backtrace."""
_DWARF_REGISTERS = (
    *("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"),
    *(f"r{number}" for number in range(8, 16)),
    "rip",
)
_RETURN_ADDRESS = 16
"""Number of RIP among them: rules for it say where the return address is."""
_BAD_DWARF = (Exception,)
"""Exceptions of pyelftools for damaged sections, which may be of any type."""
_UNSIZED_BYTES = 1 << 16
"""Bytes that count as those of a function without a size, such as one in assembly."""


class _Function(NamedTuple):
    """A function of the symbol table."""

    start: int
    name: str
    size: int


class _Line(NamedTuple):
    """The first address of a source line; line 0 ends a sequence."""

    start: int
    path: str
    line: int


class _FrameEntry(NamedTuple):
    """The call frame information of a range of addresses."""

    start: int
    end: int
    entry: Any


class Names:
    """Resolves addresses of an object file. DWARF is decoded at first use."""

    def __init__(self, file: ObjectFile, extra: dict[int, str]) -> None:
        self._file = file
        functions = {
            symbol.address: _Function(symbol.address, symbol.name, symbol.size)
            for symbol in file.functions
        }
        for address, name in extra.items():
            functions[address] = _Function(address, name, 1)
        self._functions = sorted(functions.values())
        self._cache: dict[int, tuple[Frame, ...]] = {}
        """Frames by address."""

    def frame(self, address: int) -> Frame:
        """Return the innermost frame of an address that is in a file of the user's own.

        Without one it is the innermost frame; without function and file if they are unknown.
        """
        return self.frames(address)[0]

    def frames(self, address: int) -> tuple[Frame, ...]:
        """Return the same and the frames around it, which were inlined into one function."""
        if address not in self._cache:
            self._cache[address] = self._frames_at(address)
        return self._cache[address]

    def start_of(self, address: int) -> int:
        """Return the start of the function that contains an address; without one, the address."""
        return address - self._function(address)[1]

    def _function(self, address: int) -> tuple[str, int]:
        """Return name and offset of an address; an empty name and 0 if they are unknown."""
        function_index = bisect.bisect_right(self._functions, address, key=_start_of) - 1
        if function_index < 0:
            return "", 0
        function = self._functions[function_index]
        offset = address - function.start
        if offset < (function.size or _UNSIZED_BYTES):
            return function.name, offset
        return "", 0

    def _frames_at(self, address: int) -> tuple[Frame, ...]:
        name, offset = self._function(address)
        path, line = self._line_at(address)
        calls = self._calls(address)
        # The position of the address is in the innermost function, that of a call in the one
        # around it.
        functions = [*(call.function for call in calls), readable(name)]
        positions = [(path, line), *((call.path, call.line) for call in calls)]
        frames = [
            _frame(address, function, offset, path, line)
            for function, (path, line) in zip(functions, positions, strict=True)
        ]
        first_own = 0
        for number, frame in enumerate(frames):
            if frame.own:
                first_own = number
                break
        inner = tuple(frame.place for frame in frames[:first_own])
        return (attrs.evolve(frames[first_own], inner=inner), *frames[first_own + 1 :])

    def _line_at(self, address: int) -> tuple[str, int]:
        """Return path and line of an address; an empty path and 0 if they are unknown."""
        line_index = bisect.bisect_right(self._lines, address, key=_start_of) - 1
        if line_index < 0:
            return "", 0
        return self._lines[line_index].path, self._lines[line_index].line

    def _calls(self, address: int) -> list[Inlined]:
        """Return the inlined calls at an address, innermost first."""
        try:
            return self._inlines.at(address) if self._inlines is not None else []
        except _BAD_DWARF:
            return []

    @functools.cached_property
    def _inlines(self) -> Inlines | None:
        """The inlined calls of the file; None if it has no DWARF."""
        dwarf = self._dwarf()
        return Inlines(dwarf, self._bias) if dwarf is not None else None

    # --- lines ---

    @functools.cached_property
    def _lines(self) -> list[_Line]:
        """The starts of lines by address."""
        try:
            return sorted(self._decode_lines())
        except _BAD_DWARF:
            return []

    def _dwarf(self) -> Any:
        """Return the DWARF sections as pyelftools reads them; None if there are none."""
        file = self._file.debug
        if not file.has_dwarf_info():
            return None
        return file.get_dwarf_info(relocate_dwarf_sections=False)

    def _decode_lines(self) -> list[_Line]:
        dwarf = self._dwarf()
        if dwarf is None:
            return []
        lines: dict[int, _Line] = {}
        for unit in dwarf.iter_CUs():
            line_program = dwarf.line_program_for_CU(unit)
            if line_program is None:
                continue
            files = source_files(unit, line_program)
            for program_entry in line_program.get_entries():
                line_state = program_entry.state
                if line_state is None:
                    continue
                address = self._bias + line_state.address
                if line_state.end_sequence:
                    # Another sequence may begin right there.
                    lines.setdefault(address, _Line(address, "", 0))
                    continue
                source_path = files[line_state.file] if line_state.file < len(files) else "?"
                # Of several rows with one address the last one is valid; line 0 means unknown.
                if line_state.line or address not in lines:
                    lines[address] = _Line(address, source_path, line_state.line)
        return list(lines.values())

    # --- frames ---

    def backtrace(
        self,
        registers: dict[str, int],
        load: Callable[[int], int | None],
        runs: Callable[[int], bool],
        leaf: bool = False,
    ) -> tuple[Frame, ...]:
        """Return the call stack, innermost first, by call frame information or frame pointers.

        ``load`` reads a word of memory, or returns None; ``runs`` returns whether an address is
        code; ``leaf`` is set when the innermost function has only its return address on the stack.
        """
        state = dict(registers)
        frames = list(self.frames(state["rip"]))
        # A return address may belong to the next line or function: the call is before it.
        call_address = state["rip"]
        if leaf or not runs(state["rip"]):
            # After a call to an invalid address the return address is on top of the stack too.
            return_address = load(state["rsp"])
            if return_address is not None and runs(return_address):
                state["rip"] = return_address
                state["rsp"] += 8
                call_address = return_address - 1
                frames += self.frames(call_address)
        while len(frames) < _DEPTH:
            caller = self._caller(state, self._row(call_address), load)
            # The stack grows down, so a caller whose frame is not above is an endless circle.
            if caller is None or not runs(caller["rip"]) or caller["rsp"] <= state["rsp"]:
                break
            state = caller
            call_address = state["rip"] - 1
            frames += self.frames(call_address)
        return tuple(frames)

    def _caller(
        self,
        state: dict[str, int],
        row: dict[Any, Any] | None,
        load: Callable[[int], int | None],
    ) -> dict[str, int] | None:
        """Return the registers of the caller, by call frame rules or the frame pointer."""
        if row is None:
            # push %rbp; mov %rsp, %rbp
            frame_pointer = state["rbp"]
            callers_frame_pointer = load(frame_pointer)
            return_address = load(frame_pointer + 8)
            if callers_frame_pointer is None or return_address is None:
                return None
            return state | {
                "rip": return_address,
                "rbp": callers_frame_pointer,
                "rsp": frame_pointer + 16,
            }
        # The canonical frame address, which the other rules refer to, is RSP before the call.
        cfa_rule = row["cfa"]
        if cfa_rule.expr is not None:
            return None
        cfa = state[_DWARF_REGISTERS[cfa_rule.reg]] + cfa_rule.offset
        caller = state | {"rsp": cfa}
        for register, rule in row.items():
            if isinstance(register, int) and rule.type == "OFFSET" and register <= _RETURN_ADDRESS:
                value = load(cfa + rule.arg)
                if value is None:
                    return None
                caller[_DWARF_REGISTERS[register]] = value
        return caller if _RETURN_ADDRESS in row else None

    def _row(self, address: int) -> dict[Any, Any] | None:
        """Return the call frame rules for an address."""
        entry_index = bisect.bisect_right(self._frame_entries, address, key=_start_of) - 1
        if entry_index < 0 or address >= self._frame_entries[entry_index].end:
            return None
        try:
            rule_table = self._frame_entries[entry_index].entry.get_decoded().table
        except _BAD_DWARF:
            return None
        earlier_rows = [row for row in rule_table if row["pc"] + self._bias <= address]
        return earlier_rows[-1] if earlier_rows else None

    @property
    def _bias(self) -> int:
        return self._file.base if self._file.kind == "shared" else 0

    @functools.cached_property
    def _frame_entries(self) -> list[_FrameEntry]:
        """The call frame information by address."""
        try:
            return sorted(self._decode_frames(), key=_start_of)
        except _BAD_DWARF:
            return []

    def _decode_frames(self) -> list[_FrameEntry]:
        dwarf = self._dwarf()
        if dwarf is None:
            return []
        entries: list[Any] = []
        if dwarf.has_EH_CFI():
            entries += dwarf.EH_CFI_entries()
        if dwarf.has_CFI():
            entries += dwarf.CFI_entries()
        frame_entries = []
        for entry in entries:
            if not hasattr(entry, "cie"):
                continue  # a common part, or the mark of the end
            entry_header = entry.header
            if "initial_location" in entry_header:
                first_address = self._bias + entry_header["initial_location"]
                frame_entries.append(
                    _FrameEntry(first_address, first_address + entry_header["address_range"], entry)
                )
        return frame_entries


def _start_of(entry: _Function | _Line | _FrameEntry) -> int:
    return entry.start


def _frame(address: int, function: str, offset: int, path: str, line: int) -> Frame:
    """Return a frame; line 0 is unknown."""
    if not line:
        return Frame(address, function, offset)
    file = path.rsplit("/", 1)[-1]
    return Frame(address, function, offset, file, line, own=own_file(path))
