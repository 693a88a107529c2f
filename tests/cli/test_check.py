"""`heckmanfa check`: every problem of a table at once, and the command that fits it."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from heckmanfa.analysis import analyse, check_table, load_model
from heckmanfa.cli import app
from heckmanfa.data.columns.total_rows import find_total_rows
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError

FIT = ("--search", "none", "--select-only", "nwifeinc,kids5")


@pytest.fixture
def women(mroz):
    """Mroz's table with a category; its outcome is missing where a woman does not work."""
    return mroz.assign(area=np.where(load_mroz()["city"] == 1, "city", "country"))


def titles_with_commas(table):
    return "t.csv", "Wages, hours, and children,,\nSource: survey, 1975\n" + table.to_csv(
        index=False
    )


def total_row(table):
    total = table.drop(columns="area").sum().to_dict() | {"area": "Total"}
    return "t.csv", pd.concat([table, pd.DataFrame([total])]).to_csv(index=False)


def decimal_commas(table):
    return "t.csv", table.to_csv(index=False, sep=";", decimal=",")


def codes(table):
    return "t.csv", table.fillna({"lwage": -99}).to_csv(index=False)


def mixed_case(table):
    return "t.csv", table.assign(area=spelled(table["area"])).to_csv(index=False)


def spelled(levels):
    """Every fourth level in another case, and every fifth with blanks."""
    changes = {0: str.upper, 1: str.title, 2: lambda level: f" {level} "}
    return [changes.get(row % 9, str)(level) for row, level in enumerate(levels)]


def two_sheets(table):
    with pd.ExcelWriter("t.xlsx") as book:
        about = pd.DataFrame({"column": ["lw"], "is": ["a log"], "unit": ["dollars"]})
        about.to_excel(book, sheet_name="About", index=False)
        table.to_excel(book, sheet_name="Data 1975", index=False, startrow=2)
        book.sheets["Data 1975"]["A1"], book.sheets["Data 1975"]["B1"] = "Wages", "of women"
    return "t.xlsx", None


def all_of_these(table):
    table = table.assign(area=spelled(table["area"])).fillna({"lwage": -99})
    total = table.drop(columns="area").sum().to_dict() | {"area": "Total"}
    text = pd.concat([table, pd.DataFrame([total])]).to_csv(index=False, sep=";", decimal=",")
    return "t.csv", "Wages;hours\n" + text + "Source: PSID" + ";" * (table.shape[1] - 1) + "\n"


def with_total(table):
    total = table.drop(columns="area").sum().to_dict() | {"area": "Total"}
    return pd.concat([table, pd.DataFrame([total])])


def commas_and_a_total(table):
    return "t.csv", with_total(table).to_csv(index=False, sep=";", decimal=",")


def a_titled_sheet_with_codes(table):
    with pd.ExcelWriter("t.xlsx") as book:
        table.fillna({"lwage": -99}).to_excel(book, index=False, startrow=2)
        book.sheets["Sheet1"]["A1"] = "Wages of women, 1975"
    return "t.xlsx", None


def another_sheet_with_a_total_and_codes(table):
    with pd.ExcelWriter("t.xlsx") as book:
        pd.DataFrame({"Notes": ["see the next sheet"]}).to_excel(book, sheet_name="N", index=False)
        coded = with_total(table.fillna({"lwage": -99}))
        coded.to_excel(book, sheet_name="Data", index=False, startrow=3)
        book.sheets["Data"]["A1"] = "Wages, in dollars"
    return "t.xlsx", None


def words_for_missing(table):
    words = table.astype({"lwage": object}).fillna({"lwage": "not working"})
    return "t.csv", words.to_csv(index=False, sep="\t")


MESSES = {
    commas_and_a_total: {"total_rows"},
    a_titled_sheet_with_codes: {"missing_codes"},
    another_sheet_with_a_total_and_codes: {"sheet", "total_rows", "missing_codes"},
    words_for_missing: {"missing_codes"},
    titles_with_commas: {"titles"},
    total_row: {"total_rows"},
    decimal_commas: set(),
    codes: {"missing_codes"},
    mixed_case: {"mixed_case"},
    two_sheets: {"sheet", "titles"},
    all_of_these: {"titles", "total_rows", "notes_below", "missing_codes", "mixed_case"},
}


def write(made):
    name, text = made
    if text is not None:
        Path(name).write_text(text, encoding="utf-8")
    return name


