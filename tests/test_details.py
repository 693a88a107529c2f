"""Details that a small change of the source would break and that no other test looks at."""

from __future__ import annotations

import ast
import re
from dataclasses import astuple, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanProbit,
    assignment,
    compress,
)
from heckmanfa.data.columns.features import FeatureTable, columns_named
from heckmanfa.data.columns.missing_codes import _is_suspicious
from heckmanfa.data.files.paths import _LARGEST, _all_integers
from heckmanfa.data.formula.expressions import _is_number
from heckmanfa.data.formula.functions import _are_numbers
from heckmanfa.data.scan.engines import PolarsEngine
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    MissingExtraError,
    NotIdentifiedError,
    SearchWarning,
)
from heckmanfa.inference import what_if
from heckmanfa.inference.formula_variables import _use, at_means
from heckmanfa.inference.ml_over_rho import _places
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.results.assignment_weights import weights_of
from heckmanfa.results.catalogue import TableFacts, facts_of_answer
from heckmanfa.results.claims import _chance
from heckmanfa.results.distribution import NullDistribution
from heckmanfa.results.exclusions import find_exclusions
from heckmanfa.results.feature_evidence import CHOSEN
from heckmanfa.results.funnel import funnel_of
from heckmanfa.results.headline import _of_halves
from heckmanfa.results.search_facts import search_notes
from heckmanfa.results.section_words import _without_correction
from heckmanfa.results.side_by_side import side_by_side
from heckmanfa.results.weight_facts import _weight
from heckmanfa.search import form as forms
from heckmanfa.search import full_model
from heckmanfa.search.best_subset.branch_and_bound import _incomplete
from heckmanfa.search.form import Form, form_of_all
from heckmanfa.text.wording import share_text

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


def on_one_line(printed):
    return " ".join(str(printed).split())


@pytest.fixture(scope="module")
def data():
    return make_selection(400, 4, 2, rho=0.5, random_state=3)


@pytest.fixture(scope="module")
def honest(data):
    model = HeckmanBestSubset(honest=True, n_splits=8, random_state=0)
    return model.fit(pd.DataFrame(data.X, columns=list("abcd")), data.y)


# Model. -------------------------------------------------------------------------------------------


def test_a_column_that_is_constant_among_the_selected_rows_is_centred_and_not_scaled(data):
    X = np.array(data.X)
    X[~np.isnan(data.y), 3] = 7.0
    held = compress(X, data.y, selection_features=[0, 1, 2], standardize=True)
    assert np.isfinite(held.moments.factor).all()
    assert np.isfinite(held.moments.solve(np.array([True, True, False, False])).sse)


# Fit. ---------------------------------------------------------------------------------------------


def test_classes_are_counted_in_rows_with_sampling_weights_and_in_weight_with_frequencies():
    made = make_selection(400, 3, 2, outcome_kind="binary", random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, 400)
    seen = ~np.isnan(made.y)
    ones = made.y == 1
    by_kind = {}
    for kind in ("frequency", "sampling"):
        model = HeckmanProbit([0, 1], weight_kind=kind, cov_type="robust")
        found = model.fit(made.X, made.y, sample_weight=weight).fit_.details
        by_kind[kind] = found.n_positive, found.n_negative
    assert by_kind["sampling"] == (ones.sum(), (seen & ~ones).sum())
    assert by_kind["frequency"] == (weight[ones].sum(), weight[seen & ~ones].sum())


def test_the_error_of_a_probit_without_selection_has_variance_one():
    made = make_selection(400, 3, 2, outcome_kind="binary", random_state=0)
    y = np.where(np.isnan(made.y), made.X[:, 0] > 0, made.y)
    fit = HeckmanProbit([0, 1]).fit(made.X, y).fit_
    assert fit.probit is None
    assert fit.sigma == 1.0


