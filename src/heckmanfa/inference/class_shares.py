"""Predicted shares of the classes of an ordered outcome, beside those observed, in rows of the fit.

Rows are those with an outcome, and probabilities are given selection. Where there are enough rows,
they are in thirds by the class that is expected of them.
"""

from __future__ import annotations

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block, Rows
from heckmanfa.fit import Fit
from heckmanfa.fit.ordered_cut import cuts_by
from heckmanfa.inference.calibration import wilson_interval
from heckmanfa.inference.class_probabilities import log_probabilities
from heckmanfa.plots.class_pictures import ClassShare, ClassShares
from heckmanfa.results.naming import said_class

_THIRDS = ("lowest third", "middle third", "highest third")
# With fewer rows or more classes, thirds would say little.
_FEWEST_ROWS, _MOST_CLASSES = 90, 6


def class_shares_of(fit: Fit, rows: Rows, outcome: str) -> ClassShares:
    """Compare predicted shares of the classes of selected rows with those observed."""
    classes = fit.ordered_classes
    assert classes is not None
    assert fit.probit is not None
    columns = sorted({*fit.equation, *(int(column) for column in fit.probit.features)})
    equations = (
        (fit.intercept, fit.coef[columns]),
        (fit.selection_intercept, fit.selection_coef[columns]),
    )
    arguments = *equations, fit.rho, cuts_by(fit.error_values).tolist()
    parts = [*rows.map(_block_shares, *arguments, columns=columns)]
    predicted = np.concatenate([part[0] for part in parts])
    observed = np.concatenate([part[1] for part in parts]).astype(np.intp)
    weighted = fit.weighted
    weight = np.concatenate([part[2] for part in parts])
    frequencies = weighted and fit.spec.weight_kind == "frequency"
    shares: list[ClassShare] = []
    for group, chosen in _groups(predicted, weight, len(classes)):
        own = weight[chosen]
        size = float(own.sum())
        n_rows = size if frequencies or not weighted else float(np.count_nonzero(chosen))
        # What sampling weights of different size are worth in rows (Kish, 1965).
        n_effective = n_rows if frequencies or not weighted else size**2 / float(own @ own)
        for place, label in enumerate(classes):
            share = float(own @ (observed[chosen] == place)) / size
            mean = float(own @ predicted[chosen, place]) / size
            ends = wilson_interval(share, n_effective)
            named = said_class(outcome, label)
            shares.append(ClassShare(group, named, mean, share, *ends, n_rows))
    total = float(weight.sum()) if frequencies or not weighted else float(len(weight))
    return ClassShares(outcome, tuple(shares), total, fit.spec.weight_kind if weighted else "")


def _groups(predicted: Floats, weight: Floats, n_classes: int) -> list[tuple[str, Floats]]:
    """Return thirds of the rows by the mean of their class, or all of them."""
    if len(predicted) < _FEWEST_ROWS or n_classes > _MOST_CLASSES:
        return [("", np.ones(len(predicted), dtype=bool))]
    expected = predicted @ np.arange(predicted.shape[1])
    order = np.argsort(expected, kind="stable")
    behind = np.empty(len(order))
    behind[order] = np.cumsum(weight[order]) - 0.5 * weight[order]
    third = np.minimum((3.0 * behind / weight.sum()).astype(int), 2)
    return [(name, third == place) for place, name in enumerate(_THIRDS)]


def _block_shares(
    block: Block,
    prediction: tuple[float, Floats],
    selection: tuple[float, Floats],
    rho: float,
    cuts: list[float],
) -> tuple[Floats, Floats, Floats]:
    """Return the probabilities of the classes given selection, the class and the weight of rows."""
    block = block.only_selected()
    mean, index = (
        np.asarray(intercept + block.features @ coef) for intercept, coef in (prediction, selection)
    )
    known = np.exp(log_probabilities(mean, index, rho, cuts, "selected"))
    weight = np.ones(len(mean)) if block.weight is None else np.asarray(block.weight)
    return known, np.asarray(block.outcome), weight
