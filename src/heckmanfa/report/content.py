"""The details of the report: settings, rows, folded tables, and how to cite it and run it again."""

from __future__ import annotations

import math
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from heckmanfa import __version__
from heckmanfa.data.files.outputs import sha256_of
from heckmanfa.report.request_words import describe_question, rows_by_use
from heckmanfa.results.average_tables import all_features_terms
from heckmanfa.results.document import Code, Facts, Heading, Notes, PageBlock, Paragraph
from heckmanfa.results.effects import CONF_LEVEL, Effect
from heckmanfa.results.evidence import BestAssignment, Evidence
from heckmanfa.results.reference import reference_of
from heckmanfa.results.render_html import escape, render_page
from heckmanfa.results.side_by_side import CANNOT_SOLVE
from heckmanfa.results.summary_facts import likelihood_name
from heckmanfa.text.numerals import figure, interval
from heckmanfa.text.option_words import told
from heckmanfa.text.printable import shown
from heckmanfa.text.table import Column, Table, lay_out
from heckmanfa.text.wording import chance_text, count, number, p_value, percent

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis

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
    "left out": "May predict, but were not chosen",
    "fit": "Fit",
}
_SOURCES = (
    "H. Mai and X. Wu (2023). On prediction feature assignment in the Heckman selection model. "
    "arXiv:2309.08043.",
    "J. J. Heckman (1979). Sample selection bias as a specification error. Econometrica 47(1), "
    "153–161.",
    f"heckmanfa {__version__} (Python package).",
)
_PROBIT_SOURCE = (
    "W. P. M. M. van de Ven and B. M. S. van Praag (1981). The demand for deductibles in private "
    "health insurance: a probit model with sample selection. Journal of Econometrics 17(2), "
    "229–252."
)
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


def details_html(analysis: Analysis, most: int) -> str:
    """Render the details; a table has ``most`` rows at most."""
    folded = [
        ("Rows and columns", row_blocks(analysis)),
        (_coefficients_title(analysis), coefficient_blocks(analysis)),
        (_best_title(analysis.evidence), best_blocks(analysis.evidence)),
        ("The selection equation", selection_blocks(analysis)),
    ]
    tables = "".join(
        f"<details><summary>{escape(title)}</summary>{render_page(blocks, most)}</details>"
        for title, blocks in folded
        if blocks
    )
    settings = Facts((*describe_question(analysis), ("Rows used", _rows_used(analysis))))
    return render_page([settings]) + tables + render_page(citation_blocks(analysis))


def _coefficients_title(analysis: Analysis) -> str:
    if analysis.target.kind == "binary":
        return f"The coefficients, beside {analysis.evidence.words.naive}"
    return "The coefficients, beside least squares and all features"


def _best_title(evidence: Evidence) -> str:
    unit = evidence.words.unit
    what = f"effects in {unit}" if unit else "coefficients"
    return f"The best assignment: its {what}"


def _rows_used(analysis: Analysis) -> str:
    counts = analysis.row_counts
    used = counts["selected"] + counts["unselected"]
    return (
        f"{count(counts['selected'])} selected ({percent(counts['selected'] / used)}), "
        f"{count(counts['unselected'])} not selected ({percent(counts['unselected'] / used)}), "
        f"{count(counts['total'] - used)} left out."
    )


def row_blocks(analysis: Analysis) -> list[PageBlock]:
    """Account for every row and column of the table."""
    total = analysis.row_counts["total"]
    counts = [*rows_by_use(analysis), ("All rows of the table", total)]
    blocks: list[PageBlock] = [_shares("Use", counts, total, "Rows", "rows-table")]
    if analysis.streamed:
        how = analysis.how_read
        blocks.append(Paragraph(f"{how[0].upper()}{how[1:]}."))
    if analysis.missing_counts:
        missing = sorted(analysis.missing_counts.items(), key=lambda item: -item[1])
        blocks += [
            _shares("Feature", missing, total, "Rows that lack a feature", "missing-table"),
            Paragraph("A row that lacks several features counts in each.", "note"),
        ]
    encoding = analysis.encoding
    blocks.append(Notes((*analysis.notes, *analysis.explain(), *analysis.warnings)))
    if encoding.references:
        rows = [
            [name, shown(level), ", ".join(map(shown, encoding.groups[name]))]
            for name, level in encoding.references.items()
        ]
        titles = ("Column", "Reference", "Dummies")
        blocks.append(lay_out(titles, (), rows, "Reference levels", "references-table"))
    return blocks


