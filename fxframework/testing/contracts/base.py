"""What all contracts share: samples, a capture of bytes, and the tests that hold for any plugin."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fxframework.errors import Catalogue
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture
from fxframework.model.diagnostics import Diagnostics
from fxframework.registry import Confidence, Reader, Writer, parse_options
from fxframework.testing.contracts.checks import check_same, limited, or_fx_error, skip
from fxframework.testing.contracts.expected import Expected
from fxframework.testing.strategies import bit_flips, byte_strings, truncations

__all__ = ["BATCH_SIZES", "Contract", "RoundTrips", "Sample", "open_bytes"]

BATCH_SIZES = (1, 2, 3, 7, 64, 65536)
REGISTRATION = ("fx_readers", "fx_writers", "fx_exporters", "fx_step_kinds", "fx_devices")
HEAVY = ("numpy", "pyarrow", "orjson", "click", "rich")
"""What a plugin's module must not import: `fxf --help` loads every one of them."""


@attrs.frozen
class Sample:
    """An input that a contract is tried with."""

    name: str
    """A file name with the format's suffix."""
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    """The bytes of the file."""
    confidence: Confidence = attrs.field(default=Confidence.CERTAIN, kw_only=True)
    """What the sniffer has to say."""
    sound: bool = attrs.field(default=True, kw_only=True)
    """Whether nothing in it departs from the format: no finding of WARNING or worse."""
    expected: Expected | None = attrs.field(default=None, kw_only=True)
    """What its author knows of it, where he says so."""


