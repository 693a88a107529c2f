"""Models side by side in tables of the package maketables, which need not be installed.

``maketables.ETable([first, second])`` asks each model for what it prints by special names, its
plug-in format. This is the format of maketables 0.2.0; 0.1.7 was the first to have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from heckmanfa.results import coefficients as results

if TYPE_CHECKING:
    import pandas as pd

    from heckmanfa.estimators.base import FittedSelectionModel

__all__ = ["MaketablesModel"]

_COLUMNS = {
    "estimate": "b",
    "std_error": "se",
    "statistic": "t",
    "p_value": "p",
    "ci_low": "ci95l",
    "ci_high": "ci95u",
}
# "selection:educ" would be read as an interaction.
_PREFIX = {"prediction": "", "selection": "selection.", "errors": ""}
_LABELS = {
    "n_selected": "Selected",
    "rho": "rho",
    "sigma": "sigma",
    "method": "Method",
}


class MaketablesModel:
    """What maketables asks of a fitted model."""

    @property
    def __maketables_coef_table__(self) -> pd.DataFrame:
        """Both equations and the coefficient of the inverse Mills ratio, by name.

        Terms of the selection equation have "selection." before their name, as in `wald_test`;
        ``ETable(..., drop="selection")`` leaves them out. rho and sigma, which have no standard
        error after two steps, are among the statistics.
        """
        model = _fitted(self)
        table = results.tidy(model, 0.95)
        table = table[~((table["equation"] == "errors") & table["term"].isin(["rho", "sigma"]))]
        names = table["equation"].map(_PREFIX) + table["term"].astype(str)
        table = table.rename(columns=_COLUMNS)[list(_COLUMNS.values())]
        table.index = names.rename("Coefficient")
        return table

    def __maketables_stat__(self, key: str) -> Any:
        """Return a statistic by its key, or None where there is none of that name."""
        model = _fitted(self)
        if key == "method" and model._probit is not None:
            return {"ml": "ML", "two-step": "two-step"}[model.method]
        name = {
            "N": "n_obs_",
            "n_selected": "n_selected_",
            "adj_r2": "adjusted_r2_",
            "aic": "aic_",
            "bic": "bic_",
            "ll": "log_likelihood_",
            "rho": "rho_",
            "sigma": "sigma_",
        }.get(key)
        return None if name is None else getattr(model, name)

    @property
    def __maketables_depvar__(self) -> str:
        """The left side of the prediction formula; a model from arrays does not know its name."""
        model = _fitted(self)
        if model._design is None:
            return "outcome"
        return model._design.texts[0].split("~")[0].strip()

    @property
    def __maketables_vcov_info__(self) -> dict[str, Any]:
        """How standard errors were computed."""
        return {"vcov_type": _fitted(self).cov_type or "classical", "clustervar": None}

    @property
    def __maketables_stat_labels__(self) -> dict[str, str]:
        """Words for the statistics that maketables does not know."""
        model = _fitted(self)
        named = {} if model.log_likelihood_ is None else {"ll": results.likelihood_name(model)}
        return _LABELS | named

    @property
    def __maketables_default_stat_keys__(self) -> list[str]:
        """Statistics that are printed unless others are asked for."""
        has_likelihood = _fitted(self).log_likelihood_ is not None
        return [
            *("N", "n_selected", "rho", "sigma", "adj_r2"),
            *(["ll"] if has_likelihood else []),
            *("method", "se_type"),
        ]


def _fitted(model: Any) -> FittedSelectionModel:
    check_is_fitted(model)
    found: FittedSelectionModel = model
    return found
