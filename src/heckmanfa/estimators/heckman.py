"""The Heckman selection model as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import MetadataRequest

from heckmanfa.data.columns.features import FeatureTable, nearest, resolve
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.errors import InputError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import fit_rows, groups_of_columns, make_spec
from heckmanfa.fit import Choose, GivenFeatures, Spec
from heckmanfa.inference.bootstrap import Bootstrap, bootstrap
from heckmanfa.inference.exclusion import ExclusionTest, exclusion_test
from heckmanfa.inference.margins import Margins, margins
from heckmanfa.inference.replicates import Refit
from heckmanfa.inference.specification import SpecificationTests, specification_tests
from heckmanfa.inference.uncertainty import UncertaintyInterval, uncertainty_interval
from heckmanfa.inference.what_if import WhatIf, what_if
from heckmanfa.model.option_types import CovType, Method, OnProblem, WeightKind
from heckmanfa.text.printable import quoted


class Heckman(SelectionModel):
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
            The selection equation; its left side, where there is one, says who is selected
            (0 and 1, or true and false); without one, the rows with an outcome are.
        data : data frame
            pandas, Polars or PyArrow. Rows with a missing outcome are kept; rows with a missing
            regressor that they need are left out and counted in ``row_counts_``.
        sample_weight, groups : str or array_like, optional
            A column of ``data``, or one entry for each of its rows. Columns are remembered: methods
            that take a data frame later find them in it. Arrays have to be passed again.
        **parameters
            Those of `Heckman`, but for the two lists of features.

        Returns
        -------
        Heckman
            Fitted; its `predict` and other methods take frames with the formulas' variables.
            A clone of it knows the columns that the formulas made, not the formulas: in
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
        """Return what scikit-learn's metadata routing hands to each method.

        ``selected`` always; ``groups`` where ``cov_type="cluster"`` uses them; ``sample_weight``
        and others where ``set_fit_request`` or ``set_score_request`` asks for them.
        """
        request: MetadataRequest = super().get_metadata_routing()
        if request.fit.requests.get("groups") is None:
            request.fit.add_request(param="groups", alias=self.cov_type == "cluster")
        return request

    def _specify(self, table: FeatureTable, design: FormulaDesign | None) -> tuple[Spec, Choose]:
        """Return what to fit, and how the prediction features are chosen: they are given."""
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
            As they were passed to `fit`. X may also hold the column that ``unit`` names.
        n_boot : int
            Number of replicates.
        unit : "row", str, or array_like of shape (n,), optional
            What is resampled: rows, or the groups in a column of X (by its name) or in an array.
            Rows of a group come and go together. The default is rows, or the clusters of a model
            with a cluster covariance, which must be passed if they came as an array.
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
        """Vary rho instead of estimating it: where each coefficient lies for rho in a range.

        Least squares on the selected rows is corrected by what selection would do to it for each
        rho (Genback, Stanghellini and de Luna, 2015). It needs a range of rho, but no exclusion
        restriction and no pass over the rows.

        Parameters
        ----------
        rho : (float, float)
            The range, inside (-1, 1).
        conf_level : float
            Confidence level of the interval at each rho.
        n_grid : int
            How many values of rho to evaluate, the ends among them.

        Returns
        -------
        UncertaintyInterval
            With `tidy` (identification bounds, the union of the confidence intervals, and the
            rho at which a sign or its significance changes), `path` and `plot`.
        """
        return uncertainty_interval(self.fit_, rho, conf_level, n_grid)

    def what_if(self) -> WhatIf:
        """Change one exclusion at a time: put back each excluded feature, drop each included one.

        Both use the two-step estimator without a pass over the rows. No data can prove that an
        exclusion is valid.

        Returns
        -------
        WhatIf
            With `tidy` (the feature's t value, rho) and `coefficients` (the change in every
            other one).
        """
        return what_if(self.fit_)

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
        coefficients are tested jointly (Wald). The features that stay excluded identify the
        model: that they do not predict is assumed, and cannot be tested.

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
        return exclusion_test(
            self.fit_,
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
        """Test what the model assumes about its errors and its functional form.

        Normality in the selection equation (Bera, Jarque and Lee, 1984), its heteroskedasticity
        (Davidson and MacKinnon, 1984), normality in the prediction equation (a conditional-moment
        test; Newey, 1985; Pagan and Vella, 1989), the form of the correction for selection (Pagan
        and Vella, 1989), and RESET (Ramsey, 1969). Sampling weights are refused.

        Parameters
        ----------
        X, y, selected, sample_weight
            As they were passed to `fit`.

        Returns
        -------
        SpecificationTests
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
            All unless given. For a model from formulas, these are the variables of the formulas,
            so a variable and its square move together.
        sample_weight : str or array_like, optional
            Weights of the rows in the average. Required after a fit with weights, unless the
            formulas' data frame has their column; 1 weighs all rows equally.
        conf_level : float
            Confidence level of the intervals.

        Returns
        -------
        Margins
            Effects of features of 0 and 1 (and of categories) are discrete changes; standard
            errors are by the delta method, for these rows. A quantity that is no function of a
            feature has effect 0, standard error 0 and no test.
        """
        return margins(
            self.fit_,
            X,
            kind,
            at,
            features,
            sample_weight=sample_weight,
            conf_level=conf_level,
        )
