"""P1, the forest: what goes with the outcome, by several models; and coefficients of any models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from heckmanfa.errors import InputError
from heckmanfa.plots.picture import Picture, first_lines, wanted_terms
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import SERIES, Axis, Interval, Mark, Point, Row, Rows, Rule, Shape
from heckmanfa.plots.svg_shapes import NARROW, WIDE, label_cells
from heckmanfa.text.labels import label, said
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import cut, quoted
from heckmanfa.text.table import MOST_LINES, Column, LegendItem, Table
from heckmanfa.text.wording import PERCENT, plural, written_in

MOST_ROWS = 5
"""Rows that are drawn; the table holds all."""

# Characters of the alternative at most.
_ALT = 270
_ROW, _ROW_INCHES, _MARGIN_INCHES = 52.0, 0.42, 1.05
# Between the marks of a row, in its height.
_APART = 13.0 / _ROW
_PAD = 0.1
# Characters of a step below a name, in a wide and in a narrow picture.
_BELOW = 24, 16
# Of coefficients: inches of a row for each model, and its least height in px.
_MODEL_INCHES, _LINE = 0.09, 28.0
# Of the height of a row, what the dots of several models share.
_SPREAD = 0.7
# Their number and that of colours have no common factor, so a pair repeats only after 28 models.
_SHAPES: tuple[Shape, ...] = ("circle", "square", "triangle", "diamond")
_MODELS = {0: "", 1: "", 2: ", by two models", 3: ", by three models"}


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95% interval; NaN where a number is not known."""

    value: float
    low: float
    high: float
    unit: str = ""
    """what they are in: "percentage points", "percent", or the units of the outcome"""

    @property
    def is_known(self) -> bool:
        """Whether there is an estimate."""
        return math.isfinite(self.value)

    @property
    def words(self) -> tuple[str, str]:
        """The estimate and its interval, with one number of decimals; empty where unknown."""
        value, low, high = written_in(self.unit)(self.value, self.low, self.high)
        return value, f"{low} to {high}" if low and high else ""

    def __str__(self) -> str:
        value, ends = self.words
        return f"{value} ({ends})" if ends else value


_UNKNOWN = Estimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Series:
    """A model whose estimates are drawn."""

    label: str
    cls: str
    """its colour: "this", "ols" or "all" """
    shape: Shape
    """its mark: "circle", "diamond" or "square" """


@dataclass(frozen=True)
class ForestRow:
    """A feature, or a level of a category."""

    name: str
    """of the feature"""
    change: str
    """what the effect is of: "one more year", "1 rather than 0", "north rather than south" """
    estimates: tuple[Estimate, ...]
    """of each series"""
    share: str = ""
    """how sure it is to predict: "41%", or "12 of 100" halves; empty if that is not known"""
    role: str = ""
    is_sure: bool = True
    """whether its mark is filled"""
    is_switch: bool = False
    """whether its effect is of a change from 0 to 1, or of a level"""
    level: str = ""
    """of a category"""
    is_leading: bool = True
    """whether it stands for its feature; the other levels of a category are in the table only"""

    @property
    def is_known(self) -> bool:
        """Whether a model has an estimate."""
        return any(estimate.is_known for estimate in self.estimates)


