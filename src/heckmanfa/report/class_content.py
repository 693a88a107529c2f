"""What the details of a report say of ordered classes: their cut points."""

from __future__ import annotations

from heckmanfa.report.reported import Reported
from heckmanfa.results.cut_points import cut_points
from heckmanfa.results.document import PageBlock, Paragraph
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.naming import said_class
from heckmanfa.text.labels import said
from heckmanfa.text.table import lay_out
from heckmanfa.text.wording import interval, number


def cut_blocks(reported: Reported) -> list[PageBlock]:
    """Lay out the cut points of an ordered outcome; of no other."""
    fit, outcome = reported.evidence.whole, reported.outcome
    if fit.ordered_classes is None:
        return []
    table = cut_points(fit, CONF_LEVEL)
    rows = [
        [
            f"{said_class(outcome, row['below'])} | {said_class(outcome, row['above'])}",
            number(float(row["estimate"])),
            number(float(row["std_error"])),
            interval(float(row["ci_low"]), float(row["ci_high"])),
        ]
        for row in table.to_dict("records")
    ]
    return [
        Paragraph(
            f"Where {said(outcome)} passes from one class to the next, on the scale of the "
            "prediction equation without its intercept, as in Stata."
        ),
        lay_out(
            ["Between"],
            ["Cut point", "Std. error", "95% interval"],
            rows,
            f"Cut points of {said(outcome)}",
            "cut-points-table",
        ),
    ]
