"""Which columns separate selected from unselected rows, by linear programming, and their refusal.

The probit has no finite maximum if some direction d has q_i x_i'd >= 0 in every row (q_i = +1 for
selected, -1 for unselected rows) and > 0 in some. Separation is complete if it is > 0 in all rows,
and quasi-complete otherwise (Albert and Anderson 1984; Konis 2007 finds d by a linear program, as
here). The program has one constraint per row. Passes over the data find the binding rows, and only
these go to the solver, so its size does not grow with n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy.optimize import linprog

from heckmanfa.data.arrays import Array, Floats, empty, host, like, order_of, signs
from heckmanfa.data.rows import Block, Mask, Merge, Positions, Rows, total
from heckmanfa.errors import DroppedFeaturesWarning, SeparationError, TooFewRowsError, warn
from heckmanfa.model.linalg import Coordinates
from heckmanfa.text.option_words import (
    EXCLUDED,
    FEWER_PREDICTING,
    FEWER_SELECTING,
    instead,
    option,
)
from heckmanfa.text.printable import quoted_list
from heckmanfa.text.wording import plural

# In units of standard deviations; the solver is asked for 1e-9.
TOLERANCE = 1e-6
_WORST_PER_BLOCK = 64
_CUTS_PER_ROUND = 512
_MAX_ROUNDS = 60
# More columns than this are first left out many at a time, and no further than so many programs go.
_ONE_BY_ONE = 60
_MAX_HALVINGS = 12
# A level with a larger share of the rows is not rare.
_RARE = 0.05
# Levels of fewer rows are worth merging, whichever of them separates.
_FEW_ROWS = 10
# Longer lists of separating columns are cut to a few names.
_SHOWN, _FEW = 8, 3
# A common minimum of rows of the rarer kind.
_ROWS_PER_FEATURE = 10


@dataclass(frozen=True)
class Separation:
    """A separating direction that uses few columns."""

    direction: Floats
    """(1 + p,) on standardised features, intercept first, largest entry 1 in size"""
    columns: tuple[int, ...]
    """indices, among the features, of the columns that it uses"""
    complete: bool
    """whether it determines the selection of every row"""
    n_decided: int
    """rows whose selection it determines"""


def find_separation(rows: Rows, features: Positions, coordinates: Coordinates) -> Separation | None:
    """Find a separating direction, or None if there is none.

    ``coordinates`` give the centre and scale of the features. Columns are removed greedily until
    none of the rest can be left out alone, or more are left than anyone would read.
    """
    search = _Search(rows, features, coordinates)
    allowed = np.ones(len(features) + 1, dtype=bool)
    direction = search.separating(allowed)
    if direction is None:
        return None
    direction, allowed = _thin_out(search, direction, allowed)
    few = np.count_nonzero(np.abs(direction[1:]) >= TOLERANCE) <= _ONE_BY_ONE
    # Small entries first: they are most likely unnecessary.
    for place in (np.argsort(np.abs(direction[1:]), kind="stable") + 1) if few else ():
        if abs(direction[place]) < TOLERANCE:
            allowed[place] = False
            continue
        fewer = allowed.copy()
        fewer[place] = False
        if not fewer[1:].any():
            break
        thinner = search.separating(fewer)
        if thinner is not None:
            direction, allowed = thinner, fewer
    complete = search.strictly_separating(allowed)
    if complete is not None:
        direction = complete
    direction = direction / np.abs(direction).max()
    columns = tuple(int(i) for i in np.flatnonzero(np.abs(direction[1:]) > TOLERANCE))
    (n_decided,) = total(search.map(_count_decided, direction, merge=total))
    if n_decided == 0:
        return None  # the gain was within the solver's tolerance
    return Separation(direction, columns, complete is not None, int(n_decided))


class _Search:
    """Linear programs over the rows that went to the solver so far."""

    def __init__(self, rows: Rows, features: Positions, coordinates: Coordinates) -> None:
        self._rows, self._features = rows, features
        self._scaling = coordinates.mean, coordinates.scale
        self._cuts = np.zeros((0, len(features) + 1))
        (self._pull,) = total(self.map(_pull, merge=total))

    def map(self, function: Callable[..., Any], *args: Any, merge: Merge) -> Iterator[Any]:
        """Apply a function to every block, with the centre and scale of the features."""
        return self._rows.map(function, *self._scaling, *args, columns=self._features, merge=merge)

    def separating(self, allowed: Mask) -> Floats | None:
        """Maximise the sum of q_i x_i'd over the allowed columns, with all terms non-negative."""
        size = max(float(np.abs(self._pull).max()), 1e-300)
        for _ in range(_MAX_ROUNDS):
            direction = _solve(self._pull / size, self._cuts, allowed)
            if direction is None or self._pull @ direction <= 1e-9 * size:
                return None
            if not self._cut(direction, 0.0):
                return direction
        return None

    def strictly_separating(self, allowed: Mask) -> Floats | None:
        """Return a direction with q_i x_i'd > 0 in every row, if any, by maximising the least."""
        usable = np.append(allowed, True)
        # One more variable, the margin e, with q_i x_i'd - e >= 0.
        objective = np.append(np.zeros(len(allowed)), 1.0)
        for _ in range(_MAX_ROUNDS):
            wide = np.column_stack([self._cuts, np.full(len(self._cuts), -1.0)])
            solved = _solve(objective, wide, usable)
            if solved is None or solved[-1] <= TOLERANCE:
                return None
            if not self._cut(solved[:-1], float(solved[-1]) / 2):
                return solved[:-1]
        return None

    def _cut(self, direction: Floats, least: float) -> bool:
        """Give the solver the rows furthest below ``least``, and say if there are any."""
        parts = list(self.map(_short_of, direction, least, merge=np.concatenate))
        together = np.concatenate(parts)
        worst = np.argsort(together @ direction, kind="stable")[:_CUTS_PER_ROUND]
        self._cuts = np.concatenate([self._cuts, together[worst]])
        return len(together) > 0


