"""The way from a table in memory to an answer, as a notebook takes it."""

from __future__ import annotations

import polars as pl
import pytest

from heckmanfa.analysis import Question, analyse
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaError, InputError, InputTypeError, UnknownFeatureError
from heckmanfa.report import write_report

COLUMNS = ["lwage", "educ", "exper", "kids5"]


@pytest.fixture(scope="module")
def table():
    return load_mroz()[COLUMNS]


def test_a_table_and_its_outcome_ask_the_same_as_a_question(table, tmp_path):
    asked = analyse(Question("frame", "lwage", select_only=("kids5",)), frame=table)
    path = tmp_path / "mroz.csv"
    table.to_csv(path, index=False)
    for given in (table, pl.from_pandas(table), path, str(path)):
        found = analyse(given, outcome="lwage", select_only="kids5")
        assert found.roles.round(8).equals(asked.roles.round(8))
    assert found.question == Question(str(path), "lwage", select_only=("kids5",))


def test_one_name_is_not_taken_for_its_letters():
    assert Question("x", "y", exclude="educ") == Question("x", "y", exclude=("educ",))
    assert Question("x", "y", always=["a", "b"]).always == ("a", "b")
    assert Question("x", "y", features=None).features == ()


@pytest.mark.parametrize(
    ("given", "options", "kind", "words"),
    [
        (("lwage",), {}, InputTypeError, "outcome='lwage'"),
        ((), {}, InputTypeError, "outcome is missing"),
        ((), {"outcome": "lwagee"}, UnknownFeatureError, "Did you mean 'lwage'"),
        ((), {"outcome": "lwage", "exclud": "x"}, InputTypeError, "Did you mean 'exclude'"),
        ((), {"outcome": "lwage", "frame": [1]}, InputError, "frame is the table of a Question"),
    ],
)
def test_what_is_missing_or_misspelt_is_named(table, given, options, kind, words):
    with pytest.raises(kind, match=words):
        analyse(table, *given, **options)


def test_what_is_no_table_is_refused(table):
    with pytest.raises(InputTypeError, match="rows of scan, or a path; got a ndarray"):
        analyse(table.to_numpy(), outcome="lwage")
    with pytest.raises(InputError, match="put outcome into it"):
        analyse(Question("frame", "lwage"), frame=table, outcome="lwage")
    with pytest.raises(HeckmanfaError, match="got a list"):
        analyse([1, 2], outcome="lwage")


def test_an_analysis_prints_its_answer_and_is_named_at_once(table):
    analysis = analyse(table, outcome="lwage")
    assert repr(analysis) == (
        "<Analysis of 'lwage' in frame: 753 rows, 428 with an outcome, 3 features, HeckmanAverage>"
    )
    assert not {"answer", "checks"} & {*vars(analysis)}
    assert str(analysis) == "\n".join(analysis.answer)
    first = analysis.checks[0]
    assert str(first).startswith(f"{first.level}: {first.title.removesuffix('.')}")
    assert first.value in str(first)
    assert str(first).endswith(f"Do: {first.do}")
    assert len(repr(analysis.evidence)) < 20_000


def test_a_model_is_not_an_analysis(table, tmp_path):
    analysis = analyse(table, outcome="lwage", search="none")
    with pytest.raises(InputTypeError, match=r"got a Heckman\. .*method report"):
        write_report(analysis.model, tmp_path / "report.html")
