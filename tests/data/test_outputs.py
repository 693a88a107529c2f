"""Files are written whole or not at all, and nothing but ordinary files is replaced."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest

from heckmanfa.data.files import outputs as module
from heckmanfa.data.files.outputs import check_place, make_folder, new_folder, outputs, replacing
from heckmanfa.errors import InputError


def write(path, force=True):
    with replacing(path, force) as part:
        part.write_text("new")


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_devices_fifos_sockets_and_folders_are_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        (tmp_path / "folder").mkdir()
        (tmp_path / "link").symlink_to("fifo")
        (tmp_path / "again").symlink_to("link")
        (tmp_path / "up").symlink_to("folder")
        before = names(tmp_path)
        for name, kind in (
            ("fifo", "is a FIFO"),
            ("socket", "is a socket"),
            ("folder", "is a folder"),
            ("link", "leads to .*fifo, which is a FIFO"),
            ("again", "leads to .*fifo, which is a FIFO"),
            ("up", "leads to .*folder, which is a folder"),
        ):
            with pytest.raises(InputError, match=f"{name} {kind}; name a file to write"):
                write(name)
    assert names(tmp_path) == before


def test_a_device_is_not_replaced(tmp_path):
    # It is only asked about: a test that failed here would take the machine's device away.
    (tmp_path / "null").symlink_to("/dev/null")
    with pytest.raises(InputError, match="null is a device; name a file to write"):
        check_place("/dev/null", force=True)
    with pytest.raises(InputError, match="leads to /dev/null, which is a device"):
        check_place(tmp_path / "null", force=True)


def test_a_fifo_that_appears_meanwhile_is_not_replaced(tmp_path):
    def late():
        with replacing(tmp_path / "a", True) as part:
            part.write_text("new")
            os.mkfifo(tmp_path / "a")

    with pytest.raises(InputError, match="is a FIFO"):
        late()
    assert names(tmp_path) == ["a"]


def test_links_are_followed_and_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "dangling").symlink_to("there/file")
    (tmp_path / "nowhere").symlink_to("absent/file")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for content in ("new", "newer"):
        with replacing("dangling", force=content == "newer") as part:
            # A move from another folder could be one to another file system.
            assert part.parent.name == "there"
            part.write_text(content)
        assert (tmp_path / "there" / "file").read_text() == content
        assert (tmp_path / "dangling").is_symlink()
    with pytest.raises(InputError, match="dangling exists; pass force=True"):
        write("dangling", force=False)
    with pytest.raises(InputError, match=r"nowhere .*no folder .*absent"):
        write("nowhere")
    with pytest.raises(InputError, match="a is a link that leads to itself"):
        write("a")
    with pytest.raises(InputError, match="dangling2 exists"), new_folder_at(tmp_path):
        raise AssertionError("nothing is to be written")
    assert names(tmp_path / "there") == ["file"]


def new_folder_at(folder):
    (folder / "dangling2").symlink_to("absent2")
    return new_folder(folder / "dangling2")


def test_an_error_of_the_system_names_the_file_that_was_written(tmp_path):
    files = {"--report": tmp_path / "x.html", "--save": tmp_path / "x.heckmanfa"}

    def full(option):
        with outputs(files, force=False) as places, places[option].writing() as part:
            part.write_text("half")
            raise OSError(28, "No space left on device")

    for option, name in (("--report", "x.html"), ("--save", "x.heckmanfa")):
        with pytest.raises(InputError, match=f"{name} cannot be written: No space left") as caught:
            full(option)
        assert str(caught.value).count("x.") == 1
        assert names(tmp_path) == []


@pytest.mark.parametrize("before", [None, "before"])
def test_an_interruption_leaves_what_was_there(tmp_path, before):
    path = tmp_path / "out.csv"
    if before:
        path.write_text(before)

    def interrupted():
        with replacing(path, force=True) as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [file.read_text() for file in tmp_path.iterdir()] == ([before] if before else [])


def test_an_error_that_is_of_no_output_is_blamed_on_none(tmp_path):
    with (
        pytest.raises(PermissionError, match=r"in\.csv"),
        outputs({"--out": tmp_path / "out.csv"}, force=False),
    ):
        raise PermissionError(13, "Permission denied", "in.csv")
    assert names(tmp_path) == []


def test_all_files_of_a_call_are_written_or_none(tmp_path):
    files = {"--a": tmp_path / "a", "--b": tmp_path / "b", "--c": None}

    def late():
        with outputs(files, force=False) as places:
            for place in places.values():
                place.part.write_text("new")
            (tmp_path / "b").write_text("theirs")

    with pytest.raises(InputError, match="b exists"):
        late()
    assert names(tmp_path) == ["b"]
    (tmp_path / "b").unlink()
    with outputs(files, force=False) as places:
        assert list(places) == ["--a", "--b"]
        for place in places.values():
            place.part.write_text("new")
    assert names(tmp_path) == ["a", "b"]


def test_clashes_are_said_before_anything_is_made(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(InputError, match="--a and --b both name"):
        outputs({"--a": path, "--b": path}, force=True).__enter__()
    path.write_text("mine")
    with pytest.raises(InputError, match="which DATA reads"):
        outputs({"--a": path}, {"DATA": path}, force=True).__enter__()
    assert names(tmp_path) == ["a"]


def test_a_part_is_written_straight_by_whoever_else_writes_whole(tmp_path):
    with outputs({"--a": tmp_path / "a.csv"}, force=False) as places:
        with replacing(places["--a"].part, True) as part:
            assert part == places["--a"].part
            part.write_text("new")
        with (
            pytest.raises(InputError, match=r"/a\.csv cannot be written: full"),
            replacing(places["--a"].part, True),
        ):
            raise OSError(28, "full")
    assert names(tmp_path) == ["a.csv"]


KILLED = """
import os, sys, time
from pathlib import Path
from heckmanfa.data.files.outputs import new_folder, outputs
folder = Path(sys.argv[1])
with outputs({"--a": folder / "a.csv"}, force=True) as places, new_folder(folder / "made") as made:
    places["--a"].part.write_text("half")
    (made / "part-0").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def killed(tmp_path):
    """Start a run that writes two parts and waits."""
    run = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    try:
        assert run.stdout.readline() == "ready\n"
        yield run
    finally:
        run.kill()
        run.wait(60)
        run.stdout.close()


