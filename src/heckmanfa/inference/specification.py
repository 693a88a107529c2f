"""Tests of what a selection model assumes: normal errors, equal variances, functional form.

Two kinds of test need one pass over the rows each. In the probit, regressors are added to the
score (the artificial regression of Davidson and MacKinnon, 1984, with the expected information).
In the second step of Algorithm 1, columns are added to [1, X_S, lambda], and their coefficients are
tested with Heckman's covariance. These are zero under the model, so it does not matter that the
columns are functions of estimates. `heckmanfa.inference.outcome_moments` tests normality in the
prediction equation.

In the prediction equation of the Heckman probit, columns are added to x'b, and the model is fitted
again: the likelihood ratio tests their coefficients. With f = x'b at the estimates, f^2 and f^3
test normality against the Pearson family (Bera, Jarque and Lee, 1984), and f x_j the variance
exp(x'a) (Davidson and MacKinnon, 1984). f is standardised, which does not change what the columns
and [1, x] span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block, Mask, Merge, Positions, Rows, RowsView, one_blas_thread, pick
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.outcome_moments import normality_test
from heckmanfa.inference.rows_of_fit import FitRows, read_fit_rows, refit_by_likelihood
from heckmanfa.inference.specification_report import (
    BinarySpecificationTests,
    SpecificationTest,
    SpecificationTests,
)
from heckmanfa.model.covariance import CLASSICAL, is_classical
from heckmanfa.model.linalg import (
    Stacker,
    column_norms,
    residual_share,
    solve_upper,
    stack,
    subset_factor,
)
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.newton import inner_parameters, newton, newton_step
from heckmanfa.model.normal import mills
from heckmanfa.model.probit import Probit
from heckmanfa.model.probit_likelihood import ProbitMaximum, ProbitProblem
from heckmanfa.model.two_step import fit_two_step
from heckmanfa.results.distribution import NullDistribution
from heckmanfa.results.naming import held_value
from heckmanfa.results.search_facts import search_notes

# An added column with less than this share outside the span of the others adds nothing: its digits
# are those of functions of estimates.
_SAME_SPAN = 1e-9
_ROUNDING = 1e-14


_NOTES = (
    "Each test assumes that the rest of the model is right, so a fault in one place may show in "
    "several tests. Each rejects one true model in twenty.",
    "A test that does not reject proves nothing: it may miss the fault, or the rows may be "
    "too few.",
)
_BY_COVARIANCE = {
    "robust": "The tests are of the model itself, under which classical covariances are right: "
    'cov_type "robust" makes no difference to them.',
    "cluster": "The tests take rows as independent, groups or not: if rows of a group are alike, "
    "they reject too often.",
}


def specification_tests(
    fit: Fit, passed: PassedRows
) -> SpecificationTests | BinarySpecificationTests:
    """Test what a fitted model assumes; see `Heckman.specification_tests`."""
    fit.family.require("single rho")
    fit.family.require("specification tests")
    read, notes = _read_tested(fit, passed)
    with one_blas_thread():
        index = SelectionIndex.of(read.probit)
        if fit.family.has_classes:
            tests = [*probit_tests(read.rows, index, binary=True), *_prediction_tests(fit, read)]
            return BinarySpecificationTests(**{test.name: test for test in tests}, notes=notes)
        statistic, note = normality_test(fit, read)
        tests = [
            *probit_tests(read.rows, index),
            SpecificationTest("normality_prediction", statistic, 2, note),
            *_second_step_tests(read, index, fit.features),
        ]
    return SpecificationTests(**{test.name: test for test in tests}, notes=notes)


def _read_tested(fit: Fit, passed: PassedRows) -> tuple[FitRows, tuple[str, ...]]:
    """Read the rows of a fit to be tested, and return notes on its tests."""
    if fit.spec.weight_kind == "sampling" and (fit.weighted or passed.sample_weight is not None):
        raise InputError(
            "specification tests are not known for sampling weights: they assume that rows were "
            "drawn with equal probabilities. Fit without weights, or with weight_kind='frequency' "
            "if weights count rows."
        )
    if not fit.family.has_classes:
        fit.family.require("normal errors")
    read = read_fit_rows(fit, passed)
    notes = [*_NOTES]
    if fit.spec.cov_type is not None and not is_classical(fit.spec.cov_type):
        notes.append(_BY_COVARIANCE[fit.spec.cov_type])
    if fit.held_rho is not None:
        notes.append(
            f"The tests of the prediction equation estimate rho: it is {held_value(fit.held_rho)} "
            "in the model, and they say nothing about that value."
        )
    return read, (*notes, *search_notes(fit, "specification_tests"))


# Tests in the probit. ------------------------------------------------------------------------


@dataclass(frozen=True)
class SelectionIndex:
    """The index z'gamma, centred and scaled to keep the digits of its powers."""

    probit: Probit
    centre: float
    scale: float

    @classmethod
    def of(cls, probit: Probit) -> SelectionIndex:
        """Standardise by values close to its mean and spread."""
        coordinates = probit.coordinates
        centre = coordinates.design(coordinates.mean[None]).times(probit.inner_coef)
        scale = float(np.linalg.norm(probit.coef[1:] * coordinates.scale))
        return cls(probit, float(centre[0]), scale if scale > 0 else 1.0)

    def standard(self, u: Floats) -> Floats:
        """Return the index, standardised."""
        return (u - self.centre) / self.scale


