"""What a fitted selection model can do: predict, score, and report on itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Array, Floats, host, is_dask, like, namespace
from heckmanfa.data.columns.features import FeatureTable, linear, same
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.missing_features import Gaps, check_missing, find_gaps, refuse_gaps
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.sample import read_features
from heckmanfa.data.tensors import explain_out_of_memory, on_host
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.estimators.remembered import column_or_values, weights_of
from heckmanfa.estimators.scoring import ScoredRegressor, sum_log_likelihood
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import inverse_mills, log_cdf
from heckmanfa.model.option_types import CovType, Method, WeightKind
from heckmanfa.model.probit import Probit
from heckmanfa.results import caveats
from heckmanfa.results import coefficients as results
from heckmanfa.results.diagnostics import Diagnostics, diagnose
from heckmanfa.results.maketables import MaketablesModel
from heckmanfa.results.reports import Report, read_reports
from heckmanfa.results.summary import Summary
from heckmanfa.text.printable import quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FittedSelectionModel"]


class FittedSelectionModel(MaketablesModel, ScoredRegressor):
    """Prediction and reporting for every estimator of the package that is a Heckman model.

    `fit` of a subclass sets the attributes below; none is as long as the data.
    """

    coef_: Floats
    intercept_: float
    imr_coef_: float
    rho_: float
    sigma_: float
    selection_coef_: Floats
    selection_intercept_: float
    adjusted_r2_: float
    aic_: float
    bic_: float
    log_likelihood_: float | None
    params_: Floats | None = None
    n_obs_: int | float
    n_selected_: int | float
    n_clusters_: int | None = None
    """None unless the covariance is clustered"""
    row_counts_: dict[str, int]
    prediction_features_: list[Any]
    selection_features_: list[Any]
    dropped_features_: list[Any]
    support_: Any
    converged_: bool
    n_features_in_: int

    method: Method
    cov_type: CovType | None
    weight_kind: WeightKind

    _weighted: bool = False
    """whether rows had weights"""
    _names: list[str]
    """a label for every column of X"""
    _column_labels: tuple[Any, ...] | None
    """what X called its columns where that is not text"""
    _moments: Moments
    _design: FormulaDesign | None
    """how to make X from a frame, for a model from formulas"""
    _together: list[list[str]]
    """columns of X that one column of a table became, where the rows' home knows that"""
    _weight_column: str | None = None
    """of the data frame, where weights of a model from formulas were named by it"""
    _group_column: str | None = None
    """likewise"""
    _index_range: tuple[float, float]
    """of z'gamma among the selected rows of the fit"""
    _terms: list[tuple[str, str]]
    """(equation, term) of each row of the covariance"""
    _covariance: Floats
    _atanh_rho: tuple[float, float] | None
    """maximum likelihood's estimate and standard error"""
    _log_sigma: tuple[float, float] | None
    _second_maximum: tuple[float, float] | None
    """log-likelihood and rho of another maximum that is known"""

    @property
    def _probit(self) -> Probit | None:
        """The selection equation; None where every outcome was observed."""
        return self._moments.probit

    @property
    def _rho_is_conditioned(self) -> bool:
        """Whether rho-hat was part of a choice, so that no test of rho = 0 is valid."""
        return False

    @property
    def _is_search(self) -> bool:
        """Whether `fit` searches for the prediction features."""
        return False

    def _comparison(self) -> tuple[pd.DataFrame, list[str]] | None:
        """Other models beside this one, for the summary, and what there is to say about it."""
        return None

    @overload
    def predict(
        self,
        X: Any,
        kind: str = ...,
        return_interval: None = ...,
        conf_level: float = ...,
        *,
        missing: str = ...,
    ) -> Floats: ...

    @overload
    def predict(
        self,
        X: Any,
        kind: str = ...,
        *,
        return_interval: str,
        conf_level: float = ...,
        missing: str = ...,
    ) -> tuple[Floats, Floats]: ...

    @overload
    def predict(
        self,
        X: Any,
        kind: str,
        return_interval: str,
        conf_level: float = ...,
        *,
        missing: str = ...,
    ) -> tuple[Floats, Floats]: ...

    def predict(
        self,
        X: Any,
        kind: str = "marginal",
        return_interval: str | None = None,
        conf_level: float = 0.95,
        *,
        missing: str = "error",
    ) -> Any:
        """Predict the outcome of each row.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            For tensors the prediction is one, too, where they are.
            For a Dask collection the prediction is one, too, and not yet computed: a Series
            "predicted" with X's index and divisions, or an Array with X's chunks of rows.
        kind : {"marginal", "selected", "unselected"}
            E[y | x], the outcome of anyone with these features; E[y | x, s = 1], given that the
            row is selected; E[y | x, s = 0], given that it is not.
        return_interval : {None, "prediction", "confidence"}
            "prediction" is to hold a new outcome with the probability ``conf_level``, where the
            model is right: its law has the normal errors of the model, skewed by selection where
            ``kind`` asks for it, and the uncertainty of the prediction coefficients. That of the
            selection coefficients, rho and sigma is not in it, nor is that of a search for the
            features. "confidence" is for the expectation itself, by the delta method, with the
            uncertainty of both equations.
        conf_level : float
            Of the interval.
        missing : {"error", "nan"}
            What becomes of rows that miss a feature that the prediction needs: they are refused,
            with counts by column, or their prediction is NaN. This holds for arrays, frames,
            formulas and Dask alike; infinity is refused in any case.

        Returns
        -------
        values : ndarray of shape (n,)
            One entry for each row.
        interval : ndarray of shape (n, 2)
            Only with ``return_interval``: lower and upper limits; NaN also where the covariance
            of the estimates is not known. For a Dask DataFrame, one with the columns "lower" and
            "upper".
        """
        check_is_fitted(self)
        check_missing(missing)
        if return_interval is not None:
            from heckmanfa.inference.intervals import check_interval, interval

            check_interval(return_interval, conf_level)
        if kind not in ("marginal", "selected", "unselected"):
            raise InputError(
                f"kind must be 'marginal', 'selected' or 'unselected'; got {quoted(kind)}"
            )
        if kind == "unselected" and self._probit is None:
            raise NotIdentifiedError(
                "no outcome was missing in the fit, so nothing is known about unselected rows"
            )
        if is_dask(X):
            from heckmanfa.estimators.dask_predict import predict_lazily

            return predict_lazily(self, X, kind, return_interval, conf_level, missing)
        with_imr = kind != "marginal" and self._probit is not None
        with explain_out_of_memory():
            refuse_rows(X, f"predict_parquet(model, path, out, kind={quoted(kind)})")
            table = self._read(X, prediction=True, selection=with_imr, missing=missing)
            values = self._mean(table)
            if with_imr:
                side = 1.0 if kind == "selected" else -1.0
                values += side * self.imr_coef_ * inverse_mills(side * self._index(table))
        if return_interval is None:
            return values
        if table.tensors:
            table = self._read(on_host(X), prediction=True, selection=with_imr, missing=missing)
        return values, like(interval(self, table, kind, return_interval, conf_level), values)

    def predict_selection(self, X: Any, *, missing: str = "error") -> Any:
        """Probability of being selected, P(s = 1 | x), for each row (lazy where X is Dask).

        ``missing`` says what becomes of rows that miss a feature, as in `predict`.
        """
        check_is_fitted(self)
        check_missing(missing)
        refuse_rows(X, "predict_parquet(model, path, out, kind='selection')")
        if is_dask(X):
            from heckmanfa.estimators.dask_predict import map_rows

            return map_rows(self, X, "predict_selection", "probability", missing=missing)
        needed = self._probit is not None
        table = self._read(X, prediction=False, selection=needed, missing=missing)
        if self._probit is None:
            return same(table, 1.0)
        index = self._index(table)
        return namespace(index).exp(log_cdf(index))

    def inverse_mills(self, X: Any, *, missing: str = "error") -> Any:
        """Inverse Mills ratio lambda(z'gamma) of each row (lazy where X is Dask).

        ``missing`` says what becomes of rows that miss a feature, as in `predict`.
        """
        check_is_fitted(self)
        check_missing(missing)
        if is_dask(X):
            from heckmanfa.estimators.dask_predict import map_rows

            return map_rows(self, X, "inverse_mills", "imr", missing=missing)
        needed = self._probit is not None
        table = self._read(X, prediction=False, selection=needed, missing=missing)
        if self._probit is None:
            return same(table, 0.0)
        return inverse_mills(self._index(table))

    def _predict_selected(self, X: Any) -> Any:
        # What formulas leave out of a fit they leave out of a score, too.
        missing = "error" if self._design is None else "nan"
        return self.predict(X, kind="selected", missing=missing)

    def _who_is_selected(self, X: Any, selected: Any) -> Any:
        if selected is not None or self._design is None or not self._selected_given:
            return super()._who_is_selected(X, selected)
        if is_dask(X):
            from heckmanfa.estimators.dask_predict import map_rows

            return map_rows(self, X, "_selected_by_formula", "selected")
        return self._selected_by_formula(X)

    def _outcome_to_score(self, X: Any, y: Any) -> Any:
        if y is not None or self._design is None:
            return y
        if is_dask(X):
            from heckmanfa.estimators.dask_predict import map_rows

            return map_rows(self, X, "_outcome_by_formula", "outcome")
        return self._outcome_by_formula(X)

    def _outcome_by_formula(self, X: Any) -> Floats:
        """Return the left side of the prediction formula, NaN where it is missing."""
        assert self._design is not None
        return self._design.outcome_of(X)

    def _weights_to_score(self, X: Any, sample_weight: Any) -> Any:
        if self._design is None:
            return sample_weight
        sample_weight = weights_of(self, X, sample_weight, other_rows=True)
        return column_or_values(X, sample_weight, "sample_weight")

    def _selected_by_formula(self, X: Any) -> Floats:
        """Return 1 where the left side of the selection formula selects a row, and 0 elsewhere."""
        assert self._design is not None
        return self._design.who_is_selected(X).astype(np.float64)

    def log_likelihood(
        self, X: Any, y: Any = None, selected: Any = None, *, sample_weight: Any = None
    ) -> float:
        """Joint log-likelihood of selection and outcomes in other data, at the estimates.

        Parameters
        ----------
        X : array or data frame
        y : array_like, optional
            NaN where missing. A model from formulas works it out from X by the left side of its
            prediction formula, unless it is given.
        selected : array_like of bool, optional
            As in `fit`, and needed where `fit` was given it. A selection formula says it itself.
        sample_weight : array_like, optional
            How often the term of each row counts.

        Returns
        -------
        float
            -inf where a two-step rho lies outside (-1, 1).
        """
        return sum_log_likelihood(self, X, y, selected, sample_weight)[0]

    def _both_equations(self, X: Any) -> tuple[Floats, Floats]:
        """Return the selection index and the mean of every row, NaN where one is not known."""
        table = self._read(X, prediction=True, selection=True, missing=None)
        return self._index(table), self._mean(table)

    def _mean(self, table: FeatureTable) -> Array:
        columns = [int(one) for one in np.flatnonzero(self.support_)]
        return linear(table, columns, self.coef_) + self.intercept_

    def _index(self, table: FeatureTable) -> Array:
        assert self._probit is not None
        linear_part = linear(table, self._probit.features, self.selection_coef_)
        return linear_part + self.selection_intercept_

    def _read(
        self, X: Any, *, prediction: bool, selection: bool, missing: str | None = "error"
    ) -> FeatureTable:
        """Take in X for a fitted model, with the rule for rows that miss a feature.

        None leaves it to the caller to look for what is missing or infinite.
        """
        refuse_rows(X)
        given = X
        if self._design is not None:
            X = self._design.transform(X, prediction=prediction, selection=selection)
        table = read_features(self, X, reset=False)
        if missing is not None:
            gaps = self._gaps(table, given, prediction=prediction, selection=selection)
            if missing == "error":
                refuse_gaps(gaps)
        return table

    def _gaps(self, table: FeatureTable, X: Any, *, prediction: bool, selection: bool) -> Gaps:
        """Count the rows of X, taken in as a table, that miss what a prediction needs."""
        columns = {int(one) for one in np.flatnonzero(self.support_)} if prediction else set()
        if selection and self._probit is not None:
            columns |= set(self._probit.features)
        gaps = find_gaps(table, sorted(columns))
        if gaps.n_missing and self._design is not None:
            # A row that misses one variable has no column of that formula.
            names = self._design.missing_variables(X, prediction=prediction, selection=selection)
            gaps = Gaps(gaps.n_rows, gaps.n_missing, names or gaps.columns)
        return gaps

    def missing_features(self, X: Any, kind: str = "marginal") -> Gaps:
        """Count the rows of X that miss a feature, and so have no prediction of this kind.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
        kind : {"marginal", "selected", "unselected", "selection"}
            As in `predict`; "selection" is the probability of being selected.

        Returns
        -------
        Gaps
            With ``n_rows``, ``n_missing``, and ``columns``: how many rows miss each feature.
        """
        check_is_fitted(self)
        needs = {"prediction": kind != "selection", "selection": kind != "marginal"}
        table = self._read(X, missing=None, **needs)
        return self._gaps(table, X, **needs)

    # Reporting. -------------------------------------------------------------------------------

    def tidy(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Estimates, standard errors, tests and intervals as a data frame.

        Parameters
        ----------
        conf_level : float
            Of the intervals.

        Returns
        -------
        DataFrame
            Columns equation ("prediction", "selection", "errors"), term, estimate, std_error,
            statistic (z; with a cluster covariance t, with one less degree of freedom than there
            are clusters), p_value, ci_low, ci_high. In "errors", "imr" is the coefficient of the
            inverse Mills ratio. A two-step rho and sigma have no standard error; those of maximum
            likelihood are by the delta method, their intervals (and the test of rho = 0) on the
            scale of atanh rho and log sigma.
        """
        check_is_fitted(self)
        return results.tidy(self, conf_level)

    def vcov(self) -> pd.DataFrame:
        """Joint covariance of both equations, labelled (equation, term) as in `tidy`.

        After maximum likelihood the three error terms are functions of two parameters, so that
        the matrix with all of them has one rank less than rows.
        """
        check_is_fitted(self)
        return results.vcov(self)

    def wald_test(
        self, hypothesis: str | ArrayLike, value: ArrayLike | None = None
    ) -> results.Wald:
        """Wald test of linear restrictions on the coefficients.

        Parameters
        ----------
        hypothesis : str or array_like
            As in ``"educ = exper"``, ``"educ = 0, exper = 0"`` or
            ``"selection.educ = educ"``: names alone are of the prediction equation, "selection."
            goes before those of the selection equation, "imr" is the inverse Mills ratio; several
            may also come as a list. Or a matrix with one column for each row of `vcov`.
        value : array_like, optional
            Right-hand sides for a matrix; zero unless given.

        Returns
        -------
        Wald
            With statistic, degrees of freedom and p-value: chi-squared, or F(q, G - 1) with the
            covariance of G clusters. More restrictions than G - 1 are refused.
        """
        check_is_fitted(self)
        return results.wald_test(self, hypothesis, value)

    def summary(self, conf_level: float = 0.95, include: Report | Sequence[Report] = ()) -> Summary:
        """Both equations as a table, with the row counts and warnings; prints and shows HTML.

        Parameters
        ----------
        conf_level : float
            Of the intervals.
        include : report or sequence of reports
            What `bootstrap`, `uncertainty_interval`, `what_if`, `exclusion_test`,
            `specification_tests`, `margins` or ``honest_`` gave, to be set below.

        Returns
        -------
        Summary
        """
        check_is_fitted(self)
        notes = [one.sentence for one in caveats.of_fit(self)]
        return results.summarize(self, conf_level, read_reports(include), notes)

    def diagnostics(self, X: Any = None, include: Report | Sequence[Report] = ()) -> Diagnostics:
        """What the data can and cannot tell: exclusion, collinearity, rho, extrapolation.

        Parameters
        ----------
        X : array or data frame, optional
            Rows to predict for: the share whose selection index lies outside the fitted range
            is reported. Rows that miss a feature are not counted, and the report says so.
        include : report or sequence of reports
            As in `summary`: what they found is added. What varying rho and putting features back
            would do needs no rows, and is always there.

        Returns
        -------
        Diagnostics
        """
        check_is_fitted(self)
        index = None
        if X is not None and self._probit is not None:
            table = self._read(X, prediction=False, selection=True, missing="nan")
            index = host(self._index(table))
        reports = read_reports(include)
        given = {type(one) for one in reports}
        reports = [*self._own_reports(given), *reports]
        return diagnose(self, index, reports, caveats.as_findings(self))

    def _own_reports(self, given: set[type[Report]]) -> list[Report]:
        """Reports that need no rows, for the diagnostics; not of the kinds that are given."""
        return []

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` ended well."""
        return hasattr(self, "_covariance")
