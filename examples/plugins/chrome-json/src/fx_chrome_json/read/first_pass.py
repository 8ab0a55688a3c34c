"""First pass: what one reading of the whole file finds, and the same stretches once more."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_chrome_json import rules
from fx_chrome_json.read.match import enclose, next_slices, pair, ranks
from fx_chrome_json.read.parse import parse
from fx_chrome_json.read.rows import ASYNC, COMPLETE, Interpreter, Raw
from fx_chrome_json.read.scan import SYSTEM, Chunk, Scanner, Stretch
from fx_chrome_json.read.sched_text import scheduled
from fx_chrome_json.read.stacks import EMPTY, FRAMES, SAMPLES, frames, member, samples
from fx_chrome_json.read.tables import SCHEMAS
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kit import FirstPass
from fxframework.model.clock import NS_MAX
from fxframework.model.diagnostics import Found
from fxframework.model.strings import StringPool

__all__ = ["ChromePass", "Stage"]

I64 = NDArray[np.int64]
MATCHED = {
    "slices": ("offset", "ts", "dur", "thread", "kind"),
    "ends": ("offset", "ts", "thread", "kind", "name", "id"),
    "flows": ("offset", "ts", "thread", "next"),
}
"""Columns that are kept of the whole file to find what belongs to what."""
STACKS = {FRAMES: "chrome_frames", SAMPLES: "chrome_samples"}
"""Tables of the members of the document that are taken apart."""
SHOWN = 1 << 8
"""Bytes of a member of the document that the summary shows."""
LINES = 1 << 12
"""Lines of ``systemTraceEvents`` that become rows together."""
RELEASED = 1 << 24
"""Bytes that are read before their pages are released."""


@attrs.frozen
class Stage:
    """The rows of some chunks that follow each other."""

    first: dict[str, int]
    """Number of the first row of each table."""
    tables: dict[str, Raw]
    chunks: list[tuple[Chunk, dict[str, int]]]
    """The chunks that have arguments, each with the number of its first row of each table."""


class ChromePass(FirstPass[Stage]):
    """Counts, threads, findings, and what belongs to what."""

    def __init__(
        self,
        source: Source,
        strings: StringPool,
        limits: Limits,
        check: Callable[[], None],
        *,
        whole: bool,
    ) -> None:
        self._source = source
        self._check = check
        self._limits = limits
        self._kinds: Counter[str] = Counter()
        self._rows: Counter[str] = Counter(dict.fromkeys((*SCHEMAS, "ends"), 0))
        self._times: tuple[int, int] | None = None
        self.found: list[Found] = []
        """Findings that are listed."""
        self.counts: Counter[Rule] = Counter()
        """Findings by rule, listed or not."""
        self.members: dict[str, Any] = {}
        """Small members of the document beside the events, by key."""
        self.stacks: dict[str, Raw] = dict(EMPTY)
        """Columns of frames and samples, by the member."""
        self._later: list[Stretch] = []
        self.interpreter = Interpreter(strings, limits.max_string, self._note)
        parts: dict[str, list[Raw]] = {}
        chunks = []
        for stage in self._read(count=True):
            kept = _for_match(stage.tables)
            if whole:
                kept |= {name: raw | kept.get(name, {}) for name, raw in stage.tables.items()}
                chunks += stage.chunks
            for name, raw in kept.items():
                parts.setdefault(name, []).append(raw)
        tables = {name: _joined(raws) for name, raws in parts.items()}
        self._match(tables)
        for part in self._later:
            self._stack(part, self._source.data.data)
        self._rows["processes"] = len(self.interpreter.tasks.processes)
        self._rows["threads"] = len(self.interpreter.tasks.pids)
        self.interpreter.report = _ignore
        if whole:
            self.whole = Stage(dict.fromkeys(self._rows, 0), tables, chunks)

    def stages(self) -> Iterator[Stage]:
        """The file once more, a chunk at a time."""
        return self._read(count=False)

    def arguments(self, stage: Stage) -> Raw:
        """The raw columns of the arguments in a stage."""
        made = []
        data = self._source.data.data
        for chunk, first in stage.chunks:
            parsed = parse(data, chunk, _ignore)
            args = self.interpreter.arguments(parsed, data, first, self.begins, system=chunk.system)
            made.append(args)
        if not made:
            return {}
        return {name: np.concatenate([raw[name] for raw in made]) for name in made[0]}

    def _read(self, *, count: bool) -> Iterator[Stage]:
        data = self._source.data.data
        scanner = Scanner(self._source.data, self._limits.max_record)
        report = self._note if count else _ignore
        first: Counter[str] = Counter(dict.fromkeys((*SCHEMAS, "ends"), 0))
        released = 0
        text, has_events = (0, 0), False
        for piece in scanner.pieces():
            if isinstance(piece, Stretch):
                if piece.key == SYSTEM:
                    text = piece.value
                if count:
                    self._part(piece, data)
                continue
            has_events |= piece.system
            parsed = parse(data, piece, report)
            rows = self.interpreter.rows(parsed, data, system=piece.system)
            if count:
                self._kinds += rows.kinds
                if parsed.tiles is not None:
                    self._kinds["damaged"] += sum(event is None for *_, event in parsed.tiles)
                self._stretch_times(rows.tables)
            here = dict(first)
            yield Stage(here, rows.tables, [(piece, here)] if rows.args else [])
            for name, raw in rows.tables.items():
                first[name] += raw["offset"].size
            first["args"] += rows.args
            if piece.stop - released > RELEASED:
                self._check()
                self._source.release(released, piece.stop)
                released = piece.stop
        lines = iter(()) if has_events else scheduled(data, *text)
        while some := list(itertools.islice(lines, LINES)):
            tables = self.interpreter.scheduled(some)
            if count:
                self._stretch_times(tables)
            yield Stage(dict(first), tables, [])
            first["sched"] += len(some)
        if count:
            self._rows.update(first)
            if scanner.unclosed:
                report(rules.DOCUMENT_OPEN, scanner.last)

    def _part(self, part: Stretch, data: memoryview) -> None:
        self._kinds[part.kind] += 1
        if part.rule is not None:
            self._note(part.rule, part.start)
        start, stop = part.value
        if part.key in self.stacks:
            self._later.append(part)
        if stop - start > SHOWN:
            self.members[part.key] = f"{stop - start} bytes"
        elif stop > start:
            try:
                self.members[part.key] = json.loads(bytes(data[start:stop]), parse_constant=str)
            except (ValueError, RecursionError):
                self._note(
                    rules.NOT_AN_EVENT, part.start, f"the member {part.key!a:.40} is not JSON"
                )

    def _stack(self, part: Stretch, data: memoryview) -> None:
        """Take frames or samples apart, once all threads are known."""

        def wrong(what: str) -> None:
            self._note(rules.INVALID_MEMBER, part.start, what)

        codes, tasks = self.interpreter.names, self.interpreter.tasks
        try:
            value = member(data[slice(*part.value)])
        except ValueError as error:
            self._note(rules.NOT_AN_EVENT, part.start, f"the member {part.key}: {error}")
            return
        if part.key == FRAMES:
            self.stacks[FRAMES] = frames(value, part.start, codes, wrong)
        else:
            made = self.stacks[SAMPLES] = samples(value, part.start, tasks, codes, wrong)
            self._stretch_times({SAMPLES: made})
        self._rows[STACKS[part.key]] = self.stacks[part.key]["offset"].size

    def _stretch_times(self, tables: dict[str, Raw]) -> None:
        for name, raw in tables.items():
            if name != "ends" and raw["ts"].size:
                low, high = self._times or (NS_MAX, -NS_MAX - 1)
                self._times = min(low, int(raw["ts"].min())), max(high, int(raw["ts"].max()))

    def _note(self, rule: Rule, offset: int, value: object = None) -> None:
        self.counts[rule] += 1
        if not self._limits.max_findings or self.counts[rule] <= self._limits.max_findings:
            self.found.append(Found(rule, offset, value))

    # --- What belongs to what --------------------------------------------------------------------

    def _match(self, tables: dict[str, Raw]) -> None:
        """Pair begins and ends, nest slices, and find the slices of flows."""
        none = {key: np.zeros(0, np.int64) for key in ("offset", "ts", "dur", "kind", "id")}
        none |= {key: np.zeros(0, np.int32) for key in ("thread", "name", "next")}
        slices, begins, ends, flows = (
            tables.pop(name, none) if name == "begins" else tables.get(name, none)
            for name in ("slices", "begins", "ends", "flows")
        )
        count = slices["ts"].size
        groups = self._groups(slices, begins, ends)
        self.dur: I64 = slices["dur"]
        """Length of each slice, -1 where it has no end."""
        self.begins: I64 = np.full(ends["ts"].size, -1, np.int64)
        """The slice that each end closes, -1 for none."""
        last = np.full(count, -1, np.int64)
        begun = np.flatnonzero(slices["kind"] != COMPLETE)
        if begun.size or self.begins.size:
            offsets = np.concatenate((slices["offset"][begun], ends["offset"]))
            order = np.argsort(offsets)
            number = np.concatenate((begun, np.arange(self.begins.size) + count))[order]
            ts = np.concatenate((slices["ts"][begun], ends["ts"]))[order]
            names = np.concatenate((begins["name"], ends["name"]))[order]
            partner = pair(groups[number], ts, number < count, names)
            closed = np.flatnonzero((number < count) & (partner >= 0))
            length = ts[partner[closed]] - ts[closed]
            self.dur[number[closed]] = np.maximum(length, 0)
            last[begun] = NS_MAX
            last[number[closed]] = ends["offset"][number[partner[closed]] - count]
            ended = np.flatnonzero((number >= count) & (partner >= 0))
            self.begins[number[ended] - count] = number[partner[ended]]
        self.open_offsets: I64 = slices["offset"][self.dur < 0]
        """Offsets of begins without an end."""
        self.lone_offsets: I64 = ends["offset"][self.begins < 0]
        """Offsets of ends without a begin."""
        until = np.where(self.dur < 0, NS_MAX, slices["ts"] + self.dur)
        threads = flows["thread"].astype(np.int64)
        begin, end, points = slices["ts"], until, flows["ts"]
        if begun.size:
            begin, end, points = ranks(begin, end, slices["offset"], last, points, flows["offset"])
        where = (groups[:count], begin, end, threads)
        self.depth, self.parent, self.flow_slices = enclose(*where, points)
        later = np.flatnonzero(flows["next"])
        if later.size:
            following = next_slices(*where[:3], threads[later], points[later])
            self.flow_slices[later] = following
        if self._limits.max_depth:
            np.minimum(self.depth, self._limits.max_depth, out=self.depth)

    @staticmethod
    def _groups(slices: Raw, begins: Raw, ends: Raw) -> NDArray[np.int32]:
        """What nests together: slices of a thread, or asynchronous ones of an id."""
        groups = np.concatenate((slices["thread"], ends["thread"]))
        kinds = np.concatenate((slices["kind"], ends["kind"]))
        chosen = np.flatnonzero(kinds == ASYNC)
        if chosen.size:
            of_begins = slices["kind"][slices["kind"] != COMPLETE] == ASYNC
            of_ends = ends["kind"] == ASYNC
            ids = np.concatenate((begins["id"][of_begins], ends["id"][of_ends]))
            groups[chosen] = -1 - np.unique(ids, return_inverse=True)[1].reshape(-1)
        return groups

    # --- What every first pass says --------------------------------------------------------------

    @property
    def records(self) -> int:
        """Records in the file."""
        return self._kinds.total()

    @property
    def kinds(self) -> dict[str, int]:
        """Records of each kind."""
        return {kind: count for kind, count in self._kinds.items() if count}

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table."""
        return {name: self._rows[name] for name in SCHEMAS}

    @property
    def range(self) -> tuple[int | None, int | None]:
        """The first and the last time."""
        return self._times or (None, None)


def _for_match(tables: dict[str, Raw]) -> dict[str, Raw]:
    """The columns of a stage that are kept of the whole file."""
    kept = {name: {key: tables[name][key] for key in keys} for name, keys in MATCHED.items()}
    begun = np.flatnonzero(tables["slices"]["kind"] != COMPLETE)
    kept["begins"] = {key: tables["slices"][key][begun] for key in ("name", "id")}
    return kept


def _joined(raws: list[Raw]) -> Raw:
    """Columns one behind another; the parts of each are released once it is made."""
    return {key: np.concatenate([raw.pop(key) for raw in raws]) for key in list(raws[0])}


def _ignore(rule: Rule, offset: int, value: object = None) -> None:
    """Findings of a second reading, which the first one reported."""
