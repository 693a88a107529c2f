"""A model comes back as it was, and a file that asks for anything else is refused unread."""

import io
import json
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import heckmanfa
from heckmanfa import (
    Heckman,
    HeckmanLasso,
    InverseProbabilityWeighted,
    NaiveOLS,
)
from heckmanfa.analysis import load_model, save_model
from heckmanfa.analysis.model_file import pack
from heckmanfa.analysis.predictions import Request, predict_table
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.datasets import make_selection
from heckmanfa.errors import DataError, InputError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

_EQUATION = "equations.prediction.EquationEstimate"
ABOUT = {"outcome": "wage", "rows": 800, "share": 0.25, "notes": ["a", None, True]}


@pytest.fixture(scope="module")
def frame(simulated):
    frame = pd.DataFrame(simulated.X.copy(), columns=list("abcdef"))
    frame["g"] = np.array(["u", "v", "w"])[np.arange(len(frame)) % 3]
    frame["when"] = pd.date_range("2020-01-01", periods=len(frame))
    return frame


@pytest.fixture(scope="module")
def encoding(frame):
    return Encoding.learn(frame, list(frame))[0]


@pytest.fixture(scope="module")
def fitted(frame, encoding, simulated):
    return Heckman(["a", "c", "d"]).fit(encoding.transform(frame), simulated.y)


@pytest.fixture
def saved(tmp_path, fitted, encoding):
    path = tmp_path / "wages.heckmanfa"
    save_model(path, fitted, encoding, ABOUT)
    return path


def test_means_come_back(frame, simulated, tmp_path):
    holes = frame.assign(g=frame["g"].where(np.arange(len(frame)) % 9 > 0))
    encoding, encoded = Encoding.learn(holes, list("acdg"), missing="mean")
    model = NaiveOLS().fit(encoded, simulated.y)
    save_model(tmp_path / "m.heckmanfa", model, encoding, {})
    again = load_model(tmp_path / "m.heckmanfa").encoding
    pd.testing.assert_frame_equal(again.transform(holes), encoded)


def test_a_file_is_replaced_only_by_force(saved, fitted, encoding):
    before = saved.read_bytes()
    with pytest.raises(InputError, match=r"wages\.heckmanfa exists; pass force=True to replace it"):
        save_model(saved, fitted, encoding, {"other": 1})
    assert saved.read_bytes() == before
    save_model(saved, fitted, encoding, {"other": 1}, force=True)
    assert load_model(saved).about == {"other": 1}
    assert list(saved.parent.iterdir()) == [saved]


def test_what_cannot_be_saved(tmp_path, fitted, encoding, frame, simulated):
    path = tmp_path / "m.heckmanfa"
    with pytest.raises(InputError, match=r"about must hold plain values only: .*set"):
        save_model(path, fitted, encoding, {"a": {1}})
    other = NaiveOLS().fit(frame[["a", "b"]].rename(columns={"b": "q"}), simulated.y)
    with pytest.raises(InputError, match="'q' is not an encoded column"):
        save_model(path, other, encoding, {})
    with pytest.raises(InputError, match="'x0' is not an encoded column"):
        save_model(path, NaiveOLS().fit(simulated.X, simulated.y), encoding, {})
    strange = Heckman(["a", "c", "d"]).fit(encoding.transform(frame), simulated.y)
    strange.note_ = "mine"
    with pytest.raises(InputError, match=r"cannot be saved: it has 'note_', which no fit sets"):
        save_model(path, strange, encoding, {})
    del strange.note_
    for value, words in ((json.dumps, "function"), ((one for one in "abc"), "generator")):
        strange.start = value
        with pytest.raises(InputError, match=f"cannot be saved: start holds a {words}; give"):
            save_model(path, strange, encoding, {})
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_named_numbers_needs_no_encoding(tmp_path, frame, simulated):
    columns, path = frame[list("abcdef")], tmp_path / "m.heckmanfa"
    model = Heckman(["a", "c"]).fit(columns, simulated.y)
    save_model(path, model)
    saved = load_model(path)
    assert saved.about == {}
    assert saved.encoding.columns == list("abcdef")
    np.testing.assert_array_equal(saved.model.predict(columns), model.predict(columns))
    pd.testing.assert_frame_equal(saved.encoding.transform(frame), columns)
    save_model(path, model, None, {"a": 1}, force=True)
    assert load_model(path).about == {"a": 1}


