"""Runs programs for a test, in processes that begin with the imports done.

It reads requests from standard input, a line of JSON each: ``folder``, and ``programs`` that one
process runs after each other: ``arguments`` of `fxf` or ``code`` of Python. It answers with a line
for each, of the exit status and what was written, in base64.
"""

import atexit
import base64
import contextlib
import gc
import importlib
import json
import os
import sys
import tempfile
import traceback


def warm(names: list[str]) -> None:
    """Import these modules, but those that cannot be, and load the plugins."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    from fxframework.host import default_host

    default_host()
    gc.freeze()


def serve() -> None:
    """Answer requests until the input ends."""
    warm(sys.argv[1:])
    answers = os.fdopen(os.dup(1), "w")
    requests = os.fdopen(os.dup(0), "r")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    while line := requests.readline():
        asked = json.loads(line)
        child = os.fork()
        if not child:
            os.chdir(asked["folder"])
            *before, last = asked["programs"]
            for program in before:
                print(json.dumps(answer(program)), file=answers, flush=True)
            print(json.dumps(answer(last, ending=True)), file=answers, flush=True)
            os._exit(0)  # the system takes the memory back sooner than the interpreter does
        _, ended = os.waitpid(child, 0)
        if ended:  # it answered no more
            died = {"status": os.waitstatus_to_exitcode(ended), "out": "", "err": ""}
            print(json.dumps(died), file=answers, flush=True)


def answer(asked: dict[str, object], *, ending: bool = False) -> dict[str, object]:
    """Run a program, and at the end of the process what it left to do; say what came of it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        status = status_of(asked)
        if ending:
            atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        out.seek(0)
        err.seek(0)
        return {
            "status": status,
            "out": base64.b64encode(out.read()).decode(),
            "err": base64.b64encode(err.read()).decode(),
        }


def status_of(asked: dict[str, object]) -> int:
    """Run what is asked for; the exit status that an interpreter would give."""
    try:
        if "code" in asked:
            sys.argv = ["program"]
            code = str(asked["code"])
            exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
            return 0
        sys.argv = ["fxf", *asked["arguments"]]  # type: ignore[misc]
        from fxframework.cli import main

        return int(main())
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else ending.code is not None
    except BaseException:  # noqa: BLE001 (as an interpreter does)
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    serve()
