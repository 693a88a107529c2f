"""A model file takes no more memory than a model of its features can need."""

import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanFA, save
from heckmanfa.analysis import load_model, save_model
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.datasets import make_selection
from heckmanfa.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

MEGABYTE = 2**20
LARGE = 200


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    made = make_selection(300, 4, n_prediction=2, random_state=0)
    frame = pd.DataFrame(made.X, columns=list("abcd"))
    encoding, encoded = Encoding.learn(frame, list("abcd"))
    path = tmp_path_factory.mktemp("model") / "m.skops"
    save_model(path, Heckman(["a", "b"]).fit(encoded, made.y), encoding, {})
    return path.read_bytes()


@pytest.fixture(scope="module")
def zeros():
    return bytes(LARGE * MEGABYTE)


def refusal(path):
    """What opening a file says, after it took no memory to speak of."""
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            load_model(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 * MEGABYTE
    assert "\n" not in str(caught.value)
    return str(caught.value)


def an_array(members):
    return next(name for name in members if name.endswith(".npy"))


@pytest.mark.parametrize("place", ["array", "extra", "schema.json", "heckmanfa.json"])
def test_a_small_file_that_inflates_to_a_large_one_is_refused(saved, place, zeros):
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[an_array(members) if place == "array" else place] = zeros
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert saved.stat().st_size < MEGABYTE
    said = refusal(saved)
    assert "is larger than a model of its features can be" in said
    assert f"would inflate to {LARGE * MEGABYTE:,} bytes" in said


def test_members_that_are_large_together_are_refused(saved, rewritten):
    rewritten(
        saved,
        members=lambda held: held.update({f"{k}.npy": bytes(2 * MEGABYTE) for k in range(60)}),
    )
    assert "it would inflate to 125" in refusal(saved)


def test_many_members_are_refused(saved, rewritten):
    rewritten(saved, members=lambda held: held.update({f"{k:0100}": b"" for k in range(8_000)}))
    assert "its directory has" in refusal(saved)


def test_a_directory_that_lies_about_sizes_is_refused(saved, rewritten):
    """The directory says 100 bytes where a member inflates to megabytes."""

    def grow(held):
        held[an_array(held)] = bytes(4 * MEGABYTE)

    rewritten(saved, members=grow)
    data = bytearray(saved.read_bytes())
    size = struct.pack("<I", 4 * MEGABYTE)
    assert data.count(size) >= 2
    saved.write_bytes(data.replace(size, struct.pack("<I", 100)))
    assert "damaged" in refusal(saved)


def npy(header, body=b""):
    text = header.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def pickled():
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def zipped():
    buffer = io.BytesIO()
    np.savez(buffer, a=np.zeros(3))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999, 99999, 99999), }", b"1234"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", b"12345678"),
        npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }"),
        npy("{'descr': '<U999999999', 'fortran_order': False, 'shape': (0,), }"),
        npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", b"12345678"),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"12345678"),
        npy("{'descr': '|V8', 'fortran_order': False, 'shape': (1,), }", b"12345678"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 90 + ")" * 90 + "}"),
        npy("__import__('os')"),
        pickled(),
        zipped(),
        b"",
        b"\x93NUMPY\x03\x00",
        bytes(100),
    ],
    ids=range(15),
)
def test_an_array_is_what_its_bytes_hold(saved, rewritten, content):
    rewritten(saved, seal=True, members=lambda held: held.update({an_array(held): content}))
    assert "damaged or was changed" in refusal(saved)


def fit_in(state):
    return state["content"]["model"]["content"]["content"]["_fit"]["content"]["content"]


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [50, 5_000, 200_000])
@pytest.mark.parametrize("place", ["schema", "value", "manifest"])
def test_json_nested_without_end_is_refused(saved, rewritten, depth, place):
    def schema(state):
        fit_in(state)["intercept"]["content"] = nested(depth)

    if place == "value":
        rewritten(saved, seal=True, schema=schema)
    elif place == "schema":
        inner = nested(depth).encode()
        rewritten(saved, seal=True, members=lambda held: held.update({"schema.json": inner}))
    else:
        with zipfile.ZipFile(saved) as archive:
            held = {name: archive.read(name) for name in archive.namelist()}
        listed = json.loads(held["heckmanfa.json"])
        listed["features"] = "NESTED"
        held["heckmanfa.json"] = json.dumps(listed).replace('"NESTED"', nested(depth)).encode()
        with zipfile.ZipFile(saved, "w") as archive:
            for name, content in held.items():
                archive.writestr(name, content)
    said = refusal(saved)
    assert "damaged" in said or "not a model file" in said