def estimates(shell, *options):
    found, _ = shell.results(*options)
    return {(row["equation"], row["term"]): row["estimate"] for row in found["estimates"]}


@pytest.mark.parametrize("mess", MESSES)
def test_a_messy_table_takes_two_commands_to_the_answer_of_the_clean_one(shell, women, mess):
    women.to_csv("clean.csv", index=False)
    clean = estimates(shell, "clean.csv", "--outcome", "lwage", *FIT)
    name = write(mess(women))
    text = shell.runs("check", name, "--outcome", "lwage", *FIT, "--json", "check.json")
    check = shell.json("check.json")
    assert {finding["key"] for finding in check["findings"]} == MESSES[mess]
    assert check["rows"] == len(women)
    assert not check["blocked"]
    assert " ".join(check["command"].split()) in text
    program, *command = shlex.split(check["command"])
    assert (program, command[0]) == ("heckmanfa", "fit")
    assert estimates(shell, *command[1:]) == pytest.approx(clean, rel=1e-9)


@pytest.mark.parametrize("mess", [mess for mess, keys in MESSES.items() if keys - {"mixed_case"}])
def test_a_fit_that_is_refused_names_every_problem_and_the_same_command(shell, women, mess):
    name = write(mess(women))
    asked = (name, "--outcome", "lwage", *FIT)
    shell.runs("check", *asked, "--json", "check.json")
    check = shell.json("check.json")
    lines = CliRunner().invoke(app, ["fit", *asked]).stderr.splitlines()
    assert f"run: {check['command']}" == lines[-1]
    said = " ".join(lines[:-1])
    for finding in check["findings"]:
        words = finding["do"].rstrip(".").split()
        option = " ".join(words[next(i for i, word in enumerate(words) if word[:2] == "--") :])
        assert finding["found"] in said or option in said


def test_every_kind_of_problem_is_found_in_one_run(shell, women):
    rng, n = np.random.default_rng(1), len(women)
    table = women.assign(
        wage=np.exp(women["lwage"]),
        works=load_mroz()["lfp"],
        state=rng.integers(1, 9, n),
        rich=np.where(rng.random(n) < 0.6, np.nan, rng.random(n)),
        town=np.where(rng.random(n) < 0.5, "a", "b"),
        copy=women["lwage"].fillna(0.0) * 2 + 1,
        educ=women["educ"].astype(object),
    )
    table.loc[np.flatnonzero(table["lwage"].isna())[:3], "town"] = "island"
    table.loc[5:20, "educ"] = "refused"
    table.to_csv("t.csv", index=False)
    text = shell.runs("check", "t.csv", "--outcome", "lwage", "--json", "c.json")
    found = {finding["key"]: finding for finding in shell.json("c.json")["findings"]}
    assert {key: finding["columns"] for key, finding in found.items()} == {
        "missing_codes": ["educ"],
        "codes_as_amounts": ["state"],
        "outcome_copies": ["copy"],
        "selection_copies": ["works"],
        "known_if_selected": ["wage"],
        "costly_columns": ["rich"],
        "rare_levels": ["town"],
    }
    assert found["missing_codes"]["rows"] == 16
    assert found["rare_levels"]["options"] == {"min_level_rows": 10}
    # What only weakens an answer is left to the user.
    assert found["costly_columns"]["level"] == "caution"
    assert not found["costly_columns"]["options"]
    assert "5 problems and 2 cautions" in text
    shell.runs(*shlex.split(shell.json("c.json")["command"])[1:])


def test_columns_that_share_a_name_do_not_hide_other_problems(shell, women):
    text = women.fillna({"lwage": -99}).rename(columns={"age": "educ"}).to_csv(index=False)
    write(("t.csv", f"Wages, 1975\n{text}"))
    text = shell.runs("check", "t.csv", "--outcome", "lwage", "--json", "c.json")
    check = shell.json("c.json")
    keys = [finding["key"] for finding in check["findings"]]
    assert keys == ["titles", "repeated_names", "missing_codes"]
    assert "2 columns are called 'educ', with different values" in text
    assert check["blocked"]
    lines = CliRunner().invoke(app, ["fit", "t.csv", "--outcome", "lwage"]).stderr.splitlines()
    assert f"after that: {check['command']}" == lines[-1]


def test_a_table_without_problems_says_so(shell, women):
    women.to_csv("t.csv", index=False)
    assert "no problem found" in shell.runs("check", "t.csv", "--outcome", "lwage")


