"""From a table and a question to a fitted model, with every row and column accounted for.

The command line and the report are two views of an `Analysis`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.errors import HeckmanfaWarning, InputError, NoOutcomeError, UnknownFeatureError
from heckmanfa.estimators import Heckman
from heckmanfa.features import nearest
from heckmanfa.normal import Floats
from heckmanfa.rows import Mask
from heckmanfa.searches import HeckmanBestSubset, HeckmanFA
from heckmanfa.tabular.encoding import Encoding
from heckmanfa.tabular.files import read_table
from heckmanfa.tabular.values import to_numbers

__all__ = ["SEARCHES", "Analysis", "Prepared", "Question", "analyse", "prepare"]

SEARCHES = ("best-subset", "fa", "fa-star", "correlation", "none")
_EXTRACTIONS = {"fa": "sample", "fa-star": "rank", "correlation": "correlation"}
_TRUE = {"1", "1.0", "true", "t", "yes", "y"}
_FALSE = {"0", "0.0", "false", "f", "no", "n"}
# With so few features and no window, assignments that are worse by this much are found in no time:
# the report shows them all.
_FEW_FEATURES, _NEAR = 26, {"bic": 10.0, "aic": 10.0}
# So many points are enough for a picture of the training.
_PATH_POINTS = 200


@dataclass(frozen=True)
class Question:
    """What is asked of a table; the options of ``heckmanfa fit``."""

    data: str
    """path of the table"""
    outcome: str
    selected: str | None = None
    """a column of 0 and 1 that says who is selected; None takes the rows with an outcome"""
    features: tuple[str, ...] = ()
    """columns to use; all others unless given"""
    exclude: tuple[str, ...] = ()
    """columns not to use"""
    predict_with: tuple[str, ...] = ()
    """columns that may predict (with a search), or that do (without one)"""
    always: tuple[str, ...] = ()
    select_only: tuple[str, ...] = ()
    """columns that drive selection and must not predict"""
    search: str = "best-subset"
    criterion: str | None = None
    rho_range: tuple[float, float] | None = None
    method: str = "two-step"
    weights: str | None = None
    weight_kind: str = "frequency"
    cluster: str | None = None
    robust: bool = False
    missing: str = "drop"
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    honest: bool = False
    seed: int = 0

    def command(self) -> str:
        """Return the command that asks this."""
        words = ["heckmanfa", "fit", _quoted(self.data), "--outcome", _quoted(self.outcome)]
        known = {"data", "outcome"}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in known or value == one.default:
                continue
            flag = "--" + one.name.replace("_", "-")
            if isinstance(value, bool):
                words.append(flag)
            elif one.name == "rho_range":
                words += [flag, *(f"{end:g}" for end in value)]
            elif isinstance(value, tuple):
                for part in value:
                    words += [flag, _quoted(part)]
            else:
                words += [flag, _quoted(str(value))]
        return " ".join(words)


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The rows and columns that a question is about, encoded."""

    question: Question
    encoding: Encoding
    X: pd.DataFrame
    """(n, K) encoded features of the rows that miss none"""
    y: Floats
    """(n,) NaN where missing"""
    selected: Mask | None
    weight: Floats | None
    groups: Any
    n_rows: int
    """rows of the table"""
    n_columns: int
    """columns of the table"""
    missing_counts: dict[str, int]
    """rows left out because a column is missing, by column; a row may count in several"""


@dataclass(frozen=True, eq=False)
class Analysis(Prepared):
    """A question, its data and the fitted model."""

    model: Heckman
    row_counts: dict[str, int]
    """every row of the table by what became of it"""
    warnings: tuple[str, ...]
    """what the fit warned of"""

    @property
    def predicting(self) -> list[str]:
        """Columns of the table that predict."""
        return self._sources(self.model.prediction_features_)

    @property
    def selecting_only(self) -> list[str]:
        """Columns of the table that drive selection and do not predict."""
        predicting = self.predicting
        selecting = self._sources(self.model.selection_features_)
        return [name for name in selecting if name not in predicting]

    def _sources(self, columns: list[Any]) -> list[str]:
        of = {dummy: name for name, dummies in self.encoding.groups.items() for dummy in dummies}
        return list(dict.fromkeys(of.get(str(column), str(column)) for column in columns))


