"""Pictures of fitted models and analyses, drawn with Matplotlib.

All take a source and Axes, and those of rows take the rows of a fitted model, too. What these
parameters are is written once, and `_documented` adds it to the help of each function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from heckmanfa.errors import HeckmanfaError, InputError, InputTypeError, NotIdentifiedError

# The parameters of all, and what is returned, as NumPy's docstrings have them.
_PARAMETERS = {
    "source": "source : fitted model or Analysis",
    "X": """X, y, selected, sample_weight
    As they were passed to `Heckman.fit`; an Analysis has them. For a model from formulas, X is the
    data frame, and y is left out.""",
    "ax": """ax : Axes, optional
    Where to draw; a new figure by default.""",
    "axes": """axes : Axes or array of Axes, optional
    One for each coefficient; a new figure by default.""",
}
_RETURNS = {
    "ax": "matplotlib.axes.Axes",
    "axes": """ndarray of matplotlib.axes.Axes
    One for each coefficient, the likeliest first.""",
}

Draws = TypeVar("Draws", bound=Callable[..., Any])


class Pictured(Protocol):
    """A fitted model, or an analysis."""

    def pictures(self, *args: Any, **kwargs: Any) -> Any:
        """Return its pictures."""
        ...


def _documented(function: Draws) -> Draws:
    """Add the parameters that pictures share to the help of a function."""
    names = inspect.signature(function).parameters
    parameters = "\n".join(words for name, words in _PARAMETERS.items() if name in names)
    returns = _RETURNS["axes" if "axes" in names else "ax"]
    function.__doc__ = (
        f"{inspect.getdoc(function)}\n\nParameters\n----------\n{parameters}\n\n"
        f"Returns\n-------\n{returns}\n"
    )
    return function


@_documented
def forest(source: Pictured, ax: Any = None) -> Any:
    """Draw the effects of the likeliest features, by this model and others beside it.

    An effect is that of one standard deviation more of the feature, or of 1 rather than 0. Lines
    are 95% intervals; those of an average allow for the search. An arrow marks an interval that
    runs on, and a hollow mark a feature that is not sure to predict.
    """
    return _draw("forest", source, ax)


@_documented
def chances(source: Pictured, ax: Any = None) -> Any:
    """Draw the chance that each feature predicts, by role.

    A chance is the share of the BIC weight of all assignments that hold the feature. Diamonds are
    the same without the correction for selection. Of an honest search, bars are the halves that
    chose the feature. The source is a search or an average.
    """
    return _draw("chances", source, ax)


@_documented
def assignments(source: Pictured, ax: Any = None) -> Any:
    """Draw the best assignments as columns, each as wide as its weight.

    A cell shows whether the assignment holds the feature of its row, and the sign of its
    coefficient. Columns are drawn until they carry 90% of the weight, or are 400. The source is a
    search or an average.
    """
    return _draw("assignments", source, ax)


@_documented
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
    """
    return _draw("margins", source, ax, X, y, selected, sample_weight)


