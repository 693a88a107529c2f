"""The base of every selection model: the fit, its formulas, and predictions about selection."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from heckmanfa.data.arrays import Floats, compute_dask, is_dask, on_host
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.missing_features import Gaps, check_missing
from heckmanfa.data.outcomes import read_on_fit_scale, refuse_infinite_outcomes
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.sample import read_weights
from heckmanfa.data.scan.arrow_rows import ArrowRows
from heckmanfa.errors import MissingValueError, NotIdentifiedError
from heckmanfa.estimators.fitting import fit_estimator, groups_of_columns, make_spec, with_fit
from heckmanfa.estimators.formulas import FormulaModel
from heckmanfa.estimators.inferred import Inferred
from heckmanfa.estimators.reported import Reported
from heckmanfa.estimators.rows_elsewhere import frames_to_score, predict_lazily
from heckmanfa.estimators.scoring import ScoredModel
from heckmanfa.fit import LINEAR, Choose, Family, Origin, Spec
from heckmanfa.inference import prediction
from heckmanfa.inference.choosing import GivenFeatures
from heckmanfa.inference.prediction import Missing, Scale
from heckmanfa.inference.replicates import Refit
from heckmanfa.inference.rows_of_fit import weights_of
from heckmanfa.text.option_types import CovType


class SelectionModel(Inferred, Reported, FormulaModel, ScoredModel):
    """A model of an outcome that is observed only for selected rows.

    It is neither a regression nor a classifier: a subclass adds what its outcome is, and how it is
    predicted.
    """

    # What `fitting.attributes` sets.
    coef_: Floats
    intercept_: float
    selection_coef_: Floats
    selection_intercept_: float
    rho_: float
    aic_: float
    bic_: float
    log_likelihood_: float | None
    params_: Floats | None
    n_obs_: float
    n_clusters_: int | None
    selection_features_: list[Any]
    dropped_features_: list[Any]
    converged_: bool

    family: ClassVar[Family] = LINEAR
    """what makes the model the one that it is"""
    two_step_cov_type: ClassVar[CovType | None] = None
    """what ``cov_type=None`` stands for after two steps; None is the classical covariance"""

    @property
    def _family(self) -> Family:
        """What makes the model the one that it is, given its parameters."""
        return self.family

    def fit(
        self,
        X: Any,
        y: Any = None,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit both equations; a search or an average settles the prediction features first.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            Every feature of either equation: NumPy, pandas, Polars or PyArrow; Torch tensors;
            Dask DataFrames and Arrays; or rows of files from `heckmanfa.scan_parquet`, which
            include the outcome.
        y : array_like of shape (n,)
            The outcome, NaN where missing. For a classifier the class: 0 and 1, booleans, or any
            two numbers or texts; None, NaN or NA where missing. The class that sorts last is the
            positive one, or the last category if y is an ordered category.
        selected : array_like of bool, optional
            Which rows are selected; by default those whose y is not missing. If given, selected
            rows without y are left out, y of unselected rows is ignored, and scoring also needs it.
        sample_weight : array_like, optional
        groups : array_like, optional
            Clusters, for ``cov_type="cluster"``: one entry per row, or two columns, for errors
            that are clustered by both.

        Returns
        -------
        self
        """
        self._fit_rows(X, y, selected, sample_weight, groups)
        return self

    def _fit_rows(self, *rows: Any, **formulas: Any) -> None:
        """Fit the rows that `fit` was given, or those that formulas made."""
        fit_estimator(self, self._specify, *rows, **formulas)

    @classmethod
    def from_formula(
        cls,
        prediction: str,
        selection: str,
        data: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        **parameters: Any,
    ) -> Self:
        """Fit the model that two formulas describe, on a data frame.

        Parameters
        ----------
        prediction : str
            The prediction equation, as in ``"log(wage) ~ educ + exper + I(exper**2)"``. Its left
            side may compare (``"wage > 4 ~ educ"``): where the wage is missing, so is the outcome.
            For a classifier, it may also be a column of two classes.
        selection : str
            The selection equation. Its left side, if any, is who is selected (0 and 1, or
            booleans); without one, rows with an outcome are selected.
        data : data frame
            pandas, Polars or PyArrow. Rows with a missing outcome are kept; rows that lack a
            regressor they need are left out and counted in ``row_counts_``.
        sample_weight, groups : str or array_like, optional
            A column of ``data``, or one entry per row. Methods that take a data frame later find
            the column in it; arrays must be passed again. ``groups`` may also be a list of two
            columns, for errors that are clustered by both.
        **parameters
            Those of the class, except the lists of features: ``C(region)`` in a formula makes a
            category of numbers, and text is one anyway.

        Returns
        -------
        self
            Fitted; its `predict` and other methods take data frames with the formulas' variables.
            A clone knows the columns that the formulas made, but not the formulas: for
            cross-validation, make the columns first and use `fit`.
        """
        given = prediction, selection, data, sample_weight, groups
        return cls._of_formulas(*given, parameters)

    @classmethod
    def _formula_kind(cls) -> dict[str, bool]:
        return {"labels": cls.family.reads_labels, "everyone": cls.family.sees_everyone}

    def _specify(self, table: FeatureTable, design: FormulaDesign | None) -> tuple[Spec, Choose]:
        """Return what to fit, and how the prediction features are chosen."""
        prediction = resolve(table, getattr(self, self.roles[0]), self.roles[0])
        return make_spec(self, table, prediction, groups_of_columns(table, design)), GivenFeatures()

    def _refit(self) -> Refit:
        """Return how to fit the same model to resampled rows."""
        return Refit(self.fit_.spec.for_replicates(), GivenFeatures())

    # Prediction. ------------------------------------------------------------------------------

    def predict_selection(
        self,
        X: Any,
        *,
        scale: Scale = "response",
        return_interval: Literal["confidence"] | None = None,
        return_std: bool = False,
        conf_level: float = 0.95,
        missing: Missing = "error",
        unknown: Unknown | None = None,
    ) -> Any:
        """Probability of being selected, P(s = 1 | x), of each row, or the index behind it.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            Tensors give tensors on the same device. A Dask collection gives a lazy one.
        scale : {"response", "link"}
            The probability Phi(z'gamma), or the selection index z'gamma itself.
        return_interval : {None, "confidence"}
            Also return a confidence interval. That of a probability is Phi of the ends of the
            index's.
        return_std : bool
            Also return standard errors. That of a probability is phi(z'gamma) times the index's,
            by the delta method.
        conf_level : float
            Confidence level of the interval.
        missing, unknown
            As in `predict`.

        Returns
        -------
        values : ndarray of shape (n,)
            For a Dask DataFrame, a Series "probability" or "index".
        interval : ndarray of shape (n, 2)
            Only with ``return_interval``: lower and upper limits, NaN if the covariance of the
            estimates is unknown. For a Dask DataFrame, a DataFrame of "lower" and "upper".
        std : ndarray of shape (n,)
            Only with ``return_std``. For a Dask DataFrame, a Series "std_error".
        """
        check_missing(missing)
        self = self._reading(unknown)
        prediction.check_selection(self.fit_, scale, return_interval, return_std, conf_level)
        if is_dask(X):
            return self._lazily(
                X,
                "predict_selection",
                "index" if scale == "link" else "probability",
                scale=scale,
                return_interval=return_interval,
                return_std=return_std,
                conf_level=conf_level,
                missing=missing,
            )
        return prediction.predict_selection(
            self.fit_, X, missing, scale, return_interval, return_std, conf_level
        )

    def inverse_mills(
        self, X: Any, *, missing: Missing = "error", unknown: Unknown | None = None
    ) -> Any:
        """Inverse Mills ratio lambda(z'gamma) of each row: the mean of a selected row's error.

        With t errors it is that mean, (df + c^2) / (df - 1) t(c) / T(c) at c = z'gamma.
        ``missing`` and ``unknown`` are as in `predict`; for a Dask collection the result is lazy.
        """
        check_missing(missing)
        self = self._reading(unknown)
        if is_dask(X):
            return self._lazily(X, "inverse_mills", "imr", missing=missing)
        return prediction.predict_imr(self.fit_, X, missing)

    def missing_features(
        self, X: Any, kind: str = "marginal", *, unknown: Unknown | None = None
    ) -> Gaps:
        """Count the rows of X that have no prediction, since they lack a feature.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
        kind : {"marginal", "selected", "unselected", "expected", "selection"}
            As in `predict`; "selection" is the probability of being selected.
        unknown : {None, "error", "missing"}
            As in `predict`.

        Returns
        -------
        Gaps
            With ``n_rows``, ``n_missing``, and ``columns``: how many rows lack each feature.
        """
        return prediction.missing_features(self._reading(unknown).fit_, X, kind)

    def log_likelihood(
        self, X: Any, y: Any = None, selected: Any = None, *, sample_weight: Any = None
    ) -> float:
        """Joint log-likelihood of selection and outcomes in other data, at the estimates.

        Arguments are as in `score`; weights multiply the terms of their rows. The result is -inf if
        a two-step rho lies outside (-1, 1). With ``outcome_transform``, it is the likelihood of the
        outcome's logarithm, as in the fit.
        """
        return self._sum_log_likelihood(X, y, sample_weight, selected)[0]

    def _missing_in_scores(self) -> Missing:
        """Return what a score does with rows that lack a feature."""
        # Formulas leave the same rows out of a score as out of a fit; and a level that counts as
        # missing must not stop a cross-validation.
        fit = self.fit_
        return "nan" if fit.origin.design is not None or fit.spec.unknown == "missing" else "error"

    def _sum_log_likelihood(
        self, X: Any, y: Any, sample_weight: Any, selected: Any, *, whole: bool = True
    ) -> tuple[float, float]:
        """Return `log_likelihood` and the sum of weights of its rows.

        Rows that are selected and have no outcome are left out, as in a fit. ``whole`` says that
        there are no others.
        """
        fit = self.fit_
        if fit.probit is None:
            raise NotIdentifiedError(
                "no outcome was missing in the fit, so the joint likelihood is not known"
            )
        if isinstance(X, ArrowRows):
            frames = frames_to_score(self, X, y, sample_weight, selected)
            sums = [self._sum_log_likelihood(*frame, whole=False) for frame in frames]
            return sum(total for total, _ in sums), sum(count for _, count in sums)
        refuse_rows(X)
        match_rows({"X": X, "y": y, "selected": selected, "sample_weight": sample_weight})
        y, sample_weight, selected = self._beside(X, y, sample_weight, selected)
        equations = self._on_rows(X, "_index_and_mean", ["index", "mean"])
        if not is_dask(X):
            equations = np.column_stack(equations)
        equations, y, selected, sample_weight = compute_dask(equations, y, selected, sample_weight)
        index, mean = equations.T
        n = len(index)
        outcome, chosen = self._read_outcome(y, n, selected)
        seen = chosen & ~np.isnan(outcome)
        weight = np.ones(n)
        if sample_weight is not None:
            weight = read_weights(on_host(sample_weight), n, some=whole)
        counted = (seen | ~chosen) & (weight > 0)
        seen, weight = seen[counted], weight[counted]
        index, mean, outcome = index[counted], mean[counted], outcome[counted]
        refuse_infinite_outcomes(int(np.count_nonzero(np.isinf(outcome[seen]))))
        outcome = read_on_fit_scale(outcome, seen, fit.spec.outcome_transform)
        count = float(weight.sum())
        if fit.family.can("single rho") and not abs(fit.rho) < 1:
            return float("-inf"), count
        missing = ~np.isfinite(index) | (seen & ~np.isfinite(mean))
        if missing.any():
            raise MissingValueError(
                f"{np.count_nonzero(missing)} rows lack a regressor that the likelihood needs, or "
                "hold an infinite one; leave them out"
            )
        errors = fit.error_values
        terms = fit.family.log_missing(index, errors)
        terms[seen] = fit.family.log_density(index[seen], mean[seen], outcome[seen], errors)
        return float(weight @ terms), count

    def _index_and_mean(self, X: Any) -> tuple[Floats, Floats]:
        return prediction.index_and_mean(self.fit_, X)

    def _reading(self, unknown: Unknown | None) -> Self:
        """Return the model with another ``unknown``; None is that of the fit."""
        if unknown is None:
            return self
        model: Self = with_fit(self, self.fit_.reading(unknown))
        return model

    def _lazily(self, X: Any, method: str, name: str | list[str], **options: Any) -> Any:
        # Formulas check their own variables.
        fit = self.fit_
        columns = None if fit.origin.design is not None else fit.spec.columns
        return predict_lazily(self, X, method, name, columns, **options)

    @property
    def _known_origin(self) -> Origin:
        return self.fit_.origin

    def _weights_in(self, X: Any) -> Any:
        return weights_of(self.fit_, X, None, other_rows=True)


def mean_log_likelihood(
    model: SelectionModel, X: Any, y: Any, sample_weight: Any, selected: Any
) -> float:
    """Return `SelectionModel.log_likelihood` as an average over rows."""
    total, count = model._sum_log_likelihood(X, y, sample_weight, selected)
    return total / count
