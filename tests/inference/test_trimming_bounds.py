"""Trimming bounds: linear programming, and Lee's formulas written out."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from heckmanfa import bounds
from heckmanfa.errors import InputError

ENDS = ["low", "high"]
ERRORS = ["se_low", "se_high"]


def people(n=800, seed=0, ties=False):
    """A treatment by lot that lets more be observed; the outcome goes with a covariate."""
    rng = np.random.default_rng(seed)
    d, x = rng.random(n) < 0.45, rng.integers(0, 3, n)
    seen = rng.random(n) < np.where(d, 0.75, 0.55) + 0.08 * x
    y = 1 + 0.5 * d + x + rng.normal(size=n)
    if ties:
        y = np.round(y)
    return pd.DataFrame(
        {
            "y": np.where(seen, y, np.nan),
            "d": d,
            "x": x,
            "z": x + rng.normal(size=n),
            "w": rng.integers(1, 4, n).astype(float),
            "cluster": rng.integers(0, 40, n),
        }
    )


@pytest.fixture(scope="module")
def rows():
    return people()


def extreme_mean(values, weight, share, sign):
    """The lowest or highest mean of any part of the rows that weighs a share, by a program."""
    whole = weight.sum() * share
    best = optimize.linprog(
        sign * values / whole,
        A_eq=np.ones((1, len(values))),
        b_eq=[whole],
        bounds=[(0.0, one) for one in weight],
    )
    return sign * best.fun


def written_out(frame, weight):
    """Lee's bounds of rows in which the treated are observed more often."""
    d, seen = frame["d"].to_numpy(), frame["y"].notna().to_numpy()
    y = frame["y"].to_numpy()
    one, zero = (weight[seen & side].sum() / weight[side].sum() for side in (d, ~d))
    other = np.average(y[seen & ~d], weights=weight[seen & ~d])
    chosen = seen & d
    return [
        extreme_mean(y[chosen], weight[chosen], zero / one, sign) - other for sign in (1.0, -1.0)
    ]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_are_extremes_over_all_ways_to_trim(ties, weighted):
    """Ties and split rows count with the part that is needed, as linear programs have it."""
    frame = people(120, 4, ties)
    weight = frame["w"].to_numpy() if weighted else np.ones(120)
    found = bounds.lee(frame["y"], frame["d"], sample_weight=weight).tidy()
    assert found.loc[0, ENDS].tolist() == pytest.approx(written_out(frame, weight), rel=1e-8)


def test_by_hand_with_ties():
    """4 of 4 treated, 2 of 4 untreated: half is trimmed, and of the three 2s one is left."""
    y = [1, 2, 2, 2, 5, 7, None, None]
    table = bounds.lee(y, [1, 1, 1, 1, 0, 0, 0, 0]).tidy()
    assert table.loc[0, ENDS].tolist() == [1.5 - 6, 2.0 - 6]


def test_errors_are_those_of_lees_proposition_3(rows):
    n = len(rows)
    d, seen, y = rows["d"].to_numpy(), rows["y"].notna().to_numpy(), rows["y"].to_numpy()
    share1, share0 = seen[d].mean(), seen[~d].mean()
    p = 1 - share0 / share1
    order = np.sort(y[seen & d])
    m = len(order)
    variances = []
    for values in (order, -order[::-1]):
        count = (1 - p) * m
        whole = int(count)
        q = values[whole]
        kept = np.append(values[:whole], q)
        part = np.append(np.ones(whole), count - whole)
        mu = np.average(kept, weights=part)
        spread = np.average((kept - mu) ** 2, weights=part)
        v_p = (1 - share1) / (d.mean() * share1) + (1 - share0) / ((1 - d.mean()) * share0)
        v = spread / ((seen & d).mean() * (1 - p))
        v += (q - mu) ** 2 * p / ((seen & d).mean() * (1 - p)) + (q - mu) ** 2 * v_p
        variances.append(v + y[seen & ~d].var() / (seen & ~d).mean())
    table = bounds.lee(rows["y"], rows["d"]).tidy()
    errors = np.sqrt(np.array(variances) / n * n / (n - 1))
    np.testing.assert_allclose(table.loc[0, ERRORS].tolist(), errors, rtol=1e-9)


def test_a_bootstrap_agrees_with_the_formulas():
    frame = people(4000, 7)
    formula = bounds.lee(frame["y"], frame["d"], covariates=frame["x"]).tidy()
    drawn = bounds.lee(
        frame["y"], frame["d"], covariates=frame["x"], n_boot=300, random_state=0
    ).tidy()
    np.testing.assert_array_equal(drawn[ENDS], formula[ENDS])
    np.testing.assert_allclose(drawn[ERRORS], formula[ERRORS], rtol=0.12)


