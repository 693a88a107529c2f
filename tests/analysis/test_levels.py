"""Categories in answers: the levels that are compared, and what is said about doubtful columns."""

import numpy as np
import pandas as pd
import pytest

from heckmanfa.analysis import analyse
from heckmanfa.analysis.request import Question
from heckmanfa.data.columns.column_hints import is_code_name
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.report import write_report

N = 400


def _table():
    rng = np.random.default_rng(5)
    x, z, error = rng.normal(size=(3, N))
    education = rng.choice(["none", "school", "graduate"], N)
    observed = 0.4 + x + z + error > 0
    wage = 10 + x + 3 * (education == "graduate") + 0.5 * error + rng.normal(size=N)
    columns = {"wage": np.where(observed, wage, np.nan), "education": education, "x": x, "z": z}
    return pd.DataFrame(columns)


TABLE = _table()
# As the last row of a spreadsheet: it has an outcome, and lacks features.
TOTAL = pd.DataFrame({"wage": [TABLE["wage"].sum()], "education": ["AA Total"]})
SHEET = pd.concat([TABLE, TOTAL], ignore_index=True)


def by_key(analysis):
    return {check.key: check for check in analysis.checks}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")
    SHEET.to_csv(folder / "sheet.csv", index=False)
    SHEET.to_excel(folder / "sheet.xlsx", index=False)
    SHEET.to_parquet(folder / "sheet.parquet")
    return folder


@pytest.mark.parametrize("way", ["csv", "xlsx", "parquet", "streamed", "frame"])
def test_a_total_row_is_not_what_levels_are_compared_with(files, way):
    ending = "parquet" if way == "streamed" else way
    data = SHEET if way == "frame" else files / f"sheet.{ending}"
    options = {"stream_above": 0} if way == "streamed" else {}
    analysis = analyse(data, outcome="wage", **options)
    assert analysis.row_counts["left_out_regressor_missing"] == 1
    assert analysis.encoding.levels == {"education": ("graduate", "none", "school")}
    assert sum(analysis.encoding.level_rows["education"]) == N
    assert "rather than graduate" in str(analysis)
    expected = analyse(TABLE, outcome="wage")
    np.testing.assert_allclose(analysis.model.coef_, expected.model.coef_, rtol=1e-8)
    named = analyse(data, outcome="wage", reference={"education": "school"}, **options)
    assert named.encoding.references == {"education": "school"}
    assert "for education = graduate rather than school" in str(named)
    assert named.model.reference == {"education": "school"}
    words = "no row of the fit has the level 'AA Total' of 'education'"
    with pytest.raises(InputError, match=words):
        analyse(data, outcome="wage", reference={"education": "AA Total"}, **options)


def test_a_reference_names_a_level_of_a_category():
    for reference, error, words in (
        ("educ=school", UnknownFeatureError, "no column 'educ'. Did you mean 'education'"),
        ("education=scool", InputError, "no level 'scool'. Did you mean 'school'"),
        ("education", InputError, "a column and its level, as in region=north"),
        ("x=1", InputError, "reference names 'x', which is not a category"),
        ("same=1", InputError, "names 'same', which cannot be used: is 1 wherever"),
    ):
        with pytest.raises(error, match=words):
            analyse(TABLE.assign(same=1), outcome="wage", reference=reference)
    question = Question("wages.csv", "wage", reference={"education": "school"})
    assert question.command().endswith("--reference education=school")


@pytest.mark.parametrize("way", [{}, {"stream_above": 0}, {"search": "none"}])
def test_a_reference_that_separation_leaves_no_row_of_is_not_compared_with(tmp_path, way):
    level = np.where(np.arange(N) < 12, "High", np.where(TABLE["x"] > 0, "Low", "Mid"))
    table = TABLE.assign(level=level, wage=TABLE["wage"].mask(level == "High"))
    table = table.drop(columns="education")
    table.to_parquet(tmp_path / "rows.parquet")
    options = {"outcome": "wage", "on_separation": "drop", **way}
    analysis = analyse(tmp_path / "rows.parquet", **options)
    assert analysis.encoding.references == {"level": "Low"}
    assert (
        "12 rows were left out: their selection is determined by column 'level'"
        in (analysis.warnings[0])
    )
    assert "rather than High" not in str(analysis)
    with pytest.raises(InputError, match="not fitted with: 'High'"):
        analysis.model.predict(table[["x", "z", "level"]])
    with pytest.raises(InputError, match="leaves no row of 'High'"):
        analyse(tmp_path / "rows.parquet", reference={"level": "High"}, **options)


