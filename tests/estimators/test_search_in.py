"""search_in="both": its parameters, and every way that rows come in and results go out."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import heckmanfa
from heckmanfa import (
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanProbitAverage,
    HeckmanProbitBestSubset,
    scan_parquet,
)
from heckmanfa.analysis import analyse
from heckmanfa.datasets import make_selection
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit.full_form import form_of_fit
from heckmanfa.report import write_report
from heckmanfa.search.averaging import average
from heckmanfa.search.averaging.averages import with_drivers

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

SEARCHES = [HeckmanAverage, HeckmanBestSubset]
BINARY = [HeckmanProbitAverage, HeckmanProbitBestSubset]


@pytest.fixture(scope="module")
def rows():
    """Five features: x4 neither drives selection nor predicts."""
    rng = np.random.default_rng(3)
    n = 600
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=[f"x{i}" for i in range(5)])
    errors = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=n)
    selected = 0.3 + X @ [0.7, -0.6, 0.8, 0, 0] + errors[:, 0] > 0
    y = (1 + X @ [0.9, 0, 0, -0.7, 0] + errors[:, 1]).where(selected)
    return X, y


@pytest.fixture(scope="module")
def binary(rows):
    X, y = rows
    return X[["x0", "x1", "x2"]], (y > 1).where(y.notna()).astype(float)


@pytest.fixture(scope="module")
def fitted(rows):
    return {cls: cls(search_in="both").fit(*rows) for cls in SEARCHES}


@pytest.fixture(scope="module")
def fitted_binary(binary):
    return {cls: cls(search_in="both").fit(*binary) for cls in BINARY}


@pytest.mark.parametrize("cls", SEARCHES)
def test_both_equations_lose_what_says_nothing(fitted, cls):
    model = fitted[cls]
    assert model.prediction_features_ == ["x0", "x3"]
    assert model.selection_features_ == ["x0", "x1", "x2"]


def test_chances_of_both_equations_have_rows_of_their_own(fitted):
    table = fitted[HeckmanAverage].inclusion_
    assert table["equation"].tolist() == ["prediction"] * 5 + ["selection"] * 5 + ["errors"]
    driving = table[table["equation"] == "selection"].set_index("feature")
    assert driving.loc["x1", "role"] == "drives selection"
    assert driving.loc["x4", "role"] == "no sign that it drives selection"
    assert driving.loc["x1", "negative"] > 0.99
    text = str(fitted[HeckmanAverage].summary())
    assert "drives selection" in text
    features = {one.name: one for one in analyse_roles(fitted[HeckmanAverage])}
    assert features["x1"].drives_selection
    assert not features["x4"].drives_selection
    assert features["x1"].selection_chance == pytest.approx(driving.loc["x1", "bic"])
    assert np.isnan(features["x1"].selection_p)


def analyse_roles(model):
    from heckmanfa.results.evidence import evidence_of

    return evidence_of(model.fit_).features


def test_a_chosen_model_is_the_model_of_its_features(rows, fitted):
    X, y = rows
    model = fitted[HeckmanBestSubset]
    same = heckmanfa.Heckman(["x0", "x3"], ["x0", "x1", "x2"], method="ml").fit(X, y)
    np.testing.assert_allclose(model.bic_, same.bic_, rtol=1e-10)
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.selection_coef_, same.selection_coef_, rtol=1e-8)
    np.testing.assert_allclose(model.vcov(), same.vcov(), rtol=1e-7, atol=1e-10)
    assert model.log_likelihood_ == pytest.approx(model.candidates_["log_likelihood"][0])
    np.testing.assert_allclose(model.predict(X), same.predict(X), rtol=1e-8)
    report = model.search_report()
    assert report.selection_shares["feature"].tolist() == list(X.columns)
    assert "both equations" in str(report)
    assert "honest=True" not in str(report)
    # Reports that read the rows again know the chosen selection equation.
    model.specification_tests(X, y)
    model.what_if(X, y)


@pytest.mark.parametrize("cls", SEARCHES)
def test_forced_and_grouped_columns(rows, cls):
    X, y = rows
    model = cls(
        search_in="both",
        selection_always=["x4"],
        selection_never=["x3"],
        feature_groups=[["x1", "x2"]],
    ).fit(X, y)
    assert model.selection_features_ == ["x0", "x1", "x2", "x4"]
    assert model.selection_coef_[3] == 0.0
    if cls is HeckmanAverage:
        table = model.inclusion_[model.inclusion_["equation"] == "selection"]
        assert table["feature"].tolist() == ["x0", ("x1", "x2"), "x4"]
        assert table["role"].tolist()[-1] == "always included"
        for sets in model.assignments_["selection_features"]:
            assert "x4" in sets
            assert "x3" not in sets
            assert ("x1" in sets) == ("x2" in sets)


def test_levels_of_a_category_are_one_unit_in_each_equation(rows):
    X, y = rows
    table = X[["x0", "x1"]].assign(place=np.array(["a", "b", "c"])[np.arange(len(X)) % 3])
    model = HeckmanAverage(search_in="both").fit(table, y)
    assert len(model.inclusion_) == 3 + 3 + 1
    chosen = HeckmanBestSubset(search_in="both").fit(table, y)
    assert "place" not in chosen.selection_features_


REFUSED = [
    (HeckmanBestSubset, {"search_in": "selection"}, "search_in"),
    (HeckmanBestSubset, {"selection_never": ["x0"]}, "pass search_in='both'"),
    (HeckmanAverage, {"selection_always": ["x0"]}, "pass search_in='both'"),
    (HeckmanBestSubset, {"search_in": "both", "max_features": 2}, "max_features counts prediction"),
    (HeckmanBestSubset, {"search_in": "both", "rho_range": (-0.9, 0.9)}, "rho_range is for"),
    (HeckmanBestSubset, {"search_in": "both", "honest": True}, "honest=True estimates"),
    (HeckmanBestSubset, {"search_in": "both", "tolerance": 2.0}, "tolerance is for"),
    (HeckmanBestSubset, {"search_in": "both", "criterion": "adjusted_r2"}, "sum of squares"),
    (HeckmanBestSubset, {"search_in": "both", "criterion": "corrected_bic"}, "needs no correction"),
    (
        HeckmanAverage,
        {"search_in": "both", "selection_always": ["x0"], "selection_never": ["x0"]},
        "'x0' is in both selection_always and selection_never",
    ),
    (
        HeckmanAverage,
        {"search_in": "both", "selection_features": ["x0"], "selection_always": ["x1"]},
        "selection_always names 'x1', which may not drive selection",
    ),
    (
        HeckmanAverage,
        {"search_in": "both", "selection_features": ["x0"], "selection_never": ["x0"]},
        "no feature may drive selection: selection_never leaves none of selection_features",
    ),
]


@pytest.mark.parametrize(("cls", "options", "words"), REFUSED)
def test_what_a_search_of_both_does_not_have(rows, cls, options, words):
    with pytest.raises((InputError, ValueError), match=words):
        cls(**options).fit(*rows)


def test_a_likelihood_without_a_maximum_is_refused(rows, monkeypatch):
    from heckmanfa.search import full_model

    monkeypatch.setattr(full_model, "inverse_definite", lambda _: None)
    with pytest.raises(NotIdentifiedError, match="maximum"):
        HeckmanBestSubset(search_in="both").fit(*rows)


@pytest.mark.parametrize("cls", SEARCHES)
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_both_equations_are_always_estimated_by_maximum_likelihood(rows, fitted, cls, method):
    model = cls(search_in="both", method=method).fit(*rows)
    assert model.fit_.spec.method == "ml"
    np.testing.assert_array_equal(model.coef_, fitted[cls].coef_)


@pytest.mark.parametrize("cls", [*SEARCHES, *BINARY])
def test_frequency_weights_are_repeated_rows(rows, binary, cls):
    X, y = rows if cls in SEARCHES else binary
    X, y = X[["x0", "x1", "x2"]][:300], y[:300]
    weight = np.arange(len(X)) % 2 + 1
    one = cls(search_in="both").fit(X, y, sample_weight=weight)
    many = cls(search_in="both").fit(X.loc[X.index.repeat(weight)], y.loc[y.index.repeat(weight)])
    assert one.selection_features_ == many.selection_features_
    np.testing.assert_allclose(one.coef_, many.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.selection_coef_, many.selection_coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cls", [*SEARCHES, *BINARY])
def test_formulas_files_and_tables_give_the_same(rows, binary, cls, tmp_path):
    pytest.importorskip("pyarrow")
    X, y = rows if cls in SEARCHES else binary
    X = X[["x0", "x1", "x2"]]
    model = cls(search_in="both", selection_never=["x2"]).fit(X, y)
    table = X.assign(y=y)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    scanned = cls(search_in="both", selection_never=["x2"])
    scanned.fit(scan_parquet(tmp_path, outcome="y"))
    formula = cls.from_formula(
        "y ~ x0 + x1 + x2", "~ x0 + x1 + x2", table, search_in="both", selection_never=["x2"]
    )
    for other in (scanned, formula):
        assert other.selection_features_ == model.selection_features_
        np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(other.selection_coef_, model.selection_coef_, rtol=1e-6)


def test_dask_and_torch_give_the_same(rows, fitted):
    X, y = rows
    cls = HeckmanBestSubset
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(X.assign(y=y), npartitions=2)
    there = cls(search_in="both").fit(frame[list(X.columns)], frame["y"])
    np.testing.assert_allclose(there.coef_, fitted[cls].coef_, rtol=1e-6, atol=1e-9)
    torch = pytest.importorskip("torch")
    there = cls(search_in="both").fit(torch.tensor(X.to_numpy()), torch.tensor(y.to_numpy()))
    np.testing.assert_allclose(there.coef_, fitted[cls].coef_, rtol=1e-6, atol=1e-9)
    assert there.selection_features_ == [0, 1, 2]


@pytest.mark.parametrize("cls", [*SEARCHES, *BINARY])
@pytest.mark.parametrize("candidates", [True, False])
def test_a_model_file_keeps_both_equations(
    rows, binary, fitted, fitted_binary, cls, candidates, tmp_path
):
    X, _ = rows if cls in SEARCHES else binary
    model = (fitted | fitted_binary)[cls]
    path = tmp_path / "model.heckmanfa"
    heckmanfa.save(model, path, candidates=candidates)
    again = heckmanfa.load(path)
    assert again.selection_features_ == model.selection_features_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert str(again.summary()) == str(model.summary())
    assert again.get_params()["search_in"] == "both"
    if hasattr(model, "inclusion_"):
        pd.testing.assert_frame_equal(again.inclusion_, model.inclusion_)
    elif candidates:
        pd.testing.assert_frame_equal(again.candidates_, model.candidates_)


def test_a_bootstrap_searches_both_equations(rows, fitted):
    X, y = rows
    boot = fitted[HeckmanBestSubset].bootstrap(X, y, n_boot=3, random_state=0)
    assert len(boot.tidy())


def test_robust_and_clustered_covariances_weigh(rows):
    X, y = rows
    robust = HeckmanAverage(search_in="both", cov_type="robust").fit(X, y)
    groups = np.arange(len(X)) // 4
    cluster = HeckmanAverage(search_in="both", cov_type="cluster").fit(X, y, groups=groups)
    for model in (robust, cluster):
        assert model.selection_features_ == ["x0", "x1", "x2"]
        full = heckmanfa.Heckman(method="ml", cov_type=model.cov_type)
        full.fit(X, y, groups=groups if model is cluster else None)
        form = model.fit_.average.form
        np.testing.assert_allclose(
            np.sqrt(np.diag(form.covariance))[1:6],
            full.tidy()["std_error"][1:6],
            rtol=1e-10,
        )


def test_sampled_shares_are_those_of_all_assignments(rows):
    X, y = rows
    model = HeckmanAverage("bic", search_in="both").fit(X, y)
    outcome = model.fit_.average
    whole = outcome.mixture
    full = heckmanfa.Heckman(method="ml").fit(X, y)
    form = with_drivers(form_of_fit(full.fit_, both=True), whole.selecting)
    drawn = average(
        *(form, whole.choices),
        weights="bic",
        selecting=whole.selecting,
        random_state=0,
        max_units=5,
    )
    assert whole.exhaustive
    assert not drawn.exhaustive
    for kind in ("aic", "bic", "ebic"):
        np.testing.assert_allclose(
            drawn.selection_shares[kind], whole.selection_shares[kind], atol=0.02
        )
        np.testing.assert_allclose(drawn.shares[kind], whole.shares[kind], atol=0.02)
    np.testing.assert_allclose(drawn.free, whole.free, atol=0.02)


def test_a_question_about_a_table_may_search_both(rows, tmp_path):
    X, y = rows
    X = X[["x0", "x1", "x4"]]
    found = analyse(X.assign(y=y), outcome="y", search_in="both", selection_always=["x4"])
    assert isinstance(found.model, HeckmanAverage)
    assert found.model.selection_features_ == ["x0", "x1", "x4"]
    assert "--search-in both --selection-always x4" in found.question.command()
    # What is always in the selection equation has a test there, and no chance.
    chances = {one.name: one.selection_chance for one in found.evidence.features}
    assert chances["x4"] is None
    tests = {one.name: one.selection_p for one in found.evidence.features}
    assert 0.0 < tests["x4"] < 1.0
    assert np.isnan(tests["x0"])
    path = tmp_path / "report.html"
    write_report(found, path)
    page = path.read_text(encoding="utf-8")
    # Words of the glossary are marked in the page.
    text = re.sub(r"<[^>]+>", "", page)
    assert "Always in the selection equation" in text
    picture = found.pictures().selection_chances
    assert {row.name: row.share for row in picture.rows} == {
        name: chances[name] for name in ("x0", "x1")
    }
    assert picture.text().title == "How sure: the chance that it drives selection"
    assert picture.text().title in text
    assert 'id="selection-chances-table"' in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"search": "lasso"}, "leave out search='lasso'"),
        ({"search": "none"}, "leave out search='none'"),
        ({"method": "two-step"}, "by their joint likelihood"),
    ],
)
def test_questions_that_contradict_a_search_of_both(rows, options, words):
    X, y = rows
    with pytest.raises(InputError, match=words):
        analyse(X.assign(y=y), outcome="y", search_in="both", **options)


def test_the_command_line_searches_both(rows, tmp_path):
    from typer.testing import CliRunner

    from heckmanfa.cli import app

    X, y = rows
    X[["x0", "x1", "x4"]].assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    words = ["fit", str(tmp_path / "rows.csv"), "--outcome", "y", "--search-in", "both"]
    words += ["--search", "best-subset", "--json", "-"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    roles = {one["feature"]: one for one in json.loads(done.stdout)["roles"]}
    assert roles["x1"]["selection_chance"] > 0.9
    refused = CliRunner().invoke(app, [*words[:4], "--selection-never", "x0"])
    assert refused.exit_code != 0
    assert "--search-in both" in refused.output


@pytest.mark.study
def test_randhie_year_2_is_proven_in_seconds():
    folder = Path(os.environ.get("HECKMANFA_DATA", "")) / "randhie_year2.csv"
    if not folder.is_file():
        pytest.skip("randhie_year2.csv is not in HECKMANFA_DATA")
    table = pd.read_csv(folder)
    X = table.drop(columns=["binexp", "lnmeddol"])
    y = table["lnmeddol"].where(table["binexp"] == 1)
    model = HeckmanBestSubset(search_in="both").fit(X, y)
    assert model.bic_ <= 20591.694
    assert model.optimal_
    assert model.gap_ == 0.0
    found = heckmanfa.Heckman(
        model.prediction_features_, model.selection_features_, method="ml"
    ).fit(X, y)
    np.testing.assert_allclose(found.bic_, model.bic_, rtol=1e-10)


def test_no_missing_outcome_leaves_nothing_to_search():
    data = make_selection(100, 3, 2, random_state=0)
    for cls in SEARCHES:
        model = cls(search_in="both").fit(data.X, np.nan_to_num(data.y))
        assert model.selection_features_ == []
