"""The paper's data sets: their splits, and where their files come from."""

import dataclasses
import hashlib
import socket
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from heckmanfa.datasets import PaperData, fetch_compas, fetch_crime, paper_data
from heckmanfa.datasets.paper_data import _COMPAS, _PERSONAL, DataFile, _without_people, find
from heckmanfa.errors import DataError, InputError

FETCH = {"CRIME": fetch_crime, "COMPAS": fetch_compas}
SIZES = {"CRIME": (1395, 976, 599, 26), "COMPAS": (3694, 2585, 1584, 10)}
COMPAS_NAMES = (
    *("sex", "age", "juv_fel_count", "juv_misd_count", "priors_count", "two_year_recid"),
    *("age_cat_25 - 45", "age_cat_Greater than 45", "race_Caucasian", "c_charge_degree_M"),
)


@pytest.fixture(params=list(FETCH))
def name(request, paper_files):
    return request.param


# The splits. --------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["paper", "stable", "random"])
def test_every_split_has_the_papers_sizes(name, split):
    data = FETCH[name](split)
    n, m, n_test, k = SIZES[name]
    assert isinstance(data, PaperData)
    assert (data.name, data.split) == (name, split)
    assert data.X.shape == (n, k)
    assert data.X_test.shape == (n_test, k)
    assert data.y.shape == data.complete_y.shape == data.selected.shape == (n,)
    assert data.y_test.shape == (n_test,)
    assert data.selected.sum() == m
    assert tuple(data.X.columns) == tuple(data.X_test.columns) == data.feature_names
    for frame in (data.X, data.X_test):
        assert np.isfinite(frame.to_numpy()).all()
        assert frame.index.tolist() == list(range(len(frame)))
    assert np.isfinite(data.y_test).all()


def test_features_are_the_papers(paper_files):
    assert fetch_compas().feature_names == COMPAS_NAMES
    crime = fetch_crime()
    assert crime.feature_names[:2] == ("householdsize", "racepctblack")
    assert crime.feature_names[-2:] == ("OtherPerCap", "HispPerCap")
    assert len(set(crime.feature_names)) == 26


def test_the_outcome_is_missing_where_it_is_hidden_and_only_there(name):
    data = FETCH[name]()
    assert np.isfinite(data.complete_y).all()
    np.testing.assert_array_equal(np.isnan(data.y), ~data.selected)
    np.testing.assert_array_equal(data.y[data.selected], data.complete_y[data.selected])


def test_a_data_set_says_what_it_is_and_cannot_be_reassigned(name):
    data = FETCH[name]()
    for words in (data.target_name, data.description, data.citation, data.licence):
        assert words
    assert len(repr(data)) < 200
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = data.complete_y


def key(name, data, folder):
    """What decides who is selected, for the training rows of a split in the file's order."""
    if name == "COMPAS":
        return data.complete_y
    text = files("heckmanfa.datasets").joinpath("data", "crime_columns.txt").read_text()
    place = text.split().index("NumUnderPov")
    column = pd.read_csv(folder / "communities.data", header=None, usecols=[place])[place]
    return column.to_numpy()[: len(data.y)]


def test_the_stable_split_differs_from_the_papers_at_the_cut_alone(name, paper_files):
    paper, stable = FETCH[name]("paper"), FETCH[name]("stable")
    pd.testing.assert_frame_equal(paper.X, stable.X)
    np.testing.assert_array_equal(paper.complete_y, stable.complete_y)
    values = key(name, paper, paper_files)
    cut = values[stable.selected].max()
    differs = paper.selected != stable.selected
    assert differs.any()
    assert (values[differs] == cut).all()
    for data in (paper, stable):
        assert data.selected[values < cut].all()
        assert not data.selected[values > cut].any()


def test_the_stable_split_breaks_ties_by_the_order_of_the_rows(name, paper_files):
    stable = FETCH[name]("stable")
    values = key(name, stable, paper_files)
    at_cut = stable.selected[values == values[stable.selected].max()]
    assert 0 < at_cut.sum() < len(at_cut)
    assert at_cut[: at_cut.sum()].all()


