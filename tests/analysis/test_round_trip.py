"""Every estimator through a file and back in a fresh process: equal numbers, no code, small files.

One process loads all the files, and says what it predicts and what it did.
"""

import inspect
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import heckmanfa
from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    HeckmanOrdered,
    HeckmanOrderedAverage,
    HeckmanOrderedBestSubset,
    HeckmanProbit,
    HeckmanProbitAverage,
    HeckmanProbitBestSubset,
    InverseProbabilityWeighted,
    NaiveOLS,
    TreatmentAverage,
    TreatmentBestSubset,
    TreatmentModel,
)
from heckmanfa.analysis.model_classes import MODELS as MODULES
from heckmanfa.datasets import make_selection
from heckmanfa.errors import InputError, NotSavedError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

MODELS = {
    "Heckman": Heckman(["a", "c"]),
    "ml": Heckman(["a", "c"], method="ml", cov_type="robust"),
    "HeckmanFA": HeckmanFA(epochs=40, n_draws=40, record_path=10, random_state=0),
    "HeckmanBestSubset": HeckmanBestSubset("corrected_bic"),
    "honest": HeckmanBestSubset(honest=True, n_splits=3, random_state=np.random.RandomState(0)),
    # The lasso chooses among single columns.
    "HeckmanLasso": HeckmanLasso(
        "ebic", prediction_features=["a", "c"], random_state=np.random.default_rng(0)
    ),
    "log": Heckman(["a", "c"], outcome_transform="log"),
    "t errors": Heckman(["a", "c"], method="ml", errors="t"),
    "held": Heckman(["a", "g"], method="ml", rho=0.3, unknown="missing"),
    "HeckmanAverage": HeckmanAverage("mean"),
    "average_ml": HeckmanAverage(method="ml"),
    "HeckmanProbit": HeckmanProbit(["a", "c"]),
    "HeckmanProbitAverage": HeckmanProbitAverage(),
    "HeckmanProbitBestSubset": HeckmanProbitBestSubset(n_refits=3),
    "NaiveOLS": NaiveOLS(),
    "InverseProbabilityWeighted": InverseProbabilityWeighted(),
    "DoublyRobust": DoublyRobust(random_state=0),
}
# Ways to run code that a file names. Once a process has made every kind of model, reading one more
# executes and imports nothing either.
CHILD = """
import json, sys, warnings
from pathlib import Path
import numpy as np, pandas as pd
import heckmanfa
seen, warm = [], False
def hook(event, arguments):
    forbidden = ("os.system", "subprocess", "os.exec", "os.posix_spawn", "socket", "pickle.find")
    if event.startswith(forbidden) or (warm and event in ("exec", "import")):
        seen.append(f"{event} {arguments!r:.200}")
sys.addaudithook(hook)
warnings.simplefilter("ignore")
folder, found = Path(sys.argv[1]), {}
@ROWS
@TEXT
new = pd.read_parquet(folder / "new.parquet")
for path in sorted(folder.glob("*.heckmanfa")):
    model = heckmanfa.load(path)
    rows = rows_for(path.stem, model, new)
    found[path.stem] = {"model": type(model).__name__}
    for name in ("predict", "predict_proba", "predict_selection"):
        if hasattr(model, name):
            found[path.stem][name] = np.asarray(getattr(model, name)(rows)).tolist()
    for name in ("tidy", "vcov", "summary"):
        if hasattr(model, name):
            found[path.stem][name] = text_of(getattr(model, name)())
warm = True
for name in ("Heckman", "HeckmanAverage", "HeckmanProbit", "NaiveOLS"):
    heckmanfa.load(folder / f"{name}.heckmanfa")
warm = False
print(json.dumps({"found": found, "seen": seen}))
"""


@pytest.fixture(scope="module")
def data():
    """Return features, an outcome with gaps, and two classes of it."""
    made = make_selection(300, prediction_features=[0, 2], n_features=3, rho=0.5, random_state=7)
    y = made.y
    classes = np.where(np.isnan(y), None, np.where(y > np.nanmedian(y), "high", "low"))
    X = pd.DataFrame(made.X[:, :3], columns=list("abc"))
    X["g"] = np.array(["u", "v", "w"])[np.arange(len(X)) % 3]
    return X, y, classes, X.head(20)


@pytest.fixture(scope="module")
def fitted(data, network):
    """Return every kind of model, fitted on columns with names and without."""
    X, y, classes, _ = data
    models = {
        name: model.fit(X, classes if "Probit" in name else np.exp(y) if name == "log" else y)
        for name, model in MODELS.items()
    }
    levels = pd.Series(np.where(np.isnan(y), np.nan, np.digitize(y, np.nanquantile(y, [0.3, 0.7]))))
    models["HeckmanOrdered"] = HeckmanOrdered(["a", "c"]).fit(X, levels)
    models["HeckmanOrderedAverage"] = HeckmanOrderedAverage().fit(X, levels)
    models["HeckmanOrderedBestSubset"] = HeckmanOrderedBestSubset(n_refits=2).fit(X, levels)
    treated = X["a"] + X["b"] > 0.5 * X["c"]
    everyone = np.where(np.isnan(y), X["a"], y)
    models["TreatmentModel"] = TreatmentModel(["c"], ["a", "c"]).fit(X, everyone, treated=treated)
    models |= {
        kind.__name__: kind(outcome_features=["a", "c"], treatment_features=["a", "c"]).fit(
            X, everyone, treated=treated
        )
        for kind in (TreatmentAverage, TreatmentBestSubset)
    }
    models["plain_RURegressor"] = network
    models["plain_Heckman"] = Heckman([0, 2]).fit(X[list("abc")].to_numpy(), y)
    models["plain_NaiveOLS"] = NaiveOLS().fit(X[list("abc")].to_numpy(), y)
    models["formula"] = Heckman.from_formula(
        "y ~ a + poly(c, 2) + g", "~ a + b + c + np.exp(c) + g", X.assign(y=y)
    )
    return models


