"""What is said of a rho that is held at a value: that it is not estimated, and nothing else."""

import numpy as np
import pytest

from heckmanfa import Heckman, HeckmanProbit, plots
from heckmanfa.analysis import Question
from heckmanfa.analysis.request import check_question
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.results.answer import answer_of
from heckmanfa.results.catalogue import facts_of_fit
from heckmanfa.results.claims import claims_of
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.may_write import may_write
from heckmanfa.results.section_words import selection_words

PREDICTION = ["educ", "exper"]
SELECTION = ["educ", "exper", "age", "kids5"]


@pytest.fixture(scope="module")
def mroz():
    table = load_mroz()
    return table[SELECTION], table["lwage"]


@pytest.fixture(scope="module")
def models(mroz):
    X, y = mroz
    high = (y > 1.2).where(y.notna()).astype(float)
    return {
        "two-step": (Heckman(PREDICTION, rho=-0.3).fit(X, y), y),
        "ml": (Heckman(PREDICTION, rho=-0.3, method="ml").fit(X, y), y),
        "binary": (HeckmanProbit(PREDICTION, rho=-0.3).fit(X, high), high),
        "no exclusion": (Heckman(PREDICTION, rho=-0.3).fit(X[PREDICTION], y), y),
    }


@pytest.fixture(params=["two-step", "ml", "binary", "no exclusion"])
def model(request, models):
    return models[request.param][0]


def test_diagnostics_have_no_test_of_rho_and_ask_for_no_exclusion(model):
    found = model.diagnostics()
    assert found.rho_held
    assert found.rho_wald is found.rho_lr is found.hausman is found.equal_variance is None
    keys = {check.key: check for check in found.checks()}
    assert keys["rho"].value == "held at -0.3"
    assert keys["rho"].verdict == "ok"
    assert {"rho_test", "rho_lr_test", "imr_r2", "hausman"}.isdisjoint(keys)
    assert all(check.verdict == "ok" for key, check in keys.items() if key == "exclusions")


def test_an_answer_does_not_ask_whether_selection_mattered(model):
    evidence = evidence_of(model.fit_)
    assert evidence.judgement.kind == "not asked"
    assert not evidence.no_exclusion
    answer = answer_of(evidence)
    for said in (answer.headline, answer.selection.title):
        assert "strength of selection" in str(said) or "strong selection is" in str(said)
    for said in (answer.selection.numbers, may_write(evidence)[0]):
        assert "held at \u22120.3" in str(said)
    assert "tests nothing" in str(selection_words(evidence)[0])
    claims = {claim.key: claim for claim in claims_of(evidence, facts_of_fit(model.fit_))}
    assert "held at \u22120.3" in str(claims["rho"])
    assert "exclusions" not in claims


def test_what_examines_exclusions_or_tests_rho_is_refused_in_one_sentence(models, mroz):
    X, _ = mroz
    for name in ("two-step", "binary"):
        model, y = models[name]
        rows = (X, y) if name == "binary" else ()
        with pytest.raises(InputError, match="fixed rho needs no exclusion"):
            model.what_if(*rows)
        with pytest.raises(InputError, match="fixed rho needs no exclusion"):
            model.exclusion_test(X, y)
        with pytest.raises(NotIdentifiedError, match=r"rho is held at -0\.3, so no hypothesis"):
            model.wald_test("rho = 0")
        assert model.wald_test("educ = 0").p_value < 0.05
    with pytest.raises(InputError, match="coefficient of lambda is not estimated"):
        plots.imr_estimates(models["ml"][0])


def test_what_needs_rows_holds_rho_too(models, mroz):
    X, _ = mroz
    model, y = models["ml"]
    assert (
        model.bootstrap(X, y, n_boot=3, random_state=0).to_frame()["errors", "rho"] == -0.3
    ).all()
    profile = model.profile(X, y, "educ", grid=2)
    assert profile.estimate == pytest.approx(model.coef_[0], rel=1e-6)
    assert profile.maxima["log_likelihood"].max() == pytest.approx(model.log_likelihood_, abs=1e-6)
    # The likelihood is nearly quadratic with rho held, so both intervals agree.
    row = model.tidy().set_index("term").loc["educ"].iloc[0]
    assert profile.interval() == pytest.approx((row["ci_low"], row["ci_high"]), abs=5e-4)
    assert "as the model holds it" in str(model.profile_rho(X, y, grid=2))
    assert "estimate rho: it is held at -0.3" in str(model.specification_tests(X, y))
    assert "rho as the model holds it" in str(model.uncertainty_interval(n_grid=2))


def test_predictions_have_intervals_that_take_rho_as_known(models, mroz):
    X, y = mroz
    model = models["two-step"][0]
    values, ends = model.predict(X[:3], kind="selected", return_interval="confidence")
    assert np.all((ends[:, 0] < values) & (values < ends[:, 1]))
    # At rho = 0 the correction is nothing, and the interval is that of least squares.
    zero = Heckman(PREDICTION, rho=0.0).fit(X, y)
    _, given = zero.predict(X[:3], kind="selected", return_interval="confidence")
    _, anyone = zero.predict(X[:3], kind="marginal", return_interval="confidence")
    assert given == pytest.approx(anyone, rel=1e-12)


def test_the_command_line_refuses_a_rho_that_a_search_would_estimate():
    check_question(Question("t", "y", search="none", rho=0.3))
    with pytest.raises(InputError, match="search='average' estimates it for each set of features"):
        check_question(Question("t", "y", rho=0.3))
    with pytest.raises(InputError, match="start is where rho starts"):
        check_question(Question("t", "y", search="none", method="ml", start=0.1, rho=0.3))
    with pytest.raises(InputError, match="rho must be a rho inside"):
        check_question(Question("t", "y", search="none", rho=1.0))
    assert Question("t", "y", search="none", rho=-0.3).command().endswith("--rho -0.3")
