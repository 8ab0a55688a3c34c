"""Edits of record JSON, as people, programs and attackers make them."""

from __future__ import annotations

import json
import random
from typing import Any

ODD_VALUES: list[Any] = [
    0, 1, -1, True, False, None, 1.0, 2.5, 1e300, -0.0, 300, 65536, 1 << 63, 1 << 64, -(1 << 63),
    "", "x", "é\0", "ff", "NaN", "<str#5>", "<thr#3>", "int64", "string", "damaged", "big",
    "a" * 40, "b" * 33_000, [], [1], [[]], [1, 2], [True, 2], ["a"], {}, {"a": 1},
]  # fmt: skip
KEYS = ["extra", "raw", "refs", "name_bytes_hex", "value_bits", "_type", "type", "kind", "scope"]
NO_RECORDS = [b"", b" ", b"[]", b"1", b"null", b"{}", b'{"record":[]}', b'{"record":{}}']


def compact(record: Any) -> bytes:
    """Return JSON without blanks."""
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def mutated(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """Return a JSON value with something changed, somewhere inside."""
    if isinstance(value, dict) and value and depth < 4 and rng.random() < 0.7:
        edited = dict(value)
        key = rng.choice(list(value))
        edit = rng.random()
        if edit < 0.6:
            edited[key] = mutated(value[key], rng, depth + 1)
        elif edit < 0.75:
            del edited[key]
        elif edit < 0.85:
            edited[rng.choice(KEYS)] = rng.choice(ODD_VALUES)
        else:
            keys_in_any_order = rng.sample(list(value), len(value))
            edited = {name: value[name] for name in keys_in_any_order}
        return edited
    if isinstance(value, list) and value and depth < 4 and rng.random() < 0.7:
        items = list(value)
        index = rng.randrange(len(value))
        items[index] = mutated(items[index], rng, depth + 1)
        return rng.choice([items, items[:index], items + items])
    if type(value) is int and rng.random() < 0.4:
        return value + rng.choice([1, -1, 8, 1 << 16, 1 << 32])
    return rng.choice(ODD_VALUES)


def edited_lines(lines: list[bytes], rng: random.Random, share: float) -> bytes:
    """Return a records file with a share of its lines changed, some of them many times."""
    header, *records = lines
    out = [header]
    for line in records:
        if rng.random() > share:
            out.append(line)
            continue
        edit = rng.randrange(8)
        if edit == 0:
            out += [line, line, rng.choice(records)]
        elif edit == 1:
            out.append(json.dumps(json.loads(line)).encode())  # with blanks
        elif edit == 2:
            out += [line[:-1], rng.choice(NO_RECORDS)]
        elif edit == 3:
            out += [compact(mutated(json.loads(line), rng))] * 12  # enough for columns
        elif edit > 4:
            out.append(compact(mutated(json.loads(line), rng)))
    return b"\n".join(out)