# Search. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.0, -1e-9])
def test_a_covariance_with_a_variance_of_zero_is_singular(data, monkeypatch, variance):
    counts = {"n_features": 4, "n_selected": 200.0}
    form = Form.of_slopes((0, 1), np.ones(2), np.diag([1.0, variance]), **counts)
    monkeypatch.setattr(forms, "two_step_form", lambda *_: form)
    moments = compress(data.X, data.y).moments
    with pytest.raises(NotIdentifiedError, match="singular"):
        form_of_all(moments, (0, 1), "abcd", CovarianceKind("cluster", False))
    form = Form.of_slopes((0, 1), np.ones(2), np.eye(2), **counts)
    assert form_of_all(moments, (0, 1), "abcd") is form


def test_a_search_without_its_path_has_no_record(data):
    held = compress(data.X, data.y)
    trained = assignment.train(held.moments, held.rows, epochs=20, random_state=0, record_path=5)
    assert len(trained.path) > 1
    bare = trained.without_path()
    assert [len(bare.path), len(bare.path_epochs), len(bare.path_mae)] == [0, 0, 0]
    assert not bare.path_saved
    assert bare.without_path().path_saved


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (0.0, "none is better, but others nearly as good may be missing"),
        (-0.5, r"another may be better by at most \S+ \(gap_\)"),
    ],
)
def test_a_search_that_stopped_says_how_much_better_another_may_be(data, bound, words):
    model = HeckmanBestSubset().fit(data.X, data.y)
    search = model.fit_.search.check_searched()
    goal = search.goal
    best = model.bic_
    # The loss whose value is the best one, or a little less.
    low, high = -50.0, 50.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if goal.value(middle) < best + bound else (low, middle)
    tree = SimpleNamespace(bound=low if bound else high, interrupted=False)
    with pytest.warns(SearchWarning, match=words):
        found = _incomplete(search, tree, "stopped")
    assert found.gap == pytest.approx(-bound, abs=1e-9)


# Inference. ---------------------------------------------------------------------------------------


def test_quartiles_of_honest_estimates_are_those_of_the_splits(honest):
    told = honest.honest_.tidy().set_index("term")
    values = honest.honest_.estimates[:, -1]
    assert told.index[-1] == "sigma"
    assert told.loc["sigma", "quartile_low"] == pytest.approx(np.percentile(values, 25), rel=1e-12)
    assert told.loc["sigma", "quartile_high"] == pytest.approx(np.percentile(values, 75), rel=1e-12)


def test_a_category_with_a_reference_of_its_own_is_a_category_in_margins():
    mroz = load_mroz()
    place = np.random.default_rng(0).choice(["a", "b", "c"], len(mroz))
    frame = mroz.assign(place=place)
    formulas = "lwage ~ educ", "educ + age + C(place, Treatment('b'))"
    terms = Heckman.from_formula(*formulas, frame).margins(frame, kind="selection").tidy()
    own = terms[terms["term"].astype(str).str.startswith("place")]
    assert len(own) == 2, terms


def test_rows_at_the_means_have_the_columns_of_the_frame():
    frame = pd.DataFrame({"g": ["a", "b", "a"], "x": [1.0, 2.0, 6.0]}, index=[7, 8, 9])
    found, weight = at_means(frame, np.full(3, 1 / 3), [])
    assert list(found.columns) == ["g", "x"]
    assert list(found.index) == [0, 1]
    assert found["x"].tolist() == pytest.approx([3.0, 3.0])
    assert weight == pytest.approx([2 / 3, 1 / 3])


# Results. -----------------------------------------------------------------------------------------


def test_an_honest_headline_names_the_one_feature_or_the_features_that_were_chosen():
    def feature(name, role, chance):
        return SimpleNamespace(name=name, role=role, chance=chance)

    def said(*features):
        evidence = SimpleNamespace(
            outcome="y",
            way=SimpleNamespace(n_halves=10),
            weighed=list(features),
            chosen_by_halves=[feature for feature in features if feature.role == CHOSEN],
            share_words=lambda feature: f"{round(10 * feature.chance)} of 10",
        )
        return on_one_line(_of_halves(evidence))

    one, two = feature("a", CHOSEN, 0.9), feature("b", CHOSEN, 0.6)
    assert said(one).startswith("a was ")
    assert not said(one, two).startswith("a was ")
    away = feature("c", "left out", 0.3)
    assert "c came closest (3 of 10)" in said(away)
    assert "no feature" in said()


