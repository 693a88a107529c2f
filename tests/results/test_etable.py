"""Tables of models side by side: each number is the model's, each row and note where it belongs."""

import io
import re
import warnings
import xml.etree.ElementTree as ET
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.scenes import FEATURES, FITS, LEVELS, MROZ, OTHERS, TWO, WORKS, X, Y
from tests.test_exports import from_tex, well_formed

import heckmanfa
from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanBestSubset,
    HeckmanOrdered,
    InverseProbabilityWeighted,
    NaiveOLS,
    RURegressor,
    Survey,
    TreatmentModel,
    etable,
)
from heckmanfa.errors import HeckmanfaWarning, InputError, InputTypeError, UnknownFeatureError
from heckmanfa.tables.codebook import Codebook, ColumnWords
from heckmanfa.text.table import INDENT

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
WORDS = {
    "prediction": "Prediction equation",
    "selection": "Selection equation (probit)",
    "errors": "Errors",
}
SEVERAL = [
    *("two-step", "ml", "12 clusters", "search", "average", "probit", "held", "held, ml"),
    *("window", "log", "weak exclusion", "boundary, ml", "all observed", "no exclusion"),
]


@pytest.fixture(scope="module")
def fits():
    made = {}

    def get(name):
        if name not in made:
            with quiet():
                made[name] = (FITS | OTHERS)[name]()
        return made[name]

    return get


def quiet():
    return warnings.catch_warnings(action="ignore", category=HeckmanfaWarning)


def rows_of(table):
    """The cells of each row and those under it, by heading, category and name."""
    found, heading, category, last = {}, "", "", None
    lines = table.table.rows
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if isinstance(line, str):
            heading, category = line, ""
            continue
        name, *cells = line
        if not name:
            found[last] = found[last][0], cells
            continue
        inside = isinstance(following, list | tuple) and following[0].startswith(INDENT)
        if not name.startswith(INDENT):
            category = ""
        if not any(cells) and inside:
            category = name
            continue
        last = heading, category, name.removeprefix(INDENT)
        assert last not in found
        found[last] = cells, [""] * len(cells)
    return found


def value(cell):
    text = cell.strip("()[]*").replace(",", "")
    return float(text) if text else np.nan


def body_of(table):
    """The rows of coefficients."""
    return {key: cells for key, cells in rows_of(table).items() if key[0]}


def agrees(cells, numbers, digits):
    """What is printed is the number, rounded to so many significant digits."""
    printed = [value(cell) for cell in cells]
    np.testing.assert_allclose(printed, numbers, rtol=0.5001 * 10.0 ** (1 - digits), atol=1e-300)


# Numbers. ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [3, 6])
def test_every_cell_is_the_number_of_tidy_with_its_error_below(fits, digits):
    models = [fits(name) for name in SEVERAL]
    rows = body_of(etable(models, digits=digits))
    seen = 0
    for place, model in enumerate(models):
        tidy = model.tidy()
        for row in tidy.to_dict("records"):
            cells, under = rows[WORDS[row["equation"]], "", row["term"]]
            agrees([cells[place]], [row["estimate"]], digits)
            # What is held was not estimated.
            is_held = row["term"] == "rho" and model.fit_.held_rho is not None
            agrees([under[place]], [np.nan if is_held else row["std_error"]], digits)
            seen += 1
        filled = [key for key, (cells, _) in rows.items() if cells[place]]
        assert len(filled) == tidy["estimate"].notna().sum()
    assert seen == sum(len(model.tidy()) for model in models)


def test_errors_are_the_roots_of_the_covariance(fits):
    model = fits("ml, robust")
    covariance = model.vcov()
    rows = body_of(etable([model], digits=7))
    for (equation, term), variance in zip(covariance.index, np.diag(covariance), strict=True):
        agrees(rows[WORDS[equation], "", term][1], [np.sqrt(variance)], 7)


@pytest.mark.parametrize("name", ["ml", "12 clusters"])
def test_intervals_statistics_and_p_values_follow_from_estimate_and_error(fits, name):
    model = fits(name)
    tidy = model.tidy()
    tidy = tidy[tidy["equation"] != "errors"]
    z = tidy["estimate"] / tidy["std_error"]
    law = stats.t(11) if "clusters" in name else stats.norm()
    made = {
        under: body_of(etable([model], digits=5, under=under, conf_level=0.9))
        for under in ("interval", "t", "p", None)
    }
    for row, statistic in zip(tidy.to_dict("records"), z, strict=True):
        key = WORDS[row["equation"]], "", row["term"]
        low, high = made["interval"][key][1][0].strip("[]").split(", ")
        reach = law.ppf(0.95) * row["std_error"]
        agrees([low, high], [row["estimate"] - reach, row["estimate"] + reach], 5)
        assert made["t"][key][1] == [f"({statistic:.2f})"]
        p = 2 * law.sf(abs(statistic))
        assert made["p"][key][1] == [f"({p:.3f})" if p >= 0.001 else "(<0.001)"]
        assert made[None][key][1] == [""]
    said = [table.notes[0] for table in (etable([model], under=u) for u in ("se", "p", "t"))]
    letter = "t" if "clusters" in name else "z"
    assert said == [
        *("Standard errors in parentheses.", "p-values in parentheses."),
        f"{letter} statistics in parentheses.",
    ]


