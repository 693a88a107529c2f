"""``heckmanfa fit``: from a table to a model, in words, a report, a model file and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import heckmanfa.cli.options as opt
from heckmanfa.cli.common import output, saying
from heckmanfa.text.printable import shown

if TYPE_CHECKING:
    from heckmanfa.analysis import Analysis

__all__ = ["fit"]


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
    analysis = _run(locals(), {"--report": report, "--save": save, "--json": json_out})
    # Imported here to keep the start of the command line fast.
    from heckmanfa.cli.fit_text import show

    console = output()
    show(analysis, console)
    for path, what in ((report, "report"), (save, "model"), (json_out, "results")):
        if path is not None:
            console.print(f"{what} written to {shown(path)}", markup=False)


def _run(options: Mapping[str, Any], files: Mapping[str, Path | None]) -> Analysis:
    """Answer the question that the options ask, and write the files."""
    with saying() as say:
        say("loading")
        # Imported here to keep the start of the command line fast.
        from heckmanfa.analysis import analyse, save_model
        from heckmanfa.cli.fit_json import write_json
        from heckmanfa.data.files.outputs import outputs
        from heckmanfa.report import write_report

        question = opt.question_of(options)
        # Paths are checked before anything is computed, and all files are put in place together:
        # a failed run leaves none.
        with outputs(files, {"DATA": question.data}, force=options["force"]) as places:
            analysis = analyse(question, say)
            if "--report" in places:
                say("writing the report")
                write_report(analysis, places["--report"].part)
            if "--save" in places:
                about = {"command": question.command(), "outcome": question.outcome}
                part = places["--save"].part
                save_model(part, analysis.model, analysis.encoding, about, force=True)
            if "--json" in places:
                with places["--json"].writing() as part:
                    write_json(analysis, part)
    return analysis
