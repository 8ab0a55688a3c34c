"""Fuzz the compiled decoders: ``python tests/fuzz/kernels.py --seconds 600 trace log``.

Meant for kernels built with sanitizers: ``.ci/sanitized PYTHON tests/fuzz/kernels.py …`` in an
environment whose wheel was built with ``FXF_SANITIZE=address,undefined``. Inputs are real and
typical captures of a few hundred bytes to some kilobytes, with bytes flipped, words replaced,
stretches cut out, doubled and exchanged. The kernels read each of them whole; for one in eight all
tables are made, for one in a hundred all batches. Anything but a result or an FxError ends it; the
file of ``--keep`` has the input, after its length in 8 bytes. It prints how many were decoded.
"""

from __future__ import annotations

import argparse
import mmap
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fxframework.errors import FxError
from fxframework.host import Host
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels.native import state_of
from fxframework.model.capture import OpenRequest
from fxframework.registry import Reader, parse_options

CONFORMANCE = Path(__file__).parents[1] / "conformance"
LARGEST = 4096
"""Bytes of a seed; larger captures are cut off there."""
TABLES_EVERY, BATCHES_EVERY = 8, 101
LIMITS = Limits(max_unpacked=1 << 20)
WORDS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
         1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
FORMATS = {
    "trace": ("trace", "trace-buffer"),
    "log": ("log", "log-legacy", "log-legacy-stream", "log-ring"),
    "inspect": ("inspect",),
    "xray": ("xray", "xray-basic"),
}


def seeds(host: Host, name: str) -> list[bytes]:
    """Real captures of a format's family, small ones whole, and typical ones."""
    found = [
        path.read_bytes()[:LARGEST]
        for path in sorted((CONFORMANCE / name).rglob("*"))
        if path.is_file() and path.suffix not in {".json", ".py", ".md", ".txt", ".yaml", ".csv"}
    ]
    for format in FORMATS[name]:
        sample = host.reader(format).sample
        if sample is not None:
            found.append(sample(LARGEST)[:LARGEST])
        shapes = host.reader(format).shapes
        if shapes is not None:
            found += [make(1024)[:LARGEST] for make in shapes().values()]
    return [seed for seed in found if seed]


def mutated(chance: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """The bytes with one to six mistakes."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        if not out:
            return bytes(chance.randbytes(16))
        at = chance.randrange(len(out))
        word = at & ~7
        match chance.randrange(8):
            case 0:
                out[at] ^= 1 << chance.randrange(8)
            case 1:
                out[at] = chance.randrange(256)
            case 2:
                out[word : word + 8] = chance.choice(WORDS).to_bytes(8, "little")
            case 3:
                out[at : at + 4] = (chance.choice(WORDS) & 0xFFFFFFFF).to_bytes(4, "little")
            case 4:
                del out[at:]
            case 5:
                del out[word : word + 8 * chance.randrange(1, 9)]
            case 6:
                end = word + 8 * chance.randrange(1, 33)
                out[word:word] = out[word:end]
            case _:
                other = chance.choice(others)
                start = chance.randrange(max(1, len(other))) & ~7
                out[word:word] = other[start : start + 8 * chance.randrange(1, 33)]
    return bytes(out[: 2 * LARGEST])


def decoder(reader: Reader) -> Callable[[bytes, int], None]:
    """What decodes bytes as a format."""
    options = parse_options({}, reader.options, whose=reader.format)
    request = OpenRequest(limits=LIMITS, options=options)

    def decode(data: bytes, number: int) -> None:
        with reader.open(Source.open(data, limits=LIMITS), request) as capture:
            capture.scan()
            for name in capture.schemas if number % TABLES_EVERY == 0 else ():
                table = capture.table(name)
                for column in table.columns:
                    len(table[column])
        if number % BATCHES_EVERY == 0:
            with reader.open(Source.open(data, limits=LIMITS), request) as capture:
                for name in capture.schemas:
                    for batch in capture.batches(name, rows=7):
                        for column in batch.columns:
                            len(batch[column])

    return decode


def kept_in(path: Path) -> mmap.mmap:
    """Memory for an input and its length before it, which outlives this process as a file."""
    path.write_bytes(bytes(1 << 16))
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)


def fuzz(name: str, seconds: float, seed: int, keep: Path) -> int:
    """Decode mutated captures of a family for so long; gives how many."""
    host = Host(environ={"FXF_PLUGINS": f"{name},exporters"})
    chance = random.Random(seed)
    corpus = seeds(host, name)
    decoders = [decoder(host.reader(format)) for format in FORMATS[name]]
    end = time.monotonic() + seconds
    number = 0
    kept = kept_in(keep)
    while time.monotonic() < end:
        data = mutated(chance, chance.choice(corpus), corpus)
        for decode in decoders:
            # Before, not after: a sanitizer ends the process.
            kept[: 8 + len(data)] = len(data).to_bytes(8, "little") + data
            try:
                decode(data, number)
            except FxError:
                pass
            except Exception:
                print(f"{name}: {keep} raises, after {number} inputs", file=sys.stderr)
                raise
            number += 1
    return number


def main() -> None:
    """Fuzz each family named for its part of the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FORMATS), metavar="FAMILY")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzzed.bin"))
    given = parser.parse_args()
    total = 0
    for name in given.families:
        how = state_of(f"fx_{name}").how
        begin = time.monotonic()
        done = fuzz(name, given.seconds / len(given.families), given.seed, given.keep)
        total += done
        pace = done / (time.monotonic() - begin)
        print(f"{name} ({how}): {done} executions, {pace:.0f} a second", flush=True)
    given.keep.unlink(missing_ok=True)
    print(f"{total} executions, nothing found")


if __name__ == "__main__":
    main()
