"""Workbooks of several sheets: which one is read is said, and can be asked for."""

import pandas as pd
import pytest

from heckmanfa import tables
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.tables import read_table
from heckmanfa.text.option_words import told

DATA = pd.DataFrame({"age": [30, 40], "wage": [1.5, None]})
NOTES = pd.DataFrame({"Notes": ["collected in 2020", "by hand"]})


@pytest.fixture
def book(tmp_path):
    def write(**sheets):
        with pd.ExcelWriter(tmp_path / "t.xlsx") as writer:
            for name, frame in sheets.items():
                frame.to_excel(writer, sheet_name=name, index=False)
        return tmp_path / "t.xlsx"

    return write


def test_a_sheet_is_read_by_its_name_or_its_number(book):
    path = book(Notes=NOTES, Data=DATA)
    for sheet in ("Data", "2"):
        assert list(read_table(path, sheet=sheet)) == ["age", "wage"]
        assert tables.open_table(path, sheet=sheet).notes == ()
    assert list(read_table(path, sheet="1")) == ["Notes"]
    with pytest.raises(UnknownFeatureError, match=r"no sheet 'Daten'; it has 'Notes' and 'Data'"):
        read_table(path, sheet="Daten")
    with pytest.raises(InputError, match="no sheet '3'"):
        read_table(path, sheet="3")


def test_which_of_several_sheets_was_read_is_said(book):
    table = tables.open_table(book(Data=DATA, Notes=NOTES, More=NOTES))
    assert list(table.frame) == ["age", "wage"]
    assert tuple(map(told, table.notes)) == (
        "The sheet 'Data' was read; t.xlsx has 'Notes' and 'More' as well (see sheet=...).",
    )


def test_empty_sheets_do_not_count(book):
    empty = pd.DataFrame()
    table = tables.open_table(book(Empty=empty, Data=DATA, Last=empty))
    assert list(table.frame) == ["age", "wage"]
    assert (table.notes, table.hint) == ((), "")
    with pytest.raises(InputError, match="there is nothing in its sheet 'Last'"):
        read_table(book(Data=DATA, Last=empty), sheet="Last")


def test_a_sheet_that_is_no_table_names_the_others(book):
    title = pd.DataFrame([["Wages", None, None], ["a", "b", "c"]])
    with pytest.raises(InputError, match=r"no row of names.*sheet 'Title' .*pass sheet='Data'"):
        read_table(book(Title=title, Data=DATA))
