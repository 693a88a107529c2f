"""Targets that know the right answer: a request has one, and rows in order have it.

Refusing with an error of ours is always good.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fuzz.cases import BrokenPromiseError, _ours, _watched
from fuzz.material import HOSTILE_TEXT, Source, pick
from heckmanfa import Heckman, save, scan
from heckmanfa.errors import HeckmanfaError

__all__ = ["rows", "same", "service"]

# Seconds of work for one request, on any machine.
_LONGEST = 6.0


def same(got: Any, want: Any, what: str) -> None:
    """Refuse numbers that differ from those of the plain way."""
    if not np.allclose(got, want, rtol=1e-6, atol=1e-8, equal_nan=True):
        raise BrokenPromiseError(f"{what}: other numbers than by the plain way")


# The service of docs/serving.md. ------------------------------------------------------------------

_SERVICE: dict[str, Any] = {}


def _client(folder: Path) -> Any:
    """The service of the documents, as a reader would save it."""
    if not _SERVICE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from fastapi.testclient import TestClient

        text = (Path(__file__).parents[1] / "docs" / "serving.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        code = next(block for block in blocks if "@app.post" in block)
        from heckmanfa.datasets import load_mroz

        mroz = load_mroz()
        mroz["place"] = mroz["city"].map({0.0: "country", 1.0: "city"})
        model = Heckman(["educ", "exper", "place"])
        model.fit(mroz[["educ", "exper", "place", "age", "kids5"]], mroz["lwage"])
        found = re.search(r'load\("([^"]+)"\)', code)
        assert found is not None
        save(model, folder / found[1])
        space: dict[str, Any] = {"__name__": "serve"}
        exec(compile(code, "serve.py", "exec"), space)
        _SERVICE["client"] = TestClient(space["app"], raise_server_exceptions=False)
    return _SERVICE["client"]


def _values(source: Source) -> Iterator[Any]:
    while True:
        yield pick(
            source,
            [
                *("city", "country", "moon", None, 12, 1e308, -1, 0, True, [], {}, [[1]], "1e9"),
                *("\ud800", "1" * int(10 ** source.uniform(1, 5)) + "x", "9" * 5000, 10**400),
                pick(source, HOSTILE_TEXT),
            ],
        )


def service(source: Source, folder: Path) -> None:
    """Bodies of requests: any JSON, and what is none."""
    # An event loop makes sockets of its own.
    _watched["folder"] = None
    client = _client(folder)
    values = _values(source)
    names = ["educ", "exper", "place", "age", "kids5"]
    usual = {"educ": 12, "exper": 10, "place": "city", "age": 40, "kids5": 0}
    body_rows: Any = []
    for _ in range(int(10 ** source.uniform(0, 3))):
        row: dict[str, Any] = dict(usual)
        for _ in range(int(source.integers(0, 3))):
            name = pick(source, [*names, *names, pick(source, HOSTILE_TEXT), "\ud800"])
            row[name] = next(values)
        body_rows.append(row)
    if source.random() < 0.2:
        body_rows = next(values)
    body = json.dumps(body_rows).encode("utf-8", "surrogatepass")
    if source.random() < 0.3:
        at = int(source.integers(len(body) + 1))
        body = body[:at] + bytes(source.integers(0, 256, 3).tolist()) + body[at:]
    start = time.process_time()
    answer = client.post("/predict", content=body, headers={"content-type": "application/json"})
    used = time.process_time() - start
    if answer.status_code >= 500:
        raise BrokenPromiseError(f"status {answer.status_code} for {body[:300]!r}")
    if used > _LONGEST:
        raise BrokenPromiseError(f"{used:.0f} seconds for {len(body):,} bytes: {body[:300]!r}")


# Rows. --------------------------------------------------------------------------------------------


def rows(source: Source, folder: Path) -> None:
    """Labels in another order, rows that change, levels that look missing, levels without rows."""
    n = int(source.integers(150, 300))
    frame = pd.DataFrame(source.normal(size=(n, 3)), columns=["a", "b", "c"])
    y = (frame["a"] + source.normal(size=n)).where(frame["b"] + source.normal(size=n) > 0)
    case = pick(source, [_shuffled, _changing, _marked_levels, _dropped_levels])
    case(source, frame, y)


def _shuffled(source: Source, frame: pd.DataFrame, y: pd.Series[Any]) -> None:
    model = Heckman(["a"], ["a", "b", "c"], cov_type="cluster", weight_kind="frequency")
    weight = pd.Series(source.integers(1, 4, len(y)))
    group = pd.Series(source.integers(0, 60, len(y)))
    selected = y.notna()
    vectors = {"y": y, "selected": selected, "sample_weight": weight, "groups": group}
    want = _ours(lambda: model.fit(frame, **vectors).tidy(), "fit")
    if want is None:
        return
    name = pick(source, [*vectors])
    kind = pick(source, ["shuffled", "renamed", "reset"])
    given = vectors[name]
    if kind == "shuffled":
        vectors[name] = given.sample(frac=1.0, random_state=int(source.integers(10**6)))
    elif kind == "renamed":
        vectors[name] = given.set_axis(given.index + 5)
    else:
        frame = frame.set_axis(frame.index + 7)
    fresh = Heckman(["a"], ["a", "b", "c"], cov_type="cluster", weight_kind="frequency")
    got = _ours(lambda: fresh.fit(frame, **vectors).tidy(), f"fit with {name} {kind}")
    if got is not None:
        same(got["estimate"], want["estimate"], f"{name} {kind}")


def _changing(source: Source, frame: pd.DataFrame, y: pd.Series[Any]) -> None:
    """A query that gives other rows in every pass is refused."""
    whole = frame.assign(y=y)
    way = pick(source, ["duckdb", "polars", "polars values"])
    if way == "duckdb":
        import duckdb

        relation = duckdb.from_df(whole).query(
            "t", f"SELECT * FROM t USING SAMPLE {len(y) // 2} ROWS"
        )
        relation = duckdb.from_df(whole).filter("random() < 0.7") if relation is None else relation
        opened: Any = relation
    else:
        import polars as pl

        if way == "polars":
            opened = (
                pl.from_pandas(whole).lazy().map_batches(lambda given: given.sample(len(y) // 2))
            )
        else:
            opened = (
                pl.from_pandas(whole)
                .lazy()
                .map_batches(lambda given: given.with_columns(given["a"].shuffle()))
            )
    got = _ours(lambda: Heckman(["a"]).fit(scan(opened, "y", ["a", "b", "c"])), f"changing {way}")
    if got is not None and way != "polars values":
        raise BrokenPromiseError(f"rows that change between passes were fitted ({way})")


def _marked_levels(source: Source, frame: pd.DataFrame, y: pd.Series[Any]) -> None:
    """A declared level is a level, whatever it is called."""
    mark = pick(source, ["NA", "-", ".", "nan", "?", "null", "N/A"])
    codes = source.integers(0, 3, len(y))
    plain = pd.Categorical.from_codes(codes, ["p", "q", "r"])
    marked = pd.Categorical.from_codes(codes, [mark, "q", "r"])
    want = _ours(lambda: Heckman(["a", "g"]).fit(frame.assign(g=plain), y), "fit of levels")
    got = _ours(lambda: Heckman(["a", "g"]).fit(frame.assign(g=marked), y), f"fit of {mark!r}")
    if want is not None and got is not None:
        same(got.tidy()["estimate"], want.tidy()["estimate"], f"the level {mark!r}")


def _dropped_levels(source: Source, frame: pd.DataFrame, y: pd.Series[Any]) -> None:
    """A level that no fitted row has is refused in predictions, or its row has none."""
    codes = source.integers(0, 3, len(y))
    levels = np.array(["p", "q", "r"])[codes].astype(object)
    kind = pick(source, ["missing features", "separated"])
    dropped = levels == "r"
    if kind == "missing features":
        frame = frame.assign(b=frame["b"].where(~dropped))
    else:
        y = y.where(~dropped)
    X = frame.assign(g=pd.Series(levels))
    options = {"on_separation": "drop", "on_collinear": "drop"}
    got = _ours(lambda: Heckman(["a", "g"], **options).fit(X, y), f"fit with {kind}")
    if got is None:
        return
    if any("[r]" in str(term) for term in got.tidy()["term"]):
        return
    rows = pd.DataFrame({"a": [0.0] * 3, "b": [0.0] * 3, "c": [0.0] * 3, "g": ["p", "q", "r"]})
    try:
        predicted = got.predict(rows)
    except HeckmanfaError:
        return
    if not np.isnan(predicted[2]):
        raise BrokenPromiseError(f"a level without a fitted row is predicted ({kind})")
