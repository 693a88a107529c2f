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
from heckmanfa.fit.binary import fit_binary, fit_binary_without_selection
from heckmanfa.fit.fitted import Choose, Fit, Origin, Spec
from heckmanfa.fit.linear import fit_linear, fit_linear_without_selection
from heckmanfa.model.covariance import check_clusters, count_clusters
from heckmanfa.model.equations import Selection, fit_selection, gather
from heckmanfa.model.moments import Moments
from heckmanfa.model.outcome_probit import fit_binary_selection
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
    binary = spec.outcome_kind == "binary"
    if sample.all_selected:
        fit_alone = fit_binary_without_selection if binary else fit_linear_without_selection
        fit = fit_alone(spec, sample, kind)
        search = choose.without_selection(spec)
    else:
        left = LevelsLeft(spec.columns, [*spec.selection, *spec.prediction])
        # Replicates keep the columns of the fit, whatever levels their rows have.
        check = check_left or (left if spec.guarded else None)
        selection, moments = compress_sample(spec, sample, check)
        spec = replace(spec, columns=left.columns)
        if n_clusters is not None and selection.n_decided:
            n_clusters = check_clusters(count_clusters(selection.rows))
        choice = choose(spec, selection, moments, kind, random_state)
        search = choice.search
        counts = sample.row_counts | selection.row_counts()
        fit_both = fit_binary if binary else fit_linear
        fit = fit_both(spec, selection, moments, choice, kind, counts)
    fit = replace(
        fit,
        n_clusters=n_clusters,
        weighted=sample.rows.weighted,
        search=search,
        origin=origin or Origin(),
    )
    if sample.all_selected:
        return fit
    return choose.finish(fit, selection, kind, random_state)


def compress_sample(
    spec: Spec, sample: Sample, check_left: Callable[[Rows], None] | None = None
) -> tuple[Selection, Moments]:
    """Fit the selection equation and compress the selected rows.

    ``check_left`` is as in `heckmanfa.model.equations.fit_selection`.
    """
    try:
        return _compress(spec, sample, check_left or _unchecked)
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


def _compress(
    spec: Spec, sample: Sample, check_left: Callable[[Rows], None]
) -> tuple[Selection, Moments]:
    if spec.outcome_kind == "binary":
        return fit_binary_selection(
            sample.rows,
            spec.selection,
            spec.prediction,
            spec.labels,
            on_collinear=spec.on_collinear,
            on_separation=spec.on_separation,
            check_left=check_left,
        )
    selection = fit_selection(
        sample.rows,
        spec.selection,
        spec.labels,
        on_collinear=spec.on_collinear,
        on_separation=spec.on_separation,
        check_left=check_left,
    )
    prediction = [column for column in spec.prediction if column not in selection.separating]
    return selection, gather(selection, prediction, spec.labels, sample.row_counts["selected"])
