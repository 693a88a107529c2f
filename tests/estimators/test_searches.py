"""HeckmanFA and HeckmanBestSubset: a Heckman model afterwards, with a search report."""

import io
import re
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
import rich.console
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import heckmanfa
from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanFA
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    AllObservedWarning,
    CollinearError,
    DroppedFeaturesWarning,
    HeckmanfaWarning,
    InputError,
    NoExclusionWarning,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    SearchWarning,
    UnknownFeatureError,
)
from heckmanfa.model_selection import SelectionKFold, observed_r2

# Some searches choose badly, and the model says so; that is not what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.RhoOutsideWarning")

NAMES = ["age", "educ", "exper", "kids", "income", "city"]
SEARCHES = {
    "sample": HeckmanFA(epochs=150, n_draws=200, random_state=0),
    "rank": HeckmanFA("rank", epochs=150, random_state=0),
    "correlation": HeckmanFA("correlation"),
    "best subset": HeckmanBestSubset(),
}


@pytest.fixture(params=list(SEARCHES))
def search(request):
    return clone(SEARCHES[request.param])


@pytest.fixture
def frame(simulated):
    return pd.DataFrame(simulated.X.copy(), columns=NAMES)


@pytest.fixture(scope="module")
def mroz():
    data = load_mroz()
    columns = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem"]
    return data[columns], data["lwage"]


# The scikit-learn contract. -----------------------------------------------------------------------


def test_each_is_a_heckman_of_the_features_it_chose(search, frame, simulated):
    model = search.fit(frame, simulated.y)
    plain = Heckman(model.prediction_features_).fit(frame, simulated.y)
    assert isinstance(model, Heckman)
    for name in ("coef_", "selection_coef_", "rho_", "sigma_", "adjusted_r2_", "bic_"):
        np.testing.assert_allclose(getattr(model, name), getattr(plain, name), rtol=1e-12)
    assert model.support_.tolist() == plain.support_.tolist()
    assert (model.n_obs_, model.row_counts_) == (plain.n_obs_, plain.row_counts_)
    pd.testing.assert_frame_equal(model.tidy(), plain.tidy())
    pd.testing.assert_frame_equal(model.vcov(), plain.vcov())
    for kind in ("marginal", "selected", "unselected"):
        np.testing.assert_allclose(
            model.predict(frame, kind), plain.predict(frame, kind), rtol=1e-12
        )
    checks = model.diagnostics().checks()
    # But for the words that the features were found in these rows, and what the choice hides.
    after = ["search_ignored", "best_set", "left_out", "stand_ins", "outside_weight"]
    after += ["weight_kinds", "imr_optional", "all_features_test"]
    assert [check.key for check in checks if check.key in after] == after
    others = [check for check in checks if check.key not in after]
    expected = list(plain.diagnostics().checks())
    # A test of rho proves nothing where the data chose the exclusions.
    for found in (others, expected):
        (test,) = [check for check in found if check.key == "rho_test"]
        found.remove(test)
    assert others == expected


def test_maximum_likelihood_refits_what_was_chosen(frame, simulated):
    by_steps = HeckmanBestSubset().fit(frame, simulated.y)
    by_ml = HeckmanBestSubset(method="ml", cov_type="robust").fit(frame, simulated.y)
    assert by_ml.prediction_features_ == by_steps.prediction_features_
    plain = Heckman(by_ml.prediction_features_, method="ml", cov_type="robust")
    plain.fit(frame, simulated.y)
    np.testing.assert_allclose(by_ml.coef_, plain.coef_, rtol=1e-12)
    assert by_ml.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-12)
    assert f"{by_ml.rho_:.5g}" in str(by_ml.summary()).split("Beside other models")[1]


def test_a_grid_search_over_a_search(simulated):
    grid = GridSearchCV(
        HeckmanBestSubset(),
        {"criterion": ["bic", "aic"], "max_features": [2, 4]},
        cv=SelectionKFold(3, shuffle=True, random_state=0),
        scoring=observed_r2,
    )
    assert grid.fit(simulated.X, simulated.y).best_params_["max_features"] == 4


