"""Do rows with an outcome cover those without: both histograms of the probability of selection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.normal import inverse_mills
from heckmanfa.plots.picture import Picture, weight_words
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import Axis, Band, Bar, Curve, Group, Mark, Panel, Panels, Rule
from heckmanfa.text.table import LegendItem, Table, lay_out
from heckmanfa.text.wording import capitalised, count, figure, plural

N_BINS = 20
_LAMBDA_AT = (0.1, 0.25, 0.5, 0.75, 0.9)
# Room above the bars and their height, in px; what words about them need, as a share of it.
_ROOM, _HEIGHT, _WORDS = 40.0, 240.0, 0.1
# Room above the bars without an axis there.
_LITTLE = 8.0
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class SelectionOverlap(Picture):
    """Rows by their probability of being selected."""

    kind: ClassVar[str] = "overlap"
    ends: ClassVar[tuple[str, str, str]] = ("with an outcome", "without", "no row with an outcome")
    """what bars above and below are, and where there are none of the former"""
    what: ClassVar[str] = "being selected"

    selected: tuple[float, ...]
    """rows with an outcome, by bins of equal width from 0 to 1"""
    unselected: tuple[float, ...]
    """rows without one"""
    range: tuple[float, float]
    """the lowest and the highest probability of a row with an outcome"""
    reach: tuple[float, float]
    """the lowest and the highest probability of any row"""
    n_outside: int
    """rows with a probability outside the range; sampling weights do not count"""
    share_outside: float
    """their share of all rows"""
    weighted: str = ""
    """what weights do to the bars: "frequency", "sampling" or nothing"""
    has_lambda: bool = True
    """whether the correction is a term in lambda; that of a binary outcome is not"""

    @property
    def edges(self) -> Floats:
        """Edges of the bins."""
        return np.linspace(0.0, 1.0, len(self.selected) + 1)

    def _title(self) -> str:
        return "Do those with an outcome cover those without?"

    def _legend(self) -> tuple[LegendItem, ...]:
        above, below, nowhere = self.ends
        bars = LegendItem(above, "bar", "this"), LegendItem(below, "framed", "ink")
        return (*bars, LegendItem(nowhere, "slanted", "pale")) if self._blank() else bars

    def _look(self) -> str:
        return "Look for bars below with none above: no outcome was seen there."

    def _outside(self) -> str:
        verb = "is" if self.n_outside == 1 else "are"
        rows = "rows of the table" if self.weighted == "sampling" else "rows"
        return f"{_share(self.share_outside)} of the {rows} ({count(self.n_outside)}) {verb}"

    def _alt(self) -> str:
        low, high = (f"{100 * end:.0f}%" for end in self.range)
        return (
            "Mirrored histogram of the probability of being selected. Rows with an outcome reach "
            f"from {low} to {high}; {self._outside()} outside."
        )

    def _caption(self) -> str:
        words = "Every row is where rows with an outcome are."
        if self.n_outside:
            words = (
                f"Hatched: {self._outside()} where no row with an outcome is. There the correction "
                "is a guess."
            )
        if self.has_lambda:
            words += " lambda, above, falls as the probability rises."
        sampling = "Bars add up sampling weights, scaled to an average of 1."
        return words + weight_words(self.weighted, sampling)

    def _table(self) -> Table:
        lines = []
        for place, (low, high) in enumerate(pairwise(self.edges.tolist())):
            rows = self._rows(self.selected[place]), self._rows(self.unselected[place])
            lines.append(
                [f"{100 * low:.0f} to {100 * high:.0f}%", *rows, figure(_lambda(low)) or "no limit"]
            )
        where = "outside the range"
        if self.weighted == "sampling":
            where += ", rows of the table"
        lines.append([where, *self._outside_cells(), ""])
        numbers = [*map(capitalised, self.ends[:2]), "lambda at the lower end"]
        last = 3 if self.has_lambda else 2
        return lay_out(
            [f"Probability of {self.what}"],
            numbers[:last],
            [line[: 1 + last] for line in lines],
            f"Rows by their probability of {self.what}",
            "overlap-table",
        )

    def _outside_cells(self) -> tuple[str, str]:
        """Return how many rows of each kind are outside."""
        return "0", count(self.n_outside)

    def _rows(self, value: float) -> str:
        return f"{value:,.1f}" if self.weighted == "sampling" else count(round(value))

    def _blank(self) -> list[tuple[float, float]]:
        """Return where rows are, but none with an outcome."""
        if not self.n_outside:
            return []
        (low, high), (first, last) = self.range, self.reach
        return [(start, end) for start, end in ((first, low), (high, last)) if end > start]

    @property
    def _unit(self) -> str:
        return "rows, weighted" if self.weighted == "sampling" else "rows"

    def _body(self) -> Panels:
        """Return bars of rows with an outcome upwards, and of those without downwards."""
        most = max(*self.selected, *self.unselected, 1.0)
        up, down = (max(*side, 0.2 * most) for side in (self.selected, self.unselected))
        more, unit = _WORDS * (up + down), self._unit
        numbers = Scale(-down, up, 0.0, 1.0).ticks()
        ticks = tuple((tick.value, tick.text.lstrip("\N{MINUS SIGN}")) for tick in numbers)
        y = Axis(-down - more, up + more, printed=unit, numbers="absolute", ticks=ticks)
        of_lambda = [(share, f"{_lambda(share):.1f}") for share in _LAMBDA_AT * self.has_lambda]
        panel = Panel(
            y,
            (*self._hatched(y), *self._bars(), Rule(y=0.0)),
            *(_HEIGHT, _ROOM if self.has_lambda else _LITTLE),
            corners=(f"{self.ends[0]} ({unit})", f"{self.ends[1]} ({unit})"),
            top=tuple(of_lambda),
            top_title="lambda" * self.has_lambda,
        )
        quarters = tuple((share, f"{100 * share:.0f}%") for share in _QUARTERS)
        title = f"probability of {self.what}"
        x = Axis(0.0, 1.0, title, numbers="percent", ticks=quarters, grid=False)
        return Panels(x, (panel,), 2.8)

    def _hatched(self, y: Axis) -> Iterator[Bar]:
        """Hatch where no row with an outcome is, around the bars of the others."""
        for start, end in self._blank():
            for place, (low, high) in enumerate(pairwise(self.edges.tolist())):
                x = max(start, low), min(end, high)
                if x[0] < x[1]:
                    yield Bar(x, (self.selected[place], y.high), "pale", "slanted")
                    yield Bar(x, (y.low, -self.unselected[place]), "pale", "slanted")

    def _bars(self) -> Iterator[Group]:
        for place, ends in enumerate(pairwise(self.edges.tolist())):
            inside, outside = self.selected[place], self.unselected[place]
            filled = Bar(ends, (0.0, inside), "this")
            hatched = Bar(ends, (-outside, 0.0), "ink", "hatch")
            if inside or outside:
                yield Group((filled, hatched), self.tooltip(place), ends)

    def tooltip(self, place: int) -> str:
        """Return the rows of a bin in words, a line each."""
        low, high = self.edges[place], self.edges[place + 1]
        values = f"{_lambda(low):.2f} to {_lambda(high):.2f}"
        if low <= 0.0:
            values = f"{_lambda(high):.2f} or more"
        of_lambda = f", lambda {values}" if self.has_lambda else ""
        return (
            f"{100 * low:.0f} to {100 * high:.0f}%{of_lambda}\n"
            f"{self.ends[0]}: {self._rows(self.selected[place])}\n"
            f"{self.ends[1]}: {self._rows(self.unselected[place])}"
        )


@dataclass(frozen=True)
class TreatmentOverlap(SelectionOverlap):
    """Rows by their probability of treatment; the range is that of both groups."""

    ends: ClassVar[tuple[str, str, str]] = ("treated", "untreated", "only one of both groups")
    what: ClassVar[str] = "treatment"

    outside: tuple[int, int] = (0, 0)
    """treated and untreated rows outside the range"""

    def _title(self) -> str:
        return "Are treated and untreated alike enough to compare?"

    def _look(self) -> str:
        return "Look for bars without one opposite: there, nobody can be compared."

    def _alt(self) -> str:
        low, high = (f"{100 * end:.0f}%" for end in self.range)
        return (
            "Mirrored histogram of the probability of treatment. Both groups reach from "
            f"{low} to {high}; {self._outside()} outside."
        )

    def _caption(self) -> str:
        words = "Treated and untreated are found over the same probabilities."
        if self.n_outside:
            words = (
                f"Hatched: {self._outside()} where only one of both groups is. What these would "
                "have in the other's place rests on the equations."
            )
        sampling = "Bars add up sampling weights, scaled to an average of 1."
        return words + weight_words(self.weighted, sampling)

    def _outside_cells(self) -> tuple[str, str]:
        return count(self.outside[0]), count(self.outside[1])


def treatment_overlap_of(
    probability: Floats, treated: Mask, weight: Floats | None, weight_kind: str
) -> TreatmentOverlap:
    """Count rows by their probability of treatment; ``weight_kind`` matters with weights."""
    both = [probability[side] for side in (treated, ~treated)]
    low, high = max(side.min() for side in both), min(side.max() for side in both)
    beyond = (probability < low) | (probability > high)
    whole = overlap_of(probability, treated, weight, weight_kind, beyond, has_lambda=False)
    rows = np.ones(len(probability))
    if weight is not None and weight_kind == "frequency":
        rows = weight
    counts = [round(rows[beyond & side].sum()) for side in (treated, ~treated)]
    known = {field.name: getattr(whole, field.name) for field in fields(whole)}
    known |= {"range": (float(low), float(high)), "outside": (counts[0], counts[1])}
    return TreatmentOverlap(**known)


def overlap_of(
    probability: Floats,
    selected: Mask,
    weight: Floats | None,
    weight_kind: str,
    outside: Mask,
    *,
    has_lambda: bool = True,
) -> SelectionOverlap:
    """Count rows by their probability of being selected; ``weight_kind`` matters with weights.

    ``outside`` are the rows beyond those with an outcome, as diagnostics count them.
    """
    counted = np.ones(len(probability)) if weight is None else weight
    bins = [
        np.histogram(probability[side], N_BINS, (0.0, 1.0), weights=counted[side])[0]
        for side in (selected, ~selected)
    ]
    # Sampling weights say how many members of a population a row stands for, not how many rows.
    rows = counted if weight_kind == "frequency" else np.ones(len(probability))
    low, high = float(probability[selected].min()), float(probability[selected].max())
    return SelectionOverlap(
        selected=tuple(map(float, bins[0])),
        unselected=tuple(map(float, bins[1])),
        range=(low, high),
        reach=(float(probability.min()), float(probability.max())),
        n_outside=round(rows[outside].sum()),
        share_outside=float(np.average(outside, weights=rows)),
        weighted="" if weight is None else weight_kind,
        has_lambda=has_lambda,
    )


def _lambda(probability: float) -> float:
    """Return lambda at a probability of being selected; none at 0."""
    if probability <= 0.0:
        return float("nan")
    return float(inverse_mills(stats.norm.ppf(min(probability, 1.0 - 1e-16))))


def _share(share: float) -> str:
    if 0.0 < share < 0.0005:
        return "<0.1%"
    return f"{100 * share:.1f}%"


_FEWEST_BINS, _MOST_BINS = 10, 40


@dataclass(frozen=True, eq=False)
class MillsRatios(Picture):
    """Ratios of the rows that the prediction equation was fitted to, and of others."""

    kind: ClassVar[str] = "imr_overlap"

    fitted: Floats
    """of the selected rows"""
    others: Floats
    """of the rows to predict for"""
    range: tuple[float, float]
    """the lowest and the highest in the fit"""
    share_outside: float
    """share of all rows outside that range"""
    weight: Floats | None = None
    """of the selected rows"""

    def bins(self) -> Floats:
        """Return edges that both samples share, the ends of the fitted range among them.

        The last bin ends half that range above it, wherever the largest ratio is.
        """
        low, high = float(self.fitted.min()), float(self.fitted.max())
        n_bins = len(np.histogram_bin_edges(self.fitted, "fd")) - 1
        inner = np.linspace(low, high, min(max(n_bins, _FEWEST_BINS), _MOST_BINS) + 1)
        # A bin ends before its upper edge, and the largest ratio of the fit is inside.
        inner[-1] = high = np.nextafter(high, np.inf)
        width = max((high - low) / (len(inner) - 1), 1e-12)
        pieces = [inner]
        least = min(float(self.others.min()), low)
        most = min(max(float(self.others.max()), high), high + 0.5 * (high - low))
        for end, far in ((low, least), (high, most)):
            more = min(int(np.ceil(abs(far - end) / width)), _MOST_BINS)
            pieces.append(np.linspace(end, far, more + 1)[1:])
        return np.unique(np.concatenate(pieces))

    def densities(self) -> tuple[Floats, Floats]:
        """Return the shares of both samples by bin, per unit of the ratio."""
        edges = self.bins()
        others = np.minimum(self.others, edges[-1])
        fitted, _ = np.histogram(self.fitted, edges, weights=self.weight, density=True)
        return fitted, np.histogram(others, edges, density=True)[0]

    def _title(self) -> str:
        return "The inverse Mills ratio in fitting and in prediction"

    def _legend(self) -> tuple[LegendItem, ...]:
        outside = f"{100 * self.share_outside:.2g}% outside"
        return (
            LegendItem(f"fitting: {count(len(self.fitted))} selected rows", "band", "this"),
            LegendItem(f"prediction: {plural(len(self.others), 'row')}, {outside}", "line", "ols"),
            LegendItem("range in fitting", "bar", "absent"),
        )

    def _alt(self) -> str:
        low, high = map(figure, self.range)
        return (
            f"Histograms of the inverse Mills ratio. In fitting it is from {low} to {high}; "
            f"{_share(self.share_outside)} of the rows to predict for are outside."
        )

    def _caption(self) -> str:
        return "Beyond the range in fitting, the effect of the ratio is extrapolated."

    def _table(self) -> Table:
        edges, (fitted, others) = self.bins(), self.densities()
        lines = [
            [f"{figure(low)} to {figure(high)}", figure(inside), figure(outside)]
            for (low, high), inside, outside in zip(pairwise(edges), fitted, others, strict=True)
        ]
        titles = ["Inverse Mills ratio"], ["Density in fitting", "Density in prediction"]
        return lay_out(*titles, lines, self._title(), "imr-overlap-table")

    def _body(self) -> Panels:
        """Return two outlines, of which that of the fit is filled."""
        edges, (fitted, others) = self.bins(), self.densities()
        x, steps = _steps(edges, fitted)
        _, outline = _steps(edges, others)
        marks: list[Mark | Group] = [Rule(end, kind="cut") for end in self.range]
        marks += [
            Band(x, (0.0,) * len(x), steps, "this"),
            Curve(x, steps, "this", "thin"),
            Curve(x, outline, "ols"),
        ]
        # Bins answer to a pointer, though nothing is drawn for each alone.
        for ends, inside, outside in zip(pairwise(edges.tolist()), fitted, others, strict=True):
            words = f"fitting: {figure(inside)}", f"prediction: {figure(outside)}"
            marks.append(Group((), "\n".join([" to ".join(map(figure, ends)), *words]), ends))
        top = 1.05 * max(*steps, *outline)
        panel = Panel(Axis(0.0, top, "density"), tuple(marks), 220.0, 26.0, shaded=(self.range,))
        beyond = ""
        if self.others.max() > edges[-1]:
            beyond = f" (above {edges[-1]:.3g}: in the last bin)"
        scale = Scale.over(edges.tolist(), 0.0, 1.0, pad=0.05)
        title = f"inverse Mills ratio{beyond}"
        return Panels(Axis(scale.low, scale.high, title, grid=False), (panel,), 2.6)


def _steps(edges: Floats, heights: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the outline of a histogram, from the axis and back to it."""
    outline = np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])
    return tuple(np.repeat(edges, 2).tolist()), tuple(outline.tolist())


class RatioModel(Protocol):
    """A model that returns the inverse Mills ratios of its rows."""

    def mills_ratios(
        self, X: Any, y: Any, X_new: Any, *, selected: Any, sample_weight: Any
    ) -> MillsRatios:
        """Return the ratios in fitting and in prediction."""
        ...


def imr_overlap(
    model: RatioModel,
    X: Any,
    y: Any = None,
    X_new: Any = None,
    ax: Any = None,
    *,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the inverse Mills ratio of the rows fitted to, and of the rows to predict for.

    The prediction equation saw the ratio of selected rows only; beyond their range its effect is
    extrapolated. The range is shaded, and the legend says how many rows are outside.

    Parameters
    ----------
    model : Heckman
        Fitted.
    X, y, selected, sample_weight
        As they were passed to `Heckman.fit`; others are refused. For a model from formulas, X is
        the data frame, and y is left out.
    X_new : array or data frame, optional
        Rows to predict for; all rows of X by default.
    ax : Axes, optional
    """
    ratios = model.mills_ratios(X, y, X_new, selected=selected, sample_weight=sample_weight)
    return ratios.draw(ax)
