"""What changed between runs with known changes, and what is noise; the tests of `significance`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_runs import TRUE, WANTED, comparison, made

from fxframework.analysis import significance
from fxframework.analysis.explanation import causes
from fxframework.analysis.runs import Figures, Names, Run, Side

PROMISE = 0.05
"""Share of pairs of unchanged runs that docs/compare.md allows to have a verdict."""

# --- Known changes -------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.3, 0.5])
@pytest.mark.parametrize(("runs", "mood"), [(1, 0.0), (6, 0.08)], ids=["one", "six"])
def test_every_change_is_found_and_little_else(sigma: float, runs: int, mood: float) -> None:
    rng = np.random.default_rng(7)
    held = []
    for _ in range(8):
        found = comparison(
            made(rng, sigma, runs=runs, mood=mood, after=False),
            made(rng, sigma, runs=runs, mood=mood, after=True),
        )
        changes = {one.name: one for one in found.changes}
        assert {name: changes[name].verdict for name in WANTED} == WANTED
        assert "p99" in changes["f05"].where
        others = [one for one in found.changes if one.name not in WANTED]
        assert sum(one.verdict != "same" for one in others) <= 1
        for one in changes.values():
            ratio = one.ratio
            if ratio is not None:
                held.append(ratio.low <= TRUE.get(one.name, 1.0) <= ratio.high)
    assert np.mean(held) > 0.92


def test_the_mood_of_the_machine_is_not_a_finding() -> None:
    rng = np.random.default_rng(3)
    before = made(rng, 0.3, after=False)
    (one,) = made(rng, 0.3, after=False)
    found = comparison(before, [{name: lengths * 1.1 for name, lengths in one.items()}])
    assert found.same
    assert found.pace is not None
    assert found.pace.ratio == pytest.approx(1.1, abs=0.02)
    assert any("the machine" in note for note in found.notes)
    slow = comparison(before, [{name: lengths * 2 for name, lengths in one.items()}])
    assert slow.verdicts == {"slower": 39}


@pytest.mark.parametrize(("law", "names", "calls", "runs"), [
    ("lognormal", 40, 100, 1), ("lognormal", 12, 9, 1), ("lognormal", 12, 30, 6),
    ("lognormal", 3, 4, 2), ("coarse", 30, 50, 1), ("coarse", 5, 6, 3), ("pareto", 20, 40, 1),
    ("constant", 20, 40, 1),
])  # fmt: skip
def test_unchanged_runs_are_the_same(law: str, names: int, calls: int, runs: int) -> None:
    """Of 8 times 25 pairs; each share may exceed the promise by chance only."""
    rng = np.random.default_rng(11)
    laws = {
        "lognormal": lambda: rng.lognormal(8, 1.0, calls),
        "coarse": lambda: rng.integers(1, 5, calls) * 10.0,
        "pareto": lambda: 100 * (1 + rng.pareto(1.5, calls)),
        "constant": lambda: np.full(calls, 1000.0),
    }

    def side() -> list[dict[str, np.ndarray]]:
        return [
            {f"n{number}": laws[law]() * pace for number in range(names)}
            for pace in 1 + rng.uniform(-0.08, 0.08, runs) * (runs > 1)
        ]

    pairs = 25
    changed = sum(not comparison(side(), side()).same for _ in range(pairs))
    assert changed <= pairs * PROMISE + 2 * math.sqrt(pairs * PROMISE)


def test_the_same_run_twice_did_not_change() -> None:
    (run,) = made(np.random.default_rng(5), 1.0, after=False)
    found = comparison([run], [run])
    assert found.same
    assert all(one.ratio is not None and one.ratio.estimate == 1 for one in found.changes)


def test_one_call_is_no_evidence() -> None:
    found = comparison([{"x": np.array([10.0])}], [{"x": np.array([9000.0])}])
    (one,) = found.changes
    assert (one.verdict, one.p) == ("unclear", None)
    assert one.ratio is not None
    assert math.isnan(one.ratio.low)


# --- Explanations --------------------------------------------------------------------------------


def test_causes_add_up_to_the_change() -> None:
    rng = np.random.default_rng(2)
    paths = Names()
    numbers = [paths.number(b"main")]
    for step in range(60):
        parent = numbers[rng.integers(len(numbers))]
        numbers.append(paths.number(b"n%d" % (step % 9), parent))
    numbers = sorted(set(numbers))
    sides = Side(paths), Side(paths)
    whole = []
    for side in sides:
        alive = [number for number in numbers if number == 0 or rng.random() < 0.9]
        alive = [
            number for number in alive
            if all(up in alive for up in _callers(paths, number))
        ]  # fmt: skip
        own = rng.integers(1, 1000, len(alive))
        total = own.copy()
        for at in reversed(range(len(alive))):
            parent = paths.parents[alive[at]]
            if parent >= 0:
                total[alive.index(parent)] += total[at]
        keys = np.array(alive, np.int64)
        count = rng.integers(1, 9, len(alive))
        none = np.zeros(0)
        tree = Figures(keys, count, total, own, none, none, none, none, none)
        run = Run("r", "trace", tree, [], tree, None, None, None, None, None, timed=True)
        side.runs.append(run)
        whole.append(int(own.sum()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fxframework.analysis.explanation.MOST", 10_000)
        patch.setattr("fxframework.analysis.explanation.ENOUGH", 1.0)
        found = causes(paths, sides)
    assert sum(one.change_ns for one in found) == pytest.approx(whole[1] - whole[0])
    assert {one.reason for one in found} == {"self", "calls", "new", "gone"}


def _callers(paths: Names, number: int) -> list[int]:
    found = []
    while (number := paths.parents[number]) >= 0:
        found.append(number)
    return found


# --- The tests themselves, by scipy's word -------------------------------------------------------


@pytest.fixture
def stats():
    return pytest.importorskip("scipy.stats", reason="scipy is not installed")


def test_t_is_that_of_scipy(stats) -> None:
    rng = np.random.default_rng(0)
    t, df = rng.normal(0, 4, 300), rng.uniform(1, 300, 300)
    np.testing.assert_allclose(
        significance.t_p(t, df), 2 * stats.t.sf(np.abs(t), df), atol=1e-11, rtol=1e-9
    )
    np.testing.assert_allclose(significance.t_quantile(df), stats.t.ppf(0.975, df), rtol=1e-9)


def test_welch_is_that_of_scipy(stats) -> None:
    rng = np.random.default_rng(4)
    before, after = rng.normal(1e4, 2, (6, 20)), rng.normal(1e4, 3, (5, 20))
    none = np.zeros(20)
    found = significance.welch(before, after, (none, none))
    theirs = stats.ttest_ind(np.log(after), np.log(before), equal_var=False).pvalue
    np.testing.assert_allclose(found.p, theirs, atol=1e-3)


@pytest.mark.parametrize("decimals", [1, 6])
def test_ranks_are_those_of_scipy(stats, decimals: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        n, m = rng.integers(8, 60, 2)
        before = np.sort(rng.lognormal(0, 1, n)).round(decimals)
        after = np.sort(rng.lognormal(0.2, 1, m)).round(decimals)
        theirs = stats.mannwhitneyu(before, after, method="asymptotic").pvalue
        assert significance.rank_p(before, after) == pytest.approx(theirs, abs=1e-12)


def test_tails_are_those_of_scipy(stats) -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        n, m = rng.integers(1, 500, 2)
        before, after = np.sort(rng.normal(size=n)), np.sort(rng.normal(0.5, 1, m))
        for share in significance.TAILS.values():
            k = max(round(n * (1 - share)), 1)
            over = int((after > before[n - k]).sum())
            theirs = stats.hypergeom.cdf(k - 1, n + m, n, over + k - 1) if over else 1.0
            assert significance.tail_p(before, after, share) == pytest.approx(theirs, abs=1e-10)


def test_discoveries_are_those_of_scipy(stats) -> None:
    p = np.random.default_rng(3).uniform(0, 0.2, 50)
    _, adjusted = significance.held([*p, math.nan], 0.05)
    np.testing.assert_allclose(adjusted[:-1], stats.false_discovery_control(p))
    assert math.isnan(adjusted[-1])


def test_combined_tests_hold_their_level() -> None:
    rng = np.random.default_rng(6)
    for shared in (0.0, 0.9):
        normal = math.sqrt(shared) * rng.normal(size=(4000, 1))
        normal = normal + math.sqrt(1 - shared) * rng.normal(size=(4000, 4))
        p = [[math.erfc(abs(z) / math.sqrt(2)) for z in row] for row in normal.tolist()]
        found = [
            significance.combined_p({str(at): (one, 1.0) for at, one in enumerate(row)})
            for row in p
        ]
        assert np.mean(np.array(found) < 0.05) < 0.065
