"""Questions about outcomes of two classes: told from amounts, and answered by probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from heckmanfa import Heckman, HeckmanProbit, HeckmanProbitBestSubset
from heckmanfa.analysis import (
    Question,
    analyse,
    comparison,
    fitted_question,
    methods_compared,
    refits,
)
from heckmanfa.analysis.column_roles import read_outcome
from heckmanfa.analysis.request import check_question, question_of_family
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit.family import family_named
from heckmanfa.model_selection import SelectionKFold
from heckmanfa.report import write_report
from heckmanfa.results.reports import Untested

FEW = ("educ", "age", "kids5", "nwifeinc")
ROWS = np.arange(60)
MISSING = ROWS % 4 == 0
EVENT = ROWS % 3 == 0


def read(values, **options):
    series = pd.Series(values).astype(object).where(~MISSING, None)
    return read_outcome(Question("t", "y", **options), series.infer_objects())


def texts(positive, negative):
    return np.where(EVENT, positive, negative)


@pytest.mark.parametrize(
    ("values", "options", "classes"),
    [
        (EVENT.astype(int), {}, (0, 1)),
        (EVENT, {}, (False, True)),
        (texts("1", "0"), {}, (0, 1)),
        (texts("yes", "no"), {}, ("no", "yes")),
        (texts("Yes", "no"), {}, ("no", "Yes")),
        (texts("TRUE", "FALSE"), {}, ("FALSE", "TRUE")),
        (texts("Paid", "Default"), {}, ("Default", "Paid")),
        (texts("Default", "Paid"), {"positive": "Default"}, ("Paid", "Default")),
        (texts("Default", "Paid"), {"positive": "default"}, ("Paid", "Default")),
        (texts("severe", "none"), {}, ("none", "severe")),
        (EVENT + 1, {"outcome_kind": "binary"}, (1, 2)),
        (1 - EVENT, {"positive": "0"}, (1, 0)),
        (np.where(EVENT, -1, 1), {"outcome_kind": "binary", "positive": -1}, (1, -1)),
    ],
)
def test_two_classes_are_0_and_1_with_the_positive_class_last(values, options, classes):
    outcome, target = read(values, **options)
    assert target.family.name == "binary"
    assert target.classes == classes
    assert [type(label) for label in target.classes] == [type(label) for label in classes]
    np.testing.assert_array_equal(outcome, np.where(MISSING, np.nan, EVENT))
    labels = pd.Series(target.labels(outcome))
    assert list(labels.cat.categories) == list(classes)
    assert labels.isna().tolist() == MISSING.tolist()
    assert target.words.startswith("Heckman probit of P(y = ")


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        (ROWS / 7, {}, ""),
        (EVENT.astype(int), {"outcome_kind": "linear"}, ""),
        (texts("TRUE", "FALSE"), {"outcome_kind": "linear"}, ""),
        (EVENT + 1, {}, "For the probability of 2, pass outcome_kind='binary' and positive='2'."),
        (np.where(EVENT, 1, -1), {}, "y holds -1 and 1, which are taken as amounts."),
        (np.where(ROWS == 5, 9, EVENT), {}, "If 9 means missing, pass na_values=['y=9'] to fit"),
    ],
)
def test_other_numbers_are_amounts_with_a_hint_if_there_are_two(values, options, words):
    outcome, target = read(values, **options)
    assert target.family.name == "linear"
    assert target.classes is None
    assert words in target.words
    assert bool(words) == bool(target.words)
    numbers = EVENT if values.dtype.kind == "U" else values
    np.testing.assert_array_equal(outcome, np.where(MISSING, np.nan, numbers))


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        (
            np.where(ROWS == 5, "yse", texts("yes", "no")),
            {},
            "holds 3 different texts: 'no' in 29 rows, 'yes' in 15 and 'yse' in 1. A binary "
            "outcome has two. Is 'yse' a typo of 'yes'? Then write each class in one way; a lin",
        ),
        (
            np.where(ROWS < 40, np.where(ROWS < 20, "Yes", "not done"), texts("yes", "no")),
            {},
            "Is 'yes' another spelling of 'Yes'? Then write each class in one way, or mark a text "
            "that means missing with na_values, as in na_values=['y=not done']; a linear",
        ),
        (
            np.where(ROWS < 40, "not granted", texts("good", "bad")),
            {},
            "A binary outcome has two: correct the others, or mark a text that means missing with "
            "na_values, as in na_values=['y=not granted']",
        ),
        (
            np.where(ROWS == 5, 9, EVENT),
            {"outcome_kind": "binary"},
            "0 in 29 rows, 1 in 15 and 9 in 1. If 9 means missing, pass na_values=['y=9']",
        ),
        (
            np.where(ROWS < 40, -9, EVENT),
            {"outcome_kind": "binary"},
            "If -9 means missing, pass na_values=['y=-9']",
        ),
        (texts("yes", "no"), {"outcome_kind": "linear"}, "a Heckman probit takes it as it is"),
        (
            ROWS / 60,
            {"outcome_kind": "binary"},
            "different numbers, from 0.0166667 to 0.983333, as probabilities",
        ),
        (np.ones(60), {}, "holds 1 in all 45 rows that have a value. A binary outcome needs"),
        (np.full(60, "yes"), {}, "holds 'yes' in all 45 rows that have a value"),
        (texts("a", "b"), {"positive": "c"}, "does not hold 'c'; its classes are 'a' and 'b'"),
        (texts("Paid", "Default"), {"positive": "Defalt"}, "Did you mean 'Default'?"),
        (ROWS / 7, {"positive": 1}, "'y' is taken as amounts: leave positive out"),
        (EVENT + 1, {"positive": 2}, "holds 1 and 2, which are taken as amounts: add outcome_k"),
        (texts("a", "b"), {"outcome_kind": "linear"}, "2 categories, not amounts"),
        ([f"text {row}" for row in ROWS], {}, "holds text such as 'text"),
        (np.where(ROWS % 2 == 0, "1", "refused"), {}, "if that means missing, pass na_values"),
    ],
)
def test_what_is_neither_is_explained(values, options, words):
    with pytest.raises(InputError) as error:
        read(values, **options)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            np.where(ROWS < 40, -9, EVENT),
            "It holds -9 in 40 rows, and 0 and 1 elsewhere. If -9 means missing, pass "
            "na_values=['y=-9'].",
        ),
        (
            np.where(ROWS < 40, -8 - ROWS % 2, EVENT),
            "If these mean missing, pass na_values=['y=-9', 'y=-8'].",
        ),
        (np.where(ROWS < 40, -9, EVENT + 1), "-9 in 40 rows, and 1 and 2 elsewhere. If -9 means"),
        (np.where(ROWS < 40, 2 + ROWS % 2, EVENT), "14 rows hold 0: if that means missing, pass"),
    ],
)
def test_a_code_beside_two_classes_is_named_where_no_outcome_is_missing(values, words):
    with pytest.raises(InputError, match="is never missing in 60 rows") as error:
        read_outcome(Question("t", "y"), pd.Series(values))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(
            ({"search": search}, f"'{search}' .*linear.* best-subset or average or none")
            for search in ("fa", "fa-star", "correlation", "lasso")
        ),
        ({"method": "two-step"}, "'two-step' .*linear.* ml"),
        ({"criterion": "adjusted_r2"}, "'adjusted_r2' .*linear.* bic or ebic or aic"),
        ({"rho_range": (0.0, 0.5)}, "rho_range .*linear"),
        ({"outcome_transform": "log"}, "outcome_transform .*linear"),
        ({"search": "none", "honest": True}, "honest .* search"),
    ],
)
def test_what_a_probit_lacks_is_refused_by_name(options, words):
    with pytest.raises(InputError, match=words):
        check_question(Question("t", "y", outcome_kind="binary", **options))
    # As soon as the outcome turned out to be binary.
    with pytest.raises(InputError, match=words):
        question_of_family(Question("t", "y", **options), family_named("binary"))


def test_options_that_contradict_each_other_are_refused_before_the_table_is_read():
    with pytest.raises(InputError, match="positive is for binary outcomes"):
        check_question(Question("t", "y", outcome_kind="linear", positive="a"))
    with pytest.raises(InputError, match="outcome_kind must be one of linear, binary"):
        check_question(Question("t", "y", outcome_kind="probit"))
    with pytest.raises(InputError, match="add method='ml'"):
        question_of_family(Question("t", "y", start=0.5), family_named("linear"))
    assert (
        question_of_family(Question("t", "y", start=0.5), family_named("binary")).estimated == "ml"
    )


def test_a_question_about_classes_searches_for_the_best_subset_and_says_so_again():
    asked = Question("t.csv", "y", outcome_kind="binary", positive="1")
    assert asked.searched == "best-subset"
    assert asked.command() == "heckmanfa fit t.csv --outcome y --outcome-kind binary --positive 1"


@pytest.fixture(scope="module")
def women():
    """Mroz's women, with whether a wage is at least 4 dollars."""
    frame = load_mroz()[[*FEW, "lwage"]]
    frame["wage4"] = (frame["lwage"] >= np.log(4)).where(frame["lwage"].notna())
    return frame.drop(columns="lwage")


