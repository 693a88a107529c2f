"""What tests of answers share, and ways to tamper with a model file."""

import copy
import functools
import json
import warnings

import numpy as np
import pytest

from heckmanfa.analysis import Question, analyse, refits
from heckmanfa.analysis.model_file import pack, unpack
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.datasets import load_mroz
from heckmanfa.estimators.fitting import publish, take_columns
from heckmanfa.estimators.ru import Network, RURegressor

FEW = ("educ", "exper", "age", "kids5", "nwifeinc")
FEATURES = (
    *("educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"),
    *("fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"),
)


@pytest.fixture(scope="module", autouse=True)
def few_samples():
    """Checks search again in a few samples of the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refits, "N_BOOT", 4)
        yield


@pytest.fixture(scope="session")
def mroz():
    """Return answers about Mroz's women, each made once; ``few`` leaves five features."""
    frame = load_mroz()[[*FEATURES, "lwage"]].astype(float).assign(w=1.5)
    frame["county"] = np.arange(len(frame)) % 50

    @functools.cache
    def asked(options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return analyse(Question("mroz", "lwage", **dict(options)), frame=frame)

    def ask(*, few=False, **options):
        features = {"features": FEW if few else FEATURES}
        return asked(frozenset((features | options).items()))

    return ask


def rewrite(path, change=None, members=None):
    """Change the description in a model file, or its members, and pack it as heckmanfa does."""
    held = {name: bytes(content) for name, content in unpack(path.read_bytes()).items()}
    if change is not None:
        document = json.loads(held["model.json"])
        change(document)
        held["model.json"] = json.dumps(document).encode()
    if members is not None:
        members(held)
    path.write_bytes(pack(held))


@pytest.fixture(scope="session")
def rewritten():
    """A function that changes a model file and leaves its archive sound."""
    return rewrite


def fit_in(document):
    """Return the fit that a model file describes."""
    ((_, model),) = document["model"].items()
    return model["attributes"]["_fit"]["Fit"]


def inside(content, path):
    """Return the part of a description at names with dots between them."""
    return functools.reduce(lambda inner, key: inner[key], path.split("."), content)


@pytest.fixture(scope="session")
def swapped():
    """A function that puts something into a model file, in place of a part of its fit.

    After ``=`` comes the place of another part, a copy of which is put there.
    """

    def swap(path, name, value):
        def change(document):
            fit = fit_in(document)
            place, _, last = name.rpartition(".")
            copied = isinstance(value, str) and value.startswith("=")
            part = copy.deepcopy(inside(fit, value[1:])) if copied else value
            (inside(fit, place) if place else fit)[last] = part

        rewrite(path, change)

    return swap


@pytest.fixture
def saved(original, tmp_path):
    """A copy of a module's model file, for one test to change."""
    path = tmp_path / "m.heckmanfa"
    path.write_bytes(original)
    return path


@pytest.fixture(scope="session")
def network():
    """A RURegressor of two features, made without Torch, which takes seconds to import."""
    rng = np.random.default_rng(0)
    shapes = [(64, 2), (64,), (64, 64), (64,), (1, 64), (1,)]
    weights = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    columns = FittedColumns("RURegressor", 2)
    known = {
        "_columns": columns,
        "_support": np.array([True, True]),
        "_selected_given": False,
        "_network": Network(np.zeros(2), np.ones(2), 1.0, 2.0, weights),
        "row_counts_": {"total": 9, "selected": 5, "unselected": 4},
        "n_selected_": 5,
        "loss_": 0.5,
        "n_parameters_": 8_834,
    }
    model = RURegressor(random_state=0)
    publish(model, known)
    take_columns(model, columns)
    return model
