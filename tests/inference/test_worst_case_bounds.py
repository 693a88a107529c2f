"""Worst-case bounds: closed forms written out, published examples, and linear programming."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from heckmanfa import bounds
from heckmanfa.errors import CollinearError, HeckmanfaError, InputError, InputTypeError
from heckmanfa.results.distribution import NullDistribution
from heckmanfa.results.imbens_manski import critical_value, interval


def ends(result, place=0):
    return result.tidy().loc[place, ["low", "high"]].to_numpy(dtype=float)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    n = 300
    frame = pd.DataFrame({"x": rng.normal(size=n), "z": rng.integers(0, 3, n)})
    frame["y"] = np.where(rng.random(n) < 0.6, 1 + frame["x"] + rng.normal(size=n), np.nan)
    frame["w"] = rng.integers(1, 4, n).astype(float)
    frame["cluster"] = rng.integers(0, 25, n)
    return frame


# Published examples. -----------------------------------------------------------------------------


def answers(n, located, left):
    """So many homeless people, of whom some were located again, and some of these had a home."""
    return [1.0] * left + [0.0] * (located - left) + [None] * (n - located)


def test_homeless_of_manski_have_his_bounds():
    """Of 106 homeless men 64 were interviewed again, and 21 had a home; of 31 women 14, and 3.

    Manski (1989), "Anatomy of the selection problem": P(home) is in [21/106, 63/106]
    for men, about [.20, .59], and [3/31, 20/31] for women, about [.10, .65].
    """
    y = answers(106, 64, 21) + answers(31, 14, 3)
    who = ["men"] * 106 + ["women"] * 31
    table = bounds.share(y, group=who).tidy().set_index("group")
    np.testing.assert_allclose(table.loc["men", ["low", "high"]].tolist(), [21 / 106, 63 / 106])
    np.testing.assert_allclose(table.loc["women", ["low", "high"]].tolist(), [3 / 31, 20 / 31])
    assert table[["low", "high"]].round(2).to_numpy().tolist() == [[0.20, 0.59], [0.10, 0.65]]


def test_critical_values_are_between_those_of_one_and_of_two_sides():
    """Imbens and Manski (2004): Phi(c + width) - Phi(-c) = level."""
    normal = NullDistribution()
    assert critical_value(0.0, 0.95, normal) == pytest.approx(stats.norm.ppf(0.975), rel=1e-9)
    assert critical_value(50.0, 0.95, normal) == pytest.approx(stats.norm.ppf(0.95), rel=1e-9)
    for width in (0.1, 0.5, 1.0, 3.0):
        c = critical_value(width, 0.9, normal)
        assert stats.norm.cdf(c + width) - stats.norm.cdf(-c) == pytest.approx(0.9, rel=1e-9)


def test_an_interval_uses_the_larger_error_for_the_width_and_t_with_clusters():
    reference = NullDistribution(11)
    low, high = interval((0.0, 0.3), (0.1, 0.2), 0.95, reference)
    c = optimize.brentq(
        lambda c: stats.t.cdf(c + 0.3 / 0.2, 10) - stats.t.cdf(-c, 10) - 0.95, 1, 3, xtol=1e-12
    )
    assert [low, high] == pytest.approx([-0.1 * c, 0.3 + 0.2 * c], rel=1e-9)


# Means, shares, differences. ----------------------------------------------------------------------


def test_a_mean_lies_between_those_with_every_gap_at_an_end_of_the_range(rows):
    y, n = rows["y"].to_numpy(), len(rows)
    table = bounds.mean(rows["y"], y_range=(-4, 6)).tidy().loc[0]
    low, high = np.where(np.isnan(y), -4, y), np.where(np.isnan(y), 6, y)
    assert table["low"] == pytest.approx(low.mean(), rel=1e-12)
    assert table["high"] == pytest.approx(high.mean(), rel=1e-12)
    assert table["se_low"] == pytest.approx(low.std(ddof=1) / np.sqrt(n), rel=1e-12)
    assert table["se_high"] == pytest.approx(high.std(ddof=1) / np.sqrt(n), rel=1e-12)
    assert table["observed"] == pytest.approx(np.nanmean(y), rel=1e-12)
    assert table["high"] - table["low"] == pytest.approx(10 * np.isnan(y).mean(), rel=1e-12)


def test_a_range_that_is_observed_is_that_of_the_outcomes_and_said(rows):
    seen = bounds.mean(rows["y"])
    given = bounds.mean(rows["y"], y_range=(rows["y"].min(), rows["y"].max()))
    np.testing.assert_array_equal(ends(seen), ends(given))
    assert seen.span_observed
    assert not given.span_observed
    assert "as observed" in str(seen)
    assert "as given" in str(given)


def test_frequency_weights_count_rows(rows):
    repeated = rows.loc[rows.index.repeat(rows["w"].astype(int))]
    weighted = bounds.mean(rows["y"], sample_weight=rows["w"], group=rows["z"])
    written = bounds.mean(repeated["y"].to_numpy(), group=repeated["z"].to_numpy())
    names = ["low", "high", "se_low", "se_high", "ci_low", "ci_high", "observed"]
    np.testing.assert_allclose(weighted.tidy()[names], written.tidy()[names], rtol=1e-12)


def test_sampling_weights_and_clusters_have_the_errors_of_linear_estimates(rows):
    w, y = rows["w"].to_numpy(), rows["y"].to_numpy()
    low = np.where(np.isnan(y), -5, y)
    mean = w @ low / w.sum()
    pull = w * (low - mean) / w.sum()
    n = len(rows)
    options = {"sample_weight": w, "weight_kind": "sampling", "y_range": (-5, 5)}
    found = bounds.mean(y, **options).tidy().loc[0]
    assert found["low"] == pytest.approx(mean, rel=1e-12)
    assert found["se_low"] == pytest.approx(np.sqrt(n / (n - 1) * pull @ pull), rel=1e-12)
    codes = rows["cluster"].to_numpy()
    sums = pd.Series(pull).groupby(codes).sum()
    found = bounds.mean(y, groups=codes, **options).tidy().loc[0]
    g = len(sums)
    assert found["se_low"] == pytest.approx(np.sqrt(g / (g - 1) * (sums**2).sum()), rel=1e-12)


def test_a_difference_has_the_ends_that_are_furthest_apart(rows):
    by_group = bounds.mean(rows["y"], group=rows["z"], y_range=(-4, 6)).tidy()
    table = bounds.difference(rows["y"], rows["z"], reference=1, y_range=(-4, 6)).tidy()
    assert table["group"].tolist()[:2] == ["z = 0 less 1", "z = 2 less 1"]
    for place, level in ((0, 0), (1, 2)):
        low = by_group.loc[level, "low"] - by_group.loc[1, "high"]
        high = by_group.loc[level, "high"] - by_group.loc[1, "low"]
        np.testing.assert_allclose(table.loc[place, ["low", "high"]].tolist(), [low, high])
        # The rows of two groups are different rows.
        error = np.hypot(by_group.loc[level, "se_low"], by_group.loc[1, "se_high"])
        assert table.loc[place, "se_low"] == pytest.approx(error, rel=1e-12)


def test_an_assumption_about_the_mean_of_the_missing_makes_that_of_the_observed_an_end(rows):
    seen, span = rows["y"].mean(), (-4, 6)
    low, high = ends(bounds.mean(rows["y"], y_range=span))
    assert ends(bounds.mean(rows["y"], y_range=span, selection="higher")) == pytest.approx(
        [low, seen], rel=1e-12
    )
    lower = bounds.mean(rows["y"], y_range=span, selection="lower").tidy().loc[0]
    assert [lower["low"], lower["high"]] == pytest.approx([seen, high], rel=1e-12)
    y = rows["y"].dropna()
    n, m = len(rows), len(y)
    error = np.sqrt(((y - seen) ** 2).sum()) / m * np.sqrt(n / (n - 1))
    assert lower["se_low"] == pytest.approx(error, rel=1e-12)


def test_an_effect_of_any_treatment_is_bounded_by_a_width_of_the_range(rows):
    y, d = rows["x"].to_numpy(), (rows["z"] > 0).to_numpy()
    low, high = ends(bounds.effect(y, d, y_range=(-5, 5)))
    p = d.mean()
    expected = p * y[d].mean() + (1 - p) * -5 - ((1 - p) * y[~d].mean() + p * 5)
    assert low == pytest.approx(expected, rel=1e-12)
    assert high - low == pytest.approx(10, rel=1e-12)


def test_shares_above_a_number_of_classes_and_of_numbers_agree(rows):
    y = rows["y"]
    text = pd.Series(np.where(y > 1, "much", "little"), dtype=object).where(y.notna())
    flag = (y > 1).where(y.notna())
    found = [
        ends(bounds.share(y, above=1)),
        ends(bounds.share(text, of="much")),
        ends(bounds.share(flag.astype(object))),
    ]
    seen = (y > 1).sum() / len(y)
    for low, high in found:
        assert low == pytest.approx(seen, rel=1e-12)
        assert high == pytest.approx(seen + y.isna().mean(), rel=1e-12)


# Quantiles. ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.3, 0.5, 0.7])
def test_a_quantile_has_all_gaps_below_it_or_above_it(q):
    rng = np.random.default_rng(1)
    y = np.where(rng.random(400) < 0.8, rng.normal(size=400), np.nan)
    p = np.isnan(y).mean()
    seen = np.sort(y[~np.isnan(y)])
    # Of those seen, the quantiles at (q - p) / (1 - p) and q / (1 - p).
    low, high = (
        seen[max(int(np.ceil(len(seen) * at / (1 - p) - 1e-9)) - 1, 0)] for at in (q - p, q)
    )
    assert ends(bounds.quantile(y, q)) == pytest.approx([low, high], rel=1e-12)


def test_a_quantile_that_may_be_missing_has_no_end_unless_a_range_gives_one():
    y = [1.0, 2.0, 3.0, np.nan, np.nan, np.nan]
    found = bounds.quantile(y, 0.25).tidy().loc[0]
    assert found["low"] == -np.inf
    assert found["ci_low"] == -np.inf
    assert np.isnan(found["se_low"])
    assert found["high"] == 2.0
    assert ends(bounds.quantile(y, 0.25, y_range=(0, 9)))[0] == 0


# Projections. -------------------------------------------------------------------------------------


def test_bounds_of_a_projection_are_the_optima_of_linear_programs():
    """Over all outcomes that the gaps may have, by scipy's linear programming."""
    rng = np.random.default_rng(5)
    n = 40
    X = rng.normal(size=(n, 2))
    y = np.where(rng.random(n) < 0.7, X[:, 0] + rng.normal(size=n), np.nan)
    w = rng.integers(1, 5, n).astype(float)
    span = (-3.5, 4.0)
    result = bounds.projection(X, y, y_range=span, sample_weight=w, weight_kind="sampling").tidy()
    design = np.column_stack([np.ones(n), X])
    moves = np.linalg.solve(design.T @ (w[:, None] * design), (w[:, None] * design).T)
    limits = [span if np.isnan(value) else (value, value) for value in y]
    for place in range(3):
        for name, sign in (("low", 1.0), ("high", -1.0)):
            best = optimize.linprog(sign * moves[place], bounds=limits)
            assert result.loc[place, name] == pytest.approx(sign * best.fun, rel=1e-8)
    seen = ~np.isnan(y)
    half = np.sqrt(w[seen])
    known = np.linalg.lstsq(half[:, None] * design[seen], half * y[seen], rcond=None)[0]
    np.testing.assert_allclose(result["observed"], known, rtol=1e-9)


