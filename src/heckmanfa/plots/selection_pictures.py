"""Pictures that need the rows of a fit, of fitted models and analyses, drawn with Matplotlib."""

from __future__ import annotations

from typing import Any, Protocol

from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.plots.public_pictures import Picture, Pictured, pictures_of


class _Evidence(Protocol):
    @property
    def fit(self) -> Fit:
        """The fit behind the pictures."""


class _Pictures(Protocol):
    @property
    def evidence(self) -> _Evidence:
        """The numbers of the first screen."""


def selection_margins(
    source: Pictured,
    X: Any = None,
    y: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw how much each feature moves the probability of being selected, largest first.

    Effects are average marginal effects of one standard deviation more, of 1 rather than 0, or of
    the level furthest from a category's reference, in percentage points, with 95% intervals. A
    feature moves with its square and its products. The 15 largest are drawn.

    Parameters
    ----------
    source : fitted model or Analysis
    X, y, selected, sample_weight
        As they were passed to `Heckman.fit`; an Analysis has them. For a model from formulas, X is
        the data frame, and y is left out.
    ax : Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    pictures = pictures_of(source, X, y, selected, sample_weight)
    return _known(pictures.margins, pictures).draw(ax)


def profiles(
    source: Pictured,
    X: Any = None,
    y: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the averages of rows with an outcome beside those without.

    Averages are in standard deviations from the mean of all rows, in the order of
    `selection_margins`.

    Parameters
    ----------
    source : fitted model or Analysis
    X, y, selected, sample_weight
        As in `selection_margins`.
    ax : Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    pictures = pictures_of(source, X, y, selected, sample_weight)
    return _known(pictures.profiles, pictures).draw(ax)


def overlap(
    source: Pictured,
    X: Any = None,
    y: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the probability of being selected: rows with an outcome up, rows without down.

    Where no row with an outcome is, the correction for selection is a guess. The axis on top has
    lambda, the inverse Mills ratio. Rows must be in memory.

    Parameters
    ----------
    source : fitted model or Analysis
    X, y, selected, sample_weight
        As in `selection_margins`.
    ax : Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    pictures = pictures_of(source, X, y, selected, sample_weight)
    return _known(pictures.overlap, pictures).draw(ax)


def residuals(
    source: Pictured,
    X: Any = None,
    y: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the residuals of rows with an outcome beside the normal curve.

    They are those of the model or, of an average, of its best assignment by BIC, in standard
    deviations. Rows must be in memory.

    Parameters
    ----------
    source : fitted model or Analysis
    X, y, selected, sample_weight
        As in `selection_margins`.
    ax : Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    pictures = pictures_of(source, X, y, selected, sample_weight)
    return _known(pictures.residuals, pictures, without=False).draw(ax)


def _known(picture: Picture | None, pictures: _Pictures, *, without: bool = True) -> Picture:
    """Return a picture; refuse if there is nothing to show.

    ``without`` says whether the picture compares rows with an outcome and rows without.
    """
    if picture is not None:
        return picture
    if without and pictures.evidence.fit.probit is None:
        raise NotIdentifiedError(
            "no outcome was missing in the fit, so there is no selection to draw"
        )
    raise InputError(
        "this picture needs the rows in memory, and these are not: fit a model to a sample that "
        "fits into memory, and draw that model"
    )
