"""Features that give the outcome exactly: copies of it, and combinations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import LeakageError, LeakageWarning, warn
from heckmanfa.model.linalg import column_norms, dependencies, solve_upper, subset_factor
from heckmanfa.model.moments import Moments
from heckmanfa.text.option_words import OUT_OF_BOTH
from heckmanfa.text.printable import quoted_list

_SHOWN = 8
# A residual below this share of the outcome's sum of squares is zero.
_EXACT = 1e-20
# Above this share, a residual cannot be rounding.
_NEARLY = 1e-8
# The residual of an exact copy whose mean is large, in units in the last place.
_ROUNDING = 8.0
# Nearly any feature reproduces this few rows.
_FEWEST = 3


def find_leakage(moments: Moments, n_rows: int) -> tuple[list[int], list[int]]:
    """Find features that give the outcome of the ``n_rows`` selected rows exactly.

    Returns the positions in X of the features that each give it, and otherwise of features that
    give it only in combination.
    """
    k = len(moments.columns)
    outcome = moments.factor[1:, -1]
    total = float(outcome @ outcome)
    # The residual on the constant and all features, or less if they are collinear. Data without
    # leakage need no further check.
    if float(np.sum(moments.factor[k + 1 :, -1] ** 2)) > _NEARLY * total:
        return [], []
    constant = set(moments.constant_columns())
    places = [place for place, column in enumerate(moments.columns) if column not in constant]
    raw = column_norms(moments.factor[:, 1:])
    features = moments.factor[1:, 1:][:, places]
    slopes = (features.T @ outcome) / np.sum(features**2, axis=0)
    residual = np.sum((outcome[:, None] - features * slopes) ** 2, axis=0)
    exact = residual <= np.array(
        [
            _limit(total, raw[-1] + abs(slope) * raw[place])
            for place, slope in zip(places, slopes, strict=True)
        ]
    )
    if n_rows > _FEWEST and exact.any():
        return [moments.columns[places[index]] for index in np.flatnonzero(exact)], []
    return [], _together(moments, places, raw, n_rows)


def _limit(total: float, size: float) -> float:
    """Return the largest residual sum of squares of an exact copy, given rounding."""
    return max(_EXACT * total, (_ROUNDING * float(np.finfo(float).eps) * size) ** 2)


def _together(moments: Moments, places: list[int], raw: Floats, n_rows: int) -> list[int]:
    """Return the positions of features that give the outcome in combination."""
    centred = moments.factor[1:, 1:]
    within = subset_factor(centred, places)
    dependent = {item.column for item in dependencies(within)}
    kept = [place for at, place in enumerate(places) if at not in dependent]
    if not kept or n_rows <= len(kept) + 2:
        return []
    r = subset_factor(centred, [*kept, centred.shape[1] - 1])
    weights = solve_upper(r[:-1, :-1], r[:-1, -1])
    length = float(np.linalg.norm(r[:, -1]))
    rounded = raw[-1] + float(np.abs(weights) @ raw[kept])
    if r[-1, -1] ** 2 > _limit(length**2, rounded):
        return []
    sizes = np.abs(weights) * column_norms(r[:, :-1])
    return [moments.columns[kept[index]] for index in np.flatnonzero(sizes > 1e-7 * length)]


def refuse_leakage(
    moments: Moments,
    labels: Sequence[str],
    n_rows: int,
    *,
    missing: bool = True,
    binary: bool = False,
) -> None:
    """Refuse a feature that gives the outcome of the ``n_rows`` selected rows exactly.

    If several features give it only in combination, or no outcome is ``missing``, this is only a
    warning: data simulated without an error look the same, and no single column is to blame.
    Combinations that give a ``binary`` outcome also separate it, and are refused for that.
    """
    copies, together = find_leakage(moments, n_rows)
    if not copies and (binary or not together):
        return
    where = f"in all {n_rows} rows that have an outcome"
    text = _words([labels[column] for column in copies or together], where, bool(copies))
    if missing and copies:
        raise LeakageError(text)
    warn(text, LeakageWarning)


def refuse_partial_copies(columns: Iterable[tuple[str, Floats, Floats]]) -> None:
    """Refuse columns with gaps that copy the outcome in the rows that have both.

    ``columns`` are (name, values, outcomes), the last two over those rows.
    """
    for name, values, outcome in columns:
        if len(values) > _FEWEST and _is_copy(values, outcome):
            where = f"in the {len(values)} rows that have both"
            raise LeakageError(_words([name], where, copies=True))


def _is_copy(values: Floats, outcome: Floats) -> bool:
    """Whether an outcome is an exact linear function of a non-constant column."""
    if not (np.isfinite(values).all() and np.isfinite(outcome).all()):
        return False
    x, y = values - values.mean(), outcome - outcome.mean()
    total, length = float(y @ y), float(x @ x)
    if total == 0 or length == 0:
        return False
    slope = float(x @ y) / length
    size = float(np.linalg.norm(outcome)) + abs(slope) * float(np.linalg.norm(values))
    return float(np.sum((y - slope * x) ** 2)) <= _limit(total, size)


def _words(names: list[str], where: str, copies: bool) -> str:
    listed = quoted_list(names, _SHOWN)
    if not copies:
        return (
            f"the outcome is an exact linear combination of {listed} {where}: there is no error "
            "to estimate. Unless the data were simulated without one, these columns were computed "
            f"from the outcome, or are known only with it. Leave such columns {OUT_OF_BOTH}."
        )
    verb, it = ("is", "It was") if len(names) == 1 else ("are", "They were")
    each = "an exact copy" if len(names) == 1 else "exact copies"
    return (
        f"{listed} {verb} {each} of the outcome {where}, up to a constant and a factor: there is "
        f"no error to estimate, and nothing to predict. {it} computed from the outcome, or known "
        f"only with it. Leave such columns {OUT_OF_BOTH}."
    )
