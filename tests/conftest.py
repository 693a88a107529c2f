"""Fixtures shared by all tests: oracle numbers, oracle data, and small data sets of known truth."""

from __future__ import annotations

import faulthandler
import gc
import importlib.util
import json
import os
import runpy
import shutil
import signal
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import heckmanfa
from heckmanfa.datasets import (
    PaperData,
    fetch_compas,
    fetch_crime,
    load_mroz,
    make_selection,
)

HERE = Path(__file__).parent

# No test takes a fifth of this on two busy cores. One that waits for a process, a cluster or a
# browser that does not answer is ended with the stack of every thread, and named by its worker.
SECONDS_PER_TEST = 300
_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    # Output is captured later, and what a test that hangs wrote would be lost.
    config.stash[_stderr] = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    # A shell starts what it runs in the background without Ctrl-C, and tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Reproducible, and quick enough for two cores; `HYPOTHESIS_PROFILE=long` looks harder.
    from hypothesis import HealthCheck, settings

    common: dict[str, Any] = {
        "deadline": None,
        "derandomize": True,
        "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    }
    settings.register_profile("default", max_examples=16, **common)
    settings.register_profile("long", max_examples=500, **common)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if item.get_closest_marker("study") is not None:
        return (yield)
    faulthandler.dump_traceback_later(SECONDS_PER_TEST, exit=True, file=item.config.stash[_stderr])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_collection_finish() -> None:
    # What is loaded by now stays: the garbage collector need not look at it again and again.
    gc.collect()
    gc.freeze()


def _find(kind: str, name: str) -> Path:
    """A file that need not be part of the repository; the test is skipped where it is absent."""
    elsewhere = os.environ.get(f"HECKMANFA_{kind.upper()}")
    folders = [HERE / kind, elsewhere, HERE.parent / ".." / "shared" / kind]
    for folder in folders:
        if folder is not None and (Path(folder) / name).exists():
            return Path(folder) / name
    pytest.skip(f"{name} is neither in HECKMANFA_{kind.upper()} nor in ../shared/{kind}")


@pytest.fixture(scope="session")
def oracle():
    """Numbers of other programs, by file name."""
    return lambda name: json.loads((HERE / "oracles" / f"{name}.json").read_text())


@pytest.fixture(scope="session")
def oracle_frame():
    """Rows that other programs were given; data of others are not part of the repository."""

    return lambda name: pd.read_csv(_find("oracles", name))


@pytest.fixture(scope="session")
def recorded_training():
    """A recorded training run of the paper's published code, on COMPAS."""
    return dict(np.load(_find("oracles", "assignment_training_compas.npz")))


@pytest.fixture(scope="session")
def paper_files():
    """A folder with the files of the paper's data sets, which HECKMANFA_DATA then names."""
    names = ("communities.data", "compas-scores-two-years.csv")
    folder = _find("data", names[0]).parent
    for name in names[1:]:
        if not (folder / name).exists():
            pytest.skip(f"{name} is not where {names[0]} is")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HECKMANFA_DATA", str(folder))
        yield folder


@dataclass(frozen=True)
class Split:
    """A data set of the paper, its features standardised by the rows whose outcome is kept."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def of(cls, data: PaperData) -> Split:
        kept = data.X.to_numpy()[data.selected]
        centre, scale = kept.mean(axis=0), kept.std(axis=0)
        X, X_test = ((one.to_numpy() - centre) / scale for one in (data.X, data.X_test))
        return cls(X, data.y, X_test, data.y_test)


@pytest.fixture(scope="session")
def crime(paper_files):
    """UCI's Communities and Crime by the paper's protocol: 26 features, 976 of 1,395 selected."""
    return Split.of(fetch_crime())


@pytest.fixture(scope="session")
def compas(paper_files):
    """ProPublica's COMPAS by the paper's protocol: 10 features, 2,585 of 3,694 selected."""
    return Split.of(fetch_compas())


@dataclass(frozen=True)
class Case:
    X: pd.DataFrame
    y: pd.Series
    prediction: list[str]
    selection: list[str]


@pytest.fixture(scope="session")
def case(oracle_frame):
    """The data of an R oracle: columns in the order of its selection, then outcome terms."""

    def build(name: str) -> Case:
        if name == "womenwk":
            frame = oracle_frame("womenwk.csv")
            selection = ["married", "children", "education", "age"]
            return Case(frame[selection], frame["wage"], ["education", "age"], selection)
        mroz = load_mroz()
        mroz = mroz.assign(
            age2=mroz["age"] ** 2,
            exper2=mroz["exper"] ** 2,
            kids=((mroz["kids5"] + mroz["kids618"]) > 0).astype(float),
        )
        if name == "mroz_greene":
            selection = ["age", "age2", "faminc", "kids", "educ"]
            prediction = ["exper", "exper2", "educ", "city"]
            y = mroz["wage"]
        else:
            selection = ["nwifeinc", "educ", "exper", "exper2", "age", "kids5", "kids618"]
            prediction = ["educ", "exper", "exper2"]
            y = np.log(mroz["wage"])
        columns = list(dict.fromkeys([*selection, *prediction]))
        return Case(mroz[columns].astype(float), y, prediction, selection)

    return build


@pytest.fixture(scope="session")
def binary_case(oracle_frame):
    """The data of an R oracle with a binary outcome, True, False or missing."""

    def build(name: str) -> Case:
        if name == "hp_sim_pos":
            frame = oracle_frame("sim_selection_pos.csv.gz")
            selection, prediction = ["x1", "x2", "x3", "z1", "z2"], ["x1", "x2", "x3"]
            y = frame["y"].map({0: False, 1: True})
        else:
            mroz = load_mroz()
            frame = mroz.assign(**{"I(exper^2)": mroz["exper"] ** 2})
            if name == "hp_mroz_manual":
                selection, prediction = ["educ", "age", "kids5", "kids618", "nwifeinc"], ["educ"]
            else:
                selection = ["nwifeinc", "educ", "exper", "I(exper^2)", "age", "kids5", "kids618"]
                prediction = ["educ", "exper", "I(exper^2)", "city"]
            high = frame["wage"] >= (5 if name == "hp_mroz_manual" else 4)
            y = high.where(frame["lfp"] == 1)
        columns = list(dict.fromkeys([*selection, *prediction]))
        return Case(frame[columns].astype(float), y, prediction, selection)

    return build


@pytest.fixture(scope="module")
def mroz():
    """Mroz's data, a new frame for each module."""
    return load_mroz()


@pytest.fixture(scope="session")
def simulated():
    """800 rows, 6 features of which 0, 2 and 3 predict; rho 0.5."""
    return make_selection(
        800, 6, prediction_features=[0, 2, 3], rho=0.5, correlation=0.3, random_state=7
    )


@pytest.fixture
def reloaded(tmp_path):
    """Return a function that writes a model to a file, and reads it again."""

    def reload(model):
        heckmanfa.save(model, tmp_path / "again.heckmanfa", force=True)
        return heckmanfa.load(tmp_path / "again.heckmanfa")

    return reload


def stand_in_for_mlflow() -> types.ModuleType:
    """What docs/serving.md uses of MLflow's documented protocol, in a module of that name.

    `save_model` keeps the code of a model and copies its artifacts; `load_model` runs the code,
    calls `load_context` with the artifacts' paths, and passes rows on to `predict`.
    """
    module: Any = types.ModuleType("mlflow")
    chosen: list[Any] = []

    def save_model(path, *, python_model, artifacts, pip_requirements):
        folder = Path(path)
        (folder / "artifacts").mkdir(parents=True)
        shutil.copy(python_model, folder / "code.py")
        for name, place in artifacts.items():
            shutil.copy(place, folder / "artifacts" / name)

    def load_model(path):
        folder = Path(path)
        runpy.run_path(str(folder / "code.py"))
        model = chosen.pop()
        files = {place.name: str(place) for place in (folder / "artifacts").iterdir()}
        context = types.SimpleNamespace(artifacts=files)
        model.load_context(context)
        return types.SimpleNamespace(predict=lambda rows: model.predict(context, rows))

    module.pyfunc = types.SimpleNamespace(
        PythonModel=type("PythonModel", (), {}), save_model=save_model, load_model=load_model
    )
    module.models = types.SimpleNamespace(set_model=chosen.append)
    return module


@pytest.fixture
def mlflow(monkeypatch):
    """MLflow, or a stand-in: it is too large to be installed for one page of the documents."""
    if importlib.util.find_spec("mlflow") is None:
        monkeypatch.setitem(sys.modules, "mlflow", stand_in_for_mlflow())