def test_parts_of_a_killed_run_are_removed_by_the_next_and_those_of_a_live_one_stay(
    tmp_path, killed
):
    parts = names(tmp_path)
    assert [(tmp_path / name).is_dir() for name in parts].count(True) == 1
    assert len(parts) == 2
    similar = [".0123456789abcdef.a.csv", ".heckmanfa-12345678.a.csv", "a.csv.part"]
    for name in similar:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".heckmanfa-link").symlink_to(parts[0])
    kept = {*similar, ".heckmanfa-link"}
    write(tmp_path / "b.csv")
    assert {*names(tmp_path)} == {*parts, *kept, "b.csv"}
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert {*names(tmp_path)} == {*parts, *kept, "b.csv"}
    with replacing(tmp_path / "c.csv", False) as part:
        (temporary,) = {*names(tmp_path)} - {*kept, "b.csv"}
        assert temporary.endswith(".c.csv")
        part.write_text("new")
    assert {*names(tmp_path)} == {*kept, "b.csv", "c.csv"}


def test_a_new_folder_removes_what_a_killed_run_left(tmp_path, killed):
    killed.kill()
    killed.wait()
    with new_folder(tmp_path / "other") as part:
        (part / "file").write_text("new")
    assert names(tmp_path) == ["other"]


def test_many_who_write_into_one_folder_do_not_remove_one_another_s_parts(tmp_path):
    failed = []

    def often(name):
        try:
            for _ in range(40):
                write(tmp_path / name)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=often, args=(f"{number}.csv",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert names(tmp_path) == [f"{number}.csv" for number in range(4)]


def test_a_part_that_was_taken_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    lock, taken = module.fcntl.flock, []

    def late(handle, operation):
        if not taken:
            taken.extend(names(tmp_path))
            (tmp_path / taken[0]).unlink()
        lock(handle, operation)

    monkeypatch.setattr(module.fcntl, "flock", late)
    with replacing(tmp_path / "a.csv", False) as part:
        assert [part.name] != taken
        assert names(tmp_path) == [part.name]
        part.write_text("new")
    assert len(taken) == 1
    assert names(tmp_path) == ["a.csv"]


def test_without_locks_files_are_written_and_nothing_is_removed(tmp_path, monkeypatch, killed):
    parts = names(tmp_path)
    killed.kill()
    killed.wait()
    with monkeypatch.context() as patch:
        patch.setattr(module, "_HAS_LOCKS", False)
        write(tmp_path / "a.csv")
        with new_folder(tmp_path / "b"):
            pass
    assert names(tmp_path) == sorted([*parts, "a.csv", "b"])


def test_nobody_else_can_open_what_is_being_written(tmp_path):
    with replacing(tmp_path / "a.csv", False) as part:
        assert part.parent == tmp_path
        assert part.name.endswith(".a.csv")
        assert stat.S_IMODE(part.lstat().st_mode) == 0o600
        part.write_text("new")
    with new_folder(tmp_path / "made") as part:
        assert stat.S_IMODE(part.lstat().st_mode) == 0o700
        (part / "0.parquet").write_text("new")
    # What comes out of it is as open as any other file and folder.
    (tmp_path / "plain").touch()
    (tmp_path / "folder").mkdir()
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "made").stat().st_mode == (tmp_path / "folder").stat().st_mode


def at_the_move(monkeypatch, name, act):
    """Act at the last moment, as a process that races with ours can."""
    move = getattr(os, name)

    def late(source, target, **more):
        act(target)
        return move(source, target, **more)

    monkeypatch.setattr(os, name, late)