@pytest.mark.parametrize("thresholds", [True, (0.2, 0.6), 0.1])
def test_stars_follow_p_values_of_scipy(fits, thresholds):
    models = [fits("ml"), fits("5 clusters, ml"), fits("probit")]
    table = etable(models, stars=thresholds)
    limits = (0.05, 0.01, 0.001) if thresholds is True else thresholds
    limits = [limits] if isinstance(limits, float) else limits
    rows, n_stars, laws = body_of(table), [], [stats.norm, stats.t(4), stats.norm]
    for place, (model, law) in enumerate(zip(models, laws, strict=True)):
        for row in model.tidy().to_dict("records"):
            if row["equation"] == "errors":
                continue
            p = 2 * law.sf(abs(row["estimate"] / row["std_error"]))
            cell = rows[WORDS[row["equation"]], "", row["term"]][0][place]
            n_stars.append(cell.count("*"))
            assert n_stars[-1] == sum(p < limit for limit in limits)
            assert cell.rstrip("*") == cell[: len(cell) - n_stars[-1]]
    assert len(limits) in n_stars
    assert len({*n_stars}) > 1
    marks = [f"{'*' * n} p < {most:g}" for n, most in enumerate(sorted(limits)[::-1], 1)]
    assert f"{', '.join(marks)}." in table.notes
    assert not any("*" in cell for cells, _ in rows_of(etable(models)).values() for cell in cells)


def test_there_are_no_stars_where_nothing_is_tested(fits):
    models = [fits("average"), fits("held"), fits("window")]
    rows = body_of(etable(models, stars=(0.999,)))
    for key in (("Prediction equation", "", "educ"), ("Errors", "", "rho")):
        assert not rows[key][0][0].endswith("*")
    for term in ("rho", "imr"):
        assert not any(cell.endswith("*") for cell in rows["Errors", "", term][0])
    assert rows["Prediction equation", "", "educ"][0][1].endswith("*")


def test_the_frame_holds_the_numbers_of_tidy_in_full(fits):
    models = [fits("two-step"), fits("probit")]
    frame = etable(models, names=["a", "b"]).frame
    for name, model in zip("ab", models, strict=True):
        own = frame[frame["model"] == name].drop(columns="model").reset_index(drop=True)
        pd.testing.assert_frame_equal(own, model.tidy()[own.columns], check_exact=True)


# Rows. ------------------------------------------------------------------------------------------


def test_rows_of_a_category_stand_under_its_name_and_reference():
    one = Heckman(["educ", "schooling"], reference={"schooling": "some"}).fit(LEVELS, Y)
    two = Heckman(["schooling"], reference={"schooling": "some"}).fit(LEVELS, Y)
    other = Heckman(["schooling"], reference={"schooling": "more"}).fit(LEVELS, Y)
    table = etable([one, two, other])
    rows = {key[1:]: cells for key, (cells, _) in body_of(table).items() if "Pred" in key[0]}
    assert [*rows] == [
        ("", "Intercept"),
        ("", "educ"),
        *[("schooling (reference: some)", level) for level in ("more", "twelve")],
        *[("schooling (reference: more)", level) for level in ("some", "twelve")],
    ]
    terms = two.tidy().set_index(["equation", "term"])["estimate"]["prediction"]
    cells = rows["schooling (reference: some)", "more"]
    agrees([cells[1]], [terms["schooling[more]"]], 4)
    assert cells[0]
    assert not cells[2]
    assert "  more " in str(table)


def test_a_category_of_a_formula_stands_under_its_term():
    rows = LEVELS.assign(lwage=Y)
    who = "educ + age + C(schooling)"
    model = Heckman.from_formula("lwage ~ educ + C(schooling) + I(age ** 2)", who, rows)
    table = etable([model], labels={"C(schooling)": "Schooling"})
    named = [key[1:] for key in body_of(table) if key[0] == "Prediction equation"]
    assert named == [
        *[("", "Intercept"), ("", "educ")],
        *[("Schooling (reference: more)", level) for level in ("some", "twelve")],
        ("", "I(age ** 2)"),
    ]


def test_a_category_of_a_formula_shares_the_rows_of_one_from_arrays():
    rows = MROZ.assign(schooling=LEVELS["schooling"])
    formula = Heckman.from_formula("lwage ~ schooling", "~ schooling + age + kids5", rows)
    arrays = Heckman(["schooling"]).fit(rows[["schooling", "age", "kids5"]], rows["lwage"])
    table = etable([formula, arrays], equations=["prediction"])
    assert str(table).count("schooling (reference: ") == 1
    assert all(all(cells) for cells, _ in body_of(table).values())
    assert formula.fit_.origin.design.selection.encodings["schooling"][1][0] in str(table)


def test_a_parameter_that_is_held_has_nothing_below_it(fits):
    rows = body_of(etable([fits("held"), fits("held, ml")], equations=["errors"]))
    (cells, under), (_, below) = rows["Errors", "", "rho"], rows["Errors", "", "sigma"]
    assert all(cells)
    assert not any(under)
    assert all(below)


