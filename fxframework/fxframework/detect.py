"""Detection of the reader for an input, by the sniffers' confidence; suffixes break ties."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Thread

import attrs

from fxframework.containment import PATIENCE, escape
from fxframework.errors import NoReaderError, NotACaptureError
from fxframework.foreign import foreign
from fxframework.registry import Confidence, Probe, Reader

__all__ = ["Candidate", "Confidence", "Probe", "Ranking", "SniffFailure", "choose", "rank"]


@attrs.frozen
class Candidate:
    """A reader that recognizes an input."""

    reader: Reader
    confidence: Confidence
    suffix: bool
    """Whether the input's name ends in one of the reader's suffixes."""


@attrs.frozen
class SniffFailure:
    """A sniffer that raised or did not return, which counts as Confidence.NONE."""

    reader: Reader
    error: Exception


@attrs.frozen
class Ranking:
    """The verdicts of all readers on one input."""

    candidates: tuple[Candidate, ...]
    """Readers that recognize it, by confidence; among equals, those with its suffix first."""
    failures: tuple[SniffFailure, ...]
    named: tuple[Reader, ...]
    """Readers that have its suffix, whatever their confidence."""


def rank(readers: Iterable[Reader], probe: Probe) -> Ranking:
    """Run the sniffers of all readers.

    Never raises: a sniffer that raises, or takes longer than ``PATIENCE`` seconds, is listed as
    failed and counts as NONE.
    """
    asked = list(readers)
    named = tuple(reader for reader in asked if probe.has_suffix(reader.suffixes))
    candidates: list[Candidate] = []
    failures: list[SniffFailure] = []
    for reader, verdict in _verdicts(asked, probe):
        if isinstance(verdict, Exception):
            failures.append(SniffFailure(reader, verdict))
        elif verdict is not Confidence.NONE:
            candidates.append(Candidate(reader, verdict, reader in named))
    candidates.sort(key=lambda found: (-found.confidence, not found.suffix))
    return Ranking(tuple(candidates), tuple(failures), named)


def _verdicts(
    readers: Sequence[Reader], probe: Probe
) -> Iterator[tuple[Reader, Confidence | Exception]]:
    """Yield the result or the exception of each sniffer; TimeoutError if it takes too long.

    Sniffers run in a separate thread, which is abandoned if one does not return.
    """
    at = 0
    while at < len(readers):
        verdicts: SimpleQueue[Confidence | Exception] = SimpleQueue()
        Thread(target=_ask, args=(readers[at:], probe, verdicts), daemon=True).start()
        while at < len(readers):
            try:
                verdict = verdicts.get(timeout=PATIENCE)
            except Empty:
                late = TimeoutError(f"it did not return within {PATIENCE:g} s")
                yield readers[at], late
                at += 1
                break
            yield readers[at], verdict
            at += 1


def _ask(
    readers: Sequence[Reader], probe: Probe, verdicts: SimpleQueue[Confidence | Exception]
) -> None:
    for reader in readers:
        try:
            verdict = reader.sniff(probe)
            if not isinstance(verdict, Confidence):
                raise TypeError(f"it returned {verdict!r}, not a Confidence")
            verdicts.put(verdict)
        except Exception as error:  # noqa: BLE001 (code of plugins; listed by the host)
            verdicts.put(error)
        except BaseException as error:  # noqa: BLE001 (it must not end the thread)
            verdicts.put(escape(error))


def choose(ranking: Ranking, probe: Probe, *, unpacked: bool = False) -> Reader:
    """Return the reader for the input, which was compressed if it is ``unpacked``.

    The greatest confidence wins and the suffix breaks ties; for an empty input, only the suffix
    counts. Raises NoReaderError, which names the candidates, if none or several remain. If there
    are none, it says what the input is, if that is known, and what to do; it is a NotACaptureError
    if no reader has the suffix either.
    """
    best = ranking.candidates[:1]
    ties = [
        found.reader
        for found in ranking.candidates
        if (found.confidence, found.suffix) == (best[0].confidence, best[0].suffix)
    ]
    if not ties and not probe.size:
        ties = list(ranking.named)
    if len(ties) == 1:
        return ties[0]
    if ties:
        formats = ", ".join(reader.format for reader in ties)
        raise NoReaderError(
            f"the input could be any of {formats}",
            path=probe.name,
            remedy=f"name the format: -f {ties[0].format}",
        )
    what = "the input is empty" if not probe.size else "no reader recognizes these bytes"
    known = foreign(probe)
    if known is not None:
        what = f"no reader recognizes {known.what}"
        what += " that is compressed" if unpacked else ""
    remedy = [known.remedy] if known is not None and known.remedy else []
    if ranking.named:
        names = " or ".join(reader.format for reader in ranking.named)
        raise NoReaderError(
            f"{what}, although its suffix is that of {names}",
            path=probe.name,
            remedy="; ".join([*remedy, f"to read it anyway: -f {ranking.named[0].format}"]),
        )
    raise NotACaptureError(
        f"{what}, and no reader has its suffix",
        path=probe.name,
        remedy="; ".join(remedy) or "name the format with -f NAME; `fxf plugins` lists them",
    )
