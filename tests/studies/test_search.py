"""What searches for prediction features find where the truth is known, and what they cost.

Many data sets are drawn, each from a truth of its own; each is searched by every method, and what
was found is set against the truth and against a fit that knows the true features. Two smaller
studies look at what is reported after a search: intervals, and a test of rho = 0 after a window.
`make study` prints the tables; with HECKMANFA_WRITE_DOCS=1 in the environment they also go into
docs/search_study.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from heckmanfa import Heckman, HeckmanBestSubset, assignment, compress
from heckmanfa.datasets import make_selection
from heckmanfa.errors import HeckmanfaWarning, NoFeasibleAssignmentError
from heckmanfa.model.two_step import fit_least_squares
from heckmanfa.search import Goal, best_subset, correlations, rank, sample
from heckmanfa.search.choices import all_features

pytestmark = pytest.mark.study

SEED = 20250611
FEATURES = 10
WEAK = (0.05, 0.05, 0.1, 0.1)
LEVEL = 0.95
INTERVAL_DRAWS, WINDOW_DRAWS = 500, 200
INTERVAL_DESIGNS = ("base", "weak", "all predict, weak")
WINDOW = (0.1, 0.9)
DRAWS_A_TASK = 5

CRITERIA = {"bic": "BIC", "aic": "AIC", "adjusted_r2": "adjusted R²"}
SEARCHES = ("best subset", "sample", "rank", "correlation")
KNOWN = ("true features", "all features", "least squares, all features")
METHODS = [*((name, "") for name in KNOWN), *product(SEARCHES, CRITERIA)]
# What the overview shows of them.
SHORT = {
    "true features": ("true features", ""),
    **{f"best, {word}": ("best subset", one) for one, word in CRITERIA.items()},
    "sample, BIC": ("sample", "bic"),
    "sample, adjusted R²": ("sample", "adjusted_r2"),
    "rank, BIC": ("rank", "bic"),
    "correlation, BIC": ("correlation", "bic"),
    "all features": ("all features", ""),
    "least squares": ("least squares, all features", ""),
}

Floats = NDArray[np.float64]


class Design(NamedTuple):
    words: str
    draws: int
    settings: dict[str, Any]
    """what differs from the defaults of `make_selection`"""
    weak: tuple[float, ...] = ()
    """sizes of the first true coefficients, in place of those drawn"""


DESIGNS = {
    "base": Design("base design", 400, {}),
    "n=500": Design("500 rows", 100, {"n_samples": 500}),
    "n=8000": Design("8,000 rows", 60, {"n_samples": 8000}),
    "K=20": Design("20 features", 100, {"n_features": 20}),
    "rho=0": Design("rho = 0", 100, {"rho": 0.0}),
    "rho=-0.8": Design("rho = −0.8", 100, {"rho": -0.8}),
    "strength=0.5": Design("strength 0.5", 100, {"strength": 0.5}),
    "strength=2": Design("strength 2", 100, {"strength": 2.0}),
    "correlation=0.5": Design("correlation 0.5", 100, {"correlation": 0.5}),
    "correlation=0.9": Design("correlation 0.9", 100, {"correlation": 0.9}),
    "weak": Design("weak coefficients", 100, {}, WEAK),
    "all predict": Design("all features predict", 100, {"n_prediction": FEATURES}),
    "all predict, weak": Design(
        "all features predict, four weakly", 100, {"n_prediction": FEATURES}, WEAK
    ),
}


# A single figure, from enough draws to be sure of it.
LONG = Design(
    "55% of the rows selected and strength 1.3", 2000, {"selection_rate": 0.55, "strength": 1.3}
)


def simulator() -> Callable[..., tuple[Any, Floats, Floats]]:
    """Make the function that draws a data set.

    Worker processes cannot import a test module; a function made inside another one is sent to
    them as a whole.
    """

    def simulate(
        settings: dict[str, Any], weak: tuple[float, ...], draw: int
    ) -> tuple[Any, Floats, Floats]:
        """Draw features and truth, the outcome, and the prediction coefficients."""
        # Designs share their random numbers, draw by draw.
        rng = np.random.default_rng([SEED, draw])
        data = make_selection(**settings, random_state=rng)
        coef = data.coef.copy()
        chosen = np.flatnonzero(data.support)[: len(weak)]
        coef[chosen] = np.copysign(weak, coef[chosen])
        # Selection does not depend on the prediction coefficients.
        complete_y = data.complete_y + data.X @ (coef - data.coef)
        return data, np.where(data.selected, complete_y, np.nan), coef

    return simulate


# Which features are found, and at what cost. ------------------------------------------------------


def searcher() -> Callable[..., tuple[Floats, Floats]]:
    """Make the function that searches a few draws of a design by every method."""
    simulate = simulator()

    def search_draw(settings: Any, weak: Any, draw: int) -> tuple[list[Any], list[Any]]:
        data, y, coef = simulate(settings, weak, draw)
        K, correlation = data.X.shape[1], settings.get("correlation", 0.0)
        compressed = compress(data.X, y)
        moments, choices = compressed.moments, all_features(compressed.moments)
        names = data.feature_names
        everything = np.ones(K, dtype=bool)

        def excess(intercept: float, slopes: Floats) -> float:
            """Mean of (x'b-hat - x'b)² over new rows: features have mean 0, known covariance."""
            off = slopes - coef
            spread = (1 - correlation) * off @ off + correlation * off.sum() ** 2
            return float((intercept - data.intercept) ** 2 + spread)

        def judge(mask: NDArray[np.bool_]) -> tuple[float, ...]:
            solved = moments.solve(mask)
            missed, added = np.sum(data.support & ~mask), np.sum(mask & ~data.support)
            return missed + added == 0, missed, added, excess(solved.intercept, solved.coef)

        trained = assignment.train(
            moments,
            compressed.rows,
            standardize=True,
            random_state=np.random.default_rng([SEED, draw, 1]),
        )
        scores = trained.log_pi[1], correlations(moments, choices)
        look: dict[str, Callable[[Goal], Any]] = {
            "best subset": lambda goal: best_subset(moments, choices, goal, names=names),
            # Every criterion chooses from the same draws.
            "sample": lambda goal: sample(
                moments,
                choices,
                goal,
                trained.log_pi,
                names=names,
                random_state=np.random.default_rng([SEED, draw, 2]),
            ),
            "rank": lambda goal: rank(moments, choices, goal, scores[0], names=names),
            "correlation": lambda goal: rank(moments, choices, goal, scores[1], names=names),
        }
        plain = fit_least_squares(moments, range(K))
        found = [judge(data.support), judge(everything)]
        found.append((*found[1][:3], excess(plain.coef[0], plain.coef[1:])))
        for method, criterion in METHODS[len(KNOWN) :]:
            search = look[method](Goal.of(moments, criterion))
            found.append(judge(search.best))
            if method == "sample":
                drawn = search.masks
        # Pairs of a true and another feature in which the true one has the higher score.
        ahead = [np.mean(one[data.support, None] > one[~data.support]) for one in scores]
        return found, [*ahead, (drawn == data.support).all(axis=1).any(), len(drawn)]

    def search_draws(settings: Any, weak: Any, draws: range) -> tuple[Floats, Floats]:
        # Processes share the cores; threads within each would only fight over them.
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        # Where all features predict, there is no pair to compare.
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            parts = [search_draw(settings, weak, draw) for draw in draws]
        found, trained = zip(*parts, strict=True)
        return np.array(found, dtype=float), np.array(trained, dtype=float)

    return search_draws


def in_parallel(function: Callable[..., Any], draws: int, *args: Any) -> list[Any]:
    """Call a function for a few draws at a time."""
    task = joblib.delayed(function)
    starts = range(0, draws, DRAWS_A_TASK)
    return joblib.Parallel(n_jobs=-1)(
        task(*args, range(start, min(start + DRAWS_A_TASK, draws))) for start in starts
    )


def search(design: Design) -> pd.DataFrame:
    """What every method finds in a design, a row for each; how the training ranks, as attrs."""
    parts = in_parallel(searcher(), design.draws, design.settings, design.weak)
    found, trained = (np.concatenate(part) for part in zip(*parts, strict=True))
    excess = found[:, :, 3]
    more = excess - excess[:, :1]
    table = pd.DataFrame(
        {
            "exact": found[:, :, 0].mean(axis=0),
            "missed": found[:, :, 1].mean(axis=0),
            "added": found[:, :, 2].mean(axis=0),
            "excess": excess.mean(axis=0),
            "median": np.median(excess, axis=0),
            "more": more.mean(axis=0),
            "error": more.std(axis=0, ddof=1) / np.sqrt(design.draws),
        },
        index=pd.MultiIndex.from_tuples(METHODS, names=["method", "criterion"]),
    )
    table.attrs["trained"] = trained.mean(axis=0)
    return table


def bic_finder() -> Callable[..., Floats]:
    """Make the function that says whether the best subset by BIC is the truth."""
    simulate = simulator()

    def find_draws(settings: Any, weak: Any, draws: range) -> Floats:
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        found = []
        for draw in draws:
            data, y, _ = simulate(settings, weak, draw)
            moments = compress(data.X, y).moments
            goal = Goal.of(moments, "bic")
            best = best_subset(moments, all_features(moments), goal, names=data.feature_names).best
            found.append(float((best == data.support).all()))
        return np.array(found)

    return find_draws


def exact_by_bic(design: Design) -> float:
    """How often the best subset by BIC is exactly the true features."""
    parts = in_parallel(bic_finder(), design.draws, design.settings, design.weak)
    return float(np.concatenate(parts).mean())


# What is reported after a search. -----------------------------------------------------------------


def interval_fitter() -> Callable[..., Floats]:
    """Make the function that counts the intervals that cover, after a search and without."""
    simulate = simulator()

    def fit_draws(settings: Any, weak: Any, draws: range) -> Floats:
        """(draws, 3 models, 4 terms, 3): true coefficients covered, not chosen, and their number.

        The terms: coefficients of 0.05, of 0.1, larger ones, and that of lambda.
        """
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        counts = np.zeros((len(draws), 3, 4, 3))
        for place, draw in enumerate(draws):
            data, y, coef = simulate(settings, weak, draw)
            models = HeckmanBestSubset("bic"), Heckman(), Heckman(data.support)
            for which, model in enumerate(models):
                # All features leave none excluded; that is what is looked at here.
                with warnings.catch_warnings(action="ignore", category=HeckmanfaWarning):
                    model.fit(data.X, y)
                table = model.tidy(LEVEL).set_index(["equation", "term"])[["ci_low", "ci_high"]]
                terms = [(("prediction", f"x{one}"), coef[one]) for one in np.flatnonzero(coef)]
                terms.append((("errors", "imr"), data.rho * data.sigma))
                for term, true in terms:
                    size = 3 if term[1] == "imr" else np.searchsorted([0.07, 0.2], abs(true))
                    counts[place, which, size, 2] += 1
                    if term not in table.index:
                        counts[place, which, size, 1] += 1
                        continue
                    low, high = table.loc[term]
                    counts[place, which, size, 0] += low <= true <= high
        return counts

    return fit_draws


def intervals(design: Design) -> pd.DataFrame:
    """Coverage of the intervals of a design's coefficients, by their size."""
    parts = in_parallel(interval_fitter(), INTERVAL_DRAWS, design.settings, design.weak)
    covered, dropped, number = np.moveaxis(np.concatenate(parts).sum(axis=0), 2, 0)
    index = pd.MultiIndex.from_product(
        [["after BIC", "all features", "true features"], ["0.05", "0.1", "0.5 to 1.5", "imr"]],
        names=["model", "term"],
    )
    number = number.ravel()
    table = pd.DataFrame(
        {
            "number": number,
            "coverage": covered.ravel() / np.maximum(number, 1),
            "kept": (number - dropped.ravel()) / np.maximum(number, 1),
        },
        index,
    )
    return table[table["number"] > 0]


