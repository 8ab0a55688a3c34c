"""Selectors: which texts are ones, and what they take of a tree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fx_inspect.export.tree import printable
from fx_inspect.read.entries import escaped, unescaped
from fx_inspect.read.selectors import Selector, SelectorError, _Reader, choose, parse, parse_lines
from fxframework.errors import ExitCode, UnreadableError
from fxframework.testing.cli import run_cli

from ...cases import cases
from .handmade import export, hand_made
from .trees import Vmo

VECTORS = json.loads(
    (Path(__file__).parents[2] / "conformance" / "inspect" / "selectors.json").read_text("utf-8")
)
TREE: dict[str, Any] = {
    "name": "root",
    "properties": [{"name": "version", "string": "1"}],
    "children": [
        {
            "name": "a",
            "properties": [{"name": "count", "int": 1}, {"name": "size", "uint": 2}],
            "children": [
                {
                    "name": "b",
                    "properties": [
                        {"name": "count", "int": 3},
                        {"name": "list", "int_array": [1, 2, 3]},
                    ],
                    "children": [],
                }
            ],
            "links": [{"name": "lazy", "content": "lazy-0", "disposition": "child"}],
        },
        {
            "name": "a b",
            "properties": [{"name": "x:y", "bool": True}, {"name": "list", "int_array": [4]}],
            "children": [],
        },
        {"name": "a", "properties": [{"name": "count", "int": 9}], "children": []},
        {"name": "root", "properties": [{"name": "root", "int": 7}], "children": []},
    ],
}
ALL = {
    "root:version",
    "root/a:count",
    "root/a:size",
    "root/a/b:count",
    "root/a/b:list",
    "root/a\\ b:x\\:y",
    "root/a\\ b:list",
    "root/root:root",
}


# --- Parsing -------------------------------------------------------------------------------------


def parse_component(text: str) -> tuple[str, ...]:
    """The segments of a component's moniker, or of a pattern of it."""
    return _Reader(text).component(0, text)


def parse_tree(segments: Sequence[str], last: str | None = None) -> Selector:
    """A selector of segments and a property (``last``), each as written in a selector.

    Raises SelectorError.
    """
    text = "/".join(segments)
    reader = _Reader(text)
    if not segments:
        raise SelectorError(text, "empty-path", "it has no path of a node", 0)
    path = tuple(reader.pattern(0, segment, "name of a node") for segment in segments)
    found = None if last is None else reader.pattern(0, last, "property")
    return Selector(source=text, path=path, property=found)


@cases(("text", "segments"), VECTORS["component_ok"])
def test_monikers_of_the_reference(text: str, segments: list[str]) -> None:
    assert list(parse_component(text)) == segments
    assert parse_component(f"/{text}") == parse_component(f"./{text}") == tuple(segments)


@cases(("segments", "last"), VECTORS["tree_ok"])
def test_paths_of_the_reference(segments: list[str], last: str) -> None:
    selector = parse_tree(segments, last)
    assert [pattern.source for pattern in selector.path] == segments
    assert selector.property is not None
    assert selector.property.source == last


@cases(("segments", "last"), VECTORS["tree_bad"])
def test_what_the_reference_refuses(segments: list[str], last: str) -> None:
    with pytest.raises(SelectorError):
        parse_tree(segments, last)


