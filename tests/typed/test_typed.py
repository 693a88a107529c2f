"""Attributes of fitted models are declared, so that a type checker knows them."""

import subprocess
import sys
import typing
import warnings
from pathlib import Path

import numpy as np
import pytest

from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    HeckmanProbit,
    HeckmanProbitBestSubset,
    InverseProbabilityWeighted,
    NaiveOLS,
)
from heckmanfa.datasets import load_mroz

ROOT = Path(__file__).parents[2]
MODELS = {
    "two-step": lambda: Heckman(["educ", "exper"]),
    "log": lambda: Heckman(["educ", "exper"], method="ml", outcome_transform="log"),
    "best subset": lambda: HeckmanBestSubset(),
    "average": lambda: HeckmanAverage(),
    "lasso": lambda: HeckmanLasso(),
    "training": lambda: HeckmanFA(epochs=2, n_draws=2, random_state=0),
    "probit": lambda: HeckmanProbit(["educ", "exper"]),
    "probit search": lambda: HeckmanProbitBestSubset(),
    "least squares": lambda: NaiveOLS(),
    "weighted": lambda: InverseProbabilityWeighted(),
    "doubly robust": lambda: DoublyRobust(random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_public_attribute_of_a_fit_is_declared_with_its_type(name):
    mroz = load_mroz()
    X = mroz[["educ", "exper", "age", "kids5", "nwifeinc"]]
    binary = (mroz["wage"] > 3.5).astype(float).where(mroz["lfp"] == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]().fit(X, binary if "probit" in name else mroz["wage"])
    declared = typing.get_type_hints(type(model))
    found = {
        key: value
        for key, value in vars(model).items()
        if key.endswith("_") and not key.startswith("_")
    }
    assert len(found) > 5
    assert found.keys() <= declared.keys()
    for key, value in found.items():
        kinds = typing.get_args(declared[key]) or (declared[key],)
        if typing.get_origin(declared[key]) is np.ndarray:
            assert isinstance(value, np.ndarray), key
        elif float in kinds:
            assert value is None or isinstance(value, float | int | np.floating | tuple), key


@pytest.mark.study
def test_a_type_checker_sees_the_types_of_fitted_models():
    # `make check` does the same; it takes half a minute if nothing is cached.
    check = [sys.executable, "-m", "mypy", "--strict", "tests/typed/use.py"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
