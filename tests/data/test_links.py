"""A link that another user made where everybody may write is not followed."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from heckmanfa import Heckman, load, save, scan, scan_parquet
from heckmanfa.cli import app
from heckmanfa.data.files import paths as links
from heckmanfa.data.files.outputs import new_folder, replacing
from heckmanfa.errors import InputError
from heckmanfa.tables import read_table

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links of other users are POSIX's")
STICKY, OTHER, ME, HOST = 0o41777, 1001, 1000, 0


@pytest.mark.parametrize(
    ("mode", "owner_of_folder", "owner_of_link", "is_foreign"),
    [
        (STICKY, HOST, OTHER, True),
        (STICKY, HOST, ME, False),
        (STICKY, OTHER, OTHER, False),
        (0o41755, HOST, OTHER, False),
        (0o40777, HOST, OTHER, False),
    ],
)
def test_the_rule_is_that_of_linux(mode, owner_of_folder, owner_of_link, is_foreign, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    link = SimpleNamespace(st_uid=owner_of_link)
    folder = SimpleNamespace(st_mode=mode, st_uid=owner_of_folder)
    assert links._is_foreign(link, folder) == is_foreign


@pytest.fixture
def shared(tmp_path):
    """A folder like /tmp, in which all links are another user's."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a link for somebody else")
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)

    def link(name: str, target):
        place = folder / name
        place.symlink_to(target)
        os.lchown(place, 12345, 12345)
        return place

    return SimpleNamespace(folder=folder, link=link, private=tmp_path)


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["y", "a", "b"])
    frame.loc[frame["b"] + rng.normal(size=80) < 0, "y"] = np.nan
    return frame


def test_no_way_to_read_follows_it(shared):
    frame = _frame()
    frame.to_csv(shared.private / "t.csv", index=False)
    frame.to_parquet(shared.private / "t.parquet")
    model = Heckman(["a"]).fit(frame[["a", "b"]], frame["y"])
    save(model, shared.private / "m.heckmanfa")
    table = shared.link("t.csv", shared.private / "t.csv")
    stored = shared.link("t.parquet", shared.private / "t.parquet")
    shared.link("inside", shared.private)
    ways = [
        lambda: read_table(table),
        lambda: read_table(shared.folder / "inside" / "t.csv"),
        lambda: scan_parquet(stored, "y"),
        lambda: scan(stored, "y"),
        lambda: scan(shared.folder, "y"),
        lambda: scan(shared.folder / "*.parquet", "y"),
        lambda: scan(shared.folder / "inside", "y"),
        lambda: load(shared.link("m.heckmanfa", shared.private / "m.heckmanfa")),
    ]
    for way in ways:
        with pytest.raises(InputError, match="another user made"):
            way()
    result = CliRunner().invoke(app, ["fit", str(table), "--outcome", "y"])
    assert result.exit_code == 2
    # By a link of ours, also over another of ours, it is read.
    (shared.folder / "mine").symlink_to(shared.private)
    (shared.folder / "mine.csv").symlink_to("mine/t.csv")
    assert len(read_table(shared.folder / "mine.csv")) == len(frame)


def test_no_way_to_write_follows_it(shared):
    frame = _frame()
    model = Heckman(["a"]).fit(frame[["a", "b"]], frame["y"])
    secret = shared.private / "secret"
    secret.write_text("keep")
    aimed = shared.link("m.heckmanfa", secret)
    with pytest.raises(InputError, match="another user made"):
        save(model, aimed, force=True)
    with pytest.raises(InputError, match="another user made"):
        save(model, shared.link("new.heckmanfa", shared.private / "new.heckmanfa"))
    folder = shared.link("folder", shared.private)
    for make in (lambda: replacing(folder / "p.csv", False), lambda: new_folder(folder / "new")):
        with pytest.raises(InputError, match="another user made"), make() as part:
            part.write_text("no")
    assert secret.read_text() == "keep"
    assert sorted(path.name for path in shared.private.iterdir()) == ["secret", "shared"]


def test_a_link_that_appears_while_a_file_is_written_is_not_followed(shared):
    target = shared.folder / "p.csv"
    victim = shared.private / "victim.csv"

    def write() -> None:
        with replacing(target, True) as part:
            part.write_text("data")
            shared.link("p.csv", victim)

    with pytest.raises(InputError, match="another user made"):
        write()
    assert not victim.exists()


def test_links_in_circles_end(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    links.refuse_foreign_links(tmp_path / "a" / "c")
    links.refuse_foreign_links(tmp_path / ".." / "nothing" / "x")


@pytest.mark.parametrize(
    "url",
    [
        "simplecache::s3://bucket/t.parquet",
        "zip://t.parquet::file:///etc/x.zip",
        "filecache::memory://t.parquet",
    ],
)
def test_chains_of_fsspec_are_refused_before_anything_is_opened(url, tmp_path, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda *args, **kwargs: pytest.fail("opened"))
    for options in (None, {"anon": True}):
        with pytest.raises(InputError, match="chains file systems"):
            scan(url, "y", storage_options=options)
    result = CliRunner().invoke(app, ["fit", url, "--outcome", "y"])
    assert result.exit_code == 2
    assert "chains" in result.output


def test_a_chain_that_the_user_builds_is_read(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    frame = _frame()
    frame.to_parquet(tmp_path / "t.parquet")
    import zipfile

    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.write(tmp_path / "t.parquet", "t.parquet")
    system, _ = fsspec.core.url_to_fs(f"zip://::{tmp_path / 't.zip'}")
    rows = scan("t.parquet", "y", filesystem=system)
    got = Heckman(["a"]).fit(rows)
    want = Heckman(["a"]).fit(frame[["a", "b"]], frame["y"])
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=1e-9)
