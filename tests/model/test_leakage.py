"""A feature that is the outcome itself is not fitted in silence, wherever the rows are."""

import warnings

import numpy as np
import pytest
from scipy.stats import hypergeom

from heckmanfa import (
    Heckman,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    InverseProbabilityWeighted,
    NaiveOLS,
    RURegressor,
    compress,
    scan_parquet,
)
from heckmanfa.data.row_rules import FeatureCounts
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import (
    AllObservedWarning,
    HeckmanfaError,
    LeakageError,
    LeakageWarning,
    MissingValueError,
)

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]


@pytest.fixture(scope="module")
def rows():
    mroz = load_mroz()
    return mroz[FEATURES].astype(float), mroz["lwage"]


def filled(values):
    return values.fillna(values.mean())


LEAKS = {
    "the outcome": lambda y: y,
    "an affine copy": lambda y: 1200.0 - 7.5 * y,
    "with a large mean": lambda y: y + 1e6,
    "tiny": lambda y: 1e-12 * y,
}


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize(
    "model",
    [
        Heckman(),
        Heckman(["educ"]),
        Heckman(method="ml", cov_type="robust"),
        HeckmanBestSubset(),
        HeckmanFA(epochs=5),
        HeckmanFA("correlation"),
        HeckmanLasso(),
        NaiveOLS(),
        InverseProbabilityWeighted(),
        InverseProbabilityWeighted(["educ"]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_copy_of_the_outcome_is_refused_by_name(rows, model, leak):
    X, y = rows
    X = X.assign(pay=filled(LEAKS[leak](y)))
    with pytest.raises(LeakageError, match=r"'pay'.*428"):
        model.fit(X, y)


def test_several_copies_are_all_named(rows):
    X, y = rows
    X = X.assign(pay=filled(y), more=filled(-y), less=filled(y - 2.0))
    with pytest.raises(LeakageError, match=r"'pay'.*'more'.*'less'"):
        Heckman(None, FEATURES).fit(X, y)


@pytest.mark.parametrize("collinear", [False, True])
def test_features_that_are_the_outcome_together_are_warned_of_by_name(rows, collinear):
    X, y = rows
    part = y * 0.3 + 0.1 * X["age"] + np.sin(np.arange(len(y)))
    X = X.assign(base=filled(part), bonus=filled(3.0 * (y - part)))
    if collinear:
        X = X.assign(twice=2.0 * X["educ"])
    model = HeckmanBestSubset(selection_features=FEATURES)
    names = "'base', 'bonus'"
    with pytest.warns(LeakageWarning, match=f"exact linear combination of {names} in all 428 rows"):
        model.fit(X, y)
    lines = {line[0]: line for line in model.diagnostics().lines()}
    assert lines["R2 of the outcome"][2] == "problem"


def test_what_is_close_or_few_is_not_refused(rows):
    X, y = rows
    noise = np.random.default_rng(0).normal(size=len(y))
    close = X.assign(pay=filled(y + 1e-9 * noise))
    model = Heckman(["educ", "pay"]).fit(close, y)
    assert model.diagnostics().r2 > 0.999
    # As many coefficients as rows reproduce any outcome.
    few = np.random.default_rng(1).normal(size=(12, 5))
    outcome = np.where(np.arange(12) < 6, np.arange(12.0) ** 2, np.nan)
    with pytest.raises(HeckmanfaError) as caught:
        Heckman().fit(few, outcome)
    assert not isinstance(caught.value, LeakageError)


@pytest.fixture
def attempts(tmp_path):
    """Return what fits rows in several shapes, by name; formulas select by ``pay`` as well."""
    torch = pytest.importorskip("torch")
    dd = pytest.importorskip("dask.dataframe")

    def all_of(X, y):
        frame = X.assign(lwage=y)
        path = tmp_path / "t.parquet"
        frame.to_parquet(path, row_group_size=200)
        parts = dd.from_pandas(frame, npartitions=3)
        formula = "lwage ~ educ + pay" if X["pay"].notna().all() else "lwage ~ educ"
        tensors = torch.tensor(X.to_numpy()), torch.tensor(y.to_numpy())
        return {
            "frame": lambda: Heckman().fit(X, y),
            "selected": lambda: Heckman(["educ"]).fit(X, y.fillna(0.0), selected=y.notna()),
            "array": lambda: Heckman().fit(X.to_numpy(), y.to_numpy()),
            "tensor": lambda: Heckman().fit(*tensors),
            "file": lambda: HeckmanBestSubset().fit(scan_parquet(path, "lwage")),
            "file, rows dropped": lambda: Heckman().fit(
                scan_parquet(path, "lwage", missing="drop")
            ),
            "dask": lambda: HeckmanBestSubset().fit(parts[list(X)], parts["lwage"]),
            "formula": lambda: Heckman.from_formula(formula, "age + educ + pay", data=frame),
            "compress": lambda: compress(X, y),
            "standardize": lambda: compress(X, y, standardize=True),
            "regressor": lambda: RURegressor(epochs=1).fit(X, y),
            "weighted": lambda: InverseProbabilityWeighted().fit(X, y),
        }

    return all_of


def named(shape):
    """What the last column is called: arrays and tensors have no names."""
    return "'x5'" if shape in ("array", "tensor") else "'pay'"


def test_a_copy_is_found_in_any_shape_of_rows_and_with_weights(rows, attempts):
    X, y = rows
    X = X.assign(pay=filled(y))
    for shape, attempt in attempts(X, y).items():
        with pytest.raises(LeakageError, match=named(shape)):
            attempt()
    weight = np.random.default_rng(0).integers(1, 5, len(y))
    with pytest.raises(LeakageError, match="'pay'"):
        Heckman().fit(X, y, sample_weight=weight)


def test_where_nothing_is_missing_a_copy_is_warned_of(rows):
    X, y = rows
    s = y.notna()
    X, y = X[s].assign(pay=y[s]), y[s]
    for model in (NaiveOLS(), HeckmanBestSubset(), Heckman()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        said = {warning.category: str(warning.message) for warning in caught}
        assert said.keys() <= {LeakageWarning, AllObservedWarning}
        assert "'pay'" in said[LeakageWarning]
    lines = {line[0]: line for line in model.diagnostics().lines()}
    assert lines["R2 of the outcome"][2] == "problem"


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.MissingFeaturesWarning")
@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        ([], "exactly the 325 rows that are not selected"),
        ([3, 50, 200], r"all 325 rows that are not selected \(and in 3 that are\)"),
    ],
)
def test_a_column_missing_where_the_outcome_is_is_no_column_to_impute(rows, attempts, gaps, said):
    """The advice to impute it would make a model of it that predicts perfectly."""
    X, y = rows
    pay = y * 2.0
    pay[y[y.notna()].index[gaps]] = np.nan
    X = X.assign(pay=pay)
    for shape, attempt in attempts(X, y).items():
        if shape in ("standardize", "regressor"):
            continue  # as the compressed and other regressions
        with pytest.raises(MissingValueError, match=f"{named(shape)} is missing in {said}") as no:
            attempt()
        assert "mpute" not in str(no.value)
    if not gaps:
        # It can predict, being needed where it is known; then it is seen to be a copy.
        with pytest.raises(LeakageError, match="'pay'"):
            Heckman(["educ", "pay"], FEATURES).fit(X, y)


def test_gaps_that_hit_the_few_unselected_rows_by_chance_are_only_gaps():
    """The hypergeometric law says how often they would."""
    for unselected, inside, n_selected in [(2, 30, 100), (1, 1, 50), (3, 40, 60), (4, 9, 300)]:
        chance = hypergeom.pmf(unselected, unselected + n_selected, unselected + inside, unselected)
        assert known_only(unselected, inside, unselected, n_selected) == (chance < 1e-3)
    assert not known_only(0, 0, 0, 40)
    assert not known_only(9, 40, 9, 40), "a column that is empty"
    assert not known_only(8, 0, 9, 40)


def known_only(unselected, selected, n_unselected, n_selected):
    """Whether a column with so many gaps in rows of each kind is known only for the selected."""
    gaps = {"gaps": np.array([unselected + selected]), "gaps_selected": np.array([selected])}
    counts = FeatureCounts(n_selected=n_selected, n_unselected=n_unselected, **gaps)
    return counts.known_only()[0]


@pytest.mark.parametrize("gaps", [[0, 1, 752], range(325)], ids=["few", "as many as unselected"])
def test_a_column_with_other_gaps_is_refused_as_before(rows, gaps):
    X, y = rows
    X = X.copy()
    X.loc[list(gaps), "age"] = np.nan
    with pytest.raises(MissingValueError, match=rf"'age'.*{len(gaps)}.*0"):
        Heckman().fit(X, y)
