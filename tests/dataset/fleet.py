"""A fleet: captures of four formats that scenarios make, some of them damaged.

    python tests/dataset/fleet.py FOLDER COUNT

makes them in FOLDER/HOST/, for runs that are larger than those of the tests.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

from fxframework.replay import replay

SCENARIOS = Path(__file__).parents[2] / "examples" / "scenarios"
OUTPUTS = {
    "boot": ["boot.fxt"],
    "inspect": ["first.inspect", "busy.inspect", "last.inspect"],
    "logs": ["early.fxlog", "logs.fxlog"],
    "xray": ["early.xray", "calls.xray", "first.xray"],
}
"""What each scenario leaves: captures of four formats."""
EVERY = 20
"""One of so many is damaged."""
HOSTS = 7


def captures() -> Iterator[tuple[str, bytes]]:
    """Names and bytes of captures, one format after the other, without an end."""
    made = [_outputs(name) for name in OUTPUTS]
    for each in itertools.cycle(made):
        yield next(each)


def _outputs(scenario: str) -> Iterator[tuple[str, bytes]]:
    for seed in itertools.count(1):
        report = replay(SCENARIOS / f"{scenario}.toml", seed=seed)
        for name in OUTPUTS[scenario]:
            yield f"{seed:04}-{name}", report.outputs[name]


def damaged(data: bytes, number: int) -> bytes:
    """Bytes that no reader takes for whole: one of three ways to spoil them."""
    middle = len(data) // 2 // 8 * 8
    quarter = middle // 2
    ways = (
        lambda: data[: middle + 3],
        lambda: data[:quarter] + b"\xff" * middle + data[quarter + middle :],
        lambda: b"",
    )
    return ways[number % len(ways)]()


def make(folder: Path, count: int) -> list[Path]:
    """So many captures in folders of hosts; gives those that are damaged."""
    spoiled = []
    for number, (name, data) in enumerate(itertools.islice(captures(), count)):
        path = folder / f"host-{number % HOSTS}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if number % EVERY == number // EVERY % len(OUTPUTS) + 1:  # each format in its turn
            data = damaged(data, len(spoiled))
            spoiled.append(path)
        path.write_bytes(data)
    return spoiled


if __name__ == "__main__":
    for path in make(Path(sys.argv[1]), int(sys.argv[2])):
        sys.stdout.write(f"{path}\n")