def analyse(question: Question, say: Callable[[str], None] | None = None) -> Analysis:
    """Read the table, encode it, and fit what is asked.

    Parameters
    ----------
    question : Question
    say : callable, optional
        Told in a few words what is going on.

    Returns
    -------
    Analysis
    """
    tell = say or (lambda words: None)
    given = prepare(question, tell)
    tell(f"fitting {len(given.X):,} rows")
    model = _model(question, given.encoding)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(
            given.X,
            given.y,
            selected=given.selected,
            sample_weight=given.weight,
            groups=given.groups,
        )
    said = [str(one.message) for one in caught if issubclass(one.category, HeckmanfaWarning)]
    counts = dict(model.row_counts_)
    counts["total"] = given.n_rows
    counts["left_out_regressor_missing"] = given.n_rows - len(given.X)
    return Analysis(
        **{one.name: getattr(given, one.name) for one in fields(given)},
        model=model,
        row_counts=counts,
        warnings=tuple(dict.fromkeys(said)),
    )


def prepare(question: Question, tell: Callable[[str], None]) -> Prepared:
    """Read and encode the table, and leave out rows that miss a feature."""
    _check(question)
    tell(f"reading {Path(question.data).name}")
    frame = read_table(question.data)
    names = _feature_names(question, frame)
    outcome = _outcome(question, frame)
    selected = None if question.selected is None else _flags(frame, question.selected)
    weight = None if question.weights is None else _weights(question, frame)
    if question.cluster is not None and frame[question.cluster].isna().any():
        gaps = int(frame[question.cluster].isna().sum())
        raise InputError(f"--cluster: column {question.cluster!r} is missing in {gaps} rows")
    tell(f"encoding {len(names)} columns")
    encoding, X = Encoding.learn(
        frame[names],
        names,
        categorical=question.categorical,
        numeric=question.numeric,
        missing=question.missing,
    )
    if X.shape[1] == 0:
        raise InputError(
            "no column is left to drive selection or predict: "
            + "; ".join(f"{name} ({why})" for name, why in encoding.left_out.items())
        )
    shortage = X.isna().to_numpy()
    kept: Mask = np.asarray(~shortage.any(axis=1))
    missing_counts = _missing_counts(encoding, shortage, list(X.columns))
    _check_kept(outcome, selected, kept, missing_counts)
    return Prepared(
        question=question,
        encoding=encoding,
        X=X.loc[kept],
        y=outcome[kept],
        selected=None if selected is None else selected[kept],
        weight=None if weight is None else weight[kept],
        groups=None if question.cluster is None else frame[question.cluster].to_numpy()[kept],
        n_rows=len(frame),
        n_columns=frame.shape[1],
        missing_counts=missing_counts,
    )


def _check_kept(
    outcome: Floats, selected: Mask | None, kept: Mask, missing_counts: dict[str, int]
) -> None:
    """Refuse rows without a missing feature that tell nothing about selection."""
    advice = "Pass --missing mean, or --exclude the columns with the gaps."
    if missing_counts:
        worst = max(missing_counts, key=lambda name: missing_counts[name])
        advice = f"{worst!r} is missing in {missing_counts[worst]}. {advice}"
    if not kept.any():
        raise InputError(
            f"no row is left: every one of the {len(kept)} rows misses a feature. {advice}"
        )
    y = outcome[kept]
    observed = ~np.isnan(y)
    chosen = observed if selected is None else selected[kept]
    if chosen.all() or not (chosen & observed).any():
        what = "no outcome is missing in" if chosen.all() else "no outcome is observed in any of"
        raise InputError(
            f"{what} the {len(y)} rows that miss no feature; {len(kept) - len(y)} rows miss one. "
            f"{advice}"
        )