def test_numbers_of_thousands_of_digits_are_refused(saved, rewritten):
    def grow(state):
        fit_in(state)["n_obs"]["content"] = "9" * 100_000

    rewritten(saved, seal=True, schema=grow)
    assert "damaged" in refusal(saved)


@pytest.mark.parametrize("count", [10**5, 10**9])
def test_features_that_a_manifest_invents_give_no_room(saved, rewritten, count, zeros):
    """Bounds follow what the file lists, and what it lists takes room in the file."""
    if count == 10**5:
        names = [f"f{k}" for k in range(count)]
        rewritten(saved, manifest=lambda listed: listed.update(features=names))
    else:
        rewritten(saved, manifest=lambda listed: listed.update(features=count))
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("more.npy", zeros)
    refusal(saved)


def test_what_searches_record_fits(tmp_path):
    """Ten thousand candidates of forty features, and every epoch of a training, are in bounds."""
    made, path = make_selection(300, 40, 8, random_state=1), tmp_path / "m.skops"
    frame = pd.DataFrame(made.X, columns=[f"feature_{k}" for k in range(40)])
    model = HeckmanFA(epochs=60, record_path=1, n_draws=11_000, random_state=0)
    model.fit(frame, made.y)
    save(model, path)
    again = load_model(path).model
    assert again.fit_.search.result.packed.shape == (10_000, 5)
    pd.testing.assert_frame_equal(again.candidates_, model.candidates_)
    np.testing.assert_array_equal(again.path_["inclusion_prob"], model.path_["inclusion_prob"])
    assert 200_000 < path.stat().st_size < 1_000_000
    save(model, path, candidates=False, force=True)
    assert path.stat().st_size < 100_000


def test_arrays_that_share_a_member_count_as_often_as_they_are_made(saved, rewritten):
    def share(state):
        fit = state["content"]["model"]["content"]["content"]["_fit"]["content"]["content"]
        many = [{**fit["covariance"], "file": "large.npy"}] * 200
        fit["terms"] = {**fit["terms"], "content": many}

    def add(members):
        stream = io.BytesIO()
        np.save(stream, np.zeros(2**18))
        members["large.npy"] = stream.getvalue()

    rewritten(saved, seal=True, schema=share, members=add)
    assert "its arrays together are larger" in refusal(saved)


@pytest.mark.parametrize("entries", [2, 7, 10**9])
def test_a_triangle_is_one(saved, rewritten, entries):
    """A symmetric matrix is stored as n (n + 1) / 2 numbers, and takes n squared."""

    def change(members):
        name = next(name for name in members if name.endswith(".lower.npy"))
        header = {"descr": "<f8", "fortran_order": False, "shape": (entries,)}
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, header)
        members[name] = stream.getvalue() + bytes(8 * min(entries, 100))

    rewritten(saved, seal=True, members=change)
    assert "damaged" in refusal(saved)


@pytest.mark.parametrize("place", ["manifest", "schema"])
def test_json_that_grows_in_memory_is_refused_before_it_is_read(saved, place):
    with zipfile.ZipFile(saved) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    name = "heckmanfa.json" if place == "manifest" else "schema.json"
    held[name] = held[name].rstrip()[:-1] + b', "about": [' + b"[]," * 2_000_000 + b"[]]}"
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, content in held.items():
            archive.writestr(one, content)
    assert "its description has" in refusal(saved)


def test_a_manifest_says_what_manifests_say_and_no_more(saved, rewritten):
    rewritten(saved, manifest=lambda listed: listed.update(more=1))
    assert "its manifest has 'more'" in refusal(saved)


def test_a_file_begins_with_its_archive(saved):
    saved.write_bytes(b"#!/bin/sh\n" + saved.read_bytes())
    assert "is not a model file" in refusal(saved)


@pytest.mark.parametrize("twice", ["sources", "levels"])
def test_an_encoding_names_nothing_twice(saved, rewritten, twice):
    """Else a small file would make as many columns as sources times levels."""

    def repeat(state):
        encoding = state["content"]["encoding"]["content"]["content"]
        name = encoding["sources"]["content"][-1]
        if twice == "sources":
            encoding["sources"]["content"] += [name] * 1_000
        levels = encoding["levels"]
        levels["content"]["d"] = {**encoding["sources"], "content": [name] * 1_000}
        levels["key_types"]["content"].append(
            {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
        )

    rewritten(saved, seal=True, schema=repeat)
    assert "names something twice" in refusal(saved)


def test_a_model_that_cannot_give_its_table_is_refused(saved, rewritten):
    def empty(state):
        held = fit_in(state)
        held["n_obs"] = {**held["n_obs"], "content": "null"}

    rewritten(saved, seal=True, schema=empty)
    assert "damaged or was changed" in refusal(saved)