def test_random_splits_follow_their_seed(name):
    fetch = FETCH[name]
    one, same, other = (fetch("random", random_state=seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(one.X, same.X)
    np.testing.assert_array_equal(one.y, same.y)
    np.testing.assert_array_equal(one.y_test, same.y_test)
    assert not one.X.equals(other.X)
    by_generator = fetch("random", random_state=np.random.default_rng(0))
    np.testing.assert_array_equal(one.y, by_generator.y)
    # The rows are those of the paper's split, in another order.
    paper = fetch()
    assert np.sort(np.append(one.complete_y, one.y_test)).tolist() == (
        np.sort(np.append(paper.complete_y, paper.y_test)).tolist()
    )


def test_a_random_split_hides_the_outcomes_that_are_highest_on_the_key(paper_files):
    data = fetch_compas("random", random_state=3)
    assert data.complete_y[data.selected].max() <= data.complete_y[~data.selected].min()


def test_splits_that_do_not_exist_are_refused(name):
    with pytest.raises(InputError, match="'new'"):
        FETCH[name]("new")
    for split in ("paper", "stable"):
        with pytest.raises(InputError, match=r"random_state.*'random'"):
            FETCH[name](split, random_state=0)


# Where files come from. ---------------------------------------------------------------------------

CONTENT = b"a,b\n1,2\n"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no folder."""
    monkeypatch.delenv("HECKMANFA_DATA", raising=False)
    monkeypatch.setattr(paper_data, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, *args, content, asked, **kwargs):
        self.content, self.asked = content, asked
        super().__init__(*args, **kwargs)

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *args):
        pass


@contextmanager
def served(content):
    """A web server on this machine with one file; yields its address and what it was asked."""
    asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, content=content, asked=asked))
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/small.csv", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def nowhere():
    """An address where nothing answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/small.csv"


def test_a_download_is_kept_sealed_and_used_without_the_server_afterwards(cache):
    with served(CONTENT) as (url, asked):
        file = DataFile("small.csv", url, sha256(CONTENT))
        path = find(file)
        assert find(file) == path
        assert len(asked) == 1
    assert path == cache / "small.csv"
    assert path.read_bytes() == CONTENT
    assert (cache / "small.csv.sha256").read_text() == sha256(CONTENT)
    assert find(file) == path


def test_the_folder_comes_before_the_cache_and_the_server(cache, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "small.csv").write_bytes(CONTENT)
    monkeypatch.setenv("HECKMANFA_DATA", str(folder))
    with served(CONTENT) as (url, asked):
        assert find(DataFile("small.csv", url, sha256(CONTENT))) == folder / "small.csv"
        stripped = DataFile("small.csv", url, sha256(b"whole"), stripped_sha256=sha256(CONTENT))
        assert find(stripped) == folder / "small.csv"
        assert asked == []
        monkeypatch.setenv("HECKMANFA_DATA", str(tmp_path))  # it has no such file
        assert find(DataFile("small.csv", url, sha256(CONTENT))) == cache / "small.csv"


def test_a_download_that_is_another_file_is_refused_and_not_kept(cache):
    with (
        served(CONTENT + b"<html>") as (url, _),
        pytest.raises(DataError, match="expected") as caught,
    ):
        find(DataFile("small.csv", url, sha256(CONTENT)))
    for words in (url, "Try again", "HECKMANFA_DATA", "small.csv"):
        assert words in str(caught.value)
    assert not cache.exists()


def test_no_answer_from_the_server_is_said_with_what_to_do(cache):
    url = nowhere()
    with pytest.raises(DataError, match=r"small\.csv") as caught:
        find(DataFile("small.csv", url, sha256(CONTENT)))
    assert url in str(caught.value)
    assert "set the environment variable HECKMANFA_DATA" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not cache.exists()


def test_a_wrong_file_in_the_folder_is_refused(cache, tmp_path, monkeypatch):
    (tmp_path / "small.csv").write_bytes(b"something else")
    monkeypatch.setenv("HECKMANFA_DATA", str(tmp_path))
    with pytest.raises(DataError, match="expected") as caught:
        find(DataFile("small.csv", "https://example.org/small.csv", sha256(CONTENT)))
    for words in (str(tmp_path / "small.csv"), sha256(b"something else"), "https://example.org"):
        assert words in str(caught.value)


def test_a_damaged_file_in_the_cache_is_refused(cache):
    with served(CONTENT) as (url, _):
        file = DataFile("small.csv", url, sha256(CONTENT))
        find(file).write_bytes(CONTENT[:-1])
        with pytest.raises(DataError, match="download"):
            find(file)
        (cache / "small.csv").unlink()
        assert find(file).read_bytes() == CONTENT


def test_a_file_without_a_seal_is_downloaded_again(cache):
    cache.mkdir()
    (cache / "small.csv").write_bytes(CONTENT[:3])  # as an interruption leaves it
    with served(CONTENT) as (url, _):
        assert find(DataFile("small.csv", url, sha256(CONTENT))).read_bytes() == CONTENT


def test_columns_that_identify_people_are_never_kept(cache):
    header = ["id", *_PERSONAL, "age", "score_text"]
    rows = [
        ["7", "jo doe", "jo", "doe", "1980-01-02", "13001CF10A", "13002CF10A", "", "33", "N/A"],
        ["8", "al roe", "al", "roe", "1990-03-04", "14001CF10A", "", "14002CF10A", "", "Low"],
    ]
    content = "\n".join(",".join(row) for row in [header, *rows]).encode() + b"\n"
    with served(content) as (url, _):
        file = DataFile("people.csv", url, sha256(content), strip=_without_people)
        path = find(file)
    assert find(file) == path
    # What is left is as it was published.
    assert path.read_text() == "id,age,score_text\n7,33,N/A\n8,,Low\n"
    kept = b"".join(one.read_bytes() for one in cache.rglob("*") if one.is_file())
    for secret in [*_PERSONAL, "doe", "roe", "1980", "13001CF10A", "14002CF10A"]:
        assert secret.encode() not in kept
    assert len(_PERSONAL) == 7


def test_stripping_a_file_without_such_columns_changes_nothing(paper_files):
    content = (paper_files / "compas-scores-two-years.csv").read_bytes()
    if sha256(content) != _COMPAS.stripped_sha256:
        pytest.skip("the folder has the file with these columns")
    assert _without_people(content) == content


def test_the_cache_is_a_folder_of_this_package():
    assert "heckmanfa" in str(paper_data.cache_folder())
