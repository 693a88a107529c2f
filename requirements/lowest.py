"""Print the lowest version of every dependency that pyproject.toml allows, as constraints for pip.

``python requirements/lowest.py > lowest.txt`` and then ``PIP_CONSTRAINT=$PWD/lowest.txt make test``
run the tests with them. What the tests pin exactly (Torch, for its builds) keeps that version.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# What the lowest versions need of packages that they bring along: Matplotlib 3.8 and Typer 0.16
# call names that later ones deprecate, and the tests take warnings for errors. The tests' runner of
# commands keeps standard error apart from click 8.2 on.
COMPANIONS = ("click>=8.2,<8.3", "pyparsing<3.3")
_BOUND = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(\[[^]]*\])?>=(?P<version>[0-9.]+)")
_PIN = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)==")


def lower_bounds(project: dict[str, Any]) -> dict[str, str]:
    """The lower bound of every dependency, extras included, by the name of the package."""
    extras = project["optional-dependencies"].values()
    needed = [*project["dependencies"], *(line for lines in extras for line in lines)]
    others = [line for line in needed if not line.startswith(f"{project['name']}[")]
    bounds = {}
    for line in others:
        found = _BOUND.fullmatch(line)
        if found is None:
            raise SystemExit(f"{line!r} of pyproject.toml is not a lower bound alone")
        bounds[found["name"]] = found["version"]
    return bounds


def pinned() -> set[str]:
    """The packages of which the tests want one version."""
    lines = (ROOT / "requirements" / "test.txt").read_text().splitlines()
    return {found["name"] for line in lines if (found := _PIN.match(line))}


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    keep = pinned()
    for name, version in sorted(lower_bounds(project).items()):
        if name not in keep:
            print(f"{name}=={version}")
    print(*COMPANIONS, sep="\n")