def test_tables_of_latex_align_words_left_and_numbers_right(honest):
    text = honest.summary().to_latex()
    specs = re.findall(r"\\begin\{tabular\}\{([^}]*)\}", text)
    assert specs
    assert all(re.fullmatch(r"l[lr]*", spec.replace(" ", "")) for spec in specs), specs
    assert any("r" in spec for spec in specs)


def test_more_restrictions_than_clusters_cannot_be_tested():
    reference = NullDistribution(4)
    assert np.isnan(reference.wald(np.ones(4), np.eye(4)).p_value)
    assert np.isfinite(reference.wald(np.ones(3), np.eye(3)).p_value)


# Data. --------------------------------------------------------------------------------------------


def test_what_a_formula_learned_is_numbers_throughout():
    assert _are_numbers([1, 2.5])
    assert not _are_numbers([1, "2"])
    assert not _are_numbers(["1", 2])


def test_a_polars_without_batches_is_refused_with_what_to_install():
    pytest.importorskip("polars")
    with pytest.raises(MissingExtraError, match="pip install --upgrade"):
        PolarsEngine(object())


def test_a_column_without_a_value_has_no_range(tmp_path):
    pytest.importorskip("pyarrow")
    from heckmanfa import scan_parquet
    from heckmanfa.data.scan.parquet_files import value_ranges

    path = tmp_path / "rows.parquet"
    frame = pd.DataFrame({"id": np.arange(50.0), "none": np.full(50, np.nan), "y": np.arange(50.0)})
    frame.astype({"none": "Float64"}).to_parquet(path)
    files = scan_parquet(path, "y", ["id"]).engine.files
    assert value_ranges(files, ["id", "none"]) == ({"id": (0.0, 49.0, 50)}, [])


def test_rows_know_the_precision_of_tensors(data):
    torch = pytest.importorskip("torch")
    assert compress(data.X, data.y).rows.precision is None
    single = torch.tensor(data.X, dtype=torch.float32)
    assert compress(single, torch.tensor(data.y)).rows.precision == torch.float32


def test_a_position_names_one_column():
    columns = SimpleNamespace(n_features=3, names=("a", "b", "c"))
    assert columns_named(columns, [[1]]) == {1}
    assert columns_named(columns, [[5]]) == set()
    assert columns_named(columns, [["c"], np.array([True, False, False])]) == {0, 2}
    assert columns_named(columns, [[1], None]) == {0, 1, 2}


@pytest.mark.parametrize(("n", "suspicious"), [(100, True), (100_000, False)])
def test_a_small_code_must_be_frequent(n, suspicious):
    tally = SimpleNamespace(rest_low=0.0, rest_high=9.0, n=n, integers=True)
    assert _is_suspicious(tally, -1.0, 10) is suspicious


# Search and training. -----------------------------------------------------------------------------


def test_features_that_always_predict_have_a_probability_of_one(data):
    model = HeckmanFA(epochs=5, n_draws=5, always=[1], random_state=0).fit(data.X, data.y)
    trained = model.fit_.search.training
    assert trained.log_pi[:, 1].tolist() == [-np.inf, 0.0]
    assert np.isfinite(trained.log_pi[:, [0, 2, 3]]).all()


def test_a_model_that_cannot_be_held_elsewhere_is_none(monkeypatch):
    monkeypatch.setattr(full_model, "_hold", lambda *_: None)
    held = SimpleNamespace(problem=None, starts=None)
    assert full_model.FullModel.held_at(held, None, 0.5) is None


# Words. -------------------------------------------------------------------------------------------


def test_least_squares_and_all_features_stand_beside_a_search(data):
    model = HeckmanBestSubset().fit(data.X, data.y)
    whole = Heckman().fit(data.X, data.y)
    found = side_by_side(model.fit_)
    terms = found.terms.set_index("term")["all_features"]
    assert found.is_solved
    names = list(model.fit_.labels)
    assert terms[names].tolist() == pytest.approx(whole.coef_.tolist(), rel=1e-8)


