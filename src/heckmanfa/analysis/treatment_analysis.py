"""A question about a treatment with its answer: effects in place of roles of features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from heckmanfa.analysis.checking import facts_of_table, with_warnings
from heckmanfa.analysis.feature_table import readable
from heckmanfa.analysis.pipeline import Analysis
from heckmanfa.analysis.prepared import Loaded, Model, decide_flagged
from heckmanfa.analysis.profiles import read_profiles
from heckmanfa.analysis.question_words import row_blocks, run_again, treatment_settings
from heckmanfa.data.arrays import Floats
from heckmanfa.errors import HeckmanfaError, InputError
from heckmanfa.fit.treatment_details import treatment_details
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.inference.treatment_effects import average_effects
from heckmanfa.inference.treatment_pictures import (
    TreatmentPictures,
    effects_by,
    treatment_evidence,
)
from heckmanfa.plots.people_intervals import people_frame
from heckmanfa.report.treatment_page import ReportedTreatment, treatment_blocks
from heckmanfa.results.answer import Answer
from heckmanfa.results.answer_html import card_html
from heckmanfa.results.catalogue import TableFacts
from heckmanfa.results.checks import Check, checks_of
from heckmanfa.results.claims import Claim
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.document import Block
from heckmanfa.results.effects import CONF_LEVEL, Effect
from heckmanfa.results.facts import Fact
from heckmanfa.results.table_files import SavedTable
from heckmanfa.results.treatment_answer import answer_of_treatment
from heckmanfa.results.treatment_evidence import TreatmentEvidence
from heckmanfa.results.treatment_facts import (
    OtherMethod,
    claims_of_treatment,
    facts_of_treatment,
)
from heckmanfa.results.treatment_sentences import may_write_of_treatment
from heckmanfa.text.labels import in_labels, said
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown

# Groups with an effect each.
_MOST_GROUPS = 20


@dataclass(frozen=True, eq=False, repr=False)
class TreatmentAnalysis(Analysis):
    """A question about the effect of a treatment, and its answer; made by `analyse`.

    It has ``effects`` in place of ``roles``; all else is as in `Analysis`.
    """

    @property
    def evidence(self) -> NoReturn:
        """Refused: which features predict was not asked."""
        raise InputError(self._no_roles)

    @property
    def _no_roles(self) -> str:
        return (
            f"the {self.model.fit_.family.words.model} is about the effect of "
            f"{quoted(self.question.treated)}, not about which features predict: see effects and "
            "estimates"
        )

    @cached_property
    @in_labels
    def treatment(self) -> TreatmentEvidence:
        """The numbers behind the answer: effects, on whom, and what ignores choice."""
        treated = self.question.treated or ""
        by = self.question.by or ""
        return treatment_evidence(
            self.model.fit_, self._naming, treated, self._picture_rows, self._groups_of_rows, by
        )

    @cached_property
    def effects(self) -> pd.DataFrame:
        """Average effects as `TreatmentModel.effects` has them, then those on groups."""
        fit = self.model.fit_
        table = average_effects(fit, None, None, None, None, CONF_LEVEL, type(self.model).__name__)
        groups = self._groups_of_rows
        if groups is None:
            return table
        table.insert(1, "group", "")
        return pd.concat([table, groups.assign(group=groups["group"].astype(str))]).reset_index(
            drop=True
        )

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """Estimates of all equations, as `TreatmentModel.tidy` returns them."""
        return self.model.tidy()

    @cached_property
    @in_labels
    def facts(self) -> list[Fact]:
        """Everything worth telling about the answer, in reading order."""
        table = TableFacts(self.funnel, self.question.missing == "mean", lost=self.lost)
        return facts_of_treatment(self.treatment, table, self.other_method)

    @cached_property
    @in_labels
    def checks(self) -> tuple[Check, ...]:
        """How far to trust the answer, the gravest first."""
        facts = [*self.facts, *facts_of_table(self)]
        checks = checks_of(facts, self.model.fit_, self.question.fitted)
        return with_warnings(self, checks)

    @cached_property
    @in_labels
    def claims(self) -> tuple[Claim, ...]:
        """What may not be claimed, the gravest first."""
        return claims_of_treatment(self.facts)

    @cached_property
    @in_labels
    def answer(self) -> Answer:
        """The answer: what the effect was, on whom, and how far to trust it."""
        written = may_write_of_treatment(self.treatment, self.checks)
        return answer_of_treatment(self.treatment, self.checks, written)

    @property
    def roles(self) -> NoReturn:
        """Refused, as `evidence` is."""
        raise InputError(self._no_roles)

    @property
    @in_labels
    def people(self) -> pd.DataFrame:
        """Expected outcomes of typical rows, with treatment and without."""
        people = self._treatment_pictures.people
        return people_frame(() if people is None else people.people)

    @property
    def held_out(self) -> None:
        """Nothing: every row is in the fit."""

    @cached_property
    def other_method(self) -> OtherMethod | None:
        """The effect by the method that was not used; None if rows are not in memory."""
        if self.loaded is None:
            return None
        methods = self.model.fit_.family.methods
        method = next(name for name in methods if name != self.question.estimated)
        try:
            other = self.refit(self.make(replace(self.question, method=method, start=None)))
        except HeckmanfaError:
            return None
        return OtherMethod(method, effect_on_everyone(other))

    # Rows. -------------------------------------------------------------------------------------

    @cached_property
    def _picture_rows(self) -> PictureRows | None:
        rows = self.rows
        if not isinstance(rows, Loaded):
            return None
        return PictureRows(
            *(self.model.fit_, self._naming, rows.X, self.outcome, rows.selected, rows.weight),
            derived=self.derived_columns,
            groups=rows.designed,
        )

    @cached_property
    def _groups_of_rows(self) -> pd.DataFrame | None:
        """Return the effects on groups, if they are asked for."""
        rows = self.rows
        if self.question.by is None or not isinstance(rows, Loaded):
            return None
        known = decide_flagged(rows.y, rows.selected, everyone=True).kept & ~pd.isna(rows.by)
        weight: Floats | None = rows.weight
        if weight is not None:
            known &= weight > 0
        labels = rows.by[known]
        n_groups = len(pd.unique(labels))
        if n_groups > _MOST_GROUPS:
            raise InputError(
                f"{option('by')}: column {quoted(self.question.by)} holds {n_groups:,} values, and "
                f"effects are given for {_MOST_GROUPS} groups at most: name a column of groups"
            )
        flags = np.asarray(rows.selected)[known].astype(float)
        weight = None if weight is None else weight[known]
        name = type(self.model).__name__
        return effects_by(self.model.fit_, rows.X.loc[known], flags, labels, weight, name)

    @cached_property
    def _treatment_pictures(self) -> TreatmentPictures:
        profiles = read_profiles(
            self.question.profile, [*self.encoding.sources, *self.encoding.left_out]
        )
        return TreatmentPictures(self.treatment, self._picture_rows, self.labels, profiles)

    def pictures(self) -> Any:
        """Return the pictures of the answer, each made when it is first read."""
        return self._treatment_pictures

    @in_labels
    def _card(self) -> str:
        return card_html(self.answer, self.pictures().effects, self.treatment.outcome_names)

    # Files. ------------------------------------------------------------------------------------

    @in_labels
    def _saved_table(self) -> SavedTable:
        sheets = {
            "Effects": self.effects,
            "Coefficients": self.estimates.dropna(axis=1, how="all"),
            "Answer": pd.DataFrame({"answer": self.answer.sentences}),
        }
        return SavedTable(sheets, self._table_blocks)

    @in_labels
    def _table_blocks(self) -> list[Block]:
        return list(readable(treatment_blocks(self.reported())))

    @in_labels
    def reported(self) -> ReportedTreatment:
        """Return what the page of `heckmanfa.report.write_report` shows."""
        question, treated = self.question, said(self.question.treated or "")
        streamed = "Not shown: needs all rows in memory." if self.streamed else ""
        notes = [*self.notes, *self.explain(), *self.warnings]
        title = f"{said(question.fitted)}: the effect of {treated}, from {shown(question.called)}"
        return ReportedTreatment(
            evidence=self.treatment,
            estimates=self.estimates,
            answer=self.answer,
            checks=self.checks,
            claims=self.claims,
            caveats=self.caveats,
            pictures=self._treatment_pictures,
            outcome_column=question.outcome,
            title=question.title or title,
            heading=question.title or "",
            labels=self.labels,
            made_on=self.made_on,
            called=question.called,
            row_counts=self.row_counts,
            funnel=self.funnel,
            n_features=len(self.feature_columns),
            settings=treatment_settings(self),
            rows=row_blocks(self, notes),
            again=run_again(self),
            without_rows=streamed,
        )


def effect_on_everyone(model: Model) -> Effect:
    """Return the average effect on everyone of a fitted model."""
    fit = model.fit_
    details, reach = treatment_details(fit), distribution_of(fit).quantile(CONF_LEVEL)
    gradient, value = details.gradients[0], float(details.effects[0])
    with np.errstate(invalid="ignore"):
        error = float(np.sqrt(gradient @ fit.covariance @ gradient))
    return Effect(value, value - reach * error, value + reach * error)
