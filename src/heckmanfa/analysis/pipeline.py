"""From a question about a table to a fitted model that accounts for every row and column.

The command line, its JSON and the report are views of an `Analysis`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import pandas as pd
from narwhals.typing import IntoDataFrame

from heckmanfa.analysis.checking import Subject, checks_of_answer
from heckmanfa.analysis.column_roles import in_sources, joint_groups, source_columns
from heckmanfa.analysis.loading import prepare
from heckmanfa.analysis.pictures import derived_columns, naming_of, pictures_of
from heckmanfa.analysis.prepared import Model, Prepared, fit_question, model_of
from heckmanfa.analysis.question_words import describe_question, row_blocks, run_again
from heckmanfa.analysis.refits import (
    HeldOut,
    best_model,
    fold_model,
    hold_out,
    is_quick,
)
from heckmanfa.analysis.request import Question, naming_keywords, question_about
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.estimators.fitting import attach_encoding
from heckmanfa.inference.assessment import (
    QUICK_ROWS,
    diagnose_fit,
    uncertainty_or_why,
    what_if_or_why,
)
from heckmanfa.inference.pictures import Pictures
from heckmanfa.inference.uncertainty import bounds_of
from heckmanfa.report.reported import Reported
from heckmanfa.results.answer import Answer, answer_of, roles_frame
from heckmanfa.results.answer_html import card_html, card_or_summary
from heckmanfa.results.average_tables import ALWAYS, SURELY
from heckmanfa.results.catalogue import TableFacts, facts_of_answer
from heckmanfa.results.checks import Check
from heckmanfa.results.claims import Claim, claims_of
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.evidence import Evidence, evidence_of
from heckmanfa.results.exclusions import Exclusions, find_exclusions
from heckmanfa.results.facts import Fact
from heckmanfa.results.may_write import may_write
from heckmanfa.results.side_by_side import SideBySide, side_by_side
from heckmanfa.text.option_words import told
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import plural

if TYPE_CHECKING:
    from heckmanfa.inference.uncertainty import UncertaintyInterval
    from heckmanfa.inference.what_if import WhatIf
    from heckmanfa.results.reports import Untested


@dataclass(frozen=True, eq=False)
class Analysis(Prepared):
    r"""A question about a table, and its answer; made by `analyse`.

    A notebook shows the answer and the first picture. ``print(analysis)`` prints the sentences,
    and `heckmanfa.report.write_report` writes them as a page with every picture.

    Examples
    --------
    >>> from heckmanfa.analysis import analyse
    >>> from heckmanfa.datasets import load_mroz
    >>> table = load_mroz()[["lwage", "educ", "exper", "age", "kids5"]]
    >>> analysis = analyse(table, outcome="lwage")
    >>> analysis
    <Analysis of 'lwage' in frame: 753 rows, 428 with an outcome, 4 features, HeckmanAverage>
    >>> print(*(analysis.roles["feature"] + ": " + analysis.roles["role"]), sep="\n")
    educ: predicts
    exper: predicts, on its own or as it drives selection
    age: cannot be told: only as it drives selection
    kids5: cannot be told: only as it drives selection
    """

    model: Model
    row_counts: dict[str, int]
    """rows of the table by how they were used, or why they were left out"""
    warnings: tuple[str, ...]
    """warnings of the fit, which name options instead of parameters"""
    warning_kinds: tuple[type[HeckmanfaWarning], ...] = ()
    """the kind of each of them"""

    def __str__(self) -> str:
        """Return the sentences of the answer."""
        return str(self.answer)

    def __repr__(self) -> str:
        """Name the question and the model, at once: an answer may take seconds."""
        return (
            f"<Analysis of {quoted(self.question.fitted)} in {shown(self.question.called)}: "
            f"{plural(self.row_counts['total'], 'row')}, {self.row_counts['selected']:,} with an "
            f"outcome, {plural(len(self.feature_columns), 'feature')}, "
            f"{type(self.model).__name__}>"
        )

    def _repr_html_(self) -> str:
        return card_or_summary(self._card, self.model.summary)

    def _card(self) -> str:
        return card_html(self.answer, self.pictures().forest, self.question.fitted)

    @cached_property
    def evidence(self) -> Evidence:
        """The numbers behind the answer: chances, roles and effects of the table's columns."""
        fit = self.model.fit_
        found = evidence_of(fit, naming_of(self, fit), never=self._never)
        codes = [code for code in self.suspicions if code.is_outcome]
        if not codes:
            return found
        why = f"{shown(self.question.outcome)} has values that look like codes for missing"
        return replace(found, judgement=found.judgement.doubted(why))

    @cached_property
    def answer(self) -> Answer:
        """The answer in sentences: which features predict, how much, and how far to trust it."""
        asked = self.evidence.no_exclusion and "bounds of rho" in self.target.family.supports
        bounds = bounds_of(self.model.fit_) if asked else None
        written = may_write(self.evidence, self.checks, bounds=bounds)
        return answer_of(self.evidence, self.checks, bounds=bounds, may_write=written)

    @cached_property
    def roles(self) -> pd.DataFrame:
        """A row for each column of the table: feature, chance, role, effect, ci_low, ci_high.

        Columns come by role, the likeliest first. A category has the effect of the level furthest
        from its reference. What is not known is NaN.
        """
        return roles_frame(self.evidence)

    @cached_property
    def uncertainty(self) -> UncertaintyInterval | Untested | None:
        """Where each coefficient lies for rho in a range; None without a selection equation.

        A binary outcome is refitted at some values of rho, so its rows must be few enough.
        """
        if not self.is_corrected:
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
    def what_if(self) -> WhatIf | Untested | None:
        """Estimates under other exclusions; None for averages, and where nothing rests on these.

        A binary outcome is refitted for each of them, so features and rows must be few enough.
        """
        fit = self.model.fit_
        if not self.is_corrected or fit.way.is_average or fit.held_rho is not None:
            return None
        rows = self.loaded
        if self._is_compressed and (rows is None or not fit.spec.errors_differ):
            return what_if_or_why(self.model.what_if)
        if rows is None or not (self._is_compressed or is_quick(self)):
            return None
        return what_if_or_why(self.model.what_if, rows.X, self.outcome, **rows.roles)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Diagnostics of the model, for the rows of the fit if these are in memory."""
        X = None if self.loaded is None else self.loaded.X
        known = [report for report in (self.uncertainty, self.what_if) if report is not None]
        return diagnose_fit(self.model.fit_, X, known, self.evidence.weights)

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
        return self.comparison.with_errors(self.estimates)

    @cached_property
    def facts(self) -> list[Fact]:
        """Everything worth telling about the answer, in reading order."""
        table = TableFacts(
            n_rows=self.row_counts["total"],
            n_missing=self.row_counts.get("left_out_regressor_missing", 0),
            filled=self.question.missing == "mean",
            exclusions=self.exclusions,
            lost=self.lost,
        )
        return facts_of_answer(self.model.fit_, self.diagnostics, table)

    @property
    def caveats(self) -> list[Fact]:
        """Facts that limit what the answer shows, or say what an estimate is."""
        return [fact for fact in self.facts if fact.sentence or fact.claim]

    @cached_property
    def best_model(self) -> Model:
        """A model of one assignment, fitted to the rows: of an average, the best by BIC."""
        return best_model(self, self.model, self.evidence.weights, self._make)

    @cached_property
    def derived_columns(self) -> dict[str, tuple[str, ...]]:
        """Columns that are the square of another, or the product of two; none if streamed."""
        return {} if self.loaded is None else derived_columns(self.loaded.X, self.encoding)

    @cached_property
    def held_out(self) -> HeldOut | str | None:
        """Scores of selected rows by fits without them, or why not; None without classes."""
        if not self.target.family.has_classes or not self.is_corrected:
            return None
        model, features = fold_model(self, self.model, self._make)
        return hold_out(self, model, features)

    def pictures(self) -> Pictures:
        """Return the pictures of the answer, each made when it is first read."""
        return self._pictures

    @cached_property
    def _pictures(self) -> Pictures:
        return pictures_of(self, self.evidence, self.derived_columns)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """How far to trust the answer, the gravest first."""
        subject = Subject(
            prepared=self,
            model=self.model,
            best_model=lambda: self.best_model,
            make=self._make,
            facts=self.facts,
            warned=list(zip(self.warning_kinds, self.warnings, strict=True)),
            row_counts=self.row_counts,
            weights=self.evidence.weights,
            derived=self.derived_columns,
            source_of=self.source_of,
        )
        return checks_of_answer(subject)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What may not be claimed, the gravest first."""
        return claims_of(self.evidence, self.facts, self.checks)

    def reported(self) -> Reported:
        """Return what the page of `heckmanfa.report.write_report` shows."""
        held, features = self.held_out, self.feature_columns
        streamed = "Not shown: needs all rows in memory." if self.streamed else ""
        why = held if isinstance(held, str) and not self.streamed else ""
        notes = [*self.notes, *self.explain(), *self.warnings]
        return Reported(
            evidence=self.evidence,
            answer=self.answer,
            checks=self.checks,
            claims=self.claims,
            caveats=self.caveats,
            pictures=self.pictures(),
            comparison=self.comparison,
            outcome_column=self.question.outcome,
            title=f"{shown(self.question.fitted)}: a selection model of "
            f"{shown(self.question.called)}",
            called=self.question.called,
            row_counts=self.row_counts,
            n_features=len(features),
            settings=describe_question(self, self.model, self.evidence, features),
            rows=row_blocks(self, self.evidence, self.row_counts, notes),
            again=run_again(self),
            without_rows=streamed,
            held_out=held.picture if isinstance(held, HeldOut) else None,
            held_out_note=held.how if isinstance(held, HeldOut) else why,
        )

    @property
    def _is_compressed(self) -> bool:
        """Whether other features, or another rho, need no pass over the rows."""
        return "compressed data" in self.target.family.supports

    def _make(self, question: Question) -> Model:
        """Return the unfitted estimator of another question about the same columns."""
        return model_of(question, self.encoding)

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
            return self._sources(self.model.prediction_features_)
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
        selecting = self._sources(self.model.selection_features_)
        return [name for name in selecting if name not in predicting]

    @property
    def _may_predict(self) -> list[str]:
        """Columns of the table that are in the prediction equation, chosen or averaged."""
        fit = self.model.fit_
        return self._sources([fit.feature_names[column] for column in fit.equation])

    @cached_property
    def driving_selection(self) -> list[str]:
        """Those kept out that drive selection; see `heckmanfa.results.exclusions`."""
        driving = self._sources(self.exclusions.driving)
        return [name for name in self.kept_out if name in driving]

    @cached_property
    def without_evidence(self) -> list[str]:
        """Those kept out and tested, without evidence that they drive selection."""
        others = {*self.driving_selection, *self.not_tested}
        return [name for name in self.kept_out if name not in others]

    @cached_property
    def not_tested(self) -> list[str]:
        """Those kept out for which selection could not be tested."""
        unknown = self._sources(self.exclusions.not_tested)
        driving = self.driving_selection
        return [name for name in self.kept_out if name in unknown and name not in driving]

    @property
    def errors_kind(self) -> str:
        """Kind of the standard errors: classical, robust or cluster."""
        return self.model.fit_.spec.cov_type or "classical"

    @property
    def errors(self) -> str:
        """That kind in words, with the clusters, or why it is robust without --robust."""
        if self.model.n_clusters_ is not None:
            n = plural(self.model.n_clusters_, "cluster")
            return f"{self.errors_kind} ({n} of {shown(self.question.cluster)})"
        if self.errors_kind == "robust" and not self.question.robust:
            return "robust, as sampling weights need"
        return self.errors_kind

    @property
    def left_out(self) -> dict[str, str]:
        """Why columns of the table that were not excluded are in neither equation."""
        model = self.model
        used = self._sources([*model.prediction_features_, *model.selection_features_])
        lost = [name for name in self._sources(model.dropped_features_) if name not in used]
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

    def source_of(self, column: str) -> str:
        """Return the column of the table behind a column of X."""
        return self._sources([column])[0]

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

    def _sources(self, columns: Sequence[Any]) -> list[str]:
        """Name the columns of the table behind encoded columns, each once."""
        source = source_columns(self.encoding)
        return list(dict.fromkeys(source.get(str(column), str(column)) for column in columns))


