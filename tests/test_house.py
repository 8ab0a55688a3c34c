"""The shape of the house: sizes, circles, and the language of everything that ships."""

from __future__ import annotations

import ast
import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CODE = ("fxframework", "plugins", "emulator", "examples/plugins")
SHIPPED = (*CODE, "docs", "examples", "README.md", "CONTRIBUTING.md")
MODULE_LINES = 950
FUNCTION_LINES = 130
PARAMETERS = 10

PHRASES = {
    r"\b(is|are|was|were|be) (not )?told\b(?!\s(apart|from)\b)": "use 'is reported', 'is given'",
    r"\b(that|it|they|which|what) (is|are|was|were) none\b": "say what is invalid, and why",
    r"\bstand(s|ing)?\b(?! for\b| alone)|\bstood\b": "use 'is', 'is stored', 'remains'",
    r"\banew\b": "use 'again', 'new'",
    r"\bmakes? no sense\b": "use 'invalid', and say why",
    r"(?<![Tt]here )\b(is|are|was|were) no (?!longer|more|less|such)\w": "use 'is not a'",
    r"\bas (the |a |it |they |its )?[\w`]+ (has|have) it\b": "use 'as in', 'as given by'",
    r"\blet(s|ting)? go\b": "use 'release', 'free'",
    r"\b[Ww]hoever\b": "name who it is",
}
CITATIONS = r"CONTRACTS|DESIGN §|\bnotes §|\(notes §|trials\.md"


def files(*suffixes: str, under: tuple[str, ...]) -> Iterator[Path]:
    for name in under:
        path = ROOT / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in suffixes and "__pycache__" not in file.parts:
                yield file


def modules() -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in files(".py", under=CODE)]


@functools.cache
def parsed(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text("utf-8"))


def complaints(
    check: Callable[[str], Collection[str]], names: Iterable[str]
) -> dict[str, Collection[str]]:
    """What a check finds, by the file it is of."""
    findings = {name: check(name) for name in names}
    return {name: listed for name, listed in findings.items() if listed}


