"""A model file takes no more memory than a model of its features can need."""

import io
import json
import struct
import time
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA, NaiveOLS, save
from heckmanfa.analysis import load_model, save_model
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.datasets import make_selection
from heckmanfa.errors import DataError
from heckmanfa.estimators.fitting import attach_encoding

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

MEGABYTE = 2**20
LARGE = 200


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    made = make_selection(300, 4, n_prediction=2, random_state=0)
    frame = pd.DataFrame(made.X, columns=list("abcd"))
    encoding, encoded = Encoding.learn(frame, list("abcd"))
    path = tmp_path_factory.mktemp("model") / "m.heckmanfa"
    save_model(path, Heckman(["a", "b"]).fit(encoded, made.y), encoding, {})
    return path.read_bytes()


@pytest.fixture(scope="module")
def of_a_search(tmp_path_factory):
    made = make_selection(300, 4, n_prediction=2, random_state=0)
    path = tmp_path_factory.mktemp("search") / "m.heckmanfa"
    save(HeckmanBestSubset().fit(pd.DataFrame(made.X, columns=list("abcd")), made.y), path)
    return path.read_bytes()


@pytest.fixture
def searched(of_a_search, tmp_path):
    """A copy of the file of a search, for one test to change."""
    path = tmp_path / "s.heckmanfa"
    path.write_bytes(of_a_search)
    return path


def refusal(path):
    """What opening a file says, at once and after it took no memory to speak of."""
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(DataError) as caught:
            load_model(path)
        taken = time.process_time() - start
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MEGABYTE + 20 * path.stat().st_size
    # Tracing makes it several times slower.
    assert taken < 0.5 + path.stat().st_size / MEGABYTE
    assert "\n" not in str(caught.value)
    return str(caught.value)


def an_array(members):
    return next(name for name in members if name.endswith(".npy"))


def fit_in(document):
    ((_, model),) = document["model"].items()
    return model["attributes"]["_fit"]["Fit"]


def test_a_compressed_member_is_not_inflated(saved):
    """Two hundred megabytes of zeros in a file of 200 kB."""
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[an_array(members)] = bytes(LARGE * MEGABYTE)
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert saved.stat().st_size < MEGABYTE
    assert "its archive is not as heckmanfa writes it" in refusal(saved)


def test_many_members_are_refused(saved, rewritten):
    rewritten(
        saved, members=lambda held: held.update({f"{k + 99}.npy": b"" for k in range(20_000)})
    )
    assert "its archive is not as heckmanfa writes it" in refusal(saved)


def test_a_member_that_says_it_is_larger_than_the_file_is_refused(saved):
    data = bytearray(saved.read_bytes())
    data[18:26] = struct.pack("<2I", 2**32 - 1, 2**32 - 1)
    saved.write_bytes(data)
    assert "its archive is not as heckmanfa writes it" in refusal(saved)


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
    rewritten(saved, members=lambda held: held.update({an_array(held): content}))
    assert "damaged or was changed" in refusal(saved)


@pytest.mark.parametrize("name", ["coef", "covariance", "support"])
@pytest.mark.parametrize("shape", [(10**9,), (5, 10**9), (10**9, 0), (0,), (), (1, 1, 1)])
def test_a_header_alone_decides_whether_a_shape_is_right(saved, rewritten, name, shape):
    """No array is made of a header that says ten billion numbers, whatever follows it."""

    def change(held):
        fit = fit_in(json.loads(held["model.json"]))
        fields = fit["equations"]["prediction"]["EquationEstimate"] if name == "coef" else fit
        index = fields[name]["npy"]
        kind = "|b1" if name == "support" else "<f8"
        held[f"{index}.npy"] = npy(
            repr({"descr": kind, "fortran_order": False, "shape": shape}), bytes(40)
        )

    rewritten(saved, members=change)
    assert f".{name}: an array of" in refusal(saved)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("moments.Moments.n_features", 10**9),
        ("moments.Moments.columns", [*range(100_000)]),
        ("moments.Moments.probit.Probit.features", [*range(100_000)]),
        ("moments.Moments.probit.Probit.features", [10**9, 1, 2, 3]),
        ("spec.Spec.columns.FittedColumns.n_features", 10**9),
        ("spec.Spec.groups", [[0] * 100_000]),
        ("spec.Spec.labels", ["a" * 2**19] * 4),
        ("spec.Spec.prediction", [0, 10**9]),
        ("search.SearchOutcome.choices.Choices.n_features", 10**9),
        ("search.SearchOutcome.choices.Choices.max_features", 10**9),
        ("search.SearchOutcome.choices.Choices.units", [[k] for k in range(100_000)]),
        ("search.SearchOutcome.choices.Choices.units", [[0], [0], [1]]),
        ("search.SearchOutcome.choices.Choices.units", [[10**9]]),
        ("search.SearchOutcome.candidates", [10**9]),
        ("search.SearchOutcome.n_possible", {"int": "f" * 10_000}),
        ("search.SearchOutcome.result.Search.n_columns", 10**9),
        ("search.SearchOutcome.result.Search.goal.Goal.units", [[10**9]]),
    ],
)
def test_sizes_and_positions_are_those_of_the_features(searched, swapped, path, value):
    swapped(searched, path, value)
    assert "damaged or was changed" in refusal(searched)


def test_features_that_a_description_invents_are_not_those_of_the_model(saved, rewritten):
    names = [f"f{k}" for k in range(100_000)]
    rewritten(saved, lambda document: document.update(features=names))
    assert "damaged or was changed" in refusal(saved)


