"""What tests of files share: ways to tamper with a model file."""

import hashlib
import io
import json
import zipfile

import pytest


def digest(members):
    """What a file says of its own members; whoever changes one can write it, too."""
    total = hashlib.sha256()
    for name in sorted(members):
        total.update(f"{name} {hashlib.sha256(members[name]).hexdigest()}\n".encode())
    return total.hexdigest()


def rewrite(path, *, seal=False, manifest=None, schema=None, members=None):
    """Change a file's manifest or schema; sealed, its digest fits again."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    if schema is not None:
        state = json.loads(held["schema.json"])
        schema(state)
        held["schema.json"] = json.dumps(state).encode()
    listed = json.loads(held.pop("heckmanfa.json"))
    if members is not None:
        members(held)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
        if seal:
            listed["sha256"] = digest(held)
        if manifest is not None:
            manifest(listed)
        archive.writestr("heckmanfa.json", json.dumps(listed))
    path.write_bytes(buffer.getvalue())


@pytest.fixture(scope="session")
def rewritten():
    """A function that changes a model file, and seals it where it is asked to."""
    return rewrite


@pytest.fixture
def saved(original, tmp_path):
    """A copy of a module's model file, for one test to change."""
    path = tmp_path / "m.skops"
    path.write_bytes(original)
    return path