@pytest.mark.parametrize("room", ["kit/__init__", "plugin", "wire/__init__"])
def test_every_exported_name_has_a_section_of_the_reference(room: str) -> None:
    """With its signature, by ``docs/generate.py``, and an example that the tests of docs run."""
    tree = parsed(f"fxframework/fxframework/{room}.py")
    (exported,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    page = (ROOT / f"docs/reference/{room.partition('/')[0]}.md").read_text("utf-8")
    assert sorted(re.findall(r"^## `(\w+)`$", page, re.MULTILINE)) == sorted(exported)


PUBLIC_MODULES = re.compile(
    r".*/__init__\.py|examples/.*|plugins/\w+/\w+/write/arguments\.py"
    r"|fxframework/fxframework/(plugin\.py"
    r"|(model|io|testing|registry|findings|errors)\b.*)"
)


def test_only_public_modules_list_their_names() -> None:
    """Packages, the wrappers of arguments, and modules of which the reference has every name."""
    listing = [name for name in modules() if "\n__all__ = " in (ROOT / name).read_text("utf-8")]
    assert not [name for name in listing if not PUBLIC_MODULES.fullmatch(name)]


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield functions, also those in others; statements have them, expressions do not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from functions_of(node)


def too_large(name: str) -> list[str]:
    """What of a module is over a limit."""
    path = ROOT / name
    lines = len(path.read_text("utf-8").splitlines())
    too_long = []
    if lines > MODULE_LINES:
        too_long.append(f"{lines} lines; split it")
    for node in functions_of(parsed(name)):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES:
            too_long.append(f"{node.name}: {length} lines")
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count = len(parameters)
        if parameters and parameters[0].arg in {"self", "cls"}:
            count -= 1
        if count > PARAMETERS:
            too_long.append(f"{node.name}: {count} parameters")
    return too_long


def test_sizes() -> None:
    assert not complaints(too_large, modules())


@functools.cache
def shipped() -> dict[str, str]:
    paths = files(".py", ".pyi", ".md", ".toml", ".html", ".in", under=SHIPPED)
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def offences(text: str) -> list[str]:
    """Phrases that read as translated, and citations of what does not ship, with their lines."""
    remedies = {**PHRASES, CITATIONS: "cite the docs or the public document"}
    complaints_of_text = []
    for phrase, instead in remedies.items():
        for match in re.finditer(phrase, text):
            line = text.count("\n", 0, match.start()) + 1
            complaints_of_text.append(f"line {line}: {match[0]!r}: {instead}")
    return complaints_of_text


def test_language() -> None:
    assert not complaints(lambda name: offences(shipped()[name]), shipped())


def test_offences_are_found() -> None:
    for text in (
        "what is wrong is told with a code",
        "a ring of 12 bytes, that is none",
        "where it stands",
        "captures driven anew",
        "it is no UTF-8",
        "as the seed has it",
        "see CONTRACTS §3",
        "(notes §2.1)",
    ):
        assert offences(text), text
    for text in ("there is no reader", "4 MiB stand for a byte", "no longer", "release notes"):
        assert not offences(text), text


@pytest.mark.skipif(shutil.which("lint-imports", path=Path(sys.executable).parent) is None,
                    reason="import-linter is not installed")  # fmt: skip
def test_import_contracts() -> None:
    command = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run(
        [command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:]


# --- Findings by name ----------------------------------------------------------------------------

CODE_OF_A_RULE = re.compile(r'^(\w+) = Rule\(\s*"((?:[A-Z]+|\$\{CODE\})\d{4})"', re.MULTILINE)


def catalogues() -> dict[str, dict[str, str]]:
    """The names of rules by code, for each folder of product code that has a rules.py."""
    names_by_folder = {}
    for path in files(".py", under=CODE):
        if path.name == "rules.py":
            names_and_codes = CODE_OF_A_RULE.findall(path.read_text("utf-8"))
            folder = path.parent.relative_to(ROOT).as_posix()
            names_by_folder[folder] = {code: name for name, code in names_and_codes}
    return names_by_folder


def literal_codes(text: str, codes: dict[str, str]) -> list[str]:
    """Where a text has the code of a rule, or defines the number of one, instead of its name."""
    numbers = {name: int(code[-4:]) for code, name in codes.items()}
    prefixes = {re.escape(code[:-4]) for code in codes}
    literals = []
    if prefixes:
        literals += re.findall(rf"(?<!\w)(?:{'|'.join(prefixes)})\d{{4}}\b", text)
    for name, value in re.findall(r"^\s*(\w+)(?:\s*:[^=\n]*)? = (\d+)\b", text, re.MULTILINE):
        if numbers.get(name) == int(value):
            literals.append(f"{name} = {value}")
    return literals + re.findall(r"\b(?:notes\.(?:add|count)|numbered)\(\d+", text)


def test_findings_have_names() -> None:
    folders = catalogues()
    host = "fxframework/fxframework"
    plugins = {f"plugins/{name}/fx_{name}" for name in ("inspect", "log", "trace", "xray")}
    assert {host, *plugins} <= folders.keys()
    all_codes: dict[str, str] = {}
    for names in folders.values():
        all_codes |= dict.fromkeys(names, "")
    literals_by_file = {}
    for path in files(".py", ".pxd", ".in", under=CODE):
        if path.name == "rules.py" or "tests" in path.parts:
            continue
        file = path.relative_to(ROOT).as_posix()
        own_names: dict[str, str] = {}
        for folder, names in folders.items():
            if folder != host and file.startswith(f"{folder}/"):
                own_names = names
        text = path.read_text("utf-8")
        literals = literal_codes(text, own_names) + literal_codes(text, all_codes)
        if literals:
            literals_by_file[file] = literals
    assert not literals_by_file


LAYOUTS = {"format.py"}
"""The one file of a plugin that knows where a bit of a word lies."""


def bare_bits(tree: ast.Module) -> list[str]:
    """Expressions that shift or mask by a literal; ``1 << 20`` is a number, not bits of a word."""

    def is_number(node: ast.expr) -> bool:
        return isinstance(node, ast.Constant) and isinstance(node.value, int)

    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.RShift | ast.LShift | ast.BitAnd)
        and is_number(node.right)
        and not (isinstance(node.op, ast.LShift) and is_number(node.left))
    ]


@pytest.mark.parametrize("plugin", ["inspect", "log", "trace", "xray"])
def test_one_file_knows_where_a_bit_lies(plugin: str) -> None:
    own_modules = [name for name in modules() if name.startswith(f"plugins/{plugin}/")]
    assert not complaints(
        lambda name: bare_bits(parsed(name)),
        [name for name in own_modules if Path(name).name not in LAYOUTS],
    )


def test_bare_bits_are_found() -> None:
    for text in ("word >> 4", "word & 0xF", "order | kind << 8"):
        assert bare_bits(ast.parse(text))
    for text in ("ORDER.get(word)", "1 << 20", "word >> AT & MASK", "at // 8"):
        assert not bare_bits(ast.parse(text))


