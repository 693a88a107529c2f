"""An encoding learned from Parquet files in a pass is the one learned from the same frame."""

from __future__ import annotations

import datetime
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heckmanfa.data.columns import tally
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.values import levels_of, numbers_of
from heckmanfa.errors import DataError, InputError, MissingValueError
from heckmanfa.tables import streamed
from heckmanfa.tables.streamed import find_stored, learn_streamed

N = 3000


def mixed(n=N, seed=0):
    """Columns of every kind that people have."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(size=n)),
            "gaps": pd.array(np.where(rng.random(n) < 0.2, None, rng.integers(0, 5, n)), "Int64"),
            "owner": rng.random(n) < 0.3,
            "married": np.where(rng.random(n) < 0.1, None, rng.random(n) < 0.6),
            "region": rng.choice(["north", "south", "west"], n, p=[0.3, 0.5, 0.2]),
            "size": pd.Categorical(
                rng.choice(["small", "large", "middle"], n), ["small", "middle", "large"]
            ),
            "spelt": [f"{value:.2f}" for value in rng.normal(size=n)],
            "few": rng.choice(["10", "9", "NA", "none"], n),
            "words": rng.choice(["True", "false", "TRUE"], n),
            "woman": [f"w{place}" for place in range(n)],
            "number": np.arange(n) + 1,
            "shop_id": rng.integers(0, 70, n),
            "site_id": rng.integers(0, 9, n),
            "country": "US",
            "year": 1999,
            "nothing": None,
            "joined": [datetime.date(1990, 1, 1) + datetime.timedelta(int(d)) for d in range(n)],
            "left": rng.choice(["2001-02-03", "2002-03-04", "2003-04-05"], n),
            "street": rng.choice([f"street {place}" for place in range(200)], n),
            "code": rng.choice([3, 1, 2], n),
            "dice": rng.integers(0, n, n),
            "lists": [[1, 2]] * n,
        }
    )
    frame.loc[n - 7, "region"] = "  an  island "
    frame.loc[n // 2 : n // 2 + 4, "region"] = None
    return frame


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Write a frame as several files of uneven row groups, and look at it with a small sample."""
    monkeypatch.setattr(streamed, "SAMPLE_ROWS", 400)

    def write(frame, cuts=(0, 700, 700, 2100)):
        folder = tmp_path / "data"
        folder.mkdir()
        table = pa.Table.from_pandas(frame, preserve_index=False)
        for place, (low, high) in enumerate(zip(cuts, [*cuts[1:], len(frame)], strict=True)):
            pq.write_table(table.slice(low, high - low), folder / f"{place}.parquet", 333)
        return find_stored(str(folder))

    return write


def compare(found, expected):
    assert found.sources == expected.sources
    assert found.levels == expected.levels
    assert found.left_out == expected.left_out
    assert found.missing == expected.missing
    assert found.n_missing == expected.n_missing
    assert list(found.means) == list(expected.means)
    np.testing.assert_allclose(list(found.means.values()), list(expected.means.values()), 1e-12)


@pytest.mark.parametrize("missing", ["drop", "mean"])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"categorical": ["code", "age", "owner", "gaps"], "numeric": ["number", "few"]},
        {"categorical": ["left", "shop_id", "site_id"]},
    ],
)
def test_the_encoding_is_that_of_the_whole_frame(stored, missing, asked):
    frame = mixed()
    table = stored(frame)
    whole = table.load(list(frame.columns))
    expected, encoded = Encoding.learn(whole, list(frame.columns), missing=missing, **asked)
    found = learn_streamed(table, list(frame.columns), missing=missing, **asked)
    compare(found.encoding, expected)
    assert found.encoding.explain() == expected.explain()
    binary = {name for name in encoded if set(encoded[name].dropna().unique()) <= {0.0, 1.0}}
    assert found.switches == binary


def test_what_a_sample_does_not_see_is_found(stored):
    """A rare level, a constant that is none, and a category that has too many levels."""
    n = 3000
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "rare": np.where(np.arange(n) == 2950, "once", rng.choice(["a", "b"], n)),
            "late": np.where(np.arange(n) > 2990, 2.0, 1.0),
            "later": np.where(np.arange(n) > 2990, "two", "one"),
            "empty": np.where(np.arange(n) > 2990, "word", None),
            "many": [f"level {place // 40 if place > 2000 else 0}" for place in range(n)],
            "shop_id": np.where(np.arange(n) > 2000, np.arange(n) // 20, 7),
        }
    )
    frame.loc[n - 1, "empty"] = "other"
    expected, _ = Encoding.learn(frame, list(frame.columns))
    found = learn_streamed(stored(frame), list(frame.columns)).encoding
    compare(found, expected)
    assert found.levels["rare"][-1] == "once"
    assert "late" in found.sources
    assert set(found.levels) == {"rare", "later", "many", "empty"} & set(expected.levels)


