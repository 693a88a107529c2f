"""Model files of the Heckman probit: classes of every type come back, and hostile ones do not."""

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
    save_model(tmp_path / "m.heckmanfa", model)
    again = load_model(tmp_path / "m.heckmanfa").model
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
    save_model(tmp_path / "s.heckmanfa", search)
    again = load_model(tmp_path / "s.heckmanfa").model
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))
    assert again.prediction_features_ == search.prediction_features_
    assert str(again.search_report()) == str(search.search_report())
    model = HeckmanProbit.from_formula("score > 1 ~ a + b", "~ a + b + c", table)
    save_model(tmp_path / "f.heckmanfa", model)
    again = load_model(tmp_path / "f.heckmanfa").model
    assert again.classes_.tolist() == [False, True]
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.score(table) == model.score(table)


HOSTILE = [
    ("origin.Origin.classes", None),
    ("origin.Origin.classes", "no yes"),
    ("origin.Origin.classes", ["no"]),
    ("origin.Origin.classes", ["no", "yes", "maybe"]),
    ("origin.Origin.classes", ["no", "no"]),
    ("origin.Origin.classes", ["no", 1]),
    ("origin.Origin.classes", [None, 1]),
    ("origin.Origin.classes", [0, {"float": "nan"}]),
    ("origin.Origin.classes", [[0], [1]]),
    ("details", None),
    ("details.BinaryOutcome.naive_coef", "a"),
    ("details.BinaryOutcome.naive_coef", "=equations.prediction.EquationEstimate.coef"),
    ("details.BinaryOutcome.mean_slope", "a"),
    ("spec.Spec.outcome_kind", "linear"),
    ("spec.Spec.outcome_kind", "ordered"),
    ("classes_", ["no", "yes"]),
]


@pytest.fixture(scope="module")
def original(data, tmp_path_factory):
    """Return the bytes of a model file."""
    path = tmp_path_factory.mktemp("whole") / "m.heckmanfa"
    save_model(path, HeckmanProbit(["a", "b"]).fit(data[0], labelled(data[1], "no", "yes")))
    return path.read_bytes()


@pytest.mark.parametrize(("name", "found"), HOSTILE)
def test_a_class_of_another_kind_is_refused(name, found, saved, swapped):
    swapped(saved, name, found)
    with pytest.raises(DataError, match="damaged or was changed"):
        load_model(saved)


def test_a_linear_fit_is_no_classifier(data, rewritten, tmp_path):
    X, codes = data
    path = tmp_path / "m.heckmanfa"
    save_model(path, Heckman(["a", "b"], method="ml").fit(X, codes))

    def swap(document):
        content = document["model"].pop("Heckman")
        shared = HeckmanProbit().get_params().keys() & content["parameters"].keys()
        content["parameters"] = {name: content["parameters"][name] for name in shared}
        document["model"]["HeckmanProbit"] = content

    rewritten(path, swap)
    with pytest.raises(DataError, match="not of one kind"):
        load_model(path)