def window_fitter() -> Callable[..., Floats]:
    """Make the function that tests rho = 0 where it is true, after a window and without."""
    simulate = simulator()

    def p_value(model: Heckman) -> float:
        # The package reports none after a window; this is what it would be.
        place = model.fit_.terms.index(("errors", "imr"))
        return float(stats.chi2.sf(model.imr_coef_**2 / model.fit_.covariance[place, place], 1))

    def fit_draws(settings: Any, weak: Any, draws: range) -> Floats:
        """(draws, 6, 3): whether there is a fit, rejects at 5%, and has the true features."""
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        found = np.zeros((len(draws), 6, 3))
        for place, draw in enumerate(draws):
            data, y, _ = simulate(settings, weak, draw)
            # Each criterion with the window and without: the criterion alone rejects, too.
            models = (
                HeckmanBestSubset("adjusted_r2", rho_range=WINDOW),
                HeckmanBestSubset("adjusted_r2"),
                HeckmanBestSubset("bic", rho_range=WINDOW),
                HeckmanBestSubset("bic"),
                Heckman(),
                Heckman(data.support),
            )
            for which, model in enumerate(models):
                with warnings.catch_warnings(action="ignore", category=HeckmanfaWarning):
                    try:
                        model.fit(data.X, y)
                    except NoFeasibleAssignmentError:
                        continue
                exact = (model.support_ == data.support).all()
                found[place, which] = 1, p_value(model) < 1 - LEVEL, exact
        return found

    return fit_draws


