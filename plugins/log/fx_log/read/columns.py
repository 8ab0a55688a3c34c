"""Raw columns: the arrays that the kernels fill and carry, made, grown and taken in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_log.read import scan as k
from fx_log.severity import LEVELS
from fxframework.io import arena
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.strings import StringPool

__all__ = ["Chunk", "Decoder", "PacketDecoder", "RingDecoder", "well_known_texts"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
FRAMES = 1 << 14
"""Records that are framed before they are decoded: their bytes are still in the cache then."""
STEP = 1 << 12
"""Entries for which room is made in everything, for large files."""
WINDOW = 1 << 25
"""Bytes after which the file's pages are let go of."""
BEGINNING = 1 << 20
"""Bytes read before the room for a whole file is estimated."""
SPARE_FINDINGS = 64
"""Room for findings that framing makes without looking."""

_ROWS = {
    k.Logs: k.N_LOGS,
    k.Rare: k.N_RARE,
    k.Args: k.N_ARGS,
    k.Tags: k.N_TAGS,
    k.Positional: k.N_POSITIONAL,
}
_SMALL = {
    **dict.fromkeys(("severity", "given", "type", "column"), np.uint8),
    **dict.fromkeys(("length", "line"), np.uint32),
    **dict.fromkeys(("tags", "component", "url", "file", "name"), np.int32),
}


def _columns(kind: Any, rows: int) -> Any:
    return kind(*(arena.empty(rows, _SMALL.get(field, np.int64)) for field in kind._fields))


def _resized(columns: Any, used: int, rows: int) -> Any:
    """The same columns with room for ``rows``; the first ``used`` stay."""
    larger = _columns(type(columns), rows)
    for old, new in zip(columns, larger, strict=True):
        new[:used] = old[:used]
    return larger


def _components(slots: int) -> k.Components:
    """An empty map of tags."""
    return k.Components(
        state=np.zeros(slots, np.uint8),
        tag=np.zeros(slots, np.int64),
        moniker=np.zeros(slots, np.int32),
        url=np.zeros(slots, np.int32),
        used=np.zeros(1, np.int64),
    )


def well_known_texts(pool: StringPool) -> None:
    """Enter what the kernels know by its code; the pool is empty, so that the codes are those."""
    for text in (*k.WELL_KNOWN, *k.LEVEL_NAMES):
        pool.intern(text)


@attrs.define
class Chunk:
    """Raw rows of consecutive records."""

    logs: k.Logs
    rare: k.Rare
    args: k.Args
    tags: k.Tags
    positional: k.Positional
    data: U8
    """What messages are stretches of."""
    first: Mapping[str, int]
    """Row of the chunk's first log, argument and tag, by table."""