def test_the_condition_number_is_that_of_scaled_columns(data):
    model = Heckman([0, 1]).fit(data.X, data.y)
    seen = ~np.isnan(data.y)
    ratio = model.inverse_mills(data.X)[seen]
    design = np.column_stack([np.ones(seen.sum()), data.X[seen][:, :2], ratio])
    expected = np.linalg.cond(design / np.linalg.norm(design, axis=0))
    assert model.diagnostics().condition_number == pytest.approx(expected, rel=1e-6)


def test_reports_of_an_average_say_which_set_they_are_about(data):
    average = HeckmanAverage().fit(data.X, data.y).fit_
    given = Heckman([0, 1]).fit(data.X, data.y).fit_
    assert search_notes(average, "profile")
    assert not search_notes(given, "profile")


def test_the_weight_of_a_choice_is_its_own_and_not_that_of_the_best(data):
    model = HeckmanFA("correlation", criterion="adjusted_r2").fit(data.X, data.y)
    found = replace(weights_of(model.fit_), chosen=0.01)
    assert found.chosen < found.best
    said = _weight(model.fit_, found)
    assert share_text(found.chosen) in said.value
    assert (said.key, said.level, said.case) == ("best_set", "caution", "chosen")
    assert share_text(found.best) in said.meaning
    assert said.name == "BIC weight of the chosen assignment"


# Bounds and edges. --------------------------------------------------------------------------------


def test_the_largest_integer_of_a_folder_name_is_still_one():
    assert _all_integers([str(_LARGEST), str(-_LARGEST), None])
    assert not _all_integers([str(_LARGEST + 1)])
    assert not _all_integers([str(-_LARGEST - 1)])
    assert not _all_integers([None])


@pytest.mark.parametrize(
    ("text", "expected"), [("2 * x", True), ("x - 1", True), ("x * y", False), ("-3", True)]
)
def test_an_expression_with_a_number_is_told_from_one_of_names(text, expected):
    assert _is_number(ast.parse(text, mode="eval").body) is expected


def test_only_cells_that_were_filled_are_said_to_be(data):
    model = Heckman([0, 1]).fit(data.X, data.y)
    for filled in (False, True):
        table = TableFacts(
            funnel_of(model.fit_, model.row_counts_, {}, "y"), filled, find_exclusions(model.fit_)
        )
        facts = facts_of_answer(model.fit_, model.diagnostics(), table)
        assert any(fact.key == "filled_in" for fact in facts) is filled


def test_moments_know_the_range_of_the_selection_index(data):
    held = compress(data.X, data.y)
    coef = held.probit.coef
    index = coef[0] + data.X[~np.isnan(data.y)] @ coef[1:]
    assert held.moments.index_range == pytest.approx((index.min(), index.max()), rel=1e-6)


def test_rho_is_held_at_the_ends_and_at_zero():
    places = np.tanh(_places((-0.3, 0.6)))
    for rho in (-0.3, 0.0, 0.6):
        assert np.abs(places - rho).min() < 1e-12
    assert (np.diff(places) > 0).all()


def test_columns_of_x_that_are_categories_are_known():
    mroz = load_mroz()
    frame = mroz[["educ", "age", "kids5"]].assign(place=np.where(mroz["city"] == 1, "in", "out"))
    columns = Heckman(["educ"]).fit(frame, mroz["lwage"]).fit_.spec.columns
    assert FeatureTable.without_rows(columns).categories == {"place"}


def test_honest_splits_name_the_columns_of_x():
    mroz = load_mroz()
    frame = mroz[["educ", "age", "kids5", "nwifeinc"]].assign(
        place=np.where(mroz["city"] == 1, "in", "out")
    )
    model = HeckmanBestSubset(honest=True, n_splits=4, always=["place"], random_state=0)
    splits = model.fit(frame, mroz["lwage"]).honest_.splits()
    for features in splits["features"]:
        assert "place" in features
        assert {*features} <= {*frame}


