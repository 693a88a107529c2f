"""The numbers of a first screen are those of a plain enumeration of all models."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from tests.results.shared import fitted

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.results import assignment_weights
from heckmanfa.results.effects import effects_of
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.naming import Naming, binary_columns
from heckmanfa.results.steps import spreads_of
from heckmanfa.search.averaging import average

K = 6
FEATURES = [
    *("educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"),
    *("fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"),
]


@pytest.fixture(scope="module")
def rows():
    data = make_selection(400, K, 3, rho=0.5, random_state=1)
    X = np.asarray(data.X).copy()
    X[:, 5] = X[:, 5] > 0
    return X, data.y


@pytest.fixture(scope="module")
def mroz():
    frame = load_mroz()
    return fitted(HeckmanAverage(), frame[FEATURES], frame["lwage"])


@pytest.mark.parametrize("options", [{}, {"always": [1], "feature_groups": [[2, 3]]}])
def test_least_squares_averaged_alike_is_the_average_without_the_correction(rows, options):
    fit = fitted(HeckmanAverage(**options), *rows).fit_
    never = fitted(HeckmanAverage(correction="never", **options), *rows)
    found, series = evidence_of(fit), effects_of(fit).least_squares
    averaged = [series.of(column).estimate for column in range(K)]
    assert averaged == pytest.approx(never.coef_, rel=1e-9)
    shares = never.fit_.average.mixture.shares["bic"]
    for feature in found.features:
        if feature.role == "always included":
            assert feature.chance is None
        else:
            held = shares[feature.lead]
            assert feature.chance_least_squares == pytest.approx(held, rel=1e-9)
    table = never.tidy().query("equation == 'prediction'")[["ci_low", "ci_high"]].to_numpy()[1:]
    ends = [(series.of(column).low, series.of(column).high) for column in range(K)]
    assert np.array(ends) == pytest.approx(table, abs=1e-9)
    # By the form, it is close to least squares of all features.
    seen = np.isfinite(rows[1])
    design = np.column_stack([np.ones(seen.sum()), rows[0][seen]])
    plain = np.linalg.lstsq(design, rows[1][seen], rcond=None)[0][1:]
    assert averaged == pytest.approx(plain, abs=0.2)


def test_effects_are_those_of_tidy_and_chances_those_of_the_inclusion(rows):
    model = fitted(HeckmanAverage(), *rows)
    found = evidence_of(model.fit_)
    table = model.tidy().set_index("term")
    assert found.way.name == "average"
    for feature, chance in zip(found.features, model.inclusion_["bic"][:-1], strict=True):
        row = table.loc[table["equation"] == "prediction"].loc[feature.name]
        effect = feature.effect
        assert (effect.estimate, effect.low, effect.high) == (
            row["estimate"],
            row["ci_low"],
            row["ci_high"],
        )
        assert feature.chance == chance
    assert found.rho.estimate == model.rho_
    assert found.imr.low == table.loc["imr", "ci_low"]


def test_the_best_set_is_close_to_a_model_with_its_features(rows):
    average = HeckmanAverage("aic", correction="always", cov_type="classical")
    found = evidence_of(fitted(average, *rows).fit_)
    best = found.best
    alone = fitted(Heckman(np.flatnonzero(best.mask).tolist()), *rows)
    table = alone.tidy().set_index(["equation", "term"])
    for column in np.flatnonzero(best.mask):
        row = table.loc[("prediction", f"x{column}")]
        effect = best.coef.of(int(column))
        assert effect.estimate == pytest.approx(row["estimate"], abs=0.1 * row["std_error"])
    assert best.rho == pytest.approx(alone.rho_, abs=0.05)
    given = evidence_of(alone.fit_)
    assert given.way.name == "given"
    # The interval of rho holds zero if and only if that of lambda does.
    assert given.rho.excludes_zero == given.imr.excludes_zero
    assert given.rho.low < alone.rho_ < given.rho.high


def test_the_model_of_all_features_is_that_of_heckman(rows):
    found = evidence_of(fitted(HeckmanAverage(), *rows).fit_)
    alone = fitted(Heckman(cov_type="robust"), *rows)
    table = alone.tidy().query("equation == 'prediction'").set_index("term")
    for feature in found.features:
        row = table.loc[feature.name]
        assert feature.all_features.estimate == pytest.approx(row["estimate"], rel=1e-8)
        assert feature.all_features.high == pytest.approx(row["ci_high"], rel=1e-6)
    assert evidence_of(alone.fit_).all_features is None
    assert evidence_of(alone.fit_).no_exclusion


def test_scales_and_binary_columns_come_from_the_moments(rows):
    X, y = rows
    model = fitted(HeckmanAverage(), X, y)
    found = evidence_of(model.fit_)
    assert binary_columns(model.fit_.moments) == {5}
    spread = np.std(X[np.isfinite(y)], axis=0, ddof=1)
    assert spreads_of(model.fit_) == pytest.approx(spread)
    assert str(found.naming.change_of(5)) == "x5 = 1 rather than 0"
    assert str(found.naming.change_of(0)) == "one more x0"


def test_selection_tests_are_those_of_the_selection_equation(rows):
    model = fitted(HeckmanAverage(), *rows)
    table = model.tidy().query("equation == 'selection'").set_index("term")
    for feature in evidence_of(model.fit_).features:
        assert feature.selection_z == pytest.approx(table.loc[feature.name, "statistic"])
        assert feature.selection_p == pytest.approx(table.loc[feature.name, "p_value"])


def test_roles_of_mroz(mroz):
    found = evidence_of(mroz.fit_)
    chances = {feature.name: feature.chance for feature in found.features}
    assert chances["educ"] > 0.99
    # exper competes with the index and with lambda.
    expected = {
        "exper": 0.85,
        "expersq": 0.48,
        "huswage": 0.44,
        "motheduc": 0.42,
        "nwifeinc": 0.36,
        "huseduc": 0.29,
    }
    assert {name: round(chances[name], 2) for name in expected} == expected
    roles = {feature.name: feature.role for feature in found.ordered()}
    assert [*roles][:7] == ["educ", *expected]
    assert {roles[name] for name in expected} == {"cannot be told"}
    # All of the others have their chance from the index, whether they drive selection or not.
    others = {role for name, role in roles.items() if name not in ("educ", *expected)}
    assert others == {"cannot be told: only as it drives selection"}
    assert found.best.names == ("educ", "exper")
    assert found.best.weight == pytest.approx(0.073, abs=0.001)
    assert found.stand_in is None
    assert found.judgement.chance == pytest.approx(0.15, abs=0.01)
    assert found.main.name == "educ"


def test_a_choice_has_the_chances_of_the_average_and_its_own_effects(rows):
    model = fitted(HeckmanBestSubset(), *rows)
    found, averaged = (
        evidence_of(fitted(one, *rows).fit_)
        for one in (model, HeckmanAverage(cov_type="classical"))
    )
    assert found.way.name == "chosen"
    for mine, other in zip(found.features, averaged.features, strict=True):
        assert mine.chance == pytest.approx(other.chance)
        assert mine.chance_least_squares == pytest.approx(other.chance_least_squares)
        assert mine.in_model == mine.effect.known == bool(model.support_[mine.lead])
    assert found.chosen_weight == pytest.approx(found.best.weight)
    assert found.rho_with_search != (found.rho.low, found.rho.high)


def test_a_search_among_many_features_is_weighed_in_short_chains(rows, monkeypatch):
    model = fitted(HeckmanBestSubset(), *rows)
    exact = evidence_of(model.fit_)
    again = fitted(HeckmanBestSubset(), *rows).fit_
    monkeypatch.setattr(assignment_weights, "MOST_UNITS", 3)
    monkeypatch.setattr(assignment_weights, "QUICK_UNITS", 3)
    asked = []

    def sampled(*args, **options):
        asked.append(options["max_sweeps"])
        return average(*args, **options, max_units=3)

    monkeypatch.setattr(assignment_weights, "average", sampled)
    assert "search_report()" in evidence_of(again, effort="quick").chances_missing
    found = evidence_of(again)
    assert asked == [200]
    assert not found.exhaustive
    assert [feature.chance for feature in found.features] == pytest.approx(
        [feature.chance for feature in exact.features], abs=0.03
    )


def test_an_honest_search_counts_halves(rows):
    model = fitted(HeckmanBestSubset(honest=True, n_splits=6, random_state=0), *rows)
    found = evidence_of(model.fit_)
    assert found.way.name == "honest"
    assert found.way.n_halves == 6
    chosen = model.honest_.support.mean(axis=0)
    assert [feature.chance for feature in found.features] == chosen.tolist()
    assert {feature.by_aic for feature in found.features} == {None}
    for feature in found.features:
        assert (feature.role == "chosen to predict") == (feature.chance >= 0.5)


def test_groups_are_named_by_their_term_and_led_by_the_largest_level():
    rng = np.random.default_rng(0)
    n = 500
    frame = pd.DataFrame({"a": rng.normal(size=n), "z": rng.normal(size=n)})
    frame["place"] = rng.choice(["north", "south", "west"], size=n)
    effect = frame["place"].map({"north": 0.0, "south": 0.3, "west": 2.0})
    common = rng.normal(size=n)
    frame["wage"] = 1 + frame["a"] + effect + 0.5 * common + rng.normal(size=n)
    frame.loc[frame["z"] + common + 0.3 < 0, "wage"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model = HeckmanAverage.from_formula("wage ~ a + place", "~ a + place + z", frame)
    found = evidence_of(model.fit_)
    place = next(feature for feature in found.features if feature.name == "place")
    assert found.outcome == "wage"
    assert (place.level, place.is_switch, place.step) == ("west", True, 1.0)
    assert [level.name for level in place.levels] == ["south", "west"]
    assert np.isnan(place.selection_z)
    assert np.isfinite(place.selection_p)
    z = found.features[-1]
    assert (z.name, z.candidate, z.chance, z.role) == ("z", False, None, "drives selection")


def test_outcomes_are_named_as_they_came(rows):
    X, y = rows
    assert Naming.of(fitted(Heckman([0]), X, y).fit_).outcome == "y"
    named = fitted(Heckman([0]), X, pd.Series(y, name="wage"))
    assert Naming.of(named.fit_).outcome == "wage"


@pytest.fixture(scope="module")
def model_with_categories():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "c": rng.choice(["x", "y", "z"], 300)})
    X["d"] = pd.Categorical(rng.choice(["lo", "hi"], 300), categories=["lo", "hi"])
    y = X["a"] + rng.normal(size=300)
    return Heckman(["a", "c"]).fit(X, y.where((X["d"] == "hi") + rng.normal(size=300) > 0))


def test_a_category_of_x_goes_by_its_column_and_its_levels(model_with_categories):
    named = Naming.of(model_with_categories.fit_)
    assert named.sources == ("a", "c", "c", "d")
    assert named.levels == ("", "y", "z", "hi")
    assert named.references == ("", "x", "x", "lo")
    assert named.name_of([1, 2]) == "c"
    assert str(named.change_of(2)) == "c = z rather than x"
    assert [row.name for row in model_with_categories.pictures().forest.rows] == ["a", "c", "c"]


def test_sets_of_many_features_are_weighed_unless_that_may_not_take_time(monkeypatch):
    mroz = load_mroz()
    fit = HeckmanBestSubset().fit(mroz[["educ", "exper", "age", "kids5"]], mroz["lwage"]).fit_
    monkeypatch.setattr(assignment_weights, "QUICK_UNITS", 3)
    assert "search_report() has them" in evidence_of(fit, effort="quick").chances_missing
    assert evidence_of(fit).has_chances
