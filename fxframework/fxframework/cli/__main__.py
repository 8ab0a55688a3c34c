"""Entry point of ``python -m fxframework.cli``, the same as ``fxf``."""

import sys

from fxframework.cli import main

sys.exit(main())
