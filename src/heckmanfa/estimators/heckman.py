"""The Heckman selection model as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, overload

from heckmanfa.data.arrays import Floats, is_dask
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.missing_features import check_missing
from heckmanfa.data.survey import Survey
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.scoring import ScoredRegressor
from heckmanfa.fit import SELECTION_T, SERIES, Family
from heckmanfa.inference import prediction
from heckmanfa.inference.log_means import check_scale
from heckmanfa.inference.prediction import IntervalKind, Kind, Missing, Scale
from heckmanfa.text.option_types import (
    CovType,
    Errors,
    InterceptAt,
    Method,
    OnProblem,
    OutcomeTransform,
    WeightKind,
)


class Heckman(ScoredRegressor, SelectionModel):
    """Heckman's selection model: an outcome observed only for selected rows.

    The prediction equation (also called the outcome equation) is y = b0 + x'b + e. We observe y if
    g0 + z'g + u > 0, the selection equation. (u, e) are normal with correlation rho, var(u) = 1
    and var(e) = sigma^2. Intercepts are fitted.

    Parameters
    ----------
    prediction_features, selection_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns in each equation; None is all of them. A
        feature may be in one equation only. Names are text: if a data frame's column names are
        integers other than 0 to K - 1 in order, integers are ambiguous and refused.
    method : {"two-step", "ml", "series"}
        Heckman's two-step estimator, full maximum likelihood, or a two-step series estimator
        (Newey, 2009), whose slopes need no normality of the outcome's error. Lambda is then
        replaced by terms in the selection index, s0 + s1 p1 + ... + sL pL, of which p1 is lambda.
        It needs a feature that drives selection alone. There is no rho and no sigma.
    cov_type : {None, "classical", "robust", "cluster"} or Survey
        None is "classical"; of a series it is "robust", and "classical" is refused. "cluster"
        needs ``groups`` in `fit`; with G clusters, tests and intervals use t(G - 1), and joint
        tests F(q, G - 1). A `heckmanfa.Survey` names the columns of X that are the design of a
        survey, its sampling weights among them.
    weight_kind : {"frequency", "sampling"}
        What ``sample_weight`` means. With "frequency", a weight of 2 is two rows (integers only).
        With "sampling", as in surveys, weights are rescaled to mean one and need ``cov_type``
        "robust" or "cluster".
    on_collinear, on_separation : {"error", "drop"}
        What to do with collinear columns, and with columns that determine selection exactly (and
        the rows they determine): raise an error that names them, or drop them with a warning.
    outcome_transform : {None, "log", "log1p"}
        Fit log(y) or log(1 + y) of the selected rows. Everything else takes y as it is, and
        `predict` and `score` are on its scale; coefficients, likelihood and criteria are on that of
        the logarithm.
    errors : {"normal", "t"}
        The joint distribution of the errors (u, e). "t", with ``method="ml"``, is the selection-t
        model of Marchenko and Genton (2012): bivariate t with degrees of freedom that are
        estimated as "df"; at infinity it is the normal model. sigma is then a scale, and the
        standard deviation is sigma sqrt(df / (df - 2)). See `profile_df`.
    start : float or array_like, optional
        Where maximum likelihood starts: None is the two-step estimates, a number in (-1, 1) is a
        rho (with all else at its best), and an array holds all parameters, as in ``params_`` of a
        model with the same columns in the same order. The fit reports the maximum reached from
        there, and warns if it knows another.
    categorical_features : {"from_dtype"}, sequence of str, int or bool, or None
        Columns of X that are categories: by default text and categories by their type, otherwise
        names, positions or a mask; None refuses text. Each becomes a dummy ``column[level]`` for
        every level that rows of the fit have, but the reference. Features named in other parameters
        are columns of X, each with all of its dummies, or single dummies.
    reference : dict, optional
        The reference level of some categories, as in ``{"region": "north"}``; that of the others is
        the first that rows of the fit have.
    unknown : {"error", "missing"}
        What to do in predictions with a level that the fit did not have: raise an error that
        names it, or count it as missing.
    rho : float, optional
        A value inside (-1, 1) at which rho is held; None estimates it. Two-step estimates are then
        those of `uncertainty_interval` at that rho. Standard errors take it as known, and no
        exclusion is needed. It has a zero row in `vcov`, and AIC and BIC do not count it.
    n_terms : int, optional
        With method "series": its number of terms, up to 50. None chooses it among 1 to 8 by
        leave-one-out cross-validation. Standard errors, and the replicates of `bootstrap`, take it
        as given.
    intercept : {None, "at infinity"}
        With method "series": whether to identify the intercept. None does not: it is NaN, and
        kind="marginal" is refused. "at infinity" averages y - x'b over the rows that were selected
        with a chance of 90% or more, with weights that rise to one at 99% (Heckman, 1990; Andrews
        and Schafgans, 1998); what those rows still have of selection is its bias.

    Attributes
    ----------
    coef_, selection_coef_ : ndarray of shape (K,)
        Zero where a feature is not in the equation.
    intercept_, selection_intercept_ : float
    imr_coef_ : float
        Coefficient of the inverse Mills ratio, rho times sigma.
    rho_, sigma_ : float
        Error correlation and standard deviation; a two-step ``rho_`` may lie outside (-1, 1).
    adjusted_r2_, aic_, bic_ : float
        Adjusted R^2 is of the two-step prediction equation with J features and m selected rows,
        1 - (1 - R^2) (m - 1) / (m - J - 1); it does not count lambda, as in Mai and Wu's paper.
        After two steps, AIC and BIC are of that equation too: m log(SSE/m) + 2 (J + 2) and
        m log(SSE/m) + (J + 2) log m. With method "ml" they are -2 log L + 2 k and
        -2 log L + k log n, of the joint likelihood of all n rows with its k parameters.
    log_likelihood_ : float or None
        With method "ml"; the log pseudolikelihood if the covariance is robust or clustered.
    params_ : ndarray or None
        With method "ml": all parameters on the scale of the input, to pass as ``start``. First
        the prediction equation, then the selection equation (each intercept first, then features
        in the order of X's columns), log sigma and atanh rho. With formulas, X's columns are
        those of the selection formula, then those of the prediction formula alone. The index of
        `vcov` labels all but the last two, before its "errors".
    n_terms_ : int
        With method "series": the number of terms. There are then no ``imr_coef_``, ``rho_`` and
        ``sigma_``, and adjusted R^2, AIC and BIC count the terms.
    left_out_errors_ : ndarray
        With method "series": mean squared leave-one-out errors of series of 1, 2, ... terms; empty
        if their number was given.
    n_obs_, n_selected_ : int or float
        Rows in the fit (the sum of frequency weights).
    n_clusters_ : int or None
        Clusters in the fit, with ``cov_type="cluster"``.
    row_counts_ : dict
        Every row given, by status.
    prediction_features_, selection_features_, dropped_features_ : list
        Names, or positions if X has no names.
    support_ : ndarray of bool, shape (n_features_in_,)
        Which columns of X predict.
    converged_ : bool
    transform_ratio_ : (float, float) or None
        With ``outcome_transform``: the mean over the selected rows of the outcome over its mean
        given selection (of 1 + y with "log1p"), which is 1 under the model, and its standard
        error. Averages and honest searches have none.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Only if X has names.
    encoded_names_ : ndarray of str, shape (K,)
        Names of the columns of ``coef_``: those of X, with dummies in place of categories.
    encoding_ : Encoding or None
        How columns of X become these; None if all are numbers.

    Examples
    --------
    >>> from heckmanfa import Heckman
    >>> from heckmanfa.datasets import load_mroz
    >>> mroz = load_mroz()
    >>> model = Heckman(prediction_features=["educ", "exper", "expersq"])
    >>> z = mroz[["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]]
    >>> round(model.fit(z, mroz["lwage"]).rho_, 4)
    0.0486
    """

    imr_coef_: float
    sigma_: float
    adjusted_r2_: float
    transform_ratio_: tuple[float, float] | None

    def __init__(
        self,
        prediction_features: Any = None,
        selection_features: Any = None,
        *,
        method: Method = "two-step",
        errors: Errors = "normal",
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
        rho: float | None = None,
        n_terms: int | None = None,
        intercept: InterceptAt | None = None,
        outcome_transform: OutcomeTransform | None = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    _by_method: ClassVar[Mapping[str, Family]] = {"series": SERIES}
    """families other than that of the class, by the method that asks for them"""

    @property
    def _family(self) -> Family:
        """The family of the class, or that of its method or its errors."""
        if getattr(self, "errors", "normal") == "t":
            return SELECTION_T
        return self._by_method.get(self.method, self.family)

    # Prediction. ------------------------------------------------------------------------------

    @overload
    def predict(
        self,
        X: Any,
        kind: Kind = ...,
        return_interval: None = ...,
        conf_level: float = ...,
        *,
        scale: Scale = ...,
        missing: Missing = ...,
        unknown: Unknown | None = ...,
    ) -> Floats: ...

    @overload
    def predict(
        self,
        X: Any,
        kind: Kind = ...,
        return_interval: IntervalKind = ...,
        conf_level: float = ...,
        *,
        scale: Scale = ...,
        missing: Missing = ...,
        unknown: Unknown | None = ...,
    ) -> tuple[Floats, Floats]: ...

    def predict(
        self,
        X: Any,
        kind: Kind = "marginal",
        return_interval: IntervalKind | None = None,
        conf_level: float = 0.95,
        *,
        scale: Scale = "response",
        missing: Missing = "error",
        unknown: Unknown | None = None,
    ) -> Any:
        """Predict the outcome of each row.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            Tensors give tensors on the same device. A Dask collection gives a lazy one: a Series
            "predicted" with X's index and divisions, or an Array with X's chunks of rows.
        kind : {"marginal", "selected", "unselected", "expected"}
            E[y | x], whether selected or not; E[y | x, s = 1], given selection; E[y | x, s = 0],
            given that the row is not selected; or P(s = 1 | x) E[y | x, s = 1], the expected
            outcome if that of an unselected row is 0, as in corner solutions. A series has no
            "unselected", and "marginal" only with ``intercept="at infinity"``.
        return_interval : {None, "prediction", "confidence"}
            A "prediction" interval contains a new outcome with probability ``conf_level`` if the
            model is correct. It accounts for the normal errors (skewed by selection if ``kind``
            conditions on it) and the uncertainty of the prediction coefficients. It ignores that
            of the selection coefficients, rho, sigma and a search. A "confidence" interval is
            for the expectation: the delta method, with the uncertainty of both equations. It is
            the only one of kind "expected". For an average, both are quantiles of a mixture of
            normal distributions over assignments. With ``outcome_transform``, all are intervals
            of logarithms, and the uncertainty of sigma counts for the expectation.
        conf_level : float
            Confidence level of the interval.
        scale : {"response", "link"}
            With ``outcome_transform``, "response" is the mean of the outcome on its own scale, by
            the model's formula: exp(x'b + sigma^2 / 2), times Phi(z'g + rho sigma) / Phi(z'g)
            given selection. "link" is the mean of its logarithm. Without a transform they are the
            same.
        missing : {"error", "nan"}
            What to do with rows that lack a feature they need: raise an error with counts by
            column, or predict NaN. Infinite values always raise an error.
        unknown : {None, "error", "missing"}
            What to do with levels of a category that the fit did not have: raise an error that
            names them, or count them as missing. None is as the model was fitted.

        Returns
        -------
        values : ndarray of shape (n,)
        interval : ndarray of shape (n, 2)
            Only with ``return_interval``: lower and upper limits, NaN if the covariance of the
            estimates is unknown. For a Dask DataFrame, a DataFrame of "lower" and "upper".
        """
        self = self._reading(unknown)
        fit = self.fit_
        check_missing(missing)
        prediction.check_kind(fit, kind)
        if return_interval is not None:
            prediction.check_interval(return_interval, conf_level, kind)
        check_scale(scale)
        if is_dask(X):
            return self._lazily(
                X,
                "predict",
                "predicted",
                kind=kind,
                return_interval=return_interval,
                conf_level=conf_level,
                scale=scale,
                missing=missing,
            )
        return prediction.predict(fit, X, kind, return_interval, conf_level, missing, scale)

    def _to_score(
        self, X: Any, y: Any, sample_weight: Any, selected: Any, *, drop: bool = False
    ) -> tuple[Any, ...]:
        y, sample_weight, selected = self._beside(X, y, sample_weight, selected)
        missing: Missing = "nan" if drop else self._missing_in_scores()
        predicted = self.predict(X, kind="selected", missing=missing)
        return predicted, y, sample_weight, selected
