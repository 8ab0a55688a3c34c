"""What llvm-xray says of damaged logs is what the rules of our findings say that it says.

``llvm_xray_says.json`` has, by log, the words of llvm-xray; null where it reads the log whole, and
empty where it refuses it with the words of another attempt to read it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import fxframework as fxf

from ..plugins.xray.test_conformance import DAMAGE
from ..plugins.xray.test_records import BASIC, CASES
from ..plugins.xray.traces import header
from . import xray_tool

CONFORMANCE = Path(__file__).parents[1] / "conformance" / "xray"
LOGS = {
    **{f"recorder: {name}": data for name, (data, _) in CASES.items()},
    **{f"basic: {name}": header(3, basic=True) + body for name, (body, _) in BASIC.items()},
    **{name: (CONFORMANCE / name).read_bytes() for name in DAMAGE},
}
SAYS: dict[str, str | None] = json.loads(
    Path(__file__).with_name("llvm_xray_says.json").read_text(encoding="utf-8")
)


def test_every_damaged_log_is_compared() -> None:
    assert LOGS.keys() == SAYS.keys()


@pytest.mark.parametrize("name", LOGS)
def test_llvm_xray_says_what_we_say_that_it_says(name: str, tmp_path: Path) -> None:
    log, says = tmp_path / "log.xray", SAYS[name]
    log.write_bytes(LOGS[name])
    words = refusal(log)
    assert (words is None) == (says is None), words
    if not says:
        return
    assert words is not None
    assert says in words
    with fxf.open(log, format="xray-basic" if name.startswith("basic") else "xray") as capture:
        capture.scan()
        rules = [capture.diagnostics.rule(code) for code in capture.diagnostics.counts]
    assert any(says in re.sub(r"\s+", " ", rule.readers) for rule in rules)


def refusal(log: Path) -> str | None:
    """All that llvm-xray says while it refuses a log; None if it takes it.

    `convert` reads a log that it refuses once more, as YAML, and may show that error alone;
    `fdr-dump` looks at the records only.
    """
    done = xray_tool.run("convert", "-f", "yaml", log)
    if done.returncode == 0:
        return None
    others = [xray_tool.run("fdr-dump", log), xray_tool.run("fdr-dump", "--verify", log)]
    return "".join(each.stderr.decode("utf-8", "replace") for each in (done, *others))
