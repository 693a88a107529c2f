"""`average`: weigh the assignments of some choices, all of them or a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.errors import NoFeasibleAssignmentError, SearchWarning, warn
from heckmanfa.model.moments import Moments
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.enumeration import enumerate_assignments
from heckmanfa.search.averaging.exhaustive import estimates_of, kept_of
from heckmanfa.search.averaging.gibbs import (
    AGREEMENT,
    NoStateError,
    most_sweeps,
    sample_assignments,
)
from heckmanfa.search.averaging.result import Average, ImrShares, put_together
from heckmanfa.search.averaging.sampled import sampled_estimates, sampled_imr_shares, sampled_kept
from heckmanfa.search.averaging.weights import KINDS, MOST_COLUMNS, Refitted, Rule
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import no_feasible
from heckmanfa.search.quadratic import QuadraticForm
from heckmanfa.text.progress import progress_line

MOST_UNITS = 22
"""With more units than this, assignments are sampled."""


def average(
    moments: Moments,
    choices: Choices,
    *,
    weights: str = "aic",
    rho_range: Any = None,
    names: Sequence[str] | None = None,
    random_state: Any = None,
    max_units: int = MOST_UNITS,
    max_sweeps: int | None = None,
    verbose: int = 0,
    form: QuadraticForm | None = None,
    refitted: Refitted | None = None,
) -> Average:
    """Average over all assignments of the choices, the empty one included.

    An assignment weighs nothing if it is collinear, has more than ``max_features`` or m / 3
    columns, or has rho-hat outside ``rho_range``. Above ``max_units`` units, assignments are
    sampled, in at most ``max_sweeps`` sweeps. ``names`` label the columns of X in messages.
    ``random_state`` seeds the sampler, and the draw of components if the heaviest assignments do
    not suffice. With a likelihood's ``form``, the moments are those of
    `QuadraticForm.as_moments`; assignments that were ``refitted`` weigh what their likelihood says,
    unless assignments are sampled.

    Examples
    --------
    >>> from heckmanfa import compress
    >>> from heckmanfa.datasets import make_selection
    >>> from heckmanfa.search import all_features
    >>> from heckmanfa.search.averaging import average
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> moments = compress(data.X, data.y).moments
    >>> found = average(moments, all_features(moments), weights="bic")
    >>> found.n_assignments, (found.shares["bic"] > 0.9).nonzero()[0].tolist()
    (64, [2, 3, 4])
    """
    return average_and_chances(
        moments,
        choices,
        weights=weights,
        rho_range=rho_range,
        names=names,
        random_state=random_state,
        max_units=max_units,
        max_sweeps=max_sweeps,
        verbose=verbose,
        form=form,
        refitted=refitted,
    )[0]


def average_and_chances(
    moments: Moments,
    choices: Choices,
    *,
    weights: str,
    rho_range: Any = None,
    names: Sequence[str] | None = None,
    random_state: Any = None,
    max_units: int = MOST_UNITS,
    max_sweeps: int | None = None,
    verbose: int = 0,
    form: QuadraticForm | None = None,
    refitted: Refitted | None = None,
) -> tuple[Average, Average | None]:
    """Return `average`, and if assignments were sampled, that by BIC weights from the same chains.

    Without the second, assignments can be weighed by BIC again in less time than the sampler's.
    """
    rule = Rule.of(moments, choices, weights, rho_range, form=form, refitted=refitted)
    _refuse_few_rows(rule, choices)
    columns = Columns.of(moments, choices)
    labels = [str(column) for column in range(choices.n_features)] if names is None else names
    random = generator(random_state)
    if len(choices.units) > max_units:
        return _sampled(moments, columns, rule, labels, random, max_sweeps, verbose)
    total = 1 << len(choices.units)
    with one_blas_thread(), progress_line(verbose, "average", "assignments", total) as progress:
        found = enumerate_assignments(columns, rule, progress=progress)
        kept = kept_of(found, labels, random)
    return put_together(moments, columns, rule, estimates_of(found), kept), None


def _refuse_few_rows(rule: Rule, choices: Choices) -> None:
    """Refuse choices of which none has weight, since even the smallest has too many columns."""
    if np.isfinite(rule.penalties["bic"]).any():
        return
    m, n_always = rule.n_selected, len(choices.always)
    if n_always > MOST_COLUMNS * m:
        raise NoFeasibleAssignmentError(
            f"always holds {n_always} columns, but an average gives weight only to assignments "
            f"with at most a third as many columns as selected rows, here {m:.6g}. Name at most "
            f"{int(MOST_COLUMNS * m)} in always, or fit them all with Heckman."
        )
    raise NoFeasibleAssignmentError(
        f"{m:.6g} selected rows are too few to weigh any assignment of an average"
    )


def _sampled(
    moments: Moments,
    columns: Columns,
    rule: Rule,
    names: Sequence[str],
    random: np.random.Generator,
    max_sweeps: int | None,
    verbose: int,
) -> tuple[Average, Average | None]:
    """Average over sampled assignments, by own weights and by BIC if that is another."""
    most = most_sweeps(len(columns.order), max_sweeps)
    line = progress_line(verbose, "average", "sweeps of the sampler", most, at_most=True)
    with one_blas_thread(), line as progress:
        try:
            found = sample_assignments(
                columns, rule, random, max_sweeps=max_sweeps, progress=progress
            )
        except NoStateError as error:
            masks = columns.masks(error.inside)
            raise no_feasible(rule.goal, error.n_evaluated, error.rho, masks, names) from None
    if found.disagreement > AGREEMENT:
        warn(
            "the shares of weight are uncertain: two halves of the sampled chains differ by up to "
            f"{found.disagreement:.3f} after {len(found.sse)} sweeps. Nearly equal features and "
            "narrow windows of rho do this: group such features with feature_groups, or widen "
            "rho_range.",
            SearchWarning,
        )
    own, by_bic = (
        put_together(
            moments,
            columns,
            by,
            sampled_estimates(found, columns, by),
            sampled_kept(found, columns, by),
        )
        for by in (rule, replace(rule, weights="bic"))
    )
    return own, None if rule.weights == "bic" else by_bic


def imr_shares(
    moments: Moments,
    choices: Choices,
    *,
    rho_range: Any = None,
    random_state: Any = None,
    max_units: int = MOST_UNITS,
    form: QuadraticForm | None = None,
) -> ImrShares:
    """Weigh the assignments again, each of them also without lambda.

    Without lambda, rho is zero and there is one coefficient fewer; criteria are otherwise the same.
    Assignments that weigh nothing with lambda do not compete without it either.
    """
    if len(choices.units) > max_units:
        return sampled_imr_shares(moments, choices, rho_range, generator(random_state), form)
    both = []
    for imr in (True, False):
        rule = Rule.of(moments, choices, "bic", rho_range, imr=imr, form=form)
        columns = Columns.of(moments, choices, imr=imr)
        with one_blas_thread():
            both.append(enumerate_assignments(columns, rule, estimates=False))
    held, free = both
    free.log_sse[np.isinf(held.log_sse)] = np.inf
    with_imr, without = {}, {}
    for kind in KINDS:
        sums = held.sums[kind]
        total = sums.total or np.nan
        with_imr[kind] = np.append(1.0, sums.inclusion / total)
        without[kind] = free.shares_of(free.weights(kind, sums.best, total))
    return ImrShares.of(held.columns, with_imr, without)
