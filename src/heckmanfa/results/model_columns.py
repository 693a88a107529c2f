"""What one model puts into a table of models: estimates by term, facts of the fit, and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.survey_design import SurveyDesign
from heckmanfa.fit import Fit
from heckmanfa.fit.family import Equation
from heckmanfa.results.catalogue import facts_of_fit
from heckmanfa.results.cut_points import cut_points
from heckmanfa.results.distribution import clusters_text, distribution_of
from heckmanfa.results.estimates import tidy
from heckmanfa.results.fact_words import note_of
from heckmanfa.results.facts import UNTESTED, Fact
from heckmanfa.results.naming import (
    EffectWords,
    Naming,
    name_dummies,
    name_on_scale,
    outcome_of,
    rather,
)
from heckmanfa.results.summary import likelihood_name
from heckmanfa.results.treatment_report import diagnose_treatment
from heckmanfa.text.labels import current_labels, said, said_all, said_level
from heckmanfa.text.option_words import told
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import capitalised, count, listed

CUTS = "cuts"
"""name of the part of the table that has the cut points of an ordered outcome"""
ERRORS = "errors"
VALUES = ["estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high"]
"""columns of `tidy` that a table takes"""
AIC, BIC = "AIC", "BIC"

_METHODS = {"ml": "ML"}
_HEADINGS = {CUTS: "Cut points", ERRORS: "Errors"}
_RANKS = {CUTS: 2, ERRORS: 3}
# What a table says of a fit, beside its problems.
_TOLD = frozenset(
    {
        *("selection", "two_step_errors", "search", "search_ignored", "search_ended", "window"),
        *("outside_window", "honest", "honest_window", "honest_fit", "average", "pseudo_weights"),
        *("series_intercept", "dropped_features", "trained_on_sample"),
    }
)


@dataclass(frozen=True)
class Term:
    """A term of an equation; the same in two models if all that is compared of it is the same."""

    heading: str
    """above the rows of its equation, without what is in parentheses"""
    equation: str
    """as in `tidy`"""
    source: str
    """the column or the parameter"""
    level: str = ""
    """of a category, that its dummy marks"""
    reference: str = ""
    """the level that it is compared with; empty if it is not known"""
    is_constant: bool = False
    rank: int = 0
    """0 in equations of an outcome, 1 in those of selection, then cut points and errors"""


@dataclass(frozen=True)
class TermWords:
    """How rows of the table name a term."""

    name: str
    """as in `tidy`"""
    alone: str
    """in a row of its own"""
    above: str = ""
    """the heading of its category"""
    below: str = ""
    """under that heading"""
    heading: str = ""
    """that of its equation in full, as in "Selection equation (probit)\" """


@dataclass(frozen=True, eq=False)
class ModelColumn:
    """What one model puts into a table."""

    outcome: str
    """what readers call it; empty if it has no name"""
    columns: tuple[str, ...]
    """names of the user's columns, the outcome among them"""
    estimates: dict[Term, dict[str, float]]
    """values by `VALUES`, in reading order"""
    words: dict[Term, TermWords]
    facts: dict[str, str]
    notes: tuple[str, ...]
    tests: tuple[str, ...] = ()
    """what intervals and tests of it are compared with, in sentences"""
    letter: str = "z"
    """name of its statistic"""
    criteria: Literal["", "outcome", "likelihood"] = ""
    """what its AIC and BIC are of; empty if it has none"""


