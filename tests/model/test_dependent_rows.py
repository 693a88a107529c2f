"""Covariances of rows that depend on each other: two clusterings, and the design of a survey.

The likelihood, its maximum, scores and curvature are those of `tests.plain_heckman`.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from tests.plain_heckman import ByHand, by_hand

import heckmanfa
from heckmanfa import (
    Heckman,
    HeckmanBestSubset,
    HeckmanOrdered,
    HeckmanProbit,
    Survey,
    TreatmentModel,
    scan,
)
from heckmanfa.errors import FewClustersWarning, HeckmanfaError, InputError, InputTypeError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
FEATURES = ["educ", "exper"]
STRATIFIED = Survey(strata="region", psu="village", weights="w", nest=True)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """900 people in 36 villages of 6 regions, and in 20 trades across villages."""
    source, n = np.random.default_rng(7), 900
    region = source.integers(0, 6, n)
    village, trade = source.integers(0, 6, n), source.integers(0, 20, n)
    shared = source.normal(scale=0.5, size=(6, 6))[region, village]
    x = source.normal(size=(n, 2)) + 0.3 * source.normal(size=20)[trade, None]
    first = source.normal(size=n) + shared
    second = 0.6 * first + source.normal(size=n) + 0.4 * source.normal(size=20)[trade]
    wage = np.where(x @ [0.8, 0.6] + 0.4 + first > 0, 1.0 + x[:, 0] + second, np.nan)
    frame = pd.DataFrame(x, columns=FEATURES)
    return frame.assign(
        wage=wage,
        region=[f"r{number}" for number in region],
        village=village,
        trade=trade,
        w=source.uniform(0.5, 4.0, n),
        n_villages=30 + region,
        old=source.uniform(size=n) < 0.6,
        one=1,
        row=np.arange(n),
    )


@pytest.fixture(scope="module")
def weighted(people) -> ByHand:
    return by_hand(people, people["w"].to_numpy() / people["w"].mean())


def design(people: pd.DataFrame, *columns: str) -> pd.DataFrame:
    return people[[*FEATURES, *columns]]


def fit(people: pd.DataFrame, survey: Survey, method: str = "ml", **options) -> Heckman:
    columns = survey.columns(people.columns)
    model = Heckman(["educ"], cov_type=survey, method=method, **options)
    return model.fit(people[[*FEATURES, *columns]], people["wage"])


def of_coefficients(model) -> np.ndarray:
    return model.fit_.covariance[:5, :5]


def in_strata(totals: np.ndarray, strata: np.ndarray, fraction=lambda _: 0.0) -> np.ndarray:
    """Sum over strata the squares of totals about their mean, as textbooks write it."""
    middle = np.zeros((totals.shape[1],) * 2)
    for stratum in np.unique(strata):
        own = totals[strata == stratum]
        n = len(own)
        about = own - own.mean(axis=0)
        middle += (1 - fraction(stratum)) * n / (n - 1) * about.T @ about
    return middle


# Two clusterings. ---------------------------------------------------------------------------


def test_two_clusterings_add_both_and_subtract_their_cells(people):
    plain = by_hand(people, np.ones(len(people)))
    place, trade = people.groupby(["region", "village"]).ngroup(), people["trade"]
    cells = people.groupby(["region", "village", "trade"]).ngroup()
    groups = np.column_stack([place, trade])
    model = Heckman(["educ"], cov_type="cluster", method="ml")
    model.fit(people[FEATURES], people["wage"], groups=groups)
    first, second = plain.clustered(place.to_numpy()), plain.clustered(trade.to_numpy())
    middle = first + second - plain.clustered(cells.to_numpy())
    assert np.linalg.eigvalsh(middle).min() > 0
    expected = plain.covariance(middle)[:5, :5]
    np.testing.assert_allclose(of_coefficients(model), expected, rtol=2e-4, atol=1e-7)
    assert model.n_clusters_ == 20
    assert model.fit_.cluster_counts == (36, 20)
    assert "36 and 20" in str(model.summary())
    # t of the smaller number of clusters less one.
    row = model.tidy().iloc[1]
    reach = stats.t.ppf(0.975, 19) * row["std_error"]
    assert row["ci_high"] == pytest.approx(row["estimate"] + reach, rel=1e-9)


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_two_clusterings_that_are_one_and_rows_beside_clusters_are_that_one(method, people):
    trade = people["trade"].to_numpy()
    X, y = people[FEATURES], people["wage"]

    def vcov(groups):
        model = Heckman(["educ"], cov_type="cluster", method=method)
        return model.fit(X, y, groups=groups).fit_.covariance

    one = vcov(trade)
    # The same clusters in another order and by other names.
    names = np.array([f"trade {99 - number}" for number in trade])
    np.testing.assert_allclose(vcov(pd.DataFrame({"a": trade, "b": names})), one, rtol=1e-12)
    np.testing.assert_allclose(vcov(np.column_stack([trade, people["row"]])), one, rtol=1e-9)


def test_every_way_to_pass_two_clusterings_gives_the_same(people, tmp_path):
    y, names = people["wage"], ["village", "trade"]
    labels = people.assign(village=people["region"] + people["village"].astype(str))
    model = Heckman(["educ"], cov_type="cluster", method="ml")
    wanted = clone(model).fit(people[FEATURES], y, groups=labels[names]).fit_
    ways = [
        clone(model).fit(people[FEATURES], y, groups=pl.from_pandas(labels[names])),
        clone(model).fit(people[FEATURES], y, groups=labels[names].to_numpy()),
        Heckman.from_formula(
            "wage ~ educ", "~ educ + exper", labels, groups=names, cov_type="cluster", method="ml"
        ),
    ]
    labels.to_parquet(tmp_path / "people.parquet", row_group_size=100)
    rows = scan(str(tmp_path / "people.parquet"), "wage", FEATURES, groups=names)
    ways.append(clone(model).fit(rows))
    for way in ways:
        np.testing.assert_allclose(way.fit_.covariance, wanted.covariance, rtol=1e-6, atol=1e-12)
        assert way.fit_.cluster_counts == wanted.cluster_counts
    assert ways[2].fit_.origin.clusterings == ("village", "trade")
    # Methods find both columns in a frame again.
    assert "36 and 20 clusters" in str(ways[2].margins(labels))
    assert ways[2].what_if(labels) is not None
    with pytest.raises(InputError, match="unit"):
        ways[2].bootstrap(labels, n_boot=3)


def test_two_clusterings_by_name_follow_rows_that_are_left_out(people):
    holed = people.assign(educ=people["educ"].where(people["row"] % 9 > 0))
    equations = ("wage ~ educ", "~ educ + exper")
    options = {"groups": ["village", "trade"], "cov_type": "cluster"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Heckman.from_formula(*equations, holed, **options)
    assert {warning.category for warning in caught} == {FewClustersWarning}
    kept = Heckman.from_formula(*equations, holed.dropna(subset="educ"), **options)
    np.testing.assert_allclose(model.fit_.covariance, kept.fit_.covariance, rtol=1e-9)


def test_a_covariance_that_is_not_positive_is_repaired_and_says_so(people):
    # Seven parameters and four clusters in one of the ways: the difference is indefinite.
    groups = np.column_stack([people["trade"], people["trade"] // 5 + 5 * (people["row"] % 2)])
    model = Heckman(["educ"], cov_type="cluster", method="ml")
    model.fit(people[FEATURES], people["wage"], groups=groups)
    assert np.linalg.eigvalsh(model.fit_.covariance).min() > -1e-12
    assert "set to zero" in str(model.summary())
    # The units of a feature do not matter to the repair.
    scaled = clone(model).fit(
        people[FEATURES].assign(educ=1000 * people["educ"]), people["wage"], groups=groups
    )
    ratio = model.tidy()["std_error"][1] / scaled.tidy()["std_error"][1]
    assert ratio == pytest.approx(1000, rel=1e-6)


def test_clusterings_that_cannot_be_used_are_refused(people):
    X, y = people[FEATURES], people["wage"]
    model = Heckman(["educ"], cov_type="cluster")
    with pytest.raises(InputError, match="second of the two clusterings has a single"):
        model.fit(X, y, groups=people[["trade", "one"]])
    with pytest.raises(InputError, match="groups has 3 columns"):
        model.fit(X, y, groups=people[["trade", "one", "row"]])
    equations = ("wage ~ educ", "~ educ + exper", people)
    with pytest.raises(InputError, match="groups names 'trade' twice"):
        Heckman.from_formula(*equations, groups=["trade", "trade"], cov_type="cluster")
    with pytest.raises(InputError, match="names of two for clusters"):
        Heckman.from_formula(*equations, groups=["trade", "one", "row"], cov_type="cluster")
    holed = people["village"].where(people["row"] != 3)
    with pytest.raises(InputError, match="missing in 1 row"):
        model.fit(X, y, groups=people[["trade"]].assign(village=holed))
    with pytest.raises(InputError, match="share no cluster"):
        HeckmanBestSubset(honest=True, n_splits=4, cov_type="cluster", random_state=0).fit(
            X, y, groups=people[["trade", "village"]]
        )


# Surveys, linearized. -----------------------------------------------------------------------


def test_a_survey_sums_squares_about_the_mean_of_each_stratum(people, weighted):
    labels = people.groupby(["region", "village"]).ngroup().to_numpy()
    totals = weighted.totals(labels)
    strata = people["region"].groupby(labels).first().to_numpy()
    model = fit(people, STRATIFIED)
    np.testing.assert_allclose(
        of_coefficients(model), weighted.covariance(in_strata(totals, strata))[:5, :5], rtol=2e-4
    )
    corrected = fit(people, Survey("region", "village", "w", fpc="n_villages", nest=True))
    middle = in_strata(totals, strata, lambda stratum: 6 / (30 + int(stratum[1:])))
    np.testing.assert_allclose(
        of_coefficients(corrected), weighted.covariance(middle)[:5, :5], rtol=2e-4
    )
    shares = people.assign(n_villages=6 / people["n_villages"])
    same = fit(shares, Survey("region", "village", "w", fpc="n_villages", nest=True))
    np.testing.assert_allclose(same.fit_.covariance, corrected.fit_.covariance, rtol=1e-12)


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_one_stratum_of_single_rows_is_robust_and_of_units_is_cluster(method, people):
    X, y, w = people[FEATURES], people["wage"], people["w"]
    options = {"method": method, "weight_kind": "sampling"}
    robust = Heckman(["educ"], cov_type="robust", **options).fit(X, y, sample_weight=w)
    rows = fit(people, Survey(strata="one", weights="w"), method)
    np.testing.assert_allclose(rows.fit_.covariance, robust.fit_.covariance, rtol=1e-12)
    cluster = Heckman(["educ"], cov_type="cluster", **options)
    cluster.fit(X, y, sample_weight=w, groups=people["trade"])
    units = fit(people, Survey(psu="trade", weights="w"), method)
    np.testing.assert_allclose(units.fit_.covariance, cluster.fit_.covariance, rtol=1e-12)


def test_strata_of_a_single_unit_are_refused_certain_or_centred(people, weighted):
    alone = (people["region"] != "r2") | (people["village"] == 0)
    some = people[alone].reset_index(drop=True)
    plain = by_hand(some, some["w"].to_numpy() / some["w"].mean())
    labels = some.groupby(["region", "village"]).ngroup().to_numpy()
    strata = some["region"].groupby(labels).first().to_numpy()
    totals = plain.totals(labels)
    others = strata != "r2"
    certain = in_strata(totals[others], strata[others])
    square = totals[~others] - totals.mean(axis=0)
    for kind, middle in (("certainty", certain), ("centered", certain + square.T @ square)):
        model = fit(some, Survey("region", "village", "w", single_psu=kind, nest=True))
        expected = plain.covariance(middle)[:5, :5]
        np.testing.assert_allclose(of_coefficients(model), expected, rtol=2e-4)
        assert model.fit_.design.n_single == 1
    with pytest.raises(InputError, match="stratum 'r2' has a single primary sampling unit"):
        fit(some, STRATIFIED)
    # All units of a stratum that has one were sampled: it tells no variance, and needs none.
    everyone = some.assign(n_villages=np.where(some["region"] == "r2", 1, 30))
    model = fit(everyone, Survey("region", "village", "w", fpc="n_villages", nest=True))
    assert model.fit_.design.n_single == 1


def test_a_subpopulation_keeps_the_design_of_all_rows(people, weighted):
    gone = people["old"] & ~((people["region"] == "r1") & (people["village"] < 2))
    some = people.assign(old=gone)
    inside = some["old"].to_numpy()
    weight = np.where(inside, some["w"], 0.0)
    plain = by_hand(some, weight / weight[inside].mean())
    labels = some.groupby(["region", "village"]).ngroup().to_numpy()
    strata = some["region"].groupby(labels).first().to_numpy()
    # Two villages of r1 have nobody inside, and totals of zero.
    expected = plain.covariance(in_strata(plain.totals(labels), strata))[:5, :5]
    survey = Survey("region", "village", "w", nest=True, subpop="old")
    model = fit(some, survey)
    np.testing.assert_allclose(of_coefficients(model), expected, rtol=2e-4)
    assert model.row_counts_["left_out_subpopulation"] == np.count_nonzero(~inside)
    assert (model.fit_.design.n_psu, model.fit_.design.df) == (36, 30)
    assert "outside of the subpopulation" in str(model.summary())
    # A stratum without anybody inside is not counted.
    fewer = fit(some.assign(old=inside & (some["region"] != "r0")), survey)
    assert (fewer.fit_.design.n_psu, fewer.fit_.design.n_strata) == (30, 5)
    # Rows that lack their outcome outside of it do not matter.
    np.testing.assert_allclose(
        fit(some.assign(wage=some["wage"].where(inside)), survey).fit_.covariance,
        model.fit_.covariance,
        rtol=1e-12,
    )


def test_tests_and_intervals_have_the_degrees_of_freedom_of_the_design(people):
    model = fit(people, STRATIFIED)
    row = model.tidy().iloc[1]
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(row["statistic"]), 30), rel=1e-9)
    test = model.wald_test("educ = 1")
    gap = (row["estimate"] - 1) / row["std_error"]
    assert test.statistic == pytest.approx(gap**2, rel=1e-9)
    assert (test.df, test.df_denominator) == (1, 30)
    assert test.p_value == pytest.approx(stats.f.sf(gap**2, 1, 30), rel=1e-9)
    X = people[FEATURES]
    value, ends, error = model.predict_selection(
        X, scale="link", return_interval="confidence", return_std=True
    )
    reach = stats.t.ppf(0.975, 30) * error
    np.testing.assert_allclose(ends[:, 1], value + reach, rtol=1e-9)
    for report in (model.summary(), model.margins(design(people, "region", "village", "w"))):
        assert "36 sampling units in 6 strata" in str(report)
        assert "t(30)" in str(report)
    assert "F(1, 30)" in str(model.diagnostics())


def test_every_kind_of_model_takes_a_survey(people):
    columns = ("region", "village", "w")
    X, weight = design(people, *columns), people["w"]
    single = Survey(strata="one", weights="w")
    for model, y, passed in (
        (HeckmanProbit(["educ"]), (people["wage"] > 1).where(people["wage"].notna()), {}),
        (
            HeckmanOrdered(["educ"]),
            pd.cut(people["wage"], [-np.inf, 0.5, 1.5, np.inf], labels=False),
            {},
        ),
        (
            TreatmentModel(["educ"]),
            people["wage"].fillna(0.5) + people["exper"] * np.sin(people["row"]),
            {"treated": people["wage"].notna()},
        ),
        (HeckmanBestSubset(), people["wage"], {}),
        (Heckman(["educ"], method="series"), people["wage"], {}),
        (Heckman(["educ"], method="ml", errors="t"), people["wage"], {}),
    ):
        robust = clone(model).set_params(cov_type="robust", weight_kind="sampling")
        robust.fit(people[FEATURES], y, sample_weight=weight, **passed)
        rows = clone(model).set_params(cov_type=single)
        rows.fit(design(people, "one", "w"), y, **passed)
        # The search looks at a covariance, too.
        np.testing.assert_allclose(rows.fit_.covariance, robust.fit_.covariance, rtol=1e-9)
        stratified = clone(model).set_params(cov_type=STRATIFIED).fit(X, y, **passed)
        assert stratified.fit_.design.df == 30
        assert not np.allclose(stratified.fit_.covariance, robust.fit_.covariance, rtol=1e-3)


def test_rows_anywhere_give_the_survey_of_rows_in_memory(people, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    survey = Survey("region", "village", "w", fpc="n_villages", nest=True)
    # A village without weight is a unit of the design, and has no row in the fit.
    gone = (people["region"] == "r0") & (people["village"] == 0)
    people = people.assign(w=people["w"].where(~gone, 0.0))
    wanted = fit(people, survey).fit_
    assert wanted.design.n_psu == 36
    people.to_parquet(tmp_path / "people.parquet", row_group_size=100)
    rows = scan(
        str(tmp_path / "people.parquet"),
        "wage",
        FEATURES,
        sample_weight="w",
        groups=["village", "region", "n_villages"],
    )
    model = Heckman(["educ"], cov_type=survey, method="ml")
    columns = survey.columns(())
    parts = dd.from_pandas(people, npartitions=4)
    frame = pl.from_pandas(design(people, *columns))
    for found in (
        clone(model).fit(rows),
        clone(model).fit(parts[[*FEATURES, *columns]], parts["wage"]),
        clone(model).fit(frame, people["wage"]),
        clone(model).fit(people[FEATURES], people["wage"], groups=people[[*columns]]),
        Heckman.from_formula("wage ~ educ", "~ educ + exper", people, cov_type=survey, method="ml"),
    ):
        np.testing.assert_allclose(found.fit_.covariance, wanted.covariance, rtol=1e-6)
        assert found.fit_.design == wanted.design
    with pytest.raises(InputError, match="the scan has to name the columns"):
        clone(model).fit(scan(str(tmp_path / "people.parquet"), "wage", FEATURES))


def test_tensors_give_the_survey_of_arrays(people):
    torch = pytest.importorskip("torch")
    survey = Survey("region", "village", "w", nest=True)
    tensor = torch.tensor(people[FEATURES].to_numpy())
    model = Heckman(["educ"], cov_type=survey, method="ml")
    found = Heckman([0], cov_type=survey, method="ml").fit(
        tensor, people["wage"].to_numpy(), groups=people[["region", "village", "w"]]
    )
    wanted = model.fit(design(people, "region", "village", "w"), people["wage"])
    np.testing.assert_allclose(found.fit_.covariance, wanted.fit_.covariance, rtol=1e-7)


def test_a_survey_is_a_parameter_like_others(people, tmp_path):
    model = fit(people, STRATIFIED)
    assert clone(model).get_params()["cov_type"] == STRATIFIED
    assert repr(STRATIFIED) == "Survey(strata='region', psu='village', weights='w', nest=True)"
    assert [*model.feature_names_in_] == FEATURES
    heckmanfa.save(model, tmp_path / "model.heckmanfa")
    loaded = heckmanfa.load(tmp_path / "model.heckmanfa")
    assert loaded.get_params()["cov_type"] == STRATIFIED
    assert loaded.fit_.design == model.fit_.design
    assert str(loaded.summary()) == str(model.summary())
    clustered = Heckman(["educ"], cov_type="cluster").fit(
        people[FEATURES], people["wage"], groups=people[["village", "trade"]]
    )
    heckmanfa.save(clustered, tmp_path / "clustered.heckmanfa")
    loaded = heckmanfa.load(tmp_path / "clustered.heckmanfa")
    assert loaded.get_params()["cov_type"] == "cluster"
    assert loaded.fit_.cluster_counts == (6, 20)
    # The columns of the design stay in the frame of a cross-validation.
    X = design(people, "region", "village", "w")
    np.testing.assert_allclose(model.predict(X), model.predict(people[FEATURES]))
    assert np.isfinite(cross_val_predict(clone(model), X, people["wage"], cv=3)).all()
    # Methods that read the rows again find them there, too.
    assert model.what_if(X, people["wage"]) is not None
    assert "survey" in str(model.uncertainty_interval(X, people["wage"]))
    with pytest.raises(InputError, match="replicate_weights"):
        model.bootstrap(X, people["wage"], n_boot=3)


@pytest.mark.parametrize(
    ("changed", "options", "kind", "match"),
    [
        ({}, {}, InputError, "unit '.' of 'village' is in the strata 'r.' and 'r.'"),
        ({"region": None}, {"nest": True}, InputError, "'region' is missing in 900 rows"),
        ({"w": -1.0}, {"nest": True}, InputError, "'w' holds 900 negative"),
        ({"w": 0.0}, {"nest": True}, InputError, "'w' is zero in every row"),
        ({"n_villages": 4}, {"nest": True, "fpc": "n_villages"}, InputError, "'r0' has 4 units"),
        ({"n_villages": 0}, {"nest": True, "fpc": "n_villages"}, InputError, "above zero"),
        ({}, {"nest": True, "fpc": "row"}, InputError, "above zero"),
        ({"row": 40}, {"nest": True, "fpc": "w"}, InputError, "'w' has several values"),
        ({"old": False}, {"nest": True, "subpop": "old"}, InputError, "no row in the subpop"),
        ({"old": 2}, {"nest": True, "subpop": "old"}, InputError, "booleans, or 0 and 1"),
        ({"old": "yes"}, {"nest": True, "subpop": "old"}, InputTypeError, "must hold booleans"),
        ({}, {"nest": True, "psu": "hamlet"}, HeckmanfaError, "'hamlet'"),
        ({"village": 1}, {"nest": True, "strata": None}, InputError, "single primary sampling"),
        (
            {"village": 1},
            {"nest": True, "single_psu": "certainty"},
            InputError,
            "6 primary sampling units in 6 strata",
        ),
    ],
)
def test_a_design_that_cannot_be_is_refused(changed, options, kind, match, people):
    frame = people.assign(**changed)
    given = {"strata": "region", "psu": "village", "weights": "w"} | options
    with pytest.raises(kind, match=match):
        Heckman(["educ"], cov_type=Survey(**given)).fit(frame.drop(columns="wage"), frame["wage"])


def test_words_that_a_survey_does_not_have_are_refused(people):
    for options, kind, match in (
        ({}, InputError, "needs strata, psu"),
        ({"strata": np.arange(3)}, InputTypeError, "name of a column as strata"),
        ({"psu": "a", "single_psu": "scaled"}, InputError, "'certainty'"),
        ({"psu": "a", "mse": True}, InputError, "about replicate weights"),
        ({"replicate_weights": "rw*"}, InputError, "need replicate_kind"),
        (
            {"replicate_weights": "rw*", "replicate_kind": "jackknife", "fay": 0.3},
            InputError,
            "fay",
        ),
        (
            {"replicate_weights": "rw*", "replicate_kind": "brr", "scale": -1.0},
            InputError,
            "scale",
        ),
    ):
        with pytest.raises(kind, match=match):
            Survey(**options)
    with pytest.raises(InputError, match="leave sample_weight out"):
        Heckman(cov_type=STRATIFIED).fit(
            design(people, "region", "village", "w"), people["wage"], sample_weight=people["w"]
        )
    with pytest.raises(InputTypeError, match="columns of a data frame"):
        Heckman(cov_type=STRATIFIED).fit(people[FEATURES].to_numpy(), people["wage"])


def test_few_clusters_of_either_clustering_are_warned_of(people):
    place = people.groupby(["region", "village"]).ngroup()
    groups = np.column_stack([place, people["trade"]])
    with pytest.warns(FewClustersWarning, match="36 and 20 clusters"):
        Heckman(["educ"], cov_type="cluster").fit(people[FEATURES], people["wage"], groups=groups)


@pytest.mark.parametrize(
    ("regions", "level", "words"),
    [
        (1, "problem", "6 sampling units in one stratum leave 5 degrees of freedom"),
        (3, "caution", "With fewer than 20 degrees of freedom"),
        (6, "ok", ""),
    ],
)
def test_designs_that_leave_few_degrees_of_freedom_say_so(regions, level, words, people):
    rows = people[people["region"] < f"r{regions}"]
    model = Heckman.from_formula("wage ~ educ", "~ educ + exper", rows, cov_type=STRATIFIED)
    (fact,) = [fact for fact in model.diagnostics().facts if fact.key == "clusters"]
    assert (fact.level, fact.name) == (level, "design of the survey")
    said = " ".join(str(model.summary()).split())
    assert words in said
    assert ("tends to be too small" in said or "rank 5 at most" in said) == (level == "problem")
