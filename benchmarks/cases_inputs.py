"""Cases of `same_numbers`: the same rows from other libraries and files, scorers and pictures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from benchmarks.cases_estimates import PREDICTION, formula_frame, frequencies, mroz
from benchmarks.facts import Facts
from benchmarks.model_facts import (
    KINDS,
    attributes_of,
    estimates_of,
    search_of,
    some_rows,
)
from benchmarks.public import MROZ_FEATURES, MROZ_SELECTION
from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanProbit,
    InverseProbabilityWeighted,
    NaiveOLS,
    predict_batches,
    predict_parquet,
    scan,
    scan_parquet,
)
from heckmanfa.analysis import Question, analyse
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.model_selection import (
    SelectionKFold,
    joint_log_likelihood,
    observed_mae,
    observed_mse,
    observed_r2,
)

_MODELS: dict[str, Any] = {
    "two-step": Heckman(PREDICTION, cov_type="robust"),
    "ml": Heckman(PREDICTION, method="ml"),
    "search": HeckmanBestSubset(tolerance=1.0),
    "trained": HeckmanFA(epochs=60, n_draws=40, random_state=1),
    "ols": NaiveOLS(PREDICTION),
    "ipw": InverseProbabilityWeighted(PREDICTION),
}


def cases() -> dict[str, Callable[[Facts], None]]:
    found: dict[str, Callable[[Facts], None]] = {}
    for library in ("numpy", "polars", "pyarrow", "torch", "dask"):
        found[f"input/{library}"] = partial(library_input, library=library)
    return found | {
        "parquet/numbers": parquet,
        "parquet/categories": parquet_categories,
        **{f"scan/{engine}": partial(scanned, engine=engine) for engine in _ENGINES},
        "columns/categories": categories,
        "scorers/mroz": scorers,
        "scorers/folds": folds,
        "analysis/mroz": analysis,
        "plots/mroz": plots,
    }


# Other libraries. ---------------------------------------------------------------------------------


def library_input(facts: Facts, library: str) -> None:
    X, y = mroz()
    inputs, outcome = _in_library(X, y, library)
    for name, model in _MODELS.items():
        model = clone(model)
        if library in ("numpy", "torch") and "prediction_features" in model.get_params():
            named = model.prediction_features
            places = None if named is None else [MROZ_SELECTION.index(one) for one in named]
            model.set_params(prediction_features=places)
        facts.attempt(f"{name}.fit", lambda model=model: model.fit(inputs, outcome))
        attributes_of(facts, model, f"{name}.")
        facts.add(f"{name}.score", lambda model=model: model.score(inputs, outcome))
        facts.add(f"{name}.predict", lambda model=model: _first(model.predict(inputs)))
        if isinstance(model, Heckman):
            _heckman_of(facts, name, model, inputs, outcome)


def _heckman_of(facts: Facts, name: str, model: Any, X: Any, y: Any) -> None:
    facts.add(f"{name}.tidy", model.tidy)
    facts.add(f"{name}.vcov", model.vcov)
    facts.add(f"{name}.log_likelihood", lambda: model.log_likelihood(X, y))
    facts.add(f"{name}.predict_selection", lambda: _first(model.predict_selection(X)))
    facts.add(f"{name}.inverse_mills", lambda: _first(model.inverse_mills(X)))
    for kind in KINDS:
        for which in ("prediction", "confidence"):
            facts.add(
                f"{name}.{kind}.{which}",
                lambda kind=kind, which=which: _first(
                    model.predict(X, kind, return_interval=which)[1]
                ),
            )
    facts.add(f"{name}.specification", lambda: model.specification_tests(X, y).tidy())


def _first(values: Any) -> Any:
    """A few of the values, computed where they are lazy."""
    values = values.compute() if hasattr(values, "compute") else values
    return values[:12]


def _in_library(X: pd.DataFrame, y: pd.Series, library: str) -> tuple[Any, Any]:
    if library == "polars":
        import polars

        return polars.from_pandas(X), polars.from_pandas(y)
    if library == "pyarrow":
        import pyarrow

        return pyarrow.Table.from_pandas(X, preserve_index=False), pyarrow.array(y.to_numpy())
    if library == "torch":
        import torch

        return torch.tensor(X.to_numpy(float)), torch.tensor(y.to_numpy())
    if library == "dask":
        import dask.dataframe

        both = dask.dataframe.from_pandas(X.assign(lwage=y), npartitions=3)
        return both[MROZ_SELECTION], both["lwage"]
    return X.to_numpy(float), y.to_numpy()


# Parquet. -----------------------------------------------------------------------------------------


def parquet(facts: Facts) -> None:
    data = make_selection(4000, 6, 3, random_state=6)
    frame = data.frame.assign(weight=frequencies(len(data.y)), cluster=np.arange(len(data.y)) % 40)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
            frame.iloc[rows].to_parquet(folder / f"part-{place}.parquet", row_group_size=500)
        roles = {"sample_weight": "weight", "groups": "cluster"}
        rows = scan_parquet(folder, "y", list(data.feature_names), **roles)
        for model in (
            Heckman(["x0", "x1", "x2"], cov_type="cluster"),
            Heckman(["x0", "x1", "x2"], method="ml", cov_type="cluster"),
            HeckmanBestSubset(cov_type="cluster"),
            HeckmanFA("rank", cov_type="cluster", epochs=50, random_state=0, train_rows=700),
        ):
            key = f"{type(model).__name__}, {model.method}"
            inner = Facts()
            estimates_of(inner, model.fit(rows))
            if hasattr(model, "search_report"):
                search_of(inner, model)
            facts.flat |= {f"{key}.{name}": one for name, one in inner.flat.items()}
        plain = Heckman(["x0", "x1", "x2"]).fit(scan_parquet(folder, "y", list(data.feature_names)))
        _predict_files(facts, plain, folder)


def _predict_files(facts: Facts, model: Any, folder: Path, **options: Any) -> None:
    for kind in (*KINDS, "selection"):
        for interval in (None, "prediction", "confidence"):
            out = folder.parent / f"{folder.name}-{kind}-{interval}.parquet"
            key = f"predict.{kind}.{interval}"
            facts.attempt(
                key,
                lambda kind=kind, interval=interval, out=out: predict_parquet(
                    model, folder, out, kind=kind, return_interval=interval, **options
                ),
            )
            if out.exists():
                facts.add(key, some_rows(pd.read_parquet(out)))
                out.unlink()


def parquet_categories(facts: Facts) -> None:
    frame = formula_frame()[[*MROZ_SELECTION, "city", "region", "lwage"]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "rows"
        folder.mkdir()
        frame.iloc[:400].to_parquet(folder / "a.parquet")
        frame.iloc[400:].to_parquet(folder / "b.parquet")
        for missing in ("error", "drop"):
            facts.attempt(missing, partial(_fit_categories, facts, folder, missing))


def _fit_categories(facts: Facts, folder: Path, missing: str) -> None:
    names = [*MROZ_SELECTION, "city", "region"]
    rows = scan_parquet(folder, "lwage", names, missing=missing, categorical=["city"])
    model = HeckmanBestSubset(tolerance=0.5).fit(rows)
    attributes_of(facts, model, f"{missing}.")
    facts.add(f"{missing}.tidy", model.tidy())
    if missing == "drop":
        _predict_files(facts, model, folder, encoding=rows.encoding)


# Scans of other engines. --------------------------------------------------------------------------

_ENGINES = ("parquet", "feather", "dataset", "polars", "duckdb")


def scanned(facts: Facts, engine: str) -> None:
    """Record fits and predictions of the same rows, as each engine gives them."""
    frame = formula_frame()[[*MROZ_SELECTION, "region", "count", "lwage", "wage", "lfp"]]
    frame["high"] = (frame["wage"] >= 4).map({True: "high", False: "low"}).where(frame["lfp"] == 1)
    frame["amount"] = frame["wage"].where(frame["lfp"] == 1)
    with tempfile.TemporaryDirectory() as name:
        source = _source(frame, engine, Path(name))
        names = [*MROZ_SELECTION, "region"]
        roles = {"missing": "drop", "sample_weight": "count"}
        for key, outcome, model in (
            ("two-step", "lwage", Heckman([*PREDICTION, "region"], cov_type="robust")),
            ("ml", "lwage", Heckman(PREDICTION, method="ml")),
            ("log", "amount", Heckman(PREDICTION, outcome_transform="log")),
            ("held rho", "lwage", Heckman(PREDICTION, rho=0.3)),
            ("search", "lwage", HeckmanBestSubset()),
            ("average", "lwage", HeckmanAverage()),
            ("binary", "high", HeckmanProbit(PREDICTION)),
        ):
            rows = scan(source, outcome, names, **roles)
            facts.attempt(f"{key}.fit", lambda model=model, rows=rows: model.fit(rows))
            attributes_of(facts, model, f"{key}.")
            facts.add(f"{key}.tidy", model.tidy)
            batches = facts.attempt(
                f"{key}.predict", lambda model=model: list(predict_batches(model, source))
            )
            if batches is not None:
                predicted = pd.concat(batch.to_pandas() for batch in batches)
                facts.add(f"{key}.predict", some_rows(predicted.reset_index(drop=True)))


def _source(frame: pd.DataFrame, engine: str, folder: Path) -> Any:
    path = folder / ("rows.feather" if engine == "feather" else "rows.parquet")
    if engine == "feather":
        frame.to_feather(path)
        return path
    frame.to_parquet(path, row_group_size=200)
    if engine == "polars":
        import polars

        return polars.scan_parquet(path).filter(polars.col("age") > 0)
    if engine == "duckdb":
        import duckdb

        return duckdb.connect().read_parquet(str(path))
    if engine == "dataset":
        import pyarrow.dataset

        return pyarrow.dataset.dataset(path)
    return path


# Categories in memory. ----------------------------------------------------------------------------


def categories(facts: Facts) -> None:
    """Record what text, categoricals, booleans and declared columns become, and who they are."""
    data = load_mroz()
    X = data[["educ", "exper", "age", "kids5"]].assign(
        region=np.random.default_rng(9).choice(["east", "north", "west"], len(data)),
        size=pd.Categorical(data["kids618"].clip(upper=3).astype(str), ordered=True),
        town=data["city"].astype(bool),
        children=data["kids618"].clip(upper=2),
    )
    models: dict[str, Any] = {
        "two-step": Heckman(
            ["educ", "region", "size", "town"],
            ["educ", "exper", "age", "kids5", "region", "size", "town"],
            reference={"region": "west"},
        ),
        "ml": Heckman(["educ", "region"], ["educ", "age", "region"], method="ml"),
        "declared": Heckman(
            ["educ", "children"],
            ["educ", "children", "region", "age"],
            categorical_features=["children", "region", "size"],
        ),
        "search": HeckmanBestSubset(always=["region"], on_collinear="drop"),
        "average": HeckmanAverage(
            feature_groups={"where": ["region", "town"]}, on_collinear="drop"
        ),
        "binary": HeckmanProbit(["educ", "region"], ["educ", "age", "region"]),
        "unknown levels": Heckman(["educ", "region"], ["educ", "age", "region"], unknown="missing"),
    }
    some = some_rows(X)
    other = some.assign(region=np.where(np.arange(len(some)) % 5 == 0, "south", some["region"]))
    for name, model in models.items():
        y = data["lwage"] if name != "binary" else (data["wage"] >= 4).where(data["lfp"] == 1)
        if facts.attempt(f"{name}.fit", lambda model=model, y=y: model.fit(X, y)) is None:
            continue
        attributes_of(facts, model, f"{name}.")
        facts.add(f"{name}.tidy", model.tidy)
        facts.add(f"{name}.predict", lambda model=model: model.predict(some))
        facts.add(f"{name}.unknown", lambda model=model: model.predict(other, missing="nan"))
        facts.add(f"{name}.margins", lambda model=model: model.margins(some, "marginal").tidy())
        facts.add(f"{name}.diagnostics", model.diagnostics)


# Scorers, analyses and pictures. ------------------------------------------------------------------


def scorers(facts: Facts) -> None:
    data = make_selection(700, 6, 3, random_state=15)
    models: dict[str, Any] = {
        "heckman": Heckman(data.support),
        "ml": Heckman(data.support, method="ml"),
        "search": HeckmanBestSubset(),
        "ols": NaiveOLS(),
    }
    scores = {
        "mse": observed_mse,
        "mae": observed_mae,
        "r2": observed_r2,
        "likelihood": joint_log_likelihood,
    }
    split = SelectionKFold(3, shuffle=True, random_state=0)
    for name, model in models.items():
        for score, scorer in scores.items():
            facts.add(
                f"{name}.{score}",
                lambda model=model, scorer=scorer: cross_val_score(
                    model, data.X, data.y, cv=split, scoring=scorer
                ),
            )
    grid = GridSearchCV(
        HeckmanBestSubset(), {"criterion": ["bic", "aic"]}, cv=split, scoring=observed_mse
    ).fit(data.X, data.y)
    facts.add("grid", grid.cv_results_["mean_test_score"])
    facts.add("grid.best", grid.best_params_)


def folds(facts: Facts) -> None:
    X, y = mroz()
    for name, split in {
        "plain": SelectionKFold(4),
        "shuffled": SelectionKFold(5, shuffle=True, random_state=3),
    }.items():
        for place, (_, test) in enumerate(split.split(X, y)):
            facts.add(f"{name}.{place}", test)


def analysis(facts: Facts) -> None:
    frame = formula_frame()[[*MROZ_FEATURES, "region", "lwage", "count"]]
    questions = {
        "best subset": Question("mroz", "lwage", weights="count"),
        "mean": Question("mroz", "lwage", exclude=("count",), missing="mean", robust=True),
        "none": Question("mroz", "lwage", exclude=("count",), search="none", select_only=("age",)),
        "clusters": Question("mroz", "lwage", cluster="region", search="correlation"),
    }
    for name, question in questions.items():
        found = analyse(question, frame=frame)
        inner = Facts()
        estimates_of(inner, found.model)
        for part in ("predicting", "kept_out", "driving_selection", "without_evidence"):
            inner.add(part, lambda part=part, found=found: getattr(found, part))
        inner.add("rows", found.row_counts)
        # A method before the rebuild, an attribute after it.
        caveats = found.caveats() if callable(found.caveats) else found.caveats
        inner.add("caveat_keys", [caveat.key for caveat in caveats])
        facts.flat |= {f"{name}.{key}": one for key, one in inner.flat.items()}


def plots(facts: Facts) -> None:
    """Record the lines and points of each picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    from heckmanfa import plots as pictures

    data = load_mroz()
    X, y = data[MROZ_SELECTION], data["lwage"]
    model = Heckman(PREDICTION, method="ml").fit(X, y)
    search = HeckmanBestSubset(tolerance=3.0).fit(X, y)
    trained = HeckmanFA(epochs=60, n_draws=40, random_state=1, record_path=10).fit(X, y)
    drawn = {
        "coefficients": lambda: pictures.coefficients([model, search]),
        "imr_overlap": lambda: pictures.imr_overlap(model, X, y),
        "rho_profile": lambda: pictures.rho_profile(model, X, y, n_grid=7),
        "specification_curve": lambda: pictures.specification_curve(search),
        "uncertainty": lambda: pictures.uncertainty(model.uncertainty_interval(n_grid=7)),
        "assignment_path": lambda: pictures.assignment_path(trained),
    }
    average = HeckmanAverage().fit(X, y)
    binary = HeckmanProbit(PREDICTION).fit(X, (data["wage"] >= 4).where(data["lfp"] == 1))
    for name in ("forest", "chances", "assignments", "imr_estimates", "over_rho"):
        draw = getattr(pictures, name)
        drawn[f"{name}, average"] = lambda draw=draw: draw(average)
    drawn["forest, binary"] = lambda: pictures.forest(binary)
    for name, draw in drawn.items():
        axes = facts.attempt(name, draw)
        for place, one in enumerate(np.ravel(np.asarray(axes, dtype=object))):
            if one is not None:
                lines = [line.get_xydata() for line in one.get_lines()]
                facts.add(f"{name}.{place}.lines", lines)
                points = [np.asarray(part.get_offsets()) for part in one.collections]
                facts.add(f"{name}.{place}.points", points)
