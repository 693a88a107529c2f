"""``heckmanfa predict``: a saved model on another table."""

from __future__ import annotations

import heckmanfa.cli.options as opt
from heckmanfa.cli.common import dispatch


def predict(
    model: opt.ModelFile,
    data: opt.NewData,
    out: opt.PredictionFile,
    kind: opt.Kind = "marginal",
    interval: opt.Interval = None,
    keep_columns: opt.KeepColumns = False,
    missing: opt.MissingPredictions = "empty",
    decimal: opt.NewDecimal = None,
    thousands: opt.Thousands = None,
    sheet: opt.Sheet = None,
    stream_above: opt.StreamAbove = 1.0,
    force: opt.Force = False,
) -> None:
    """Predict for every row of a table, in its order.

    From Parquet to Parquet, a table may be larger than memory: see --stream-above.

    Example: heckmanfa predict wages.skops wages.csv --kind selected --out predictions.csv
    """
    dispatch("predict", locals())
