"""Coefficients of several models beside one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from heckmanfa.errors import InputError
from heckmanfa.plots.canvas import COLORS, GREY, MARKERS, canvas, label_of, wanted_terms
from heckmanfa.text.printable import quoted

_MODEL_INCHES = 0.09
_APART = 0.7


class EstimatedModel(Protocol):
    """A model with a table of estimates."""

    def tidy(self, conf_level: float) -> Any:
        """Return the estimates with intervals."""
        ...


def coefficients(
    models: EstimatedModel | Sequence[EstimatedModel] | Mapping[str, EstimatedModel],
    ax: Any = None,
    conf_level: float = 0.95,
    terms: Sequence[str] | None = None,
) -> Any:
    """Draw the coefficients of one or several models, each as a dot with a whisker.

    Whiskers are the intervals of `Heckman.tidy`. After a search that is not honest these ignore
    it, and are too short. Every coefficient is in the units of its feature: to compare sizes, fit
    standardised features.

    Parameters
    ----------
    models : model, sequence of models, or dict of models
        Fitted. The keys of a dict are their names; those of a sequence are their classes.
    ax : Axes, optional
    conf_level : float
        Confidence level of the whiskers.
    terms : sequence of str, optional
        Coefficients to draw, which may include "Intercept"; all others by default, in the order
        in which the models have them.
    """
    tables = {name: _table(model, conf_level) for name, model in _named(models).items()}
    known = list(dict.fromkeys(term for table in tables.values() for term in table.index))
    wanted = wanted_terms(known, terms)
    count = len(tables)
    height = 0.8 + len(wanted) * max(0.18, _MODEL_INCHES * count + 0.06) + 0.18 * (count > 1)
    offsets = (np.arange(count) - (count - 1) / 2.0) * _APART / count
    marks: dict[str, Any] = {}
    with canvas(ax, height) as drawn:
        (panel,) = drawn.axes
        panel.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
        for k, (name, table) in enumerate(tables.items()):
            held = table.loc[[term for term in wanted if term in table.index]]
            marks[name] = panel.errorbar(
                held["estimate"],
                [wanted.index(term) + offsets[k] for term in held.index],
                xerr=held[["below", "above"]].to_numpy().T,
                fmt=MARKERS[k % len(MARKERS)],
                color=COLORS[k % len(COLORS)],
                markersize=3.5,
                markeredgecolor="black",
                markeredgewidth=0.4,
                elinewidth=1.0,
                zorder=3,
            )
        panel.set_yticks(range(len(wanted)), [label_of(term) for term in wanted])
        panel.set_ylim(len(wanted) - 0.5, -0.5)
        panel.set_xlabel(f"coefficient, with {100 * conf_level:g}% interval")
        if count > 1:
            drawn.legend(marks)
    return panel


def _named(models: Any) -> dict[str, EstimatedModel]:
    if _is_model(models):
        models = [models]
    if isinstance(models, Mapping):
        named = {str(name): model for name, model in models.items()}
    else:
        listed = list(models) if isinstance(models, Iterable) else [models]
        kinds = [type(model).__name__ for model in listed]
        named = {
            kind if kinds.count(kind) == 1 else f"{kind} ({number})": model
            for number, (kind, model) in enumerate(zip(kinds, listed, strict=True), start=1)
        }
    if not named:
        raise InputError("models is empty: there is nothing to draw")
    for name, model in named.items():
        if not _is_model(model):
            raise InputError(
                f"models must hold Heckman models and searches; {quoted(name)} is a "
                f"{type(model).__name__}"
            )
    return named


def _is_model(value: Any) -> bool:
    # Ask the class: a model that is not fitted has no attributes yet.
    return hasattr(type(value), "fit_")


def _table(model: EstimatedModel, conf_level: float) -> Any:
    """Return the estimates by term, and how far their intervals reach below and above."""
    table = model.tidy(conf_level)
    table = table[table["equation"] == "prediction"].set_index("term")
    return table.assign(
        below=(table["estimate"] - table["ci_low"]).abs(),
        above=(table["ci_high"] - table["estimate"]).abs(),
    )