def test_a_misspelled_column_is_an_error_of_the_command(shell, mroz):
    for command in ("check", "fit"):
        said = shell.refuses(command, "mroz.csv", "--outcome", "lwag")
        assert "no column 'lwag'. Did you mean 'lwage'?" in said
        said = shell.refuses(command, "mroz.csv", "--outcome", "lwage", "--exclude", "aeg")
        assert "'age'" in said
    assert "no file" in shell.refuses("check", "none.csv", "--outcome", "lwage")


@pytest.mark.parametrize("command", ["check", "fit"])
def test_a_profile_that_cannot_be_is_refused_before_the_fit(shell, women, command, monkeypatch):
    women.to_csv("t.csv", index=False)
    monkeypatch.setattr("heckmanfa.fit.making.compress_sample", None)
    for profile, words in (
        ("educ=sixteen", "'educ' is a number; got 'sixteen'"),
        ("area=Mars", "'area' has no level 'Mars'"),
    ):
        options = ("t.csv", "--outcome", "lwage", "--profile", profile)
        said = (
            shell.refuses(command, *options) if command == "fit" else shell.runs(command, *options)
        )
        assert words in said


def test_a_pipe_is_checked_too(shell, women):
    text = women.fillna({"lwage": -99}).to_csv(index=False)
    result = CliRunner().invoke(app, ["check", "-", "--outcome", "lwage"], input=text)
    assert "heckmanfa fit - --outcome lwage --na-values lwage=-99" in result.output


def test_numbers_that_can_be_read_in_two_ways_get_a_mark_to_confirm(shell, mroz):
    table = mroz.assign(rent=[f"{1 + row % 9}.{100 + row % 800}" for row in range(len(mroz))])
    table["lwage"] = (table["lwage"] * 10).round()
    table.drop(columns="nwifeinc").astype({"lwage": "Int64"}).to_csv("t.csv", index=False, sep=";")
    shell.runs("check", "t.csv", "--outcome", "lwage", "--json", "c.json")
    check = shell.json("c.json")
    marks = {finding["key"]: finding["options"] for finding in check["findings"]}
    assert marks.get("decimal") == {"decimal": ","}
    shell.runs(*shlex.split(check["command"])[1:])


def test_parquet_files_are_checked_in_memory_only(shell, women):
    women.fillna({"lwage": -99}).to_parquet("t.parquet")
    text = shell.runs("check", "t.parquet", "--outcome", "lwage")
    assert "--na-values lwage=-99" in text
    said = shell.refuses("check", "t.parquet", "--outcome", "lwage", "--stream-above", 0)
    assert "check needs the rows in memory" in said


def test_python_gets_findings_options_and_the_call(women):
    table = women.fillna({"lwage": -99}).assign(area=spelled(women["area"]))
    before = table.copy()
    check = check_table(table, outcome="lwage", search="none", select_only=["kids5"])
    pd.testing.assert_frame_equal(table, before)
    assert check.findings["key"].tolist() == ["missing_codes", "mixed_case"]
    assert check.findings["columns"].tolist() == [["lwage"], ["area"]]
    assert check.options["na_values"] == ["lwage=-99"]
    assert (
        check.command
        == f"analyse(frame, {', '.join(f'{k}={v!r}' for k, v in check.options.items())})"
    )
    assert check.command in str(check)
    clean = analyse(women, outcome="lwage", search="none", select_only=["kids5"])
    np.testing.assert_allclose(
        analyse(table, **check.options).model.coef_, clean.model.coef_, rtol=1e-9
    )
    with pytest.raises(InputError) as refused:
        analyse(table, outcome="lwage")
    assert refused.value.__notes__[-1].startswith("run: analyse(frame, outcome='lwage', na_values")
    assert "ignore_case" in refused.value.__notes__[-1]
    with pytest.raises(InputTypeError, match="check_table"):
        check_table(table, "lwage")
    with pytest.raises(UnknownFeatureError, match="'lwage'"):
        check_table(table, outcome="lwages")


