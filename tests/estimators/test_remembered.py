"""Weights and clusters of a model from formulas are found in the data frame again."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from heckmanfa import Heckman, plots, scan_parquet
from heckmanfa.analysis import load_model, save_model
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaWarning, InputError, UnknownFeatureError
from heckmanfa.inference.profile_likelihood import profile_rho

COLUMNS = ["educ", "exper", "age", "kids5", "nwifeinc"]
PREDICT = COLUMNS[:2]
WAGE, WORK = "lwage ~ educ + exper", "lfp ~ educ + exper + age + kids5 + nwifeinc"
CLUSTERED = {"cov_type": "cluster", "groups": "town"}


@pytest.fixture(scope="module")
def towns():
    d = load_mroz()[["lwage", "lfp", *COLUMNS]]
    return d.assign(count=1 + np.arange(len(d)) % 3, town=np.arange(len(d)) % 60)


@pytest.fixture(scope="module")
def named(towns):
    return Heckman.from_formula(WAGE, WORK, towns, sample_weight="count", **CLUSTERED)


@pytest.fixture(scope="module")
def by_array(towns):
    return Heckman.from_formula(
        WAGE, WORK, towns, sample_weight=towns["count"], groups=towns["town"], cov_type="cluster"
    )


def test_the_frame_alone_is_enough(towns, named, by_array):
    weights = {"sample_weight": towns["count"]}
    one = named.exclusion_test(towns).tidy()
    other = by_array.exclusion_test(towns, **weights, groups=towns["town"]).tidy()
    pd.testing.assert_frame_equal(one, other)
    one, other = (
        model.bootstrap(towns, n_boot=3, random_state=0, **given)
        for model, given in ((named, {}), (by_array, weights | {"unit": towns["town"]}))
    )
    np.testing.assert_array_equal(one.replicates.estimates, other.replicates.estimates)
    assert (one.unit, one.n_units) == ("groups of 'town'", 60)
    one, other = named.specification_tests(towns), by_array.specification_tests(towns, **weights)
    pd.testing.assert_frame_equal(one.tidy(), other.tidy())
    one, other = named.margins(towns).tidy(), by_array.margins(towns, **weights).tidy()
    pd.testing.assert_frame_equal(one, other)
    one = profile_rho(named, towns, grid=3)
    other = profile_rho(by_array, towns, grid=3, **weights)
    np.testing.assert_array_equal(one.log_likelihood, other.log_likelihood)
    plots.imr_overlap(named, towns)


def test_margins_are_averaged_by_the_weights_of_the_fit(towns, named):
    many = towns.loc[towns.index.repeat(towns["count"])]
    table = named.margins(pl.DataFrame(towns)).tidy()
    rows = named.margins(many, sample_weight=1).tidy()
    np.testing.assert_allclose(table["estimate"], rows["estimate"], rtol=1e-10)
    alike = named.margins(towns, sample_weight=1).tidy()
    assert not np.allclose(table["estimate"], alike["estimate"], rtol=1e-4)


def test_rows_that_margins_leave_out_need_no_weight(towns, named):
    holes = towns.astype(float)
    holes.loc[[3, 4], "age"] = np.nan
    holes.loc[3, "count"] = np.nan
    rest = towns.drop(index=[3, 4])
    pd.testing.assert_frame_equal(named.margins(holes).tidy(), named.margins(rest).tidy())
    holes.loc[5, "count"] = np.nan
    with pytest.raises(InputError, match=r"sample_weight.*1"):
        named.margins(holes)


def test_a_frame_without_the_column_is_refused_with_what_to_pass(towns, named):
    less = towns.drop(columns="count")
    with pytest.raises(UnknownFeatureError, match="'count'"):
        named.margins(less)
    named.margins(less, sample_weight=1)
    for ask in (named.exclusion_test, named.specification_tests, named.bootstrap):
        with pytest.raises(UnknownFeatureError, match="which these data do not have"):
            ask(less)
    with pytest.raises(UnknownFeatureError, match="'town'"):
        named.exclusion_test(towns.drop(columns="town"))
    with pytest.raises(UnknownFeatureError, match="'row'"):
        named.bootstrap(towns.drop(columns="town"))


def test_arrays_are_asked_for_and_never_ignored(towns, by_array):
    for ask in (by_array.exclusion_test, by_array.specification_tests, by_array.margins):
        with pytest.raises(InputError, match="sample_weight"):
            ask(towns)
    with pytest.raises(InputError, match=r"clusters.*unit"):
        by_array.bootstrap(towns)
    with pytest.raises(InputError, match=r"clusters.*groups"):
        by_array.exclusion_test(towns, sample_weight="count")
    X, y, w = towns[COLUMNS], towns["lwage"], towns["count"]
    plain = Heckman(PREDICT).fit(X, y, sample_weight=w)
    for ask in (plain.exclusion_test, plain.specification_tests, plain.bootstrap):
        with pytest.raises(InputError, match="sample_weight"):
            ask(X, y)
    with pytest.raises(InputError, match=r"sample_weight.*1"):
        plain.margins(X)
    plain.margins(X, sample_weight=w)


def test_sampling_weights_are_refused_by_specification_tests_also_where_they_are_remembered(
    towns, tmp_path
):
    sampling = {"weight_kind": "sampling", "cov_type": "robust"}
    model = Heckman.from_formula(WAGE, WORK, towns, sample_weight="count", **sampling)
    with pytest.raises(InputError, match="sampling"):
        model.specification_tests(towns)
    towns.to_parquet(tmp_path / "towns.parquet")
    rows = scan_parquet(tmp_path / "towns.parquet", "lwage", COLUMNS, sample_weight="count")
    with pytest.raises(InputError, match="sampling"):
        Heckman(PREDICT, **sampling).fit(rows).specification_tests(rows)


def test_rows_in_files_say_their_weights_and_clusters_themselves(towns, tmp_path, by_array):
    towns.to_parquet(tmp_path / "towns.parquet")
    rows = scan_parquet(
        tmp_path / "towns.parquet", "lwage", COLUMNS, sample_weight="count", groups="town"
    )
    model = Heckman(PREDICT, cov_type="cluster").fit(rows)
    one = model.exclusion_test(rows).tidy()
    other = by_array.exclusion_test(
        towns, sample_weight="count", groups=towns["town"].to_numpy()
    ).tidy()
    np.testing.assert_allclose(one["statistic"], other["statistic"], rtol=1e-6)


def test_what_is_given_goes_before_what_is_remembered(towns, named):
    other = towns.assign(count=2)
    with pytest.raises(InputError, match="not those of the fit") as told:
        named.specification_tests(other)
    assert not re.search(r"\d", str(told.value))
    named.specification_tests(other, sample_weight=towns["count"])
    assert named.bootstrap(towns, n_boot=2, unit="row", random_state=0).unit == "rows"


def test_names_are_saved_with_the_model_and_gone_after_another_fit(towns, named):
    again = pickle.loads(pickle.dumps(named))
    pd.testing.assert_frame_equal(again.margins(towns).tidy(), named.margins(towns).tidy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        again.fit(towns[COLUMNS], towns["lwage"], groups=towns["town"] // 2)
    assert again.fit_.origin.weight_column is None
    assert again.fit_.origin.group_column is None
    again.margins(towns[COLUMNS])


def test_scores_of_a_weighted_formula_model_are_weighted(towns, named, by_array):
    y, w = towns["lwage"], towns["count"]
    assert named.score(towns, y) == by_array.score(towns, y, w)
    many = towns.loc[towns.index.repeat(w)]
    assert named.score(towns, y) == pytest.approx(named.score(many, many["lwage"], 1))
    assert named.score(towns, y) != pytest.approx(named.score(towns, y, 1), rel=1e-4)
    with pytest.raises(InputError, match="sample_weight"):
        by_array.score(towns, y)
    ml = Heckman.from_formula(WAGE, WORK, towns, sample_weight="count", method="ml")
    assert ml.log_likelihood(towns, y) == pytest.approx(ml.log_likelihood_, rel=1e-9)
    # Without formulas nothing is remembered: scores are those of scikit-learn.
    plain = Heckman(PREDICT).fit(towns[COLUMNS], y, sample_weight=w)
    assert plain.score(towns[COLUMNS], y) == plain.score(towns[COLUMNS], y, np.ones(len(y)))


def test_model_files_keep_the_names_of_columns_and_the_number_of_clusters(towns, named, tmp_path):
    encoding, _ = Encoding.learn(towns[COLUMNS], COLUMNS)
    save_model(tmp_path / "named.heckmanfa", named, encoding, {})
    again = load_model(tmp_path / "named.heckmanfa").model
    pd.testing.assert_frame_equal(again.margins(towns).tidy(), named.margins(towns).tidy())
    assert str(again.summary()) == str(named.summary())
    assert again.n_clusters_ == 60


def test_a_suggestion_ends_its_sentence_once(named, towns):
    with pytest.raises(UnknownFeatureError, match=r"'counts'.*sample_weight"):
        named.margins(towns.rename(columns={"count": "counts"}))
    with pytest.raises(UnknownFeatureError, match="sample_weight"):
        named.margins(towns.drop(columns="count"))
