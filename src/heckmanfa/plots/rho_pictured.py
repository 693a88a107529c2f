"""Pictures of rho and lambda, of fitted models and analyses, drawn with Matplotlib."""

from __future__ import annotations

from typing import Any

from heckmanfa.errors import NotIdentifiedError
from heckmanfa.plots.public_pictures import Pictured, known, pictures_of


def rho_by_assignment(source: Pictured, ax: Any = None) -> Any:
    """Draw how the weight of all assignments is spread over rho.

    Weights follow BIC. If a feature and lambda stand in for each other, bars are filled for the
    assignments with the feature that tells rho apart best, and hatched for those without it.

    Parameters
    ----------
    source : fitted search or average, or Analysis
    ax : Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    pictures = pictures_of(source)
    return known(pictures.rho, pictures).draw(ax)


def over_rho(
    source: Pictured,
    X: Any = None,
    y: Any = None,
    axes: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw coefficients over a rho that is assumed, up to four of them.

    They are those of the best assignment, or of the model if it has one. The ribbon is the 95%
    interval. A diamond is least squares (rho = 0), a disc the model's rho, and a stroke where the
    sign turns. Grey is the 95% interval of rho or, with a window, what is outside it.

    Parameters
    ----------
    source : fitted model or Analysis
    X, y, selected, sample_weight
        As in `selection_margins`. With the rows, rho has an interval by the likelihood.
    axes : Axes or array of Axes, optional
        One for each coefficient.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each coefficient, the likeliest first.

    See Also
    --------
    heckmanfa.plots.uncertainty : any coefficients, over any range of rho.
    """
    picture = pictures_of(source, X, y, selected, sample_weight).over_rho
    return _selected(picture, "no outcome was missing, or no feature predicts").draw(axes)


def imr_estimates(
    source: Pictured,
    X: Any = None,
    y: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the coefficient of lambda, estimated in several ways, with 95% intervals.

    After a search: by the model, in the best assignments, and with all features. Otherwise: by the
    model and by the method that it did not use. An arrow marks an interval that runs on.

    Parameters
    ----------
    source : fitted model or Analysis
    X, y, selected, sample_weight
        As in `selection_margins`. Maximum likelihood beside a two-step model needs the rows.
    ax : Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    picture = pictures_of(source, X, y, selected, sample_weight).imr
    return _selected(picture, "no outcome was missing").draw(ax)


def _selected(picture: Any, why_not: str) -> Any:
    """Return a picture; refuse if the model has nothing to show in it."""
    if picture is None:
        raise NotIdentifiedError(f"there is nothing to draw: {why_not}")
    return picture
