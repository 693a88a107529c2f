"""How an answer calls the columns of a table: by their names, with levels of categories."""

from __future__ import annotations

from heckmanfa.analysis.prepared import Prepared
from heckmanfa.fit import Fit
from heckmanfa.results.naming import Naming, name_dummies


def naming_of(prepared: Prepared, fit: Fit) -> Naming:
    """Name the columns of X after the columns of the table that they encode."""
    encoding, question = prepared.encoding, prepared.question
    named = name_dummies(fit.labels, encoding)
    return Naming(
        outcome=question.fitted,
        sources=named.sources,
        levels=named.levels,
        references=named.references,
        binary=frozenset(
            place
            for place, label in enumerate(fit.labels)
            if label in prepared.binary and not named.levels[place]
        ),
        groups=named.groups,
        cluster=question.cluster or "",
    )
