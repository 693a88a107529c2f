"""Make the JSON files in this folder from the outputs of other programs.

    python tests/oracles/collect.py FOLDER

FOLDER holds the CSV files that R wrote ({case}_{2step,ml}_{coef,vcov,pred}.csv), Stata's results
(stata18_heckman_ml.json), NIST's data sets (nist/*.csv), the uncertainty intervals of R's ui
(ui_mroz_wooldridge.csv) and R's results for binary outcomes (siblings/sampleselection.csv);
README.md says which calls made them.
Numbers are kept as the decimals that were written, and every 25th row of the predictions.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES = ("mroz_greene", "mroz_wooldridge", "womenwk")
EVERY = 25
NIST_DEGREE = {"norris": 1, "pontius": 2, "filip": 10, **{f"wampler{i}": 5 for i in range(1, 6)}}


def _read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [[cell.strip() for cell in row] for row in csv.reader(file)]


def _number(text: str) -> float | None:
    return None if text in ("NA", "") else float(text)


def _coefficients(path: Path) -> dict[str, Any]:
    head, *rows = _read(path)
    columns = {name: [row[place] for row in rows] for place, name in enumerate(head)}
    return {
        "term": columns["term"],
        "estimate": [_number(text) for text in columns["estimate"]],
        "se": [_number(text) for text in columns["se"]],
    }


def _predictions(path: Path) -> dict[str, Any]:
    head, *rows = _read(path)
    kept = {name: [_number(row[place]) for row in rows[::EVERY]] for place, name in enumerate(head)}
    return {"every": EVERY, "n": len(rows), **kept}


def sample_selection(folder: Path) -> dict[str, Any]:
    """Collect R's results."""
    return {
        case: {
            method: {
                **_coefficients(folder / f"{case}_{method}_coef.csv"),
                "vcov": [
                    [_number(text) for text in row[1:]]
                    for row in _read(folder / f"{case}_{method}_vcov.csv")[1:]
                ],
                "pred": _predictions(folder / f"{case}_{method}_pred.csv"),
            }
            for method in ("2step", "ml")
        }
        for case in CASES
    }


def heckman_probit(folder: Path) -> dict[str, Any]:
    """Collect R's results for binary outcomes: estimates and standard errors by equation."""
    cases: dict[str, Any] = {}
    for case, equation, term, estimate, se in _read(folder / "sampleselection.csv")[1:]:
        if case.startswith("hp_"):
            rows = cases.setdefault(case, {}).setdefault(equation, {})
            rows[term] = [_number(estimate), _number(se)]
    return cases


def nist(folder: Path) -> dict[str, Any]:
    """Collect NIST's data as decimal strings, so that no digit is lost on the way."""
    sets: dict[str, Any] = {}
    for name in ["longley", *NIST_DEGREE]:
        head, *rows = _read(folder / f"{name}.csv")
        y = [row[head.index("y")] for row in rows]
        if name == "longley":
            x = [[row[head.index(f"x{i}")] for i in range(1, 7)] for row in rows]
            sets[name] = {"y": y, "x": x}
        else:
            column = head.index("x1") if "x1" in head else head.index("x")
            sets[name] = {"y": y, "x": [row[column] for row in rows], "degree": NIST_DEGREE[name]}
    return sets


def uncertainty(folder: Path) -> dict[str, Any]:
    """Collect the results of R's ui, column by column."""
    head, *rows = _read(folder / "ui_mroz_wooldridge.csv")
    columns = {
        name: [_number(row[place]) for row in rows] for place, name in enumerate(head) if place
    }
    return {"mroz_wooldridge": {"term": [row[0] for row in rows], **columns}}


def main(folder: Path) -> None:
    """Write the files."""
    made = {
        "r_sampleselection.json": sample_selection(folder),
        "heckman_probit.json": heckman_probit(folder / "siblings"),
        "stata18.json": json.loads((folder / "stata18_heckman_ml.json").read_text()),
        "nist.json": nist(folder / "nist"),
        "ui.json": uncertainty(folder),
    }
    for name, content in made.items():
        (HERE / name).write_text(json.dumps(content, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
