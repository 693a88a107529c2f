"""No method depends on which was called before: every one, in two orders, on equal fresh fits."""

from __future__ import annotations

import inspect
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from tests.recorded import flat

import heckmanfa
from heckmanfa.results import assignment_weights

RNG = np.random.default_rng(4)
X = pd.DataFrame(RNG.normal(size=(260, 4)), columns=list("abcd"))
U, E = RNG.normal(size=(2, 260))
SELECTED = 0.4 + 0.6 * X["a"] + 0.7 * X["c"] + 0.4 * X["d"] + U > 0
Y = (1.0 + X["a"] + 0.5 * X["b"] + 0.5 * U + E).where(SELECTED)
GROUPS = np.arange(260) % 13
CLASSES = (Y > 1.0).astype(float).where(SELECTED)

# Called with the rows of the fit; what is not here needs nothing.
WITH_ROWS = {
    "bootstrap": {"n_boot": 3, "random_state": 0},
    "bounds": {},
    "exclusion_test": {},
    "log_likelihood": {},
    "mills_ratios": {},
    "pictures": {},
    "profile": {"term": "a", "grid": 3},
    "profile_df": {"grid": [4.0, 9.0]},
    "profile_rho": {"grid": 3},
    "score": {},
    "specification_tests": {},
    "uncertainty_interval": {},
    "what_if": {},
}
WITH_FEATURES = {
    *("diagnostics", "inverse_mills", "margins", "missing_features", "predict", "predict_joint"),
    *("predict_log_proba", "predict_proba", "predict_selection"),
}
OTHER = {"wald_test": ("a = 0",)}
# Make a model, or are scikit-learn's.
NOT_ASKED = {"fit", "from_formula", "take_columns", *dir(BaseEstimator)}

MODELS = {
    "two-step": heckmanfa.Heckman(["a", "b"]),
    "ml": heckmanfa.Heckman(["a", "b"], method="ml"),
    "t errors": heckmanfa.Heckman(["a", "b"], method="ml", errors="t"),
    "series": heckmanfa.Heckman(["a", "b"], method="series", n_terms=2),
    "best subset": heckmanfa.HeckmanBestSubset(),
    "sampled": heckmanfa.HeckmanFA(epochs=20, n_draws=20, random_state=0),
    "lasso": heckmanfa.HeckmanLasso(),
    "honest": heckmanfa.HeckmanBestSubset(honest=True, n_splits=3, random_state=0),
    "average": heckmanfa.HeckmanAverage(),
    "probit": heckmanfa.HeckmanProbit(["a", "b"]),
    "probit best subset": heckmanfa.HeckmanProbitBestSubset(),
    "probit average": heckmanfa.HeckmanProbitAverage(),
    "least squares": heckmanfa.NaiveOLS(),
    "weighted": heckmanfa.InverseProbabilityWeighted(),
    "robust": heckmanfa.RURegressor(epochs=3, random_state=0),
}


# Every method of theirs is also one of another model here.
ALIKE = ("lasso", "probit", "probit best subset", "probit average")


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.study) if name in ALIKE else name for name in MODELS
    ]
)
def model(request, monkeypatch):
    # As behind a search among many features: only what may take a while weighs its assignments.
    monkeypatch.setattr(assignment_weights, "QUICK_UNITS", 2)
    return MODELS[request.param]


def asked(model):
    """Names of all public methods and properties of a class, and how to read each."""
    for name in dir(type(model)):
        if name.startswith(("_", "set_")) or name in NOT_ASKED:
            continue
        if callable(getattr(type(model), name)) or isinstance(
            inspect.getattr_static(type(model), name), property
        ):
            yield name
    if hasattr(model, "_card"):
        # Others show scikit-learn's diagram, which is numbered.
        yield "_repr_html_"


def answer(model, name, y):
    """Return everything that one method says, as text; also why it refuses."""
    try:
        found = getattr(model, name)
        if callable(found):
            if name in WITH_ROWS:
                found = found(X, y, **WITH_ROWS[name])
            elif name in WITH_FEATURES:
                found = found(X)
            elif name == "wild_test":
                found = found("a = 0", X, y, groups=GROUPS, n_boot=19, random_state=0)
            elif name == "report":
                with tempfile.TemporaryDirectory() as folder:
                    found(path := Path(folder) / "page.html", X, y)
                    found = path.read_text(encoding="utf-8")
            else:
                found = found(*OTHER.get(name, ()))
        if name == "pictures":
            found = [read_picture(found, part) for part in sorted(parts_of(found))]
        return f"{flat(found, name)}\n{found}"
    except (heckmanfa.errors.HeckmanfaError, AttributeError) as error:
        return f"{name}: {type(error).__name__}: {error}"


def parts_of(pictures):
    kind = type(pictures)
    return [name for name in vars(kind) if name[0] != "_" and not callable(getattr(kind, name))]


def read_picture(pictures, name):
    picture = getattr(pictures, name)
    return f"{name}: {picture.svg(600) if hasattr(picture, 'svg') else picture}"


def answers(model, y, *, backwards):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = type(model)(**model.get_params()).fit(X, y)
        names = sorted(asked(fitted), reverse=backwards)
        return {name: answer(fitted, name, y) for name in names}


def test_no_answer_depends_on_what_was_asked_before(model):
    y = CLASSES if "Probit" in type(model).__name__ else Y
    first, again = (answers(model, y, backwards=backwards) for backwards in (False, True))
    assert {*first} == {*again}
    for name, said in first.items():
        assert said == again[name], name
    refused = [said for said in first.values() if "TypeError" in said or "needs the rows" in said]
    assert refused == []
