"""Makes the toy format known to the tests of this folder and of others (``import toy``)."""

from __future__ import annotations

import sys
from pathlib import Path

# Test folders are no packages, and with --import-mode=importlib nothing puts them on the path.
sys.path.insert(0, str(Path(__file__).parent))
