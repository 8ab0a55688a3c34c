"""Makes the captures of these tests known to them (``import calls_of``)."""

from __future__ import annotations

import sys
from pathlib import Path

# Test folders are no packages, and with --import-mode=importlib nothing puts them on the path.
sys.path.insert(0, str(Path(__file__).parent))