def test_a_model_of_formulas_needs_no_encoding(tmp_path, frame, simulated):
    data, path = frame.assign(y=simulated.y), tmp_path / "m.heckmanfa"
    model = Heckman.from_formula("y ~ a + c + g", "a + c + g + np.exp(b)", data)
    save_model(path, model)
    np.testing.assert_array_equal(load_model(path).model.predict(data), model.predict(data))


def test_what_is_no_model_no_encoding_or_no_path_is_said_in_a_sentence(
    tmp_path, fitted, encoding, frame
):
    path = tmp_path / "m.heckmanfa"
    for arguments, words in (
        ((path, fitted, Encoding.learn(frame, list("abc"))), "pass the first of them"),
        ((path, fitted, "enc"), "encoding must be an Encoding or None; got a str"),
        ((path, Heckman(), encoding), "this Heckman is not fitted: call fit first"),
        ((path, "abc", encoding), "fitted models of heckmanfa; got a str"),
        ((path, None), "fitted models of heckmanfa; got None"),
        ((fitted, path), r"got a Heckman: call save_model\(path, model\)"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            save_model(*arguments)
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "features", [pd.Index(["a", "c"]), pd.Series(["a", "c"]), pa.array(["a", "c"])]
)
def test_columns_named_by_an_index_are_saved_as_a_list(features, frame, simulated, tmp_path):
    columns = frame[list("abcdef")]
    model = Heckman(features).fit(columns, simulated.y)
    save_model(tmp_path / "m.heckmanfa", model)
    assert model.prediction_features is features
    loaded = load_model(tmp_path / "m.heckmanfa").model
    assert loaded.prediction_features == ["a", "c"]
    np.testing.assert_array_equal(loaded.predict(columns), model.predict(columns))


# Files that are not ours. -------------------------------------------------------------------------


def refusal(path, kind=DataError):
    with pytest.raises(kind) as caught:
        load_model(path)
    said = str(caught.value)
    assert "\n" not in said
    return said


def model_in(document):
    ((_, model),) = document["model"].items()
    return model


def fit_in(document):
    return model_in(document)["attributes"]["_fit"]["Fit"]


def encoding_in(document):
    """Return the encoding in the columns of a model's fit."""
    return fit_in(document)["spec"]["Spec"]["columns"]["FittedColumns"]["encoding"]["Encoding"]


@pytest.mark.parametrize(
    "name", ["os.system", "eval", "Thing", "Pipeline", "heckmanfa.cli.commands", "Fit", "Encoding"]
)
@pytest.mark.parametrize("place", ["model", "moments", "encoding"])
def test_a_class_that_is_not_listed_is_not_made(rewritten, saved, place, name):
    before = {*sys.modules}

    def poison(document):
        inner = document if place in document else fit_in(document)
        inner[place] = {name: {"parameters": {}, "attributes": {}, "command": "touch ran"}}

    rewritten(saved, poison)
    assert "damaged or was changed" in refusal(saved)
    assert {*sys.modules} <= before


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (f"{_EQUATION}.coef", "a"),
        (f"{_EQUATION}.coef", None),
        (f"{_EQUATION}.coef", [1, 2]),
        (f"{_EQUATION}.coef", {"npy": 10**9}),
        (f"{_EQUATION}.coef", {"npy": -1}),
        (f"{_EQUATION}.coef", {"npy": True}),
        (f"{_EQUATION}.coef", "=covariance"),
        ("equations.selection.EquationEstimate.coef", f"={_EQUATION}.coef"),
        (f"{_EQUATION}.intercept", "a"),
        (f"{_EQUATION}.intercept", [1]),
        (f"{_EQUATION}.intercept", True),
        (f"{_EQUATION}.intercept", 1e200),
        (f"{_EQUATION}.intercept", {"float": "nan"}),
        ("support", "a"),
        ("support", [True]),
        ("support", f"={_EQUATION}.coef"),
        ("n_obs", None),
        ("n_obs", 0),
        ("moments", None),
        ("moments", "=spec"),
        ("moments.Moments.n_features", 10**9),
        ("moments.Moments.columns", [0, 0]),
        ("moments.Moments.columns", list(range(10**5))),
        ("moments.Moments.columns", [0, 1, 99]),
        ("moments.Moments.columns", [0, 1, -1]),
        ("moments.Moments.probit.Probit.features", [0, 1, 2, 3, 4, 5, 6, 99]),
        ("moments.Moments.probit.Probit.features", list(range(10**5))),
        ("origin.Origin.design", "a ~ b"),
        ("origin.Origin.design", "=spec"),
        ("spec.Spec.labels", 3),
        ("spec.Spec.labels", ["a"]),
        ("spec.Spec.selection", [99]),
        ("spec.Spec.outcome_transform", "sqrt"),
        ("spec.Spec.outcome_transform", 1),
        ("spec.Spec.rho", "a"),
        ("spec.Spec.unknown", "guess"),
        ("spec.Spec.method", 3),
        ("spec.Spec.columns.FittedColumns.names", ["a"]),
        ("spec.Spec.columns.FittedColumns.n_features", 10**9),
        ("spec.Spec.columns.FittedColumns.encoding", None),
        ("spec.Spec.columns.FittedColumns.encoding", "=spec"),
        ("terms", ["a"]),
        ("terms", [["prediction", "Intercept"]]),
        ("dropped", [99]),
        ("row_counts", ["a"]),
        ("row_counts", {"total": "many"}),
        ("predict", "a"),
        ("__class__", "a"),
    ],
)
def test_a_part_of_another_kind_size_or_position_is_refused(swapped, saved, name, found):
    swapped(saved, name, found)
    assert "damaged or was changed" in refusal(saved)


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        ("parameters", "method", 3),
        ("parameters", "method", "newton"),
        ("parameters", "predict", "a"),
        ("parameters", "start", {"tuple": 1}),
        ("parameters", "start", {"function": "os.system"}),
        ("parameters", "start", {"array": ["a" * 1000] + ["b"] * 10_000, "dtype": "str"}),
        ("parameters", "start", {"array": [{}], "dtype": "object"}),
        ("parameters", "start", {"array": [1.0], "dtype": "O"}),
        ("parameters", "start", {"array": ["1"], "dtype": "float64"}),
        ("parameters", "start", {"dict": [[[1], 2]]}),
        ("attributes", "_fit", None),
        ("attributes", "coef_", {"npy": 0}),
        ("attributes", "predict", "a"),
        ("attributes", "__dict__", {}),
    ],
)
def test_parameters_and_attributes_of_another_kind_are_refused(
    rewritten, saved, place, name, value
):
    rewritten(saved, lambda document: model_in(document)[place].update({name: value}))
    assert "damaged or was changed" in refusal(saved)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("sources", ["a"]),
        ("sources", "a"),
        ("levels", "a"),
        ("levels", {"g": ["u", "u"]}),
        ("levels", {"nowhere": ["u", "v"]}),
        ("missing", "eval"),
        ("missing", 3),
        ("missing", "mean"),
        ("means", ["a"]),
        ("decimal", "," * 10),
        ("dates", {"a": {"DateScale": {"unit": "days", "first": 1e9, "order": "ymd"}}}),
        ("transform", "a"),
        ("columns", ["a"]),
    ],
)
def test_an_encoding_of_another_kind_is_refused(rewritten, saved, name, found):
    def swap(document):
        encoding_in(document)[name] = found
        if name == "missing":
            encoding_in(document)["means"] = {}

    rewritten(saved, swap)
    assert "damaged or was changed" in refusal(saved)


