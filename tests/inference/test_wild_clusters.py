"""The score (wild) cluster bootstrap, against sums over all patterns of signs."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from tests.plain_heckman import by_hand

from heckmanfa import Heckman, HeckmanAverage, HeckmanProbit, Survey
from heckmanfa.errors import HeckmanfaError, InputError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
FEATURES = ["educ", "exper"]


@pytest.fixture(scope="module")
def towns() -> pd.DataFrame:
    """Six towns of 60 people, whose errors and slopes are alike."""
    source, n = np.random.default_rng(11), 360
    town = np.repeat(np.arange(6), 60)
    x = source.normal(size=(n, 2)) + 0.5 * source.normal(size=6)[town, None]
    first = source.normal(size=n) + 0.4 * source.normal(size=6)[town]
    second = 0.5 * first + source.normal(size=n) + 0.3 * source.normal(size=6)[town] * x[:, 0]
    seen = x @ [0.8, 0.6] + 0.4 + first > 0
    frame = pd.DataFrame(x, columns=FEATURES)
    return frame.assign(
        wage=np.where(seen, 1.0 + 0.5 * x[:, 0] + second, np.nan),
        town=[f"town {number}" for number in town],
        row=np.arange(n),
    )


def brute_force(moves: np.ndarray) -> tuple[float, float]:
    """Statistic and p value over all patterns of signs of the clusters."""
    n = len(moves)

    def statistic(signs):
        signed = signs[:, None] * moves
        total = signed.sum(axis=0)
        middle = sum(np.outer(each, each) for each in signed) - np.outer(total, total) / n
        return total @ np.linalg.solve(middle, total)

    own = statistic(np.ones(n))
    drawn = [statistic(np.array(signs)) for signs in itertools.product((-1, 1), repeat=n)]
    return own, float(np.mean(np.array(drawn) >= own * (1 - 1e-6)))


@pytest.mark.parametrize(
    ("hypothesis", "held"),
    [
        ("educ = 0.2", {1: 0.2}),
        ("selection.exper = 0.3", {4: 0.3}),
        ("educ = 0.2, selection.exper = 0.3", {1: 0.2, 4: 0.3}),
    ],
)
def test_all_patterns_of_signs_of_the_scores_under_the_hypothesis(hypothesis, held, towns):
    plain = by_hand(towns, np.ones(len(towns)), held)
    moves = (plain.totals(towns["town"].to_numpy()) @ plain.bread)[:, [*held]]
    statistic, p_value = brute_force(moves)
    model = Heckman(["educ"], method="ml").fit(towns[FEATURES], towns["wage"])
    test = model.wild_test(hypothesis, towns[FEATURES], towns["wage"], groups=towns["town"])
    assert test.statistic == pytest.approx(statistic, rel=1e-3)
    assert test.p_value == pytest.approx(p_value, abs=1e-12)
    assert (test.n_clusters, test.n_draws, test.enumerated, test.df) == (6, 64, True, len(held))
    assert "64 patterns of signs, all" in str(test)


def test_two_steps_have_least_squares_under_the_hypothesis(towns):
    # The probit by the package; the second step and its derivative again, by finite differences.
    model = Heckman(["educ"]).fit(towns[FEATURES], towns["wage"])
    seen = towns["wage"].notna().to_numpy()
    z = np.column_stack([np.ones(len(towns)), towns[FEATURES]])
    gamma = np.array([model.selection_intercept_, *model.selection_coef_])
    y = towns["wage"].fillna(0).to_numpy()

    def second(gamma, coef):
        index = z @ gamma
        mills = np.exp(-(index**2) / 2) / np.sqrt(2 * np.pi)
        mills /= 0.5 * (1 + np.vectorize(__import__("math").erf)(index / np.sqrt(2)))
        w = np.column_stack([np.ones(len(towns)), towns["educ"], mills]) * seen[:, None]
        return w, w * (y - w @ coef)[:, None]

    w, _ = second(gamma, np.zeros(3))
    r = np.array([0.0, 1.0, 0.0])
    spread = np.linalg.inv(w.T @ w)
    free = spread @ w.T @ y
    coef = free - spread @ r * (r @ free - 0.2) / (r @ spread @ r)
    _, scores = second(gamma, coef)
    slope = np.column_stack(
        [
            (second(gamma + step, coef)[1].sum(axis=0) - second(gamma - step, coef)[1].sum(axis=0))
            / 2e-5
            for step in 1e-5 * np.eye(3)
        ]
    )
    index = z @ gamma
    cdf = 0.5 * (1 + np.vectorize(__import__("math").erf)(index / np.sqrt(2)))
    density = np.exp(-(index**2) / 2) / np.sqrt(2 * np.pi)
    ratio = np.where(seen, density / cdf, -density / (1 - cdf))
    probit = ratio[:, None] * z
    information = (z * (ratio * (ratio + index))[:, None]).T @ z
    rows = (scores + probit @ np.linalg.inv(information) @ slope.T) @ spread @ r
    labels = towns["town"].to_numpy()
    moves = np.array([rows[labels == each].sum() for each in np.unique(labels)])[:, None]
    statistic, p_value = brute_force(moves)
    test = model.wild_test("educ = 0.2", towns[FEATURES], towns["wage"], groups=towns["town"])
    assert test.statistic == pytest.approx(statistic, rel=1e-3)
    assert test.p_value == pytest.approx(p_value, abs=1e-12)


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_the_interval_holds_what_is_not_rejected(method, towns):
    model = Heckman(["educ"], method=method).fit(towns[FEATURES], towns["wage"])
    rows = {"X": towns[FEATURES], "y": towns["wage"], "groups": towns["town"]}
    low, high = model.wild_test("educ = 0", **rows, conf_level=0.9).interval
    assert low < model.coef_[0] < high
    for value, inside in ((low - 0.01, False), (low + 0.01, True), (high + 0.01, False)):
        row = np.eye(len(model.vcov()))[1]
        assert (model.wild_test([row], **rows, value=[value]).p_value > 0.1) == inside


def test_draws_depend_on_the_seed_alone_and_settle_on_all_patterns(towns):
    model = Heckman(["educ"], method="ml").fit(towns[FEATURES], towns["wage"])
    rows = {"X": towns[FEATURES], "y": towns["wage"], "groups": towns["town"]}
    whole = model.wild_test("educ = 0.2", **rows).p_value
    drawn = model.wild_test("educ = 0.2", **rows, n_boot=63, random_state=0)
    assert not drawn.enumerated
    again = model.wild_test("educ = 0.2", **rows, n_boot=63, random_state=0)
    assert drawn.p_value == again.p_value
    webb = model.wild_test("educ = 0.2", **rows, weights="webb", n_boot=4999, random_state=1)
    assert webb.n_draws == 4999
    assert webb.p_value == pytest.approx(whole, abs=0.2)
    # Of twelve clusters there are more patterns than draws.
    halves = towns["town"] + (towns["row"] % 2).astype(str)
    many = model.wild_test("educ = 0.2", **rows | {"groups": halves}, n_boot=4096)
    some = model.wild_test("educ = 0.2", **rows | {"groups": halves}, n_boot=3999, random_state=0)
    assert many.enumerated
    assert some.p_value == pytest.approx(many.p_value, abs=0.03)


def test_formulas_find_the_clusters_and_other_families_have_the_test(towns):
    equations = ("wage ~ educ", "~ educ + exper")
    clustered = {"groups": "town", "cov_type": "cluster", "method": "ml"}
    model = Heckman.from_formula(*equations, towns, **clustered)
    plain = Heckman(["educ"], method="ml").fit(towns[FEATURES], towns["wage"])
    wanted = plain.wild_test("educ = 0", towns[FEATURES], towns["wage"], groups=towns["town"])
    assert model.wild_test("educ = 0", towns).p_value == wanted.p_value
    with_town = towns[[*FEATURES, "town"]]
    named = plain.wild_test("educ = 0", with_town, towns["wage"], groups="town")
    assert named.p_value == wanted.p_value
    # The units of a survey are clusters, too.
    sampled = Heckman(["educ"], method="ml", cov_type=Survey(psu="town"))
    sampled.fit(with_town, towns["wage"])
    test = sampled.wild_test("educ = 0", with_town, towns["wage"], groups="town")
    assert test.p_value == wanted.p_value
    high = (towns["wage"] > 1).where(towns["wage"].notna())
    binary = HeckmanProbit(["educ"]).fit(towns[FEATURES], high)
    test = binary.wild_test("educ = 0", towns[FEATURES], high, groups=towns["town"])
    assert 2 / 64 <= test.p_value <= 1


def test_what_has_no_wild_test_is_refused(towns):
    X, y, groups = towns[FEATURES], towns["wage"], towns["town"]
    model = Heckman(["educ"], method="ml").fit(X, y)
    for options, match in (
        ({"weights": "normal"}, "'webb'"),
        ({"n_boot": 3}, "at least 19"),
        ({"groups": None}, "needs the clusters"),
        ({"groups": np.ones(len(y))}, "1 group"),
        ({"hypothesis": "rho = 0"}, "about coefficients"),
        ({"hypothesis": "educ = 0, Intercept = 0", "conf_level": 0.9}, "one restriction"),
        (
            {
                "hypothesis": "educ = 0, selection.educ = 0",
                "groups": towns["row"] % 2,
            },
            "2 clusters are too few",
        ),
    ):
        given = {"hypothesis": "educ = 0", "X": X, "y": y, "groups": groups} | options
        with pytest.raises(HeckmanfaError, match=match):
            model.wild_test(**given)
    two_step = Heckman(["educ"]).fit(X, y)
    with pytest.raises(InputError, match="prediction equation"):
        two_step.wild_test("selection.educ = 0", X, y, groups=groups)
    with pytest.raises(InputError, match="averages"):
        HeckmanAverage().fit(X, y).wild_test("educ = 0", X, y, groups=groups)
    series = Heckman(["educ"], method="series").fit(X, y)
    with pytest.raises(InputError, match="does not know the scores of the series model"):
        series.wild_test("educ = 0", X, y, groups=groups)
