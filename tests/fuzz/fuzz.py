"""Fuzz with atheris: ``python tests/fuzz/fuzz.py --seconds 3600 [TARGET…]`` (docs/fuzzing.md).

Each target (``targets.py``; all of them where none is named) runs in a process of its own for its
part of the time, with the inputs that an earlier turn found. What makes a target fail is kept below
``--work``; the next target goes on. Executions are those that libFuzzer counts. A line of JSON for
each turn is added to ``--work``/turns.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

MOST = 8192
"""Bytes of an input."""
PACKAGES = ["fxframework", "fx_inspect", "fx_log", "fx_trace", "fx_xray"]
COUNT = re.compile(rb"^(?:#(\d+)\t|stat::number_of_executed_units:\s+(\d+))", re.MULTILINE)


KERNELS = frozenset(
    ("trace-kernels", "trace-bounds", "log-kernels", "log-lines", "inspect-kernels",
     "xray-kernels", "strings", "cells", "trace-lines", "trace-writing", "xray-writing",
     "log-text", "numbers", "nesting")
)  # fmt: skip
"""Targets that run kernels alone: Python is not instrumented for them."""


def run_target(name: str, options: list[str]) -> None:
    """Run libFuzzer on a target, in this process."""
    import atheris

    if name in KERNELS:
        from targets import TARGETS, mutated
    else:
        with atheris.instrument_imports(include=PACKAGES):
            from targets import TARGETS, mutated

            import fx_xray.read.capture  # noqa: F401

    target = TARGETS[name]

    every = 8 if name in KERNELS else 2  # kernels are faster than mutations in Python

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        if seed % every or target.split is None:
            return atheris.Mutate(data, most)
        return mutated(random.Random(seed), data, target)[:most]

    atheris.Setup([sys.argv[0], *options], target.run, custom_mutator=mutate)
    atheris.Fuzz()


def cpu_of_children() -> float:
    """Seconds of CPU that the turns have taken until now."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def take_turn(name: str, seconds: int, work: Path) -> dict[str, object]:
    """Fuzz a target for so long in a process of its own; gives what came of it."""
    from targets import TARGETS, found

    corpus, failed = work / "corpus" / name, work / "failed" / name
    if not corpus.exists():
        corpus.mkdir(parents=True)
        for number, seed in enumerate(TARGETS[name].seeds()):
            (corpus / f"seed{number:03}").write_bytes(seed[:MOST])
        for path in found(name):
            shutil.copy(path, corpus)
    failed.mkdir(parents=True, exist_ok=True)
    before = {path.name for path in failed.iterdir()}
    begin, cpu = time.monotonic(), cpu_of_children()
    log = work / f"{name}.log"
    with log.open("wb") as out:
        done = subprocess.run(
            [
                *(sys.executable, __file__, "--run", name, str(corpus)),
                f"-max_total_time={seconds}",
                f"-max_len={MOST}",
                f"-artifact_prefix={failed}/",
                *("-timeout=30", "-rss_limit_mb=4096", "-print_final_stats=1", "-reload=0"),
            ],
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    counts = [int(a or b) for a, b in COUNT.findall(log.read_bytes())]
    new = sorted({path.name for path in failed.iterdir()} - before)
    if done.returncode:
        log.rename(work / f"{name}-{int(time.time())}.log")
    return {
        "target": name,
        "executions": max(counts, default=0),
        "seconds": round(time.monotonic() - begin, 1),
        "cpu": round(cpu_of_children() - cpu, 1),
        "exit": done.returncode,
        "found": new,
    }


def main() -> None:
    """Take turns with all targets until the time is over."""
    if sys.argv[1:2] == ["--run"]:
        run_target(sys.argv[2], sys.argv[3:])
        return
    from targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together")
    parser.add_argument("--turn", type=int, default=0, help="seconds of a turn; 0: one turn each")
    parser.add_argument("--work", type=Path, default=Path("fuzzed"))
    given = parser.parse_args()
    unknown = sorted(set(given.targets) - set(TARGETS))
    if unknown:
        parser.error(f"there is no target {unknown[0]}; there are {', '.join(TARGETS)}")
    given.work.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + given.seconds
    turn = given.turn or max(1, given.seconds // len(given.targets))
    executions = failures = number = 0
    while (left := end - time.monotonic()) >= 1 and (given.turn or number < len(given.targets)):
        name = given.targets[number % len(given.targets)]
        number += 1
        result = take_turn(name, max(1, min(turn, int(left))), given.work)
        executions += int(str(result["executions"]))
        failures += bool(result["exit"])
        with (given.work / "turns.jsonl").open("a") as turns:
            turns.write(json.dumps(result) + "\n")
        print(
            f"{name}: {result['executions']} executions in {result['cpu']} s of CPU, "
            f"{'nothing found' if not result['exit'] else result['found'] or result['exit']}",
            flush=True,
        )
    print(f"{executions} executions, {failures} failures")
    sys.stdout.flush()
    os._exit(bool(failures))


if __name__ == "__main__":
    main()
