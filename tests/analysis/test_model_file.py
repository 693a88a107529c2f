"""A model comes back as it was, and a file that asks for anything else is refused unread."""

import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import skops.io

import heckmanfa
from heckmanfa import (
    Heckman,
    HeckmanLasso,
    NaiveOLS,
)
from heckmanfa.analysis import load_model, save_model
from heckmanfa.analysis.predictions import predict_table
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.datasets import make_selection
from heckmanfa.errors import DataError, InputError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

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
    path = tmp_path / "wages.skops"
    save_model(path, fitted, encoding, ABOUT)
    return path


def test_means_come_back(frame, simulated, tmp_path):
    holes = frame.assign(g=frame["g"].where(np.arange(len(frame)) % 9 > 0))
    encoding, encoded = Encoding.learn(holes, list("acdg"), missing="mean")
    model = NaiveOLS().fit(encoded, simulated.y)
    save_model(tmp_path / "m.skops", model, encoding, {})
    again = load_model(tmp_path / "m.skops").encoding
    pd.testing.assert_frame_equal(again.transform(holes), encoded)


def test_a_file_is_replaced_only_by_force(saved, fitted, encoding):
    before = saved.read_bytes()
    with pytest.raises(InputError, match=r"wages\.skops exists; pass force=True to replace it"):
        save_model(saved, fitted, encoding, {"other": 1})
    assert saved.read_bytes() == before
    save_model(saved, fitted, encoding, {"other": 1}, force=True)
    assert load_model(saved).about == {"other": 1}
    assert list(saved.parent.iterdir()) == [saved]


def test_what_cannot_be_saved(tmp_path, fitted, encoding, frame, simulated):
    path = tmp_path / "m.skops"
    with pytest.raises(InputError, match=r"about must hold plain values only: .*set"):
        save_model(path, fitted, encoding, {"a": {1}})
    other = NaiveOLS().fit(frame[["a", "b"]].rename(columns={"b": "q"}), simulated.y)
    with pytest.raises(InputError, match="'q' is not an encoded column"):
        save_model(path, other, encoding, {})
    with pytest.raises(InputError, match="'x0' is not an encoded column"):
        save_model(path, NaiveOLS().fit(simulated.X, simulated.y), encoding, {})
    strange = Heckman(["a", "c", "d"]).fit(encoding.transform(frame), simulated.y)
    strange.note_ = json.dumps
    with pytest.raises(InputError, match=r"cannot be saved safely: json\.dumps; give parameters"):
        save_model(path, strange, encoding, {})
    strange.note_ = (one for one in "abc")
    with pytest.raises(InputError, match=r"cannot be saved.*generator"):
        save_model(path, strange, encoding, {})
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_named_numbers_needs_no_encoding(tmp_path, frame, simulated):
    columns, path = frame[list("abcdef")], tmp_path / "m.skops"
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
    data, path = frame.assign(y=simulated.y), tmp_path / "m.skops"
    model = Heckman.from_formula("y ~ a + c + g", "a + c + g + np.exp(b)", data)
    save_model(path, model)
    np.testing.assert_array_equal(load_model(path).model.predict(data), model.predict(data))


def test_what_is_no_model_no_encoding_or_no_path_is_said_in_a_sentence(
    tmp_path, fitted, encoding, frame
):
    path = tmp_path / "m.skops"
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
    save_model(tmp_path / "m.skops", model)
    assert model.prediction_features is features
    loaded = load_model(tmp_path / "m.skops").model
    assert loaded.prediction_features == ["a", "c"]
    np.testing.assert_array_equal(loaded.predict(columns), model.predict(columns))


# Files that are not ours. -------------------------------------------------------------------------


def refusal(path, kind=DataError):
    with pytest.raises(kind) as caught:
        load_model(path)
    said = str(caught.value)
    assert "\n" not in said
    return said


def node(module, name, loader, *arguments):
    """What skops takes for an object of a type, made in some way."""
    content = [
        {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": one}
        for one in map(json.dumps, arguments)
    ]
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        "__id__": 1,
        "content": {
            "__class__": "tuple",
            "__module__": "builtins",
            "__loader__": "TupleNode",
            "__id__": 2,
            "content": content,
        },
    }