@pytest.fixture(scope="module")
def answered(women):
    """The answer about them, with the model that searches."""
    return analyse(women, outcome="wage4")


def test_a_search_answers_unless_another_model_is_asked_for(women, answered):
    assert isinstance(answered.model, HeckmanProbitBestSubset)
    assert answered.target.classes == (False, True)
    assert answered.question.outcome_kind == "binary"
    given = analyse(women, outcome="wage4", search="none", select_only=["kids5"], positive=False)
    assert type(given.model) is HeckmanProbit
    assert given.model.classes_.tolist() == [True, False]
    linear = analyse(women, outcome="wage4", search="none", outcome_kind="linear")
    assert type(linear.model) is Heckman
    assert linear.held_out is None


def test_held_out_scores_are_those_of_fits_without_the_rows(women, monkeypatch):
    monkeypatch.setattr(refits, "N_FOLDS", 2)
    asked = analyse(women, outcome="wage4", search="none", select_only=["kids5", "age"])
    found = asked.held_out
    X, y = women[list(FEW)], women["wage4"]
    seen, probability = y.notna().to_numpy(), np.full(len(y), np.nan)
    splitter = SelectionKFold(2, shuffle=True, random_state=0)
    for train, test in splitter.split(X, asked.loaded.y, selected=seen):
        model = HeckmanProbit(["educ", "nwifeinc"]).fit(X.iloc[train], y.iloc[train])
        probability[test] = model.predict_proba(X.iloc[test], kind="selected")[:, 1]
    truth, probability = y[seen].astype(bool), probability[seen]
    assert found.picture.auc == pytest.approx(roc_auc_score(truth, probability), abs=1e-8)
    assert found.picture.brier == pytest.approx(brier_score_loss(truth, probability), abs=1e-8)
    assert found.picture.log_loss == pytest.approx(log_loss(truth, probability), abs=1e-8)
    assert found.features == "given"
    assert found.n_failed == 0