def test_formulas_say_what_may_predict():
    model = HeckmanBestSubset.from_formula(
        "log(wage) ~ educ + exper + I(exper**2) + age + city",
        "nwifeinc + educ + exper + I(exper**2) + age + kids5 + kids618 + city",
        data=load_mroz(),
        always=["educ"],
    )
    assert "educ" in model.prediction_features_
    assert set(model.prediction_features_) <= {"educ", "exper", "I(exper ** 2)", "age", "city"}
    assert len(model.predict(load_mroz())) == 753


def test_the_public_names_are_there():
    assert heckmanfa.assignment.train is not None
    for name in ("HeckmanFA", "HeckmanBestSubset", "assignment"):
        assert name in heckmanfa.__all__
        assert name in dir(heckmanfa)


# What may be chosen. ------------------------------------------------------------------------------


def test_features_can_be_forced_in_and_out_by_name(search, frame, simulated):
    search.set_params(always=["city"], never=["age"])
    model = search.fit(frame, simulated.y)
    assert "city" in model.prediction_features_
    assert "age" not in model.prediction_features_
    for features in model.candidates_["features"]:
        assert "city" in features
        assert "age" not in features
    if hasattr(model, "inclusion_prob_") and search.extraction != "correlation":
        assert model.inclusion_prob_[5] == 1.0
        assert model.inclusion_prob_[0] == 0.0


def test_no_more_features_than_asked_for(search, frame, simulated):
    model = search.set_params(max_features=2).fit(frame, simulated.y)
    assert model.candidates_["n_features"].max() <= 2


@pytest.mark.parametrize("as_mapping", [False, True])
def test_groups_move_as_one(search, frame, simulated, as_mapping):
    groups = [["age", "income"], ["exper", "kids"]]
    if as_mapping:
        groups = {"one": groups[0], "two": groups[1]}
    model = search.set_params(feature_groups=groups).fit(frame, simulated.y)
    for features in model.candidates_["features"]:
        assert ("age" in features) == ("income" in features)
        assert ("exper" in features) == ("kids" in features)


def test_a_group_loses_what_cannot_predict_and_keeps_the_rest(frame, simulated):
    frame["never seen"] = np.where(simulated.selected, 0.0, 1.0)  # a level without an outcome
    frame["twice"] = 2 * frame["exper"]
    groups = [["exper", "never seen", "twice"]]
    model = HeckmanBestSubset(selection_features=NAMES, feature_groups=groups)
    with pytest.warns(DroppedFeaturesWarning, match=r"'never seen'.*'twice'"):
        model.fit(frame, simulated.y)
    assert model.prediction_features_ == ["age", "exper", "kids"]
    plain = HeckmanBestSubset(selection_features=NAMES, never=["never seen", "twice"])
    assert model.bic_ == pytest.approx(plain.fit(frame, simulated.y).bic_)
    with pytest.raises(CollinearError, match=r"'twice'.*'exper'"):
        HeckmanBestSubset(selection_features=NAMES, always=["exper", "twice"]).fit(
            frame, simulated.y
        )


def test_columns_that_never_predict_nor_select_are_not_read(frame, simulated):
    frame["empty"] = np.nan
    model = HeckmanBestSubset(selection_features=NAMES, never=["empty"]).fit(frame, simulated.y)
    assert len(model.predict(frame)) == 800


def test_terms_of_a_formula_can_be_named_and_their_dummies_move_as_one():
    data = load_mroz().assign(region=lambda d: np.array(list("abc"))[np.arange(len(d)) % 3])
    formulas = (
        "log(wage) ~ educ + exper + I(exper**2) + C(region)",
        "nwifeinc + educ + exper + I(exper**2) + C(region) + kids5 + age",
    )
    dummies = {"C(region)[T.b]", "C(region)[T.c]"}
    model = HeckmanBestSubset.from_formula(*formulas, data, always=["C(region)", "I(exper**2)"])
    assert dummies | {"I(exper ** 2)"} <= set(model.prediction_features_)
    free = HeckmanBestSubset.from_formula(*formulas, data, criterion="aic", tolerance=20.0)
    assert {len(dummies & set(one)) for one in free.candidates_["features"]} == {0, 2}
    without = HeckmanBestSubset.from_formula(*formulas, data, never=["C(region)"])
    assert not dummies & set(without.prediction_features_)
    groups = [["exper", "I(exper**2)"]]
    grouped = HeckmanBestSubset.from_formula(*formulas, data, feature_groups=groups)
    pair = {"exper", "I(exper ** 2)"}
    assert {len(pair & set(one)) for one in grouped.candidates_["features"]} <= {0, 2}


