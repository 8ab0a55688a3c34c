"""Exporters that are generators: what they write, leave out, and are refused for."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import pytest
import toy

from fxframework.errors import BadTypeError, PluginError, WriteRefusedError
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.model.table import Table
from fxframework.plugin import Exporter, Option, exporter, hookimpl

from ..cases import cases

Batches = Iterator[Table]
DATA = toy.toy(toy.mark("a", 1, 5), toy.mark(b"\xff", 2), toy.span("s", 3, 4))


def names(batches: Batches, options: Mapping[str, Any]) -> Iterator[str | bytes]:
    for batch in batches:
        yield "".join(f"{options.get('before', '')}{name}\n" for name in batch.texts("name"))
        yield b"-\n"


def exported(made: Exporter, data: bytes = DATA, **options: Any) -> tuple[bytes, Mapping[str, int]]:
    host = Host(discover=False)
    host.register(toy, name="toy")
    sink = Sink.memory()
    session = made.open(sink, options)
    with host.open(data, format="toy") as capture:
        session.write(capture)
        dropped = session.close()
    return sink.getvalue(), dropped


def test_texts_and_bytes_are_written_and_the_rest_is_counted() -> None:
    made = exporter("names", accepts={"instants"}, writes={"name", "ts"})(names)
    output, dropped = exported(made)
    assert output == "a\n\ufffd\n-\n".encode()
    assert dropped
    assert all(name.startswith("instants.") for name in dropped)
    assert not {"instants.name", "instants.ts", "instants.row", "instants.offset"} & dropped.keys()
    less, more = exported(exporter("names", accepts={"instants"})(names))
    assert less == output
    assert more["instants.name"] == 2


def test_several_tables_come_one_after_the_other() -> None:
    made = exporter("names", accepts={"instants", "slices"}, writes={"name"})(names)
    assert exported(made)[0].count(b"-\n") == 2


def test_options_and_other_fields_are_passed_on() -> None:
    option = Option("before", "", "what precedes a name")
    made = exporter("names", accepts={"instants"}, suffixes=(".n",), options=(option,))(names)
    assert (made.suffixes, made.options, made.title) == ((".n",), (option,), "names")
    assert exported(made, before="> ")[0].startswith(b"> a\n")


def test_a_capture_without_rows_is_refused() -> None:
    made = exporter("names", accepts={"instants"}, writes={"name"})(names)
    with pytest.raises(WriteRefusedError, match="no rows in instants"):
        exported(made, toy.toy())


def test_a_header_is_written_with_the_first_row() -> None:
    def table(batches: Batches, _: Any) -> Iterator[str]:
        yield "name\n"
        yield from ("".join(f"{name}\n" for name in batch.texts("name")) for batch in batches)
        yield "end\n"

    def silent(batches: Batches, _: Any) -> Iterator[str]:
        yield "rows:\n"
        for _batch in batches:
            pass

    made = exporter("table", accepts={"instants"})(table)
    assert exported(made)[0] == "name\na\n\ufffd\nend\n".encode()
    assert exported(exporter("silent", accepts={"instants"})(silent))[0] == b"rows:\n"
    sink = Sink.memory()
    with pytest.raises(WriteRefusedError, match="no rows in instants"):
        exported(attrs.evolve(made, open=lambda _, options: made.open(sink, options)), toy.toy())
    assert sink.written == 0


@cases(
    ("function", "message"),
    [
        (lambda batches: [], "it is called with two arguments, but "),
        (lambda batches, options: None, "the function returns None, and yields nothing"),
        (lambda batches, options: ["\ud800" for _ in batches], "the generator yields no Unicode"),
    ],
)
def test_a_function_that_is_no_generator_of_texts_is_told(function: Any, message: str) -> None:
    made = exporter("names", accepts={"instants"})(function)
    with pytest.raises(PluginError, match=f"exporter 'names': {message}"):
        exported(made)


@cases("chunk", [5, None, ["a"]])
def test_what_is_neither_text_nor_bytes_is_a_fault(chunk: object) -> None:
    made = exporter("names", accepts={"instants"})(lambda batches, _: [chunk for _ in batches])  # type: ignore[misc,list-item]
    with pytest.raises(TypeError, match="not a string or bytes") as refused:
        exported(made)
    assert isinstance(refused.value, PluginError)


@cases("function", [lambda batches, options: [], lambda batches, options: "text"])
def test_rows_that_no_one_takes_are_a_fault_of_the_function(function: Any) -> None:
    made = exporter("names", accepts={"instants"})(function)
    with pytest.raises(PluginError, match="exporter 'names': the function takes no batches"):
        exported(made)


def test_texts_of_numbers_and_numbers_of_texts_are_a_fault_of_the_caller() -> None:
    made = exporter("names", accepts={"instants"})(
        lambda batches, _: ("".join(batch.texts("ts")) for batch in batches)  # type: ignore[arg-type]
    )
    with pytest.raises(BadTypeError, match=r"instants\.ts has no texts") as refused:
        exported(made)
    assert refused.value.remedy == "array('ts') and plain('ts') have its values"


@cases("given", [{"accepts": "instants"}, {"accepts": {"a"}, "writes": "name"}])
def test_one_string_is_refused_at_once(given: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="not one string"):
        exporter("names", **given)


def test_a_host_takes_it_as_any_exporter() -> None:
    made = exporter("names", accepts={"instants"})(names)
    module = types.ModuleType("names")
    give: Callable[[], Exporter] = hookimpl(lambda: made)
    module.fx_exporters = give  # type: ignore[attr-defined]
    host = Host(discover=False)
    assert host.register(module, name="names").status == "loaded"
    assert host.exporter("names", format="toy", tables=["instants"]) is made
