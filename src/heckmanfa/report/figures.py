"""Which pictures a report has, and what its script reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.errors import MissingExtraError
from heckmanfa.report.candidate_data import Candidates, read_candidates
from heckmanfa.report.curves import coefficient_picture, specification_curve
from heckmanfa.report.over_rho import rho_picture
from heckmanfa.report.pictures import lambda_picture, path_picture, prediction_picture
from heckmanfa.results.render_html import escape, render_page
from heckmanfa.text.printable import printable, shown

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis
    from heckmanfa.report.picture import Picture

__all__ = ["draw_pictures", "figures_html", "payload", "plotly_source"]


def draw_pictures(analysis: Analysis) -> tuple[list[Picture], Candidates | None]:
    """Make every picture that the analysis has.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    pictures : list of Picture
    candidates : Candidates or None
        What some of them read.
    """
    found = read_candidates(analysis)
    made: list[Picture | None] = []
    if found is not None:
        tidy = analysis.estimates
        features = [int(one) for one in np.flatnonzero(analysis.model.support_)]
        # The clearest coefficient is the one that the answer speaks of.
        z = tidy["statistic"].abs().fillna(0.0).to_numpy()[1 : 1 + len(features)]
        first = [features[int(one)] for one in np.argsort(-z, kind="stable")]
        made += [specification_curve(found), coefficient_picture(found, first)]
    made.append(path_picture(analysis))
    rows = analysis.loaded
    if rows is not None:
        made += [lambda_picture(analysis, rows), prediction_picture(analysis, rows)]
    made.append(rho_picture(analysis))
    return [one for one in made if one is not None], found


def payload(pictures: Sequence[Picture], found: Candidates | None) -> str:
    """Write what the script reads, safe inside of a script element.

    Parameters
    ----------
    pictures : sequence of Picture
    found : Candidates or None

    Returns
    -------
    str
    """
    content: dict[str, Any] = {
        "figures": [{"name": one.name, **one.spec} for one in pictures],
        "candidates": None if found is None else found.payload(),
    }
    text = json.dumps(_printable(content), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _printable(content: Any) -> Any:
    """Neutralise what a browser would obey in texts that nobody made printable before."""
    if isinstance(content, dict):
        return {key: _printable(one) for key, one in content.items()}
    if isinstance(content, list | tuple):
        return [_printable(one) for one in content]
    return printable(content, None) if isinstance(content, str) else content


def figures_html(pictures: Sequence[Picture]) -> str:
    """Render the figures, each with its caption and a table of the same numbers."""
    parts = [
        "<noscript><p>The pictures need JavaScript; the tables under them do not.</p></noscript>",
        '<p class="note screen">Point at a mark for its numbers; drag to zoom, and double-click to '
        "go back.</p>",
    ]
    for picture in pictures:
        name, title = picture.name, escape(picture.title)
        choice = ""
        if picture.choices:
            options = "".join(
                f"<option>{escape(shown(label))}</option>" for label in picture.choices
            )
            choice = (
                f'<p class="pick"><label for="pick-{name}">{escape(picture.choice_label)}</label>'
                f'<select id="pick-{name}">{options}</select></p>'
            )
        parts.append(
            f'<figure id="figure-{name}"><h3>{title}</h3>{choice}'
            f'<div class="picture" id="plot-{name}" role="img" aria-label="{escape(picture.alt)}" '
            f'style="min-height:{picture.spec["height"]}px"></div>'
            f"<figcaption>{escape(picture.caption)}</figcaption><details>"
            f"<summary>The same as a table</summary>{render_page([picture.fallback])}</details>"
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