@pytest.mark.parametrize("layer", range(6))
def test_the_layers_of_a_network_are_as_wide_as_those_of_the_class(
    tmp_path, rewritten, layer, network
):
    path = tmp_path / "ru.heckmanfa"
    save(network, path)
    rows = np.ones((3, 2))
    np.testing.assert_array_equal(load_model(path).model.predict(rows), network.predict(rows))

    def widen(held):
        model = json.loads(held["model.json"])["model"]["RURegressor"]
        weights = model["attributes"]["_network"]["Network"]["weights"]
        stream = io.BytesIO()
        np.save(stream, np.zeros((4_000, 2) if layer % 2 == 0 else 4_000))
        held[f"{weights[layer]['npy']}.npy"] = stream.getvalue()

    rewritten(path, members=widen)
    assert "Network.weights" in refusal(path)


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [50, 5_000, 200_000])
@pytest.mark.parametrize("place", ["intercept", "start", "whole"])
def test_json_nested_without_end_is_refused(saved, rewritten, depth, place):
    def change(document):
        if place == "intercept":
            fit_in(document)["intercept"] = "NESTED"
        else:
            document["model"]["Heckman"]["parameters"]["start"] = "NESTED"

    def nest(held):
        text = held["model.json"].replace(b'"NESTED"', nested(depth).encode())
        held["model.json"] = nested(depth).encode() if place == "whole" else text

    rewritten(saved, change, nest)
    assert "damaged or was changed" in refusal(saved)


@pytest.mark.parametrize("value", ["9" * 100_000, "NaN", "Infinity", "1e999", "-1e400"])
def test_numbers_that_are_not_numbers_of_a_model_are_refused(saved, rewritten, value):
    def change(document):
        fit_in(document)["n_obs"] = "NUMBER"

    def put(held):
        held["model.json"] = held["model.json"].replace(b'"NUMBER"', value.encode())

    rewritten(saved, change, put)
    assert "damaged or was changed" in refusal(saved)


def test_what_searches_record_fits(tmp_path):
    """Ten thousand candidates of forty features, and every epoch of a training, are in bounds."""
    made, path = make_selection(300, 40, 8, random_state=1), tmp_path / "m.heckmanfa"
    frame = pd.DataFrame(made.X, columns=[f"feature_{k}" for k in range(40)])
    model = HeckmanFA(epochs=60, record_path=1, n_draws=11_000, random_state=0)
    model.fit(frame, made.y)
    save(model, path)
    again = load_model(path).model
    assert again.fit_.search.result.packed.shape == (10_000, 5)
    pd.testing.assert_frame_equal(again.candidates_, model.candidates_)
    np.testing.assert_array_equal(again.path_["inclusion_prob"], model.path_["inclusion_prob"])
    assert 200_000 < path.stat().st_size < 1_200_000
    save(model, path, candidates=False, force=True)
    assert path.stat().st_size < 200_000


def test_an_array_is_named_once(saved, rewritten):
    def share(document):
        equations = fit_in(document)["equations"]
        equations["selection"] = equations["prediction"]

    rewritten(saved, share)
    assert "an array is named twice" in refusal(saved)


def test_json_takes_memory_in_proportion_to_the_file(saved, rewritten):
    rewritten(saved, lambda document: document.update(more=[[]] * 500_000))
    assert "missing or unknown parts" in refusal(saved)


@pytest.mark.parametrize("twice", ["sources", "levels"])
def test_an_encoding_names_nothing_twice(saved, rewritten, twice):
    """Else a small file would make as many columns as sources times levels."""

    def repeat(document):
        encoding = document["encoding"]["Encoding"]
        name = encoding["sources"][-1]
        if twice == "sources":
            encoding["sources"] += [name] * 1_000
        encoding["levels"]["d"] = [name] * 1_000

    rewritten(saved, repeat)
    assert "names something twice" in refusal(saved)


def test_names_of_dummies_are_counted_before_they_are_made(saved, rewritten):
    """A name of 200,000 characters and 5,000 levels make a gigabyte of names."""

    def lengthen(document):
        encoding = document["encoding"]["Encoding"]
        name = encoding["sources"][-1] = "d" * 200_000
        encoding["levels"][name] = [f"{k}" for k in range(5_000)]

    rewritten(saved, lengthen)
    assert "makes names that are too long" in refusal(saved)


# Rows in blocks. ----------------------------------------------------------------------------------


def predicted_peak(model, rows):
    """Return the memory that predictions take beyond the rows, in bytes."""
    model.predict(rows[:10])
    tracemalloc.start()
    try:
        model.predict(rows)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_network_predicts_in_blocks(network):
    """All rows at once would take 64 numbers of each layer for a row."""
    n = 200_000
    assert predicted_peak(network, np.ones((n, 2))) < 8 * n * 4 + 32 * MEGABYTE


def test_dummies_filled_with_means_are_made_in_blocks():
    """All at once would take as many numbers for a row as the category has levels."""
    rng, n = np.random.default_rng(0), 60_000
    frame = pd.DataFrame({"a": rng.normal(size=n), "g": rng.integers(0, 100, n).astype(str)})
    frame.loc[::50, "g"] = None
    encoding, encoded = Encoding.learn(
        frame.head(4_000), ["a", "g"], categorical=["g"], missing="mean"
    )
    y = np.where(rng.random(4_000) < 0.8, rng.normal(size=4_000), np.nan)
    model = NaiveOLS().fit(encoded, y)
    whole = model.predict(encoding.transform(frame.head(4_000)))
    attach_encoding(model, encoding)
    np.testing.assert_allclose(model.predict(frame.head(4_000)), whole, rtol=1e-12)
    assert predicted_peak(model, frame) < 0.3 * 8 * n * 100