def test_a_projection_on_groups_is_their_means_and_differences(rows):
    dummies = pd.get_dummies(rows["z"], prefix="z", drop_first=True, dtype=float)
    span = (-4, 6)
    table = bounds.projection(dummies, rows["y"], y_range=span).tidy()
    means = bounds.mean(rows["y"], group=rows["z"], y_range=span).tidy()
    apart = bounds.difference(rows["y"], rows["z"], y_range=span).tidy()
    names = ["low", "high", "se_low", "se_high"]
    np.testing.assert_allclose(table.loc[0, names].tolist(), means.loc[0, names].tolist())
    np.testing.assert_allclose(
        table.loc[1:, names].to_numpy(dtype=float), apart.loc[:1, names].to_numpy(dtype=float)
    )
    by_type = bounds.projection(
        pd.DataFrame({"z": rows["z"].astype("category")}), rows["y"], y_range=span
    )
    np.testing.assert_allclose(by_type.tidy()[names], table[names])


def test_errors_of_a_projection_are_those_of_least_squares_where_nothing_is_missing(rows):
    y = rows["x"] * 2 + rows["w"]
    design = np.column_stack([np.ones(len(rows)), rows[["x", "z"]]])
    table = bounds.projection(rows[["x", "z"]], y).tidy()
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ y
    scores = design * (y - design @ beta).to_numpy()[:, None]
    n = len(rows)
    covariance = inverse @ (scores.T @ scores) @ inverse * n / (n - 1)
    np.testing.assert_allclose(table["low"], beta, rtol=1e-10)
    np.testing.assert_allclose(table["high"], beta, rtol=1e-10)
    np.testing.assert_allclose(table["se_high"], np.sqrt(np.diag(covariance)), rtol=1e-10)