@dataclass(frozen=True)
class Forest(Picture):
    """Effects of features by several models, in one unit, in the order of the picture."""

    kind: ClassVar[str] = "forest"

    outcome: str
    series: tuple[Series, ...]
    rows: tuple[ForestRow, ...]
    """the first few are drawn, and the table holds all"""
    about: str
    """what the estimates are, in a sentence"""
    order: str = "likeliest"
    """what the features that are drawn are, as in "the 5 likeliest" """
    hollow: str = ""
    """what a hollow mark means"""
    halves: bool = False
    """whether shares count the halves of an honest search that chose a feature"""
    unit: str = ""
    """what estimates are in, such as "percentage points"; empty in units of the outcome"""

    @property
    def drawn(self) -> tuple[ForestRow, ...]:
        """The rows of the picture; without an estimate there is nothing to draw."""
        return tuple(row for row in self.rows if row.is_leading and row.is_known)[:MOST_ROWS]

    @property
    def shown(self) -> tuple[Series, ...]:
        """The models with a mark in the picture."""
        return tuple(
            model
            for place, model in enumerate(self.series)
            if any(row.estimates[place].is_known for row in self.drawn)
        )

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return sum(row.is_leading for row in self.rows)

    def scale(self, start: float, end: float) -> Scale:
        """Return the axis: zero and the intervals of the first two series, a tenth beyond them.

        Rows without either count with what they have.
        """
        ends = [0.0]
        for row in self.drawn:
            two = [estimate for estimate in row.estimates[:2] if estimate.is_known]
            for estimate in two or row.estimates:
                ends += (estimate.value, estimate.low, estimate.high)
        return Scale.over(ends, start, end, pad=_PAD).to_ticks()

    # Words. -----------------------------------------------------------------------------------

    def _title(self) -> str:
        by = _MODELS.get(len(self.shown), f", by {len(self.shown)} models")
        return f"What goes with {said(self.outcome)}{by}"

    def _look(self) -> str:
        shape = self.shown[0].shape if self.shown else "mark"
        return f"Look at lines with a {shape}: clear of zero, their direction is clear."

    def _legend(self) -> tuple[LegendItem, ...]:
        return tuple(LegendItem(model.label, f"-{model.shape}", model.cls) for model in self.shown)

    def _printed_legend(self) -> tuple[LegendItem, ...] | None:
        return None if len(self.shown) > 1 else ()

    def _alt(self) -> str:
        start = f"Forest plot for {cut(label(self.outcome), 30)}."
        if not self.drawn:
            return f"{start} No feature may predict."
        row = self.drawn[0]
        estimates = [
            f"{estimate} by {model.label}"
            for model, estimate in zip(self.series, row.estimates, strict=True)
            if estimate.is_known
        ]
        unit = f"in {self.unit}, " if self.unit and self.unit != PERCENT else ""
        finding = f" {cut(label(row.name), 30)}, {cut(row.change, 50)}: {unit}"
        for many in range(len(estimates), 0, -1):
            text = f"{start}{finding}{'; '.join(estimates[:many])}."
            if len(text) <= _ALT:
                return text
        return f"{start}{finding}not known."

    def _caption(self) -> str:
        sentences = [self.about]
        if self._runs_on():
            sentences.append("An arrow: the interval runs on.")
        if self.hollow and any(map(self._has_hollow, self.drawn)):
            sentences.append(f"Hollow: {self.hollow}.")
        n_known = sum(row.is_leading and row.is_known for row in self.rows)
        if n_known > len(self.drawn):
            sentences.append(f"The {len(self.drawn)} {self.order} of {self.n_features:,} features.")
        elif self.n_features > n_known:
            have = "has an estimate" if n_known == 1 else "have an estimate"
            sentences.append(f"{n_known} of {plural(self.n_features, 'feature')} {have}.")
        sentences.append(first_lines(len(self.rows), "pictures().forest.rows"))
        return " ".join(filter(None, sentences))

    def _has_hollow(self, row: ForestRow) -> bool:
        """Whether a row has a hollow mark: of a model whose marks are circles, inside the axis."""
        axis = self.scale(0.0, 1.0)
        return not row.is_sure and any(
            model.shape == "circle" and estimate.is_known and not axis.clipped(estimate.value)[1]
            for model, estimate in zip(self.series, row.estimates, strict=True)
        )

    def _runs_on(self) -> bool:
        axis = self.scale(0.0, 1.0)
        return any(
            axis.clipped(end)[1]
            for row in self.drawn
            for estimate in row.estimates
            for end in (estimate.low, estimate.high)
        )

    def _table(self) -> Table:
        """Return the estimates; columns of words that would be empty are left out."""
        columns = [
            Column("Feature", is_number=False, is_feature=True),
            Column("Change", is_number=False),
        ]
        shares, roles = any(row.share for row in self.rows), any(row.role for row in self.rows)
        if shares:
            columns.append(Column("Chosen in halves" if self.halves else "Chance"))
        if roles:
            columns.append(Column("Role", is_number=False))
        for item in self.series:
            columns += (Column(title, group=item.label) for title in ("Estimate", "95% interval"))
        lines = []
        for row in self.rows[:MOST_LINES]:
            line = [Name(row.name).key, row.change, *[row.share] * shares, *[row.role] * roles]
            lines.append((*line, *(words for item in row.estimates for words in item.words)))
        unit = f", in {self.unit}" if self.unit else ""
        caption = f"What goes with {said(self.outcome)}: estimates with 95% intervals{unit}"
        return Table(tuple(columns), tuple(lines), caption, "forest-table")

    def _share(self, row: ForestRow) -> str:
        """Say how sure it is that a feature predicts."""
        if not row.share:
            return ""
        return f"in {row.share}" if self.halves else f"chance {row.share}"

    def _label(self, row: ForestRow) -> str:
        """Return the words of a row's tooltip, a line each."""
        lines = [said(row.name) + (f": {row.role}" if row.role else "")]
        if row.share:
            lines.append(f"chosen in {row.share} halves" if self.halves else f"chance {row.share}")
        lines.append(f"{row.change}:")
        lines += [
            f"{estimate} by {model.label}"
            for model, estimate in zip(self.series, row.estimates, strict=True)
            if estimate.is_known
        ]
        return "\n".join(lines)

    def _body(self) -> Rows:
        """Return a row of estimates for each feature, those of a model on one line."""
        rows = []
        for row in self.drawn:
            under = [row.change, self._share(row)]
            marks, words = tuple(self._marks(row)), tuple(filter(None, under))
            rows.append(Row(label(row.name), marks, self._label(row), row.name, under=words))
        axis, narrow = self.scale(0.0, 1.0), self._unit(NARROW)
        x = Axis(axis.low, axis.high, self._unit(WIDE), narrow, narrow, "signed")
        inches = _MARGIN_INCHES + _ROW_INCHES * max(len(rows), 1)
        return Rows(x, tuple(rows), _ROW, inches, (Rule(0.0),), words=_BELOW)

    def _unit(self, width: int) -> str:
        """Return the title of the axis."""
        outcome, is_wide = label(self.outcome), width >= WIDE
        outcome = cut(outcome, label_cells(width, words=is_wide and outcome != self.outcome))
        if self.unit == PERCENT:
            outcome = f"percent more {outcome}"
        elif self.unit:
            # A probability has a name and a class.
            outcome = cut(label(self.outcome), 2 * label_cells(width))
            outcome = f"{self.unit if is_wide else 'points'} of {outcome}"
        else:
            outcome = f"more {outcome}"
        return f"{outcome}, with the step beside each name" if is_wide else outcome

    def _marks(self, row: ForestRow) -> Iterator[Mark]:
        """Return the estimates of a row with their intervals, from top to bottom."""
        middle = (len(self.series) - 1) / 2
        for number, (model, estimate) in enumerate(zip(self.series, row.estimates, strict=True)):
            hollow = model.shape == "circle" and not row.is_sure
            shape: Shape = "hollow" if hollow else model.shape
            at = _APART * (number - middle)
            yield Interval(estimate.low, estimate.high, at, model.cls)
            # The arrow of an interval says already where the estimate lies.
            alone = math.isnan(estimate.low) or math.isnan(estimate.high)
            yield Point(estimate.value, at, model.cls, shape, alone)


