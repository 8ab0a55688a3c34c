"""Registrations of several speakers, each of which numbers its own texts."""

from __future__ import annotations

import numpy as np

from fxframework.wire.state import ScopedRegistrations

NO_CLEARS = np.zeros(0, np.int64)


def found(
    registrations: ScopedRegistrations, numbers: list[int], rows: list[int]
) -> list[list[int]]:
    arrays = np.array(numbers), np.array(rows)
    return [registrations.find_own(*arrays).tolist(), registrations.find_lent(*arrays).tolist()]


def test_speakers_have_their_own_texts_and_those_of_a_lender() -> None:
    registrations = ScopedRegistrations(4)
    # Rows 0 and 1 are of scope 0, rows 2 to 5 of scope 1, and the others of a far scope.
    registrations.scopes = np.array([0, 0, 1, 1, 1, 1, 70_000, 70_000])
    registrations.begin(
        np.array([0, 1, 2, 4]),
        np.array([7, 8, 7, 7]),
        np.array([10, 11, 12, 13], np.int32),
        NO_CLEARS,
    )
    assert found(registrations, [7, 7, 8, 7, 7], [2, 3, 3, 5, 7]) == [
        [-1, 12, -1, 13, -1],
        [10, 10, 11, 10, 10],
    ]
    registrations.settle(8)
    registrations.scopes = 1
    registrations.define(8, 14)
    assert found(registrations, [7, 8, 9], [0, 0, 0]) == [[13, 14, -1], [10, 11, -1]]
    registrations.lenders = 70_000
    assert found(registrations, [7, 8], [0, 0]) == [[13, 14], [-1, -1]]


def test_what_a_speaker_declares_counts_from_the_next_row_on() -> None:
    registrations = ScopedRegistrations(4)
    registrations.scopes = 5
    registrations.begin(np.array([3]), np.array([2]), np.array([1], np.int32), NO_CLEARS)
    assert registrations.find_own(np.array([2, 2]), np.array([3, 4])).tolist() == [-1, 1]
