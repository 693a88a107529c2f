"""How an answer calls the columns of a table: by their names, with levels of categories."""

from __future__ import annotations

from heckmanfa.analysis.prepared import Prepared
from heckmanfa.fit import Fit
from heckmanfa.results.naming import Naming


def naming_of(prepared: Prepared, fit: Fit) -> Naming:
    """Name the columns of X after the columns of the table that they encode."""
    encoding, question = prepared.encoding, prepared.question
    labels = fit.labels
    sources, levels, references = list(labels), [""] * len(labels), [""] * len(labels)
    groups: list[tuple[int, ...]] = []
    places = {label: place for place, label in enumerate(labels)}
    for name, dummies in encoding.groups.items():
        first, *others = encoding.levels[name]
        inside = []
        for dummy, level in zip(dummies, others, strict=True):
            place = places.get(dummy)
            if place is not None:
                sources[place], levels[place], references[place] = name, level, first
                inside.append(place)
        if len(inside) > 1:
            groups.append(tuple(inside))
    return Naming(
        outcome=question.fitted,
        sources=tuple(sources),
        levels=tuple(levels),
        references=tuple(references),
        binary=frozenset(
            place
            for label, place in places.items()
            if label in prepared.binary and not levels[place]
        ),
        groups=tuple(groups),
        cluster=question.cluster or "",
    )