class EstimatedModel(Protocol):
    """A model with a table of estimates."""

    @property
    def fit_(self) -> Any:
        """The fit behind it."""
        ...

    def tidy(self, conf_level: float) -> Any:
        """Return the estimates with intervals."""
        ...


def coefficients(
    models: EstimatedModel | Sequence[EstimatedModel] | Mapping[str, EstimatedModel],
    ax: Any = None,
    conf_level: float = 0.95,
    terms: Sequence[str] | None = None,
) -> Any:
    """Draw the coefficients of one or several models, each as a dot with a whisker.

    Whiskers are the intervals of `Heckman.tidy`. After a search that is not honest these ignore
    it, and are too short. Every coefficient is in the units of its feature: to compare sizes, fit
    standardised features.

    Parameters
    ----------
    models : model, sequence of models, or dict of models
        Fitted. The keys of a dict are their names; those of a sequence are their classes.
    ax : Axes, optional
    conf_level : float
        Confidence level of the whiskers.
    terms : sequence of str, optional
        Coefficients to draw, which may include "Intercept"; all others by default, in the order
        in which the models have them.
    """
    estimates = {name: _estimates(model, conf_level) for name, model in _named(models).items()}
    known = list(dict.fromkeys(term for by_term in estimates.values() for term in by_term))
    wanted = tuple(wanted_terms(known, terms))
    return Coefficients(wanted, tuple(estimates.items()), conf_level).draw(ax)


