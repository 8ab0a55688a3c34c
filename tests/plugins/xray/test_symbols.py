"""Names of functions: from programs, from YAML and from CSV."""

from __future__ import annotations

import csv
import shutil
import string
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fxframework as fxf
from fx_xray.read.instr_map import InstrumentationMap, SledKind, demangle, read_map
from fx_xray.read.symbols import Symbols
from fx_xray.read.yaml_text import OddYamlError, nodes, quoted
from fxframework.errors import FxError, UnreadableError, UsageError

from ...cases import cases
from .programs import Program, Sled, Symbol

MAPS = Path(__file__).parents[2] / "conformance" / "xray" / "instr_map"
CALLED = Program(
    maps=[
        [
            Sled(0x2000, 0x2000),
            Sled(0x2010, 0x2000, kind=1),
            Sled(0x2100, 0x2100, kind=3, always=0),
            Sled(0x2120, 0x2100, kind=2),
        ]
    ],
    symbols=[Symbol(0x2000, 0x20, "_Z3fibl"), Symbol(0x2100, 0x40, "main")],
)


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(data: bytes | str, name: str = "program") -> str:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return str(path)

    return write


def yaml_of(found: InstrumentationMap, **more: Any) -> str:
    return b"".join(found.to_yaml(**more)).decode()


def symbols(text: str, **more: Any) -> Symbols:
    return Symbols.of({"instr_map": text, **more})


# --- Programs ------------------------------------------------------------------------------------


def test_the_map_of_a_real_program_is_llvm_xrays() -> None:
    expected = (MAPS / "app-16.yaml").read_text("utf-8")
    assert yaml_of(read_map(str(MAPS / "app-16.elf"))) == expected


@cases("name", ["app-16", "deep-16"])
def test_yaml_of_llvm_xray_comes_back_as_it_was(name: str) -> None:
    path = MAPS / f"{name}.yaml"
    assert yaml_of(read_map(str(path))) == path.read_text("utf-8")


def test_a_program_its_yaml_and_its_csv_name_functions_alike(written: Any) -> None:
    program = read_map(str(MAPS / "app-16.elf"))
    maps = [
        symbols(str(MAPS / "app-16.elf")),
        symbols(str(MAPS / "app-16.yaml")),
        symbols(written(b"".join(program.to_csv()), "map.csv")),
    ]
    names = [[each.name(id) for id in range(12)] for each in maps]
    assert names[0] == names[1] == names[2]
    assert names[0][:3] == [None, "fib(long)", "scale(long)"]
    assert names[0][10] == "std::vector<std::thread, std::allocator<std::thread>>::~vector()"
    assert names[0][11] is None
    assert [each.function(9).address for each in maps] == [0x21B30] * 3
    assert maps[0].function(1).linkage_name == maps[2].function(1).linkage_name == "_Z3fibl"
    assert symbols(str(MAPS / "app-16.elf"), demangle=False).name(1) == "_Z3fibl"


