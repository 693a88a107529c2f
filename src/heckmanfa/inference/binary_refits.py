"""The Heckman probit with other prediction features, in the rows of a fit."""

from __future__ import annotations

from heckmanfa.data.rows import Positions
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.inference.fit_rows import FitRows
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.likelihood_starts import elsewhere, read_start
from heckmanfa.model.linalg import dependencies
from heckmanfa.model.outcome_probit import fit_outcome_probit, outcome_separation
from heckmanfa.model.probit_likelihood import ProbitMaximum, fit_probit_likelihood
from heckmanfa.model.two_step import refuse_unidentified


def refit_binary(
    fit: Fit,
    read: FitRows,
    features: Positions,
    *,
    classical: bool = False,
    alone: bool = False,
) -> ProbitMaximum | str:
    """Fit other prediction features by maximum likelihood; return the reason if that fails.

    The covariance is of the model's kind, unless it is to be classical; with clusters, the rows
    must have been read with them. Other maxima are looked for, unless the one reached is wanted
    ``alone``.
    """
    moments, rows, chosen = read.moments, read.rows, sorted(features)
    if dependencies(moments.subset(chosen, imr=False, outcome=False)):
        return "collinear with the other features among the selected rows"
    try:
        refuse_unidentified(moments.subset(chosen, outcome=False))
    except NotIdentifiedError:
        return "the inverse Mills ratio is collinear with the features"
    naive = fit_outcome_probit(moments, rows, chosen)
    if outcome_separation(rows, naive) is not None:
        return "the features decide the outcome among the selected rows"
    kind = CLASSICAL if classical else fit.spec.covariance_kind(read.sample.n_groups)
    # Start from the rho of the model's own start, so both climb the same maximum.
    begin = elsewhere(read_start(fit.spec.start, fit.spec.method))
    found = fit_probit_likelihood(moments, read.probit, naive, kind, rows, begin, alone=alone)
    if not found.converged or found.levelled_off:
        return "maximum likelihood did not converge"
    return found
