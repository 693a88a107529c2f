"""How the probabilities of Heckman-FA were trained."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import InputError
from heckmanfa.fit import Fitted
from heckmanfa.plots._canvas import COLORS, LIGHT, LINES, canvas, label_of
from heckmanfa.plots.training_path import TrainingPath, read_path
from heckmanfa.text.printable import quoted

_LABEL_INCHES = 0.14
_SPACE = 1.05
# In widths of the axes, from their left.
_NAMES_AT = 1.07


def assignment_path(model: Fitted, ax: Any = None, top: int = 8) -> Any:
    """Draw the probability that each feature predicts over the epochs of the training.

    Parameters
    ----------
    model : HeckmanFA
        Fitted with ``record_path``.
    ax : Axes, optional
        A new figure by default.
    top : int
        How many features to name: those with the largest probabilities at the end. The others
        are thin grey lines.

    Returns
    -------
    matplotlib.axes.Axes
    """
    found = _path(model)
    if not isinstance(top, Integral) or top < 1:
        raise InputError(f"top must be an integer of at least 1; got {quoted(top)}")
    epochs, path = found.epochs, found.probability
    named, others = found.order[: int(top)], found.order[int(top) :]
    names = [label_of(found.names[column]) for column in named]
    with canvas(ax, max(2.5, 0.7 + _LABEL_INCHES * len(named))) as drawn:
        (panel,) = drawn.axes
        marks: dict[str, Any] = {}
        for column in others:
            (line,) = panel.plot(epochs, path[:, column], color=LIGHT, linewidth=0.6, zorder=1)
            marks[f"{len(others)} other features"] = line
        lines = [
            panel.plot(
                epochs,
                path[:, column],
                color=COLORS[place % len(COLORS)],
                linestyle=LINES[place % len(LINES)],
                zorder=3,
            )[0]
            for place, column in enumerate(named)
        ]
        panel.set_xlim(epochs[0] - (len(epochs) < 2), epochs[-1])
        shown = path[:, list(found.order)]
        space = 0.05 * max(float(np.ptp(shown)), 0.1)
        panel.set_ylim(float(shown.min()) - space, float(shown.max()) + space)
        panel.set_xlabel("epoch")
        panel.set_ylabel("inclusion probability")
        if others:
            drawn.legend(marks)
        _label_ends(panel, lines, names)
    return panel


def _path(model: Any) -> TrainingPath:
    """Return the training that a model recorded."""
    check_is_fitted(model)
    recorded = getattr(model, "path_", None)
    if recorded is None:
        raise InputError(
            f"{type(model).__name__} trains nothing; fit HeckmanFA(record_path=40) to see how the "
            "probabilities of its features change"
        )
    found = read_path(recorded, model.fit_.labels, model.fit_.support)
    if found is None:
        # This raises if no outcome was missing, so nothing was searched.
        _ = model.candidates_
        reason = (
            "extraction='correlation' trains nothing"
            if model.extraction == "correlation"
            else "the training was not recorded"
        )
        raise InputError(
            f"{reason}: fit with record_path=40 (a record every 40 epochs, at most the number of "
            "epochs) and extraction='sample' or 'rank'"
        )
    return found


def _label_ends(panel: Any, lines: list[Any], names: list[str]) -> None:
    """Write a name at the end of each line, moved up or down where two would overlap."""
    from matplotlib.collections import LineCollection

    ends = np.array([line.get_ydata()[-1] for line in lines])
    beside = panel.get_yaxis_transform()
    texts = [
        panel.text(_NAMES_AT, end, name, transform=beside, va="center_baseline")
        for name, end in zip(names, ends, strict=True)
    ]
    # How high a line of text is, is known once everything has its place.
    panel.figure.draw_without_rendering()
    height = max(text.get_window_extent().height for text in texts)
    low, high = panel.get_ylim()
    gap = _SPACE * height / panel.get_window_extent().height * (high - low)
    places = _spread(ends, gap, low, high)
    for text, place in zip(texts, places, strict=True):
        text.set_y(place)
    panel.add_collection(
        LineCollection(
            [
                [(1.0, end), (_NAMES_AT - 0.01, place)]
                for end, place in zip(ends, places, strict=True)
            ],
            colors=[line.get_color() for line in lines],
            linewidths=0.6,
            transform=beside,
            clip_on=False,
        ),
        autolim=False,
    )


def _spread(places: Floats, gap: float, low: float, high: float) -> Floats:
    """Move places apart by at least a gap, as little as possible, and inside the limits."""
    count = len(places)
    # Of several at the same place the first is the highest.
    order = np.lexsort((-np.arange(count), places))
    gap = min(gap, (high - low) / max(count - 1, 1))
    steps = gap * np.arange(count)
    moved = isotonic_regression(places[order] - steps)
    spread = np.empty(count)
    spread[order] = np.clip(moved, low, high - steps[-1]) + steps
    return spread