@cases("order", ["<", ">"])
@cases("bits", [32, 64])
@cases("version", [0, 1, 2, 3])
def test_every_class_byte_order_and_version(
    written: Any, bits: int, order: str, version: int
) -> None:
    sleds = [
        Sled(0x2000 + 0x100 * kind, 0x2000 + 0x100 * (kind // 2), kind, kind % 2, version)
        for kind in SledKind
    ]
    symbols_ = [Symbol(0x2000 + 0x100 * i, 0x100, f"f{i}") for i in range(3)]
    program = Program(maps=[sleds], symbols=symbols_, bits=bits, order=order)
    found = read_map(written(program.pack()))
    assert not found.faults
    assert found.sleds is not None
    assert found.sleds.id.tolist() == [1, 1, 2, 2, 3, 3]
    assert found.sleds.address.tolist() == [sled.address for sled in sleds]
    assert found.sleds.function.tolist() == [sled.function for sled in sleds]
    assert found.sleds.kind.tolist() == list(range(6))
    assert found.sleds.always.tolist() == [bool(kind % 2) for kind in range(6)]
    assert [found.functions.name(id) for id in (1, 2, 3)] == ["f0", "f1", "f2"]
    # llvm-xray refuses a file with a kind that it does not know.
    typed = yaml_of(found).splitlines()[-2]
    assert "kind: custom-event, always-instrument: true, function-name: f2" in typed
    assert typed.endswith("# typed-event")


def test_addresses_that_the_loader_fills_in(written: Any) -> None:
    sleds = [Sled(0x2000, 0x2000, version=1), Sled(0x2100, 0x2100, version=1)]
    program = Program(maps=[sleds], symbols=[Symbol(0x2100, 4, "g")], moved=True)
    found = read_map(written(program.pack()))
    assert [found.functions.of(id).address for id in (1, 2)] == [0x2000, 0x2100]
    assert [found.functions.name(id) for id in (1, 2)] == [None, "g"]


def test_an_object_has_a_map_for_each_of_its_sections(written: Any) -> None:
    names = [Symbol(0, 0, "", type=3, section=n) for n in (7, 9)]
    names += [Symbol(0, 16, "first", section=7), Symbol(0, 16, "second", section=9)]
    program = Program(
        maps=[[Sled(0, 0, section=7), Sled(8, 0, 1, section=7)], [Sled(0, 0, section=9)]],
        symbols=names,
        relocatable=True,
    )
    found = symbols(written(program.pack()))
    assert [found.name(id) for id in (1, 2, 3)] == ["first", "second", None]
    assert found.maps[0].sleds is not None
    assert found.maps[0].sleds.address.tolist() == [0, 8, 0]


def test_ids_go_by_changes_of_the_function(written: Any) -> None:
    sleds = [Sled(a, f) for a, f in ((1, 1), (2, 1), (9, 9), (12, 1))]
    found = read_map(written(Program(maps=[sleds]).pack()))
    assert found.sleds is not None
    assert found.sleds.id.tolist() == [1, 1, 2, 3]


def test_symbols_that_are_not_of_functions_name_none(written: Any) -> None:
    names = [Symbol(0x2000, 8, "data", type=1), Symbol(0x1000, 8, "before")]
    found = symbols(written(Program(maps=CALLED.maps, symbols=names).pack()))
    assert found.name(1) is None
    assert found.source(1) is None
    assert "function-name: '@(2000)'" in yaml_of(found.maps[0])


def test_of_symbols_of_one_address_the_largest_names_it(written: Any) -> None:
    names = [Symbol(0x2000, 8, "small"), Symbol(0x2000, 16, "large"), Symbol(0x2000, 8, "late")]
    found = symbols(written(Program(maps=CALLED.maps, symbols=names, dynamic_symbols=True).pack()))
    assert found.name(1) == "large"


def test_odd_entries_are_left_out_and_said(written: Any) -> None:
    sleds = [Sled(1, 1), Sled(5, 5, kind=6), Sled(9, 9)]
    data = Program(maps=[sleds]).pack()
    found = symbols(written(data))
    assert [fault.message for fault in found.faults] == ["a sled of kind 6"]
    assert data[found.faults[0].offset + 16] == 6
    assert [found.function(id).address for id in (1, 2, 3)] == [1, 9, 0]


# --- Texts ---------------------------------------------------------------------------------------


def test_yaml_without_names_has_addresses_alone(written: Any) -> None:
    text = "- { id: 3, address: 0x10, function: 0x20, kind: tail-exit, version: 2 }\n"
    found = symbols(written(text, "map.yaml"))
    assert found.name(3) is None
    assert found.function(3).address == 0x20


def test_csv_holds_names_of_any_length(written: Any) -> None:
    limit = csv.field_size_limit()
    name = "f" * 300_000 + ',"'
    quoted = name.replace('"', '""')
    read = read_map(written(f'function_id,name\n1,"{quoted}"\n2,g\n', "map.csv"))
    assert [read.functions.name(id) for id in (1, 2)] == [name, "g"]
    again = read_map(written(b"".join(read.to_csv()), "again.csv"))
    assert [again.functions.name(id) for id in (1, 2)] == [name, "g"]
    assert csv.field_size_limit() == limit


def test_csv_needs_no_more_than_an_id_and_a_name(written: Any) -> None:
    found = symbols(written("function_id,name\n7,_Z1fv\n0x8,g\nx,h\n-1,i\n", "map.csv"))
    assert [found.name(id) for id in (7, 8, 9)] == ["f()", "g", None]
    assert found.function(7).linkage_name == "_Z1fv"
    assert [fault.message for fault in found.faults] == [
        "line 4 names no function",
        "line 5 names no function",
    ]
    assert found.faults[0].offset == len("function_id,name\n7,_Z1fv\n0x8,g\n")


@cases(
    ("text", "name"),
    [
        ("", "empty"),
        ("no map at all", "text"),
        ("- 1\n- 2\n", "list.yaml"),
        ("---\na: 1\n", "mapping.yaml"),
        ("- { id: [", "cut.yaml"),
        ("- {" * 100_000, "deep.yaml"),
        ("function_id,other\n1,2\n", "other.csv"),
        ("\x7fELF", "short"),
    ],
)
def test_what_is_no_map_is_an_error_with_a_remedy(written: Any, text: str, name: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        symbols(written(text, name))
    assert caught.value.remedy
    assert caught.value.path


def test_a_program_without_a_map_is_an_error(written: Any) -> None:
    with pytest.raises(UnreadableError, match="no section xray_instr_map"):
        symbols(written(Program(maps=[]).pack()))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="cannot open"):
        symbols(str(tmp_path / "missing"))


PROGRAM = CALLED.pack()
YAML = (MAPS / "deep-16.yaml").read_bytes()
CSV = b"".join(read_map(str(MAPS / "deep-16.yaml")).to_csv())


@given(
    st.sampled_from([PROGRAM, YAML, CSV]),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=8)), max_size=6),
    st.floats(0.5, 1),
)
def test_any_bytes_give_a_map_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, base: bytes, edits: Any, kept: float
) -> None:
    data = bytearray(base)
    for place, put in edits:
        at = int(place * len(data))
        data[at : at + len(put)] = put
    path = tmp_path_factory.getbasetemp() / "mutated"
    path.write_bytes(data[: int(kept * len(data))])
    try:
        found = symbols(str(path))
    except FxError:
        return
    for id in (1, 2, 3, 1 << 24):
        found.name(id)
        repr(found.function(id).linkage_name)
        found.source(id)
    assert yaml_of(found.maps[0]).startswith("---\n")
    assert b"".join(found.maps[0].to_csv()).startswith(b"function_id,")


