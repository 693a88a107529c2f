"""Fitting a selection model from two formulas."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from heckmanfa.data.columns.features import nearest
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.errors import InputError
from heckmanfa.estimators.base import FittedSelectionModel
from heckmanfa.text.printable import quoted

__all__ = ["FormulaModel"]


class FormulaModel(FittedSelectionModel):
    """A fitted model that can be asked for by formulas; `fit` is for a subclass to give."""

    @abstractmethod
    def fit(
        self,
        X: Any,
        y: Any,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit both equations."""

    @classmethod
    def from_formula(
        cls,
        prediction: str,
        selection: str,
        data: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        **parameters: Any,
    ) -> Self:
        """Fit the model that two formulas describe, on a data frame.

        Parameters
        ----------
        prediction : str
            The prediction equation, as in ``"log(wage) ~ educ + exper + I(exper**2)"``.
        selection : str
            The selection equation; its left side, where there is one, says who is selected
            (0 and 1, or true and false); without one, the rows with an outcome are.
        data : data frame
            pandas, Polars or PyArrow. Rows with a missing outcome are kept; rows with a missing
            regressor that they need are left out and counted in ``row_counts_``.
        sample_weight, groups : str or array_like, optional
            A column of ``data``, or one entry for each of its rows. Columns are remembered: methods
            that take a data frame later find them in it. Arrays have to be passed again.
        **parameters
            Those of `Heckman`, but for the two lists of features.

        Returns
        -------
        Heckman
            Fitted; its `predict` and other methods take frames with the formulas' variables.
            A clone of it knows the columns that the formulas made, not the formulas: in
            cross-validation, make the columns first and use `fit`.
        """
        cls._check_names(parameters)
        design = FormulaDesign.build(prediction, selection, data)
        parameters = cls._with_terms(parameters, design.prediction_terms)
        model = cls(
            prediction_features=design.prediction_columns,
            selection_features=design.selection_columns,
            **parameters,
        )
        model.fit(
            design.features,
            design.outcome,
            selected=design.selected,
            sample_weight=design.rows_of(data, sample_weight, "sample_weight"),
            groups=design.rows_of(data, groups, "groups"),
        )
        model.row_counts_["total"] = design.n_rows
        model.row_counts_["left_out_regressor_missing"] = design.n_left_out
        model._design = design.without_data()
        model._weight_column = sample_weight if isinstance(sample_weight, str) else None
        model._group_column = groups if isinstance(groups, str) else None
        return model

    @classmethod
    def _check_names(cls, parameters: dict[str, Any]) -> None:
        """Refuse parameters that formulas decide, and those that do not exist."""
        allowed = [name for name in cls._get_param_names() if not name.endswith("ion_features")]
        for name in parameters:
            if name not in allowed:
                raise InputError(
                    f"from_formula has no parameter {quoted(name)}{nearest(name, allowed)}"
                )

    @classmethod
    def _with_terms(cls, parameters: dict[str, Any], terms: dict[str, list[str]]) -> dict[str, Any]:
        """Say parameters that name terms of the prediction formula by their columns."""
        return parameters
