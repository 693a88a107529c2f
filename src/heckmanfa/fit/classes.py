"""What a binary and an ordered outcome share: the likelihood of classes, from both equations apart.

A `ClassLikelihood` is a value of their families, for a number of classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from heckmanfa.data.rows import Positions, Rows
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit.family import Beginning
from heckmanfa.fit.making import Inputs
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.likelihood import warn_of_likelihood
from heckmanfa.model.linalg import dependencies
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import Start
from heckmanfa.model.probit import Probit
from heckmanfa.model.probit_likelihood import BOUNDARY_ATANH, Apart, FlatMaximum, usual_start
from heckmanfa.model.two_step import refuse_unidentified


@dataclass(frozen=True)
class ClassLikelihood:
    """The joint likelihood of selection and an outcome of classes."""

    apart: Callable[[Moments, Probit, Positions, Rows], Apart]
    """(moments, probit, features, rows): both equations apart"""
    fit: Callable[..., FlatMaximum]
    """(apart, kind, rows, start, *, rho, alone): its maximum"""
    fault: Callable[[Apart, Rows], str | None] = lambda apart, rows: None
    """(apart, rows): why the joint model has no maximum, if the model of the selected rows tells"""

    def begin(self, moments: Moments, probit: Probit, features: Positions, rows: Rows) -> Beginning:
        """Set up the joint likelihood; see `heckmanfa.fit.family.Family`."""
        apart = self.apart(moments, probit, features, rows)
        usual = usual_start(rows, apart.problem, apart.starts)
        return Beginning(apart, apart.problem, apart.starts, usual)

    def maximum_of(self, inputs: Inputs, apart: Apart) -> Any:
        """Maximise it for the chosen features, and warn of what is wrong with the maximum."""
        spec, rho = inputs.spec, inputs.choice.rho
        options = apart, inputs.kind, inputs.rows
        start, alone = spec.starting_point, not spec.guarded
        maximum = self.fit(*options, start, rho=spec.held.get("rho"), alone=alone)
        if start is None and rho is not None and abs(maximum.atanh_rho) >= BOUNDARY_ATANH:
            start = rho
            maximum = self.fit(*options, start, alone=alone)
        warn_of_likelihood(maximum, start)
        return maximum

    def refit(
        self,
        moments: Moments,
        probit: Probit,
        rows: Rows,
        features: Positions,
        kind: CovarianceKind,
        start: Start,
        *,
        alone: bool,
    ) -> FlatMaximum | str:
        """Fit other prediction features by maximum likelihood; return the reason if that fails.

        Other maxima are looked for, unless the one reached is wanted ``alone``.
        """
        if dependencies(moments.subset(features, imr=False, outcome=False)):
            return "collinear with the other features among the selected rows"
        try:
            refuse_unidentified(moments.subset(features, outcome=False))
        except NotIdentifiedError:
            return "the inverse Mills ratio is collinear with the features"
        apart = self.apart(moments, probit, features, rows)
        fault = self.fault(apart, rows)
        if fault is not None:
            return fault
        maximum = self.fit(apart, kind, rows, start, alone=alone)
        if not maximum.converged or maximum.levelled_off:
            return "maximum likelihood did not converge"
        return maximum
