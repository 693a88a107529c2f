"""More targets: names with decoys, sizes that lie, links and chains."""

from __future__ import annotations

import gzip
import io
import os
import re
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fuzz.answers import rows, same, service
from fuzz.cases import TARGETS, BrokenPromiseError, _command, _contents, _ours
from fuzz.material import Source, pick, table
from heckmanfa import Heckman, scan

__all__ = ["MORE"]

# Seconds of work, on any machine, beyond which a small file stops the command line.
_LONGEST = 60.0


def _estimates(model: Any) -> Any:
    return model.tidy().set_index(["equation", "term"])["estimate"]


# Names. -------------------------------------------------------------------------------------------

_PIECES = (
    "^",
    "$",
    ".",
    "*",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "'",
    '"',
    "`",
    ";",
    ":",
    "\\",
    "@",
    "#",
)
_WORDS = ("secret", "a", "b", "x y", "_", "T.", "count", "id", "0", "%s", "é", "-", " ")


def _hostile_names(source: Source, n: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < n:
        word = pick(source, _WORDS)
        form = int(source.integers(4))
        if form == 0:
            name = f"^{word}$"
        elif form == 1:
            name = f"{word}.{pick(source, _WORDS)}"
        else:
            parts = [pick(source, (*_PIECES, *_WORDS)) for _ in range(int(source.integers(1, 6)))]
            name = "".join([word, *parts] if form == 2 else parts)
        names[name] = None
    return list(names)


def _decoys(names: list[str]) -> list[str]:
    """Names that the others would mean as patterns, paths or expressions."""
    found = dict.fromkeys(
        decoy
        for name in names
        for decoy in (
            re.sub(r"\W", "", name),
            re.sub(r"\W", "_", name),
            name.partition(".")[0],
            name.strip("^$`'\""),
        )
    )
    return [decoy for decoy in found if decoy and decoy not in names]


def _ways(frame: pd.DataFrame, folder: Path) -> dict[str, Callable[[], Any]]:
    """The table as each engine has it."""

    def polars() -> Any:
        import polars as pl

        return pl.from_pandas(frame).lazy()

    def duckdb() -> Any:
        import duckdb
        import pyarrow as pa

        return duckdb.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))

    def dataset() -> Any:
        import pyarrow as pa
        import pyarrow.dataset as ds

        return ds.dataset(pa.Table.from_pandas(frame, preserve_index=False))

    def parquet() -> Any:
        frame.to_parquet(folder / "t.parquet", index=False)
        return folder / "t.parquet"

    def feather() -> Any:
        frame.to_feather(folder / "t.feather")
        return folder / "t.feather"

    return {
        "polars": polars,
        "duckdb": duckdb,
        "dataset": dataset,
        "parquet": parquet,
        "feather": feather,
    }


def _names(source: Source, folder: Path) -> None:
    """Names that other programs read as patterns, with the columns that these would find."""
    features = _hostile_names(source, 3)
    n = 150
    columns = {name: source.normal(size=n) for name in [*_decoys(features), *features]}
    order = [str(name) for name in source.permutation(list(columns))]
    frame = pd.DataFrame({name: columns[name] for name in order})
    index = frame[features[0]] + source.normal(size=n)
    outcome = frame[features[1]] + 0.5 * frame[features[0]] + source.normal(size=n)
    y_name = "the outcome"
    y = outcome.where(index > 0)
    plain = Heckman([0, 1], [0, 1, 2])
    want = _ours(lambda: plain.fit(frame[features].to_numpy(), y.to_numpy()), "fit")
    if want is None:
        return
    whole = frame.assign(**{y_name: y})
    model = Heckman(features[:2], features)
    ways = _ways(whole, folder)
    way = pick(source, ["pandas", "polars frame", "formula", *ways])
    if way == "pandas":
        got = _ours(lambda: model.fit(frame, y), f"fit of {features}")
    elif way == "polars frame":
        import polars as pl

        got = _ours(lambda: model.fit(pl.from_pandas(frame), y.to_numpy()), f"fit of {features}")
    elif way == "formula":
        if any("`" in name for name in features):
            return
        sides = " + ".join(f"`{name}`" for name in features[:2]), f"`{features[2]}`"
        got = _ours(
            lambda: Heckman.from_formula(
                f"`{y_name}` ~ {sides[0]}", f"~ {sides[0]} + {sides[1]}", whole
            ),
            f"formula of {features}",
        )
    else:
        opened = ways[way]()
        got = _ours(
            lambda: model.fit(scan(opened, y_name, features)), f"scan of {features} by {way}"
        )
    if got is None:
        return
    names = {f"x{place}": name for place, name in enumerate(features)}
    expected = want.tidy()
    expected["term"] = [names.get(term, term) for term in expected["term"]]
    mine = got.tidy()
    if way != "formula":
        keys = list(zip(expected["equation"], expected["term"], strict=True))
        same(_estimates(got)[keys], expected["estimate"], f"{features} by {way}")
        predicted = _ours(lambda: got.predict(frame), f"predict of {features}")
        if predicted is not None:
            same(predicted, want.predict(frame[features].to_numpy()), f"predict of {features}")
    else:
        same(np.sort(mine["estimate"]), np.sort(expected["estimate"]), f"{features} by {way}")