def test_a_category_with_one_dummy_is_one_row():
    frame = X.assign(town=np.where(MROZ["city"] == 1, "big", "small"))
    rows = body_of(etable([Heckman(["educ", "town"]).fit(frame, Y)]))
    assert ("Prediction equation (lwage)", "", "x") not in rows
    assert ("Prediction equation", "", "town: small rather than big") in rows


def test_a_term_that_a_model_lacks_is_blank_and_its_row_in_an_order_that_fits_all():
    sets = [["educ", "kids5"], ["educ", "exper", "kids5"], ["age", "exper"]]
    table = etable([Heckman(one).fit(X, Y) for one in sets], equations=["prediction"])
    rows = body_of(table)
    names = [name for _, _, name in rows]
    assert names[:3] == ["Intercept", "educ", "exper"]
    for one in sets:
        # X has exper before age.
        own = [name for name in FEATURES if name in one]
        assert [name for name in names if name in one] == own
    for (_, _, name), (cells, under) in rows.items():
        if name != "Intercept":
            assert [bool(cell) for cell in cells] == [name in one for one in sets]
            assert [bool(cell) for cell in under] == [name in one for one in sets]
    assert "0.000" not in str(table)


def test_a_feature_that_is_called_intercept_has_a_row_of_its_own():
    frame = X.rename(columns={"exper": "Intercept"})
    model = Heckman(["educ", "Intercept"]).fit(frame, Y)
    lines = [line for line in etable([model], digits=6).table.rows if not isinstance(line, str)]
    named = [value(line[1]) for line in lines if line[0] == "Intercept"]
    tidy = model.tidy()
    np.testing.assert_allclose(
        named, tidy.loc[tidy["term"] == "Intercept", "estimate"], rtol=0.5001e-5
    )


def test_equations_and_rows_are_chosen_and_ordered(fits):
    models = [fits("two-step"), fits("ml")]
    table = etable(
        models,
        equations=["errors", "prediction", "selection"],
        keep=["rho", "educ", "selection.age"],
        drop=["AIC", "selection.educ"],
        order=["BIC", "rho"],
    )
    assert [*body_of(table)] == [
        ("Errors", "", "rho"),
        ("Prediction equation", "", "educ"),
        ("Selection equation (probit)", "", "age"),
    ]
    lower = [key[2] for key in rows_of(table) if not key[0]]
    assert lower[:2] == ["Outcome", "BIC"]
    assert "AIC" not in lower
    assert table.frame["term"].tolist() == ["rho", "educ", "age"] * 2
    dropped = etable(models, drop=["educ"])
    assert {term for _, _, term in body_of(dropped)}.isdisjoint(["educ"])


def test_a_category_is_kept_and_dropped_by_its_column(fits):
    model = fits("categories")
    kept = etable([model], keep=["prediction.schooling"])
    assert [key[2] for key in body_of(kept)] == ["more", "twelve"]
    assert not [key for key in body_of(etable([model], drop=["schooling"])) if key[1]]


def test_labels_name_columns_levels_terms_and_the_outcome(fits):
    labels = {"educ": "Schooling", "rho": "ρ", "Intercept": "Constant", "lwage": "Log wage"}
    labels |= {"schooling[more]": "More than twelve years"}
    table = etable([fits("categories"), fits("search")], labels=labels, names=["A", "B"])
    rows = rows_of(table)
    assert ("Prediction equation", "", "Schooling") in rows
    assert ("Errors", "", "ρ") in rows
    assert ("Prediction equation", "", "Constant") in rows
    assert ("Prediction equation", "schooling (reference: some)", "More than twelve years") in rows
    assert rows["", "", "Outcome"][0] == ["Log wage", "Log wage"]
    assert table.frame["model"].unique().tolist() == ["A", "B"]
    assert "educ" in table.frame["term"].tolist()
    words = ColumnWords("Years", levels={"some": "below 12", "more": "above 12"})
    whole = Codebook({"schooling": words, "never in a model": ColumnWords("x")})
    rows = rows_of(etable([fits("categories")], labels=whole))
    assert ("Prediction equation", "Years (reference: below 12)", "above 12") in rows
    with pytest.raises(UnknownFeatureError, match=r"labels: no model has 'edu'.*'educ'"):
        etable([fits("two-step")], labels={"edu": "Schooling"})


def test_a_label_of_a_feature_left_out_is_in_the_note(fits):
    said = " ".join(etable([fits("search")], labels={"kids5": "Small children"}).notes)
    assert "left age, Small children and nwifeinc out" in said


# Facts and notes. -------------------------------------------------------------------------------


