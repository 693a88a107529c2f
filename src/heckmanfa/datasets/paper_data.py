"""The paper's two data sets, split as in the paper or in other ways with the same protocol.

Their files are not part of the package: they come from the user's folder, the cache or a download.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.files.outputs import make_folder, outputs
from heckmanfa.data.random_state import generator
from heckmanfa.errors import DataError, InputError

if TYPE_CHECKING:
    import pandas as pd

Split = Literal["paper", "stable", "random"]

_SHARE = 0.7


@dataclass(frozen=True)
class DataFile:
    """A file to find or download."""

    name: str
    url: str
    sha256: str
    """hash of what the source publishes"""
    stripped_sha256: str | None = None
    """hash of a copy without the columns that ``strip`` drops"""
    strip: Callable[[bytes], bytes] | None = None
    """applied to a download before it is stored"""


def cache_folder() -> Path:
    """Return the folder of stored downloads."""
    # Imported here because most users never download.
    import pooch

    return Path(pooch.os_cache("heckmanfa"))


def find(file: DataFile) -> Path:
    """Return the path of a file whose hash is known.

    It is downloaded if it is neither in the folder that HECKMANFA_DATA names nor in the cache.
    """
    known = {hash_ for hash_ in (file.sha256, file.stripped_sha256) if hash_ is not None}
    folder = os.environ.get("HECKMANFA_DATA")
    if folder is not None and (Path(folder) / file.name).exists():
        return _checked(Path(folder) / file.name, file, known)
    cached = cache_folder() / file.name
    seal = cached.with_name(file.name + ".sha256")
    if not cached.exists() or not seal.exists():
        content = _download(file)
        if file.strip is not None:
            content = file.strip(content)
        make_folder(cached.parent)
        # Both or neither: an interrupted download never passes for the file.
        with outputs({"the file": cached, "its sha256": seal}, force=True) as places:
            with places["the file"].writing() as place:
                place.write_bytes(content)
            with places["its sha256"].writing() as place:
                place.write_text(hashlib.sha256(content).hexdigest(), encoding="utf-8")
    return _checked(cached, file, {seal.read_text(encoding="utf-8").strip()})


def _checked(path: Path, file: DataFile, known: set[str]) -> Path:
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    if sha256 not in known:
        raise DataError(
            f"{path} is not the expected file: its sha256 is {sha256}, not "
            f"{' or '.join(sorted(known))}. It is damaged or another version. Remove it to "
            f"download it again, or put a copy of {file.url} there."
        )
    return path


def _download(file: DataFile) -> bytes:
    import pooch

    advice = (
        f"Put a copy named {file.name} in a folder and set the environment variable "
        "HECKMANFA_DATA to that folder."
    )
    with TemporaryDirectory() as folder:
        try:
            path = pooch.retrieve(
                file.url, known_hash=f"sha256:{file.sha256}", fname=file.name, path=folder
            )
        except ValueError as error:  # how pooch reports a wrong hash
            raise DataError(
                f"the download of {file.url} is not the expected file, whose sha256 is "
                f"{file.sha256}: it is damaged or the source has changed. Try again. {advice}"
            ) from error
        except Exception as error:  # networks and disks fail in many ways
            raise DataError(
                f"{file.name} could not be downloaded from {file.url} ({type(error).__name__}: is "
                f"there a network?). {advice}"
            ) from error
        return Path(path).read_bytes()


@dataclass(frozen=True, eq=False)
class PaperData:
    """A data set with hidden outcomes: n training rows, of which m keep theirs, and test rows."""

    name: str
    split: Split
    X: pd.DataFrame = field(repr=False)
    """features of the n training rows, as in the source"""
    y: Floats = field(repr=False)
    """outcome of the training rows, NaN where it is hidden, (n,)"""
    X_test: pd.DataFrame = field(repr=False)
    """features of the test rows"""
    y_test: Floats = field(repr=False)
    """outcome of the test rows"""
    complete_y: Floats = field(repr=False)
    """outcome of every training row, including the hidden ones, (n,)"""
    feature_names: tuple[str, ...] = field(repr=False)
    target_name: str
    description: str = field(repr=False)
    citation: str = field(repr=False)
    licence: str = field(repr=False)

    @property
    def selected(self) -> NDArray[np.bool_]:
        """Which training rows keep their outcome, (n,)."""
        return np.asarray(~np.isnan(self.y))


def _members(file: str) -> NDArray[np.int64]:
    """Read row numbers or ids that ship with the package, one per line under a heading."""
    text = files("heckmanfa.datasets").joinpath("data", file).read_text(encoding="utf-8")
    return np.array([int(line) for line in text.split()[1:]])


def _assemble(
    frame: pd.DataFrame,
    features: list[str],
    outcome: Floats,
    key: Floats,
    *,
    split: Split,
    random_state: Any,
    ids: NDArray[np.int64],
    selected_ids: str,
    **metadata: Any,
) -> PaperData:
    """Split rows 70/30, and hide the outcome of the 30% of training rows highest on a key.

    The paper's split keeps the rows whose ids are in the file `selected_ids`.
    """
    splits = get_args(Split)
    if split not in splits:
        raise InputError(f"split must be one of {', '.join(splits)}; got {split!r}")
    if split != "random" and random_state is not None:
        raise InputError(f"random_state is used with split='random' only; the split is {split!r}")
    n_rows = len(frame)
    n = int(_SHARE * n_rows)
    order = np.arange(n_rows)
    if split == "random":
        order = generator(random_state).permutation(n_rows)
    train, test = order[:n], order[n:]
    if split == "paper":
        kept = np.isin(ids[train], _members(selected_ids))
    else:
        # Ties at the cut go to the earlier row.
        lowest = np.argsort(key[train], kind="stable")[: int(_SHARE * n)]
        kept = np.zeros(n, dtype=bool)
        kept[lowest] = True
    X = frame[features].astype(np.float64)
    return PaperData(
        split=split,
        X=X.iloc[train].reset_index(drop=True),
        y=np.where(kept, outcome[train], np.nan),
        X_test=X.iloc[test].reset_index(drop=True),
        y_test=outcome[test],
        complete_y=outcome[train],
        feature_names=tuple(features),
        **metadata,
    )


_CRIME = DataFile(
    name="communities.data",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/communities/communities.data",
    sha256="09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea",
)


def crime_frame() -> pd.DataFrame:
    """Read every complete numeric column of CRIME, in the order of the file."""
    # Imported here, as below, because the simulator must stay cheap to import.
    import pandas as pd

    columns = files("heckmanfa.datasets").joinpath("data", "crime_columns.txt").read_text().split()
    frame = pd.read_csv(find(_CRIME), header=None, names=columns, na_values="?")
    frame = frame.drop(columns=["state", "county", "community", "communityname", "fold"])
    frame["OtherPerCap"] = frame["OtherPerCap"].fillna(frame["OtherPerCap"].mean())
    return frame.dropna(axis=1)


def fetch_crime(split: Split = "paper", *, random_state: Any = None) -> PaperData:
    """CRIME: violent crimes in 1,994 communities in the United States (UCI).

    It has 26 features. The outcome is kept for the 70% of training communities with the fewest
    people under the poverty level (NumUnderPov).

    Parameters
    ----------
    split : {"paper", "stable", "random"}
        "paper": the first 70% of the rows train, and the selected rows are the paper's, which
        broke ties at random. "stable": the same with ties broken by row order. "random": a random
        70% of the rows train.
    random_state : int, numpy.random.Generator or RandomState, optional
        Used with "random" only.

    Notes
    -----
    The file is searched for in the folder that the environment variable HECKMANFA_DATA names,
    then in the cache, and otherwise downloaded from UCI.
    """
    frame = crime_frame()
    return _assemble(
        frame,
        list(frame.columns[1:27]),
        frame["ViolentCrimesPerPop"].to_numpy(np.float64),
        frame["NumUnderPov"].to_numpy(np.float64),
        split=split,
        random_state=random_state,
        ids=np.arange(len(frame)),
        selected_ids="crime_rows.txt",
        name="CRIME",
        target_name="ViolentCrimesPerPop",
        description=(
            "Communities and Crime: socio-economic features of 1,994 communities in the United "
            "States and their violent crimes per population, all scaled to 0 to 1. The outcome of "
            "30% of the training communities is hidden: those with the most people in poverty."
        ),
        citation=(
            "Redmond, M. (2009). Communities and Crime [Dataset]. UCI Machine Learning Repository. "
            "https://doi.org/10.24432/C53W3X"
        ),
        licence="CC BY 4.0, by the UCI Machine Learning Repository; not part of this package.",
    )


_PERSONAL = (
    *("name", "first", "last", "dob"),
    *("c_case_number", "r_case_number", "vr_case_number"),
)


def _without_people(content: bytes) -> bytes:
    """Drop the columns that identify people."""
    import pandas as pd

    frame = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    return frame.drop(columns=list(_PERSONAL), errors="ignore").to_csv(index=False).encode()


_COMPAS = DataFile(
    name="compas-scores-two-years.csv",
    url=(
        "https://raw.githubusercontent.com/propublica/compas-analysis/master/"
        "compas-scores-two-years.csv"
    ),
    sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    stripped_sha256="3bbc3288b268942fe3166bb6bfc0b6dbde3f31ed839ea636fffa1a6457d2c9f4",
    strip=_without_people,
)


def compas_frame() -> pd.DataFrame:
    """Read all 7,214 rows of COMPAS as ProPublica published them; empty cells are empty text."""
    import pandas as pd

    return pd.read_csv(find(_COMPAS), keep_default_na=False)


def fetch_compas(split: Split = "paper", *, random_state: Any = None) -> PaperData:
    """COMPAS: risk scores of 5,278 defendants in Florida (ProPublica).

    It has 10 features. The outcome, a fifth of the decile score, is kept for the 70% of training
    defendants with the lowest score: selection is on the outcome itself, as in the paper.

    Parameters
    ----------
    split, random_state
        See `fetch_crime`.

    Notes
    -----
    The file is found as for `fetch_crime`, or downloaded from ProPublica's repository. Names,
    birth dates and case numbers are dropped before it is stored.
    """
    import pandas as pd

    frame = compas_frame()
    frame = frame[
        pd.to_numeric(frame["days_b_screening_arrest"]).between(-30, 30)
        & (frame["is_recid"] != -1)
        & (frame["c_charge_degree"] != "O")
        & (frame["score_text"] != "N/A")
        & frame["race"].isin(["African-American", "Caucasian"])
    ].reset_index(drop=True)
    frame["sex"] = (frame["sex"] == "Male").astype(np.float64)
    dummies = {
        "age_cat_25 - 45": ("age_cat", "25 - 45"),
        "age_cat_Greater than 45": ("age_cat", "Greater than 45"),
        "race_Caucasian": ("race", "Caucasian"),
        "c_charge_degree_M": ("c_charge_degree", "M"),
    }
    for name, (column, level) in dummies.items():
        frame[name] = (frame[column] == level).astype(np.float64)
    counts = ["juv_fel_count", "juv_misd_count", "priors_count", "two_year_recid"]
    return _assemble(
        frame,
        ["sex", "age", *counts, *dummies],
        0.2 * frame["decile_score"].to_numpy(np.float64),
        frame["decile_score.1"].to_numpy(np.float64),
        split=split,
        random_state=random_state,
        ids=frame["id"].to_numpy(),
        selected_ids="compas_ids.txt",
        name="COMPAS",
        target_name="decile_score x 0.2",
        description=(
            "COMPAS: features of 5,278 defendants in Broward County, Florida, and the decile of "
            "their risk score, times 0.2. The outcome of 30% of the training rows is hidden: "
            "those with the highest score."
        ),
        citation=(
            "Larson, J., Mattu, S., Kirchner, L. and Angwin, J. (2016). How we analyzed the COMPAS "
            "recidivism algorithm. ProPublica. https://github.com/propublica/compas-analysis"
        ),
        licence=(
            "Published by ProPublica without a licence statement; not part of this package. Names, "
            "birth dates and case numbers are dropped."
        ),
    )
