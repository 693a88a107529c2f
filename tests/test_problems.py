"""What is wrong with a fit that did end is said by every output."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from heckmanfa import Heckman
from heckmanfa.datasets import make_selection
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.problems import about_r2, about_rho, rho_text

SILENT = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


@pytest.fixture(scope="module")
def to_the_boundary():
    """With e = u exactly, the likelihood rises until rho is one."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    u = rng.normal(size=300)
    y = np.where(X.sum(axis=1) + u > 0, X[:, 0] + u, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return Heckman([0], method="ml").fit(X, y)


def lines_of(model):
    return {line[0]: line for line in model.diagnostics().lines()}


def test_a_rho_at_the_boundary_is_a_problem_with_a_cure(to_the_boundary):
    lines = lines_of(to_the_boundary)
    _, value, verdict, words = lines["rho"]
    assert abs(float(value)) < 1
    assert verdict == "problem"
    assert "outliers" in words
    assert "stronger exclusion" in words
    assert "as good as one" in " ".join(str(to_the_boundary.summary()).split())


def test_a_fit_that_did_not_converge_is_a_problem_with_a_cure(to_the_boundary):
    diagnostics = to_the_boundary.diagnostics()
    _, value, verdict, words = lines_of(to_the_boundary)["convergence"]
    assert (value, verdict) == ("the likelihood did not converge", "problem")
    assert "two-step estimates" in words
    assert diagnostics.unconverged == ("likelihood",)
    frame = diagnostics.to_frame().set_index("diagnostic")
    assert frame.loc["convergence", "verdict"] == "problem"
    assert "did not converge" in diagnostics._repr_html_()
    assert diagnostics.to_dict()["unconverged"] == ("likelihood",)
    assert "THE ITERATION DID NOT CONVERGE" in str(to_the_boundary.summary())


@SILENT
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_a_probit_that_did_not_converge_is_a_problem(monkeypatch, method):
    import heckmanfa.equations as equations

    fit_probit = equations.fit_probit
    monkeypatch.setattr(
        equations, "fit_probit", lambda *args: replace(fit_probit(*args), converged=False)
    )
    data = make_selection(300, 4, 2, random_state=0)
    model = Heckman(np.flatnonzero(data.support), method=method).fit(data.X, data.y)
    _, value, verdict, words = lines_of(model)["convergence"]
    assert (value, verdict) == ("the probit did not converge", "problem")
    assert "extreme features" in words
    assert "the probit did not converge" in " ".join(str(model.summary()).split())


@pytest.mark.parametrize(
    ("rho", "verdict"),
    [
        (0.98, "ok"),
        (0.9801, "problem"),
        (-0.9801, "problem"),
        (0.99999, "problem"),
        (1.3, "problem"),
    ],
)
def test_the_limits_of_rho(rho, verdict):
    assert about_rho(rho).verdict == verdict


def test_a_rho_is_never_rounded_to_one():
    assert rho_text(0.12345) == "0.123"
    assert rho_text(0.9993) == "0.999"
    assert rho_text(-0.99996) == "-0.99996"
    assert abs(float(rho_text(1 - 1e-13))) < 1
    assert rho_text(1.2784) == "1.278"


def test_an_r2_above_999_in_a_thousand_is_a_problem():
    data = make_selection(400, 4, 2, random_state=1)
    close = data.X.copy()
    rng = np.random.default_rng(0)
    truth = data.complete_y
    close[:, 0] = truth + 0.001 * truth.std() * rng.normal(size=len(truth))
    model = Heckman([0, 1]).fit(close, data.y)
    diagnostics = model.diagnostics()
    s = ~np.isnan(data.y)
    w = np.column_stack([np.ones(s.sum()), close[s][:, :2], model.inverse_mills(close[s])])
    residual = data.y[s] - w @ np.linalg.lstsq(w, data.y[s], rcond=None)[0]
    spread = data.y[s] - data.y[s].mean()
    assert diagnostics.r2 == pytest.approx(1 - residual @ residual / (spread @ spread), rel=1e-10)
    _, value, verdict, words = lines_of(model)["R2 of the outcome"]
    assert verdict == "problem"
    assert float(value) > 0.999
    assert "made from the outcome" in words
    assert "made from the outcome" in " ".join(str(model.summary()).split())
    assert "R2 of the outcome" not in lines_of(Heckman([1, 2]).fit(data.X, data.y))
    assert about_r2(0.999) is None


def test_an_estimate_without_a_variance_is_a_problem(simulated):
    model = Heckman([0, 2, 3], method="ml").fit(simulated.X, simulated.y)
    assert "standard errors" not in lines_of(model)
    model._covariance = np.full_like(model._covariance, np.nan)
    assert lines_of(model)["standard errors"][2] == "problem"
