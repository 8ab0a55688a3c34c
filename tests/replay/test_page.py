"""docs/replay.md knows every step, device and action, with every parameter; what it shows runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest

import fx_inspect.steps
import fx_log.steps
import fx_trace.steps
import fx_xray.steps
from fxframework.host import Host
from fxframework.kit.workload import CommonAction, Loop
from fxframework.replay import parse, replay

from ..cases import cases

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")


EVERY, TRACING, LOGGING, CALLING, TELLING = (
    f"Actions of {who}"
    for who in ("all threads", "trace.thread", "log.thread", "xray.thread", "inspect.thread")
)
COMMON = (*get_args(CommonAction), Loop)
OWN = {
    TRACING: fx_trace.steps.Action,
    LOGGING: fx_log.steps.Action,
    CALLING: fx_xray.steps.Action,
    TELLING: fx_inspect.steps.Action,
}


def part(title: str) -> str:
    """A chapter of the page."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no part {title}"
    return found[1]


def section(title: str, text: str = PAGE) -> str:
    found = re.search(
        rf"^### `{re.escape(title)}`\n(.*?)(?=^#{{2,3}} |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"there is no section {title}"
    return found[1]


def lacking(text: str, wanted: Any) -> list[str]:
    """Parameters that a text does not describe."""
    names = [field.name.rstrip("_") for field in attrs.fields(wanted)]
    return [name for name in names if f"| `{name}` |" not in text]


def test_every_step_and_device(host: Host) -> None:
    for name, kind in {**host.step_kinds, **host.devices}.items():
        text = section(name)
        assert kind.title in text
        assert kind.parameters is not None
        assert not lacking(text, kind.parameters()), name


def actions() -> list[Any]:
    """Every action, with the part of the page where it stands."""
    own = [
        (title, action)
        for title, union in OWN.items()
        for action in get_args(union)
        if not issubclass(action, COMMON)
    ]
    return [*((EVERY, action) for action in COMMON), *own]


@cases(("title", "action"), actions())
def test_every_action(title: str, action: Any) -> None:
    first = attrs.fields(action)[0].name.rstrip("_")
    assert not lacking(section(f"{{ {first} = … }}", part(title)), action)


@cases("union", OWN.values())
def test_what_every_thread_does_is_in_every_script(union: Any) -> None:
    members = get_args(union)
    assert all(any(issubclass(each, common) for each in members) for common in COMMON)


def test_the_scenarios_of_the_page_hold(host: Host) -> None:
    texts = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(texts) == 3
    for text in texts:
        head = "" if "[scenario]" in text else '[scenario]\nname = "part"\n'
        report = replay(parse(head + text, host), host=host)
        assert report.ok, report.to_text()


def test_every_option_of_pytest_and_of_python() -> None:
    from fxframework.testing import pytest_plugin

    for name in pytest_plugin.__all__:
        assert f"| `{name}` |" in PAGE
    assert pytest_plugin.UPDATE in PAGE


def test_its_code_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    ):
        block = compile(code, f"docs/replay.md, block {number}", "exec", dont_inherit=True)
        exec(block, {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert "True ['ok'," in said
    assert "first after store 1, to byte 0" in said