DECLARE_OR_WRITE = {
    "inspect": {
        "format.py", "sample.py", "write/arrays.py", "write/heap.py", "write/nodes.py",
        "write/state.py", "write/values.py", "write/writer.py",
    },
    "log": {
        "format.py", "sample.py", "write/arguments.py", "write/sinks.py", "write/writer.py",
    },
    "trace": {
        "format.py", "indexed.py", "records.py", "sample.py", "read/buffer.py",
        "write/arguments.py", "write/writer.py", "chrome/values.py",
    },
    "xray": {
        "format.py", "sample.py", "write/basic_recorder.py", "write/flight_recorder.py",
        "read/elf.py", "read/macho.py",
    },
}  # fmt: skip
"""Modules of a plugin that say where bits lie, those that make words of values, and those that read
programs, which are not declared. Chrome's JSON has no words, but hashes of texts."""
FROM_BYTES = re.compile(r"(^struct\.\w+|\bint\.from_bytes|\.bits)$")
"""What is called to take words apart."""


def words_taken(tree: ast.Module, bits: Collection[str] = ()) -> list[str]:
    """What takes numbers out of bytes, or ``bits``, by the names of fields, out of numbers."""
    places = []
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.expr) else ""
        is_taking = False
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift | ast.LShift):
            is_taking = not isinstance(node.left, ast.Constant)
        elif isinstance(node, ast.Name | ast.Attribute):
            is_taking = text.rpartition(".")[2] in bits
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            # A type with a byte order is one of a file's words; others are of columns.
            is_view = called.endswith((".view", ".frombuffer")) and re.search("['\"][<>]", text)
            is_taking = bool(is_view or FROM_BYTES.search(called))
        if is_taking:
            places.append(f"{getattr(node, 'lineno', 0)}: {text}")
    return places


@pytest.mark.parametrize("plugin", DECLARE_OR_WRITE)
def test_words_are_taken_by_wire_alone(plugin: str) -> None:
    root = f"plugins/{plugin}/fx_{plugin}/"
    declared = r"^(\w+)(?: = \w+\.layout\.bits| = _?[bB]its)\("
    bits = re.findall(declared, shipped()[f"{root}format.py"], re.MULTILINE)
    assert bits
    own_modules = [name for name in modules() if name.startswith(root)]
    exempt = {f"{root}{name}" for name in DECLARE_OR_WRITE[plugin]}
    assert not complaints(
        lambda name: words_taken(parsed(name), bits),
        [name for name in own_modules if name not in exempt],
    )


def test_words_that_are_taken_are_found() -> None:
    for text in (
        "SIZE.get(word)", "wire.SIZE.mask", "word >> low", "int.from_bytes(head, 'little')",
        "data.view('<i8')", "np.frombuffer(data, '<u4')", "struct.unpack('<Q', data)",
    ):  # fmt: skip
        assert words_taken(ast.parse(text), ["SIZE"]), text
    for text in ("place.get(data, 8)", "1 << kind", "ts.view(np.uint64)", "len(data).to_bytes(8)"):
        assert not words_taken(ast.parse(text), ["SIZE"]), text


def test_literal_codes_are_found() -> None:
    codes = {"FXT0104": "STRING_NOT_REGISTERED"}
    for text in ('find("FXT0104")', "    STRING_NOT_REGISTERED = 104\n", "self.notes.add(104, 0)"):
        assert literal_codes(text, codes), text
    for text in ("find(rules.STRING_NOT_REGISTERED)", "SIZE = 104", "notes.add(SIZE_ZERO, 1)"):
        assert not literal_codes(text, codes), text


# --- One plan of names ----------------------------------------------------------------------------

PLAN = ("plugin.py", "format.py", "rules.py", "sample.py", "steps.py", "read/capture.py",
        "read/records.py", "read/decoder.py", "read/blocks.py", "read/first_pass.py",
        "read/batches.py", "read/tables.py", "read/lines.py", "read/explain.py",
        "write/writer.py", "write/rewriter.py", "write/salvage.py")  # fmt: skip
"""Modules that each plugin of a format has, with one meaning."""
OTHERWISE = {
    "trace": {"read/records.py": "records.py"},
    "log": {
        "read/batches.py": "read/capture.py",
        "read/decoder.py": "read/frames.py",
        "read/explain.py": "read/frames.py",
        "read/first_pass.py": "read/blocks.py",
        "read/tables.py": "tables.py",
        "write/salvage.py": "write/copying.py",
    },
    "inspect": {"read/first_pass.py": "read/vmo.py", "write/rewriter.py": "write/encoder.py"},
    "xray": {
        "read/records.py": "format.py",
        "read/blocks.py": "read/frames.py",
        "write/writer.py": "write/recorder.py",
    },
}
"""What a plugin may still have in place of one of them."""
MODULES = {"inspect": 39, "log": 30, "trace": 56, "xray": 49}
"""How many modules a plugin has at most, but for those that say what a package is."""


