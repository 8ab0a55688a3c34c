"""``python -m tests.stored [CORPUS...]``, in a clone: store outputs again, of all corpora or some.

It says what differs from what was stored, which a commit message gives a reason for.
"""

from __future__ import annotations

import argparse
import sys

from .inputs import ROOT, corpora, large

# Where pytest finds this worked plugin by a setting in pyproject.toml.
sys.path.insert(0, str(ROOT / "examples" / "plugins" / "pcapng" / "src"))

from .outputs import FOLDER, differences, load, outputs_of, store


def main() -> None:
    """Store what is read now."""
    names = [*corpora(), *large()]
    parser = argparse.ArgumentParser(prog="python -m tests.stored", description=__doc__)
    parser.add_argument("corpus", nargs="*", choices=[[], *names], help="all if none is given")
    for corpus in parser.parse_args().corpus or names:
        text = outputs_of(corpus)
        changes = ["new"]
        if (FOLDER / f"{corpus}.txt.xz").exists():
            changes = differences(load(corpus), text)
        if changes:
            store(corpus, text)
        print(corpus, *changes, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
