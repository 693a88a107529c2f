"""Standard errors of bounds by the design of a survey, and by two clusterings: written out."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from heckmanfa import Heckman, Survey, bounds
from heckmanfa.errors import InputError

ENDS, ERRORS = ["low", "high"], ["se_low", "se_high"]
SPAN = (-5.0, 7.0)
DESIGN = Survey(strata="stratum", psu="unit", weights="w")


@pytest.fixture(scope="module")
def rows():
    """Four strata of 5 to 8 units whose rows are alike."""
    rng = np.random.default_rng(6)
    n = 900
    unit = rng.integers(0, 26, n)
    frame = pd.DataFrame({"unit": unit, "stratum": np.digitize(unit, [5, 12, 20])})
    frame["x"] = rng.normal(size=n)
    frame["woman"] = rng.integers(0, 2, n)
    frame["d"] = rng.random(n) < 0.5
    y = 1 + frame["x"] + rng.normal(size=26)[unit] + frame["stratum"] + 0.3 * rng.normal(size=n)
    seen = rng.random(n) < 0.6 + 0.15 * frame["d"]
    frame["y"] = y.clip(-4, 6).where(seen)
    frame["w"] = rng.uniform(0.5, 3, n)
    frame["units"] = np.array([20, 14, 16, 9])[frame["stratum"]]
    return frame


def pulls(frame, value, inside=True):
    """How far each row pulls the weighted mean with every gap at a value."""
    weight = frame["w"] * inside
    filled = frame["y"].fillna(value)
    mean = np.average(filled, weights=weight)
    return mean, weight * (filled - mean) / weight.sum()


def design_variance(frame, pull, fraction=0.0):
    """Sum over strata (1 - f) n / (n - 1) times the squares of units about their mean."""
    totals = pull.groupby([frame["stratum"], frame["unit"]]).sum()
    variance = 0.0
    for stratum, own in totals.groupby(level=0):
        n = len(own)
        left = 1 - n / fraction[stratum] if fraction else 1.0
        variance += left * n / (n - 1) * ((own - own.mean()) ** 2).sum()
    return variance


def test_a_mean_has_the_linearized_errors_of_a_design(rows):
    table = bounds.mean(rows["y"], y_range=SPAN, groups=rows, survey=DESIGN).tidy().loc[0]
    ends = [pulls(rows, value) for value in SPAN]
    assert table[ENDS].tolist() == pytest.approx([mean for mean, _ in ends], rel=1e-12)
    errors = [np.sqrt(design_variance(rows, pull)) for _, pull in ends]
    assert table[ERRORS].tolist() == pytest.approx(errors, rel=1e-12)
    # Far apart, the interval is one-sided, by t of 26 units less 4 strata.
    reach = stats.t.ppf(0.95, 22)
    assert table["ci_low"] == pytest.approx(table["low"] - reach * errors[0], rel=1e-6)


def test_finite_populations_shrink_errors(rows):
    design = Survey(strata="stratum", psu="unit", weights="w", fpc="units")
    table = bounds.mean(rows["y"], y_range=SPAN, groups=rows, survey=design).tidy().loc[0]
    _, pull = pulls(rows, SPAN[0])
    expected = design_variance(rows, pull, [20, 14, 16, 9])
    assert table["se_low"] == pytest.approx(np.sqrt(expected), rel=1e-12)


def test_a_subpopulation_counts_in_the_design_as_a_group_does(rows):
    inside = Survey(strata="stratum", psu="unit", weights="w", subpop="woman")
    # A unit without a woman is a unit of the design nevertheless.
    frame = rows.assign(woman=rows["woman"].where(rows["unit"] != 3, 0))
    found = bounds.mean(frame["y"], y_range=SPAN, groups=frame, survey=inside)
    grouped = bounds.mean(
        frame["y"], group=frame["woman"], y_range=SPAN, groups=frame, survey=DESIGN
    )
    names = [*ENDS, *ERRORS, "observed"]
    np.testing.assert_allclose(
        found.tidy().loc[0, names].tolist(), grouped.tidy().loc[1, names].tolist(), rtol=1e-10
    )
    _, pull = pulls(frame, SPAN[0], frame["woman"])
    assert found.tidy().loc[0, "se_low"] == pytest.approx(np.sqrt(design_variance(frame, pull)))
    assert "outside of the subpopulation" in str(found)


def test_two_clusterings_add_both_and_subtract_their_cells(rows):
    first, second = rows["unit"], rows["x"].rank().astype(int) % 11
    both = pd.DataFrame({"first": first, "second": second})
    found = bounds.mean(rows["y"], y_range=SPAN, groups=both).tidy().loc[0]
    _, pull = pulls(rows.assign(w=1.0), SPAN[0])
    variance = 0.0
    for sign, keys in ((1, [first]), (1, [second]), (-1, [first, second])):
        totals = pull.groupby(keys).sum()
        n = len(totals)
        variance += sign * n / (n - 1) * (totals**2).sum()
    assert found["se_low"] == pytest.approx(np.sqrt(variance), rel=1e-12)
    reach = stats.t.ppf(0.95, 10)
    assert found["ci_low"] == pytest.approx(found["low"] - reach * found["se_low"], rel=1e-6)


@pytest.mark.parametrize("fpc", [None, "units"])
def test_a_bootstrap_of_units_agrees_with_the_design(rows, fpc):
    design = Survey(strata="stratum", psu="unit", weights="w", fpc=fpc)
    given = {"groups": rows, "survey": design}
    formula = bounds.lee(rows["y"], rows["d"], **given).tidy()
    drawn = bounds.lee(rows["y"], rows["d"], n_boot=400, random_state=0, **given).tidy()
    np.testing.assert_allclose(drawn[ERRORS], formula[ERRORS], rtol=0.15)
    alone = bounds.lee(rows["y"], rows["d"], sample_weight=rows["w"], weight_kind="sampling")
    assert (abs(formula[ERRORS] / alone.tidy()[ERRORS] - 1) > 0.2).to_numpy().any()


@pytest.mark.filterwarnings("ignore:the covariance rests")
def test_a_model_of_a_survey_or_of_two_clusterings_has_the_bounds_of_its_design(rows):
    frame = rows.assign(z=np.random.default_rng(0).normal(size=len(rows)) + rows["y"].notna())
    X, y = frame[["x", "z"]], frame["y"]
    other = frame["x"].rank().astype(int) % 11
    clusters = pd.DataFrame({"first": frame["unit"], "second": other})
    for options, given, alone in (
        ({"cov_type": DESIGN}, {"groups": frame}, {"groups": frame, "survey": DESIGN}),
        ({"cov_type": "cluster"}, {"groups": clusters}, {"groups": clusters}),
    ):
        model = Heckman(["x"], **options).fit(X, y, **given)
        table = model.bounds(X, y, y_range=SPAN, **given).tidy()
        expected = bounds.mean(y, y_range=SPAN, **alone).tidy()
        names = [*ENDS, *ERRORS, "ci_low", "ci_high"]
        np.testing.assert_allclose(table[names], expected[names], rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"survey": DESIGN}, "as groups"),
        ({"survey": DESIGN, "groups": "frame", "sample_weight": np.ones(900)}, "weights"),
        ({"survey": Survey(strata="region", psu="unit"), "groups": "frame"}, "region"),
        (
            {
                "survey": Survey(weights="w", replicate_weights="w*", replicate_kind="brr"),
                "groups": "frame",
            },
            "replicate",
        ),
    ],
)
def test_what_a_design_cannot_be_is_refused(rows, options, named):
    given = {k: rows if isinstance(v, str) else v for k, v in options.items()}
    with pytest.raises(InputError) as refused:
        bounds.mean(rows["y"], **given)
    assert named in str(refused.value)


def test_a_bootstrap_refuses_two_clusterings(rows):
    with pytest.raises(InputError, match="one column"):
        bounds.lee(rows["y"], rows["d"], n_boot=50, groups=rows[["unit", "stratum"]])


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_bounds_of_a_model_say_that_replicate_weights_are_not_used(rows):
    replicates = {f"r{number}": rows["w"] * (1 + (rows["unit"] == number)) for number in range(26)}
    frame = rows.assign(**replicates)
    survey = Survey(weights="w", replicate_weights="r*", replicate_kind="bootstrap")
    model = Heckman.from_formula("y ~ x", "~ x + woman + d", frame, cov_type=survey)
    assert "linearized, by the strata and sampling units that are named" in " ".join(
        str(model.bounds(frame, y_range=SPAN)).split()
    )