@pytest.mark.parametrize("loader", ["ConstructorFromReduceNode", "ObjectNode", "TypeNode"])
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("heckmanfa", "import_module"),
        ("heckmanfa.datasets.paper_data", "TemporaryDirectory"),
        ("heckmanfa.data.files.outputs", "read_table"),
        ("heckmanfa.__main__", "app"),
        ("heckmanfa.nowhere", "Thing"),
        ("heckmanfa_evil", "Thing"),
    ],
)
def test_a_file_that_asks_for_more_is_refused_whoever_sealed_it(
    rewritten, saved, tmp_path, module, name, loader
):
    mark = tmp_path / "ran"

    def poison(state):
        state["content"]["model"] = node(module, name, loader, f"touch {mark}")

    rewritten(saved, seal=True, schema=poison)
    said = refusal(saved)
    assert f"it asks for {module}.{name}, and none of it was loaded" in said
    assert not mark.exists()


def test_a_class_of_ours_that_would_be_called_is_refused(rewritten, saved):
    def poison(state):
        state["content"]["model"] = node(
            "heckmanfa.datasets.paper_data", "DataFile", "ConstructorFromReduceNode", "a", "b", "c"
        )

    rewritten(saved, seal=True, schema=poison)
    assert "it asks for heckmanfa.datasets.paper_data.DataFile" in refusal(saved)


def test_a_changed_number_is_noticed(rewritten, saved):
    def change(state):
        fit = state["content"]["model"]["content"]["content"]["_fit"]
        intercept = fit["content"]["content"]["intercept"]
        assert intercept["__loader__"] == "JsonNode"
        intercept["content"] = "42.0"

    rewritten(saved, schema=change)
    assert "was changed after it was written" in refusal(saved)


def test_something_else_than_a_model_is_refused(rewritten, saved):
    def swap(state):
        state["content"]["model"] = encoding_in(state)

    rewritten(saved, seal=True, schema=swap)
    assert "it holds no model" in refusal(saved)


def encoding_in(state):
    """Return the encoding in the columns of a model's fit."""
    node = state["content"]["model"]
    for name in ("_fit", "spec", "columns", "encoding"):
        node = node["content"]["content"][name]
    return node


def scalar(one):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(one),
    }


def listed(*ones):
    return {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": [scalar(one) for one in ones],
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("_fit", scalar(None)),
        ("_fit", "encoding"),
        ("_fit.coef", scalar("a")),
        ("_fit.coef", scalar(None)),
        ("_fit.coef", listed(1, 2)),
        ("_fit.intercept", scalar("a")),
        ("_fit.intercept", listed(1)),
        ("_fit.support", scalar("a")),
        ("_fit.support", listed(True)),
        ("_fit.moments", scalar(None)),
        ("_fit.moments", "encoding"),
        ("_fit.moments", "model"),
        ("_fit.origin.design", "encoding"),
        ("_fit.origin.design", scalar("a ~ b")),
        ("_fit.spec.labels", scalar(3)),
        ("_fit.spec.labels", listed("a")),
        ("_fit.terms", listed("a")),
        ("_fit.covariance", "coef"),
        ("_fit.selection_coef", "covariance"),
        ("_fit.coef", "covariance"),
        ("_fit.spec.columns.names", listed("a")),
        ("_fit.spec.columns.encoding", scalar("a")),
        ("_fit.spec.columns.encoding", scalar(None)),
        ("_fit.spec.columns.encoding", "model"),
        ("_fit.spec.outcome_transform", scalar("sqrt")),
        ("_fit.spec.outcome_transform", scalar(1)),
        ("_fit.spec.rho", scalar("a")),
        ("_fit.spec.unknown", scalar("guess")),
        ("_fit.spec.columns.n_features", scalar(10**9)),
        ("_fit.spec.columns.n_features", scalar("a")),
        ("method", scalar(3)),
        ("_fit.spec.method", scalar(3)),
        ("_fit.row_counts", listed("a")),
        # What a class defines for everyone cannot be put in front of it.
        ("predict", scalar("a")),
        ("summary", scalar(1)),
        ("fit_", scalar(None)),
        ("__class__", scalar("a")),
        ("__dict__", scalar("a")),
        ("_parameter_constraints", listed("a")),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_part_of_another_kind_is_refused(rewritten, saved, name, found):
    def swap(state):
        inner = state["content"]["model"]["content"]
        *path, last = name.split(".")
        for part in path:
            inner = inner["content"][part]["content"]
        attributes = inner["content"]
        new = found
        if isinstance(found, str):
            held = {"encoding": encoding_in(state), "model": state["content"]["model"]}
            new = attributes.get(found) or held[found]
            new = json.loads(json.dumps(new))
        if last not in attributes:
            inner["key_types"]["content"].append(inner["key_types"]["content"][0])
        attributes[last] = new

    rewritten(saved, seal=True, schema=swap)
    assert "damaged or was changed" in refusal(saved)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("sources", listed("a")),
        ("sources", scalar("a")),
        ("levels", scalar("a")),
        ("missing", scalar("eval")),
        ("missing", scalar(3)),
        ("means", listed("a")),
        ("transform", scalar("a")),
        ("columns", listed("a")),
    ],
)
def test_an_encoding_of_another_kind_is_refused(rewritten, saved, name, found):
    def swap(state):
        inner = encoding_in(state)["content"]
        if name not in inner["content"]:
            inner["key_types"]["content"].append(inner["key_types"]["content"][0])
        inner["content"][name] = found

    rewritten(saved, seal=True, schema=swap)
    assert "damaged or was changed" in refusal(saved)


