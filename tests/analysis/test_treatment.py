"""Answers about a treatment: what they say, and what stands behind it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa import TreatmentModel, scan
from heckmanfa.analysis import Question, analyse, load
from heckmanfa.analysis.treatment_comparison import compare_treatments
from heckmanfa.errors import InputError, TooFewRowsError


def workers(n=800, effect=0.3, instrument=-0.9, seed=3):
    """Workers of whom some chose a training, by their way to it and a drive that nobody sees."""
    rng = np.random.default_rng(seed)
    educ, way = rng.integers(8, 18, n) * 1.0, rng.uniform(0, 3, n)
    drive, luck = rng.normal(size=(2, n))
    d = 1.0 + 0.05 * (educ - 12) + instrument * (way - 1.2) + drive > 1.0
    wage = 2.0 + 0.08 * (educ - 12) + np.where(d, effect + 0.1 * drive, 0.25 * drive) + luck / 4
    return pd.DataFrame({"lwage": wage, "educ": educ, "way": way, "d": d})


def asked(frame, **options):
    options = {"select_only": ["way"], "regimes": "separate", "method": "ml"} | options
    return analyse(frame, outcome="lwage", model="treatment", treated="d", **options)


@pytest.fixture(scope="module")
def frame():
    return workers()


@pytest.fixture(scope="module")
def analysis(frame):
    return asked(frame)


def test_the_difference_between_untreated_and_treated_has_its_own_error(analysis):
    """Its variance is that of both effects, less twice what they share."""
    fit, gap = analysis.model.fit_, analysis.treatment.gap
    names = [name for name, _ in fit.terms]
    # Slopes of both effects by moving each estimate, one at a time, in the formulas.
    X = np.column_stack([np.ones(800), analysis.loaded.X["educ"]])
    Z = np.column_stack([X, analysis.loaded.X["way"]])
    d = analysis.loaded.selected == 1

    def difference(theta):
        own = {name: theta[[i for i, n in enumerate(names) if n == name]] for name in names}
        imr = [theta[fit.terms.index(("errors", f"imr{regime}"))] for regime in (1, 0)]
        u = Z @ own["selection"]
        pdf = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi)
        from scipy.stats import norm

        h = np.where(d, pdf / norm.cdf(u), -pdf / norm.cdf(-u))
        effect = X @ (own["regime1"] - own["regime0"]) + (imr[0] - imr[1]) * h
        return effect[~d].mean() - effect[d].mean()

    theta = np.zeros(len(names))
    for name, equation in fit.equations.items():
        places = [i for i, n in enumerate(names) if n == name]
        known = [fit.terms[i][1] for i in places[1:]]
        columns = [fit.labels.index(term) for term in known]
        theta[places] = [equation.intercept, *np.asarray(equation.coef)[columns]]
    for place, (name, term) in enumerate(fit.terms):
        if name == "errors":
            theta[place] = fit.errors[term].value
    steps = 1e-5 * np.maximum(np.abs(theta), 0.1)
    slope = np.array(
        [
            (difference(theta + step * unit) - difference(theta - step * unit)) / (2 * step)
            for step, unit in zip(steps, np.eye(len(theta)), strict=True)
        ]
    )
    assert gap.estimate == pytest.approx(difference(theta), rel=1e-9)
    error = np.sqrt(slope @ fit.covariance @ slope)
    assert gap.high - gap.estimate == pytest.approx(1.959964 * error, rel=1e-5)


def test_for_whom_follows_from_that_difference(analysis):
    gap, tile = analysis.treatment.gap, analysis.answer.tiles["whom"]
    assert gap.excludes_zero
    assert tile.title == f"{'More' if gap.estimate > 0 else 'Less'} for those who were not treated"


@pytest.mark.parametrize(("effect", "verb"), [(0.5, " raises "), (-0.5, " lowers ")])
def test_the_headline_says_in_which_direction(effect, verb):
    analysis = asked(workers(effect=effect))
    ate = analysis.effects["estimate"][0]
    assert str(analysis.answer.headline) == f"d{verb}lwage by {abs(ate):.3f} on average."


def test_an_effect_whose_sign_is_not_known_is_not_said():
    analysis = asked(workers(n=300, effect=0.0, seed=0))
    row = analysis.effects.iloc[0]
    assert row["ci_low"] < 0.0 < row["ci_high"]
    assert str(analysis.answer.headline) == "Whether d raises or lowers lwage cannot be told."
    assert "Whether d raises or lowers lwage" in str(analysis.answer.may_write[0].news)


def test_treatment_by_lot_is_not_claimed_where_it_is_not_rejected():
    rng = np.random.default_rng(1)
    frame = workers()
    frame["d"] = rng.normal(size=len(frame)) - 0.8 * (frame["way"] - 1.5) > 0
    frame["lwage"] = 1.0 + 0.5 * frame["d"] + rng.normal(size=len(frame))
    analysis = asked(frame, regimes="common")
    assert analysis.treatment.test.p_value > 0.05
    assert analysis.answer.tiles["selection"].title == "Cannot be told"
    claim = next(claim for claim in analysis.claims if claim.key == "as_by_lot")
    assert "little power" in str(claim.why)


@pytest.mark.parametrize("regimes", ["common", "separate"])
def test_the_other_method_is_that_of_a_model_fitted_with_it(frame, regimes):
    analysis = asked(frame, regimes=regimes)
    model = TreatmentModel(["educ"], ["educ", "way"], regimes=regimes)
    model.fit(frame[["educ", "way"]], frame["lwage"], treated=frame["d"])
    row, other = model.effects().iloc[0], analysis.other_method
    assert other.method == "two-step"
    assert other.effect.estimate == pytest.approx(row["estimate"], rel=1e-9)
    assert other.effect.high == pytest.approx(row["ci_high"], rel=1e-9)


def test_methods_that_disagree_are_a_caution():
    """Errors that are far from normal move maximum likelihood."""
    rng = np.random.default_rng(2)
    n = 1500
    way, u, e = rng.uniform(-2, 2, n), *rng.normal(size=(2, n))
    d = way + u > 0
    wage = 1.0 * d + np.exp(u) + 0.3 * e
    frame = pd.DataFrame({"lwage": wage, "educ": rng.normal(size=n), "way": way})
    analysis = asked(frame.assign(d=d), regimes="common")
    own, other = analysis.treatment.main, analysis.other_method.effect
    check = next(check for check in analysis.checks if check.key == "methods_apart")
    apart = abs(own.estimate - other.estimate) > 2.0 * own.std_error
    assert apart
    assert check.level == "caution"
    assert f"{other.estimate:.2f}" in check.value


def test_few_rows_in_the_smaller_group_are_a_caution():
    frame = workers(n=160)
    frame = pd.concat([frame[frame["d"]].head(25), frame[~frame["d"]]], ignore_index=True)
    analysis = asked(frame, regimes="common", method="two-step")
    check = next(check for check in analysis.checks if check.key == "few_in_regime")
    assert check.level == "caution"
    assert check.value == "25 treated"


def test_frequency_weights_count_the_rows_of_each_effect(frame):
    weight = np.where(frame["educ"] > 12, 2, 1)
    analysis = asked(frame.assign(w=weight), weights="w")
    counts = analysis.effects.set_index("effect")["n_rows"]
    assert counts["ate"] == weight.sum()
    assert counts["att"] == weight[frame["d"]].sum()
    assert counts["atu"] == weight[~frame["d"]].sum()


def test_groups_leave_out_rows_without_one(frame):
    place = np.where(frame["educ"] > 12, "city", "land").astype(object)
    place[:50] = None
    analysis = asked(frame.assign(place=place), by="place", exclude=["place"])
    groups = analysis.effects.query("group != '' and effect == 'ate'").set_index("group")
    assert groups.loc["city", "n_rows"] == np.sum(place == "city")
    assert groups["n_rows"].sum() == 750


def test_what_is_about_features_is_refused_in_a_sentence(analysis):
    for name in ("roles", "evidence"):
        with pytest.raises(InputError, match=r"effect of 'd'.*see effects"):
            getattr(analysis, name)


def test_an_answer_names_itself(analysis):
    assert repr(analysis) == (
        "<Analysis of 'lwage' in frame: 800 rows, "
        f"{int(analysis.loaded.selected.sum())} treated, 2 features, TreatmentModel>"
    )
    assert "What was the effect?" in analysis._repr_html_()


def test_rows_of_scan_name_their_treatment_as_selected(frame, tmp_path, analysis):
    frame.to_parquet(tmp_path / "rows.parquet")
    rows = scan(tmp_path / "rows.parquet", "lwage", selected="d", features=["educ", "way"])
    streamed = analyse(
        rows,
        model="treatment",
        select_only=["way"],
        regimes="separate",
        method="ml",
        stream_above=0.0,
    )
    np.testing.assert_allclose(
        streamed.effects["estimate"], analysis.effects["estimate"], rtol=1e-8
    )
    assert streamed.treatment.outside is None


def test_a_comparison_says_why_a_model_could_not_be_fitted(frame):
    """Three treated rows are too few for an equation of their own."""
    few = pd.concat([frame[frame["d"]].head(3), frame[~frame["d"]]], ignore_index=True)
    question = Question("frame", "lwage", model="treatment", treated="d", select_only=("way",))
    compared = compare_treatments(load(question, lambda words: None, few))
    notes = compared.tidy().set_index("model")["note"]
    assert "equation of their own" in notes["separate, two-step"]
    assert notes["common, two-step"] == ""
    assert "separate, ML: " in str(compared)


def test_too_few_rows_of_a_regime_are_told_once(frame):
    """A check of the table tries the same columns, and so says the same as the fit."""
    few = pd.concat([frame[frame["d"]].head(3), frame[~frame["d"]]], ignore_index=True)
    with pytest.raises(TooFewRowsError, match="with 3 coefficients") as caught:
        asked(few)
    assert not any(
        "equation of their own" in note for note in getattr(caught.value, "__notes__", ())
    )
