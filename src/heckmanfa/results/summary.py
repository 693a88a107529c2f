"""The summary of a model: rows, covariance and fit at its top, estimates, and what to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.fit import Fit
from heckmanfa.model.covariance import is_classical
from heckmanfa.results.answer import opening
from heckmanfa.results.average_tables import all_features_terms, average_facts
from heckmanfa.results.cut_points import cut_section
from heckmanfa.results.distribution import clusters_text, distribution_of
from heckmanfa.results.document import Part, RegressionTable, Section
from heckmanfa.results.effects import class_counts
from heckmanfa.results.estimates import tidy
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.facts import Fact
from heckmanfa.results.fit_facts import ratio_text
from heckmanfa.results.fit_tests import rho_lr, rho_wald
from heckmanfa.results.naming import EffectWords, class_label, name_on_scale, outcome_of
from heckmanfa.results.render_latex import render_latex
from heckmanfa.results.render_text import render_markdown
from heckmanfa.results.reports import Printed, Report
from heckmanfa.results.search_facts import summary_sentences
from heckmanfa.results.search_report import selection_sections
from heckmanfa.results.side_by_side import CANNOT_SOLVE, side_by_side
from heckmanfa.text.printable import shown
from heckmanfa.text.table import Column, Table
from heckmanfa.text.wording import capitalised, chance_text, number, p_equals, p_value

if TYPE_CHECKING:
    import pandas as pd

_COMPARISON = ("chosen", "all_features", "naive")


@dataclass(frozen=True, repr=False)
class Summary(Printed):
    """A fitted model in words and tables; prints as text, shows as HTML in a notebook.

    `to_latex` and `to_markdown` render it for a paper and for a web page.
    """

    _kind = "summary"

    title: str
    facts: list[tuple[str, str]]
    table: pd.DataFrame
    """as `tidy` returns it"""
    headings: dict[str, str]
    """above the rows of each equation"""
    conf_level: float
    notes: list[str]
    comparison: pd.DataFrame | None = None
    """coefficients of other models beside those of this one, after a search"""
    sections: tuple[Section, ...] = ()
    """other reports to include"""
    all_features: Floats | None = None
    """of an average, estimates and standard errors of the model with everything in it, (T, 2)"""
    letter: str = "z"
    """name of the statistic: z, or t with a cluster covariance"""
    opening: str = ""
    """the answer in a few sentences, after a search or an average"""
    naive: str = "least squares"
    """name of the column of the model that ignores selection"""
    outcome: str = "outcome"
    """what the prediction equation is of"""

    def parts(self) -> list[Part]:
        """Return the estimates, then the sections of other reports."""
        return [self._estimates(), *self.sections]

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        r"""Return it as LaTeX: ``table`` environments that need the package booktabs.

        The first holds both equations and the facts of the fit, with the notes below; others hold
        the other models, and the parts of the reports included.

        Parameters
        ----------
        caption : str, optional
            LaTeX, printed as it is; the title by default.
        label : str, optional
            For ``\ref``. The tables after the first get it with "-comparison", "-1", "-2" and so
            on appended.
        """
        return render_latex(self._estimates(), self.sections, caption, label)

    def to_markdown(self) -> str:
        """Return it as Markdown, with a table for each equation."""
        return render_markdown(self.parts())

    def _estimates(self) -> RegressionTable:
        """Format the estimates, one equation below the other, and the other models."""
        percent = f"{100 * self.conf_level:g}%"
        if self.all_features is not None:
            return self._averaged(self.all_features, percent)
        columns = (
            Column("term", is_number=False),
            Column("estimate", width=12),
            Column("std. error", width=12),
            Column(self.letter, width=8),
            Column(f"P>|{self.letter}|", width=8),
            *_interval_columns(percent, 13, 12),
        )
        return self._laid_out(columns, self.table, _cells, self._comparison())

    def _averaged(self, all_features: Floats, percent: str) -> RegressionTable:
        """Format averages: chances beside the estimates, and the model with everything in it."""
        columns = (
            Column("term", is_number=False),
            Column("chance", width=7),
            Column("estimate", width=11),
            *_interval_columns(percent, 12, 11),
            Column("all features", width=13),
            Column("std. error", width=11),
        )
        beside = self.table.assign(whole=all_features[:, 0], whole_error=all_features[:, 1])
        return self._laid_out(
            columns, beside[beside["equation"] != "selection"], _averaged_cells, None
        )

    def _laid_out(
        self,
        columns: tuple[Column, ...],
        table: pd.DataFrame,
        cells: Callable[[Mapping[object, float]], list[str]],
        comparison: Table | None,
    ) -> RegressionTable:
        rows: list[list[str] | str] = []
        for equation, terms in table.groupby("equation", sort=False):
            rows.append(self.headings[str(equation)].format(outcome=shown(self.outcome)))
            rows += [cells(row) for row in terms.to_dict("records")]
        return RegressionTable(
            title=self.title,
            facts=tuple(self.facts),
            estimates=Table(columns, tuple(rows)),
            comparison=comparison,
            notes=tuple(self.notes),
            opening=self.opening,
        )

    def _comparison(self) -> Table | None:
        if self.comparison is None:
            return None
        titles = {"chosen": "chosen", "all_features": "all features", "naive": self.naive}
        names = [name for name in _COMPARISON if name in self.comparison]
        columns = (
            Column("term", is_number=False),
            *(Column(titles[name], width=18) for name in names),
        )
        rows = tuple(
            [shown(row["term"]), *(number(row[name], 5) for name in names)]
            for row in self.comparison.to_dict("records")
        )
        return Table(columns, rows, caption="Beside other models")


def _interval_columns(percent: str, *widths: int) -> list[Column]:
    ends = zip(("low", "high"), widths, strict=True)
    span = f"{percent} interval"
    return [Column(f"{percent} {end}", span=span, width=width) for end, width in ends]


def _averaged_cells(row: Mapping[object, float]) -> list[str]:
    """Format a row of `tidy` of an average, and of the model with everything in it."""
    numbers = (row[key] for key in ("estimate", "ci_low", "ci_high", "whole", "whole_error"))
    return [shown(row["term"]), chance_text(row["chance"]), *map(number, numbers)]


def _cells(row: Mapping[object, float]) -> list[str]:
    """Format a row of `tidy`."""
    z = row["statistic"]
    return [
        shown(row["term"]),
        number(row["estimate"], 5),
        number(row["std_error"], 5),
        f"{z:.2f}" if np.isfinite(z) else number(z),
        p_value(row["p_value"]),
        number(row["ci_low"], 5),
        number(row["ci_high"], 5),
    ]


ROW_WORDS = {
    "left_out_outcome_missing": "selected, but the outcome is missing",
    "left_out_regressor_missing": "a regressor is missing",
    "left_out_treatment_missing": "the treatment is missing",
    "left_out_zero_weight": "weight zero",
    "left_out_subpopulation": "outside of the subpopulation",
    "left_out_separation": "selection determined exactly",
}
"""why rows are left out, by how they are counted"""
# A fact has so much room for a name or a class of the user's.
_ROOM = 22


def rows_left_out(fit: Fit) -> dict[str, int]:
    """Count the rows left out, by why."""
    counts, said = fit.row_counts, dict(ROW_WORDS)
    said["left_out_separation"] = f"{fit.family.words.separates} determined exactly"
    if fit.family.sees_everyone:
        said["left_out_outcome_missing"] = "the outcome is missing"
    return {words: counts[key] for key, words in said.items() if counts.get(key)}


def summary_title(fit: Fit) -> str:
    """Name the model of a fit."""
    words = fit.family.words
    if fit.probit is None:
        return f"{capitalised(words.plain_short)} (no outcome is missing)"
    if len(fit.family.methods) == 1:
        return words.title
    how = "maximum likelihood" if fit.spec.method == "ml" else "two-step"
    return f"{words.title}, {how}{fit.way.words.title}"


def summary_facts(fit: Fit, n_left_out: int) -> list[tuple[str, str]]:
    """Return the facts of a summary, each with its label."""
    counts = fit.row_counts
    facts = [
        ("Rows given", str(counts["total"])),
        (fit.family.words.rows[0], str(counts["selected"])),
        (fit.family.words.rows[1], str(counts["unselected"])),
        ("Left out", str(n_left_out)),
        *_class_facts(fit),
        *_log_facts(fit),
        ("Covariance", fit.spec.cov_type or "classical"),
        *_design_facts(fit),
        *_criteria(fit),
    ]
    if fit.log_likelihood is not None:
        facts.append((likelihood_name(fit), f"{fit.log_likelihood:.4f}"))
    facts += _rho_facts(fit)
    if fit.weighted:
        facts.append(("Weights", fit.spec.weight_kind))
    if fit.n_obs != counts["selected"] + counts["unselected"]:
        facts.append(("Sum of weights", f"{fit.n_obs}"))
    return facts


def _design_facts(fit: Fit) -> list[tuple[str, str]]:
    """Count the clusters, or the units of a survey."""
    if fit.design is not None:
        return fit.design.facts
    if fit.n_clusters is None:
        return []
    return [("Clusters", clusters_text(fit.n_clusters, fit.cluster_counts))]


def _class_facts(fit: Fit) -> list[tuple[str, str]]:
    """Say which class is modelled, and how many selected rows have each."""
    if fit.ordered_classes is not None and fit.class_counts is not None:
        each = zip(fit.ordered_classes, fit.class_counts, strict=True)
        return [
            (f"Selected, {shown(class_label(label), _ROOM)}", f"{n:,.10g}") for label, n in each
        ]
    n_positive, n_negative = class_counts(fit)
    if n_positive is None or fit.classes is None:
        return []
    negative, positive = (shown(class_label(label), _ROOM) for label in fit.classes)
    outcome = shown(outcome_of(fit), _ROOM)
    target = str(EffectWords(outcome, fit.classes).target)
    if len(target) > _ROOM:
        target = f"P(y = {positive})"
    return [
        ("Modelled", target),
        (f"Selected, {positive}", f"{n_positive:,.10g}"),
        (f"Selected, {negative}", f"{n_negative:,.10g}"),
    ]


def _log_facts(fit: Fit) -> list[tuple[str, str]]:
    """Say on which scale an outcome is fitted, and how it compares with its means on its own."""
    if fit.spec.outcome_transform is None:
        return []
    facts = [("Outcome", shown(outcome_of(fit), _ROOM))]
    if fit.transform_ratio is not None:
        facts.append(("Outcome / mean", ratio_text(fit.transform_ratio)))
    return facts


def _criteria(fit: Fit) -> list[tuple[str, str]]:
    aic, bic = f"{fit.aic:.2f}", f"{fit.bic:.2f}"
    judged = [("AIC", aic), ("BIC", bic)] if not fit.way.is_average else average_facts(fit)
    known = fit.family.has_imr and not (fit.way.is_average and np.isnan(fit.adjusted_r2))
    return [("Adjusted R2", f"{fit.adjusted_r2:.4f}"), *judged] if known else judged


def _rho_facts(fit: Fit) -> list[tuple[str, str]]:
    """Give the test of rho = 0 that a Heckman probit is read by, as Stata does.

    With a robust or cluster covariance there is no likelihood ratio, and Wald's test is given.
    """
    tested = fit.probit is not None and not fit.rho_is_conditioned and fit.held_rho is None
    tested = tested and fit.family.can("single rho")
    if not fit.family.is_bounded or not tested or fit.way.is_average:
        return []
    ratio = rho_lr(fit)
    name, test = ("LR", ratio) if ratio is not None else ("Wald", rho_wald(fit))
    if test.note:
        return [(f"{name} test of rho = 0", "not known")]
    letter = "chi2" if test.df_denominator is None else "F"
    return [
        (f"{name} {letter}, rho = 0", number(test.statistic)),
        (f"{name} test of rho = 0", p_equals(test.p_value)),
    ]


def likelihood_name(fit: Fit) -> str:
    """Name what maximum likelihood maximised, as Stata does.

    A robust or cluster covariance, which sampling weights need, does not trust the model: what was
    maximised is then not a log-likelihood of the data.
    """
    return "Log-likelihood" if is_classical(fit.spec.cov_type) else "Log pseudolikelihood"


_COMPARED = {"estimate": "chosen", "all_features": "all_features", "least_squares": "naive"}
_COMPARISON_NOTE = (
    "All features: the two-step model in which every allowed feature predicts. Least "
    "squares: the chosen features on the selected rows, with no correction."
)
_OF_BOTH = (
    "the two-step model in which every allowed feature predicts",
    "the maximum-likelihood model in which both equations have every allowed feature",
)
_PROBIT_NOTE = (
    "All features: the Heckman probit in which every allowed feature predicts, where the search "
    "starts. Naive probit: the chosen features on the selected rows, with no correction. Its "
    "log-likelihood is that of two separate probits."
)


def summarize(
    fit: Fit,
    evidence: Evidence | None,
    conf_level: float,
    reports: Sequence[Report],
    facts: Sequence[Fact],
) -> Summary:
    """Summarize a fitted model, with other reports below, and what its facts say.

    A fit whose features were searched for opens with its ``evidence``.
    """
    left_out = rows_left_out(fit)
    notes = summary_sentences(fit, facts)
    notes += [f"{n} rows left out: {words}." for words, n in left_out.items()]
    comparison = None
    one = fit.family.can("single outcome equation")
    if one and fit.search is not None and fit.search.result is not None:
        beside = side_by_side(fit)
        comparison = beside.terms[["term", *_COMPARED]].rename(columns=_COMPARED)
        if "two steps" not in fit.family.supports:
            comparison = comparison if beside.is_solved else comparison.drop(columns="all_features")
            notes.append(_PROBIT_NOTE)
        else:
            notes += [] if beside.is_solved else [CANNOT_SOLVE]
            both = fit.way.form_of_both is not None
            notes.append(_COMPARISON_NOTE.replace(*_OF_BOTH) if both else _COMPARISON_NOTE)
    sections = [section for report in reports for section in report.sections()]
    if fit.ordered_classes is not None:
        sections.insert(0, cut_section(fit, conf_level))
    all_features = None
    if fit.way.is_average:
        sections = [*selection_sections(fit, fit.way.averaging.mixture), *sections]
        all_features = all_features_terms(fit)
    return Summary(
        title=summary_title(fit),
        facts=summary_facts(fit, sum(left_out.values())),
        table=tidy(fit, conf_level),
        headings={equation.name: equation.heading for equation in fit.family.equations}
        | {"errors": "Errors"},
        conf_level=conf_level,
        notes=notes,
        comparison=comparison,
        sections=tuple(sections),
        all_features=all_features,
        letter=distribution_of(fit).letter,
        opening="" if evidence is None else str(opening(evidence)),
        naive=fit.family.words.naive_short if evidence is None else evidence.words.naive_short,
        outcome=name_on_scale("outcome", fit.spec.outcome_transform),
    )
