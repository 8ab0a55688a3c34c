"""The bases of all contracts: samples, and the tests for every plugin."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fxframework.errors import Catalogue, FxError
from fxframework.host import Host
from fxframework.io.source import Source
from fxframework.model.capture import Capture
from fxframework.registry import Reader, resolved
from fxframework.testing.contracts.checks import limited, skip, tolerating
from fxframework.testing.contracts.expectation import Sample
from fxframework.testing.contracts.watchdog import watchdog
from fxframework.testing.strategies import bit_flips, byte_strings, truncations

__all__ = ["BATCH_SIZES", "Captures", "Contract", "descriptors", "open_bytes"]

BATCH_SIZES = (1, 3, 64, 65536)
HOOKS = {"reader": "fx_readers", "writer": "fx_writers", "exporter": "fx_exporters",
         "step": "fx_step_kinds", "device": "fx_devices"}  # fmt: skip
"""The hooks that register what contracts are of."""
FUNCTIONS = ("open", "run", "parameters", "merge", "extract", "salvage", "rules", "explain")
"""Functions that a descriptor may name."""
INPUT_SECONDS = 60.0
"""CPU seconds after which a reader is considered to hang on an input; the watchdog ends it."""
HEAVY = ("numpy", "pyarrow", "orjson", "click", "rich")
"""Packages that a plugin's module must not import, because `fxf --help` imports all plugins."""


