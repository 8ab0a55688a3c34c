"""Every input is read as it was when its output was stored: records, tables, findings.

Outputs of ``git`` commit b94604eb, which hold every later engine against it. A difference that is
meant is stored again by ``python -m tests.stored``, and its commit says why.
"""

from __future__ import annotations

import pytest

from .inputs import corpora, large
from .outputs import CORPORA, differences, host, load, outputs_of


@pytest.mark.parametrize("corpus", CORPORA)
def test_outputs_are_as_stored(corpus: str) -> None:
    stored, current = load(corpus), outputs_of(corpus)
    if stored != current:
        pytest.fail("\n".join(differences(stored, current)), pytrace=False)


STORED = (
    'input\t["a.fxt", "5f"]\nrecords\t[{"record":"event"},{"record":"blob","size":3}]\n'
    'slices.ts int64\t[5, 6, 7]\nfindings\t[["FXT0101", 8, "INFO"], ["FXT0102", 8, "INFO"]]\n'
)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("7]", "8]", ["slices.ts int64: row 2: stored 7, now 8; 1 of 3 rows differ"]),
        ("5, 6", "6, 5", ["row 0: stored 5, now 6; 2 of 3 rows differ (the same in another ord"]),
        (", 7", "", ["slices.ts int64: stored 3 rows, now 2, which agree as far as they go"]),
        ('"size":3', '"size":4', ['records: row 1: stored {"record": "blob", "size": 3}, now']),
        ('"size":3', '"size": 3', ["records: the same values, written in another way"]),
        ("int64", "int32", ["slices.ts int64: gone", "slices.ts int32: new"]),
        ("8, ", "16, ", ['findings: row 0: stored ["FXT0101", 8, "INFO"], now ["FXT0101", 16']),
        ("5f", "60", ["the input has other bytes than when its output was stored"]),
        ("a.fxt", "b.fxt", ["a.fxt: not among the inputs any more", "b.fxt: nothing is stored"]),
    ],
)
def test_a_difference_is_named(old: str, new: str, words: list[str]) -> None:
    messages = sorted(differences(STORED, STORED.replace(old, new)))
    assert len(messages) == len(words)
    for line, expected in zip(messages, sorted(words), strict=True):
        assert expected in line


def test_every_corpus_is_stored_and_every_format_has_one() -> None:
    assert sorted([*corpora(), *large()]) == CORPORA
    formats = {name.partition("-")[2] for name in CORPORA if name.startswith("made-")}
    assert host().readers.keys() <= formats | {"pcapng"}