def test_too_many_levels_on_all_rows_are_text(stored):
    n = 3000
    frame = pd.DataFrame(
        {"x": np.arange(n) % 7, "many": [f"level {max(p - 2900, 0)}" for p in range(n)]}
    )
    found = learn_streamed(stored(frame), ["x", "many"]).encoding
    assert found.left_out == Encoding.learn(frame, ["x", "many"])[0].left_out
    assert found.left_out["many"].startswith("is text with 100 different values in 3000 rows")


def test_memory_is_bounded_where_values_are_many(stored, monkeypatch):
    n = 3000
    monkeypatch.setattr(tally, "MOST_LABELS", 60)
    monkeypatch.setattr(tally, "MOST_VALUES", 100)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "spelt": [f"{value:.3f}" for value in rng.normal(size=n)],
            "street": rng.choice([f"street {place}" for place in range(200)], n),
            "person_id": 10_000 * rng.integers(0, 1000, n),
            "gap": ["NA" if place == 3 else str(place % 11) for place in range(n)],
        }
    )
    numeric = ["spelt", "gap"]
    expected, _ = Encoding.learn(frame, list(frame.columns), numeric=numeric)
    found = learn_streamed(stored(frame), list(frame.columns), numeric=numeric).encoding
    assert found.sources == expected.sources == ("spelt", "gap")
    np.testing.assert_allclose(list(found.means.values()), list(expected.means.values()), 1e-12)
    assert found.left_out == {
        "street": "is text with more than 60 different values in 3000 rows, too many for a "
        "category",
        "person_id": "is named like an identifier and has more than 100 values",
    }


@pytest.mark.parametrize("kept", [60, 100_000])
def test_a_few_words_among_numbers_are_refused_with_their_rows(stored, monkeypatch, kept):
    monkeypatch.setattr(tally, "MOST_LABELS", kept)
    n = 3000
    frame = pd.DataFrame({"x": np.arange(n) % 7, "spelt": [f"{p / 7:.3f}" for p in range(n)]})
    frame.loc[[1234, 2999], "spelt"] = ["many", "few"]
    with pytest.raises(InputError) as memory:
        Encoding.learn(frame, ["x", "spelt"], numeric=["spelt"])
    table = stored(frame)
    with pytest.raises(InputError) as passes:
        learn_streamed(table, ["x", "spelt"], numeric=["spelt"])
    assert str(passes.value) == str(memory.value)
    assert "row 1235 'many', row 3000 'few'" in str(passes.value)


def test_what_cannot_be_learned_is_refused(stored):
    frame = mixed()
    frame.loc[17, "income"] = np.inf
    table = stored(frame)
    with pytest.raises(MissingValueError, match="'income' holds infinite values"):
        learn_streamed(table, ["age", "income"])
    with pytest.raises(InputError, match="both categorical and numeric"):
        learn_streamed(table, ["age"], categorical=["age"], numeric=["age"])
    with pytest.raises(InputError, match="'joined' holds dates, not numbers"):
        learn_streamed(table, ["age", "joined"], numeric=["joined"])
    with pytest.raises(InputError, match="'lists' holds lists or other objects"):
        learn_streamed(table, ["age", "lists"], categorical=["lists"])
    with pytest.raises(InputError, match=r"no column is left .*'country' is 'US'"):
        learn_streamed(table, ["country", "year"])
    with pytest.raises(InputError, match=r"no column is left .*'joined' holds dates"):
        learn_streamed(table, ["joined", "lists"], roles=["age"])


def test_a_column_without_values_in_the_first_file_is_what_the_others_say(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "SAMPLE_ROWS", 40)
    rng = np.random.default_rng(0)
    one = pd.DataFrame({"x": rng.normal(size=200), "kind": None, "size": None})
    two = pd.DataFrame(
        {"x": rng.integers(0, 9, 300), "kind": rng.choice(["a", "b"], 300), "size": 1.5}
    )
    two.loc[0, "size"] = 2
    for name, frame in (("1", one), ("2", two)):
        frame.to_parquet(tmp_path / f"{name}.parquet", index=False)
    table = find_stored(str(tmp_path / "*.parquet"))
    expected, _ = Encoding.learn(pd.concat([one, two], ignore_index=True), ["x", "kind", "size"])
    compare(learn_streamed(table, ["x", "kind", "size"]).encoding, expected)
    compare(Encoding.learn(table.load(table.columns), table.columns)[0], expected)


