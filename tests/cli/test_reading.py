"""The command line reads tables as they are written: marks, sheets, pipes."""

from __future__ import annotations

import io
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from heckmanfa.cli import app
from heckmanfa.datasets import load_mroz

BASE = ["--outcome", "lwage", "--search", "none", "--predict-with", "educ,exper"]


def german(frame):
    """A table as a spreadsheet in Germany writes it: 1.234,50 and a semicolon."""
    marks = str.maketrans({",": ".", ".": ","})

    def cell(one):
        return "" if pd.isna(one) else f"{one:,.10g}".translate(marks)

    rows = [";".join(frame.columns), *(";".join(map(cell, row)) for row in frame.to_numpy())]
    return "\n".join(rows) + "\n"


@pytest.fixture
def people(shell):
    """plain.csv and german.csv hold the same numbers, thousands among all kinds of columns."""
    mroz = load_mroz()
    frame = mroz[["lwage", "educ", "exper", "age"]].astype(float)
    frame["lwage"] = 2000 * frame["lwage"]
    frame["income"] = 1000 * mroz["nwifeinc"].round()
    frame["times"] = 1 + (np.arange(len(frame)) % 3 == 0)
    frame.to_csv("plain.csv", index=False)
    (shell.folder / "german.csv").write_text(german(frame))
    return frame


def estimates(shell, *arguments):
    said = shell.runs("fit", *arguments, "--json", "out.json", "--force")
    results = shell.json("out.json")
    return [row["estimate"] for row in results["estimates"]], results, said


def test_a_table_with_decimal_commas_gives_the_model_of_the_same_table_with_points(shell, people):
    expected, _, _ = estimates(shell, "plain.csv", *BASE, "--weights", "times")
    found, results, said = estimates(shell, "german.csv", *BASE, "--weights", "times")
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert "a comma as the decimal mark and points between thousands" in said
    assert results["reading"] == [
        "Numbers were read with a comma as the decimal mark and points between thousands (see "
        "--decimal)."
    ]


def test_a_few_rows_are_predicted_by_the_marks_of_the_fit(shell, people):
    shell.runs("fit", "german.csv", *BASE, "--save", "m.heckmanfa")
    some = people.head(3).drop(columns="lwage").assign(age=31).astype(int)
    # Nothing in these rows says what a point is.
    some.assign(income=["10.910", "9.120", "17.000"]).to_csv("few.csv", sep=";", index=False)
    some.assign(income=[10910, 9120, 17000]).to_csv("same.csv", index=False)
    shell.runs("predict", "m.heckmanfa", "few.csv", "--out", "a.csv")
    shell.runs("predict", "m.heckmanfa", "same.csv", "--out", "b.csv")
    pd.testing.assert_frame_equal(pd.read_csv("a.csv"), pd.read_csv("b.csv"))
    some.assign(income="10.910").to_parquet("text.parquet")
    said = shell.refuses("predict", "m.heckmanfa", "text.parquet", "--out", "c.csv")
    assert "column 'income' is text with points" in said
    some.assign(income="10.910").to_csv("commas.csv", index=False)
    said = shell.refuses("predict", "m.heckmanfa", "commas.csv", "--out", "c.csv")
    assert "',' is the decimal mark in the table of the fit, but delimits this one" in said
    some.assign(income=10.5).to_csv("points.csv", index=False)
    said = shell.refuses("predict", "m.heckmanfa", "points.csv", "--out", "c.csv")
    assert "column 'income' holds '10.5'" in said
    assert "as in the table of the fit; pass --decimal '.' if this one is written otherwise" in said
    shell.runs("predict", "m.heckmanfa", "points.csv", "--decimal", ".", "--out", "c.csv")


def test_a_column_in_doubt_is_refused_only_where_it_is_used(shell, people):
    table = people.assign(odd=[f"{1 + place % 9}.{place % 7}10" for place in range(len(people))])
    table[["educ", "exper"]] = table[["educ", "exper"]].astype(int)
    table = table.assign(lwage=table["lwage"].round().astype("Int64"), age=30, income=5, times=1)
    table["age"] = np.arange(len(table)) % 30
    table.to_csv("odd.csv", sep=";", index=False)
    said = shell.refuses("fit", "odd.csv", *BASE)
    assert "column 'odd' holds '1.010', and nothing in the file says" in said
    assert "--decimal '.' or --decimal ','" in said
    shell.runs("fit", "odd.csv", *BASE, "--exclude", "odd")
    shell.runs("fit", "odd.csv", *BASE, "--decimal", ".")
    for command in (["compare", "odd.csv", "--outcome", "lwage"], ["fit", "odd.csv", *BASE]):
        assert "column 'odd'" in shell.refuses(*command, "--thousands", "none")


