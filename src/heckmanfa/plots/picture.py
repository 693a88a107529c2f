"""What every picture of a model has: words, a drawing for pages and one for Matplotlib."""

from __future__ import annotations

from typing import Any, ClassVar

from heckmanfa.plots.axes import draw_scene
from heckmanfa.plots.scene import Scene
from heckmanfa.plots.svg import render_svg
from heckmanfa.text.table import PictureText


class Picture:
    """The numbers of a picture, which its scene draws."""

    kind: ClassVar[str]
    """its name, unique on a page"""

    def text(self) -> PictureText:
        """Return the words around the picture, and its numbers as tables."""
        raise NotImplementedError

    def scene(self) -> Scene:
        """Return what is drawn, with these words."""
        raise NotImplementedError

    def svg(self, width: int) -> str:
        """Draw the picture as SVG, this many CSS px wide."""
        return render_svg(self.scene(), width)

    def draw(self, ax: Any = None) -> Any:
        """Draw the picture with Matplotlib; return its Axes, an array if there are several."""
        return draw_scene(self.scene(), ax)
