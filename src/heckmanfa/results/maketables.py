"""Models side by side in tables of the package maketables, which need not be installed.

``maketables.ETable([first, second])`` reads attributes with special names, its plug-in format.
This is the format of maketables 0.2.0; 0.1.7 was the first to have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heckmanfa.fit import Fit
from heckmanfa.results.estimates import prefixed, tidy
from heckmanfa.results.naming import EffectWords, name_on_scale, outcome_of
from heckmanfa.results.summary import likelihood_name

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = {
    "estimate": "b",
    "std_error": "se",
    "statistic": "t",
    "p_value": "p",
    "ci_low": "ci95l",
    "ci_high": "ci95u",
}
_STATISTICS = {
    "N": "n_obs",
    "n_selected": "n_selected",
    "adj_r2": "adjusted_r2",
    "aic": "aic",
    "bic": "bic",
    "ll": "log_likelihood",
    "rho": "rho",
    "sigma": "sigma",
}
_LABELS = {"n_selected": "Selected", "rho": "rho", "sigma": "sigma", "method": "Method"}
# Statistics that a binary outcome does not have.
_LINEAR = frozenset({"adj_r2", "sigma"})


def coef_table(fit: Fit) -> pd.DataFrame:
    """Return both equations and the coefficient of the inverse Mills ratio, by name.

    Terms of the selection equation have the prefix "selection.", as in `wald_test`;
    ``ETable(..., drop="selection")`` leaves them out. rho and sigma, which have no standard
    error after two steps, are among the statistics; the rho of a binary outcome has one.
    """
    table = tidy(fit, 0.95)
    if fit.family.has_imr:
        table = table[~((table["equation"] == "errors") & table["term"].isin(["rho", "sigma"]))]
    terms = zip(table["equation"], table["term"].astype(str), strict=True)
    names = [prefixed(*term) for term in terms]
    table = table.rename(columns=_COLUMNS)[list(_COLUMNS.values())]
    return table.set_axis(names, axis="index").rename_axis("Coefficient")


def statistic(fit: Fit, key: str) -> Any:
    """Return a statistic by its key, or None if the key is unknown."""
    if key in _LINEAR and not fit.family.has_imr:
        return None
    if key == "method" and fit.probit is not None:
        return {"ml": "ML", "two-step": "two-step"}[fit.spec.method]
    name = _STATISTICS.get(key)
    return None if name is None else getattr(fit, name)


def outcome_name(fit: Fit) -> str:
    """Return the left side of the prediction formula; arrays have no name.

    Of a binary outcome, it is the probability that is modelled.
    """
    if fit.family.has_classes:
        return str(EffectWords.of(fit, outcome_of(fit, "outcome")).target)
    if fit.origin.design is None:
        return name_on_scale("outcome", fit.spec.outcome_transform)
    return outcome_of(fit)


def labels(fit: Fit) -> dict[str, str]:
    """Label the statistics that maketables does not know."""
    named = {} if fit.log_likelihood is None else {"ll": likelihood_name(fit)}
    return _LABELS | named


def default_keys(fit: Fit) -> list[str]:
    """Return the statistics that are printed by default."""
    linear = ("rho", "sigma", "adj_r2") if fit.family.has_imr else ()
    return [
        *("N", "n_selected", *linear),
        *(["ll"] if fit.log_likelihood is not None else []),
        *("method", "se_type"),
    ]
