"""Pictures that need no rows, of fitted models and analyses, drawn with Matplotlib."""

from __future__ import annotations

from typing import Any, Protocol

from heckmanfa.errors import InputError, InputTypeError, NotIdentifiedError


class Picture(Protocol):
    """A picture that can be drawn."""

    def draw(self, ax: Any = None) -> Any:
        """Draw on the Axes given, or on new ones, and return them."""
        ...


class Pictured(Protocol):
    """A fitted model, or an analysis."""

    def pictures(self, *args: Any, **kwargs: Any) -> Any:
        """Return its pictures."""
        ...


def forest(source: Pictured, ax: Any = None) -> Any:
    """Draw the effects of the likeliest features, by this model and others beside it.

    An effect is that of one standard deviation more of the feature, or of 1 rather than 0. Lines
    are 95% intervals; those of an average allow for the search. An arrow marks an interval that
    runs on, and a hollow mark a feature that is not sure to predict.

    Parameters
    ----------
    source : fitted model or Analysis
    ax : Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    return pictures_of(source).forest.draw(ax)


def chances(source: Pictured, ax: Any = None) -> Any:
    """Draw the chance that each feature predicts, by role.

    A chance is the share of the BIC weight of all assignments that hold the feature. Diamonds are
    the same without the correction for selection. Of an honest search, bars are the halves that
    chose the feature.

    Parameters
    ----------
    source : fitted search or average, or Analysis
    ax : Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    pictures = pictures_of(source)
    return known(pictures.chances, pictures).draw(ax)


def assignments(source: Pictured, ax: Any = None) -> Any:
    """Draw the best assignments as columns, each as wide as its weight.

    A cell shows whether the assignment holds the feature of its row, and the sign of its
    coefficient. Columns are drawn until they carry 90% of the weight, or are 400.

    Parameters
    ----------
    source : fitted search or average, or Analysis
    ax : Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    pictures = pictures_of(source)
    return known(pictures.assignments, pictures).draw(ax)


def pictures_of(
    source: Pictured, X: Any = None, y: Any = None, selected: Any = None, sample_weight: Any = None
) -> Any:
    """Return the pictures of a source, with rows if these were given."""
    # Ask the class: a model that is not fitted says so itself.
    if not hasattr(type(source), "pictures"):
        raise InputTypeError(
            "source must be a fitted Heckman model, a search or an Analysis; got a "
            f"{type(source).__name__}"
        )
    if X is None:
        return source.pictures()
    if not hasattr(type(source), "fit_"):
        raise InputError(f"{type(source).__name__} has its rows: leave X and y out")
    return source.pictures(X, y, selected=selected, sample_weight=sample_weight)


def known(picture: Picture | None, pictures: Any) -> Picture:
    """Return a picture; refuse if the model has nothing to show in it."""
    if picture is None:
        reason = pictures.evidence.chances_missing or (
            "assignments were not weighed: nothing was searched. Fit HeckmanAverage or "
            "HeckmanBestSubset."
        )
        raise NotIdentifiedError(reason)
    return picture
