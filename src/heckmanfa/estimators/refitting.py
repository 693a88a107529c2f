"""A fit changes an estimator wholly or not at all."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.base import BaseEstimator

__all__ = ["whole_fit"]


@contextmanager
def whole_fit(estimator: BaseEstimator) -> Iterator[None]:
    """Fit in here: what an earlier fit left is gone first, and comes back if this one fails.

    The state before the call comes back after any failure, an interruption among them. The
    attributes of the earlier fit are taken off rather than overwritten, so none that this fit
    does not set is left over, and nothing here can change them in place.

    Parameters
    ----------
    estimator : BaseEstimator
        A fit sets attributes that end in an underscore, and those that begin with one and that
        a class of this package declares. All else stays: parameters, what scikit-learn keeps on
        an estimator, and what a user has added.
    """
    state = vars(estimator)
    before = dict(state)
    for name in _set_by_fits(estimator) & before.keys():
        del state[name]
    try:
        yield
    except BaseException:
        state.clear()
        state.update(before)
        raise


def _set_by_fits(estimator: BaseEstimator) -> set[str]:
    """Return the names of attributes that a fit sets, as far as they are there or declared."""
    public = {one for one in vars(estimator) if one.endswith("_") and not one.startswith("_")}
    declared = {
        name
        for one in type(estimator).__mro__
        if one.__module__.split(".")[0] == "heckmanfa"
        for name in inspect.get_annotations(one)
    }
    return (public | declared) - {*estimator.get_params(deep=False)}
