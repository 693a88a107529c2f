"""From rows to a fitted selection equation and compressed data.

Collinear and separating columns are dropped on the way, and features that the outcome can be
computed from are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block, Positions, Rows, total
from heckmanfa.errors import (
    CollinearError,
    ConvergenceWarning,
    DroppedFeaturesWarning,
    InputError,
    LeakageError,
    LeakageWarning,
    TooFewRowsError,
    warn,
)
from heckmanfa.model.linalg import (
    collinear_error,
    column_norms,
    dependencies,
    solve_upper,
    subset_factor,
)
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.probit import Probit, fit_probit, selection_coordinates
from heckmanfa.model.separation import (
    SELECTION,
    Separated,
    decided,
    find_separation,
    listed,
    refuse_separation,
    say_decided,
)
from heckmanfa.text.option_types import OnProblem
from heckmanfa.text.option_words import (
    OR_DROP,
    OUT_OF_BOTH,
    option,
)
from heckmanfa.text.printable import quoted_list

_COPIES_SHOWN = 8
# A residual below this share of the outcome's sum of squares is zero.
_EXACT = 1e-20
# Above this share, a residual cannot be rounding.
_NEARLY = 1e-8
# The residual of an exact copy whose mean is large, in units in the last place.
_ROUNDING = 8.0
# Nearly any feature reproduces this few rows.
_FEWEST = 3


@dataclass
class Selection:
    """A fitted selection equation, and the columns and rows left out of it."""

    rows: Rows
    probit: Probit
    dropped: list[int] = field(default_factory=list)
    """positions in X of columns left out"""
    separating: list[int] = field(default_factory=list)
    """those that separated rows: they do not predict, either"""
    n_decided: int = 0
    """rows left out because their selection or their outcome was certain"""
    outcome: Probit | None = None
    """plain probit of a binary outcome on all columns that may predict, but collinear ones"""
    deciding: list[int] = field(default_factory=list)
    """columns that decided a binary outcome of rows left out"""

    def row_counts(self) -> dict[str, int]:
        """Count rows by status, if any were left out here."""
        if not self.n_decided:
            return {"left_out_separation": 0}
        n, n_selected = count_rows(self.rows)
        return {
            "selected": n_selected,
            "unselected": n - n_selected,
            "left_out_separation": self.n_decided,
        }


def fit_selection(
    rows: Rows,
    features: Positions,
    labels: Sequence[str],
    *,
    on_collinear: OnProblem = "error",
    on_separation: OnProblem = "error",
    suspects: Collection[int] = (),
    check_left: Callable[[Rows], None] = lambda rows: None,
    words: Separated = SELECTION,
) -> Selection:
    """Fit the probit on columns ``features``, refusing or dropping collinear and separating ones.

    ``labels`` name every column of X. ``suspects`` are columns that are collinear because rows were
    left out before. ``check_left`` gets the rows that are left whenever separating columns decided
    others, before anything is said about them, in these ``words``.
    """
    if len(features) == 0:
        raise InputError(
            f"{option('selection_features')} is empty: with no feature that drives selection, "
            "every row would have the same probability of selection, and nothing could be "
            "corrected. Name at least one."
        )
    features = list(features)
    dropped: list[int] = []
    separating: list[int] = []
    n_decided = 0
    while True:
        # Columns that separated rows go last, so they are the ones found to be collinear.
        order = sorted(features, key=lambda feature: feature in suspects)
        try:
            coordinates = selection_coordinates(rows, order, [labels[column] for column in order])
        except CollinearError as error:
            if on_collinear != "drop" and not suspects:
                raise
            away = [order[place] for place in error.columns]
            say_dropped(away, labels, error.reason)
            dropped += away
            separating += [column for column in away if column in suspects]
            features = [column for column in features if column not in away]
            if not features:
                raise TooFewRowsError(
                    "no selection feature is left after dropping the constant, collinear or "
                    "separating ones"
                ) from error
            continue
        if order != features:
            suspects = ()
            continue
        probit = fit_probit(rows, features, coordinates)
        separation = None if probit.certified else find_separation(rows, features, coordinates)
        if separation is None:
            break
        if on_separation != "drop" or separation.complete:
            refuse_separation(separation, count_rows(rows), features, labels, words)
        n_decided += separation.n_decided
        support = [features[place] for place in separation.columns]
        rows = rows.without(
            decided, coordinates.mean, coordinates.scale, separation.direction, columns=features
        )
        check_left(rows)
        say_decided(separation.n_decided, support, labels, words)
        suspects = support
    if not probit.converged:
        warn(
            f"the probit did not converge in {probit.n_iterations} passes; do not trust its "
            "estimates. Rescale or leave out extreme features.",
            ConvergenceWarning,
        )
    return Selection(rows, probit, dropped, separating, n_decided)


def gather(
    selection: Selection,
    prediction: Positions,
    labels: Sequence[str],
    n_selected: int,
    *,
    binary: bool = False,
) -> Moments:
    """Compress the selected rows of every column that either equation uses.

    ``prediction`` are the columns that may predict, and ``labels`` name every column of X.
    Features that reproduce the outcome are refused.
    """
    columns = sorted({*selection.probit.features, *prediction})
    moments = gather_moments(selection.rows, columns, len(labels), selection.probit)
    refuse_leakage(moments, labels, n_selected, binary=binary)
    return moments


def with_selection_features(
    selection: Selection, moments: Moments, features: Positions, labels: Sequence[str]
) -> tuple[Selection, Moments]:
    """Fit the selection equation again with some of its features, and compress the rows again.

    Some of them are neither collinear nor separating if all of them are not.
    """
    rows = selection.rows
    coordinates = selection_coordinates(rows, features, [labels[column] for column in features])
    probit = fit_probit(rows, list(features), coordinates)
    moments = gather_moments(rows, moments.columns, len(labels), probit)
    return replace(selection, probit=probit), moments


def count_rows(rows: Rows) -> tuple[int, int]:
    """Count the rows, and the selected ones."""
    n, n_selected = total(rows.map(_block_counts, columns=[], merge=total))
    return int(n), int(n_selected)


def _block_counts(block: Block) -> tuple[int, int]:
    return len(block.selected), int(block.selected.sum())


def check_prediction(
    moments: Moments, features: Positions, labels: Sequence[str], on_collinear: OnProblem
) -> tuple[list[int], list[int]]:
    """Refuse or drop prediction features that are constant or collinear where they are fitted.

    Returns the positions in X of the kept and of the dropped features.
    """
    kept, away = list(features), list[int]()
    for number in range(len(moments.designs(features))):
        where, first, root = moments.designs(kept)[number]
        dependent = dependencies(root)
        if not dependent:
            continue
        error = collinear_error(
            dependent,
            [*first, *(labels[column] for column in kept)],
            range(len(kept)),
            f"the prediction features are collinear {where}",
            f"Leave these columns {moments.leave_out}{OR_DROP}.",
        )
        if on_collinear != "drop":
            raise error
        dropped = [kept[place] for place in error.columns]
        say_dropped(dropped, labels, error.reason)
        away += dropped
        kept = [feature for feature in kept if feature not in away]
    return kept, away


def say_dropped(away: Sequence[int], labels: Sequence[str], why: str) -> None:
    """Warn which columns were left out, and why."""
    warn(f"left out {listed(away, labels)}: {why}", DroppedFeaturesWarning)


def weighted_count(value: float) -> int | float:
    """Return a sum of weights as an int if it is one."""
    return round(value) if np.isclose(value, round(value), rtol=0, atol=1e-9) else value


# Features that give the outcome exactly: copies of it, and combinations. --------------------------


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
    text = _leak_text([labels[column] for column in copies or together], where, bool(copies))
    if missing and copies:
        raise LeakageError(text)
    warn(text, LeakageWarning)


def refuse_partial_copies(columns: Iterable[tuple[str, Floats, Floats]]) -> None:
    """Refuse columns with gaps that copy the outcome in the rows that have both.

    ``columns`` are (name, values, outcomes), the last two over those rows.
    """
    for name, values, outcome in columns:
        if is_copy(values, outcome):
            where = f"in the {len(values)} rows that have both"
            raise LeakageError(_leak_text([name], where, copies=True))


def is_copy(values: Floats, outcome: Floats) -> bool:
    """Whether an outcome is an exact linear function of a non-constant column, in enough rows."""
    if len(values) <= _FEWEST or not (np.isfinite(values).all() and np.isfinite(outcome).all()):
        return False
    x, y = values - values.mean(), outcome - outcome.mean()
    total, length = float(y @ y), float(x @ x)
    if total == 0 or length == 0:
        return False
    slope = float(x @ y) / length
    size = float(np.linalg.norm(outcome)) + abs(slope) * float(np.linalg.norm(values))
    return float(np.sum((y - slope * x) ** 2)) <= _limit(total, size)


def _leak_text(names: list[str], where: str, copies: bool) -> str:
    columns = quoted_list(names, _COPIES_SHOWN)
    if not copies:
        return (
            f"the outcome is an exact linear combination of {columns} {where}: there is no error "
            "to estimate. Unless the data were simulated without one, these columns were computed "
            f"from the outcome, or are known only with it. Leave such columns {OUT_OF_BOTH}."
        )
    verb, it = ("is", "It was") if len(names) == 1 else ("are", "They were")
    each = "an exact copy" if len(names) == 1 else "exact copies"
    return (
        f"{columns} {verb} {each} of the outcome {where}, up to a constant and a factor: there is "
        f"no error to estimate, and nothing to predict. {it} computed from the outcome, or known "
        f"only with it. Leave such columns {OUT_OF_BOTH}."
    )