@pytest.mark.parametrize("position", [-1, 625, 10**9, "a", None])
def test_random_numbers_in_no_possible_state_are_refused(
    rewritten, position, frame, encoding, simulated, tmp_path
):
    """NumPy takes the position in a Mersenne twister's state as it is, also beyond its end."""
    model = HeckmanLasso(random_state=np.random.RandomState(0))
    save_model(tmp_path / "m", model.fit(encoding.transform(frame), simulated.y), encoding, {})

    def move(document):
        pairs = dict(model_in(document)["parameters"]["random_state"]["RandomState"]["dict"])
        inner = next(pair for pair in pairs["state"]["dict"] if pair[0] == "pos")
        inner[1] = position

    rewritten(tmp_path / "m", move)
    assert "damaged or was changed" in refusal(tmp_path / "m")


def test_sources_of_random_numbers_come_back(frame, encoding, simulated, tmp_path):
    encoded = encoding.transform(frame)
    for source in (np.random.default_rng(3), np.random.RandomState(3)):
        model = HeckmanLasso(random_state=source).fit(encoded, simulated.y)
        save_model(tmp_path / "m", model, encoding, {}, force=True)
        again = load_model(tmp_path / "m").model.random_state
        np.testing.assert_array_equal(again.uniform(size=3), source.uniform(size=3))


def test_a_description_that_makes_no_sense_is_refused(rewritten, saved):
    whole = saved.read_bytes()
    for name in ("version", "features", "model", "encoding", "about"):
        saved.write_bytes(whole)
        rewritten(saved, lambda document, name=name: document.pop(name))
        assert "damaged or was changed" in refusal(saved)
    for about in ([], "a", None):
        saved.write_bytes(whole)
        rewritten(saved, lambda document, about=about: document.update(about=about))
        assert "damaged or was changed" in refusal(saved)


