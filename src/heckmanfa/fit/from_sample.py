"""`fit_model`, the only way to make a `Fit`.

It fits the selection equation, compresses the selected rows, lets ``choose`` pick the prediction
features, and estimates their coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from heckmanfa.data.fitted_levels import LevelsLeft
from heckmanfa.data.rows import Rows
from heckmanfa.data.sample import Sample
from heckmanfa.errors import SeparationError
from heckmanfa.fit.fitted import Choose, FirstStep, Fit, Origin, Spec
from heckmanfa.model.covariance import check_clusters, count_clusters
from heckmanfa.model.equations import Selection, with_selection_features
from heckmanfa.model.moments import Moments
from heckmanfa.text.printable import quoted


def fit_model(
    spec: Spec,
    sample: Sample,
    choose: Choose,
    random_state: Any = None,
    origin: Origin | None = None,
    check_left: Callable[[Rows], None] | None = None,
) -> Fit:
    """Fit both equations to a sample, with the prediction features that ``choose`` returns.

    ``check_left`` is as in `heckmanfa.model.equations.fit_selection`; by default, it is about the
    categories of X.
    """
    kind = spec.covariance_kind(sample.n_groups)
    n_clusters = check_clusters(sample.n_groups) if spec.cov_type == "cluster" else None
    alone = sample.all_selected and spec.family.needs_missing
    if alone:
        fit: Fit = spec.family.estimate_alone(spec, sample, kind)
        search = choose.without_selection(spec)
    else:
        left = LevelsLeft(spec.columns, [*spec.selection, *spec.prediction])
        # Replicates keep the columns of the fit, whatever levels their rows have.
        check = check_left or (left if spec.guarded else None)
        selection, moments = compress_sample(spec, sample, check)
        spec = replace(spec, columns=left.columns)
        if n_clusters is not None and selection.n_decided:
            n_clusters = check_clusters(count_clusters(selection.rows))
        first = FirstStep(spec, selection, moments, kind, random_state)
        choice = choose(first)
        search = choice.search
        if choice.selection is not None:
            given = choice.selection, spec.labels
            selection, moments = with_selection_features(selection, moments, *given)
            first = replace(first, selection=selection, moments=moments)
        counts = sample.row_counts | selection.row_counts()
        fit = spec.family.estimate(spec, selection, moments, choice, kind, counts)
    fit = replace(
        fit,
        n_clusters=n_clusters,
        weighted=sample.rows.weighted,
        search=search,
        origin=origin or Origin(),
    )
    if alone:
        return fit
    return choose.finish(fit, first)


def compress_sample(
    spec: Spec, sample: Sample, check_left: Callable[[Rows], None] | None = None
) -> tuple[Selection, Moments]:
    """Fit the selection equation and compress the selected rows.

    ``check_left`` is as in `heckmanfa.model.equations.fit_selection`.
    """
    try:
        selection: Selection
        selection, moments = spec.family.first_step(spec, sample, check_left or _unchecked)
        return selection, moments
    except SeparationError as error:
        # The level that all dummies of a category say together has no name among the columns.
        levels = spec.columns.references_of(error.columns)
        if not levels:
            raise
        hints = [
            f" These are all dummies of {quoted(name)}: look at its reference, {quoted(level)}."
            for name, level in levels.items()
        ]
        raise SeparationError(f"{error}{''.join(hints)}", error.columns) from error


def _unchecked(rows: Rows) -> None:
    """Take any rows."""