def probit_tests(
    rows: Rows, index: SelectionIndex, *, binary: bool = False
) -> Iterator[SpecificationTest]:
    """Test the selection equation; ``binary`` says whether the model's outcome is."""
    p = len(index.probit.features)
    factors, score = Stacker(2 * p + 3), np.zeros(2 * p + 3)
    for factor, gradient in rows.map(_artificial, index, columns=index.probit.features):
        factors.add(factor)
        score += gradient
    r = factors.result()
    powers, products = [p + 1, p + 2], list(range(p + 3, 2 * p + 3))
    normality = _score_test("normality_selection", r, score, p + 1, powers)
    variance = _score_test("heteroskedasticity_selection", r, score, p + 1, products)
    yield from (replace(test, classes=binary) for test in (normality, variance))


def _artificial(block: Block, index: SelectionIndex) -> tuple[Floats, Floats]:
    """Return the factor of the artificial regressors [z, t^2, t^3, t z], and their total score.

    With u = z'gamma, phi / sqrt(Phi (1 - Phi)) is the root of lambda(u) lambda(-u), and a score
    is lambda(u) or -lambda(-u): no quotient of small numbers is left. t is the standardised u,
    which does not change the span of the regressors.
    """
    design = index.probit.coordinates.design(block.features)
    u = design.times(index.probit.inner_coef)
    z, t = design.scaled(np.ones(len(u))), index.standard(u)
    regressors = np.column_stack([z, t**2, t**3, t[:, None] * z[:, 1:]])
    up, down = mills(u)[0], mills(-u)[0]
    square, score = up * down, np.where(block.selected, up, -down)
    if block.weight is not None:
        square, score = square * block.weight, score * block.weight
    gradient = regressors.T @ score
    return stack([regressors * np.sqrt(square)[:, None]], regressors.shape[1]), gradient


def _score_test(
    name: str, r: Floats, score: Floats, n_present: int, added: Sequence[int]
) -> SpecificationTest:
    """Return the explained sum of squares of the artificial regression, from factor and score."""
    present = list(range(n_present))
    kept, note = independent_columns(r, present, added, "the selection features")
    if not kept:
        return SpecificationTest(name, float("nan"), 0, note)
    columns = [*present, *kept]
    standard = solve_upper(subset_factor(r, columns), score[columns], transposed=True)
    return SpecificationTest(name, float(np.sum(standard[n_present:] ** 2)), len(kept), note)


def independent_columns(
    r: Floats, present: Sequence[int], added: Sequence[int], what: str
) -> tuple[list[int], str]:
    """Return the added columns that are not combinations of others, and a note about the rest."""
    n_present, columns = len(present), subset_factor(r, [*present, *added])
    # Columns that are nearly collinear themselves, or far from zero, have fewer correct digits.
    lost = _ROUNDING / max(float(residual_share(columns)[:n_present].min()), _ROUNDING)
    least = max(_SAME_SPAN, lost) * column_norms(columns)[n_present:]
    rest, positions = columns[n_present:, n_present:], list(range(len(added)))
    if not np.all(np.abs(np.diag(rest)) > least):
        positions = []
        for position, length in enumerate(least):
            if abs(subset_factor(rest, [*positions, position])[-1, -1]) > length:
                positions.append(position)
    kept = [added[position] for position in positions]
    if len(kept) == len(added):
        return kept, ""
    if not kept:
        return kept, f"all that the test would add is a linear combination of {what}"
    counts = f"{len(added) - len(kept)} of the {len(added)} columns that the test adds"
    return kept, f"{counts} are linear combinations of {what} and one another"


