"""Refusals that no other test meets, each by what a user would have to do to meet it."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanLasso,
    HeckmanProbit,
    HeckmanProbitBestSubset,
    assignment,
    compress,
    plots,
    scan,
    to_device,
)
from heckmanfa.analysis.column_roles import check_counted
from heckmanfa.analysis.predictions import Request, _refuse_other_units, check_model
from heckmanfa.analysis.request import Question, feature_names
from heckmanfa.cli import app
from heckmanfa.data.arrays import explain_out_of_memory
from heckmanfa.data.columns.dates import scale_of
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.kinds import ColumnSpec
from heckmanfa.data.columns.missing_codes import codes_of
from heckmanfa.data.columns.tally import TextTally
from heckmanfa.data.outcomes import OutcomeCounts, check_outcomes
from heckmanfa.data.rows import total
from heckmanfa.data.scan.parquet_files import explain_failures
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    CollinearError,
    ConstantOutcomeError,
    DataError,
    FormulaError,
    HeckmanfaWarning,
    InputError,
    InputTypeError,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    NotSavedError,
    NotSearchedError,
    TooFewRowsError,
)
from heckmanfa.inference import likelihood_over_rho, replicates, specification
from heckmanfa.inference.exclusion_tests import exclusion_test
from heckmanfa.inference.likelihood_over_rho import _around_zero
from heckmanfa.inference.log_means import check_scale
from heckmanfa.inference.probabilities import check_probability_interval
from heckmanfa.inference.profile_points import Point
from heckmanfa.inference.uncertainty import uncertainty_interval
from heckmanfa.search import Goal, full_model, refitted_subset
from heckmanfa.search.training.gradient import psi_gradient
from heckmanfa.tables import reading
from heckmanfa.tables.delimited import read_delimited
from heckmanfa.tables.marks import MarkOptions

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


@pytest.fixture(scope="module")
def data():
    return make_selection(300, 3, 2, random_state=0)


@pytest.fixture(scope="module")
def frame(data):
    return pd.DataFrame(data.X, columns=list("abc")).assign(y=data.y)


@pytest.fixture(scope="module")
def linear(data):
    return Heckman([0, 1]).fit(data.X, data.y)


@pytest.fixture(scope="module")
def binary():
    made = make_selection(400, 3, 2, outcome_kind="binary", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return made, HeckmanProbit([0, 1]).fit(made.X, made.y)


# Options. -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "scale", "interval", "words"),
    [
        ("expected", "response", None, "use kind 'joint'"),
        ("marginal", "link", None, "predictions of a binary outcome are probabilities"),
        ("marginal", "response", "credible", "must be 'confidence' or None; got 'credible'"),
    ],
)
def test_predictions_that_a_binary_outcome_does_not_have(binary, kind, scale, interval, words):
    with pytest.raises(InputError, match=words):
        check_model(binary[1], Request(kind, interval, scale))


def test_a_linear_outcome_has_no_joint_probability(linear):
    with pytest.raises(InputError, match="Heckman"):
        check_model(linear, Request("joint"))


def test_effects_on_a_probability_have_one_scale():
    with pytest.raises(InputError, match="probability"):
        check_scale("link", binary=True)
    with pytest.raises(InputError, match="got 'credible'"):
        check_probability_interval("credible", 0.95)


def test_a_question_without_features():
    question = Question(data="rows.csv", outcome="y", exclude=("a",))
    with pytest.raises(InputError, match=r"features.*ex"):
        feature_names(question, ["y", "a"])


def test_a_code_of_missing_values_has_a_value():
    with pytest.raises(InputError, match=r"'a='.*'='"):
        codes_of(["a="], ["a", "b"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--outcome-kind", "count"], "--outcome-kind must be linear or binary; got 'count'"),
    ],
)
def test_simulations_that_cannot_be(tmp_path, options, words):
    found = CliRunner().invoke(app, ["simulate", str(tmp_path / "rows.csv"), *options])
    assert found.exit_code == 2
    assert words in found.stderr


# Rows. --------------------------------------------------------------------------------------------


def test_tensors_that_cannot_be_rows(data):
    torch = pytest.importorskip("torch")
    X, y = torch.tensor(data.X), torch.tensor(data.y)
    with pytest.raises(InputError, match="'meta'"):
        Heckman().fit(X.to("meta"), y)
    with pytest.raises(InputError, match=r"y should be a 1d array, got an array of shape"):
        Heckman().fit(X, torch.column_stack([y, y]))
    with pytest.raises(InputError, match="Complex data not supported"):
        Heckman().fit(X, y.to(torch.complex128))


def test_only_a_full_gpu_is_explained_as_one():
    with pytest.raises(RuntimeError, match=r"^something else$"), explain_out_of_memory():
        raise RuntimeError("something else")


def test_frames_for_a_device(frame):
    pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"'float64'.*'float32'.*'float16'"):
        to_device(frame, "cpu", dtype="float16")
    with pytest.raises(InputTypeError, match="to_device"):
        to_device(frame.to_numpy(), "cpu")


def test_nothing_to_add_up():
    with pytest.raises(ValueError, match="block"):
        total(iter(()))


def test_numbers_too_large_for_a_float():
    huge = np.array([10**400, 1, 2] * 10, dtype=object)
    with pytest.raises(InputError, match="float64 cannot hold"):
        Heckman().fit(np.arange(60.0).reshape(30, 2), huge)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (sparse.csr_matrix(np.ones((300, 1))), "y is a sparse matrix; call .toarray"),
        (pd.Series([{"a": 1}, {"b": 2}] * 150), "objects that are not labels"),
    ],
    ids=["sparse", "objects"],
)
def test_labels_that_are_not_labels(data, y, words):
    with pytest.raises(InputTypeError, match=words):
        HeckmanProbit().fit(data.X, y)


def test_nested_labels(data):
    pl = pytest.importorskip("polars")
    with pytest.raises(InputTypeError, match="structs"):
        HeckmanProbit().fit(data.X, pl.Series([[1], [2]] * 150))


def test_dates_in_two_orders_or_that_are_none():
    with pytest.raises(InputError, match="month"):
        scale_of(pd.Series(["13/01/2020", "01/13/2020"] * 20), "when", "days")
    wrong = pd.Series([*(f"2020-01-{day:02}" for day in range(1, 31)), "2020-02-31"])
    with pytest.raises(InputError, match=r"31.*'2020-02-31'"):
        scale_of(wrong, "when", "days")


def test_text_weights_of_rows_read_in_passes():
    question = Question(data="rows.csv", outcome="y", weights="w")
    with pytest.raises(InputError, match=r"weights.*'w'"):
        check_counted(question, {"w": TextTally()}, 10)


# Formulas. ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formulas", "error", "words"),
    [
        (("y ~ a", "log(a - 100) + b"), InputError, "formulas give NaN in every row"),
        (("a*b ~ c", "a + b"), FormulaError, "must be one number per row|left side"),
    ],
)
def test_formulas_without_rows_or_an_outcome(frame, formulas, error, words):
    with pytest.raises(error, match=words):
        Heckman.from_formula(*formulas, frame)


def test_a_selection_formula_without_a_left_side_selects_nobody(frame):
    model = Heckman.from_formula("y ~ a", "a + b", frame)
    with pytest.raises(FormulaError, match="selected"):
        model.fit_.origin.design.who_is_selected(frame)


def test_weights_and_values_that_do_not_fit_a_formula(frame):
    model = Heckman.from_formula("y ~ a", "a + b + log(c + 10)", frame)
    with pytest.raises(InputError, match=r"sample_weight.*3.*300"):
        model.margins(frame, sample_weight=np.ones(3))
    with pytest.raises(InputError, match="at: the formulas give NaN or infinity in 300 rows"):
        model.margins(frame, at={"c": -20.0}, kind="selection")


# Searches. ----------------------------------------------------------------------------------------


def test_groups_that_are_not_lists(data):
    with pytest.raises(InputError, match="feature_groups"):
        HeckmanBestSubset(feature_groups=np.array([[0, 1]])).fit(data.X, data.y)


def test_groups_of_features_that_cannot_predict(data):
    with pytest.raises(InputError, match="feature_groups names "):
        HeckmanBestSubset(prediction_features=[0, 1], feature_groups=[[0, 2]]).fit(data.X, data.y)


def test_an_unknown_criterion(data):
    with pytest.raises(InputError, match="'hqic'"):
        Goal.of(compress(data.X, data.y).moments, "hqic")


def test_no_feature_that_can_predict(data):
    X = np.array(data.X)
    X[~np.isnan(data.y), 2] = 1.0
    with pytest.raises(NoFeasibleAssignmentError, match="feature"):
        HeckmanBestSubset(prediction_features=[2]).fit(X, data.y)


def test_trainings_that_cannot_be(data):
    held = compress(data.X, data.y)
    with pytest.raises(InputError, match=r"train_rows.*1.*0"):
        assignment.train(held.moments, held.rows, epochs=1, train_rows=0)
    with pytest.raises(InputError, match="outcome"):
        assignment.train(replace(held.moments, probit=None), held.rows, epochs=1)


def test_the_gradient_at_a_collinear_assignment(data):
    X = np.column_stack([data.X, data.X[:, 0] + data.X[:, 1]])
    held = compress(X, data.y, selection_features=[0, 1, 2])
    with pytest.raises(InputError, match="the assignment's features are collinear"):
        psi_gradient(held.moments, held.rows, np.array([True, True, False, True]))


def test_too_few_rows_for_any_average():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(np.arange(40) < 3, X[:, 0], np.nan)
    with pytest.raises((NoFeasibleAssignmentError, TooFewRowsError)):
        HeckmanAverage().fit(X, y)


# Inference and pictures. --------------------------------------------------------------------------


def test_a_binary_outcome_has_one_exclusion_test(binary):
    made, model = binary
    with pytest.raises(InputError, match="'ml'"):
        exclusion_test(
            *(model.fit_, made.X, made.y, None),
            method="two-step",
            selected=None,
            sample_weight=None,
            groups=None,
        )


def test_rows_that_are_not_those_of_the_fit(linear, data):
    with pytest.raises(InputError, match="outcome"):
        linear.specification_tests(data.X, np.nan_to_num(data.y))


def test_many_groups_of_effects(linear):
    X = np.random.default_rng(0).normal(size=(3000, 3))
    with pytest.raises(InputError, match="3,000"):
        linear.margins(X, over=np.arange(3000))


def test_a_bootstrap_of_which_nothing_is_left(monkeypatch, linear, data):
    from heckmanfa.inference import bootstrap

    real = bootstrap.run

    def fail(*given):
        found = real(*given)
        return type(found)(**{**vars(found), "estimates": found.estimates[:1]})

    monkeypatch.setattr(bootstrap, "run", fail)
    with pytest.raises(InputError, match="1 of 2 replicates could be fitted, too few to say"):
        linear.bootstrap(data.X, data.y, n_boot=2, random_state=0)


@pytest.mark.parametrize("heights", [[np.nan] * 3, [0.0, np.nan, np.nan], [np.nan, np.nan, 0.0]])
def test_a_likelihood_without_a_maximum_near_a_rho_of_zero(heights):
    points = [
        Point(value, height, 0.0, None)
        for value, height in zip((-0.5, 0.1, 0.5), heights, strict=True)
    ]
    with pytest.raises(NotIdentifiedError, match="maximum"):
        _around_zero(points)


def test_pictures_of_other_models(linear, data):
    with pytest.raises(InputError, match="calibration"):
        plots.calibration(linear, data.X, data.y)
    average = HeckmanAverage().fit(data.X, data.y)
    with pytest.raises(NotSearchedError, match="HeckmanAverage"):
        plots.specification_curve(average)


# Files. -------------------------------------------------------------------------------------------


def test_files_that_are_not_what_they_say(tmp_path):
    wide = tmp_path / "wide.csv"
    wide.write_bytes("\ufeffa,b\n1,2\n".encode("utf-16-le") + b"\x00\xd8\x00\xd8")
    with pytest.raises(DataError, match=r"wide\.csv is not text in|cannot be read"):
        read_delimited(wide, None, MarkOptions())


def test_scans_of_nothing(tmp_path):
    with pytest.raises(InputError, match="file"):
        scan([], outcome="y")
    pd.DataFrame({"y": [1.0, None]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="'y'"):
        scan(tmp_path / "rows.parquet", outcome="y")


# Rarer ones. --------------------------------------------------------------------------------------


def test_columns_in_other_units_than_those_of_the_fit():
    encoding = SimpleNamespace(money={"a": "$"}, percent=())
    with pytest.raises(InputError, match="'a'"):
        _refuse_other_units(SimpleNamespace(money={"a": "€"}, percent=()), encoding, ["a"])
    with pytest.raises(InputError, match="'b'"):
        _refuse_other_units(SimpleNamespace(money={"b": "€"}, percent=()), encoding, ["b"])
    with pytest.raises(InputError, match="'a'"):
        _refuse_other_units(SimpleNamespace(money={"a": "$"}, percent=("a",)), encoding, ["a"])


def test_an_encoding_says_which_features_there_are(tmp_path, frame):
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="encoding"):
        scan(tmp_path / "rows.parquet", "y", ["a"], encoding=Encoding.plain(["a", "b"]))


def test_levels_of_objects():
    with pytest.raises(InputError, match="'g'"):
        Encoding.plain(["g"], {"g": ("a", "b")}).levels_in(pd.Series([["a"], ["b"]]), "g")


def test_categories_with_too_many_levels_to_count():
    tally = TextTally()
    tally.counts, tally.more = {"a": 1, "b": 1}, True
    asked = SimpleNamespace(name="g", asked="category")
    with pytest.raises(InputError, match=r"'g'.*2"):
        ColumnSpec.kind(asked, tally)


def test_dask_arrays_that_are_not_matrices():
    pytest.importorskip("dask")
    from heckmanfa.data.dask_rows import one_column_chunk
    from heckmanfa.data.dask_worker import _source

    with pytest.raises(InputError, match="columns"):
        one_column_chunk(SimpleNamespace(shape=(10, np.nan)))
    with pytest.raises(InputError, match="NumPy"):
        _source([1.0, 2.0])


def test_outcomes_of_one_class_in_the_rows_of_a_fit():
    counts = OutcomeCounts.of(np.ones(20))
    with pytest.raises(ConstantOutcomeError, match=r"20.*'no'"):
        check_outcomes(counts, 30, ("no", "yes"))


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (OSError(5, "Input/output error"), DataError, "rows.parquet cannot be read: Input/output"),
        (MemoryError("all of it"), MemoryError, "all of it"),
        ("arrow", DataError, "not enough memory to read a part of .*rows.parquet"),
    ],
    ids=["device", "memory", "arrow"],
)
def test_parquet_files_that_fail_while_they_are_read(error, expected, words):
    pa = pytest.importorskip("pyarrow")
    error = pa.ArrowMemoryError("malloc failed") if error == "arrow" else error
    with (
        pytest.raises(expected, match=words),
        explain_failures(Path("rows.parquet"), scanned=True),
    ):
        raise error


def test_files_that_are_gone_or_in_two_stores(tmp_path, frame):
    fsspec = pytest.importorskip("fsspec")
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    local = pytest.importorskip("pyarrow.fs").LocalFileSystem()
    with pytest.raises(InputError, match="filesystem"):
        scan(path, "y", filesystem=local, storage_options={"a": 1})
    with pytest.raises(InputError, match="fsspec cannot read"):
        scan("dropbox://bucket/rows.parquet", "y")
    store = fsspec.filesystem("memory")
    with store.open("/refusals/rows.parquet", "wb") as file:
        file.write(path.read_bytes())
    store.makedirs("/refusals/empty", exist_ok=True)
    with pytest.raises(InputError, match="store"):
        scan(["memory://refusals/rows.parquet", path.as_uri()], "y")
    with pytest.raises((InputError, DataError), match="empty"):
        scan("memory://refusals/empty", "y")
    rows = scan("memory://refusals/rows.parquet", "y")
    store.rm("/refusals", recursive=True)
    with pytest.raises(DataError, match="scanned"):
        Heckman(["a"]).fit(rows)


def test_other_rows_where_nothing_was_selected(data):
    y = np.nan_to_num(data.y)
    model = Heckman([0, 1]).fit(data.X, y)
    with pytest.raises(InputError, match="the rows given are not those of the fit"):
        plots.residuals(model, data.X[1:], y[1:])


def test_groups_are_for_clusters(data):
    linear = Heckman([0]).fit(data.X, data.y)
    with pytest.raises(InputError, match=r"cov_type.*'cluster'"):
        linear.exclusion_test(data.X, data.y, groups=np.arange(300) % 7)


def test_no_selection_feature_is_left():
    X = np.ones((60, 1))
    y = np.where(np.arange(60) % 2, np.arange(60.0), np.nan)
    with pytest.raises(TooFewRowsError, match="selection"):
        Heckman(on_collinear="drop").fit(X, y)


def test_an_analysis_has_its_rows():
    class Analysis:
        def pictures(self):
            """Return nothing."""

    with pytest.raises(InputError, match="Analysis"):
        plots.overlap(Analysis(), np.ones((2, 2)))


def test_a_saved_search_knows_how_many_are_near_for_its_own_tolerance_alone(data):
    search = HeckmanBestSubset().fit(data.X, data.y).fit_.search.check_searched()
    saved = replace(search, n_near=3)
    assert saved.nearly_best(saved.nearly) == 3
    with pytest.raises(NotSavedError, match="candidates"):
        saved.nearly_best(2 * saved.nearly)


def test_files_on_a_device_that_fails(monkeypatch, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(reading, "_read", fail)
    with pytest.raises(DataError, match=r"rows\.csv cannot be read: "):
        reading.read_table(path)


# Where something inside fails. --------------------------------------------------------------------


def test_rows_with_more_fields_than_the_header(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2,3\n4,5,6\n7,8,9\n")
    with pytest.raises((DataError, InputError), match=r"rows\.csv"):
        read_delimited(path, None, MarkOptions())


def test_a_pipe_that_breaks(monkeypatch):
    def fail(*_):
        raise OSError(32, "Broken pipe")

    monkeypatch.setattr(reading, "_standard_input", lambda: io.BytesIO(b"a,b\n1,2\n"))
    monkeypatch.setattr(reading.shutil, "copyfileobj", fail)
    with pytest.raises(DataError, match="Broken pipe"), reading.spooled("-"):
        pass


def test_things_that_do_not_become_an_array(data):
    class Odd:
        def __array__(self, *_, **__):
            raise TypeError("this is no column")

    with pytest.raises(InputTypeError, match="selected"):
        Heckman().fit(data.X, data.y, selected=Odd())


def test_a_stopped_search_stops_the_replicates(monkeypatch):
    stopped = SimpleNamespace(search=SimpleNamespace(interrupted=True))
    monkeypatch.setattr(replicates, "fit_model", lambda *_: stopped)
    with pytest.raises(KeyboardInterrupt):
        replicates.Refit(None, None)(None, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("interrupted", "error"), [(True, KeyboardInterrupt), (False, NoFeasibleAssignmentError)]
)
def test_a_search_of_refits_that_evaluated_nothing(monkeypatch, binary, interrupted, error):
    nothing = SimpleNamespace(masks=np.zeros((0, 3), dtype=bool), interrupted=interrupted)
    monkeypatch.setattr(refitted_subset, "best_of_form", lambda *_, **__: nothing)
    with pytest.raises(error):
        HeckmanProbitBestSubset().fit(binary[0].X, binary[0].y)


def test_a_model_of_all_features_that_cannot_be_fitted(monkeypatch, binary):
    monkeypatch.setattr(full_model, "inverse_definite", lambda _: None)
    monkeypatch.setattr(full_model, "_hold", lambda *_: None)
    with pytest.raises(NotIdentifiedError, match="the model of all 3 features"):
        HeckmanProbitBestSubset().fit(binary[0].X, binary[0].y)


def _no_maximum(*_, **__):
    return "it has no maximum"


def test_a_model_that_cannot_be_refitted_is_not_tested(monkeypatch, binary):
    made, model = binary
    monkeypatch.setattr(specification, "refit_by_likelihood", lambda *_, **__: "it has no maximum")
    with pytest.raises(NotIdentifiedError, match="maximum"):
        model.specification_tests(made.X, made.y)


def test_a_range_of_rho_beyond_what_has_a_maximum(monkeypatch, binary):
    made, model = binary
    real = likelihood_over_rho._around_zero
    monkeypatch.setattr(
        likelihood_over_rho,
        "_around_zero",
        lambda points: [p for p in real(points) if abs(p.value) < 0.2],
    )
    with pytest.raises(NotIdentifiedError, match=r"maximum.*narrow"):
        model.uncertainty_interval(made.X, made.y, rho=(-0.5, 0.5))


def test_features_that_always_predict_and_are_collinear(data):
    X = np.column_stack([data.X, data.X[:, 0] + data.X[:, 1]])
    model = HeckmanLasso(always=[0, 1, 3], selection_features=[0, 1, 2], on_collinear="drop")
    with pytest.raises(CollinearError):
        model.fit(X, data.y)


def test_dates_are_not_classes(frame):
    dated = frame.assign(when=pd.date_range("2020-01-01", periods=len(frame)))
    with pytest.raises(InputError, match="'when'"):
        HeckmanProbit.from_formula("when ~ a", "a + b", dated)


def test_a_fit_without_its_scores_of_rho_has_no_robust_errors_over_rho(data):
    model = Heckman([0, 1], cov_type="robust").fit(data.X, data.y)
    bare = replace(model.fit_, rho_scores=None)
    with pytest.raises(InputError, match="robust"):
        uncertainty_interval(bare, None, None, (-0.5, 0.5), 0.95, 11)