def test_levels_in_any_case_are_one_level_now_and_in_predictions(shell, women):
    table = women.assign(area=spelled(women["area"]))
    table.to_csv("t.csv", index=False)
    table.to_parquet("t.parquet")
    women.to_csv("clean.csv", index=False)
    options = ("--outcome", "lwage", *FIT)
    clean = estimates(shell, "clean.csv", *options)
    stream = ("--ignore-case", "--stream-above", 0)
    for asked in (("t.csv", "--ignore-case"), ("t.parquet", *stream)):
        save = ("--save", "m.heckmanfa")
        assert estimates(shell, *asked, *options, *save) == pytest.approx(clean, rel=1e-9)
        encoding = load_model("m.heckmanfa").encoding
        assert encoding.levels["area"] == ("city", "country")
        new = women.drop(columns="lwage").assign(
            area=[f"{x[0]}{x[1:].upper()}" for x in women["area"]]
        )
        pd.testing.assert_frame_equal(encoding.transform(new), encoding.transform(women))
    new.assign(area="moon").to_csv("new.csv", index=False)
    assert "'moon'" in shell.refuses("predict", "m.heckmanfa", "new.csv", "--out", "p.csv")


def test_classes_in_any_case_are_one_class(shell, women):
    high = np.where(women["lwage"] > 1.2, "High", "low").astype(object)
    mixed = np.where(np.arange(len(high)) % 3 == 0, [label.upper() for label in high], high)
    high[women["lwage"].isna()] = mixed[women["lwage"].isna()] = None
    rest = women.drop(columns="lwage")
    clean = analyse(rest.assign(high=high), outcome="high", search="none")
    check = check_table(rest.assign(high=mixed), outcome="high", search="none")
    assert check.findings["key"].tolist() == ["mixed_case"]
    mixed_model = analyse(rest.assign(high=mixed), **check.options).model
    np.testing.assert_allclose(mixed_model.coef_, clean.model.coef_, rtol=1e-9)


def test_rows_are_left_out_by_what_they_hold(shell, women):
    women.to_csv("clean.csv", index=False)
    options = ("--outcome", "lwage", *FIT)
    clean = estimates(shell, "clean.csv", *options)
    name = write(total_row(women))
    pd.read_csv(name).to_parquet("t.parquet")
    for asked in ((name, "area=total"), (name, "last"), ("t.parquet", "area=Total")):
        table, item = asked
        found = estimates(shell, table, *options, "--drop-rows", item)
        assert found == pytest.approx(clean, rel=1e-9)
    _, text = shell.results("clean.csv", *options, "--drop-rows", "area=Sum")
    assert "'area=Sum', of --drop-rows, is true of no row" in text
    for item, said in (("first", "'first'"), ("aera=x", "'area'"), ("area=", "'area='")):
        assert said in shell.refuses("fit", "clean.csv", *options, "--drop-rows", item)
    said = shell.refuses("fit", "t.parquet", *options, "--drop-rows", "last", "--stream-above", 0)
    assert "--drop-rows needs the rows in memory" in said


def test_a_total_that_a_fit_takes_as_data_is_a_problem_of_its_answer(women):
    table = women.assign(woman=[f"w{row:04d}" for row in range(len(women))])
    total = women.drop(columns="area").sum().to_dict() | {"woman": "Total", "area": "city"}
    table = pd.concat([table, pd.DataFrame([total])], ignore_index=True)
    found = analyse(table, outcome="lwage", search="none", select_only=["kids5"])
    assert {check.key: check.level for check in found.checks}["total_rows"] == "problem"
    assert any("drop_rows=['woman=Total']" in note for note in found.notes)


def test_only_rows_that_sum_or_end_a_table_are_totals():
    area = ["Total", "north", "south"] * 40
    table = pd.DataFrame({"area": area, "x": np.arange(120.0), "y": 1.0})
    assert find_total_rows(table) == ()
    # A rare level of that name inside the table is a level.
    rare = table.assign(area=["Total" if row == 60 else "north" for row in range(120)])
    assert find_total_rows(rare) == ()
    rare.loc[60, ["x", "y"]] = rare["x"].sum() - 60, 119.0
    assert [(total.item, total.rows) for total in find_total_rows(rare)] == [("area=Total", 1)]
    plain = pd.concat([table[["x", "y"]], table[["x", "y"]].sum().to_frame().T])
    assert [total.item for total in find_total_rows(plain.reset_index(drop=True))] == ["last"]
    text = table.assign(area="north").to_csv(index=False) + "Source: a survey,,\n"
    (note,) = find_total_rows(pd.read_csv(io.StringIO(text)))
    assert note.is_note
    assert note.item == "area=Source: a survey"
