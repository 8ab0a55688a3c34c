"""Runs the fenced blocks of a page in order, in one folder, and compares what they show.

`sh` blocks are commands; in `console` blocks commands follow ``$``, and what they print follows
them. A line ``…`` stands for any lines, a ``…`` within a line for any text. A command ends with
the exit status that its comment names, otherwise 0.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from fxframework.testing.cli import run_cli

BLOCK = re.compile(
    r"^```(?P<language>sh|console|python)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
STATUS = re.compile(r"exit status (\d)")
SHELL = re.compile(r"[|<>&;*$`]")
LOOP = re.compile(r"for (?P<name>\w+) in (?P<words>[\w ]+); do (?P<command>[^;]+); done")
INSTALL = re.compile(r"^python3 -m venv \S+ && \S+pip install .*? && ")
MISSING_EXTRA = 5
TIMES = (
    (re.compile(r"ok in [\d.]+ s"), "ok in 0 s"),
    (re.compile(r" in [\d.]+ ms\b"), " in 0 ms"),
)
"""What differs from run to run."""


@attrs.frozen
class Block:
    """A fenced block and where it begins."""

    language: str
    code: str
    line: int


@attrs.frozen
class Step:
    """A command, what it is to print (None: not said), and its exit status."""

    command: str
    expected: str | None
    status: int


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page that run."""
    for found in BLOCK.finditer(text):
        yield Block(found["language"], found["code"], text.count("\n", 0, found.start()) + 1)


def steps(block: Block) -> Iterator[Step]:
    """The commands of a block."""
    lines = block.code.replace("\\\n", "").splitlines()
    if block.language == "sh":
        for line in lines:
            if line.strip() and not line.startswith("#"):
                yield _step(line, None)
        return
    command: str | None = None
    output: list[str] = []
    for line in [*lines, "$ "]:
        if line.startswith("$ "):
            if command is not None:
                yield _step(command, "\n".join(output) + "\n" if output else None)
            command, output = line[2:], []
        else:
            output.append(line)


def _step(line: str, expected: str | None) -> Step:
    command, _, comment = line.partition("  #")
    named = STATUS.search(comment)
    return Step(command.strip(), expected, int(named[1]) if named else 0)


def simple(command: str) -> list[str] | None:
    """The arguments of a command that needs no shell; None for others."""
    if command.startswith("fxf ") and not SHELL.search(re.sub(r"'[^']*'", "", command)):
        return shlex.split(command)[1:]
    return None


def looped(command: str) -> list[list[str]] | None:
    """The arguments of a command, or of each one of a loop over words; None where it takes a shell.

    A shell would start an interpreter for each.
    """
    loop = LOOP.fullmatch(command)
    if loop is None:
        arguments = simple(command)
        return None if arguments is None else [arguments]
    turns = [
        simple(loop["command"].replace(f"${loop['name']}", word)) for word in loop["words"].split()
    ]
    return None if None in turns else turns


def run(step: Step) -> tuple[int, str]:
    """Run a command in the current folder; gives its status and what it printed."""
    command = INSTALL.sub("", step.command).replace(".venv/bin/", "")
    if command.startswith("export PATH="):
        return 0, ""
    arguments = simple(command)
    if arguments is not None:
        done = run_cli(*arguments)
        return done.exit_code, done.stderr + done.text
    here = Path(sys.executable).parent
    environ = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    shell = subprocess.run(["/bin/sh", "-c", command], env=environ, capture_output=True, text=True,
                           check=False)  # fmt: skip
    return shell.returncode, shell.stderr + shell.stdout


def matches(expected: str, shown: str) -> bool:
    """Whether an output is as printed."""
    for pattern, text in TIMES:
        expected, shown = pattern.sub(text, expected), pattern.sub(text, shown)
    lines = [
        r"(?:[^\n]*\n)*?" if line == "…" else re.escape(line).replace("…", "[^\n]*") + r"[ ]*\n"
        for line in expected.splitlines()
    ]
    return re.fullmatch("".join(lines), shown) is not None


def difference(step: Step, status: int, shown: str) -> str:
    """What went otherwise than a page says; the empty string where nothing did."""
    if status != step.status:
        return f"exit status {status}, not {step.status}\n{shown[-1500:]}"
    if step.expected is not None and not matches(step.expected, shown):
        return f"--- printed\n{step.expected}--- shown\n{shown[:3000]}"
    return ""


def follow(
    text: str,
    name: str,
    *,
    run: Callable[[Step], tuple[int, str]] = run,
    python: Callable[[Block], str] = lambda block: "",
    needs: Callable[[str, str], bool] = lambda before, shown: False,
) -> list[str]:
    """Run a page; gives what went otherwise than printed.

    ``python`` runs a block of Python and gives what went wrong. ``needs`` says, given the page up
    to a block and what a command showed, whether the page says before that this needs an extra.
    """
    wrong = []
    for block in blocks(text):
        before = "".join(text.splitlines(keepends=True)[: block.line])
        if block.language == "python":
            shown = python(block)
            if shown and not needs(before, shown):
                wrong.append(f"{name}:{block.line}\n{shown[-1500:]}")
            continue
        for step in steps(block):
            status, shown = run(step)
            found = difference(step, status, shown)
            if found and not (status == MISSING_EXTRA and needs(before, shown)):
                wrong.append(f"{name}:{block.line}: {step.command}\n  {found}")
    return wrong