def _check(question: Question) -> None:
    for name, value, allowed in (
        ("search", question.search, SEARCHES),
        ("method", question.method, ("two-step", "ml")),
        ("missing", question.missing, ("drop", "mean")),
        ("weight-kind", question.weight_kind, ("frequency", "sampling")),
        ("criterion", question.criterion, ("bic", "aic", "adjusted_r2", None)),
    ):
        if value not in allowed:
            known = ", ".join(str(one) for one in allowed if one is not None)
            hint = nearest(str(value), [one for one in allowed if one])
            raise InputError(f"--{name} must be one of {known}; got {value!r}{hint}")
    if question.search == "none":
        for name in ("always", "rho_range", "criterion"):
            if getattr(question, name):
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} is about a search, but --search is none")
        if question.honest:
            raise InputError("--honest is about a search, but --search is none")


def _known(frame: pd.DataFrame, name: str, option: str) -> str:
    if name not in frame.columns:
        raise UnknownFeatureError(
            f"{option}: the data has no column {name!r}"
            + (nearest(name, [str(one) for one in frame.columns]) or _listed(frame))
        )
    return name


def _listed(frame: pd.DataFrame) -> str:
    shown = ", ".join(str(one) for one in frame.columns[:12])
    more = f" and {frame.shape[1] - 12} more" if frame.shape[1] > 12 else ""
    return f"; it has {shown}{more}"


def _feature_names(question: Question, frame: pd.DataFrame) -> list[str]:
    """Columns that may be features, in the order of the table."""
    roles = {"--outcome": question.outcome, "--selected": question.selected}
    roles |= {"--weights": question.weights, "--cluster": question.cluster}
    taken = {_known(frame, name, option) for option, name in roles.items() if name is not None}
    for option, listed in (
        ("--features", question.features),
        ("--exclude", question.exclude),
        ("--predict-with", question.predict_with),
        ("--always", question.always),
        ("--select-only", question.select_only),
        ("--categorical", question.categorical),
        ("--numeric", question.numeric),
    ):
        for name in listed:
            _known(frame, name, option)
            if option not in ("--exclude", "--categorical", "--numeric") and name in taken:
                role = next(one for one, other in roles.items() if other == name)
                raise InputError(f"{option} names {name!r}, which is the column of {role}")
    names = [
        str(name)
        for name in frame.columns
        if name not in taken
        and name not in question.exclude
        and (not question.features or name in question.features)
    ]
    for option, listed in (
        ("--predict-with", question.predict_with),
        ("--always", question.always),
        ("--select-only", question.select_only),
    ):
        for name in listed:
            if name not in names:
                raise InputError(
                    f"{option} names {name!r}, which is not among the features: take it out of "
                    "--exclude, or into --features"
                )
    if not names:
        raise InputError("no column is left as a feature; see --features and --exclude")
    return names


def _outcome(question: Question, frame: pd.DataFrame) -> Floats:
    """The outcome as numbers, NaN where missing; it must be missing somewhere."""
    name = question.outcome
    values = to_numbers(frame[name], name)
    observed = np.count_nonzero(~np.isnan(values))
    if observed == 0:
        raise NoOutcomeError(
            f"--outcome: column {name!r} is missing in all {len(values)} rows; is it the right one?"
        )
    if question.selected is None and observed == len(values):
        zeros = int(np.count_nonzero(values == 0))
        hint = (
            f" {zeros} rows hold 0: if that means missing, leave these cells empty, or name a "
            "column that says who is selected with --selected."
            if zeros
            else " Leave the cells of unobserved outcomes empty, or name a column that says who "
            "is selected with --selected."
        )
        raise InputError(
            f"--outcome: column {name!r} is never missing in {len(values)} rows, so that there is "
            f"no selection to model.{hint}"
        )
    return values


