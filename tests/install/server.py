"""Runs programs for a test, each in a process of its own that begins with the imports done.

It reads requests from standard input, a line of JSON each: ``folder``, and ``arguments`` of `fxf`
or ``code`` of Python. It answers with the exit status and what was written, in base64.
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
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if not child:
                os.chdir(asked["folder"])
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                end(status_of(asked))
            _, ended = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            answer = {
                "status": os.waitstatus_to_exitcode(ended),
                "out": base64.b64encode(out.read()).decode(),
                "err": base64.b64encode(err.read()).decode(),
            }
        print(json.dumps(answer), file=answers, flush=True)


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


def end(status: int) -> None:
    """End the process as an interpreter does, but for the memory, which the system takes back."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve()
