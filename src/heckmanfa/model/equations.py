"""From rows to a fitted selection equation and compressed data.

Collinear and separating columns are dropped on the way, and features that the outcome can be
computed from are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

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
from heckmanfa.model.probit import Probit, fit_probit, selection_coordinates
from heckmanfa.model.separation import Separation, decided, find_separation
from heckmanfa.text.option_types import OnProblem
from heckmanfa.text.option_words import (
    EXCLUDED,
    FEWER_PREDICTING,
    FEWER_SELECTING,
    OR_DROP,
    OUT_OF_PREDICTION,
    instead,
    option,
)
from heckmanfa.text.printable import quoted_list
from heckmanfa.text.wording import plural

# A level with a larger share of the rows is not rare.
_RARE = 0.05
# Levels of fewer rows are worth merging, whichever of them separates.
_FEW_ROWS = 10
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
) -> Selection:
    """Fit the probit on columns ``features``, refusing or dropping collinear and separating ones.

    ``labels`` name every column of X. ``suspects`` are columns that are collinear because rows were
    left out before. ``check_left`` gets the rows that are left whenever separating columns decided
    others, before anything is said about them.
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
            refuse_separation(separation, rows, features, labels)
        n_decided += separation.n_decided
        support = [features[place] for place in separation.columns]
        rows = rows.without(
            decided, coordinates.mean, coordinates.scale, separation.direction, columns=features
        )
        check_left(rows)
        say_decided(separation.n_decided, support, labels)
        suspects = support
    if not probit.converged:
        warn(
            f"the probit did not converge in {probit.n_iterations} passes; do not trust its "
            "estimates. Rescale or leave out extreme features.",
            ConvergenceWarning,
        )
    return Selection(rows, probit, dropped, separating, n_decided)


@dataclass(frozen=True)
class Separated:
    """Words for what a probit explains."""

    response: str
    equation: str
    between: str
    among: str
    counts: str
    """filled in with the numbers of rows of either kind"""
    itself: str
    """what to do about a column that is what the probit explains"""
    fewer: str
    """how to use fewer features"""


SELECTION = Separated(
    response="selection",
    equation="selection",
    between="selected from unselected rows",
    among="{n:,} rows, of which {positive:,} are selected",
    counts="{positive:,} are selected and {other:,} are not",
    itself="Check for a column that is another form of the selection or of the outcome itself, and "
    f"leave it out{EXCLUDED}"
    + instead("", f", or name it with {option('selected')} if it says who is selected"),
    fewer=FEWER_SELECTING,
)
OUTCOME = Separated(
    response="outcome",
    equation="prediction",
    between="the two classes of the outcome among the selected rows",
    among="{n:,} selected rows, of which {positive:,} have the positive class",
    counts="of the selected rows, {positive:,} have the positive class and {other:,} the negative "
    "one",
    itself="Check for a column that is another form of the outcome, or is known only with it, and "
    f"leave it out{EXCLUDED}",
    fewer=FEWER_PREDICTING,
)


def refuse_separation(
    separation: Separation,
    rows: Rows,
    features: Positions,
    labels: Sequence[str],
    words: Separated = SELECTION,
) -> NoReturn:
    """Refuse columns that separate rows, by name.

    As many columns as rows of the rarer kind, or half as many as rows in total (Cover, 1965), can
    be expected to separate whatever they hold. Then none is named, but one or two columns that
    separate by themselves.
    """
    n, positive = count_rows(rows)
    fewest, k = min(positive, n - positive), len(features) + 1
    if len(separation.columns) <= 2 or (k < fewest and n > 2 * k):
        text = _separation_text(separation, features, labels, n, positive, words)
        raise SeparationError(text, [features[place] for place in separation.columns])
    counts = words.counts.format(positive=positive, other=n - positive)
    usual = max(fewest // _ROWS_PER_FEATURE, 1)
    raise TooFewRowsError(
        f"{len(features)} {words.equation} features are too many for these rows: {counts}, and so "
        "many columns separate so few rows whatever they hold. "
        f"{words.fewer} (a common rule is ten rows of the rarer kind per feature, or "
        f"{usual} here), or collect more rows."
    )


def say_decided(
    n_decided: int, support: Sequence[int], labels: Sequence[str], words: Separated = SELECTION
) -> None:
    """Warn that rows were left out, and which columns determined them."""
    were, whose = ("was", "its") if n_decided == 1 else ("were", "their")
    warn(
        f"{plural(n_decided, 'row')} {were} left out: {whose} {words.response} is determined by "
        + _listed(support, labels),
        DroppedFeaturesWarning,
    )


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
    """Refuse or drop prediction features that are constant or collinear among selected rows.

    Returns the positions in X of the kept and of the dropped features.
    """
    dependent = dependencies(moments.subset(features, imr=False, outcome=False))
    if not dependent:
        return list(features), []
    error = collinear_error(
        dependent,
        ["constant", *(labels[column] for column in features)],
        range(len(features)),
        "the prediction features are collinear among the selected rows",
        f"Leave these columns {OUT_OF_PREDICTION}{OR_DROP}.",
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
    separation: Separation,
    features: Positions,
    labels: Sequence[str],
    n: int,
    positive: int,
    words: Separated,
) -> str:
    n_found = len(separation.columns)
    separating = [labels[features[place]] for place in separation.columns]
    names = quoted_list(separating, _FEW if n_found > _SHOWN else _SHOWN)
    verb = "separates" if n_found == 1 else "together separate"
    # All of these are needed: a column that is the selection itself would separate alone.
    if n_found > _FEW and _ROWS_PER_FEATURE * len(features) > min(positive, n - positive):
        how = "completely" if separation.complete else f"in {separation.n_decided:,} rows"
        return (
            f"{names} together separate {words.between} {how}, and none of them "
            f"alone, so the probit has no finite maximum. {len(features)} features are many "
            f"for {words.among.format(n=n, positive=positive)}. {words.fewer}, or "
            "collect more rows."
        )
    if separation.complete:
        return (
            f"{names} {verb} {words.between} completely, so the probit has no "
            f"finite maximum. {words.itself}."
        )
    rows = plural(separation.n_decided, "row")
    certain = (
        f"{names} {verb} {words.between}: the {words.response} of {rows} is certain, and "
        "the probit has no finite maximum."
    )
    drop = f"pass {option('on_separation', 'drop')} to leave out the column and those rows."
    if separation.n_decided > _RARE * n:
        # No level is that rare: such a column says who is selected, or who cannot be.
        return f"{certain} {words.itself}, or {drop}"
    few = max(_FEW_ROWS, separation.n_decided + 1)
    return (
        f"{certain} Leave the column out{EXCLUDED}, merge "
        + instead(
            f"its rare level (fewer than {few:,} rows) with another",
            f"rare levels of a category with {option('min_level_rows', few)}",
        )
        + f", or {drop}"
    )


def weighted_count(value: float) -> int | float:
    """Return a sum of weights as an int if it is one."""
    return round(value) if np.isclose(value, round(value), rtol=0, atol=1e-9) else value