def _flags(frame: pd.DataFrame, name: str) -> Mask:
    words = frame[name].astype("string").str.strip().str.lower()
    missing = int(words.isna().sum())
    if missing:
        raise InputError(
            f"--selected: column {name!r} is missing in {missing} rows; it must say of every row "
            "whether it is selected"
        )
    strange = sorted({*words.unique()} - _TRUE - _FALSE)
    if strange:
        raise InputError(
            f"--selected: column {name!r} must hold 0 and 1 (or yes and no, true and false); it "
            f"holds {strange[0]!r}"
        )
    chosen: Mask = words.isin(_TRUE).to_numpy(dtype=bool)
    if chosen.all():
        raise InputError(
            f"--selected: column {name!r} says that all {len(frame)} rows are selected, so that "
            "there is no selection to model"
        )
    return chosen


def _weights(question: Question, frame: pd.DataFrame) -> Floats:
    name = str(question.weights)
    values = to_numbers(frame[name], name)
    missing = int(np.count_nonzero(np.isnan(values)))
    if missing:
        raise InputError(f"--weights: column {name!r} is missing in {missing} rows")
    if question.weight_kind == "frequency" and np.any(values != np.round(values)):
        raise InputError(
            f"--weights: column {name!r} holds fractions, and frequency weights count rows; where "
            "rows stand for shares of a population, use fit with --weight-kind sampling"
        )
    return values


def _missing_counts(encoding: Encoding, shortage: Mask, columns: list[str]) -> dict[str, int]:
    of = {dummy: name for name, dummies in encoding.groups.items() for dummy in dummies}
    counts: dict[str, int] = {}
    for place, column in enumerate(columns):
        count = int(np.count_nonzero(shortage[:, place]))
        if count:
            counts[of.get(column, column)] = count
    return counts


def _columns_of(encoding: Encoding, names: tuple[str, ...], option: str) -> list[str]:
    """Encoded columns of some columns of the table."""
    found: list[str] = []
    for name in names:
        if name in encoding.left_out:
            raise InputError(
                f"{option} names {name!r}, which cannot be used: {encoding.left_out[name]}"
            )
        found += encoding.groups.get(name, [name])
    return found


def _model(question: Question, encoding: Encoding) -> Heckman:
    cov_type = None
    if question.cluster is not None:
        cov_type = "cluster"
    elif question.robust or question.weight_kind == "sampling":
        cov_type = "robust"
    candidates = _columns_of(encoding, question.predict_with, "--predict-with") or None
    never = _columns_of(encoding, question.select_only, "--select-only")
    common: dict[str, Any] = {
        "method": question.method,
        "cov_type": cov_type,
        "weight_kind": question.weight_kind,
        "on_collinear": "drop",
    }
    if question.search == "none":
        names = encoding.columns if candidates is None else candidates
        return Heckman([name for name in names if name not in never], **common)
    groups = [list(one) for one in encoding.groups.values() if len(one) > 1]
    common |= {
        "prediction_features": candidates,
        "never": [name for name in never if candidates is None or name in candidates],
        "always": _columns_of(encoding, question.always, "--always"),
        "rho_range": question.rho_range,
        "feature_groups": groups or None,
        "honest": question.honest,
        "random_state": question.seed,
    }
    if question.search == "best-subset":
        model = HeckmanBestSubset(question.criterion or "bic", **common)
        if question.rho_range is None and len(encoding.columns) <= _FEW_FEATURES:
            model.set_params(tolerance=_NEAR.get(model.criterion))
        return model
    trained = HeckmanFA(_EXTRACTIONS[question.search], **common)
    trained.set_params(record_path=max(trained.epochs // _PATH_POINTS, 1))
    if question.criterion is not None:
        trained.set_params(criterion=question.criterion)
    return trained
