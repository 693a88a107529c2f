"""The contents of the report: its sections as documents, in reading order."""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from heckmanfa import __version__
from heckmanfa.data.files.outputs import sha256_of
from heckmanfa.report.answer import answer
from heckmanfa.report.request_words import rows_by_use
from heckmanfa.results.average_tables import inclusion_frame, inclusion_section
from heckmanfa.results.check_keys import NO_CHECKS
from heckmanfa.results.checks import check_of_finding
from heckmanfa.results.coefficients import likelihood_name
from heckmanfa.results.document import Code, Finding, Findings, Heading, Notes, PageBlock, Paragraph
from heckmanfa.results.reference import reference_of
from heckmanfa.results.side_by_side import CANNOT_SOLVE
from heckmanfa.text.option_names import in_options
from heckmanfa.text.printable import shown
from heckmanfa.text.table import Column, Table, lay_out
from heckmanfa.text.wording import count, number, p_value, percent, share_text

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis

_TERMS = {
    "imr": "lambda",
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
    "153-161.",
    f"heckmanfa {__version__} (Python package).",
)
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


def row_blocks(analysis: Analysis) -> list[PageBlock]:
    """Account for every row and column of the table."""
    total = analysis.row_counts["total"]
    counts = [*rows_by_use(analysis), ("All rows of the table", total)]
    blocks: list[PageBlock] = [_shares("Use", counts, total, "Rows", "rows-table")]
    if analysis.streamed:
        how = analysis.how_read
        blocks.append(
            Paragraph(
                f"{how[0].upper()}{how[1:]}. The report therefore leaves out what needs all rows "
                "in memory: the pictures of lambda and of predictions, and the share of rows "
                "beyond the range of the selected rows."
            )
        )
    if analysis.missing_counts:
        missing = sorted(analysis.missing_counts.items(), key=lambda item: -item[1])
        blocks += [
            _shares("Feature", missing, total, "Rows that lack a feature", "missing-table"),
            Paragraph("A row that lacks several features counts in each.", "note"),
        ]
    encoding = analysis.encoding
    blocks += [Heading("Columns"), Notes((*analysis.notes, *analysis.explain()))]
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


def answer_blocks(analysis: Analysis) -> list[PageBlock]:
    """Give the answer, and what may not be claimed."""
    which, how_much, claims = answer(analysis)
    return [
        Paragraph(which, "answer"),
        Paragraph(how_much, "answer"),
        *_chance_blocks(analysis),
        Heading("What may not be claimed"),
        Notes(tuple(claims), lead=True),
    ]


def _chance_blocks(analysis: Analysis) -> list[PageBlock]:
    """Lay out the chances behind the answer of an average."""
    if analysis.chances is None:
        return []
    fit = analysis.model.fit_
    kinds = ("bic", "aic", "ebic", "positive", "negative")
    rows = [
        [shown(name), str(row["role"]), *(share_text(float(row[kind])) for kind in kinds)]
        for name, row in zip(
            analysis.chances["feature"], inclusion_frame(fit).to_dict("records"), strict=True
        )
    ]
    titles = ("Chance", "By AIC", "By EBIC", "Positive", "Negative")
    section = inclusion_section(fit)
    return [
        lay_out(("Feature", "Role"), titles, rows, section.title, "chances-table"),
        Notes(section.notes, "note"),
    ]


def coefficient_blocks(analysis: Analysis) -> list[PageBlock]:
    """Lay out the prediction equation beside those of other models, with notes."""
    others = {"least_squares": "Least squares"}
    if not analysis.comparison.is_whole and analysis.is_corrected:
        others["all_features"] = "All features"
    columns = [Column("Term", False)]
    columns += [Column(title, group="This model") for title in _titles(analysis)]
    columns += [Column(title, group="Beside it") for title in others.values()]
    rows: list[list[str] | str] = []
    part = ""
    for row in analysis.coefficients.to_dict("records"):
        if row["kind"] != part:
            part = str(row["kind"])
            rows.append(_part_title(analysis, part))
        name = str(row["term"])
        label = _TERMS.get(name, name) if part in ("errors", "fit") else name
        cells = [_cell(key, float(row[key])) for key in (*_ESTIMATES, *others)]
        rows.append([label, *cells])
    outcome = shown(analysis.question.outcome)
    notes = [caveat.sentence for caveat in analysis.caveats if not caveat.claim]
    return [
        Paragraph(
            f"An estimate is the difference in {outcome} that goes with one more unit of the "
            "feature, for anyone, selected or not, with the other features of the equation held "
            "equal."
        ),
        Table(tuple(columns), tuple(rows), f"Coefficients for {outcome}", "coefficients-table"),
        Notes((*_coefficient_notes(analysis), *notes), "note"),
    ]


