"""People: what a model expects of typical rows, and of rows that a user describes."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanAverage, HeckmanProbit
from heckmanfa.analysis import Question, analyse, checking
from heckmanfa.analysis.profiles import profile_texts, read_profiles
from heckmanfa.analysis.request import question_of
from heckmanfa.cli.answer_json import as_json
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.inference.typical_rows import SomeRows
from heckmanfa.report import render
from heckmanfa.results.naming import Naming

COLUMNS = ["educ", "exper", "expersq", "age", "kids5", "nwifeinc"]
GIVEN = {"search": "none", "select_only": ["kids5", "nwifeinc", "age"]}
pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


@pytest.fixture(scope="module", autouse=True)
def no_samples():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "resample", lambda *_: "Samples of the rows are left out here")
        yield


@pytest.fixture(scope="module")
def table():
    mroz = load_mroz()
    place = np.where(mroz["unem"] > 9, "north", np.where(mroz["city"] > 0, "south", "east"))
    return mroz[["lwage", *COLUMNS]].assign(region=place)


def numbers(frame, person, quantity):
    """The estimate and its interval."""
    row = frame[(frame["person"] == person) & (frame["quantity"] == quantity)].iloc[0]
    return row[["estimate", "ci_low", "ci_high"]].to_numpy(dtype=float)


def row_at(analysis, table, **changes):
    """The row that a profile describes, from the table itself."""
    people = analysis.pictures()._rows
    naming = analysis.evidence.naming
    fit = analysis.model.fit_
    used = sorted({*fit.equation, *(int(column) for column in fit.probit.features)})
    some = SomeRows.read(people._read[0], naming, used, whole=False)
    place = some.medoid(some.known)
    return table.drop(columns="lwage").iloc[[place]].assign(**changes)


KINDS = {"anyone": "marginal", "selected": "selected", "unselected": "unselected"}


@pytest.mark.parametrize(
    "options",
    [
        {**GIVEN},
        {**GIVEN, "method": "ml"},
        {},
        {"search": "best-subset", "features": ["educ", "exper", "age", "kids5", "region"]},
        {"honest": True, "features": ["educ", "age", "kids5", "region"]},
    ],
    ids=["two-step", "ml", "average", "search", "honest"],
)
def test_a_profile_has_the_predictions_of_the_model(table, options):
    profile = {"educ": 16, "kids5": 2, "region": "south"}
    analysis = analyse(table, outcome="lwage", profile=profile, **options)
    row = row_at(analysis, table, **profile)
    row = row[[*options.get("features", row.columns)]]
    model, found = analysis.model, analysis.people
    for quantity, kind in KINDS.items():
        value, ends = model.predict(row, kind=kind, return_interval="confidence")
        expected = [value[0], *ends[0]]
        np.testing.assert_allclose(numbers(found, "profile", quantity), expected, rtol=1e-12)
    value, ends = model.predict_selection(row, return_interval="confidence")
    np.testing.assert_allclose(
        numbers(found, "profile", "selection"), [value[0], *ends[0]], rtol=1e-12
    )


def test_the_expected_outcome_is_the_sum_of_coefficients_times_values(table):
    analysis = analyse(table, outcome="lwage", profile="educ=16,exper=10", **GIVEN)
    tidy = analysis.model.tidy().query("equation == 'prediction'").set_index("term")["estimate"]
    row = row_at(analysis, table)
    row = row.assign(educ=16, exper=10)
    expected = tidy["Intercept"] + 16 * tidy["educ"] + 10 * tidy["exper"]
    # The square of a column that is named moves with it.
    expected += 100 * tidy["expersq"]
    expected += tidy.get(f"region[{row['region'].iloc[0]}]", 0.0)
    assert numbers(analysis.people, "profile", "anyone")[0] == pytest.approx(expected, rel=1e-12)


def test_an_amount_is_expected_on_its_own_scale(table):
    wages = table.assign(wage=np.exp(table["lwage"])).drop(columns="lwage")
    options = {"outcome": "wage", "outcome_transform": "log", "profile": "educ=12", **GIVEN}
    analysis = analyse(wages, **options)
    row = row_at(analysis, wages.assign(lwage=0), educ=12).drop(columns="wage")
    value, ends = analysis.model.predict(row, kind="unselected", return_interval="confidence")
    found = numbers(analysis.people, "profile", "unselected")
    np.testing.assert_allclose(found, [value[0], *ends[0]], rtol=1e-12)
    assert "not of its logarithm" in analysis.pictures().people.text().caption


@pytest.mark.parametrize("method", ["ml", "two-step"])
def test_a_column_of_logarithms_is_expected_as_an_amount_if_sigma_has_an_error(table, method):
    options = {"outcome": "lwage", "log_outcome": True, "profile": "educ=12", "method": method}
    analysis = analyse(table, **options, **GIVEN)
    found, people = numbers(analysis.people, "profile", "selected"), analysis.pictures().people
    row = row_at(analysis, table, educ=12)
    if method == "two-step":
        value, ends = analysis.model.predict(row, kind="selected", return_interval="confidence")
        assert "lwage is a logarithm" in people.text().caption
    else:
        wages = table.assign(wage=np.exp(table["lwage"])).drop(columns="lwage")
        asked = {"outcome": "wage", "outcome_transform": "log", "method": method}
        model = analyse(wages, **asked, **GIVEN).model
        value, ends = model.predict(row, kind="selected", return_interval="confidence")
        assert people.target == "wage"
    np.testing.assert_allclose(found, [value[0], *ends[0]], rtol=1e-9)


def test_of_rows_at_one_distance_the_first_in_order_of_features_is_the_medoid():
    # All four corners of a square are as far from its middle.
    corners = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    for order in ([0, 1, 2, 3], [2, 3, 1, 0], [1, 0, 3, 2]):
        rows = corners[order]
        everyone = np.ones(4, dtype=bool)
        some = SomeRows(rows, everyone, np.ones(4), rows)
        assert rows[some.medoid(everyone)].tolist() == [0.0, 0.0]


def test_a_class_has_its_probability(table):
    above = np.where(table["lwage"] > 1.2, "high", "low")
    classes = table.assign(paid=pd.Series(above).where(table["lwage"].notna())).drop(
        columns=["lwage", "region", "expersq"]
    )
    options = {"search": "none", "select_only": ["kids5"], "profile": "educ=12"}
    analysis = analyse(classes, outcome="paid", **options)
    row = row_at(analysis, classes.assign(lwage=0), educ=12).drop(columns="paid")
    positive = list(analysis.model.classes_).index(analysis.target.classes[1])
    for quantity, kind in KINDS.items():
        value, ends = analysis.model.predict_proba(row, kind=kind, return_interval="confidence")
        expected = [value[0, positive], *ends[0]]
        np.testing.assert_allclose(
            numbers(analysis.people, "profile", quantity), expected, rtol=1e-12
        )
    assert "%" in analysis.pictures().people.sentence(analysis.pictures().people.people[0])


def typical(table, **options):
    analysis = analyse(table, outcome="lwage", **GIVEN, **options)
    people = analysis.pictures().people
    return [(person.name, person.features) for person in people.people], analysis


def test_typical_rows_are_rows_of_their_group(table):
    people, analysis = typical(table)
    assert [name for name, _ in people] == [
        *("with lwage, lower half", "with lwage, higher half"),
        *("without lwage, lower half", "without lwage, higher half"),
    ]
    for name, features in people:
        group = table[table["lwage"].notna() == name.startswith("with lwage")]
        values = {column: value for column, value in features if column in ("educ", "exper", "age")}
        assert values
        there = group[[*values]].astype(int).astype(str)
        assert (there == pd.Series(values)).all(axis=1).any(), name
    found = analysis.people
    lower, higher = (
        numbers(found, f"with lwage, {half} half", "anyone")[0] for half in ("lower", "higher")
    )
    assert lower < higher
    assert len({features for _, features in people}) == 4


def test_typical_rows_depend_neither_on_order_nor_on_units(table):
    people, analysis = typical(table)
    shuffled, other = typical(table.sample(frac=1.0, random_state=3).reset_index(drop=True))
    assert shuffled == people
    np.testing.assert_allclose(other.people["estimate"], analysis.people["estimate"], rtol=1e-8)
    months = table.assign(nwifeinc=1000 * table["nwifeinc"], age=12 * table["age"])
    scaled, other = typical(months)
    for (_, ours), (_, theirs) in zip(people, scaled, strict=True):
        ours, theirs = dict(ours), dict(theirs)
        assert [ours[name] for name in ("educ", "kids5")] == [
            theirs[name] for name in ("educ", "kids5")
        ]
        assert 12 * int(ours["age"]) == int(theirs["age"].replace(",", ""))
    np.testing.assert_allclose(other.people["estimate"], analysis.people["estimate"], rtol=1e-6)


def test_typical_rows_do_not_depend_on_the_reference_level(table):
    people, _ = typical(table)
    for level in ("north", "south"):
        assert typical(table, reference={"region": level})[0] == people


def test_a_medoid_has_the_smallest_sum_of_squared_distances(table):
    model = Heckman(["educ", "exper"]).fit(table[COLUMNS], table["lwage"])
    fit = model.fit_
    rows = model.pictures(table[COLUMNS], table["lwage"])._rows
    some = SomeRows.read(rows._read[0], Naming.of(fit), range(len(COLUMNS)), whole=False)
    group = some.selected
    points = some.points[group]
    apart = ((points[:, None] - points[None]) ** 2).sum(axis=(1, 2))
    place = np.flatnonzero(group)[np.argmin(apart)]
    np.testing.assert_array_equal(some.features[some.medoid(group)], some.features[place])


def test_only_features_that_matter_are_shown_and_few_of_them():
    source = np.random.default_rng(0)
    X = pd.DataFrame(source.normal(size=(600, 12)), columns=[f"x{place}" for place in range(12)])
    X["person"] = [f"p{row:03d}" for row in range(600)]
    errors = source.normal(size=(600, 2))
    y = 1 + X["x0"] + errors[:, 1]
    X["y"] = y.where(X["x1"] + errors[:, 0] > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        people = analyse(X, outcome="y").pictures().people
    for person in people.people:
        names = [name for name, _ in person.features]
        assert names[:2] == ["x0", "x1"]
        assert len(names) <= 6
        assert "person" not in names
        assert all(len(value.lstrip("\u2212").replace(".", "").lstrip("0")) <= 3
                   for _, value in person.features)  # fmt: skip


@pytest.mark.parametrize(
    ("profile", "error", "words"),
    [
        ("edc=16", UnknownFeatureError, "'educ'"),
        ("educ", InputError, "educ=16,kids5=2"),
        ("educ=", InputError, "'educ='"),
        ("educ=x", InputError, "'educ' is a number; got 'x'"),
        ("educ=inf", InputError, "'educ' is a number"),
        ("region=nort", InputError, "'north'"),
        ("educ=1,educ=2", InputError, "twice"),
        ("", InputError, "empty"),
        ({}, InputError, "empty"),
        ("city=1", UnknownFeatureError, "'city'"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused(table, profile, error, words):
    with pytest.raises(error, match=words):
        analyse(table, outcome="lwage", profile=profile, **GIVEN)


def test_a_value_beyond_the_rows_of_the_fit_is_said_to_be(table):
    analysis = analyse(table, outcome="lwage", profile="educ=40", **GIVEN)
    person = analysis.pictures().people.people[0]
    assert person.beyond == (
        "educ 40 is beyond the rows of the fit (5 to 17), so this is extrapolated.",
    )
    assert person.beyond[0] in render(analysis)
    inside = analyse(table, outcome="lwage", profile="educ=17", **GIVEN)
    assert not inside.pictures().people.people[0].beyond


def test_profiles_are_read_as_they_are_written():
    columns = ["a", "b, c", "d=e"]
    texts = profile_texts([{"a": 1, "b, c": "x, y"}, {"d=e": 2.5}])
    assert read_profiles(texts, columns) == [{"a": "1", "b, c": "x, y"}, {"d=e": "2.5"}]
    asked = Question("t.csv", "y", profile=["a=1,d=e=2"])
    assert "--profile a=1,d=e=2" in asked.command()
    assert question_of({"data": "t", "outcome": "y", "profile": ["a=1,b=2"]}).profile == (
        "a=1,b=2",
    )


def test_json_page_and_frame_have_the_same_people(table):
    analysis = analyse(table, outcome="lwage", profile=["educ=16", "educ=8"], **GIVEN)
    found = json.loads(json.dumps(as_json(analysis)["people"]))
    assert found == analysis.people.to_dict("records")
    assert {one["person"] for one in found} == {"profile 1", "profile 2"}
    page, people = render(analysis), analysis.pictures().people
    # Words of the glossary are marked in the page.
    text = re.sub(r"<[^>]+>", "", page)
    for person in people.people:
        assert people.sentence(person) in text
    assert "What is not named is as in the typical row of all rows." in page


def test_streamed_rows_have_profiles_at_averages_and_no_typical_rows(table, tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
    path = tmp_path / "rows.parquet"
    few = table[["lwage", "educ", "exper", "age", "kids5"]]
    few.to_parquet(path)
    asked = {"outcome": "lwage", "search": "none", "select_only": ["kids5", "age"]}
    bare = analyse(str(path), stream_above=0.0, **asked)
    assert bare.people.empty
    page = render(bare)
    section = page[page.index('<section id="people"') :]
    assert "needs all rows in memory" in section[: section.index("</section>")]
    analysis = analyse(str(path), stream_above=0.0, profile="educ=16", **asked)
    row = few.drop(columns="lwage").mean().to_frame().T.assign(educ=16.0)
    value, ends = analysis.model.predict(row, return_interval="confidence")
    found = numbers(analysis.people, "profile", "anyone")
    np.testing.assert_allclose(found, [value[0], *ends[0]], rtol=1e-9)


def test_a_fitted_model_reports_profiles_of_its_columns(table, tmp_path):
    path = tmp_path / "report.html"
    model = HeckmanAverage().fit(table[COLUMNS], table["lwage"])
    rows = table[COLUMNS], table["lwage"]
    model.report(path, *rows, profiles=[{"educ": 16}])
    assert "educ = 16" in path.read_text(encoding="utf-8")
    model.report(path, *rows, force=True)
    assert "With lwage, lower half" in path.read_text(encoding="utf-8")
    with pytest.raises(UnknownFeatureError, match="'educ'"):
        model.report(path, *rows, profiles=[{"educc": 16}], force=True)
    with pytest.raises(InputError, match="empty"):
        model.report(path, *rows, profiles=[{}], force=True)
    with pytest.raises(InputError, match="needs the rows of the fit"):
        model.report(path, profiles=[{"educ": 16}], force=True)
    model.report(path, force=True)


def test_variables_of_formulas_are_described_not_their_terms(table):
    frame = table.dropna(subset=["educ"])
    texts = "lwage ~ educ + exper + I(exper ** 2)", "educ + exper + I(exper ** 2) + age + region"
    model = Heckman.from_formula(*texts, frame)
    pictures = model.pictures(frame)
    pictures._described = [{"exper": 10, "region": "south"}]
    person = pictures.people.people[0]
    tidy = model.tidy().query("equation == 'prediction'").set_index("term")["estimate"]
    base = pictures._rows
    some = SomeRows.read(base._read[0], Naming.of(model.fit_), range(6), whole=True)
    educ = some.features[some.medoid(some.known)][list(model.fit_.labels).index("educ")]
    expected = tidy["Intercept"] + educ * tidy["educ"] + 10 * tidy["exper"]
    expected += 100 * tidy["I(exper ** 2)"]
    assert person.expected["anyone"].value == pytest.approx(expected, rel=1e-12)


def test_a_probit_without_missing_outcomes_has_one_expectation(table):
    known = table.dropna(subset=["lwage"])
    model = HeckmanProbit().fit(known[COLUMNS], (known["lwage"] > 1.2).astype(int))
    people = model.pictures(known[COLUMNS], (known["lwage"] > 1.2).astype(int)).people
    assert [person.half for person in people.people] == ["lower half", "higher half"]
    assert {*people.people[0].expected} == {"anyone"}
