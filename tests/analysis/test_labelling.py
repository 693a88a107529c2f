"""Readers see labels, units and what levels mean; frames, JSON and options keep names."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from heckmanfa import Heckman
from heckmanfa.analysis import Question, analyse, refits
from heckmanfa.cli import app
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError
from heckmanfa.report import render
from heckmanfa.tables.codebook import Codebook, ColumnWords
from heckmanfa.text.labels import Labels, labelled, one_unit, said, with_unit

COLUMNS = ["lwage", "educ", "exper", "age", "kids5", "city"]
LABELS = {"lwage": "Hourly wage (log)", "educ": "Years of schooling", "city": "Lives in a city"}
CODEBOOK = """column,label,unit,levels
lwage,Hourly wage (log),,
educ,Years of schooling,years,
city,Lives in a city,,0=country; 1=city
"""


@pytest.fixture(scope="module", autouse=True)
def few_samples():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refits, "N_BOOT", 3)
        patch.setattr(refits, "N_FOLDS", 2)
        yield


@pytest.fixture(scope="module")
def frame():
    return load_mroz()[COLUMNS]


@pytest.fixture(scope="module")
def analysis(frame):
    return analyse(frame, outcome="lwage", labels=LABELS, units={"educ": "years"}, title="Wages")


@pytest.fixture(scope="module")
def page(analysis):
    return render(analysis)


def words_of(html):
    """The text of a page outside its tables, and the labels of its pictures."""
    html = re.sub(r"<(style|script|table|pre)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", "", html)


def test_sentences_name_labels_and_units(analysis):
    answer = analysis.answer
    assert "Years of schooling" in str(answer.headline)
    assert "Hourly wage (log)" in str(answer.headline)
    assert answer.how_much.title.endswith("for one more year (Years of schooling)")
    said_of = [f"{item.paper} {item.news}" for item in answer.may_write]
    said_of += map(str, analysis.claims)
    said_of += [f"{check.title} {check.words} {check.value}" for check in analysis.checks]
    assert not re.search(r"\b(lwage|educ)\b", " ".join(said_of))


def test_a_page_shows_labels_and_its_tables_also_names(page):
    settings = page.index('id="details"')
    spoken = " ".join(re.findall(r' aria-label="([^"]*)"', page[:settings]))
    assert "Years of schooling" in spoken
    assert not re.search(r"\b(lwage|educ)\b", words_of(page[:settings]) + spoken)
    assert re.search(r'<text class="lab"[^>]*>Years of schooling</text>', page)
    assert '<th scope="row">Years of schooling <span class="column">educ</span></th>' in page
    assert "Years of schooling (educ)" in page
    assert 'data-f="educ"' in page
    assert "<title>Wages</title>" in page
    assert "Wages · frame · 753 rows, 428 with Hourly wage (log)" in page


def test_frames_and_predictions_keep_names(analysis):
    assert set(analysis.roles["feature"]) == set(COLUMNS) - {"lwage"}
    assert set(analysis.estimates["term"]) >= {"educ", "city"}
    assert "educ" in analysis.model.prediction_features_


def test_numbers_do_not_depend_on_labels(analysis, frame):
    pd.testing.assert_frame_equal(analysis.roles, analyse(frame, outcome="lwage").roles)


def test_labels_end_with_the_analysis_that_has_them(analysis, frame):
    assert "Years of schooling" in str(analysis.answer)
    assert "Years of schooling" not in str(analyse(frame, outcome="lwage").answer)
    assert said("educ") == "educ"


def test_what_is_read_first_changes_no_word(frame):
    asked = {"outcome": "lwage", "labels": LABELS, "search": "best-subset"}
    first, second = analyse(frame, **asked), analyse(frame, **asked)
    ahead = [*first.diagnostics.checks(), *first.facts]
    assert str(first.answer) == str(second.answer)
    assert ahead == [*second.diagnostics.checks(), *second.facts]


def test_pictures_that_are_read_first_have_labels(frame):
    pictures = analyse(frame, outcome="lwage", labels=LABELS).pictures()
    assert ">Years of schooling<" in pictures.forest.svg(540)
    assert ">Years of schooling<" in pictures.margins.svg(540)
    ax = pictures.forest.draw()
    assert any("Years of schooling" in tick.get_text() for tick in ax.get_yticklabels())


def test_the_command_line_reads_a_codebook(frame, tmp_path):
    (tmp_path / "codebook.csv").write_text(CODEBOOK, encoding="utf-8")
    frame.to_csv(tmp_path / "mroz.csv", index=False)
    asked = ["--labels", str(tmp_path / "codebook.csv"), "--units", "age=years", "--title", "Wages"]
    asked += ["--search", "none", "--predict-with", "city,educ"]
    json_out, page = tmp_path / "mroz.json", tmp_path / "mroz.html"
    command = ["fit", str(tmp_path / "mroz.csv"), "--outcome", "lwage", *asked]
    ran = CliRunner().invoke(app, [*command, "--json", str(json_out), "--report", str(page)])
    assert ran.exit_code == 0, ran.output
    assert "Years of schooling" in ran.stdout
    assert not re.search(r"\beduc\b", ran.stdout)
    results = json.loads(json_out.read_text())
    assert {role["feature"] for role in results["roles"]} >= {"educ", "city"}
    assert results["codebook"]["age"]["unit"] == "years"
    assert results["codebook"]["city"]["levels"] == {"0": "country", "1": "city"}
    assert results["question"]["title"] == "Wages"
    assert " ".join(asked[:2]) in results["command"]
    assert "city rather than country" in page.read_text()


def test_a_category_reads_as_its_label_and_the_meaning_of_its_level(frame):
    table = frame.assign(
        region=np.where(frame["age"] > 45, "S", np.where(frame.city > 0, "W", "N"))
    )
    book = Codebook({"region": ColumnWords("Region", levels={"S": "South", "N": "North"})})
    found = analyse(table.drop(columns=["city", "age"]), outcome="lwage", labels=book)
    naming = found.evidence.naming
    place = found.model.fit_.labels.index("region[S]")
    with labelled(found.labels):
        assert str(naming.change_of(place)) == "Region: South rather than North"
        assert said("region[S]") == "Region: South"
        assert said("region[W]") == "Region: W"
    assert "South rather than North" in render(found)


def test_a_binary_outcome_is_named_by_what_its_class_means(frame):
    table = frame.assign(rich=(frame["lwage"] > 1.2).where(frame["lwage"].notna()).astype(float))
    book = {"rich": ColumnWords("Pay", levels={"1": "high"}), "educ": ColumnWords("Schooling")}
    columns = ["rich", "educ", "exper", "kids5"]
    found = analyse(table[columns], outcome="rich", labels=Codebook(book))
    assert "P(Pay = high)" in str(found.answer)
    assert "high" in found.pictures().known("calibration").svg(540)


def test_an_outcome_has_its_unit_and_its_scale(frame):
    table = frame.assign(wage=np.exp(frame["lwage"])).drop(columns="lwage")
    asked = {"outcome": "wage", "labels": {"wage": "Hourly wage"}, "units": {"wage": "dollars"}}
    asked |= {"search": "none", "predict_with": ["educ"]}
    assert re.search(
        r"\d dollars more Hourly wage for", analyse(table, **asked).answer.how_much.title
    )
    logs = analyse(table, outcome_transform="log", **asked).answer.how_much.title
    assert re.search(r"\d% more Hourly wage for", logs)


@pytest.mark.parametrize("formula", [True, False])
def test_the_report_of_a_model_takes_labels(frame, tmp_path, formula):
    model, rows = (
        Heckman(prediction_features=["educ"]),
        (frame.drop(columns="lwage"), frame["lwage"]),
    )
    if formula:
        model, rows = (
            Heckman.from_formula(
                "lwage ~ educ + exper", "~ educ + exper + city + age + kids5", frame
            ),
            (frame,),
        )
    else:
        model.fit(*rows)
    model.report(tmp_path / "model.html", *rows, labels=LABELS)
    html = (tmp_path / "model.html").read_text()
    assert '<b data-f="educ">Years of schooling</b>' in html
    assert re.search(r'<text class="lab"[^>]*>Lives in a city</text>', html)
    with pytest.raises(UnknownFeatureError, match=r"'eduk'.*'educ'"):
        model.report(tmp_path / "other.html", *rows, labels={"eduk": "School"})


@pytest.mark.parametrize("passes", [1.0, 0.0])
def test_parquet_files_bring_labels_in_memory_and_in_passes(frame, tmp_path, passes):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    place = table.schema.get_field_index("educ")
    beside = {"label": "Years of schooling", "unit": "years"}
    schema = table.schema.set(place, table.schema.field(place).with_metadata(beside))
    pq.write_table(table.cast(schema), tmp_path / "mroz.parquet")
    question = Question(str(tmp_path / "mroz.parquet"), "lwage", stream_above=passes)
    found = analyse(question)
    assert found.streamed is (passes == 0.0)
    assert "for one more year (Years of schooling)" in found.answer.how_much.title
    mine = analyse(tmp_path / "mroz.parquet", outcome="lwage", labels={"educ": "School"})
    assert "for one more year (School)" in mine.answer.how_much.title


def test_stata_files_bring_labels_of_columns_and_levels(frame, tmp_path):
    table = frame.assign(city=frame["city"].map({0: "Country", 1: "City"}).astype("category"))
    path = tmp_path / "mroz.dta"
    table.to_stata(path, write_index=False, variable_labels={"educ": "Years of schooling"})
    found = analyse(path, outcome="lwage")
    assert "Years of schooling" in str(found.answer)
    assert "city[Country]" in found.model.fit_.labels


@pytest.mark.parametrize(
    ("options", "kind", "names"),
    [
        ({"labels": {"educc": "School"}}, UnknownFeatureError, "'educc'.*'educ'"),
        ({"labels": {"educ": 3}}, InputTypeError, "'educ'.*int"),
        ({"labels": ["educ"]}, InputTypeError, "labels.*list"),
        ({"labels": "nowhere.csv"}, InputError, "nowhere.csv"),
        ({"units": {"educc": "years"}}, UnknownFeatureError, "'educc'.*'educ'"),
        ({"units": ["educ"]}, InputError, "educ=years.*'educ'"),
    ],
)
def test_words_that_fit_no_column_are_refused(frame, options, kind, names):
    with pytest.raises(kind, match=names):
        analyse(frame, outcome="lwage", **options)


def test_columns_with_one_label_are_told_apart(frame):
    same = {"educ": "Years", "exper": "Years", "age": "kids5", "kids5": "age"}
    found = analyse(frame, outcome="lwage", labels=same)
    with labelled(found.labels):
        assert [said(name) for name in ("educ", "exper", "age", "kids5")] == [
            *("Years (educ)", "Years (exper)", "kids5", "age")
        ]


HOSTILE = {
    "educ": "<script>alert(1)</script>",
    "exper": 'a "quoted" & <b>name</b>',
    "age": "$title %{x} {0} {names}",
    "kids5": "a\x1b[2Jb \u202eabc",
    "city": "x" * 2_000_000,
    "lwage": "wage & <i>more</i>\n",
}


def test_hostile_labels_are_text(frame, tmp_path):
    units = {name: f"{label[:50]}s" for name, label in HOSTILE.items()}
    book = {
        name: ColumnWords(label, units[name], {"1": label, "0": label})
        for name, label in HOSTILE.items()
    }
    table = frame.assign(region=np.where(frame["age"] > 45, "1", "0"))
    book["region"] = ColumnWords(HOSTILE["educ"], "", {"1": HOSTILE["kids5"], "0": HOSTILE["city"]})
    found = analyse(table, outcome="lwage", labels=Codebook(book), title=HOSTILE["educ"])
    html = render(found)
    assert len(html.encode()) < 400_000
    for mark in ("<script>alert", "<b>name", "<i>"):
        assert mark not in html
    texts = [html, str(found.answer), *map(str, found.claims), *(c.title for c in found.checks)]
    assert not any(re.search("[\u202a-\u202e\x00-\x08\x0b-\x1f]", text) for text in texts)
    assert max(map(len, texts[1:])) < 20_000


@pytest.mark.parametrize(
    ("unit", "one"),
    [
        *(("years", "year"), ("US dollars", "US dollar"), ("dollars per hour", "dollar per hour")),
        *(("kg", "kg"), ("$1,000", "$1,000"), ("children", "child"), ("status", "status")),
        *(("thousands of dollars",) * 2, ("percentage points", "percentage point")),
    ],
)
def test_one_more_is_one_unit(unit, one):
    with labelled(Labels(units={"x": unit})):
        assert one_unit("x") == one
        assert one_unit("z") == ""


def test_numbers_have_units():
    with labelled(Labels(units={"x": "years", "z": "$1,000"})):
        assert with_unit("2.3", "x") == "2.3 years"
        assert with_unit("2.3", "z") == "2.3 × $1,000"
        assert with_unit("2.3", "y") == "2.3"