def test_a_bootstrap_of_clusters_agrees_with_the_formulas():
    frame = people(2000, 8)
    frame["cluster"] = 2 * (frame["cluster"] // 2) + frame["d"]
    frame["y"] += np.random.default_rng(0).normal(size=40)[frame["cluster"]]
    options = {"groups": frame["cluster"]}
    formula = bounds.lee(frame["y"], frame["d"], **options).tidy()
    drawn = bounds.lee(frame["y"], frame["d"], n_boot=300, random_state=0, **options).tidy()
    alone = bounds.lee(frame["y"], frame["d"]).tidy()
    np.testing.assert_allclose(drawn[ERRORS], formula[ERRORS], rtol=0.15)
    assert (formula[ERRORS] > 1.5 * alone[ERRORS]).to_numpy().all()


def test_covariates_weigh_cells_by_those_always_observed(rows):
    """In each cell by linear programs; averaged by the share that is observed untreated."""
    ends, always = [], []
    for _, cell in rows.groupby("x"):
        ends.append(written_out(cell, np.ones(len(cell))))
        always.append(len(cell) * cell.loc[~cell["d"], "y"].notna().mean())
    table = bounds.lee(rows["y"], rows["d"], covariates=rows["x"]).tidy()
    expected = np.average(ends, axis=0, weights=always)
    np.testing.assert_allclose(table.loc[1, ENDS].tolist(), expected, rtol=1e-8)
    width = table["high"] - table["low"]
    assert width[1] < width[0]


def test_columns_of_covariates_are_crossed_in_any_frame(rows):
    polars = pytest.importorskip("polars")
    frame = rows.assign(half=rows["cluster"] % 2)[["x", "half"]]
    codes = frame["x"] * 2 + frame["half"]
    one = bounds.lee(rows["y"], rows["d"], covariates=codes).tidy()
    for covariates in (frame, frame.to_numpy(), polars.from_pandas(frame)):
        np.testing.assert_allclose(
            bounds.lee(rows["y"].to_numpy(), rows["d"].to_numpy(), covariates=covariates).tidy()[
                ENDS
            ],
            one[ENDS],
            rtol=1e-12,
        )


def test_bins_cut_the_probability_of_a_probit(rows):
    """Of one feature, the probability rises with it: its quantiles are the cells."""
    cells = np.searchsorted(np.quantile(rows["z"], [0.25, 0.5, 0.75]), rows["z"])
    by_hand = bounds.lee(rows["y"], rows["d"], covariates=cells).tidy()
    for covariates in (rows[["z"]], rows["z"], rows["z"].tolist()):
        found = bounds.lee(rows["y"], rows["d"], covariates=covariates, bins=4).tidy()
        np.testing.assert_allclose(found[ENDS], by_hand[ENDS], rtol=1e-12)


def test_the_group_observed_more_often_is_trimmed_whichever_it_is(rows):
    more = bounds.lee(rows["y"], rows["d"]).tidy().loc[0, ENDS].tolist()
    less = bounds.lee(rows["y"], ~rows["d"]).tidy().loc[0, ENDS].tolist()
    assert less == pytest.approx([-more[1], -more[0]], rel=1e-12)


def test_a_direction_that_the_rows_contradict_trims_nobody_and_is_said(rows):
    result = bounds.lee(rows["y"], rows["d"], more_observed="untreated")
    low, high = result.tidy().loc[0, ENDS]
    assert low == pytest.approx(high, rel=1e-12)
    assert "observed more often" in " ".join(str(result).split())


def test_frequency_weights_count_rows(rows):
    repeated = rows.loc[rows.index.repeat(rows["w"].astype(int))].reset_index(drop=True)
    weighted = bounds.lee(rows["y"], rows["d"], covariates=rows["x"], sample_weight=rows["w"])
    written = bounds.lee(repeated["y"], repeated["d"], covariates=repeated["x"])
    names = [*ENDS, *ERRORS]
    np.testing.assert_allclose(weighted.tidy()[names], written.tidy()[names], rtol=1e-10)


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda r: bounds.lee(r["y"], r["d"].astype(float).replace(1.0, np.nan)), "missing"),
        (lambda r: bounds.lee(r["y"].where(r["d"]), r["d"]), "none of the untreated"),
        (lambda r: bounds.lee(r["y"], r["d"], covariates=r["z"]), "coarser"),
        (lambda r: bounds.lee(r["y"], r["d"], covariates=r["d"]), "has no treated row"),
        (lambda r: bounds.lee(r["y"], r["d"], bins=4), "covariates"),
        (lambda r: bounds.lee(r["y"], r["d"], covariates=r[["z"]], bins=1), "bins"),
        (lambda r: bounds.lee(r["y"], r["d"], more_observed="men"), "treated"),
        (lambda r: bounds.lee(r["y"], r["d"], n_boot=10), "n_boot"),
        (lambda r: bounds.lee(r["y"], r["d"], covariates=r["x"][:5].to_numpy()), "5 rows"),
    ],
)
def test_what_cannot_be_trimmed_is_refused(rows, ask, named):
    with pytest.raises(InputError) as refused:
        ask(rows)
    assert named in str(refused.value)


def test_a_single_outcome_of_a_group_tells_no_variance(rows):
    first = rows.index[rows["d"] & rows["y"].notna()][0]
    y = rows["y"].where(~rows["d"] | (rows.index == first))
    result = bounds.lee(y, rows["d"])
    assert result.tidy().loc[0, ERRORS].isna().all()
    cells = rows["x"].where(~rows["d"] | rows["y"].isna() | (rows["x"] > 0), 1)
    cells[first] = 0
    result = bounds.lee(rows["y"], rows["d"], covariates=cells)
    assert result.tidy()[ERRORS].notna().all(axis=None)
    assert "In 1 cell a group has a single outcome" in " ".join(str(result).split())
