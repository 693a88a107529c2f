"""What a referee asks of a fitted selection model, as methods; see `heckmanfa.inference`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from heckmanfa.estimators.formulas import FormulaModel

if TYPE_CHECKING:
    from heckmanfa.inference.bootstrap import Bootstrap
    from heckmanfa.inference.exclusion import ExclusionTest
    from heckmanfa.inference.margins import Margins
    from heckmanfa.inference.specification import SpecificationTests
    from heckmanfa.inference.uncertainty import UncertaintyInterval
    from heckmanfa.inference.what_if import WhatIf
    from heckmanfa.results.reports import Report

__all__ = ["RefereedModel"]


class RefereedModel(FormulaModel):
    """A fitted model that can be asked how far its estimates are to be believed.

    Methods that need rows take those of the fit; for a model from formulas, ``X`` is the data
    frame and ``y`` is left out, and so are weights and clusters that a column of it says. Weights
    and clusters that came as arrays have to be passed again: a method that needs them says so.
    """

    def _own_reports(self, given: set[type[Report]]) -> list[Report]:
        from heckmanfa.inference.uncertainty import UncertaintyInterval
        from heckmanfa.inference.what_if import WhatIf

        if self._probit is None:
            return []
        found: list[Report] = []
        if UncertaintyInterval not in given:
            found.append(self.uncertainty_interval())
        if WhatIf not in given:
            found.append(self.what_if())
        return found

    def bootstrap(
        self,
        X: Any,
        y: Any = None,
        n_boot: int = 1000,
        unit: Any = None,
        *,
        selected: Any = None,
        sample_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Bootstrap:
        """Fit the model to resampled data many times: probit, search and estimates.

        Parameters
        ----------
        X, y, selected, sample_weight
            As they were passed to `fit`; others are refused. For a model from formulas, X is the
            data frame, and y is left out. X may hold the column that ``unit`` names beside the
            features.
        n_boot : int
            How many replicates.
        unit : "row", str, or array_like of shape (n,), optional
            What is resampled: rows, or the groups that a column of X (by its name) or an array
            says. Rows of a group come and go together. Unless given, it is rows, or the clusters
            of a model with a cluster covariance; those that came as an array are to be passed.
        random_state : int, Generator, RandomState or None
        n_jobs : int, optional
            Processes, as joblib counts them. The result does not depend on it.
        verbose : int
            Show progress on a terminal.

        Returns
        -------
        Bootstrap
            With `tidy`, `assignments` and the replicates; failures are counted by reason.
        """
        from heckmanfa.inference.bootstrap import bootstrap

        check_is_fitted(self)
        return bootstrap(
            self,
            X,
            y,
            n_boot=n_boot,
            unit=unit,
            selected=selected,
            sample_weight=sample_weight,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )

    def uncertainty_interval(
        self, rho: tuple[float, float] = (-0.3, 0.3), conf_level: float = 0.95, n_grid: int = 61
    ) -> UncertaintyInterval:
        """Vary rho instead of estimating it: where each coefficient lies for rho in a range.

        Least squares on the selected rows is corrected by what selection would do to it for each
        rho (Genback, Stanghellini and de Luna, 2015). No exclusion restriction is needed: a range
        of rho is assumed instead. It takes no pass over the rows.

        Parameters
        ----------
        rho : (float, float)
            The range, inside (-1, 1).
        conf_level : float
            Of the confidence interval at each rho.
        n_grid : int
            How many values of rho to look at, the ends among them.

        Returns
        -------
        UncertaintyInterval
            With `tidy` (identification bounds, the union of the confidence intervals, and the
            rho at which a sign or its significance changes), `path` and `plot`.
        """
        from heckmanfa.inference.uncertainty import uncertainty_interval

        check_is_fitted(self)
        return uncertainty_interval(self, rho, conf_level, n_grid)

    def what_if(self) -> WhatIf:
        """Ask what other exclusions would have given, one feature at a time.

        Each feature that is out of the prediction equation is put back, and each one in it is
        taken out; both by the two-step estimator, without a pass over the rows. That an
        exclusion is valid cannot be proved from data.

        Returns
        -------
        WhatIf
            With `tidy` (the feature's t value, rho) and `coefficients` (what happens to every
            other one).
        """
        from heckmanfa.inference.what_if import what_if

        check_is_fitted(self)
        return what_if(self)

    def exclusion_test(
        self,
        X: Any,
        y: Any = None,
        features: Sequence[Any] | None = None,
        *,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> ExclusionTest:
        """Test whether excluded features belong in the prediction equation, while one stays out.

        The model with the features put back is fitted by maximum likelihood, and their
        coefficients are tested jointly (Wald). What stays excluded identifies the model: that it
        does not belong there is assumed, and cannot be tested.

        Parameters
        ----------
        X, y, selected, sample_weight, groups
            As they were passed to `fit`.
        features : sequence of str or int, optional
            Excluded features to put back; at least one other must stay excluded. Unless given,
            each excluded feature stays out in turn, and all others are tested together.

        Returns
        -------
        ExclusionTest
        """
        from heckmanfa.inference.exclusion import exclusion_test

        check_is_fitted(self)
        return exclusion_test(
            self,
            X,
            y,
            features,
            selected=selected,
            sample_weight=sample_weight,
            groups=groups,
        )

    def specification_tests(
        self, X: Any, y: Any = None, *, selected: Any = None, sample_weight: Any = None
    ) -> SpecificationTests:
        """Test what the model assumes of its errors and its functional form.

        Normality in the selection equation (Bera, Jarque and Lee, 1984), its heteroskedasticity
        (Davidson and MacKinnon, 1984), normality in the prediction equation of the selection
        model (a conditional-moment test; Newey, 1985; Pagan and Vella, 1989), the form of the
        correction for selection (Pagan and Vella, 1989), and RESET (Ramsey, 1969). These tests
        are not known for sampling weights, which are refused.

        Parameters
        ----------
        X, y, selected, sample_weight
            As they were passed to `fit`; others are refused.

        Returns
        -------
        SpecificationTests
        """
        from heckmanfa.inference.specification import specification_tests

        check_is_fitted(self)
        return specification_tests(self, X, y, selected=selected, sample_weight=sample_weight)

    def margins(
        self,
        X: Any,
        kind: str | Sequence[str] = ("marginal", "selected", "selection"),
        at: str = "average",
        features: Sequence[Any] | None = None,
        *,
        sample_weight: Any = None,
        conf_level: float = 0.95,
    ) -> Margins:
        """Marginal effects of features on expected outcomes and on selection.

        Parameters
        ----------
        X : array or data frame
            The rows to average over, which need not be those of the fit.
        kind : str or sequence of str
            "marginal" is the effect on E[y | x], "selected" on E[y | x, s = 1], "unselected" on
            E[y | x, s = 0], "selection" on P(s = 1 | x).
        at : {"average", "means"}
            The average of the effects in all rows, or the effect at the average row.
        features : sequence of str or int, optional
            All, unless given. For a model from formulas, these are the variables of the
            formulas, so that a variable and its square move together.
        sample_weight : str or array_like, optional
            Of the rows in the average. After a fit with weights it is needed, unless the formulas'
            data frame has their column; 1 lets all rows count the same.
        conf_level : float

        Returns
        -------
        Margins
            Effects of features of 0 and 1 (and of categories) are discrete changes; standard
            errors are by the delta method, for these rows. A quantity that is no function of a
            feature has effect 0, standard error 0 and no test.
        """
        from heckmanfa.inference.margins import margins

        check_is_fitted(self)
        return margins(
            self, X, kind, at, features, sample_weight=sample_weight, conf_level=conf_level
        )
