"""Refusals that no other test meets, each by what a user would have to do to meet it."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cached_property
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
    InputError,
    InputTypeError,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    NotSavedError,
    NotSearchedError,
    TooFewRowsError,
)
from heckmanfa.fit import PassedRows
from heckmanfa.inference import bootstrap, ml_over_rho, replicates, specification
from heckmanfa.inference.log_means import check_scale
from heckmanfa.inference.ml_over_rho import _around_zero
from heckmanfa.inference.prediction import check_interval
from heckmanfa.inference.profiler import Point
from heckmanfa.inference.uncertainty import uncertainty_interval
from heckmanfa.search import Goal, full_model, refitted_subset
from heckmanfa.search.training.gradient import psi_gradient
from heckmanfa.tables import reading
from heckmanfa.tables.delimited import ReadOptions, read_delimited

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


class Setting:
    """Data and models that refusals are about, made when first asked for."""

    made = make_selection(300, 3, 2, random_state=0)
    X, y = made.X, made.y
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    # The last column is the sum of two others.
    collinear = np.column_stack([X, X[:, 0] + X[:, 1]])

    @cached_property
    def linear(self):
        return Heckman([0, 1]).fit(self.X, self.y)

    @cached_property
    def binary(self):
        return make_selection(400, 3, 2, outcome_kind="binary", random_state=0)

    @cached_property
    def probit(self):
        return HeckmanProbit([0, 1]).fit(self.binary.X, self.binary.y)

    @cached_property
    def held(self):
        return compress(self.X, self.y)

    def formulas(self, prediction, selection):
        return Heckman.from_formula(prediction, selection, self.frame)


@pytest.fixture(scope="module")
def at():
    return Setting()


def _constant_where_selected(at):
    X = np.array(at.X)
    X[~np.isnan(at.y), 2] = 1.0
    return HeckmanBestSubset(prediction_features=[2]).fit(X, at.y)


def _saved_search(at):
    search = HeckmanBestSubset().fit(at.X, at.y).fit_.search.check_searched()
    saved = replace(search, n_near=3)
    assert saved.nearly_best(saved.nearly) == 3
    saved.nearly_best(2 * saved.nearly)


def _other_rows_of_a_fit_to_all(at):
    y = np.nan_to_num(at.y)
    plots.residuals(Heckman([0, 1]).fit(at.X, y), at.X[1:], y[1:])


def _without_rho_scores(at):
    fit = Heckman([0, 1], cov_type="robust").fit(at.X, at.y).fit_
    uncertainty_interval(replace(fit, details=None), PassedRows(), (-0.5, 0.5), 0.95, 11)


def _asked(**options):
    return Question(data="rows.csv", outcome="y", **options)


class _NotAColumn:
    def __array__(self, *_, **__):
        raise TypeError("this is no column")


class _Analysis:
    def pictures(self):
        """Return nothing."""


_DAYS = [*(f"2020-01-{day:02}" for day in range(1, 31)), "2020-02-31"]
_MANY_LEVELS = TextTally()
_MANY_LEVELS.counts, _MANY_LEVELS.more = {"a": 1, "b": 1}, True

OPTIONS = {
    "a class has no expected outcome": (
        (InputError, "'joint'"),
        lambda at: check_model(at.probit, Request("expected")),
    ),
    "a probability has no link": (
        (InputError, "probabilities"),
        lambda at: check_model(at.probit, Request("marginal", None, "link")),
    ),
    "an unknown interval of a probability": (
        (InputError, "'confidence'.*'credible'"),
        lambda at: check_model(at.probit, Request("marginal", "credible")),
    ),
    "an amount has no joint probability": (
        (InputError, "Heckman"),
        lambda at: check_model(at.linear, Request("joint")),
    ),
    "an effect on a probability has one scale": (
        (InputError, "probability"),
        lambda at: check_scale("link", binary=True),
    ),
    "an interval of another name": (
        (InputError, "'credible'"),
        lambda at: check_interval("credible", 0.95, "class"),
    ),
    "a class has no interval": (
        (InputError, "predict_proba"),
        lambda at: at.probit.predict(at.X, return_interval="confidence"),
    ),
    "a question without features": (
        (InputError, r"features.*ex"),
        lambda at: feature_names(_asked(exclude=("a",)), ["y", "a"]),
    ),
    "a missing code without a value": (
        (InputError, r"'a='.*'='"),
        lambda at: codes_of(["a="], ["a", "b"]),
    ),
    "an unknown criterion": ((InputError, "'hqic'"), lambda at: Goal.of(at.held.moments, "hqic")),
}
ROWS = {
    "nothing to add up": ((ValueError, "block"), lambda at: total(iter(()))),
    "numbers too large for a float": (
        (InputError, "float64"),
        lambda at: Heckman().fit(
            np.arange(60.0).reshape(30, 2), np.array([10**400, 1, 2] * 10, dtype=object)
        ),
    ),
    "sparse labels": (
        (InputTypeError, r"y is.*toarray"),
        lambda at: HeckmanProbit().fit(at.X, sparse.csr_matrix(np.ones((300, 1)))),
    ),
    "objects as labels": (
        (InputTypeError, "labels"),
        lambda at: HeckmanProbit().fit(at.X, pd.Series([{"a": 1}, {"b": 2}] * 150)),
    ),
    "what does not become an array": (
        (InputTypeError, "selected"),
        lambda at: Heckman().fit(at.X, at.y, selected=_NotAColumn()),
    ),
    "dates in two orders": (
        (InputError, "month"),
        lambda at: scale_of(pd.Series(["13/01/2020", "01/13/2020"] * 20), "when", "days"),
    ),
    "a date that is not one": (
        (InputError, r"31.*'2020-02-31'"),
        lambda at: scale_of(pd.Series(_DAYS), "when", "days"),
    ),
    "text as weights": (
        (InputError, r"weights.*'w'"),
        lambda at: check_counted(_asked(weights="w"), {"w": TextTally()}, 10),
    ),
    "no selection feature left": (
        (TooFewRowsError, "selection"),
        lambda at: Heckman(on_collinear="drop").fit(
            np.ones((60, 1)), np.where(np.arange(60) % 2, np.arange(60.0), np.nan)
        ),
    ),
    "levels of objects": (
        (InputError, "'g'"),
        lambda at: Encoding.plain(["g"], {"g": ("a", "b")}).levels_in(
            pd.Series([["a"], ["b"]]), "g"
        ),
    ),
    "too many levels to count": (
        (InputError, r"'g'.*2"),
        lambda at: ColumnSpec.kind(SimpleNamespace(name="g", asked="category"), _MANY_LEVELS),
    ),
    "one class": (
        (ConstantOutcomeError, r"20.*'no'"),
        lambda at: check_outcomes(OutcomeCounts.of(np.ones(20)), 30, ("no", "yes")),
    ),
}
FORMULAS = {
    "NaN in every row": (
        (InputError, "NaN"),
        lambda at: at.formulas("y ~ a", "log(a - 100) + b"),
    ),
    "two outcomes": ((FormulaError, "a"), lambda at: at.formulas("a*b ~ c", "a + b")),
    "a selection without a left side": (
        (FormulaError, "selected"),
        lambda at: at.formulas("y ~ a", "a + b").fit_.origin.design.who_is_selected(at.frame),
    ),
    "weights of other rows": (
        (InputError, r"sample_weight.*3.*300"),
        lambda at: at.formulas("y ~ a", "a + b").margins(at.frame, sample_weight=np.ones(3)),
    ),
    "a value without a logarithm": (
        (InputError, "at: .*300"),
        lambda at: at.formulas("y ~ a", "a + b + log(c + 10)").margins(
            at.frame, at={"c": -20.0}, kind="selection"
        ),
    ),
    "dates as classes": (
        (InputError, "'when'"),
        lambda at: HeckmanProbit.from_formula(
            "when ~ a", "a + b", at.frame.assign(when=pd.date_range("2020-01-01", periods=300))
        ),
    ),
}
SEARCHES = {
    "groups that are not lists": (
        (InputError, "feature_groups"),
        lambda at: HeckmanBestSubset(feature_groups=np.array([[0, 1]])).fit(at.X, at.y),
    ),
    "groups of what cannot predict": (
        (InputError, "feature_groups"),
        lambda at: HeckmanBestSubset(prediction_features=[0, 1], feature_groups=[[0, 2]]).fit(
            at.X, at.y
        ),
    ),
    "no feature that can predict": (
        (NoFeasibleAssignmentError, "feature"),
        _constant_where_selected,
    ),
    "training on no row": (
        (InputError, r"train_rows.*1.*0"),
        lambda at: assignment.train(at.held.moments, at.held.rows, epochs=1, train_rows=0),
    ),
    "training without selection": (
        (InputError, "outcome"),
        lambda at: assignment.train(replace(at.held.moments, probit=None), at.held.rows, epochs=1),
    ),
    "the gradient of collinear features": (
        (InputError, "collinear"),
        lambda at: psi_gradient(
            (held := compress(at.collinear, at.y, selection_features=[0, 1, 2])).moments,
            held.rows,
            np.array([True, True, False, True]),
        ),
    ),
    "collinear features that always predict": (
        (CollinearError, None),
        lambda at: HeckmanLasso(
            always=[0, 1, 3], selection_features=[0, 1, 2], on_collinear="drop"
        ).fit(at.collinear, at.y),
    ),
    "too few rows for an average": (
        ((NoFeasibleAssignmentError, TooFewRowsError), None),
        lambda at: HeckmanAverage().fit(
            at.X[:40, :2], np.where(np.arange(40) < 3, at.X[:40, 0], np.nan)
        ),
    ),
    "a saved search asked for another tolerance": ((NotSavedError, "candidates"), _saved_search),
}
INFERENCE = {
    "two-step tests of classes": (
        (InputError, "'ml'"),
        lambda at: at.probit.exclusion_test(at.binary.X, at.binary.y, method="two-step"),
    ),
    "rows of another fit": (
        (InputError, "outcome"),
        lambda at: at.linear.specification_tests(at.X, np.nan_to_num(at.y)),
    ),
    "many groups of effects": (
        (InputError, "3,000"),
        lambda at: at.linear.margins(np.tile(at.X, (10, 1)), over=np.arange(3000)),
    ),
    "groups without clusters": (
        (InputError, r"cov_type.*'cluster'"),
        lambda at: Heckman([0]).fit(at.X, at.y).exclusion_test(at.X, at.y, groups=at.X[:, 0]),
    ),
    "robust errors over rho without scores": ((InputError, "robust"), _without_rho_scores),
    "calibration of amounts": (
        (InputError, "calibration"),
        lambda at: plots.calibration(at.linear, at.X, at.y),
    ),
    "the specification curve of an average": (
        (NotSearchedError, "HeckmanAverage"),
        lambda at: plots.specification_curve(HeckmanAverage().fit(at.X, at.y)),
    ),
    "other rows where nothing was selected": ((InputError, "rows"), _other_rows_of_a_fit_to_all),
    "rows beside an analysis": (
        (InputError, "Analysis"),
        lambda at: plots.overlap(_Analysis(), np.ones((2, 2))),
    ),
}
UNITS = {
    f"{name} in other units": (
        (InputError, f"'{name}'"),
        lambda at, name=name, money=money, percent=percent: _refuse_other_units(
            SimpleNamespace(money=money, percent=percent),
            SimpleNamespace(money={"a": "$"}, percent=()),
            [name],
        ),
    )
    for name, money, percent in [("a", {"a": "€"}, ()), ("b", {"b": "€"}, ())]
} | {
    "a percentage of money": (
        (InputError, "'a'"),
        lambda at: _refuse_other_units(
            SimpleNamespace(money={"a": "$"}, percent=("a",)),
            SimpleNamespace(money={"a": "$"}, percent=()),
            ["a"],
        ),
    ),
}
CASES = OPTIONS | ROWS | FORMULAS | SEARCHES | INFERENCE | UNITS


@pytest.mark.parametrize(("expected", "ask"), CASES.values(), ids=CASES)
def test_it_is_refused_by_name(at, expected, ask):
    error, words = expected
    with pytest.raises(error, match=words):
        ask(at)


def test_simulations_that_cannot_be(tmp_path):
    asked = ["simulate", str(tmp_path / "rows.csv"), "--outcome-kind", "count"]
    refused = CliRunner().invoke(app, asked)
    assert refused.exit_code == 2
    assert "--outcome-kind" in refused.stderr
    assert "'count'" in refused.stderr


# Other libraries. ---------------------------------------------------------------------------------


def test_tensors_that_cannot_be_rows(at):
    torch = pytest.importorskip("torch")
    X, y = torch.tensor(at.X), torch.tensor(at.y)
    for features, outcome, words in (
        (X.to("meta"), y, "'meta'"),
        (X, torch.column_stack([y, y]), r"\by\b"),
        (X, y.to(torch.complex128), "(?i)complex"),
    ):
        with pytest.raises(InputError, match=words):
            Heckman().fit(features, outcome)
    with pytest.raises(InputError, match=r"'float64'.*'float32'.*'float16'"):
        to_device(at.frame, "cpu", dtype="float16")
    with pytest.raises(InputTypeError, match="to_device"):
        to_device(at.frame.to_numpy(), "cpu")


def test_only_a_full_gpu_is_explained_as_one():
    with pytest.raises(RuntimeError, match=r"^something else$"), explain_out_of_memory():
        raise RuntimeError("something else")


def test_nested_labels(at):
    pl = pytest.importorskip("polars")
    with pytest.raises(InputTypeError, match="structs"):
        HeckmanProbit().fit(at.X, pl.Series([[1], [2]] * 150))


def test_dask_arrays_that_are_not_matrices():
    pytest.importorskip("dask")
    from heckmanfa.data.dask_rows import one_column_chunk
    from heckmanfa.data.dask_worker import _source

    with pytest.raises(InputError, match="columns"):
        one_column_chunk(SimpleNamespace(shape=(10, np.nan)))
    with pytest.raises(InputError, match="NumPy"):
        _source([1.0, 2.0])


# Files. -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    ["\ufeffa,b\n1,2\n".encode("utf-16-le") + b"\x00\xd8\x00\xd8", b"a,b\n1,2,3\n4,5,6\n7,8,9\n"],
    ids=["another encoding", "more fields than the header"],
)
def test_files_that_are_not_what_they_say(tmp_path, content):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises((DataError, InputError), match=r"rows\.csv"):
        read_delimited(path, ReadOptions())


def test_scans_of_nothing_or_of_other_features(tmp_path, at):
    path = tmp_path / "rows.parquet"
    with pytest.raises(InputError, match="file"):
        scan([], outcome="y")
    at.frame.to_parquet(path)
    with pytest.raises(InputError, match="encoding"):
        scan(path, "y", ["a"], encoding=Encoding.plain(["a", "b"]))
    pd.DataFrame({"y": [1.0, None]}).to_parquet(path)
    with pytest.raises(InputError, match="'y'"):
        scan(path, outcome="y")


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (OSError(5, "Input/output error"), DataError, "rows.parquet"),
        (MemoryError("all of it"), MemoryError, "all of it"),
        ("arrow", DataError, "rows.parquet"),
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


def test_files_that_are_gone_or_in_two_stores(tmp_path, at):
    fsspec = pytest.importorskip("fsspec")
    path = tmp_path / "rows.parquet"
    at.frame.to_parquet(path)
    local = pytest.importorskip("pyarrow.fs").LocalFileSystem()
    store = fsspec.filesystem("memory")
    with store.open("/refusals/rows.parquet", "wb") as file:
        file.write(path.read_bytes())
    store.makedirs("/refusals/empty", exist_ok=True)
    for place, options, words in (
        (path, {"filesystem": local, "storage_options": {"a": 1}}, "filesystem"),
        ("dropbox://bucket/rows.parquet", {}, "fsspec"),
        (["memory://refusals/rows.parquet", path.as_uri()], {}, "store"),
        ("memory://refusals/empty", {}, "empty"),
    ):
        with pytest.raises((InputError, DataError), match=words):
            scan(place, "y", **options)
    rows = scan("memory://refusals/rows.parquet", "y")
    store.rm("/refusals", recursive=True)
    with pytest.raises(DataError, match="scanned"):
        Heckman(["a"]).fit(rows)


# Where something inside fails. --------------------------------------------------------------------


def _fails(*values):
    def fail(*_):
        raise OSError(*values)

    return fail


def test_files_on_a_device_that_fails_and_pipes_that_break(monkeypatch, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    monkeypatch.setattr(reading, "_read", _fails(5, "Input/output error"))
    with pytest.raises(DataError, match=r"rows\.csv"):
        reading.read_table(path)
    monkeypatch.setattr(reading, "_standard_input", lambda: io.BytesIO(b"a,b\n1,2\n"))
    monkeypatch.setattr(reading.shutil, "copyfileobj", _fails(32, "Broken pipe"))
    with pytest.raises(DataError, match="Broken pipe"), reading.spooled("-"):
        pass


def test_a_bootstrap_of_which_nothing_is_left(monkeypatch, at):
    real = bootstrap.run

    def fail(*given):
        replicas = real(*given)
        return type(replicas)(**{**vars(replicas), "estimates": replicas.estimates[:1]})

    monkeypatch.setattr(bootstrap, "run", fail)
    with pytest.raises(InputError, match="1 of 2 replicates"):
        at.linear.bootstrap(at.X, at.y, n_boot=2, random_state=0)


@pytest.mark.parametrize("heights", [[np.nan] * 3, [0.0, np.nan, np.nan], [np.nan, np.nan, 0.0]])
def test_a_likelihood_without_a_maximum_near_a_rho_of_zero(heights):
    points = [
        Point(value, height, 0.0, None)
        for value, height in zip((-0.5, 0.1, 0.5), heights, strict=True)
    ]
    with pytest.raises(NotIdentifiedError, match="maximum"):
        _around_zero(points)


def test_a_stopped_search_stops_the_replicates(monkeypatch):
    stopped = SimpleNamespace(search=SimpleNamespace(interrupted=True))
    monkeypatch.setattr(replicates, "fit_model", lambda *_: stopped)
    with pytest.raises(KeyboardInterrupt):
        replicates.Refit(None, None)(None, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("interrupted", "error"), [(True, KeyboardInterrupt), (False, NoFeasibleAssignmentError)]
)
def test_a_search_of_refits_that_evaluated_nothing(monkeypatch, at, interrupted, error):
    nothing = SimpleNamespace(masks=np.zeros((0, 3), dtype=bool), interrupted=interrupted)
    monkeypatch.setattr(refitted_subset, "best_of_form", lambda *_, **__: nothing)
    with pytest.raises(error):
        HeckmanProbitBestSubset().fit(at.binary.X, at.binary.y)


def _near_zero(points, around_zero=ml_over_rho._around_zero):
    return [point for point in around_zero(points) if abs(point.value) < 0.2]


@pytest.mark.parametrize(
    ("patches", "words", "ask"),
    [
        (
            {
                "inverse_definite": (full_model, lambda _: None),
                "_hold": (full_model, lambda *_: None),
            },
            "all 3 features",
            lambda at: HeckmanProbitBestSubset().fit(at.binary.X, at.binary.y),
        ),
        (
            {"refit_by_likelihood": (specification, lambda *_, **__: "it has no maximum")},
            "maximum",
            lambda at: at.probit.specification_tests(at.binary.X, at.binary.y),
        ),
        (
            {"_around_zero": (ml_over_rho, _near_zero)},
            "maximum",
            lambda at: at.probit.uncertainty_interval(at.binary.X, at.binary.y, rho=(-0.5, 0.5)),
        ),
    ],
    ids=["search", "tests", "held rho"],
)
def test_likelihoods_without_a_maximum(monkeypatch, at, patches, words, ask):
    # Fitted before anything fails.
    assert at.probit.fit_
    for name, (module, instead) in patches.items():
        monkeypatch.setattr(module, name, instead)
    with pytest.raises(NotIdentifiedError, match=words):
        ask(at)