def _shares(
    title: str, counts: list[tuple[str, int]], total: int, caption: str, name: str
) -> Table:
    """Lay out counts of rows with their share of all rows."""
    rows = [[words, count(n), percent(n / total)] for words, n in counts]
    return lay_out([title], ["Rows", "Share"], rows, caption, name)


def coefficient_blocks(analysis: Analysis) -> list[PageBlock]:
    """Lay out the prediction equation beside those of other models, with notes."""
    words = analysis.evidence.words
    others = {"least_squares": f"{words.naive_short[0].upper()}{words.naive_short[1:]}"}
    family = analysis.model.fit_.family
    solved = analysis.comparison.is_solved or "two steps" in family.supports
    if solved and not analysis.comparison.is_whole and analysis.is_corrected:
        others["all_features"] = "All features"
    columns = [Column("Term", False)]
    columns += [Column(title, group="This model") for title in _titles(analysis)]
    columns += [Column(title, group="Beside it") for title in others.values()]
    ends = _all_features_ends(analysis)
    columns += [Column("95% interval", group="Beside it")] if ends else []
    rows: list[list[str] | str] = []
    part = ""
    for row in analysis.coefficients.to_dict("records"):
        if row["kind"] != part:
            part = str(row["kind"])
            rows.append(_part_title(analysis, part))
        name = str(row["term"])
        label = _TERMS.get(name, name) if part in ("errors", "fit") else name
        cells = [_cell(key, float(row[key])) for key in (*_ESTIMATES, *others)]
        cells += [interval(*ends.get((part, name), (math.nan, math.nan)))] if ends else []
        rows.append([label, *cells])
    outcome = shown(analysis.question.fitted)
    meaning = (
        f"An estimate is the difference in {outcome} that goes with one more unit of the feature, "
        "for anyone, selected or not, with the other features of the equation held equal."
    )
    if family.has_classes:
        meaning = (
            "An estimate is on the scale of the probit: if it is positive, more of the feature "
            f"goes with a higher {words.target}, for anyone, selected or not, with the other "
            "features of the equation held equal."
        )
    return [
        Paragraph(meaning),
        Table(tuple(columns), tuple(rows), f"Coefficients for {outcome}", "coefficients-table"),
        Notes(tuple(_coefficient_notes(analysis)), "note"),
    ]


