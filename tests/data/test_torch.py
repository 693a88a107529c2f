"""Tensors, on the CPU and (if there is one) on a CUDA GPU, give what NumPy gives."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier

from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    HeckmanOrdered,
    HeckmanProbit,
    HeckmanProbitBestSubset,
    InverseProbabilityWeighted,
    NaiveOLS,
    RURegressor,
    assignment,
    compress,
    to_device,
)
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    DeviceMemoryError,
    DroppedFeaturesWarning,
    InputError,
    MissingValueError,
    SeparationError,
)
from heckmanfa.model.bivariate_normal import log_bivariate_cdf
from heckmanfa.model.normal import inverse_mills, log_cdf_and_mills, mills

torch = pytest.importorskip("torch")

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
    ),
]
TERMS = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]


@pytest.fixture(params=DEVICES)
def device(request: Any) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def data() -> Any:
    return make_selection(12_000, 8, 4, rho=0.6, random_state=3)


def tensor(values: Any, device: str, dtype: Any = None) -> Any:
    return torch.as_tensor(np.array(values), dtype=dtype or torch.float64, device=device)


def assert_same(one: Heckman, other: Heckman, within: float = 1e-8) -> None:
    """Estimates within so many standard errors, and standard errors as closely."""
    a, b = one.tidy(), other.tidy()
    assert list(a["term"]) == list(b["term"])
    errors = a["std_error"].to_numpy()
    known = np.isfinite(errors)
    # A two-step rho and sigma have no standard error; they are held to their own size.
    unit = np.where(known, errors, np.abs(a["estimate"].to_numpy()))
    assert np.all(np.abs(a["estimate"] - b["estimate"]).to_numpy() <= within * unit)
    np.testing.assert_allclose(b["std_error"].to_numpy()[known], errors[known], rtol=within)


@pytest.fixture(scope="module")
def binary() -> Any:
    return make_selection(800, 4, 2, rho=0.5, outcome_kind="binary", random_state=0)


def both(model: Any, data: Any, device: str, dtype: Any = None, **beside: Any) -> Any:
    """Fit a model to arrays, and to tensors of them and of what stands beside them."""
    here = clone(model).fit(data.X, data.y, **beside)
    beside = {name: torch.as_tensor(values, device=device) for name, values in beside.items()}
    there = clone(model).fit(tensor(data.X, device, dtype), tensor(data.y, device), **beside)
    return here, there


# The same digits. ---------------------------------------------------------------------------------

COV_TYPES = (None, "robust", "cluster")
MODELS = [
    *(Heckman(range(4), cov_type=kind) for kind in COV_TYPES),
    *(Heckman(range(4), method="ml", cov_type=kind) for kind in COV_TYPES),
    *(HeckmanProbit([0, 1], cov_type=kind) for kind in COV_TYPES),
    HeckmanBestSubset(),
    HeckmanProbitBestSubset(n_refits=2),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_tensors_give_the_estimates_of_numpy(data, binary, device, model):
    rows = binary if is_classifier(model) else data
    clusters = {"groups": np.arange(len(rows.y)) // 7} if model.cov_type == "cluster" else {}
    here, there = both(model, rows, device, **clusters)
    assert there.prediction_features_ == here.prediction_features_
    assert there.row_counts_ == here.row_counts_
    assert there.bic_ == pytest.approx(here.bic_, rel=1e-12)
    assert getattr(there, "optimal_", True)
    assert_same(here, there)


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_tensors_with_names_give_the_estimates_of_a_frame(device, method):
    mroz = load_mroz()
    model = Heckman(["educ", "exper", "expersq"], method=method)
    here = clone(model).fit(mroz[TERMS], mroz["lwage"])
    there = clone(model).fit(to_device(mroz[TERMS], device), mroz["lwage"])
    assert list(there.feature_names_in_) == TERMS
    assert_same(here, there)


@pytest.mark.parametrize(("kind", "cov_type"), [("frequency", None), ("sampling", "robust")])
def test_weights_and_flags_mean_the_same_for_tensors(data, device, kind, cov_type):
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(data.y)).astype(float)
    chosen = ~np.isnan(data.y)
    y = np.where(chosen, data.y, -1.0)
    y[np.flatnonzero(chosen)[:5]] = np.nan
    model = Heckman(range(4), weight_kind=kind, cov_type=cov_type)
    rows = SimpleNamespace(X=data.X, y=y)
    here, there = both(model, rows, device, selected=chosen, sample_weight=weight)
    assert there.row_counts_ == here.row_counts_
    assert_same(here, there)


def test_weights_flags_and_float32_mean_the_same_for_a_probit_of_tensors(binary, device):
    seen = ~np.isnan(binary.y)
    weight = np.random.default_rng(0).integers(0, 4, len(seen)).astype(float)
    high = np.where(seen, binary.y, 7.0)
    here = HeckmanProbit([0, 1]).fit(binary.X, high, selected=seen, sample_weight=weight)
    there = HeckmanProbit([0, 1]).fit(
        tensor(binary.X, device),
        tensor(high, device, torch.int32),
        selected=torch.as_tensor(seen, device=device),
        sample_weight=tensor(weight, device),
    )
    assert_same(here, there)
    single = HeckmanProbit([0, 1]).fit(
        tensor(binary.X, device, torch.float32), binary.y, sample_weight=weight
    )
    assert_same(here, single, 1e-5)


def test_a_probit_of_tensors_predicts_tensors_and_texts_as_an_array(binary, device):
    X = tensor(binary.X, device)
    words = np.where(np.isnan(binary.y), None, np.where(binary.y == 1, "yes", "no"))
    numbers, texts = (HeckmanProbit([0, 1]).fit(X, y) for y in (binary.y, words))
    reference = HeckmanProbit([0, 1]).fit(binary.X, binary.y)
    for model in (numbers, texts):
        for method in ("predict_proba", "predict_selection", "predict_joint"):
            given = getattr(model, method)(X)
            assert given.device.type == device
            np.testing.assert_allclose(
                given.cpu(), getattr(reference, method)(binary.X), rtol=1e-9, atol=1e-300
            )
    for kind in ("selected", "unselected"):
        given, expected = (
            model.predict_proba(x, kind) for model, x in ((numbers, X), (reference, binary.X))
        )
        np.testing.assert_allclose(given.cpu(), expected, rtol=1e-9)
    likely = reference.predict_proba(binary.X)[:, 1] > 0.5
    classes = numbers.predict(X)
    assert classes.device.type == device
    np.testing.assert_array_equal(classes.cpu(), likely)
    np.testing.assert_array_equal(texts.predict(X), np.where(likely, "yes", "no"))
    assert texts.score(X, words) == pytest.approx(reference.score(binary.X, binary.y), rel=1e-12)


def test_ordered_classes_of_tensors_are_those_of_numpy(data, device):
    rows, y = data.X[:2000], data.y[:2000]
    y = np.where(np.isnan(y), np.nan, np.digitize(y, np.nanquantile(y, [0.2, 0.5, 0.8])))
    reference, X = HeckmanOrdered(range(4)).fit(rows, y), tensor(rows, device)
    model = HeckmanOrdered(range(4)).fit(X, tensor(y, device))
    assert_same(reference, model)
    for kind in ("marginal", "selected", "unselected"):
        given = model.predict_proba(X, kind)
        assert given.device.type == device
        np.testing.assert_allclose(given.cpu(), reference.predict_proba(rows, kind), rtol=1e-8)
    np.testing.assert_array_equal(model.predict(X).cpu(), reference.predict(rows))


@pytest.mark.parametrize("rho", [0.0, 0.5, -0.97, 1.0 - 1e-10])
def test_the_bivariate_normal_of_tensors_has_the_digits_of_numpy(device, rho):
    ends = np.array([-60.0, -8.0, -1.0, -1e-9, 0.0, 0.3, 5.0, 40.0])
    h, k = (grid.reshape(-1) for grid in np.meshgrid(ends, ends))
    expected = log_bivariate_cdf(h, k, rho)
    given = log_bivariate_cdf(tensor(h, device), tensor(k, device), rho)
    assert given.device.type == device
    np.testing.assert_allclose(given.cpu(), expected, rtol=1e-11, atol=1e-300)


def test_blocks_of_any_size_give_the_same_estimates(data, device):
    whole = compress(tensor(data.X, device), tensor(data.y, device))
    for size in (997, 4000):
        rows = replace(whole.rows, block_rows=size)
        parts = list(rows.map(_count, columns=[0]))
        assert sum(parts) == len(data.y)
        assert parts[0] == size
        trained = assignment.train(whole.moments, rows, epochs=20, random_state=0)
        expected = assignment.train(whole.moments, whole.rows, epochs=20, random_state=0)
        np.testing.assert_allclose(trained.log_pi, expected.log_pi, rtol=1e-10)


def _count(block: Any) -> int:
    return len(block.outcome)


def test_a_block_without_a_selected_row_changes_nothing(device):
    data = make_selection(40_000, 4, 2, random_state=1)
    order = np.argsort(np.isnan(data.y), kind="stable")
    X, y = data.X[order], data.y[order]
    here, there = both(Heckman(range(2)), SimpleNamespace(X=X, y=y), device)
    table = compress(tensor(X, device), tensor(y, device), prediction_features=range(2))
    blocks = replace(table.rows, block_rows=1000).map(_count_selected, columns=[])
    assert 0 in list(blocks)
    assert_same(here, there)


def _count_selected(block: Any) -> int:
    return int(block.selected.sum())


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
@pytest.mark.parametrize("extraction", ["sample", "rank", "correlation"])
@pytest.mark.parametrize("table", ["simulated", "mroz"])
def test_every_extraction_chooses_the_same_features(data, device, extraction, table):
    X, y = data.X, data.y
    if table == "mroz":
        mroz = load_mroz()
        X, y = mroz[TERMS].to_numpy(dtype=float), mroz["lwage"].to_numpy()
    settings = {"epochs": 200, "n_draws": 200, "random_state": 5, "criterion": "bic"}
    rows = SimpleNamespace(X=X, y=y)
    here, there = both(HeckmanFA(extraction, **settings), rows, device)
    assert there.prediction_features_ == here.prediction_features_
    np.testing.assert_allclose(there.inclusion_prob_, here.inclusion_prob_, rtol=1e-8)
    assert isinstance(there.coef_, np.ndarray)
    assert_same(here, there)


@pytest.mark.parametrize("options", [{}, {"cov_type": "robust"}, {"method": "ml"}])
def test_an_average_is_the_same(data, device, options):
    here, there = both(HeckmanAverage(**options), data, device)
    assert_same(here, there)
    some = tensor(data.X[:20], device)
    found, limits = there.predict(some, "selected", return_interval="confidence")
    expected, ends = here.predict(data.X[:20], "selected", return_interval="confidence")
    np.testing.assert_allclose(found.cpu(), expected, rtol=1e-8)
    np.testing.assert_allclose(limits.cpu(), ends, rtol=1e-7)


@pytest.mark.parametrize("standardize", [True, "features", False])
@pytest.mark.parametrize("step_on", ["log_pi", "pi"])
def test_training_on_replayed_noise_is_the_same(data, device, standardize, step_on):
    noise = np.random.default_rng(7).gumbel(size=(150, 2, 8))
    small, large = (
        compress(data.X, data.y),
        compress(tensor(data.X, device), tensor(data.y, device)),
    )
    settings = {"epochs": 150, "noise": noise, "standardize": standardize, "step_on": step_on}
    here = assignment.train(small.moments, small.rows, record_path=10, **settings)
    there = assignment.train(large.moments, large.rows, record_path=10, **settings)
    np.testing.assert_allclose(there.log_pi, here.log_pi, rtol=1e-9)
    np.testing.assert_allclose(there.path, here.path, rtol=1e-9)
    np.testing.assert_allclose(there.path_mae, here.path_mae, rtol=1e-9)
    assert there.n_epochs == 150
    assert there.mae == pytest.approx(here.mae, rel=1e-9)


@pytest.mark.parametrize(
    ("added", "selecting", "is_exact", "close"),
    [
        (lambda X: X[:, 0] + 1e-5 * X[:, 1] ** 2, None, False, 1e-6),
        (lambda X: 2.0 * X[:, 0], range(5), True, 1e-8),
    ],
)
def test_collinear_features_are_trained_by_factors_or_make_no_step(
    device, added, selecting, is_exact, close
):
    data = make_selection(3000, 5, 3, random_state=2)
    X = np.column_stack([data.X, added(data.X)])
    here = compress(X, data.y, selection_features=selecting)
    there = compress(tensor(X, device), tensor(data.y, device), selection_features=selecting)
    assert is_exact or not here.moments.gram_is_safe
    trained, other = (
        assignment.train(rows.moments, rows.rows, epochs=60, random_state=0)
        for rows in (here, there)
    )
    assert (trained.n_unsolved > 0) == is_exact
    assert other.n_unsolved == trained.n_unsolved
    np.testing.assert_allclose(other.log_pi, trained.log_pi, rtol=close)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_features_that_move_together_do_so_on_tensors(data, device):
    settings = {
        "epochs": 80,
        "random_state": 1,
        "feature_groups": [[0, 1], [5, 6]],
        "always": [2],
        "never": [7],
    }
    here, there = both(HeckmanFA("rank", **settings), data, device)
    np.testing.assert_allclose(there.inclusion_prob_, here.inclusion_prob_, rtol=1e-8)
    assert there.prediction_features_ == here.prediction_features_


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_a_sample_of_rows_is_trained_on_where_that_is_asked(data, device):
    settings = {"epochs": 50, "random_state": 4, "train_rows": 500}
    here, there = both(HeckmanFA(**settings), data, device)
    assert "a uniform sample of 500 of the" in str(here.summary())
    assert "a uniform sample of 500 of the" in str(there.summary())
    assert there.n_selected_ == here.n_selected_ == np.count_nonzero(~np.isnan(data.y))


def test_float32_features_keep_four_digits(device):
    data = make_selection(30_000, 6, 3, random_state=8)
    # Far from zero, where float32 has few digits left for what varies.
    X = data.X * 3.0 + 50.0
    here = Heckman(range(3)).fit(X.astype(np.float32), data.y)
    there = Heckman(range(3)).fit(tensor(X, device, torch.float32), tensor(data.y, device))
    np.testing.assert_allclose(there.coef_[:3], here.coef_[:3], rtol=1e-10)
    double = Heckman(range(3)).fit(X, data.y)
    np.testing.assert_allclose(there.coef_[:3], double.coef_[:3], rtol=1e-4)
    np.testing.assert_allclose(there.selection_coef_, double.selection_coef_, rtol=1e-4)
    assert there.rho_ == pytest.approx(double.rho_, rel=1e-4)
    assert there.sigma_ == pytest.approx(double.sigma_, rel=1e-4)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_float32_training_is_close_to_float64s(data, device):
    settings = {"epochs": 300, "random_state": 0}
    here = HeckmanFA(**settings).fit(data.X, data.y)
    single = [tensor(values, device, torch.float32) for values in (data.X, data.y)]
    there = HeckmanFA(**settings).fit(*single)
    np.testing.assert_allclose(there.inclusion_prob_, here.inclusion_prob_, atol=1e-4)
    assert there.prediction_features_ == here.prediction_features_


def test_normal_functions_of_tensors_are_those_of_numpy(device):
    z = np.concatenate([-np.logspace(8, -3, 200), np.linspace(-4, 37, 400), [-np.inf, np.inf]])
    for place, values in enumerate(mills(tensor(z, device))):
        np.testing.assert_allclose(values.cpu().numpy(), mills(z)[place], rtol=2e-14, atol=1e-300)
    finite = z[np.isfinite(z)]
    for place, values in enumerate(log_cdf_and_mills(tensor(finite, device))):
        expected = log_cdf_and_mills(finite)[place]
        np.testing.assert_allclose(values.cpu().numpy(), expected, rtol=1e-13, atol=2e-14)
    assert inverse_mills(tensor(z, device)).device.type == device


# What comes back. ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected", "expected"])
def test_predictions_for_tensors_are_tensors_where_these_are(data, device, kind):
    model = Heckman(range(4)).fit(tensor(data.X, device), tensor(data.y, device))
    expected = Heckman(range(4)).fit(data.X, data.y).predict(data.X, kind)
    X = tensor(data.X, device)
    values = model.predict(X, kind)
    assert values.device == X.device
    np.testing.assert_allclose(values.cpu().numpy(), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.predict(data.X, kind), expected, rtol=1e-9, atol=1e-9)
    again, interval = model.predict(X, kind, return_interval="confidence")
    assert interval.device == X.device
    assert torch.all((interval[:, 0] < again) & (again < interval[:, 1]))


def test_selection_and_score_take_tensors(data, device):
    X, y = tensor(data.X, device), tensor(data.y, device)
    model = Heckman(range(4)).fit(X, y)
    np.testing.assert_allclose(
        model.predict_selection(X).cpu().numpy(), model.predict_selection(data.X), rtol=1e-12
    )
    asked = {"return_interval": "confidence", "return_std": True, "scale": "link"}
    for ours, theirs in zip(
        model.predict_selection(X, **asked), model.predict_selection(data.X, **asked), strict=True
    ):
        assert ours.device == X.device
        np.testing.assert_allclose(ours.cpu().numpy(), theirs, rtol=1e-9)
    np.testing.assert_allclose(
        model.inverse_mills(X).cpu().numpy(), model.inverse_mills(data.X), rtol=1e-12
    )
    assert model.score(X, y) == pytest.approx(model.score(data.X, data.y), rel=1e-9)
    assert model.log_likelihood(X, y) == pytest.approx(model.log_likelihood(data.X, data.y))
    assert str(model.diagnostics(X)) == str(model.diagnostics(data.X))


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_a_model_of_tensors_holds_none(data, device):
    model = HeckmanFA(epochs=20, random_state=0).fit(tensor(data.X, device), tensor(data.y, device))
    assert b"torch" not in pickle.dumps(model)


def test_what_a_referee_asks_can_be_asked_of_tensors(data, device):
    X, y = tensor(data.X, device), tensor(data.y, device)
    model = Heckman(range(4)).fit(X, y)
    here = Heckman(range(4)).fit(data.X, data.y)
    mine, theirs = (
        one.specification_tests(*given).tidy()
        for one, given in ((model, (X, y)), (here, (data.X, data.y)))
    )
    pd.testing.assert_frame_equal(mine, theirs, rtol=1e-6)
    assert np.all(np.isfinite(model.bootstrap(X, y, n_boot=5, random_state=0).tidy()["std_error"]))


def test_least_squares_and_full_observation_take_tensors(data, device):
    here, there = both(NaiveOLS(range(4)), data, device)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-10)
    with pytest.warns(UserWarning, match="no outcome is missing"):
        model = Heckman(range(4), cov_type="robust").fit(
            tensor(data.X, device), tensor(np.nan_to_num(data.y), device)
        )
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
@pytest.mark.parametrize(
    "model",
    [
        InverseProbabilityWeighted(),
        DoublyRobust(random_state=0),
        HeckmanLasso(),
        RURegressor(epochs=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_to_compare_with_take_tensors(device, model):
    data = make_selection(2000, 5, 3, random_state=0)
    here = clone(model).fit(data.X, data.y).predict(data.X)
    X = tensor(data.X, device)
    there = clone(model).fit(X, tensor(data.y, device)).predict(X)
    assert there.device == X.device
    np.testing.assert_allclose(there.cpu().numpy(), here, rtol=1e-7, atol=1e-9)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_honest_splits_of_tensors_are_those_of_numpy(device):
    data = make_selection(2000, 5, 3, random_state=0)
    settings = {"honest": True, "n_splits": 3, "random_state": 0}
    here, there = both(HeckmanBestSubset(**settings), data, device)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-12)


# What is refused. ---------------------------------------------------------------------------------


def test_separation_is_found_on_tensors(data, device):
    X = np.column_stack([data.X, (np.arange(len(data.y)) < 40) & ~np.isnan(data.y)]).astype(float)
    with pytest.raises(SeparationError, match="x8"):
        Heckman(range(4)).fit(tensor(X, device), tensor(data.y, device))
    drop = {"prediction_features": range(4), "on_separation": "drop"}
    with pytest.warns(DroppedFeaturesWarning):
        here = Heckman(**drop).fit(X, data.y)
    with pytest.warns(DroppedFeaturesWarning):
        there = Heckman(**drop).fit(tensor(X, device), tensor(data.y, device))
    assert there.row_counts_ == here.row_counts_
    assert_same(here, there)


def test_missing_values_in_a_tensor_are_counted_by_column(data, device):
    X = tensor(data.X, device)
    X[3:6, 2] = torch.nan
    X[8, 5] = torch.inf
    with pytest.raises(MissingValueError, match=r"'x2' \(3 NaN, 0 inf\), 'x5' \(0 NaN, 1 inf\)"):
        Heckman(range(4)).fit(X, tensor(data.y, device))
    model = Heckman(range(4)).fit(tensor(data.X, device), tensor(data.y, device))
    with pytest.raises(MissingValueError, match=r"'x2' \(3 rows\)"):
        model.predict(X)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X[:, 0], y), "2D"),
        (lambda X, y: (X.to(torch.complex128), y), "Complex"),
        (lambda X, y: (X, y[:-1]), "12000 rows, y 11999"),
        (lambda X, y: (X.to_sparse(), y), "sparse"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X, None), "y to be passed"),
    ],
)
def test_tensors_of_no_use_are_refused(data, change, words):
    with pytest.raises(InputError, match=words):
        Heckman().fit(*change(tensor(data.X, "cpu"), tensor(data.y, "cpu")))


def test_a_device_that_is_not_there_is_named(data):
    with pytest.raises(InputError, match="'cuda:99'"):
        to_device(pd.DataFrame(data.X), "cuda:99")


def test_a_gpu_out_of_memory_says_what_to_do(data, monkeypatch):
    def full(*args: Any, **kwargs: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has")

    monkeypatch.setattr("heckmanfa.model.linalg.triangular", full)
    with pytest.raises(DeviceMemoryError, match=r"train_rows.*Tried to allocate 20.00 GiB"):
        Heckman().fit(tensor(data.X, "cpu"), tensor(data.y, "cpu"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
def test_a_gpu_that_is_really_full_says_what_to_do():
    spare = torch.cuda.mem_get_info()[0]
    rows = spare // (8 * 12)
    X = torch.randn(rows, 8, dtype=torch.float64, device="cuda")
    y = torch.randn(rows, device="cuda", dtype=torch.float64)
    y[::2] = torch.nan
    with pytest.raises(DeviceMemoryError, match="fewer rows"):
        HeckmanFA(epochs=5).fit(X, y)
    del X, y
    torch.cuda.empty_cache()
    data = make_selection(1000, 3, 1, random_state=0)
    assert Heckman([0]).fit(tensor(data.X, "cuda"), tensor(data.y, "cuda")).converged_


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_kernel_gives_what_two_products_give(dtype, weighted):
    from heckmanfa.search.training.gpu import fused_pulls
    from heckmanfa.search.training.gradient import _in_tensors

    for rows, width in ((1, 1), (1000, 13), (100_003, 104), (5000, 700)):
        matrix = torch.randn(rows, width, dtype=dtype, device="cuda")
        weight = torch.rand(rows, dtype=dtype, device="cuda") if weighted else None
        contrast = torch.randn(width, dtype=torch.float64, device="cuda")
        fused = fused_pulls(matrix, weight)
        assert fused is not None
        value, pulls = fused(contrast, "mae")
        expected, expected_pulls = _in_tensors(matrix.double(), weight, contrast, "mae")
        tolerance = 1e-4 if dtype is torch.float32 else 1e-12
        torch.testing.assert_close(value, expected, rtol=tolerance, atol=0)
        size = expected_pulls.abs().max()
        assert (pulls - expected_pulls).abs().max() <= tolerance * size
        same = fused(contrast, "mae")
        assert torch.equal(same[1], pulls)


def test_tensors_have_no_levels_and_the_error_says_what_to_do():
    mroz = load_mroz()
    frame = mroz[TERMS].assign(town="a", size=pd.Categorical(["S"] * len(mroz)))
    with pytest.raises(InputError, match=r"columns 'town', 'size' hold text .*get_dummies"):
        to_device(frame, "cpu")
    numbers = to_device(frame[TERMS], "cpu")
    with pytest.raises(InputError, match=r"names columns of a tensor.*pass a data frame"):
        Heckman(["educ"], categorical_features=["educ"]).fit(numbers, mroz["lwage"])
