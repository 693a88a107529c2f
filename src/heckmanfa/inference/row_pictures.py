"""The numbers of pictures that need the rows of a fit: who is selected, overlap and residuals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_hints import MOST_ROWS, find_products
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.matrix import to_pandas
from heckmanfa.data.rows import Block, Mask, Rows, held
from heckmanfa.data.sample import read_weights
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.average_effects import mixed
from heckmanfa.inference.calibration import calibration_of
from heckmanfa.inference.class_shares import class_shares_of
from heckmanfa.inference.effect_cells import Where
from heckmanfa.inference.expectations import Estimates
from heckmanfa.inference.formula_changes import formula_rows
from heckmanfa.inference.formula_variables import level_words
from heckmanfa.inference.margins import sum_effects
from heckmanfa.inference.people import PeopleRows, Profiles, people_of
from heckmanfa.inference.rows_of_fit import (
    FitRows,
    ReadRows,
    column_or_values,
    rows_for_pictures,
    weights_of,
)
from heckmanfa.inference.selection_moves import (
    GroupMeans,
    Moved,
    Product,
    effect_ends,
    group_means,
    means_of,
    selection_effects,
)
from heckmanfa.model.expectation_parts import probability_parts
from heckmanfa.model.normal import inverse_mills
from heckmanfa.plots.class_pictures import ClassShares
from heckmanfa.plots.fit_checks import CalibrationPicture, ResidualBars, residual_bars
from heckmanfa.plots.overlap_bars import SelectionOverlap, overlap_of
from heckmanfa.plots.people_intervals import People
from heckmanfa.plots.picture import weight_words
from heckmanfa.plots.selection_rows import (
    Profile,
    SelectionChange,
    SelectionDriver,
    SelectionMargins,
    SelectionProfiles,
)
from heckmanfa.results.diagnostics import outside
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.naming import Naming, rather, said_class
from heckmanfa.results.steps import more_of, round_step
from heckmanfa.text.labels import said, switch_levels
from heckmanfa.text.wording import listed


@dataclass(frozen=True, eq=False)
class PictureRows:
    """The rows of a fit as they were passed to it, and what pictures take from them."""

    fit: Fit
    naming: Naming
    X: Any
    y: Any = None
    selected: Any = None
    sample_weight: Any = None
    derived: Mapping[str, Sequence[str]] | None = None
    """factors of each column that is a square or a product of others; None to look for such"""
    groups: Any = None
    """units of a survey, if X does not have their columns"""

    @cached_property
    def _read(self) -> tuple[Rows, ReadRows | FitRows]:
        passed = PassedRows(self.X, self.y, self.selected, self.sample_weight, self.groups)
        return rows_for_pictures(self.fit, passed)

    @property
    def in_memory(self) -> bool:
        """Whether all rows are in memory, as overlap and residuals need."""
        return self._read[0].in_memory

    @property
    def fit_rows(self) -> FitRows | None:
        """The rows as both equations have them; None without selection, or not in memory."""
        rows, read = self._read
        return read if rows.in_memory and isinstance(read, FitRows) else None

    @property
    def _design(self) -> FormulaDesign | None:
        return self._read[1].design

    @cached_property
    def _drivers(self) -> tuple[tuple[SelectionDriver, Profile], ...]:
        """Features of the selection equation with their averages.

        Those come first that move it most between rows that are one standard deviation apart.
        """
        rows, design = self._read[0], self._design
        if design is None:
            moved = moved_features(self.fit, self.naming, self._derived)
            drivers = _from_columns(self.fit, self.naming, rows, moved)
        else:
            drivers = _from_formulas(
                self.fit, self.naming, self.X, self.sample_weight, rows, design
            )
        return tuple(sorted(drivers, key=lambda pair: -_moves(*pair)))

    @cached_property
    def _derived(self) -> Mapping[str, Sequence[str]]:
        """Factors of columns that are products of others, of rows without formulas."""
        if self.derived is None:
            # Without selection, no column is in an equation that every row has.
            if not self.fit.spec.selection:
                return {}
            return _find_derived(self.fit, self.naming, self._read[0])
        return self.derived

    def people(self, evidence: Evidence, profiles: Profiles) -> People | None:
        """Return what is expected of typical rows, or of those that profiles describe."""
        return people_of(evidence, self.people_rows, profiles)

    @property
    def people_rows(self) -> PeopleRows:
        """The rows that people are taken from."""
        products: list[Product] = []
        if self._design is None:
            products = _products(self.fit, self.naming, self._derived)
        return PeopleRows(self._read[0], self.X, self._design, products)

    def shares_of_treatment(self) -> tuple[Floats, Mask, Floats | None]:
        """Return the probability of treatment of each row, who is treated, and the weights."""
        rows = self._read[0]
        treated, weight = _stacked(rows.map(_row_columns, columns=[]))
        return _probability(self.fit, rows), treated, weight

    def margins(self) -> SelectionMargins | None:
        """Return what moves the probability of being selected; None if no outcome is missing."""
        if self.fit.probit is None:
            return None
        drivers, design = tuple(driver for driver, _ in self._drivers), self._design
        names = {driver.name for driver in drivers}
        return SelectionMargins(
            drivers,
            _interval_words(self.fit, self.naming),
            # A term that is not a variable's name holds more than the variable.
            formulas=design is not None and not names.issuperset(design.selection_terms),
            equation=self.fit.family.words.selection,
        )

    def profiles(self) -> SelectionProfiles | None:
        """Return averages of selected rows and of others; None if no outcome is missing."""
        if self.fit.probit is None:
            return None
        kind = self.fit.spec.weight_kind if self._read[0].weighted else ""
        weighted = weight_words(kind, "Averages are weighted by the sampling weights.")
        return SelectionProfiles(tuple(profile for _, profile in self._drivers), weighted)

    def overlap(self) -> SelectionOverlap | None:
        """Return rows by their probability of being selected.

        None if no outcome is missing, or if the rows are not in memory.
        """
        if self.fit.probit is None or not self.in_memory:
            return None
        rows = self._read[0]
        probability = mixed(self.fit, lambda member: _probability(member, rows))
        selected, weight = _stacked(rows.map(_row_columns, columns=[]))
        beyond = outside(_index(self.fit, rows), *self.fit.index_range)
        kind, has_lambda = self.fit.spec.weight_kind, self.fit.family.has_imr
        return overlap_of(probability, selected, weight, kind, beyond, has_lambda=has_lambda)

    def residuals(self, assignment: Mask | None = None) -> ResidualBars | None:
        """Return the residuals of an assignment, (K,), or of the model itself.

        None if the rows are not in memory.
        """
        if not self.in_memory:
            return None
        fit, source = self.fit, "the model"
        intercept, coef, imr_coef = fit.intercept, fit.coef, fit.imr_coef
        if assignment is not None:
            source = "the best assignment"
            solved = fit.moments.solve(assignment)
            intercept, coef = float(solved.intercept), np.asarray(solved.coef)
            imr_coef = float(solved.imr_coef)
        columns = sorted({*np.flatnonzero(coef).tolist(), *_selecting(fit)})
        equation = (intercept, coef[columns], imr_coef)
        selection = (fit.selection_intercept, fit.selection_coef[columns])
        parts = self._read[0].map(_block_residuals, equation, selection, columns=columns)
        residuals, weight = _stacked(parts)
        return residual_bars(
            residuals,
            weight,
            fit.spec.weight_kind,
            outcome=self.naming.outcome,
            source="least squares" if fit.probit is None else source,
        )

    def class_shares(self) -> ClassShares | None:
        """Return predicted shares of ordered classes beside those observed.

        None if the rows are not in memory.
        """
        if not self.in_memory:
            return None
        return class_shares_of(self.fit, self._read[0], self.naming.outcome)

    def calibration(self) -> CalibrationPicture | None:
        """Return predicted probabilities of the selected rows beside their outcomes.

        None if the rows are not in memory.
        """
        if not self.in_memory:
            return None
        fit = self.fit
        assert fit.classes is not None
        columns = sorted({*fit.equation, *_selecting(fit)})
        equation = (fit.intercept, fit.coef[columns])
        selection = (fit.selection_intercept, fit.selection_coef[columns])
        parts = self._read[0].map(_block_chances, equation, selection, fit.rho, columns=columns)
        pairs, weight = _stacked(parts)
        return calibration_of(
            pairs[:, 0],
            pairs[:, 1],
            weight,
            positive=said_class(self.naming.outcome, fit.classes[1]),
            outcome_name=self.naming.outcome,
            weight_kind=fit.spec.weight_kind,
        )


def moved_features(fit: Fit, naming: Naming, derived: Mapping[str, Sequence[str]]) -> list[Moved]:
    """Return the features of the selection equation, in the order of X.

    The dummies of a category are one feature. A column that is a product of others moves with its
    factors, and is not a feature of its own if one of them is in the equation.
    """
    equation = _selecting(fit)
    products = _products(fit, naming, derived)
    absorbed = {
        product.column: product
        for product in products
        if product.column in equation and {*product.factors} & {*equation}
    }
    features: list[Moved] = []
    done: set[int] = set()
    for column in equation:
        if column in absorbed or column in done:
            continue
        columns: tuple[int, ...] = (column,)
        if naming.levels[column]:
            source = naming.sources[column]
            columns = tuple(
                other
                for other in equation
                if naming.levels[other] and naming.sources[other] == source
            )
        done.update(columns)
        own = [product for product in absorbed.values() if {*product.factors} & {*columns}]
        features.append(
            Moved(
                naming.sources[column],
                columns,
                tuple(naming.levels[dummy] for dummy in columns if naming.levels[dummy]),
                naming.references[column],
                tuple(own),
                tuple(_along(naming, product, column) for product in own),
            )
        )
    return features


def _along(naming: Naming, product: Product, column: int) -> str:
    """Say what moves with a column: 'its square, expersq'."""
    name = said(naming.sources[product.column], 40)
    others = [said(naming.sources[factor], 40) for factor in product.factors if factor != column]
    if others:
        return f"its product with {listed(list(dict.fromkeys(others)))}, {name}"
    what = {2: "its square", 3: "its cube"}.get(len(product.factors), "its power")
    return f"{what}, {name}"


def _selecting(fit: Fit) -> list[int]:
    return [] if fit.probit is None else sorted(int(column) for column in fit.probit.features)


def _find_derived(fit: Fit, naming: Naming, rows: Rows) -> dict[str, tuple[str, ...]]:
    """Look for squares and products among the columns of numbers, in evenly spread rows."""
    columns = [column for column in sorted(fit.spec.selection) if not naming.levels[column]]
    some = rows.pilot(MOST_ROWS).map(_block_features, columns=columns)
    values = np.concatenate(list(some))
    return find_products(values, [naming.sources[column] for column in columns])


def _block_features(block: Block) -> Floats:
    return np.asarray(block.features)


def _products(fit: Fit, naming: Naming, derived: Mapping[str, Sequence[str]]) -> list[Product]:
    """Find the columns of products and of their factors, of those that every row has."""
    known = [column for column in fit.spec.selection if not naming.levels[column]]
    place = {naming.sources[column]: column for column in known}

    def factors_of(name: str, seen: tuple[str, ...] = ()) -> list[str]:
        # The cube of a column may be known as the product of its square and itself.
        if name not in derived or name in seen:
            return [name]
        factors = derived[name]
        factors = [*factors, *factors] if len(factors) == 1 else list(factors)
        return [one for factor in factors for one in factors_of(factor, (*seen, name))]

    products = []
    for name in derived:
        factors = factors_of(name)
        if name in place and name not in factors and all(factor in place for factor in factors):
            products.append(Product(place[name], tuple(place[factor] for factor in factors)))
    return products


def _from_columns(
    fit: Fit, naming: Naming, rows: Rows, moved: Sequence[Moved]
) -> list[tuple[SelectionDriver, Profile]]:
    """Read effects and averages of columns of X, in two passes."""
    columns = sorted({column for feature in moved for column in feature.columns})
    means = means_of(rows, columns)
    place = {column: position for position, column in enumerate(columns)}
    steps = {
        column: (naming.step_of(column), bool(means.two_valued[position]))
        for column, position in place.items()
    }
    effects = selection_effects(fit, rows, moved, steps, float(means.weight.sum()))
    drivers = []
    for feature, ends in zip(moved, effects, strict=True):
        kind, changes, step = "number", [], 1.0
        for position, (column, effect) in enumerate(zip(feature.columns, ends, strict=True)):
            step, binary = steps[column]
            if feature.levels:
                kind = "category"
                words = rather(feature.name, feature.levels[position], feature.reference)
            elif binary:
                kind, words = "binary", _switched(feature.name)
            else:
                words = more_of(feature.name, step)
            changes.append(SelectionChange(words, *(100.0 * float(end) for end in effect)))
        driver = SelectionDriver(feature.name, tuple(changes), kind, feature.along, step)
        best = changes.index(driver.shown)
        level = feature.levels[best] if feature.levels else ""
        drivers.append((driver, _profile(feature.name, level, means, place[feature.columns[best]])))
    return drivers


def _from_formulas(
    fit: Fit, naming: Naming, X: Any, sample_weight: Any, rows: Rows, design: FormulaDesign
) -> list[tuple[SelectionDriver, Profile]]:
    """Read effects and averages of the variables of formulas, from the frame that has them."""
    assert design.kept is not None
    frame = to_pandas(X)
    weight = column_or_values(
        frame, weights_of(fit, frame, sample_weight, other_rows=False), "sample_weight"
    )
    kept = np.flatnonzero(design.kept)[held(rows, "this picture").used]
    frame = frame.iloc[kept].reset_index(drop=True)
    own_weight = None if weight is None else read_weights(weight, len(design.kept))[kept]
    selected, weights = _stacked(rows.map(_row_columns, columns=[]))
    estimates = Estimates.of(fit, prediction=False, selection=True)
    read = formula_rows(fit, frame, estimates, Where(), None, own_weight)
    n = len(read.changes)
    ends = effect_ends(
        fit, estimates, lambda own: sum_effects(own, ["selection"], n, read.blocks())
    )
    names = [change.term for change in read.changes]
    drivers = []
    for name in dict.fromkeys(names):
        places = [place for place, other in enumerate(names) if other == name]
        contrasts = [read.changes[place].contrast for place in places]
        averages = partial(group_means, selected=selected, weight=weights)
        drivers.append(
            _variable(name, frame[name], contrasts, 100.0 * ends[places], averages, naming)
        )
    return drivers


def _variable(
    name: str,
    values: pd.Series[Any],
    contrasts: Sequence[tuple[Any, Any] | None],
    ends: Floats,
    averages: Callable[[Floats], GroupMeans],
    naming: Naming,
) -> tuple[SelectionDriver, Profile]:
    """Return the effects of a variable of formulas, in percentage points, and its averages."""
    kind, level, words, step = "category", "", [], 1.0
    furthest = contrasts[int(np.argmax(np.abs(ends[:, 0])))]
    if furthest is None or furthest in ((0, 1), (False, True)):
        means = averages(values.to_numpy(dtype=np.float64)[:, None])
    else:
        level = level_words(furthest[1])
        means = averages((values == furthest[1]).to_numpy(dtype=np.float64)[:, None])
        words = [rather(name, *map(level_words, reversed(pair))) for pair in contrasts if pair]
    if furthest is None:
        step = _step_of_variable(name, values, float(means.spread[0]), naming)
        kind, words, ends = "number", [more_of(name, step)], ends * step
    elif not level:
        kind, words = "binary", [_switched(name)]
    changes = [
        SelectionChange(change, *map(float, row)) for change, row in zip(words, ends, strict=True)
    ]
    driver = SelectionDriver(name, tuple(changes), kind, step=step)
    return driver, _profile(name, level, means, 0)


def _moves(driver: SelectionDriver, profile: Profile) -> float:
    """Return how far a feature moves the probability: a number, by one standard deviation."""
    steps = profile.spread / driver.step if driver.kind == "number" else 1.0
    return float(np.nan_to_num(abs(driver.shown.estimate) * steps))


def _profile(name: str, level: str, means: GroupMeans, position: int) -> Profile:
    return Profile(
        name,
        level,
        selected=float(means.mean[1, position]),
        unselected=float(means.mean[0, position]),
        overall=float(means.overall[position]),
        spread=float(means.spread[position]),
    )


def _step_of_variable(name: str, values: pd.Series[Any], spread: float, naming: Naming) -> float:
    """Return the step of a variable: that of its own column, unless only other terms hold it."""
    if name in naming.sources:
        return naming.step_of(naming.sources.index(name))
    return round_step(spread, whole=bool((values.dropna() % 1 == 0).all()))


def _switched(column: str) -> str:
    one, zero = switch_levels(column)
    return f"{one} rather than {zero}"


def _interval_words(fit: Fit, naming: Naming) -> str:
    if fit.spec.cov_type == "cluster":
        by = " and ".join(said(name, 40) for name in naming.clusterings)
        return f"95% intervals clustered{f' by {by}' if by else ''}"
    if fit.spec.cov_type == "survey":
        return "95% intervals by the design of the survey"
    return "robust 95% intervals" if fit.spec.cov_type == "robust" else "95% intervals"


def _row_columns(block: Block) -> tuple[Mask, Floats | None]:
    return block.selected, block.weight


def _probability(fit: Fit, rows: Rows) -> Floats:
    return np.asarray(fit.link.chance(_index(fit, rows)))


def _index(fit: Fit, rows: Rows) -> Floats:
    """Return the selection index of every row."""
    columns = _selecting(fit)
    equation = fit.selection_intercept, fit.selection_coef[columns]
    return np.concatenate(list(rows.map(_block_index, *equation, columns=columns)))


def _block_index(block: Block, intercept: float, coef: Floats) -> Floats:
    return np.asarray(intercept + block.features @ coef)


def _block_residuals(
    block: Block, equation: tuple[float, Floats, float], selection: tuple[float, Floats]
) -> tuple[Floats, Floats | None]:
    block = block.only_selected()
    intercept, coef, imr_coef = equation
    residual = block.outcome - intercept - block.features @ coef
    # Without a selection equation, the coefficient of lambda is NaN.
    if np.isfinite(imr_coef):
        index = selection[0] + block.features @ selection[1]
        residual = residual - imr_coef * inverse_mills(index)
    return np.asarray(residual), block.weight


def _block_chances(
    block: Block, equation: tuple[float, Floats], selection: tuple[float, Floats], rho: float
) -> tuple[Floats, Floats | None]:
    """Return P(y = 1 | x, s = 1) and the outcome of the selected rows of a block, (b, 2)."""
    block = block.only_selected()
    mean, index = (intercept + block.features @ coef for intercept, coef in (equation, selection))
    # Without a selection equation, every row is selected and rho is NaN.
    kind = "selected" if np.isfinite(rho) else "marginal"
    chance = probability_parts(kind, mean, index, rho).value
    return np.column_stack([chance, block.outcome]), block.weight


def _stacked(blocks: Any) -> tuple[Any, Floats | None]:
    """Join the arrays of blocks, and their weights."""
    arrays, weights = zip(*blocks, strict=True)
    weight = None if weights[0] is None else np.concatenate(weights)
    return np.concatenate(arrays), weight
