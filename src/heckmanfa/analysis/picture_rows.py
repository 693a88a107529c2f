"""Pictures of an analysis, with the names and the rows of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heckmanfa.analysis.prepared import Loaded, Prepared
from heckmanfa.inference.pictures import Pictures
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.results.evidence import Evidence


def pictures_of(
    prepared: Prepared, evidence: Evidence, derived: Mapping[str, Sequence[str]]
) -> Pictures:
    """Return the pictures of a fit to prepared rows, in memory or streamed.

    ``derived`` are the squares and products among columns in memory.
    """
    fit, naming, rows = evidence.fit, evidence.naming, prepared.rows
    if isinstance(rows, Loaded):
        given = rows.X, prepared.outcome, rows.selected, rows.weight
        return Pictures(evidence, PictureRows(fit, naming, *given, derived=derived))
    return Pictures(evidence, PictureRows(fit, naming, rows))
