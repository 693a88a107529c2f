"""The names of covariances: "classical" is what None asks for, wherever it is asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso
from heckmanfa.errors import InputError
from heckmanfa.model.own_scale import project_last

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_classical_is_the_name_of_the_default_covariance(method, mroz):
    X, y = mroz[FEATURES], mroz["lwage"]
    plain = Heckman(["educ", "exper"], method=method).fit(X, y)
    named = Heckman(["educ", "exper"], method=method, cov_type="classical").fit(X, y)
    assert plain.get_params()["cov_type"] is None
    assert clone(named).get_params()["cov_type"] == "classical"
    pd.testing.assert_frame_equal(named.tidy(), plain.tidy())
    for ask in (
        lambda m: m.summary(),
        lambda m: m.diagnostics(),
        lambda m: m.what_if(),
        lambda m: m.uncertainty_interval(),
        lambda m: m.exclusion_test(X, y),
        lambda m: m.specification_tests(X, y),
        lambda m: m.margins(X),
        lambda m: m.bootstrap(X, y, n_boot=4, random_state=0),
    ):
        assert str(ask(named)) == str(ask(plain))


def test_every_estimator_and_formulas_take_the_name(mroz):
    X, y = mroz[FEATURES], mroz["lwage"]
    for kind in (HeckmanBestSubset, HeckmanLasso, HeckmanFA):
        options = {"epochs": 3, "random_state": 0} if kind is HeckmanFA else {}
        named, plain = (
            kind(cov_type=cov_type, **options).fit(X, y) for cov_type in ("classical", None)
        )
        np.testing.assert_array_equal(named.vcov(), plain.vcov())
    formulas = ("lwage ~ educ + exper", "~ educ + exper + age")
    named, plain = (
        Heckman.from_formula(*formulas, mroz, cov_type=cov_type) for cov_type in ("classical", None)
    )
    np.testing.assert_array_equal(named.vcov(), plain.vcov())


def test_classical_is_refused_where_none_is(mroz):
    X, y, weight = mroz[FEATURES], mroz["lwage"], np.full(len(mroz), 1.5)
    with pytest.raises(InputError, match="cov_type"):
        Heckman(weight_kind="sampling", cov_type="classical").fit(X, y, sample_weight=weight)
    with pytest.raises(InputError, match=r"cov_type.*'cluster'"):
        Heckman(cov_type="classical").fit(X, y, groups=mroz["age"])
    with pytest.raises(InputError, match="cov_type"):
        Heckman(cov_type="usual").fit(X, y)


def test_an_estimate_that_does_not_vary_explains_nothing_of_another():
    root = np.random.default_rng(0).normal(size=(3, 3))
    joint = np.zeros((4, 4))
    varying = [0, 2, 3]
    # In units as far apart as those of features are.
    units = np.diag([1e-6, 1e6, 1.0])
    joint[np.ix_(varying, varying)] = units @ root @ root.T @ units
    on, rest = project_last(joint)
    expected = np.linalg.solve(joint[np.ix_([0, 2], [0, 2])], joint[[0, 2], 3])
    np.testing.assert_allclose(on, [expected[0], 0.0, expected[1]], rtol=1e-9)
    assert rest == pytest.approx(joint[3, 3] - joint[3, [0, 2]] @ expected)
