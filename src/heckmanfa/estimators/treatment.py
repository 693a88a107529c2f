"""The treatment model as an estimator: an outcome of everyone, and a treatment that is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from heckmanfa.data.arrays import host, is_dask, on_host
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.files.outputs import check_format
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.sample import known_flags
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import with_fit
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.model_code import code_of_model
from heckmanfa.estimators.scoring import ScoredRegressor
from heckmanfa.fit import COMMON, SEPARATE, Family, Fit
from heckmanfa.fit.treatment import fit_of_regime
from heckmanfa.inference.average_effects import mixed
from heckmanfa.inference.bootstrap import Bootstrap
from heckmanfa.inference.bounds import Bounds
from heckmanfa.inference.prediction import (
    IntervalKind,
    Kind,
    Missing,
    extrapolates,
    predict_selection,
)
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.inference.treatment_effects import average_effects, effect_picture
from heckmanfa.inference.treatment_pictures import TreatmentPictures, treatment_evidence
from heckmanfa.plots.effect_intervals import EffectIntervals
from heckmanfa.report.of_model import report_of_treatment
from heckmanfa.report.page import write_page
from heckmanfa.report.treatment_page import ReportedTreatment
from heckmanfa.results.labelling import given_codebook, labels_of, name_columns
from heckmanfa.results.naming import Naming
from heckmanfa.results.reports import Report, read_reports
from heckmanfa.results.summary import Summary
from heckmanfa.results.treatment_report import (
    TreatmentDiagnostics,
    diagnose_treatment,
    summarize_treatment,
    treatment_name,
)
from heckmanfa.tables.codebook import Codebook
from heckmanfa.text.labels import labelled
from heckmanfa.text.option_types import CovType, Method, OnProblem, Regimes, WeightKind
from heckmanfa.text.printable import quoted

if TYPE_CHECKING:
    import pandas as pd

# What a regression of one regime calls those of whom the treatment is given.
_KINDS: dict[int | None, Kind] = {None: "marginal", 1: "selected", 0: "unselected"}


class TreatmentModel(ScoredRegressor, SelectionModel):
    """The effect of a treatment that depends on what the outcome depends on, seen or not.

    Everyone has an outcome y, and everyone is treated (d = 1) or not. The treatment equation says
    d = 1 if g0 + z'g + u > 0. With ``regimes="common"``, y = b0 + x'b + effect d + e. With
    ``regimes="separate"``, the switching regression, y = b10 + x'b1 + e1 for the treated and
    b00 + x'b0 + e0 for the untreated. u is normal with variance 1 and correlated with the errors of
    the outcome, rho, or rho1 and rho0. Where these are zero, least squares would do.

    Parameters
    ----------
    outcome_features, treatment_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns in each equation; None is all of them. A feature
        that drives treatment alone is an instrument; without one, only normality tells the effect
        from the errors. The treatment itself is not a column of X.
    method : {"two-step", "ml"}
        A probit, then least squares with the hazard of treatment, whose standard errors account
        for the probit; or full maximum likelihood.
    regimes : {"common", "separate"}
        Whether treatment moves everyone's outcome by the same effect, or both groups have an
        equation, a sigma and a rho of their own.
    cov_type, weight_kind, on_collinear, on_separation
        As in `Heckman`.
    start : float or array_like, optional
        Where maximum likelihood starts, as in `Heckman`: a rho only with ``regimes="common"``.
    categorical_features, reference, unknown
        As in `Heckman`.

    Attributes
    ----------
    selection_coef_ : ndarray of shape (K,)
        Of the treatment equation, zero where a feature is not in it. Coefficients of outcomes are
        in `tidy`, under "outcome" and "effect", or "regime1" and "regime0".
    selection_intercept_ : float
    imr_coef_, rho_, sigma_ : float
        With ``regimes="common"``: the coefficient of the hazard, rho times sigma, and both factors.
        Two-step estimates of rho may lie outside (-1, 1).
    adjusted_r2_, aic_, bic_, log_likelihood_, params_
        As in `Heckman`; of both regimes together.
    n_obs_, n_selected_ : int or float
        Rows in the fit, and the treated among them (sums of frequency weights).
    row_counts_ : dict
        Every row given, by status: "selected" are the treated, "unselected" the untreated.
    converged_ : bool

    Examples
    --------
    >>> import numpy as np
    >>> from heckmanfa import TreatmentModel
    >>> rng = np.random.default_rng(0)
    >>> X, u, v = rng.normal(size=(2000, 2)), *rng.normal(size=(2, 2000))
    >>> d = X[:, 0] + X[:, 1] + u > 0
    >>> y = 1 + X[:, 0] + 2 * d + 0.8 * u + 0.6 * v
    >>> model = TreatmentModel([0], [0, 1], method="ml").fit(X, y, treated=d)
    >>> model.effects().loc[0, ["estimate", "ci_low", "ci_high"]].astype(float).round(1).tolist()
    [2.0, 1.8, 2.1]
    """

    family: ClassVar[Family] = COMMON
    roles: ClassVar[tuple[str, str]] = ("outcome_features", "treatment_features")
    imr_coef_: float
    sigma_: float
    adjusted_r2_: float

    # scikit-learn routes by these names.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"treated": True, "selected": "$UNUSED$"}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"treated": True, "selected": "$UNUSED$"}

    def __init__(
        self,
        outcome_features: Any = None,
        treatment_features: Any = None,
        *,
        method: Method = "two-step",
        regimes: Regimes = "common",
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def fit(
        self,
        X: Any,
        y: Any = None,
        treated: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the treatment and the outcome of everyone.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            Every feature of either equation, as in `Heckman.fit`. Rows of files name the outcome,
            and as ``selected`` the treatment.
        y : array_like of shape (n,)
            The outcome of everyone. Rows without one are left out, and counted.
        treated : array_like of shape (n,)
            Who is treated: booleans, or 0 and 1. Rows where it is missing are left out, and
            counted.
        sample_weight, groups : array_like, optional
            As in `Heckman.fit`.

        Returns
        -------
        self
        """
        if isinstance(X, RowSource):
            if not X.has_selected:
                raise InputError(
                    "these rows do not say who is treated: name that column when you scan them, "
                    "as selected='d'"
                )
        elif treated is None:
            raise InputError(
                "treated is missing: everyone has an outcome, so y does not say who is treated. "
                "Pass fit(X, y, treated=d), with 0 and 1 or booleans."
            )
        self._fit_rows(X, y, treated, sample_weight, groups)
        return self

    @classmethod
    def from_formula(  # type: ignore[override]
        cls,
        outcome: str,
        treatment: str,
        data: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        **parameters: Any,
    ) -> Self:
        """Fit the model that two formulas describe, on a data frame.

        Parameters
        ----------
        outcome : str
            The outcome equation, as in ``"y ~ x1 + x2"``, without the treatment.
        treatment : str
            The treatment equation, as in ``"d ~ x1 + z"``. Its left side is the treatment: 0 and 1,
            or booleans. It is in the outcome equation without being written there.
        data : data frame
            pandas, Polars or PyArrow. Rows that lack a variable of either formula are left out and
            counted in ``row_counts_``.
        sample_weight, groups : str or array_like, optional
            A column of ``data``, or one entry per row.
        **parameters
            Those of the class, except the lists of features.

        Returns
        -------
        self
        """
        return super().from_formula(
            outcome, treatment, data, sample_weight=sample_weight, groups=groups, **parameters
        )

    @property
    def _family(self) -> Family:
        """The family of the class, by its regimes."""
        return SEPARATE if self.regimes == "separate" else COMMON

    # Effects. ----------------------------------------------------------------------------------

    def effects(
        self,
        X: Any = None,
        *,
        treated: Any = None,
        by: Any = None,
        sample_weight: Any = None,
        conf_level: float = 0.95,
    ) -> pd.DataFrame:
        """Average effects of treatment, with standard errors by the delta method.

        "ate" is the average of y1 - y0 over everyone, "att" over the treated, "atu" over the
        untreated, and "margin" over those whom a slightly larger index would treat: rows weighted
        by the density of being there. With common regimes they are one number, the effect.
        Standard errors use the joint covariance of all equations, of the model's ``cov_type``, and
        take the rows that are averaged over as given.

        Parameters
        ----------
        X : array or data frame, optional
            Rows to average over; one row gives the effects at its features. By default the rows of
            the fit, which need not be passed.
        treated : array_like, optional
            Who of these rows is treated. Without it, "att" and "atu" weigh each row by its
            probability of being treated, or untreated.
        by : str or array_like, optional
            A column of X, or a label for each row: effects of each group.
        sample_weight : array_like, optional
            Weights of the rows of X; required after a fit with weights, unless the formulas' data
            frame has their column. 1 weighs all rows equally.
        conf_level : float
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            Columns effect ("ate", "att", "atu", "margin"), group (with ``by``), estimate,
            std_error, statistic, p_value, ci_low, ci_high, and n_rows: how many rows the effect is
            an average of.
        """
        return average_effects(
            self.fit_, X, treated, by, sample_weight, conf_level, type(self).__name__
        )

    def effect_picture(
        self, X: Any = None, *, treated: Any = None, by: Any = None, sample_weight: Any = None
    ) -> EffectIntervals:
        """Return the picture of the effects, beside least squares and the difference of means.

        Arguments are as in `effects`; ``by`` adds the effect on everyone in each group. It has
        `draw` for Matplotlib and `svg` for a page.
        """
        return effect_picture(self.fit_, X, treated, by, sample_weight, type(self).__name__)

    def pictures(  # type: ignore[override]
        self, X: Any = None, y: Any = None, *, treated: Any = None, sample_weight: Any = None
    ) -> TreatmentPictures:
        """Pictures as data with words: effects, overlap, people and coefficients.

        Parameters
        ----------
        X, y, treated, sample_weight
            As passed to `fit`. Without them, overlap and people are None.
        """
        fit = self.fit_
        naming, name = Naming.of(fit), treatment_name(fit)
        rows = None if X is None else PictureRows(fit, naming, X, y, treated, sample_weight)
        return TreatmentPictures(treatment_evidence(fit, naming, name, rows), rows)

    def report(  # type: ignore[override]
        self,
        path: str | Path,
        X: Any = None,
        y: Any = None,
        *,
        treated: Any = None,
        sample_weight: Any = None,
        by: Any = None,
        title: str | None = None,
        labels: Mapping[str, str] | str | PathLike[str] | Codebook | None = None,
        brief: bool = False,
        profiles: Sequence[Mapping[str, Any]] = (),
        log_outcome: bool = False,
        force: bool = False,
    ) -> None:
        """Write a report of the model: the effects, pictures and checks, in one HTML file.

        Parameters
        ----------
        path : str or Path
            The file to write.
        X, y, treated, sample_weight
            As passed to `fit`. Without them, pictures of rows are left out, and the report says so.
        by : str or array_like, optional
            As in `effects`; needs X.
        title, labels, brief, profiles, log_outcome, force
            As in `Heckman.report`.
        """
        check_format(path, ".html", "report")
        fit, name = self.fit_, type(self).__name__
        match_rows({"X": X, "y": y, "treated": treated, "sample_weight": sample_weight})
        naming = name_columns(fit, log_outcome=log_outcome)
        column = treatment_name(fit)
        words = given_codebook(labels)
        outcome = fit.origin.outcome or naming.outcome
        words.refuse_absent([*naming.sources, outcome, column], "labels: the model")
        known = labels_of(words, fit, naming, outcome)
        groups = None
        if by is not None:
            flags = treated if treated is not None or fit.origin.design is None else column
            groups = self.effects(X, treated=flags, by=by, sample_weight=sample_weight)
        by_name = by if isinstance(by, str) else "group"

        @labelled(known)
        def reported() -> ReportedTreatment:
            rows = None
            if X is not None:
                rows = PictureRows(fit, naming, X, y, treated, sample_weight)
            evidence = treatment_evidence(fit, naming, column, rows, groups, by_name)
            programs = code_of_model(self, outcome)
            return report_of_treatment(evidence, name, programs, rows, known, profiles)

        write_page(reported, path, title=title, brief=brief, force=force)

    def of_regime(self, regime: int) -> Heckman:
        """Return a model of one regime: the outcome that everyone would have in it.

        It predicts and has margins as `Heckman` does. Its "selected" rows are the treated, and its
        kinds "selected" and "unselected" expectations given that a row is treated or not.
        """
        if regime not in (0, 1):
            raise InputError(f"regime must be 1 (treated) or 0 (untreated); got {quoted(regime)}")
        if self.fit_.way.is_average:
            raise InputError(
                "an average is of assignments, each with both regimes, and has no model of one: "
                "use predict(X, regime=...) and effects()"
            )
        return _of_regime(self.fit_, int(regime))

    def summary(self, conf_level: float = 0.95, include: Report | Sequence[Report] = ()) -> Summary:
        """All equations as a table, the average effects, and what to know about them.

        Parameters
        ----------
        conf_level : float
            Confidence level of the intervals.
        include : report or sequence of reports
            Results of `bootstrap`, to print below the effects.
        """
        effects = self.effects(conf_level=conf_level)
        return summarize_treatment(self.fit_, effects, conf_level, read_reports(include))

    def diagnostics(  # type: ignore[override]
        self, X: Any = None, include: Report | Sequence[Report] = ()
    ) -> TreatmentDiagnostics:
        """What the data can and cannot show: instruments, tests of rho = 0, overlap.

        Parameters
        ----------
        X : array or data frame, optional
            Rows to predict for: adds the share whose treatment index lies outside the fit's range.
        include : report or sequence of reports
            Results of `bootstrap`, whose findings are added.
        """
        share = None
        if X is not None:
            outside, known = extrapolates(self.fit_, X)
            share = float(np.mean(outside[known])) if known.any() else None
        return diagnose_treatment(self.fit_, read_reports(include), share)

    def specification_tests(
        self, X: Any, y: Any = None, *, selected: Any = None, sample_weight: Any = None
    ) -> Any:
        """Refused: there are no specification tests of treatment models."""
        raise InputError(
            f"the {self.fit_.family.words.model} has no specification tests: compare its two "
            "methods, and both kinds of regimes"
        )

    def bootstrap(  # type: ignore[override]
        self, X: Any, y: Any = None, *, treated: Any = None, **options: Any
    ) -> Bootstrap:
        """Fit the model to resampled rows many times; see `Heckman.bootstrap` for the options."""
        return super().bootstrap(X, y, selected=treated, **options)

    def bounds(  # type: ignore[override]
        self, X: Any, y: Any = None, *, treated: Any = None, **options: Any
    ) -> Bounds:
        """Bound the average effect without the model; see `Heckman.bounds` for the options.

        Whatever drove the choice of treatment, the effect lies between these bounds, which are as
        wide as the range of the outcome (Manski, 1990).
        """
        return super().bounds(X, y, selected=treated, **options)

    # Prediction. -------------------------------------------------------------------------------

    def predict(
        self,
        X: Any,
        regime: int | None = None,
        given: int | None = None,
        return_interval: IntervalKind | None = None,
        conf_level: float = 0.95,
        *,
        missing: Missing = "error",
        unknown: Unknown | None = None,
    ) -> Any:
        """Predict the outcome of each row, in a regime or as observed.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
        regime : {None, 0, 1}
            1 is E[y1 | x], the outcome if treated, whoever is; 0 is E[y0 | x]. None is that of the
            regime in which a row is: with ``given``, that; otherwise
            E[y | x] = P(d = 1 | x) E[y1 | x, d = 1] + P(d = 0 | x) E[y0 | x, d = 0].
        given : {None, 0, 1}
            Condition on the row being untreated (0) or treated (1): E[y1 | x, d = 0] is what the
            untreated would have had.
        return_interval, conf_level, missing, unknown
            As in `Heckman.predict`; an interval needs a regime, or ``given``.

        Returns
        -------
        values : ndarray of shape (n,)
        interval : ndarray of shape (n, 2)
            Only with ``return_interval``.
        """
        for name, value in (("regime", regime), ("given", given)):
            if value not in (None, 0, 1):
                raise InputError(f"{name} must be 0, 1 or None; got {quoted(value)}")
        options: dict[str, Any] = {"missing": missing, "unknown": unknown}
        if regime is None and given is None:
            if return_interval is not None:
                raise InputError(
                    "E[y | x] mixes both regimes, and has no interval: ask for one with regime=1 "
                    "or regime=0"
                )
            return self._observed(X, **options)
        own: int = given if regime is None else regime  # type: ignore[assignment]
        interval: Any = return_interval
        fit = self._reading(unknown).fit_
        return _of_regime(fit, int(own)).predict(X, _KINDS[given], interval, conf_level, **options)

    def _observed(self, X: Any, *, missing: Missing, unknown: Unknown | None) -> Any:
        """Return E[y | x] of each row."""
        self = self._reading(unknown)
        if is_dask(X):
            return self._lazily(X, "predict", "predicted", missing=missing)
        fit = self.fit_

        def of(member: Fit) -> Any:
            treated = predict_selection(member, X, missing)
            one, zero = (
                _of_regime(member, d).predict(X, _KINDS[d], missing=missing) for d in (1, 0)
            )
            return treated * one + (1.0 - treated) * zero

        return mixed(fit, of)

    def predict_treatment(self, X: Any, **options: Any) -> Any:
        """Probability of being treated, P(d = 1 | x); options are those of `predict_selection`."""
        return self.predict_selection(X, **options)

    def score(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_weight: Any = None, *, treated: Any = None
    ) -> float:
        """R^2 of E[y | x, d] over the rows with an outcome and a treatment.

        Arguments are as in `fit`; a model with formulas finds y and the treatment in X.
        """
        return self._score_rows(self._metric(), X, y, sample_weight, treated)

    def _to_score(
        self, X: Any, y: Any, sample_weight: Any, selected: Any, *, drop: bool = False
    ) -> tuple[Any, ...]:
        y, sample_weight, selected = self._beside(X, y, sample_weight, selected)
        missing: Missing = "nan" if drop else self._missing_in_scores()
        n = len(selected)
        treated, unknown = known_flags(on_host(selected), n)
        one, zero = (host(self.predict(X, given=d, missing=missing)) for d in (1, 0))
        predicted = np.where(unknown, np.nan, np.where(treated, one, zero))
        return predicted, y, sample_weight, np.ones(n, dtype=bool)


def _of_regime(fit: Fit, regime: int) -> Heckman:
    """Return a model of one regime of a fit."""
    model: Heckman = with_fit(Heckman(method=fit.spec.method), fit_of_regime(fit, regime))
    return model