@_documented
def people(
    source: Pictured,
    X: Any = None,
    y: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw expected outcomes of typical rows, with 95% intervals of the expectation.

    Of anyone with these features, of those with an outcome and of those without. An Analysis draws
    the rows that its ``profile`` describes, if it has any.
    """
    return _draw("people", source, ax, X, y, selected, sample_weight)


@_documented
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
    """
    return _draw("profiles", source, ax, X, y, selected, sample_weight)


@_documented
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
    """
    return _draw("overlap", source, ax, X, y, selected, sample_weight)


@_documented
def treatment_overlap(
    source: Pictured,
    X: Any = None,
    y: Any = None,
    ax: Any = None,
    *,
    treated: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the probability of treatment: treated rows up, untreated rows down.

    Hatched is where only one of both groups has rows, so that nobody can be compared. ``treated``
    is as passed to `TreatmentModel.fit`.
    """
    return _draw("overlap", source, ax, X, y, treated, sample_weight)


@_documented
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
    """
    return _draw("residuals", source, ax, X, y, selected, sample_weight)


@_documented
def calibration(
    source: Pictured,
    X: Any = None,
    y: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the observed shares of the positive class over predicted probabilities.

    Selected rows are put into ten groups by P(y = positive class | x, s = 1), with 95% binomial
    intervals of their shares. Probabilities that come true are on the line. The model was fitted to
    these rows, so it looks better than it is; and since they are selected, nothing is shown about
    rows without an outcome. Rows must be in memory.
    """
    return _draw("calibration", source, ax, X, y, selected, sample_weight)


@_documented
def rho_by_assignment(source: Pictured, ax: Any = None) -> Any:
    """Draw how the weight of all assignments is spread over rho.

    Weights follow BIC. If a feature and lambda stand in for each other, bars are filled for the
    assignments with the feature that tells rho apart best, and hatched for those without it. The
    source is a search or an average.
    """
    return _draw("rho", source, ax)


@_documented
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
    sign turns. Grey is the 95% interval of rho or, with a window, what is outside it. Of a binary
    outcome, these are average slopes of its probability, in percentage points: they need the rows,
    and the diamond is the naive probit.

    `uncertainty` draws any coefficients, over any range of rho. With the rows, rho has an interval
    by the likelihood.
    """
    return _draw("over_rho", source, axes, X, y, selected, sample_weight)


@_documented
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
    model and by the method that it did not use. An arrow marks an interval that runs on. Maximum
    likelihood beside a two-step model needs the rows.
    """
    return _draw("imr", source, ax, X, y, selected, sample_weight)


def _draw(
    name: str,
    source: Pictured,
    ax: Any,
    X: Any = None,
    y: Any = None,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw a picture by its name among `Pictures`; refuse if there is nothing to show in it."""
    pictures = _pictures_of(source, X, y, selected, sample_weight)
    if not hasattr(type(pictures), name):
        model = pictures.evidence.fit.family.words.model
        raise InputError(
            f"the {model} has no such picture: draw treatment_effects, treatment_overlap or people"
        )
    if name in _SUPPORT:
        pictures.evidence.fit.family.require(_SUPPORT[name])
    picture = getattr(pictures, name)
    if picture is None:
        raise _refusal(name, pictures)
    return picture.draw(ax)


def _pictures_of(source: Pictured, X: Any, y: Any, selected: Any, sample_weight: Any) -> Any:
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
    fit: Any = source
    flags = "treated" if fit.fit_.family.sees_everyone else "selected"
    return source.pictures(X, y, sample_weight=sample_weight, **{flags: selected})


# What a family must support for some pictures.
_SUPPORT = {
    "residuals": "residuals",
    "calibration": "calibration",
    "imr": "lambda",
    "over_rho": "normal errors",
}


def _refusal(name: str, pictures: Any) -> HeckmanfaError:
    """Say why there is nothing to draw."""
    evidence = pictures.evidence
    if name in ("chances", "assignments", "rho"):
        return NotIdentifiedError(
            evidence.chances_missing
            or "assignments were not weighed: nothing was searched. Fit "
            f"{evidence.fit.family.words.weighing}."
        )
    if name == "over_rho":
        return NotIdentifiedError(
            "there is nothing to draw: no outcome was missing, no feature predicts, or a binary "
            "outcome has too many rows"
        )
    if name == "imr" and evidence.held is not None:
        return InputError(
            "rho is held at a value, so the coefficient of lambda is not estimated: use "
            "plots.over_rho, which shows how much depends on rho"
        )
    if name == "imr":
        return NotIdentifiedError("there is nothing to draw: no outcome was missing")
    if name in ("margins", "profiles", "overlap") and evidence.fit.probit is None:
        return NotIdentifiedError(
            "no outcome was missing in the fit, so there is no selection to draw"
        )
    return InputError(
        "this picture needs the rows in memory, and these are not: fit a model to a sample that "
        "fits into memory, and draw that model"
    )
