"""What models that weigh rows by probabilities of selection share: errors, tests and reports."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.missing_features import explain_lost
from heckmanfa.data.rows import Rows, one_blas_thread
from heckmanfa.data.survey import Survey, kind_of_covariance
from heckmanfa.data.survey_design import linearized_design
from heckmanfa.errors import UnderdeterminedWarning, warn
from heckmanfa.estimators.baselines import RowsRead
from heckmanfa.estimators.fitting import publish, warn_of_few_clusters
from heckmanfa.estimators.formulas import FormulaModel
from heckmanfa.fit import Origin
from heckmanfa.inference.rows_of_fit import weight_column_of
from heckmanfa.model.covariance import CovarianceKind, count_clusters, seen_cells
from heckmanfa.model.inverse_probabilities import (
    Bounds,
    Overlap,
)
from heckmanfa.model.leverage import Uncertainty
from heckmanfa.model.unit_totals import check_counts
from heckmanfa.results.distribution import Wald
from heckmanfa.results.overlap_report import (
    Described,
    OverlapDiagnostics,
    overlap_facts,
    summarize_weighted,
)
from heckmanfa.results.plain_estimates import PlainEstimates
from heckmanfa.results.reports import Report, read_reports
from heckmanfa.results.summary import Summary
from heckmanfa.text.option_types import CovType, WeightKind
from heckmanfa.text.printable import quoted_list

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

_FEW_CLUSTERS = 20
"""with as many, intervals that allow for leverage still hold (docs/weighting.md)"""


class Weighing(FormulaModel):
    """Standard errors, tests and reports of a model that weighs by probabilities of selection."""

    clip: float
    trim: float | None
    cov_type: CovType | Survey | None
    weight_kind: WeightKind
    row_counts_: dict[str, int]
    _estimates: PlainEstimates
    _overlap: Overlap | None

    assumes: ClassVar[str]
    title: ClassVar[str]

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
        """Fit what two formulas describe, on a data frame.

        Parameters
        ----------
        prediction, selection, data, sample_weight, groups
            As in `Heckman.from_formula`.
        **parameters
            Those of the class, except the lists of features.

        Returns
        -------
        self
            Fitted; `predict` and other methods take data frames with the formulas' variables.
        """
        given = prediction, selection, data, sample_weight, groups
        return cls._of_formulas(*given, parameters)

    def _fit_rows(
        self,
        *rows: Any,
        design: FormulaDesign | None = None,
        weight_column: str | None = None,
        group_column: str | None = None,
        group_columns: tuple[str, ...] = (),
    ) -> None:
        origin = None
        if design is not None:
            if isinstance(self.cov_type, Survey):
                weight_column = self.cov_type.weights
            names = weight_column, group_column, group_columns
            origin = Origin(rows[2] is not None, design.without_data(), *names)
        with one_blas_thread(), explain_lost(None if design is None else design.lost):
            X, y, selected, sample_weight, groups = rows
            attributes = self._solved(X, y, selected, sample_weight, groups, design, origin)
        publish(self, attributes)

    @abstractmethod
    def _solved(
        self,
        X: Any,
        y: Any,
        selected: Any,
        sample_weight: Any,
        groups: Any = None,
        design: FormulaDesign | None = None,
        origin: Origin | None = None,
    ) -> dict[str, Any]:
        """Read the data, estimate, and return the attributes of the fit."""

    def _weights_in(self, X: Any) -> Any:
        return weight_column_of(self._known_origin, X) if self._estimates.weights else None

    def tidy(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Estimates, standard errors, tests and intervals as a data frame.

        Parameters
        ----------
        conf_level : float
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            Columns equation, term, estimate, std_error, statistic, p_value, ci_low, ci_high, as in
            `Heckman.tidy`. The statistic is t, with the effective degrees of freedom of each
            estimate, and at most those of its clusters or survey.
        """
        return self.estimates().tidy(conf_level)

    def vcov(self) -> pd.DataFrame:
        """Joint covariance of all estimates, labelled (equation, term) as in `tidy`."""
        return self.estimates().vcov()

    def wald_test(self, hypothesis: str | ArrayLike, value: ArrayLike | None = None) -> Wald:
        """Wald test of linear restrictions, written as in `Heckman.wald_test`.

        Parameters
        ----------
        hypothesis : str or array_like
            Such as ``"educ = exper"``. Plain names refer to the prediction equation, and others
            begin with their equation: ``"selection.educ = 0"``. The test is F, with the fewest
            effective degrees of freedom of the estimates that it is about.
        value : array_like, optional
            Right-hand sides for a matrix; zero by default.
        """
        return self.estimates().wald_test(hypothesis, value)

    def summary(self, conf_level: float = 0.95, include: Report | Sequence[Report] = ()) -> Summary:
        """Estimates as a table, with row counts, weights and what is assumed.

        Parameters
        ----------
        conf_level : float
            Confidence level of the intervals.
        include : report or sequence of reports
            Other results to print below the table.
        """
        estimates = self.estimates()
        facts = overlap_facts(self._overlap, self._bounds, self.assumes)
        about = Described(self.title, self._headings(), self.row_counts_, facts, self._overlap)
        return summarize_weighted(estimates, about, conf_level, read_reports(include))

    def diagnostics(
        self, X: Any = None, include: Report | Sequence[Report] = ()
    ) -> OverlapDiagnostics:
        """How the weights are spread over the rows, and what is assumed.

        Parameters
        ----------
        X : array or data frame, optional
            Rows to predict for: the share whose probability of selection is outside the range of
            those with an outcome is added.
        include : report or sequence of reports
            Results whose findings are added.
        """
        self.estimates()
        beyond = None if X is None or self._overlap is None else self._share_beyond(X)
        facts = overlap_facts(self._overlap, self._bounds, self.assumes, beyond)
        facts += [fact for report in read_reports(include) for fact in report.findings()]
        return OverlapDiagnostics(tuple(facts), self._overlap)

    @abstractmethod
    def _headings(self) -> Mapping[str, str]:
        """Return what stands above the rows of each equation in a summary."""

    @abstractmethod
    def _share_beyond(self, X: Any) -> float:
        """Return the share of rows whose probability is unlike that of any row with an outcome."""

    def estimates(self) -> PlainEstimates:
        """Return the estimates and their covariance, as tables read them."""
        check_is_fitted(self)
        return self._estimates

    @property
    def _bounds(self) -> Bounds:
        return Bounds(float(self.clip), None if self.trim is None else float(self.trim))

    def _kind(self, read: RowsRead) -> CovarianceKind:
        """Return which covariance to estimate."""
        kind: CovType = kind_of_covariance(self.cov_type) or "robust"
        return CovarianceKind(kind, self._sampling, read.sample.cells)

    @property
    def _sampling(self) -> bool:
        """Whether weights are sampling weights, as those of a survey are."""
        return isinstance(self.cov_type, Survey) or self.weight_kind == "sampling"

    def _estimated(
        self, terms: Any, values: Floats, known: Uncertainty, kind: CovarianceKind, rows: Rows
    ) -> PlainEstimates:
        """Return estimates from these rows, and warn of few clusters."""
        n_clusters, design = None, None
        counts: tuple[int, ...] = ()
        if kind.cov_type == "survey":
            assert kind.cells is not None
            design = linearized_design(kind.cells, seen_cells(rows, kind.cells))
        elif kind.cells is not None:
            clusters = count_clusters(rows, kind.cells)
            n_clusters = check_counts(clusters)
            counts = clusters if len(clusters) > 1 else ()
        warn_of_few_clusters(n_clusters, counts, few=_FEW_CLUSTERS)
        unknown = np.isnan(known.df)
        if unknown.any() and not unknown.all():
            names = quoted_list([terms[place][1] for place in np.flatnonzero(unknown)], 3)
            one = "row" if kind.cells is None else "cluster or sampling unit"
            warn(
                f"a single {one} determines {names}, so its error is not known, and there is no "
                "standard error. Leave the column out, or merge the level with another.",
                UnderdeterminedWarning,
            )
        return PlainEstimates(
            terms=tuple(terms),
            values=values,
            covariance=known.covariance,
            cov_type=kind.cov_type,
            n_clusters=n_clusters,
            weights=("sampling" if kind.sampling else "frequency") if rows.weighted else "",
            df=known.df,
            n_first_clusters=counts[0] if counts else None,
            n_second_clusters=counts[1] if counts else None,
            design=design,
        )