def test_a_search_is_repeated_in_each_fold_or_says_that_it_was_not(answered, monkeypatch):
    monkeypatch.setattr(refits, "N_FOLDS", 2)
    assert answered.held_out.features == "chosen"
    monkeypatch.setattr(fitted_question, "QUICK_ROWS", 100)
    model, how = refits.fold_model(answered)
    assert how == "kept"
    assert model.prediction_features == answered.model.prediction_features_
    monkeypatch.setattr(refits, "MOST_HELD_OUT", 100)
    assert "2 more fits of 753 rows" in refits.hold_out(answered)


@pytest.mark.parametrize("seed", [2, 3])
def test_a_part_that_cannot_be_computed_says_why_and_the_others_are_there(seed, tmp_path):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 3))
    selected = 0.2 * X[:, 0] + rng.normal(size=120) > 0
    y = np.where(selected, (X[:, 1] + rng.normal(size=120) > 0.3).astype(float), np.nan)
    table = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    options = {"outcome": "y", "outcome_kind": "binary", "search": "none"}
    analysis = analyse(table, **options, predict_with=["b", "c"])
    # The likelihood rises towards |rho| = 1, so no other exclusion can be compared with it.
    assert not analysis.model.converged_
    with pytest.raises(NotIdentifiedError, match="cannot be fitted again"):
        analysis.model.what_if(table[["a", "b", "c"]], y)
    assert isinstance(analysis.what_if, Untested)
    assert "maximum likelihood did not converge" in str(analysis.what_if)
    (check,) = [one for one in analysis.checks if one.key == "what_if"]
    assert check.level == "note"
    assert check.title == "Not tested: excluded features put back."
    assert "cannot be fitted again: maximum likelihood did not converge." in check.words
    assert check.do.startswith("Use more rows, or fewer features")
    write_report(analysis, tmp_path / "report.html")
    assert "Not tested: excluded features put back" in (tmp_path / "report.html").read_text("utf-8")


def test_methods_are_compared_by_probabilities(women):
    estimators = methods_compared.methods(family=family_named("binary"))
    estimators.pop("best subset")
    X, y = women[["educ", "age", "kids5"]], women["wage4"]
    codes = y.map({True: 1.0, False: 0.0}).astype(float)
    found = comparison.compare_methods(
        X, y, outcome_kind="binary", estimators=estimators, n_folds=3, n_repeats=1
    )
    seen, probability = y.notna().to_numpy(), np.full(len(y), np.nan)
    for train, test in SelectionKFold(3, shuffle=True, random_state=0).split(
        X, codes, selected=seen
    ):
        rows = train[seen[train]]
        plain = LogisticRegression(C=np.inf, max_iter=500).fit(X.iloc[rows], y[rows].astype(bool))
        probability[test] = plain.predict_proba(X.iloc[test])[:, 1]
    naive = found.tidy().set_index("method").loc["naive probit"]
    # Probit and logit agree about who is likelier.
    auc = roc_auc_score(y[seen].astype(bool), probability[seen])
    assert naive["auc"] == pytest.approx(auc, abs=0.01)
    assert np.isnan(naive["rho"])
    assert "held-out Brier score" in found.verdict.words or "no other" in found.verdict.words
    assert "Held-out probabilities" in str(found)
