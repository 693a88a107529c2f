"""The prediction features as the user gives them, without a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heckmanfa.errors import NoExclusionWarning, TooFewRowsError, warn
from heckmanfa.fit import Choice, Choose, Spec
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import Selection, check_prediction, weighted_count
from heckmanfa.model.moments import Moments
from heckmanfa.text.option_words import IN_NEVER, OUT_OF_PREDICTION

COULD_IDENTIFY = f"A feature that drives selection alone, named {IN_NEVER}, would identify it."


def warn_no_exclusion(what: str, advice: str) -> None:
    """Warn that nothing is excluded; ``what`` says of every selection feature that it predicts."""
    warn(
        f"every selection feature {what}: with no excluded feature, only the normality of the "
        f"errors identifies the model. {advice}",
        NoExclusionWarning,
    )


@dataclass(frozen=True)
class GivenFeatures(Choose):
    """Uses all columns that may predict: the choice of `Heckman`."""

    def __call__(
        self,
        spec: Spec,
        selection: Selection,
        moments: Moments,
        kind: CovarianceKind,
        random_state: Any = None,
    ) -> Choice:
        """Refuse or drop collinear columns, and warn if nothing is excluded.

        A rho that is held at a value needs no exclusion.
        """
        prediction = [column for column in spec.prediction if column not in selection.separating]
        held = spec.rho is not None
        n_least = len(prediction) + (1 if held else 2)
        if moments.n_selected <= n_least:
            third = spec.family.words.correction_parameter
            what = " and an intercept" if held else f", an intercept and {third}"
            raise TooFewRowsError(
                f"{len(prediction)} prediction features{what} need more than {n_least} selected "
                f"rows; there are {weighted_count(moments.n_selected)}"
            )
        features, dropped = check_prediction(moments, prediction, spec.labels, spec.on_collinear)
        if not held and set(selection.probit.features) <= set(features):
            warn_no_exclusion(
                "also predicts", f"Leave a feature that drives selection alone {OUT_OF_PREDICTION}."
            )
        return Choice(tuple(features), tuple(dropped))
