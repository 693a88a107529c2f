"""What no writer of model files writes is refused, and what no reader reads is not saved."""

from __future__ import annotations

import errno
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heckmanfa import Heckman, load, save
from heckmanfa.analysis import model_file
from heckmanfa.analysis.model_classes import Rule, Sizes, UnsoundError
from heckmanfa.analysis.model_values import (
    Reader,
    UnsavableError,
    Writer,
    read_number,
    read_plain,
    write_plain,
)
from heckmanfa.errors import DataError, InputError

Numbers = NDArray[np.float64]


@pytest.fixture(scope="module")
def model(simulated):
    return Heckman([0]).fit(simulated.X, simulated.y)


@pytest.fixture(scope="module")
def original(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "m.heckmanfa"
    save(model, path)
    return path.read_bytes()


STATE = np.random.RandomState(1).get_state(legacy=False)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (2**129, "an integer is too large"),
        ({"array": [["a"], [None]], "dtype": "object"}, "an array does not hold text"),
        ({"RandomState": write_plain({**STATE, "gauss": "x"})}, "in an impossible state"),
    ],
)
def test_plain_values_that_nobody_wrote_are_refused(node, words):
    with pytest.raises(UnsoundError, match=words):
        read_plain(node, 128)


def test_the_largest_integer_is_read():
    assert read_number(2**128 - 1, 128) == 2**128 - 1
    assert read_plain({"RandomState": write_plain(STATE)}, 128).get_state()[1].shape == (624,)


@pytest.mark.parametrize("value", [np.array([1j]), np.array([b"a"], dtype=object)])
def test_arrays_of_other_types_are_not_saved(value):
    with pytest.raises(UnsavableError, match="array of"):
        write_plain(value)


def test_values_that_no_field_has_are_not_written():
    with pytest.raises(UnsavableError, match="array of complex128"):
        Writer().write(np.array([1j]), Numbers)
    with pytest.raises(UnsavableError, match="bytes"):
        Writer().write(b"a", str)


def npy(array: Any) -> bytes:
    stream = BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy(np.zeros(3)) + b"more", "the header and the size of an array disagree"),
        (npy(np.zeros(3))[:-1], "the header and the size of an array disagree"),
        (npy(np.array([0.0, np.nan, 1.0])), "missing, infinite or too large"),
        (npy(np.array([0.0, np.inf, 1.0])), "missing, infinite or too large"),
        (npy(np.zeros(4)), r"an array of shape \(4,\) is there"),
    ],
)
def test_arrays_hold_what_their_headers_and_fields_say(content, words):
    rule, sizes = Rule(shapes=(("K",),)), Sizes({"K": 3}, {})
    with pytest.raises(UnsoundError, match=words):
        Reader([memoryview(content)], 128).read({"npy": 0}, Numbers, rule, sizes)
    sound = Reader([memoryview(npy(np.ones(3)))], 128).read({"npy": 0}, Numbers, rule, sizes)
    np.testing.assert_array_equal(sound, np.ones(3))


def test_a_list_of_arrays_has_one_for_each_shape():
    rule = Rule(shapes=(("2",), ("3",)))
    with pytest.raises(UnsoundError, match="it has 1 entries, not 2"):
        Reader([], 128).read([{"npy": 0}], list[Numbers], rule, Sizes({}, {}))


def test_sizes_are_known_and_bounded():
    sizes = Sizes({"K": 4}, {"N": "2 K + 1"})
    with pytest.raises(UnsoundError, match="the size Q is not known"):
        sizes.of("K + Q")
    with pytest.raises(UnsoundError, match="10 is more than 9"):
        sizes.learn("N", 10)
    sizes.learn("N", 9)
    assert (sizes.of("N + 1"), sizes.of("K/8"), sizes.of("3 N/8")) == (10, 1, 6)


def test_files_and_descriptions_have_a_largest_size(saved, model, tmp_path, monkeypatch):
    size = saved.stat().st_size
    monkeypatch.setattr(model_file, "_LARGEST_FILE", size)
    load(saved)
    monkeypatch.setattr(model_file, "_LARGEST_FILE", size - 1)
    with pytest.raises(DataError, match=f"has more than {size - 1:,} bytes; no model file has"):
        load(saved)
    monkeypatch.undo()
    monkeypatch.setattr(model_file, "_LARGEST_DOCUMENT", 10)
    with pytest.raises(DataError, match=r"its description has [\d,]+ bytes"):
        load(saved)
    with pytest.raises(InputError, match="the model cannot be saved: its description has"):
        save(model, tmp_path / "new.heckmanfa")
    assert not (tmp_path / "new.heckmanfa").exists()


def test_a_format_of_earlier_versions_had_no_such_files(saved, rewritten):
    rewritten(saved, lambda document: document.update(format=model_file._FORMAT - 1))
    with pytest.raises(DataError, match=f"format {model_file._FORMAT - 1} had no such files"):
        load(saved)


def test_a_file_that_the_disk_does_not_give_is_named(saved, monkeypatch):
    def fails(*args, **options):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "open", fails)
    with pytest.raises(DataError, match=r"m\.heckmanfa cannot be read: Input/output error"):
        load(saved)
