"""What conversions of a large file cost: seconds, and the most memory, its own and of files.

``python tests/bench/streaming.py FILE TARGET... [-- OPTION...]`` converts the file to each target,
with these options, and prints a line for each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FIELDS = ("VmHWM", "RssAnon", "RssFile", "RssShmem")
INTERVAL = 0.05


def measure(arguments: list[str]) -> tuple[float, float, dict[str, int], str]:
    """Seconds, those of the processor, the peak of each field, and the end of what it said."""
    peaks = dict.fromkeys(FIELDS, 0)
    with tempfile.TemporaryFile() as said:
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "fxframework", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        status = Path(f"/proc/{process.pid}/status")
        while True:
            for line in status.read_text().splitlines():
                name, _, value = line.partition(":")
                if name in peaks:
                    peaks[name] = max(peaks[name], int(value.split()[0]) * 1024)
            pid, _, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(INTERVAL)
        seconds = time.monotonic() - start
        said.seek(0)
        text = said.read().decode().strip().splitlines()
    peaks["VmHWM"] = usage.ru_maxrss * 1024
    return seconds, usage.ru_utime + usage.ru_stime, peaks, text[-1] if text else ""


if __name__ == "__main__":
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    (path, *targets), options = given[:cut], given[cut + 1 :]
    for target in targets:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            wall, cpu, peaks, said = measure(["convert", path, str(out), "--to", target, *options])
            files = [out] if out.is_file() else list(out.rglob("*"))
            size = sum(file.stat().st_size for file in files if file.is_file())
        shown = " ".join(f"{name} {value / 1e6:,.0f}" for name, value in peaks.items())
        line = f"{target:12} {wall:7.1f} s {cpu:7.1f} s CPU, {shown} MB, out {size / 1e6:,.0f} MB"
        print(f"{line}  {said[:150]}", flush=True)
