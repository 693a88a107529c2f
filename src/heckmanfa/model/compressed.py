"""`compress`: the compressed data, for exploring assignments by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Array, Floats, host, like, namespace
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.columns.features import resolve
from heckmanfa.data.fitted_levels import settle_levels
from heckmanfa.data.rows import ArrayRows, Block, Positions, Rows, Source, held, total
from heckmanfa.data.sample import find_row_source, read_sample
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.model.equations import fit_selection, gather
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit
from heckmanfa.text.option_types import Standardize


@dataclass(frozen=True)
class Compressed:
    """A data set with its selection equation fitted and its selected rows compressed."""

    rows: Rows
    probit: Probit
    moments: Moments

    def __repr__(self) -> str:
        """Describe the size of the data."""
        held = f"{self.moments.n_selected:g} of {len(self.rows)} rows selected"
        return f"Compressed({held}, {len(self.moments.columns)} features)"


class _Standardized:
    """A source whose columns are centred and scaled as they are read."""

    def __init__(self, source: Source, centre: Floats, scale: Floats) -> None:
        self._source, self._centre, self._scale = source, centre, scale

    @property
    def shape(self) -> tuple[int, int]:
        return self._source.shape

    def take(self, start: int, stop: int, columns: Positions) -> Array:
        places = list(columns)
        block = self._source.take(start, stop, columns)
        return (block - like(self._centre[places], block)) / like(self._scale[places], block)


def compress(
    X: Any,
    y: Any = None,
    selected: Any = None,
    sample_weight: Any = None,
    prediction_features: Any = None,
    selection_features: Any = None,
    standardize: Standardize = False,
    categorical_features: Any = "from_dtype",
    reference: Any = None,
) -> Compressed:
    """Fit the selection equation once and reduce the data to what every assignment needs.

    Parameters
    ----------
    X, y, selected, sample_weight
        As in `Heckman.fit`; weights are frequencies.
    prediction_features, selection_features
        As in `Heckman`; assignments may hold any feature of their union.
    standardize : bool or "features"
        Centre and scale features and outcome (or only the features) by the mean and standard
        deviation of the selected rows.
    categorical_features, reference
        As in `Heckman`.

    Returns
    -------
    Compressed
        With ``.rows``, ``.probit`` and ``.moments``; ``.moments.solve(assignments)`` accepts one
        boolean mask (K,) or a batch (B, K), over X's columns with dummies in place of categories.

    Examples
    --------
    >>> import numpy as np
    >>> from heckmanfa import compress
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(500, 4, 2, random_state=0)
    >>> solved = compress(data.X, data.y).moments.solve(np.eye(4, dtype=bool))
    >>> solved.coef.shape
    (4, 4)
    """
    if standardize not in (True, False, "features"):
        raise InputError(f"standardize must be True, False or 'features'; got {standardize!r}")
    source = find_row_source(X, y, selected, sample_weight, None)
    table = read_features(
        X if source is None else source,
        "compress",
        categorical=categorical_features,
        lists=(prediction_features, selection_features),
    )
    selection = resolve(table, selection_features, "selection_features")
    prediction = resolve(table, prediction_features, "prediction_features")
    sample = read_sample(
        table,
        y,
        selected=selected,
        sample_weight=sample_weight,
        groups=None,
        sampling=False,
        selection=selection,
        prediction=prediction,
    )
    table, sample = settle_levels(table, sample, reference)
    selection = resolve(table, selection_features, "selection_features")
    prediction = resolve(table, prediction_features, "prediction_features")
    if sample.all_selected:
        raise NotIdentifiedError("no outcome is missing, so there is no selection equation to fit")
    rows = sample.rows
    if standardize:
        columns = sorted({*selection, *prediction})
        rows = _standardized(held(rows, "standardize"), columns, outcome=standardize is True)
    names = table.labels(range(table.shape[1]))
    fitted = fit_selection(rows, selection, names)
    moments = gather(fitted, prediction, names, sample.row_counts["selected"])
    return Compressed(fitted.rows, fitted.probit, moments)


def _standardized(rows: ArrayRows, columns: Positions, *, outcome: bool) -> ArrayRows:
    (m, sums) = total(rows.map(_sums, columns=columns))
    means = sums / m
    (squares,) = total(rows.map(_squares, means, columns=columns))
    spread = np.sqrt(squares / m)
    spread[spread == 0] = 1.0
    centre, scale = np.zeros(rows.source.shape[1]), np.ones(rows.source.shape[1])
    centre[list(columns)], scale[list(columns)] = means[:-1], spread[:-1]
    y = (rows.outcome - float(means[-1])) / float(spread[-1]) if outcome else rows.outcome
    return replace(rows, source=_Standardized(rows.source, centre, scale), outcome=y)


def _selected_values(block: Block) -> tuple[Array, Array]:
    block = block.only_selected()
    xp = namespace(block.outcome)
    weight = xp.ones_like(block.outcome) if block.weight is None else block.weight
    return xp.concat((block.features, block.outcome[:, None]), axis=1), weight


def _sums(block: Block) -> tuple[float, Floats]:
    values, weight = _selected_values(block)
    return float(weight.sum()), host(weight @ values)


def _squares(block: Block, means: Floats) -> tuple[Floats]:
    values, weight = _selected_values(block)
    return (host(weight @ (values - like(means, values)) ** 2),)