def test_facts_are_those_of_the_fits(fits):
    names = ["two-step", "ml", "12 clusters", "search", "average", "probit"]
    models = [fits(name) for name in names]
    facts = etable(models, names=names).facts
    assert facts.loc["Observations"].tolist() == ["753"] * 6
    assert facts.loc["Selected"].tolist() == ["428"] * 6
    assert facts.loc["Clusters"].tolist() == ["", "", "12", "", "", ""]
    assert facts.loc["Method"].tolist() == [
        *("two-step", "ML", "two-step", "two-step", "two-step", "ML")
    ]
    assert facts.loc["Features"].tolist() == ["", "", "", "chosen", "averaged", ""]
    assert facts.loc["Standard errors", "12 clusters"] == "cluster"
    assert facts.loc["Model"].tolist() == [*["Heckman"] * 5, "Heckman probit"]
    for name, model in zip(names, models, strict=True):
        if name != "average":
            assert float(facts.loc["BIC", name].replace(",", "")) == pytest.approx(
                model.bic_, abs=0.0051
            )
            assert float(facts.loc["AIC", name].replace(",", "")) == pytest.approx(
                model.aic_, abs=0.0051
            )
    assert facts.loc["BIC", "average"] == ""
    assert float(facts.loc["Log-likelihood", "ml"]) == pytest.approx(
        models[1].log_likelihood_, abs=0.0051
    )
    assert facts.loc["Log-likelihood", "two-step"] == ""


def test_weights_and_pseudolikelihoods_are_named(fits):
    table = etable([fits("sampling weights, ml"), fits("frequencies"), fits("two-step")])
    assert table.facts.loc["Weights"].tolist() == ["sampling", "frequency", ""]
    assert table.facts.loc["Log pseudolikelihood"].tolist()[1:] == ["", ""]
    total = float((1 + np.arange(len(X)) % 3).sum())
    assert float(table.facts.loc["Sum of weights"].iloc[1].replace(",", "")) == total


def test_clusters_are_named_by_their_column():
    rows = MROZ.assign(place=np.arange(len(MROZ)) % 50)
    model = Heckman.from_formula(
        "lwage ~ educ", "lfp ~ educ + age + kids5", rows, cov_type="cluster", groups="place"
    )
    assert etable([model]).facts.loc["Standard errors"].tolist() == ["cluster (place)"]


def test_two_clusterings_and_designs_are_told_by_their_numbers(fits):
    rows = MROZ.assign(
        place=np.arange(len(MROZ)) % 50,
        year=np.arange(len(MROZ)) % 41,
        unit=np.arange(len(MROZ)) % 7,
    )
    equations = ("lwage ~ educ", "lfp ~ educ + age + kids5", rows)
    two = Heckman.from_formula(*equations, cov_type="cluster", groups=["place", "year"])
    survey = Heckman.from_formula(*equations, cov_type=Survey("place", "unit", nest=True))
    facts = etable([two, survey, fits("two-step")]).facts
    assert facts.loc["Standard errors"].tolist() == [
        "cluster (place and year)",
        "survey",
        "classical",
    ]
    assert facts.loc["Clusters"].tolist() == ["50 and 41", "", ""]
    design = survey.fit_.design
    for label, number in (
        ("Strata", 50),
        ("Sampling units", design.n_psu),
        ("Design df", design.df),
    ):
        assert facts.loc[label].tolist() == ["", f"{number:,}", ""]


def test_criteria_of_the_outcome_alone_are_said_not_to_compare(fits):
    note = "do not compare"
    assert any(note in one for one in etable([fits("two-step"), fits("ml")]).notes)
    alike = ["two-step", "search"], ["ml", "probit"], ["two-step", "average"]
    for models in ([fits(name) for name in names] for names in alike):
        assert not any(note in one for one in etable(models).notes)
    both = [fits("two-step"), fits("ml")]
    assert not any(note in one for one in etable(both, drop=["AIC", "BIC"]).notes)


def test_a_note_names_the_models_that_it_is_about_once(fits):
    said = etable([fits("two-step"), fits("ml"), fits("search")]).notes
    about = [note for note in said if "account for the estimated inverse Mills ratio" in note]
    assert [note.split(":")[0] for note in about] == ["(1) and (3)"]
    every = etable([fits("two-step"), fits("search")], names=["A", "B"]).notes
    assert any(note.startswith("Standard errors account for") for note in every)
    assert len({*every}) == len(every)


def test_notes_say_what_was_searched_left_out_and_which_p_values_are_invalid(fits):
    table = etable(
        [fits("search"), fits("honest"), fits("average"), fits("two-step")],
        names=["best", "honest", "average", "given"],
    )
    best = " ".join(note for note in table.notes if note.startswith("best"))
    assert "best by BIC of all 32 assignments" in best
    assert "p-values ignore the search" in best
    assert "The search left age, kids5 and nwifeinc out of the prediction equation." in best
    honest = " ".join(note for note in table.notes if note.startswith("honest"))
    assert "Honest estimates" in honest
    assert "ignore the search" not in honest
    average = " ".join(note for note in table.notes if note.startswith("average:"))
    assert "There is no p-value of an average." in average
    assert "standard deviations of mixtures" in average
    assert not any(note.startswith("given:") for note in table.notes)
    # A table for a paper has no advice on what to call.
    assert not re.search(r"bootstrap\(\)|what_if\(\)|honest=True", " ".join(table.notes))


def test_a_search_of_both_equations_says_what_each_lacks():
    model = HeckmanBestSubset(method="ml", search_in="both", always=["educ"]).fit(X, Y)
    said = " ".join(etable([model]).notes)
    out = {*FEATURES} - {*model.prediction_features_}
    assert all(name in said for name in out)
    assert "out of the prediction equation" in said
    dropped = {*FEATURES} - {*model.selection_features_}
    assert ("out of the selection equation" in said) == bool(dropped)