def test_a_newer_version_is_refused(rewritten, saved):
    rewritten(saved, lambda document: document.update(version="3.1"))
    assert f"was written by heckmanfa 3.1; this is {heckmanfa.__version__}: upgrade" in refusal(
        saved
    )
    rewritten(saved, lambda document: document.update(version="0.9.0"))
    assert load_model(saved).version == "0.9.0"
    rewritten(saved, lambda document: document.update(format=5))
    assert "upgrade" in refusal(saved)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_file_of_an_earlier_format_says_what_to_do(number):
    old = Path(__file__).parent / "files" / f"format_{number}.skops"
    assert "fit the model again and save it, or load it with the version that wrote it" in refusal(
        old
    )


@pytest.mark.parametrize("number", ["4", 4.0, True, None, [4]])
def test_a_format_must_be_an_integer(rewritten, saved, number):
    rewritten(saved, lambda document: document.update(format=number))
    assert "its format is not an integer" in refusal(saved)


def test_saving_and_loading_compute_no_reports(fitted, encoding, tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("reported")

    for name in ("diagnostics", "summary", "tidy", "predict"):
        monkeypatch.setattr(Heckman, name, refuse)
    save_model(tmp_path / "m.heckmanfa", fitted, encoding)
    load_model(tmp_path / "m.heckmanfa")


def test_loading_takes_at_most_twenty_milliseconds(saved):
    load_model(saved)
    times = []
    for _ in range(5):
        start = time.process_time()
        load_model(saved)
        times.append(time.process_time() - start)
    assert min(times) < 0.02


def test_the_same_model_gives_the_same_bytes(frame, encoding, simulated, tmp_path, saved):
    again = Heckman(["a", "c", "d"]).fit(encoding.transform(frame), simulated.y)
    save_model(tmp_path / "again.heckmanfa", again, encoding, ABOUT)
    assert (tmp_path / "again.heckmanfa").read_bytes() == saved.read_bytes()
    loaded = load_model(saved)
    save_model(tmp_path / "third.heckmanfa", loaded.model, loaded.encoding, loaded.about)
    assert (tmp_path / "third.heckmanfa").read_bytes() == saved.read_bytes()


def test_any_program_can_read_a_model_file(saved, fitted):
    with zipfile.ZipFile(saved) as archive:
        assert archive.testzip() is None
        document = json.loads(archive.read("model.json"))
        index = fit_in(document)["equations"]["prediction"]["EquationEstimate"]["coef"]["npy"]
        coef = np.load(io.BytesIO(archive.read(f"{index}.npy")), allow_pickle=False)
    np.testing.assert_array_equal(coef, fitted.coef_)


def test_other_files_are_refused(saved, tmp_path):
    path = tmp_path / "a.heckmanfa"
    path.write_text("a,b\n1,2\n")
    assert "is not a model file, or is damaged" in refusal(path)
    whole = saved.read_bytes()
    for damaged in (whole[:-100], whole[:500], whole[:4], whole + b"\0", whole + whole):
        path.write_bytes(damaged)
        assert "damaged or was changed" in refusal(path)
    rng = np.random.default_rng(0)
    for place in rng.integers(2, len(whole), 40):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        path.write_bytes(changed)
        assert "damaged" in refusal(path)
    assert "there is no file" in refusal(tmp_path / "wage.heckmanfa", InputError)
    assert "is a folder" in refusal(tmp_path, InputError)


def test_an_archive_that_heckmanfa_would_not_write_is_refused(saved):
    """Whatever readers of zip files would ignore, or would take one way or another."""
    whole = saved.read_bytes()
    with zipfile.ZipFile(saved) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]

    def zipped(members, **options):
        buffer = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", **options) as archive:
            warnings.simplefilter("ignore")
            for name, content in members:
                archive.writestr(name, content)
        return buffer.getvalue()

    forged = {
        "leading junk": b"#!/bin/sh\n" + whole,
        "PK junk": b"PK\x03\x04" + whole,
        "trailing junk": whole + b"junk",
        "comment": whole[:-2] + b"\x04\0junk",
        "other writer": zipped(members),
        "compressed": zipped(members, compression=zipfile.ZIP_DEFLATED),
        "bzip2": zipped(members, compression=zipfile.ZIP_BZIP2),
        "twice": zipped([*members, members[0]]),
        "extra": pack(dict([*members, ("extra.npy", b"")])),
        "path": pack(dict([*members, ("../evil.npy", b"")])),
        "long name": pack(dict([*members, ("a" * 10_000, b"")])),
        "folder": pack(dict([*members, ("folder/", b"")])),
        "order": pack(dict(members[::-1])),
        "no array": pack(dict(members[:-1])),
        "unused": pack(dict([*members, (f"{len(members) - 1}.npy", members[-1][1])])),
        "no description": pack(dict(members[1:])),
        "empty": pack({}),
        "encrypted": whole[:6] + b"\x01" + whole[7:],
        "a date": whole[:12] + b"\x22" + whole[13:],
    }
    for kind, data in forged.items():
        saved.write_bytes(data)
        said = refusal(saved)
        assert "damaged" in said or "is not a model file" in said, kind


