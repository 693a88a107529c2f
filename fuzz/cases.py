"""One hostile case: input from a seed, a call of the package, and what must hold afterwards."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from fuzz.material import (
    HOSTILE_TEXT,
    Source,
    csv_bytes,
    parquet_bytes,
    pick,
    spoil,
    table,
)
from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanProbit,
    NaiveOLS,
    load,
    predict_batches,
    save,
    scan_parquet,
)
from heckmanfa.analysis.model_file import pack, unpack
from heckmanfa.cli import app
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning

__all__ = ["TARGETS", "BrokenPromiseError", "run_case"]

# What code from a file would do first. Opening for writing is judged by where.
_FORBIDDEN = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "socket.")
# Cases run in folders of the temporary one, where readers may also spool.
_MAY_WRITE = (tempfile.gettempdir(), "/dev/null", "/proc/")
# Written by earlier versions.
_OLD_FILES = Path(__file__).parents[1] / "tests" / "analysis" / "files"
_watched: dict[str, Any] = {"folder": None, "seen": []}


class BrokenPromiseError(Exception):
    """A promise that a case broke."""


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    folder = _watched["folder"]
    if folder is None:
        return
    if event.startswith(_FORBIDDEN):
        _watched["seen"].append(f"{event} {arguments!r:.200}")
    elif event == "open" and isinstance(arguments[0], str | bytes):
        writes = bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        path = str(Path(os.fsdecode(arguments[0])).absolute())
        if writes and not path.startswith(_MAY_WRITE):
            _watched["seen"].append(f"open for writing: {path}")


sys.addaudithook(_watch)


def run_case(target: str, seed: int, folder: Path) -> None:
    """Run a case in an empty folder; raises `BrokenPromiseError` where a promise does not hold."""
    source = np.random.default_rng([list(TARGETS).index(target), seed])
    os.chdir(folder)
    with warnings.catch_warnings(record=True) as told, _watching(folder):
        warnings.simplefilter("always")
        TARGETS[target](source, folder)
    for warning in told:
        if not issubclass(warning.category, HeckmanfaWarning | DeprecationWarning):
            kind, where = warning.category.__name__, f"{warning.filename}:{warning.lineno}"
            raise BrokenPromiseError(
                f"a warning that is not ours: {kind}: {warning.message} {where}"
            )


@contextmanager
def _watching(folder: Path) -> Iterator[None]:
    _watched.update(folder=str(folder), seen=[])
    try:
        yield
    finally:
        _watched["folder"] = None
    if _watched["seen"]:
        raise BrokenPromiseError(f"input made the package do this: {_watched['seen'][0]}")


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _command(folder: Path, arguments: list[str]) -> bool:
    """Run the command line; True where it ended well. A failure must leave no trace."""
    before = _contents(folder)
    result = CliRunner().invoke(app, arguments)
    error, said = result.exception, result.output
    if error is not None and not isinstance(error, SystemExit):
        raise BrokenPromiseError(f"{arguments}: {type(error).__name__}: {error}") from error
    if "unexpected error" in said or "Traceback" in said:
        raise BrokenPromiseError(f"{arguments}: {said[-2000:]}")
    if strange := [
        character for character in said if not character.isprintable() and character not in "\n\t\r"
    ]:
        raise BrokenPromiseError(f"{arguments}: prints {strange[0]!r}")
    if longest := [line for line in said.splitlines() if len(line) > 4000]:
        raise BrokenPromiseError(f"{arguments}: prints a line of {len(longest[0])} characters")
    after = _contents(folder)
    if result.exit_code == 0:
        lost = [name for name in before if after.get(name) != before[name]]
        hidden = [name for name in after if name.startswith(".") and name not in before]
        if lost or hidden:
            raise BrokenPromiseError(f"{arguments}: changed {lost}, left {hidden}")
        return True
    if result.exit_code != 2:
        raise BrokenPromiseError(f"{arguments}: exit status {result.exit_code}: {said[-2000:]}")
    if after != before:
        raise BrokenPromiseError(
            f"{arguments}: failed, and left {sorted(set(after) ^ set(before))}"
        )
    return False


def _ours(call: Callable[[], Any], what: str) -> Any:
    """Call Python's side; an error must be one of ours."""
    try:
        return call()
    except HeckmanfaError:
        return None
    except Exception as error:
        raise BrokenPromiseError(f"{what}: {type(error).__name__}: {error}") from error


