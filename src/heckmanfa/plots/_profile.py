"""The likelihood over rho."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.plots._canvas import BLUE, GREY, ORANGE, VERMILION, canvas

_SMOOTH = 2001
# How far under what is of interest the picture goes, in units of log-likelihood, and as a share of
# what is between the highest and the lowest maximum. The tails would flatten all else.
_BELOW = 10.0, 0.5


class Profile(Protocol):
    """The log-likelihood over rho, as `heckmanfa.inference.profile_rho` returns it."""

    @property
    def rho(self) -> Floats:
        """The values of rho."""
        ...

    @property
    def log_likelihood(self) -> Floats:
        """The log-likelihood at each."""
        ...

    @property
    def maxima(self) -> pd.DataFrame:
        """The maxima: rho, log_likelihood and whether it is the one reported."""
        ...

    @property
    def two_step(self) -> float:
        """The two-step estimate of rho."""
        ...

    @property
    def height(self) -> float:
        """The highest log-likelihood."""
        ...

    def at(self, rho: Floats) -> Floats:
        """Return the log-likelihood at any rho between those of the profile."""
        ...

    def regions(self, conf_level: float) -> list[tuple[float, float]]:
        """Return the likelihood-ratio interval, in one or several pieces."""
        ...


class ProfiledModel(Protocol):
    """A model that profiles its likelihood."""

    def profile_rho(
        self, X: Any, y: Any, *, grid: Any, selected: Any, sample_weight: Any
    ) -> Profile:
        """Return the log-likelihood over rho."""
        ...


def rho_profile(
    model: ProfiledModel,
    X: Any,
    y: Any = None,
    ax: Any = None,
    n_grid: int = 41,
    *,
    grid: ArrayLike | None = None,
    conf_level: float = 0.95,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the log-likelihood over rho, all other parameters at their best.

    Parameters
    ----------
    model : Heckman
        Fitted.
    X, y, selected, sample_weight
        As they were passed to `Heckman.fit`; others are refused. For a model from formulas, X is
        the data frame, and y is left out.
    ax : Axes, optional
        A new figure by default.
    n_grid : int
        How many values of rho between -0.998 and 0.998 to evaluate.
    grid : array_like, optional
        Values of rho to evaluate instead.
    conf_level : float
        Confidence level of the likelihood-ratio interval, which is shaded. It is about the
        highest maximum; the dotted line is the log-likelihood at its ends.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    heckmanfa.inference.profile_rho : the numbers.
    """
    profile = model.profile_rho(
        X,
        y,
        grid=n_grid if grid is None else grid,
        selected=selected,
        sample_weight=sample_weight,
    )
    return draw_profile(profile, ax, conf_level)


def draw_profile(profile: Profile, ax: Any, conf_level: float) -> Any:
    """Draw a profile; see `rho_profile`."""
    regions = profile.regions(conf_level)
    t = np.arctanh(profile.rho[np.isfinite(profile.log_likelihood)])
    smooth = np.union1d(np.tanh(np.linspace(t[0], t[-1], _SMOOTH)), np.tanh(t)[1:-1])
    heights = profile.at(smooth)
    marks: dict[str, Any] = {}
    with canvas(ax, 2.9) as drawn:
        (panel,) = drawn.axes
        pieces = ", ".join(f"[{_number(low)}, {_number(high)}]" for low, high in regions)
        for low, high in regions:
            marks[f"{100 * conf_level:g}% {pieces}"] = panel.axvspan(
                low, high, facecolor=BLUE, alpha=0.15, linewidth=0, zorder=0
            )
        level = profile.height - 0.5 * float(stats.chi2.ppf(conf_level, 1))
        if regions:
            panel.axhline(level, color=GREY, linewidth=0.6, linestyle=":", zorder=1)
        panel.plot(smooth, heights, color=BLUE, zorder=2)
        marks[f"two-step {_number(profile.two_step)}"] = _two_step(panel, profile.two_step)
        reported = profile.maxima["reported"].astype(bool)
        for name, rows, fill in (
            ("ML", profile.maxima[reported], VERMILION),
            ("another maximum", profile.maxima[~reported], "white"),
        ):
            if len(rows):
                places = ", ".join(_number(rho) for rho in rows["rho"])
                (marks[f"{name} {places}"],) = panel.plot(
                    rows["rho"],
                    rows["log_likelihood"],
                    linestyle="none",
                    marker="o",
                    markersize=5.0,
                    markerfacecolor=fill,
                    markeredgecolor="black",
                    markeredgewidth=0.8,
                    zorder=4,
                    clip_on=False,
                )
        panel.set_xlim(-1.0, 1.0)
        panel.set_ylim(*_limits(heights, min([level, *profile.maxima["log_likelihood"]])))
        panel.set_xlabel("rho")
        panel.set_ylabel("profile log-likelihood")
        drawn.legend(marks)
    return panel


def _number(rho: float) -> str:
    return f"{rho:.3f}".replace("-", "\N{MINUS SIGN}")


def _two_step(panel: Any, rho: float) -> Any:
    """Draw the two-step estimate: a line, or an arrow at the edge that it lies beyond."""
    if abs(rho) < 1:
        return panel.axvline(rho, color=ORANGE, linewidth=1.0, linestyle="--", zorder=1)
    (mark,) = panel.plot(
        [np.sign(rho)],
        [0.06],
        transform=panel.get_xaxis_transform(),
        linestyle="none",
        marker=">" if rho > 0 else "<",
        markersize=5.0,
        color=ORANGE,
        markeredgecolor="black",
        markeredgewidth=0.6,
        zorder=4,
        clip_on=False,
    )
    return mark


def _limits(heights: Floats, lowest: float) -> tuple[float, float]:
    """Show everything of interest, and a little of the tails."""
    top = float(heights.max())
    floor = max(float(heights.min()), lowest - max(_BELOW[0], _BELOW[1] * (top - lowest)))
    space = 0.05 * (top - floor)
    return floor - space * (floor == heights.min()), top + space
