"""Rows that are not in memory learn the two classes of their outcome, by the rules of memory."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, scan_parquet
from heckmanfa.data.dask_rows import dask_source
from heckmanfa.data.outcome_classes import read_classes
from heckmanfa.data.row_parts import learn_classes
from heckmanfa.data.row_sources import Reading
from heckmanfa.errors import HeckmanfaError, InputError

N = 400
RNG = np.random.default_rng(5)
TRUE = RNG.random(N) < 0.4
SEEN = RNG.random(N) < 0.7
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "b"])
TEXT = pd.Series(np.where(TRUE, "yes", "no")).where(SEEN)
OUTCOMES = {
    "booleans": pd.Series(TRUE).astype("boolean").where(SEEN),
    "0 and 1": pd.Series(TRUE * 1.0).where(SEEN),
    "integers": pd.Series(TRUE * 1).astype("Int64").where(SEEN) * 3,
    "two numbers": pd.Series(np.where(TRUE, 5.5, 2.0)).where(SEEN),
    "texts": TEXT,
    "a dictionary": TEXT.astype("category"),
    "an ordered dictionary": pd.Series(pd.Categorical(TEXT, ["yes", "no"], ordered=True)),
    "a dictionary of numbers": pd.Series(np.where(TRUE, 2, 1)).where(SEEN).astype("category"),
}


def outcomes(part, chunks):
    return np.concatenate([chunk.outcome for chunk in chunks])


def in_files(frame, tmp_path, **roles):
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=130)
    return scan_parquet(tmp_path / "rows.parquet", "y", ["a", "b"], **roles)


def in_partitions(frame, tmp_path, **roles):
    lazy = dd.from_pandas(frame, npartitions=4)
    others = [
        lazy[roles[role]] if role in roles else None for role in ("selected", "sample_weight")
    ]
    return dask_source(lazy[["a", "b"]], lazy["y"], *others, None)


def in_chunks(frame, tmp_path, **roles):
    features = da.from_array(frame[["a", "b"]].to_numpy(), chunks=(120, 2))
    others = [
        da.from_array(frame[roles[role]].to_numpy(), chunks=120) if role in roles else None
        for role in ("selected", "sample_weight")
    ]
    y = da.from_array(frame["y"].astype(object).to_numpy(), chunks=120)
    return dask_source(features, y, *others, None)


SOURCES = [in_files, in_partitions, in_chunks]


@pytest.mark.parametrize(
    ("kind", "source_of"),
    [
        *((kind, in_files) for kind in OUTCOMES),
        *((kind, in_chunks) for kind in ("0 and 1", "texts")),
        *((kind, in_partitions) for kind in ("booleans", "an ordered dictionary", "a dictionary")),
    ],
)
def test_classes_and_codes_are_those_of_memory(kind, source_of, tmp_path):
    y = OUTCOMES[kind]
    codes, classes = read_classes(y, N)
    source, found = learn_classes(source_of(X.assign(y=y), tmp_path))
    assert found == classes
    # Whole numbers in an array of objects are integers there.
    assert source_of is in_chunks or [*map(type, found)] == [*map(type, classes)]
    np.testing.assert_array_equal(
        np.concatenate(list(source.run(outcomes, Reading((0,), 64)))), codes
    )
    assert learn_classes(source)[0] is source


@pytest.mark.parametrize("source_of", SOURCES)
def test_only_selected_rows_with_weight_have_classes(source_of, tmp_path):
    y = TEXT.copy()
    y[~SEEN] = "not asked"
    weight = pd.Series(np.ones(N))
    y[0], weight[0] = "misread", 0.0
    chosen = SEEN.copy()
    chosen[0] = True
    frame = X.assign(y=y, chosen=chosen, weight=weight)
    source = source_of(frame, tmp_path, selected="chosen", sample_weight="weight")
    assert learn_classes(source)[1] == ("no", "yes")


TYPO = pd.Series(["yes", "no", "no", "yse"] * 100)


@pytest.mark.parametrize(
    "y",
    [
        TYPO,
        pd.Series(RNG.random(N)),
        pd.Series(np.arange(N)),
        pd.Series(["yes"] * N),
        pd.Series([np.nan] * N),
        pd.Series([1.0, 0.0, np.inf, np.nan] * 100),
    ],
    ids=["typo", "probabilities", "counts", "one class", "missing", "infinite"],
)
def test_an_outcome_that_is_not_binary_gets_the_message_of_memory(y, tmp_path):
    with pytest.raises(HeckmanfaError) as memory:
        read_classes(y, N)
    for source_of in SOURCES if y is TYPO else [in_files]:
        with pytest.raises(type(memory.value)) as elsewhere:
            learn_classes(source_of(X.assign(y=y), tmp_path))
        assert str(elsewhere.value) == str(memory.value)


def test_a_class_of_unselected_rows_only_is_named(tmp_path):
    frame = X.assign(y=np.where(SEEN, "no", "yes"), chosen=SEEN)
    with pytest.raises(InputError, match="'yes' occurs only in rows that are not selected"):
        learn_classes(in_files(frame, tmp_path, selected="chosen"))


def test_many_numbers_are_counted_only_so_far(tmp_path):
    n = 1500
    frame = pd.DataFrame({"y": np.arange(n) + 0.5, "a": RNG.normal(size=n), "b": 0.0})
    with pytest.raises(InputError, match="y holds more than 1,000 different numbers"):
        learn_classes(in_files(frame, tmp_path))


def test_text_marks_for_missing_in_files_are_missing_as_in_their_features(tmp_path):
    y = TEXT.fillna("NA")
    source, classes = learn_classes(in_files(X.assign(y=y), tmp_path))
    assert classes == ("no", "yes")
    codes = np.concatenate(list(source.run(outcomes, Reading((), 64))))
    np.testing.assert_array_equal(np.isnan(codes), ~SEEN)


def test_a_file_without_any_outcome_is_a_part_as_others(tmp_path):
    X.assign(y=pd.Series([None] * N, dtype=object)).to_parquet(tmp_path / "a.parquet")
    X.assign(y=TEXT.astype("category")).to_parquet(tmp_path / "b.parquet")
    X.assign(y=TEXT).to_parquet(tmp_path / "c.parquet")
    source, classes = learn_classes(scan_parquet(tmp_path, "y", ["a", "b"]))
    assert classes == ("no", "yes")
    codes = list(source.run(outcomes, Reading((0, 1), 64)))
    assert np.isnan(codes[0]).all()
    np.testing.assert_array_equal(codes[1], codes[2])
    np.testing.assert_array_equal(codes[2], np.where(SEEN, TRUE, np.nan))


def test_a_linear_model_refuses_texts_of_files_and_names_the_model_for_them(tmp_path):
    rows = in_files(X.assign(y=TEXT), tmp_path)
    with pytest.raises(InputError, match=r"'y', which must hold numbers; its .*HeckmanProbit"):
        Heckman().fit(rows)