# Tests in the second step. -------------------------------------------------------------------


def _second_step_tests(
    read: FitRows, index: SelectionIndex, features: Positions
) -> Iterator[SpecificationTest]:
    moments = read.moments
    mask = np.zeros(moments.n_features, dtype=bool)
    mask[list(features)] = True
    fitted = _FittedIndex.of(moments, moments.solve(mask).coef[list(moments.columns)])
    selecting = [moments.columns.index(column) for column in index.probit.features]
    columns = _CorrectionColumns(index, tuple(selecting), fitted)
    _, wide, more = _extend(read, columns, 4)
    yield _added_test("correction_form", wide, features, more[:2], read.rows)
    yield _added_test("reset", wide, features, more[2:], read.rows)


def _added_test(
    name: str, moments: Moments, features: Positions, added: Sequence[int], rows: Rows
) -> SpecificationTest:
    """Wald test of columns that are added to the second step."""
    assert moments.probit is not None
    present = [0, *moments.places(features), len(moments.columns) + 1]
    kept, note = independent_columns(
        moments.factor, present, moments.places(added), "the prediction features and lambda"
    )
    if not kept:
        return SpecificationTest(name, float("nan"), 0, note)
    # Columns orthogonal to [1, X_S, lambda] do not change beta_H, so the covariance is taken at the
    # estimates of the tested model; otherwise the test is the same.
    r = subset_factor(moments.factor, [*present, *kept])
    inverse = solve_upper(r, np.eye(len(r)))[:, len(present) :]
    whole, delta = moments.factor.copy(), moments.factor_delta.copy()
    for factor in (whole, delta):
        factor[:, kept] = factor[:, [*present, *kept]] @ inverse
    apart = replace(moments, factor=stack([whole], len(whole)), factor_delta=delta)
    chosen = [moments.columns[position - 1] for position in kept]
    fit = fit_two_step(apart, moments.probit, [*features, *chosen], CLASSICAL, rows)
    block = slice(len(features) + 1, len(features) + 1 + len(kept))
    covariance = fit.covariance[block, block]
    if not np.all(np.isfinite(covariance)) or not np.linalg.eigvalsh(covariance)[0] > 0:
        note = "the two-step covariance is not positive definite, or the selected rows are too few"
        return SpecificationTest(name, float("nan"), len(kept), note)
    wald = NullDistribution().wald(fit.coef[block], covariance)
    return SpecificationTest(name, wald.statistic, wald.df, note)


# Tests of the Heckman probit's prediction equation. -----------------------------------------------

# Heights are then known to this many units of log-likelihood.
_DECREMENT = 1e-8


def _prediction_tests(fit: Fit, read: FitRows) -> Iterator[SpecificationTest]:
    # Honest estimates are not at the maximum of the likelihood.
    base = refit_by_likelihood(fit, read, fit.features, classical=True, alone=True)
    if not isinstance(base, ProbitMaximum):
        raise NotIdentifiedError(f"the model cannot be tested: {base}")
    moments, features = read.moments, base.features
    places = [place - 1 for place in moments.places(features)]
    slopes = np.zeros(len(moments.columns))
    slopes[places] = base.coef[1:]
    columns = _PowerColumns(_FittedIndex.of(moments, slopes), tuple(places))
    extended, wide, more = _extend(read, columns, 2 + len(features))
    for name, added in (
        ("normality_prediction", more[:2]),
        ("heteroskedasticity_prediction", more[2:]),
    ):
        yield _ratio_test(name, base, extended, wide, added)


def _ratio_test(
    name: str, base: ProbitMaximum, rows: _ExtendedRows, wide: Moments, added: Sequence[int]
) -> SpecificationTest:
    """Fit the model with columns added, from the estimates without them."""
    present = [0, *wide.places(base.features)]
    kept, note = independent_columns(
        wide.factor, present, wide.places(added), "the prediction features"
    )
    if not kept:
        return SpecificationTest(name, float("nan"), 0, note, classes=True)
    chosen = [wide.columns[place - 1] for place in kept]
    assert wide.probit is not None
    problem = ProbitProblem.build(wide, wide.probit, [*base.features, *chosen])
    ends = [*base.errors.values()]
    start = np.concatenate([base.coef, np.zeros(len(kept)), base.selection_coef, ends])
    theta = inner_parameters(problem, start)
    state, _, converged = newton(rows, problem, theta, tolerance=_DECREMENT)
    if not converged:
        note = "the likelihood has no maximum with what the test adds"
        return SpecificationTest(name, float("nan"), len(kept), note, classes=True)
    gain = 0.5 * float(newton_step(state) @ state.gradient)
    ratio = 2.0 * (state.log_likelihood + gain - base.log_likelihood)
    return SpecificationTest(name, max(ratio, 0.0), len(kept), note, classes=True)


