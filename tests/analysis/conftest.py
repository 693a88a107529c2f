"""What tests of answers share, and ways to tamper with a model file."""

import functools
import hashlib
import io
import json
import warnings
import zipfile

import numpy as np
import pytest

from heckmanfa.analysis import Question, analyse, best_set
from heckmanfa.datasets import load_mroz

FEW = ("educ", "exper", "age", "kids5", "nwifeinc")
FEATURES = (
    *("educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"),
    *("fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"),
)


@pytest.fixture(scope="module", autouse=True)
def few_samples():
    """Checks search again in a few samples of the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_set, "N_BOOT", 4)
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


def digest(members):
    """What a file says of its own members; whoever changes one can write it, too."""
    total = hashlib.sha256()
    for name in sorted(members):
        total.update(f"{name} {hashlib.sha256(members[name]).hexdigest()}\n".encode())
    return total.hexdigest()


def rewrite(path, *, seal=False, manifest=None, schema=None, members=None):
    """Change a file's manifest or schema; sealed, its digest fits again."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    if schema is not None:
        state = json.loads(held["schema.json"])
        schema(state)
        held["schema.json"] = json.dumps(state).encode()
    listed = json.loads(held.pop("heckmanfa.json"))
    if members is not None:
        members(held)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
        if seal:
            listed["sha256"] = digest(held)
        if manifest is not None:
            manifest(listed)
        archive.writestr("heckmanfa.json", json.dumps(listed))
    path.write_bytes(buffer.getvalue())


@pytest.fixture(scope="session")
def rewritten():
    """A function that changes a model file, and seals it where it is asked to."""
    return rewrite


@pytest.fixture
def saved(original, tmp_path):
    """A copy of a module's model file, for one test to change."""
    path = tmp_path / "m.skops"
    path.write_bytes(original)
    return path
