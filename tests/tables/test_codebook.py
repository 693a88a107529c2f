"""Labels, units and levels that a reader knows columns by."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.tables.codebook import Codebook, ColumnWords, read_codebook, stored_codebook


def written(tmp_path, *lines):
    path = tmp_path / "codebook.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_codebook_has_labels_units_and_levels(tmp_path):
    book = read_codebook(
        written(
            tmp_path,
            "Column;label;unit;levels",
            "educ;Years of schooling;years;",
            'city;Lives in a city;;"0=country; 1 = city"',
        )
    )
    assert (book.label("educ"), book.unit("educ")) == ("Years of schooling", "years")
    assert (book.label("age"), book.unit("age")) == ("age", "")
    assert book.level("city", "1") == "city"
    assert book.level("city", "2") == "2"


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (("column,lable", "educ,School"), ["'lable'", "label"]),
        (("label,unit", "School,years"), ["'column'"]),
        (("column,label", "educ,a", "educ,b"), ["'educ'"]),
        (("column,levels", "city,0 country"), ["'city'", "0=country"]),
    ],
)
def test_a_codebook_that_cannot_be_read_says_what_is_wrong(tmp_path, lines, names):
    with pytest.raises(InputError) as error:
        read_codebook(written(tmp_path, *lines))
    assert all(name in str(error.value) for name in names)


def test_words_about_a_column_that_is_not_there_are_refused():
    with pytest.raises(UnknownFeatureError, match=r"'educc'.*'educ'"):
        Codebook({"educc": ColumnWords("School")}).refuse_absent(["educ", "age"], "mroz.csv")


def test_stata_files_bring_their_variable_labels(tmp_path):
    path = tmp_path / "wages.dta"
    frame = pd.DataFrame({"educ": [1.0, 2.0], "age": [3.0, 4.0]})
    frame.to_stata(path, variable_labels={"educ": "Years of schooling"}, write_index=False)
    assert stored_codebook(path).columns == {"educ": ColumnWords("Years of schooling")}


def test_parquet_files_bring_what_is_stored_beside_their_columns(tmp_path):
    path = tmp_path / "wages.parquet"
    beside = {"label": "Years of schooling", "unit": "years"}
    schema = pa.schema([pa.field("educ", pa.float64(), metadata=beside), ("age", pa.float64())])
    pq.write_table(pa.table({"educ": [1.0], "age": [2.0]}, schema=schema), path)
    assert stored_codebook(path).columns == {"educ": ColumnWords("Years of schooling", "years")}


def test_what_the_user_says_counts_more_than_what_the_file_says():
    mine = Codebook({"educ": ColumnWords("School")})
    stored = Codebook({"educ": ColumnWords("EDUC 1975", "years"), "age": ColumnWords("Age")})
    both = mine.over(stored)
    assert both.columns["educ"] == ColumnWords("School", "years")
    assert both.label("age") == "Age"
