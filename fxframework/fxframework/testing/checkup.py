"""Checkup: runs the contract tests of a plugin in this process, without pytest.

    for result in checkup(default_host(), "beats"):
        print(result.contract, result.item, result.test, result.status, result.message)

Samples come from the descriptors: the ``sample`` of a reader, a step or a device. An exporter is
tested with the sample of the first installed reader whose captures it accepts.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import tempfile
import unittest
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import attrs

from fxframework.errors import FxError, UsageError, WriteRefusedError, did_you_mean
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.registry import HEAD, Confidence, Exporter, Probe, Reader, parse_options
from fxframework.testing.contracts import (
    Contract,
    DeviceContract,
    ExporterContract,
    ReaderContract,
    Sample,
    StepContract,
    WriterContract,
    open_bytes,
)
from fxframework.testing.contracts.checks import EndlessError

__all__ = ["Result", "advice_of", "checkup", "contracts_of", "run_contract"]

SIZES = (256, 2048)
"""Approximate sizes in bytes of the samples that readers make."""
EXAMPLES = 15
"""Inputs per property test."""
SKIPPED: tuple[type[BaseException], ...] = (unittest.SkipTest,)


@attrs.frozen
class Result:
    """The result of one test."""

    contract: str
    """``reader``, ``writer``, ``exporter``, ``step`` or ``device``."""
    item: str
    """The name of the descriptor."""
    test: str
    """The name of the test, without ``test_``."""
    status: Literal["ok", "failed", "skipped"]
    """The outcome."""
    message: str = ""
    """The failure, or why it was skipped; the first line is a summary."""

    @property
    def fault(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]


def checkup(host: Host, plugin: str, *, examples: int = EXAMPLES) -> Iterator[Result]:
    """Run the contract tests of everything an installed plugin registers; yield their results.

    Raises UsageError for a plugin that is not installed, and for one that registers nothing.
    """
    for contract in contracts_of(host, plugin, examples=examples):
        yield from run_contract(contract)


def advice_of(host: Host, plugin: str) -> list[str]:
    """Return what the declared formats of an installed plugin lack, a line for each."""
    readers = (reader for reader in host.readers.values() if host.owner(reader).name == plugin)
    declared = (getattr(reader.open, "declared", None) for reader in readers)
    advice = [get_format().advice for get_format in declared if get_format is not None]
    return [line for line in advice if line]


def run_contract(contract: type[Contract], *, only: Iterable[str] = ()) -> Iterator[Result]:
    """Run the tests of a contract one after another: all, or those in ``only``.

    Exceptions of tests become results.
    """
    item = str(getattr(contract, "name", getattr(contract, "format", "")))
    all_tests = [name for name in dir(contract) if name.startswith("test_")]
    test_names = list(only) or all_tests
    for name in test_names:
        status, message = _outcome(contract, name)
        yield Result(contract.noun, item, name.removeprefix("test_"), status, message)


def _outcome(contract: type[Contract], name: str) -> tuple[Literal["ok", "failed", "skipped"], str]:
    instance = contract()
    test = getattr(instance, name)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), tempfile.TemporaryDirectory() as folder:
            arguments: dict[str, Any] = {}
            if "tmp_path" in inspect.signature(test).parameters:
                arguments["tmp_path"] = Path(folder).resolve()
            instance.setup_method(test)
            try:
                test(**arguments)
            finally:
                instance.teardown_method()
    except SKIPPED as reason:
        return "skipped", str(reason)
    except (AssertionError, EndlessError) as error:
        return "failed", str(error) or f"{name} failed without a message"
    except FxError as error:
        kind = type(error).__name__
        return "failed", f"{kind}: {error} ({error.code})"
    except (Exception, SystemExit) as error:  # noqa: BLE001 (code of plugins; the result)
        kind = type(error).__name__
        return "failed", f"{kind}: {error}{_place(error)}"
    return "ok", ""


def _place(error: BaseException) -> str:
    """Return the module and line at which an exception was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" (in {trace.tb_frame.f_globals.get('__name__', '?')}, line {trace.tb_lineno})"


# --- Contracts of installed plugins ------------------------------------------------------------


