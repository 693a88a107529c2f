"""Which pictures a report has, and what its script reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.errors import MissingExtraError
from heckmanfa.plots.candidate_points import CandidatePoints, read_candidates
from heckmanfa.report.curves import candidate_payload, coefficient_picture, specification_curve
from heckmanfa.report.pictures import (
    lambda_picture,
    path_picture,
    prediction_picture,
    rho_picture,
)
from heckmanfa.results.render_html import escape, render_page
from heckmanfa.text.printable import printable, shown

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis
    from heckmanfa.report.picture import Picture


def draw_pictures(analysis: Analysis) -> tuple[list[Picture], CandidatePoints | None]:
    """Make every picture of the analysis; return also the candidates that some of them read."""
    fit = analysis.model.fit_
    found = read_candidates(fit, [analysis.source_of(name) for name in fit.labels])
    pictures: list[Picture | None] = []
    if found is not None:
        # The clearest coefficient is the one that the answer speaks of.
        statistics = analysis.estimates["statistic"].abs().fillna(0.0).to_numpy()
        z = statistics[1 : 1 + len(fit.features)]
        predicting = [fit.features[int(place)] for place in np.argsort(-z, kind="stable")]
        pictures += [specification_curve(found), coefficient_picture(found, predicting)]
    pictures.append(path_picture(analysis))
    rows = analysis.loaded
    if rows is not None:
        pictures += [lambda_picture(analysis, rows), prediction_picture(analysis, rows)]
    pictures.append(rho_picture(analysis))
    return [picture for picture in pictures if picture is not None], found


def payload(pictures: Sequence[Picture], found: CandidatePoints | None) -> str:
    """Write what the script reads, safe inside of a script element."""
    content: dict[str, Any] = {
        "figures": [{"name": picture.name, **picture.spec} for picture in pictures],
        "candidates": None if found is None else candidate_payload(found),
    }
    text = json.dumps(_printable(content), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _printable(content: Any) -> Any:
    """Neutralise what a browser would obey in texts that nobody made printable before."""
    if isinstance(content, dict):
        return {key: _printable(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_printable(value) for value in content]
    return printable(content, None) if isinstance(content, str) else content


def figures_html(pictures: Sequence[Picture]) -> str:
    """Render the figures, each with its caption and a table of the same numbers."""
    parts = [
        "<noscript><p>The pictures need JavaScript; the tables under them do not.</p></noscript>",
        '<p class="note screen">Point at a mark for its numbers; drag to zoom, and double-click to '
        "go back.</p>",
    ]
    for picture in pictures:
        name, text = picture.name, picture.text
        title = escape(text.title)
        choice = ""
        if picture.choices:
            options = "".join(
                f"<option>{escape(shown(label))}</option>" for label in picture.choices
            )
            choice = (
                f'<p class="pick"><label for="pick-{name}">Feature</label>'
                f'<select id="pick-{name}">{options}</select></p>'
            )
        parts.append(
            f'<figure id="figure-{name}"><h3>{title}</h3>{choice}'
            f'<div class="picture" id="plot-{name}" role="img" aria-label="{escape(text.alt)}" '
            f'style="min-height:{picture.spec["height"]}px"></div>'
            f"<figcaption>{escape(text.caption)}</figcaption><details>"
            f"<summary>The same as a table</summary>{render_page([text.table])}</details>"
            f'<button type="button" class="save" id="save-{name}" hidden>Save as SVG'
            f'<span class="unseen">: {title}</span></button></figure>'
        )
    return "".join(parts)


def plotly_source() -> str:
    """Return the text of plotly.js, which goes into the page."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingExtraError(
            "the report needs Plotly, which is not installed: pip install 'heckmanfa[plots]'"
        ) from error
    return str(get_plotlyjs())
