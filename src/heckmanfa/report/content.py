"""The details of the report: settings, rows, folded tables, and how to cite it and run it again."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from heckmanfa.fit import Fit
from heckmanfa.report.class_content import cut_blocks
from heckmanfa.report.reported import Reported, ReportedAnswer
from heckmanfa.report.settings import VERSION
from heckmanfa.results.average_tables import all_features_terms
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.document import Facts, Heading, Notes, PageBlock, Paragraph
from heckmanfa.results.effects import CONF_LEVEL, Effect
from heckmanfa.results.evidence import BestAssignment, Evidence
from heckmanfa.results.render_html import fold, render_page
from heckmanfa.results.side_by_side import CANNOT_SOLVE
from heckmanfa.results.summary import likelihood_name
from heckmanfa.text.labels import said, said_all, with_name
from heckmanfa.text.option_words import outside_options, told
from heckmanfa.text.table import Column, Table, lay_out
from heckmanfa.text.wording import (
    capitalised,
    chance_text,
    count,
    figure,
    interval,
    number,
    p_value,
    percent,
    typeset,
)

_TERMS = {
    "imr": "lambda",
    "log_likelihood": "log-likelihood",
    "adjusted_r2": "adjusted R2",
    "bic": "BIC",
}
_ESTIMATES = {
    "estimate": "Estimate",
    "std_error": "Std. error",
    "statistic": "z",
    "p_value": "p",
    "ci_low": "95% low",
    "ci_high": "95% high",
}
_PARTS = {
    "prediction": "Prediction equation",
    "errors": "Errors",
    "outcome": "Outcome, treated or not",
    "effect": "Effect of treatment",
    "regime1": "Outcome of the treated",
    "regime0": "Outcome of the untreated",
    "left out": "May predict, but were not chosen",
    "fit": "Fit",
}
# A reader of paper has the answer, the pictures and what limits them; tables would fill ten sheets.
_ON_PAPER = (
    '<p class="on-paper"><strong>Tables are not printed.</strong> The numbers of every picture and '
    "the coefficients of both equations are in the HTML file of this report, folded below the "
    "pictures and among these details.</p>"
)
_SOURCES = (
    "H. Mai and X. Wu (2023). On prediction feature assignment in the Heckman selection model. "
    "arXiv:2309.08043.",
    "J. J. Heckman (1979). Sample selection bias as a specification error. Econometrica 47(1), "
    "153–161.",
    f"heckmanfa {VERSION} (Python package).",
)


Folded = Sequence[tuple[str, Sequence[PageBlock], bool]]
"""folded tables: a title, what is below it, and whether it is printed"""


def details_html(reported: Reported, most: int) -> str:
    """Render the details; a table has ``most`` rows at most."""
    folded = [
        ("Rows and columns", reported.rows, True),
        (_coefficients_title(reported.fit), coefficient_blocks(reported), False),
        ("The cut points between classes", cut_blocks(reported), False),
        (_best_title(reported.fit), best_blocks(reported.evidence), False),
        ("The selection equation", selection_blocks(reported), False),
    ]
    return folded_html(reported, folded, _rows_used(reported), most)


def folded_html(reported: ReportedAnswer, folded: Folded, rows_used: str, most: int) -> str:
    """Render settings, folded tables, and how to cite the answer and run it again."""
    tables = "".join(
        fold(title, render_page(blocks, most), on_paper=on_paper)
        for title, blocks, on_paper in folded
        if blocks
    )
    settings = Facts((*reported.settings, ("Rows used", rows_used)))
    return render_page([settings]) + tables + _ON_PAPER + render_page(citation_blocks(reported))


def _coefficients_title(fit: Fit) -> str:
    alone = "" if fit.family.has_classes else " and all features"
    return f"The coefficients, beside {fit.family.words.naive}{alone}"


def _best_title(fit: Fit) -> str:
    unit = fit.family.words.unit
    return f"The best assignment: its {f'effects in {unit}' if unit else 'coefficients'}"


def _rows_used(reported: Reported) -> str:
    funnel = reported.funnel
    unselected = funnel.used - funnel.observed
    return (
        f"{count(funnel.observed)} selected ({percent(funnel.observed / funnel.used)}), "
        f"{count(unselected)} not selected ({percent(unselected / funnel.used)}), "
        f"{count(funnel.lost)} left out."
    )


def coefficient_blocks(reported: Reported) -> list[PageBlock]:
    """Lay out the prediction equation beside those of other models, with notes."""
    words, classes = reported.evidence.words, reported.fit.family.has_classes
    others = {"least_squares": f"{words.naive_short[0].upper()}{words.naive_short[1:]}"}
    solved = reported.comparison.is_solved or "two steps" in reported.fit.family.supports
    if solved and not reported.comparison.is_whole and reported.is_corrected:
        others["all_features"] = "All features"
    columns = [Column("Term", False)]
    columns += [Column(title, group="This model") for title in _titles(reported)]
    columns += [Column(title, group="Beside it") for title in others.values()]
    ends = _all_features_ends(reported)
    columns += [Column("95% interval", group="Beside it")] if ends else []
    rows: list[list[str] | str] = []
    kind = ""
    evidence = reported.evidence
    terms = reported.comparison.with_errors(evidence.effects.table, evidence.averaged_least_squares)
    for row in terms.to_dict("records"):
        if row["kind"] != kind:
            kind = str(row["kind"])
            rows.append(_part_title(reported, kind))
        name = str(row["term"])
        label = _TERMS.get(name, name) if kind in ("errors", "fit") else with_name(name)
        cells = [_cell(key, float(row[key])) for key in (*_ESTIMATES, *others)]
        cells += [interval(*ends.get((kind, name), (math.nan, math.nan)))] if ends else []
        rows.append([label, *cells])
    outcome = said(reported.outcome)
    meaning = (
        f"An estimate is the difference in {outcome} that goes with one more unit of the feature, "
        "for anyone, selected or not, with the other features of the equation held equal."
    )
    if classes:
        meaning = (
            "An estimate is on the scale of the probit: if it is positive, more of the feature "
            f"goes with a higher {words.target}, for anyone, selected or not, with the other "
            "features of the equation held equal."
        )
    return [
        Paragraph(meaning),
        Table(tuple(columns), tuple(rows), f"Coefficients for {outcome}", "coefficients-table"),
        Notes(tuple(_coefficient_notes(reported)), "note"),
    ]


def _all_features_ends(reported: Reported) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the intervals of the model of all features, by term, beside those of an average."""
    fit = reported.fit
    if not fit.way.is_average:
        return {}
    reach = distribution_of(fit).quantile(CONF_LEVEL)
    ends = {
        term: (value - reach * error, value + reach * error)
        for term, (value, error) in zip(fit.terms, all_features_terms(fit), strict=True)
    }
    # A correlation ends there.
    low, high = ends.get(("errors", "rho"), (-1.0, 1.0))
    return ends | {("errors", "rho"): (max(low, -1.0), min(high, 1.0))}


