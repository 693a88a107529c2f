"""Model files of the Heckman probit: classes of every type come back, and hostile ones do not."""

import json

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanProbit, HeckmanProbitBestSubset
from heckmanfa.analysis import load_model, save_model
from heckmanfa.datasets import make_selection
from heckmanfa.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
NAMES = list("abcd")


@pytest.fixture(scope="module")
def data():
    made = make_selection(300, 4, 2, outcome_kind="binary", random_state=2)
    codes = pd.Series(np.asarray(made.y, dtype=float))
    return pd.DataFrame(made.X, columns=NAMES), codes


def labelled(codes, negative, positive):
    labels = {0.0: negative, 1.0: positive}
    return np.array([labels.get(code) for code in codes], dtype=object)


CLASSES = [
    ("a\x1b[31m", "é <b>"),
    (False, True),
    (-3, 8),
    (0.25, 4.5),
]


@pytest.mark.parametrize("classes", CLASSES, ids=str)
def test_classes_of_every_type_come_back(classes, data, tmp_path):
    X, codes = data
    model = HeckmanProbit(["a", "b"]).fit(X, labelled(codes, *classes))
    save_model(tmp_path / "m.skops", model)
    again = load_model(tmp_path / "m.skops").model
    assert again.fit_.classes == classes
    assert [type(label) for label in again.fit_.classes] == [type(label) for label in classes]
    assert again.classes_.dtype == model.classes_.dtype
    for method in ("predict", "predict_proba", "predict_selection", "predict_joint"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    assert str(again.summary()) == str(model.summary())
    assert "\x1b" not in str(again.summary())


def test_a_search_and_a_formula_come_back(data, tmp_path):
    X, codes = data
    table = X.assign(y=labelled(codes, "no", "yes"), score=codes * 2)
    search = HeckmanProbitBestSubset(n_refits=3).fit(X, table["y"])
    save_model(tmp_path / "s.skops", search)
    again = load_model(tmp_path / "s.skops").model
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))
    assert again.prediction_features_ == search.prediction_features_
    assert str(again.search_report()) == str(search.search_report())
    model = HeckmanProbit.from_formula("score > 1 ~ a + b", "~ a + b + c", table)
    save_model(tmp_path / "f.skops", model)
    again = load_model(tmp_path / "f.skops").model
    assert again.classes_.tolist() == [False, True]
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.score(table) == model.score(table)


def scalar(value):
    kind = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    return {**kind, "content": json.dumps(value), "is_json": True}


def pair(*labels):
    kind = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    return {**kind, "content": [scalar(label) for label in labels]}


HOSTILE = [
    ("_fit.origin.classes", scalar(None)),
    ("_fit.origin.classes", scalar("no yes")),
    ("_fit.origin.classes", pair("no")),
    ("_fit.origin.classes", pair("no", "yes", "maybe")),
    ("_fit.origin.classes", pair("no", "no")),
    ("_fit.origin.classes", pair("no", 1)),
    ("_fit.origin.classes", pair(None, 1)),
    ("_fit.origin.classes", pair(0, float("nan"))),
    ("_fit.origin.classes", pair([0], [1])),
    ("_fit.binary", scalar(None)),
    ("_fit.binary.naive_coef", scalar("a")),
    ("_fit.binary.naive_coef", "_fit.coef"),
    ("_fit.binary.mean_slope", scalar("a")),
    ("_fit.spec.outcome_kind", scalar("linear")),
    ("_fit.spec.outcome_kind", scalar("ordered")),
    ("classes_", pair("no", "yes")),
    ("predict_proba", scalar("a")),
]


def at(model, name):
    """Return the attributes of a part of a model's schema, and the last name."""
    inner = model["content"]
    *path, last = name.split(".")
    for part in path:
        inner = inner["content"][part]["content"]
    return inner, last


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """Return the bytes of a model file."""
    path = tmp_path_factory.mktemp("whole") / "m.skops"
    save_model(path, HeckmanProbit(["a", "b"]).fit(data[0], labelled(data[1], "no", "yes")))
    return path.read_bytes()


@pytest.mark.parametrize(("name", "found"), HOSTILE)
def test_a_class_of_another_kind_is_refused(name, found, whole, rewritten, tmp_path):
    path = tmp_path / "m.skops"
    path.write_bytes(whole)

    def swap(state):
        model = state["content"]["model"]
        inner, last = at(model, name)
        new = found
        if isinstance(found, str):
            other, key = at(model, found)
            new = json.loads(json.dumps(other["content"][key]))
        if last not in inner["content"]:
            inner["key_types"]["content"].append(inner["key_types"]["content"][0])
        inner["content"][last] = new

    rewritten(path, seal=True, schema=swap)
    with pytest.raises(DataError, match="damaged or was changed"):
        load_model(path)


def test_a_linear_fit_is_no_classifier(data, rewritten, tmp_path):
    X, codes = data
    path = tmp_path / "m.skops"
    save_model(path, Heckman(["a", "b"], method="ml").fit(X, codes))

    def swap(state):
        model = state["content"]["model"]
        model["__class__"] = "HeckmanProbit"
        model["__module__"] = "heckmanfa.estimators.heckman_probit"
        del model["content"]["content"]["method"]
        del model["content"]["key_types"]["content"][0]

    rewritten(path, seal=True, schema=swap)
    with pytest.raises(DataError, match="damaged or was changed"):
        load_model(path)