# --- Objects -------------------------------------------------------------------------------------


@pytest.fixture
def objects(written: Any) -> dict[str, str]:
    return {
        name: written(f"function_id,name\n1,{name}\n", f"{name}.csv") for name in ("main", "a", "b")
    }


def test_objects_have_maps_of_their_own(objects: dict[str, str]) -> None:
    found = symbols(f"{objects['main']},1={objects['a']},200={objects['b']}")
    assert found.name(1) == "main"
    assert found.name(1 << 24 | 1) == "a"
    assert found.name(200 << 24 | 1) == "b"
    assert found.name(2 << 24 | 1) is None
    assert [found.object(id) for id in (1, 1 << 24 | 1, 200 << 24 | 1)] == [0, 1, 200]
    assert not any(found.ambiguous(id) for id in (1, 1 << 24 | 1, 200 << 24 | 1))


def test_four_bits_of_the_object_are_enough_while_they_tell(objects: dict[str, str]) -> None:
    found = symbols(f"{objects['main']},17={objects['a']}")
    assert found.name(1 << 24 | 1) == "a"
    assert found.object(1 << 24 | 1) == 17
    assert not found.ambiguous(1 << 24 | 1)
    both = symbols(f"{objects['main']},17={objects['a']},1={objects['b']}")
    assert both.name(1 << 24 | 1) == "a"
    assert both.ambiguous(1 << 24 | 1)
    assert not both.ambiguous(17 << 24 | 1)
    assert both.name(17 << 24 | 1) == "a"


def test_ids_of_basic_mode_are_whole(objects: dict[str, str]) -> None:
    seventeen = Symbols.of({"instr_map": f"{objects['main']},17={objects['a']}"}, whole_ids=True)
    assert seventeen.name(1 << 24 | 1) is None
    assert seventeen.object(1 << 24 | 1) == 1
    assert seventeen.name(17 << 24 | 1) == "a"
    text = f"{objects['main']},17={objects['a']},1={objects['b']}"
    both = Symbols.of({"instr_map": text}, whole_ids=True)
    assert [both.name(number << 24 | 1) for number in (0, 1, 17)] == ["main", "b", "a"]
    assert not any(both.ambiguous(number << 24 | 1) for number in (0, 1, 17))


