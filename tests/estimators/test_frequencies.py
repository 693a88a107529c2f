"""Frequency weights count rows: what is no count is refused, and what looks like none is said."""

import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

from heckmanfa import (
    Heckman,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    InverseProbabilityWeighted,
    NaiveOLS,
    compress,
    errors,
    scan_parquet,
)
from heckmanfa.analysis.comparison import compare_methods
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError

COLUMNS = ["educ", "exper", "age", "kids5", "nwifeinc"]
PREDICT = COLUMNS[:2]
WAGE, WORK = "lwage ~ educ + exper", "lfp ~ educ + exper + age + kids5 + nwifeinc"
ADVICE = "not integers.*as in a survey, use weight_kind='sampling' with cov_type='robust'"


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Mroz's women with weights of 50 to 500, whole and not, as frames and as a file."""
    d = load_mroz()[["lwage", "lfp", *COLUMNS]]
    rng = np.random.default_rng(0)
    d["weight"] = rng.uniform(50, 500, len(d))
    d["whole"] = np.round(d["weight"])
    path = tmp_path_factory.mktemp("survey") / "survey.parquet"
    d.to_parquet(path)
    return d, path


def rooms(d, path, weight):
    """Every place that takes frequency weights, as functions that fit."""
    X, y, w = d[COLUMNS], d["lwage"], d[weight]
    given = {"sample_weight": w}
    shared = {"prediction_features": PREDICT}
    frame = dd.from_pandas(d, npartitions=2)
    found = {
        "frame": lambda: Heckman(PREDICT).fit(X, y, **given),
        "array": lambda: Heckman([0, 1]).fit(X.to_numpy(), y, sample_weight=w.tolist()),
        "polars": lambda: Heckman(PREDICT).fit(pl.DataFrame(X), y, **given),
        "likelihood": lambda: Heckman(PREDICT, method="ml").fit(X, y, **given),
        "formula": lambda: Heckman.from_formula(WAGE, WORK, d, sample_weight=weight),
        "parquet": lambda: Heckman(PREDICT).fit(
            scan_parquet(path, "lwage", COLUMNS, sample_weight=weight)
        ),
        "dask": lambda: Heckman(PREDICT).fit(
            frame[COLUMNS], frame["lwage"], sample_weight=frame[weight]
        ),
        "compress": lambda: compress(X, y, **given),
        "naive": lambda: NaiveOLS(PREDICT).fit(X, y, **given),
        "ipw": lambda: InverseProbabilityWeighted(PREDICT).fit(X, y, **given),
        "best subset": lambda: HeckmanBestSubset().fit(X, y, **given),
        "fa": lambda: HeckmanFA("correlation").fit(X, y, **given),
        "lasso": lambda: HeckmanLasso().fit(X, y, **given),
        "comparison": lambda: compare_methods(
            X, y, **given, estimators={"ols": NaiveOLS(**shared)}, n_folds=2, n_repeats=1
        ),
    }
    try:
        import torch

        found["torch"] = lambda: Heckman([0, 1]).fit(
            torch.tensor(X.to_numpy()), torch.tensor(y.to_numpy()), sample_weight=torch.tensor(w)
        )
    except ImportError:
        pass
    return found


def test_weights_that_are_not_whole_are_refused_in_every_room(survey):
    for fit in rooms(*survey, "weight").values():
        with pytest.raises(InputError, match=f"753 values that are {ADVICE}"):
            fit()


def test_whole_weights_that_multiply_rows_tenfold_warn_with_both_counts_in_every_room(survey):
    d, path = survey
    counts = f"753 rows count as {d['whole'].sum():,.0f}"
    for name, fit in rooms(d, path, "whole").items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        said = [str(one.message) for one in caught if one.category is errors.FrequencyWeightWarning]
        assert len(said) == 1, name
        assert counts in said[0]
        assert "weight_kind='sampling'" in said[0]


def test_tenfold_is_the_line_and_rows_of_weight_zero_are_no_rows():
    d = load_mroz()
    X, y = d[COLUMNS], d["lwage"]
    weight = np.full(len(d), 9.0)
    weight[::2] = 0
    Heckman(PREDICT).fit(X, y, sample_weight=weight)
    weight[1] += len(d)
    with pytest.warns(errors.FrequencyWeightWarning, match=r"376.*4,137"):
        Heckman(PREDICT).fit(X, y, sample_weight=weight)


def test_sampling_weights_of_any_size_are_taken_without_a_word(survey):
    d, _ = survey
    model = Heckman.from_formula(
        WAGE, WORK, d, sample_weight="weight", weight_kind="sampling", cov_type="robust"
    )
    plain = Heckman.from_formula(WAGE, WORK, d, cov_type="robust")
    error, other = (one.tidy()["std_error"][1] for one in (model, plain))
    assert 0.5 * other < error < 2 * other


