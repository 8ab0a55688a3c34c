"""Hooks: the functions by which a plugin registers with the host, or observes it.

Data never flows through a hook. A plugin implements the hooks it needs with
``fxframework.hookimpl``, in the module that its entry point (group ``fxframework``) names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import click

    from fxframework.io.sink import Sink
    from fxframework.io.source import Source
    from fxframework.model.capture import Capture
    from fxframework.model.diagnostics import Diagnostic
    from fxframework.registry import DeviceKind, Exporter, Reader, StepKind, Writer

PROJECT = "fxframework"
API = 2
"""Version of the plugin API: the hooks, and what ``fxframework.plugin`` and the modules of the
reference offer. It increases if something is removed or changes its meaning, not for additions. The
host refuses a plugin whose module defines ``FXFRAMEWORK_API`` with a different value. What each
version changed is in docs/plugins.md."""
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

# ---------------------------------------------------------------------------
# Registration: every implementation is called once, when the host starts, and
# the results are collected. Return descriptors; import nothing heavy.
# ---------------------------------------------------------------------------


@hookspec
def fx_readers() -> Iterable[Reader]:  # type: ignore[empty-body]
    """Return the formats that this plugin reads.

    Called once when the host starts; all results are collected. Two readers of one format are
    refused, and the message names both distributions.

    :return: a descriptor, or several; may be empty.
    """


@hookspec
def fx_writers() -> Iterable[Writer]:  # type: ignore[empty-body]
    """Return the formats that this plugin writes.

    Called once when the host starts; all results are collected. Two writers of one format are
    refused.

    :return: a descriptor, or several; may be empty.
    """


@hookspec
def fx_exporters() -> Iterable[Exporter]:  # type: ignore[empty-body]
    """Return the exporters of this plugin.

    Called once when the host starts; all results are collected. Two exporters of one name that
    accept the same format, or a table in common, are refused.

    :return: a descriptor, or several; may be empty.
    """


@hookspec
def fx_step_kinds() -> Iterable[StepKind]:  # type: ignore[empty-body]
    """Return the kinds of scenario steps that this plugin runs.

    Called once when the host starts; all results are collected.

    :return: a descriptor, or several; may be empty.
    """


@hookspec
def fx_devices() -> Iterable[DeviceKind]:  # type: ignore[empty-body]
    """Return the kinds of emulated devices that scenarios can declare.

    Called once when the host starts; all results are collected.

    :return: a descriptor, or several; may be empty.
    """


@hookspec
def fx_cli(cli: click.Group) -> None:
    """Add commands to ``fxf``.

    Called at most once per run, for help and for a command that is not one of the host's. A
    command whose name is taken is left out. Results are ignored.

    :param cli: the click group to extend.
    """


# ---------------------------------------------------------------------------
# Opening: called until an implementation returns something other than None.
# ---------------------------------------------------------------------------


@hookspec(firstresult=True)
def fx_open_source(uri: str) -> Source | None:
    """Open an input that is not a path, such as ``s3://bucket/boot.fxt``.

    Called for every input whose name contains ``://``; stops at the first result that is not None.

    :param uri: the input's name as given.
    :return: a source, or None for a scheme of another plugin.
    """


@hookspec(firstresult=True)
def fx_open_sink(uri: str) -> Sink | None:
    """Open an output that is not a path.

    Called for every output whose name contains ``://``; stops at the first result that is not None.

    :param uri: the output's name as given.
    :return: a sink, or None for a scheme of another plugin.
    """


# ---------------------------------------------------------------------------
# Observers: every implementation is called; results are ignored. An observer
# that raises is listed as failed and not called again.
# ---------------------------------------------------------------------------


@hookspec
def fx_capture_opened(capture: Capture) -> None:
    """Observe that a capture was opened.

    :param capture: the capture, before any of it has been read.
    """


@hookspec
def fx_diagnostic(diagnostic: Diagnostic) -> None:
    """Observe a finding when it is reported.

    :param diagnostic: the finding.
    """


@hookspec
def fx_step_finished(step: Any) -> None:
    """Observe that a step of a scenario has run.

    :param step: the step and its outcome.
    """


@hookspec
def fx_replay_finished(report: Any) -> None:
    """Observe that a scenario has run.

    :param report: the replay's report.
    """
