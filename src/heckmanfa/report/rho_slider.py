"""Moving rho: what each panel of the picture of an assumed rho says at every value of a slider.

All numbers and words are made here. The script of the page looks them up and joins them.
Without a script the slider stays hidden, and the picture is as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from heckmanfa.plots.assumed_rho import OverRho, RhoPanel, RhoPoint
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.render_html import escape
from heckmanfa.text.labels import with_unit
from heckmanfa.text.wording import MINUS, with_minus

# What separates values, and the parts of one, in an attribute.
_NEXT, _WITHIN = "|", ";"
_SAME = 1e-9
# Marks are placed in parts of the axis, each less than a pixel.
_PARTS = 1000


def slider_html(evidence: Evidence, picture: OverRho | None) -> str:
    """Render the slider of a picture; empty without one."""
    if picture is None:
        return ""
    panels = [_Moves(evidence, picture, panel) for panel in picture.panels]
    points = panels[0].points
    start = points.index(picture.panels[0].at_hat or picture.panels[0].at(0.0))
    rho = _NEXT.join(with_minus(f"{point.rho:.2f}") for point in points)
    items = "".join(f"<li{panel.attributes()}></li>" for panel in panels)
    return (
        '<div class="what-if" hidden><label for="rho-slider"><strong>Move rho yourself.</strong> '
        "rho says how strongly what is not observed drives both who has an outcome and what that "
        "outcome is; at 0 it does not.</label>"
        f'<div><input type="range" id="rho-slider" min="0" max="{len(points) - 1}" step="1" '
        f'value="{start}" data-rho="{rho}"><output for="rho-slider"></output></div>'
        f"<ul>{items}</ul></div>"
    )


@dataclass(frozen=True, eq=False)
class _Moves:
    """What one panel says at each value of rho."""

    evidence: Evidence
    picture: OverRho
    panel: RhoPanel

    @property
    def points(self) -> list[RhoPoint]:
        """The points of the curve, and that of the model between them, by rho."""
        hat, points = self.panel.at_hat, self.panel.points
        if hat is None:
            return list(points)
        others = [point for point in points if abs(point.rho - hat.rho) > _SAME]
        return sorted([*others, hat], key=lambda point: point.rho)

    @property
    def _base(self) -> tuple[RhoPoint, str]:
        """What other values are compared with, and what it is called."""
        if self.panel.at_hat is None:
            return self.panel.at(0.0), self.picture.at_zero
        return (
            self.panel.at_hat,
            f"the {(self.picture.fitted or self.picture.model).removeprefix('this ')}",
        )

    def attributes(self) -> str:
        """Write the words around the numbers of a sentence, and what is said at each rho."""
        kinds = list(dict.fromkeys(map(self._beside, self.points)))
        at, scale = [], self.panel.scale()
        for point in self.points:
            ends = point.estimate, point.low, point.high
            places = (str(round(_PARTS * scale(end))) for end in ends)
            kind = str(kinds.index(self._beside(point)))
            at.append(_WITHIN.join((*places, *self.panel.numbers(point), kind)))
        change = str(self.evidence.naming.change_of(self.panel.column))
        told = {
            "change": f", {change} would go with ",
            "unit": self._unit,
            "target": f" {self._target} (95% interval ",
            "than": _NEXT.join(f"): {kind}." for kind in kinds),
            "at": _NEXT.join(at),
        }
        return "".join(f' data-{key}="{escape(value)}"' for key, value in told.items())

    @property
    def _target(self) -> str:
        words = self.evidence.words
        if words.log is not None:
            return str(words.log.target)
        return f"in {words.target}" if words.unit else str(words.target)

    @property
    def _unit(self) -> str:
        """What follows a number."""
        words = self.evidence.words
        if words.log is not None:
            return ""
        return f" {words.unit}" if words.unit else with_unit("", words.outcome)

    def _words(self, point: RhoPoint) -> tuple[str, str]:
        """Return how much it is, and whether more or less."""
        size, *_ = self.panel.numbers(point)
        more = "less" if size.startswith(MINUS) else "more"
        return size.removeprefix(MINUS) + self._unit, more

    def _beside(self, point: RhoPoint) -> str:
        """Compare a value with that of the model."""
        base, name = self._base
        (size, more), (other, other_more) = self._words(point), self._words(base)
        if (size, more) == (other, other_more):
            return f"as in {name}"
        if more != other_more:
            return f"the opposite of the {other} {other_more} of {name}"
        grows = abs(point.estimate) > abs(base.estimate)
        if more == "more":
            return f"{'more' if grows else 'less'} than the {other} of {name}"
        return f"a {'larger' if grows else 'smaller'} drop than the {other} of {name}"