def test_shares_in_the_prediction_where_the_fit_had_per_cent_are_refused(shell, people):
    share = people["age"].map("{:.1f}%".format)
    people.assign(age=share).to_csv("share.csv", index=False)
    said = shell.runs("fit", "share.csv", *BASE, "--save", "m.heckmanfa")
    assert "'age' is in per cent: 5% was read as 5." in said
    people.assign(age=people["age"] / 100).to_csv("plain.csv", index=False)
    said = shell.refuses("predict", "m.heckmanfa", "plain.csv", "--out", "p.csv")
    assert "column 'age' has no per cent signs, and had them in the table of the fit" in said
    assert "multiply it by 100" in said
    shell.runs("predict", "m.heckmanfa", "share.csv", "--out", "p.csv")
    # Plain numbers on the scale of the fit are the same numbers.
    people.assign(age=people["age"].round(1)).to_csv("same.csv", index=False)
    said = shell.runs("predict", "m.heckmanfa", "same.csv", "--out", "same_p.csv")
    assert (
        "'age' has no per cent signs, as it had in the table of the fit: 5 was read as 5%" in said
    )
    assert (shell.folder / "same_p.csv").read_text() == (shell.folder / "p.csv").read_text()
    people.drop(columns="educ").to_csv("less.csv", index=False)
    assert "no column 'educ'" in shell.refuses(
        "predict", "m.heckmanfa", "less.csv", "--out", "q.csv"
    )


def test_signs_in_some_cells_are_counted_and_the_first_of_the_fewer_is_named(shell, people):
    share = people["age"].map("{:.1f}%".format)
    share.iloc[[6, 9]] = ["31", "32"]
    people.assign(age=share).to_csv("mixed.csv", index=False)
    said = shell.refuses("fit", "mixed.csv", *BASE)
    n = len(people) - 2
    assert f"column 'age' holds {n} numbers with a per cent sign and 2 without" in said
    assert "the first without is in row 7 of the data" in said


def test_options_about_cells_are_refused_where_there_are_types(shell, people):
    people.to_parquet("t.parquet")
    for option in ("--decimal", "--thousands", "--sheet"):
        said = shell.refuses("fit", "t.parquet", *BASE, option, ",")
        assert f"{option} is for text and Excel files, and the data is Parquet" in said
    shell.runs("fit", "t.parquet", *BASE, "--save", "m.heckmanfa")
    for option in ("--decimal", "--thousands", "--sheet"):
        said = shell.refuses("predict", "m.heckmanfa", "t.parquet", "--out", "p.csv", option, ",")
        assert f"{option} is for text and Excel files, and the data is Parquet" in said


# Sheets. ------------------------------------------------------------------------------------------


@pytest.fixture
def book(shell, people):
    with pd.ExcelWriter("book.xlsx") as writer:
        pd.DataFrame({"Notes": ["by hand"]}).to_excel(writer, sheet_name="Notes", index=False)
        people.to_excel(writer, sheet_name="Wages 2020", index=False)


def test_a_sheet_is_asked_for_by_name_or_number(shell, book):
    expected, _, _ = estimates(shell, "plain.csv", *BASE)
    said = shell.refuses("fit", "book.xlsx", *BASE)
    assert "--outcome: the data has no column 'lwage'; it has Notes; its sheet 'Notes' was" in said
    assert "pass --sheet 'Wages 2020'" in said
    for sheet in ("Wages 2020", "2"):
        found, results, _ = estimates(shell, "book.xlsx", *BASE, "--sheet", sheet)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert results["command"].endswith("--sheet 2")
    shell.runs("fit", "plain.csv", *BASE, "--save", "m.heckmanfa")
    said = shell.refuses("predict", "m.heckmanfa", "book.xlsx", "--out", "p.csv")
    assert "pass --sheet 'Wages 2020'" in said
    shell.runs("predict", "m.heckmanfa", "book.xlsx", "--sheet", "2", "--out", "p.csv")
    said = shell.refuses("compare", "book.xlsx", "--outcome", "lwage")
    assert "pass --sheet" in said


# Pipes. -------------------------------------------------------------------------------------------


def piped(content, *arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], input=content)


def test_a_table_comes_from_standard_input(shell, people):
    content = (shell.folder / "german.csv").read_bytes()
    done = piped(content, "fit", "-", *BASE, "--save", "m.heckmanfa", "--report", "r.html")
    assert done.exit_code == 0, done.output
    assert "standard input: 753 rows read and used, 428 with" in " ".join(done.output.split())
    assert "standard input" in (shell.folder / "r.html").read_text()
    done = piped(content, "predict", "m.heckmanfa", "-", "--out", "p.csv")
    assert done.exit_code == 0, done.output
    assert len(pd.read_csv("p.csv")) == len(people)
    done = piped(b"", "fit", "-", *BASE)
    assert done.exit_code == 2
    assert "error: standard input is empty" in done.output


def test_what_is_no_file_ends_at_once(shell, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert "/dev/null is a device, not a file" in shell.refuses("fit", "/dev/null", *BASE)
    monkeypatch.setattr(sys, "stdin", Terminal())
    from heckmanfa.errors import InputError
    from heckmanfa.tables import read_table

    with pytest.raises(InputError, match="standard input is a terminal"):
        read_table("-")