# Other models. ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def treated():
    who = MROZ["city"] == 1
    with quiet():
        return [
            TreatmentModel(TWO, regimes=regimes).fit(X, MROZ["hours"], treated=who)
            for regimes in ("common", "separate")
        ]


def test_treatment_models_have_their_equations_beside_a_selection_model(fits, treated):
    table = etable([fits("two-step"), *treated])
    rows = body_of(table)
    headings = {
        "outcome": "Outcome equation",
        "effect": "Effect of treatment",
        "regime1": "Treated",
        "regime0": "Untreated",
        "selection": "Treatment equation (probit)",
        "errors": "Errors",
    }
    for place, model in enumerate(treated, 1):
        for row in model.tidy().to_dict("records"):
            cells, under = rows[headings[row["equation"]], "", row["term"]]
            agrees([cells[place]], [row["estimate"]], 4)
            agrees([under[place]], [row["std_error"]], 4)
    assert [*dict.fromkeys(key[0] for key in rows)] == [
        *("Prediction equation", "Outcome equation", "Effect of treatment", "Treated", "Untreated"),
        *("Selection equation (probit)", "Treatment equation (probit)", "Errors"),
    ]
    n = int((MROZ["city"] == 1).sum())
    assert table.facts.loc["Treated"].tolist() == ["", str(n), str(n)]
    assert table.facts.loc["Selected"].tolist() == ["428", "", ""]


def test_notes_of_a_treatment_model_are_its_own_problems():
    with quiet():
        model = TreatmentModel(FEATURES, regimes="separate").fit(
            X, MROZ["hours"], treated=MROZ["city"] == 1
        )
    notes = etable([model]).notes
    problems = [fact for fact in model.diagnostics().facts if fact.level == "problem"]
    assert "instruments" in [fact.key for fact in problems]
    assert all(fact.sentence in notes for fact in problems)


def test_an_ordered_outcome_has_cut_points_and_no_intercept(fits):
    labels = ["low", "mid", "high"]
    y = pd.cut(MROZ["wage"].where(WORKS), [0, 2, 4, 99], labels=labels)
    model = HeckmanOrdered(TWO).fit(X, y)
    table = etable([fits("probit"), model], digits=6)
    rows = body_of(table)
    cuts = model.cut_points()
    for name, (_, row) in zip(["low | mid", "mid | high"], cuts.iterrows(), strict=True):
        cells, under = rows["Cut points", "", name]
        agrees(cells, [np.nan, row["estimate"]], 6)
        agrees(under, [np.nan, row["std_error"]], 6)
    assert rows["Prediction equation", "", "Intercept"][0][1] == ""
    assert not any(key[2].startswith("step") for key in rows)
    assert [*dict.fromkeys(key[0] for key in rows)][-2:] == ["Cut points", "Errors"]


def test_t_errors_and_series_share_the_rows_of_the_normal_model(fits):
    models = [
        fits("two-step"),
        Heckman(TWO, method="ml", errors="t").fit(X, Y),
        Heckman(TWO, method="series").fit(X, Y),
    ]
    rows = body_of(etable(models))
    # One is a probit and one is not, so the heading says neither.
    assert all(rows["Selection equation", "", "age"][0])
    assert all(rows["Prediction equation", "", "educ"][0])
    assert rows["Prediction equation", "", "Intercept"][0][2] == ""
    agrees(
        rows["Errors", "", "df"][0][1:2],
        models[1].tidy().set_index("term").loc[["df"], "estimate"],
        4,
    )


def test_regressions_without_a_correction_stand_beside_it(fits):
    plain = NaiveOLS(TWO).fit(X, Y)
    weighted = InverseProbabilityWeighted(TWO).fit(X, Y)
    table = etable([fits("two-step"), plain, weighted], digits=6)
    rows = body_of(table)
    design = np.column_stack([np.ones(428), X.loc[Y.notna(), TWO]])
    solved = np.linalg.lstsq(design, Y.dropna(), rcond=None)[0]
    errors = np.sqrt(np.diag(weighted.vcov()))
    for name, number, other, error in zip(
        *(["Intercept", *TWO], solved, [weighted.intercept_, *weighted.coef_[:2]], errors[:3]),
        strict=True,
    ):
        cells, under = rows["Prediction equation", "", name]
        agrees(cells[1:], [number, other], 6)
        assert under[1] == ""
        agrees([under[2].strip("()")], [error], 6)
    selects = rows["Selection equation (probit)", "", "kids5"][0]
    agrees([selects[0]], [value(selects[2])], 6)
    assert selects[1] == ""
    few = InverseProbabilityWeighted(TWO, selection_features=["educ", "kids5"]).fit(X, Y)
    named = [key[2] for key in body_of(etable([few], equations=["selection"]))]
    assert named == ["Intercept", "educ", "kids5"]
    assert "(2): There are no standard errors." in table.notes
    assert any(
        note.startswith("(3): Assumed: outcomes are missing at random") for note in table.notes
    )
    models = ["least squares", "inverse probability weighting"]
    assert table.facts.loc["Model"].tolist()[1:] == models
    assert table.facts.loc["Standard errors"].tolist() == ["classical", "", "robust"]
    assert table.facts.loc["Selected"].tolist() == ["428"] * 3