# Targets. -----------------------------------------------------------------------------------------


def _csv(source: Source, folder: Path) -> None:
    """Bytes of text tables, through fit and predict."""
    (folder / "t.csv").write_bytes(spoil(source, csv_bytes(source, table(source))))
    arguments = ["fit", "t.csv", "--outcome", "y", "--json", "r.json", "--save", "m.heckmanfa"]
    if source.random() < 0.1:
        arguments += ["--report", "r.html"]
    if _command(folder, arguments):
        json.loads((folder / "r.json").read_text(encoding="utf-8"))
        (folder / "u.csv").write_bytes(spoil(source, csv_bytes(source, table(source))))
        _command(folder, ["predict", "m.heckmanfa", "u.csv", "--out", "p.csv"])


def _parquet(source: Source, folder: Path) -> None:
    """Bytes of Parquet files, loaded, in passes, and scanned from Python."""
    (folder / "t.parquet").write_bytes(spoil(source, parquet_bytes(source, table(source))))
    above = pick(source, ["0", "1"])
    arguments = ["fit", "t.parquet", "--outcome", "y", "--stream-above", above]
    if _command(folder, [*arguments, "--save", "m.heckmanfa"]):
        out = pick(source, ["p.csv", "p.parquet"])
        _command(
            folder, ["predict", "m.heckmanfa", "t.parquet", "--out", out, "--stream-above", above]
        )

    def scan() -> None:
        outcome = pick(source, ["y", "y", "works", "g", "flag"])
        rows = scan_parquet(folder / "t.parquet", outcome=outcome)
        pick(source, [HeckmanBestSubset(), HeckmanAverage(), HeckmanProbit()]).fit(rows)

    _ours(scan, "scan_parquet")


def _saved(source: Source, folder: Path) -> bytes:
    """A model file that is as it should be: of the command line, of Python, or of an old format."""
    frame = table(np.random.default_rng(int(source.integers(8))), 80)
    frame.to_csv(folder / "t.csv", index=False)
    path = folder / "m.heckmanfa"
    if source.random() < 0.1:
        return pick(source, sorted(_OLD_FILES.glob("*.skops"))).read_bytes()
    if source.random() < 0.5:
        model = _ours(lambda: _fitted(source, frame), "fit")
        candidates = bool(source.random() < 0.5)
        if model is not None:
            _ours(lambda: save(model, path, candidates=candidates), "save")
    else:
        search = pick(source, ["best-subset", "average"])
        fit = ["fit", "t.csv", "--outcome", "y", "--search", search, "--save", "m.heckmanfa"]
        _command(folder, fit)
    if not path.exists():
        return b""
    data = path.read_bytes()
    path.unlink()
    return data


def _fitted(source: Source, frame: pd.DataFrame) -> Any:
    """Fit a model in Python: by formulas, to columns of several types, or to a matrix."""
    if source.random() < 0.3:
        outcome, kind = pick(source, [("y", Heckman), ("y > 1", HeckmanProbit)])
        return kind.from_formula(f"{outcome} ~ a + poly(b, 2)", "~ a + b + np.exp(b)", frame)
    options = {"on_collinear": "drop", "unknown": pick(source, ["error", "missing"])}
    y = frame["y"]
    if source.random() < 0.3:
        options["outcome_transform"] = pick(source, ["log", "log1p"])
        y = y.abs() + 0.1
    kind = pick(source, [Heckman, HeckmanBestSubset, HeckmanAverage, NaiveOLS, HeckmanProbit])
    if kind in (NaiveOLS, HeckmanProbit):
        options.pop("outcome_transform", None)
    if kind is HeckmanProbit:
        y = pd.Series(np.where(y > 1, "yes", "no"), dtype=object).where(y.notna(), None)
    if kind in (Heckman, HeckmanProbit) and source.random() < 0.3:
        options["rho"] = pick(source, [0.0, 0.3, -0.9])
    X = frame.drop(columns="y")
    if source.random() < 0.2:
        X = X[[name for name in ("a", "b") if name in X]].to_numpy()
    return kind(**options).fit(X, y)