def appear(target):
    with open(target, "x") as file:  # noqa: PTH123
        file.write("theirs")


def test_a_file_that_appears_at_the_last_moment_is_not_replaced(tmp_path, monkeypatch):
    for name in ("link", "rename", "replace"):
        at_the_move(monkeypatch, name, appear)
    with pytest.raises(InputError, match=r"a\.csv exists; pass force=True"):
        write(tmp_path / "a.csv", force=False)
    assert (tmp_path / "a.csv").read_text() == "theirs"
    assert names(tmp_path) == ["a.csv"]


def test_where_one_file_appears_at_the_last_moment_none_of_the_call_stays(tmp_path, monkeypatch):
    for name in ("link", "rename", "replace"):
        at_the_move(monkeypatch, name, lambda path: path.name == "b" and appear(path))

    def both():
        with outputs({"--a": tmp_path / "a", "--b": tmp_path / "b"}, force=False) as places:
            for place in places.values():
                place.part.write_text("new")

    with pytest.raises(InputError, match="b exists"):
        both()
    assert names(tmp_path) == ["b"]
    assert (tmp_path / "b").read_text() == "theirs"


def test_files_are_written_where_the_file_system_has_no_hard_links(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write(tmp_path / "a.csv", force=False)
    assert (tmp_path / "a.csv").read_text() == "new"
    with pytest.raises(InputError, match="exists; pass force=True"):
        write(tmp_path / "a.csv", force=False)
    assert names(tmp_path) == ["a.csv"]


def test_links_and_fifos_are_not_taken_for_leftovers(tmp_path):
    linked, piped = (tmp_path / module._temporary_name(name) for name in "lp")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("years")
    linked.symlink_to(tmp_path / "mine")
    os.mkfifo(piped)
    write(tmp_path / "b.csv")
    assert {*names(tmp_path)} == {"mine", linked.name, piped.name, "b.csv"}
    assert names(tmp_path / "mine") == ["thesis"]


def test_leftovers_of_other_users_stay(tmp_path, killed, monkeypatch):
    killed.kill()
    killed.wait()
    parts = names(tmp_path)
    mine = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: mine + 1)
        module.remove_leftovers(tmp_path)
    assert names(tmp_path) == parts
    module.remove_leftovers(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize(("old", "new"), [(0o6777, 0o777), (0o640, 0o640), (0o600, 0o600)])
def test_permissions_are_kept_and_privileges_are_not(tmp_path, old, new):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(old)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == new


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(("old", "new"), [(0o666, 0o644), (0o600, 0o600), (0o4755, 0o644)])
def test_permissions_that_another_gave_are_not_widened(tmp_path, old, new):
    path = tmp_path / "a.csv"
    path.write_text("old")
    os.chown(path, 12345, 12345)
    path.chmod(old)
    before = os.umask(0o022)
    try:
        write(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == new
    assert path.stat().st_uid == os.geteuid()


def test_a_lock_that_another_holds_is_not_waited_for(tmp_path, monkeypatch):
    lock, held = module.fcntl.flock, []

    def late(handle, operation):
        assert operation & module.fcntl.LOCK_NB
        if not held:
            held.append(os.open(f"/dev/fd/{handle}", os.O_RDONLY))
            lock(held[0], module.fcntl.LOCK_SH)
        lock(handle, operation)

    monkeypatch.setattr(module.fcntl, "flock", late)
    try:
        write(tmp_path / "a.csv")
    finally:
        os.close(held[0])
    assert (tmp_path / "a.csv").read_text() == "new"
    assert names(tmp_path) == ["a.csv"]


def test_the_longest_names_are_written(tmp_path):
    for name in ("x" * 251 + ".csv", "é" * 125 + ".csv"):
        write(tmp_path / name)
        assert (tmp_path / name).read_text() == "new"
    with new_folder(tmp_path / ("y" * 255)):
        pass
    assert len(names(tmp_path)) == 3


def test_folders_are_made_where_they_can_be(tmp_path):
    assert make_folder(tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file is not a folder"):
        make_folder(tmp_path / "file")
    with pytest.raises(InputError, match="x cannot be written: Not a directory"):
        make_folder(tmp_path / "file" / "x")


def test_other_failures_of_the_system_are_named(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"x\.csv cannot be written: File name too long"):
        write(tmp_path / f"{'x' * 300}.csv", force=False)

    def fails(*args, **options):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", fails)
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(InputError, match=r"a\.csv cannot be written: Input/output error"):
        write(tmp_path / "a.csv", force=False)
    assert names(tmp_path) == []


@pytest.mark.parametrize("character", ["a", "\u00e9", "\U0001f600"])
def test_a_temporary_name_keeps_as_much_of_a_long_name_as_fits(character):
    name = module._temporary_name(character * 250 + ".csv")
    size = len(character.encode())
    assert module._LONGEST_NAME - size < len(name.encode()) <= module._LONGEST_NAME
    assert name.endswith(f"{character}.csv")
    assert module._temporary_name("short.csv").endswith(".short.csv")
