"""Inference of the Heckman probit that needs the rows of the fit, unlike the linear model's."""

from __future__ import annotations

from typing import Any

from heckmanfa.estimators.base import SelectionModel
from heckmanfa.inference.uncertainty import UncertaintyInterval, binary_uncertainty_interval


class ProbitInference(SelectionModel):
    """Sensitivity analyses and tests of a selection model of two classes.

    A binary outcome has no compressed data that would do in place of its rows: X, y, selected and
    sample_weight are as passed to `fit`.
    """

    def uncertainty_interval(
        self,
        X: Any,
        y: Any = None,
        rho: tuple[float, float] = (-0.3, 0.3),
        conf_level: float = 0.95,
        n_grid: int = 61,
        *,
        selected: Any = None,
        sample_weight: Any = None,
    ) -> UncertaintyInterval:
        """Vary rho instead of estimating it: the range of each coefficient for a range of rho.

        The likelihood is maximised over all other parameters with rho held, as ui.probit in R does
        (Genback, Ng, Stanghellini and de Luna, 2018). This needs no exclusion restriction. Standard
        errors take rho as given; they are classical, whatever ``cov_type`` is.

        Parameters
        ----------
        X, y, selected, sample_weight
            As passed to `fit`.
        rho : (float, float)
            The range, inside (-1, 1).
        conf_level : float
            Confidence level of the interval at each rho.
        n_grid : int
            Number of values of rho to report, including the ends. About 20 values of rho are
            refitted, the ends and zero among them; cubics with the slopes of both neighbours give
            the values in between.

        Returns
        -------
        UncertaintyInterval
            With `tidy` (identification bounds, the union of the confidence intervals, and the
            rho at which a sign or its significance changes), `path` and `plot`.
        """
        given = {"selected": selected, "sample_weight": sample_weight}
        return binary_uncertainty_interval(self.fit_, X, y, rho, conf_level, n_grid, **given)
