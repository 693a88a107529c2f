"""What findings say below, at and above each of their limits, whole, as it was recorded."""

from itertools import product
from typing import get_args

import numpy as np
import pytest
from tests.recorded import compare, flat

from heckmanfa.results.reference import Reference, Wald

NAN = float("nan")
BOTH = (False, True)
TESTS = [
    Wald(45.0, 2, 1e-9),
    Wald(7.0, 2, 0.03),
    Wald(5.99, 2, 0.05),
    Wald(2.0, 2, 0.4),
    Wald(1.5, 2, 0.3, 11),
    Wald(NAN, 2, NAN, note="the covariance is singular"),
    Wald(NAN, 2, NAN, 1, note="there are too few clusters"),
]


def strengths():
    for test, (names, n) in product(TESTS, [("a", 1), ("a", 3), ("ab", 2)]):
        yield _strength(test, n)
        for strong, averaged, more in product(BOTH, repeat=3):
            options = {"strong": strong, "averaged": averaged, "profiled": more, "clustered": more}
            yield about_exclusions(names, n, test, **options)


def convergences():
    for which, binary, held in product(
        [(), ("probit",), ("likelihood",), ("plain probit",), ("probit", "likelihood")], BOTH, BOTH
    ):
        yield from about_convergence(which, binary=binary, held=held)
    for missing, withheld in product(BOTH, BOTH):
        yield from about_errors(missing, withheld=withheld)


def rhos():
    near = (0.0, 0.5, -0.97, 0.98, 0.981, -0.9999, 1.0, -1.0, 1.7, NAN)
    for rho, binary, is_flat in product(near, BOTH, BOTH):
        yield about_rho(rho, binary=binary, flat=is_flat)
    for mine, second, ratio in product(
        (None, -12.0), (None, (-12.0, 0.9), (-11.0, 0.9), (-13.0, -1.0)), BOTH
    ):
        yield from about_maxima(mine, 0.1, second, ratio=ratio)
    for rho in (-0.5, 0.0, 0.3):
        yield about_held_rho(rho)
        yield from (caveat_of_held_rho(rho, binary=binary) for binary in BOTH)
    for n in range(3):
        yield about_held_exclusions("key", "name", n)


def fits():
    for r2, saturated in product((0.5, 0.999, 0.9991, 1.0, NAN), BOTH):
        yield from about_r2(r2, saturated=saturated)
    for n in (None, 2, 9, 10, 11, 29, 30, 39, 40, 41, 42, 49, 50, 51, 100):
        yield from about_clusters(n, 10)
        yield Reference(n).notes()
        yield Reference(n).notes(joint=True)
        yield clusters_note(n or 1, 10)
    for ratio in (None, (0.9, 1.1), (0.5, 2.0), (0.99, 1.01)):
        yield from about_ratio(ratio)
        yield from about_ratio(ratio, "the best")


def assumptions():
    for test in TESTS:
        yield str(test)
        yield test.chi2
        yield test.lacks_clusters
        yield about_hausman(test, 0.1, 0.25)
        for flag in BOTH:
            yield about_equal_variance(test, per_feature=flag)
            for basis in get_args(Basis):
                yield about_rho_test(
                    "key", "name", test, doubtful=flag, which=" Which.", basis=basis
                )
    for estimate, n in product(([1.0, 2.0], [0.1]), (None, 2, 3, 40)):
        q = len(estimate)
        for covariance in (np.eye(q), np.ones((q, q)), np.full((q, q), NAN), -np.eye(q)):
            yield Reference(n).wald(estimate, covariance)
            yield Reference(n).wald(estimate, covariance, "it was not asked")


@pytest.mark.parametrize("say", [strengths, convergences, rhos, fits, assumptions])
def test_every_finding_is_the_recorded_one_on_both_sides_of_its_limits(say):
    lines = [flat(finding, "") for finding in say()]
    compare(f"findings/{say.__name__}", "\n".join(lines))