@pytest.mark.parametrize("plugin", MODULES)
def test_plugins_have_one_plan(plugin: str) -> None:
    folder = ROOT / "plugins" / plugin / f"fx_{plugin}"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    names |= {path.relative_to(folder).as_posix()[:-1] for path in folder.rglob("*.pyx")}
    instead = OTHERWISE.get(plugin, {})
    assert not {name for name in PLAN if not {name, instead.get(name, name)} & names}
    assert len([name for name in names if not name.endswith("__init__.py")]) <= MODULES[plugin]


DEFINED = ast.ClassDef | ast.FunctionDef


@pytest.mark.parametrize("plugin", MODULES)
def test_places_that_read_names_exist(plugin: str) -> None:
    """The docstring of ``read`` says where each step of reading is."""
    package = ROOT / "plugins" / plugin / f"fx_{plugin}"
    names = {path.stem for path in (package / "read").glob("*.py")}
    names |= {f"{package.name}.{path.stem}" for path in package.glob("*.py")}
    for path in (package / "read").glob("*.py"):
        for node in parsed(path.relative_to(ROOT).as_posix()).body:
            if isinstance(node, DEFINED):
                names.add(node.name)
                for member in node.body:
                    if isinstance(member, DEFINED):
                        names |= {member.name, f"{node.name}.{member.name}"}
    for path in (package / "read").glob("*.pyx"):
        owner = ""
        for line in path.read_text("utf-8").splitlines():
            if match := re.match(r"cdef class (\w+)", line):
                owner = match[1]
            elif match := re.match(r"    (?:cp?def [\w ]+ |def )(\w+)\(", line):
                names |= {path.stem, owner, match[1], f"{owner}.{match[1]}"}
    text = ast.get_docstring(parsed((package / "read/__init__.py").relative_to(ROOT).as_posix()))
    named = set(re.findall("``(.+?)``", text or ""))
    assert len(named) > 8
    assert sorted(named - names) == []


# --- Words that are no longer used ----------------------------------------------------------------

GONE = {
    "people": "task",
    "person": "task",
    "persons": "tasks",
    "mentions": "TaskCollector",
    "mender": "salvage",
    "lack": "missing",
    "told": "form, text",
    "yardstick": "measure",
    "yardsticks": "measures",
}
"""Words that no name has any more, and those that replaced them (docs/glossary.md)."""
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def names_of(tree: ast.Module) -> Iterator[str]:
    """The names that a module defines: classes, functions, parameters, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def gone_words(names: Iterable[str]) -> set[str]:
    """The names with a word that is gone."""
    return {name for name in names if GONE.keys() & {word.lower() for word in WORD.findall(name)}}


def test_words() -> None:
    assert not complaints(
        lambda name: gone_words([Path(name).stem, *names_of(parsed(name))]), modules()
    )


def test_gone_words_are_found() -> None:
    names = {"_people", "PersonRow", "told", "TaskDifference", "spread", "reader"}
    assert gone_words(names) == {"_people", "PersonRow", "told"}


def test_the_glossary_has_each_word_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    rows = re.findall(r"^\| ([a-z, ]+) \| ", text, re.MULTILINE)
    words = [word for row in rows if row != "word" for word in row.split(", ")]
    assert len(words) == len(set(words)) > 40
    assert not GONE.keys() & set(words)


# --- Docstrings -----------------------------------------------------------------------------------


def other_voices(tree: ast.Module) -> list[str]:
    """First lines of docstrings that describe a function, and do not say what it does."""
    first_lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        if any(decorator.endswith("property") for decorator in decorators):
            continue
        text = ast.get_docstring(node) or ""
        if re.match(r"(Whether|Gives|Tells)\b", text) or re.search(r"[.;:]\s+[Gg]ives\b", text):
            first_lines.append(text.splitlines()[0])
    return first_lines


def test_docstrings_are_imperative() -> None:
    names = [name for name in modules() if name.startswith(("plugins/", "emulator/"))]
    assert not complaints(
        lambda name: other_voices(parsed(name)), [name for name in names if "/tests/" not in name]
    )


def test_other_voices_are_found() -> None:
    for text in ("Whether it fits.", "Gives the end.", "Write it; gives its bytes."):
        assert other_voices(ast.parse(f'def f():\n    """{text}"""')), text
    for text in ("Return whether it fits.", "Write it; return its bytes."):
        assert not other_voices(ast.parse(f'def f():\n    """{text}"""')), text


# --- Tests that say the same each time ----------------------------------------------------------

OWN_CHOICE = re.compile(r"\b(max_examples|derandomize|deadline|suppress_health_check)=")


def test_how_examples_are_chosen_is_said_once() -> None:
    """A test takes a share of the profile's examples."""
    own = [
        path.relative_to(ROOT).as_posix()
        for path in files(".py", under=("tests",))
        if OWN_CHOICE.search(path.read_text("utf-8"))
    ]
    assert own == ["tests/properties.py"]