def open_bytes(
    reader: Reader,
    data: bytes,
    *,
    name: str = "<bytes>",
    strict: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Capture:
    """Open bytes with one reader, as a host without plugins does.

    ``options`` are the reader's and the limits. Raises FxError as the reader does.
    """
    source = Source.open(data)
    source.name = name
    return Host(discover=False).read(source, reader, strict=strict, options=options)


class Contract:
    """What all contracts share: the plugin, its samples, and how hard they are tried."""

    plugin: ClassVar[Any]
    """The module of the hooks: its name, such as ``fx_trace.plugin``, or the module itself."""
    examples: ClassVar[int] = 100
    """Inputs that each property is tried with."""
    seconds: ClassVar[float] = 5.0
    """CPU time that one damaged sample may take."""
    hang: ClassVar[float] = 300.0
    """CPU time after which a test is endless, and fails."""
    exempt: ClassVar[Mapping[str, str]] = {}
    """Tests that do not apply, by name without ``test_``, each with the reason: they are skipped.
    `fxf plugins --check` takes those of the descriptor, as its samples are not chosen by hand."""

    def samples(self) -> Iterable[Sample]:
        """Inputs of the format, small ones among them; the first must hold a record."""
        raise NotImplementedError

    # --- Around each test, as pytest and `checkup` call it -----------------------------------

    def setup_method(self, method: Any) -> None:
        """Begin to watch the CPU time of a test; skip one that does not apply."""
        name = getattr(method, "__name__", "a test")
        reason = self.exempt.get(name.removeprefix("test_"))
        if reason is not None:
            skip(reason)
        self._limit = limited(self.hang, name)
        self._limit.__enter__()

    def teardown_method(self) -> None:
        """End to watch it."""
        self._limit.__exit__(None, None, None)

    def test_exemptions_name_tests(self) -> None:
        """Each name in `exempt` is that of a test, so that a renamed test is not lost silently."""
        unknown = [name for name in self.exempt if not hasattr(self, f"test_{name}")]
        assert not unknown, f"exempt: there is no test {', '.join(unknown)}"

    # --- What is under test ------------------------------------------------------------------

    def _module(self) -> Any:
        """The module of the hooks, or the object that has them."""
        return self._imported(self.plugin)

    @staticmethod
    def _imported(plugin: Any) -> Any:
        return importlib.import_module(plugin) if isinstance(plugin, str) else plugin

    @property
    def _plugin_name(self) -> str:
        if isinstance(self.plugin, str):
            return self.plugin
        name: str = getattr(self.plugin, "__name__", type(self.plugin).__module__)
        return name

    def _descriptors(self, hook: str) -> list[Any]:
        give = getattr(self._module(), hook, None)
        return [] if give is None else list(give())

    def _reader(self, format: str) -> Reader:
        readers: list[Reader] = self._descriptors("fx_readers")
        found = [reader for reader in readers if reader.format == format]
        assert len(found) == 1, f"{self._plugin_name} registers {len(found)} readers of {format!r}"
        return found[0]

    def _small(self, most: int = 4096) -> list[Sample]:
        """The samples that are small enough to be damaged many times; at least the smallest."""
        chosen = sorted(self.samples(), key=lambda sample: len(sample.data))
        assert chosen, "samples() gives none"
        filled = [sample for sample in chosen if sample.data]
        assert filled, "samples() gives no bytes"
        return [sample for sample in filled if len(sample.data) <= most] or filled[:1]

    @property
    def _small_data(self) -> list[bytes]:
        return [sample.data for sample in self._small()]

    def _damaged(self) -> st.SearchStrategy[bytes]:
        """Small samples cut short, damaged, or patched together."""
        small = self._small_data
        return st.one_of(bit_flips(*small), truncations(*small), byte_strings(small))

    def _try_flipped(self, check: Callable[[bytes], object]) -> None:
        """Run ``check``, which may end in a coded error, on small samples with bits turned over."""
        self._try(bit_flips(*self._small_data), or_fx_error(check))

    def _try(self, inputs: st.SearchStrategy[Any], check: Callable[[Any], object]) -> None:
        """Run ``check`` on inputs of a strategy; a failing one is made small and shown."""

        @settings(
            max_examples=self.examples,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(inputs)
        def run(made: Any) -> None:
            check(made)

        run()

    # --- Tests that hold for any plugin ------------------------------------------------------

    def test_host_takes_the_plugin(self) -> None:
        """Every hook that it implements exists, and all that it registers is what it should be."""
        host = Host(discover=False)
        known = host.register(self._module(), name=self._plugin_name, distribution="under test")
        faults = "; ".join(failure.error for failure in host.failures)
        assert known.status == "loaded", f"the host does not take all of the plugin: {faults}"

    def test_plugin_is_light_to_import(self) -> None:
        """Importing it and asking for its descriptors loads nothing that takes long."""
        code = (
            "import importlib, sys\n"
            f"sys.path[:0] = {sys.path!r}\n"
            f"module = importlib.import_module({self._plugin_name!r})\n"
            f"for hook in {REGISTRATION!r}:\n"
            "    list(getattr(module, hook, list)())\n"
            f"print(sorted({set(HEAVY)!r} & sys.modules.keys()))\n"
        )
        done = subprocess.run(  # noqa: S603 (this very interpreter, on the code above)
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert ast.literal_eval(done.stdout) == [], f"{self._plugin_name} imports {done.stdout}"

    def test_plugin_has_docstrings(self) -> None:
        """The module says what it is, and so does its package."""
        module = self._module()
        assert module.__doc__, f"{self._plugin_name} has no docstring"
        package = importlib.import_module(self._plugin_name.partition(".")[0])
        assert package.__doc__, f"{package.__name__} has no docstring"


class RoundTrips(Contract):
    """What a reader and a writer of one format keep together. Give ``format``, too."""

    format: ClassVar[str]
    """The name of the format."""

    @property
    def reader(self) -> Reader:
        """The reader of the format."""
        return self._reader(self.format)

    @property
    def writer(self) -> Writer | None:
        """The writer of the same format, where the plugin has one."""
        writers: list[Writer] = self._descriptors("fx_writers")
        return next((writer for writer in writers if writer.format == self.format), None)

    @property
    def rules(self) -> Catalogue:
        """The reader's catalogue of findings; empty where it declares none."""
        rules = self.reader.rules
        return Catalogue([]) if rules is None else rules()

    def _open(self, data: bytes, **more: Any) -> Capture:
        return open_bytes(self.reader, data, **more)

    def _opened(self, samples: Iterable[Sample] | None = None) -> Iterator[tuple[Sample, Capture]]:
        """Samples, all of them or these, each with a capture that is open until the next one."""
        for sample in self.samples() if samples is None else samples:
            with self._open(sample.data) as capture:
                yield sample, capture

    def _need_reader(self) -> None:
        """Skip the test where nothing reads the format."""
        assert self.reader.format == self.format

    def test_records_round_trip(self) -> None:
        """Written again, as they are and by way of JSON text, they are the same bytes."""
        self._need_writer()
        for sample in self.samples():
            for as_json in (False, True):
                form = "as JSON" if as_json else "as they are"
                found = self._rewritten(sample.data, as_json=as_json)
                check_same(found, sample.data, f"{sample.name}, its records written {form}")

    def test_damaged_records_round_trip(self) -> None:
        """So are those of inputs that nobody meant to write."""
        self._need_writer()

        def check(data: bytes) -> None:
            found = self._rewritten(data, as_json=True)
            check_same(found, data, "a damaged sample, its records written as JSON")

        self._try(self._damaged(), check)

    def _need_writer(self) -> None:
        """Skip the test where nothing writes the format, or nothing reads it."""
        if self.writer is None:
            skip(f"{self._plugin_name} does not write {self.format}")
        self._need_reader()

    def _rewritten(self, data: bytes, *, as_json: bool) -> bytes:
        """What the writer makes of the records of ``data``, with the capture's options for it."""
        assert self.writer is not None
        sink = Sink.memory()
        with self._open(data) as capture:
            options = parse_options(capture.writer_options, self.writer.options, whose="writer")
            writer = self.writer.open(sink, options, Diagnostics(self.rules))
            for record in capture.records():
                writer.write(json.loads(json.dumps(record.to_json())) if as_json else record)
            writer.close()
        return sink.getvalue()