# Monotone instruments. ----------------------------------------------------------------------------


def test_an_instrument_takes_the_best_end_on_either_side(rows):
    """Without the correction, by its definition: maxima from below, minima from above."""
    span = (-4, 6)
    cells = bounds.mean(rows["y"], group=rows["z"], y_range=span).tidy()
    shares = rows["z"].value_counts(normalize=True).sort_index().to_numpy()
    low = sum(s * cells["low"][: u + 1].max() for u, s in enumerate(shares))
    high = sum(s * cells["high"][u:].min() for u, s in enumerate(shares))
    result = bounds.monotone_instrument(rows["y"], rows["z"], y_range=span, n_boot=50)
    said = f"{low:.4g} to {high:.4g}"
    assert said in str(result).replace("\n  ", " ")
    falling = bounds.monotone_instrument(
        rows["y"], -rows["z"], increasing=False, y_range=span, n_boot=50
    )
    assert said in str(falling).replace("\n  ", " ")


@pytest.mark.parametrize("labels", [[10, 9, 8, 7], ["none", "little", "some", "much"]])
def test_an_instrument_of_ordered_categories_has_their_order(labels, rows):
    codes = rows["z"].rank(method="dense").astype(int) % 4
    ordered = pd.Series(pd.Categorical.from_codes(codes, labels, ordered=True))
    options = {"y_range": (-4, 6), "n_boot": 50}
    expected = bounds.monotone_instrument(rows["y"], codes, **options).tidy()
    found = bounds.monotone_instrument(rows["y"], ordered, **options).tidy()
    pd.testing.assert_frame_equal(found, expected)


