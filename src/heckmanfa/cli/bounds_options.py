"""The options of ``heckmanfa bounds``, beside those that it shares with a fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from typer import Option

from heckmanfa.cli.topics import RESULTS

_number: Any = partial(Option, rich_help_panel="In place of the mean")
_assumed: Any = partial(Option, rich_help_panel="What is assumed")
_result: Any = partial(Option, rich_help_panel=RESULTS)


@dataclass(frozen=True, kw_only=True)
class BoundsOptions:
    """Say between which values a number lies without a model, whatever the missing outcomes are.

    That is the mean of the outcome, unless an option asks for another.

    Example: heckmanfa bounds wages.csv --outcome y --above 1
    """

    own_first: ClassVar[bool] = True
    """whether help has these before the options that a fit has, too"""

    group: Annotated[
        str | None,
        _number(help="Column of groups: each has bounds, and means and shares differences."),
    ] = None
    of: Annotated[
        str | None, _number(help="The share of this class of the outcome, in place of a mean.")
    ] = None
    above: Annotated[float | None, _number(help="The share of outcomes above this number.")] = None
    quantile: Annotated[float | None, _number(help="A quantile, such as 0.5 for the median.")] = (
        None
    )
    features: Annotated[
        list[str] | None,
        _number(
            help="Columns of a regression, separated by commas: the coefficients of the best "
            "linear predictor."
        ),
    ] = None
    treated: Annotated[
        str | None,
        _number(
            help="Column of 0 and 1 (or yes and no) that says who is treated: the average effect, "
            "however people came to be treated."
        ),
    ] = None
    by_lot: Annotated[
        bool,
        _number(
            "--by-lot",
            help="With --treated: it was drawn by lot, and lets outcomes be observed more often, "
            "or less often, but not both: Lee's bounds of the effect on those observed either way.",
        ),
    ] = False
    instrument: Annotated[
        str | None,
        _number(
            help="Column of numbers along which the mean outcome does not fall (Manski and "
            "Pepper): narrower bounds of the mean."
        ),
    ] = None
    y_range: Annotated[
        tuple[float, float] | None,
        _assumed(
            "--range",
            metavar="LO HI",
            help="The values that an outcome may have; those that are observed unless given.",
        ),
    ] = None
    selection: Annotated[
        str | None,
        _assumed(
            help="higher or lower: rows with an outcome have a mean at least, or at most, as high "
            "as that of the others. Nothing is assumed unless given."
        ),
    ] = None
    falling: Annotated[
        bool,
        _assumed(
            "--falling",
            help="With --instrument: the mean outcome does not rise along it.",
        ),
    ] = False
    covariates: Annotated[
        list[str] | None,
        _assumed(
            help="With --by-lot: columns that treatment does not change, which narrow the bounds."
        ),
    ] = None
    more_observed: Annotated[
        str | None,
        _assumed(
            help="With --by-lot: treated or untreated, whose outcomes are observed more often; as "
            "in the rows unless given."
        ),
    ] = None
    bins: Annotated[
        int | None,
        _assumed(
            help="Cut an instrument, or the probability of being observed given the covariates, "
            "into so many cells."
        ),
    ] = None
    n_boot: Annotated[
        int | None,
        _assumed(
            help="Bootstrap samples: 500 with --instrument; with --by-lot none, but formulas."
        ),
    ] = None
    conf_level: Annotated[float, Option(help="Confidence level of the intervals.")] = 0.95
    json_out: Annotated[
        Path | None,
        _result(
            "--json", help="Write the results here as JSON; - is standard output, and nothing else."
        ),
    ] = None
    out: Annotated[
        Path | None,
        _result(help="Write the table here: .csv, .xlsx, .docx, .tex, .md or .parquet."),
    ] = None
    picture: Annotated[Path | None, _result(help="Draw the bounds here: .svg, .png or .pdf.")] = (
        None
    )
    force: Annotated[bool, _result("--force", help="Replace existing files.")] = False
