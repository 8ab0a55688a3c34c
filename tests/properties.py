"""Which examples hypothesis tries, and how many: the same everywhere, or random ones to explore.

`pytest` tries the same examples every time, on every machine: they follow from the source of a
test, its ID, and the version of hypothesis, which `pyproject.toml` pins. A test takes a share::

    @share(1 / 4)
    @given(captures())
    def test_captures_come_back(trace: bytes) -> None: ...

`tox run -e explore` tries random ones, thousands of each property: `tests/explore.py`.
"""

from __future__ import annotations

import hypothesis
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

SAME = "same"
"""The profile of the tests."""
EXPLORE = "explore"
"""The profile of random examples."""
UNTIL = "FXF_EXPLORE_UNTIL"
"""The variable with the time at which exploring ends."""
EXAMPLES = 8
"""Examples of each property that the tests try."""
FEW = """
import hypothesis
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
no_constants = Constants()
providers._get_local_constants = lambda: no_constants
from fxframework.testing.contracts import repetition
repetition.SLOW = 0.2
hypothesis.settings.register_profile("few", max_examples=5, derandomize=True, database=None)
hypothesis.settings.load_profile("few")
"""
"""A plugin of pytest for the tests of plugins that a test writes: few examples of each contract,
no search of all sources for constants, and no large files for readers in Python."""
ROUND = 200
"""Examples of each property that a round of exploring tries."""


# No constants are drawn from the source of what is imported, nor gathered, which takes a second.
# Hypothesis takes them from modules outside of site-packages only: from a checkout, not from a
# wheel, and other ones after other tests. So they would change what the tests try.
NO_CONSTANTS = Constants()
providers._get_local_constants = lambda: NO_CONSTANTS

# Time decides nothing: compiling a kernel may fall into any example, and most health checks measure
# how long examples take.
hypothesis.settings.register_profile(
    SAME,
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.register_profile(
    EXPLORE,
    hypothesis.settings.get_profile(SAME),
    derandomize=False,
    max_examples=ROUND,
    print_blob=True,
)


def forget_earlier_tests() -> None:
    """Forget the constants that earlier tests of this process drew from; they change later ones."""
    providers.CONSTANTS_CACHE.cache.clear()


def share(fraction: float) -> hypothesis.settings:
    """Return settings that try a fraction of the profile's examples, at least two.

    The first is the simplest that there is, and alone shows little.
    """
    examples = round(hypothesis.settings.default.max_examples * fraction)
    return hypothesis.settings(max_examples=max(2, examples))
