"""What facts say below, at and above each of their limits, whole, as it was recorded."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.recorded import compare, flat
from tests.scenes import X, Y, earns

from heckmanfa import Heckman, HeckmanProbit
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.results import cluster_facts, fit_facts, fit_tests
from heckmanfa.results.diagnostics import measure
from heckmanfa.results.distribution import NullDistribution, Wald
from heckmanfa.results.exclusions import exclusion_fact
from heckmanfa.results.facts import Fact
from heckmanfa.text.option_words import told

NAN = float("nan")
BOTH = (False, True)
TESTS = [
    Wald(45.0, 2, 1e-9),
    Wald(7.0, 2, 0.03),
    Wald(5.99, 2, 0.05),
    Wald(2.0, 2, 0.4),
    Wald(1.5, 2, 0.3, 11),
    Wald(NAN, 2, NAN, note="the covariance is singular"),
    Wald(NAN, 2, NAN, 1, note="there are too few clusters", lacks_clusters=True),
]


@pytest.fixture(scope="module")
def models():
    """A fit of either family, by maximum likelihood."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        linear = Heckman(["educ"], method="ml").fit(X, Y).fit_
        return linear, HeckmanProbit(["educ"]).fit(X, earns(4)).fit_


def held(fit, rho):
    return replace(fit.with_errors(rho=rho), spec=replace(fit.spec, held={"rho": rho}))


def strengths(models, patch):
    fit = models[0]
    for test, (names, n) in product(TESTS, [("a", 1), ("a", 3), ("ab", 2)]):
        for averaged, more in product(BOTH, repeat=2):
            numbers = replace(
                measure(fit),
                averaged=averaged,
                n_excluded=n,
                excluded_features=tuple(names),
                excluded_wald=test,
                rho_lr=test if more else None,
                n_clusters=3 if more else None,
            )
            yield exclusion_fact(fit, numbers)


def convergences(models, patch):
    for fit, rho, which in product(
        models, (None, 0.2), [("probit",), ("likelihood",), ("plain probit",)]
    ):
        patch.setattr(fit_tests, "unconverged", lambda fit, which=which: which)
        yield fit_facts.validity_facts(fit if rho is None else held(fit, rho))
    patch.undo()
    for fit, doubts in product(models, ((), ("flat",))):
        covariance = np.full_like(fit.covariance, NAN)
        own = [equation == "selection" for equation, _ in fit.terms]
        covariance[np.ix_(own, own)] = np.eye(sum(own))
        yield fit_facts.validity_facts(replace(fit, covariance=covariance, doubts=doubts))


def rhos(models, patch):
    near = (0.0, 0.5, -0.97, 0.98, 0.981, -0.9999, 1.0, -1.0, 1.7, NAN)
    for rho, fit, doubts in product(near, models, ((), ("flat",))):
        yield fit_facts.rho_fact(replace(fit.with_errors(rho=rho), doubts=doubts))
    for mine, second, robust in product(
        (None, -12.0), (None, (-12.0, 0.9), (-11.0, 0.9), (-13.0, -1.0)), BOTH
    ):
        spec = replace(models[0].spec, cov_type="robust" if robust else None)
        fit = replace(models[0], spec=spec, log_likelihood=mine, second_maximum=second)
        yield fit_facts.maxima_facts(fit)
    for rho, fit in product((-0.5, 0.0, 0.3), models):
        fit = held(fit, rho)
        yield fit_facts.rho_fact(fit)
        yield exclusion_fact(fit, measure(fit))


def fits(models, patch):
    for r2, saturated in product((0.5, 0.999, 0.9991, 1.0, NAN), BOTH):
        patch.setattr(fit_tests, "r2_of", lambda fit, r2=r2: r2)
        patch.setattr(fit_tests, "is_saturated", lambda fit, saturated=saturated: saturated)
        yield fit_facts.validity_facts(models[0])
    for n in (None, 2, 9, 10, 11, 29, 30, 39, 40, 41, 42, 49, 50, 51, 100):
        yield cluster_facts.cluster_facts(replace(models[0], n_clusters=n))
        yield NullDistribution(n).notes()
        yield NullDistribution(n).notes(joint=True)
    for ratio in (None, (0.9, 1.1), (0.5, 2.0), (0.99, 1.01)):
        yield fit_facts.ratio_facts(ratio)
        yield fit_facts.ratio_facts(ratio, "the best")


def assumptions(models, patch):
    fit = models[0]
    for test in TESTS:
        yield str(test)
        yield test.chi2
        yield test.lacks_clusters
        patch.setattr(fit_tests, "hausman_test", lambda fit, test=test: test)
        patch.setattr(fit_tests, "equal_variance_test", lambda fit, test=test: test)
        yield fit_facts.guard_facts(fit)
        for doubtful, searched, excluded in product(BOTH, BOTH, (0, 1)):
            numbers = replace(
                measure(fit),
                rho_wald=test,
                rho_lr=None,
                searched=searched,
                n_excluded=excluded,
                hausman=None,
                equal_variance=None,
            )
            yield fit_facts.rho_facts(fit, numbers, profiled=doubtful)[-1]
    for estimate, n in product(([1.0, 2.0], [0.1]), (None, 2, 3, 40)):
        q = len(estimate)
        for covariance in (np.eye(q), np.ones((q, q)), np.full((q, q), NAN), -np.eye(q)):
            yield NullDistribution(n).wald(estimate, covariance)
            yield NullDistribution(n).wald(estimate, covariance, "it was not asked")


@pytest.mark.parametrize("say", [strengths, convergences, rhos, fits, assumptions])
def test_every_fact_is_the_recorded_one_on_both_sides_of_its_limits(say, models, monkeypatch):
    lines = []
    for found in say(models, monkeypatch):
        for one in found if isinstance(found, list) else [found]:
            # Checks show the values of titles.
            one = replace(one, values=None) if isinstance(one, Fact) else one
            lines.append(told(flat(one, "")))
    compare(f"findings/{say.__name__}", "\n".join(lines))