def test_an_instrument_that_separates_gives_wide_gaps_away():
    """Outcomes that jump with z, all missing at one value: the neighbours bound it."""
    z = np.repeat([0, 1, 2], 200)
    rng = np.random.default_rng(0)
    y = np.where(z == 1, np.nan, z + 0.01 * rng.normal(size=600))
    table = bounds.monotone_instrument(y, z, y_range=(-10, 10), n_boot=100).tidy()
    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx([2 / 3, 4 / 3], abs=0.1)
    assert table.loc[1, ["low", "high"]].tolist() == pytest.approx([-8 / 3, 4.0], abs=0.1)


# Kinds of columns, and refusals. ------------------------------------------------------------------


def test_every_kind_of_column_gives_the_same_bounds(rows):
    polars = pytest.importorskip("polars")
    torch = pytest.importorskip("torch")
    dask = pytest.importorskip("dask.dataframe")
    expected = ends(bounds.mean(rows["y"].to_numpy()))
    lazy = dask.from_pandas(rows, npartitions=3)
    for y in (
        rows["y"],
        rows["y"].tolist(),
        polars.Series("y", rows["y"].to_numpy()),
        torch.tensor(rows["y"].to_numpy()),
        lazy["y"],
    ):
        np.testing.assert_allclose(ends(bounds.mean(y)), expected, rtol=1e-12)
    chosen = bounds.mean(rows["y"].fillna(99.0), selected=rows["y"].notna())
    np.testing.assert_allclose(ends(chosen), expected, rtol=1e-12)


