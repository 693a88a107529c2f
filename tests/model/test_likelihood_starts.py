"""Where maximum likelihood starts, and the two maxima of Greene's equations for Mroz's data.

The higher maximum (log-likelihood -1479.654, rho 0.993) and the published one (-1581.2577, rho
-0.132) are those of R's sampleSelection, from starting values near each.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm
from sklearn.base import clone

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso, compress
from heckmanfa.analysis import load_model, save_model
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import InputError, RhoUncertainWarning, SecondMaximumWarning
from heckmanfa.inference.profile_likelihood import profile_rho
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.joint_problem import LinearProblem
from heckmanfa.model.likelihood import maximize
from heckmanfa.model.newton import ProfileStarts, starting_point
from heckmanfa.model.two_step import fit_two_step

SELECTION = ["age", "age2", "faminc", "kids", "educ"]
PREDICTION = ["exper", "exper2", "educ", "city"]
LOWER, HIGHER = (-1581.2577, -0.132), (-1479.654, 0.993)


@pytest.fixture(scope="module")
def greene(case):
    data = case("mroz_greene")
    return data.X, data.y


def fit(greene, start=None, **other):
    model = Heckman(PREDICTION, SELECTION, method="ml", start=start, **other)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecondMaximumWarning)
        warnings.simplefilter("ignore", RhoUncertainWarning)
        return model.fit(*greene)


@pytest.fixture(scope="module")
def lower(greene):
    return fit(greene)


@pytest.fixture(scope="module")
def higher(greene):
    return fit(greene, 0.9)


@pytest.mark.parametrize(
    ("start", "expected"), [(0.9, HIGHER), (0.999, HIGHER), (-0.5, LOWER), (None, LOWER)]
)
def test_a_rho_to_start_from_leads_to_the_maximum_beside_it(greene, start, expected):
    model = fit(greene, start)
    assert model.log_likelihood_ == pytest.approx(expected[0], abs=5e-4)
    assert model.rho_ == pytest.approx(expected[1], abs=5e-4)
    assert model.converged_
    X, y = greene
    assert model.log_likelihood(X, y) == pytest.approx(model.log_likelihood_, rel=1e-10)


def test_the_lr_test_uses_the_higher_of_two_maxima(greene, lower, higher):
    """Chi-squared of both hypotheses' highest likelihoods: a probit and OLS made with SciPy."""
    X, y = greene
    s = y.notna().to_numpy()
    w = np.column_stack([np.ones(s.sum()), X.loc[s, PREDICTION]])
    sse = np.linalg.lstsq(w, y[s].to_numpy(), rcond=None)[1][0]
    apart = -0.5 * s.sum() * (np.log(2 * np.pi * sse / s.sum()) + 1)
    two_step = Heckman(PREDICTION, SELECTION).fit(X, y)
    index = norm.ppf(two_step.predict_selection(X))
    apart += np.sum(norm.logcdf(np.where(s, index, -index)))
    expected = 2 * (HIGHER[0] - apart)
    for model in (lower, higher):
        found = model.diagnostics().rho_lr
        assert found.statistic == pytest.approx(expected, abs=5e-3)
        assert found.p_value == pytest.approx(chi2.sf(found.statistic, 1), rel=1e-9)


def test_diagnostics_and_summary_say_which_of_two_maxima_is_reported(lower, higher):
    lines = {line[0]: line for line in lower.diagnostics().lines()}
    _, value, verdict, _ = lines["maxima of the likelihood"]
    assert verdict == "problem"
    assert "rho 0.993" in value
    lines = {line[0]: line for line in higher.diagnostics().lines()}
    assert lines["maxima of the likelihood"][2] == "caution"
    assert lines["rho"][2] == "problem"
    for model, said in ((lower, "lower of two maxima"), (higher, "higher of two maxima")):
        assert said in " ".join(str(model.summary()).split())
        frame = model.diagnostics().to_frame().set_index("diagnostic")
        assert "maxima of the likelihood" in frame.index
        assert model.diagnostics().to_dict()["second_maximum"] == model.fit_.second_maximum


def test_only_a_higher_maximum_is_warned_of(greene):
    X, y = greene
    with pytest.warns(SecondMaximumWarning, match=r"0\.99"):
        Heckman(PREDICTION, SELECTION, method="ml", start=-0.4).fit(X, y)
    with pytest.warns(RhoUncertainWarning, match=r"0\.993"):
        # Other warnings are errors.
        Heckman(PREDICTION, SELECTION, method="ml", start=0.99).fit(X, y)


