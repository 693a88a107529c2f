"""What every picture of a model has: its words, its table and its scene."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.plots.axes import draw_scene
from heckmanfa.plots.palette import file_style
from heckmanfa.plots.scene import Panels, Rows, Scene
from heckmanfa.plots.svg import render_svg
from heckmanfa.plots.svg_shapes import escape
from heckmanfa.text.labels import Labels, current_labels, labelled
from heckmanfa.text.option_words import only_flag, told
from heckmanfa.text.printable import quoted
from heckmanfa.text.table import MOST_LINES, LegendItem, PictureText, Table
from heckmanfa.text.wording import nearest


class Picture(ABC):
    """The numbers of a picture. A subclass has its words, its table and what is drawn."""

    kind: ClassVar[str]
    """its name, unique on a page"""
    _labels: Labels
    """what readers call its features: as when the picture was made"""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the labels under which the picture is made."""
        picture = super().__new__(cls)
        object.__setattr__(picture, "_labels", current_labels())
        return picture

    @abstractmethod
    def _title(self) -> str:
        """Return what the picture is called."""

    @abstractmethod
    def _alt(self) -> str:
        """Say what the picture shows, with the numbers that matter most."""

    @abstractmethod
    def _caption(self) -> str:
        """Say how to read it."""

    @abstractmethod
    def _table(self) -> Table:
        """Return the numbers that are drawn."""

    @abstractmethod
    def _body(self) -> Rows | Panels:
        """Return what is drawn."""

    def _look(self) -> str:
        """Say what to look for, in one plain sentence for readers who know no statistics."""
        return ""

    def _more(self) -> tuple[Table, ...]:
        """Return numbers that do not fit into one table."""
        return ()

    def _legend(self) -> tuple[LegendItem, ...]:
        return ()

    def _printed_legend(self) -> tuple[LegendItem, ...] | None:
        """Return the legend of Matplotlib, if different."""
        return None

    @property
    def one_number(self) -> str:
        """What the picture shows, if that is one number: a page says it instead; else empty."""
        return ""

    def text(self) -> PictureText:
        """Return the words around the picture, and its numbers as tables."""
        with labelled(self._labels):
            return PictureText(
                title=self._title(),
                alt=f"{self._alt()} All numbers are in the table.",
                caption=self._caption(),
                table=self._table(),
                look=self._look(),
                legend=self._legend(),
                more=self._more(),
            )

    def scene(self) -> Scene:
        """Return the picture as marks on scales, with its words and tables."""
        with labelled(self._labels):
            return Scene(self.kind, self.text(), self._body(), self._printed_legend())

    def svg(self, width: int) -> str:
        """Draw the picture as SVG, this many CSS px wide: a file that needs no other."""
        scene = self.scene()
        head, rest = render_svg(scene, width).split(">", 1)
        words = (
            f"<title>{escape(scene.text.title)}</title><desc>{escape(scene.text.caption)}</desc>"
        )
        return f"{head}>{words}<style>{file_style()}</style>{rest}"

    def draw(self, ax: Any = None) -> Any:
        """Draw the picture with Matplotlib; return its Axes, an array if there are several."""
        return draw_scene(self.scene(), ax)


def first_lines(count: int, rest: str) -> str:
    """Say that a table of so many lines was cut; empty if it was not.

    ``rest`` is what has all of them in Python, such as "pictures().forest.rows".
    """
    if count <= MOST_LINES:
        return ""
    return told(f"The table holds the first {MOST_LINES}; all: `{only_flag('save_table', rest)}`.")


def wanted_terms(known: list[str], terms: Sequence[str] | None) -> list[str]:
    """Return the coefficients to draw: those named, or all but the intercept."""
    if terms is None:
        return [term for term in known if term != "Intercept"] or known
    wanted = [terms] if isinstance(terms, str) else list(terms)
    if not wanted:
        raise InputError("terms is empty: there is nothing to draw")
    for term in wanted:
        if term not in known:
            raise UnknownFeatureError(
                f"{quoted(term)} is not a coefficient of the prediction equation"
                + nearest(str(term), known)
            )
    return wanted


def weight_words(kind: str, sampling: str) -> str:
    """Say what weights do: "frequency", "sampling", with the words for that, or nothing."""
    frequency = " Each row counts as often as its weight says."
    return {"": "", "frequency": frequency, "sampling": f" {sampling}"}[kind]
