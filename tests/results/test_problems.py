"""What is wrong with a fit that did end is said by every output."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import ConvergenceWarning, FewClustersWarning, HeckmanfaWarning
from heckmanfa.model.likelihood import rho_text
from heckmanfa.results.diagnostics import measure
from heckmanfa.results.distribution import NullDistribution
from heckmanfa.results.exclusions import exclusion_fact
from heckmanfa.results.fit_facts import rho_fact

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


def test_a_fit_that_did_not_converge_is_a_problem_with_a_cure(to_the_boundary):
    diagnostics = to_the_boundary.diagnostics()
    _, value, verdict, _ = lines_of(to_the_boundary)["convergence"]
    assert (value, verdict) == ("the likelihood did not converge", "problem")
    assert diagnostics.unconverged == ("likelihood",)
    frame = diagnostics.to_frame().set_index("diagnostic")
    assert frame.loc["convergence", "verdict"] == "problem"
    assert "did not converge" in diagnostics._repr_html_()
    assert diagnostics.to_dict()["unconverged"] == ("likelihood",)
    assert "THE ITERATION DID NOT CONVERGE" in str(to_the_boundary.summary())


@SILENT
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_a_probit_that_did_not_converge_is_a_problem(monkeypatch, method):
    import heckmanfa.model.equations as equations

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
def test_the_limits_of_rho(rho, verdict, to_the_boundary):
    assert rho_fact(replace(to_the_boundary.fit_.with_errors(rho=rho), doubts=())).level == verdict


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


def test_an_estimate_without_a_variance_is_a_problem(simulated):
    model = Heckman([0, 2, 3], method="ml").fit(simulated.X, simulated.y)
    assert "standard errors" not in lines_of(model)
    model._fit = replace(model.fit_, covariance=np.full_like(model.fit_.covariance, np.nan))
    assert lines_of(model)["standard errors"][2] == "problem"


# What was not tested is not claimed. ------------------------------------------------------------

GREENE_WAGE = "wage ~ exper + expersq + educ + city"
GREENE_WORK = "age + agesq + faminc + kids + educ"


@pytest.fixture(scope="module")
def women():
    d = load_mroz()
    return d.assign(kids=(d["kids5"] + d["kids618"] > 0) * 1, agesq=d["age"] ** 2)


def greene(women, **options):
    """Greene's model of wages, whose likelihood has a second maximum at rho 0.993."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Heckman.from_formula(GREENE_WAGE, GREENE_WORK, women, method="ml", **options)
    return model, " ".join(str(one.message) for one in caught)


def said_by(model):
    return " ".join(str(model.summary()).split())


def test_after_a_climb_that_stopped_short_nothing_is_tested_and_no_maximum_is_claimed(women):
    model, warned = greene(women, start=0.999999)
    lines = lines_of(model)
    why = "not tested: the likelihood did not converge"
    for name in ("excluded features", "test of rho = 0", "LR test of rho = 0"):
        assert lines[name][1].endswith(why), name
        assert lines[name][2] == "caution", name
        assert "was not tested" in lines[name][3], name
    assert "maxima of the likelihood" not in lines
    words = " ".join([said_by(model), *(line[3] for line in lines.values())])
    for claim in ("two maxima", "found at 5%", "weakly", "no evidence", "(missing)"):
        assert claim not in words, claim
    assert "Some standard errors are missing. The variance" in words
    assert "two maxima" not in warned
    assert "Start from another rho first (there is a maximum at 0.993)." in warned


def test_without_a_start_another_one_is_not_the_first_advice(to_the_boundary):
    # The fixture was fitted from the two-step estimates.
    assert to_the_boundary.start is None
    rng = np.random.default_rng(3)
    X, u = rng.normal(size=(300, 2)), rng.normal(size=300)
    y = np.where(X.sum(axis=1) + u > 0, X[:, 0] + u, np.nan)
    with pytest.warns(ConvergenceWarning, match=r"estimates\. Use method='two-step', or another"):
        Heckman([0], method="ml").fit(X, y)


def test_no_likelihood_ratio_is_spoken_of_where_none_is_reported(women):
    model, _ = greene(women, cov_type="robust")
    lines = lines_of(model)
    assert "LR test of rho = 0" not in lines
    said = lines["maxima of the likelihood"][3] + said_by(model)
    assert "likelihood-ratio" not in said
    assert "A start of 0.993 fits the higher one" in said


@pytest.mark.parametrize(
    ("excluded", "words"),
    [
        (["z"], "There is no evidence that it drives selection: little identifies the model."),
        (
            ["z", "z2"],
            "There is no evidence that they drive selection: little identifies the model.",
        ),
    ],
)
def test_exclusions_whose_joint_test_does_not_reject_are_not_said_to_drive_weakly(excluded, words):
    rng = np.random.default_rng(1)
    n = 800
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x", "z", "z2"])
    u = rng.normal(size=n)
    y = np.where(0.3 + X["x"] + u > 0, 1 + X["x"] + 0.5 * u + rng.normal(size=n), np.nan)
    model = Heckman(["x"], ["x", *excluded]).fit(X, y)
    diagnostics = model.diagnostics()
    assert diagnostics.excluded_wald.p_value > 0.05
    assert lines_of(model)["excluded features"][2:] == ("caution", words)
    claims = {fact.key: fact.because for fact in diagnostics.facts}
    assert "not shown to drive selection" in claims["exclusions"]


def test_a_few_clusters_with_a_large_chi2_are_no_evidence_of_strength(simulated):
    # F(1, 2) = 18 is a chi-squared statistic above 10, and has p = 0.051.
    test = NullDistribution(3).wald([np.sqrt(18.0)], [[1.0]])
    assert test.p_value > 0.05
    fit = Heckman([0, 2, 3]).fit(simulated.X, simulated.y).fit_
    numbers = replace(measure(fit), n_excluded=1, excluded_features=("z",), excluded_wald=test)
    found = exclusion_fact(fit, numbers)
    assert found.meaning.startswith("There is no evidence that it drives selection")


def test_a_covariance_that_is_not_positive_tests_nothing():
    test = NullDistribution().wald([1.0], [[-2.0]])
    assert np.isnan(test.p_value)
    assert str(test) == "not tested: the covariance of the estimates is not positive definite"


def test_clusters_are_spoken_of_in_whole_sentences_and_their_distribution_once(women):
    with pytest.warns(FewClustersWarning, match=r"even with the t\(19\) distribution used here"):
        model = Heckman.from_formula(
            "lwage ~ educ + exper",
            "nwifeinc + educ + exper + age + kids5",
            women.assign(g=np.arange(len(women)) % 20),
            cov_type="cluster",
            groups="g",
        )
    said = said_by(model)
    assert said.count("t(19)") == 1
    assert "There are 20 clusters for 10 parameters. With fewer than 40 clusters," in said
    lines = lines_of(model)
    assert "Tests and intervals use t(19)." in lines["clusters"][3]
    assert "classical" not in lines["rho from -0.3 to 0.3"][1]
    # These have no clusters in them, for which the rows would be needed.
    assert "by classical standard errors" in lines["excluded features put back"][1]
    plain = Heckman.from_formula("lwage ~ educ + exper", "educ + exper + age + kids5", women)
    assert "classical" not in str(plain.diagnostics())
