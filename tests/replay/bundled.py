"""A host with the bundled plugins, and nothing else that is installed."""

from __future__ import annotations

import fx_emulator.plugin
import fx_inspect.plugin
import fx_log.plugin
import fx_trace.plugin
import fx_xray.plugin
from fxframework.exporters import plugin as exporters
from fxframework.host import Host
from fxframework.replay import plugin as steps


def bundled() -> Host:
    """Make one."""
    host = Host(discover=False)
    for name, plugin in (
        ("exporters", exporters),
        ("replay", steps),
        ("inspect", fx_inspect.plugin),
        ("log", fx_log.plugin),
        ("trace", fx_trace.plugin),
        ("xray", fx_xray.plugin),
        ("emulator", fx_emulator.plugin),
    ):
        host.register(plugin, name=name, distribution="fxframework")
    assert not host.failures
    return host
