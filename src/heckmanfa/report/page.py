"""The page: eight sections in one HTML file that loads nothing else."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from heckmanfa import __version__
from heckmanfa.data.files.clashes import refuse_clashes
from heckmanfa.data.files.outputs import replacing
from heckmanfa.report.content import (
    answer_blocks,
    citation_blocks,
    coefficient_blocks,
    diagnostic_blocks,
    row_blocks,
    selection_blocks,
)
from heckmanfa.report.picture import figures_html, payload, plotly_source
from heckmanfa.report.pictures import draw_pictures
from heckmanfa.report.request_words import describe_question
from heckmanfa.results.document import Facts
from heckmanfa.results.render_html import escape, render_page
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import count

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis

# The browser refuses whatever is not in the file. Plotly's WebGL compiles functions as it draws.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'"
)


def write_report(analysis: Analysis, path: str | Path, *, title: str | None = None) -> None:
    """Write the report of an analysis as one HTML file.

    Parameters
    ----------
    analysis : Analysis
    path : str or Path
        The file to write, which is replaced if it exists. It must not be the data file.
    title : str, optional
        Title of the page; names the outcome and the data file by default.

    Notes
    -----
    The report needs Plotly, which is in the extra ``plots``.
    """
    refuse_clashes({"the analysis": analysis.question.data}, {"path": path})
    # Refuse a path that cannot be written before drawing the pictures.
    with replacing(path, force=True) as part:
        part.write_text(render(analysis, title=title), encoding="utf-8", newline="\n")


def render(analysis: Analysis, *, title: str | None = None) -> str:
    """Return the report as HTML, which depends on the analysis and on versions alone.

    Parameters are as in `write_report`.
    """
    plotly = plotly_source()
    pictures, candidates = draw_pictures(analysis)
    asked = [Facts(tuple(describe_question(analysis)))]
    diagnostics = diagnostic_blocks(analysis)
    sections = [
        ("asked", "What was asked", render_page(asked)),
        ("rows", "Which rows and columns were used", render_page(row_blocks(analysis))),
        ("answer", "The answer", render_page(answer_blocks(analysis))),
        ("coefficients", "Coefficients", render_page(coefficient_blocks(analysis))),
        ("selection", "Who is selected", render_page(selection_blocks(analysis))),
        ("diagnostics", "Diagnostics: how far to trust it", render_page(diagnostics)),
        ("pictures", "Pictures", figures_html(pictures)),
        ("cite", "How to cite it and run it again", render_page(citation_blocks(analysis))),
    ]
    contents = "".join(
        f'<li><a href="#{name}">{escape(head)}</a></li>' for name, head, _ in sections
    )
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title">{number}. {escape(head)}</h2>{inner}</section>\n'
        for number, (name, head, inner) in enumerate(sections, start=1)
    )
    folder = files("heckmanfa.report")
    question = analysis.question
    return Template(folder.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        policy=escape(_POLICY),
        version=escape(__version__),
        title=escape(
            title or f"{shown(question.outcome)}: a selection model of {shown(question.called)}"
        ),
        subtitle=escape(_subtitle(analysis)),
        style=folder.joinpath("page.css").read_text(encoding="utf-8"),
        contents=contents,
        sections=body,
        payload=payload(pictures, candidates),
        plotly=plotly,
        script=folder.joinpath("page.js").read_text(encoding="utf-8"),
    )


def _subtitle(analysis: Analysis) -> str:
    counts = analysis.row_counts
    used = counts["selected"] + counts["unselected"]
    if not analysis.is_corrected:
        return f"Least squares of {count(used)} rows: no outcome is missing in the fit."
    return (
        f"Heckman selection model of {count(used)} rows, of which {count(counts['selected'])} are "
        "selected and have an outcome."
    )
