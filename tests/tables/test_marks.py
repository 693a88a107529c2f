"""Decimal and thousands marks are read from all values of a file, and never guessed."""

import numpy as np
import pandas as pd
import pytest

from heckmanfa import tables
from heckmanfa.errors import InputError
from heckmanfa.tables import read_table


def text(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode())
    return path


def values(tmp_path, content, column="a", **options):
    return read_table(text(tmp_path, content), **options)[column].tolist()


# What is clear. -----------------------------------------------------------------------------------


def test_a_point_in_a_file_of_decimal_commas_separates_thousands(tmp_path):
    found = read_table(text(tmp_path, "wage;rent\n1,5;10.910\n2,25;9.120\n"))
    assert found["rent"].tolist() == [10910, 9120]
    assert found["wage"].tolist() == [1.5, 2.25]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b\n1.234,56;1\n", 1234.56),
        ("a;b\n1,234.56;1\n", 1234.56),
        ("a;b\n1'234.56;1\n", 1234.56),
        ("a;b\n1’234,56;1\n", 1234.56),
        ("a;b\n1 234,56;1\n", 1234.56),
        ("a;b\n1\u00a0234,56;1\n", 1234.56),
        ("a;b\n1\u202f234,56;1\n", 1234.56),
        ("a;b\n1.234.567;1\n", 1234567),
        ("a\tb\n1,234,567\t1\n", 1234567),
        ("a\tb\n1,5\t1\n", 1.5),
        ("a|b\n-0,25|1\n", -0.25),
        ("a;b\n\N{MINUS SIGN}1.234,5;1\n", -1234.5),
        ("a;b\n0,125;1\n", 0.125),
        ("a;b\n0.125;1\n", 0.125),
        ("a;b\n1234.567;1\n", 1234.567),
        ("a;b\n1,5e3;1\n", 1500),
        ('a,b\n"1,234.56",1\n', 1234.56),
        ('a,b\n"1.234,56",1\n', 1234.56),
        ('a,b\n"10,91",1\n', 10.91),
        ("a,b\n10.910,1\n", 10.91),
        ("a,b\n0.125,1\n", 0.125),
        ("a;b\n10.910;0,5\n", 10910),
        ("a;b\n10.910;0.5\n", 10.91),
        ("a;b\n10,910;0.5\n", 10910),
        ("a;b\n10,910;0,5\n", 10.91),
        ('a,b\n"10,910",0.5\n', 10910),
        ('a,b\n"10,910",1\n', 10910),
        ('a,b\n10.910,"0,5"\n', 10910),
        ("a;b\n72.1%;1\n", 72.1),
        ("a;b\n72,1 %;1\n", 72.1),
        ("a,b\n5%,1\n", 5),
    ],
)
def test_what_a_number_is_in_its_file(tmp_path, content, expected):
    assert values(tmp_path, content) == [expected]


@pytest.mark.parametrize("last", ["0,5", "1.234,5", "1.234.567"])
def test_one_value_far_down_decides_for_the_whole_file(tmp_path, last):
    rows = "".join(f"{1 + place % 9}.{place % 900:03d};{place}\n" for place in range(3000))
    path = text(tmp_path, f"a;b\n{rows}{last};1\n")
    found = read_table(path)["a"]
    assert found.dtype == np.float64
    assert found.iloc[1] == 2001


