"""The probabilities of Heckman-FA over its training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.fit import Fitted
from heckmanfa.plots.canvas import COLORS, LIGHT, LINES, canvas, label_of
from heckmanfa.text.printable import quoted

_LABEL_INCHES = 0.14
_SPACE = 1.05
# In widths of the axes, from their left.
_NAMES_AT = 1.07


@dataclass(frozen=True, eq=False)
class TrainingPath:
    """The probability of each feature over the epochs recorded."""

    epochs: Floats
    """(R,)"""
    probability: Floats
    """(R, K)"""
    names: tuple[str, ...]
    support: Mask
    """(K,) which features predict"""
    order: tuple[int, ...]
    """features that were trained, by their probability at the end, the highest first"""


def read_path(
    path: Mapping[str, Any] | None, names: tuple[str, ...], support: Mask
) -> TrainingPath | None:
    """Return the training as ``path_`` of a model records it; None without a record."""
    if not path or not len(path["epoch"]):
        return None
    probability = np.asarray(path["inclusion_prob"])
    trained = np.flatnonzero(np.isfinite(probability).all(axis=0))
    order = trained[np.argsort(-probability[-1, trained], kind="stable")]
    return TrainingPath(
        epochs=np.asarray(path["epoch"]),
        probability=probability,
        names=names,
        support=support,
        order=tuple(int(column) for column in order),
    )


def assignment_path(model: Fitted, ax: Any = None, top: int = 8) -> Any:
    """Draw the probability that each feature predicts over the epochs of the training.

    Parameters
    ----------
    model : HeckmanFA
        Fitted with ``record_path``.
    ax : Axes, optional
    top : int
        How many features to name: those with the largest probabilities at the end. The others
        are thin grey lines.
    """
    found = _recorded_path(model)
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
                color=COLORS[rank % len(COLORS)],
                linestyle=LINES[rank % len(LINES)],
                zorder=3,
            )[0]
            for rank, column in enumerate(named)
        ]
        panel.set_xlim(epochs[0] - (len(epochs) < 2), epochs[-1])
        trained = path[:, list(found.order)]
        space = 0.05 * max(float(np.ptp(trained)), 0.1)
        panel.set_ylim(float(trained.min()) - space, float(trained.max()) + space)
        panel.set_xlabel("epoch")
        panel.set_ylabel("inclusion probability")
        if others:
            drawn.legend(marks)
        _label_ends(panel, lines, names)
    return panel


def _recorded_path(model: Any) -> TrainingPath:
    check_is_fitted(model)
    recorded = model.path_ if hasattr(type(model), "path_") else None
    if recorded is None:
        cure = "fit HeckmanFA(record_path=40) to see how the probabilities of its features change"
        if model.fit_.is_binary:
            cure = "no search for a binary outcome does, so there is no path to draw"
        raise InputError(f"{type(model).__name__} trains nothing; {cure}")
    columns = model.fit_.spec.columns
    found = read_path(recorded, columns.labels_of_x, model.support_)
    if found is not None:
        return found
    model.fit_.search.check_searched()
    reason = (
        "extraction='correlation' trains nothing"
        if model.extraction == "correlation"
        else "the training was not recorded"
    )
    raise InputError(
        f"{reason}: fit with record_path=40 (a record every 40 epochs, at most the number of "
        "epochs) and extraction='sample' or 'rank'"
    )


def _label_ends(panel: Any, lines: list[Any], names: list[str]) -> None:
    """Write a name at the end of each line, moved up or down if two would overlap."""
    from matplotlib.collections import LineCollection

    ends = np.array([line.get_ydata()[-1] for line in lines])
    beside = panel.get_yaxis_transform()
    texts = [
        panel.text(_NAMES_AT, end, name, transform=beside, va="center_baseline")
        for name, end in zip(names, ends, strict=True)
    ]
    # The height of a line of text is known only after the layout.
    panel.figure.draw_without_rendering()
    height = max(text.get_window_extent().height for text in texts)
    low, high = panel.get_ylim()
    gap = _SPACE * height / panel.get_window_extent().height * (high - low)
    heights = _spread(ends, gap, low, high)
    for text, y in zip(texts, heights, strict=True):
        text.set_y(y)
    panel.add_collection(
        LineCollection(
            [[(1.0, end), (_NAMES_AT - 0.01, y)] for end, y in zip(ends, heights, strict=True)],
            colors=[line.get_color() for line in lines],
            linewidths=0.6,
            transform=beside,
            clip_on=False,
        ),
        autolim=False,
    )


def _spread(heights: Floats, gap: float, low: float, high: float) -> Floats:
    """Move heights apart by at least a gap, as little as possible, and within the limits."""
    n = len(heights)
    # Of several at the same height the first stays the highest.
    order = np.lexsort((-np.arange(n), heights))
    gap = min(gap, (high - low) / max(n - 1, 1))
    steps = gap * np.arange(n)
    moved = isotonic_regression(heights[order] - steps)
    spread = np.empty(n)
    spread[order] = np.clip(moved, low, high - steps[-1]) + steps
    return spread
