"""The base of every Heckman model: prediction and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats, is_dask
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.missing_features import Gaps, check_missing
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.estimators.dask_predict import map_rows, predict_lazily
from heckmanfa.estimators.scoring import ScoredRegressor, check_selected, log_likelihood_of_rows
from heckmanfa.fit import Fit
from heckmanfa.inference import prediction
from heckmanfa.inference.coefficient_profile import CoefficientProfile, profile_coefficient
from heckmanfa.inference.diagnosed import diagnose_fit
from heckmanfa.inference.fit_rows import column_or_values, weights_of
from heckmanfa.inference.likelihood_profile import RhoProfile, profile_rho
from heckmanfa.inference.pictures import Pictures
from heckmanfa.inference.prediction import IntervalKind, Kind, Missing
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.plots.mills_ratios import MillsRatios
from heckmanfa.results import caveats, coefficients, maketables
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.reference import Wald
from heckmanfa.results.reports import Report, read_reports
from heckmanfa.results.summary import Summary

if TYPE_CHECKING:
    import pandas as pd


class SelectionModel(ScoredRegressor):
    """Prediction and reports of a fitted Heckman model.

    Methods that need the rows of the fit refuse others. For a model with formulas, X is the data
    frame, y is left out, and weights and clusters come from the columns named in
    ``from_formula``. Weights and clusters that were arrays must be passed again.
    """

    _fit: Fit

    @property
    def fit_(self) -> Fit:
        """All results of the fit, in one frozen object."""
        check_is_fitted(self)
        return self._fit

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` succeeded."""
        return hasattr(self, "_fit")

    # Prediction. ------------------------------------------------------------------------------

    @overload
    def predict(
        self,
        X: Any,
        kind: Kind = ...,
        return_interval: None = ...,
        conf_level: float = ...,
        *,
        missing: Missing = ...,
    ) -> Floats: ...

    @overload
    def predict(
        self,
        X: Any,
        kind: Kind = ...,
        *,
        return_interval: IntervalKind,
        conf_level: float = ...,
        missing: Missing = ...,
    ) -> tuple[Floats, Floats]: ...

    @overload
    def predict(
        self,
        X: Any,
        kind: Kind,
        return_interval: IntervalKind,
        conf_level: float = ...,
        *,
        missing: Missing = ...,
    ) -> tuple[Floats, Floats]: ...

    def predict(
        self,
        X: Any,
        kind: Kind = "marginal",
        return_interval: IntervalKind | None = None,
        conf_level: float = 0.95,
        *,
        missing: Missing = "error",
    ) -> Any:
        """Predict the outcome of each row.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            Tensors give tensors on the same device. A Dask collection gives a lazy one: a Series
            "predicted" with X's index and divisions, or an Array with X's chunks of rows.
        kind : {"marginal", "selected", "unselected"}
            E[y | x], whether selected or not; E[y | x, s = 1], given selection; or
            E[y | x, s = 0], given that the row is not selected.
        return_interval : {None, "prediction", "confidence"}
            A "prediction" interval contains a new outcome with probability ``conf_level`` if the
            model is correct. It accounts for the normal errors (skewed by selection if ``kind``
            conditions on it) and the uncertainty of the prediction coefficients. It ignores that
            of the selection coefficients, rho, sigma and a search. A "confidence" interval is
            for the expectation: the delta method, with the uncertainty of both equations. For an
            average, both are quantiles of a mixture of normal distributions over assignments.
        conf_level : float
            Confidence level of the interval.
        missing : {"error", "nan"}
            What to do with rows that lack a feature they need: raise an error with counts by
            column, or predict NaN. Infinite values always raise an error.

        Returns
        -------
        values : ndarray of shape (n,)
        interval : ndarray of shape (n, 2)
            Only with ``return_interval``: lower and upper limits, NaN if the covariance of the
            estimates is unknown. For a Dask DataFrame, a DataFrame of "lower" and "upper".
        """
        fit = self.fit_
        check_missing(missing)
        if return_interval is not None:
            prediction.check_interval(return_interval, conf_level)
        prediction.check_kind(fit, kind)
        if is_dask(X):
            options = {"kind": kind, "conf_level": conf_level, "missing": missing}
            return predict_lazily(self, X, self._columns(), return_interval, **options)
        return prediction.predict(fit, X, kind, return_interval, conf_level, missing)

    def predict_selection(self, X: Any, *, missing: Missing = "error") -> Any:
        """Probability of being selected, P(s = 1 | x), of each row.

        ``missing`` is as in `predict`; for a Dask collection the result is lazy.
        """
        check_missing(missing)
        if is_dask(X):
            return self._lazily(X, "predict_selection", "probability", missing=missing)
        return prediction.predict_selection(self.fit_, X, missing)

    def inverse_mills(self, X: Any, *, missing: Missing = "error") -> Any:
        """Inverse Mills ratio lambda(z'gamma) of each row.

        ``missing`` is as in `predict`; for a Dask collection the result is lazy.
        """
        check_missing(missing)
        if is_dask(X):
            return self._lazily(X, "inverse_mills", "imr", missing=missing)
        return prediction.predict_imr(self.fit_, X, missing)

    def missing_features(self, X: Any, kind: str = "marginal") -> Gaps:
        """Count the rows of X that have no prediction, since they lack a feature.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
        kind : {"marginal", "selected", "unselected", "selection"}
            As in `predict`; "selection" is the probability of being selected.

        Returns
        -------
        Gaps
            With ``n_rows``, ``n_missing``, and ``columns``: how many rows lack each feature.
        """
        return prediction.missing_features(self.fit_, X, kind)

    def log_likelihood(
        self, X: Any, y: Any = None, selected: Any = None, *, sample_weight: Any = None
    ) -> float:
        """Joint log-likelihood of selection and outcomes in other data, at the estimates.

        Arguments are as in `score`; weights multiply the terms of their rows. The result is -inf if
        a two-step rho lies outside (-1, 1).
        """
        return self._sum_log_likelihood(X, y, sample_weight, selected)[0]

    def _sum_log_likelihood(
        self, X: Any, y: Any, sample_weight: Any, selected: Any
    ) -> tuple[float, float]:
        """Return `log_likelihood` and the sum of weights of its rows."""
        fit = self.fit_
        refuse_rows(X)
        if fit.probit is None:
            raise NotIdentifiedError(
                "no outcome was missing in the fit, so the joint likelihood is not known"
            )
        y, sample_weight, selected = self._beside(X, y, sample_weight, selected)
        equations = self._on_rows(X, "_index_and_mean", ["index", "mean"])
        if not is_dask(X):
            equations = np.column_stack(equations)
        return log_likelihood_of_rows(equations, fit.rho, fit.sigma, y, selected, sample_weight)

    def _index_and_mean(self, X: Any) -> tuple[Floats, Floats]:
        return prediction.index_and_mean(self.fit_, X)

    def _on_rows(self, X: Any, method: str, name: str | list[str]) -> Any:
        """Call a method on X, or lazily on every partition of a Dask collection."""
        return self._lazily(X, method, name) if is_dask(X) else getattr(self, method)(X)

    def _lazily(self, X: Any, method: str, name: str | list[str], **options: Any) -> Any:
        return map_rows(self, X, method, name, self._columns(), **options)

    def _columns(self) -> FittedColumns | None:
        """Return the columns to check X against; formulas check their own variables."""
        return None if self.fit_.origin.design is not None else self.fit_.spec.columns

    def _beside(self, X: Any, y: Any, sample_weight: Any, selected: Any) -> tuple[Any, Any, Any]:
        """Return outcome, weights and who is selected; formulas find them in the data frame."""
        fit, design = self.fit_, self.fit_.origin.design
        if design is None:
            check_selected(type(self).__name__, selected, fit.origin.selected_given)
            return y, sample_weight, selected
        if selected is None and fit.origin.selected_given:
            selected = self._on_rows(X, "_selected_by_formula", "selected")
        if y is None:
            y = self._on_rows(X, "_outcome_by_formula", "outcome")
        sample_weight = weights_of(fit, X, sample_weight, other_rows=True)
        return y, column_or_values(X, sample_weight, "sample_weight"), selected

    def _outcome_by_formula(self, X: Any) -> Floats:
        design = self.fit_.origin.design
        assert design is not None
        return design.outcome_of(X)

    def _selected_by_formula(self, X: Any) -> Floats:
        design = self.fit_.origin.design
        assert design is not None
        return design.who_is_selected(X).astype(np.float64)

    def _to_score(self, X: Any, y: Any, sample_weight: Any, selected: Any) -> tuple[Any, ...]:
        y, sample_weight, selected = self._beside(X, y, sample_weight, selected)
        # Formulas leave the same rows out of a score as out of a fit.
        missing: Missing = "error" if self.fit_.origin.design is None else "nan"
        return self.predict(X, kind="selected", missing=missing), y, sample_weight, selected

    # Reports. ---------------------------------------------------------------------------------

    def tidy(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Estimates, standard errors, tests and intervals as a data frame.

        Parameters
        ----------
        conf_level : float
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            Columns equation ("prediction", "selection", "errors"), term, estimate, std_error,
            statistic, p_value, ci_low, ci_high. The statistic is z, or t(G - 1) with G clusters.
            In "errors", "imr" is the coefficient of the inverse Mills ratio. A two-step rho and
            sigma have no standard error. With maximum likelihood, standard errors use the delta
            method; intervals and the test of rho = 0 are on the scale of atanh rho and log sigma.
        """
        return coefficients.tidy(self.fit_, conf_level)

    def vcov(self) -> pd.DataFrame:
        """Joint covariance of both equations, labelled (equation, term) as in `tidy`.

        With maximum likelihood, the three error terms are functions of two parameters, so the
        matrix does not have full rank.
        """
        return coefficients.vcov(self.fit_)

    def wald_test(self, hypothesis: str | ArrayLike, value: ArrayLike | None = None) -> Wald:
        """Wald test of linear restrictions on the coefficients.

        Parameters
        ----------
        hypothesis : str or array_like
            Such as ``"educ = exper"``, ``"educ = 0, exper = 0"`` or ``"selection.educ = educ"``:
            plain names refer to the prediction equation, those with "selection." to the selection
            equation, and "imr" to the inverse Mills ratio. Or a list of these, or a matrix with
            one column for each row of `vcov`.
        value : array_like, optional
            Right-hand sides for a matrix; zero by default.

        Returns
        -------
        Wald
            With statistic, degrees of freedom and p-value: chi-squared, or F(q, G - 1) with G
            clusters, which allow at most G - 1 restrictions.
        """
        return coefficients.wald_test(self.fit_, hypothesis, value)

    def profile_rho(
        self,
        X: Any,
        y: Any = None,
        *,
        grid: int | ArrayLike = 41,
        selected: Any = None,
        sample_weight: Any = None,
    ) -> RhoProfile:
        """Profile the log-likelihood over rho, with all other parameters at their best.

        Parameters
        ----------
        X, y, selected, sample_weight
            As passed to `fit`. For a search, the features are those that it chose.
        grid : int or array_like
            Number of values of rho between -0.998 and 0.998, or the values themselves.

        Returns
        -------
        RhoProfile
            With `tidy`, ``maxima``, and likelihood-ratio `regions` and `interval` of rho.
        """
        return profile_rho(self, X, y, grid=grid, selected=selected, sample_weight=sample_weight)

    def profile(
        self,
        X: Any,
        y: Any = None,
        term: Any = None,
        *,
        grid: int | ArrayLike = 21,
        selected: Any = None,
        sample_weight: Any = None,
    ) -> CoefficientProfile:
        """Profile the log-likelihood over a coefficient of the prediction equation.

        Parameters
        ----------
        X, y, selected, sample_weight
            As passed to `fit`. For a search, the features are those that it chose.
        term : str or int
            The coefficient, as in `tidy`: a feature, or "Intercept". With formulas, y is left
            out: ``profile(frame, term="educ")``.
        grid : int or array_like
            Number of values within four standard errors, or the values themselves.

        Returns
        -------
        CoefficientProfile
            With `tidy`, ``maxima``, `plot`, and likelihood-ratio `regions` and `interval`.
        """
        return profile_coefficient(
            self, X, y, term, grid=grid, selected=selected, sample_weight=sample_weight
        )

    def mills_ratios(
        self,
        X: Any,
        y: Any = None,
        X_new: Any = None,
        *,
        selected: Any = None,
        sample_weight: Any = None,
    ) -> MillsRatios:
        """Return the inverse Mills ratios that `heckmanfa.plots.imr_overlap` shows.

        ``X_new`` are rows to predict for; the other arguments are as passed to `fit`.
        """
        rows = {"selected": selected, "sample_weight": sample_weight}
        return prediction.mills_ratios(self.fit_, X, y, X_new, **rows)

    def summary(self, conf_level: float = 0.95, include: Report | Sequence[Report] = ()) -> Summary:
        """Both equations as a table, with row counts and warnings; prints and shows HTML.

        Parameters
        ----------
        conf_level : float
            Confidence level of the intervals.
        include : report or sequence of reports
            Results of `bootstrap`, `uncertainty_interval`, `what_if`, `exclusion_test`,
            `specification_tests`, `margins` or ``honest_``, to print below the table.
        """
        fit = self.fit_
        notes = [caveat.sentence for caveat in caveats.caveats_of_fit(fit)]
        return coefficients.summarize(fit, conf_level, read_reports(include), notes)

    def diagnostics(self, X: Any = None, include: Report | Sequence[Report] = ()) -> Diagnostics:
        """What the data can and cannot show: exclusion, collinearity, rho, extrapolation.

        Parameters
        ----------
        X : array or data frame, optional
            Rows to predict for: the report includes the share whose selection index lies outside
            the fitted range, and mentions rows that lack a feature, which are not counted.
        include : report or sequence of reports
            As in `summary`: their findings are added. Those of `uncertainty_interval` and, unless
            this is an average, `what_if` need no rows and are always included.
        """
        return diagnose_fit(self.fit_, X, read_reports(include))

    def pictures(
        self, X: Any = None, y: Any = None, *, selected: Any = None, sample_weight: Any = None
    ) -> Pictures:
        """Pictures as data with words, an SVG drawing and a Matplotlib one, made when first read.

        Parameters
        ----------
        X, y, selected, sample_weight
            As passed to `fit`. Pictures of effects, chances and assignments need no rows.
        """
        fit, evidence = self.fit_, evidence_of(self.fit_)
        given = (y, selected, sample_weight)
        rows = None if X is None else PictureRows(fit, evidence.naming, X, *given)
        return Pictures(evidence, rows)

    # The plug-in format of the package maketables. --------------------------------------------

    @property
    def __maketables_coef_table__(self) -> pd.DataFrame:
        return maketables.coef_table(self.fit_)

    def __maketables_stat__(self, key: str) -> Any:
        return maketables.statistic(self.fit_, key)

    @property
    def __maketables_depvar__(self) -> str:
        return maketables.outcome_name(self.fit_)

    @property
    def __maketables_vcov_info__(self) -> dict[str, Any]:
        return {"vcov_type": self.fit_.spec.cov_type or "classical", "clustervar": None}

    @property
    def __maketables_stat_labels__(self) -> dict[str, str]:
        return maketables.labels(self.fit_)

    @property
    def __maketables_default_stat_keys__(self) -> list[str]:
        return maketables.default_keys(self.fit_)


def mean_log_likelihood(
    model: SelectionModel, X: Any, y: Any, sample_weight: Any, selected: Any
) -> float:
    """Return `SelectionModel.log_likelihood` as an average over rows."""
    total, count = model._sum_log_likelihood(X, y, sample_weight, selected)
    return total / count
