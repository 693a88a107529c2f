"""The plain probit of a binary outcome among the selected rows, and what separates the outcome.

The plain probit ignores selection. It is where the Heckman probit starts, the model that its
estimates are compared with, and a proof that no feature decides the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heckmanfa.data.arrays import Array, Floats, like, namespace
from heckmanfa.data.rows import Block, BlockFunction, Mask, Merge, Positions, Rows, RowsView
from heckmanfa.errors import ConstantOutcomeError, TooFewRowsError
from heckmanfa.model.equations import (
    Selection,
    count_rows,
    fit_selection,
    gather,
    say_dropped,
)
from heckmanfa.model.linalg import Coordinates, dependencies
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit, fit_probit
from heckmanfa.model.separation import (
    OUTCOME,
    TOLERANCE,
    Separation,
    find_separation,
    refuse_separation,
    say_decided,
)
from heckmanfa.text.option_types import OnProblem
from heckmanfa.text.option_words import FEWER_PREDICTING
from heckmanfa.text.printable import quoted_list
from heckmanfa.text.wording import MAX_NAMES, plural


@dataclass(frozen=True)
class OutcomeRows(RowsView):
    """Selected rows of a fit; ``selected`` of their blocks is whether the outcome is 1.

    Or, of classes that are numbered from 0, whether it is ``above`` a number between two of them.
    """

    above: float = 0.5

    def map(
        self, function: BlockFunction, *args: Any, columns: Positions, merge: Merge | None = None
    ) -> Iterator[Any]:
        """Yield ``function(block, *args)`` for the selected rows of every block, in row order."""
        return self.rows.map(_on_outcome, self.above, function, args, columns=columns, merge=merge)

    def without(self, function: Callable[..., Mask], *args: Any, columns: Positions) -> OutcomeRows:
        """Return the rows where ``function(block, *args)`` is False; unselected rows all stay."""
        args = self.above, function, args
        return OutcomeRows(self.rows.without(_marked, *args, columns=columns), self.above)


def _on_outcome(block: Block, above: float, function: BlockFunction, args: tuple[Any, ...]) -> Any:
    chosen = block.only_selected()
    return function(replace(chosen, selected=chosen.outcome > above), *args)


def _marked(
    block: Block, above: float, function: Callable[..., Mask], args: tuple[Any, ...]
) -> Array:
    marks = namespace(block.selected).zeros_like(block.selected)
    marks[block.selected] = _on_outcome(block, above, function, args)
    return marks


def fit_outcome_probit(moments: Moments, rows: Rows, features: Positions) -> Probit:
    """Fit P(y = 1) = Phi(b_0 + x'b) to the selected rows; the features must not be collinear."""
    root = moments.subset(features, imr=False, outcome=False)
    return fit_probit(OutcomeRows(rows), features, Coordinates.from_factor(root))


def outcome_separation(rows: Rows, probit: Probit) -> Separation | None:
    """Find columns that decide the outcome of selected rows, unless the fit rules them out."""
    if probit.certified:
        return None
    return find_separation(OutcomeRows(rows), probit.features, probit.coordinates)


def separation_warning(separation: Separation, features: Positions, labels: Sequence[str]) -> str:
    """Say which columns decide an outcome that is observed in every row."""
    names = quoted_list([labels[features[place]] for place in separation.columns], MAX_NAMES)
    verb = "decides" if len(separation.columns) == 1 else "together decide"
    rows = "every row" if separation.complete else plural(separation.n_decided, "row")
    return (
        f"{names} {verb} the outcome of {rows}, so the probit has no finite maximum: its "
        "coefficients are large because the iteration stopped, and they have no standard errors"
    )


def independent_columns(moments: Moments, features: Positions) -> list[int]:
    """Return the features that are no combination of those before them."""
    dependencies_found = dependencies(moments.subset(features, imr=False, outcome=False))
    dependent = {item.column - 1 for item in dependencies_found}
    return [feature for place, feature in enumerate(features) if place not in dependent]


def fit_binary_selection(
    rows: Rows,
    selection_features: Positions,
    prediction: Positions,
    labels: Sequence[str],
    *,
    on_collinear: OnProblem = "error",
    on_separation: OnProblem = "error",
    check_left: Callable[[Rows], None] = lambda rows: None,
) -> tuple[Selection, Moments]:
    """Fit the selection equation, compress the selected rows, and make sure of the outcome.

    Columns of ``prediction`` that decide the outcome among the selected rows are refused, or left
    out of both equations together with the rows that they decide, selected or not.
    ``check_left`` is as in `fit_selection`.
    """
    away: list[int] = []
    suspects: list[int] = []
    deciding: list[int] = []
    n_decided = 0
    while True:
        selection = fit_selection(
            rows,
            [column for column in selection_features if column not in away],
            labels,
            on_collinear=on_collinear,
            on_separation=on_separation,
            suspects=suspects,
            check_left=check_left,
        )
        gone = {*away, *selection.separating}
        columns = [column for column in prediction if column not in gone]
        left_out = [*selection.separating, *away], n_decided + selection.n_decided
        n_selected, fewest = _count_classes(selection.rows, labels, *left_out)
        moments = gather(selection, columns, labels, n_selected, binary=True)
        # Without the rows that they decided, these are combinations of the others. Those of the
        # prediction equation alone go first.
        last = sorted(
            columns,
            key=lambda column: (column in suspects, column not in selection.probit.features),
        )
        kept = independent_columns(moments, last)
        lost = [column for column in suspects if column in columns and column not in kept]
        if lost:
            reason = "without those rows, the prediction features are collinear"
            say_dropped(lost, labels, reason)
        away = [*away, *selection.separating, *lost]
        columns = [column for column in columns if column not in lost]
        kept = independent_columns(moments, columns)
        _check_coefficients(n_selected, fewest, len(kept))
        probit = fit_outcome_probit(moments, selection.rows, kept)
        separation = outcome_separation(selection.rows, probit)
        if separation is None:
            break
        if on_separation != "drop" or separation.complete:
            counts = count_rows(OutcomeRows(selection.rows))
            refuse_separation(separation, counts, kept, labels, OUTCOME)
        suspects = [kept[place] for place in separation.columns]
        deciding += suspects
        scaling = probit.coordinates.mean, probit.coordinates.scale
        before, _ = count_rows(selection.rows)
        rows = selection.rows.without(_outside, *scaling, separation.direction, columns=kept)
        check_left(rows)
        n_left_out = before - count_rows(rows)[0]
        say_decided(n_left_out, suspects, labels, OUTCOME)
        n_decided += selection.n_decided + n_left_out
    return (
        Selection(
            rows=selection.rows,
            probit=selection.probit,
            dropped=list(dict.fromkeys([*selection.dropped, *away])),
            separating=list(dict.fromkeys(away)),
            n_decided=n_decided + selection.n_decided,
            outcome=probit,
            deciding=list(dict.fromkeys(deciding)),
        ),
        moments,
    )


def _count_classes(
    rows: Rows, labels: Sequence[str], away: Sequence[int], n_decided: int
) -> tuple[int, int]:
    """Count the selected rows, and those of the rarer class; refuse a single class.

    ``away`` are the columns that were left out because they decided so many rows.
    """
    n, n_positive = count_rows(OutcomeRows(rows))
    if n_positive in (0, n):
        if n_decided:
            names = quoted_list([labels[column] for column in dict.fromkeys(away)], MAX_NAMES)
            raise ConstantOutcomeError(
                f"without the {plural(n_decided, 'row')} that {names} decided, the outcome has one "
                f"class in all {n} selected rows; there is nothing to predict. Leave {names} out "
                "of the data: then no row is lost."
            )
        raise ConstantOutcomeError(
            f"the outcome has one class in all {n} selected rows of the fit; there is nothing to "
            "predict. Check that y is the right column."
        )
    return n, min(n_positive, n - n_positive)


def _check_coefficients(n: int, fewest: int, n_features: int) -> None:
    """Refuse as many coefficients as rows of the rarer class, even if they do not separate."""
    if fewest > n_features + 1:
        return
    verb = "is" if fewest == 1 else "are"
    raise TooFewRowsError(
        f"{plural(n_features, 'prediction feature')} and an intercept need more than "
        f"{plural(n_features + 1, 'selected row')} of each class: of {n:,}, {fewest:,} {verb} of "
        f"the rarer class. {FEWER_PREDICTING}, or collect more rows: a "
        "common rule is ten rows of the rarer class per feature."
    )


# Functions over one block of rows. -----------------------------------------------------------


def _outside(block: Block, centre: Floats, scale: Floats, direction: Floats) -> Array:
    """Mark the rows, selected or not, whose outcome the direction determines."""
    x = block.features
    side = (x - like(centre, x)) / like(scale, x) @ like(direction[1:], x) + float(direction[0])
    return namespace(x).abs(side) > TOLERANCE
