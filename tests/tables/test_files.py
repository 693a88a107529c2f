"""Tables come back the same from every format, and what cannot be read is named."""

import gzip
import hashlib
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from heckmanfa.data.files.outputs import replacing, sha256_of
from heckmanfa.errors import (
    DataError,
    HeckmanfaError,
    InputError,
    MissingExtraError,
    UnknownFeatureError,
)
from heckmanfa.tables import read_table, write_table


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    wage = rng.normal(10, 3, 60)
    wage[::4] = np.nan
    return pd.DataFrame(
        {
            "age": rng.integers(18, 60, 60),
            "wage": wage,
            "region": rng.choice(["north", "sør", "x, y"], 60),
            "union": rng.random(60) < 0.5,
        }
    )


def compared(found, expected):
    pd.testing.assert_frame_equal(
        found.astype({"region": object}),
        expected.astype({"region": object}),
        check_dtype=False,
        rtol=1e-14,
        atol=0,
    )


def refusal(path, kind=HeckmanfaError, **options):
    with pytest.raises(kind) as caught:
        read_table(path, **options)
    said = str(caught.value)
    assert "\n" not in said
    return said.replace(f"{path.parent}/", "")


def stored(frame, path):
    """Write a frame in the format of a name."""
    if path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    elif path.suffix == ".dta":
        frame.to_stata(path, write_index=False, version=118)
    elif path.suffix == ".arrow":
        pl.from_pandas(frame).write_ipc_stream(path)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    else:
        write_table(frame, path)
    return path


