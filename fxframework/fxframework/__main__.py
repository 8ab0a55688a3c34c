"""Entry point of ``python -m fxframework``, the command line."""

from __future__ import annotations

import sys

from fxframework.cli import main

if __name__ == "__main__":
    sys.exit(main())