@dataclass(frozen=True)
class Coefficients(Picture):
    """Coefficients of the prediction equation by one or several models."""

    kind: ClassVar[str] = "coefficients"

    terms: tuple[str, ...]
    models: tuple[tuple[str, Mapping[str, Estimate]], ...]
    """the name of each model, and its estimates by term"""
    conf_level: float

    def _title(self) -> str:
        return "Coefficients of the prediction equation"

    @property
    def _level(self) -> str:
        return f"{100 * self.conf_level:g}% interval"

    def _looks(self) -> Iterator[tuple[str, Shape, str, Mapping[str, Estimate]]]:
        """Return the colour and the shape of each model, its name and its estimates."""
        for number, (name, estimates) in enumerate(self.models):
            yield SERIES[number % len(SERIES)], _SHAPES[number % len(_SHAPES)], name, estimates

    def _legend(self) -> tuple[LegendItem, ...]:
        if len(self.models) == 1:
            return ()
        return tuple(
            LegendItem(name, f"-{shape}", color) for color, shape, name, _ in self._looks()
        )

    def _alt(self) -> str:
        models = plural(len(self.models), "model")
        return f"{plural(len(self.terms), 'coefficient')} by {models}, each with a {self._level}."

    def _caption(self) -> str:
        return "Each coefficient is in the units of its feature."

    def _table(self) -> Table:
        columns = [Column("Feature", is_number=False, is_feature=True)]
        for name, _ in self.models:
            columns += (Column(title, group=name) for title in ("Estimate", self._level))
        lines = []
        for term in self.terms:
            numbers = [estimates.get(term, _UNKNOWN).words for _, estimates in self.models]
            lines.append((Name(term).key, *(words for pair in numbers for words in pair)))
        return Table(tuple(columns), tuple(lines), self._title(), "coefficients-table")

    def _body(self) -> Rows:
        """Return a row for each coefficient, with its estimates from top to bottom."""
        rows, ends, count = [], [], len(self.models)
        for term in self.terms:
            marks: list[Mark] = []
            lines = [said(term)]
            for number, (color, shape, name, estimates) in enumerate(self._looks()):
                if term not in estimates:
                    continue
                estimate, at = estimates[term], (number - (count - 1) / 2) * _SPREAD / count
                marks += [
                    Interval(estimate.low, estimate.high, at, color),
                    Point(estimate.value, at, color, shape),
                ]
                lines.append(f"{estimate} by {name}")
                ends += [estimate.value, estimate.low, estimate.high]
            rows.append(Row(label(term), tuple(marks), "\n".join(lines), term))
        axis = Scale.over([0.0, *ends], 0.0, 1.0, pad=0.05)
        x = Axis(axis.low, axis.high, f"coefficient, with {self._level}", numbers="signed")
        inches = 0.8 + len(rows) * max(0.18, _MODEL_INCHES * count + 0.06) + 0.18 * (count > 1)
        height = max(_LINE, _APART * _ROW * count + 10.0)
        return Rows(x, tuple(rows), height, inches, (Rule(0.0),))


def _named(models: Any) -> dict[str, EstimatedModel]:
    if _is_model(models):
        models = [models]
    if isinstance(models, Mapping):
        named = {str(name): model for name, model in models.items()}
    else:
        listed = list(models) if isinstance(models, Iterable) else [models]
        kinds = [type(model).__name__ for model in listed]
        named = {
            kind if kinds.count(kind) == 1 else f"{kind} ({number})": model
            for number, (kind, model) in enumerate(zip(kinds, listed, strict=True), start=1)
        }
    if not named:
        raise InputError("models is empty: there is nothing to draw")
    for name, model in named.items():
        if not _is_model(model):
            raise InputError(
                f"models must hold Heckman models and searches; {quoted(name)} is a "
                f"{type(model).__name__}"
            )
    return named


def _is_model(value: Any) -> bool:
    # Ask the class: a model that is not fitted has no attributes yet.
    return hasattr(type(value), "fit_")


def _estimates(model: EstimatedModel, conf_level: float) -> dict[str, Estimate]:
    """Return the estimates of the prediction equation by term."""
    model.fit_.require("single outcome equation")
    table = model.tidy(conf_level)
    table = table[table["equation"] == "prediction"].set_index("term")
    numbers = table[["estimate", "ci_low", "ci_high"]].to_numpy(dtype=float).tolist()
    return {term: Estimate(*ends) for term, ends in zip(table.index, numbers, strict=True)}
