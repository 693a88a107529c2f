"""Doubly robust estimates under missingness at random, with any models of outcome and selection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from heckmanfa.data.arrays import Array, Floats, on_host
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.columns.features import FeatureTable, linear, resolve
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import ArrayRows, Matrix
from heckmanfa.data.survey import Survey
from heckmanfa.errors import AllObservedWarning, InputError, warn
from heckmanfa.estimators.baselines import ObservedRegressor, RowsRead
from heckmanfa.estimators.weighing import Weighing
from heckmanfa.fit import Origin
from heckmanfa.inference.cross_fitting import CrossFit, KnownRows
from heckmanfa.inference.doubly_robust import GroupMeans, Pseudo, estimate
from heckmanfa.model.equations import check_prediction
from heckmanfa.model.moments import gather_moments
from heckmanfa.text.option_types import CovType, OnProblem, WeightKind
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted


class DoublyRobust(Weighing, ObservedRegressor):
    """Means, differences and linear coefficients of everyone, by augmented weighting.

    Consistent if outcomes are missing at random given the features, every row has a chance to be
    selected, and one of two models is right: that of the outcome, or that of selection. It does not
    correct for selection on unobservables.

    Parameters
    ----------
    prediction_features : sequence of str, int or bool, optional
        Columns of the linear projection, by names, positions or a mask; None is all of X's.
    selection_features : sequence of str, int or bool, optional
        Columns that both models use besides; None is all of X's. Given these and the prediction
        features, outcomes are assumed to be missing at random.
    over : str or int, optional
        A column of X that is a category, or has two values: means of its groups are estimated,
        and their differences from that of the first.
    outcome_model : regressor, optional
        Any scikit-learn regressor, fitted to rows with an outcome. None is least squares.
    selection_model : classifier, optional
        Any scikit-learn classifier with ``predict_proba``, fitted to who is selected. None is a
        probit.
    n_folds : int
        Each row's outcome and chance are predicted by models fitted to the other folds. Clusters
        are in one fold. With two clusterings, each has so many folds, and models are fitted to the
        rows that are in another fold of both: ``n_folds`` squared times.
    random_state : int, Generator, RandomState or None
        Who is in which fold.
    clip, trim, cov_type, weight_kind
        As in `InverseProbabilityWeighted`. A smaller probability than ``trim`` leaves a row out
        whether or not it has an outcome.
    on_collinear : {"error", "drop"}
        As in `Heckman`, of the prediction features.
    categorical_features, reference, unknown
        As in `Heckman`.

    Attributes
    ----------
    mean_ : float
        The mean outcome of everyone.
    coef_, intercept_ : ndarray of shape (K,), float
        The best linear projection of everyone's outcome on the prediction features.
    effective_rows_, max_weight_, n_clipped_, n_trimmed_
        As in `InverseProbabilityWeighted`.
    prediction_features_, dropped_features_, row_counts_, n_selected_, support_
        As in `NaiveOLS`.

    Notes
    -----
    Standard errors are those of influence functions, which allow for leverage, and tests and
    intervals use t, as in `InverseProbabilityWeighted`. Linear coefficients describe the average
    outcome of everyone even where it is not linear. A frequency weight of 2 counts a row twice in
    all sums, but both copies are in one fold. Rows must be in memory.

    References
    ----------
    Chernozhukov, V. et al. (2018). Double/debiased machine learning for treatment and structural
    parameters. The Econometrics Journal 21, C1-C68.

    Examples
    --------
    >>> from heckmanfa import DoublyRobust
    >>> from heckmanfa.datasets import load_mroz
    >>> mroz = load_mroz()
    >>> z = mroz[["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]]
    >>> model = DoublyRobust(["educ"], random_state=0).fit(z, mroz["lwage"])
    >>> model.tidy()["term"].tolist()
    ['Everyone', 'Intercept', 'educ']
    """

    coef_: Floats
    intercept_: float
    mean_: float
    n_clipped_: int
    n_trimmed_: int
    max_weight_: float
    effective_rows_: float
    dropped_features_: list[Any]
    _reference: str

    assumes: ClassVar[str] = (
        "outcomes are missing at random given all features, each row had a chance to be observed, "
        "and the model of the outcome or that of selection is right"
    )
    title: ClassVar[str] = "Doubly robust estimates"

    def __init__(
        self,
        prediction_features: Any = None,
        selection_features: Any = None,
        *,
        over: Any = None,
        outcome_model: Any = None,
        selection_model: Any = None,
        n_folds: int = 5,
        random_state: Any = None,
        clip: float = 50.0,
        trim: float | None = None,
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def fit(
        self,
        X: Any,
        y: Any = None,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Predict by both models, and average what they say; arguments are as in `Heckman.fit`."""
        self._fit_rows(X, y, selected, sample_weight, groups)
        return self

    @classmethod
    def _formula_kind(cls) -> dict[str, bool]:
        return {"everywhere": True}

    def _solved(
        self,
        X: Any,
        y: Any,
        selected: Any,
        sample_weight: Any,
        groups: Any = None,
        design: FormulaDesign | None = None,
        origin: Origin | None = None,
    ) -> dict[str, Any]:
        read = self._read(
            *(on_host(X), on_host(y), on_host(selected), on_host(sample_weight)),
            self.selection_features,
            groups=on_host(groups),
            sampling=self._sampling,
            everywhere=True,
            also=() if self.over is None else [self.over],
            formulas=origin,
        )
        return self._estimate(read)

    def _estimate(self, read: RowsRead) -> dict[str, Any]:
        """Return the attributes of the fit."""
        k = read.table.shape[1]
        over = () if self.over is None else resolve(read.table, [self.over], "over")
        columns = sorted({*read.selection, *read.prediction, *over})
        read.refuse_leakage(gather_moments(read.sample.rows, columns, k, None))
        rows = KnownRows.of(read.sample.rows, columns)
        pseudo = self._pseudo(read, rows, read.table.labels(columns))
        if not pseudo.kept.any():
            raise InputError(
                f"trim={self.trim} leaves no row: no probability of selection is as large. "
                "Lower it."
            )
        kept = pseudo.kept
        features = np.zeros((int(kept.sum()), k))
        features[:, columns] = rows.features[kept]
        scored = ArrayRows(
            Matrix(features),
            pseudo.values[kept],
            np.ones(len(features), dtype=bool),
            None if rows.weight is None else rows.weight[kept],
            None if rows.group is None else rows.group[kept],
        )
        groups = self._groups(read, over, features)
        moments = gather_moments(scored, columns, k, None)
        prediction, dropped = read.prediction, list[int]()
        if len(prediction) < len(features):
            prediction, dropped = check_prediction(
                moments, prediction, read.labels, self.on_collinear
            )
        kind = self._kind(read)
        solved = estimate(scored, moments, prediction, groups, kind)
        coef = np.zeros(k)
        coef[list(prediction)] = solved.projection[1:]
        terms = [
            *(("mean", name) for name in ("Everyone", *groups.names)),
            *(("difference", name) for name in groups.names[1:]),
            *read.terms("prediction", prediction),
        ]
        overlap = pseudo.overlap
        return {
            **read.attributes(prediction),
            "_estimates": self._estimated(terms, solved.values, solved.uncertainty, kind, scored),
            "_overlap": overlap,
            "_reference": groups.names[0] if groups.names else "",
            "dropped_features_": read.columns.names_of(dropped),
            "coef_": coef,
            "intercept_": float(solved.projection[0]),
            "mean_": float(solved.values[0]),
            "n_clipped_": 0 if overlap is None else overlap.n_capped,
            "n_trimmed_": 0 if overlap is None else overlap.n_low,
            "max_weight_": 1.0 if overlap is None else overlap.largest,
            "effective_rows_": moments.n_selected if overlap is None else overlap.effective,
        }

    def _pseudo(self, read: RowsRead, rows: KnownRows, labels: list[str]) -> Pseudo:
        """Return the pseudo-outcomes: the outcomes themselves if none is missing."""
        cross = CrossFit(self.outcome_model, self.selection_model, int(self.n_folds), labels)
        cross.check(weighted=rows.weight is not None)
        if read.sample.all_selected:
            warn(
                f"no outcome is missing among the {read.counts['selected']} rows, so neither "
                "model is needed: plain means and least squares are computed.",
                AllObservedWarning,
            )
            return Pseudo(rows.outcome, np.ones(len(rows.outcome), dtype=bool), None)
        expected, chance = cross.predict(rows, generator(self.random_state), read.sample.cells)
        return Pseudo.of(rows, expected, chance, self._bounds, sampling=self._sampling)

    def _groups(self, read: RowsRead, over: Any, features: Floats) -> GroupMeans:
        """Return who is in which group of the column ``over``."""
        if self.over is None:
            return GroupMeans()
        (name,) = dict.fromkeys(read.table.sources(over))
        encoding = read.columns.encoding
        levels = None if encoding is None else encoding.levels.get(name)
        if levels is None:
            values = features[:, over[0]]
            found = np.unique(values)
            if len(found) != 2:
                raise InputError(
                    f"{option('over')} names {quoted(name)}, which has {len(found)} values: groups "
                    "are those of a category or of two values. Name it in "
                    f"{option('categorical_features')}, or "
                    "cut it into levels."
                )
            names = [f"{name}[{value:g}]" for value in found]
            return GroupMeans(tuple(names), tuple(values == value for value in found))
        if len(levels) < 2:
            raise InputError(
                f"{option('over')} names {quoted(name)}, which has a single value: there are no "
                "groups to compare"
            )
        members = [features[:, place] == 1.0 for place in over]
        first = ~np.any(members, axis=0) if members else np.ones(len(features), dtype=bool)
        names = [f"{name}[{level}]" for level in levels]
        return GroupMeans(tuple(names), (first, *members))

    def _headings(self) -> Mapping[str, str]:
        return {
            "mean": "Mean outcome",
            "difference": f"Difference from the mean of {self._reference}",
            "prediction": "Linear projection of the outcome",
        }

    def _predict(self, table: FeatureTable, columns: list[int]) -> Array:
        return linear(table, columns, self.coef_) + self.intercept_

    def _share_beyond(self, X: Any) -> float:
        raise InputError(
            "DoublyRobust keeps no model of selection, so it cannot say which rows of X are unlike "
            "those with an outcome: call diagnostics() without X"
        )
