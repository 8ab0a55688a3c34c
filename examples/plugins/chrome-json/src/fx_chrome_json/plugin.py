"""Chrome trace JSON: what the package registers."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework import hookimpl
from fxframework.errors import Catalogue
from fxframework.registry import Confidence, Probe, Reader, lazy

FXFRAMEWORK_API = 2
"""The version of fxframework's plugin API that this is built for."""


def _rules() -> Catalogue:
    from fx_chrome_json.rules import RULES

    return RULES


def _sniff(probe: Probe) -> Confidence:
    from fx_chrome_json.sniff import sniff

    return sniff(probe)


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """Traces of JSON."""
    return [
        Reader(
            format="chrome-json",
            title="Chrome trace JSON (Trace Event Format)",
            suffixes=(".json",),
            sniff=_sniff,
            open=lazy("fx_chrome_json.read.reader:open_chrome"),
            rules=_rules,
            sample=lazy("fx_chrome_json.sample:sample"),
        )
    ]
