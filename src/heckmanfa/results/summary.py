"""The summary of a model, and its layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.results.document import Part, RegressionTable, Section
from heckmanfa.results.render_latex import render_latex
from heckmanfa.results.render_markdown import render_markdown
from heckmanfa.results.reports import Printed
from heckmanfa.text.printable import shown
from heckmanfa.text.table import Column, Table
from heckmanfa.text.wording import chance_text, number, p_value

if TYPE_CHECKING:
    import pandas as pd

_COMPARISON = ("chosen", "all_features", "naive")


@dataclass(frozen=True, repr=False)
class Summary(Printed):
    """A fitted model in words and tables; prints as text, shows as HTML in a notebook.

    `to_latex` and `to_markdown` render it for a paper and for a web page.
    """

    _kind = "summary"

    title: str
    facts: list[tuple[str, str]]
    table: pd.DataFrame
    """as `tidy` returns it"""
    headings: dict[str, str]
    """above the rows of each equation"""
    conf_level: float
    notes: list[str]
    comparison: pd.DataFrame | None = None
    """coefficients of other models beside those of this one, after a search"""
    sections: tuple[Section, ...] = ()
    """other reports to include"""
    all_features: Floats | None = None
    """of an average, estimates and standard errors of the model with everything in it, (T, 2)"""
    letter: str = "z"
    """name of the statistic: z, or t with a cluster covariance"""
    opening: str = ""
    """the answer in a few sentences, after a search or an average"""
    naive: str = "least squares"
    """name of the column of the model that ignores selection"""
    outcome: str = "outcome"
    """what the prediction equation is of"""

    def parts(self) -> list[Part]:
        """Return the estimates, then the sections of other reports."""
        return [self._estimates(), *self.sections]

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        r"""Return it as LaTeX: ``table`` environments that need the package booktabs.

        The first holds both equations and the facts of the fit, with the notes below; others hold
        the other models, and the parts of the reports included.

        Parameters
        ----------
        caption : str, optional
            LaTeX, printed as it is; the title by default.
        label : str, optional
            For ``\ref``. The tables after the first get it with "-comparison", "-1", "-2" and so
            on appended.
        """
        return render_latex(self._estimates(), self.sections, caption, label)

    def to_markdown(self) -> str:
        """Return it as Markdown, with a table for each equation."""
        return render_markdown(self.parts())

    def _estimates(self) -> RegressionTable:
        """Format the estimates, one equation below the other, and the other models."""
        percent = f"{100 * self.conf_level:g}%"
        if self.all_features is not None:
            return self._averaged(self.all_features, percent)
        columns = (
            Column("term", is_number=False),
            Column("estimate", width=12),
            Column("std. error", width=12),
            Column(self.letter, width=8),
            Column(f"P>|{self.letter}|", width=8),
            Column(f"{percent} low", span=f"{percent} interval", width=13),
            Column(f"{percent} high", span=f"{percent} interval", width=12),
        )
        rows: list[list[str] | str] = []
        for equation, terms in self.table.groupby("equation", sort=False):
            rows.append(self.headings[str(equation)].format(outcome=shown(self.outcome)))
            rows += [_cells(row) for row in terms.to_dict("records")]
        return RegressionTable(
            title=self.title,
            facts=tuple(self.facts),
            estimates=Table(columns, tuple(rows)),
            comparison=self._comparison(),
            notes=tuple(self.notes),
            opening=self.opening,
        )

    def _averaged(self, all_features: Floats, percent: str) -> RegressionTable:
        """Format averages: chances beside the estimates, and the model with everything in it."""
        columns = (
            Column("term", is_number=False),
            Column("chance", width=7),
            Column("estimate", width=11),
            Column(f"{percent} low", span=f"{percent} interval", width=12),
            Column(f"{percent} high", span=f"{percent} interval", width=11),
            Column("all features", width=13),
            Column("std. error", width=11),
        )
        beside = self.table.assign(whole=all_features[:, 0], whole_error=all_features[:, 1])
        keys = ("estimate", "ci_low", "ci_high", "whole", "whole_error")
        rows: list[list[str] | str] = []
        for equation, terms in beside.groupby("equation", sort=False):
            if equation == "selection":
                continue
            rows.append(self.headings[str(equation)].format(outcome=shown(self.outcome)))
            rows += [
                [
                    shown(row["term"]),
                    chance_text(row["chance"]),
                    *(number(row[key]) for key in keys),
                ]
                for row in terms.to_dict("records")
            ]
        table = Table(columns, tuple(rows))
        notes = tuple(self.notes)
        return RegressionTable(self.title, tuple(self.facts), table, None, notes, self.opening)

    def _comparison(self) -> Table | None:
        if self.comparison is None:
            return None
        titles = {"chosen": "chosen", "all_features": "all features", "naive": self.naive}
        names = [name for name in _COMPARISON if name in self.comparison]
        columns = (
            Column("term", is_number=False),
            *(Column(titles[name], width=18) for name in names),
        )
        rows = tuple(
            [shown(row["term"]), *(number(row[name], 5) for name in names)]
            for row in self.comparison.to_dict("records")
        )
        return Table(columns, rows, caption="Beside other models")


def _cells(row: Mapping[object, float]) -> list[str]:
    """Format a row of `tidy`."""
    z = row["statistic"]
    return [
        shown(row["term"]),
        number(row["estimate"], 5),
        number(row["std_error"], 5),
        f"{z:.2f}" if np.isfinite(z) else number(z),
        p_value(row["p_value"]),
        number(row["ci_low"], 5),
        number(row["ci_high"], 5),
    ]