class Decoder:
    """Reads a file of structured records, from its beginning, once.

    ``pool`` began with ``well_known_texts``; ``before`` is the decoder that last filled it, if any
    did.
    """

    def __init__(
        self,
        data: U8,
        pool: StringPool,
        limits: Limits,
        options: Mapping[str, Any],
        before: Decoder | None = None,
    ) -> None:
        self.data = data
        self.words: I64 = data[: data.size // 8 * 8].view("<i8")
        self.pool = pool
        self.nbytes = int(data.size)
        # Of strings that an earlier decoder entered, it is known whether they are UTF-8.
        valid = np.ones(0, np.uint8) if before is None else before.state.texts.valid
        scratch = np.zeros(4200, np.int64)
        size = pool.arrays.starts.size
        self.state: k.State = k.State(
            scalars=np.zeros(k.SCALARS, np.int64),
            kinds=np.zeros(len(k.KIND_NAMES), np.int64),
            severities=np.zeros(256, np.int64),
            notes=k.Notes(
                findings=np.empty(256 * k.FINDING_FIELDS, np.int64),
                counts=np.zeros(k.CODES + 2, np.int64),
            ),
            texts=k.Texts(
                valid=_longer(valid, size, fill=1),
                met=np.zeros(4 * k.MET, np.int64),
                scratch=scratch,
                bytes=scratch.view(np.uint8),
                by_component=np.zeros(size, np.int64),
                by_tag=np.zeros(size, np.int64),
            ),
        )
        self.state.notes.counts[1] = limits.max_findings or 1 << 62
        scalars = self.state.scalars
        scalars[k.FIRST_NS] = NS_MAX
        scalars[k.LAST_NS] = scalars[k.FINAL_NS] = NS_MIN
        scalars[k.MAX_RECORD] = min(limits.max_record, 1 << 62)
        scalars[k.SUFFIXED] = bool(options.get("suffix"))
        scalars[k.WITH_PRINTF] = bool(options.get("printf"))
        scalars[k.WITH_LIMITS] = bool(options.get("fidl_limits"))
        scalars[k.ERA_2022] = options.get("severity_era") == "2022"
        scalars[k.WRAP] = 1 << 62
        self.components = _components(64)
        self._step = max(64, min(STEP, self.nbytes // 16))
        self.frames = k.Frames(*(np.zeros(self._frames_at_once, np.int64) for _ in range(6)))
        self._outputs: dict[Any, Any] = {kind: _columns(kind, 64) for kind in _ROWS}
        self._next = self._framed = 0
        self._decode = self._kernel(k.decode)
        self._frame = self._kernel(k.frame_log)

    def _kernel(self, kernel: Any) -> Callable[..., int]:
        run: Callable[..., int] = kernel.for_size(self.nbytes)
        return run

    @property
    def _frames_at_once(self) -> int:
        return max(1, min(FRAMES, self.nbytes // 16 + 1))

    # --- What the formats do each in their way ---------------------------------------------------

    @property
    def _end(self) -> int:
        """Where framing ends, in what ``POS`` counts."""
        return -(-self.nbytes // 8)

    _unit = 8
    """Bytes in what ``POS`` counts."""

    def _frame_more(self) -> int:
        """Frame on from where it stands; gives how many frames there are."""
        return self._frame(self.words, self.nbytes, self.frames, self.state)

    def _decode_more(self) -> int:
        """Decode frames on; gives the first one left."""
        out = self._outputs
        return self._decode(
            self.words, self.data, self.frames, self._next, self._framed, out[k.Logs], out[k.Rare],
            out[k.Args], out[k.Tags], out[k.Positional], self.components, self.state,
            self.pool.arrays,
        )  # fmt: skip

    def _needed(self, frame: int) -> tuple[int, int]:
        """Rows of any kind, and words of strings, that a frame may take at most."""
        size, suffix = int(self.frames.size[frame]), int(self.frames.suffix[frame])
        words = 0
        if suffix >= 0:
            lengths = int(self.words[suffix]) & U64_MAX
            words = 4 + (lengths & k.LOW32) // 8 + (lengths >> 32) // 8
        return size + 8, 2 * size + words + 16

    # --- Running ----------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """Bytes that need not be read again."""
        if self._next < self._framed:
            return self._unit * int(self.frames.start[self._next])
        return min(self._unit * int(self.state.scalars[k.POS]), self.nbytes)

    @property
    def done(self) -> bool:
        """Whether everything was read."""
        return self._next == self._framed and int(self.state.scalars[k.POS]) >= self._end

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Read on, giving chunks of up to about that many rows of a table, to the end."""
        while not self.done:
            self._outputs = {kind: _columns(kind, 64) for kind in _ROWS}
            self._make_room(rows)
            first = self._first()
            while (
                not self.done and max(int(self.state.scalars[at]) for at in _ROWS.values()) < rows
            ):
                self._run()
            yield self._take(first)

    def whole(self, release: Callable[[int, int], None]) -> Chunk:
        """Read everything into one chunk; ``release`` is told which bytes were done with."""
        first = self._first()
        released = 0
        estimated = False
        while not self.done:
            self._run()
            position = self.position
            if not estimated and position >= BEGINNING:
                estimated = True
                self._estimate(position)
            if position - released >= WINDOW:
                release(released, position)
                released = position
        release(released, self.nbytes)
        return self._take(first)

    def _estimate(self, position: int) -> None:
        """Make room for a rest that is as dense as the beginning was."""
        if position >= self.nbytes:
            return
        scale = 1.05 * self.nbytes / max(position, 1)
        for kind, counter in _ROWS.items():
            used = int(self.state.scalars[counter])
            if used > self._step // 8:
                rows = min(int(scale * used) + STEP, self.nbytes // 8 + STEP)
                self._outputs[kind] = _resized(self._outputs[kind], used, rows)

    def _run(self) -> None:
        """Frame and decode some more; where nothing moves for want of room, make it."""
        if self._next == self._framed:
            self._run_framing()
            if not self._framed:
                return
        self._say_room()
        before = self._next
        self._next = self._decode_more()
        if self._next == before:
            self._make_room()

    def _run_framing(self) -> None:
        self._say_room()
        before = int(self.state.scalars[k.POS])
        self._next, self._framed = 0, self._frame_more()
        if not self._framed and int(self.state.scalars[k.POS]) == before:
            self._make_room()

    def _say_room(self) -> None:
        """Tell the kernels for how many findings and strings there is room."""
        scalars, findings = self.state.scalars, self.state.notes.findings
        scalars[k.ROOM_FINDINGS] = findings.size // k.FINDING_FIELDS - SPARE_FINDINGS
        scalars[k.ROOM_STRINGS] = min(
            self.pool.arrays.starts.size,
            self.pool.arrays.slots.size // 2,
            self.state.texts.valid.size,
        )

    def _make_room(self, rows: int = 0) -> None:
        """Room for a step more of everything, and half as much again of what is in use."""
        scalars, notes, texts = self.state.scalars, self.state.notes, self.state.texts
        needed, words = (64, 64)
        if self._next < self._framed:
            needed, words = self._needed(self._next)
        step = max(self._step, needed)
        for kind, counter in _ROWS.items():
            used = int(scalars[counter])
            if kind is k.Positional and not scalars[k.WITH_PRINTF]:
                continue
            if used + max(step, rows) > self._outputs[kind][0].size:
                wanted = max(used + max(step, rows), 3 * used // 2)
                self._outputs[kind] = _resized(self._outputs[kind], used, wanted)
        self.pool.reserve(step, max(step, words))
        size = self.pool.arrays.starts.size
        kept = int(notes.counts[0])
        findings = kept + k.WORD_FINDINGS * needed + 2 * k.RECORD_FINDINGS + SPARE_FINDINGS
        if k.FINDING_FIELDS * findings > notes.findings.size:
            findings = max(findings, 2 * kept)
            grown = np.empty(k.FINDING_FIELDS * findings, np.int64)
            grown[: k.FINDING_FIELDS * kept] = notes.findings[: k.FINDING_FIELDS * kept]
            notes = notes._replace(findings=grown)
        if 2 * (int(self.components.used[0]) + 2) > self.components.state.size:
            larger = _components(4 * self.components.state.size)
            self._kernel(k.refill_components)(self.components, larger)
            self.components = larger
        texts = texts._replace(
            valid=_longer(texts.valid, size, fill=1),
            by_component=_longer(texts.by_component, size),
            by_tag=_longer(texts.by_tag, size),
        )
        self.state = self.state._replace(notes=notes, texts=texts)

    def _first(self) -> dict[str, int]:
        scalars = self.state.scalars
        return {
            "logs": int(scalars[k.T_LOGS]),
            "args": int(scalars[k.T_ARGS]),
            "log_tags": int(scalars[k.T_TAGS]),
        }

    def _take(self, first: dict[str, int]) -> Chunk:
        """What was filled since the last time, and empty outputs."""
        scalars = self.state.scalars
        parts: dict[Any, Any] = {}
        for kind, counter in _ROWS.items():
            rows = int(scalars[counter])
            parts[kind] = kind(*(column[:rows] for column in self._outputs[kind]))
            scalars[counter] = 0
        scalars[k.T_ARGS] += parts[k.Args].type.size
        scalars[k.T_TAGS] += parts[k.Tags].name.size
        return Chunk(
            parts[k.Logs],
            parts[k.Rare],
            parts[k.Args],
            parts[k.Tags],
            parts[k.Positional],
            self.data,
            first,
        )

    def framed(self) -> Iterator[k.Frames]:
        """All frames, undecoded, some at a time; views that hold until the next ones."""
        while not self.done:
            self._next = self._framed
            if not self.done:
                self._run_framing()
                yield k.Frames(*(column[: self._framed] for column in self.frames))

    def frame_end(self, frame: int) -> int:
        """The byte behind one of the frames, and behind its attribution."""
        size, suffix = int(self.frames.size[frame]), int(self.frames.suffix[frame])
        if self._unit == 1 or suffix < 0:
            return self._unit * (int(self.frames.start[frame]) + size)
        lengths = int(self.words[suffix]) & U64_MAX
        texts = -(-(lengths & k.LOW32) // 8) + -(-(lengths >> 32) // 8)
        return 8 * (suffix + 2 + texts)

    # --- What was counted -------------------------------------------------------------------------

    def kinds(self) -> dict[str, int]:
        """Records of each kind, by the names of record JSON."""
        counted = zip(k.KIND_NAMES, self.state.kinds.tolist(), strict=True)
        return {name: count for name, count in counted if count}

    def levels(self) -> dict[str, int]:
        """Logs by the name of their severity, the most severe first."""
        found: dict[str, int] = {}
        for severity, count in reversed(list(enumerate(self.state.severities.tolist()))):
            if count:
                name = LEVELS[severity].name
                found[name] = found.get(name, 0) + count
        return found

    def sum_of(self, low: int, high: int) -> int:
        """A sum that is kept in two halves."""
        scalars = self.state.scalars
        return int(scalars[low]) + (int(scalars[high]) << 32)

    def note(self, code: int, offset: int, record: int, value: int = 0) -> None:
        """Report a finding from outside the kernels, before any of them ran."""
        k.note.plain(self.state.notes, code, offset, record, value)


class RingDecoder(Decoder):
    """Reads the entries of a ring: ``used`` bytes of ``image`` from byte ``start`` of the ring."""

    def __init__(
        self,
        image: U8,
        page: int,
        start: int,
        used: int,
        pool: StringPool,
        limits: Limits,
        options: Mapping[str, Any],
        before: Decoder | None = None,
    ) -> None:
        ring = image[page:]
        line = ring[start : start + used]
        if line.size < used:  # it wraps; so that nothing does, that much is copied
            line = np.concatenate((line, ring[: used - line.size]))
        super().__init__(line, pool, limits, options, before)
        scalars = self.state.scalars
        scalars[k.SUFFIXED] = scalars[k.MAX_RECORD] = 0
        scalars[k.ENTRIES] = 1
        scalars[k.BASE], scalars[k.CAPACITY] = page + start, ring.size
        scalars[k.WRAP] = (ring.size - start) // 8
        self._frame = self._kernel(k.frame_ring)

    def _frame_more(self) -> int:
        return self._frame(self.words, self.words.size, self.frames, self.state)


class PacketDecoder(Decoder):
    """Reads legacy packets: those of a container from byte ``start``, or one that is all."""

    _unit = 1

    def __init__(
        self,
        data: U8,
        start: int | None,
        pool: StringPool,
        limits: Limits,
        options: Mapping[str, Any],
        before: Decoder | None = None,
    ) -> None:
        super().__init__(data, pool, limits, options, before)
        self._single = start is None
        self.state.scalars[k.POS] = min(start or 0, self.nbytes)
        self._frame = self._kernel(k.frame_stream)
        self._decode = self._kernel(k.decode_packets)

    @property
    def _end(self) -> int:
        return self.nbytes

    def _frame_more(self) -> int:
        if not self._single:
            return self._frame(self.data, self.frames, self.state)
        for field, value in (("start", 0), ("size", self.nbytes), ("offset", 0), ("record", 0)):
            getattr(self.frames, field)[0] = value
        scalars = self.state.scalars
        scalars[k.POS], scalars[k.RECORD] = self.nbytes, 1
        return 1

    def _decode_more(self) -> int:
        out = self._outputs
        return self._decode(
            self.data, self.frames, self._next, self._framed, out[k.Logs], out[k.Rare],
            out[k.Tags], self.state, self.pool.arrays,
        )  # fmt: skip

    def _needed(self, frame: int) -> tuple[int, int]:  # noqa: ARG002 (all packets alike)
        return 64, k.PACKET_STRINGS**2 + 64


def _longer(array: NDArray[Any], size: int, fill: int = 0) -> NDArray[Any]:
    if array.size >= size:
        return array
    longer = np.full(size, fill, array.dtype)
    longer[: array.size] = array
    return longer