def test_the_bootstrap_and_honest_halves_do_not_judge_the_weights_they_make():
    d = load_mroz()
    X, y = d[COLUMNS], d["lwage"]
    weight = np.full(len(d), 9.0)
    model = Heckman(PREDICT).fit(X, y, sample_weight=weight)
    boot = model.bootstrap(X, y, 3, sample_weight=weight, random_state=0)
    assert boot.n_failed == 0
    assert "Frequency" not in str(boot.replicates.warnings)
    HeckmanBestSubset(honest=True, n_splits=2, random_state=0, never=["kids5"]).fit(
        X, y, sample_weight=weight
    )


@pytest.mark.parametrize(
    ("options", "weight", "words"),
    [
        ({}, "two", {"Weights": "frequency", "Log-likelihood": None, "Sum of weights": "1506"}),
        ({"cov_type": "robust"}, None, {"Log pseudolikelihood": None}),
        (
            {"cov_type": "robust", "weight_kind": "sampling"},
            "weight",
            {"Weights": "sampling", "Log pseudolikelihood": None},
        ),
    ],
)
def test_summaries_say_what_weights_are_and_what_was_maximised(survey, options, weight, words):
    d = survey[0].assign(two=2)
    model = Heckman.from_formula(WAGE, WORK, d, sample_weight=weight, method="ml", **options)
    summary = model.summary()
    facts = dict(summary.facts)
    for name, value in words.items():
        assert value is None or facts[name] == value
    assert ("Log-likelihood" in facts) == ("Log-likelihood" in words)
    assert ("Weights" in facts) == ("Weights" in words)
    pages = [str(summary), summary._repr_html_(), summary.to_latex(), summary.to_markdown()]
    for name in words:
        assert all(name in page for page in pages)


def test_a_fraction_is_found_wherever_it_is():
    d = load_mroz()
    weight = np.ones(len(d))
    weight[-1] = 1.5
    with pytest.raises(InputError, match=r"sample_weight.*1"):
        Heckman(PREDICT).fit(d[COLUMNS], d["lwage"], sample_weight=weight)
    # Numbers of any type are whole where they are.
    whole = pd.Series(np.ones(len(d)), dtype="Int64")
    for one in (whole, weight.astype(np.float32).round(), np.ones(len(d), dtype=bool), 1):
        Heckman(PREDICT).fit(d[COLUMNS], d["lwage"], sample_weight=one)


def test_reports_say_how_many_rows_there_are_and_what_the_weights_count():
    d = load_mroz()
    d = d.assign(count=1 + np.arange(len(d)) % 3, town=np.arange(len(d)) % 50)
    total = f"{d['count'].sum():,}"
    assert total == "1,506"
    model = Heckman.from_formula(WAGE, WORK, d, sample_weight="count")
    counted = f"753 rows, which the weights count as {total}"
    assert f"averaged over {counted}" in str(model.margins(d))
    assert f"at the average of {counted}" in str(model.margins(d, at="means"))
    assert counted in str(model.bootstrap(d, n_boot=3, random_state=0))
    grouped = str(model.bootstrap(d, n_boot=3, unit="town", random_state=0))
    assert f"50 groups of 'town' ({counted})" in grouped
    sampled = Heckman.from_formula(
        WAGE, WORK, d, sample_weight="count", weight_kind="sampling", cov_type="robust"
    )
    weighted = "753 rows, weighted by the sampling weights"
    assert f"averaged over {weighted}" in str(sampled.margins(d))
    assert weighted in str(sampled.bootstrap(d, n_boot=3, random_state=0))
    plain = Heckman.from_formula(WAGE, WORK, d)
    assert "averaged over 753 rows\n" in str(plain.margins(d))


def test_advice_on_weights_is_about_weights_and_about_the_model_that_is_fitted():
    d = load_mroz()
    text = np.where(d["age"] > 40, "old", "young")
    for values in (text, pd.Series(text), pd.Series(text, name="w").astype("category")):
        with pytest.raises(InputError, match="weights") as caught:
            Heckman(PREDICT).fit(d[COLUMNS], d["lwage"], sample_weight=values)
        assert "dummies" not in str(caught.value)
    share = np.full(len(d), 1.5)
    with pytest.raises(InputError) as caught:
        Heckman(PREDICT).fit(d[COLUMNS], d["lwage"], sample_weight=share)
    assert "'robust'" in str(caught.value)
    # This one has no sampling weights of its own.
    with pytest.raises(InputError, match="'cluster'"):
        NaiveOLS().fit(d[COLUMNS], d["lwage"], sample_weight=share)
    share[1:] = 1
    share[0] = -1
    with pytest.raises(InputError, match="holds 1 negative, missing or infinite value;"):
        Heckman(PREDICT).fit(d[COLUMNS], d["lwage"], sample_weight=share)
