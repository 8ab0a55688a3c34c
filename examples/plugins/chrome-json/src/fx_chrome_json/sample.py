"""Sample: a typical trace of about a given size, for `fxf plugins --check` and tests."""

from __future__ import annotations

import itertools
import random

__all__ = ["sample"]

NAMES = [f"{name} (/srv/app/{name}.py:{line})" for line, name in enumerate(
    ("main", "load", "parse", "check", "store", "render", "send", "wait"), 10)]  # fmt: skip


def sample(size: int) -> bytes:
    """A trace as a profiler writes it: calls of four threads, some with arguments, and a counter.

    The same bytes for the same size.
    """
    chance = random.Random(size)  # noqa: S311 (a sample, not a secret)
    parts = [b'{"traceEvents":[{"ph":"M","pid":7,"name":"process_name","args":{"name":"app"}}']
    made = len(parts[0])
    for at in itertools.count():
        if made >= size:
            break
        ts, tid = 50 * at, 7 + at % 4
        event = (
            f',{{"pid":7,"tid":{tid},"ts":{ts}.{at % 1000:03d},"ph":"X","cat":"fee",'
            f'"dur":{chance.randrange(40)}.{at % 100:02d},"name":"{chance.choice(NAMES)}"}}'
        )
        if not at % 16:
            event = event[:-1] + f',"args":{{"order":{at},"rate":0.25,"user":"u{at % 97}"}}}}'
            event += f',{{"ph":"C","pid":7,"tid":7,"ts":{ts},"name":"queue","args":{{"n":{at}}}}}'
        parts.append(event.encode())
        made += len(event)
    return b"".join([*parts, b'],"displayTimeUnit":"ns"}'])
