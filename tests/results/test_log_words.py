"""What is said about an outcome that is fitted on its logarithm."""

import numpy as np
import pytest

from heckmanfa import Heckman
from heckmanfa.datasets import load_mroz
from heckmanfa.results.checks import check_of
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.fit_facts import ratio_facts

FEATURES = ["nwifeinc", "educ", "exper", "age", "kids5"]


@pytest.fixture(scope="module")
def model():
    mroz = load_mroz()
    wage = np.exp(mroz["lwage"]).rename("wage")
    return Heckman(["educ", "exper"], outcome_transform="log").fit(mroz[FEATURES], wage)


def test_a_summary_gives_the_ratio_and_the_scale_of_the_outcome(model):
    value, error = model.transform_ratio_
    assert f"{value:.3f} (s.e. {error:.3f})" in " ".join(str(model.summary()).split())
    assert evidence_of(model.fit_).outcome == "log(wage)"
    assert model.fit_.origin.outcome == "wage"


def test_diagnostics_judge_the_mean_ratio(model):
    found = {check.key: check for check in model.diagnostics().checks()}
    assert found["transform_ratio"].verdict == "ok"
    assert model.diagnostics().to_dict()["transform_ratio"] == model.transform_ratio_


@pytest.mark.parametrize(
    ("ratio", "verdict", "case"),
    [
        ((0.97, 0.001), "ok", ""),
        ((1.07, 0.05), "ok", ""),
        ((1.07, 0.02), "caution", ""),
        ((0.9, 0.02), "caution", ""),
        ((4.0, 3.0), "caution", "few rows"),
        ((np.inf, np.nan), "caution", ""),
        ((1.1, np.nan), "caution", ""),
    ],
)
def test_a_ratio_far_from_one_is_a_caution_with_what_to_do(ratio, verdict, case):
    (fact,) = ratio_facts(ratio)
    assert (fact.level, fact.case) == (verdict, case)
    mroz = load_mroz()
    fit = Heckman(["educ", "exper"]).fit(mroz[FEATURES], mroz["lwage"]).fit_
    (check,) = check_of(fact, fit, "log(wage)")
    assert bool(check.do) == (verdict != "ok")
    assert "{" not in str(check)


def test_models_without_a_transform_say_nothing_of_logarithms():
    mroz = load_mroz()
    plain = Heckman(["educ", "exper"]).fit(mroz[FEATURES], mroz["lwage"])
    assert not hasattr(plain, "transform_ratio_")
    assert all(check.key != "transform_ratio" for check in plain.diagnostics().checks())
