"""Titles above the names are skipped, padded or not; or the user says which row has the names."""

import gzip

import pandas as pd
import pytest

from heckmanfa.errors import InputError
from heckmanfa.tables import read_table
from heckmanfa.tables.reading import open_table

FRAME = pd.DataFrame({"wage": [1.5, None, 2.5], "educ": [12, 10, 16], "town": ["a", "b", "a"]})


def written(path, *lines, mark=",", newline="\n", encoding="utf-8"):
    text = "".join(f"{line}{newline}" for line in lines)
    text += FRAME.to_csv(index=False, sep=mark, lineterminator=newline)
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def same(found):
    pd.testing.assert_frame_equal(found, FRAME, check_dtype=False)


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_titles_that_a_spreadsheet_padded_are_skipped(mark, newline, tmp_path):
    pad = 2 * mark
    for lines in (
        (f"Wages of women{pad}",),
        (f"Wages of women{pad}", pad, f"1975{pad}"),
        (f'"Wages{mark} 1975"{pad}',),
        ("Wages of women", pad),
    ):
        path = written(tmp_path / "t.csv", *lines, mark=mark, newline=newline)
        table = open_table(path)
        same(table.frame)
        were = "1 line of titles" if len(lines) == 1 else f"{len(lines)} lines of titles"
        assert any(note.startswith(were) for note in table.notes)


def test_what_is_not_a_title_is_kept(tmp_path):
    path = tmp_path / "t.csv"
    # Two columns at most, or a first row with gaps.
    for text, names in (
        ("a,\n1,2\n3,4\n", ["a"]),
        ("a,b,c\nx,,\ny,,\nz,1,2\n", ["a", "b", "c"]),
    ):
        path.write_text(text)
        assert list(read_table(path).columns)[: len(names)] == names
    # Numbers are not names.
    path.write_text("a,,\n1,2,3\n4,5,6\n")
    with pytest.raises(InputError, match=r"remove titles .*, or pass header_row=\.\.\."):
        read_table(path)


@pytest.mark.parametrize("ending", [".csv", ".txt", ".csv.gz"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_user_names_the_line_of_the_names(ending, newline, tmp_path):
    # Two cells are filled, so nothing shows that these are titles.
    lines = ("Wages,of women,", ",1975,dollars", "x,y,z")
    path = written(tmp_path / f"t{ending}", *lines, newline=newline)
    same(read_table(path, header_row=4))
    assert list(read_table(path, header_row=1).columns)[:2] == ["Wages", "of women"]
    same(read_table(written(tmp_path / "s.csv", "sep=,", "one,two,three"), header_row=3))
    same(read_table(written(tmp_path / "s.csv", "sep=,"), header_row=1))
    path = written(tmp_path / "u.csv", *lines, encoding="utf-16")
    same(read_table(path, header_row=4))


def test_the_row_of_a_sheet_is_counted_as_the_spreadsheet_counts(tmp_path):
    path = tmp_path / "t.xlsx"
    above = pd.DataFrame([["Wages", "of women", None], [None] * 3, ["x", "y", "z"]])
    below = pd.DataFrame([list(FRAME.columns), *FRAME.to_numpy().tolist()])
    pd.concat([above, below]).to_excel(path, header=False, index=False)
    same(read_table(path, header_row=4))
    with pytest.raises(InputError, match=r"header_row=\.\.\. is 2, and that row .* is empty"):
        read_table(path, header_row=2)
    with pytest.raises(InputError, match="is empty"):
        read_table(path, header_row=99)


def test_a_row_that_cannot_hold_the_names_is_refused(tmp_path):
    path = written(tmp_path / "t.csv")
    for row in (0, -1, 5):
        with pytest.raises(InputError, match=f"is {row}, and names are in one of the first 4"):
            read_table(path, header_row=row)
    FRAME.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"header_row=\.\.\. is for text and Excel files"):
        read_table(tmp_path / "t.parquet", header_row=2)
    path.write_text("Wages of 1975\n1,2\n3,4\n")
    with pytest.raises(InputError, match=r"or pass header_row=\.\.\. if another line has them"):
        read_table(path)
