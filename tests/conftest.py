"""Fixtures shared by all tests: oracle numbers, oracle data, and small data sets of known truth."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heckmanfa.datasets import load_mroz, make_selection

HERE = Path(__file__).parent


def pytest_configure() -> None:
    # Reproducible, and quick enough for two cores; `HYPOTHESIS_PROFILE=long` looks harder.
    from hypothesis import HealthCheck, settings

    common: dict[str, Any] = {
        "deadline": None,
        "derandomize": True,
        "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    }
    settings.register_profile("default", max_examples=25, **common)
    settings.register_profile("long", max_examples=500, **common)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def oracle():
    """Numbers of other programs, by file name."""
    return lambda name: json.loads((HERE / "oracles" / f"{name}.json").read_text())


@pytest.fixture(scope="session")
def oracle_frame():
    """A data set of the oracles that is not part of the repository."""

    def read(name: str) -> pd.DataFrame:
        folders = [os.environ.get("HECKMANFA_ORACLES"), HERE.parent / ".." / "shared" / "oracles"]
        for folder in folders:
            if folder is not None and (Path(folder) / name).exists():
                return pd.read_csv(Path(folder) / name)
        pytest.skip(f"{name} is neither in HECKMANFA_ORACLES nor in ../shared/oracles")

    return read


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
def simulated():
    """800 rows, 6 features of which 0, 2 and 3 predict; rho 0.5."""
    return make_selection(
        800, 6, prediction_features=[0, 2, 3], rho=0.5, correlation=0.3, random_state=7
    )
