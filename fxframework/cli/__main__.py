"""``python -m fxframework.cli`` is ``fxf``."""

import sys

from fxframework.cli import main

sys.exit(main())