def test_doubly_robust_means_have_a_heading_of_their_own():
    robust = DoublyRobust(TWO, random_state=0, cov_type="cluster").fit(X, Y, groups=X["age"])
    table = etable([robust])
    cells, under = body_of(table)["Mean", "", "Everyone"]
    mean = robust.tidy().iloc[0]
    agrees(cells, [mean["estimate"]], 4)
    agrees([under[0].strip("()")], [mean["std_error"]], 4)
    assert table.facts.loc["Clusters"].tolist() == [str(X["age"].nunique())]


def test_regressions_name_their_categories():
    rows = body_of(etable([NaiveOLS(["educ", "schooling"]).fit(LEVELS, Y)]))
    assert ("Prediction equation", "schooling (reference: twelve)", "more") in rows or (
        "Prediction equation",
        "schooling (reference: more)",
        "some",
    ) in rows


@pytest.mark.parametrize("name", ["all observed", "boundary, ml", "outcome decided", "held"])
def test_what_is_not_known_is_blank_in_every_format(fits, name):
    table = etable([fits(name), fits("ml")], stars=True)
    for text in (str(table), table.to_latex(), table.to_markdown(), table.to_html()):
        assert not re.search(r"\b[Nn]a[Nn]\b|\bNone\b|\| +\(\)|\[, \]", text)
    said = " ".join(note for note in table.notes if note.startswith("(1)"))
    expected = {
        "all observed": "No selection was corrected for",
        "boundary, ml": "Some standard errors are missing",
        "outcome decided": "decided by late",
        "held": "rho is held at 0.3",
    }
    assert expected[name] in said


def test_a_rho_outside_its_bounds_is_shown_and_said():
    # The outcome is twice the inverse Mills ratio: rho-hat is one over the root of a mean below 1.
    rng = np.random.default_rng(2)
    features = rng.normal(size=(400, 3))
    index = features.sum(axis=1)
    ratio = stats.norm.pdf(index) / stats.norm.cdf(index)
    noise = 0.1 * rng.normal(size=400)
    y = np.where(index + rng.normal(size=400) > 0, 2 * ratio + noise, np.nan)
    model = Heckman([0]).fit(features, y)
    assert abs(model.rho_) > 1
    table = etable([model])
    agrees(body_of(table)["Errors", "", "rho"][0], [model.rho_], 4)
    assert any("Outside (-1, 1)" in note or "outside (-1, 1)" in note for note in table.notes)


def test_models_of_arrays_have_no_outcome_to_name():
    model = Heckman([0, 1]).fit(X.to_numpy(), Y.to_numpy())
    assert ("", "", "Outcome") not in rows_of(etable([model]))


def test_a_saved_model_gives_the_same_table(fits, tmp_path):
    models = [fits("search"), fits("categories"), fits("average"), NaiveOLS(TWO).fit(X, Y)]
    loaded = []
    for place, model in enumerate(models):
        heckmanfa.save(model, tmp_path / f"{place}.heckmanfa")
        loaded.append(heckmanfa.load(tmp_path / f"{place}.heckmanfa"))
    assert str(etable(loaded)) == str(etable(models))


# Formats. ---------------------------------------------------------------------------------------

WILD = [
    "a_b",
    "100%",
    "R&D",
    "I(exper ** 2)",
    "<b>x</b>",
    "[k] \N{GREEK SMALL LETTER MU} ≥",
    "=1+1",
]


@pytest.fixture(scope="module")
def wild():
    frame = X.assign(city=MROZ["city"], unem=MROZ["unem"]).set_axis(WILD, axis="columns")
    frame["level"] = LEVELS["schooling"]
    with quiet():
        models = [
            Heckman(WILD[:3]).fit(frame, Y),
            Heckman([*WILD[1:5], "level"], method="ml").fit(frame, Y),
        ]
    return etable(models, stars=(0.5, 0.1), under="interval", names=["A & B", "<i>"])


def with_minus(cell):
    """A cell as pages and Word files have it; text keeps the hyphen that programs read."""
    return re.sub(r"(?<=[\[ e])-(?=\d)|^-", "\N{MINUS SIGN}", cell)


def test_text_ends_numbers_below_each_other(fits):
    text = str(etable([fits("two-step"), fits("ml")], stars=True))
    lines = text.splitlines()
    assert lines[0] == lines[0][0] * len(lines[0]) == "=" * len(lines[0])
    found = [
        [match.start() for match in re.finditer(r"\d(?=[*)]*(?: |$))", line)]
        for line in lines
        if re.match(r"(educ|exper|Intercept|age|nwifeinc| {10})", line)
    ]
    assert len(found) > 10
    # Two columns, and whatever stars or parenthesis follow a number, it ends where others do.
    assert {tuple(ends) for ends in found if len(ends) == 2} == {tuple(found[2])}
    assert {end for ends in found for end in ends} == {*found[2]}