@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_what_pandas_writes_comes_back(tmp_path, mark, delimiter):
    frame = pd.DataFrame(np.random.default_rng(0).lognormal(3, 2, (60, 3)), columns=list("abc"))
    frame["n"] = np.arange(60) * 1000
    frame.loc[5, "a"] = np.nan
    frame.to_csv(tmp_path / "t.csv", sep=delimiter, decimal=mark, index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv"), frame, rtol=1e-14)


@pytest.mark.parametrize("point", [".", ","])
@pytest.mark.parametrize("group", [",", ".", "'", " ", "\u00a0"])
def test_numbers_of_all_sizes_in_all_countries_come_back(tmp_path, point, group):
    if point == group:
        return
    numbers = np.round(np.random.default_rng(1).lognormal(7, 3, 200), 2)
    marks = str.maketrans({",": group, ".": point})
    rows = "".join(f"{f'{number:,.2f}'.translate(marks)};x\n" for number in numbers)
    np.testing.assert_array_equal(values(tmp_path, f"a;b\n{rows}"), numbers)


def test_words_and_codes_are_no_numbers(tmp_path):
    content = "t;code;v;d\na, b;123 456;1.2.3;1.2.2020\n1,x;110 001;2.0.1;3.4.2021\n"
    found = read_table(text(tmp_path, content + "c;900 000;3.1.1;5.6.2022\n"))
    assert found.loc[0].tolist() == ["a, b", "123 456", "1.2.3", "1.2.2020"]
    assert values(tmp_path, "a;b\n123 456;1\n110 001;2\n", thousands=" ") == [123456, 110001]
    assert values(tmp_path, "a;b\n1 234;1\n12 345;2\n") == [1234, 12345]


def test_any_name_may_be_that_of_a_column_of_marks(tmp_path):
    assert values(tmp_path, "self;b\n1.234,5;1\n", "self") == [1234.5]


def test_a_few_words_among_numbers_stay_what_they_are(tmp_path):
    rows = "".join(f"1.{place:03d},5;1\n" for place in range(100, 140))
    found = values(tmp_path, f"a;b\n{rows}oops;1\nnone;2\n;3\n")
    assert found[:2] == [1100.5, 1101.5]
    assert found[40] == "oops"
    assert pd.isna(found[41])
    assert pd.isna(found[42])


# What is not. -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("mark", [".", ","])
def test_what_can_be_read_in_two_ways_is_refused_with_the_column_and_the_option(
    tmp_path, delimiter, mark
):
    other = "," if mark == "." else "."
    content = f"a{delimiter}b\n10{mark}910{delimiter}5\n9{mark}120{delimiter}6\n"
    with pytest.raises(InputError) as caught:
        values(tmp_path, content)
    said = str(caught.value)
    assert f"column 'a' holds '10{mark}910'" in said
    assert f"decimal='{mark}' or decimal='{other}'" in said
    assert values(tmp_path, content, decimal=mark) == [10.91, 9.12]
    assert values(tmp_path, content, decimal=other) == [10910, 9120]
    assert values(tmp_path, content, thousands=mark) == [10910, 9120]
    # A column that nobody asks for is in nobody's way, and stays as it is spelt.
    table = tables.open_table(text(tmp_path, content))
    assert table.frame["b"].tolist() == [5, 6]
    assert table.frame["a"].tolist() == [f"10{mark}910", f"9{mark}120"]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$1,200.50", "-$90", "$ 3"], [1200.5, -90, 3]),
        (["1.200,50 €", "90 €", "-3 €"], [1200.5, 90, -3]),
        (["EUR 12", "EUR 1.5", "n/a"], [12, 1.5, float("nan")]),
        (["($1,200.25)", "$90", "$-3"], [-1200.25, 90, -3]),
    ],
)
def test_amounts_of_one_currency_are_numbers_and_the_sign_is_said(tmp_path, cells, numbers):
    path = tmp_path / "money.csv"
    path.write_text("a;b\n" + "".join(f"{cell};{row}\n" for row, cell in enumerate(cells)))
    table = tables.open_table(path)
    assert table.frame["a"].tolist() == pytest.approx(numbers, nan_ok=True)
    sign = next(sign for sign in ("$", "€", "EUR") if sign in cells[0])
    assert table.money == {"a": sign}
    assert any(f"'a' is in {sign}" in note for note in table.notes)


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("a;b\n1,5;1.5\n", {}, r"column 'b' holds '1\.5', .* as in column 'a'; write the file one"),
        ("a;b\n1.5;2\n", {"decimal": ","}, r"'1\.5', which is not a number where ',' .* as asked"),
        ("a;b\n0.5;10,910\n", {"thousands": "none"}, "column 'b' holds '10,910', which is no"),
        ("a;b\n72.1%;1\n80;2\n", {}, "1 number with a per cent sign and 1 without; the first"),
        ("a;b\n$1,200;1\n$90;2\n", {}, "column 'a' holds '1,200', and nothing in the file says"),
        ("a;b\n$1.5;1\n€90;2\n", {}, r"'\$1\.5' and '€90', of which not all have the same curr"),
        ("a;b\n$1.5;1\n90;2\n", {}, r"'\$1\.5' and '90', of which not all have the same curre"),
        ("a;b\n1;2\n", {"decimal": ";"}, r"decimal=\.\.\. must be '\.' or ','"),
        ("a;b\n1;2\n", {"thousands": "x"}, r"thousands=\.\.\. must be"),
        ("a;b\n1;2\n", {"decimal": ".", "thousands": "."}, "they must differ"),
    ],
)
def test_what_is_refused_says_what_to_do(tmp_path, content, options, said):
    with pytest.raises(InputError, match=said):
        values(tmp_path, content, **options)


def test_options_for_text_are_refused_where_numbers_are_numbers(tmp_path):
    pd.DataFrame({"a": [1.5]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="stores numbers as numbers"):
        read_table(tmp_path / "a.parquet", decimal=",")
    with pytest.raises(InputError, match=r"sheet=\.\.\. is for Excel files"):
        read_table(text(tmp_path, "a\n1\n"), sheet="x")


# What is said, and Excel. -------------------------------------------------------------------------


def test_how_numbers_were_read_is_said_where_it_could_be_another_way(tmp_path):
    def notes(content):
        return tables.open_table(text(tmp_path, content)).notes

    assert notes("a,b\n1.5,2\n") == notes("a;b\n1.5;x\n") == ()
    (said,) = notes("a;b\n1,5;10.910\n")
    assert "a comma as the decimal mark and points between thousands" in said
    assert "commas between thousands" in notes('a,b\n"10,910",1\n')[0]
    assert notes("a,b\n5%,1\n") == ("'a' is in per cent: 5% was read as 5.",)
    assert tables.open_table(text(tmp_path, "a;b\n1;2\n")).decimal is None
    assert tables.open_table(text(tmp_path, "a;b\n1,5;2\n")).decimal == ","


def test_text_cells_of_excel_are_read_by_their_marks_and_numbers_stay(tmp_path):
    path = tmp_path / "t.xlsx"
    pd.DataFrame(
        {"a": ["1.234,5", 1.234, 7, None], "b": ["10.910", "9.120", "3", "4"], "c": list("wxyz")}
    ).to_excel(path, index=False)
    found = read_table(path)
    np.testing.assert_array_equal(found["a"], [1234.5, 1.234, 7, np.nan])
    assert found["b"].tolist() == [10910, 9120, 3, 4]
    pd.DataFrame({"b": ["10.910", "9.120"], "x": [1.5, 2.5]}).to_excel(path, index=False)
    with pytest.raises(InputError, match="nothing in the file says whether"):
        read_table(path)
    assert read_table(path, decimal=".")["b"].tolist() == [10.91, 9.12]
