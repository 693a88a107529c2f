"""Whether predictions are asked for where the correction for selection was fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import held
from heckmanfa.model.normal import inverse_mills
from heckmanfa.plots._canvas import BLUE, GREY, VERMILION, canvas
from heckmanfa.results.diagnostics import _share_outside

if TYPE_CHECKING:
    from heckmanfa.estimators.heckman import Heckman

__all__ = ["imr_overlap"]

_FEWEST_BINS, _MOST_BINS = 10, 40


def imr_overlap(
    model: Heckman,
    X: Any,
    y: Any = None,
    X_new: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the inverse Mills ratio where the model was fitted, and where it is to predict.

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
        Rows to predict for; all rows of X unless given.
    ax : Axes, optional
        A new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
    """
    from heckmanfa.inference.fit_rows import read_again
    from heckmanfa.inference.prediction import read_rows, selection_index

    check_is_fitted(model)
    again = read_again(model.fit_, X, y, selected=selected, sample_weight=sample_weight)
    rows = held(again.selection.rows, "this picture")
    index = selection_index(model.fit_, again.table)
    kept = np.ones(len(index), dtype=bool) if rows.kept is None else rows.kept
    chosen = kept & rows.selected
    weight = None if rows.weight is None else rows.weight[chosen]
    if X_new is not None or again.design is not None:
        # As in diagnostics, rows that miss a feature are not counted; the legend has the number.
        asked_for = X if X_new is None else X_new
        table = read_rows(model.fit_, asked_for, prediction=False, selection=True, missing="nan")
        index_new = selection_index(model.fit_, table)
    else:
        index_new = index
    share = _share_outside(index_new, *model.fit_.index_range)
    fitted = inverse_mills(index[chosen])
    asked = inverse_mills(index_new[np.isfinite(index_new)])
    low, high = (float(inverse_mills(end)) for end in reversed(model.fit_.index_range))
    bins = _bins(fitted, asked)
    with canvas(ax, 2.6) as drawn:
        (panel,) = drawn.axes
        shade = panel.axvspan(low, high, facecolor=GREY, alpha=0.12, linewidth=0, zorder=0)
        for end in (low, high):
            panel.axvline(end, color=GREY, linewidth=0.6, linestyle=":", zorder=1)
        _, _, (filled,) = panel.hist(
            fitted,
            bins,
            weights=weight,
            density=True,
            histtype="stepfilled",
            facecolor=BLUE,
            alpha=0.45,
            zorder=2,
        )
        _, _, (outline,) = panel.hist(
            np.minimum(asked, bins[-1]),
            bins,
            density=True,
            histtype="step",
            edgecolor=VERMILION,
            linewidth=1.3,
            zorder=3,
        )
        beyond = f" (above {bins[-1]:.3g}: in the last bin)" if asked.max() > bins[-1] else ""
        panel.set_xlabel("inverse Mills ratio" + beyond)
        panel.set_ylabel("density")
        drawn.legend(
            {
                f"fitting: {len(fitted):,} selected rows": filled,
                f"prediction: {len(asked):,} rows, {100 * share:.2g}% outside": outline,
                "range in fitting": shade,
            }
        )
    return panel


def _bins(fitted: Floats, asked: Floats) -> Floats:
    """Edges that both samples share, the ends of the fitted range among them.

    The last bin ends half that range above it, wherever the largest ratio is.
    """
    low, high = float(fitted.min()), float(fitted.max())
    count = len(np.histogram_bin_edges(fitted, "fd")) - 1
    inner = np.linspace(low, high, min(max(count, _FEWEST_BINS), _MOST_BINS) + 1)
    # A bin ends before its upper edge, and the largest of the fit is inside.
    inner[-1] = high = np.nextafter(high, np.inf)
    width = max((high - low) / (len(inner) - 1), 1e-12)
    parts = [inner]
    least = min(float(asked.min()), low)
    most = min(max(float(asked.max()), high), high + 0.5 * (high - low))
    for end, far in ((low, least), (high, most)):
        more = min(int(np.ceil(abs(far - end) / width)), _MOST_BINS)
        parts.append(np.linspace(end, far, more + 1)[1:])
    return np.unique(np.concatenate(parts))
