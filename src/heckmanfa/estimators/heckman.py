"""The Heckman selection model as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import MetadataRequest

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import FeatureTable, names_or_positions, resolve
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import Positions, one_blas_thread
from heckmanfa.data.sample import (
    Sample,
    check_parameters,
    find_row_source,
    read_features,
    read_sample,
)
from heckmanfa.data.tensors import explain_out_of_memory
from heckmanfa.errors import (
    AllObservedWarning,
    ConvergenceWarning,
    CovarianceWarning,
    FewClustersWarning,
    InputError,
    NoExclusionWarning,
    RhoOutsideWarning,
    SecondMaximumWarning,
    TooFewRowsError,
    warn,
)
from heckmanfa.estimators.inference_methods import RefereedModel
from heckmanfa.estimators.refitting import whole_fit
from heckmanfa.model.covariance import CovarianceKind, check_clusters, count_clusters, is_classical
from heckmanfa.model.equations import (
    Selection,
    check_prediction,
    fit_selection,
    gather,
    weighted_count,
)
from heckmanfa.model.leakage import refuse_leakage
from heckmanfa.model.least_squares import fit_least_squares
from heckmanfa.model.likelihood import MaximumLikelihood, fit_likelihood
from heckmanfa.model.likelihood_starts import elsewhere, read_start
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.option_types import CovType, Method, OnProblem, WeightKind
from heckmanfa.model.two_step import TwoStep, fit_two_step
from heckmanfa.results.problems import higher_maximum, rho_text
from heckmanfa.results.reference import FEW_CLUSTERS, reference_of

__all__ = ["Heckman"]


class Heckman(RefereedModel):
    """Heckman's selection model: an outcome seen only for those selected.

    The prediction equation (the field also calls it the outcome equation) is
    y = b0 + x'b + e; y is seen where g0 + z'g + u > 0, the selection equation; (u, e) are
    normal with correlation rho, var(u) = 1, var(e) = sigma^2. Intercepts are fitted.

    Parameters
    ----------
    prediction_features, selection_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns in each equation; None is all of them. A
        feature may be in one equation only. Names are text: where a frame names its columns by
        numbers other than 0 to K - 1 in order, integers could be either, and are refused.
    method : {"two-step", "ml"}
        Heckman's two-step estimator, or full maximum likelihood.
    cov_type : {None, "classical", "robust", "cluster"}
        None is the classical covariance of the method, and so is "classical". "cluster" needs
        ``groups`` in `fit`; with G clusters, tests and intervals are by t(G - 1) and joint tests by
        F(q, G - 1).
    weight_kind : {"frequency", "sampling"}
        What ``sample_weight`` means: a weight of 2 is two rows (whole numbers only), or a row
        stands for more of the population, as in surveys (rescaled to mean one; needs ``cov_type``
        "robust" or "cluster").
    on_collinear, on_separation : {"error", "drop"}
        What to do with collinear columns, and with columns that decide selection with certainty
        (and the rows that they decide): refuse, naming them, or leave out with a warning.
    start : float or array_like, optional
        Where maximum likelihood starts: None is the two-step estimates, a number in (-1, 1) is a
        rho (all else at its best for it), and an array holds all parameters, as in ``params_``
        of a model with the same columns in the same order: a vector carries no names, so that
        of another model would be taken for these parameters.
        The fit goes to the maximum that is reached from there, and says where it knows another.

    Attributes
    ----------
    coef_ : ndarray of shape (K,)
        Prediction equation; zero where a feature does not predict.
    intercept_ : float
    imr_coef_ : float
        Coefficient of the inverse Mills ratio, rho times sigma.
    rho_, sigma_ : float
        Error correlation and standard deviation; a two-step ``rho_`` may lie outside (-1, 1).
    selection_coef_ : ndarray of shape (K,)
    selection_intercept_ : float
    adjusted_r2_, aic_, bic_ : float
        Of the two-step prediction equation with J features and m selected rows, to compare sets
        of features: 1 - (1 - R^2) (m - 1) / (m - J - 1), m log(SSE/m) + 2 (J + 2), and
        m log(SSE/m) + (J + 2) log m. Adjusted R^2 does not count lambda, as in Mai and Wu's
        paper; AIC and BIC do.
    log_likelihood_ : float or None
        For method "ml"; with a robust or cluster covariance, the log pseudolikelihood.
    params_ : ndarray or None
        For method "ml": all parameters of the likelihood in the input's scale, those of the
        prediction equation, then of the selection equation (each intercept first, then features
        in the order of X's columns), log sigma and atanh rho. To be passed as ``start``. With
        formulas, X's columns are those of the selection formula, then those that only the
        prediction formula has, so the order need not be that of a formula. The labels of all but
        the last two are ``[one for one in model.vcov().index if one[0] != "errors"]``.
    n_obs_, n_selected_ : int or float
        Rows in the fit (the sum of frequency weights).
    n_clusters_ : int or None
        Clusters in the fit, with ``cov_type="cluster"``.
    row_counts_ : dict
        Every row given, by what became of it.
    prediction_features_ : list
        Names, or positions where X has no names.
    support_ : ndarray of bool, shape (K,)
    dropped_features_ : list
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had names.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "prediction_features": ["array-like", None],
        "selection_features": ["array-like", None],
        "method": [StrOptions({"two-step", "ml"})],
        "cov_type": [StrOptions({"classical", "robust", "cluster"}), None],
        "weight_kind": [StrOptions({"frequency", "sampling"})],
        "on_collinear": [StrOptions({"error", "drop"})],
        "on_separation": [StrOptions({"error", "drop"})],
        "start": [Interval(Real, -1, 1, closed="neither"), "array-like", None],
    }

    start: Any = None
    """what models that were saved before there was a start have"""

    def __init__(
        self,
        prediction_features: Any = None,
        selection_features: Any = None,
        *,
        method: Method = "two-step",
        cov_type: CovType | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
    ) -> None:
        self.prediction_features = prediction_features
        self.selection_features = selection_features
        self.method = method
        self.cov_type = cov_type
        self.weight_kind = weight_kind
        self.on_collinear = on_collinear
        self.on_separation = on_separation
        self.start = start

    def fit(
        self,
        X: Any,
        y: Any = None,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit both equations.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            Every feature of either equation: NumPy, pandas, Polars or PyArrow; Torch tensors;
            Dask DataFrames and Arrays; or rows of files from `heckmanfa.scan_parquet`, which say
            themselves what the outcome is.
        y : array_like of shape (n,)
            The outcome, NaN where missing.
        selected : array_like of bool, optional
            Who is selected. None takes the rows whose y is not NaN. Otherwise selected rows
            without y are left out, y of unselected rows is ignored, and scoring needs it, too.
        sample_weight : array_like, optional
        groups : array_like, optional
            Clusters, for ``cov_type="cluster"``.

        Returns
        -------
        self
        """
        given = selected is not None
        home = find_row_source(X, y, selected, sample_weight, groups)
        if home is not None:
            given = home.has_selected
            X, y, selected = home, None, None
            sample_weight, groups = home.has_weight or None, home.has_groups or None
        self._check_parameters(sample_weight, groups)
        with whole_fit(self), one_blas_thread(), explain_out_of_memory():
            self._selected_given = given
            return self._fit(X, y, selected, sample_weight, groups)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what scikit-learn's metadata routing hands to each method.

        ``selected`` always; ``groups`` where ``cov_type="cluster"`` uses them; ``sample_weight``
        and others where ``set_fit_request`` or ``set_score_request`` asks for them.
        """
        request: MetadataRequest = super().get_metadata_routing()
        if request.fit.requests.get("groups") is None:
            request.fit.add_request(param="groups", alias=self.cov_type == "cluster")
        return request

    def _fit(self, X: Any, y: Any, selected: Any, sample_weight: Any, groups: Any) -> Self:
        self._design = None
        self._atanh_rho = self._log_sigma = self._second_maximum = None
        table = read_features(self, X, reset=True)
        sample = self._take_in(table, y, selected, sample_weight, groups)
        self._fit_sample(table, sample)
        self._warn_of_few_clusters()
        return self

    def _warn_of_few_clusters(self) -> None:
        reference = reference_of(self)
        if reference.n_clusters is not None and reference.n_clusters < FEW_CLUSTERS:
            warn(
                f"the covariance rests on {reference.n_clusters} clusters. With fewer than "
                f"{FEW_CLUSTERS}, standard errors tend to be too small, and tests reject too "
                f"often, even with the {reference.name} distribution that is used here",
                FewClustersWarning,
            )

    def _take_in(
        self, table: FeatureTable, y: Any, selected: Any, sample_weight: Any, groups: Any
    ) -> Sample:
        """Apply the row rules."""
        selection, prediction = self._columns(table)
        return read_sample(
            table,
            y,
            selected=selected,
            sample_weight=sample_weight,
            groups=groups,
            sampling=self.weight_kind == "sampling",
            selection=selection,
            prediction=prediction,
        )

    def _fit_sample(self, table: FeatureTable, sample: Sample) -> None:
        """Fit both equations on rows that were taken in."""
        prediction = self._prediction(table)
        kind = CovarianceKind(
            self.cov_type or "classical", self.weight_kind == "sampling", sample.n_groups
        )
        self.row_counts_ = dict(sample.row_counts)
        self.dropped_features_ = []
        self._names = table.labels(range(table.shape[1]))
        self._weighted = sample.rows.weighted
        clustered = self.cov_type == "cluster"
        self.n_clusters_ = check_clusters(sample.n_groups) if clustered else None
        if sample.all_selected:
            self._fit_all_observed(table, sample, prediction, kind)
            return
        fitted, moments = self._compress(table, sample)
        prediction = [one for one in prediction if one not in fitted.separating]
        self.row_counts_ |= fitted.row_counts()
        self.dropped_features_ += names_or_positions(table.names, fitted.dropped)
        if clustered and fitted.n_decided:
            self.n_clusters_ = check_clusters(count_clusters(fitted.rows))
        features = self._choose(moments, fitted, prediction, table)
        self._finish(moments, fitted, features, kind, table)

    def _for_replicates(self) -> Self:
        """Return an unfitted copy whose many fits are only asked for estimates."""
        model: Self = clone(self)
        model.set_params(cov_type=None, start=elsewhere(read_start(self.start, self.method)))
        return model

    def _like(self, table: FeatureTable, source: np.random.Generator) -> Self:
        """Return an unfitted copy that is ready for rows of such a table."""
        model: Self = clone(self)
        model.n_features_in_ = table.shape[1]
        if table.names is not None:
            model.feature_names_in_ = np.array(table.names, dtype=object)
        model._column_labels = table.labels_given
        model._design = model._atanh_rho = model._log_sigma = model._second_maximum = None
        if "random_state" in self._get_param_names():
            model.set_params(random_state=int(source.integers(2**31)))
        return model

    def _refuse_interrupted(self) -> None:
        """Pass on an interruption that a search has answered with what it had found so far."""

    def _columns(self, table: FeatureTable) -> tuple[list[int], list[int]]:
        """Columns of the selection equation, and those that the prediction equation may need."""
        selection = resolve(table, self.selection_features, "selection_features")
        return selection, self._prediction(table)

    def _compress(self, table: FeatureTable, sample: Sample) -> tuple[Selection, Moments]:
        """Fit the selection equation and compress the selected rows."""
        selection, prediction = self._columns(table)
        fitted = fit_selection(
            sample.rows,
            selection,
            table.labels(range(table.shape[1])),
            on_collinear=self.on_collinear,
            on_separation=self.on_separation,
        )
        prediction = [one for one in prediction if one not in fitted.separating]
        names = table.labels(range(table.shape[1]))
        return fitted, gather(fitted, prediction, names, sample.row_counts["selected"])

    def _check_parameters(self, sample_weight: Any, groups: Any) -> None:
        read_start(self.start, self.method)
        check_parameters(self)
        sampling = sample_weight is not None and self.weight_kind == "sampling"
        if sampling and is_classical(self.cov_type):
            raise InputError(
                "sampling weights need cov_type='robust' or 'cluster': the classical covariance "
                "takes a weight for a number of rows"
            )
        if self.cov_type == "cluster" and groups is None:
            raise InputError(
                "cov_type='cluster' needs groups: fit(X, y, groups=...), or groups='column' in "
                "from_formula and scan_parquet, with the name of a column of the data"
            )
        if self.cov_type != "cluster" and groups is not None:
            raise InputError("groups are used with cov_type='cluster' only; set it, or drop groups")

    def _prediction(self, table: FeatureTable) -> list[int]:
        """Columns that the prediction equation may need."""
        return resolve(table, self.prediction_features, "prediction_features")

    def _choose(
        self,
        moments: Moments,
        selection: Selection,
        prediction: Positions,
        table: FeatureTable,
    ) -> list[int]:
        """Settle the prediction features."""
        if moments.n_selected <= len(prediction) + 2:
            raise TooFewRowsError(
                f"{len(prediction)} prediction features, an intercept and the inverse Mills ratio "
                f"need more than {len(prediction) + 2} selected rows; there are "
                f"{weighted_count(moments.n_selected)}"
            )
        features, dropped = check_prediction(moments, prediction, self._names, self.on_collinear)
        self.dropped_features_ += [
            one
            for one in names_or_positions(table.names, dropped)
            if one not in self.dropped_features_
        ]
        if set(selection.probit.features) <= set(features):
            warn(
                "every selection feature also predicts: with no excluded feature, only the "
                "normality of the errors identifies the model. Leave a feature that drives "
                "selection alone out of prediction_features.",
                NoExclusionWarning,
            )
        return features

    def _finish(
        self,
        moments: Moments,
        selection: Selection,
        features: Positions,
        kind: CovarianceKind,
        table: FeatureTable,
    ) -> None:
        """Fit the prediction equation on settled features and set every attribute."""
        probit, rows = selection.probit, selection.rows
        first = CovarianceKind("classical", False) if self.method == "ml" else kind
        two_step = fit_two_step(moments, probit, features, first, rows)
        self._moments = moments
        self._index_range = moments.index_range
        self.adjusted_r2_ = float(two_step.solution.adjusted_r2)
        self.aic_, self.bic_ = float(two_step.solution.aic), float(two_step.solution.bic)
        self._set_counts(probit.n, moments.n_selected, kind)
        self._set_features(table, two_step.features)
        self.selection_features_ = names_or_positions(table.names, probit.features)
        self.converged_ = probit.converged
        if self.method == "ml":
            start = read_start(self.start, self.method)
            self._set_likelihood(fit_likelihood(moments, probit, two_step, kind, rows, start))
        else:
            self._set_two_step(two_step)

    def _set_counts(self, n: float, n_selected: float, kind: CovarianceKind) -> None:
        """Count rows, or what frequency weights say they stand for."""
        if kind.sampling:
            n, n_selected = (
                self.row_counts_["selected"] + self.row_counts_["unselected"],
                self.row_counts_["selected"],
            )
        self.n_obs_, self.n_selected_ = weighted_count(n), weighted_count(n_selected)

    def _set_features(self, table: FeatureTable, features: Positions) -> None:
        self.support_ = np.zeros(table.shape[1], dtype=bool)
        self.support_[list(features)] = True
        self.prediction_features_ = names_or_positions(table.names, features)
        home = table.native
        self._together = home.feature_groups if isinstance(home, RowSource) else []

    def _set_coefficients(self, prediction: Floats, selection: Floats | None) -> None:
        """Spread both equations' coefficients (intercept first) over the columns of X."""
        k = self.n_features_in_
        self.coef_, self.selection_coef_ = np.zeros(k), np.zeros(k)
        self.coef_[self.support_] = prediction[1:]
        self.intercept_ = float(prediction[0])
        if selection is None or self._probit is None:
            self.selection_intercept_ = float("inf")
        else:
            self.selection_coef_[list(self._probit.features)] = selection[1:]
            self.selection_intercept_ = float(selection[0])

    def _set_two_step(self, fit: TwoStep) -> None:
        assert self._probit is not None
        self._set_coefficients(fit.coef[:-1], self._probit.coef)
        self.imr_coef_ = float(fit.coef[-1])
        self.rho_, self.sigma_ = float(fit.solution.rho), float(fit.solution.sigma)
        self.log_likelihood_ = self.params_ = None
        j = len(fit.coef) - 1
        order = [*range(j), *range(j + 1, len(fit.covariance)), j]
        self._set_covariance(fit.covariance[np.ix_(order, order)], ["imr"])
        if not abs(self.rho_) < 1:
            warn(
                f"the two-step estimate of rho is {self.rho_:.4g}, outside (-1, 1): the data do "
                "not fit the model well, or nothing but normality identifies it. Look at "
                "diagnostics(), or use method='ml'.",
                RhoOutsideWarning,
            )

    def _set_likelihood(self, fit: MaximumLikelihood) -> None:
        self._set_coefficients(fit.coef, fit.selection_coef)
        self.rho_, self.sigma_, self.imr_coef_ = fit.rho, fit.sigma, fit.rho * fit.sigma
        self.log_likelihood_, self.params_ = fit.log_likelihood, fit.params
        self.converged_ = self.converged_ and fit.converged
        self._atanh_rho = (fit.atanh_rho, float(np.sqrt(fit.covariance[-1, -1])))
        self._log_sigma = (fit.log_sigma, float(np.sqrt(fit.covariance[-2, -2])))
        # Where the climb stopped short, there is no first maximum, either.
        self._second_maximum = fit.second_maximum if fit.converged else None
        self._index_range = fit.index_range
        self._set_covariance(fit.reported_covariance(), ["imr", "rho", "sigma"])
        if not fit.converged:
            cure = "Use method='two-step', or another set of features."
            if self.start is not None:
                known = fit.second_maximum
                where = "" if known is None else f" (there is a maximum at {rho_text(known[1])})"
                cure = (
                    f"Start from another rho first{where}. If that does not converge, either, "
                    "use method='two-step', or another set of features."
                )
            warn(
                f"maximum likelihood did not converge in {fit.n_iterations} passes (rho = "
                f"{rho_text(self.rho_)}); do not trust its estimates. {cure}",
                ConvergenceWarning,
            )
        elif not fit.information_is_positive:
            warn(
                "the observed information is not positive definite at the maximum; no standard "
                "errors can be given",
                CovarianceWarning,
            )
        higher = higher_maximum(fit.log_likelihood, self._second_maximum)
        if higher is not None:
            height, rho = higher
            origin = "the two-step estimates" if self.start is None else "the start given"
            warn(
                f"the likelihood has two maxima: the one reported, reached from {origin} "
                f"(log-likelihood {fit.log_likelihood:.4f}, rho {rho_text(self.rho_)}), and a "
                f"higher one (log-likelihood {height:.4f}, rho {rho_text(rho)}). A maximum near "
                "|rho| = 1 is often a sign of misspecification; neither is picked for you. A start "
                f"of {rho_text(rho)} fits the higher one.",
                SecondMaximumWarning,
            )

    def _set_covariance(self, covariance: Floats, errors: list[str]) -> None:
        self._terms = [("prediction", "Intercept")]
        self._terms += [("prediction", self._names[one]) for one in np.flatnonzero(self.support_)]
        if self._probit is not None:
            self._terms.append(("selection", "Intercept"))
            self._terms += [("selection", self._names[one]) for one in self._probit.features]
        self._terms += [("errors", term) for term in errors]
        self._covariance = covariance

    def _fit_all_observed(
        self, table: FeatureTable, sample: Sample, prediction: Positions, kind: CovarianceKind
    ) -> None:
        """No outcome is missing: ordinary least squares, and nothing about selection."""
        moments = gather_moments(sample.rows, prediction, table.shape[1], None)
        refuse_leakage(moments, self._names, sample.row_counts["selected"], missing=False)
        fit = fit_least_squares(moments, prediction, kind, sample.rows)
        extra = (
            f" The {len(prediction)} features are collinear or more than the rows can tell apart: "
            "the coefficients are the minimum-norm ones."
            if fit.underdetermined
            else ""
        )
        warn(
            f"no outcome is missing among the {sample.row_counts['selected']} rows, so there "
            "is no selection to correct for: ordinary least squares is fitted, and rho is not "
            "identified." + extra,
            AllObservedWarning,
        )
        self._moments = moments
        self._index_range = moments.index_range
        self._set_features(table, prediction)
        self.selection_features_ = []
        self._set_coefficients(fit.coef, None)
        self.imr_coef_ = self.rho_ = float("nan")
        self.sigma_ = fit.sigma
        self.adjusted_r2_, self.aic_, self.bic_ = fit.adjusted_r2, fit.aic, fit.bic
        self.log_likelihood_ = fit.log_likelihood if self.method == "ml" else None
        self.params_ = None
        self._set_counts(moments.n_selected, moments.n_selected, kind)
        self.converged_ = True
        self._set_covariance(fit.covariance, [])