def test_latex_has_the_rules_of_booktabs_and_every_name(wild):
    text = wild.to_latex(caption="Wages $w$", label="tab:w")
    well_formed(text)
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    parts = [title for title, _ in wild.table.parts()]
    assert text.count(r"\midrule") == len(parts)
    assert r"\hline" not in text
    assert r"\begin{tabular}{lcc}" in text
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    lines = [line for line in body.splitlines() if line and line != r"\midrule"]
    names = []
    for line in lines:
        assert line.endswith(r" \\")
        cells = re.split(r"(?<!\\)&", line.removesuffix(r" \\"))
        wide = r"\multicolumn{3}{l}" in line
        assert len(cells) == (1 if wide else 3)
        names.append(from_tex(cells[0].strip().removeprefix(r"\quad ")))
    assert {*WILD} <= {*names}
    assert r"& A \& B & \textless{}i\textgreater{} \\" in text
    assert r"\caption{Wages $w$}" in text
    assert r"\label{tab:w}" in text
    assert r"\quad some" in text
    assert r"^{**}$" in text
    assert not re.search(r"(?<![$\d^{])-\d", body)
    bare = wild.to_latex()
    assert r"\caption" not in bare
    assert r"\label" not in bare


def test_latex_cells_are_the_numbers(fits):
    table = etable([fits("ml")], under="interval", digits=6)
    text = table.to_latex()
    tidy = fits("ml").tidy().set_index(["equation", "term"])
    line = next(one for one in text.splitlines() if one.startswith("nwifeinc"))
    found = text.splitlines()[text.splitlines().index(line) + 1]
    ends = re.findall(r"\$?(-?[\d.]+)\$?", found.split("&")[1].replace(r"\\", ""))
    expected = tidy.loc[("selection", "nwifeinc"), ["ci_low", "ci_high"]]
    np.testing.assert_allclose([float(end) for end in ends], expected, rtol=0.5001e-5)


def test_powers_of_ten_are_written_out_in_latex():
    frame = X.assign(age=X["age"] * 1e9)
    text = etable([Heckman(["educ", "age"]).fit(frame, Y)], stars=(0.999,)).to_latex()
    assert re.search(r"\$-?\d\.\d+\\times10\^\{-\d+\}", text)
    assert not re.search(r"\de-\d", text)
    well_formed(text)