def test_params_are_all_parameters_in_the_order_of_the_documents(higher):
    prediction = [PREDICTION.index(name) for name in ("exper", "exper2", "educ", "city")]
    assert sorted(prediction) == [0, 1, 2, 3]
    tidy = higher.tidy()
    stated = tidy[tidy["equation"] != "errors"]["estimate"]
    np.testing.assert_allclose(higher.params_[:-2], stated, rtol=1e-14)
    assert np.exp(higher.params_[-2]) == pytest.approx(higher.sigma_, rel=1e-14)
    assert np.tanh(higher.params_[-1]) == pytest.approx(higher.rho_, rel=1e-14)
    assert Heckman(["educ"]).fit(*small()).params_ is None


def small():
    mroz = load_mroz()
    return mroz[["educ", "exper", "age", "kids5", "nwifeinc"]], mroz["lwage"]


def test_a_parameter_vector_is_a_start_whatever_the_units(greene, higher):
    again = fit(greene, higher.params_)
    np.testing.assert_allclose(again.params_, higher.params_, rtol=1e-8)
    assert again.log_likelihood_ == pytest.approx(higher.log_likelihood_, abs=1e-8)
    X, y = greene
    other = fit((X * 1000.0 + 5.0, y), 0.9)
    moved = fit((X * 1000.0 + 5.0, y), list(other.params_))
    np.testing.assert_allclose(moved.params_, other.params_, rtol=1e-6)
    assert moved.rho_ == pytest.approx(higher.rho_, abs=1e-6)


@pytest.mark.parametrize("start", [0.9, np.float64(0.9), np.array([0.5, 0.1]), [0.5, 0.1], None])
def test_a_start_survives_clone_and_parameters(start):
    model = Heckman(["educ"], method="ml", start=start)
    assert model.get_params()["start"] is start
    copy = clone(model)
    assert type(copy.start) is type(start)
    np.testing.assert_array_equal(np.asarray(copy.start, float), np.asarray(start, float))
    np.testing.assert_array_equal(
        np.asarray(pickle.loads(pickle.dumps(model)).start, float), np.asarray(start, float)
    )
    assert clone(copy).set_params(start=0.25).start == 0.25
    assert "Heckman" in repr(model)
    assert "Heckman" in model._repr_html_()
    for search in (HeckmanFA, HeckmanBestSubset, HeckmanLasso):
        assert clone(search(method="ml", start=start)).get_params()["start"] is not None or (
            start is None
        )


def test_a_model_with_a_start_is_saved_and_loaded(tmp_path, greene, higher):
    encoding, X = Encoding.learn(greene[0], list(greene[0].columns))
    for start in (0.9, higher.params_, list(higher.params_), np.float64(0.9)):
        model = fit((X, greene[1]), start)
        save_model(tmp_path / "m.heckmanfa", model, encoding, {}, force=True)
        loaded = load_model(tmp_path / "m.heckmanfa").model
        np.testing.assert_array_equal(loaded.params_, model.params_)
        np.testing.assert_array_equal(np.asarray(loaded.start), np.asarray(start))
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert str(loaded.diagnostics()) == str(model.diagnostics())


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (1.0, r"rho inside \(-1, 1\)"),
        (float("nan"), r"rho inside \(-1, 1\)"),
        ("0.5", r"rho inside \(-1, 1\)"),
        (True, r"rho inside \(-1, 1\)"),
        ([0.1, np.nan], "missing or infinite"),
        ([[0.1, 0.2]], "2 dimensions"),
        (["a", "b"], "does not hold numbers"),
        ([0.1, 0.2], "start has 2 entries, but this model has 10 parameters: 2 of the prediction"),
        (np.r_[np.full(8, 1e200), 0.0, 0.0], "the likelihood at start is zero or not a number"),
    ],
)
def test_a_start_that_is_none_is_refused(start, message):
    with pytest.raises(InputError, match=message):
        Heckman(["educ"], method="ml", start=start).fit(*small())


@pytest.mark.parametrize("kind", [Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso])
def test_the_two_steps_start_nowhere(kind):
    with pytest.raises(InputError, match="method"):
        kind(start=0.5).fit(*small())


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.RhoUncertainWarning")
def test_formulas_weights_and_covariances_take_a_start(greene, higher):
    X, y = greene
    frame = X.assign(wage=y, town=np.arange(len(y)) % 50)
    prediction, selection = "wage ~ " + " + ".join(PREDICTION), " + ".join(SELECTION)
    for more in (
        {},
        {"sample_weight": np.full(len(y), 2.0)},
        {"cov_type": "robust"},
        {"cov_type": "cluster", "groups": "town"},
        {
            "cov_type": "robust",
            "weight_kind": "sampling",
            "sample_weight": np.full(len(y), 3.0),
        },
    ):
        model = Heckman.from_formula(
            prediction, selection, data=frame, method="ml", start=0.9, **more
        )
        assert model.rho_ == pytest.approx(higher.rho_, abs=1e-6)
        assert model.fit_.second_maximum[1] == pytest.approx(-0.132, abs=5e-4)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.RhoUncertainWarning")
