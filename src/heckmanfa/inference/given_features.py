"""The prediction features as the user gives them, without a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heckmanfa.errors import NoExclusionWarning, TooFewRowsError, warn
from heckmanfa.fit import Choice, Choose, Spec
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import Selection, check_prediction, weighted_count
from heckmanfa.model.moments import Moments


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
        """Refuse or drop collinear columns, and warn if nothing is excluded."""
        prediction = [column for column in spec.prediction if column not in selection.separating]
        if moments.n_selected <= len(prediction) + 2:
            third = "rho" if spec.outcome_kind == "binary" else "the inverse Mills ratio"
            raise TooFewRowsError(
                f"{len(prediction)} prediction features, an intercept and {third} "
                f"need more than {len(prediction) + 2} selected rows; there are "
                f"{weighted_count(moments.n_selected)}"
            )
        features, dropped = check_prediction(moments, prediction, spec.labels, spec.on_collinear)
        if set(selection.probit.features) <= set(features):
            warn(
                "every selection feature also predicts: with no excluded feature, only the "
                "normality of the errors identifies the model. Leave a feature that drives "
                "selection alone out of prediction_features.",
                NoExclusionWarning,
            )
        return Choice(tuple(features), tuple(dropped))