def analyse(
    question: Question | str | PathLike[str] | IntoDataFrame,
    say: Callable[[str], None] | None = None,
    *,
    frame: IntoDataFrame | None = None,
    **options: Any,
) -> Analysis:
    """Read the table, encode it, and fit the model of a question.

    Parameters
    ----------
    question : Question, table or path
        A question, or the table that it is about: a data frame (pandas, Polars, …), a Polars
        LazyFrame, a DuckDB relation, a pyarrow Dataset, rows of `heckmanfa.scan`, or a file, a
        folder, a pattern or a URL. What would take more gigabytes than ``stream_above`` is read in
        passes.
    say : callable, optional
        Called with a few words at each step.
    frame : table, optional
        The table of a `Question`, if it is not in files; ``question.data`` is then its name. Its
        dtypes say which columns are text, as the schema of a Parquet file does, so both give the
        same model.
    **options
        With a table: ``outcome``, the name of its column, and other fields of `Question`.

    Returns
    -------
    Analysis
        With ``answer`` (sentences), ``roles`` (a frame) and ``checks``.

    Examples
    --------
    >>> from heckmanfa.analysis import analyse
    >>> from heckmanfa.datasets import load_mroz
    >>> table = load_mroz()[["lwage", "educ", "exper", "age", "kids5"]]
    >>> analysis = analyse(table, outcome="lwage", select_only=["kids5", "age"])
    >>> print(analysis.answer.headline)
    educ and exper predict lwage.
    """
    in_python = not isinstance(question, Question) or bool(options) or isinstance(say, str)
    with naming_keywords(in_python or frame is not None):
        if not isinstance(question, Question) or in_python:
            question, frame = question_about(question, frame, say, options)
        return _analyse(question, say or (lambda words: None), frame)


