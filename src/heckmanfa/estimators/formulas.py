"""What models of two formulas share: their fit, and how they read data frames later."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats, is_dask
from heckmanfa.data.fitted_levels import levels_named
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.formula_levels import ReferenceLostError
from heckmanfa.data.group_cells import is_names
from heckmanfa.data.survey import Survey
from heckmanfa.data.survey_rows import refuse_modelled, survey_rows
from heckmanfa.errors import InputError
from heckmanfa.estimators.scoring import check_selected
from heckmanfa.fit import Origin
from heckmanfa.inference.rows_of_fit import column_or_values
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest


class FormulaModel:
    """A model that two formulas may describe, and that then reads their variables in data."""

    roles: ClassVar[tuple[str, str]] = ("prediction_features", "selection_features")
    """names of the parameters that list the features of either equation"""

    @abstractmethod
    def _fit_rows(self, *rows: Any, **formulas: Any) -> None:
        """Fit the rows that `fit` was given, or those that formulas made."""

    @property
    @abstractmethod
    def _known_origin(self) -> Origin:
        """How the rows of the fit were passed."""

    @abstractmethod
    def _weights_in(self, X: Any) -> Any:
        """Return the column of X with the weights; None if the fit had none."""

    @abstractmethod
    def _lazily(self, X: Any, method: str, name: str | list[str], **options: Any) -> Any:
        """Call a method on every partition of a Dask collection."""

    @classmethod
    def _formula_kind(cls) -> dict[str, bool]:
        """Return what `FormulaDesign.build` needs to know about the model."""
        return {}

    @classmethod
    def _reads_labels(cls) -> bool:
        return cls._formula_kind().get("labels", False)

    @classmethod
    def _of_formulas(
        cls,
        prediction: str,
        selection: str,
        data: Any,
        sample_weight: Any,
        groups: Any,
        parameters: dict[str, Any],
    ) -> Self:
        """Fit the model that two formulas describe; see `SelectionModel.from_formula`."""
        cls._check_formula_parameters(parameters)
        survey = parameters.get("cov_type")
        if isinstance(survey, Survey):
            _, sample_weight, groups = survey_rows(survey, data, sample_weight, groups)
        asked = levels_named(parameters.get("reference"))
        moved: dict[str, Any] = {}
        while True:
            design = FormulaDesign.build(
                prediction,
                selection,
                data,
                weight=sample_weight,
                reference={**moved, **asked},
                **cls._formula_kind(),
            )
            if isinstance(survey, Survey):
                named = {*design.variables(list(data.columns)), design.outcome_text}
                refuse_modelled(survey, named, data)
            columns = design.prediction_columns, design.selection_columns
            self = cls(
                **dict(zip(cls.roles, columns, strict=True)),
                **cls._with_terms(parameters, design.prediction_terms, design.selection_terms),
            )
            try:
                self._fit_rows(
                    design.features,
                    design.outcome,
                    design.selected,
                    design.rows_of(data, sample_weight, "sample_weight"),
                    design.rows_of(data, groups, "groups"),
                    design=design,
                    weight_column=sample_weight if isinstance(sample_weight, str) else None,
                    group_column=groups if isinstance(groups, str) else None,
                    group_columns=tuple(groups) if is_names(groups) else (),
                )
                return self
            except ReferenceLostError as lost:
                for name in lost.levels:
                    if name in asked or name in moved:
                        raise InputError(
                            f"{option('reference')}: {option('on_separation', 'drop')} leaves no "
                            f"row of the reference of {quoted(name)}; name another of its levels"
                        ) from lost
                moved |= lost.levels

    @classmethod
    def _check_formula_parameters(cls, names: Iterable[str]) -> None:
        """Refuse parameters that formulas replace, and those that the class does not have."""
        allowed = [
            name
            for name in sorted(signature(cls).parameters)
            if name not in cls.roles and not name.endswith(("ion_features", "categorical_features"))
        ]
        for name in names:
            if name == "categorical_features":
                raise InputError(
                    "formulas say themselves which columns are categories: text is, and C(region) "
                    f"makes one of numbers; leave out {option('categorical_features')}"
                )
            if name not in allowed:
                raise InputError(
                    f"from_formula has no parameter {quoted(name)}{nearest(name, allowed)}"
                )

    @classmethod
    def _with_terms(
        cls,
        parameters: dict[str, Any],
        terms: dict[str, list[str]],
        selection_terms: dict[str, list[str]],
    ) -> dict[str, Any]:
        """Replace terms of the formulas in parameters by their columns."""
        return parameters

    # Rows of a data frame, later. -------------------------------------------------------------

    def _on_rows(self, X: Any, method: str, name: str | list[str], **options: Any) -> Any:
        """Call a method on X, or lazily on every partition of a Dask collection."""
        if is_dask(X):
            return self._lazily(X, method, name, **options)
        return getattr(self, method)(X, **options)

    def _beside(self, X: Any, y: Any, sample_weight: Any, selected: Any) -> tuple[Any, Any, Any]:
        """Return outcome, weights and who is selected; formulas find them in the data frame."""
        origin = self._known_origin
        design = origin.design
        if design is None:
            check_selected(type(self).__name__, selected, origin.selected_given)
            return y, sample_weight, selected
        if selected is None and origin.selected_given:
            selected = self._on_rows(X, "_selected_by_formula", "selected")
        if y is None and is_dask(X):
            dtype = object if self._reads_labels() else np.float64
            y = self._lazily(X, "_outcome_by_formula", "outcome", dtype=dtype)
        elif y is None:
            y = self._outcome_by_formula(X)
        if sample_weight is None:
            sample_weight = self._weights_in(X)
        return y, column_or_values(X, sample_weight, "sample_weight"), selected

    def _outcome_by_formula(self, X: Any) -> NDArray[Any]:
        design = self._known_origin.design
        assert design is not None
        return design.outcome_of(X, labels=self._reads_labels())

    def _selected_by_formula(self, X: Any) -> Floats:
        design = self._known_origin.design
        assert design is not None
        return design.who_is_selected(X).astype(np.float64)
