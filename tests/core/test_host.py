"""The host: plugins come in, what is wrong with one never hurts another, captures open."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, cast

import pytest
import toy

import fxframework
from fxframework import hookimpl
from fxframework import host as host_module
from fxframework.errors import (
    MissingExtraError,
    NoReaderError,
    UnreadableError,
    UsageError,
    WriteRefusedError,
)
from fxframework.hookspecs import API
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.diagnostics import Diagnostic
from fxframework.registry import DeviceKind, Exporter, Reader, StepKind, Writer

from ..cases import cases


def plugin(**hooks: Callable[..., Any]) -> types.ModuleType:
    """A module that implements these hooks."""
    module = types.ModuleType("some_plugin")
    for name, function in hooks.items():
        setattr(module, name, hookimpl(function))
    return module


def readers(*found: object) -> types.ModuleType:
    return plugin(fx_readers=lambda: list(found))


def installed(monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, str, object]) -> None:
    """Make these (name, distribution, plugin) what is installed; an exception fails to import."""

    class Entry:
        def __init__(self, name: str, what: object) -> None:
            self.name = name
            self.what = what

        def load(self) -> object:
            if isinstance(self.what, BaseException):
                raise self.what
            return self.what

    found = [
        host_module._Installed(cast("EntryPoint", Entry(name, what)), distribution, "1.0")
        for name, distribution, what in entries
    ]
    monkeypatch.setattr(host_module, "_installed", lambda: found)


@pytest.fixture
def host() -> Host:
    host = Host(discover=False)
    host.register(toy, name="toy", distribution="toys", version="2.0")
    return host


# --- Registration ------------------------------------------------------------------------------


def test_a_plugin_is_listed_with_what_it_registers(host: Host) -> None:
    (found,) = host.plugins()
    assert (found.name, found.distribution, found.version) == ("toy", "toys", "2.0")
    assert found.status == "loaded"
    assert found.registers == {
        "readers": ["toy"],
        "writers": ["toy"],
        "exporters": ["text", "picture"],
    }
    assert host.failures == ()


def test_a_plugin_that_cannot_be_imported_is_listed_and_others_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed(
        monkeypatch,
        ("broken", "broken-dist", ImportError("no module\nnamed gone")),
        ("exits", "rude-dist", SystemExit(3)),
        ("toy", "toys", toy),
    )
    host = Host(environ={})
    assert [(p.name, p.status) for p in host.plugins()] == [
        ("broken", "failed"),
        ("exits", "failed"),
        ("toy", "loaded"),
    ]
    first, second = host.failures
    assert (first.plugin, first.distribution) == ("broken", "broken-dist")
    assert first.error == "cannot be imported: ImportError: no module named gone"
    assert "SystemExit" in second.error
    assert host.reader("toy") is toy.READER


def test_a_registration_hook_that_raises_costs_only_its_own_items(host: Host) -> None:
    def fx_readers() -> Iterable[Reader]:
        yield toy.READER
        raise RuntimeError("half way")

    broken = plugin(fx_readers=fx_readers, fx_writers=lambda: [odd_writer()])
    known = host.register(broken, name="broken", distribution="d")
    assert known.status == "partial"
    assert known.registers == {"writers": ["odd"]}
    assert host.failures[0].error == "fx_readers failed: RuntimeError: half way"


@cases("result", [None, [None], ["toy"], 5])
def test_what_is_no_descriptor_is_refused(result: object) -> None:
    host = Host(discover=False)
    known = host.register(plugin(fx_readers=lambda: result), name="p")
    assert known.status == "partial"
    assert len(host.failures) == 1
    assert not host.readers


def test_a_hook_that_does_not_exist_is_listed_with_the_nearest_name() -> None:
    host = Host(discover=False)
    misspelt = plugin(fx_reader=lambda: [toy.READER], fx_writers=lambda: [toy.WRITER])
    assert host.register(misspelt, name="p").status == "partial"
    assert host.failures[0].error == "there is no hook 'fx_reader'; did you mean 'fx_readers'?"
    assert "toy" in host.writers


def test_a_hook_with_unknown_arguments_fails_the_plugin_whole() -> None:
    host = Host(discover=False)
    wrong = plugin(fx_readers=lambda surprise: [], fx_writers=lambda: [toy.WRITER])
    assert host.register(wrong, name="p").status == "failed"
    assert "surprise" in host.failures[0].error
    assert not host.writers


@cases("wanted", [API - 1, API + 1, "1", None])
def test_a_plugin_for_another_api_is_refused(wanted: object) -> None:
    host = Host(discover=False)
    module = readers(Reader(format="x", open=None))  # type: ignore[arg-type]
    module.FXFRAMEWORK_API = wanted  # type: ignore[attr-defined]
    assert host.register(module, name="old", distribution="fx-old").status == "failed"
    (failure,) = host.failures
    assert f"version {wanted!r} of the plugin API" in failure.error
    assert f"has version {API}" in failure.error
    assert "fx-old" in failure.error
    assert not host.readers


def test_a_plugin_for_this_api_is_taken() -> None:
    host = Host(discover=False)
    module = readers(Reader(format="x", open=lambda source, request: None))  # type: ignore[arg-type,return-value]
    module.FXFRAMEWORK_API = API  # type: ignore[attr-defined]
    assert host.register(module, name="new").status == "loaded"
    assert set(host.readers) == {"x"}


def test_a_plugin_without_hooks_is_listed_as_failed() -> None:
    host = Host(discover=False)
    assert host.register(types.ModuleType("empty"), name="empty").status == "failed"
    assert "@hookimpl" in host.failures[0].error


# --- Duplicates --------------------------------------------------------------------------------


def odd_writer(format: str = "odd") -> Writer:
    return Writer(format=format, title="", suffixes=(), open=toy.ToyWriter)


def exporter(name: str, accepts: frozenset[str] | str) -> Exporter:
    return Exporter(name=name, title="", accepts=accepts, suffixes=(), open=toy.ToyText)


def test_a_second_reader_of_a_format_is_refused_naming_both_distributions(host: Host) -> None:
    host.register(readers(toy.READER), name="copy", distribution="copycats")
    (failure,) = host.failures
    assert (failure.plugin, failure.distribution) == ("copy", "copycats")
    assert "toy (toys)" in failure.error
    assert "copy (copycats)" in failure.error
    assert host.owner(host.reader("toy")).distribution == "toys"


def test_a_second_writer_of_a_format_is_refused(host: Host) -> None:
    host.register(plugin(fx_writers=lambda: [odd_writer("toy")]), name="copy")
    assert "writer 'toy'" in host.failures[0].error


@pytest.mark.parametrize(
    ("accepts", "refused"),
    [
        ("toy", True),
        ("other", False),
        (frozenset({"slices"}), False),
    ],
)
def test_exporters_of_one_name_may_differ_in_what_they_accept(
    host: Host, accepts: Any, refused: bool
) -> None:
    host.register(plugin(fx_exporters=lambda: [exporter("text", accepts)]), name="more")
    assert bool(host.failures) is refused


def test_exporters_of_one_name_with_a_table_in_common_are_refused(host: Host) -> None:
    more = [exporter("picture", frozenset({"slices", "logs"})), exporter("picture", "toy")]
    host.register(plugin(fx_exporters=lambda: more), name="more")
    (failure,) = host.failures
    assert "exporter 'picture'" in failure.error
    assert len(host.exporters) == 3


def test_two_plugins_of_one_name_are_told_apart_by_their_distributions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed(monkeypatch, ("toy", "toys", toy), ("toy", "knock-offs", readers()))
    host = Host(environ={})
    (failure,) = host.failures
    assert "toys" in failure.error
    assert "knock-offs" in failure.error
    assert [p.status for p in host.plugins()] == ["loaded", "failed"]


# --- Discovery ---------------------------------------------------------------------------------


def test_switches_disable_and_allow_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    other = plugin(fx_writers=lambda: [odd_writer()])
    installed(monkeypatch, ("toy", "toys", toy), ("other", "others", other))

    def statuses(**environ: str) -> list[str]:
        return [p.status for p in Host(environ=environ).plugins()]

    assert statuses() == ["loaded", "loaded"]
    assert statuses(FXF_DISABLE_PLUGINS="other") == ["loaded", "disabled"]
    assert statuses(FXF_DISABLE_PLUGINS=" toy, other ") == ["disabled", "disabled"]
    assert statuses(FXF_DISABLE_PLUGINS="") == ["loaded", "loaded"]
    assert statuses(FXF_PLUGINS="other") == ["disabled", "loaded"]
    assert statuses(FXF_PLUGINS="") == ["disabled", "disabled"]
    assert statuses(FXF_PLUGINS="toy,other", FXF_DISABLE_PLUGINS="toy") == ["disabled", "loaded"]


def test_a_disabled_plugin_is_not_even_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ("broken", "d", ImportError("boom")))
    host = Host(environ={"FXF_DISABLE_PLUGINS": "broken"})
    assert host.failures == ()


def test_a_switch_that_names_no_plugin_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ("toy", "toys", toy))
    (failure,) = Host(environ={"FXF_DISABLE_PLUGINS": "toi"}).failures
    assert failure.plugin == "toi"
    assert "did you mean 'toy'" in failure.error


def test_bundled_plugins_load_through_the_entry_points() -> None:
    host = Host(environ={})
    names = {p.name: p for p in host.plugins() if p.distribution == "fxframework"}
    assert {"exporters", "trace"} <= names.keys()
    assert all(p.status == "loaded" for p in names.values())
    assert {"trace", "records"} <= host.readers.keys()


def test_ours_come_first_and_a_distribution_found_twice_counts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Dist:
        version = "1"
        requires = None

        def __init__(self, name: str) -> None:
            self.name = name

    class Entry:
        def __init__(self, name: str, distribution: str) -> None:
            self.name = name
            self.dist = Dist(distribution)

    found = [Entry("z", "a-plugin"), Entry("a", "fxframework"), Entry("a", "fxframework")]
    monkeypatch.setattr(host_module, "entry_points", lambda group: found)
    order = [(plugin.entry.name, plugin.distribution) for plugin in host_module._installed()]
    assert order == [("a", "fxframework"), ("z", "a-plugin")]


# --- Lookups -----------------------------------------------------------------------------------


def test_unknown_names_are_refused_with_the_nearest_one(host: Host) -> None:
    with pytest.raises(UsageError, match=r"'toi'; did you mean 'toy'\?"):
        host.reader("toi")
    with pytest.raises(UsageError, match="did you mean 'toy'"):
        host.writer("toyy")
    with pytest.raises(UsageError, match="no exporter 'txt'; did you mean 'text'"):
        host.exporter("txt", format="toy", tables=())
    with pytest.raises(UsageError, match="does not take log captures"):
        host.exporter("text", format="log", tables=("slices",))
    with pytest.raises(UsageError, match="did you mean 'TOY0001'"):
        host.rule("TOY001")


def test_an_exporter_made_for_the_format_comes_before_one_of_tables(host: Host) -> None:
    general = exporter("text", frozenset({"slices"}))
    host.register(plugin(fx_exporters=lambda: [general]), name="general")
    assert host.exporter("text", format="toy", tables=("slices",)) is toy.TEXT
    assert host.exporter("text", format="log", tables=("slices",)) is general


def test_a_code_is_found_in_any_catalogue_and_in_any_case(host: Host) -> None:
    assert host.rule("toy0001") == (toy.RULES["TOY0001"], "toy")
    assert host.rule("FXF0006")[1] == "fxframework"


def test_a_catalogue_that_fails_is_listed_and_the_others_are_there() -> None:
    def rules() -> Any:
        raise RuntimeError("no rules today")

    host = Host(discover=False)
    host.register(readers(evolved(toy.READER, rules=rules)), name="p")
    assert host.rule("FXF0001")
    assert "no rules today" in host.failures[0].error


def evolved(reader: Reader, **changes: Any) -> Reader:
    import attrs

    return attrs.evolve(reader, **changes)


# --- Opening -----------------------------------------------------------------------------------


def test_open_takes_a_path_bytes_and_a_source(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(toy.SAMPLE)
    for what in (path, str(path), toy.SAMPLE, Source.open(toy.SAMPLE)):
        with host.open(what) as capture:
            assert capture.format == "toy"
            assert len(capture.table("instants")) == 2


def test_open_finds_the_format_of_gzip_by_what_is_in_it(host: Host, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "a.toy.gz"
    path.write_bytes(gzip.compress(toy.SAMPLE[8:]))  # no magic: only the name tells
    with host.open(path) as capture:
        assert (capture.format, capture.source.unpacked) == ("toy", True)


def test_an_explicit_format_overrides_the_sniffers(host: Host) -> None:
    other = evolved(toy.READER, format="other", sniff=lambda probe: 0)
    host.register(readers(other), name="other")
    seen: list[str] = []
    spy = evolved(
        other, format="spy", open=lambda *given: seen.append("spy") or toy.open_toy(*given)
    )
    host.register(readers(spy), name="spy")
    host.open(toy.SAMPLE, format="spy")
    assert seen == ["spy"]
    with pytest.raises(UsageError, match="there is no reader 'tyo'"):
        host.open(toy.SAMPLE, format="tyo")


def test_options_reach_the_reader_typed_and_limits_reach_the_request(host: Host) -> None:
    seen: list[Any] = []

    def open_it(source: Source, request: Any) -> Any:
        seen.append(request)
        return toy.open_toy(source, request)

    host.register(readers(evolved(toy.READER, format="spy", open=open_it)), name="spy")
    host.open(toy.SAMPLE, format="spy", strict=True, options={"max_string": "0x10"})
    host.open(toy.SAMPLE, format="spy", options={"max_string": 16, "refuse": "no"})
    first, second = seen
    assert first.limits == second.limits
    assert first.limits.max_string == 16
    assert (first.strict, second.strict) == (True, False)
    assert first.options == second.options == {"refuse": False}
    assert first.host is host
    assert first.observer is None


@cases(
    ("options", "message"),
    [
        ({"refuze": "yes"}, r"'refuze'; did you mean 'refuse'\?"),
        ({"max_sting": 3}, "did you mean 'max_string'"),
        ({"refuse": "perhaps"}, "takes yes or no, not 'perhaps'"),
        ({"refuse": 1}, "takes yes or no, not 1"),
        ({"max_string": True}, "takes an integer"),
        ({"max_string": "many"}, "takes an integer, not 'many'"),
        ({"max_string": -1}, "cannot be negative"),
        ({"max_time": "nan"}, "option max_time must be a number"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(
    host: Host, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        host.open(toy.SAMPLE, options=options)


def test_a_source_is_closed_where_its_reader_refuses_it(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(Source, "close", lambda self: closed.append(self.name))
    with pytest.raises(UnreadableError):
        host.open(toy.SAMPLE, options={"refuse": True})
    with pytest.raises(NoReaderError):
        host.open(b"nobody knows this")
    assert closed == ["<bytes>", "<bytes>"]


def test_an_empty_input_is_a_finding_once(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "empty.toy"
    path.write_bytes(b"")
    with host.open(path) as capture:
        assert capture.diagnostics.counts == {"FXF0102": 1}


def test_fxframework_open_uses_the_installed_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ("toy", "toys", toy))
    host_module._shared_host.cache_clear()
    try:
        with fxframework.open(toy.SAMPLE, max_findings=3) as capture:
            assert capture.format == "toy"
            assert capture.request.limits.max_findings == 3
        with pytest.raises(UsageError):
            fxframework.open(toy.SAMPLE, nonsense=1)
        assert host_module.default_host() is host_module.default_host()
    finally:
        host_module._shared_host.cache_clear()


def test_a_sniffer_that_raises_is_listed_once_and_detection_goes_on(host: Host) -> None:
    def sniff(probe: Any) -> Any:
        raise RuntimeError("a cold")

    host.register(readers(evolved(toy.READER, format="cold", sniff=sniff)), name="cold")
    for _ in range(3):
        assert host.open(toy.SAMPLE).format == "toy"
    (failure,) = host.failures
    assert failure.plugin == "cold"
    assert failure.error == "the sniffer of cold failed: RuntimeError: a cold"


def test_a_descriptor_that_is_not_registered_has_no_owner(host: Host) -> None:
    assert host.owner(toy.TEXT).name == "toy"
    with pytest.raises(KeyError):
        host.owner(odd_writer())


def test_step_kinds_and_devices_are_found_by_name(host: Host) -> None:
    step = StepKind(name="toy.play", title="", parameters=lambda: dict, run=print)
    device = DeviceKind(name="box", title="", open=print)
    host.register(plugin(fx_step_kinds=lambda: [step], fx_devices=lambda: [device]), name="more")
    assert host.step_kinds == {"toy.play": step}
    assert host.devices == {"box": device}


# --- Addresses ---------------------------------------------------------------------------------


def test_plugins_open_addresses(host: Host) -> None:
    def fx_open_source(uri: str) -> Source | None:
        return Source.open(toy.SAMPLE) if uri.startswith("box://") else None

    host.register(plugin(fx_open_source=fx_open_source), name="box")
    with host.open("box://a.toy") as capture:
        assert capture.format == "toy"
    with pytest.raises(UnreadableError, match="no plugin opens this kind of address"):
        host.open("sack://a.toy")


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (RuntimeError("leak"), UnreadableError),
        (MissingExtraError("fsspec", "remote", purpose="a box"), MissingExtraError),
    ],
)
def test_a_plugin_that_fails_to_open_an_address(
    host: Host, result: Exception, error: type[Exception]
) -> None:
    def fx_open_source(uri: str) -> Source:
        raise result

    def fx_open_sink(uri: str) -> Sink:
        raise result

    host.register(plugin(fx_open_source=fx_open_source, fx_open_sink=fx_open_sink), name="box")
    with pytest.raises(error):
        host.open("box://a")
    with pytest.raises((WriteRefusedError, MissingExtraError)):
        host.sink("box://a")


def test_plugins_give_sinks(host: Host) -> None:
    memory = Sink.memory()
    host.register(plugin(fx_open_sink=lambda uri: memory), name="box")
    assert host.sink("box://out") is memory


def test_an_address_for_output_must_give_a_sink(host: Host, tmp_path: Path) -> None:
    host.register(plugin(fx_open_sink=lambda uri: b"bytes"), name="box")
    with pytest.raises(WriteRefusedError, match="not a Sink"):
        host.sink("box://out")
    with host.sink(tmp_path / "a") as sink:
        sink.write(b"a path is a path")


def test_an_address_must_give_a_source(host: Host) -> None:
    host.register(plugin(fx_open_source=lambda uri: b"bytes"), name="box")
    with pytest.raises(UnreadableError, match="not a Source"):
        host.open("box://a")


# --- Observers ---------------------------------------------------------------------------------


def test_observers_see_captures_and_findings(host: Host) -> None:
    opened: list[str] = []
    found: list[str] = []
    watcher = plugin(
        fx_capture_opened=lambda capture: opened.append(capture.format),
        fx_diagnostic=lambda diagnostic: found.append(diagnostic.code),
    )
    assert host.register(watcher, name="w").observes == ["fx_capture_opened", "fx_diagnostic"]
    with host.open(toy.toy(toy.record(9))) as capture:
        assert opened == ["toy"]
        capture.scan()
    assert found == ["TOY0001"]


def test_an_observer_that_raises_is_listed_and_not_called_again(host: Host) -> None:
    calls: list[int] = []
    seen: list[int] = []

    def fx_diagnostic(diagnostic: Diagnostic) -> None:
        calls.append(1)
        raise RuntimeError("cannot look")

    host.register(plugin(fx_diagnostic=fx_diagnostic), name="squeamish", distribution="d")
    host.register(plugin(fx_diagnostic=lambda diagnostic: seen.append(1)), name="steady")
    with host.open(toy.toy(toy.record(9), toy.record(9))) as capture:
        capture.scan()
        assert capture.diagnostics.counts == {"TOY0001": 2}
    assert len(calls) == 1
    assert len(seen) == 2
    (failure,) = host.failures
    assert failure.plugin == "squeamish"
    assert "cannot look" in failure.error


def test_an_observer_may_take_fewer_arguments(host: Host) -> None:
    calls: list[int] = []
    host.register(plugin(fx_capture_opened=lambda: calls.append(1)), name="w")
    host.open(toy.SAMPLE)
    assert calls == [1]


# --- Weight ------------------------------------------------------------------------------------


def test_the_host_does_not_import_numpy() -> None:
    import subprocess

    code = (
        "import sys, fxframework.host as h; h.Host();"
        "sys.exit(bool({'numpy', 'rich', 'orjson'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
