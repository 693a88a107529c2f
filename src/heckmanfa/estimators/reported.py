"""Reports and inference of a fitted selection model, whatever its outcome is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from heckmanfa.data.files.outputs import check_format
from heckmanfa.data.row_labels import match_rows
from heckmanfa.errors import HeckmanfaError, InputError
from heckmanfa.estimators.model_code import code_of_model
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference import prediction
from heckmanfa.inference.assessment import diagnose_fit, is_quick
from heckmanfa.inference.bootstrap import Bootstrap, bootstrap
from heckmanfa.inference.bounds import Bounds
from heckmanfa.inference.bounds.of_model import bounds_of_model
from heckmanfa.inference.effect_cells import What
from heckmanfa.inference.margin_report import Margins
from heckmanfa.inference.margins import margins
from heckmanfa.inference.pictures import Pictures
from heckmanfa.inference.prediction import Scale
from heckmanfa.inference.profile_df import DfProfile, profile_df
from heckmanfa.inference.profile_likelihood import profile_coefficient, profile_rho
from heckmanfa.inference.profile_report import CoefficientProfile, RhoProfile
from heckmanfa.inference.replicates import Refit
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.plots.overlap_bars import MillsRatios
from heckmanfa.report.of_model import report_of_model
from heckmanfa.report.page import write_page
from heckmanfa.report.reported import Reported as ReportedFit
from heckmanfa.results.assignment_weights import weights_of
from heckmanfa.results.catalogue import facts_of_fit
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.evidence import Evidence, evidence_of
from heckmanfa.results.labelling import given_codebook, labels_of, name_columns
from heckmanfa.results.naming import Naming
from heckmanfa.results.reports import Report, read_reports
from heckmanfa.results.summary import Summary, summarize
from heckmanfa.tables.codebook import Codebook
from heckmanfa.text.labels import labelled


class Reported:
    """Reports and inference of a fitted selection model.

    Methods that need the rows of the fit refuse others. For a model with formulas, X is the data
    frame, y is left out, and weights and clusters come from the columns named in
    ``from_formula``. Weights and clusters that were arrays must be passed again.
    """

    @property
    @abstractmethod
    def fit_(self) -> Fit:
        """All results of the fit, in one frozen object."""

    @abstractmethod
    def _refit(self) -> Refit:
        """Return how to fit the same model to resampled rows."""

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

    def profile_df(
        self,
        X: Any,
        y: Any = None,
        *,
        grid: int | ArrayLike = 21,
        selected: Any = None,
        sample_weight: Any = None,
    ) -> DfProfile:
        """Profile the log-likelihood over the degrees of freedom of ``errors="t"``.

        Parameters
        ----------
        X, y, selected, sample_weight
            As passed to `fit`.
        grid : int or array_like
            Number of values of df between 1 and 200, or the values themselves. The estimate and
            infinity, which is the normal model, are always among them.

        Returns
        -------
        DfProfile
            With `tidy`, a likelihood-ratio `interval` of df, and the ``test`` of infinite df.
        """
        return profile_df(self.fit_, PassedRows(X, y, selected, sample_weight), grid)

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
        return profile_coefficient(self.fit_, PassedRows(X, y, selected, sample_weight), term, grid)

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
            PassedRows(X, y, selected, sample_weight),
            n_boot=n_boot,
            unit=unit,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )

    def margins(
        self,
        X: Any,
        kind: str | Sequence[str] = ("marginal", "selected", "selection"),
        at: str | Mapping[Any, Any] = "average",
        features: Sequence[Any] | None = None,
        *,
        over: Any = None,
        what: What = "effects",
        sample_weight: Any = None,
        conf_level: float = 0.95,
        scale: Scale = "response",
    ) -> Margins:
        """Marginal effects of features on expected outcomes, or probabilities, and on selection.

        Parameters
        ----------
        X : array or data frame
            The rows to average over, which need not be those of the fit.
        kind : str or sequence of str
            "marginal" is the effect on E[y | x], "selected" on E[y | x, s = 1], "unselected" on
            E[y | x, s = 0], "expected" on P(s = 1 | x) E[y | x, s = 1], "selection" on
            P(s = 1 | x). If the outcome is binary, the first three are on the probability of its
            positive class, and "expected" is on P(y = 1, s = 1 | x).
        at : {"average", "means"} or dict
            The average of the effects in all rows, or the effect at the average row. A dict fixes
            columns (variables, with formulas) at values, and leaves all others as observed:
            ``{"educ": 12}`` or ``{"educ": [8, 12], "city": [0, 1]}``. Every combination of values
            is a cell. A category takes its levels.
        features : sequence of str or int, optional
            All by default. With formulas, these are their variables, so a variable and its
            square change together.
        over : str or array_like of shape (n,), optional
            Groups of rows, each with averages of its own: a column of X, which need not be a
            feature, or one entry per row. Each combination of a group and values of ``at`` is a
            cell.
        what : {"effects", "predictions"}
            Effects of features, or the average predictions themselves, which take no ``features``.
        sample_weight : str or array_like, optional
            Weights of the rows in the average. Required after a fit with weights, unless the
            formulas' data frame has their column; 1 weights all rows equally.
        conf_level : float
            Confidence level of the intervals.
        scale : {"response", "link"}
            With ``outcome_transform``, effects on the outcome itself, or on its logarithm.

        Returns
        -------
        Margins
            Effects of binary features and of categories are discrete changes. Standard errors use
            the delta method, for these rows. If a quantity does not depend on a feature, its
            effect and standard error are 0, and there is no test. `Margins.differences` compares
            cells, and levels of a category.
        """
        return margins(
            self.fit_,
            X,
            kind,
            at,
            features,
            over=over,
            what=what,
            sample_weight=sample_weight,
            conf_level=conf_level,
            scale=scale,
        )

    def bounds(
        self,
        X: Any,
        y: Any = None,
        group: Any = None,
        *,
        y_range: Any = None,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        conf_level: float = 0.95,
    ) -> Bounds:
        """Bound the mean outcome of the rows of the fit without the model, beside the model's.

        The bounds assume nothing about who has an outcome (Manski, 1989). If the outcome is binary
        or ordered, they are of the probabilities of its classes. They are on the scale that is
        fitted.

        Parameters
        ----------
        X, y, selected, sample_weight, groups
            As passed to `fit`. X may also hold the column that ``group`` names.
        group : str or array_like of shape (n,), optional
            A column of X, or a label for each row: adds the bounds of the difference of groups,
            with those of Lee (2009) if there are two.
        y_range : (float, float), optional
            The values that an outcome may have, on the scale that is fitted; by default those from
            the lowest to the highest that is observed.
        conf_level : float
            Confidence level of the intervals.

        Returns
        -------
        Bounds
            With `tidy`, `picture`, `to_latex` and `to_markdown`. What the model says are averages
            of E[y | x] over the same rows. `heckmanfa.bounds` has bounds of other numbers.
        """
        rows = PassedRows(X, y, selected, sample_weight, groups)
        return bounds_of_model(self.fit_, rows, group, y_range, conf_level, type(self).__name__)

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
        rows = PassedRows(X, y, selected, sample_weight)
        return prediction.mills_ratios(self.fit_, rows, X_new)

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
        opens = fit.way.searched and fit.family.can("report")
        evidence = evidence_of(fit, effort="quick") if opens else None
        weights = weights_of(fit, "quick") if evidence is None else evidence.weights
        facts = facts_of_fit(fit, weights=weights)
        return summarize(fit, evidence, conf_level, read_reports(include), facts)

    def diagnostics(self, X: Any = None, include: Report | Sequence[Report] = ()) -> Diagnostics:
        """What the data can and cannot show: exclusion, collinearity, rho, extrapolation.

        Parameters
        ----------
        X : array or data frame, optional
            Rows to predict for: the report includes the share whose selection index lies outside
            the fitted range, and mentions rows that lack a feature, which are not counted.
        include : report or sequence of reports
            As in `summary`: their findings are added. Of a linear outcome, those of
            `uncertainty_interval` and, unless this is an average, `what_if` need no rows and are
            always included.
        """
        weights = weights_of(self.fit_, "quick")
        return diagnose_fit(self.fit_, X, read_reports(include), weights)

    def pictures(
        self, X: Any = None, y: Any = None, *, selected: Any = None, sample_weight: Any = None
    ) -> Pictures:
        """Pictures as data with words, an SVG drawing and a Matplotlib one, made when first read.

        Parameters
        ----------
        X, y, selected, sample_weight
            As passed to `fit`. Pictures of effects, chances and assignments need no rows.
        """
        fit, evidence = self.fit_, _evidence_of_page(self.fit_)
        rows = None
        if X is not None:
            rows = PictureRows(fit, evidence.naming, X, y, selected, sample_weight)
        return Pictures(evidence, rows)

    def report(
        self,
        path: str | Path,
        X: Any = None,
        y: Any = None,
        *,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        title: str | None = None,
        labels: Mapping[str, str] | str | PathLike[str] | Codebook | None = None,
        brief: bool = False,
        profiles: Sequence[Mapping[str, Any]] = (),
        steps: Mapping[str, float] | None = None,
        log_outcome: bool = False,
        force: bool = False,
    ) -> None:
        """Write a report of the model: the answer, pictures and checks, in one HTML file.

        Parameters
        ----------
        path : str or Path
            The file to write.
        X, y, selected, sample_weight, groups
            As passed to `fit`. Without them, pictures and tests that need rows are left out, and
            the report says so.
        title : str, optional
            Title of the window, and above the first sentence; names the outcome and the model by
            default.
        labels : dict, path or Codebook, optional
            What readers call columns: labels by column, or a codebook, which may also have units
            and what levels mean (`heckmanfa.tables.Codebook`).
        brief : bool
            Whether to write one page, which prints on one sheet: the answer with its picture, the
            rows, how far to trust it, and what may be written.
        profiles : sequence of dict, optional
            Rows whose expected outcomes are shown in place of those of typical rows, each a value
            by column, as in ``[{"educ": 16, "kids5": 2}]``. What is not named is as in the typical
            row. Needs the rows.
        steps : dict, optional
            The change of a column that effects are said of, in its units: ``{"income": 1000}``.
            By default, one unit or a round number near one standard deviation.
        log_outcome : bool
            Whether the outcome that was fitted holds logarithms, as lwage does. Effects are then
            said in percent.
        force : bool
            Whether an existing file may be replaced.
        """
        check_format(path, ".html", "report")
        rows_given = {"y": y, "selected": selected, "sample_weight": sample_weight}
        match_rows({"X": X, **rows_given, "groups": groups})
        fit = self.fit_
        naming = name_columns(fit, steps, log_outcome=log_outcome)
        outcome = fit.origin.outcome or naming.outcome
        words = given_codebook(labels)
        words.refuse_absent([*naming.sources, outcome], "labels: the model")
        known = labels_of(words, fit, naming, outcome)

        @labelled(known)
        def reported() -> ReportedFit:
            evidence = _evidence_of_page(fit, naming)
            status = {"selected": selected, "sample_weight": sample_weight}
            rows, reports = None, []
            if X is not None:
                rows = PictureRows(fit, evidence.naming, X, y, **status)
                if rows.in_memory and fit.probit is not None:
                    reports = _reports_of_rows(self, X, y, groups, status, evidence.contrast)
            name = type(self).__name__
            programs = code_of_model(self, outcome)
            return report_of_model(evidence, name, programs, X, rows, reports, known, profiles)

        write_page(reported, path, title=title, brief=brief, force=force)


def _reports_of_rows(
    model: Any,
    X: Any,
    y: Any,
    groups: Any,
    status: dict[str, Any],
    contrast: tuple[int, str] | None,
) -> list[Report]:
    """Return what rows show beyond the fit; what they cannot show is left out."""
    fit: Fit = model.fit_
    with_groups = partial(model.what_if, X, y, groups=groups, **status)
    makers: list[Callable[[], Report]] = [partial(model.specification_tests, X, y, **status)]
    if "compressed data" not in fit.family.supports and is_quick(fit):
        makers += [partial(model.uncertainty_interval, X, y, groups=groups, **status), with_groups]
    elif fit.spec.errors_differ:
        makers.append(with_groups)
    passed, name = PassedRows(X, y, groups=groups, **status), type(model).__name__
    makers.append(partial(bounds_of_model, fit, passed, model=name, contrast=contrast))
    reports = []
    for make in makers:
        with suppress(HeckmanfaError):
            reports.append(make())
    return reports


def _evidence_of_page(fit: Fit, naming: Naming | None = None) -> Evidence:
    """Return the numbers of a page; refuse those of an average without rho, which it weighs by."""
    if fit.way.is_average and not fit.family.can("single rho"):
        raise InputError(
            f"an average of the {fit.family.words.model} has no report and no pictures, which show "
            "rho by assignment: use summary(), inclusion_ and tidy(), or report the model with "
            "features that are named"
        )
    return evidence_of(fit, naming)
