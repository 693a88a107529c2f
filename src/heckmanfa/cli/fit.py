"""``heckmanfa fit``: from a table to a model, in words, a report, a model file and JSON."""

from __future__ import annotations

import heckmanfa.cli.options as opt
from heckmanfa.cli.common import dispatch


def fit(
    data: opt.Data,
    outcome: opt.Outcome,
    selected: opt.Selected = None,
    features: opt.Features = None,
    exclude: opt.Exclude = None,
    predict_with: opt.PredictWith = None,
    always: opt.Always = None,
    select_only: opt.SelectOnly = None,
    search: opt.Search = "best-subset",
    criterion: opt.Criterion = None,
    rho_range: opt.RhoRange = None,
    method: opt.Method = "two-step",
    start: opt.Start = None,
    weights: opt.Weights = None,
    weight_kind: opt.WeightKind = "frequency",
    cluster: opt.Cluster = None,
    robust: opt.Robust = False,
    missing: opt.Missing = "drop",
    on_separation: opt.OnSeparation = "error",
    categorical: opt.Categorical = None,
    numeric: opt.Numeric = None,
    decimal: opt.Decimal = None,
    thousands: opt.Thousands = None,
    sheet: opt.Sheet = None,
    honest: opt.Honest = False,
    stream_above: opt.StreamAbove = 1.0,
    device: opt.Device = "cpu",
    seed: opt.Seed = 0,
    report: opt.ReportFile = None,
    save: opt.SaveFile = None,
    json_out: opt.JsonFile = None,
    force: opt.Force = False,
) -> None:
    """Fit a selection model to a table, and say which features predict and which drive selection.

    Example: heckmanfa fit wages.csv --outcome y --report wages.html --save wages.skops

    (heckmanfa simulate wages.csv makes such a table.) Parquet files may be larger than memory: see
    --stream-above.
    """
    dispatch("fit", locals())
