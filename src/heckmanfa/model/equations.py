"""From rows to a fitted selection equation and compressed data, with columns dropped on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from heckmanfa.data.rows import Block, Positions, Rows, total
from heckmanfa.errors import (
    CollinearError,
    ConvergenceWarning,
    DroppedFeaturesWarning,
    InputError,
    SeparationError,
    TooFewRowsError,
    warn,
)
from heckmanfa.model.leakage import refuse_leakage
from heckmanfa.model.linalg import collinear_error, dependencies
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.option_types import OnProblem
from heckmanfa.model.probit import Probit, fit_probit, selection_coordinates
from heckmanfa.model.separation import Separation, decided, find_separation
from heckmanfa.text.printable import quoted_list

# Longer lists of separating columns are cut to a few names.
_SHOWN, _FEW = 8, 3
# A common minimum of rows of the rarer kind.
_ROWS_PER_FEATURE = 10


@dataclass
class Selection:
    """A fitted selection equation, and the columns and rows left out of it."""

    rows: Rows
    probit: Probit
    dropped: list[int] = field(default_factory=list)
    """positions in X of columns left out"""
    separating: list[int] = field(default_factory=list)
    """those that separated rows: they are in neither equation"""
    n_decided: int = 0
    """rows left out because their selection was certain"""

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
) -> Selection:
    """Fit the probit on columns ``features``, refusing or dropping collinear and separating ones.

    ``labels`` name every column of X.
    """
    if len(features) == 0:
        raise InputError(
            "selection_features is empty: with no feature that drives selection, the inverse "
            "Mills ratio is constant. Name at least one."
        )
    features = list(features)
    dropped: list[int] = []
    separating: list[int] = []
    n_decided = 0
    suspects: set[int] = set()
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
            suspects = set()
            continue
        probit = fit_probit(rows, features, coordinates)
        found = None if probit.certified else find_separation(rows, features, coordinates)
        if found is None:
            break
        if on_separation != "drop" or found.complete:
            _refuse_too_many(rows, len(found.columns), len(features))
            raise SeparationError(_separation_text(found, features, labels, *count_rows(rows)))
        n_decided += found.n_decided
        support = [features[place] for place in found.columns]
        warn(
            f"{found.n_decided} rows were left out: their selection is determined by "
            + _listed(support, labels),
            DroppedFeaturesWarning,
        )
        rows = rows.without(
            decided, coordinates.mean, coordinates.scale, found.direction, columns=features
        )
        suspects = set(support)
    if not probit.converged:
        warn(
            f"the probit did not converge in {probit.n_iterations} passes; do not trust its "
            "estimates. Rescale or leave out extreme features.",
            ConvergenceWarning,
        )
    return Selection(rows, probit, dropped, separating, n_decided)


def _refuse_too_many(rows: Rows, n_separating: int, n_features: int) -> None:
    """If columns separate because they are too many, say so instead of naming some of them.

    As many columns as rows of the rarer kind, or half as many as rows in total (Cover, 1965), can
    be expected to separate whatever they hold. One or two columns that separate by themselves are
    named instead.
    """
    n, n_selected = count_rows(rows)
    fewest, k = min(n_selected, n - n_selected), n_features + 1
    usual = max(fewest // _ROWS_PER_FEATURE, 1)
    if n_separating <= 2 or (k < fewest and n > 2 * k):
        return
    raise TooFewRowsError(
        f"{n_features} selection features are too many for these rows: {n_selected:,} are selected "
        f"and {n - n_selected:,} are not, and so many columns separate so few rows whatever they "
        "hold. Leave features out of the selection equation (a common rule is ten rows of the "
        f"rarer kind per feature, or {usual} here), or collect more rows."
    )


def gather(
    selection: Selection, prediction: Positions, labels: Sequence[str], n_selected: int
) -> Moments:
    """Compress the selected rows of every column that either equation uses.

    ``prediction`` are the columns that may predict, and ``labels`` name every column of X.
    Features that reproduce the outcome are refused.
    """
    columns = sorted({*selection.probit.features, *prediction})
    moments = gather_moments(selection.rows, columns, len(labels), selection.probit)
    refuse_leakage(moments, labels, n_selected)
    return moments


def count_rows(rows: Rows) -> tuple[int, int]:
    """Count the rows, and the selected ones."""
    n, n_selected = total(rows.map(_block_counts, columns=[], merge=total))
    return int(n), int(n_selected)


def _block_counts(block: Block) -> tuple[int, int]:
    return len(block.selected), int(block.selected.sum())


def check_prediction(
    moments: Moments, features: Positions, labels: Sequence[str], on_collinear: OnProblem
) -> tuple[list[int], list[int]]:
    """Refuse or drop prediction features that are constant or collinear among selected rows.

    Returns the positions in X of the kept and of the dropped features.
    """
    found = dependencies(moments.subset(features, imr=False, outcome=False))
    if not found:
        return list(features), []
    error = collinear_error(
        found,
        ["constant", *(labels[column] for column in features)],
        range(len(features)),
        "the prediction features are collinear among the selected rows",
        "Leave these columns out of prediction_features, or pass on_collinear='drop'.",
    )
    if on_collinear != "drop":
        raise error
    away = [features[place] for place in error.columns]
    say_dropped(away, labels, error.reason)
    return [feature for feature in features if feature not in away], away


def say_dropped(away: Sequence[int], labels: Sequence[str], why: str) -> None:
    """Warn which columns were left out, and why."""
    warn(f"left out {_listed(away, labels)}: {why}", DroppedFeaturesWarning)


def _listed(columns: Sequence[int], labels: Sequence[str]) -> str:
    return quoted_list([labels[column] for column in columns], len(columns))


def _separation_text(
    found: Separation, features: Positions, labels: Sequence[str], n: int, n_selected: int
) -> str:
    n_found = len(found.columns)
    separating = [labels[features[place]] for place in found.columns]
    names = quoted_list(separating, _FEW if n_found > _SHOWN else _SHOWN)
    verb = "separates" if n_found == 1 else "together separate"
    # All of these are needed: a column that is the selection itself would separate alone.
    if n_found > _FEW and _ROWS_PER_FEATURE * len(features) > min(n_selected, n - n_selected):
        how = "completely" if found.complete else f"in {found.n_decided:,} rows"
        return (
            f"{names} together separate selected from unselected rows {how}, and none of them "
            f"alone, so the probit has no finite maximum. {len(features)} features are many "
            f"for {n:,} rows, of which {n_selected:,} are selected. Leave features out of the "
            "selection equation, or collect more rows."
        )
    if found.complete:
        return (
            f"{names} {verb} selected from unselected rows completely, so the probit has no "
            "finite maximum. Check for a column that is another form of the selection or of the "
            "outcome itself, and leave it out."
        )
    return (
        f"{names} {verb} selected from unselected rows: the selection of {found.n_decided} rows is "
        "certain, and the probit has no finite maximum. Leave the column out, merge its rare level "
        "with another, or pass on_separation='drop' to leave out the column and those rows."
    )


def weighted_count(value: float) -> int | float:
    """Return a sum of weights as an int if it is one."""
    return round(value) if np.isclose(value, round(value), rtol=0, atol=1e-9) else value