def basic_trace(*ids: int) -> bytes:
    """A trace of basic mode that enters and leaves these functions, one after the other."""
    words = [struct.pack("<HHIQ16x", 3, 0, 3, 10**9)]
    for number, id in enumerate(ids):
        for kind in (0, 1):
            ticks = 100 * number + 10 * kind
            words.append(struct.pack("<HBBIQII8x", 0, 0, kind, id, ticks, 7, 5))
    return b"".join(words)


@pytest.mark.parametrize("form", ["file", "yaml"])
def test_a_trace_of_basic_mode_has_names_of_its_own_objects_only(
    form: str, objects: dict[str, str], tmp_path: Path
) -> None:
    trace = tmp_path / "basic.xray"
    trace.write_bytes(basic_trace(1, 1 << 24 | 1, 17 << 24 | 1))
    if form == "yaml":
        fxf.convert(trace, tmp_path / "basic.yaml", to="llvm-yaml")
        trace = tmp_path / "basic.yaml"

    def named(text: str) -> tuple[list[str | None], set[str]]:
        with fxf.open(trace, instr_map=text) as capture:
            return capture.table("slices").texts("name"), set(capture.diagnostics.counts)

    alone, findings = named(f"{objects['main']},17={objects['a']}")
    assert alone == ["main", "16777217", "a"]
    assert "FXX0602" in findings
    both, findings = named(f"{objects['main']},17={objects['a']},1={objects['b']}")
    assert both == ["main", "b", "a"]
    assert "FXX0604" not in findings


def test_a_plain_id_may_be_large(written: Any) -> None:
    found = symbols(written("function_id,name,address\n20000000,far,0x10\n", "map.csv"))
    assert found.name(20_000_000) == "far"
    assert found.object(20_000_000) == 0