def _analyse(question: Question, tell: Callable[[str], None], frame: Any) -> Analysis:
    loaded = (prepared := prepare(question, tell, frame)).loaded
    tell(f"fitting {prepared.n_rows if loaded is None else len(loaded.y):,} rows")
    prepared, model, caught = fit_question(prepared)
    messages: dict[str, type[HeckmanfaWarning]] = {
        told(in_sources(warning.message.words, prepared.encoding), keywords=True): type(
            warning.message
        )
        for warning in caught
        if isinstance(warning.message, HeckmanfaWarning)
    }
    if prepared.encoding.has_rules:
        # Whoever loads the model predicts from the columns of a table, not from dummies.
        attach_encoding(model, prepared.encoding)
    counts = model.row_counts_ | {"total": prepared.n_rows}
    # The fit counted the rows that are not in memory.
    lost = counts.pop("left_out_regressor_missing", 0)
    if loaded is not None:
        lost = prepared.n_rows - len(loaded.y)
    known = {field.name: getattr(prepared, field.name) for field in fields(prepared)}
    if loaded is None:
        said = (getattr(warning.message, "lost", None) for warning in caught)
        known["lost"] = next((found for found in said if found is not None), None)
    return Analysis(
        **known,
        model=model,
        row_counts=counts | {"left_out_regressor_missing": lost},
        warnings=tuple(messages),
        warning_kinds=tuple(messages.values()),
    )
