"""How a `Fit` is made: `fit_model`, and what families' estimators share.

`fit_model` fits the selection equation, compresses the selected rows, lets ``choose`` pick the
prediction features, and has the family estimate their coefficients, given its `Inputs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.fitted_levels import LevelsLeft
from heckmanfa.data.outcome_classes import Classes
from heckmanfa.data.rows import Positions, Rows
from heckmanfa.data.sample import Sample, read_sample
from heckmanfa.errors import AllObservedWarning, SeparationError, warn
from heckmanfa.fit.fitted import EquationEstimate, ErrorEstimate, Fit, Origin, Spec
from heckmanfa.fit.survey_fits import survey_design, with_replicate_covariance
from heckmanfa.model.covariance import CovarianceKind, count_clusters
from heckmanfa.model.equations import Selection, weighted_count, with_selection_features
from heckmanfa.model.likelihood import JointMaximum
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit, probit_covariance
from heckmanfa.model.unit_totals import check_counts
from heckmanfa.search.searched import SearchOutcome
from heckmanfa.text.printable import quoted


@dataclass(frozen=True)
class Choice:
    """The prediction features of a fit, and how they were found."""

    features: tuple[int, ...]
    dropped: tuple[int, ...] = ()
    search: SearchOutcome | None = None
    everything: bool = False
    """whether the features are all that may predict, to be weighed after the fit"""
    selection: tuple[int, ...] | None = None
    """columns of the selection equation, if these were chosen as well; None is all of them"""
    rho: float | None = None
    """at a maximum that the search found, should maximum likelihood run past it to |rho| = 1"""


@dataclass(frozen=True, eq=False)
class FirstStep:
    """The selection equation of a model and its compressed data, before features are chosen."""

    spec: Spec
    selection: Selection
    """the selection equation, fitted, and the rows that it was fitted to"""
    moments: Moments
    kind: CovarianceKind
    random_state: Any = None
    counts: dict[str, int] = field(default_factory=dict)
    """every row given, by status"""

    @property
    def probit(self) -> Probit:
        """The selection equation."""
        return self.selection.probit

    @property
    def rows(self) -> Rows:
        """The rows of both equations."""
        return self.selection.rows


class Choose(Protocol):
    """Chooses the prediction features."""

    @property
    def by_covariance(self) -> bool:
        """Whether what is chosen depends on the covariance of the estimates of all features."""
        return False

    def __call__(self, first: FirstStep) -> Choice:
        """Choose, from the selection equation and the compressed data."""

    def without_selection(self, spec: Spec) -> SearchOutcome | None:
        """Return the outcome of a search that did not run, since no outcome is missing."""
        return None

    def finish(self, fit: Fit, first: FirstStep) -> Fit:
        """Return the fit to report; ``first`` has the selection equation that was chosen."""
        return fit

    def for_replicates(self) -> Choose:
        """Return the same for many fits of which only the estimates are used."""
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class Inputs(FirstStep):
    """What a family estimates from, once the prediction features are chosen."""

    choice: Choice

    @property
    def features(self) -> tuple[int, ...]:
        """The chosen features, in the order of X."""
        return tuple(sorted(self.choice.features))

    @property
    def n_obs(self) -> int | float:
        """Number of rows, as `count` has it."""
        n_rows = self.counts["unselected"] + self.counts["selected"]
        return count(self.probit.n, n_rows, self.kind)


class PassedRows(NamedTuple):
    """Rows as a user passes them to ``fit``, and again to methods that need them."""

    X: Any = None
    y: Any = None
    selected: Any = None
    sample_weight: Any = None
    groups: Any = None


def sample_of(
    spec: Spec, table: FeatureTable, passed: PassedRows, classes: Classes | None = None
) -> Sample:
    """Read the rows that a model uses, given X as a table; ``classes`` are those of a fit."""
    return read_sample(
        table,
        passed.y,
        selected=passed.selected,
        sample_weight=passed.sample_weight,
        groups=passed.groups,
        sampling=spec.weight_kind == "sampling",
        selection=spec.selection,
        prediction=spec.prediction,
        required=spec.required,
        binary=spec.family.has_classes,
        classes=classes,
        learn=spec.learn_classes,
        transform=spec.outcome_transform,
        everyone=spec.family.sees_everyone,
    )


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
    if spec.family.of_number is not None and sample.classes is not None:
        spec = replace(spec, number=len(sample.classes))
    kind = spec.covariance_kind(sample.cells)
    clusters: tuple[int, ...] = ()
    if spec.cov_type == "cluster" and sample.cells is not None:
        clusters = sample.cells.counts(np.ones(sample.cells.n, dtype=bool))
        check_counts(clusters)
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
        if clusters and sample.cells is not None and selection.n_decided:
            clusters = count_clusters(selection.rows, sample.cells)
        counts = sample.row_counts | selection.row_counts()
        first = FirstStep(spec, selection, moments, kind, random_state, counts)
        choice = choose(first)
        search = choice.search
        if choice.selection is not None:
            selection, moments = with_selection_features(
                selection, moments, choice.selection, spec.labels
            )
            first = replace(first, selection=selection, moments=moments)
        fit = spec.family.estimate(Inputs(**vars(first), choice=choice))
    fit = replace(
        fit,
        n_clusters=check_counts(clusters) if clusters else None,
        n_first_clusters=clusters[0] if len(clusters) > 1 else None,
        n_second_clusters=clusters[1] if len(clusters) > 1 else None,
        design=None if spec.survey is None else survey_design(spec, sample),
        weighted=sample.rows.weighted,
        search=search,
        origin=origin or Origin(),
    )
    if not alone:
        fit = choose.finish(fit, first)
    if spec.survey is not None and spec.survey.replicate_weights is not None:
        return with_replicate_covariance(fit, sample, _refit_chosen)
    return fit


class _Chosen(Choose):
    """Takes the prediction features of the `Spec`."""

    def __call__(self, first: FirstStep) -> Choice:
        return Choice(first.spec.prediction)


def _refit_chosen(spec: Spec, sample: Sample) -> Fit:
    return fit_model(spec, sample, _Chosen(), 0)


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


# What families make fits of. ---------------------------------------------------------------


def count(weights: float, rows: int, kind: CovarianceKind) -> int | float:
    """Count rows: frequency weights are summed, sampling weights are not."""
    return weighted_count(rows if kind.sampling else weights)


def error_estimates(**values: Any) -> dict[str, ErrorEstimate]:
    """Return estimates of error terms, by name, on no other scale than their own."""
    return {name: ErrorEstimate(float(value)) for name, value in values.items()}


def _spread_over(spec: Spec, columns: Positions, coef: Floats) -> EquationEstimate:
    """Return the estimate of an equation, given its intercept and coefficients of some columns."""
    spread = np.zeros(len(spec.labels))
    spread[list(columns)] = coef[1:]
    return EquationEstimate(spread, float(coef[0]))


def fit_of_equations(
    inputs: Inputs,
    features: Positions,
    equations: Mapping[str, Floats],
    errors: dict[str, ErrorEstimate],
    error_terms: Sequence[str],
    **known: Any,
) -> Fit:
    """Return the fit of the family's equations, (1 + J,) or (1 + p,), and what else is known of it.

    ``error_terms`` are those that the covariance has.
    """
    spec, probit = inputs.spec, inputs.probit
    columns = {"prediction": features, "selection": probit.features, "none": ()}
    return Fit(
        spec=spec,
        row_counts=inputs.counts,
        n_obs=inputs.n_obs,
        n_selected=count(inputs.moments.n_selected, inputs.counts["selected"], inputs.kind),
        moments=inputs.moments,
        dropped=tuple(dict.fromkeys([*inputs.selection.dropped, *inputs.choice.dropped])),
        support=np.isin(np.arange(len(spec.labels)), features),
        equations={
            equation.name: _spread_over(spec, columns[equation.columns], equations[equation.name])
            for equation in spec.family.equations
        },
        errors=errors,
        terms=label_terms(spec, features, probit, error_terms),
        index_range=known.pop("index_range", inputs.moments.index_range),
        converged=known.pop("converged", probit.converged),
        **known,
    )


def fit_of_maximum(inputs: Inputs, maximum: JointMaximum) -> Fit:
    """Return the fit of maximum-likelihood estimates, by any family."""
    aic, bic = maximum.criteria(inputs.n_obs)
    # The covariance has the order of the likelihood, and its labels that of the family.
    assert [*maximum.equations] == [equation.name for equation in inputs.spec.family.equations]
    return fit_of_equations(
        inputs,
        maximum.features,
        maximum.equations,
        _errors_of_maximum(inputs.spec, maximum),
        inputs.spec.error_terms,
        adjusted_r2=float("nan"),
        aic=aic,
        bic=bic,
        log_likelihood=maximum.log_likelihood,
        params=maximum.params,
        converged=inputs.probit.converged and maximum.converged,
        covariance=_likelihood_covariance(inputs, maximum),
        index_range=maximum.index_range,
        doubts=maximum.doubts,
        # If the maximization stopped short, there is no first maximum either.
        second_maximum=maximum.second_maximum if maximum.converged else None,
    )


def _errors_of_maximum(spec: Spec, maximum: JointMaximum) -> dict[str, ErrorEstimate]:
    """Return the estimates of the errors; what is held was not estimated, and keeps its digits."""
    values = maximum.values
    if spec.family.can("single rho"):
        values |= {"imr": maximum.rho * maximum.sigma} if spec.family.has_imr else {}
        values |= {"sigma": maximum.sigma}
    errors = error_estimates(**{name: values[name] for name in (*spec.error_terms, *values)})
    spread = np.sqrt(np.diag(maximum.covariance))
    spread = spread[len(spread) - len(maximum.errors) :]
    for (name, value), error in zip(maximum.errors.items(), spread, strict=True):
        errors[name] = replace(errors[name], transformed=(value, float(error)))
    return errors | error_estimates(**spec.held)


def _likelihood_covariance(inputs: Inputs, maximum: JointMaximum) -> Floats:
    """Return the covariance to report.

    If the curvature does not give it, only the selection equation has one: its probit alone, in
    which there is no rho.
    """
    covariance = maximum.reported_covariance()
    if not maximum.errors_hold:
        # On the input's scale, the selection equation comes last.
        n = sum(map(len, maximum.equations.values()))
        own = slice(n - len(maximum.equations["selection"]), n)
        covariance[own, own] = probit_covariance(inputs.rows, inputs.probit, inputs.kind)
    return covariance


def fit_without_selection(
    spec: Spec,
    sample: Sample,
    kind: CovarianceKind,
    moments: Moments,
    coef: Floats,
    errors: dict[str, ErrorEstimate],
    **known: Any,
) -> Fit:
    """Return the fit of the prediction equation alone, (1 + J,), if no outcome is missing."""
    k, n = len(spec.labels), count(moments.n_selected, sample.row_counts["selected"], kind)
    return Fit(
        spec=spec,
        row_counts=dict(sample.row_counts),
        n_obs=n,
        n_selected=n,
        moments=moments,
        dropped=(),
        support=np.isin(np.arange(k), spec.prediction),
        equations={
            "prediction": _spread_over(spec, sorted(spec.prediction), coef),
            "selection": EquationEstimate(np.zeros(k), float("inf")),
        },
        errors=errors,
        terms=label_terms(spec, spec.prediction, None, []),
        index_range=moments.index_range,
        **known,
    )


def warn_of_no_selection(
    spec: Spec, sample: Sample, fitted: str, advice: str = "", *, underdetermined: bool
) -> None:
    """Warn that no outcome is missing, and say what is fitted instead."""
    held = [f"a {name} of {value:g} changes nothing" for name, value in spec.held.items()]
    extra = (
        f" The {len(spec.prediction)} features are collinear or more than the rows can identify: "
        "the coefficients are the minimum-norm ones."
        if underdetermined
        else ""
    )
    warn(
        f"no outcome is missing among the {sample.row_counts['selected']} rows, so there is no "
        f"selection to correct for: {fitted} is fitted, and "
        f"{' and '.join(held) or 'rho is not identified'}.{advice}{extra}",
        AllObservedWarning,
    )


def label_terms(
    spec: Spec, features: Positions, probit: Probit | None, errors: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Label the rows of a covariance: the equations, then terms of the errors."""
    columns: dict[str, list[int]] = {"prediction": sorted(features), "none": []}
    if probit is not None:
        columns["selection"] = list(probit.features)
    terms = []
    for equation in spec.family.equations:
        if equation.columns in columns:
            names = [
                equation.constant,
                *(spec.labels[column] for column in columns[equation.columns]),
            ]
            terms += [(equation.name, name) for name in names]
    return (*terms, *(("errors", term) for term in errors))
