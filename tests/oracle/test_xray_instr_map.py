"""Instrumentation maps of real programs, against llvm-xray."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fx_xray.read.instr_map import InstrumentationMap, demangle, read_map
from fxframework.errors import UnreadableError

from ..cases import cases
from .xray_tool import clang_with_xray, llvm_xray, missing, newest, spelled

CONFORMANCE = Path(__file__).parents[1] / "conformance" / "xray"

PROGRAM = r"""
#include <map>
#include <string>
#include <vector>
#define ALWAYS [[clang::xray_always_instrument]] __attribute__((noinline))
namespace ns {
struct A {
  int x;
  ALWAYS A(int y) : x(y) {}
  ALWAYS ~A() { x = 0; }
  ALWAYS int get() const { return x; }
  ALWAYS void lvalue() & { x++; }
  ALWAYS void rvalue() && { x--; }
  ALWAYS A operator+(const A &o) const { return A(x + o.x); }
  ALWAYS operator bool() const { return x; }
  ALWAYS int operator[](unsigned long i) { return x + i; }
  template <class T, int N> ALWAYS T scaled(T t) { return t + N + x; }
  ALWAYS static int at(const char *const *p, int (&a)[3]) { return a[1]; }
  ALWAYS virtual int calls(int (*f)(int)) { return f(x); }
};
}
namespace {
ALWAYS int hidden(std::vector<std::string> &v, std::map<int, std::string> const &m) {
  return v.size() + m.size();
}
}
template <bool B, long L, typename... T> ALWAYS int pack(T &&...) { return sizeof...(T) + B + L; }
ALWAYS int plain(int i) { return i + 1; }
[[clang::xray_log_args(1)]] ALWAYS int logged(int i) { return plain(i); }
#ifdef EVENTS
ALWAYS void events() {
  static const char data[] = "x";
  __xray_typedevent(7, data, 1);
  __xray_customevent(data, 1);
}
#endif
int main(int argc, char **) {
  ns::A a(argc);
  a.lvalue();
  ns::A(2).rvalue();
  int array[3] = {1, 2, 3};
  std::vector<std::string> v;
  std::map<int, std::string> m;
#ifdef EVENTS
  if (argc > 100) events();
#endif
  return a.get() + (a + a).x + bool(a) + a[1] + a.scaled<int, 5>(2) + a.scaled<double, -3>(1.0)
    + ns::A::at(0, array) + a.calls(plain) + hidden(v, m) + pack<true, 5>(1, 2.0, argc)
    + pack<false, -7>() + logged(argc) == 0;
}
"""


def compiled(folder: Path, *options: str) -> str:
    source, program = folder / "program.cpp", folder / "program"
    source.write_text(PROGRAM)
    subprocess.run(
        [clang_with_xray(), "-std=c++17", "-w", "-fxray-instrument", *options, str(source),
         "-o", str(program)],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return str(program)


def extracted(program: str, *options: str) -> str:
    command = [llvm_xray(), "extract", "--symbolize", *options, program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return spelled(done.stdout)


def printed(found: InstrumentationMap, *, demangled: bool = True) -> str:
    return b"".join(found.to_yaml(demangled=demangled)).decode()


@pytest.mark.parametrize(
    "options",
    [
        ("-O1",),
        ("-O0", "-g"),
        ("-O2", "-no-pie", "-fno-pie", "-Wl,--strip-all"),
        ("-O1", "-fxray-instruction-threshold=1", "-ffunction-sections", "-Wl,--gc-sections"),
    ],
    ids=" ".join,
)
def test_the_map_is_the_one_that_llvm_xray_extracts(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    program = compiled(tmp_path, *options)
    found = read_map(program)
    assert printed(found) == extracted(program)
    assert printed(found, demangled=False) == extracted(program, "--no-demangle")


@cases("machine", ["x86_64", "arm64"])
def test_maps_of_macos_are_those_that_llvm_xray_extracts(machine: str) -> None:
    program = str(CONFORMANCE / "instr_map" / f"macho-{machine}")
    found = read_map(program)
    assert printed(found) == extracted(program)
    assert printed(found, demangled=False) == extracted(program, "--no-demangle")


def test_objects_of_macos_are_refused(tmp_path: Path) -> None:
    """llvm-xray reads their relocations; we ask for what they were linked into."""
    source, target = tmp_path / "program.cpp", tmp_path / "program.o"
    source.write_text("__attribute__((xray_always_instrument)) int one() { return 1; }\n")
    command = [clang_with_xray(), "-target", "arm64-apple-macos13", "-fxray-instrument", "-c"]
    done = subprocess.run(
        [*command, str(source), "-o", str(target)], capture_output=True, check=False, timeout=120
    )
    if done.returncode:
        missing("this clang++ makes no objects of macOS with XRay")
    with pytest.raises(UnreadableError, match="an object that is not linked"):
        read_map(str(target))


def test_typed_events_are_read_too(tmp_path: Path) -> None:
    lines = printed(read_map(compiled(tmp_path, "-O1", "-DEVENTS"))).splitlines()
    kinds = [line.partition("kind: ")[2].partition(",")[0] for line in lines if "events()" in line]
    # llvm-xray knows no kind for typed events, and refuses a file with another.
    assert kinds == ["function-enter", "custom-event", "custom-event", "function-exit"]
    assert sum(line.endswith("# typed-event") for line in lines) == 1
    path = tmp_path / "map.yaml"
    path.write_text("\n".join(lines) + "\n")
    trace = CONFORMANCE / "fdr5-single-clang19.xray"
    command = [llvm_xray(), "account", "-k", "-m", str(path), str(trace)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize(("level", "dwarf"), [("-O0", 5), ("-O1", 4)])
def test_lines_are_those_that_account_shows(tmp_path: Path, level: str, dwarf: int) -> None:
    program = compiled(tmp_path, level, f"-gdwarf-{dwarf}")
    known = read_map(program).functions
    shown = {id: known.source(id) for id in known.ids}
    expected = _of_account(program, tmp_path, list(known.ids))
    assert len(expected) > 10
    for id, line in expected.items():
        if ":0:" not in line:
            assert shown[id] == line
        else:
            # The compiler gave the first instruction to no line: we look at the next ones.
            assert shown[id] is not None
            assert shown[id].partition(":")[0] == line.partition(":")[0]  # type: ignore[union-attr]
    assert any(":0:" not in line for line in expected.values())


def _of_account(program: str, folder: Path, ids: list[int]) -> dict[int, str]:
    """What account says of the lines of functions, for a trace in which each was called."""
    import csv
    import io

    trace = bytearray((3).to_bytes(2, "little") + bytes(6) + (10**9).to_bytes(8, "little"))
    trace += bytes(16)
    for number, id in enumerate(ids):
        for kind in (0, 1):
            head = bytes((0, 0, 0, kind)) + id.to_bytes(4, "little")
            trace += head + (1000 + 20 * number + kind).to_bytes(8, "little")
            trace += (1).to_bytes(4, "little") * 2 + bytes(8)
    path = folder / "all.xray"
    path.write_bytes(trace)
    command = [llvm_xray(), "account", "-f", "csv", "-k", "-m", program, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return {int(row["funcid"]): row["debug"] for row in csv.DictReader(io.StringIO(done.stdout))}


def test_names_are_spelled_as_llvm_spells_them() -> None:
    from elftools.elf.elffile import ELFFile

    program = CONFORMANCE / "instr_map" / "app-16.elf"
    with program.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        names = sorted({each.name for each in table.iter_symbols()})
    # Those with a version are of other libraries.
    names = [name for name in names if name.startswith("_Z") and "@" not in name]
    tool = next(iter(newest("llvm-cxxfilt")), None) or missing("llvm-cxxfilt is not installed")
    done = subprocess.run(
        [tool], input="\n".join(names), check=True, capture_output=True, text=True, timeout=120
    )
    expected = dict(zip(names, spelled(done.stdout).split("\n"), strict=False))
    assert len(names) > 1000
    assert {name: demangle(name) for name in names} == expected
