"""A question about a table with its fitted model, and what was computed of both.

Checks, refits, pictures and reports read a `FittedQuestion`. What takes a while is computed when it
is first read.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.column_roles import joint_groups, source_columns
from heckmanfa.analysis.prepared import Model, Prepared, model_of
from heckmanfa.analysis.request import Question, steps_in
from heckmanfa.data.columns.column_hints import MOST_ROWS, find_products
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning
from heckmanfa.fit import PassedRows
from heckmanfa.inference.assessment import (
    QUICK_FEATURES,
    QUICK_ROWS,
    diagnose_fit,
    uncertainty_or_why,
    what_if_or_why,
)
from heckmanfa.inference.bounds.of_model import bounds_or_none
from heckmanfa.report.settings import today, why_robust
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.average_tables import ALWAYS, SURELY
from heckmanfa.results.catalogue import TableFacts, facts_of_answer
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.evidence import Evidence, evidence_of
from heckmanfa.results.exclusions import Exclusions, find_exclusions
from heckmanfa.results.facts import Fact
from heckmanfa.results.funnel import Funnel, funnel_of
from heckmanfa.results.labelling import labels_of
from heckmanfa.results.naming import Naming, name_dummies
from heckmanfa.results.side_by_side import SideBySide, side_by_side
from heckmanfa.text.labels import Labels, in_labels, said
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import plural

if TYPE_CHECKING:
    from heckmanfa.inference.bounds import Bounds
    from heckmanfa.inference.uncertainty import UncertaintyInterval
    from heckmanfa.inference.what_if import WhatIf
    from heckmanfa.results.reports import Untested

NOT_IN_MEMORY = "Some checks need all rows in memory"
"""why something was not checked if rows were read in passes"""


@dataclass(frozen=True, eq=False)
class FittedQuestion(Prepared):
    """A question about a table, and the model that was fitted to its rows."""

    model: Model
    row_counts: dict[str, int]
    """rows of the table by how they were used, or why they were left out"""
    warnings: tuple[str, ...]
    """warnings of the fit, which name options instead of parameters"""
    warning_kinds: tuple[type[HeckmanfaWarning], ...] = ()
    """the kind of each of them"""
    made_on: str = field(default_factory=today)
    """the date of the fit"""

    @cached_property
    @in_labels
    def evidence(self) -> Evidence:
        """The numbers behind the answer: chances, roles and effects of the table's columns."""
        place = None if self.target.classes is None else self.target.place
        evidence = evidence_of(self.model.fit_, self._naming, never=self._never, place=place)
        if not any(code.is_outcome for code in self.suspicions):
            return evidence
        why = f"{said(self.question.outcome)} has values that look like codes for missing"
        return replace(evidence, judgement=evidence.judgement.doubted(why))

    @cached_property
    def labels(self) -> Labels:
        """What readers call the columns, where that is not their name."""
        fit, outcome = self.model.fit_, self.question.outcome
        return labels_of(self.codebook, fit, self._naming, outcome)

    @cached_property
    def _naming(self) -> Naming:
        """The names of columns of X, after the columns of the table that they encode."""
        labels = self.model.fit_.labels
        named = name_dummies(labels, self.encoding)
        return Naming(
            outcome=self.question.fitted,
            sources=named.sources,
            levels=named.levels,
            references=named.references,
            groups=named.groups,
            switches=frozenset(
                place
                for place, label in enumerate(labels)
                if label in self.switches and not named.levels[place]
            ),
            clusterings=self.question.cluster,
        ).with_steps(
            self.model.fit_,
            steps_in(self.question, self.encoding.sources),
            log=self.question.log_outcome,
        )

    @cached_property
    @in_labels
    def uncertainty(self) -> UncertaintyInterval | Untested | None:
        """Where each coefficient lies for rho in a range; None without a selection equation.

        A binary outcome is refitted at some values of rho, so its rows must be few enough. None if
        errors are not normal.
        """
        family = self.model.fit_.family
        bounded = family.can("normal errors") and family.can("single rho")
        if not (self.is_corrected and bounded):
            return None
        if self._is_compressed:
            return uncertainty_or_why(self.model.uncertainty_interval)
        rows = self.loaded
        if rows is None or len(rows.y) > QUICK_ROWS:
            return None
        return uncertainty_or_why(
            self.model.uncertainty_interval, rows.X, self.outcome, **rows.roles
        )

    @cached_property
    @in_labels
    def what_if(self) -> WhatIf | Untested | None:
        """Estimates under other exclusions; None for averages and for a fixed rho.

        A binary outcome is refitted for each of them, so features and rows must be few enough.
        """
        fit = self.model.fit_
        if not self.is_corrected or fit.way.is_average or fit.held_rho is not None:
            return None
        if not (self._is_compressed or fit.family.can("refits")):
            return None
        rows = self.loaded
        if self._is_compressed and (rows is None or not fit.spec.errors_differ):
            return what_if_or_why(self.model.what_if)
        if rows is None or not (self._is_compressed or self.is_quick):
            return None
        return what_if_or_why(self.model.what_if, rows.X, self.outcome, **rows.roles)

    @cached_property
    @in_labels
    def bounds(self) -> Bounds | None:
        """Bounds of the mean outcome without the model; None unless its rows are in memory.

        The difference of two groups is added if a feature has two.
        """
        if self.loaded is None:
            return None
        passed = PassedRows(self.loaded.X, self.outcome, **self.loaded.roles)
        fit, contrast = self.model.fit_, self.evidence.contrast
        return bounds_or_none(fit, passed, "the model", self.question.fitted, contrast)

    @cached_property
    @in_labels
    def diagnostics(self) -> Diagnostics:
        """Diagnostics of the model, for the rows of the fit if these are in memory."""
        X = None if self.loaded is None else self.loaded.X
        asked = self.uncertainty, self.what_if, self.bounds
        known = [report for report in asked if report is not None]
        weight = None if self.loaded is None else self.loaded.roles.get("sample_weight")
        return diagnose_fit(self.model.fit_, X, known, self.evidence.weights, weight)

    @cached_property
    def exclusions(self) -> Exclusions:
        """Encoded columns kept out of the prediction equation, and which drive selection."""
        return find_exclusions(self.model.fit_, self._groups)

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """Estimates of the model, as `Heckman.tidy` returns them."""
        return self.evidence.effects.table

    @cached_property
    def comparison(self) -> SideBySide:
        """The model beside one that ignores selection, and the all-features model."""
        return side_by_side(self.model.fit_, self._never)

    @cached_property
    def coefficients(self) -> pd.DataFrame:
        """That comparison with standard errors; see `SideBySide.with_errors`."""
        return self.comparison.with_errors(self.estimates, self.evidence.averaged_least_squares)

    @cached_property
    @in_labels
    def facts(self) -> list[Fact]:
        """Everything worth telling about the answer, in reading order."""
        table = TableFacts(
            funnel=self.funnel,
            filled=self.question.missing == "mean",
            exclusions=self.exclusions,
            lost=self.lost,
        )
        return facts_of_answer(self.model.fit_, self.diagnostics, table)

    @cached_property
    @in_labels
    def funnel(self) -> Funnel:
        """Rows read, left out by reason, used, and with an outcome."""
        asked = self.question.outcome
        return funnel_of(self.model.fit_, self.row_counts, self.missing_counts, asked)

    @property
    def caveats(self) -> list[Fact]:
        """Facts that limit what the answer shows, or say what an estimate is."""
        return [fact for fact in self.facts if fact.sentence or fact.claim]

    @cached_property
    def best_model(self) -> Model:
        """A model of one assignment, fitted to the rows: of an average, the best by BIC.

        With sampling weights there is no BIC, and it is the heaviest by the average's own weights.
        """
        fit, weights = self.model.fit_, self.evidence.weights
        if not fit.way.is_average:
            return self.model
        known = weights if isinstance(weights, AssignmentWeights) else fit.way.averaging
        mixture = known.mixture
        names = self._names(np.flatnonzero(mixture.leading_masks[0]))
        features: dict[str, Any] = {"prediction_features": names}
        if fit.way.form_of_both is not None:
            driving = self._names(np.flatnonzero(mixture.leading_states[0, fit.n_features : -2]))
            features |= {"selection_features": driving} if driving else {}
        question = replace(
            self.question, search="none", criterion=None, rho_range=None, always=(), honest=False
        )
        return self.refit(self.make(question).set_params(**features))

    @cached_property
    def ratio_model(self) -> Model | str:
        """The model whose ratio of outcomes to their means is shown, or why there is none.

        An average has no such ratio, so it is that of its best set.
        """
        if not self.model.fit_.way.is_average:
            return self.model
        if self.streamed:
            # The best set would be fitted in passes of its own.
            return NOT_IN_MEMORY
        try:
            return self.best_model
        except HeckmanfaError as error:
            return f"The best set cannot be fitted alone: {str(error).rstrip('.')}"

    @property
    def transform_ratio(self) -> tuple[float, float] | None:
        """The ratio of outcomes fitted on the log to their means, with its standard error."""
        model = self.ratio_model if self.question.outcome_transform is not None else ""
        return None if isinstance(model, str) else model.fit_.transform_ratio

    def make(self, question: Question) -> Model:
        """Return the unfitted estimator of another question about the same columns."""
        return model_of(question, self.encoding)

    def refit(self, model: Model) -> Model:
        """Fit another model to the rows, without its warnings."""
        with warnings.catch_warnings():
            # The checks of the answer say what is wrong with its own model.
            warnings.simplefilter("ignore", HeckmanfaWarning)
            self.fit(model)
        return model

    @property
    def is_quick(self) -> bool:
        """Whether a binary outcome can be fitted many times while someone waits."""
        rows = self.loaded
        return rows is not None and len(rows.y) <= QUICK_ROWS and rows.X.shape[1] <= QUICK_FEATURES

    @cached_property
    def derived_columns(self) -> dict[str, tuple[str, ...]]:
        """Columns that are the square of another, or the product of two; none if streamed."""
        if self.loaded is None:
            return {}
        encoding, X = self.encoding, self.loaded.X
        dummies = source_columns(encoding)
        names = [str(name) for name in X.columns if name not in dummies]
        # Of many rows, evenly spaced ones are read.
        step = max(len(X) // MOST_ROWS, 1)
        values = X[names].iloc[::step].to_numpy(dtype=np.float64)
        if encoding.missing == "mean":
            # An average that fills a gap follows from nothing.
            means = np.array(
                [encoding.means[name] if name in encoding.n_missing else np.nan for name in names]
            )
            values = values[~(values == means).any(axis=1)]
        return find_products(values, names)

    @property
    def _is_compressed(self) -> bool:
        """Whether other features, or another rho, need no pass over the rows."""
        return "compressed data" in self.model.fit_.family.supports

    @property
    def is_corrected(self) -> bool:
        """Whether the model has a selection equation: some outcome was missing in the fit."""
        return bool(self.model.row_counts_["unselected"] > 0)

    @cached_property
    def predicting(self) -> list[str]:
        """Columns of the table that predict; of an average, those that surely do.

        Of an average without chances, those that may.
        """
        if not self.model.fit_.way.is_average:
            return self.sources(self.model.prediction_features_)
        if self.evidence.pseudo:
            return self._may_predict
        sure = (*SURELY, ALWAYS)
        return [feature.name for feature in self.evidence.features if feature.role in sure]

    @cached_property
    def kept_out(self) -> list[str]:
        """Columns of the table that are in the selection equation and do not predict.

        An average keeps out only those that no assignment may hold.
        """
        averaged = self.model.fit_.way.is_average
        predicting = self._may_predict if averaged else self.predicting
        selecting = self.sources(self.model.selection_features_)
        return [name for name in selecting if name not in predicting]

    @property
    def _may_predict(self) -> list[str]:
        """Columns of the table that are in the prediction equation, chosen or averaged."""
        fit = self.model.fit_
        return self.sources([fit.feature_names[column] for column in fit.equation])

    @cached_property
    def driving_selection(self) -> list[str]:
        """Those kept out that drive selection; see `heckmanfa.results.exclusions`."""
        driving = self.sources(self.exclusions.driving)
        return [name for name in self.kept_out if name in driving]

    @cached_property
    def without_evidence(self) -> list[str]:
        """Those kept out and tested, without evidence that they drive selection."""
        others = {*self.driving_selection, *self.not_tested}
        return [name for name in self.kept_out if name not in others]

    @cached_property
    def not_tested(self) -> list[str]:
        """Those kept out for which selection could not be tested."""
        unknown = self.sources(self.exclusions.not_tested)
        driving = self.driving_selection
        return [name for name in self.kept_out if name in unknown and name not in driving]

    @property
    def errors_kind(self) -> str:
        """Kind of the standard errors: classical, robust, cluster or survey."""
        return self.model.fit_.spec.cov_type or "classical"

    @property
    def errors(self) -> str:
        """That kind in words, with the clusters, or why it is robust without --robust."""
        if self.clusters:
            (name, n), *others = self.clusters
            more = "".join(f" and {n:,} of {shown(name)}" for name, n in others)
            return f"{self.errors_kind} ({plural(n, 'cluster')} of {shown(name)}{more})"
        if (design := self.model.fit_.design) is not None:
            df = plural(design.df, "degree") + " of freedom"
            return f"{self.errors_kind} ({design.words}; {df})"
        if self.errors_kind == "robust":
            return f"robust{why_robust(self.model.fit_, asked=self.question.robust)}"
        return self.errors_kind

    @property
    def clusters(self) -> list[tuple[str, int]]:
        """The columns that errors are clustered by, and how many clusters each has in the fit."""
        fit = self.model.fit_
        if fit.n_clusters is None:
            return []
        counts = fit.cluster_counts or (fit.n_clusters,)
        return list(zip(self.question.cluster, counts, strict=True))

    @property
    def left_out(self) -> dict[str, str]:
        """Why columns of the table that were not excluded are in neither equation."""
        model = self.model
        used = self.sources([*model.prediction_features_, *model.selection_features_])
        lost = [name for name in self.sources(model.dropped_features_) if name not in used]
        why = "is collinear with other features, or does not vary in these rows"
        if self.row_counts.get("left_out_separation"):
            what = model.fit_.family.words.separates
            why = f"is collinear with other features, or determines {what} exactly"
        return self.encoding.reasons | dict.fromkeys(lost, why)

    @property
    def feature_columns(self) -> list[str]:
        """Columns of the table that are features of either equation."""
        left_out = self.left_out
        return [name for name in self.encoding.sources if name not in left_out]

    def explain(self) -> list[str]:
        """Return sentences on how columns were used, and which were left out."""
        return self.encoding.explain(self.left_out)

    @property
    def _groups(self) -> list[list[str]]:
        """Columns of X that are tested jointly: those dummies of a column that select."""
        probit = self.model.fit_.probit
        known = {} if probit is None else {self.model.fit_.labels[k] for k in probit.features}
        dummies = joint_groups(self.encoding).values()
        groups = [[name for name in group if name in known] for group in dummies]
        return [group for group in groups if len(group) > 1]

    @property
    def _never(self) -> list[str]:
        """Columns of X that must not predict."""
        groups = self.encoding.groups
        return [dummy for name in self.question.select_only for dummy in groups.get(name, [name])]

    def _names(self, columns: Sequence[int] | Any) -> list[str]:
        """Name columns of X by their positions."""
        names = self.model.fit_.feature_names
        return [str(names[int(column)]) for column in columns]

    def sources(self, columns: Sequence[Any]) -> list[str]:
        """Name the columns of the table behind encoded columns, each once."""
        source = source_columns(self.encoding)
        return list(dict.fromkeys(source.get(str(column), str(column)) for column in columns))