def _all_features_ends(analysis: Analysis) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the intervals of the model of all features, by term, beside those of an average."""
    fit = analysis.model.fit_
    if fit.average is None:
        return {}
    reach = reference_of(fit).quantile(CONF_LEVEL)
    return {
        term: (value - reach * error, value + reach * error)
        for term, (value, error) in zip(fit.terms, all_features_terms(fit), strict=True)
    }


def _titles(analysis: Analysis) -> list[str]:
    """Head the columns of estimates: a statistic is a z or, with clusters, a t."""
    letter = reference_of(analysis.model.fit_).letter
    return list((_ESTIMATES | {"statistic": letter}).values())


def _part_title(analysis: Analysis, part: str) -> str:
    if part == "left out" and analysis.evidence.mode == "given":
        return "Not in the prediction equation"
    return _PARTS[part]


def _cell(key: str, value: float) -> str:
    if key == "p_value":
        return p_value(value)
    if key == "statistic":
        return "" if value != value else f"{value:z.2f}"
    return number(value)


def _coefficient_notes(analysis: Analysis) -> list[str]:
    model, compared, words = analysis.model, analysis.comparison, analysis.evidence.words
    naive, family = words.naive_short, model.fit_.family
    notes = [
        f"{naive[0].upper()}{naive[1:]}: the same features on the selected rows, with no "
        "correction for selection."
    ]
    if compared.is_whole:
        notes.append("Every feature that may predict does, so this is the all-features model.")
    elif compared.is_solved:
        which = family.words.all_features_model
        notes.append(
            f"All features: the {which} with every column that may predict: {compared.n_all}."
        )
    elif analysis.is_corrected and "two steps" in family.supports:
        notes.append(CANNOT_SOLVE)
    if model.log_likelihood_ is not None:
        notes.append(f"{likelihood_name(model.fit_)}: {model.log_likelihood_:.4f}.")
    each = " in each assignment" if analysis.evidence.mode == "average" else ""
    if analysis.is_corrected and not family.has_imr:
        notes.append(
            "rho is the correlation of the errors of both equations. The log-likelihood beside it "
            "is that of rho = 0: of the naive probit and the selection equation apart."
        )
    elif analysis.is_corrected:
        notes.append(
            f"lambda is the inverse Mills ratio. Its coefficient is rho times sigma{each}: rho is "
            "the correlation of the errors of both equations, and sigma the standard deviation of "
            "the outcome's error."
        )
    # What limits a claim is among the claims, and other cautions are among the checks.
    return notes + [
        told(fact.sentence, keywords=True)
        for fact in analysis.caveats
        if fact.verdict == "ok" and not fact.claim
    ]


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
            labels[column],
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
    rows.append(["rho", *rhos, *empty, *more])
    columns = [Column("Term", False)]
    for group in groups:
        columns += [Column("Estimate", group=group), Column("95% interval", group=group)]
    names = ", ".join(map(shown, best.names)) or "none"
    return [
        Table(tuple(columns), tuple(rows), "The best assignment by BIC", "best-table"),
        Notes(
            (
                f"Features: {names}{_besides(best)}. It has {chance_text(best.weight)} of the BIC "
                "weight. These intervals take what it holds as known beforehand.",
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


def selection_blocks(analysis: Analysis) -> list[PageBlock]:
    """Lay out the selection equation; nothing without one."""
    if not analysis.is_corrected:
        return []
    tidy = analysis.estimates
    rows = [
        [str(row["term"]), *(_cell(key, float(row[key])) for key in _ESTIMATES)]
        for row in tidy[tidy["equation"] == "selection"].to_dict("records")
    ]
    counts = analysis.row_counts
    share = counts["selected"] / (counts["selected"] + counts["unselected"])
    return [
        Paragraph(
            f"A probit of who is selected ({percent(share)} of the rows in the fit). If a "
            "coefficient is positive, more of the feature goes with a higher probability of "
            "selection."
        ),
        lay_out(["Term"], _titles(analysis), rows, "Probit of who is selected", "selection-table"),
    ]


def citation_blocks(analysis: Analysis) -> list[PageBlock]:
    """Say how to cite the result, how to run it again, and what made it."""
    files = len(analysis.files)
    what = "the file" if files == 1 else f"the {files} files, joined"
    made = f"SHA-256 of {what}: {_digest(analysis)}."
    if not files:
        made = f"{shown(analysis.question.called)}: not a file that can be read again."
    packages = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    sources: tuple[str, ...] = _SOURCES
    if analysis.target.kind == "binary":
        sources = (*_SOURCES[:-1], _PROBIT_SOURCE, _SOURCES[-1])
    return [
        Heading("Cite it"),
        Notes(sources),
        Heading("Run it again"),
        Code(analysis.question.command()),
        Paragraph(
            f"{made} Seed {analysis.question.seed}. heckmanfa {__version__}, Python "
            f"{platform.python_version()}, {packages}.",
            "note",
        ),
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not known"


def _digest(analysis: Analysis) -> str:
    if analysis.streamed:
        return "not computed: the rows were not loaded"
    # The demo moves its file into place once the report is written.
    read = [Path(file) for file in analysis.files]
    moved = [Path(analysis.question.data)] if len(read) == 1 else []
    for paths in (read, moved):
        if paths and all(path.is_file() for path in paths):
            return sha256_of(*paths)
    return "not known: the file was moved or removed after it was read"
