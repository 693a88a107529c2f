"""The Heckman selection model as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import MetadataRequest

from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.errors import InputError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import fit_rows, groups_of_columns, make_spec
from heckmanfa.fit import Choose, Spec
from heckmanfa.inference.bootstrap import Bootstrap, bootstrap
from heckmanfa.inference.exclusion_tests import ExclusionTest, exclusion_test
from heckmanfa.inference.exclusions import WhatIf, what_if
from heckmanfa.inference.given_features import GivenFeatures
from heckmanfa.inference.margins import Margins, margins
from heckmanfa.inference.replicates import Refit
from heckmanfa.inference.specification import SpecificationTests, specification_tests
from heckmanfa.inference.uncertainty import UncertaintyInterval, uncertainty_interval
from heckmanfa.model.option_types import CovType, Method, OnProblem, WeightKind
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest


class Heckman(SelectionModel):
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
    method : {"two-step", "ml"}
        Heckman's two-step estimator, or full maximum likelihood.
    cov_type : {None, "classical", "robust", "cluster"}
        None is "classical". "cluster" needs ``groups`` in `fit`; with G clusters, tests and
        intervals use t(G - 1), and joint tests F(q, G - 1).
    weight_kind : {"frequency", "sampling"}
        What ``sample_weight`` means. With "frequency", a weight of 2 is two rows (integers only).
        With "sampling", as in surveys, weights are rescaled to mean one and need ``cov_type``
        "robust" or "cluster".
    on_collinear, on_separation : {"error", "drop"}
        What to do with collinear columns, and with columns that determine selection exactly (and
        the rows they determine): raise an error that names them, or drop them with a warning.
    start : float or array_like, optional
        Where maximum likelihood starts: None is the two-step estimates, a number in (-1, 1) is a
        rho (with all else at its best), and an array holds all parameters, as in ``params_`` of a
        model with the same columns in the same order. The fit reports the maximum reached from
        there, and warns if it knows another.

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
        To compare sets of features: criteria of the two-step prediction equation with J features
        and m selected rows. They are 1 - (1 - R^2) (m - 1) / (m - J - 1),
        m log(SSE/m) + 2 (J + 2), and m log(SSE/m) + (J + 2) log m. Adjusted R^2 does not count
        lambda, as in Mai and Wu's paper; AIC and BIC do.
    log_likelihood_ : float or None
        With method "ml"; the log pseudolikelihood if the covariance is robust or clustered.
    params_ : ndarray or None
        With method "ml": all parameters on the scale of the input, to pass as ``start``. First
        the prediction equation, then the selection equation (each intercept first, then features
        in the order of X's columns), log sigma and atanh rho. With formulas, X's columns are
        those of the selection formula, then those of the prediction formula alone. The index of
        `vcov` labels all but the last two, before its "errors".
    n_obs_, n_selected_ : int or float
        Rows in the fit (the sum of frequency weights).
    n_clusters_ : int or None
        Clusters in the fit, with ``cov_type="cluster"``.
    row_counts_ : dict
        Every row given, by status.
    prediction_features_, selection_features_, dropped_features_ : list
        Names, or positions if X has no names.
    support_ : ndarray of bool, shape (K,)
        Which features predict.
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X has names.

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
        self._keep(locals())

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
            Dask DataFrames and Arrays; or rows of files from `heckmanfa.scan_parquet`, which
            include the outcome.
        y : array_like of shape (n,)
            The outcome, NaN where missing.
        selected : array_like of bool, optional
            Which rows are selected; by default those whose y is not NaN. If given, selected rows
            without y are left out, y of unselected rows is ignored, and scoring also needs it.
        sample_weight : array_like, optional
        groups : array_like, optional
            Clusters, for ``cov_type="cluster"``.

        Returns
        -------
        self
        """
        fit_rows(self, X, y, selected, sample_weight, groups)
        return self

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
            The prediction equation, as in ``"log(wage) ~ educ + exper + I(exper**2)"``.
        selection : str
            The selection equation. Its left side, if any, is who is selected (0 and 1, or
            booleans); without one, rows with an outcome are selected.
        data : data frame
            pandas, Polars or PyArrow. Rows with a missing outcome are kept; rows that lack a
            regressor they need are left out and counted in ``row_counts_``.
        sample_weight, groups : str or array_like, optional
            A column of ``data``, or one entry per row. Methods that take a data frame later find
            the column in it; arrays must be passed again.
        **parameters
            Those of `Heckman`, except the two lists of features.

        Returns
        -------
        Heckman
            Fitted; its `predict` and other methods take data frames with the formulas' variables.
            A clone knows the columns that the formulas made, but not the formulas: for
            cross-validation, make the columns first and use `fit`.
        """
        allowed = [name for name in cls._get_param_names() if not name.endswith("ion_features")]
        for name in parameters:
            if name not in allowed:
                raise InputError(
                    f"from_formula has no parameter {quoted(name)}{nearest(name, allowed)}"
                )
        design = FormulaDesign.build(prediction, selection, data)
        model = cls(
            prediction_features=design.prediction_columns,
            selection_features=design.selection_columns,
            **cls._with_terms(parameters, design.prediction_terms),
        )
        fit_rows(
            model,
            design.features,
            design.outcome,
            design.selected,
            design.rows_of(data, sample_weight, "sample_weight"),
            design.rows_of(data, groups, "groups"),
            design=design,
            weight_column=sample_weight if isinstance(sample_weight, str) else None,
            group_column=groups if isinstance(groups, str) else None,
        )
        return model

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what scikit-learn's metadata routing passes to each method.

        It passes ``selected`` always, ``groups`` with ``cov_type="cluster"``, and others that
        ``set_fit_request`` or ``set_score_request`` requests.
        """
        request: MetadataRequest = super().get_metadata_routing()
        if request.fit.requests.get("groups") is None:
            request.fit.add_request(param="groups", alias=self.cov_type == "cluster")
        return request

    def _specify(self, table: FeatureTable, design: FormulaDesign | None) -> tuple[Spec, Choose]:
        """Return what to fit, and how the prediction features are chosen."""
        prediction = resolve(table, self.prediction_features, "prediction_features")
        return make_spec(self, table, prediction, groups_of_columns(table, design)), GivenFeatures()

    def _refit(self) -> Refit:
        """Return how to fit the same model to resampled rows."""
        return Refit(self.fit_.spec.for_replicates(), GivenFeatures())

    @classmethod
    def _with_terms(cls, parameters: dict[str, Any], terms: dict[str, list[str]]) -> dict[str, Any]:
        """Replace terms of the prediction formula in parameters by their columns."""
        return parameters

    # Inference. -------------------------------------------------------------------------------

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
            As passed to `fit`. X may also hold the column that ``unit`` names.
        n_boot : int
            Number of replicates.
        unit : "row", str, or array_like of shape (n,), optional
            What to resample: rows, or whole groups given by the name of a column of X or by an
            array. The default is rows, or the clusters of a model with a cluster covariance,
            which must be passed again if they were an array.
        random_state : int, Generator, RandomState or None
        n_jobs : int, optional
            Number of processes, as in joblib. The result does not depend on it.
        verbose : int
            Show progress on a terminal.

        Returns
        -------
        Bootstrap
            With `tidy`, `assignments` and the replicates; failures are counted by reason.
        """
        return bootstrap(
            self.fit_,
            self._refit(),
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
        """Vary rho instead of estimating it: the range of each coefficient for a range of rho.

        Least squares on the selected rows is corrected for the selection bias at each rho
        (Genback, Stanghellini and de Luna, 2015). This needs no exclusion restriction and no pass
        over the rows. Standard errors take rho as given, and allow for the estimation of the
        selection equation and of sigma; they are classical, whatever ``cov_type`` is.

        Parameters
        ----------
        rho : (float, float)
            The range, inside (-1, 1).
        conf_level : float
            Confidence level of the interval at each rho.
        n_grid : int
            Number of values of rho to evaluate, including the ends.

        Returns
        -------
        UncertaintyInterval
            With `tidy` (identification bounds, the union of the confidence intervals, and the
            rho at which a sign or its significance changes), `path` and `plot`.
        """
        return uncertainty_interval(self.fit_, rho, conf_level, n_grid)

    def what_if(self) -> WhatIf:
        """Change one exclusion at a time: include each excluded feature, drop each included one.

        Both use the two-step estimator without a pass over the rows. No data can prove that an
        exclusion is valid. The result has `tidy` (the feature's t value, rho) and `coefficients`
        (the change in every other coefficient).
        """
        return what_if(self.fit_)

    def exclusion_test(
        self,
        X: Any = None,
        y: Any = None,
        features: Sequence[Any] | None = None,
        *,
        method: Method = "two-step",
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> ExclusionTest:
        """Test whether excluded features belong in the prediction equation, while one stays out.

        The model that includes these features is fitted, and their coefficients are tested
        jointly (Wald), with the covariance of the model. The features that stay excluded identify
        the model: that they do not predict is an assumption that cannot be tested.

        Parameters
        ----------
        X, y, selected, sample_weight, groups
            As passed to `fit`. The two-step test with a classical covariance needs none of them.
        features : sequence of str or int, optional
            Excluded features to include; at least one other must stay excluded. By default,
            each excluded feature stays out in turn, and all others are tested together.
        method : {"two-step", "ml"}
            How the model with these features is estimated. At 5%, the two-step test rejects
            valid exclusions in 2 to 6% of simulated samples. Maximum likelihood rejects them in
            up to 14% if what stays out hardly drives selection, and in 66 to 99% if the outcome's
            error is skewed.
        """
        return exclusion_test(
            self.fit_,
            X,
            y,
            features,
            method=method,
            selected=selected,
            sample_weight=sample_weight,
            groups=groups,
        )

    def specification_tests(
        self, X: Any, y: Any = None, *, selected: Any = None, sample_weight: Any = None
    ) -> SpecificationTests:
        """Test what the model assumes about its errors and its functional form.

        Normality in the selection equation (Bera, Jarque and Lee, 1984), its heteroskedasticity
        (Davidson and MacKinnon, 1984), normality in the prediction equation (a conditional-moment
        test; Newey, 1985; Pagan and Vella, 1989), the form of the correction for selection (Pagan
        and Vella, 1989), and RESET (Ramsey, 1969). Arguments are as passed to `fit`. Sampling
        weights are refused.
        """
        return specification_tests(self.fit_, X, y, selected=selected, sample_weight=sample_weight)

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
            All by default. With formulas, these are their variables, so a variable and its
            square change together.
        sample_weight : str or array_like, optional
            Weights of the rows in the average. Required after a fit with weights, unless the
            formulas' data frame has their column; 1 weights all rows equally.
        conf_level : float
            Confidence level of the intervals.

        Returns
        -------
        Margins
            Effects of binary features and of categories are discrete changes. Standard errors use
            the delta method, for these rows. If a quantity does not depend on a feature, its
            effect and standard error are 0, and there is no test.
        """
        return margins(
            self.fit_, X, kind, at, features, sample_weight=sample_weight, conf_level=conf_level
        )
