"""Draw docs/img/selection.png, for the README and the home page, and other pictures beside it.

    python docs/make_picture.py

The first uses simulated data, so the truth is known; least squares and the selection model both see
only the outcomes of the selected rows.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from heckmanfa import Heckman, plots
from heckmanfa.analysis import analyse
from heckmanfa.datasets import Selection, load_mroz, make_selection
from heckmanfa.errors import AllObservedWarning

mpl.use("Agg")
import matplotlib.pyplot as plt

TARGET = Path(__file__).parent / "img" / "selection.png"
UNCERTAINTY = TARGET.with_name("uncertainty.png")
ANSWER = {
    TARGET.with_name("forest.png"): plots.forest,
    TARGET.with_name("assignments.png"): plots.assignments,
}

# Black, blue and vermillion from Okabe and Ito's palette for colour-blind readers; line styles and
# markers also differ.
TRUTH, HECKMAN, NAIVE = "#000000", "#0072B2", "#D55E00"
SEEN, HIDDEN = "#4D4D4D", "#C9C9C9"


def naive(data: Selection, features: list[int]) -> Heckman:
    """Least squares on the rows with an outcome: Heckman fits it if no outcome is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AllObservedWarning)
        return Heckman(features).fit(data.X[data.selected], data.y[data.selected])


def lines(axes: Any) -> None:
    """One feature that predicts: points, the true line and both fitted ones."""
    data = make_selection(
        1000,
        n_features=2,
        prediction_features=[0],
        rho=0.9,
        sigma=1.5,
        selection_rate=0.4,
        strength=1.5,
        random_state=4,
    )
    x, y, seen = data.X[:, 0], data.complete_y, data.selected
    axes.scatter(x[~seen], y[~seen], s=11, color=HIDDEN, linewidths=0, label="outcome missing")
    axes.scatter(x[seen], y[seen], s=11, color=SEEN, linewidths=0, label="outcome observed")
    ends = np.array([-3.0, 3.0])
    for model, label, colour, style in (
        (naive(data, [0]), "least squares", NAIVE, (0, (5, 1.5))),
        (Heckman([0]).fit(data.X, data.y), "Heckman", HECKMAN, "-"),
    ):
        fitted = model.intercept_ + model.coef_[0] * ends
        axes.plot(ends, fitted, color=colour, linestyle=style, linewidth=2.8, label=label)
    true = data.intercept + data.coef[0] * ends
    axes.plot(ends, true, color=TRUTH, linestyle=(0, (1, 1.2)), linewidth=2.2, label="truth")
    axes.set(xlim=(-3, 3), xlabel="feature", ylabel="outcome")
    axes.set_title("Low outcomes are missing more often", loc="left")


def intervals(axes: Any) -> None:
    """Several features: how far from the truth the 95% intervals of both methods are."""
    data = make_selection(
        5000, n_features=8, n_prediction=5, rho=0.8, correlation=0.3, strength=1.5, random_state=0
    )
    features = [int(feature) for feature in np.flatnonzero(data.support)]
    terms = ["Intercept", *(data.feature_names[feature] for feature in features)]
    truth = np.array([data.intercept, *data.coef[features]])
    positions = np.arange(len(terms), dtype=float)
    axes.axvline(0.0, color=TRUTH, linestyle=(0, (1, 1.2)), linewidth=2.2)
    for model, colour, marker, shift in (
        (naive(data, features), NAIVE, "s", -0.15),
        (Heckman(features).fit(data.X, data.y), HECKMAN, "o", 0.15),
    ):
        table = model.tidy().query("equation == 'prediction'")
        estimate = table["estimate"].to_numpy()
        reach = np.abs(table[["ci_low", "ci_high"]].to_numpy() - estimate[:, None]).T
        axes.errorbar(
            estimate - truth,
            positions + shift,
            xerr=reach,
            fmt=marker,
            color=colour,
            markersize=6,
            elinewidth=2.2,
        )
    axes.set_yticks(positions, terms)
    axes.set_ylim(len(terms) - 0.5, -0.5)
    axes.set_xlabel("estimate minus true coefficient, with 95% interval")
    axes.set_title("Five features that predict, three that only select", loc="left")


def draw_uncertainty() -> None:
    """Wages of Mroz's women over rho, for the page on what can be claimed."""
    mroz = load_mroz()
    features = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
    model = Heckman(["educ", "exper", "expersq"]).fit(mroz[features], mroz["lwage"])
    panels = model.uncertainty_interval(rho=(-0.9, 0.9)).plot()
    panels[0].figure.savefig(UNCERTAINTY, dpi=140, metadata={"Software": None})


def draw_answer() -> None:
    """Which features go with wages, for the home page: the table of its example."""
    columns = ["lwage", "educ", "exper", "age", "kids5", "kids618", "nwifeinc", "city"]
    analysis = analyse(load_mroz()[columns], outcome="lwage")
    for path, draw in ANSWER.items():
        draw(analysis).figure.savefig(path, dpi=200, metadata={"Software": None})


def main() -> None:
    """Write all pictures."""
    TARGET.parent.mkdir(exist_ok=True)
    draw_answer()
    style = {
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
    }
    with mpl.rc_context(style):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
        lines(left)
        intervals(right)
        figure.legend(
            *left.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=5,
            frameon=False,
            handlelength=2.6,
            markerscale=1.8,
        )
        figure.savefig(TARGET, dpi=140, metadata={"Software": None})
        plt.close(figure)
        draw_uncertainty()


if __name__ == "__main__":
    main()
