"""Types of the options that the model and the rooms above it share."""

from __future__ import annotations

from typing import Literal

from sklearn.utils._param_validation import StrOptions

from heckmanfa.data.columns.encoding import Unknown as Unknown
from heckmanfa.text.option_types import Method as Method
from heckmanfa.text.option_types import OnProblem as OnProblem
from heckmanfa.text.option_types import OutcomeKind as OutcomeKind
from heckmanfa.text.option_types import OutcomeTransform as OutcomeTransform
from heckmanfa.text.option_types import WeightKind as WeightKind

CovType = Literal["classical", "robust", "cluster"]
Standardize = bool | Literal["features"]
"""whether to centre and scale features and outcome, only the features, or nothing"""


def one_of(*choices: str) -> StrOptions:
    """Return scikit-learn's check of a parameter, whose message lists the choices in this order."""
    # A view of keys is a set that keeps its order.
    return StrOptions(dict.fromkeys(choices).keys())