def test_prediction_features_are_the_candidates(search, frame, simulated):
    model = search.set_params(prediction_features=["age", "educ", "exper"])
    model.fit(frame, simulated.y)
    assert set(model.prediction_features_) <= {"age", "educ", "exper"}
    assert len(model.selection_features_) == 6


def test_a_column_constant_among_the_selected_rows_is_not_chosen_and_not_fatal(frame, simulated):
    frame.loc[simulated.selected, "age"] = 3.0
    with pytest.warns(DroppedFeaturesWarning, match="'age'"):
        model = HeckmanBestSubset(selection_features=NAMES[1:]).fit(frame, simulated.y)
    assert "age" not in model.prediction_features_
    with pytest.raises(CollinearError, match="'age'"):
        HeckmanBestSubset(selection_features=NAMES[1:], always=["age"]).fit(frame, simulated.y)


PAIR = {"feature_groups": [["age", "educ"]]}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"always": ["age"], "never": ["age"]}, "'age'.*always.*never"),
        ({"never": NAMES}, "no feature"),
        ({"always": "age"}, r"\['age'\]"),
        ({"always": ["age", "city"], "max_features": 1}, "max_features is 1.*always"),
        ({"max_features": 0}, "max_features"),
        ({"feature_groups": [["age", "educ"], ["educ", "city"]]}, "feature_groups.*'educ'.*two"),
        ({"feature_groups": "age"}, "feature_groups"),
        ({"feature_groups": ["age", "educ"]}, "list of lists.*'age'"),
        ({"feature_groups": {"one": "age"}}, "list of lists.*'age'"),
        ({"prediction_features": []}, "prediction_features"),
        ({**PAIR, "always": ["age"]}, "always.*'age'.*'educ'"),
        ({**PAIR, "never": ["educ"]}, "never.*'educ'.*'age'"),
        ({"prediction_features": ["age"], "always": ["educ"]}, "always.*'educ'"),
        ({"rho_range": (0.5, 0.1)}, "rho_range"),
        ({"rho_range": (-1.2, 0.1)}, r"rho_range.*\(-1, 1\)"),
        ({"rho_range": 0.1}, "rho_range"),
        ({"criterion": "r2"}, "criterion"),
    ],
)
@pytest.mark.parametrize("kind", [HeckmanFA, HeckmanBestSubset])
def test_what_makes_no_sense_is_refused(kind, options, words, frame, simulated):
    with pytest.raises(InputError, match=words):
        kind(**options).fit(frame, simulated.y)


@pytest.mark.parametrize(
    ("name", "columns", "words"),
    [
        ("always", ["ages"], "'ages'.*'age'"),
        ("never", ["agee"], "'agee'.*'age'"),
        ("feature_groups", [["age", "eduk"]], "'eduk'.*'educ'"),
    ],
)
@pytest.mark.parametrize("kind", [HeckmanFA, HeckmanBestSubset])
def test_features_that_x_does_not_have_are_named(kind, name, columns, words, frame, simulated):
    with pytest.raises(UnknownFeatureError, match=f"{name}.*{words}"):
        kind(**{name: columns}).fit(frame, simulated.y)


@pytest.mark.parametrize(
    "options",
    [
        {"extraction": "best"},
        {"init_prob": 1.0},
        {"epochs": 0},
        {"learning_rate": 0.0},
        {"temperature": -1.0},
        {"n_draws": 0},
        {"standardize": "outcome"},
        {"step_on": "tau"},
    ],
)
def test_parameters_of_the_training_are_checked_by_name(options, frame, simulated):
    with pytest.raises(InputError, match=next(iter(options))):
        HeckmanFA(**options).fit(frame, simulated.y)


# The report. --------------------------------------------------------------------------------------