def _titles(reported: Reported) -> list[str]:
    """Head the columns of estimates: a statistic is a z or, with clusters, a t."""
    letter = distribution_of(reported.fit).letter
    return list((_ESTIMATES | {"statistic": letter}).values())


def _part_title(reported: Reported, kind: str) -> str:
    if kind == "left out" and reported.evidence.way.name == "given":
        return "Not in the prediction equation"
    return _PARTS[kind]


def _cell(key: str, value: float) -> str:
    if key == "p_value":
        return p_value(value)
    if key == "statistic":
        return "" if value != value else f"{value:z.2f}"
    return number(value)


def _coefficient_notes(reported: Reported) -> list[str]:
    fit, compared, words = reported.fit, reported.comparison, reported.evidence.words
    naive = words.naive_short
    alike = reported.evidence.averaged_least_squares is not None
    notes = [
        "Coefficients are per unit of each term; effects elsewhere are for the step beside a name.",
        f"{naive[0].upper()}{naive[1:]}: {'averaged alike, over sets of ' if alike else ''}the "
        "same features on the selected rows, with no correction for selection.",
    ]
    if compared.is_whole:
        notes.append("Every feature that may predict does, so this is the all-features model.")
    elif compared.is_solved:
        which = fit.family.words.all_features_model
        notes.append(
            f"All features: the {which} with every column that may predict: {compared.n_all}."
        )
    elif reported.is_corrected and fit.family.has_imr:
        notes.append(CANNOT_SOLVE)
    if fit.log_likelihood is not None:
        notes.append(f"{likelihood_name(fit)}: {fit.log_likelihood:.4f}.")
    each = reported.evidence.way.words.each
    if reported.is_corrected and fit.family.has_classes:
        notes.append(
            "rho is the correlation of the errors of both equations. The log-likelihood beside it "
            "is that of rho = 0: of the naive probit and the selection equation apart."
        )
    elif reported.is_corrected and not fit.family.has_imr:
        notes.append(
            f"{fit.dependence_terms[0]} to {fit.dependence_terms[-1]} are the constant and the "
            "coefficients of the series in the selection index, which stands in place of lambda."
        )
    elif reported.is_corrected:
        notes.append(
            f"lambda is the inverse Mills ratio. Its coefficient is rho times sigma{each}: rho is "
            "the correlation of the errors of both equations, and sigma the standard deviation of "
            "the outcome's error."
        )
    # What limits a claim is among the claims, and other cautions are among the checks.
    said = [fact.sentence for fact in reported.caveats if fact.verdict == "ok" and not fact.claim]
    return [told(outside_options(typeset, note), keywords=True) for note in [*notes, *said]]