def test_tables_are_predicted_by_models_without_names_without_a_warning(tmp_path):
    data = make_selection(200, 3, 2, random_state=1)
    save_model(tmp_path / "plain.heckmanfa", Heckman([0, 1], method="ml").fit(data.X, data.y))
    saved = load_model(tmp_path / "plain.heckmanfa")
    table = pd.DataFrame(data.X, columns=["x0", "x1", "x2"])[["x2", "x0", "x1"]]
    encoded = saved.encoding.transform(table)
    made = predict_table(saved.model, encoded, Request("selected"), saved.encoding)
    expected = saved.model.predict(data.X, kind="selected")
    np.testing.assert_allclose(made.table["predicted_selected"], expected, rtol=1e-12, atol=1e-12)


def test_a_class_derived_from_ours_is_not_saved_as_ours(frame, simulated, tmp_path):
    kind = type("Heckman", (Heckman,), {"__module__": "mine", "__init__": Heckman.__init__})
    model = kind(["a"]).fit(frame[["a", "b"]], simulated.y)
    with pytest.raises(InputError, match="is derived from one: keep the model with pickle"):
        heckmanfa.save(model, tmp_path / "m.heckmanfa")


def test_a_file_whose_estimates_are_side_by_side_is_read(rewritten, saved, fitted):
    """Fits of earlier files have no blocks of estimates by equation and error term."""

    def flatten(document):
        fit = fit_in(document)
        equations, errors = fit.pop("equations"), fit.pop("errors")
        for prefix, name in (("", "prediction"), ("selection_", "selection")):
            for key, value in equations[name]["EquationEstimate"].items():
                fit[f"{prefix}{key}"] = value
        for key, name in (("imr_coef", "imr"), ("rho", "rho"), ("sigma", "sigma")):
            fit[key] = errors[name]["ErrorEstimate"]["value"]
        fit |= {"atanh_rho": None, "log_sigma": None, "binary": None}
        fit |= fit.pop("details")["LinearDetails"] if fit["details"] else {}

    rewritten(saved, flatten)
    pd.testing.assert_frame_equal(load_model(saved).model.tidy(), fitted.tidy())


def test_a_file_of_weighting_from_before_it_had_formulas_is_read(
    rewritten, frame, simulated, tmp_path
):
    place = tmp_path / "weighted.heckmanfa"
    model = InverseProbabilityWeighted(["a"]).fit(frame[["a", "b"]], simulated.y)
    heckmanfa.save(model, place)

    def forget(document):
        del document["model"]["InverseProbabilityWeighted"]["attributes"]["_origin"]

    rewritten(place, forget)
    found = heckmanfa.load(place)
    pd.testing.assert_frame_equal(found.tidy(), model.tidy())
    assert found.score(frame[["a", "b"]], simulated.y) == model.score(
        frame[["a", "b"]], simulated.y
    )


@pytest.mark.parametrize("rho", [None, 0.3])
def test_a_file_with_guards_and_a_held_rho_apart_is_read(rewritten, simulated, tmp_path, rho):
    """Fits of earlier files have guards beside the details, and their specs a field for rho."""
    model = Heckman([0, 2, 3], method="ml", rho=rho).fit(simulated.X, simulated.y)
    path = tmp_path / "m.heckmanfa"
    heckmanfa.save(model, path)

    def as_before(document):
        fit = fit_in(document)
        fit["guards"] = fit["details"]["LinearDetails"].pop("guards")
        fit["spec"]["Spec"]["rho"] = fit["spec"]["Spec"].pop("held").get("rho")

    rewritten(path, as_before)
    loaded = heckmanfa.load(path).fit_
    assert loaded.held_rho == rho
    assert (loaded.guards is None) == (model.fit_.guards is None) == (rho is not None)
    assert rho is not None or loaded.guards.variance == model.fit_.guards.variance