def test_candidates_are_solved_and_sorted(search, frame, simulated):
    model = search.fit(frame, simulated.y)
    table = model.candidates_
    columns = ["features", "n_features", "rho", "adjusted_r2", "aic", "bic", "ebic", "in_range"]
    assert table.columns.tolist() == columns
    assert list(table["features"][0]) == model.prediction_features_
    assert table["rho"][0] == pytest.approx(model.rho_, rel=1e-8)
    assert table["features"].is_unique
    assert model.n_assignments_ >= len(table)
    values = table[model.criterion] * (1 if model.criterion == "adjusted_r2" else -1)
    assert values.is_monotonic_decreasing
    last = table.iloc[-1]
    plain = Heckman(list(last["features"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        plain.fit(frame, simulated.y)
    assert last["bic"] == pytest.approx(plain.bic_, rel=1e-8)
    assert last["adjusted_r2"] == pytest.approx(plain.adjusted_r2_, rel=1e-8)


def test_the_report_says_how_much_the_choice_matters(frame, simulated):
    model = HeckmanBestSubset("adjusted_r2").fit(frame, simulated.y)
    report = model.search_report()
    assert report.tolerance == 0.001
    near = [model.candidates_["adjusted_r2"] >= model.adjusted_r2_ - 0.001]
    assert report.n_near == int(np.sum(near))
    assert not report.near_is_cut
    assert report.runner_ups["features"].tolist() == model.candidates_["features"].tolist()[:10]
    # The spread is that of fits one by one; the one of all features has no exclusion restriction.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        fits = [
            Heckman(list(features)).fit(frame, simulated.y)
            for features in model.candidates_["features"][: report.n_near]
        ]
    spread = report.spread.set_index("term")
    values = {"rho": [one.rho_ for one in fits], "imr": [one.imr_coef_ for one in fits]}
    for place, name in enumerate(NAMES):
        values[name] = [one.coef_[place] for one in fits if one.support_[place]]
    assert {*spread.index} == {name for name in values if values[name]}
    for name, row in spread.iterrows():
        assert row["low"] == pytest.approx(min(values[name]), rel=1e-8)
        assert row["high"] == pytest.approx(max(values[name]), rel=1e-8)
        assert row["share"] == pytest.approx(len(values[name]) / report.n_near)
    assert spread.loc["rho", "low"] < spread.loc["rho", "high"]
    with pytest.raises(InputError, match=r"fit with tolerance=0\.01"):
        model.search_report(tolerance=0.01)
    for nonsense in (-1, "a"):
        with pytest.raises(InputError, match="tolerance"):
            model.search_report(tolerance=nonsense)
    assert model.search_report(tolerance=0).n_near == 1
    wider = HeckmanBestSubset("adjusted_r2", tolerance=0.5).fit(frame, simulated.y)
    assert wider.search_report().tolerance == 0.5
    assert wider.search_report().n_near > report.n_near
    assert "<table>" in report._repr_html_()
    assert HeckmanBestSubset("bic").fit(frame, simulated.y).search_report().tolerance == 2.0


def test_the_summary_sets_other_models_beside_and_says_what_standard_errors_ignore(mroz):
    X, y = mroz
    model = HeckmanBestSubset().fit(X, y)
    summary = model.summary()
    assert "512" in str(summary)
    table = summary.comparison.set_index("term")
    with pytest.warns(NoExclusionWarning):
        everything = Heckman().fit(X, y)
    for place, name in enumerate(X):
        assert table.loc[name, "all_features"] == pytest.approx(everything.coef_[place], rel=1e-6)
    assert table.loc["rho", "all_features"] == pytest.approx(everything.rho_, rel=1e-6)
    worked = y.notna()
    design = np.column_stack([np.ones(worked.sum()), X.loc[worked, model.prediction_features_]])
    naive = np.linalg.lstsq(design, y[worked], rcond=None)[0]
    np.testing.assert_allclose(
        table.loc[["Intercept", *model.prediction_features_], "naive"], naive, rtol=1e-8
    )
    left_out = [name for name in X if name not in model.prediction_features_]
    assert table.loc[left_out, ["chosen", "naive"]].isna().all(axis=None)


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_after_a_window_nothing_tests_rho(method, mroz):
    X, y = mroz
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model = HeckmanBestSubset(rho_range=(-0.5, -0.05), method=method).fit(X, y)
    assert model.candidates_["in_range"].all()
    tidy = model.tidy().set_index("term")
    about = tidy.loc[["imr", "rho"], ["statistic", "p_value", "ci_low", "ci_high"]]
    assert about.isna().all(axis=None)
    assert np.isfinite(tidy.loc["educ", "p_value"]).all()
    found = model.diagnostics()
    assert found.rho_wald is None
    assert found.rho_lr is None
    assert found.rho_conditioned
    assert "[-0.5, -0.05]" in str(model.summary())
    with pytest.raises(NotIdentifiedError, match="conditioned"):
        model.wald_test("imr = 0")
    assert model.wald_test("educ = 0").p_value < 1
    free = HeckmanBestSubset(method=method).fit(X, y)
    assert free.diagnostics().rho_wald is not None
    assert "conditioned" not in str(free.summary())


def test_maximum_likelihood_that_leaves_the_window_says_so():
    data = make_selection(300, 5, 2, rho=0.5, random_state=11)
    with pytest.warns(SearchWarning, match=r"0\.2\d+.*rho_range.*0\.3, 0\.6"):
        model = HeckmanBestSubset(rho_range=(0.3, 0.6), method="ml").fit(data.X, data.y)
    assert "outside" in str(model.summary())


def test_a_refit_forgets_the_window(mroz):
    X, y = mroz
    model = HeckmanBestSubset(rho_range=(-0.5, -0.05)).fit(X, y)
    model.set_params(rho_range=None).fit(X, y)
    assert model.diagnostics().rho_wald is not None


def test_no_assignment_in_the_window_is_an_error_that_says_what_was_seen(search, mroz):
    X, y = mroz
    search.set_params(rho_range=(0.97, 0.99))
    with pytest.raises(NoFeasibleAssignmentError) as caught:
        search.fit(X, y)
    assert re.search(r"\d+ .*\[0.97, 0.99\].*quartiles.*nearest", str(caught.value))
    assert issubclass(NoFeasibleAssignmentError, ValueError)


def test_choosing_every_selection_feature_warns(simulated):
    with pytest.warns(NoExclusionWarning, match="every selection feature"):
        HeckmanBestSubset(always=range(6)).fit(simulated.X, simulated.y)


def test_without_a_missing_outcome_nothing_is_searched(search, frame, simulated):
    with pytest.warns(AllObservedWarning):
        model = search.set_params(never=["city"]).fit(frame, simulated.complete_y)
    assert model.prediction_features_ == NAMES[:-1]
    assert model.n_assignments_ == 0
    with pytest.raises(NotIdentifiedError, match="nothing was searched"):
        _ = model.candidates_
    with pytest.raises(NotIdentifiedError, match="nothing was searched"):
        model.search_report()
    assert not hasattr(model, "candidates_")
    assert not hasattr(model, "optimal_")
    with pytest.warns(AllObservedWarning) as caught:
        search.set_params(max_features=2).fit(frame, simulated.complete_y)
    assert any("max_features" in str(one.message) for one in caught)


def test_separating_columns_take_no_part(simulated):
    X = np.column_stack([simulated.X, np.where(simulated.selected, 0.0, 1.0)])
    X[np.flatnonzero(~simulated.selected)[:50], 6] = 0.0
    model = HeckmanBestSubset(on_separation="drop", feature_groups=[[0, 6]])
    with pytest.warns(HeckmanfaWarning):
        model.fit(X, simulated.y)
    assert 6 not in model.prediction_features_


@pytest.mark.parametrize("kind", [HeckmanBestSubset, HeckmanAverage])
def test_a_copy_left_out_of_selection_is_no_rival_of_its_original(simulated, kind):
    X, y = simulated.X, simulated.y
    alone = kind().fit(X, y)
    both = np.column_stack([X, 2.0 * X[:, 0] + 1.0, X[:, 1] - X[:, 2]])
    with pytest.warns(DroppedFeaturesWarning):
        model = kind(on_collinear="drop").fit(both, y)
    np.testing.assert_allclose(model.coef_[:-2], alone.coef_, atol=1e-9)
    assert not model.coef_[-2:].any()
    with pytest.warns(DroppedFeaturesWarning):
        asked = kind(on_collinear="drop", always=[6]).fit(both, y)
    assert 6 in asked.prediction_features_
    with pytest.warns(DroppedFeaturesWarning):
        # Nothing that may predict makes up the copy.
        instead = kind(prediction_features=[1, 2, 3, 4, 5, 6], on_collinear="drop").fit(both, y)
    # The index of an average lacks what does not select.
    close = 1e-9 if kind is HeckmanBestSubset else 1e-2
    assert instead.coef_[6] == pytest.approx(alone.coef_[0] / 2.0, abs=close)


# Reproducibility, progress, and Ctrl-C. -----------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_on_one_and_two_workers(search, monkeypatch):
    data = make_selection(40_000, 6, 3, random_state=0)
    fits = []
    for workers in ("1", "2"):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", workers)
        model = clone(search).fit(data.X, data.y)
        candidates = model.candidates_[["rho", "bic", "adjusted_r2"]].to_numpy().tobytes()
        fits.append((model.coef_.tobytes(), candidates, model.prediction_features_))
    assert fits[0] == fits[1]


def test_seeds_generators_and_random_states_are_taken(frame, simulated):
    def fit(seed):
        return HeckmanFA(epochs=30, random_state=seed).fit(frame, simulated.y).inclusion_prob_

    np.testing.assert_array_equal(fit(3), fit(3))
    np.testing.assert_array_equal(fit(3), fit(np.random.default_rng(3)))
    np.testing.assert_array_equal(fit(np.random.RandomState(3)), fit(np.random.RandomState(3)))
    assert np.any(fit(3) != fit(4))


def test_the_path_of_the_training_is_kept_where_asked(frame, simulated):
    model = HeckmanFA(epochs=100, record_path=25, random_state=0).fit(frame, simulated.y)
    assert model.path_["epoch"].tolist() == [25, 50, 75, 100]
    np.testing.assert_array_equal(model.path_["inclusion_prob"][-1], model.inclusion_prob_)
    assert model.path_["mae"].shape == (4,)
    assert HeckmanFA(epochs=10, random_state=0).fit(frame, simulated.y).path_ == {}


def test_progress_is_shown_on_a_terminal_only(search, frame, simulated, monkeypatch, capsys):
    search.set_params(verbose=1)
    search.fit(frame, simulated.y)
    assert capsys.readouterr().err == ""
    screen = io.StringIO()
    console = rich.console.Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr(rich.console, "Console", lambda **_: console)
    search.fit(frame, simulated.y)
    words = screen.getvalue()
    if isinstance(search, HeckmanBestSubset):
        assert "nodes" in words
        assert re.search(r"best bic -?[\d.]+, bound -?[\d.]+", words)
    elif search.extraction == "correlation":
        assert words == ""
    else:
        assert "epochs" in words
        assert re.search(r"mean absolute error [\d.]+", words)
        assert "150 of 150" in words


def test_ctrl_c_during_training_fits_what_was_reached(frame, simulated, monkeypatch):
    from heckmanfa.search.training import assignment_function as assignment

    original = assignment._drawn

    def pressed(*arguments):
        for epoch, noise in enumerate(original(*arguments)):
            if epoch == 40:
                signal.raise_signal(signal.SIGINT)
            yield noise

    monkeypatch.setattr(assignment, "_drawn", pressed)
    with pytest.warns(SearchWarning, match="interrupted after 40 of 150 epochs"):
        model = HeckmanFA(epochs=150, n_draws=100, random_state=0).fit(frame, simulated.y)
    assert np.isfinite(model.rho_)
    model.predict(frame)
    assert "40 of 150" in " ".join(str(model.search_report()).split())


def test_ctrl_c_during_a_proof_fits_the_best_so_far(frame, simulated, monkeypatch):
    from heckmanfa.search.best_subset.tree import Tree

    def pressed(self, nodes, undecided):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Tree, "_expand", pressed)
    with pytest.warns(SearchWarning, match="was interrupted"):
        model = HeckmanBestSubset().fit(frame, simulated.y)
    assert not model.optimal_
    assert model.gap_ > 0
    for report in (model.summary(), model.search_report()):
        assert "interrupted" in str(report)


def test_a_budget_of_nodes_is_reported(simulated):
    data = make_selection(300, 16, 8, sigma=4.0, correlation=0.8, random_state=5)
    with pytest.warns(SearchWarning, match=r"max_nodes.*3"):
        model = HeckmanBestSubset("adjusted_r2", max_nodes=3).fit(data.X, data.y)
    assert not model.optimal_
    assert 0 < model.gap_ < 1
    assert f"{model.gap_:.3g}" in str(model.summary())