def test_groups_have_the_order_in_which_categories_are_declared(rows):
    polars = pytest.importorskip("polars")
    text = rows["z"].map({0: "none", 1: "some", 2: "all"})
    declared = pd.Categorical(text, categories=["none", "some", "all", "more"])
    enum = polars.Series(text.tolist(), dtype=polars.Enum(["none", "some", "all", "more"]))
    expected = ends(bounds.difference(rows["y"], rows["z"]), 1)
    for group in (declared, enum, pd.Series(declared)):
        result = bounds.difference(rows["y"], group)
        assert result.tidy()["group"].tolist()[:2] == ["some less none", "all less none"]
        np.testing.assert_allclose(ends(result, 1), expected, rtol=1e-12)


def test_selected_rows_without_an_outcome_are_missing_too(rows):
    everyone = bounds.mean(rows["y"], selected=np.ones(len(rows), dtype=bool))
    np.testing.assert_array_equal(ends(everyone), ends(bounds.mean(rows["y"])))
    assert everyone.counts == (300, int(rows["y"].notna().sum()))


def test_rows_of_weight_zero_are_left_out_and_counted(rows):
    weight = np.where(np.arange(len(rows)) < 20, 0.0, 1.0)
    found = bounds.mean(rows["y"], sample_weight=weight, group=rows["z"])
    rest = bounds.mean(rows["y"][20:], group=rows["z"][20:])
    np.testing.assert_allclose(
        found.tidy()[["low", "se_high"]], rest.tidy()[["low", "se_high"]], rtol=1e-12
    )
    assert "20 rows of weight zero" in str(found)


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda r: bounds.mean(r["y"], y_range=(0, 1)), "beyond"),
        (lambda r: bounds.mean(r["y"], y_range=(6, -4)), "lower one first"),
        (lambda r: bounds.mean(r["y"], y_range=3), "two numbers"),
        (lambda r: bounds.mean(r["y"], selection="high"), "higher"),
        (lambda r: bounds.mean(r["y"], conf_level=2), "conf_level"),
        (lambda r: bounds.mean(r["y"], sample_weight=r["w"] / 3), "sampling"),
        (lambda r: bounds.mean(r["y"], weight_kind="survey"), "survey"),
        (lambda r: bounds.mean(r["y"] * np.nan), "none of the 300 rows"),
        (lambda r: bounds.mean(r["y"] * 0 + 2), "no range"),
        (lambda r: bounds.mean(None), "y"),
        (lambda r: bounds.mean(r["y"], group=r["z"][:9].to_numpy()), "9 rows"),
        (lambda r: bounds.mean(r["y"], group=r["x"]), "300 groups"),
        (lambda r: bounds.mean(r["y"], groups=np.ones(300)), "one cluster"),
        (lambda r: bounds.difference(r["y"], r["z"] * 0), "two groups"),
        (lambda r: bounds.difference(r["y"], r["z"], reference=7), "reference 7"),
        (lambda r: bounds.share(r["y"]), "above"),
        (lambda r: bounds.share(["a", "b", None]), "of"),
        (lambda r: bounds.share(["a", "b", None], of="A"), "'A'"),
        (lambda r: bounds.share(r["y"], of=1, above=2), "one of them"),
        (lambda r: bounds.quantile(r["y"], 1.5), "q must"),
        (lambda r: bounds.effect(r["x"], r["z"] > 9), "untreated"),
        (lambda r: bounds.effect(r["x"], None), "treated is missing"),
        (lambda r: bounds.projection(r[["x", "y"]], r["y"]), "y (1"),
        (lambda r: bounds.projection(r[["x"]][:2], r["y"][:2].to_numpy()), "more than 2 rows"),
        (lambda r: bounds.monotone_instrument(r["y"], r["x"]), "bins=5"),
        (lambda r: bounds.monotone_instrument(r["y"], r["z"], n_boot=3), "n_boot"),
        (lambda r: bounds.monotone_instrument(r["y"], r["y"]), "missing"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(rows, ask, named):
    with pytest.raises(InputError) as refused:
        ask(rows)
    assert named in str(refused.value)


def test_collinear_features_are_named(rows):
    with pytest.raises(CollinearError, match="twice"):
        bounds.projection(rows[["x"]].assign(twice=2 * rows["x"]), rows["y"])


def test_rows_of_files_are_refused_in_one_sentence(rows, tmp_path):
    pytest.importorskip("pyarrow")
    from heckmanfa import scan

    rows.to_parquet(tmp_path / "rows.parquet")
    source = scan(str(tmp_path / "rows.parquet"), outcome="y", features=["x"])
    with pytest.raises(InputTypeError, match="in memory"):
        bounds.projection(source, rows["y"])


def test_other_row_labels_are_refused(rows):
    with pytest.raises(HeckmanfaError, match="order"):
        bounds.difference(rows["y"], rows["z"].sort_values())


# What is printed. ---------------------------------------------------------------------------------


def test_a_result_prints_its_assumption_in_every_format(rows):
    result = bounds.mean(rows["y"], selection="higher", group=rows["z"])
    words = "at least as high"
    for text in (
        " ".join(str(result).split()),
        " ".join(result.to_latex().split()),
        result.to_markdown(),
        result._repr_html_(),
    ):
        assert words in text
        assert "z = 1" in text
    assert r"\caption{Bounds of the mean of y}" in result.to_latex()


def test_a_picture_holds_the_numbers_that_are_drawn(rows):
    result = bounds.difference(rows["y"], rows["z"])
    text = result.picture().text()
    table = result.tidy()
    assert len(text.table.rows) == len(table)
    for row, low in zip(text.table.rows, table["low"], strict=True):
        shown = float(row[1].replace("\N{MINUS SIGN}", "-"))
        assert shown == pytest.approx(low, abs=0.006)
    assert "<svg" in result.picture().svg(640)


# What formulas cannot know. -----------------------------------------------------------------------


@pytest.mark.parametrize("clusters", [False, True])
def test_a_group_of_one_row_or_cluster_has_no_errors(rows, clusters):
    """Its mean would seem to vary by nothing."""
    group = np.where(np.arange(300) == 0, "alone", "others").astype(object)
    group[1:150] = "half"
    given = {"groups": np.where(group == "half", 0, np.arange(300))} if clusters else {}
    y = rows["y"].fillna({0: 1.0})
    table = bounds.difference(y, group, reference="others", y_range=(-4, 6), **given).tidy()
    errors = table.set_index("group")[["se_low", "ci_low", "ci_high"]].isna().all(axis=1)
    assert errors["alone"]
    assert errors["alone less others"]
    assert errors["half"] == clusters
    assert not errors["others"]
    result = bounds.quantile(y, 0.5, group=group, **given)
    assert np.isnan(result.tidy().loc[0, "se_low"])
    assert "no standard errors" in " ".join(str(result).split())
    assert "nan" not in result.sentence
    assert "<svg" in result.picture().svg(600)


def test_a_single_row_has_no_interval():
    table = bounds.mean([1.0], y_range=(0, 2)).tidy().loc[0]
    assert table[["se_low", "ci_low", "ci_high"]].isna().all()


def test_an_interval_stays_within_what_a_number_can_be():
    y = [1.0, 0.0, 1.0, None, 1.0]
    share = bounds.share(y).tidy().loc[0]
    assert (share["ci_low"], share["ci_high"]) == (pytest.approx(0.6 - 1.66 * 0.245, abs=0.02), 1.0)
    apart = bounds.difference([1.0, 1.0, 1.0, None, 0.0, 0.0], list("aaabbb"), y_range=(0, 1))
    assert apart.tidy().loc[0, "ci_low"] == -1.0


@pytest.mark.parametrize("unit", [1e250, 1e-250])
def test_units_do_not_matter(rows, unit):
    clusters = {"groups": rows["cluster"]}
    for ask in (
        lambda y: bounds.mean(y, group=rows["z"]),
        lambda y: bounds.mean(y, **clusters),
        lambda y: bounds.projection(rows[["x"]], y),
        lambda y: bounds.quantile(y, 0.6),
        lambda y: bounds.lee(y, rows["z"] > 0),
        lambda y: bounds.monotone_instrument(y, rows["z"], n_boot=50),
    ):
        names = ["low", "high", "se_low", "se_high", "ci_low", "ci_high", "observed"]
        one, other = ask(rows["y"]).tidy()[names], ask(rows["y"] * unit).tidy()[names]
        np.testing.assert_allclose(other.to_numpy(dtype=float) / unit, one, rtol=1e-6)
