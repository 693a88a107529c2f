"""``heckmanfa fit`` on Parquet files that are read in passes: the same answers as in memory."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heckmanfa.datasets import make_selection
from heckmanfa.tables import streamed

N = 2400
SAID = "Rows were read from 3 Parquet files in passes, not loaded"


def people(n=N):
    """A table of numbers, categories, gaps, an identifier and a constant, with groups."""
    data = make_selection(n, 4, 2, prediction_features=[0, 1], rho=0.6, random_state=3)
    rng = np.random.default_rng(5)
    region = rng.choice(["north", "south", "west"], n, p=[0.3, 0.5, 0.2])
    effect = pd.Series(region).map({"north": 0.5, "south": 0.0, "west": -0.5}).to_numpy()
    frame = pd.DataFrame(data.X, columns=["a", "b", "c", "d"]).assign(
        region=region,
        grade=[f"{one}" for one in rng.integers(1, 5, n)],
        wage=data.y + effect,
        works=np.where(data.selected, "yes", "No "),
        employed=data.selected,
        weight=rng.integers(0, 3, n),
        share=rng.uniform(0.5, 2.0, n),
        town=[f"town {one}" for one in rng.integers(0, 150, n)],
        woman=[f"w{place}" for place in range(n)],
        country="US",
    )
    frame.loc[n - 3, "region"] = "island"
    frame.loc[n - 40 :, "region"] = frame.loc[n - 40 :, "region"].replace("west", "island")
    frame.loc[rng.random(n) < 0.02, "b"] = np.nan
    frame.loc[rng.random(n) < 0.01, "region"] = None
    # Selected, and without an outcome.
    frame.loc[np.flatnonzero(data.selected)[:5], "wage"] = np.nan
    return frame


@pytest.fixture
def folder(shell, monkeypatch):
    """people/: three files with row groups of uneven sizes; the sample is much smaller."""
    monkeypatch.setattr(streamed, "SAMPLE_ROWS", 500)
    place = shell.folder / "people"
    place.mkdir()
    table = pa.Table.from_pandas(people(), preserve_index=False)
    for part, (low, high) in enumerate(((0, 1111), (1111, 1300), (1300, N))):
        pq.write_table(table.slice(low, high - low), place / f"{part}.parquet", 700)
    return place


def both(shell, *options):
    """The results of a fit in memory, and of the same fit in passes, with what it prints."""
    found = []
    for name, more in (("memory", ()), ("passes", ("--stream-above", 0))):
        out = shell.folder / f"{name}.json"
        text = shell.runs("fit", *options, *more, "--json", out, "--force")
        found.append(json.loads(out.read_text()))
    return *found, text


def same(memory, passes):
    """All that is found is the same, but for rounding."""
    assert not memory["streamed"]
    assert passes["streamed"]
    for name in (
        "rows", "rows_missing", "columns_left_out", "reference_levels", "predict", "only_select",
        "kept_out",
        "warnings",
    ):  # fmt: skip
        assert passes[name] == memory[name], name
    for one, other in zip(memory["estimates"], passes["estimates"], strict=True):
        assert one["term"] == other["term"]
        scale = one["std_error"] or 1.0
        assert other["estimate"] == pytest.approx(one["estimate"], abs=1e-8 * scale)
        if one["std_error"] is not None:
            assert other["std_error"] == pytest.approx(one["std_error"], rel=1e-7)
    if memory["inclusion"] is None:
        assert passes["bic"] == pytest.approx(memory["bic"], rel=1e-9)
    else:
        for one, other in zip(memory["inclusion"], passes["inclusion"], strict=True):
            assert other["feature"] == one["feature"]
            assert other["bic"] == pytest.approx(one["bic"], abs=1e-7)


BASE = ("people", "--outcome", "wage", "--exclude", "works,employed,weight,share,town")
PLAIN = (*BASE, "--search", "none", "--predict-with", "a,b,region")


@pytest.mark.parametrize(
    "options",
    [
        (*PLAIN,),
        (*PLAIN, "--missing", "mean", "--categorical", "grade"),
        (*PLAIN, "--method", "ml"),
        (*BASE, "--always", "a", "--select-only", "c"),
        (*BASE, "--search", "best-subset", "--always", "a", "--select-only", "c"),
        (*BASE, "--search", "correlation"),
        (*BASE, "--search", "fa-star", "--seed", "3"),
    ],
    ids=["plain", "mean", "ml", "average", "best-subset", "correlation", "fa-star"],
)
def test_a_fit_in_passes_is_the_fit_in_memory(shell, folder, options):
    memory, passes, text = both(shell, *options)
    same(memory, passes)
    assert SAID in text
    assert passes["rows"]["left_out_regressor_missing"] > 0 or "mean" in options
    assert "woman" in passes["columns_left_out"]


@pytest.mark.parametrize(
    "options",
    [
        ("--selected", "works", "--weights", "weight"),
        ("--selected", "employed", "--weights", "share", "--weight-kind", "sampling"),
        ("--cluster", "town"),
        ("--robust", "--weights", "weight"),
    ],
    ids=["words", "sampling", "cluster", "robust"],
)
def test_roles_of_columns_are_those_in_memory(shell, folder, options):
    taken = {one for one in options if not one.startswith("--")}
    spare = {"works", "employed", "weight", "share", "town"} - taken
    memory, passes, _ = both(
        shell, "people/*.parquet", "--outcome", "wage", "--exclude", ",".join(sorted(spare)),
        "--search", "none", "--predict-with", "a,b,region", *options,
    )  # fmt: skip
    same(memory, passes)
    if "--selected" in options:
        assert passes["rows"]["left_out_outcome_missing"] >= 4
    if "weight" in options:
        assert passes["rows"]["left_out_zero_weight"] > N // 4


def test_dates_and_numbers_can_be_categories_in_passes(shell, folder):
    for part in sorted(folder.iterdir()):
        frame = pd.read_parquet(part)
        frame["joined"] = pd.to_datetime("2001-01-01") + pd.to_timedelta(frame["weight"], unit="D")
        frame["day"] = frame["joined"].dt.date
        frame.to_parquet(part, index=False, row_group_size=500)
    memory, passes, _ = both(
        shell, *PLAIN[:3], "--features", "a,b,c,d,joined,day,weight", "--categorical",
        "joined,weight", "--search", "none", "--predict-with", "a,b",
    )  # fmt: skip
    same(memory, passes)
    assert set(passes["reference_levels"]) == {"joined", "weight"}
    assert "holds dates" in passes["columns_left_out"]["day"]


def test_rows_are_read_in_passes_above_a_size(shell, folder):
    """4,000 rows of 7 columns are 224 kB."""
    options = ("fit", *PLAIN, "--json", "out.json", "--force", "--stream-above")
    for limit, expected in ((1, False), (0.001, False), (0.0001, True)):
        _, text = shell(*options, limit)
        found = shell.json("out.json")
        assert found["streamed"] is expected
        assert (SAID in text) is expected
        # It is said while it runs, too.
        assert ("rows are read from 3 Parquet files in passes" in text) is expected
    assert found["command"].endswith("--stream-above 0.0001")


def test_text_is_loaded_whatever_its_size(shell, mroz):
    shell.runs("fit", "mroz.csv", "--outcome", "lwage", "--stream-above", 0, "--json", "o")
    assert shell.json("o")["streamed"] is False


@pytest.mark.usefixtures("untrained")
def test_several_files_are_compared_as_one_table(shell):
    frame = people(400)
    (shell.folder / "two").mkdir()
    frame.to_parquet(shell.folder / "one.parquet", index=False)
    frame.iloc[:150].to_parquet(shell.folder / "two" / "a.parquet", index=False)
    frame.iloc[150:].to_parquet(shell.folder / "two" / "b.parquet", index=False)
    tables = []
    for data in ("two/*.parquet", "one.parquet"):
        shell.runs(
            "compare", data, "--outcome", "wage", "--features", "a,b", "--folds", 2, "--repeats",
            1, "--no-ru", "--out", "c.csv", "--force",
        )  # fmt: skip
        tables.append(pd.read_csv("c.csv").drop(columns="seconds"))
    pd.testing.assert_frame_equal(*tables)


def test_the_report_of_rows_in_passes_says_what_is_left_out(shell, folder):
    for search in ("none", "best-subset"):
        shell.runs(
            "fit", *BASE, "--search", search, "--predict-with", "a,b,region", "--stream-above", 0,
            "--report", "r.html", "--force",
        )  # fmt: skip
        page = (shell.folder / "r.html").read_text(encoding="utf-8")
        assert "needs all rows in memory" in page
    shell("fit", *PLAIN, "--report", "r.html", "--force")
    page = (shell.folder / "r.html").read_text(encoding="utf-8")
    assert "needs all rows in memory" not in page


def test_a_model_of_rows_in_passes_is_saved_and_predicts(shell, folder):
    for name, limit in (("memory", 1), ("passes", 0)):
        shell.runs("fit", *PLAIN, "--save", f"{name}.heckmanfa", "--stream-above", limit)
        text = shell.runs("predict", f"{name}.heckmanfa", "people", "--out", f"{name}.csv")
        assert "lack a feature" in text
    pd.testing.assert_frame_equal(
        pd.read_csv("memory.csv"), pd.read_csv("passes.csv"), rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--kind", "selection", "--keep-columns"),
        ("--kind", "selected", "--interval", "prediction", "--keep-columns"),
    ],
    ids=["marginal", "selection", "interval"],
)
def test_predictions_in_parts_are_those_in_memory(shell, folder, options):
    shell.runs("fit", *PLAIN, "--save", "m.heckmanfa")
    said = []
    for name, limit in (("memory", 1), ("parts", 0)):
        text = shell.runs(
            "predict", "m.heckmanfa", "people/*.parquet", "--out", f"{name}.parquet",
            "--stream-above", limit, *options,
        )  # fmt: skip
        assert ("written a part at a time" in text) == (name == "parts")
        said.append(text.partition("written to")[2].split(" ", 2)[2])
    assert said[0] == said[1]
    assert "rows lack a feature, and have no prediction" in said[0]
    memory, parts = (
        pd.read_parquet(f"{name}.parquet").astype({"extrapolates": "boolean"})
        for name in ("memory", "parts")
    )
    assert len(parts) == N
    pd.testing.assert_frame_equal(memory, parts, rtol=1e-12)


def test_predictions_in_parts_are_written_whole_or_not_at_all(shell, folder):
    shell.runs("fit", *PLAIN, "--save", "m.heckmanfa")

    def refuses(*options):
        return shell.refuses("predict", "m.heckmanfa", "people", "--stream-above", 0, *options)

    (shell.folder / "mine.parquet").write_text("mine")
    assert "--force" in refuses("--out", "mine.parquet")
    assert "--kind must be one of" in refuses("--out", "p.parquet", "--kind", "marginals")
    frame = pd.read_parquet(folder / "2.parquet")
    frame.loc[1000, "region"] = "moon"
    frame.to_parquet(folder / "2.parquet", index=False)
    assert "'moon'" in refuses("--out", "p.parquet")
    (folder / "2.parquet").write_bytes((folder / "2.parquet").read_bytes()[:5000])
    assert "2.parquet cannot be read" in refuses("--out", "p.parquet")


def refused(shell, *options):
    """What is said of options that are refused for rows in passes."""
    return shell.refuses("fit", *options, "--stream-above", 0, "--json", "out.json")


def test_what_rows_in_passes_cannot_do_is_refused_before_any_pass(shell, folder, monkeypatch):
    def fails(*args, **kwargs):
        raise AssertionError("rows were read")

    monkeypatch.setattr("heckmanfa.data.scan.parquet_rows.read_batches", fails)
    assert "--honest needs the rows in memory" in refused(shell, *BASE, "--honest")
    assert "has no column 'wages'. Did you mean 'wage'" in refused(
        shell, "people", "--outcome", "wages"
    )
    assert "--search must be one of" in refused(shell, *BASE, "--search", "all")


def test_bad_columns_are_refused_as_in_memory(shell, folder):
    """Each refusal is the one that the same options get in memory."""
    for options in (
        (*BASE[:2], "a", *BASE[3:]),
        (*BASE, "--selected", "region"),
        (*BASE, "--selected", "country"),
        ("people", "--outcome", "wage", "--weights", "share"),
        ("people", "--outcome", "wage", "--weights", "b", "--weight-kind", "sampling"),
        ("people", "--outcome", "wage", "--cluster", "region"),
        (*PLAIN, "--numeric", "region"),
        (*PLAIN, "--always", "a"),
        (*PLAIN[:-1], "woman"),
    ):
        memory = shell.refuses("fit", *options, "--json", "out.json")
        assert refused(shell, *options) == memory
    assert "must hold 0 and 1" in refused(shell, *BASE, "--selected", "a")
    assert "is text; if rows are read in passes" in refused(shell, "people", "--outcome", "grade")


def test_rows_that_tell_nothing_about_selection_are_refused(shell, folder):
    """Where every row without an outcome lacks a feature, or every row with one does."""
    for part in sorted(folder.iterdir()):
        frame = pd.read_parquet(part)
        frame["p"] = frame["a"].where(frame["wage"].notna())
        frame["r"] = frame["p"].mask(frame["p"] == frame["p"].max())
        half = np.arange(len(frame)) % 2 == 0
        frame["s"] = frame["a"].where(frame["wage"].notna() | half)
        frame["t"] = frame["b"].where(frame["wage"].notna() | ~half)
        frame["q"] = frame["a"].where(frame["wage"].isna())
        frame.to_parquet(part, index=False)
    assert "no outcome is missing in the" in refused(
        shell, "people", "--outcome", "wage", "--features", "b,s,t"
    )
    for missing in ("drop", "mean"):
        said = refused(
            shell, "people", "--outcome", "wage", "--features", "b,r", "--missing", missing
        )
        assert "'r' is missing in all" in said
        assert "--exclude" in said
        assert "--missing mean" not in said
        said = refused(
            shell, "people", "--outcome", "wage", "--features", "b,p", "--missing", missing
        )
        assert "'p' is missing in exactly the" in said
        assert "--exclude" in said
    assert "no outcome is observed in any row that has every feature" in refused(
        shell, "people", "--outcome", "wage", "--features", "b,q"
    )


def test_files_that_differ_or_are_damaged_end_with_their_name(shell, folder):
    part = folder / "1.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    assert "1.parquet" in refused(shell, *PLAIN)
    frame = people(200)
    frame.assign(a="text").to_parquet(part)
    assert "column 'a' is" in refused(shell, *PLAIN)
    frame.drop(columns="b").to_parquet(part)
    assert "has no column 'b'" in refused(shell, *PLAIN)


def test_an_interrupted_fit_in_passes_leaves_nothing(shell, folder, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("heckmanfa.data.scan.parquet_rows.read_batches", interrupted)
    before = shell.files()
    status, text = shell(
        "fit", *PLAIN, "--stream-above", 0, "--save", "m.heckmanfa", "--json", "o.json"
    )
    assert status == 130
    assert "interrupted" in text
    assert shell.files() == before


@pytest.mark.parametrize("above", ["0", "1"])
def test_text_that_is_not_utf8_is_refused_with_the_file(shell, above):
    rng = np.random.default_rng(0)
    n = 60
    y = np.where(rng.random(n) < 0.4, np.nan, rng.normal(size=n))
    ends = pa.array(2 * np.arange(n + 1, dtype=np.int32)).buffers()[1]
    text = pa.Array.from_buffers(pa.string(), n, [None, ends, pa.py_buffer(b"\xf3x" * n)])
    table = pa.table({"y": pa.array(y, from_pandas=True), "a": rng.normal(size=n), "g": text})
    pq.write_table(table, shell.folder / "towns.parquet")
    said = shell.refuses("fit", "towns.parquet", "--outcome", "y", "--stream-above", above)
    assert re.search(r"towns\.parquet cannot be read as \.?[Pp]arquet: .*Invalid UTF8", said)


def test_infinities_of_both_signs_are_refused_without_a_word_of_numpy(shell):
    rng = np.random.default_rng(0)
    n = 60
    y = np.where(rng.random(n) < 0.4, np.nan, rng.normal(size=n))
    a = np.where(np.arange(n) == 3, np.inf, np.where(np.arange(n) == 4, -np.inf, y[::-1]))
    pd.DataFrame({"y": y, "a": a, "b": rng.normal(size=n)}).to_parquet(shell.folder / "t.parquet")
    said = shell.refuses("fit", "t.parquet", "--outcome", "y", "--stream-above", "0")
    assert "'a'" in said
    assert "inf" in said