# Rows with the columns that tests add. ------------------------------------------------------------


@dataclass(frozen=True)
class _FittedIndex:
    """f: the fitted x'b, standardised."""

    centre: Floats
    """(k,) means of the columns of the moments"""
    slopes: Floats
    """(k,) from these columns to f"""

    @classmethod
    def of(cls, moments: Moments, slopes: Floats) -> _FittedIndex:
        """Scale the slopes of the moments' columns."""
        k = len(moments.columns)
        spread = float(np.linalg.norm(moments.factor[1:, 1 : k + 1] @ slopes))
        scale = np.sqrt(moments.n_selected) / spread if spread > 0 else 0.0
        return cls(moments.means[:k], slopes * scale)


@dataclass(frozen=True)
class _CorrectionColumns:
    """lambda t, lambda t^2, f^2 and f^3, t being the standardised z'gamma."""

    index: SelectionIndex
    selecting: tuple[int, ...]
    """places of the selection features among the columns"""
    fitted: _FittedIndex

    def __call__(self, features: Floats) -> Floats:
        """Return the columns to add."""
        probit = self.index.probit
        design = probit.coordinates.design(features[:, list(self.selecting)])
        u = design.times(probit.inner_coef)
        ratio, t = mills(u)[0], self.index.standard(u)
        f = (features - self.fitted.centre) @ self.fitted.slopes
        return np.column_stack([ratio * t, ratio * t**2, f**2, f**3])


@dataclass(frozen=True)
class _PowerColumns:
    """f^2, f^3, and f times each prediction feature."""

    fitted: _FittedIndex
    features: tuple[int, ...]
    """places of the prediction features among the columns"""

    def __call__(self, features: Floats) -> Floats:
        """Return the columns to add."""
        away = features - self.fitted.centre
        f = away @ self.fitted.slopes
        return np.column_stack([f**2, f**3, f[:, None] * away[:, list(self.features)]])


@dataclass(frozen=True)
class _ExtendedRows(RowsView):
    """Rows with more columns, which are functions of those of the moments."""

    columns: tuple[int, ...]
    """those of the moments, and more"""
    added: _CorrectionColumns | _PowerColumns

    def map(
        self,
        function: Callable[..., Any],
        *args: Any,
        columns: Positions,
        merge: Merge | None = None,
    ) -> Iterator[Any]:
        """Yield ``function(block, *args)`` for every block, in row order."""
        needed = self._needed(function, args, columns)
        return self.rows.map(_with_columns, *needed, columns=self._own, merge=merge)

    def without(self, function: Callable[..., Mask], *args: Any, columns: Positions) -> Rows:
        """Return the rows where ``function(block, *args)`` is False."""
        needed = self._needed(function, args, columns)
        return replace(self, rows=self.rows.without(_with_columns, *needed, columns=self._own))

    @property
    def _own(self) -> tuple[int, ...]:
        return self.columns[: len(self.added.fitted.slopes)]

    def _needed(
        self, function: Callable[..., Any], args: tuple[Any, ...], columns: Positions
    ) -> tuple[Any, ...]:
        """Return what workers receive, without the rows."""
        wanted = [self.columns.index(column) for column in columns]
        return self.added, wanted, function, args


def _with_columns(
    block: Block,
    added: _CorrectionColumns | _PowerColumns,
    wanted: Positions,
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> Any:
    """Call a block function on some of the columns of a block and the added ones."""
    # A column that one equation alone has may be missing in rows of the other.
    everything = np.column_stack([block.features, added(block.features)])
    return function(replace(block, features=pick(everything, wanted)), *args)


def _extend(
    read: FitRows, added: _CorrectionColumns | _PowerColumns, count: int
) -> tuple[_ExtendedRows, Moments, range]:
    """Add columns to the rows of a fit; also return their moments and the new positions."""
    k, columns = read.moments.n_features, read.moments.columns
    more = range(k, k + count)
    rows = _ExtendedRows(read.rows, (*columns, *more), added)
    return rows, gather_moments(rows, rows.columns, k + count, read.probit), more