def rows_for(name, model, new):
    """Return new rows as a model takes them."""
    if name == "formula":
        return new
    rows = new[list(getattr(model, "feature_names_in_", "abc"))[: model.n_features_in_]]
    return rows.to_numpy() if name.startswith("plain") else rows


def text_of(report):
    """Return a report or a table as text, with every bit of its numbers."""
    if isinstance(report, pd.DataFrame):
        return repr([report.columns.tolist(), report.to_numpy().tolist()])
    return str(report)


@pytest.fixture(scope="module")
def child(fitted, data, tmp_path_factory):
    """Save all models, and load them in one fresh process."""
    folder = tmp_path_factory.mktemp("models")
    for name, model in fitted.items():
        heckmanfa.save(model, folder / f"{name}.heckmanfa")
    data[3].to_parquet(folder / "new.parquet")
    program = CHILD.replace("@ROWS", inspect.getsource(rows_for))
    program = program.replace("@TEXT", inspect.getsource(text_of))
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_every_model_predicts_to_the_bit_in_another_process(child, fitted, data):
    folder, said = child
    assert {type(model).__name__ for model in fitted.values()} == {*MODULES}
    for name, model in fitted.items():
        found, rows = said["found"][name], rows_for(name, model, data[3])
        assert found["model"] == type(model).__name__
        for method in {"predict", "predict_proba", "predict_selection"} & {*found}:
            assert found[method] == np.asarray(getattr(model, method)(rows)).tolist(), name
        for method in {"tidy", "vcov", "summary"} & {*found}:
            assert found[method] == text_of(getattr(model, method)()), name
        assert (folder / f"{name}.heckmanfa").stat().st_size < 100_000


def test_loading_runs_no_code_of_a_file(child):
    assert child[1]["seen"] == []


def small(model, folder):
    path = folder / "small.heckmanfa"
    heckmanfa.save(model, path, candidates=False, force=True)
    return heckmanfa.load(path)


@pytest.mark.parametrize("name", ["HeckmanBestSubset", "HeckmanAverage"])
def test_a_file_without_candidates_predicts_and_reports_alike(name, fitted, data, tmp_path):
    model, rows = fitted[name], data[0].head(20)
    again = small(model, tmp_path)
    assert str(again.summary()) == str(model.summary())
    for kind in ("marginal", "unselected"):
        for found, expected in zip(
            again.predict(rows, kind=kind, return_interval="prediction"),
            model.predict(rows, kind=kind, return_interval="prediction"),
            strict=True,
        ):
            np.testing.assert_array_equal(found, expected)


def test_what_a_file_was_saved_without_is_named(fitted, data, tmp_path):
    search = small(fitted["HeckmanBestSubset"], tmp_path)
    with pytest.raises(NotSavedError, match=r"^candidates_ was left out .* candidates=False"):
        _ = search.candidates_
    with pytest.raises(NotSavedError, match=r"^search_report\(\) was left out"):
        search.search_report()
    assert search.optimal_ == fitted["HeckmanBestSubset"].optimal_
    with pytest.raises(NotSavedError, match=r"^path_ was left out"):
        _ = small(fitted["HeckmanFA"], tmp_path).path_
    average = small(fitted["average_ml"], tmp_path)
    with pytest.raises(NotSavedError, match=r"^assignments_ was left out"):
        _ = average.assignments_
    for model in (average, fitted["average_ml"]):
        _, limits = model.predict(data[0].head(3), return_interval="confidence")
        assert np.isfinite(limits).all()
    pd.testing.assert_frame_equal(average.tidy(), fitted["average_ml"].tidy())
    assert isinstance(pickle.loads(pickle.dumps(NotSavedError("path_"))), NotSavedError)


def test_saving_says_what_it_cannot_save(tmp_path, fitted):
    for arguments, words in (
        ((tmp_path / "m.heckmanfa", fitted["Heckman"]), r"got a Heckman: call save\(model, path\)"),
        ((Heckman(), tmp_path / "m.heckmanfa"), "this Heckman is not fitted: call fit first"),
        (("abc", tmp_path / "m.heckmanfa"), "save keeps fitted models of heckmanfa; got a str"),
        ((fitted["Heckman"], tmp_path / "m.pkl"), "save writes .* ends in .pkl"),
    ):
        with pytest.raises(InputError, match=words):
            heckmanfa.save(*arguments)
    assert list(tmp_path.iterdir()) == []