def text(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# Formats. -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.CSV", "t.txt", "t.csv.gz"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimited_files_come_back(frame, tmp_path, name, delimiter):
    frame.to_csv(tmp_path / name, index=False, sep=delimiter)
    compared(read_table(tmp_path / name), frame)


@pytest.mark.parametrize("ending", ["parquet", "feather", "xlsx"])
def test_other_files_come_back(frame, tmp_path, ending):
    path = stored(frame, tmp_path / f"t.{ending}")
    compared(read_table(path), frame)
    compared(read_table(str(path), ["region", "age"]), frame[["region", "age"]])


def test_stata_files_come_back(frame, tmp_path):
    labelled = frame.assign(kind=pd.Categorical(frame["region"]))
    found = read_table(stored(labelled, tmp_path / "t.dta"))
    assert found["kind"].astype(str).tolist() == frame["region"].tolist()
    compared(found.drop(columns="kind"), frame)


@pytest.mark.parametrize("write", ["write_ipc", "write_ipc_stream"])
def test_both_of_arrows_formats_come_back(frame, tmp_path, write):
    getattr(pl.from_pandas(frame), write)(tmp_path / "t.arrow")
    compared(read_table(tmp_path / "t.arrow"), frame)


def test_row_labels_with_a_name_are_a_column_and_others_are_not(frame, tmp_path):
    frame.set_index("region").to_parquet(tmp_path / "t.parquet")
    compared(read_table(tmp_path / "t.parquet")[list(frame)], frame)
    frame.iloc[::2].to_parquet(tmp_path / "u.parquet")
    compared(read_table(tmp_path / "u.parquet"), frame.iloc[::2].reset_index(drop=True))


def test_columns_come_in_the_order_asked_for(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert list(read_table(tmp_path / "t.csv", ["wage", "age"])) == ["wage", "age"]


# How text is written. -----------------------------------------------------------------------------


def test_decimal_commas_beside_semicolons(tmp_path):
    found = read_table(text(tmp_path, "Lohn, netto;n;t\n1,5;3;a, b\n-0,25;4;1,x\n"))
    assert found["Lohn, netto"].tolist() == [1.5, -0.25]
    assert found["n"].tolist() == [3, 4]
    assert found["t"].tolist() == ["a, b", "1,x"]
    assert read_table(text(tmp_path, "a;b\n1.5;2\n"))["a"].tolist() == [1.5]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
def test_encodings(tmp_path, encoding):
    found = read_table(text(tmp_path, "größe,ort\n1,Århus\n".encode(encoding)))
    assert found.to_dict("list") == {"größe": [1], "ort": ["Århus"]}


def test_a_byte_that_is_no_utf8_far_down(tmp_path):
    body = b"a,b\n" + b"1,abcdefgh\n" * 50_000 + "2,é\n".encode("latin-1")
    found = read_table(text(tmp_path, body))
    assert len(found) == 50_001
    assert found["b"].iloc[-1] == "é"


def test_quotes_blanks_and_line_ends(tmp_path):
    path = text(tmp_path, 'a, b ,"c\n d"\r\n1, 2,"x\ny, ""z"""\r\n\r\n3,4,w\r\n')
    found = read_table(path)
    assert list(found) == ["a", "b", "c d"]
    assert found["a"].tolist() == [1, 3]
    assert found["b"].tolist() == [2, 4]
    assert found["c d"].tolist()[1] == "w"


def test_missing_marks_leave_numbers_numbers(tmp_path):
    marks = ["", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", ".", "-", "?", "#N/A"]
    path = text(tmp_path, "a,b\n" + "".join(f"{mark},1\n" for mark in [*marks, "2.5"]))
    found = read_table(path)["a"]
    assert found.dtype == np.float64
    assert found.isna().sum() == len(marks)
    assert read_table(text(tmp_path, "a,b\nNone,1\nx,2\n"))["a"].tolist() == ["None", "x"]


def test_what_spreadsheets_leave_behind(tmp_path):
    # Blank rows and columns, a delimiter at each line's end, and a line for the spreadsheet.
    for content in (
        "a,b,,\n1,2,,\n,,,\n3,4,,\n,,,\n",
        "a,b\n1,2,\n3,4,\n",
        "sep=;\na;b\n1;2\n3;4\n",
        "a,b\n1,2\n3,4",
    ):
        found = read_table(text(tmp_path, content))
        assert found.to_numpy().tolist() == [[1, 2], [3, 4]], content
        assert list(found) == ["a", "b"]
    assert len(read_table(text(tmp_path, "a,b\n1,2\n,\n3,4\n"), ["b"])) == 3
    assert list(read_table(text(tmp_path, ",b\n0,2\n1,4\n"))) == ["Unnamed: 0", "b"]


def test_excel_leaves_blank_rows_and_columns_too(tmp_path):
    cells = pd.DataFrame(
        [
            [None, None, None, None],
            ["age\n(years)", None, "region", "paid"],
            [30, None, "a", True],
            [None, None, None, None],
            ["NA", None, "b", False],
        ]
    )
    cells.to_excel(tmp_path / "t.xlsx", index=False, header=False)
    found = read_table(tmp_path / "t.xlsx")
    assert list(found) == ["age (years)", "region", "paid"]
    assert found["age (years)"].iloc[0] == 30
    assert np.isnan(found["age (years)"].iloc[1])
    assert found["age (years)"].dtype == np.float64
    assert found["paid"].dtype == bool


# Refusals. ----------------------------------------------------------------------------------------


def test_no_such_file(tmp_path):
    text(tmp_path, "a\n1\n", "wages.csv")
    assert (
        refusal(tmp_path / "wage.csv", InputError)
        == "there is no file wage.csv. Did you mean 'wages.csv'?"
    )
    # A name that ends otherwise, or has little in common, is no suggestion.
    text(tmp_path, "", "a.json")
    text(tmp_path, "", "R.heckmanfa")
    assert refusal(tmp_path / "mask.heckmanfa", InputError) == "there is no file mask.heckmanfa"
    assert refusal(tmp_path / "idx.heckmanfa", InputError) == "there is no file idx.heckmanfa"
    assert "there is no folder" in refusal(tmp_path / "b" / "wages.csv", InputError)
    assert "is a folder; name a file in it" in refusal(tmp_path, InputError)


@pytest.mark.parametrize("name", ["a.json", "a", "a.gz", "a.tar.gz"])
def test_unknown_endings(tmp_path, name):
    said = refusal(text(tmp_path, "a\n1\n", name), InputError)
    assert said.endswith(
        "known are .csv, .tsv, .txt, .csv.gz, .tsv.gz, .txt.gz, .parquet, .feather, .arrow, .dta, "
        ".xlsx, .xls"
    )


@pytest.mark.parametrize("ending", ["csv", "txt", "csv.gz", "parquet", "arrow", "dta", "xlsx"])
def test_empty_files(tmp_path, ending):
    name = f"a.{ending}"
    assert refusal(text(tmp_path, "", name), InputError) == f"{name} is empty"


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        ("\n \n", InputError, "a.csv is empty"),
        ("a,b\n", InputError, "a.csv has names of columns but no rows"),
        ("a,b\n,\n", InputError, "no rows"),
        (b"a,b\n1,\0\n", DataError, "a.csv is not a text file"),
        (b"PK\x03\x04", DataError, "a.csv is not a text file"),
        ("a,b,c\n1,2,3\n4,5", DataError, "its last line has 2 of 3 fields"),
        ('a,b\n1,"2\n3,4\n', DataError, "a quote is opened and never closed"),
        ("a,b\n1,2\n3,4,5\n", DataError, "line 3 has 3 fields, but there are 2 columns"),
        ("a,b\n1,2,3\n3,4,5\n", InputError, "names 2 columns, and the rows have 3 fields"),
        ("Wages\na,b\n1,2\n", InputError, "names 1 column, 'Wages', and the rows have 2"),
        ("1,2.5,3,4\n1,2,3,4\n", InputError, "columns would be called '1', '2.5', '3'"),
        ("a,b, a,b\n1,2,3,4\n", InputError, "1 and 3 are called 'a'; columns 2 and 4 are"),
        ("a\tb\n1,500\t2\n", InputError, "'1,500', and nothing in the file"),
    ],
)
def test_text_that_is_no_table(tmp_path, content, kind, said):
    assert said in refusal(text(tmp_path, content), kind)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([], "there is nothing in its sheet"),
        ([[0.5, 1, 2], [1, 2, 3]], "no row of names"),
        ([["Wages", None, None], ["a", "b", None], [1, 2, 3]], "names 1 of 3 columns"),
        ([["a", "a"], [1, 2]], "columns 1 and 2 are called 'a'"),
    ],
)
def test_sheets_that_are_no_table(tmp_path, cells, said):
    pd.DataFrame(cells).to_excel(tmp_path / "a.xlsx", index=False, header=False)
    assert said in refusal(tmp_path / "a.xlsx", InputError)


