"""``heckmanfa compare`` and ``demo``."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanProbit,
    InverseProbabilityWeighted,
    NaiveOLS,
    bounds,
)
from heckmanfa.analysis import methods_compared
from heckmanfa.analysis.comparison import compare_methods
from heckmanfa.analysis.method_scores import judge_methods
from heckmanfa.analysis.methods_compared import methods
from heckmanfa.datasets import make_selection
from heckmanfa.errors import HeckmanfaWarning, InputError, UnknownFeatureError
from heckmanfa.fit.family import family_named
from heckmanfa.model_selection import SelectionKFold


@pytest.mark.usefixtures("briefly_trained")
def test_compare_sets_all_methods_side_by_side(shell, mroz):
    text = shell.runs(
        "compare", "mroz.csv", "--outcome", "lwage", "--repeats", 1, "--folds", 2, "--no-ru",
        "--out", "c.csv",
    )  # fmt: skip
    found = pd.read_csv("c.csv").set_index("method")
    assert set(found.index) == {
        "naive OLS", "IPW", "doubly robust", "two-step, all features", "ML, all features",
        "ML with t errors, all features", "Heckman lasso",
        "Heckman-FA", "Heckman-FA*", "Heckman-C", "best subset", "average by AIC",
        "average by BIC",
    }  # fmt: skip
    assert found["mse"].gt(0).all()
    assert "they say nothing about the others" in text
    # The error of least squares, by hand.
    X, y = mroz.drop(columns="lwage"), mroz["lwage"].to_numpy()
    squares, count = 0.0, 0
    for train, test in SelectionKFold(2, shuffle=True, random_state=0).split(X, y):
        model = NaiveOLS().fit(X.iloc[train], y[train])
        seen = test[~np.isnan(y[test])]
        squares += np.sum((y[seen] - model.predict(X.iloc[seen])) ** 2)
        count += len(seen)
    assert found.loc["naive OLS", "mse"] == pytest.approx(squares / count)
    (recommended,) = found.index[found["difference"] == 0]
    assert text.rpartition("written to c.csv ")[2].startswith(f"Use {recommended}")


@pytest.mark.usefixtures("untrained")
def test_estimates_stand_side_by_side_with_what_each_method_assumes(shell, mroz):
    text = shell.runs(
        "compare", "mroz.csv", "--outcome", "lwage", "--repeats", 1, "--folds", 2, "--no-ru",
    )  # fmt: skip
    X, y = mroz.drop(columns="lwage"), mroz["lwage"]
    weighted = InverseProbabilityWeighted().fit(X, y).tidy().set_index(["equation", "term"])
    educ = weighted.loc[("prediction", "educ")]
    assert f"{educ['estimate']:.4f} ({educ['std_error']:.3f})" in text
    robust = DoublyRobust(random_state=0).fit(X, y)
    assert f"{robust.mean_:.2f} ({robust.tidy()['std_error'][0]:.3f})" in text
    assert "the model of the outcome or that of selection is right" in text
    known = bounds.mean(y).tidy().iloc[0]
    said = " ".join(text.split()).replace("−", "-")
    assert f"lies between {known['low']:.3f} and {known['high']:.2f} (95% interval" in said
    assert f"Manski: {known['ci_low']:.3f} to {known['ci_high']:.2f})" in said
    assert "only that every outcome lies between" in said


def test_every_method_has_its_estimates_and_its_assumption():
    data = make_selection(400, 4, 2, rho=0.5, random_state=1)
    X = pd.DataFrame(data.X, columns=list("abcd"))
    models = {
        "ols": NaiveOLS(),
        "ipw": InverseProbabilityWeighted(["a"]),
        "robust": DoublyRobust(["a"], random_state=0),
        "two": Heckman(["a", "b"]),
        "all": Heckman(),
        "search": HeckmanBestSubset(),
    }
    found = compare_methods(X, data.y, estimators=models, n_folds=2, n_repeats=1)
    assert [*found.assumptions] == [*models]
    assert "2 exclusions hold" in found.assumptions["two"]
    assert "no feature is excluded" in found.assumptions["all"]
    assert "which the data chose" in found.assumptions["search"]
    assert all("missing at random" in found.assumptions[name] for name in ("ols", "ipw", "robust"))
    assert sum("jointly normal" in line for line in found.assumed()) == 3
    estimates = found.estimates.set_index(["method", "term"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        fitted = {name: model.fit(X, data.y) for name, model in models.items()}
    for name, model in fitted.items():
        own = estimates.loc[name]
        mean = model.mean_ if name == "robust" else model.predict(X).mean()
        assert own["estimate"]["Mean of everyone"] == pytest.approx(mean)
        assert own["estimate"]["a"] == pytest.approx(model.coef_[0])
        if name == "ols":
            assert own["std_error"].isna().all()
            continue
        table = model.tidy()
        table = table[table["equation"] == "prediction"].set_index("term")
        for column in ("std_error", "ci_low", "ci_high"):
            assert own[column]["a"] == pytest.approx(table[column]["a"])
    assert found.beside == ["ols", "ipw", "robust", found.verdict.method]
    said = str(found)
    assert "Estimates for everyone" in said
    assert "What each method assumes" in said


@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_beside_the_methods_are_those_of_their_formulas(weighted):
    data = make_selection(300, 3, 1, rho=0.5, random_state=2)
    X, y = pd.DataFrame(data.X, columns=list("abc")), data.y
    X.loc[np.flatnonzero(np.isnan(y))[:5], "a"] = np.nan
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(y)) if weighted else np.ones(len(y), dtype=int)
    models = {"ols": NaiveOLS(["a", "b"]), "two": Heckman(["a", "b"], ["b", "c"])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        found = compare_methods(
            *(X, y), estimators=models, n_folds=2, n_repeats=1,
            sample_weight=weight if weighted else None,
        )  # fmt: skip
    table = found.bounds.table.set_index("term")
    # A missing outcome is at an end of the observed range, and a row of weight 2 is there twice.
    rows = np.repeat(np.arange(len(y)), weight)
    bottom, top = np.nanmin(y[rows]), np.nanmax(y[rows])
    lows, highs = (np.where(np.isnan(y), end, y)[rows] for end in (bottom, top))
    mean = table.loc["Mean of everyone"]
    assert mean[["low", "high"]].tolist() == pytest.approx([lows.mean(), highs.mean()])
    n = len(rows)
    low_error, high_error = lows.std(ddof=1) / n**0.5, highs.std(ddof=1) / n**0.5
    gap = (highs.mean() - lows.mean()) / max(low_error, high_error)
    reach = brentq(lambda c: norm.cdf(c + gap) - norm.cdf(-c) - 0.95, 0, 3)
    assert mean["ci_low"] == pytest.approx(lows.mean() - reach * low_error, rel=1e-3)
    assert mean["ci_high"] == pytest.approx(highs.mean() + reach * high_error, rel=1e-3)
    # Least squares is a sum over rows: each missing outcome is at the end that moves it furthest.
    kept = rows[X["a"].notna().to_numpy()[rows]]
    design = np.column_stack([np.ones(len(kept)), X[["a", "b"]].to_numpy()[kept]])
    shares = np.linalg.pinv(design)
    seen = ~np.isnan(y[kept])
    for share, term in zip(shares, ["Intercept", "a", "b"], strict=True):
        moved = share[~seen, None] * np.array([bottom, top])
        known = share[seen] @ y[kept][seen]
        ends = [known + moved.min(axis=1).sum(), known + moved.max(axis=1).sum()]
        assert table.loc[term, ["low", "high"]].tolist() == pytest.approx(ends)
    assert [*table.index] == ["Mean of everyone", "Intercept", "a", "b"]
    said = str(found)
    assert f"lies between {bottom:.2f} and {top:.2f}, as those that are known do" in " ".join(
        said.split()
    )
    beside = found.estimated().set_index("term")
    assert beside.loc["a", ["bounds, low", "bounds, high"]].tolist() == pytest.approx(
        table.loc["a", ["low", "high"]].tolist()
    )


def test_bounds_beside_methods_are_of_a_share():
    data = make_selection(300, 3, 1, rho=0.5, random_state=2)
    X, y = pd.DataFrame(data.X, columns=list("abc")), data.y
    paid = np.where(np.isnan(y), np.nan, y > np.nanmedian(y))
    options = {"n_folds": 2, "n_repeats": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        found = compare_methods(
            *(X, paid), outcome_kind="binary", estimators={"m": HeckmanProbit(["a"])}, **options
        )
    (only,) = found.bounds.table.to_dict("records")
    yes, gone = np.nansum(paid) / len(y), np.isnan(paid).mean()
    assert [only["low"], only["high"]] == pytest.approx([yes, yes + gone])
    assert found.assumed()[-1].endswith("a missing one may be of any class.")


def folds_of(**errors):
    """Held-out errors of methods in four folds, whose test rows are a third of the others."""
    known = {name.replace("_", " "): np.array(values) for name, values in errors.items()}
    known["average by BIC"] = np.array([1.0, 1.2, 0.9, 1.1])
    return judge_methods(known, [name for name in known if name != "naive OLS"], 1 / 3)


def test_the_verdict_follows_paired_differences():
    # Differences of 0.1, 0.1, 0.1 and 0.3: their variance is 0.01.
    found = folds_of(best_subset=[1.1, 1.3, 1.0, 1.4])
    difference = found.differences["best subset"]
    assert difference.mean == pytest.approx(0.15)
    assert difference.std_error == pytest.approx((0.01 * (1 / 4 + 1 / 3)) ** 0.5)
    assert found.method == "average by BIC"
    assert found.matters
    assert "that of best subset is larger by 0.15 (standard error 0.076)" in str(found)


def test_the_verdict_says_that_it_does_not_matter_or_names_what_is_better():
    alike = folds_of(best_subset=[1.1, 1.1, 1.0, 0.9], copy=[1.0, 1.2, 0.9, 1.1])
    assert alike.method == "average by BIC"
    assert not alike.matters
    assert "it does not matter here" in str(alike)
    assert "the 2 other selection models" in str(alike)
    better = folds_of(best_subset=[0.8, 1.0, 0.7, 0.8])
    assert better.method == "best subset"
    assert str(better).startswith("Use best subset: its held-out error is below that of average")
    least = folds_of(naive_OLS=[0.8, 1.0, 0.7, 0.8])
    assert least.method == "average by BIC"
    assert "naive OLS errs less for selected rows" in str(least)
    assert "is not a selection model" in str(least)


def test_a_method_that_failed_in_a_fold_is_never_the_verdict():
    failed = folds_of(best_subset=[0.1, 0.1, np.nan, 0.1])
    assert failed.method == "average by BIC"
    assert "best subset" not in failed.differences
    nothing = judge_methods({"naive OLS": np.ones(3)}, [], 0.5)
    assert nothing.method is None
    assert "no selection model could be fitted" in str(nothing)


def test_compare_judges_selection_models_given_selection():
    data = make_selection(1500, 3, 2, rho=0.9, random_state=0)
    X = pd.DataFrame(data.X, columns=["a", "b", "c"])
    found = compare_methods(
        X, data.y, estimators={"heckman": Heckman(data.support)}, n_folds=4, n_repeats=2
    )
    squares = []
    for repeat in range(2):
        total, count = 0.0, 0
        folds = SelectionKFold(4, shuffle=True, random_state=repeat)
        for train, test in folds.split(X, data.y):
            model = Heckman(data.support).fit(X.iloc[train], data.y[train])
            seen = test[~np.isnan(data.y[test])]
            predicted = model.predict(X.iloc[seen], kind="selected")
            total += np.sum((data.y[seen] - predicted) ** 2)
            count += len(seen)
        squares.append(total / count)
    row = found.tidy().iloc[0]
    assert row["mse"] == pytest.approx(np.mean(squares))
    assert row["mse_sd"] == pytest.approx(np.std(squares, ddof=1))
    assert "Do not choose a method by this table alone" in " ".join(str(found).split())
    with pytest.raises(InputError, match="n_folds"):
        compare_methods(X, data.y, n_folds=1)


def test_a_method_that_cannot_be_fitted_is_said():
    data = make_selection(300, 3, 2, random_state=0)
    X = pd.DataFrame(data.X, columns=["a", "b", "c"])
    X["twice"] = X["a"]
    found = compare_methods(X, data.y, estimators={"all": Heckman()}, n_repeats=1)
    assert "'twice' is a linear function of 'a'" in found.tidy().iloc[0]["note"]


@pytest.mark.parametrize("kind", ["linear", "binary"])
def test_methods_may_search_both_equations(kind):
    options = {"search_in": "both", "selection_always": ["c"], "selection_never": ["b"]}
    found = methods(family=family_named(kind), equations=options)
    both = {name for name, one in found.items() if getattr(one, "search_in", None) == "both"}
    assert both == {"best subset", "average by AIC", "average by BIC"}
    for name in both:
        assert options.items() <= found[name].get_params().items()


def test_a_comparison_searches_both_equations_as_its_methods_do():
    data = make_selection(300, 3, 2, random_state=0)
    X = pd.DataFrame(data.X, columns=["a", "b", "c"])
    folds = {"n_folds": 2, "n_repeats": 1}
    own = {"average": HeckmanAverage(search_in="both", selection_never=["c"]), "all": Heckman()}
    found = compare_methods(X, data.y, estimators=own, **folds)
    assert found.in_both == ("average",)
    said = "average may leave features out of the selection equation, too."
    assert said in " ".join(str(found).split())
    with pytest.raises(InputError, match="set it in the estimators"):
        compare_methods(X, data.y, estimators=own, search_in="both", **folds)
    plain = compare_methods(X, data.y, estimators={"all": Heckman()}, **folds)
    assert "selection equation" not in str(plain)


@pytest.mark.usefixtures("untrained")
def test_a_comparison_refuses_wrong_options_of_its_methods():
    data = make_selection(300, 3, 2, random_state=0)
    X = pd.DataFrame(data.X, columns=["a", "b", "c"])
    with pytest.raises(UnknownFeatureError, match="'d'"):
        compare_methods(X, data.y, search_in="both", selection_never=["d"])
    with pytest.raises(InputError, match="selection_always is about a search of both"):
        compare_methods(X, data.y, selection_always=["a"])
    with pytest.raises(ValueError, match="search_in"):
        compare_methods(X, data.y, search_in="selection")


@pytest.mark.usefixtures("untrained")
def test_compare_searches_both_equations_on_request(shell, mroz):
    asked = ("compare", "mroz.csv", "--outcome", "lwage", "--folds", 2, "--repeats", 1, "--no-ru")
    both = ("--search-in", "both", "--selection-always", "kids618", "--selection-never", "educ")
    said = shell.runs(*asked, *both, "--out", "c.csv")
    assert "average by BIC may leave features out of the selection equation, too." in said
    options = {"search_in": "both", "selection_always": ["kids618"], "selection_never": ["educ"]}
    X, y = mroz.drop(columns="lwage"), mroz["lwage"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        average = HeckmanAverage("bic", on_collinear="drop", **options).fit(X, y)
        best = HeckmanBestSubset(on_collinear="drop", **options).fit(X, y)
    rho = pd.read_csv("c.csv").set_index("method")["rho"]
    assert rho["average by BIC"] == pytest.approx(average.rho_, abs=1e-8)
    assert rho["best subset"] == pytest.approx(best.rho_, abs=1e-6)
    assert "add --search-in both" in shell.refuses(*asked, *both[2:])


def test_compare_refuses_what_fit_refuses(shell, mroz):
    assert "Did you mean" in shell.refuses("compare", "mroz.csv", "--outcome", "lwagee")
    assert "never missing" in shell.refuses("compare", "mroz.csv", "--outcome", "educ")


@pytest.mark.parametrize("leak", ["pay", "works"])
def test_compare_ends_with_the_error_of_fit_where_no_heckman_method_can_be_fitted(
    shell, mroz, leak
):
    pay = mroz["lwage"].fillna(mroz["lwage"].mean())
    works = np.where(mroz["lwage"].notna(), "yes", "no")
    mroz.assign(**{leak: pay if leak == "pay" else works}).to_csv(
        shell.folder / "leak.csv", index=False
    )
    fitted = shell.refuses("fit", "leak.csv", "--outcome", "lwage")
    compared = shell.refuses("compare", "leak.csv", "--outcome", "lwage", "--out", "c.csv")
    assert fitted.splitlines()[-1] == compared.splitlines()[-1]
    assert f"'{leak}'" in compared
    assert "--exclude" in compared
    assert not (shell.folder / "c.csv").exists()
    if leak == "works":
        assert "column 'works' (level 'yes') separates" in compared
        assert "works[no]" not in compared


def test_compare_says_why_the_lasso_is_left_out(shell, mroz, monkeypatch):
    # The searches, which take long, say nothing about it.
    monkeypatch.setattr(methods_compared, "methods", lambda *_: {"naive OLS": NaiveOLS()})
    town = np.random.default_rng(0).choice(["a", "b", "c"], len(mroz))
    mroz[["lwage", "educ", "age"]].assign(town=town).to_csv(shell.folder / "town.csv", index=False)
    text = shell.runs(
        "compare", "town.csv", "--outcome", "lwage", "--repeats", 1, "--folds", 2, "--no-ru"
    )
    said = " ".join(text.split())
    assert "Heckman lasso: left out, since" in said
    assert "(town); --exclude" in said


def test_many_features_that_separate_together_are_counted_and_not_listed(shell):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(150, 60)), columns=[f"x{one}" for one in range(60)])
    chosen = table.to_numpy()[:, :40].sum(axis=1) > 0
    table["wage"] = np.where(chosen, table["x1"] + rng.normal(size=150), np.nan)
    table.to_csv(shell.folder / "wide.csv", index=False)
    said = shell.refuses("fit", "wide.csv", "--outcome", "wage").splitlines()[-1]
    assert re.search(r"'x\d+', 'x\d+', 'x\d+' and \d+ more together separate", said)
    assert "60 features are many for 150 rows" in said
    assert "--exclude" in said
    assert "--features" in said
    assert "another form of the selection" not in said


def test_the_category_that_makes_features_too_many_is_named(shell):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"a": rng.normal(size=40), "town": [f"t{one}" for one in range(40)]})
    table["wage"] = np.where(np.arange(40) < 20, table["a"] + rng.normal(size=40), np.nan)
    table.to_csv(shell.folder / "towns.csv", index=False)
    said = shell.refuses("fit", "towns.csv", "--outcome", "wage", "--categorical", "town")
    assert "39 of the 40 features are dummies of column 'town', a category of 40 levels" in said
    assert "--exclude" in said


def test_the_demo_writes_its_table_and_report(shell):
    text = shell.runs("demo", "here")
    assert {path.name for path in (shell.folder / "here").iterdir()} == {"mroz.csv", "mroz.html"}
    page = (shell.folder / "here" / "mroz.html").resolve()
    said = text.split("writing the report ... ")[1]
    assert said.startswith("educ predicts lwage. For 14 other features the data cannot say.")
    assert "predicts educ >99%" in text
    assert f"open {page.as_uri()}" in text
    assert "--force" in shell.refuses("demo", "here")


def test_compare_leaves_out_columns_that_decide_selection_if_asked(shell, untrained):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 2)), columns=["x", "z"])
    frame["flag"] = (rng.uniform(size=400) < 0.1).astype(int)
    errors = rng.normal(size=(400, 2))
    selected = (frame["x"] + frame["z"] + errors[:, 0] > 0) & (frame["flag"] == 0)
    frame["y"] = (frame["x"] + errors[:, 1]).where(selected)
    frame.to_csv(shell.folder / "t.csv", index=False)
    words = ("compare", "t.csv", "--outcome", "y", "--folds", "2", "--repeats", "1", "--no-ru")
    assert "pass --on-separation drop" in shell.refuses(*words)
    said = shell.runs(*words, "--on-separation", "drop")
    assert "two-step, all features: x, z" in said
