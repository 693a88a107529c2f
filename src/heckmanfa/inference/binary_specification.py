"""Tests of what the Heckman probit assumes: normal errors and equal variances, in both equations.

The selection equation has the score tests of `specification`. In the prediction equation, columns
are added to x'b, and the model is fitted again: the likelihood ratio tests their coefficients. With
f = x'b at the estimates, f^2 and f^3 test normality against the Pearson family (Bera, Jarque and
Lee, 1984), and f x_j the variance exp(x'a) (Davidson and MacKinnon, 1984). f is standardised, which
does not change what the columns and [1, x] span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block, Mask, Merge, Positions, Rows, RowsView, one_blas_thread, pick
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.inference.fit_rows import FitRows, refit_by_likelihood
from heckmanfa.inference.specification import (
    SelectionIndex,
    independent_columns,
    probit_tests,
    read_tested,
)
from heckmanfa.inference.specification_report import BinarySpecificationTests, SpecificationTest
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.newton import inner_parameters, newton, newton_step
from heckmanfa.model.probit_likelihood import ProbitMaximum, ProbitProblem

# Heights are then known to this many units of log-likelihood.
_DECREMENT = 1e-8


def binary_specification_tests(
    fit: Fit, X: Any, y: Any, *, selected: Any, sample_weight: Any
) -> BinarySpecificationTests:
    """Test what a fitted model assumes; see `HeckmanProbit.specification_tests`."""
    read, notes = read_tested(fit, X, y, selected, sample_weight)
    with one_blas_thread():
        index = SelectionIndex.of(read.probit)
        tests = [*probit_tests(read.rows, index, binary=True), *_prediction_tests(fit, read)]
    return BinarySpecificationTests(**{test.name: test for test in tests}, notes=notes)


def _prediction_tests(fit: Fit, read: FitRows) -> Iterator[SpecificationTest]:
    # Honest estimates are not at the maximum of the likelihood.
    base = refit_by_likelihood(fit, read, fit.features, classical=True, alone=True)
    if not isinstance(base, ProbitMaximum):
        raise NotIdentifiedError(f"the model cannot be tested: {base}")
    moments, features = read.moments, base.features
    places = [place - 1 for place in moments.places(features)]
    slopes = np.zeros(len(moments.columns))
    slopes[places] = base.coef[1:]
    spread = float(np.linalg.norm(moments.factor[1:, 1 : len(slopes) + 1] @ slopes))
    scale = np.sqrt(moments.n_selected) / spread if spread > 0 else 0.0
    k, n_added = moments.n_features, 2 + len(features)
    more = range(k, k + n_added)
    held = (*moments.columns, *more)
    centre = moments.means[: len(slopes)]
    extended = _Extended(read.rows, held, centre, slopes * scale, tuple(places))
    wide = gather_moments(extended, held, k + n_added, read.probit)
    for name, added in (
        ("normality_prediction", more[:2]),
        ("heteroskedasticity_prediction", more[2:]),
    ):
        yield _ratio_test(name, base, extended, wide, added)


def _ratio_test(
    name: str, base: ProbitMaximum, rows: _Extended, wide: Moments, added: Sequence[int]
) -> SpecificationTest:
    """Fit the model with columns added, from the estimates without them."""
    given = [0, *wide.places(base.features)]
    kept, note = independent_columns(
        wide.factor, given, wide.places(added), "the prediction features"
    )
    if not kept:
        return SpecificationTest(name, float("nan"), 0, note, binary=True)
    chosen = [wide.columns[place - 1] for place in kept]
    assert wide.probit is not None
    problem = ProbitProblem.build(wide, wide.probit, [*base.features, *chosen])
    start = np.concatenate([base.coef, np.zeros(len(kept)), base.selection_coef, base.ends])
    theta = inner_parameters(problem, start)
    state, _, converged = newton(rows, problem, theta, tolerance=_DECREMENT)
    if not converged:
        note = "the likelihood has no maximum with what the test adds"
        return SpecificationTest(name, float("nan"), len(kept), note, binary=True)
    gain = 0.5 * float(newton_step(state, len(theta)) @ state.gradient)
    ratio = 2.0 * (state.log_likelihood + gain - base.log_likelihood)
    return SpecificationTest(name, max(ratio, 0.0), len(kept), note, binary=True)


@dataclass(frozen=True)
class _Extended(RowsView):
    """Rows with more columns: f^2, f^3, and f times each prediction feature."""

    columns: tuple[int, ...]
    """those of the moments, and more"""
    centre: Floats
    """(k,) means of the columns of the moments"""
    slopes: Floats
    """(k,) from these columns to f"""
    features: tuple[int, ...]
    """places of the prediction features among these columns"""

    def map(
        self,
        function: Callable[..., Any],
        *args: Any,
        columns: Positions,
        merge: Merge | None = None,
    ) -> Iterator[Any]:
        """Yield ``function(block, *args)`` for every block, in row order."""
        needed = self._needed(function, args, columns)
        return self.rows.map(_with_more, *needed, columns=self._own, merge=merge)

    def without(self, function: Callable[..., Mask], *args: Any, columns: Positions) -> Rows:
        """Return the rows where ``function(block, *args)`` is False."""
        needed = self._needed(function, args, columns)
        return replace(self, rows=self.rows.without(_with_more, *needed, columns=self._own))

    @property
    def _own(self) -> tuple[int, ...]:
        return self.columns[: len(self.slopes)]

    def _needed(
        self, function: Callable[..., Any], args: tuple[Any, ...], columns: Positions
    ) -> tuple[Any, ...]:
        """Return what workers receive, without the rows."""
        wanted = [self.columns.index(column) for column in columns]
        return self.centre, self.slopes, self.features, wanted, function, args


def _with_more(
    block: Block,
    centre: Floats,
    slopes: Floats,
    features: Positions,
    wanted: Positions,
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> Any:
    """Call a block function on some of the columns of a block and the added ones."""
    away = block.features - centre
    fitted = away @ slopes
    own = away[:, list(features)]
    added = np.column_stack([fitted**2, fitted**3, fitted[:, None] * own])
    # A column that one equation alone has may be missing in rows of the other.
    everything = np.column_stack([block.features, added])
    return function(replace(block, features=pick(everything, wanted)), *args)
