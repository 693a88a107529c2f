"""`heckmanfa.etable`: fitted models side by side in a table for a paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, get_args

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.columns.column_names import repeated
from heckmanfa.errors import InputError, InputTypeError
from heckmanfa.estimators.baselines import NaiveOLS, ObservedRegressor
from heckmanfa.estimators.scoring import ScoredModel
from heckmanfa.estimators.weighing import Weighing
from heckmanfa.fit.family import BOTH
from heckmanfa.results.distribution import check_level
from heckmanfa.results.etable import ModelTable
from heckmanfa.results.labelling import given_codebook, labels_in
from heckmanfa.results.model_columns import ERRORS, ModelColumn, TermMaker, column_of_fit
from heckmanfa.results.model_layout import STARS, Shape, refuse_unknown, side_by_side_table
from heckmanfa.tables.codebook import Codebook
from heckmanfa.text.labels import labelled
from heckmanfa.text.option_types import Under
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import count, plural

_MOST_DIGITS = 15


def etable(
    models: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    labels: Mapping[str, str] | str | PathLike[str] | Codebook | None = None,
    equations: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    order: Sequence[str] = (),
    digits: int = 4,
    under: Under | None = "se",
    stars: bool | Sequence[float] = False,
    conf_level: float = 0.95,
) -> ModelTable:
    """Set fitted models side by side, for a paper.

    Rows are matched by equation and term, and the dummies of a category stand under its name. A
    term that a model does not have is blank there. Notes say what the numbers are, what a search
    left out, and which p-values it makes invalid.

    Parameters
    ----------
    models : sequence of fitted models
        Of any class of heckmanfa that has coefficients, mixed as you like.
    names : sequence of str, optional
        What stands above their columns; (1), (2) and so on by default.
    labels : dict, path or Codebook, optional
        What readers call columns, other terms such as ``"rho"``, and outcomes: labels by name, or
        a codebook, which may also say what levels mean.
    equations : sequence of str, optional
        Which equations to show, in this order: ``"prediction"``, ``"selection"``, ``"errors"``, and
        as models have them ``"cuts"``, ``"outcome"``, ``"effect"``, ``"regime1"``, ``"regime0"``.
    keep, drop, order : sequence of str
        Rows to show, to leave out, and to put first. A row goes by its term in `tidy`, or by the
        column of a category, in every equation or in one, as in ``"selection.educ"``. ``drop`` and
        ``order`` also take labels of the lower part, such as ``"AIC"``.
    digits : int
        Significant digits.
    under : {"se", "interval", "t", "p"} or None
        What stands under an estimate.
    stars : bool or sequence of float
        Whether small p-values get stars; True is below 0.05, 0.01 and 0.001. Other thresholds are
        given as such numbers.
    conf_level : float
        Confidence level of the intervals.

    Returns
    -------
    ModelTable
        It prints as text and shows as HTML in a notebook; see its `to_latex`, `to_markdown`,
        `to_html` and `save`. ``frame`` has the numbers in full.

    Examples
    --------
    >>> import heckmanfa
    >>> from heckmanfa.datasets import load_mroz
    >>> mroz = load_mroz()
    >>> z = mroz[["educ", "exper", "age", "kids5"]]
    >>> models = [
    ...     heckmanfa.Heckman(["educ", "exper"], method=method).fit(z, mroz["lwage"])
    ...     for method in ("two-step", "ml")
    ... ]
    >>> table = heckmanfa.etable(models, names=["two-step", "ML"], equations=["prediction"])
    >>> table.save("wages.tex")  # doctest: +SKIP
    """
    models = _checked(models)
    names = _checked_names(names, len(models))
    shape = Shape(
        digits=_checked_digits(digits),
        under=_checked_under(under),
        stars=_thresholds(stars),
        conf_level=conf_level,
        equations=None if equations is None else _texts("equations", equations),
        keep=None if keep is None else _texts("keep", keep),
        drop=_texts("drop", drop),
        order=_texts("order", order),
    )
    check_level(conf_level)
    codebook = given_codebook(labels)
    with labelled(labels_in(codebook)):
        columns = [_column(model, conf_level) for model in models]
        # A codebook may be of a whole table; what is written for these models must be in them.
        refuse_unknown(columns, shape, codebook.columns if isinstance(labels, Mapping) else ())
        return side_by_side_table(columns, names, shape)


# What is asked. -----------------------------------------------------------------------------------


def _checked(models: Any) -> list[Any]:
    """Return the models as a list; refuse what is not a fitted model."""
    if isinstance(models, ScoredModel):
        raise InputTypeError("models must be a list of fitted models: put this one into a list")
    if isinstance(models, str | Mapping) or not isinstance(models, Iterable):
        raise InputTypeError(
            f"models must be a list of fitted models; got a {type(models).__name__}"
        )
    found = list(models)
    if not found:
        raise InputError("models is empty: pass at least one fitted model")
    for place, model in enumerate(found, 1):
        if not isinstance(model, ScoredModel):
            raise InputTypeError(
                f"models must be fitted models of heckmanfa; number {place} is a "
                f"{type(model).__name__}"
            )
        try:
            check_is_fitted(model)
        except NotFittedError as error:
            raise InputError(
                f"model {place}, a {type(model).__name__}, is not fitted: call fit first"
            ) from error
    return found


def _checked_names(names: Any, n: int) -> list[str]:
    """Return what stands above each column."""
    if names is None:
        return [f"({place})" for place in range(1, n + 1)]
    found = [shown(name) for name in _texts("names", names)]
    if not all(map(str.strip, found)):
        raise InputError(f"{option('names')} has a name without a letter: name every model")
    if len(found) != n:
        raise InputError(f"{option('names')} has {plural(len(found), 'name')} for {n} models")
    if twice := repeated(found):
        raise InputError(
            f"two models are called {quoted(twice[0])}: name each with {option('names', [...])}"
        )
    return found


def _texts(name: str, given: Any) -> tuple[str, ...]:
    """Return names in a tuple; one name counts as a list of it."""
    found = (given,) if isinstance(given, str) else given
    if not isinstance(found, Iterable):
        raise InputTypeError(f"{option(name)} must be a list of names; got {quoted(given)}")
    found = tuple(found)
    for text in found:
        if not isinstance(text, str):
            raise InputTypeError(f"{option(name)} must hold names; got {quoted(text)}")
    return found


def _checked_digits(digits: Any) -> int:
    whole = isinstance(digits, Integral) and not isinstance(digits, bool)
    if not whole or not 1 <= digits <= _MOST_DIGITS:
        raise InputError(
            f"{option('digits')} must be a number from 1 to {_MOST_DIGITS}; got {quoted(digits)}"
        )
    return int(digits)


def _checked_under(under: Any) -> Under | None:
    if under is not None and under not in get_args(Under):
        kinds = ", ".join(map(quoted, get_args(Under)))
        raise InputError(f"{option('under')} must be {kinds} or None; got {quoted(under)}")
    chosen: Under | None = under
    return chosen


def _thresholds(stars: Any) -> tuple[float, ...]:
    """Return what p-values with one star, two, ... are below; nothing without stars."""
    if isinstance(stars, bool | np.bool_):
        return STARS if stars else ()
    found = list(stars) if isinstance(stars, Iterable) and not isinstance(stars, str) else [stars]
    for most in found:
        if not isinstance(most, Real) or not 0.0 < float(most) < 1.0:
            raise InputError(
                f"{option('stars')} must be True, False or p-values between 0 and 1; got "
                f"{quoted(most)}"
            )
    if repeated(map(str, found)):
        raise InputError(f"{option('stars')} has the same threshold twice")
    return tuple(sorted(map(float, found), reverse=True))


# What a model is. ---------------------------------------------------------------------------------


def _column(model: Any, conf_level: float) -> ModelColumn:
    """Return what a model puts into the table."""
    if hasattr(model, "fit_"):
        return column_of_fit(model.fit_, conf_level)
    if isinstance(model, NaiveOLS | Weighing) and isinstance(model, ObservedRegressor):
        return _column_of_baseline(model, conf_level)
    raise InputError(
        f"a {type(model).__name__} has no coefficients to show: leave it out of the table"
    )


def _column_of_baseline(model: ObservedRegressor, conf_level: float) -> ModelColumn:
    """Return what a model that corrects for nothing unseen puts into the table."""
    names, encoding = model.encoded_names_, model.columns_read().encoding
    maker = TermMaker.of(list(names), encoding)
    notes: tuple[str, ...] = ()
    counts = model.row_counts_
    facts = {"Model": "least squares"}
    if isinstance(model, Weighing):
        table, known = model.tidy(conf_level), model.estimates()
        clusters = known.n_clusters
        facts = {
            "Model": model.title.lower(),
            "Standard errors": known.cov_type,
            "Weights": known.weights,
            "Clusters": "" if clusters is None else count(clusters),
        }
        notes = (f"Assumed: {model.assumes}.",)
    else:
        table, notes = _coefficients(model, maker.labels), ("There are no standard errors.",)
    estimates, words = maker.rows(table, BOTH)
    facts |= {
        "Observations": count(counts["selected"] + counts["unselected"]),
        "Selected": count(counts["selected"]),
    }
    return ModelColumn("", maker.columns, estimates, words, facts, notes)


def _coefficients(model: NaiveOLS, labels: Sequence[str]) -> pd.DataFrame:
    """Return the estimates of least squares as `tidy` does, without what it does not know."""
    predicts = [labels[place] for place in np.flatnonzero(model._support).tolist()]
    values = dict(zip(labels, model.coef_, strict=True))
    rows = [("prediction", "Intercept", model.intercept_)]
    rows += [("prediction", name, values[name]) for name in predicts]
    rows.append((ERRORS, "sigma", model.sigma_))
    return pd.DataFrame(rows, columns=["equation", "term", "estimate"])
