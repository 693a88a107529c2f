"""``heckmanfa compare``: all methods side by side on one table."""

from __future__ import annotations

import heckmanfa.cli.options as opt
from heckmanfa.cli.common import dispatch


def compare(
    data: opt.Data,
    outcome: opt.Outcome,
    selected: opt.Selected = None,
    features: opt.Features = None,
    exclude: opt.Exclude = None,
    weights: opt.FrequencyWeights = None,
    missing: opt.Missing = "drop",
    categorical: opt.Categorical = None,
    numeric: opt.Numeric = None,
    decimal: opt.Decimal = None,
    thousands: opt.Thousands = None,
    sheet: opt.Sheet = None,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 3,
    ru: opt.Ru = None,
    seed: opt.Seed = 0,
    out: opt.TableFile = None,
    force: opt.Force = False,
) -> None:
    """Compare all methods side by side, judged on held-out rows that have an outcome.

    Example: heckmanfa compare wages.csv --outcome y
    """
    dispatch("compare", locals())
