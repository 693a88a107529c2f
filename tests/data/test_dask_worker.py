"""What a worker does with one partition, without a cluster, and what it says when it fails."""

from __future__ import annotations

from concurrent.futures import CancelledError

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dask")
from heckmanfa.data.dask_worker import Pass, Work, _groups, _source, failure, heckmanfa_pass
from heckmanfa.errors import ClusterError, InputError

FRAME = pd.DataFrame({"a": np.arange(7.0), "b": np.arange(7.0) ** 2})


def _read(head, as_array=False):
    given = {
        "X": FRAME.to_numpy() if as_array else FRAME,
        "y": FRAME["a"] + 10,
        "selected": FRAME["a"] > 2,
        "sample_weight": FRAME["a"].astype(int) + 1,
        "groups": FRAME["a"].map(str),
    }
    return Pass(lambda part, chunks: [*chunks], 3)(0, head, given)


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize(
    ("head", "starts", "n"),
    [(None, [0, 3, 6], 7), (7, [0, 3, 6], 7), (9, [0, 3, 6], 7), (4, [0, 3], 4), (0, [], 0)],
)
def test_a_head_is_the_first_rows_of_every_column(head, starts, n, as_array):
    chunks = _read(head, as_array)
    assert [chunk.start for chunk in chunks] == starts
    rows = FRAME[:n]
    for name, wanted in (
        ("features", rows.to_numpy()),
        ("outcome", rows["a"] + 10),
        ("selected", rows["a"] > 2),
        ("weight", rows["a"] + 1),
        ("group", rows["a"].map(str)),
    ):
        found = [getattr(chunk, name) for chunk in chunks]
        if n:
            np.testing.assert_array_equal(np.concatenate(found), wanted)


def test_missing_groups_are_none():
    for given in (pd.Series(["u", None, "v"]), pd.Series(["u", pd.NA, "v"], dtype="string")):
        assert _groups(given).tolist() == ["u", None, "v"]
    np.testing.assert_array_equal(_groups(pd.Series([1.0, np.nan])), [1.0, np.nan])
    np.testing.assert_array_equal(_groups(pd.Series([True, False])), [True, False])
    assert _groups(np.array(["u", "v"])).tolist() == ["u", "v"]


def test_a_chunk_of_features_is_a_matrix():
    with pytest.raises(InputError, match="a chunk of X is a ndarray, and not a NumPy matrix"):
        _source(np.zeros(3))


def failing(error):
    def fail(part, head, given):
        raise error

    return heckmanfa_pass(Work(fail, ("X",), 4), 2, None, (FRAME,))


class KilledWorker(Exception):  # noqa: N818
    """Named as Dask names it."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("odd"), "partition 2 of 4 failed with ValueError: odd. If your own functions"),
        (MemoryError(), "partition 2 of 4 does not fit in a worker's memory: repartition X"),
        (OSError("gone"), "partition 2 of 4 could not be read (OSError: gone): check that its"),
        (CancelledError("off"), "the cluster dropped the work on partition 2 of 4 (off): check"),
        (KilledWorker("x"), "every worker that was given partition 2 of 4 died, most likely"),
    ],
)
def test_a_failure_says_which_partition_and_what_to_do(error, words):
    with pytest.raises(ClusterError) as caught:
        failing(error)
    assert str(caught.value).startswith(words)
    assert str(failure(error, None, 4)) == str(caught.value).replace(
        "partition 2 of 4", "a partition of 4"
    )
    with pytest.raises(InputError, match="ours"):
        failing(InputError("ours"))


def test_partitions_that_are_not_those_that_dask_reports_are_refused():
    import dask.dataframe as dd

    from heckmanfa.data.row_sources import Reading
    from heckmanfa.data.sample import find_row_source

    frame = dd.from_pandas(FRAME, npartitions=2)
    source = find_row_source(frame, frame["a"], None, None, None)
    source._n_parts += 1
    with pytest.raises(
        InputError, match="Dask does not make the 3 partitions of X that it reports"
    ):
        source.run(lambda part, chunks: None, Reading((0, 1), 10))