@pytest.mark.parametrize("cuts", [(0, 3000), (0, 1, 2, 1500, 2999, 3000), range(0, 3001, 250)])
def test_a_tally_does_not_depend_on_the_pieces(cuts):
    frame = mixed()
    pieces = list(pairwise(cuts))
    for name in ("income", "number", "shop_id"):
        values = frame[name].to_numpy(dtype=np.float64)
        seen = np.zeros(4000, dtype=bool)
        whole = tally.NumberTally(distinct=True, seen=seen)
        for low, high in pieces:
            part = tally.NumberTally(distinct=True, seen=seen)
            part.add(values[low:high])
            whole.merge(part)
        given = values[~np.isnan(values)]
        assert (whole.n, whole.gaps) == (len(given), len(values) - len(given))
        assert (whole.low, whole.high) == (given.min(), given.max())
        assert whole.mean == pytest.approx(given.mean(), rel=1e-12)
        assert whole.integers == (name != "income")
        if whole.integers:
            assert whole.distinct == len(np.unique(given))
    for name in ("region", "few", "spelt", "words"):
        text = tally.TextTally(tally.NumberTally())
        for low, high in pieces:
            part = tally.TextTally(tally.NumberTally())
            part.add(frame[name].iloc[low:high], low)
            text.merge(part)
        levels = levels_of(frame[name])
        assert text.counts == dict(zip(levels.labels, levels.counts().tolist(), strict=True))
        spread, numbers = text.as_numbers()
        values, expected = numbers_of(frame[name])
        assert numbers.bad == expected.bad
        assert (numbers.n_bad, numbers.n_given) == (expected.n_bad, expected.n_given)
        assert spread.n == np.count_nonzero(~np.isnan(values))
        if spread.n:
            assert spread.mean == pytest.approx(np.nanmean(values), rel=1e-12)


def test_several_files_are_one_table_in_memory(tmp_path, stored):
    frame = mixed().drop(columns="lists")
    table = stored(frame)
    assert table.n_rows == len(frame)
    assert len(table.engine.files) == 4
    assert table.size(["a", "b"]) == 16 * len(frame)
    frame.to_parquet(tmp_path / "one.parquet", index=False)
    one = find_stored(str(tmp_path / "one.parquet")).load(list(frame.columns))
    pd.testing.assert_frame_equal(table.load(list(frame.columns)), one)


def test_a_file_that_is_damaged_inside_is_named(stored):
    table = stored(mixed().drop(columns="lists"))
    path = table.paths[2]
    content = bytearray(path.read_bytes())
    content[200:4000] = bytes(3800)
    path.write_bytes(content)
    names = ["age", "income", "region"]
    with pytest.raises(DataError, match=r"2\.parquet changed"):
        table.load(names)
    table = find_stored(str(path.parent))
    for read in (table.load, partial(learn_streamed, table)):
        with pytest.raises(DataError, match=r"2\.parquet cannot be read as Parquet.*damaged"):
            read(names)


def test_what_is_no_table_of_parquet_files(tmp_path, stored):
    frame = mixed().drop(columns="lists")
    table = stored(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert find_stored(str(tmp_path / "t.csv")) is None
    assert find_stored(str(tmp_path / "none.csv")) is None
    with pytest.raises(InputError, match="no file matches"):
        find_stored(str(tmp_path / "*.nothing"))
    with pytest.raises(
        InputError, match=r"t\.csv is neither a Parquet nor an Arrow file: only such files"
    ):
        find_stored(str(tmp_path / "*.csv"))
    (tmp_path / "bare").mkdir()
    with pytest.raises(InputError, match="holds no file that ends in"):
        find_stored(str(tmp_path / "bare"))
    frame.rename(columns={"age": "aged"}).to_parquet(tmp_path / "data" / "9.parquet")
    with pytest.raises(DataError, match=r"9\.parquet has no column 'age'"):
        find_stored(str(tmp_path / "data"))
    table.paths[0].write_bytes(table.paths[0].read_bytes()[:-100])
    with pytest.raises(DataError, match=r"0\.parquet cannot be read as Parquet"):
        find_stored(str(tmp_path / "data"))
    frame.head(0).to_parquet(tmp_path / "z.parquet")
    with pytest.raises(InputError, match="names of columns but no rows"):
        find_stored(str(tmp_path / "z.parquet"))