def _thin_out(search: _Search, direction: Floats, allowed: Mask) -> tuple[Floats, Mask]:
    """Leave out many columns at a time, if there are very many: halves, quarters and so on."""
    share = 2
    for _ in range(_MAX_HALVINGS):
        size = np.abs(direction[1:])
        n_used = int(np.count_nonzero(size >= TOLERANCE))
        if n_used <= _ONE_BY_ONE or share > n_used:
            break
        fewer = allowed.copy()
        fewer[1 + np.argsort(size, kind="stable")[: len(size) - n_used + n_used // share]] = False
        thinner = search.separating(fewer)
        if thinner is None:
            share *= 2
        else:
            direction, allowed = thinner, fewer
    return direction, allowed


def _solve(objective: Floats, cuts: Floats, allowed: Mask) -> Floats | None:
    """Maximise a linear objective with cuts @ d >= 0, -1 <= d <= 1, and d = 0 if not allowed."""
    solved = linprog(
        -objective,
        A_ub=-cuts if len(cuts) else None,
        b_ub=np.zeros(len(cuts)) if len(cuts) else None,
        bounds=[(-1.0, 1.0) if use else (0.0, 0.0) for use in allowed],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    return None if solved.x is None else np.asarray(solved.x, dtype=np.float64)


# Words. -------------------------------------------------------------------------------------------


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
    otherwise: str = (
        f"pass {option('on_separation', 'drop')} to leave out the column and those rows"
    )
    """what to do if the columns are to stay"""


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
TREATMENT = Separated(
    response="treatment",
    equation="treatment",
    between="treated from untreated rows",
    among="{n:,} rows, of which {positive:,} are treated",
    counts="{positive:,} are treated and {other:,} are not",
    itself=f"Check for a column that is another form of the treatment, and leave it out{EXCLUDED}",
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
    counts: tuple[int, int],
    features: Positions,
    labels: Sequence[str],
    words: Separated = SELECTION,
) -> NoReturn:
    """Refuse columns that separate rows, by name.

    As many columns as rows of the rarer kind, or half as many as rows in total (Cover, 1965), can
    be expected to separate whatever they hold. Then none is named, but one or two columns that
    separate by themselves. ``counts`` are all rows, and the selected or positive ones.
    """
    n, positive = counts
    fewest, k = min(positive, n - positive), len(features) + 1
    if len(separation.columns) <= 2 or (k < fewest and n > 2 * k):
        text = _separation_text(separation, features, labels, n, positive, words)
        raise SeparationError(text, [features[place] for place in separation.columns])
    of_each = words.counts.format(positive=positive, other=n - positive)
    usual = max(fewest // _ROWS_PER_FEATURE, 1)
    raise TooFewRowsError(
        f"{len(features)} {words.equation} features are too many for these rows: {of_each}, and so "
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
        + listed(support, labels),
        DroppedFeaturesWarning,
    )


def listed(columns: Sequence[int], labels: Sequence[str]) -> str:
    """Name some columns of X."""
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
    if separation.n_decided > _RARE * n:
        # No level is that rare: such a column says who is selected, or who cannot be.
        return f"{certain} {words.itself}, or {words.otherwise}."
    few = max(_FEW_ROWS, separation.n_decided + 1)
    return (
        f"{certain} Leave the column out{EXCLUDED}, merge "
        + instead(
            f"its rare level (fewer than {few:,} rows) with another",
            f"rare levels of a category with {option('min_level_rows', few)}",
        )
        + f", or {words.otherwise}."
    )


# Functions over one block of rows. -----------------------------------------------------------


def _signed(block: Block, centre: Floats, scale: Floats) -> Array:
    x = block.features
    design = empty(x, x.shape[0], x.shape[1] + 1)
    design[:, 0] = 1.0
    design[:, 1:] = (x - like(centre, x)) / like(scale, x)
    return design * signs(block.selected, x)[:, None]


def _pull(block: Block, centre: Floats, scale: Floats) -> tuple[Floats]:
    return (host(_signed(block, centre, scale).sum(axis=0)),)


def _short_of(
    block: Block, centre: Floats, scale: Floats, direction: Floats, least: float
) -> Floats:
    signed = _signed(block, centre, scale)
    side = signed @ like(direction, signed)
    worst = order_of(side)[:_WORST_PER_BLOCK]
    return host(signed[worst[side[worst] < least - TOLERANCE]])


def _count_decided(block: Block, centre: Floats, scale: Floats, direction: Floats) -> tuple[int]:
    return (int(decided(block, centre, scale, direction).sum()),)


def decided(block: Block, centre: Floats, scale: Floats, direction: Floats) -> Array:
    """Mark the rows whose selection the direction determines."""
    signed = _signed(block, centre, scale)
    return signed @ like(direction, signed) > TOLERANCE