def test_html_is_well_formed_and_escaped(wild, tmp_path):
    root = ET.fromstring(wild.to_html())
    heads = [cell.text or "" for cell in root.iter("th") if cell.get("scope") == "row"]
    assert {*WILD} <= {*heads}
    assert [cell.text for cell in root.iter("th") if cell.get("scope") == "col"] == [
        *(None, "A & B", "<i>")
    ]
    assert not [*root.iter("b"), *root.iter("i")]
    assert wild._repr_html_() == wild.to_html()
    wild.save(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    whole = ET.fromstring(
        page.removeprefix("<!doctype html>").replace('<meta charset="utf-8">', "")
    )
    rows = [row for row in whole.iter("tr") if row.find("td") is not None]
    cells = [[cell.text or "" for cell in row.iter("td")] for row in rows]
    printed = [[*line[1:]] for line in wild.table.rows if not isinstance(line, str)]
    assert cells == [[with_minus(cell) for cell in line] for line in printed]


def test_markdown_is_one_table(wild):
    text = wild.to_markdown()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    assert {len(row) for row in rows} == {3}
    assert len(rows) == 2 + len([line for line in wild.table.rows if line])
    plain = [re.sub(r"\\(.)", r"\1", row[0].strip()) for row in rows]
    assert {*WILD} <= {*plain}
    assert "&emsp;some" in plain
    assert "**Prediction equation**" in plain
    assert text.count("\n- ") == len(wild.notes)


def test_xlsx_has_the_table_as_printed_and_the_numbers_in_full(wild, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    wild.save(tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    assert book.sheetnames == ["table", "numbers"]
    cells = [[cell.value or "" for cell in row] for row in book["table"].iter_rows()]
    width = len(cells[0])
    assert cells[0] == ["", "A & B", "<i>"]
    printed = [
        [line, *[""] * (width - 1)] if isinstance(line, str) else [*line]
        for line in wild.table.rows
    ]
    assert cells[1:] == [*printed, *([note, "", ""] for note in wild.notes)]
    assert all(cell.data_type != "f" for row in book["table"].iter_rows() for cell in row)
    numbers = pd.read_excel(tmp_path / "a.xlsx", sheet_name="numbers")
    pd.testing.assert_frame_equal(numbers, wild.frame, check_dtype=False)


def test_docx_has_the_table_as_printed(wild, tmp_path):
    wild.save(tmp_path / "a.docx")
    with zipfile.ZipFile(tmp_path / "a.docx") as archive:
        root = ET.parse(io.BytesIO(archive.read("word/document.xml"))).getroot()
    w = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
    rows = [
        ["".join(text.text or "" for text in cell.iter(f"{w}t")) for cell in row.iter(f"{w}tc")]
        for row in root.iter(f"{w}tr")
    ]
    assert rows[0] == ["", "A & B", "<i>"]
    printed = [[line] if isinstance(line, str) else [*line] for line in wild.table.rows if line]
    assert rows[1:] == [[" ".join(with_minus(cell).split()) for cell in line] for line in printed]
    assert root.findall(f".//{w}ind")
    text = "".join(part.text or "" for part in root.iter(f"{w}t"))
    assert all(" ".join(note.split()) in text for note in wild.notes)
    # Rules part the groups of rows, and no estimate from what is under it.
    ruled = [bool(row.findall(f".//{w}tcBorders/{w}top")) for row in root.iter(f"{w}tr")]
    first = [place for place, line in enumerate(printed, 1) if len(line) == 1 or line[0] == "Model"]
    assert [place for place, rule in enumerate(ruled) if rule] == [1, *first][: len(first) + 1]
    assert not root.findall(f".//{w}insideH")


def test_docx_pages_are_upright_unless_a_table_needs_the_width(fits, tmp_path):
    for n, turned in ((1, False), (8, True)):
        etable([fits("two-step")] * n).save(tmp_path / f"{n}.docx")
        with zipfile.ZipFile(tmp_path / f"{n}.docx") as archive:
            assert ("landscape" in archive.read("word/document.xml").decode()) == turned


def test_plain_formats_are_what_is_printed_and_the_frame(wild, tmp_path):
    for ending, text in ((".txt", f"{wild}\n"), (".md", wild.to_markdown())):
        wild.save(tmp_path / f"a{ending}")
        assert (tmp_path / f"a{ending}").read_text(encoding="utf-8") == text
    wild.save(tmp_path / "a.tex")
    assert (tmp_path / "a.tex").read_text(encoding="utf-8") == wild.to_latex()
    wild.save(tmp_path / "a.csv")
    frame = pd.read_csv(tmp_path / "a.csv")
    pd.testing.assert_frame_equal(frame, wild.frame, rtol=1e-12, check_dtype=False)


def test_names_that_a_terminal_would_obey_are_made_visible(fits, tmp_path):
    frame = X.rename(columns={"educ": "a\x1b[2J", "exper": "b\u202e"})
    model = Heckman(["a\x1b[2J", "b\u202e"]).fit(frame, Y)
    table = etable([model, fits("ml")], names=["n\x1b[31m", "two"])
    for text in (str(table), table.to_latex(), table.to_markdown(), table.to_html()):
        assert not re.search("[\x1b\u202e]", text)
    assert r"a\x1b[2J" in str(table)
    for ending in ("docx", "xlsx"):
        table.save(tmp_path / f"a.{ending}")
        with zipfile.ZipFile(tmp_path / f"a.{ending}") as archive:
            assert not any(b"\x1b" in archive.read(name) for name in archive.namelist())


def test_files_are_not_replaced_unless_it_is_said(wild, tmp_path):
    wild.save(tmp_path / "a.txt")
    with pytest.raises(InputError, match="exists"):
        wild.save(tmp_path / "a.txt")
    wild.save(tmp_path / "a.txt", force=True)
    with pytest.raises(InputError, match=r"must end in \.tex, .* or \.csv"):
        wild.save(tmp_path / "a.pdf")


# Wrong input. -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "error", "said"),
    [
        ([], InputError, "empty"),
        ("two-step", InputTypeError, "list of fitted models"),
        (3, InputTypeError, "got a int"),
        ([None], InputTypeError, "number 1 is a NoneType"),
        ([Heckman()], InputError, "model 1, a Heckman, is not fitted"),
        (Heckman(), InputTypeError, "put this one into a list"),
    ],
)
def test_what_is_not_a_list_of_fitted_models_is_refused(models, error, said):
    with pytest.raises(error, match=re.escape(said)):
        etable(models)


def test_a_model_without_coefficients_is_refused():
    model = RURegressor()
    model.prediction_features_ = []
    with pytest.raises(InputError, match="RURegressor has no coefficients"):
        etable([model])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"names": ["a"]}, "names has 1 name for 2 models"),
        ({"names": ["a", "a"]}, "two models are called 'a'"),
        ({"names": ["a", " "]}, "names has a name without a letter"),
        ({"names": ["a", 3]}, "names must hold names; got 3"),
        ({"keep": ["edu"]}, "keep: no model has 'edu'. Did you mean 'educ'?"),
        ({"drop": ["BICs"]}, "drop: no model has 'BICs'"),
        ({"order": 3}, "order must be a list"),
        ({"equations": ["outcome"]}, "equations: no model has 'outcome'; there are prediction, "),
        ({"digits": 0}, "digits must be a number from 1 to 15; got 0"),
        ({"digits": 2.5}, "digits must be"),
        ({"digits": True}, "digits must be"),
        ({"under": "sd"}, "under must be 'se', 'interval', 't', 'p' or None; got 'sd'"),
        ({"stars": (0.05, 5)}, "between 0 and 1; got 5"),
        ({"stars": "yes"}, "between 0 and 1; got 'yes'"),
        ({"stars": (0.05, 0.05)}, "the same threshold twice"),
        ({"conf_level": 95}, "conf"),
        ({"labels": 3}, "labels must be"),
    ],
)
def test_options_that_mean_nothing_are_refused(fits, options, said):
    with pytest.raises(InputError, match=re.escape(said)):
        etable([fits("two-step"), fits("ml")], **options)
