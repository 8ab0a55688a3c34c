"""``python -m tests.stored [CORPUS...]``, in a clone: store the outputs of corpora anew, or of all.

It says what differs from what was stored, which a commit message gives a reason for.
"""

from __future__ import annotations

import argparse
import sys

from .inputs import ROOT, corpora, large

# Where pytest finds this worked plugin by a setting in pyproject.toml.
sys.path.insert(0, str(ROOT / "examples" / "plugins" / "pcapng" / "src"))

from .outputs import FOLDER, differences, load, made, store


def main() -> None:
    """Store what is read now."""
    every = [*corpora(), *large()]
    parser = argparse.ArgumentParser(prog="python -m tests.stored", description=__doc__)
    parser.add_argument("corpus", nargs="*", choices=[[], *every], help="all if none is given")
    for corpus in parser.parse_args().corpus or every:
        text = made(corpus)
        is_stored = (FOLDER / f"{corpus}.txt.xz").exists()
        changes = ["new"]
        if is_stored:
            changes = differences(load(corpus), text)
        if changes:
            store(corpus, text)
        print(corpus, *(changes or ["as stored"]), sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