def open_bytes(
    reader: Reader,
    data: bytes,
    *,
    name: str = "<bytes>",
    strict: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Capture:
    """Open bytes with a reader, on a host without plugins.

    ``options`` are the reader's and the limits. Raises the errors of the reader. Until the next
    input, or the end of the test, a watchdog sees to it that this one takes no more than
    ``INPUT_SECONDS`` of CPU time.
    """
    watching = watchdog()
    if watching is not None:
        watching.begin(f"the reader of {reader.format}", bytes(data), INPUT_SECONDS)
    source = Source.open(data)
    source.name = name
    return without_plugins().read(source, reader, strict=strict, options=options)


@functools.cache
def without_plugins() -> Host:
    """Return a host without plugins, on which a reader or writer is tried alone."""
    return Host(discover=False)


def module_of(plugin: Any) -> Any:
    """Return the module or object that has the hooks of a plugin, which may be given by name."""
    return importlib.import_module(plugin) if isinstance(plugin, str) else plugin


def descriptors(plugin: Any, noun: str, *names: str) -> list[Any]:
    """Return the descriptors of a kind that a plugin registers: all, or those of some names."""
    hook = getattr(module_of(plugin), HOOKS[noun], None)
    registered = () if hook is None else hook()
    all_descriptors = list(registered) if isinstance(registered, Iterable) else [registered]
    return [
        descriptor
        for descriptor in all_descriptors
        if not names or (getattr(descriptor, "format", "") or descriptor.name) in names
    ]


@functools.cache
def heavy_imports(plugin: str, path: tuple[str, ...]) -> list[str]:
    """Return the heavy packages that a plugin and its hooks import, in a process of their own."""
    code = (
        "import importlib, sys\n"
        f"sys.path[:0] = {list(path)!r}\n"
        f"module = importlib.import_module({plugin!r})\n"
        f"for hook in {[*HOOKS.values()]!r}:\n"
        "    found = getattr(module, hook, list)()\n"
        "    found = list(found) if hasattr(found, '__iter__') else [found]\n"
        f"print(sorted({set(HEAVY)!r} & sys.modules.keys()))\n"
    )
    process = subprocess.run(  # noqa: S603 (this interpreter, with the code above)
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    heavy_packages: list[str] = ast.literal_eval(process.stdout)
    return heavy_packages


class Contract:
    """The base of all contracts: the plugin, its samples, and the effort of the tests."""

    plugin: ClassVar[Any]
    """The module of the hooks, or its name, such as ``fx_trace.plugin``."""
    examples: ClassVar[int | None] = None
    """Inputs per property test; None: as many as the hypothesis profile in use says."""
    seconds: ClassVar[float] = 5.0
    """CPU seconds that one damaged sample may take."""
    hang: ClassVar[float] = 300.0
    """CPU seconds after which a test is considered endless and fails."""
    exempt: ClassVar[Mapping[str, str]] = {}
    """Tests to skip, by name without ``test_``, with the reason. `fxf plugins --check` uses those
    of the descriptor."""
    noun: ClassVar[str] = "plugin"
    """What it is a contract of, such as ``reader``; set by the contract."""

    def samples(self) -> Iterable[Sample]:
        """Return inputs of the format, including small ones; the first must contain a record."""
        raise NotImplementedError

    # --- Setup and teardown, called by pytest and `checkup` ----------------------------------

    def setup_method(self, method: Any) -> None:
        """Skip an exempt test; limit the CPU time of others."""
        name = getattr(method, "__name__", "a test")
        reason = self.exempt.get(name.removeprefix("test_"))
        if reason is not None:
            skip(reason)
        self._limit = limited(self.hang, name)
        self._limit.__enter__()

    def teardown_method(self) -> None:
        """Remove the limit, and let no input be watched."""
        watching = watchdog()
        if watching is not None:
            watching.end()
        self._limit.__exit__(None, None, None)

    # --- What is under test ------------------------------------------------------------------

    @property
    def _plugin_name(self) -> str:
        if isinstance(self.plugin, str):
            return self.plugin
        name: str = getattr(self.plugin, "__name__", type(self.plugin).__module__)
        return name

    @property
    def _name(self) -> str:
        """The name of the descriptor; a reader and a writer have that of their format."""
        name: str = getattr(self, "name", getattr(self, "format", ""))
        return name

    def _found(self) -> list[Any]:
        """Return the descriptors that may be the one under test."""
        return descriptors(self.plugin, self.noun, self._name)

    @functools.cached_property
    def item(self) -> Any:
        """The descriptor under test, which is found once in each test."""
        descriptors_found, module_name = self._found(), self._plugin_name
        count = len(descriptors_found)
        assert count == 1, f"{module_name} registers {count} {self.noun}s {self._name!r}"
        return descriptors_found[0]

    # --- Tests for every plugin --------------------------------------------------------------

    def test_exemptions_name_tests(self) -> None:
        """Each name in `exempt` is the name of a test."""
        unknown = [name for name in self.exempt if not hasattr(self, f"test_{name}")]
        assert not unknown, f"exempt: there is no test {', '.join(unknown)}"

    def test_host_takes_the_plugin(self) -> None:
        """Every implemented hook exists, and every registered descriptor is valid."""
        host = Host(discover=False)
        registered = host.register(
            module_of(self.plugin), name=self._plugin_name, distribution="under test"
        )
        faults = "; ".join(failure.error for failure in host.failures)
        assert registered.status == "loaded", f"the host does not take all of the plugin: {faults}"

    def test_descriptor_is_complete(self) -> None:
        """It has a title, and its functions exist, including those imported on first use.

        Those that make something have docstrings. The host checks names, suffixes and options.
        """
        item = self.item
        what = f"{self.noun} {self._name}"
        assert item.title, f"the {what} has no title"
        is_sentence = item.title.endswith(".") and self.noun not in {"step", "device"}
        assert not is_sentence, f"the title of the {what} ends in a full stop"
        for name in FUNCTIONS:
            function = getattr(item, name, None)
            if function is None:
                continue
            documented = resolved(function)
            if name == "parameters" and not isinstance(documented, type):
                documented = documented()  # a function that returns the class
            needs_docstring = name not in {"rules", "explain"}
            has_docstring = bool(inspect.getdoc(documented))
            assert has_docstring or not needs_docstring, f"{name} of {what} has no docstring"

    def test_plugin_is_light_to_import(self) -> None:
        """Importing the plugin and getting its descriptors imports no heavy package.

        A module without a package may: it is only imported by those who name it.
        """
        if "." not in self._plugin_name:
            skip("the plugin is one module, which is imported only where it is named")
        heavy = heavy_imports(self._plugin_name, tuple(sys.path))
        assert not heavy, f"{self._plugin_name} imports {heavy}"

    def test_plugin_has_docstrings(self) -> None:
        """The module and its package have docstrings."""
        module = module_of(self.plugin)
        assert module.__doc__, f"{self._plugin_name} has no docstring"
        package = importlib.import_module(self._plugin_name.partition(".")[0])
        assert package.__doc__, f"{package.__name__} has no docstring"


class Captures(Contract):
    """Contract of what reads, or is tried with, captures of a format."""

    format: ClassVar[str]
    """The name of the format."""
    reader_plugin: ClassVar[Any] = None
    """The module of the hooks of the format's reader; None: the plugin under test."""

    @property
    def reader(self) -> Reader:
        """The reader of the format."""
        reader = self._reader_if_any()
        module = self.reader_plugin or self._plugin_name
        assert reader is not None, f"{module} registers no reader of {self.format!r}"
        return reader

    def _reader_if_any(self) -> Reader | None:
        return self._first_reader

    @functools.cached_property
    def _first_reader(self) -> Reader | None:
        """The reader of the format, which is found once in each test; None if there is none."""
        readers = descriptors(self.reader_plugin or self.plugin, "reader", self.format)
        return readers[0] if readers else None

    @functools.cached_property
    def rules(self) -> Catalogue:
        """The reader's catalogue of findings; empty if there is none."""
        reader = self._reader_if_any()
        if reader is None or reader.rules is None:
            return Catalogue([])
        return reader.rules()

    def _open(self, data: bytes, **options: Any) -> Capture:
        return open_bytes(self.reader, data, **options)

    def _opened(self, samples: Iterable[Sample] | None = None) -> Iterator[tuple[Sample, Capture]]:
        """Yield samples (by default all), each with an open capture."""
        reader = self.reader
        for sample in self.samples() if samples is None else samples:
            with open_bytes(reader, sample.data) as capture:
                yield sample, capture

    def _small(self, most_bytes: int = 4096) -> list[Sample]:
        """Return the samples small enough for many damaged copies; at least the smallest."""
        samples = [sample for sample in self.samples() if sample.data]
        assert samples, "samples() gives none, or none with bytes"
        samples.sort(key=lambda sample: len(sample.data))
        small_samples = [sample for sample in samples if len(sample.data) <= most_bytes]
        return small_samples or samples[:1]

    @property
    def _small_data(self) -> list[bytes]:
        return [sample.data for sample in self._small()]

    def _try_flipped(self, check: Callable[[bytes], object]) -> None:
        """Run ``check`` on small samples with flipped bits; it may raise a coded error."""
        self._try(bit_flips(*self._small_data), tolerating(FxError)(check))

    def _try_damaged(self, check: Callable[[bytes], object]) -> None:
        """Run ``check`` on small samples that are truncated, damaged, or combined, likewise."""
        small = self._small_data
        damaged = st.one_of(bit_flips(*small), truncations(*small), byte_strings(small))
        self._try(damaged, tolerating(FxError)(check))

    def _try(self, inputs: st.SearchStrategy[Any], check: Callable[[Any], object]) -> None:
        """Run ``check`` on inputs of a strategy, which shrinks a failing input."""
        # A database would replay what failed in one test in all others, in place of new inputs.
        effort = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)
        if self.examples is not None:
            effort = settings(effort, max_examples=self.examples)

        @effort
        @given(inputs)
        def run(example: Any) -> None:
            check(example)

        run()
