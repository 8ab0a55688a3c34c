"""Report: the results of a scenario as text, as JSON and as JUnit XML.

All of it is determined by the scenario and the seed, except durations, which can be omitted so
that reports can be compared byte for byte.
"""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from fxframework.kit.steps import Status

VERSION = 1
"""Version of the report as JSON."""
NOT_IN_XML = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Control characters, surrogates, U+FFFE and U+FFFF. A carriage return would become a newline."""
MARKS = {"ok": "ok", "failed": "FAILED", "skipped": "skipped"}


@attrs.frozen(kw_only=True)
class StepReport:
    """The result of a step."""

    index: int
    """Its number, from 0; -1 for a device that could not be opened."""
    do: str
    """The name of its kind, or the path of the device."""
    status: Status
    message: str = ""
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    seconds: float = attrs.field(default=0.0, eq=False)
    """Its duration."""
    error: BaseException | None = attrs.field(default=None, eq=False, repr=False)
    """The exception that it raised."""

    @property
    def name(self) -> str:
        """Its path in the scenario and its kind; for a device only the path."""
        return self.do if self.index < 0 else f"step[{self.index}] {self.do}"

    def to_json(self, *, timing: bool = True) -> dict[str, Any]:
        """Return the step as JSON values; ``timing`` includes its duration."""
        fields = {
            "index": self.index,
            "do": self.do,
            "status": self.status,
            "message": self.message,
            "facts": dict(self.facts),
        }
        if timing:
            fields["seconds"] = self.seconds
        return fields


@attrs.frozen(kw_only=True)
class Report:
    """The results of a scenario."""

    scenario: str
    """Its name."""
    file: str
    """The name of its file; empty if it is not in a file."""
    seed: int
    own_seed: bool
    """Whether the seed is the scenario's own."""
    steps: tuple[StepReport, ...]
    outputs: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)
    """Outputs by name."""
    goldens: Mapping[str, str] = attrs.field(factory=dict)
    """Golden files that were written, by output."""

    @property
    def ok(self) -> bool:
        """Whether every expectation holds."""
        return all(step.status != "failed" for step in self.steps)

    @property
    def seconds(self) -> float:
        """Total duration of all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def failures(self) -> tuple[StepReport, ...]:
        """The steps that failed."""
        return tuple(step for step in self.steps if step.status == "failed")

    def to_json(self, *, timing: bool = True) -> dict[str, Any]:
        """Return the report as JSON values; ``timing`` includes durations."""
        outputs = {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in self.outputs.items()
        }
        fields: dict[str, Any] = {
            "fxframework": "replay",
            "version": VERSION,
            "scenario": self.scenario,
            "file": self.file,
            "seed": self.seed,
            "own_seed": self.own_seed,
            "ok": self.ok,
            "steps": [step.to_json(timing=timing) for step in self.steps],
            "outputs": outputs,
        }
        if timing:
            fields["seconds"] = self.seconds
        return fields

    def to_text(self, *, timing: bool = True, verbose: bool = True) -> str:
        """Return the report as text with a line per step; steps that are ok only if ``verbose``."""
        verdict = "ok"
        if not self.ok:
            verdict = f"FAILED ({len(self.failures)} of {len(self.steps)} steps)"
        if timing:
            verdict += f" in {self.seconds:.2f} s"
        lines = [f"{self.scenario} (seed {self.seed}): {verdict}"]
        width = max((len(step.name) for step in self.steps), default=0)
        for step in self.steps:
            if step.status == "ok" and not verbose:
                continue
            line = f"  {step.name:<{width}}  {MARKS[step.status]}"
            if step.message:
                line += ": " + step.message.replace("\n", "\n      ")
            lines.append(line)
        return "\n".join(lines) + "\n"


def junit(reports: Iterable[Report], *, timing: bool = True) -> str:
    """Return JUnit XML with a test suite per scenario and a test case per step."""
    root = ET.Element("testsuites")
    for report in reports:
        skipped = sum(step.status == "skipped" for step in report.steps)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=_xml(report.scenario),
            tests=str(len(report.steps)),
            failures=str(len(report.failures)),
            errors="0",
            skipped=str(skipped),
        )
        if timing:
            suite.set("time", f"{report.seconds:.6f}")
        for step in report.steps:
            case = ET.SubElement(
                suite, "testcase", classname=_xml(report.scenario), name=_xml(step.name)
            )
            if timing:
                case.set("time", f"{step.seconds:.6f}")
            message = _xml(step.message)
            if step.status == "failed":
                first_line = message.partition("\n")[0]
                failure = ET.SubElement(case, "failure", message=first_line)
                failure.text = message
            elif step.status == "skipped":
                ET.SubElement(case, "skipped", message=message)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Escape characters that XML cannot contain."""
    return NOT_IN_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