def test_a_search_refits_its_choice_from_the_start(greene):
    X, y = greene
    model = HeckmanBestSubset(method="ml", start=0.9, prediction_features=PREDICTION)
    model.set_params(selection_features=SELECTION).fit(X, y)
    usual = clone(model).set_params(start=None)
    with pytest.warns(SecondMaximumWarning):
        usual.fit(X, y)
    assert usual.prediction_features_ == model.prediction_features_
    assert model.rho_ > 0.9 > usual.rho_
    assert model.fit_.second_maximum[0] == pytest.approx(usual.log_likelihood_, abs=1e-6)
    again = clone(model).set_params(start=model.params_).fit(X, y)
    np.testing.assert_allclose(again.params_, model.params_, rtol=1e-7)


def test_a_bootstrap_finds_the_maximum_of_the_fit(greene, higher):
    for model in (higher, fit(greene, higher.params_)):
        found = model.bootstrap(*greene, n_boot=3, random_state=0)
        assert (found.replicates.estimates[:, -2] > 0.9).all()


def test_the_profile_marks_the_maximum_that_a_start_leads_to(greene, lower, higher):
    for model, verdict in ((lower, "problem"), (higher, "caution")):
        profile = profile_rho(model, *greene, grid=9)
        assert profile.rho_hat == pytest.approx(model.rho_, abs=1e-6)
        lines = [
            line
            for line in model.diagnostics(include=profile).lines()
            if line[0] == "maxima of the likelihood"
        ]
        assert [line[2] for line in lines] == [verdict]


def test_tests_of_exclusions_find_the_same_maximum(greene, lower, higher):
    X, y = greene
    for model, near in ((lower, -0.2), (higher, 0.99)):
        table = model.exclusion_test(X, y, features=["age2"], method="ml").tests
        assert table["rho"].iloc[0] == pytest.approx(near, abs=0.2)
        assert ("higher maximum" in table["note"].iloc[0]) == (model is lower)


def test_a_start_gives_the_same_on_tensors_files_and_clusters(tmp_path):
    torch = pytest.importorskip("torch")
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("pyarrow")
    from heckmanfa import scan_parquet

    data = make_selection(600, 4, 2, rho=0.5, random_state=2)
    names = [f"x{column}" for column in range(4)]
    frame = pd.DataFrame(data.X, columns=names).assign(y=data.y)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=100)
    support = [names[int(column)] for column in np.flatnonzero(data.support)]
    model = Heckman(support, method="ml", start=-0.5)
    usual = Heckman(support, method="ml").fit(frame[names], frame["y"])
    expected = clone(model).fit(frame[names], frame["y"]).params_
    np.testing.assert_allclose(expected, usual.params_, rtol=1e-6)
    parts = dd.from_pandas(frame, npartitions=3)
    positions = Heckman(np.flatnonzero(data.support), method="ml", start=-0.5)
    for found in (
        clone(model).fit(scan_parquet(tmp_path / "t.parquet", "y")),
        clone(model).fit(parts[names], parts["y"]),
        positions.fit(torch.from_numpy(data.X), torch.from_numpy(data.y)),
    ):
        np.testing.assert_allclose(found.params_, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("start", [0.9, None])
def test_a_maximum_that_is_wanted_alone_is_not_compared_with_others(greene, start):
    """The higher one from a start, the published one without: each knows of the other, or not."""
    X, y = greene
    selection = [X.columns.get_loc(name) for name in SELECTION]
    prediction = tuple(sorted(X.columns.get_loc(name) for name in PREDICTION))
    found = compress(X, y, selection_features=selection)
    rows, moments, probit = found.rows, found.moments, found.probit
    two_step = fit_two_step(moments, probit, prediction, CLASSICAL, rows)
    problem = LinearProblem.build(moments, probit, two_step.features)
    given = (
        *(rows, problem, two_step.features, CLASSICAL),
        starting_point(problem, probit, two_step),
        ProfileStarts.build(moments, probit, two_step.features, problem),
        start,
    )
    expected, other = (HIGHER, LOWER) if start else (LOWER, HIGHER)
    for alone in (False, True):
        found = maximize(*given, alone=alone)
        assert np.tanh(found["inner_params"][-1]) == pytest.approx(expected[1], abs=5e-4)
        second = found["second_maximum"]
        assert second is None if alone else second[1] == pytest.approx(other[1], abs=5e-4)
