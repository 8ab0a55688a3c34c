"""Short names of C++ functions, and what exporters write with them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fxframework.kit.short_names import short_cxx

from ..cases import cases

XRAY = Path(__file__).parents[2] / "examples" / "xray"


@cases(
    ("name", "short"),
    [
        ("main", "main"),
        ("check(long)", "check()"),
        ("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector<>::push_back()"),
        ("void ns::f<int>(std::map<int, char>) const", "void ns::f<>() const"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f()"),
        ("a::(anonymous namespace)::Box<int>::get()", "a::(anonymous namespace)::Box<>::get()"),
        ("f(int)::{lambda(char*)#1}::operator()(char*)", "f()::{lambda()#1}::operator()()"),
        ("f()::'lambda'(int)::operator()(int) const", "f()::'lambda'()::operator()() const"),
        ("f::$_0::operator()<int>(int)", "f::$_0::operator()<>()"),
        ("ns::operator<(A const&, A const&)", "ns::operator<()"),
        ("bool operator< <int>(Box<int>, int)", "bool operator< <>()"),
        ("operator<<(std::ostream&, A)", "operator<<()"),
        ("operator<< <A>(A)", "operator<< <>()"),
        ("operator>>(std::istream&, A)", "operator>>()"),
        ("A::operator>(A) const", "A::operator>() const"),
        ("A::operator->() const", "A::operator->() const"),
        ("A::operator->*(int A::*)", "A::operator->*()"),
        ("A::operator<=>(A) const", "A::operator<=>() const"),
        ("A::operator()(int)", "A::operator()()"),
        ("A::operator[](std::vector<int>)", "A::operator[]()"),
        ("A::operator bool() const", "A::operator bool() const"),
        ("A::operator std::vector<int>()", "A::operator std::vector<>()"),
        ("operator new[](unsigned long)", "operator new[]()"),
        ('operator"" _km(long double)', 'operator"" _km()'),
        ("Less<&(A::operator<(A))>::call(A)", "Less<>::call()"),
        ("f<(1 > 2), (3 < 4)>(int)", "f<>()"),
        ("f<decltype(a->b)>(int)", "f<>()"),
        ("void (*f(int))(char)", "void (*f())()"),
        ("f[abi:cxx11](int) [clone .isra.0]", "f[abi:cxx11]() [clone .isra.0]"),
        ("my_operator<int>(char)", "my_operator<>()"),
        ("GET /a?b (200)", "GET /a?b (200)"),
        ("a < b, c > d", "a < b, c > d"),
        ("f(", "f("), ("f<", "f<"), (")>f", ")>f"), ("f(int", "f(int"), ("f<int)", "f<int)"),
        ("operator", "operator"), ("operator<", "operator<"), ("operator(", "operator("), ("", ""),
        ("f\ud800g(\n)", "f\ud800g()"),
    ],
)  # fmt: skip
def test_names(name: str, short: str) -> None:
    assert short_cxx(name) == short


@given(st.text(alphabet="<>()-*=&|:operator'{} ,\u00e9") | st.text())
def test_any_text_has_a_short_name_that_is_stable(name: str) -> None:
    short = short_cxx(name)
    assert len(short) <= len(name)
    assert short_cxx(short) == short


@cases("bracket", ["f<", "f(", "<", "(", "operator<"])
def test_many_brackets_take_linear_time(bracket: str) -> None:
    """A search for each bracket's other half would take minutes."""
    assert short_cxx(bracket * 200_000) == bracket * 200_000


@cases(
    "out",
    ["a.folded", "a.json", "a.txt", "a.csv", "a.svg", "a.speedscope.json", "a.pftrace", "a.html",
     "a.pb", "a.dot", "a.otlp-traces.json"],
)  # fmt: skip
def test_exporters_write_short_names(out: str, tmp_path: Path) -> None:
    target = tmp_path / out
    names = {"instr_map": str(XRAY / "spellcheck.csv")}
    fxf.convert(XRAY / "spellcheck.xray", target, shorten="cxx", **names)
    written = target.read_bytes()
    assert b"distance()" in written
    assert b"char const" not in written


def test_functions_stay_apart_by_their_numbers(tmp_path: Path) -> None:
    """Two overloads with one short name are two lines of stacks by id, one by name."""
    target = tmp_path / "a.folded"
    names = {"instr_map": str(XRAY / "spellcheck.csv")}
    whole = fxf.convert(XRAY / "spellcheck.xray", tmp_path / "b.folded", **names)
    short = fxf.convert(XRAY / "spellcheck.xray", target, shorten="cxx", **names)
    assert short.dropped == whole.dropped
    lines = [path.read_text().splitlines() for path in (tmp_path / "b.folded", target)]
    assert [line.rpartition(" ")[2] for line in lines[0]] == [
        line.rpartition(" ")[2] for line in lines[1]
    ]