@pytest.mark.parametrize("position", [-1, 625, 10**9, "a", None])
def test_random_numbers_in_no_possible_state_are_refused(
    rewritten, position, frame, encoding, simulated, tmp_path
):
    """NumPy takes the position in a Mersenne twister's state as it is, also beyond its end."""
    model = HeckmanLasso(random_state=np.random.RandomState(0))
    save_model(tmp_path / "m", model.fit(encoding.transform(frame), simulated.y), encoding, {})

    def move(state):
        source = state["content"]["model"]["content"]["content"]["random_state"]
        source["content"]["content"]["state"]["content"]["pos"] = scalar(position)

    rewritten(tmp_path / "m", seal=True, schema=move)
    assert "damaged or was changed" in refusal(tmp_path / "m")


def test_sources_of_random_numbers_come_back(frame, encoding, simulated, tmp_path):
    encoded = encoding.transform(frame)
    for source in (np.random.default_rng(3), np.random.RandomState(3)):
        model = HeckmanLasso(random_state=source).fit(encoded, simulated.y)
        save_model(tmp_path / "m", model, encoding, {}, force=True)
        again = load_model(tmp_path / "m").model.random_state
        np.testing.assert_array_equal(again.uniform(size=3), source.uniform(size=3))


def test_a_file_imports_no_module_by_name(rewritten, saved):
    """Opening a file imports what its model needs, and nothing that it names itself."""
    sys.modules.pop("heckmanfa.paper.printed", None)

    def ask(state):
        state["content"]["model"] = node("heckmanfa.paper.printed", "Thing", "ObjectNode", "a")

    rewritten(saved, seal=True, schema=ask)
    assert "it asks for heckmanfa.paper.printed.Thing" in refusal(saved)
    assert "heckmanfa.paper.printed" not in sys.modules


@pytest.mark.parametrize("loader", ["ObjectNode", "TypeNode"])
def test_what_skops_trusts_is_refused_all_the_same(rewritten, saved, loader):
    """An estimator of scikit-learn's has hooks of its own, and no model of ours holds one."""

    def ask(state):
        attributes = state["content"]["model"]["content"]["content"]
        attributes["intercept_"] = node("sklearn.pipeline", "Pipeline", loader, "a")

    rewritten(saved, seal=True, schema=ask)
    assert "it asks for sklearn.pipeline.Pipeline" in refusal(saved)


