"""Detection of the reader for an input, by the sniffers' confidence; suffixes break ties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from fxframework.containment import escape, in_time
from fxframework.errors import NoReaderError, NotACaptureError
from fxframework.foreign import foreign
from fxframework.registry import Confidence, Probe, Reader


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
    all_readers = list(readers)
    readers_of_suffix = tuple(reader for reader in all_readers if probe.has_suffix(reader.suffixes))
    candidates: list[Candidate] = []
    failures: list[SniffFailure] = []
    for reader, verdict in zip(all_readers, _verdicts(all_readers, probe), strict=True):
        if isinstance(verdict, Exception):
            failures.append(SniffFailure(reader, verdict))
        elif verdict is not Confidence.NONE:
            candidates.append(Candidate(reader, verdict, reader in readers_of_suffix))
    candidates.sort(key=lambda candidate: (-candidate.confidence, not candidate.suffix))
    return Ranking(tuple(candidates), tuple(failures), readers_of_suffix)


def _verdicts(readers: Sequence[Reader], probe: Probe) -> list[Confidence | Exception]:
    """Return the result or the exception of each sniffer; TimeoutError if it takes too long."""
    try:
        return in_time(lambda: [_verdict(reader, probe) for reader in readers])
    except TimeoutError as error:
        if len(readers) == 1:
            return [error]
    # One of them does not return: ask each in a thread of its own.
    return [verdict for reader in readers for verdict in _verdicts([reader], probe)]


def _verdict(reader: Reader, probe: Probe) -> Confidence | Exception:
    try:
        verdict = reader.sniff(probe)
        if not isinstance(verdict, Confidence):
            raise TypeError(f"it returned {verdict!r}, not a Confidence")
    except Exception as error:  # noqa: BLE001 (code of plugins; listed by the host)
        return error
    except BaseException as error:  # noqa: BLE001 (it must not keep the others from being asked)
        return escape(error)
    return verdict


def choose(ranking: Ranking, probe: Probe, *, unpacked: bool = False) -> Reader:
    """Return the reader for the input, which was compressed if it is ``unpacked``.

    The greatest confidence wins and the suffix breaks ties; for an empty input, only the suffix
    counts. Raises NoReaderError, which names the candidates, if none or several remain. If there
    are none, it says what the input is, if that is known, and what to do; it is a NotACaptureError
    if no reader has the suffix either.
    """
    readers = _best_readers(ranking)
    if not readers and not probe.size:
        readers = list(ranking.named)
    if not readers:
        raise _not_recognized(ranking, probe, unpacked=unpacked)
    if len(readers) > 1:
        formats = ", ".join(reader.format for reader in readers)
        raise NoReaderError(
            f"the input could be any of {formats}",
            path=probe.name,
            remedy=f"name the format: -f {readers[0].format}",
        )
    return readers[0]


def _best_readers(ranking: Ranking) -> list[Reader]:
    """Return the first candidate's reader, and those that are ranked as high."""
    if not ranking.candidates:
        return []
    best = ranking.candidates[0]
    return [
        candidate.reader
        for candidate in ranking.candidates
        if (candidate.confidence, candidate.suffix) == (best.confidence, best.suffix)
    ]


def _not_recognized(ranking: Ranking, probe: Probe, *, unpacked: bool) -> NoReaderError:
    """Return the error for an input that no sniffer recognizes."""
    problem = "no reader recognizes these bytes" if probe.size else "the input is empty"
    remedies = []
    kind_of_file = foreign(probe)
    if kind_of_file is not None:
        problem = f"no reader recognizes {kind_of_file.what}"
        if unpacked:
            problem += " that is compressed"
        if kind_of_file.remedy:
            remedies.append(kind_of_file.remedy)
    if ranking.named:
        formats = " or ".join(reader.format for reader in ranking.named)
        remedies.append(f"to read it anyway: -f {ranking.named[0].format}")
        return NoReaderError(
            f"{problem}, although its suffix is that of {formats}",
            path=probe.name,
            remedy="; ".join(remedies),
        )
    if not remedies:
        remedies.append("name the format with -f NAME; `fxf plugins` lists them")
    return NotACaptureError(
        f"{problem}, and no reader has its suffix",
        path=probe.name,
        remedy="; ".join(remedies),
    )
