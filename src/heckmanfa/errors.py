"""Every error and warning that heckmanfa raises: one root each, one sentence a class."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from heckmanfa.text.printable import printable

__all__ = [
    "AllObservedWarning",
    "BinaryOutcomeWarning",
    "ClusterError",
    "CollinearError",
    "ConstantOutcomeError",
    "ConvergenceWarning",
    "CovarianceWarning",
    "DataError",
    "DroppedFeaturesWarning",
    "FewClustersWarning",
    "FormulaError",
    "FrequencyWeightWarning",
    "HeckmanfaError",
    "HeckmanfaWarning",
    "InputError",
    "InputTypeError",
    "LeakageError",
    "LeakageWarning",
    "MissingExtraError",
    "MissingFeaturesWarning",
    "MissingValueError",
    "NoExclusionWarning",
    "NoFeasibleAssignmentError",
    "NoOutcomeError",
    "NotIdentifiedError",
    "NotSearchedError",
    "RhoOutsideWarning",
    "SearchWarning",
    "SecondMaximumWarning",
    "SeparationError",
    "TextNumbersWarning",
    "TooFewRowsError",
    "UnderdeterminedWarning",
    "UnknownFeatureError",
    "sentence",
    "warn",
]


class HeckmanfaError(Exception):
    """The root of every error that heckmanfa raises on purpose."""

    def __str__(self) -> str:
        # A name of a column that no call site made printable must not reach a terminal as it is.
        return printable(super().__str__())


class InputError(HeckmanfaError, ValueError):
    """An argument or the data cannot be used as given."""


class InputTypeError(InputError, TypeError):
    """An argument has a type that cannot be used."""


class MissingValueError(InputError):
    """A feature holds missing or infinite values in rows that need it."""


class NoOutcomeError(InputError):
    """No row has an observed outcome."""


class TooFewRowsError(InputError):
    """There are fewer rows than the model has coefficients."""


class ConstantOutcomeError(InputError):
    """The observed outcome has the same value in every selected row."""


class LeakageError(InputError):
    """A feature, or some together, is the outcome itself, up to a constant and a factor."""


class CollinearError(InputError):
    """Columns are constant or linear combinations of one another."""

    def __init__(self, message: str, columns: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.columns = tuple(columns)
        """positions, among the columns that were asked about, of those to leave out"""


class SeparationError(InputError):
    """Some columns predict selection perfectly, so that the probit has no finite maximum."""


class UnknownFeatureError(InputError):
    """A feature was named that the data does not have."""


class FormulaError(InputError):
    """A formula cannot be read, or asks for something that this model does not do."""


class NotIdentifiedError(InputError):
    """The quantity asked for cannot be learned from the data that the model was fitted to."""


class DataError(HeckmanfaError):
    """A data set that is not part of the package is missing, damaged or another one."""


class ClusterError(HeckmanfaError):
    """A partition of a Dask collection could not be read or worked on."""


class DeviceMemoryError(HeckmanfaError, MemoryError):
    """The memory of a graphics card is full."""


class MissingExtraError(HeckmanfaError, ImportError):
    """A package that only some parts need is not installed."""


class NoFeasibleAssignmentError(InputError):
    """No assignment of prediction features meets what the search was asked for."""


class NotSearchedError(NotIdentifiedError, AttributeError):
    """No outcome was missing, so that there is no search to tell of."""


class HeckmanfaWarning(UserWarning):
    """The root of every warning that heckmanfa gives."""


class AllObservedWarning(HeckmanfaWarning):
    """No outcome is missing, so that ordinary least squares is fitted instead."""


class NoExclusionWarning(HeckmanfaWarning):
    """Every selection feature also predicts, so that only normality identifies the model."""


class LeakageWarning(HeckmanfaWarning):
    """A feature, or some together, is the outcome itself, and no outcome is missing."""


class BinaryOutcomeWarning(HeckmanfaWarning):
    """The outcome holds only zeros and ones, which a linear model will leave."""


class TextNumbersWarning(HeckmanfaWarning):
    """A text column whose values are all numbers was taken for categories."""


class MissingFeaturesWarning(HeckmanfaWarning):
    """Some rows miss a feature: they have no prediction in a file, or no part in a fit."""


class UnderdeterminedWarning(HeckmanfaWarning):
    """There are more coefficients than rows can tell apart; those of minimum norm are given."""


class DroppedFeaturesWarning(HeckmanfaWarning):
    """Columns (and for separation, rows) were left out as the caller asked."""


class FrequencyWeightWarning(HeckmanfaWarning):
    """Frequency weights make the rows count ten times or more: they may be sampling weights."""


class FewClustersWarning(HeckmanfaWarning):
    """A cluster covariance rests on fewer than 40 clusters."""


class RhoOutsideWarning(HeckmanfaWarning):
    """The two-step estimate of rho lies outside (-1, 1)."""


class SecondMaximumWarning(HeckmanfaWarning):
    """The likelihood has another, higher maximum than the one reported."""


class ConvergenceWarning(HeckmanfaWarning):
    """An iteration stopped before it converged."""


class SearchWarning(HeckmanfaWarning):
    """A search stopped early, or started where it can hardly move."""


class CovarianceWarning(HeckmanfaWarning):
    """The estimated covariance is not positive semi-definite, or its information matrix is not."""


def sentence(kind: type[Exception]) -> str:
    """Say what an error or a warning is: the first line of its docstring."""
    return str(kind.__doc__).strip().splitlines()[0]


def warn(message: str, category: type[HeckmanfaWarning]) -> None:
    """Give a warning that points at the line of the caller's that called into this package."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("heckmanfa"):
        level, frame = level + 1, frame.f_back
    warnings.warn(printable(message), category, stacklevel=level)
