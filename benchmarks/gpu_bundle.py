"""Put what `benchmarks.gpu` needs besides Torch, SciPy, scikit-learn and pandas into a folder.

    python -m benchmarks.gpu_bundle FOLDER [--tests]

Everything in it is pure Python, so it runs on any machine: this package, the benchmarks, and
the dependencies that are loaded on import. With --tests also the tests of tensors and what runs
them: `PYTHONPATH=FOLDER python -m pytest FOLDER/tests/data/test_torch.py`.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
from pathlib import Path

from benchmarks.common import ROOT

PACKAGES = ("array_api_compat", "formulaic", "interface_meta", "wrapt", "narwhals")
FOR_TESTS = ("pytest", "_pytest", "pluggy", "iniconfig")
SOURCES = ("*.py", "*.csv", "*.json", "*.typed", "*.toml", "*.md")


def _copied(folder: Path, target: Path) -> None:
    for pattern in SOURCES:
        for file in folder.rglob(pattern):
            path = target / file.relative_to(folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tests", action="store_true")
    given = parser.parse_args()
    if given.folder.exists():
        shutil.rmtree(given.folder)
    for name in (*PACKAGES, *(FOR_TESTS if given.tests else ())):
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise SystemExit(f"{name} is not installed here")
        path = Path(found.origin)
        if path.name == "__init__.py":
            _copied(path.parent, given.folder / name)
        else:
            given.folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, given.folder / path.name)
    _copied(ROOT / "src" / "heckmanfa", given.folder / "heckmanfa")
    _copied(ROOT / "benchmarks", given.folder / "benchmarks")
    if given.tests:
        test = Path("tests/data/test_torch.py")
        (given.folder / test).parent.mkdir(parents=True)
        shutil.copyfile(ROOT / test, given.folder / test)
        shutil.copyfile(ROOT / "pyproject.toml", given.folder / "pyproject.toml")
    size = sum(file.stat().st_size for file in given.folder.rglob("*") if file.is_file())
    print(f"{given.folder}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
