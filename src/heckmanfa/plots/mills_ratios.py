"""The inverse Mills ratio in fitting and in prediction.

The picture shows whether predictions stay where the correction for selection was fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.plots._canvas import BLUE, GREY, VERMILION, canvas
from heckmanfa.text.table import PictureText, lay_out
from heckmanfa.text.wording import count, number, percent, plural

_FEWEST_BINS, _MOST_BINS = 10, 40
_LONG_TAIL = 4.0
_QUANTILES = {
    "Lowest": 0.0,
    "Lower quartile": 0.25,
    "Median": 0.5,
    "Upper quartile": 0.75,
    "Highest": 1.0,
}


@dataclass(frozen=True, eq=False)
class MillsRatios:
    """Ratios of the rows that the prediction equation was fitted to, and of others."""

    fitted: Floats
    """of the selected rows"""
    others: Floats
    """of the rows to predict for"""
    range: tuple[float, float]
    """the lowest and the highest in the fit"""
    share_outside: float
    """share of all rows outside that range"""
    weight: Floats | None = None
    """of the selected rows"""

    @property
    def all(self) -> Floats:
        """The ratios of all rows."""
        return np.concatenate([self.fitted, self.others])

    @property
    def top(self) -> float:
        """Where the picture ends: with a long tail, one bar would hold the whole fit."""
        return min(float(self.all.max()), _LONG_TAIL * self.range[1])

    def bins(self) -> Floats:
        """Return edges that both samples share, the ends of the fitted range among them.

        The last bin ends half that range above it, wherever the largest ratio is.
        """
        low, high = float(self.fitted.min()), float(self.fitted.max())
        n_bins = len(np.histogram_bin_edges(self.fitted, "fd")) - 1
        inner = np.linspace(low, high, min(max(n_bins, _FEWEST_BINS), _MOST_BINS) + 1)
        # A bin ends before its upper edge, and the largest ratio of the fit is inside.
        inner[-1] = high = np.nextafter(high, np.inf)
        width = max((high - low) / (len(inner) - 1), 1e-12)
        parts = [inner]
        least = min(float(self.others.min()), low)
        most = min(max(float(self.others.max()), high), high + 0.5 * (high - low))
        for end, far in ((low, least), (high, most)):
            more = min(int(np.ceil(abs(far - end) / width)), _MOST_BINS)
            parts.append(np.linspace(end, far, more + 1)[1:])
        return np.unique(np.concatenate(parts))

    def text(self) -> PictureText:
        """Return the words around the two distributions."""
        outside, top = percent(self.share_outside), self.top
        beyond = int(np.count_nonzero(self.all > top))
        others = tail = ""
        if len(self.others):
            others = f"; for the {count(len(self.others))} others it is {_described(self.others)}"
        if beyond:
            tail = (
                f" The last bar includes {plural(beyond, 'row')} with lambda above "
                f"{number(top, 3)}, up to {number(self.all.max(), 3)}."
            )
        rows = [
            [name, count(len(part)), *map(number, np.quantile(part, list(_QUANTILES.values())))]
            for name, part in (
                ("Selected", self.fitted),
                ("Others", self.others),
                ("All", self.all),
            )
            if len(part)
        ]
        return PictureText(
            title="Lambda in the fit and in prediction",
            alt=(
                f"For the {count(len(self.fitted))} selected rows, lambda is "
                f"{_described(self.fitted)}{others}. {outside} of all rows are outside the range "
                "of the fit."
            ),
            caption=(
                "Lambda is large if selection is unlikely. Its coefficient is learned from the "
                "selected rows, between the dotted lines; beyond them, predictions given "
                f"selection extrapolate ({outside} of all rows).{tail}"
            ),
            table=lay_out(["Rows"], ["Count", *_QUANTILES], rows, "Lambda by rows", "lambda-table"),
        )


def _described(values: Floats) -> str:
    return (
        f"from {number(values.min(), 3)} to {number(values.max(), 3)}, with median "
        f"{number(float(np.median(values)), 3)}"
    )


class RatioModel(Protocol):
    """A model that returns the inverse Mills ratios of its rows."""

    def mills_ratios(
        self, X: Any, y: Any, X_new: Any, *, selected: Any, sample_weight: Any
    ) -> MillsRatios:
        """Return the ratios in fitting and in prediction."""
        ...


def imr_overlap(
    model: RatioModel,
    X: Any,
    y: Any = None,
    X_new: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the inverse Mills ratio of the rows fitted to, and of the rows to predict for.

    The prediction equation saw the ratio of selected rows only; beyond their range its effect is
    extrapolated. The range is shaded, and the legend says how many rows are outside.

    Parameters
    ----------
    model : Heckman
        Fitted.
    X, y, selected, sample_weight
        As they were passed to `Heckman.fit`; others are refused. For a model from formulas, X is
        the data frame, and y is left out.
    X_new : array or data frame, optional
        Rows to predict for; all rows of X by default.
    ax : Axes, optional
    """
    ratios = model.mills_ratios(X, y, X_new, selected=selected, sample_weight=sample_weight)
    fitted, others, bins = ratios.fitted, ratios.others, ratios.bins()
    with canvas(ax, 2.6) as drawn:
        (panel,) = drawn.axes
        shade = panel.axvspan(*ratios.range, facecolor=GREY, alpha=0.12, linewidth=0, zorder=0)
        for end in ratios.range:
            panel.axvline(end, color=GREY, linewidth=0.6, linestyle=":", zorder=1)
        _, _, (filled,) = panel.hist(
            fitted,
            bins,
            weights=ratios.weight,
            density=True,
            histtype="stepfilled",
            facecolor=BLUE,
            alpha=0.45,
            zorder=2,
        )
        _, _, (outline,) = panel.hist(
            np.minimum(others, bins[-1]),
            bins,
            density=True,
            histtype="step",
            edgecolor=VERMILION,
            linewidth=1.3,
            zorder=3,
        )
        beyond = f" (above {bins[-1]:.3g}: in the last bin)" if others.max() > bins[-1] else ""
        panel.set_xlabel("inverse Mills ratio" + beyond)
        panel.set_ylabel("density")
        outside = f"{100 * ratios.share_outside:.2g}% outside"
        drawn.legend(
            {
                f"fitting: {len(fitted):,} selected rows": filled,
                f"prediction: {len(others):,} rows, {outside}": outline,
                "range in fitting": shade,
            }
        )
    return panel