def contracts_of(host: Host, plugin: str, *, examples: int = EXAMPLES) -> list[type[Contract]]:
    """Return the contracts of everything an installed plugin registers, with its samples.

    Raises UsageError for a plugin that is not installed, was left out, or registers nothing.
    """
    plugins = {installed.name: installed for installed in host.plugins()}
    if plugin not in plugins:
        raise UsageError(
            f"no plugin {plugin!r} is installed{did_you_mean(plugin, plugins)}",
            remedy=f"there are: {', '.join(plugins) or 'none'}",
        )
    installed_plugin = plugins[plugin]
    implementation = host.implementation(plugin)
    if implementation is None:
        errors = [failure.error for failure in host.failures if failure.plugin == plugin]
        reasons = "; ".join(errors)
        raise UsageError(
            f"plugin {plugin!r} is {installed_plugin.status}: {reasons or 'it was left out'}",
            remedy="`fxf plugins` lists what happened",
        )
    base = {"plugin": implementation, "examples": examples}
    reader_names = installed_plugin.registers.get("readers", ())
    readers = [host.readers[name] for name in reader_names]
    contracts = [
        _contract(
            ReaderContract,
            base,
            format=reader.format,
            samples=_samples_of(reader),
            exempt=reader.exempt,
        )
        for reader in readers
    ]
    # The reader of a writer's format may be of another plugin, and is its only source of samples.
    for name in installed_plugin.registers.get("writers", ()):
        reader = host.readers.get(name)
        reader_plugin = None
        if reader is not None:
            reader_plugin = host.implementation(host.owner(reader).name)
        contracts.append(
            _contract(
                WriterContract,
                base,
                format=name,
                reader_plugin=reader_plugin,
                may_be_empty=True,
                samples=_samples_of(reader),
                exempt=host.writers[name].exempt,
            )
        )
    contracts += [
        _of_exporter(host, exporter, base)
        for exporter in host.exporters
        if host.owner(exporter).name == plugin
    ]
    for contract, plural in ((StepContract, "steps"), (DeviceContract, "devices")):
        names = installed_plugin.registers.get(plural, ())
        contracts += [_contract(contract, base, name=name) for name in names]
    if not contracts:
        raise UsageError(
            f"plugin {plugin!r} registers nothing that has a contract",
            remedy="contracts are for readers, writers, exporters, steps and devices",
        )
    return contracts


def _contract(kind: type[Contract], base: dict[str, Any], **more: Any) -> type[Contract]:
    """Return a contract with the attributes of ``base`` and ``more``."""
    return type(kind.__name__, (kind,), {**base, **more})


def _samples_of(reader: Reader | None, reason: str = "") -> Any:
    """Return a method that gives the samples of a reader; it skips the test if there are none."""

    def samples(_self: Any) -> Iterator[Sample]:
        if reader is None or reader.sample is None:
            name = "the format" if reader is None else reader.format
            raise unittest.SkipTest(
                reason
                or f"the reader of {name} has no `sample`, a function that makes a file of about "
                "so many bytes: nothing to try"
            )
        return _made(reader)

    return samples


def _made(reader: Reader) -> Iterator[Sample]:
    assert reader.sample is not None
    suffix = next(iter(reader.suffixes), "")
    samples: set[bytes] = set()
    for size in SIZES:
        data = reader.sample(size)
        if data not in samples:
            samples.add(data)
            name = f"sample{len(samples)}{suffix}"
            # A format without a magic is never certain.
            probe = Probe(head=data[:HEAD], size=len(data), name=name)
            confidence = reader.sniff(probe) or Confidence.CERTAIN
            yield Sample(name, data, confidence=confidence)


def _of_exporter(host: Host, exporter: Exporter, base: dict[str, Any]) -> type[Contract]:
    """Return the contract of an exporter, with the first format that it accepts."""
    attributes = {
        **base,
        "name": exporter.name,
        "accepts": exporter.accepts,
        "exempt": exporter.exempt,
    }
    for reader in host.readers.values():
        if reader.sample is None:
            continue
        with open_bytes(reader, reader.sample(SIZES[-1])) as capture:
            if exporter.takes(capture.format, capture.tables) and _fits(exporter, capture):
                reader_plugin = host.implementation(host.owner(reader).name)
                return _contract(
                    ExporterContract,
                    attributes,
                    format=reader.format,
                    reader_plugin=reader_plugin,
                    samples=_samples_of(reader),
                )
    accepted = exporter.accepts
    tables = accepted if isinstance(accepted, str) else " or ".join(sorted(accepted))
    reason = (
        f"no installed reader makes a `sample` with {tables}: nothing to try; the plugin's own "
        "tests can give samples"
    )
    samples = _samples_of(None, reason)
    return _contract(
        ExporterContract, attributes, format="", samples=samples, reader=property(samples)
    )


def _fits(exporter: Exporter, capture: Capture) -> bool:
    """Return whether an exporter can write a capture.

    Exporters of one format or of every capture are tried, because they may refuse a capture.
    """
    if isinstance(exporter.accepts, str) or "diagnostics" in exporter.accepts:
        options = parse_options({}, exporter.options, whose=f"exporter {exporter.name}")
        with contextlib.suppress(WriteRefusedError):
            session = exporter.open(Sink.memory(), options)
            session.write(capture)
            session.close()
            return True
        return False
    names = exporter.accepts & set(capture.schemas)
    return any(len(batch) for name in names for batch in itertools.islice(capture.batches(name), 1))