def _model(source: Source, folder: Path) -> None:
    """Model files: bytes spoiled, archives forged, and values inside replaced in a sound one."""
    data = _saved(source, folder)
    if not data:
        return
    way = source.random()
    if way < 0.15 or b"schema.json" in data:
        data = spoil(source, data)
    else:
        data = _forged(source, data) if way < 0.25 else _replaced(source, data)
    (folder / "m.heckmanfa").write_bytes(data)
    _command(folder, ["predict", "m.heckmanfa", "t.csv", "--out", "p.csv"])

    def read() -> None:
        model = load(folder / "m.heckmanfa")
        for name in ("tidy", "vcov", "summary", "diagnostics"):
            if hasattr(model, name):
                _ours(lambda name=name: str(getattr(model, name)()), name)
        frame = pd.read_csv(folder / "t.csv")
        frame.to_parquet(folder / "t.parquet")
        rule = pick(source, ["error", "missing"])
        with warnings.catch_warnings():
            # scikit-learn says so wherever a model without names gets a frame.
            warnings.filterwarnings("ignore", ".*was fitted without feature names")
            _ours(lambda: model.predict(frame, unknown=rule), "predict")
        _ours(lambda: list(predict_batches(model, folder / "t.parquet")), "predict_batches")

    _ours(read, "load, summary, diagnostics, predict")


_HOSTILE_NAMES = (
    "os.system",
    "builtins.eval",
    "builtins.exec",
    "subprocess.Popen",
    "heckmanfa.cli.commands.main",
    "heckmanfa.data.files.outputs.replacing",
    "numpy.load",
    "numpy.fromfile",
    "functools.partial",
    "sklearn.linear_model.LinearRegression",
    "a.__class__.__base__.__subclasses__()",
    "a.to_csv('stolen.csv')",
    "{a.to_csv('stolen.csv')}",
    "np.save('stolen', a)",
    "(lambda: a)()",
    "[a for a in (1,)][0]",
    "f'{a}'",
    "9**9**9",
)


def _replaced(source: Source, data: bytes) -> bytes:
    """Change the description of a model, its arrays and their headers, in a sound archive."""
    members = {name: bytes(content) for name, content in unpack(data).items()}
    document = json.loads(members["model.json"])
    for _ in range(int(source.integers(1, 4))):
        _change(source, document if source.random() < 0.1 else document["model"])
    members["model.json"] = json.dumps(document).encode()
    arrays = [name for name in members if name.endswith(".npy")]
    if arrays and source.random() < 0.4:
        name = pick(source, arrays)
        members[name] = _other_array(source, members[name])
    return pack(members)


