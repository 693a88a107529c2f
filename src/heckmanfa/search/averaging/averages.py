"""`average`: weigh the assignments of a form, all of them or a sample."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.errors import InputError, NoFeasibleAssignmentError, SearchWarning, warn
from heckmanfa.search.averaging.average_outcome import PROBABLE
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.enumeration import Enumeration, enumerate_assignments
from heckmanfa.search.averaging.exhaustive import estimates_of, kept_of
from heckmanfa.search.averaging.gibbs import AGREEMENT, most_sweeps, sample_assignments
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.averaging.result import Average, Estimates, Kept, put_together
from heckmanfa.search.averaging.sampled import sampled_estimates, sampled_kept
from heckmanfa.search.averaging.weights import (
    ALL_FEATURES_SHARE,
    EVEN,
    MOST_COLUMNS,
    Correction,
    Odds,
    Rule,
)
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form
from heckmanfa.text.chances import CHANCES_BY
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.progress import progress_line

# The same fit gets the same words.
_SEED = 0

MOST_UNITS = 22
"""With more units than this, the correction and the index among them, assignments are sampled."""


def average(
    form: Form,
    choices: Choices,
    *,
    weights: str = "bic",
    correction: Correction = "optional",
    odds: Odds = EVEN,
    all_features_share: float = ALL_FEATURES_SHARE,
    rho_range: Any = None,
    random_state: Any = None,
    max_units: int = MOST_UNITS,
    max_sweeps: int | None = None,
    verbose: int = 0,
    selecting: Choices | None = None,
) -> Average:
    """Average over all assignments of the choices, the empty one included.

    ``selecting`` are the choices of the selection equation, if both equations are searched.

    An assignment weighs nothing if it has more than ``max_features`` or m / 3 columns, if it holds
    the index and drops fewer than two of its columns, or if rho lies outside ``rho_range``. Above
    ``max_units`` units, assignments are sampled, in at most ``max_sweeps`` sweeps. Intervals give
    ``all_features_share`` of their weight to the assignment that holds everything.
    ``random_state`` seeds the sampler, and the draw of components if there are too many
    assignments for intervals.
    """
    columns = Columns.of(form, choices, correction, odds, selecting)
    rule = Rule.of(form.n_selected, columns.choices, weights, rho_range, form.n_fixed)
    _refuse_few_rows(rule, columns.choices)
    random, n_units = generator(random_state), len(columns.order)
    if n_units > max_units:
        estimates, kept = _sampled(columns, rule, random, max_sweeps, verbose)
        return put_together(columns, rule, estimates, kept, all_features_share)
    line = progress_line(verbose, "average", "assignments", 1 << n_units)
    with one_blas_thread(), line as progress:
        found = enumerate_assignments(columns, rule, progress=progress)
        _refuse_empty(found)
        kept = kept_of(found, random)
    return put_together(columns, rule, estimates_of(found), kept, all_features_share)


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


def _refuse_empty(found: Enumeration) -> None:
    """Refuse a window of rho that holds no assignment."""
    if np.isfinite(found.cost).any():
        return
    known = found.rho[np.isfinite(found.rho)]
    seen = f": they have rho from {known.min():.3g} to {known.max():.3g}" if len(known) else ""
    window = ""
    if found.rule.rho_range is not None:
        low, high = found.rule.rho_range
        window = f" with rho in [{low:g}, {high:g}]"
    raise NoFeasibleAssignmentError(
        f"no assignment{window} has weight among {len(found.rho):,}{seen}. Widen "
        f"{option('rho_range')}{instead(', or raise max_features', '')}."
    )


def _sampled(
    columns: Columns,
    rule: Rule,
    random: np.random.Generator,
    max_sweeps: int | None,
    verbose: int,
) -> tuple[Estimates, Kept]:
    """Average over sampled assignments."""
    if rule.rho_range is not None:
        raise InputError(
            f"{option('rho_range')} needs every assignment evaluated, and that takes at most "
            f"{MOST_UNITS} features and groups, the correction and the index among them; there "
            f"are {len(columns.order)}. Leave it out, name fewer in "
            f"{option('prediction_features')}{instead(', or group some with feature_groups', '')}."
        )
    most = most_sweeps(len(columns.order), max_sweeps)
    line = progress_line(verbose, "average", "sweeps of the sampler", most, at_most=True)
    with one_blas_thread(), line as progress:
        found = sample_assignments(columns, rule, random, max_sweeps=max_sweeps, progress=progress)
    if found.disagreement > AGREEMENT:
        warn(
            "the shares of weight are uncertain: two halves of the sampled chains differ by up to "
            f"{found.disagreement:.3f} after {len(found.cost)} sweeps. Nearly equal features do "
            f"this{instead(': group them with feature_groups', '')}.",
            SearchWarning,
        )
    return sampled_estimates(found, columns, rule), sampled_kept(found, columns, rule)


def with_drivers(form: Form, selecting: Choices) -> Form:
    """Return a form of both equations whose index holds only what probably drives selection.

    The estimates of the selection equation and their covariance are a form of their own. It gives
    each feature or group, ``selecting``, its chance to drive selection.
    """
    k = len(form.searched)
    own = form.free[len(form.columns) + 1 :]
    estimates, covariance = np.zeros(k + 3), np.eye(k + 3)
    estimates[1 : k + 1] = form.estimates[own]
    covariance[1 : k + 1, 1 : k + 1] = form.covariance[np.ix_(own, own)]
    equation = Form(
        columns=form.searched,
        selection=(),
        n_features=form.n_features,
        n_selected=form.n_selected,
        errors="binary",
        estimates=estimates,
        covariance=covariance,
    )
    with warnings.catch_warnings():
        # The average over both equations, with the same features, says whether chains agree.
        warnings.simplefilter("ignore", SearchWarning)
        found = average(equation, selecting, weights="bic", correction="never", random_state=_SEED)
    chances = found.shares[CHANCES_BY]
    return replace(form, drivers=tuple(c for c in form.columns if chances[c] >= PROBABLE))


def without_correction(form: Form, found: Average) -> tuple[Members, Floats | None]:
    """Return the same assignments as least squares has them: none holds the correction.

    Beside them are the BIC shares of the columns of X, (K,), if they are known. Sampled assignments
    are weighed again instead of sampled again: one that was drawn with or without the correction
    counts by how much of its weight is without.
    """
    if found.exhaustive or found.correction == "never":
        alike = found
        if found.correction != "never":
            by = found.weights
            alike = average(
                form,
                found.choices,
                weights=by,
                correction="never",
                random_state=_SEED,
                selecting=found.selecting,
            )
        return alike.members(form), alike.shares[CHANCES_BY]
    states, place = found.component_states, -2
    without, inside = states.copy(), states.copy()
    without[:, place], inside[:, place] = False, True
    kind = "aic" if found.weights == "mean" else found.weights
    even = np.full(len(states), 1.0 / len(states))
    with_it, without_it = (
        found.criteria(some, Members(form, some, even).costs)[kind] for some in (inside, without)
    )
    apart = with_it - without_it
    ratio = found.component_weights / (1.0 + np.exp(-0.5 * np.clip(apart, -1400.0, 1400.0)))
    weights = ratio / ratio.sum()
    share = None
    if kind == "bic":
        moved = form.direction[: len(form.columns)] != 0.0
        either = without[:, : form.n_features].copy()
        either[:, list(form.columns)] |= without[:, -1:] & moved
        share = weights @ either
    return Members(form, without, weights), share
