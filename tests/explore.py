"""Try random examples of all properties, round after round, until the time is over.

    tox run -e explore -- --minutes 60 tests/plugins/log

A round tries some hundred examples of each property, with a seed of its own. Its line repeats a
failure, with the test in place of the folders:

    pytest --hypothesis-profile=explore --hypothesis-seed=SEED tests/...::test_...

What fails is a fault of the product or of what the test believes. The mend comes with an explicit
`@example`, because no later run is sure to try it again.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys
import time
from pathlib import Path

from properties import EXPLORE, UNTIL

ROOT = Path(__file__).parents[1]
NOTHING_COLLECTED = 5


def main() -> int:
    """Run rounds; return 1 if a property failed in one of them."""
    parser = argparse.ArgumentParser(description="Try random examples of all properties.")
    parser.add_argument("--minutes", type=float, default=60, help="how long (60)")
    parser.add_argument("--processes", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--seed", type=int, help="the seed of the first round (a random one)")
    parser.add_argument("tests", nargs="*", default=["tests", "examples/plugins"])
    chosen = parser.parse_args()
    end = time.time() + 60 * chosen.minutes
    seed = random.SystemRandom().getrandbits(32) if chosen.seed is None else chosen.seed
    failed_seeds = []
    while time.time() < end:
        status = run_round(seed, end, chosen.processes, chosen.tests)
        if status == NOTHING_COLLECTED:
            print("no property is there", file=sys.stderr)
            return status
        if status != 0:
            failed_seeds.append(seed)
        seed += 1
    if failed_seeds:
        print(f"properties failed with the seeds {failed_seeds}")
    return bool(failed_seeds)


def run_round(seed: int, end: float, processes: int, tests: list[str]) -> int:
    """Try every property with a seed; those that have not begun at the end are skipped."""
    command = [
        "pytest", f"--hypothesis-profile={EXPLORE}", f"--hypothesis-seed={seed}",
        "-m", "hypothesis and not bench", "--benchmark-disable", "--timeout=3600",
        "-n", str(processes), "--dist", "worksteal", "-q", "-rfE", *tests,
    ]  # fmt: skip
    print("+", shlex.join(command), flush=True)
    # The wheel is tested, not the checkout that the tests lie in.
    environment = {**os.environ, UNTIL: str(end), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