def test_an_object_is_not_shared_behind_the_check(rewritten, saved):
    """skops gives every node with the number of an earlier one that earlier object."""

    def share(state):
        fit = state["content"]["model"]["content"]["content"]["_fit"]
        attributes = fit["content"]["content"]
        attributes["coef"]["__id__"] = attributes["terms"]["__id__"] = 1

    before = load_model(saved).model.coef_
    rewritten(saved, seal=True, schema=share)
    np.testing.assert_array_equal(load_model(saved).model.coef_, before)


def test_a_schema_that_makes_no_sense_is_refused(rewritten, saved):
    rewritten(saved, seal=True, schema=lambda state: state.pop("content"))
    assert "damaged or was changed" in refusal(saved)
    rewritten(saved, manifest=lambda listed: listed.pop("version"))
    assert "damaged or was changed" in refusal(saved)


def test_a_newer_version_is_refused(rewritten, saved):
    rewritten(saved, manifest=lambda listed: listed.update(version="3.1"))
    assert f"was written by heckmanfa 3.1; this is {heckmanfa.__version__}: upgrade" in refusal(
        saved
    )
    rewritten(saved, manifest=lambda listed: listed.update(version="0.9.0"))
    assert load_model(saved).version == "0.9.0"
    rewritten(saved, manifest=lambda listed: listed.update(format=4))
    assert "upgrade" in refusal(saved)


def test_a_file_of_the_first_format_is_to_be_saved_again():
    # Written before classes moved to the modules that files of format 2 name.
    old = Path(__file__).with_name("format_1.skops")
    assert "has format 1, and this version reads formats 2 and 3: fit the model" in refusal(old)


def test_a_file_from_before_fits_had_a_package_is_read(rewritten, saved):
    def move(state):
        text = json.dumps(state)
        assert "heckmanfa.fit.fitted" in text
        state.update(json.loads(text.replace("heckmanfa.fit.fitted", "heckmanfa.fit")))

    before = load_model(saved).model.coef_
    rewritten(saved, seal=True, schema=move)
    np.testing.assert_array_equal(load_model(saved).model.coef_, before)


@pytest.mark.parametrize("number", ["2", 2.0, True, None, [2]])
def test_a_format_must_be_an_integer(rewritten, saved, number):
    rewritten(saved, manifest=lambda listed: listed.update(format=number))
    assert "its format is not an integer" in refusal(saved)


def test_saving_computes_no_diagnostics(fitted, encoding, tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("diagnosed")

    monkeypatch.setattr(Heckman, "diagnostics", refuse)
    save_model(tmp_path / "m.skops", fitted, encoding)
    assert "do not fit together (AssertionError)" in refusal(tmp_path / "m.skops")


def test_other_files_are_refused(saved, fitted, tmp_path):
    path = tmp_path / "a.skops"
    path.write_text("a,b\n1,2\n")
    assert "is not a model file, or is damaged" in refusal(path)
    path.write_bytes(saved.read_bytes()[:-100])
    assert "is not a model file, or is damaged" in refusal(path)
    damaged = bytearray(saved.read_bytes())
    damaged[200] ^= 0xFF
    path.write_bytes(damaged)
    assert "damaged" in refusal(path)
    skops.io.dump(fitted, path)
    assert "is not a model file of heckmanfa" in refusal(path)
    assert "there is no file" in refusal(tmp_path / "wage.skops", InputError)
    assert "is a folder" in refusal(tmp_path, InputError)


def test_twins_in_the_archive_are_refused(saved):
    with zipfile.ZipFile(saved, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("schema.json", archive.read("schema.json"))
    assert "was changed after it was written" in refusal(saved)


def test_tables_are_predicted_by_models_without_names_without_a_warning(tmp_path):
    data = make_selection(200, 3, 2, random_state=1)
    save_model(tmp_path / "plain.skops", Heckman([0, 1], method="ml").fit(data.X, data.y))
    saved = load_model(tmp_path / "plain.skops")
    table = pd.DataFrame(data.X, columns=["x0", "x1", "x2"])[["x2", "x0", "x1"]]
    encoded = saved.encoding.transform(table)
    made = predict_table(saved.model, encoded, "selected", None, saved.encoding)
    expected = saved.model.predict(data.X, kind="selected")
    np.testing.assert_allclose(made.table["predicted_selected"], expected, rtol=1e-12, atol=1e-12)