def windows() -> pd.DataFrame:
    """How often there is a fit, and how often it rejects rho = 0, where rho is zero."""
    parts = in_parallel(window_fitter(), WINDOW_DRAWS, {"rho": 0.0}, ())
    return pd.DataFrame(
        np.concatenate(parts).mean(axis=0),
        index=[
            "best subset, adjusted R², window",
            "best subset, adjusted R², no window",
            "best subset, BIC, window",
            "best subset, BIC, no window",
            "all features",
            "true features",
        ],
        columns=["fitted", "rejects", "exact"],
    )


# Tables and promises. -----------------------------------------------------------------------------


class Figures(NamedTuple):
    searches: dict[str, pd.DataFrame]
    """what `search` gives, by design"""
    intervals: dict[str, pd.DataFrame]
    windows: pd.DataFrame
    exact: float
    """what `exact_by_bic` gives for the long design"""


def table(head: list[str], rows: list[list[str]], words: int = 1) -> list[str]:
    """Lay out a table whose first columns are words and whose others are numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return ["", *(f"| {' | '.join(row)} |" for row in [head, rule, *rows]), ""]


def error(number: float) -> str:
    return f"{number:z.4f}" if abs(number) < 1 else f"{number:.2f}"


def named(method: str, criterion: str) -> list[str]:
    return [method, CRITERIA.get(criterion, "")]


def overview(figures: Figures) -> list[str]:
    searches = figures.searches
    chosen = {word: one for word, one in SHORT.items() if one[0] not in KNOWN}
    exact = [
        [DESIGNS[name].words, *(f"{found['exact'][one]:.0%}" for one in chosen.values())]
        for name, found in searches.items()
    ]
    excess = [
        [DESIGNS[name].words, *(error(found["excess"][one]) for one in SHORT.values())]
        for name, found in searches.items()
    ]
    lines = ["## How often exactly the true features are found"]
    lines += table(["design", *chosen], exact)
    lines += [
        f"In {LONG.draws:,} draws with {LONG.words}, else as in the base design, the best subset "
        f"by BIC is exactly the true features in {figures.exact:.1%} (standard error "
        f"{np.sqrt(figures.exact * (1 - figures.exact) / LONG.draws):.1%}).",
        "",
    ]
    lines += ["## Excess error", "", "The mean over the draws."]
    return lines + table(["design", *SHORT], excess)


def training(searches: dict[str, pd.DataFrame]) -> list[str]:
    rows = []
    for name, found in searches.items():
        trained, correlation, drawn, distinct = found.attrs["trained"]
        ahead = ["" if np.isnan(one) else f"{one:.0%}" for one in (trained, correlation)]
        rows.append([DESIGNS[name].words, *ahead, f"{drawn:.0%}", f"{distinct:,.0f}"])
    lines = [
        "## What the scores know",
        "",
        "Of all pairs of a feature that predicts and one that does not, the share in which the "
        "first has the higher score (half of them, by chance); and of the 1,000 assignments drawn "
        "by `sample`, how many are distinct, and how often the true one is among them.",
    ]
    head = ["design", "trained probability", "correlation", "true one drawn", "distinct"]
    return lines + table(head, rows)


def by_design(searches: dict[str, pd.DataFrame]) -> list[str]:
    lines = ["## Every method, by design"]
    for name, found in searches.items():
        words = DESIGNS[name].words
        lines += ["", f"### {words[0].upper()}{words[1:]}", "", f"{DESIGNS[name].draws} draws."]
        rows = [
            [
                *named(*one),
                f"{row['exact']:.1%}",
                f"{row['missed']:.2f}",
                f"{row['added']:.2f}",
                error(row["excess"]),
                error(row["median"]),
                f"{error(row['more'])} ({error(row['error'])})",
            ]
            for one, row in found.iterrows()
        ]
        head = ["method", "criterion", "exact", "missed", "added", "excess error", "its median"]
        lines += table([*head, "more than with the true features (s.e.)"], rows, words=2)
    return lines


def after_search(figures: Figures) -> list[str]:
    lines = [
        "## Intervals after a search",
        "",
        f"{INTERVAL_DRAWS} draws; nominal {LEVEL:.0%} two-step intervals of the coefficients that "
        "are not zero, by their size, and of `imr`. An interval of a feature that was not chosen "
        "does not cover. *Kept* is how often BIC chose the feature.",
    ]
    rows = []
    for name, found in figures.intervals.items():
        for term in found.loc["after BIC"].index:
            shown = [f"{found['coverage'][one, term]:.1%}" for one in found.index.levels[0]]
            kept = "" if term == "imr" else f"{found['kept']['after BIC', term]:.1%}"
            rows.append([DESIGNS[name].words, term, kept, *shown])
    head = ["design", "coefficient", "kept", *(f"coverage, {one}" for one in found.index.levels[0])]
    lines += table(head, rows, words=2)
    lines += [
        "## A test of rho = 0 after a window",
        "",
        f"{WINDOW_DRAWS} draws with rho = 0; the window of rho is {list(WINDOW)}. Rejections are "
        f"those of a Wald test of `imr` = 0 at {1 - LEVEL:.0%}, over all draws.",
    ]
    head = ["model", "an assignment exists", "rho = 0 rejected", "true features"]
    rows = [[one, *(f"{share:.1%}" for share in row)] for one, row in figures.windows.iterrows()]
    return lines + table(head, rows)


def markdown(figures: Figures) -> str:
    """The figures as tables: an overview, what is reported after a search, and all of it."""
    lines = [
        f"{DESIGNS['base'].draws} draws of the base design and "
        f"{min(one.draws for one in DESIGNS.values())} to 100 of the others, each with a truth of "
        f"its own; seed {SEED}. By chance alone a share of 50% comes out with a standard error of "
        f"{np.sqrt(0.25 / DESIGNS['base'].draws):.1%} in the base design and of "
        f"{np.sqrt(0.25 / 100):.1%} in a design of 100 draws.",
        "",
        *overview(figures),
        *after_search(figures),
        *training(figures.searches),
        *by_design(figures.searches),
    ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def figures(publish: Callable[[str, str], None]) -> Figures:
    found = Figures(
        {name: search(design) for name, design in DESIGNS.items()},
        {name: intervals(DESIGNS[name]) for name in INTERVAL_DESIGNS},
        windows(),
        exact_by_bic(LONG),
    )
    publish("search_study.md", markdown(found))
    return found


def test_best_subset_by_bic_finds_exactly_the_true_features_in_nine_of_ten_draws(
    figures: Figures,
) -> None:
    # Each of five other features gets in where a chi-square of 1 exceeds log m, about 6.9.
    assert figures.searches["base"]["exact"]["best subset", "bic"] >= 0.9


def test_best_subset_by_bic_finds_exactly_the_true_features_in_95_percent_of_a_stronger_design(
    figures: Figures,
) -> None:
    assert figures.exact >= 0.95


def test_best_subset_by_bic_costs_at_most_a_quarter_more_than_knowing_the_truth(
    figures: Figures,
) -> None:
    excess = figures.searches["base"]["excess"]
    assert excess["best subset", "bic"] <= 1.25 * excess["true features", ""]


def test_best_subset_by_adjusted_r2_rarely_finds_exactly_the_true_features(
    figures: Figures,
) -> None:
    assert figures.searches["base"]["exact"]["best subset", "adjusted_r2"] <= 0.3


@pytest.mark.parametrize("name", [name for name in DESIGNS if "predict" not in name])
def test_best_subset_by_bic_predicts_better_than_all_features(figures: Figures, name: str) -> None:
    excess = figures.searches[name]["excess"]
    assert excess["best subset", "bic"] < excess["all features", ""]


def test_bic_drops_true_features_with_weak_coefficients(figures: Figures) -> None:
    for name in ("weak", "all predict, weak"):
        found = figures.searches[name].loc[("best subset", "bic")]
        assert found["exact"] < 0.1
        assert found["missed"] > 1


def test_the_trained_probabilities_do_not_tell_true_features_from_others(figures: Figures) -> None:
    ahead = figures.searches["base"].attrs["trained"][0]
    assert 0.4 < ahead < 0.6


def test_intervals_after_bic_fail_for_weak_coefficients_and_not_for_strong_ones(
    figures: Figures,
) -> None:
    weak, base = figures.intervals["weak"]["coverage"], figures.intervals["base"]["coverage"]
    assert (weak["after BIC"][["0.05", "0.1"]] < 0.8).all()
    assert base["after BIC"]["0.5 to 1.5"] > 0.93
    for model in ("all features", "true features"):
        assert weak[model].between(0.91, 0.98).all()


def test_a_window_turns_up_selection_bias_where_there_is_none(figures: Figures) -> None:
    fitted, rejects = figures.windows["fitted"], figures.windows["rejects"]
    after = rejects.index.str.endswith(", window")
    assert (fitted[after] > 0.95).all()
    assert (rejects[after] > 0.3).all()
    # Adjusted R² rejects too often without a window, too, though far less.
    searched_wide = "best subset, adjusted R², no window"
    assert 0.1 < rejects[searched_wide] < 0.25
    assert (rejects[~after].drop(searched_wide) < 0.1).all()
