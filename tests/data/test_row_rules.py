"""Every refusal and warning reads as a person would want it: what, where, how many, what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from heckmanfa import Heckman, errors
from heckmanfa.data.row_rules import RowCounts, count_rows, decide_rows
from heckmanfa.errors import (
    AllObservedWarning,
    BinaryOutcomeWarning,
    CollinearError,
    InputError,
    MissingValueError,
    NoExclusionWarning,
    NoOutcomeError,
    NotIdentifiedError,
    SeparationError,
    TooFewRowsError,
    UnknownFeatureError,
)


@pytest.fixture
def frame(simulated):
    return pd.DataFrame(
        simulated.X.copy(), columns=["age", "educ", "exper", "kids", "income", "city"]
    )


@pytest.fixture
def y(simulated):
    return simulated.y.copy()


def test_one_root_error_and_one_root_warning_each_with_a_sentence():
    for name in set(errors.__all__) - {"sentence", "warn"}:
        kind = getattr(errors, name)
        root = errors.HeckmanfaError if name.endswith("Error") else errors.HeckmanfaWarning
        assert issubclass(kind, root)
        assert kind.__doc__.strip().endswith(".")
    assert issubclass(InputError, ValueError)


def test_no_missing_outcome_warns_and_fits_least_squares(frame, simulated):
    with pytest.warns(AllObservedWarning, match="no outcome is missing among the 800 rows"):
        model = Heckman().fit(frame, simulated.complete_y)
    design = np.column_stack([np.ones(800), frame])
    expected = np.linalg.lstsq(design, simulated.complete_y, rcond=None)[0]
    np.testing.assert_allclose([model.intercept_, *model.coef_], expected, rtol=1e-9)
    assert np.isnan(model.rho_)
    assert np.isnan(model.imr_coef_)
    np.testing.assert_array_equal(model.predict_selection(frame), 1.0)
    np.testing.assert_array_equal(model.inverse_mills(frame), 0.0)
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame, kind="selected"))
    with pytest.raises(NotIdentifiedError, match="no outcome was missing"):
        model.predict(frame, kind="unselected")
    with pytest.raises(NotIdentifiedError, match="no outcome was missing"):
        model.log_likelihood(frame, simulated.complete_y)
    assert "Least squares" in str(model.summary())
    assert "no outcome is missing" not in str(model.diagnostics())


def test_underdetermined_least_squares_is_the_minimum_norm_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 20)), rng.normal(size=8)
    with pytest.warns(AllObservedWarning, match="minimum-norm"):
        model = Heckman().fit(X, y)
    centred = X - X.mean(axis=0)
    expected = np.linalg.pinv(centred) @ (y - y.mean())
    np.testing.assert_allclose(model.coef_, expected, atol=1e-10)


def test_missing_and_infinite_features_are_counted_by_column(frame, y):
    frame.iloc[[1, 5], 2] = np.nan
    frame.iloc[7, 4] = np.inf
    with pytest.raises(
        MissingValueError, match=r"'exper' \(2 NaN, 0 inf\), 'income' \(0 NaN, 1 inf\)"
    ):
        Heckman(["age"]).fit(frame, y)


def test_a_prediction_only_feature_may_be_missing_where_not_selected(frame, y, simulated):
    only = ["age", "educ", "exper", "kids", "income"]
    expected = Heckman(["age", "city"], only).fit(frame, y)
    frame.loc[~simulated.selected, "city"] = np.nan
    for method in ("two-step", "ml"):
        model = Heckman(["age", "city"], only, method=method).fit(frame, y)
        assert np.isfinite(model.tidy()["std_error"].iloc[:10]).all()
    model = Heckman(["age", "city"], only).fit(frame, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    assert np.isfinite(model.log_likelihood(frame, y))
    assert np.isfinite(model.predict_selection(frame)).all()
    frame.loc[np.flatnonzero(simulated.selected)[:3], "city"] = np.nan
    with pytest.raises(MissingValueError, match=r"'city' \(3 NaN, 0 inf\)"):
        Heckman(["age", "city"], only).fit(frame, y)


def test_columns_in_neither_equation_are_not_looked_at(frame, y):
    frame["name"] = "text"
    frame.loc[3, "city"] = np.nan
    model = Heckman(["age", "exper", "kids"], list(frame.columns[:5])).fit(frame, y)
    assert model.n_features_in_ == 7
    assert model.coef_[5] == 0


def test_infinite_outcome_and_infinity_in_unselected_rows(frame, y, simulated):
    y[np.flatnonzero(~simulated.selected)[0]] = np.inf
    Heckman(["age", "exper", "kids"]).fit(frame, y, selected=simulated.selected)
    y[np.flatnonzero(simulated.selected)[:2]] = np.inf
    with pytest.raises(InputError, match=r"contains infinity .* in 2 selected rows"):
        Heckman(["age", "exper", "kids"]).fit(frame, y, selected=simulated.selected)


def test_selected_rows_without_outcome_are_left_out_and_counted(frame, y, simulated):
    first = np.flatnonzero(simulated.selected)[:5]
    y[first] = np.nan
    model = Heckman(["age", "exper"]).fit(frame, y, selected=simulated.selected)
    keep = np.ones(800, bool)
    keep[first] = False
    expected = Heckman(["age", "exper"]).fit(frame[keep], y[keep])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    assert model.row_counts_["left_out_outcome_missing"] == 5
    assert model.row_counts_["total"] == 800
    assert sum(v for k, v in model.row_counts_.items() if k != "total") == 800
    assert "5 rows left out: selected, but the outcome is missing" in str(model.summary())


def test_zero_weight_rows_are_left_out_and_counted(frame, y):
    weight = np.ones(800)
    weight[:50] = 0
    model = Heckman(["age", "exper"]).fit(frame, y, sample_weight=weight)
    expected = Heckman(["age", "exper"]).fit(frame[50:], y[50:])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    assert model.row_counts_["left_out_zero_weight"] == 50
    assert model.n_obs_ == 750


def test_outcome_given_for_unselected_rows_is_ignored(frame, simulated):
    model = Heckman(["age", "exper"]).fit(frame, simulated.complete_y, selected=simulated.selected)
    expected = Heckman(["age", "exper"]).fit(frame, simulated.y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)


@pytest.mark.parametrize("form", [np.array, list, pd.Series])
def test_selected_may_be_zeros_and_ones(form, frame, simulated):
    model = Heckman(["age"]).fit(frame, simulated.y, selected=form(simulated.selected.astype(int)))
    assert model.n_selected_ == simulated.selected.sum()


def test_collinear_prediction_features_among_the_selected_rows_only(frame, y, simulated):
    frame["dummy"] = np.where(simulated.selected, 0.0, (frame["age"] > 0.2).astype(float))
    with pytest.raises(
        CollinearError, match="collinear among the selected rows: 'dummy' is constant"
    ):
        Heckman(["age", "dummy"], list(frame.columns[:6])).fit(frame, y)


OUTCOME = np.array([1.0, 2.0, 4.0, 3.0, 5.0, np.nan, np.nan, np.nan, np.nan])


@pytest.mark.parametrize(
    ("model", "n_columns", "y", "words"),
    [
        (Heckman([0, 1, 2, 3], [0]), 4, OUTCOME, "more than 6 selected rows; there are 5"),
        (Heckman([0]), 8, OUTCOME, "8 selection features .* more than 9 rows; there are 9"),
        (Heckman(), 1, [1.0, np.nan, np.nan], "1 sample"),
    ],
)
def test_too_few_rows_are_counted(model, n_columns, y, words):
    X = np.random.default_rng(4).normal(size=(len(y), n_columns))
    with pytest.raises(TooFewRowsError, match=words):
        model.fit(X, y)


MISTAKES = [
    # Columns that are not there, and lists of columns that are not lists.
    ({"prediction_features": ["age", "edcu"]}, {}, UnknownFeatureError, "'edcu'.* mean 'educ'"),
    ({"selection_features": [9]}, {}, UnknownFeatureError, "selection_features: .* 9; .* 0 to 5"),
    ({"prediction_features": "age"}, {}, InputError, r"\['age'\]"),
    ({"prediction_features": ["age", "age"]}, {}, InputError, "'age' twice"),
    ({"prediction_features": [True, False]}, {}, InputError, "mask of 2 .* 6 columns"),
    ({"prediction_features": [1.5]}, {}, InputError, "names, positions or booleans"),
    ({"selection_features": []}, {}, InputError, "selection_features is empty"),
    # Who is selected, weights and groups.
    ({}, {"selected": np.full(800, 2)}, InputError, "selected must be boolean"),
    ({}, {"selected": [True, False, True]}, InputError, "selected has 3 .* 800 rows"),
    ({}, {"selected": np.zeros(800, bool)}, NoOutcomeError, "observed outcome"),
    ({}, {"sample_weight": np.r_[-1.0, np.ones(799)]}, InputError, "1 negative"),
    ({}, {"sample_weight": np.ones(3)}, InputError, "sample_weight has 3 .* 800 rows"),
    ({}, {"sample_weight": np.zeros(800)}, InputError, "sample_weight is zero"),
    ({"weight_kind": "sampling"}, {"sample_weight": np.ones(800)}, InputError, "cov_type"),
    ({}, {"groups": np.ones(800)}, InputError, "cov_type='cluster'"),
    ({"cov_type": "cluster"}, {}, InputError, r"needs groups.*groups='column' in from_formula"),
    ({"cov_type": "cluster"}, {"groups": np.ones(800)}, InputError, "two groups"),
    ({"cov_type": "cluster"}, {"groups": [None, *["a"] * 799]}, InputError, "missing in 1 rows"),
    ({"cov_type": "cluster"}, {"groups": [1, 2]}, InputError, "each of the 800 rows"),
    # Parameters that are none of the choices.
    ({"method": "mle"}, {}, InputError, "'method' parameter of Heckman must be a str among"),
    ({"cov_type": "hc3"}, {}, InputError, "cov_type"),
]


@pytest.mark.parametrize(("parameters", "beside", "error", "words"), MISTAKES)
def test_a_mistake_in_what_is_passed_is_named(parameters, beside, error, words, frame, y):
    model = Heckman(**{"prediction_features": ["age"]} | parameters)
    with pytest.raises(error, match=words):
        model.fit(frame, y, **beside)


def test_names_need_columns_with_names(frame, y):
    with pytest.raises(UnknownFeatureError, match="X has no column names; give positions 0 to 5"):
        Heckman(["age"]).fit(frame.to_numpy(), y)


def test_names_positions_and_masks_mean_the_same(frame, y):
    by_name = Heckman(["age", "exper", "kids"]).fit(frame, y)
    for other in ([0, 2, 3], np.array([3, 0, 2]), [True, False, True, True, False, False]):
        np.testing.assert_allclose(Heckman(other).fit(frame, y).coef_, by_name.coef_, rtol=1e-12)


def test_a_binary_outcome_warns_what_the_linear_model_means_and_names_the_probit(frame, y):
    binary = np.where(np.isnan(y), np.nan, (y > 0).astype(float))
    with pytest.warns(BinaryOutcomeWarning, match="only 0 and 1") as caught:
        Heckman(["age", "exper"]).fit(frame, binary)
    words = str(caught[0].message)
    assert "linear probability model: coefficients are changes in the probability of 1." in words
    assert "Predictions may leave [0, 1]" in words
    assert "HeckmanProbit" in words


def test_any_two_values_are_a_binary_outcome(frame, y):
    with pytest.warns(BinaryOutcomeWarning, match="only -1 and 3") as caught:
        Heckman(["age", "exper"]).fit(frame, np.where(np.isnan(y), np.nan, 4.0 * (y > 0) - 1))
    assert "changes in the probability of 3, times 4." in str(caught[0].message)


@pytest.mark.parametrize(
    ("chunks", "two_valued", "highest"),
    [
        ([[1, 2], [2, 2], []], True, 3),
        ([[1], [2], [1]], True, 1),
        ([[1, 2], [3]], False, 0),
        ([[0], [2], [1]], False, 0),
        ([[], [1, 1]], True, 2),
        ([[0, 1], [0.5]], False, 0),
    ],
)
def test_two_valued_outcomes_are_counted_the_same_in_any_chunks(chunks, two_valued, highest):
    counted = []
    for parts in (chunks, [[value for chunk in chunks for value in chunk]]):
        outcomes = [np.array(part, dtype=float) for part in parts]
        counts = sum((count_rows(decide_rows(part), part) for part in outcomes), RowCounts())
        counted.append((counts.outcomes.two_valued, counts.outcomes.highest))
    assert counted == [(two_valued, highest)] * 2


def test_no_excluded_feature_warns(frame, y):
    with pytest.warns(NoExclusionWarning, match="every selection feature also predicts"):
        model = Heckman().fit(frame, y)
    assert model.diagnostics().n_excluded == 0
    assert "[problem] excluded features: none" in str(model.diagnostics())


def test_text_columns_are_named(frame, y):
    frame["race"] = "a"
    with pytest.raises(InputError, match=r"column 'race' does not hold numbers \(found text\)"):
        Heckman(["age"], categorical_features=None).fit(frame, y)
    # A category with one level is a constant column.
    with pytest.raises(CollinearError, match=r"'race\[a\]' is constant"):
        Heckman(["age"]).fit(frame, y)
    with pytest.raises(InputError, match="y does not hold numbers"):
        Heckman(["age"]).fit(frame[["age", "educ"]], ["1"] * 800)


def test_prediction_refuses_what_it_cannot_use(frame, y):
    model = Heckman(["age", "exper"]).fit(frame, y)
    with pytest.raises(InputError, match="kind must be 'marginal', 'selected', 'unselected' or"):
        model.predict(frame, kind="conditional")
    broken = frame.copy()
    broken.loc[4, "exper"] = np.nan
    with pytest.raises(MissingValueError, match=r"'exper' \(1 row\)"):
        model.predict(broken)
    broken = frame.copy()
    broken.loc[4, "city"] = np.nan  # in the selection equation alone
    assert len(model.predict(broken)) == 800
    with pytest.raises(MissingValueError, match=r"'city' \(1 row\)"):
        model.predict(broken, kind="selected")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"age": "agee"}))


def test_a_failed_fit_leaves_an_unfitted_model(frame, y):
    from sklearn.exceptions import NotFittedError

    model = Heckman(["agee"])
    with pytest.raises(UnknownFeatureError):
        model.fit(frame, y)
    with pytest.raises(NotFittedError):
        model.predict(frame)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.set_axis(["a", "a", "b", "c", "d", "e"], axis=1), "two columns"),
        (lambda X: X.to_numpy()[:, :, None], "dim 3"),
        (lambda X: X["age"], "2-dimensional"),
        (lambda X: X[:0], "X has 0 rows"),
        (lambda X: sparse.csr_array(X.to_numpy()), "[Ss]parse"),
        (lambda X: pl.from_pandas(X).lazy(), "pass heckmanfa.scan"),
        (
            lambda X: X.assign(when=pd.Timestamp("2020-01-01")),
            "column 'when' does not hold numbers",
        ),
    ],
)
def test_features_of_the_wrong_form_get_one_of_our_errors(change, words, frame, y):
    with pytest.raises(InputError, match=words):
        Heckman([0]).fit(change(frame), y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y: y[:5], "inconsistent numbers of samples: X has 800 rows, y 5"),
        (lambda y: np.column_stack([y, y]), "1d array"),
        (lambda y: 1e200 * y, "its squares cannot be represented"),
        (lambda y: np.full(800, np.nan), "no row has an observed outcome .800 rows."),
        (lambda y: np.where(np.isnan(y), y, 4.0), "the outcome is 4 in all 4"),
        (lambda y: None, "requires y to be passed"),
    ],
)
def test_outcomes_of_the_wrong_form_get_one_of_our_errors(change, words, frame, y):
    with pytest.raises(InputError, match=words):
        Heckman([0]).fit(frame, change(y))


@pytest.mark.parametrize(("n", "k", "n_selected"), [(30, 20, 15), (40, 25, 8), (50, 22, 6)])
def test_more_selection_features_than_rows_can_carry_are_not_called_separation(n, k, n_selected):
    random = np.random.default_rng(0)
    features = random.normal(size=(n, k))
    outcome = np.where(np.arange(n) < n_selected, random.normal(size=n), np.nan)
    for on_separation in ("error", "drop"):
        with pytest.raises(TooFewRowsError, match="too many for these rows") as caught:
            Heckman([0], on_separation=on_separation).fit(features, outcome)
        assert f"{n_selected} are selected and {n - n_selected} are not" in str(caught.value)
        assert "Leave features out of the selection equation" in str(caught.value)


def test_one_column_that_separates_few_rows_is_still_named():
    random = np.random.default_rng(1)
    features = random.normal(size=(20, 5))
    chosen = np.arange(20) >= 3
    features[:, 4] = chosen
    outcome = np.where(chosen, features[:, 0] + random.normal(size=20), np.nan)
    with pytest.raises(SeparationError, match="'x4' separates"):
        Heckman([0]).fit(features, outcome)


@pytest.mark.parametrize("n_columns", [1, 9, 10, 11, 13])
def test_columns_that_lack_values_are_named_up_to_a_number(n_columns):
    from heckmanfa.data.row_rules import _SHOWN

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, n_columns))
    X[3] = np.nan
    with pytest.raises(MissingValueError) as caught:
        Heckman([0]).fit(X, np.where(np.arange(60) % 2, rng.normal(size=60), np.nan))
    named = ", ".join(f"'x{place}' (1 NaN, 0 inf)" for place in range(min(n_columns, _SHOWN)))
    more = f" and {n_columns - _SHOWN} more columns" if n_columns > _SHOWN else ""
    assert f"in rows that need it: {named}{more}. Impute or leave out" in str(caught.value)