@cases("text", ["{a},{b}", "{a},1=", "0={a},{b}", "{a},0={b}", "256={a}", ","])
def test_odd_texts_are_usage_errors(objects: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        symbols(text.format(**objects))
    assert caught.value.remedy


def test_a_path_with_a_comma_is_a_path(written: Any) -> None:
    assert symbols(written("function_id,name\n1,f\n", "a,1=b")).name(1) == "f"


def test_without_a_map_nothing_has_a_name() -> None:
    found = Symbols.of({"instr_map": "", "demangle": True})
    assert not found
    assert found.name(1) is None
    assert found.function(1).linkage_name is None
    assert found.source(1) is None
    assert found.function(1).address == 0
    assert found.object(3 << 24 | 1) == 3
    assert not found.ambiguous(1)
    assert found.faults == ()


# --- Demangling ----------------------------------------------------------------------------------


@cases(
    ("mangled", "name"),
    [
        ("main", "main"),
        ("_Z3fibl", "fib(long)"),
        ("_ZN2ns1AC2Ei", "ns::A::A(int)"),
        ("_ZN2ns1AD0Ev", "ns::A::~A()"),
        ("_ZNK2ns1A3getEv", "ns::A::get() const"),
        ("_ZNO2ns1A4rrefEv", "ns::A::rref() &&"),
        ("_ZNR2ns1A4lrefEv", "ns::A::lref() &"),
        ("_ZN2ns1AixEm", "ns::A::operator[](unsigned long)"),
        ("_ZN2ns1AcvbEv", "ns::A::operator bool()"),
        ("_ZN2ns1A2stEPKPKcRA3_i", "ns::A::st(char const* const*, int (&) [3])"),
        ("_ZN2ns1A4virtEPFviE", "ns::A::virt(void (*)(int))"),
        ("_ZN2ns1A4tmplIdLin3EEET_S2_", "double ns::A::tmpl<double, -3>(double)"),
        (
            "_Z4packILb1ELl5EJidRiEEiDpOT1_",
            "int pack<true, 5l, int, double, int&>(int&&, double&&, int&)",
        ),
        ("_ZN12_GLOBAL__N_14anonEv", "(anonymous namespace)::anon()"),
        ("_Z1f3FooNS_3BarES0_", "f(Foo, Foo::Bar, Foo::Bar)"),
        ("_Z1fRKSsSo", "f(std::string const&, std::ostream)"),
        ("_ZSt4endlIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_",
         ("std::basic_ostream<char, std::char_traits<char>>& "
          "std::endl<char, std::char_traits<char>>(std::basic_ostream<char, "
          "std::char_traits<char>>&)")),
        ("_Z3foov.cold", "foo() (.cold)"),
        ("_ZTv0_n24_N1A1fEv", "virtual thunk to A::f()"),
        # Local names, lambdas and char8_t.
        ("_ZZL3lamiENK3$_0clEi", "lam(int)::$_0::operator()(int) const"),
        ("_ZZN2ns1fEidENK3Loc3getEv", "ns::f(int, double)::Loc::get() const"),
        ("_ZNK2ivMUllE_clEl", "iv::'lambda'(long)::operator()(long) const"),
        ("_Z2c8PKDuDsDi", "c8(char8_t const*, char16_t, char32_t)"),
        ("_ZZN1X1wEvENKUlvE_clEv", "X::w()::'lambda'()::operator()() const"),
        ("_ZZN2ns2tfIdEET_S1_ENKUldE_clEd",
         "double ns::tf<double>(double)::'lambda'(double)::operator()(double) const"),
        ("_ZZN2ns1fEidENKUlT_PT0_E0_clIciEEDaS0_S2_",
         ("auto ns::f(int, double)::'lambda0'(auto, auto*)"
          "::operator()<char, int>(char, int*) const")),
        ("_ZZZN2ns1fEidENK3$_3clEiENKUlcE_clEc",
         ("ns::f(int, double)::$_3::operator()(int) const"
          "::'lambda'(char)::operator()(char) const")),
        # Rust, version 0.
        ("_RINvCs6GmmlP4bgsG_1r3chrKc27_Kb0_Ka5_EB2_", "r::chr::<'\\'', false, 5>"),
        ("_RINvCs6GmmlP4bgsG_1r3chrKce9_Kb1_Kan5_EB2_", "r::chr::<'é', true, -5>"),
        ("_RINvCs6GmmlP4bgsG_1r3genFG_RL0_eERL0_eEB2_",
         "r::gen::<for<'a> fn(&'a str) -> &'a str>"),
        ("_RINvMCs6GmmlP4bgsG_1rINtB3_1ShKj3_E2goNCNvB3_4main0EB3_",
         "<r::S<u8, 3>>::go::<r::main::{closure#0}>"),
        ("_RINvCs6GmmlP4bgsG_1r3genTlfAsj4_ReINtNtCsgEmfK2I1SDS_4core6option6OptionlEEEB2_",
         "r::gen::<(i32, f32, [i16; 4], &str, core::option::Option<i32>)>"),
        ("_RNvC1r", "_RNvC1r"),
        ("_RNvB_1r", "_RNvB_1r"),
        ("_Z3memMN2ns1AEi", "mem(int ns::A::*)"),
        ("_ZNSoC2Ev", "std::basic_ostream<char, std::char_traits<char>>::basic_ostream()"),
        ("_ZTI1A@VERSION_1.2", "typeinfo for A@VERSION_1.2"),
        # The older names of Rust are C++ names with a hash, which tells instances apart.
        ("_ZN1r3gen17h9b2b3a0e5b4d1b31E", "r::gen::h9b2b3a0e5b4d1b31"),
        # What is not mangled, or not whole, stays as it is.
        ("?f@@YAXH@Z", "?f@@YAXH@Z"),
        ("_Z", "_Z"),
        ("_Z3fo", "_Z3fo"),
    ],
)  # fmt: skip
def test_names_are_as_llvm_spells_them(mangled: str, name: str) -> None:
    assert demangle(mangled) == name


def doubled(levels: int) -> str:
    """A name of a type that is twice the one before it, so many times."""
    digits = string.digits + string.ascii_uppercase
    return "1AIiiE" + "".join(f"S_IS{digits[n]}_S{digits[n]}_E" for n in range(levels))


def _base62(value: int) -> str:
    """A reference to byte ``value`` of a Rust name, without its tag and end."""
    digits = string.digits + string.ascii_lowercase + string.ascii_uppercase
    return (
        digits[value - 1] if value <= 62 else digits[(value - 1) // 62] + digits[(value - 1) % 62]
    )


def test_names_that_double_themselves_are_left_alone() -> None:
    assert demangle(f"_Z1f{doubled(2)}").count("int") == 14
    for name in (f"_Z1f{doubled(30)}", f"_Z1fIiEv{doubled(30)}"):
        assert demangle(name) == name
    for deep in ("_Z1f" + "P" * 8000 + "i", "_R" + "Nv" * 4000, "_RIC1r" + "R" * 8000 + "lE"):
        assert demangle(deep) == deep
    # Each part is twice the one before it.
    again, last = "_RIC1rTllE", "4"
    for _ in range(40):
        place = _base62(len(again) - 2)
        again, last = f"{again}TB{last}_B{last}_E", place
    assert demangle(f"{again}E") == f"{again}E"
    assert sys.getprofile() is None


def test_who_measures_goes_on_measuring() -> None:
    seen = []
    sys.setprofile(lambda *what: seen.append(what))
    try:
        name = demangle("_Z8measuredv")
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert name == "measured()"
    assert seen


@given(
    st.lists(
        st.sampled_from(
            [
                "_Z",
                "N",
                "E",
                "I",
                "J",
                "K",
                "P",
                "R",
                "O",
                "S_",
                "S0_",
                "S1_",
                "St",
                "Ss",
                "Sa",
                "T_",
                "T0_",
                "1f",
                "3foo",
                "C1",
                "D2",
                "cv",
                "pl",
                "ix",
                "i",
                "v",
                "l",
                "F",
                "A3_",
                "M",
                "Dp",
                "Li1E",
                "L_Z1f",
                "X",
                "Z",
                "TV",
                "Th4_",
                "GV",
                "B3abi",
                ".x",
                "9",
                "_",
            ]
        ),
        max_size=30,
    ).map("".join)
)
@example("_ZN1A1BIiEC2Ev")
def test_any_name_gives_a_name(name: str) -> None:
    assert demangle(f"_Z{name}")


# --- YAML ----------------------------------------------------------------------------------------


@given(st.text(st.characters(codec="utf-8", exclude_characters="\ufffe\uffff"), max_size=12))
@example("a: b")
@example("it's")
@example("'\n\\\"")
@example("\x85\xa0\u2028\u2029\ufeff")
@example("1e5")
@example("null")
@example("-")
@example(" ")
def test_quoted_scalars_are_read_back(text: str) -> None:
    printable = all(char in "\t\n\r\x85" or char >= " " for char in text)
    try:
        ((_, entry),) = nodes(f"{{ a: {quoted(text)}, b: 1 }}".encode())
    except OddYamlError:
        # LLVM writes what is not printable as it is.
        assert not printable or any(char >= "\x7f" for char in text)
        return
    if "," not in text:
        assert entry == {"a": text, "b": "1"}


def test_llvm_puts_quotes_where_it_must() -> None:
    shown = [quoted(text) for text in ("main", "f(int)", "it's", "", "12", "0x1F", "a\nb", "ä")]
    assert shown == ["main", "'f(int)'", "'it''s'", "''", "'12'", "'0x1F'", '"a\\nb"', '"ä"']


def test_values_are_texts_and_aliases_are_nothing() -> None:
    ((_, entry),) = nodes(
        b"{ a: &x 1, args: [ 2, '3' ], deep: { x: [ 1, [ 2 ] ] }, b: *x, [c]: 1 }"
    )
    assert entry == {"a": "1", "args": ["2", "3"], "deep": {"x": ["1", ["2"]]}, "b": None}
    assert [item for _, item in nodes(b"[1, [2], {a: b}]", items=True)] == ["1", ["2"], {"a": "b"}]
    assert list(nodes(b"", items=True)) == []


@cases("text", ["a", "{ a: 1 }", "[1", "*x", "[" * 40, "[ \x00 ]"])
def test_what_is_no_list_is_said(text: str) -> None:
    with pytest.raises(OddYamlError):
        list(nodes(text.encode(), items=True))


def test_a_compressed_program_is_read(written: Any) -> None:
    import gzip

    assert symbols(written(gzip.compress(PROGRAM), "program.gz")).name(1) == "fib(long)"


def test_a_map_may_be_named_twice(tmp_path: Path) -> None:
    shutil.copy(MAPS / "app-16.yaml", tmp_path / "a.yaml")
    found = symbols(f"{tmp_path / 'a.yaml'},3={tmp_path / 'a.yaml'}")
    assert found.name(3 << 24 | 1) == found.name(1) == "fib(long)"
