"""Set-ups that tests of results share."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaWarning

PREDICT = ["educ", "exper", "city"]
SELECT = ["educ", "exper", "age", "kids5", "nwifeinc"]


def fitted(model, *rows, **more):
    """Fit a model, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return model.fit(*rows, **more)


def earns_four():
    """Features of Mroz's women, and whether who works earns four dollars or more."""
    frame = load_mroz()
    wage = np.exp(frame["lwage"])
    y = pd.Series(np.where(wage.isna(), np.nan, (wage >= 4.0) * 1.0), name="wage4")
    return frame[["educ", "exper", "city", "age", "kids5", "nwifeinc"]], y


def on_one_line(printed):
    """Return a printed result without its line breaks."""
    return " ".join(str(printed).split())