def _titles(analysis: Analysis) -> list[str]:
    """Head the columns of estimates: a statistic is a z or, with clusters, a t."""
    letter = reference_of(analysis.model.fit_).letter
    return list((_ESTIMATES | {"statistic": letter}).values())


def _part_title(analysis: Analysis, part: str) -> str:
    if part == "left out" and analysis.question.searched == "none":
        return "Not in the prediction equation"
    return _PARTS[part]


def _cell(key: str, value: float) -> str:
    if key == "p_value":
        return p_value(value)
    if key == "statistic":
        return "" if value != value else f"{value:.2f}"
    return number(value)


def _coefficient_notes(analysis: Analysis) -> list[str]:
    model, compared = analysis.model, analysis.comparison
    notes = [
        "Least squares: the same features on the selected rows, with no correction for selection."
    ]
    if compared.is_whole:
        notes.append("Every feature that may predict does, so this is the all-features model.")
    elif compared.is_solved:
        notes.append(
            f"All features: the two-step Heckman model with all {compared.n_all} columns that may "
            "predict."
        )
    elif analysis.is_corrected:
        notes.append(CANNOT_SOLVE)
    if model.log_likelihood_ is not None:
        notes.append(f"{likelihood_name(model.fit_)}: {model.log_likelihood_:.4f}.")
    each = "" if analysis.chances is None else " in each assignment"
    if analysis.is_corrected:
        notes.append(
            f"lambda is the inverse Mills ratio. Its coefficient is rho times sigma{each}: rho is "
            "the correlation of the errors of both equations, and sigma the standard deviation of "
            "the outcome's error."
        )
    return notes


def selection_blocks(analysis: Analysis) -> list[PageBlock]:
    """Lay out the selection equation."""
    if not analysis.is_corrected:
        return [Paragraph("No outcome is missing in the fit: there is no selection equation.")]
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
        lay_out(["Term"], _titles(analysis), rows, "Who is selected", "selection-table"),
    ]


def diagnostic_blocks(analysis: Analysis) -> list[PageBlock]:
    """Say what the diagnostics found, why each matters, and what to do."""
    checks = analysis.diagnostics.checks()
    verdicts = [check.verdict for check in checks]
    counted = [
        f"{verdicts.count(verdict)} {verdict}"
        for verdict in ("ok", "caution", "problem")
        if verdict in verdicts
    ]
    blocks: list[PageBlock] = [
        Paragraph(f"{len(checks)} checks: {'; '.join(counted)}."),
        Findings(tuple(map(_with_advice, checks))),
    ]
    if analysis.warnings:
        blocks += [Heading("Warnings of the fit"), Notes(tuple(analysis.warnings))]
    return blocks


def _with_advice(check: Finding) -> Finding:
    if check.key in NO_CHECKS:
        return replace(check, meaning=in_options(check.meaning))
    done = check_of_finding(check, "the outcome")
    meaning = " ".join(part for part in (in_options(check.meaning), done.do) if part)
    return replace(check, meaning=meaning)


def citation_blocks(analysis: Analysis) -> list[PageBlock]:
    """Say how to cite the result, how to run it again, and what made it."""
    what = "it" if len(analysis.files) == 1 else f"the {len(analysis.files)} files, joined"
    rows = [["Data file", analysis.question.data], [f"SHA-256 of {what}", _digest(analysis)]]
    if not analysis.files:
        rows = [["Data", f"{analysis.question.called}: not a file that can be read again"]]
    rows.append(["Seed", str(analysis.question.seed)])
    rows += [["Python", platform.python_version()], ["heckmanfa", __version__]]
    rows += [[name, _version(name)] for name in _PACKAGES]
    return [
        Notes(_SOURCES),
        Heading("Run it again"),
        Code(analysis.question.command()),
        lay_out(["What", "Which"], (), rows, "Made with", "versions-table"),
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
