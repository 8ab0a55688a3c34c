"""Symbols for addresses: functions from the symbol table, lines and frames from DWARF."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

import attrs

from fx_emulator.native.elf import ObjectFile
from fx_emulator.native.errors import Frame
from fx_emulator.native.inlines import Inlined, Inlines, own_file, readable, source_files

__all__ = ["Names"]

_DEPTH = 64
"""Most frames of a backtrace."""
_DWARF_REGISTERS = (
    *("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"),
    *(f"r{number}" for number in range(8, 16)),
    "rip",
)
_BAD_DWARF = (Exception,)
"""Exceptions of pyelftools for damaged sections, which may be of any type."""


class Names:
    """Resolves addresses of an object file. DWARF is decoded at first use."""

    def __init__(self, file: ObjectFile, extra: dict[int, str]) -> None:
        self._file = file
        named = {each.address: (each.name, each.size) for each in file.functions}
        named |= {address: (name, 1) for address, name in extra.items()}
        self._functions = sorted((address, *what) for address, what in named.items())
        self._starts = [each[0] for each in self._functions]
        self._lines: list[tuple[int, str, int]] | None = None
        self._line_starts: list[int] = []
        self._frames: list[tuple[int, int, Any]] | None = None
        self._inlines: Inlines | None = None
        self._known: dict[int, tuple[Frame, ...]] = {}

    def frame(self, address: int) -> Frame:
        """Return the innermost frame of an address that is in a file of the user's own.

        Without one it is the innermost frame; without function and file if they are unknown.
        """
        return self.frames(address)[0]

    def frames(self, address: int) -> tuple[Frame, ...]:
        """Return the same and the frames around it, which were inlined into one function."""
        frames = self._known.get(address)
        if frames is None:
            frames = self._known[address] = self._frames_at(address)
        return frames

    def start_of(self, address: int) -> int:
        """Return the start of the function that contains an address; without one, the address."""
        return address - self._function(address)[1]

    def _function(self, address: int) -> tuple[str, int]:
        """Return name and offset of an address; an empty name and 0 if they are unknown."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at >= 0:
            start, found, size = self._functions[at]
            if address < start + max(size, 1) or (not size and address - start < 1 << 16):
                return found, address - start
        return "", 0

    def _frames_at(self, address: int) -> tuple[Frame, ...]:
        name, offset = self._function(address)
        name = readable(name)
        lines = self._line_table()
        at = bisect.bisect_right(self._line_starts, address) - 1
        path, line = (lines[at][1], lines[at][2]) if at >= 0 else ("", 0)
        calls = self._calls(address)
        functions = [*(each.function for each in calls), name]
        places = [(path, line), *((each.path, each.line) for each in calls)]
        found = [
            Frame(
                address,
                function,
                offset,
                path.rsplit("/", 1)[-1] if line else "",
                line,
                own=line > 0 and own_file(path),
            )
            for function, (path, line) in zip(functions, places, strict=True)
        ]
        first = next((number for number, each in enumerate(found) if each.own), 0)
        head = found[first]
        inner = tuple(each.place for each in found[:first])
        return (attrs.evolve(head, inner=inner), *found[first + 1 :])

    def _calls(self, address: int) -> list[Inlined]:
        """Return the inlined calls at an address, innermost first."""
        try:
            if self._inlines is None:
                dwarf = self._dwarf()
                self._inlines = Inlines(dwarf, self._bias) if dwarf is not None else None
            return self._inlines.at(address) if self._inlines is not None else []
        except _BAD_DWARF:
            return []

    # --- lines ---

    def _line_table(self) -> list[tuple[int, str, int]]:
        """Return address, file and line of each line's start, sorted; line 0 ends a sequence."""
        if self._lines is None:
            try:
                self._lines = sorted(self._decode_lines())
            except _BAD_DWARF:
                self._lines = []
            self._line_starts = [each[0] for each in self._lines]
        return self._lines

    def _dwarf(self) -> Any:
        file = self._file.debug
        return file.get_dwarf_info(relocate_dwarf_sections=False) if file.has_dwarf_info() else None

    def _decode_lines(self) -> list[tuple[int, str, int]]:
        dwarf = self._dwarf()
        found: dict[int, tuple[str, int]] = {}
        for unit in () if dwarf is None else dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            if program is None:
                continue
            files = source_files(unit, program)
            for entry in program.get_entries():
                state = entry.state
                if state is None:
                    continue
                address = self._bias + state.address
                if state.end_sequence:
                    found.setdefault(address, ("", 0))
                    continue
                name = files[state.file] if state.file < len(files) else "?"
                # Of several rows with one address the last one is valid; line 0 means unknown.
                if state.line or address not in found:
                    found[address] = (name, state.line)
        return [(address, *what) for address, what in found.items()]

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
        returns = 0
        """1 once RIP is a return address, which may belong to the next line or function."""
        if leaf or not runs(state["rip"]):
            # After a call to an invalid address the return address is on top of the stack too.
            back = load(state["rsp"])
            if back is not None and runs(back):
                state["rip"], state["rsp"], returns = back, state["rsp"] + 8, 1
                frames += self.frames(back - 1)
        while len(frames) < _DEPTH:
            caller = self._caller(state, self._row(state["rip"] - returns), load)
            if caller is None or not runs(caller["rip"]) or caller["rsp"] <= state["rsp"]:
                break
            state, returns = caller, 1
            frames += self.frames(state["rip"] - 1)
        return tuple(frames)

    def _caller(
        self,
        state: dict[str, int],
        row: dict[Any, Any] | None,
        load: Callable[[int], int | None],
    ) -> dict[str, int] | None:
        if row is None:
            # push %rbp; mov %rsp, %rbp
            saved, back = load(state["rbp"]), load(state["rbp"] + 8)
            if saved is None or back is None:
                return None
            return state | {"rip": back, "rbp": saved, "rsp": state["rbp"] + 16}
        rule = row["cfa"]
        if rule.expr is not None:
            return None
        cfa = state[_DWARF_REGISTERS[rule.reg]] + rule.offset
        caller = state | {"rsp": cfa}
        for number, each in row.items():
            if isinstance(number, int) and each.type == "OFFSET" and number < 17:
                value = load(cfa + each.arg)
                if value is None:
                    return None
                caller[_DWARF_REGISTERS[number]] = value
        return caller if 16 in row else None

    def _row(self, address: int) -> dict[Any, Any] | None:
        """Return the call frame rules for an address."""
        if self._frames is None:
            try:
                self._frames = sorted(self._decode_frames(), key=lambda each: each[0])
            except _BAD_DWARF:
                self._frames = []
        at = bisect.bisect_right(self._frames, address, key=lambda each: each[0]) - 1
        if at < 0 or address >= self._frames[at][1]:
            return None
        try:
            table = self._frames[at][2].get_decoded().table
        except _BAD_DWARF:
            return None
        bias = self._bias
        rows = [row for row in table if row["pc"] + bias <= address]
        return rows[-1] if rows else None

    @property
    def _bias(self) -> int:
        return self._file.base if self._file.kind == "shared" else 0

    def _decode_frames(self) -> list[tuple[int, int, Any]]:
        dwarf = self._dwarf()
        entries: list[Any] = []
        if dwarf is not None and dwarf.has_EH_CFI():
            entries += dwarf.EH_CFI_entries()
        if dwarf is not None and dwarf.has_CFI():
            entries += dwarf.CFI_entries()
        found = []
        for entry in entries:
            if not hasattr(entry, "cie"):
                continue  # a common part, or the mark of the end
            header = entry.header
            if "initial_location" in header:
                start = self._bias + header["initial_location"]
                found.append((start, start + header["address_range"], entry))
        return found
