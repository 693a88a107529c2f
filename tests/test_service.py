"""The web service of docs/serving.md refuses whatever is sent to it, and never breaks."""

import json
import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "serving.md"
ROW = {"educ": 12, "exper": 10, "place": "city", "age": 40, "kids5": 0}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """The service as the page shows it, with the model that the page saves."""
    pytest.importorskip("fastapi")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("service"))
        for code in blocks:
            if "heckmanfa.save(" in code or "FastAPI()" in code:
                exec(compile(code, str(PAGE), "exec"), names)
    with warnings.catch_warnings():
        # Starlette announces that it will use another client.
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient

    # An error of the service would be raised here; a server answers 500.
    return TestClient(names["app"], raise_server_exceptions=False)


def row(**changes):
    return json.dumps([ROW | changes]).encode()


HOSTILE = {
    "empty": b"",
    "no rows": b"[]",
    "not json": b"educ=12",
    "a number": b"1",
    "null": b"null",
    "a row alone": json.dumps(ROW).encode(),
    "empty row": b"[{}]",
    "rows of lists": b"[[1, 2]]",
    "lone surrogate": b'[{"place": "\\ud800"}]',
    "lone surrogate in a name": b'[{"\\udfff": 1}]',
    "surrogate among all features": row(place="\ud800"),
    "invalid UTF-8": b'[{"place": "\xff\xfe"}]',
    "null byte": row(place="\0"),
    "control characters": row(place="\x1b[31m"),
    "NaN": row(educ=float("nan")),
    "infinity": row(educ=float("inf")),
    "too large": row(educ=1e308),
    "too small": row(educ=-1e308),
    "large integer": b'[{"educ": ' + b"9" * 5_000 + b"}]",
    "text for a number": row(educ="twelve"),
    "digits": row(educ="9" * 199 + "x"),
    "long text": row(place="a" * 100_000),
    "long name": json.dumps([{"a" * 10_000: 1}]).encode(),
    "a list inside": row(place=["city"]),
    "an object inside": row(place={"a": 1}),
    "missing": row(place=None),
    "many rows": json.dumps([ROW] * 1_001).encode(),
    "large": b"[" + b" " * 2_000_000 + b"]",
    "deep": b"[" * 100_000,
    "deep and closed": b"[" * 50_000 + b"]" * 50_000,
    "many columns": json.dumps([{f"c{k}": 1 for k in range(20_000)}]).encode(),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_hostile_body_gets_an_error_of_the_client(client, name):
    answer = client.post("/predict", content=HOSTILE[name])
    assert 400 <= answer.status_code < 500
    assert isinstance(answer.json()["detail"], str)


def test_a_good_body_gets_its_predictions(client):
    answer = client.post("/predict", content=json.dumps([ROW] * 1_000))
    assert answer.status_code == 200
    assert len(answer.json()) == 1_000