def column_of_fit(fit: Fit, conf_level: float) -> ModelColumn:
    """Return what a fit puts into a table, in the labels of now."""
    naming, family = Naming.of(fit), fit.family
    table = tidy(fit, conf_level)
    if fit.ordered_classes is not None:
        # The intercept and the steps are the cut points in other words.
        same = (table["equation"] == "prediction") & (table["term"] == "Intercept")
        same |= (table["equation"] == ERRORS) & table["term"].str.startswith("step")
        table = pd.concat([table[~same], _cut_rows(fit, conf_level)], ignore_index=True)
    maker = TermMaker(tuple(fit.labels), naming.sources, naming.levels, naming.references)
    estimates, words = maker.rows(table, family.equations)
    return ModelColumn(
        outcome=_outcome(fit),
        columns=tuple(dict.fromkeys([*maker.columns, *_names_of_outcome(fit)])),
        estimates=estimates,
        words=words,
        facts=_facts(fit),
        notes=tuple(_notes(fit)),
        tests=tuple(distribution_of(fit).notes()),
        letter=distribution_of(fit).letter,
        criteria=_criteria(fit),
    )


@dataclass(frozen=True)
class TermMaker:
    """Makes the terms of a table's rows: names of columns become sources and levels."""

    labels: tuple[str, ...]
    """of the columns of X"""
    sources: tuple[str, ...]
    levels: tuple[str, ...]
    references: tuple[str, ...]

    @classmethod
    def of(cls, labels: Sequence[str], encoding: Encoding | None) -> TermMaker:
        """Return what makes terms of columns that an encoding made, or that are as they were."""
        labels = tuple(map(str, labels))
        if encoding is None:
            return cls(labels, labels, ("",) * len(labels), ("",) * len(labels))
        named = name_dummies(labels, encoding)
        return cls(labels, named.sources, named.levels, named.references)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of X, and of those of the user's table behind them."""
        return tuple(dict.fromkeys([*self.sources, *self.labels]))

    def rows(
        self, table: pd.DataFrame, equations: Sequence[Equation]
    ) -> tuple[dict[Term, dict[str, float]], dict[Term, TermWords]]:
        """Return the values and the words of each row of a `tidy` table."""
        places = {label: place for place, label in enumerate(self.labels)}
        known = {each.name: each for each in equations}
        estimates, words, seen = {}, {}, set[str]()
        for row in table.reindex(columns=["equation", "term", *VALUES]).to_dict("records"):
            name, equation = str(row["term"]), str(row["equation"])
            about = known.get(equation)
            is_first, place = equation not in seen, places.get(name)
            seen.add(equation)
            if about is None:
                heading = _HEADINGS.get(equation, capitalised(equation))
                term = Term(heading, equation, name, rank=_RANKS.get(equation, 0))
            else:
                heading = about.heading.replace(" ({outcome})", "")
                rank = int(about.columns == "selection")
                term = Term(heading.split(" (")[0], equation, name, rank=rank)
                if is_first and name == about.constant:
                    term = replace(term, is_constant=True)
                elif place is not None:
                    term = replace(
                        term,
                        source=self.sources[place],
                        level=self.levels[place],
                        reference=self.references[place],
                    )
            estimates[term] = {value: float(row[value]) for value in VALUES}
            words[term] = replace(_words(term, name), heading=heading)
        return estimates, words


def _words(term: Term, name: str) -> TermWords:
    if not term.level:
        return TermWords(name, said(name))
    above = said(term.source)
    if term.reference:
        above += f" (reference: {said_level(term.source, term.reference)})"
    own = said(name) if name in current_labels().names else ""
    below = own or said_level(term.source, term.level)
    alone = own or f"{said(term.source)}: {rather(term.source, term.level, term.reference)}"
    return TermWords(name, alone, above, below)


def _cut_rows(fit: Fit, conf_level: float) -> pd.DataFrame:
    """Return the cut points as rows of `tidy`, each named by the classes beside it."""
    frame = cut_points(fit, conf_level)
    names = [
        f"{_class(one)} | {_class(two)}" for one, two in zip(frame.below, frame.above, strict=True)
    ]
    return frame.assign(equation=CUTS, term=names).drop(columns=["below", "above"])


def _class(label: Any) -> str:
    whole = isinstance(label, float) and label.is_integer()
    return shown(int(label) if whole else label)