def best_blocks(evidence: Evidence) -> list[PageBlock]:
    """Lay out the best assignment beside least squares and all features.

    A model without weights of assignments, or one that is the best itself, has nothing to add.
    """
    best = evidence.best
    if best is None:
        return []
    labels, whole, words = evidence.fit.labels, evidence.all_features, evidence.words
    naive = f"{words.naive_short[0].upper()}{words.naive_short[1:]}"
    groups = {"Best assignment": best.coef, naive: evidence.effects.least_squares}
    if whole is not None:
        groups["All features"] = whole.coef
    rows = [
        [
            with_name(labels[column]),
            *(
                cell
                for series in groups.values()
                for cell in _effect(series.of(column), words.factor)
            ),
        ]
        for column in range(len(labels))
        if any(series.of(column).known for series in groups.values())
    ]
    empty = ["", ""]
    if evidence.fit.family.has_imr:
        more = [] if whole is None else _effect(whole.imr)
        rows.append(["lambda", *_effect(best.imr), *empty, *more])
    rhos = [figure(best.rho), interval(*best.rho_interval)] if best.corrected else empty
    more = [] if whole is None else [figure(whole.rho), interval(*whole.rho_interval)]
    if evidence.fit.family.can("single rho"):
        rows.append(["rho", *rhos, *empty, *more])
    columns = [Column("Term", False)]
    for group in groups:
        columns += [Column("Estimate", group=group), Column("95% interval", group=group)]
    names = ", ".join(said_all(best.names)) or "none"
    return [
        Table(tuple(columns), tuple(rows), "The best assignment by BIC", "best-table"),
        Notes(
            (
                f"Features: {names}{_besides(best)}. It has {chance_text(best.weight)} of the BIC "
                "weight. Its estimates follow from the model of all features; fitted alone, they "
                "may differ a little. The intervals take what it holds as known beforehand.",
            ),
            "note",
        ),
    ]


def _besides(best: BestAssignment) -> str:
    """Say what the best assignment holds besides features."""
    index = "; every other feature predicts as it drives selection" if best.index else ""
    return f"; {'with' if best.corrected else 'without'} the correction{index}"


def _effect(effect: Effect, factor: float = 1.0) -> list[str]:
    return [figure(factor * effect.estimate), interval(factor * effect.low, factor * effect.high)]


def selection_blocks(reported: Reported) -> list[PageBlock]:
    """Lay out the selection equation; nothing without one."""
    if not reported.is_corrected:
        return []
    tidy = reported.evidence.effects.table
    rows = [
        [with_name(str(row["term"])), *(_cell(key, float(row[key])) for key in _ESTIMATES)]
        for row in tidy[tidy["equation"] == "selection"].to_dict("records")
    ]
    counts, which = reported.row_counts, reported.fit.family.words.selection
    share = counts["selected"] / (counts["selected"] + counts["unselected"])
    return [
        Paragraph(
            f"A {which} of who is selected ({percent(share)} of the rows in the fit). If a "
            "coefficient is positive, more of the feature goes with a higher probability of "
            "selection."
        ),
        lay_out(
            ["Term"],
            _titles(reported),
            rows,
            f"{capitalised(which)} of who is selected",
            "selection-table",
        ),
    ]


def equation_table(reported: ReportedAnswer, tidy: pd.DataFrame, title: str, name: str) -> Table:
    """Lay out estimates of one or more equations, each below its name."""
    letter = distribution_of(reported.fit).letter
    rows: list[list[str] | str] = []
    equation = ""
    for row in tidy.to_dict("records"):
        if row["equation"] != equation and row["equation"] != "selection":
            rows.append(_PARTS[str(row["equation"])])
        equation, term = str(row["equation"]), str(row["term"])
        label = _TERMS.get(term, term) if equation == "errors" else with_name(term)
        rows.append([label, *(_cell(key, float(row[key])) for key in _ESTIMATES)])
    columns = [Column("Term", False)]
    columns += [Column(words) for words in (_ESTIMATES | {"statistic": letter}).values()]
    return Table(tuple(columns), tuple(rows), title, name)


def citation_blocks(reported: ReportedAnswer) -> list[PageBlock]:
    """Say how to cite the result, how to run it again, and what made it."""
    *first, last = _SOURCES
    sources = (*first, *reported.fit.family.words.sources, last)
    return [Heading("Cite it"), Notes(sources), Heading("Run it again"), *reported.again]