# Sizes. -------------------------------------------------------------------------------------------


def _cell(source: Source) -> str:
    """A cell that is long, or makes a pattern go back and forth."""
    length = int(10 ** source.uniform(2, 5.3))
    unit = pick(source, ["1", "1,", "1.", "1 ", "'", "a", "(", "://a", "?", "a:", "-", "=", "0x"])
    return str(unit * (length // len(unit)) + pick(source, ["", "x", "@", "%", ")", "\0"]))


def _plain(source: Source) -> pd.DataFrame:
    """A table that every program can write."""
    return (
        table(np.random.default_rng(int(source.integers(50))), 50)
        .reindex(columns=["y", "a", "b"])
        .apply(pd.to_numeric, errors="coerce")
    )


def _far_sheet(source: Source, path: Path) -> None:
    rows = int(10 ** source.uniform(0, 7))
    letters = "".join(pick(source, "ABXFD") for _ in range(int(source.integers(1, 5))))
    buffer = io.BytesIO()
    _plain(source).to_excel(buffer, index=False)
    with (
        zipfile.ZipFile(buffer) as given,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        for name in given.namelist():
            data = given.read(name)
            if name == "xl/worksheets/sheet1.xml":
                cell = f'<row r="{rows}"><c r="{letters}{rows}"><v>1</v></c></row></sheetData>'
                data = data.replace(b"</sheetData>", cell.encode())
            made.writestr(name, data)
        if source.random() < 0.3:
            with made.open("xl/sharedStrings.xml", "w", force_zip64=True) as member:
                for _ in range(int(source.integers(1, 200))):
                    member.write(b"x" * 2**20)


def _claimed_stata(source: Source, path: Path) -> None:
    frame = _plain(source)
    frame.to_stata(path, write_index=False, version=pick(source, [114, 117, 118]))
    data = bytearray(path.read_bytes())
    for _ in range(int(source.integers(1, 4))):
        at = int(source.integers(0, min(len(data), 200)))
        data[at] = int(source.integers(256))
    if data.startswith(b"<stata_dta>") and source.random() < 0.7:
        at = data.find(b"<N>") + 3
        data[at : at + 8] = int(2 ** source.uniform(0, 62)).to_bytes(8, "little")
    path.write_bytes(data)


def _shared_text(source: Source, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = int(10 ** source.uniform(2, 5))
    text = "x" * int(10 ** source.uniform(1, 6))
    texts = [text, text + "y"]
    codes = source.integers(0, 2, n).astype(np.int32)
    shared = pa.DictionaryArray.from_arrays(codes, pa.array(texts))
    y = np.where(source.random(n) < 0.6, source.normal(size=n), np.nan)
    made = pa.table({"y": y, "a": source.normal(size=n), "b": source.normal(size=n), "t": shared})
    store = bool(source.random() < 0.5)
    if path.suffix == ".parquet":
        pq.write_table(made, path, compression="zstd", store_schema=store)
    else:
        from pyarrow import feather

        feather.write_feather(made, path, compression="zstd")


def _text_bomb(source: Source, path: Path) -> None:
    columns = int(10 ** source.uniform(0.5, 3))
    lines = int(10 ** source.uniform(2, 6))
    header = ",".join(["y", *(f"c{column}" for column in range(columns))])
    line = pick(source, ["1\n", "\n", "1,2\n", "1", ",\n", "x" * 50, "1\r", '"'])
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w", newline="") as file:
        file.write(header + "\n")
        for _ in range(10):
            file.write(line * (lines // 10))


def _pumped(source: Source, path: Path) -> None:
    frame = table(source).astype(object)
    for _ in range(int(source.integers(1, 5))):
        frame.iloc[int(source.integers(len(frame))), int(source.integers(frame.shape[1]))] = _cell(
            source
        )
    if source.random() < 0.2:
        frame = frame.rename(columns={frame.columns[1]: _cell(source).replace("\0", "")})
    frame.to_csv(path, index=False)


def _sizes(source: Source, folder: Path) -> None:
    """Files that claim more than they hold, or hold more than they show; cells that are long."""
    makers: list[tuple[str, Callable[[Source, Path], None]]] = [
        ("t.xlsx", _far_sheet),
        ("t.dta", _claimed_stata),
        ("t.parquet", _shared_text),
        ("t.feather", _shared_text),
        ("t.csv.gz", _text_bomb),
        ("t.csv", _text_bomb),
        ("t.csv", _pumped),
    ]
    name, make = pick(source, makers)
    make(source, folder / name)
    start = time.process_time()
    above = ["--stream-above", pick(source, ["0", "1"])] if name.endswith("t") else []
    arguments = ["fit", name, "--outcome", "y", "--search", "none", "--save", "m.heckmanfa", *above]
    if _command(folder, arguments):
        _command(folder, ["predict", "m.heckmanfa", name, "--out", "p.csv", *above])
    used = time.process_time() - start
    if used > _LONGEST:
        raise BrokenPromiseError(f"{name}: {used:.0f} seconds of work")


# Links and chains. --------------------------------------------------------------------------------


def _places(source: Source, folder: Path) -> None:
    """Links of other users in a shared folder, and addresses that chain file systems."""
    private, shared = folder / "private", folder / "shared"
    private.mkdir()
    shared.mkdir()
    shared.chmod(pick(source, [0o1777, 0o1777, 0o777, 0o755]))
    for name in ("t.csv", "u.csv"):
        table(source, 80).to_csv(private / name, index=False)
    (private / "keep.csv").write_text("keep")
    links: dict[str, bool] = {}
    for number in range(int(source.integers(1, 5))):
        target = pick(
            source,
            [
                private / "t.csv",
                private / "keep.csv",
                private / "new.csv",
                private,
                *links,
                "..",
                ".",
            ],
        )
        name = f"l{number}" + pick(source, ["", ".csv", ".html", ".heckmanfa"])
        (shared / name).symlink_to(target)
        links[name] = os.geteuid() == 0 and bool(source.random() < 0.7)
        if links[name]:
            os.lchown(shared / name, 12345, 12345)
    is_sticky = shared.stat().st_mode & 0o1002 == 0o1002
    before = _contents(private)
    through = pick(source, [*links])
    below = pick(source, ["", "/t.csv", "/new.csv", "/../private/t.csv"])
    if source.random() < 0.2:
        chain = "::".join(
            pick(
                source,
                ["zip://t.csv", "simplecache", "file:///etc/passwd", "s3://b/t.parquet", "x"],
            )
            for _ in range(int(source.integers(2, 4)))
        )
        if "://" in chain and _command(folder, ["fit", chain, "--outcome", "y"]):
            raise BrokenPromiseError(f"{chain} was read")
        return
    option = pick(source, ["data", "--report", "--save", "--json"])
    place = f"shared/{through}{below}"
    force = ["--force"] if source.random() < 0.5 else []
    if option == "data":
        good = _command(folder, ["fit", place, "--outcome", "y"])
    else:
        good = _quietly(folder, ["fit", "private/u.csv", "--outcome", "y", option, place, *force])
    if good and links[through] and is_sticky:
        raise BrokenPromiseError(f"{option} {place}: the link of another user was followed")
    if (not good or (links[through] and is_sticky)) and _contents(private) != before:
        raise BrokenPromiseError(f"{option} {place}: changed files of the user")


def _quietly(folder: Path, arguments: list[str]) -> bool:
    """Run a command that may replace what a link of ours leads to."""
    try:
        return _command(folder, arguments)
    except BrokenPromiseError as error:
        if ": changed [" not in str(error):
            raise
        return True


MORE: dict[str, Callable[[Source, Path], None]] = {
    "names": _names,
    "sizes": _sizes,
    "places": _places,
    "service": service,
    "rows": rows,
}
TARGETS.update(MORE)
