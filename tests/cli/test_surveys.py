"""Two clusterings and the design of a survey on the command line and in `analyse`."""

from __future__ import annotations

import html

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman
from heckmanfa.analysis import analyse
from heckmanfa.report import write_report

N = 900
ASKED = ("--outcome", "pressure", "--search", "none", "--predict-with", "age,salt")
FEATURES = ["age", "salt", "distance"]


def people() -> pd.DataFrame:
    """Draw people in villages of regions, interviewed in some month, without all their outcomes."""
    source = np.random.default_rng(2)
    region, village = source.integers(0, 6, N), source.integers(0, 4, N)
    alike = 0.4 * source.normal(size=(6, 4))[region, village]
    table = pd.DataFrame({"age": source.uniform(20, 70, N).round(), "salt": source.normal(size=N)})
    table["distance"] = source.exponential(2, N)
    healthy = source.normal(size=N) + alike
    comes = 0.9 + 0.02 * (table["age"] - 45) - 0.4 * table["distance"] + healthy > 0
    pressure = 120 + 0.5 * (table["age"] - 45) + 3 * table["salt"] - 6 * healthy
    table["pressure"] = (pressure + 8 * source.normal(size=N)).where(comes)
    return table.assign(
        region=np.array([*"abcdef"])[region],
        village=village,
        w=source.uniform(50, 200, N).round(1),
        there=40 + 5 * region,
        rural=np.where(source.uniform(size=N) < 0.6, "yes", "no"),
        asker=source.integers(0, 45, N),
        month=source.integers(0, 60, N),
    )


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture
def files(shell, table):
    table.to_csv("people.csv", index=False)
    table.to_parquet("people.parquet")
    return shell


CLUSTERS = (*ASKED, "--features", "age,salt,distance", "--cluster", "asker,month")


def agree(found, model):
    """Estimates of JSON have the coefficients and standard errors of a model."""
    known = model.tidy().set_index(["equation", "term"])
    rows = pd.DataFrame(found["estimates"]).set_index(["equation", "term"])
    assert {*known.index} == {*rows.index}
    for column in ("estimate", "std_error", "p_value", "ci_low", "ci_high"):
        values = rows[column].astype(float).reindex(known.index)
        np.testing.assert_allclose(values, known[column], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("where", [("people.csv",), ("people.parquet", "--stream-above", "0")])
def test_errors_are_clustered_by_two_columns(files, table, where):
    found, text = files.results(*where, *CLUSTERS, "--report", "out.html")
    model = Heckman(["age", "salt"], cov_type="cluster").fit(
        table[FEATURES], table["pressure"], groups=table[["asker", "month"]]
    )
    agree(found, model)
    counts = table["asker"].nunique(), table["month"].nunique()
    assert counts == (45, 60)
    assert found["clusters"] == [
        {"column": "asker", "number": 45},
        {"column": "month", "number": 60},
    ]
    assert found["reference_distribution"] == "t(44)"
    assert "Standard errors: cluster (45 clusters of asker and 60 of month)." in text
    page = " ".join(html.unescape((files.folder / "out.html").read_text("utf-8")).split())
    assert "rows of the same asker or month allowed to be dependent; 45 and 60" in page
    assert "Errors are clustered by two columns here, and the programs of a report by one." in page
    assert "cluster=['asker', 'month']" in page
    assert "--cluster asker --cluster month" in found["command"]


def test_two_clusterings_in_python(table, tmp_path):
    used = table[[*FEATURES, "pressure", "asker", "month"]]
    common = {"outcome": "pressure", "predict_with": ["age", "salt"]}
    both = analyse(used, search="none", cluster=("asker", "month"), **common)
    assert both.clusters == [("asker", 45), ("month", 60)]
    assert both.evidence.naming.clusterings == ("asker", "month")
    searched = analyse(used, cluster=("asker", "month"), **common)
    write_report(searched, tmp_path / "out.html")
    page = " ".join(html.unescape((tmp_path / "out.html").read_text("utf-8")).split())
    assert "A bootstrap draws whole clusters, and errors are clustered by two columns" in page


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        (
            "asker,month,village",
            "--cluster names 3 columns, and errors are clustered by one or two",
        ),
        ("asker,asker", "--cluster names 'asker' twice"),
        ("asker,mnth", "--cluster: the data has no column 'mnth'. Did you mean 'month'?"),
        ("asker,age", "--features names 'age', which is the column of --cluster"),
        ("asker,hole", "--cluster: column 'hole' is missing in 1 rows"),
    ],
)
def test_clusterings_that_cannot_be_used_are_refused(files, table, clusters, said):
    table.assign(hole=table["month"].where(table.index > 0)).to_csv("people.csv", index=False)
    assert said in files.refuses("fit", "people.csv", *CLUSTERS[:-1], clusters)
    status, text = files("check", "people.csv", *CLUSTERS[:-1], clusters)
    # A gap is found in the table; names are wrong before it is looked at.
    assert status == (0 if "missing" in said else 2)
    assert said in text