def test_a_file_of_names_without_rows_is_refused(tmp_path):
    path = stored(pd.DataFrame({"a": []}), tmp_path / "a.parquet")
    assert "no rows" in refusal(path, InputError)


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrow", "dta", "xlsx", "csv.gz"])
def test_damaged_files(frame, tmp_path, ending):
    path = stored(frame, tmp_path / f"a.{ending}")
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"age,wage\n1,2\n"):
        path.write_bytes(content)
        said = refusal(path, DataError)
        assert said.startswith(path.name)
        assert "damaged" in said


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_columns_that_are_not_there(frame, tmp_path, ending):
    path = stored(frame, tmp_path / f"a.{ending}")
    said = refusal(path, UnknownFeatureError, columns=["age", "regio"])
    assert said == f"{path.name} has no column 'regio'. Did you mean 'region'?"
    said = refusal(path, UnknownFeatureError, columns=["q", "wage", "r"])
    assert said == f"{path.name} has no columns 'q', 'r'"


def test_one_column_hints_at_the_delimiter(tmp_path):
    said = refusal(text(tmp_path, "age wage\n1 2\n"), columns=["age"])
    assert "its only column is 'age wage': are columns separated by" in said


@pytest.mark.parametrize(
    ("ending", "module", "way_out"),
    [
        ("xlsx", "openpyxl", "pip install 'heckmanfa[excel]'"),
        ("xls", "xlrd", "save the sheet as .xlsx, or pip install xlrd"),
        ("parquet", "pyarrow", "pip install 'heckmanfa[parquet]'"),
        ("feather", "pyarrow", "pip install 'heckmanfa[parquet]'"),
    ],
)
def test_extras_that_are_not_installed(tmp_path, monkeypatch, ending, module, way_out):
    path = text(tmp_path, "a", f"a.{ending}")
    monkeypatch.setitem(sys.modules, module, None)
    assert refusal(path, MissingExtraError) == (
        f".{ending} files need {module}, which is not installed: {way_out}"
    )


# Writing. -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_are_written_whole(frame, tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    with replacing(path, False) as part:
        assert part.suffix == path.suffix
        assert part.stat().st_dev == tmp_path.stat().st_dev
        write_table(frame, part)
        assert not path.exists()
    compared(read_table(path), frame)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_other_endings_are_not_written(frame, tmp_path):
    with pytest.raises(InputError, match=r"must end in \.csv or \.parquet"):
        write_table(frame, tmp_path / "a.xlsx")


def test_the_digest_of_a_file(tmp_path):
    content = b"x" * 3_000_000
    (tmp_path / "a").write_bytes(content)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(content).hexdigest()
    assert sha256_of(*[tmp_path / "a"] * 2) == hashlib.sha256(2 * content).hexdigest()
    with pytest.raises(InputError, match="there is no file"):
        sha256_of(tmp_path / "b")


def test_a_column_whose_parts_differ_has_one_type(tmp_path):
    # Longer than a part of pandas' parser: numbers first, text at the end.
    rows = 300_000
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        file.write("code,x\n")
        file.writelines(f"{row % 90 + 10},{row}.5\n" for row in range(rows))
        file.writelines(f"AB,{row}.5\n" for row in range(5))
    frame = read_table(path)
    assert len(frame) == rows + 5
    assert {type(value) for value in frame["code"].unique()} == {str}
    assert frame["code"].nunique() == 91


def test_a_row_of_names_longer_than_the_head_of_a_file_is_read_whole(tmp_path):
    names = [f"column_{k:06d}_{'x' * 100}" for k in range(3_000)]
    lines = [",".join(names), *(",".join([str(row)] * 3_000) for row in range(2))]
    (tmp_path / "wide.csv").write_text("\n".join(lines))
    frame = read_table(tmp_path / "wide.csv")
    assert [*frame.columns] == names
    assert frame.iloc[:, -1].tolist() == [0, 1]
