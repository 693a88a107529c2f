"""Every error and warning that heckmanfa raises: one root each, one sentence per class."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from heckmanfa.text.option_words import told
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
    "NormalTailsWarning",
    "NotIdentifiedError",
    "NotSearchedError",
    "RhoOutsideWarning",
    "RhoUncertainWarning",
    "RowLabelsWarning",
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


class _Told:
    """What is told in the words of its reader: see `heckmanfa.text.option_words`."""

    args: tuple[Any, ...]

    def __str__(self) -> str:
        # Column names that no call site escaped must not reach a terminal unescaped.
        return printable(told(super().__str__()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @property
    def words(self) -> str:
        """The message with its options as values."""
        return str(self.args[0]) if self.args else ""


class HeckmanfaError(_Told, Exception):
    """Base class of every error that heckmanfa raises on purpose."""


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
    """A feature, or a combination of features, reproduces the outcome exactly."""


class CollinearError(InputError):
    """Columns are constant or linear combinations of one another.

    The message is the reason, followed by advice for the caller.
    """

    def __init__(self, reason: str, advice: str = "", columns: Sequence[int] = ()) -> None:
        super().__init__(f"{reason}. {advice}" if advice else reason)
        self.reason = reason
        self.columns = tuple(columns)
        """positions of the columns to leave out, among those checked"""


class SeparationError(InputError):
    """Some columns decide selection or a binary outcome, so the probit has no finite maximum."""

    def __init__(self, message: str, columns: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.columns = tuple(columns)
        """positions of these columns among those of the model"""


class UnknownFeatureError(InputError):
    """The data has no feature of that name."""


class FormulaError(InputError):
    """A formula cannot be parsed, or asks for something that this model does not support."""


class NotIdentifiedError(InputError):
    """The data that the model was fitted to do not identify the requested quantity."""


class DataError(HeckmanfaError):
    """An external data set is missing, damaged or not the expected one."""


class ClusterError(HeckmanfaError):
    """A partition of a Dask collection could not be read or processed."""


class DeviceMemoryError(HeckmanfaError, MemoryError):
    """The GPU is out of memory."""


class OutOfMemoryError(HeckmanfaError, MemoryError):
    """There is not enough memory for the data."""


class MissingExtraError(HeckmanfaError, ImportError):
    """An optional dependency is not installed."""


class NoFeasibleAssignmentError(InputError):
    """No assignment of prediction features satisfies the search's constraints."""


class NotSearchedError(NotIdentifiedError, AttributeError):
    """No outcome was missing, so no search was run."""


class NotSavedError(InputError, AttributeError):
    """A model file was saved without a part of its model."""

    def __init__(self, part: str) -> None:
        super().__init__(
            f"{part} was left out when the model was saved with candidates=False: save it with "
            "candidates=True, or fit it again"
        )
        self.part = part

    def __reduce__(self) -> tuple[type[NotSavedError], tuple[str]]:
        """Return how to make the error again in another process."""
        return type(self), (self.part,)


class HeckmanfaWarning(_Told, UserWarning):
    """Base class of every warning that heckmanfa issues."""


class AllObservedWarning(HeckmanfaWarning):
    """No outcome is missing, so least squares or a plain probit is fitted instead."""


class NoExclusionWarning(HeckmanfaWarning):
    """Every selection feature also predicts, so only normality identifies the model."""


class LeakageWarning(HeckmanfaWarning):
    """Features reproduce the outcome exactly, which suggests leakage."""


class BinaryOutcomeWarning(HeckmanfaWarning):
    """The outcome takes two values, so a linear model can predict outside their range."""


class TextNumbersWarning(HeckmanfaWarning):
    """A text column that holds only numbers was treated as categorical."""


class MissingFeaturesWarning(HeckmanfaWarning):
    """Some rows lack a feature, so they get no prediction or are left out of the fit."""

    lost: Any = None
    """the rows that were left out, as a `LostRows`, if they are counted by column"""


class UnderdeterminedWarning(HeckmanfaWarning):
    """Too few rows determine coefficients: these are of minimum norm, or have no standard error."""


class DroppedFeaturesWarning(HeckmanfaWarning):
    """Columns (and for separation, rows) were left out, as requested."""


class FrequencyWeightWarning(HeckmanfaWarning):
    """Frequency weights multiply the row count by ten or more: they may be sampling weights."""


class FewClustersWarning(HeckmanfaWarning):
    """A cluster covariance rests on fewer than 40 clusters."""


class RowLabelsWarning(HeckmanfaWarning):
    """Rows without labels were matched by position with rows that have labels."""


class RhoOutsideWarning(HeckmanfaWarning):
    """The two-step estimate of rho lies outside (-1, 1)."""


class RhoUncertainWarning(HeckmanfaWarning):
    """Maximum likelihood puts rho near 1 or -1, or the likelihood is flat in rho."""


class NormalTailsWarning(HeckmanfaWarning):
    """Errors that may be t are best described as normal: their degrees of freedom are infinite."""


class SecondMaximumWarning(HeckmanfaWarning):
    """The likelihood has another, higher maximum than the one reported."""


class ConvergenceWarning(HeckmanfaWarning):
    """An iteration stopped before it converged."""


class SearchWarning(HeckmanfaWarning):
    """A search stopped early, or started where it can hardly move."""


class CovarianceWarning(HeckmanfaWarning):
    """The covariance or information matrix is not positive semi-definite."""


def sentence(kind: type[Exception]) -> str:
    """Return the first line of an error's or warning's docstring, which says what it means."""
    return str(kind.__doc__).strip().splitlines()[0]


def warn(message: str, category: type[HeckmanfaWarning], **values: Any) -> None:
    """Issue a warning that points at the user's line that called into this package.

    The warning has ``values`` as attributes, for code that records it.
    """
    warning = category(message)
    for name, value in values.items():
        setattr(warning, name, value)
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("heckmanfa"):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Name the extra to install if an import fails; ``what`` says who needs which package."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{what}, which is not installed: pip install 'heckmanfa[{extra}]'"
        ) from error
