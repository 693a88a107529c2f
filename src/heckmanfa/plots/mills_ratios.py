"""The inverse Mills ratio in fitting and in prediction.

The picture shows whether predictions stay where the correction for selection was fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.plots.canvas import BLUE, GREY, VERMILION, canvas

_FEWEST_BINS, _MOST_BINS = 10, 40


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
