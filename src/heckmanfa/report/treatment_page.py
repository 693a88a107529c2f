"""The page of an answer about a treatment: its sections, beside those that every page has."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from heckmanfa.inference.treatment_pictures import TreatmentPictures
from heckmanfa.report.content import equation_table, folded_html
from heckmanfa.report.reported import ReportedAnswer
from heckmanfa.report.sections import (
    Paper,
    Section,
    answer_section,
    brief_section,
    checks_section,
    claims_section,
    laid_out,
    note_html,
    opening_html,
    rows_of_people,
    tables_html,
)
from heckmanfa.results.answer_html import sign
from heckmanfa.results.document import Heading, Notes, PageBlock, Paragraph
from heckmanfa.results.render_html import escape, marked
from heckmanfa.results.treatment_answer import (
    BY_LOT,
    condition_of,
    interval_of,
    naive_words,
    target_of,
)
from heckmanfa.results.treatment_evidence import TreatmentEvidence
from heckmanfa.text.labels import said
from heckmanfa.text.passage import Name, join, passage
from heckmanfa.text.table import Column, Table
from heckmanfa.text.wording import count, percent

WHOM = {
    "ate": "Everyone",
    "att": "The treated",
    "atu": "The untreated",
    "margin": "Those at the margin",
}
_MEANS = {
    "ate": "what treating everyone would bring",
    "att": "what treatment brought to those who chose it",
    "atu": "what it would bring to those who did not",
    "margin": "to those whom a slight push would treat",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportedTreatment(ReportedAnswer):
    """What the page of an answer about a treatment shows."""

    evidence: TreatmentEvidence
    pictures: TreatmentPictures
    estimates: pd.DataFrame
    """of all equations, as `TreatmentModel.tidy` returns them"""


def treatment_sections(reported: ReportedTreatment, paper: Paper) -> list[Section]:
    """Return the sections of the page, in reading order."""
    return [
        answer_section(reported, paper, "effects"),
        _whom_section(reported, paper),
        *rows_of_people(reported, paper),
        _matter_section(reported, paper),
        _who_section(reported, paper),
        _equations_section(reported, paper),
        checks_section(reported, paper, []),
        claims_section(reported),
        Section("details", "Details", "", _details(reported, paper.rows)),
    ]


def treatment_brief(reported: ReportedTreatment, paper: Paper) -> Section:
    """Return the one section of a brief."""
    return brief_section(reported, paper, "effects")


def _whom_section(reported: ReportedTreatment, paper: Paper) -> Section:
    """Give the average effect on each kind of row, and on groups."""
    evidence = reported.evidence
    words = passage(
        "An effect is the outcome with ",
        Name(evidence.treated),
        " less that without it, of the same rows, on average.",
    )
    if not evidence.is_separate:
        words = join([words, passage("This model takes it to be the same for everyone.")])
    lines = "".join(
        f"<li><strong>{WHOM[each.kind]}:</strong> {escape(interval_of(evidence, each.effect))}, "
        f"{_MEANS[each.kind]} ({count(round(each.n_rows))} rows).</li>"
        for each in evidence.shown
    )
    groups = "".join(
        f"<li><strong>{escape(each.group)}:</strong> "
        f"{escape(interval_of(evidence, each.effect))} ({count(round(each.n_rows))} rows).</li>"
        for each in evidence.shown_groups
    )
    if groups:
        groups = f"<h3>By {escape(said(evidence.by))}</h3><ul>{groups}</ul>"
    html = f"{opening_html(words)}<ul>{lines}</ul>{groups}"
    return Section("whom", "For whom", html, short="For whom")


def _matter_section(reported: ReportedTreatment, paper: Paper) -> Section:
    """Show whether who chose treatment differs, and what ignoring that says."""
    evidence, tile = reported.evidence, reported.answer.tiles["selection"]
    verdict = (
        f'<p class="verdict-line"><strong>{sign(tile.kind)}{escape(tile.title)}.</strong> '
        f"{marked(join([tile.words, tile.numbers]))}</p>"
    )
    least, means = (
        interval_of(evidence, effect) for effect in (evidence.least_squares, evidence.means)
    )
    plain = passage(
        f"Least squares, with the same features, says {least}, and the difference of means "
        f"{means}: both take ",
        *(Name(evidence.treated), f" {BY_LOT}."),
    )
    both = join([naive_words(evidence), condition_of(evidence)])
    return Section("matter", tile.question, verdict + opening_html(plain, both), short="Choice")


def _who_section(reported: ReportedTreatment, paper: Paper) -> Section:
    """Show the probabilities of treatment of both groups."""
    counts = reported.row_counts
    share = counts["selected"] / (counts["selected"] + counts["unselected"])
    first = passage(f"{percent(share)} of the rows are treated.")
    instruments = next((check for check in reported.checks if check.key == "instruments"), None)
    words = passage() if instruments is None else passage(instruments.words)
    drawn = paper.shown("overlap")
    note = "" if drawn else note_html(reported.without_rows)
    html = opening_html(join([first, words])) + laid_out(drawn) + note
    return Section("who", "Who is treated", html, tables_html(drawn, paper))


def _equations_section(reported: ReportedTreatment, paper: Paper) -> Section:
    """Show the coefficients of the outcome."""
    evidence = reported.evidence
    drawn = paper.shown("coefficients")
    what = "with treatment and without" if evidence.is_separate else "beside least squares"
    words = passage("What goes with ", target_of(evidence), f", {what}, of the same features.")
    html = opening_html(words) + laid_out(drawn)
    return Section(
        "equations",
        "What else goes with the outcome",
        html,
        tables_html(drawn, paper),
        short="Features",
    )


def _details(reported: ReportedTreatment, most: int) -> str:
    folded = [
        ("Rows and columns", reported.rows, True),
        ("The coefficients", _outcome_blocks(reported), False),
        ("The treatment equation", _treatment_blocks(reported), False),
    ]
    return folded_html(reported, folded, rows_used(reported), most)


def rows_used(reported: ReportedAnswer) -> str:
    """Count the rows of both groups, and those left out."""
    funnel = reported.funnel
    both = ", ".join(
        f"{count(n)} {words} ({percent(n / funnel.used)})" for n, words in funnel.shares
    )
    return f"{both}, {count(funnel.lost)} left out."


def _outcome_blocks(reported: ReportedTreatment) -> list[PageBlock]:
    tidy, outcome = reported.estimates, said(reported.evidence.outcome)
    own = tidy[tidy["equation"] != "selection"]
    notes = (
        "rho is the correlation of the outcome's error with that of treatment, sigma the standard "
        "deviation of the outcome's error, and lambda the coefficient of the hazard, rho times "
        "sigma.",
    )
    title = f"Coefficients for {outcome}"
    return [
        equation_table(reported, own, title, "coefficients-table"),
        Notes(notes, "note"),
    ]


def _treatment_blocks(reported: ReportedTreatment) -> list[PageBlock]:
    tidy = reported.estimates
    own = tidy[tidy["equation"] == "selection"]
    words = (
        "A probit of who is treated. If a coefficient is positive, more of the feature goes with a "
        "higher probability of treatment."
    )
    return [
        Paragraph(words),
        equation_table(reported, own, "Probit of who is treated", "selection-table"),
    ]


def effects_table(evidence: TreatmentEvidence) -> Table:
    """Lay out the effects with their intervals, those of groups, and what ignores choice."""
    rows: list[list[str] | str] = [
        [WHOM[each.kind], interval_of(evidence, each.effect), count(round(each.n_rows))]
        for each in evidence.shown
    ]
    groups = evidence.shown_groups
    if groups:
        rows.append(f"By {said(evidence.by)}")
        rows += [
            [each.group, interval_of(evidence, each.effect), count(round(each.n_rows))]
            for each in groups
        ]
    n = count(round(evidence.on("ate").n_rows))
    rows.append(f"As if {BY_LOT.removeprefix('as if ')}")
    rows.append(["Least squares", interval_of(evidence, evidence.least_squares), n])
    rows.append(["Difference of means", interval_of(evidence, evidence.means), n])
    columns = (
        Column("Effect on", is_number=False),
        Column("Effect (95% interval)"),
        Column("Rows"),
    )
    caption = f"Effects of {said(evidence.treated)} on {said(evidence.words.changed)}"
    unit = evidence.words.drawn_unit
    return Table(
        columns, tuple(rows), f"{caption}, in {unit}" if unit else caption, "effects-table"
    )


def treatment_blocks(reported: ReportedTreatment) -> list[PageBlock]:
    """Return what a reader needs of an answer: its sentences, effects, and all equations."""
    return [
        Heading(reported.title),
        *map(Paragraph, reported.answer.sentences),
        effects_table(reported.evidence),
        *_outcome_blocks(reported),
        *_treatment_blocks(reported),
    ]