def test_a_reference_with_few_rows_is_named(tmp_path):
    rare = TABLE.assign(education=TABLE["education"].mask(TABLE.index < 4, "a few"))
    analysis = analyse(rare, outcome="wage")
    check = by_key(analysis)["reference_rows"]
    most = rare["education"].value_counts().index[0]
    assert check.level == "caution"
    assert check.words.startswith("4 rows of 400 have 'a few', which the other levels of 'educ")
    assert check.do.startswith(f"reference=['education={most}'] compares with a level of ")
    assert "reference_rows" not in by_key(analyse(TABLE, outcome="wage"))
    write_report(analysis, tmp_path / "page.html")
    assert "4 rows of 400 have" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_levels_that_differ_only_in_case_are_named():
    sex = np.random.default_rng(0).choice(["M", "m", "W", "w", "unknown"], N)
    check = by_key(analyse(TABLE.assign(sex=sex), outcome="wage"))["level_spellings"]
    assert check.level == "caution"
    assert "'M', 'm' and 'W', 'w' are different levels of 'sex'" in check.words
    assert "level_spellings" not in by_key(analyse(TABLE, outcome="wage"))


@pytest.mark.parametrize("way", [{}, {"stream_above": 0}])
def test_numbers_that_may_be_codes_are_named(tmp_path, way):
    rng = np.random.default_rng(1)
    table = TABLE.assign(state=rng.integers(1, 57, N), age=rng.integers(18, 65, N))
    table.to_parquet(tmp_path / "rows.parquet")
    options = {"outcome": "wage", **way}
    check = by_key(analyse(tmp_path / "rows.parquet", **options))["coded_numbers"]
    n_states = table["state"].nunique()
    assert check.words == f"'state' holds {n_states} integers from 1 to 56."
    assert check.do.startswith("If its numbers name things, pass categorical=['state'].")
    for asked in ({"numeric": ["state"]}, {"categorical": ["state"]}, {"exclude": ["state"]}):
        asked |= {"search": "none", "on_separation": "drop"}
        quiet = analyse(tmp_path / "rows.parquet", **options, **asked)
        assert "coded_numbers" not in by_key(quiet)


def test_only_names_of_codes_are_suspected():
    suspected = ["state", "Home_State", "STATE", "homeState", "state_code", "region_id", "zip"]
    suspected += ["occ2010", "industry.code", "race", "county_fips", "store no", "firm_id"]
    plain = ["educ", "age", "kids5", "exper", "year", "n_state", "years_in_state", "statement"]
    plain += ["state_income", "hours", "rating", "household_size", "log_region", "no", "id_card"]
    assert [name for name in suspected + plain if is_code_name(name)] == suspected


MARKED = TABLE.assign(education=TABLE["education"].replace({"none": "NA", "school": "-"}))


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_a_mark_may_be_a_level_where_the_user_says_what_is_one(tmp_path, ending):
    path = tmp_path / f"marks.{ending}"
    write = {"csv": MARKED.to_csv, "xlsx": MARKED.to_excel, "parquet": MARKED.to_parquet}[ending]
    write(path, index=False)
    named = analyse(path, outcome="wage", categorical=["education"], search="none")
    assert named.encoding.levels == {"education": ("-", "NA", "graduate")}
    assert named.row_counts["left_out_regressor_missing"] == 0
    rest = analyse(path, outcome="wage", na_values=["education=-"], search="none")
    assert rest.encoding.levels == {"education": ("NA", "graduate")}
    assert rest.row_counts["left_out_regressor_missing"] == (MARKED["education"] == "-").sum()