def _other_array(source: Source, content: bytes) -> bytes:
    """Spoil the bytes of an array, forge its header, or change its numbers or its shape."""
    way = source.random()
    if way < 0.2:
        return spoil(source, content)
    stream = io.BytesIO()
    if way < 0.5:
        sizes = [0, 1, 2, 8, 10**5, 10**9, 2**62, -1]
        shape = tuple(int(pick(source, sizes)) for _ in range(int(source.integers(0, 4))))
        kind = pick(source, ["<f8", "<f4", ">f8", "|b1", "<i8", "|u1", "|O", "<U9", "|V8", "<c16"])
        header = {"descr": kind, "fortran_order": bool(source.random() < 0.5), "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        return stream.getvalue() + content[128:]
    array = np.load(io.BytesIO(content))
    if way < 0.8 and array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            array = array * pick(source, [0.0, -1.0, 1e-300, 1e99, 1e300, np.nan, np.inf])
    else:
        array = pick(source, [array[:0], array[:1], array.T, array[None], array[..., ::-1]])
    np.save(stream, array)
    return stream.getvalue()


def _forged(source: Source, data: bytes) -> bytes:
    """Write the members in another way: compressed, twice, with others, or after other bytes."""
    members = [(name, bytes(content)) for name, content in unpack(data).items()]
    names = ["extra.npy", "../up.npy", "/root.npy", "model.json", "0.npy", "a" * 999, "b\\c", "d/"]
    if source.random() < 0.5:
        members.append((pick(source, names), pick(source, [b"", bytes(10**6), members[0][1]])))
    if source.random() < 0.3:
        source.shuffle(members)
    if source.random() < 0.3:
        data = pack(dict(members))
    else:
        buffer = io.BytesIO()
        kind = pick(source, [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
        with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", kind) as archive:
            # A name twice is a forgery of ours, and nothing that the package should say.
            warnings.simplefilter("ignore")
            archive.comment = pick(source, [b"", b"comment"])
            for name, content in members:
                archive.writestr(name, content)
        data = buffer.getvalue()
    before = pick(source, [b"", b"", b"#!/bin/sh\n", b"PK\x03\x04", data[:40]])
    return before + data + pick(source, [b"", b"", b"more", data])


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) below a JSON value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    found = []
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found += _places(value[key])
    return found


def _change(source: Source, tree: Any) -> None:
    places = _places(tree)
    if not places:
        return
    holder, key = pick(source, places)
    old = holder[key]
    plain = [None, -1, 0, 1, 2, 10**9, 2**62, 1e300, 0.5, [], {}, [0], True, {"float": "nan"}]
    new: Any = pick(source, [*_HOSTILE_NAMES, *HOSTILE_TEXT, *plain, *plain])
    if isinstance(old, list) and source.random() < 0.5:
        new = pick(source, [old * 2, old[:-1], old[::-1], [*range(10**4)], [old]])
    if isinstance(old, int | float) and source.random() < 0.5:
        new = pick(source, [old + 1, old - 1, -old, old * 2, 0, 0.0, float(old)])
    if isinstance(old, str) and source.random() < 0.5:
        other_holder, other = pick(source, places)
        if isinstance(other_holder[other], str):
            new = other_holder[other]
    holder[key] = new


# One character is a word of its own; these are longer.
_FORMULA_WORDS = (
    *"yabcgw1029.+-*/:^|~(){}[],`=<>%@&!$\"'\\\n\x00é",
    *("-1", "**", "==", "C(", "I(", "np.", "log(", "exp(", "scale(", "center(", "poly(a,2)"),
    *("bs(a,df=4)", "Q('a')", "hashed(g)", "lag(a)", "np.log(b)", "I(a**2)", "I(c^2)", "C(g)"),
    *("C(g,contr.sum)", "contr.treatment", "contr.", "a:g", "1e9", "0/0", "`no such`"),
    *("a.__class__", "lambda: a"),
)


def _formula(source: Source, folder: Path) -> None:
    """Formulas put together from what formulas are made of."""
    frame = table(source)
    sides = []
    left = pick(source, [["y"], ["y", ">", "1"], ["g"], ["works", "==", "1"], ["flag"]])
    for start in ([*left, "~"], pick(source, [["~"], [], ["works", "~"], ["a", ">", "0", "~"]])):
        words = [pick(source, _FORMULA_WORDS) for _ in range(int(source.integers(0, 7)))]
        plain = ["a", "+", "b"] if source.random() < 0.5 else []
        glue = ["+"] if plain and words else []
        sides.append("".join([*start, *plain, *glue, *words]))
    kind = pick(source, [Heckman, HeckmanProbit])
    model = _ours(
        lambda: kind.from_formula(*sides, frame), f"{kind.__name__}.from_formula{tuple(sides)}"
    )
    if model is not None:
        _ours(lambda: model.predict(frame), f"predict after {sides}")
        _ours(lambda: str(model.summary()), f"summary after {sides}")
        _ours(lambda: model.margins(frame), f"margins after {sides}")
        term = pick(source, list(model.tidy()["term"]))
        _ours(lambda: model.wald_test(f"{term} = 0"), f"wald_test of {term!r}")


_OPTIONS: dict[str, tuple[str, ...]] = {
    "--outcome": ("y", "a", "works", "nothing", ""),
    "--selected": ("works", "flag", "a", "y", "nothing"),
    "--features": ("a,b", "a", "y", "a,a", "nothing", "", '"a'),
    "--exclude": ("g", "a,b", "y", "nothing"),
    "--predict-with": ("a", "b,g", "y", "nothing"),
    "--always": ("a", "g", "nothing"),
    "--select-only": ("a", "b", "y"),
    "--search": ("best-subset", "average", "fa-star", "correlation", "none", "lasso", "x"),
    "--criterion": ("bic", "ebic", "aic", "adjusted_r2", "corrected_bic", "x"),
    "--rho-range": ("-0.5 0.5", "0.5 -0.5", "2 3", "nan 1", "1"),
    "--method": ("ml", "two-step", "x"),
    "--start": ("0.5", "-0.9", "2", "x"),
    "--weights": ("w", "a", "c", "y", "nothing"),
    "--weight-kind": ("sampling", "frequency", "x"),
    "--cluster": ("g", "c", "y", "nothing"),
    "--missing": ("mean", "drop", "x"),
    "--categorical": ("c", "a", "y", "nothing"),
    "--numeric": ("g", "when", "nothing"),
    "--decimal": (",", ".", "x", ""),
    "--thousands": (",", ".", "'", "x"),
    "--header-row": ("0", "1", "2", "9999999"),
    "--sheet": ("1", "Notes"),
    "--na-values": ("-99", "a=1", "g=x", "nothing=1", "a=", "="),
    "--dates": ("days", "years", "x"),
    "--min-level-rows": ("2", "50", "-1", "x"),
    "--seed": ("1", "-1", "x"),
    "--device": ("cpu", "cuda", "x"),
    "--stream-above": ("0", "-1", "nan"),
    "--report": ("r.html", "t.csv", "/dev/full", ".", "no/r.html", "r.pdf"),
    "--save": ("m.heckmanfa", "t.csv", "r.html"),
    "--json": ("r.json", "r.html", "t.csv", "m.heckmanfa", "-"),
    "--kind": ("marginal", "selected", "unselected", "selection", "joint", "x"),
    "--interval": ("prediction", "confidence", "x"),
    "--out": ("p.csv", "t.csv", "p.parquet", "p.xyz", "m.heckmanfa", "/dev/null"),
    "--rows": ("10", "0", "-1", "100"),
    "--predicting": ("0", "2", "99"),
    "--rho": ("0.5", "1", "2", "nan"),
    "--sigma": ("0", "-1", "nan", "1e300"),
    "--truth": ("truth.json", "p.csv"),
    "--names": ("a", "a,b", "a,a", "1,\x1b[2J"),
    "--digits": ("0", "3", "99"),
    "--under": ("t", "none", "sd"),
    "--stars": ("0.05", "0.1,0.05", "5", "x"),
}
_FLAGS = ("--robust", "--honest", "--force", "--keep-columns", "--no-interval", "--no-such-option")
_COMMANDS: dict[str, tuple[str, ...]] = {
    "fit": ("t.csv", "no.csv", ".", "", "t.csv t.csv", "*.csv"),
    "compare": ("t.csv", "no.csv"),
    "predict": ("m.heckmanfa t.csv", "t.csv t.csv", "m.heckmanfa", "m.heckmanfa m.heckmanfa"),
    "simulate": ("s.csv", "s.parquet", "t.csv", "s.xyz", "."),
    "table": ("m.heckmanfa", "m.heckmanfa m.heckmanfa", "t.csv", "m.heckmanfa no.heckmanfa"),
}


def _options(source: Source, folder: Path) -> None:
    """Options of every command in any combination, on a table that is fine."""
    from heckmanfa.cli import app as application

    table(source).to_csv(folder / "t.csv", index=False)
    # A comparison takes as long as fifty fits.
    command = pick(source, [*_COMMANDS, *["fit", "predict", "simulate"] * 8])
    if command in ("predict", "table"):
        _command(folder, ["fit", "t.csv", "--outcome", "y", "--save", "m.heckmanfa"])
    arguments = [command, *pick(source, _COMMANDS[command]).split(" ")]
    if source.random() < 0.7:
        arguments[1:] = _COMMANDS[command][0].split(" ")
    known = _known_options(application, command)
    if "--outcome" in known and source.random() < 0.8:
        arguments += ["--outcome", "y"]
    for _ in range(int(source.integers(0, 5))):
        option = pick(source, sorted({*_OPTIONS, *_FLAGS} & known)) if known else "--report"
        arguments += [option, *pick(source, _OPTIONS.get(option, ("",))).split(" ")]
        if option in _FLAGS:
            arguments.pop()
    if "--force" in arguments:
        _command_that_may_replace(folder, arguments)
    else:
        _command(folder, arguments)


def _known_options(application: Any, command: str) -> set[str]:
    import typer

    found = typer.main.get_command(application).commands[command]  # type: ignore[attr-defined]
    return {text for parameter in found.params for text in parameter.opts}


def _command_that_may_replace(folder: Path, arguments: list[str]) -> None:
    """With --force outputs of before may change, but never the input."""
    before = (folder / "t.csv").read_bytes()
    try:
        _command(folder, arguments)
    except BrokenPromiseError as error:
        if ": changed [" not in str(error):
            raise
    if arguments[0] != "simulate" and (folder / "t.csv").read_bytes() != before:
        raise BrokenPromiseError(f"{arguments}: replaced its input")


TARGETS: dict[str, Callable[[Source, Path], None]] = {
    "csv": _csv,
    "parquet": _parquet,
    "model": _model,
    "formula": _formula,
    "options": _options,
}
