"""docs/replay.md knows every step, device and action, with every parameter; what it shows runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest

from fx_trace.steps import Action
from fxframework.host import Host
from fxframework.replay import parse, replay

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    found = re.search(
        rf"^### `{re.escape(title)}`\n(.*?)(?=^#{{2,3}} |\Z)", PAGE, re.MULTILINE | re.DOTALL
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


@pytest.mark.parametrize("action", get_args(Action))
def test_every_action(action: Any) -> None:
    first = attrs.fields(action)[0].name.rstrip("_")
    assert not lacking(section(f"{{ {first} = … }}"), action)


def test_the_scenario_of_the_page_holds(host: Host) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    report = replay(parse(text, host), host=host)
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
