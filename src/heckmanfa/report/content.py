"""The eight sections of the report, in the order in which a reader asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heckmanfa.report.advice import advice_for
from heckmanfa.report.answer import answer
from heckmanfa.report.html import Column, definitions, escape, items, paragraph, prose, table
from heckmanfa.report.request_words import asked, rows_by_fate
from heckmanfa.results.coefficients import likelihood_name
from heckmanfa.results.reference import reference_of
from heckmanfa.results.side_by_side import CANNOT_SOLVE
from heckmanfa.text.numbers import count, number, p_value
from heckmanfa.text.option_names import in_options
from heckmanfa.text.printable import shown

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis
    from heckmanfa.report.picture import Picture

__all__ = [
    "answer_section",
    "asked_section",
    "coefficient_section",
    "diagnostic_section",
    "picture_section",
    "row_section",
    "selection_section",
]

_TERMS = {
    "imr": "lambda",
    "adjusted_r2": "adjusted R2",
    "bic": "BIC",
}
_ESTIMATES = [
    ("estimate", "Estimate"),
    ("std_error", "Std. error"),
    ("statistic", "z"),
    ("p_value", "p"),
    ("ci_low", "95% low"),
    ("ci_high", "95% high"),
]
_PARTS = {
    "prediction": "Prediction equation",
    "errors": "Errors",
    "left out": "May predict, and were not chosen",
    "fit": "Fit",
}
_SIGNS = {"ok": "✓", "caution": "!", "problem": "✕"}


def asked_section(analysis: Analysis) -> str:
    """Say what was asked."""
    return definitions(asked(analysis))


def row_section(analysis: Analysis) -> str:
    """Account for every row and column of the table."""
    fates, total = rows_by_fate(analysis), analysis.row_counts["total"]
    rows = [[words, count(n), f"{100 * n / total:.1f}%"] for words, n in fates]
    rows.append(["All rows of the table", count(total), "100.0%"])
    parts = [
        table(
            "rows-table",
            "Rows",
            [Column("What became of them", False), Column("Rows"), Column("Share")],
            rows,
        )
    ]
    if analysis.streamed:
        said = analysis.how_read
        parts.append(
            paragraph(
                f"{said[0].upper()}{said[1:]}: the pictures of lambda and of predictions, and the "
                "share of rows beyond what the selected rows cover, which need all rows in memory, "
                "are left out."
            )
        )
    if analysis.missing_counts:
        ordered = sorted(analysis.missing_counts.items(), key=lambda one: -one[1])
        parts.append(
            table(
                "missing-table",
                "Rows that miss a feature",
                [Column("Feature", False), Column("Rows"), Column("Share")],
                [[name, count(n), f"{100 * n / total:.1f}%"] for name, n in ordered],
            )
        )
        parts.append(paragraph("A row that misses several features counts in each.", "note"))
    encoding = analysis.encoding
    parts.append("<h3>Columns</h3>" + items([*analysis.notes, *analysis.explain()]))
    if encoding.references:
        parts.append(
            table(
                "references-table",
                "Reference levels",
                [Column("Column", False), Column("Reference", False), Column("Dummies", False)],
                [
                    [name, shown(level), ", ".join(map(shown, encoding.groups[name]))]
                    for name, level in encoding.references.items()
                ],
            )
        )
    return "".join(parts)


def answer_section(analysis: Analysis) -> str:
    """Give the answer, and what it does not say."""
    which, how_much, caveats = answer(analysis)
    return (
        f'<div class="answer">{paragraph(which)}{paragraph(how_much)}</div>'
        f"<h3>What may not be claimed</h3>{items(caveats, lead=True)}"
    )


def coefficient_section(analysis: Analysis) -> str:
    """Set the prediction equation beside those of other models, with the notes of its caveats."""
    notes = [caveat.sentence for caveat in analysis.caveats if not caveat.claim]
    others = [("least_squares", "Least squares")]
    if analysis.is_corrected and not analysis.comparison.is_whole:
        others.append(("all_features", "All features"))
    columns = [Column("Term", False)]
    columns += [Column(title, group="This model") for title in _titles(analysis)]
    columns += [Column(title, group="Beside it") for _, title in others]
    rows: list[Sequence[str] | str] = []
    part = ""
    for row in analysis.coefficients.to_dict("records"):
        if row["kind"] != part:
            part = str(row["kind"])
            rows.append(_part_title(analysis, part))
        name = str(row["term"])
        label = _TERMS.get(name, name) if part in ("errors", "fit") else name
        cells = [_cell(key, float(row[key])) for key, _ in _ESTIMATES]
        cells += [number(float(row[key])) for key, _ in others]
        rows.append([label, *cells])
    outcome = shown(analysis.question.outcome)
    text = (
        f"An estimate says with how much more {outcome} one more of the feature goes, for anyone, "
        "selected or not, the other features of the equation being equal."
    )
    return (
        paragraph(text)
        + table("coefficients-table", f"Coefficients for {outcome}", columns, rows)
        + items([*_coefficient_notes(analysis), *notes], "note")
    )


def _titles(analysis: Analysis) -> list[str]:
    """Head the columns of estimates: a statistic is a z or, with clusters, a t."""
    letter = reference_of(analysis.model).letter
    return [letter if key == "statistic" else title for key, title in _ESTIMATES]


def _part_title(analysis: Analysis, part: str) -> str:
    if part == "left out" and not analysis.model._is_search:
        return "Could predict, and were not asked to"
    return _PARTS[part]


def _cell(key: str, value: float) -> str:
    if key == "p_value":
        return p_value(value)
    if key == "statistic":
        return "" if value != value else f"{value:.2f}"
    return number(value)


def _coefficient_notes(analysis: Analysis) -> list[str]:
    model, found = analysis.model, analysis.comparison
    notes = [
        "Least squares: the same features on the selected rows, with no correction for selection."
    ]
    if found.is_whole:
        notes.append("Every feature that may predict does, so this is the all-features model.")
    elif found.is_solved:
        notes.append(
            f"All features: the two-step Heckman model in which each of the {found.n_all} columns "
            "that may predict does."
        )
    elif analysis.is_corrected:
        notes.append(CANNOT_SOLVE)
    if model.log_likelihood_ is not None:
        notes.append(f"{likelihood_name(model)}: {model.log_likelihood_:.4f}.")
    if model._probit is None:
        return notes
    notes.append(
        "lambda is the inverse Mills ratio; its coefficient is rho times sigma, where rho is the "
        "correlation of the errors of both equations, and sigma the spread of the outcome's."
    )
    return notes


def selection_section(analysis: Analysis) -> str:
    """Set the selection equation."""
    model = analysis.model
    if model._probit is None:
        return paragraph("No outcome is missing in the fit: there is no selection equation.")
    tidy = analysis.estimates
    rows = [
        [str(row["term"]), *(_cell(key, float(row[key])) for key, _ in _ESTIMATES)]
        for row in tidy[tidy["equation"] == "selection"].to_dict("records")
    ]
    counts = analysis.row_counts
    share = counts["selected"] / (counts["selected"] + counts["unselected"])
    return paragraph(
        f"A probit of who is selected ({100 * share:.1f}% of the rows in the fit). Where a "
        "coefficient is positive, more of the feature goes with a higher probability of being "
        "selected."
    ) + table(
        "selection-table",
        "Who is selected",
        [Column("Term", False), *(Column(title) for title in _titles(analysis))],
        rows,
    )


def diagnostic_section(analysis: Analysis) -> str:
    """Say what the diagnostics found, why each matters, and what to do."""
    checks = analysis.diagnostics.checks()
    parts = []
    for check in checks:
        verdict, words = check.verdict, in_options(check.meaning)
        advice = advice_for(check.key)
        todo = advice.ok if verdict == "ok" else advice.otherwise
        todo = "" if todo == "Nothing to do." else f" {todo}"
        why = f"<p class='note'>{escape(advice.why)}</p>" if advice.why else ""
        parts.append(
            f'<li><div class="verdict v-{verdict}"><span aria-hidden="true">{_SIGNS[verdict]}'
            f"</span>{verdict}</div><div><strong>{escape(check.name)}</strong>: "
            f"{escape(check.value)}"
            f"<p>{prose(words + todo)}</p>{why}</div></li>"
        )
    said = {verdict: sum(check.verdict == verdict for check in checks) for verdict in _SIGNS}
    text = "; ".join(f"{n} {verdict}" for verdict, n in said.items() if n)
    warned = ""
    if analysis.warnings:
        warned = f"<h3>What the fit warned of</h3>{items(analysis.warnings)}"
    head = paragraph(f"{len(checks)} checks: {text}.")
    return f'{head}<ul class="checks">{"".join(parts)}</ul>{warned}'


def picture_section(pictures: Sequence[Picture]) -> str:
    """Set the figures, each with its words and a table of the same."""
    parts = [
        "<noscript><p>The pictures need JavaScript; the tables under them do not.</p></noscript>",
        '<p class="note screen">Point at a mark for its numbers; drag to zoom, and double-click to '
        "go back.</p>",
    ]
    for one in pictures:
        pick = ""
        if one.choices:
            options = "".join(f"<option>{escape(shown(label))}</option>" for label in one.choices)
            pick = (
                f'<p class="pick"><label for="pick-{one.name}">{escape(one.choice_label)}</label>'
                f'<select id="pick-{one.name}">{options}</select></p>'
            )
        parts.append(
            f'<figure id="figure-{one.name}"><h3>{escape(one.title)}</h3>{pick}'
            f'<div class="picture" id="plot-{one.name}" role="img" aria-label="{escape(one.alt)}" '
            f'style="min-height:{one.spec["height"]}px"></div>'
            f"<figcaption>{escape(one.caption)}</figcaption>"
            f"<details><summary>The same as a table</summary>{one.fallback}</details>"
            f'<button type="button" class="save" id="save-{one.name}" hidden>Save as SVG'
            f'<span class="unseen">: {escape(one.title)}</span></button></figure>'
        )
    return "".join(parts)