def test_a_table_beside_other_models_has_words_in_its_first_column(data):
    summary = HeckmanBestSubset().fit(data.X, data.y).summary()
    found = summary._comparison()
    if found is None:
        table = pd.DataFrame({"term": ["a"], "chosen": [1.0], "naive": [2.0]})
        found = replace(summary, comparison=table)._comparison()
    assert [column.is_number for column in found.columns][:2] == [False, True]


def test_a_change_that_moves_no_other_feature_moved_none(monkeypatch):
    monkeypatch.setattr(what_if, "distribution_of", lambda _: NullDistribution())
    base = SimpleNamespace(features=[0], estimates=np.ones(2), errors=np.ones(2), rho=0.1)
    other = SimpleNamespace(features=[], rho=0.3, criteria={})
    terms = pd.DataFrame({"term": ["Intercept", "rho"], "shift_in_se": [0.5, 1.0]})
    fit = SimpleNamespace(spec=SimpleNamespace(error_terms=("rho",)))
    found = what_if._summary(base, other, [0], terms, fit)
    assert found["most_moved"] == ""
    assert np.isnan(found["most_moved_by"])
    assert found["rho_shift"] == pytest.approx(0.2)


def test_a_plan_of_another_form_promises_no_order():
    duckdb_engine = pytest.importorskip("heckmanfa.data.scan.engines")

    class Answer:
        def __init__(self, rows):
            self.rows = rows

        def fetchall(self):
            return self.rows

    def relation(plan):
        answers = iter([Answer([(True,)]), Answer(plan)])
        return SimpleNamespace(query=lambda *_: next(answers))

    for plan in ([], [("plan", "not JSON")], [("plan", None)]):
        assert not duckdb_engine._keeps_order(relation(plan))


# Cases that data seldom make. ---------------------------------------------------------------------


def test_a_contrast_beside_a_variable_leaves_it_a_category():
    frame = pd.DataFrame({"place": ["a", "b"], "x": [1.0, 2.0]})
    found = _use("C(place, contr.treatment('b'))", ["a", "b"], frame)
    assert (found.categories, found.names) == (["a", "b"], ["place"])
    assert _use("C(x > 1)", [False, True], frame).categories is None


def test_the_feature_whose_chance_moves_most_is_named_if_the_stand_in_has_none():
    moved = SimpleNamespace(name="b", chance=0.2, chance_least_squares=0.9, columns=(1,))
    without = SimpleNamespace(name="a", chance=None, chance_least_squares=None, columns=(0,))
    evidence = SimpleNamespace(
        weighed=[without, moved],
        stand_in=SimpleNamespace(columns=(0,)),
        of_column=lambda column: without,
    )
    said = on_one_line(_without_correction(evidence))
    assert re.match("b .*20%", said)


def test_a_rho_beside_zero_does_not_take_its_place():
    assert 0.0 in _places((1e-6, 0.6))
    assert 1.0 not in _places((-0.3, 0.6))


@pytest.mark.parametrize(("rho", "words"), [(None, "rho-hat"), (0.3, "the rho held")])
def test_a_picture_over_rho_says_whether_rho_was_estimated_or_held(data, rho, words):
    model = Heckman([0, 1], rho=rho).fit(data.X, data.y)
    assert model.pictures().over_rho.hat == words


@pytest.mark.parametrize(("least", "words"), [(0.995, "it stays above 99%"), (0.95, "or more")])
def test_a_chance_that_hardly_depends_on_the_weights_is_said_to(least, words):
    sure = SimpleNamespace(name="a", chance=0.999, by_aic=least, by_ebic=0.999, role="predicts")
    unsure = SimpleNamespace(name="b", chance=0.5, by_aic=0.6, by_ebic=0.4, role="cannot be told")
    evidence = SimpleNamespace(weighed=[sure, unsure], outcome="y", window=None)
    said = " ".join(on_one_line(text) for claim in _chance(evidence) for text in astuple(claim))
    assert words in said
