"""Cases of `same_numbers`: the command line, by the files it writes.

Commands run in this process, which spares each the seconds of a fresh interpreter; one of
``simulate`` runs in a process of its own, as users run it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.cases_estimates import formula_frame
from benchmarks.facts import Facts
from benchmarks.model_facts import KINDS, some_rows
from benchmarks.public import MROZ_FEATURES, run_command, run_here

_PLAIN = ["--exclude", "count,region"]
_SMALL = ["--features", "educ,exper,age,kids5,kids618,nwifeinc"]
_FITS: dict[str, list[str]] = {
    "best subset": [*_PLAIN, "--search", "best-subset"],
    "categories": ["--exclude", "count"],
    "aic, rho range": [*_PLAIN, "--criterion", "aic", "--rho-range", "-0.5", "0.9"],
    "fa": [*_PLAIN, "--search", "fa", "--seed", "3"],
    "fa-star": [*_PLAIN, "--search", "fa-star", "--criterion", "bic", "--missing", "mean"],
    "correlation, always": [*_PLAIN, "--search", "correlation", "--always", "age,city"],
    "no search, ml": [*_PLAIN, "--search", "none", "--method", "ml", "--select-only", "kids5,age"],
    "ml from rho": [*_PLAIN, "--method", "ml", "--start", "0.4", "--predict-with", "educ,exper"],
    "frequency weights": ["--exclude", "region", "--weights", "count"],
    "sampling weights": [
        *("--exclude", "region", "--weights", "count", "--weight-kind", "sampling"),
        *("--search", "none", "--select-only", "kids5,kids618"),
    ],
    "clusters": ["--exclude", "count", "--cluster", "region", "--criterion", "adjusted_r2"],
    "robust, categorical": [*_PLAIN, "--robust", "--categorical", "city", "--features",
                            "educ,exper,expersq,age,kids5,city,nwifeinc"],
    "honest": [*_PLAIN, "--honest", "--seed", "2"],
    "average": [*_PLAIN, "--search", "average"],
    "average, categories, robust": ["--exclude", "count", "--robust", "--search", "average"],
    "average, both equations": [*_SMALL, "--search", "average", "--search-in", "both"],
    "lasso": [*_PLAIN, "--search", "lasso"],
    "held rho": [*_SMALL, "--search", "none", "--rho", "0.3"],
    "merged levels": ["--exclude", "count", "--min-level-rows", "60", "--reference", "region=r03"],
    "log outcome": [*_SMALL, "--outcome", "amount", "--outcome-transform", "log"],
    "log outcome, search, ml": [
        *(*_SMALL, "--outcome", "amount", "--outcome-transform", "log1p"),
        *("--search", "best-subset", "--method", "ml"),
    ],
    "binary": [*_SMALL, "--outcome", "high"],
    "binary, positive, clusters": [
        *("--features", "educ,exper,age,kids5", "--outcome", "high", "--positive", "low"),
        *("--cluster", "region", "--search", "none", "--select-only", "kids5,age"),
    ],
    "binary, average": [*_SMALL, "--outcome", "high", "--search", "average"],
    "binary, held rho": [*_SMALL, "--outcome", "high", "--search", "none", "--rho", "0.3"],
    "unknown column": ["--exclude", "nothing"],
}  # fmt: skip


def cases() -> dict[str, Callable[[Facts], None]]:
    found: dict[str, Callable[[Facts], None]] = {
        f"command line/fit, {name}": partial(fit, words=words) for name, words in _FITS.items()
    }
    return found | {
        "command line/fit streamed": streamed,
        "command line/predict": predict,
        "command line/compare": compare,
        "command line/simulate": simulate,
        "command line/reproduce": reproduce,
    }


def _in_folder(facts: Facts, case: Callable[[Facts, Path], None]) -> None:
    with tempfile.TemporaryDirectory() as name:
        case(facts, Path(name))


def _run(facts: Facts, key: str, *words: str | Path) -> bool:
    """Run a command and record its exit status; return whether it succeeded."""
    status = run_here([str(one) for one in words])
    facts.add(f"{key}.exit_status", status)
    return status == 0


def _table(folder: Path, ending: str = "csv", *, more: bool = False) -> Path:
    path = folder / f"mroz.{ending}"
    data = formula_frame()
    works = data["lfp"] == 1
    high = data["wage"].ge(4).map({True: "high", False: "low"}).where(works)
    columns = [*MROZ_FEATURES, "region", "count", "lwage"]
    if more:
        columns = [*columns, "amount", "high"]
    frame = data.assign(amount=data["wage"].where(works), high=high)[columns]
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return path


def _add_json(facts: Facts, key: str, path: Path) -> None:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for name, value in found.items():
        facts.add(f"{key}{name}", value)


def fit(facts: Facts, words: list[str]) -> None:
    _in_folder(facts, partial(_fit, words=words))


def _fit(facts: Facts, folder: Path, words: list[str]) -> None:
    other = "--outcome" in words
    table, out = _table(folder, more=other), folder / "out.json"
    outcome = [] if other else ["--outcome", "lwage"]
    if _run(facts, "fit", "fit", table, *outcome, *words, "--json", out):
        _add_json(facts, "", out)


def streamed(facts: Facts) -> None:
    _in_folder(facts, _streamed)


def _streamed(facts: Facts, folder: Path) -> None:
    table, out, model = _table(folder, "parquet"), folder / "out.json", folder / "model.heckmanfa"
    words = ["--outcome", "lwage", "--exclude", "count", "--stream-above", "0"]
    if _run(facts, "fit", "fit", table, *words, "--json", out, "--save", model):
        _add_json(facts, "", out)
    written = folder / "out.parquet"
    words = ["--stream-above", "0", "--interval", "confidence", "--kind", "selected"]
    if _run(facts, "predict", "predict", model, table, *words, "--out", written):
        facts.add("predict", some_rows(pd.read_parquet(written)))


def predict(facts: Facts) -> None:
    _in_folder(facts, _predict)


def _predict(facts: Facts, folder: Path) -> None:
    table, model = _table(folder), folder / "model.heckmanfa"
    words = ["--outcome", "lwage", "--exclude", "count", "--method", "ml"]
    _run(facts, "fit", "fit", table, *words, "--save", model)
    asked = [(kind, interval) for kind in KINDS for interval in ("prediction", "confidence")]
    for kind, interval in [*asked[:1], *asked[3:5], ("selection", None)]:
        out = folder / f"{kind}-{interval}.csv"
        options = [] if interval is None else ["--interval", interval, "--keep-columns"]
        key = f"{kind}, {interval}"
        if _run(facts, key, "predict", model, table, "--kind", kind, *options, "--out", out):
            facts.add(key, some_rows(pd.read_csv(out)))


def compare(facts: Facts) -> None:
    _in_folder(facts, _compare)


def _compare(facts: Facts, folder: Path) -> None:
    table, out = _table(folder), folder / "out.csv"
    words = ["--outcome", "lwage", "--features", ",".join(MROZ_FEATURES[:7])]
    words += ["--folds", "2", "--repeats", "1", "--no-ru"]
    if _run(facts, "compare", "compare", table, *words, "--out", out):
        facts.add("compare", pd.read_csv(out))


def simulate(facts: Facts) -> None:
    _in_folder(facts, _simulate)


def _simulate(facts: Facts, folder: Path) -> None:
    out, truth = folder / "out.csv", folder / "truth.json"
    words = ["--rows", "500", "--features", "4", "--predicting", "2", "--correlation", "0.3"]
    if _run(facts, "csv", "simulate", out, *words, "--seed", "5", "--truth", truth):
        facts.add("rows", some_rows(pd.read_csv(out)))
        _add_json(facts, "truth.", truth)
    parts = folder / "parts"
    run_command(["simulate", str(parts), "--rows", "300", "--files", "2"])
    facts.add("parts", some_rows(pd.read_parquet(parts)))


def reproduce(facts: Facts) -> None:
    _in_folder(facts, _reproduce)


def _reproduce(facts: Facts, folder: Path) -> None:
    out = folder / "tables"
    tables = ["sampling", "topjfeats", "selfeatures"]
    if not _run(facts, "reproduce", "reproduce", *tables, "--quick", "--out", out):
        return
    for path in sorted(out.glob("*.json")):
        _add_json(facts, f"{path.stem}.", path)
        facts.add(f"{path.stem}.csv", pd.read_csv(path.with_suffix(".csv")))