def _outcome(fit: Fit) -> str:
    """Name the outcome, or the probability that is modelled."""
    column, name = fit.origin.outcome, outcome_of(fit)
    if column is None and fit.origin.design is None and fit.classes is None:
        return ""
    if fit.classes is not None:
        return str(EffectWords.of(fit, name).target)
    labels = current_labels().names
    if column is not None and column in labels and name not in labels:
        return name_on_scale(said(column), fit.spec.outcome_transform)
    return said(name)


def _names_of_outcome(fit: Fit) -> list[str]:
    """Return what the outcome can be labelled by."""
    column = fit.origin.outcome
    return [*([] if column is None else [column]), outcome_of(fit)]


def _facts(fit: Fit) -> dict[str, str]:
    """Return what the lower part of a table says of a fit, by the label of its row."""
    words, counts, way = fit.family.words, fit.row_counts, fit.way
    alone = fit.probit is None
    rows = counts["selected"] + counts["unselected"]
    facts = {
        "Model": words.plain_short if alone else words.short,
        "Features": way.words.label if way.searched else "",
        "Method": "" if alone else _METHODS.get(fit.spec.method, fit.spec.method),
        "Standard errors": _covariance(fit),
        "Weights": fit.spec.weight_kind if fit.weighted else "",
        "Observations": count(rows),
        words.rows[0]: count(counts["selected"]),
        "Sum of weights": "" if fit.n_obs == rows else f"{fit.n_obs:,.10g}",
        **units_of(fit.n_clusters, fit.cluster_counts, fit.design),
    }
    if fit.log_likelihood is not None:
        facts[likelihood_name(fit)] = f"{fit.log_likelihood:,.2f}"
    if not way.is_average:
        facts |= {AIC: f"{fit.aic:,.2f}", BIC: f"{fit.bic:,.2f}"}
    return facts


def units_of(
    n_clusters: int | None, counts: tuple[int, ...], design: SurveyDesign | None
) -> dict[str, str]:
    """Return what the lower part of a table says of clusters, or of the design of a survey."""
    clusters = "" if n_clusters is None else clusters_text(n_clusters, counts)
    return {"Clusters": clusters, **({} if design is None else dict(design.facts))}


def _criteria(fit: Fit) -> Literal["", "outcome", "likelihood"]:
    if fit.way.is_average:
        return ""
    return "outcome" if fit.log_likelihood is None else "likelihood"


def _covariance(fit: Fit) -> str:
    kind: str = fit.spec.cov_type or "classical"
    named = said_all(fit.origin.clusterings)
    kind = f"{kind} ({' and '.join(named)})" if fit.n_clusters is not None and named else kind
    return f"{kind}, averaged" if fit.way.is_average else kind


def _notes(fit: Fit) -> list[str]:
    """Return what is wrong with a fit, then what its numbers are, in sentences."""
    everyone = fit.family.sees_everyone
    facts: Sequence[Fact] = diagnose_treatment(fit, []).facts if everyone else facts_of_fit(fit)
    grave = [fact for fact in facts if fact.level == "problem" and fact.case != UNTESTED]
    others = [fact for fact in facts if fact not in grave and _is_told(fact)]
    notes = [told(note_of(fact)).strip() for fact in (*grave, *others)]
    return [*filter(None, notes), *_left_out(fit)]


def _is_told(fact: Fact) -> bool:
    few = fact.key == "clusters" and fact.level != "ok"
    return fact.key in _TOLD or few or (fact.key, fact.case) == ("rho", "held")


def _left_out(fit: Fit) -> Iterable[str]:
    """Name what a search could choose and did not."""
    way = fit.way
    if not way.chose:
        return
    chosen, named = {*fit.features}, fit.spec.feature_names
    selecting = () if way.selecting is None else way.selecting.columns
    kept = {*way.selection}
    out: dict[str, list[int]] = {
        "prediction": [column for column in way.candidates or () if column not in chosen],
        "selection": [column for column in selecting if column not in kept],
    }
    for equation, columns in out.items():
        if columns:
            names = listed(said_all([str(name) for name in named(columns)]))
            yield f"The search left {names} out of the {equation} equation."