@cases(
    ("text", "reason", "at"),
    [
        ("", "empty-path", 0),
        ("core/x:", "empty-path", 7),
        ("root/x:", "empty", 7),
        ("root//a", "empty", 5),
        ("root/", "empty", 5),
        ("root/a:**", "recursive", 7),
        ("root/a**:a", "recursive", 5),
        ("c:root/**:a", "recursive", 7),
        ("root/a b:c", "unescaped", 6),
        ("root/a:b/c:d:e", "too-many-parts", 12),
        ("root/\\a", "bad-escape", 5),
        ("root/a\\", "bad-escape", 6),
        ("co re:root/a:b", "bad-component", 2),
        ("a/**/b:root/a:b", "recursive", 2),
        ("a//b:root:b", "empty", 2),
        ("a:[name=x root/a", "open-filter", 2),
        ("a:[name=]root/a", "bad-filter", 3),
        ("a:[name=x name=y]root/a", "bad-filter", 10),
        ("a:[name=x]:b", "empty-path", 10),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, reason: str, at: int) -> None:
    with pytest.raises(SelectorError) as raised:
        parse(text)
    assert (raised.value.reason, raised.value.at) == (reason, at)
    assert f"character {at + 1}" in raised.value.message
    assert raised.value.exit_code == ExitCode.USAGE
    assert raised.value.remedy


def parts(selector: Selector) -> tuple[Any, Any, list[str], str | None]:
    last = selector.property
    return (
        selector.component,
        selector.trees,
        ["*".join(pattern.parts) for pattern in selector.path],
        None if last is None else "*".join(last.parts),
    )


@cases(
    ("text", "expected"),
    [
        ("root", (None, ("root",), ["root"], None)),
        ("root/a", (None, ("root",), ["root", "a"], None)),
        ("root/a/*:prop", (None, ("root",), ["root", "a", "*"], "prop")),
        ("root:root", (None, ("root",), ["root"], "root")),
        ("*:*", (None, ("root",), ["*"], "*")),
        ("core/foo:root", (("core", "foo"), ("root",), ["root"], None)),
        ("core/foo:root/a", (("core", "foo"), ("root",), ["root", "a"], None)),
        ("root/foo:root/a", (("root", "foo"), ("root",), ["root", "a"], None)),
        ("**:root", (("**",), ("root",), ["root"], None)),
        ("a\\:b:root:c", (("a:b",), ("root",), ["root"], "c")),
        ("x:[name=foo]root/a:b", (("x",), ("foo",), ["root", "a"], "b")),
        ('x:[name=foo, name="a: ]b"]root', (("x",), ("foo", "a: ]b"), ["root"], None)),
        ("[...]root/a:b", (None, None, ["root", "a"], "b")),
        ("root/[x]:[y", (None, ("root",), ["root", "[x]"], "[y")),
        ("x:[ ... ]root/a", (("x",), None, ["root", "a"], None)),
        ('"root/a b:c d"', (None, ("root",), ["root", "a b"], "c d")),
        ("root/a\\ b\\\t\\*\\\\\\/:c", (None, ("root",), ["root", "a b\t*\\/"], "c")),
    ],
)
def test_parts_of_a_selector(text: str, expected: tuple[Any, ...]) -> None:
    assert parts(parse(text)) == expected


def test_files_of_selectors() -> None:
    found = parse_lines(["// all", "root/a:b // one", "", "  root/c\\/\\/d  \n", "a:root//"[:6]])
    assert [selector.source for selector in found] == ["root/a:b", "root/c\\/\\/d", "a:root"]


@cases(
    ("pattern", "fits", "misses"),
    [
        ("a", ["a"], ["", "aa", "A"]),
        ("*", ["", "a", "\n", "a/b"], []),
        ("a*", ["a", "ab", "a\nb"], ["ba"]),
        ("*a", ["a", "ba"], ["ab"]),
        ("a*a", ["aa", "aba"], ["a"]),
        ("a*b*c", ["abc", "a-b-c", "abbc"], ["acb", "ab"]),
        ("\\*", ["*"], ["a", "\\*"]),
        ("\\**", ["*", "*a"], ["a"]),
        ("a.c", ["a.c"], ["abc"]),
    ],
)
def test_stars_stand_for_any_letters(pattern: str, fits: list[str], misses: list[str]) -> None:
    (found,) = parse_tree([pattern]).path
    assert all(map(found.matches, fits))
    assert not any(map(found.matches, misses))


@given(st.text())
def test_an_escaped_name_fits_that_name_alone(name: str) -> None:
    assert unescaped(escaped(name)) == name
    if name:
        selector = parse(f"root/{escaped(name)}:{escaped(name)}")
        assert selector.component is None
        assert selector.path[1].matches(name)
        assert selector.path[1].parts == (name,)
        assert selector.property is not None
        assert selector.property.parts == (name,)


@given(st.text(min_size=1) | st.text(alphabet="\n\t\r\0\\/: *u{}n0é\u2028", min_size=1))
@example("\\\t")
@example("\\u{1b}\x1b")
def test_a_selector_is_listed_on_one_line_and_taken_again(name: str) -> None:
    line = printable(f"root/{escaped(name)}:{escaped(name)}")
    assert line.isprintable()
    selector = parse(line)
    assert selector.path[1].parts == (name,)
    assert selector.property is not None
    assert selector.property.parts == (name,)


@cases("text", ["root/\\u{110000}", "root/\\u{}", "root/\\u41", "root/\\x"])
def test_escapes_of_no_character_are_refused(text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert caught.value.reason == "bad-escape"


@given(st.text(alphabet='rot/:*\\"[]. a=nme,'))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    try:
        parse(text)
    except SelectorError as error:
        at = error.at
    else:
        return
    assert 0 <= at <= len(text)


# --- Choosing ------------------------------------------------------------------------------------


def chosen(*selectors: str, step: int = 1 << 16) -> list[str]:
    text, _ = export("selectors", choose(hand_made(TREE, step=step), selectors))
    found: list[str] = text.splitlines()
    return found


@cases(
    ("selectors", "expected"),
    [
        (["root"], ALL),
        (["root:version"], {"root:version"}),
        (["root/a:count"], {"root/a:count"}),
        (["root/a"], {"root/a:count", "root/a:size", "root/a/b:count", "root/a/b:list"}),
        (["root/*:count"], {"root/a:count"}),
        (["root/*/*:count"], {"root/a/b:count"}),
        (["root/*/b"], {"root/a/b:count", "root/a/b:list"}),
        (["*:*"], {"root:version"}),
        (["root/a*:list"], {"root/a\\ b:list"}),
        (["root/a\\ b:x\\:y"], {"root/a\\ b:x\\:y"}),
        (['"root/a b:list"'], {"root/a\\ b:list"}),
        (["core/foo:root/root"], {"root/root:root"}),
        (["root:version", "root/root"], {"root:version", "root/root:root"}),
        (["root/b"], set()),
        (["a/b:c"], set()),
        (["root/a:*", "root/a/b:list"], {"root/a:count", "root/a:size", "root/a/b:list"}),
    ],
)
@cases("step", [1, 2, 1 << 16])
def test_what_selectors_take(selectors: list[str], expected: set[str], step: int) -> None:
    assert set(chosen(*selectors, step=step)) == expected


def test_each_selector_of_a_file_takes_what_it_names() -> None:
    assert set(chosen("root")) == ALL
    for selector in ALL:
        assert chosen(selector) == [selector]


def test_nodes_above_are_shown_without_their_properties() -> None:
    text, _ = export("tree-json", choose(hand_made(TREE), ["root/a/b:list"]))
    assert json.loads(text) == {
        "name": "root",
        "properties": [],
        "children": [
            {
                "name": "a",
                "properties": [],
                "children": [
                    {
                        "name": "b",
                        "properties": [{"name": "list", "int_array": [1, 2, 3]}],
                        "children": [],
                    }
                ],
            }
        ],
    }


def test_links_go_with_whole_nodes() -> None:
    for selector, links in (("root/a", 1), ("root/a:*", 0)):
        capture = choose(hand_made(TREE), [selector])
        assert len(capture.table("inspect_links")) == links


def test_choosing_twice_takes_what_both_take() -> None:
    first = choose(hand_made(TREE), ["root/a"])
    text, _ = export("selectors", first.choose(["root/*:size", "root/a/b"]))
    assert text.splitlines() == ["root/a:size", "root/a/b:count", "root/a/b:list"]


def test_row_counts_are_those_that_are_chosen() -> None:
    counts = choose(hand_made(TREE), ["root/a/b"]).row_counts()
    assert counts == {"nodes": 3, "properties": 2, "inspect_slots": 3, "inspect_links": 0}


def test_a_tree_without_nodes() -> None:
    capture = hand_made(TREE)
    for name, table in capture.made.items():
        capture.made[name] = table.select(slice(0, 0))
    assert len(choose(capture, ["root"]).table("nodes")) == 0


def test_empty_names_have_no_selector(tmp_path: Path) -> None:
    vmo = Vmo()
    vmo.integer("", 1)
    vmo.integer("p", 1, parent=vmo.node("", parent=vmo.node("a")))
    vmo.integer("\\", 1)
    path = tmp_path / "a.inspect"
    path.write_bytes(vmo.data)
    result = run_cli("convert", path, "-", "-t", "selectors")
    assert result.stdout == b"root:\\\\\n"
    assert "entries with an empty name" in result.stderr
    assert "(2)" in result.stderr


def test_selectors_of_a_file_are_named_with_an_at(tmp_path: Path) -> None:
    path = tmp_path / "selectors"
    path.write_text("// what counts\nroot/a:count // here\nroot/root\n")
    expected = ["root:version", "root/a:count", "root/root:root"]
    assert chosen(f"@{path}", "root:version") == expected
    with pytest.raises(UnreadableError):
        chosen(f"@{tmp_path / 'none'}")
