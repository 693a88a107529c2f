"""Tables through pipes, and what is no file at all."""

import gzip
import io
import os
import socket
import sys
import tempfile
import threading

import pytest

from heckmanfa import scan_parquet, tables
from heckmanfa.analysis import load_model
from heckmanfa.errors import DataError, HeckmanfaError, InputError
from heckmanfa.tables import read_table


class Input(io.TextIOWrapper):
    """Standard input with some bytes."""

    def __init__(self, content, terminal=False):
        super().__init__(io.BytesIO(content))
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture(autouse=True)
def spool(tmp_path, monkeypatch):
    """Where temporary files go: nothing may be left there."""
    place = tmp_path / "spool"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert list(place.iterdir()) == []


def test_standard_input_is_delimited_text(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Input(b"a;b\n1,5;10.910\n"))
    assert read_table("-").to_dict("list") == {"a": [1.5], "b": [10910]}
    monkeypatch.setattr(sys, "stdin", Input(gzip.compress(b"a,b\n1,2\n")))
    assert read_table("-", ["b"]).to_dict("list") == {"b": [2]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "^standard input is empty$"),
        (b"PAR1abcd", "standard input holds a table in Parquet, .* write it to a file"),
        (b"PK\x03\x04abcd", "standard input holds a table in Excel"),
        (b"a,b\n1,2\n3,4,5\n", "^standard input cannot be read: line 3 has 3 fields"),
        (b"a,b\n", "^standard input has names of columns but no rows"),
        (b"a,b\n1,\0\n", "^standard input is not a text file"),
    ],
)
def test_what_comes_through_standard_input_and_is_no_table_is_refused(monkeypatch, content, said):
    monkeypatch.setattr(sys, "stdin", Input(content))
    with pytest.raises(HeckmanfaError, match=said):
        read_table("-")


def test_nobody_waits_for_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Input(b"", terminal=True))
    for path in ("-", "/dev/stdin"):
        with pytest.raises(InputError, match=r"standard input is a terminal, .* pipe a table into"):
            read_table(path)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        read_table("-")


def test_a_named_pipe_is_read_to_its_end_and_waiting_is_said(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(
        target=path.write_bytes, args=(b"a,b\n" + b"1,2\n" * 100_000,), daemon=True
    )
    writer.start()
    said = []
    assert len(tables.open_table(path, tell=said.append).frame) == 100_000
    writer.join(60)
    assert said[0] == f"waiting for a table from the pipe {path}"


def test_devices_sockets_and_folders_are_refused(tmp_path, monkeypatch):
    # A socket's name may not be long.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("s.csv")
        for path, what in (("/dev/null", "device"), ("/dev/zero", "device"), ("s.csv", "socket")):
            for read in (read_table, load_model):
                with pytest.raises(
                    InputError, match=f"{path} is a {what}, not a file; name a file"
                ):
                    read(path)
            with pytest.raises((InputError, DataError), match=f"{path} is a {what}, not a file"):
                scan_parquet(path, "y")
    os.mkfifo("m.heckmanfa")
    with pytest.raises(InputError, match=r"m\.heckmanfa is a FIFO, not a file"):
        load_model("m.heckmanfa")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
