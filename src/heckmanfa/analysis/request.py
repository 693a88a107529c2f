"""What is asked of a table: the options of ``heckmanfa fit``, and the columns that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from heckmanfa.data.columns.features import nearest
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.text.printable import quoted, shown

__all__ = ["SEARCHES", "Question", "check_question", "feature_names"]

SEARCHES = ("best-subset", "fa", "fa-star", "correlation", "none")


@dataclass(frozen=True)
class Question:
    """What is asked of a table; the options of ``heckmanfa fit``."""

    data: str
    """path of the table; for Parquet, also a folder or a pattern"""
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
    start: float | None = None
    """the rho that maximum likelihood starts from; None is the two-step estimates"""
    weights: str | None = None
    weight_kind: str = "frequency"
    cluster: str | None = None
    robust: bool = False
    missing: str = "drop"
    on_separation: str = "error"
    """what becomes of columns that decide selection for some rows: "error", or "drop", which
    leaves out the column and the rows that it decides"""
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    honest: bool = False
    decimal: str | None = None
    """the decimal mark of a text or Excel file; None lets all its values decide"""
    thousands: str | None = None
    """the mark between thousands there, ``none`` where there is none"""
    sheet: str | None = None
    """of an Excel file: its name, or its number from 1"""
    seed: int = 0
    stream_above: float = 1.0
    """gigabytes of Parquet above which rows are not loaded but read in passes"""
    device: str = "cpu"
    """where loaded rows are worked on: memory, or a card as Torch names it"""

    @property
    def roles(self) -> dict[str, str]:
        """Columns that are no features, by the option that names them."""
        named = {
            "--outcome": self.outcome,
            "--selected": self.selected,
            "--weights": self.weights,
            "--cluster": self.cluster,
        }
        return {option: name for option, name in named.items() if name is not None}

    @property
    def called(self) -> str:
        """What the table is called."""
        return "standard input" if self.data == "-" else Path(self.data).name

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
            elif isinstance(value, float):
                words += [flag, f"{value:.12g}"]
            else:
                words += [flag, _quoted(str(value))]
        return " ".join(words)


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def check_question(question: Question) -> None:
    """Refuse options that are no choice, or do not go together."""
    for name, value, allowed in (
        ("search", question.search, SEARCHES),
        ("method", question.method, ("two-step", "ml")),
        ("missing", question.missing, ("drop", "mean")),
        ("on-separation", question.on_separation, ("error", "drop")),
        ("weight-kind", question.weight_kind, ("frequency", "sampling")),
        ("criterion", question.criterion, ("bic", "aic", "adjusted_r2", None)),
    ):
        if value not in allowed:
            known = ", ".join(str(one) for one in allowed if one is not None)
            hint = nearest(str(value), [one for one in allowed if one])
            raise InputError(f"--{name} must be one of {known}; got {quoted(value)}{hint}")
    if question.start is not None:
        if question.method != "ml":
            raise InputError("--start is where maximum likelihood starts from: add --method ml")
        if not abs(question.start) < 1:
            raise InputError(f"--start must be a rho inside (-1, 1); got {question.start:g}")
    if question.search == "none":
        for name in ("always", "rho_range", "criterion"):
            if getattr(question, name):
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} is about a search, but --search is none")
        if question.honest:
            raise InputError("--honest is about a search, but --search is none")


def _known(columns: Sequence[str], name: str, option: str) -> str:
    if name not in columns:
        raise UnknownFeatureError(
            f"{option}: the data has no column {quoted(name)}"
            + (nearest(name, columns) or _listed(columns))
        )
    return name


def _listed(columns: Sequence[str]) -> str:
    some = ", ".join(shown(one) for one in columns[:12])
    more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
    return f"; it has {some}{more}"


def feature_names(question: Question, columns: Sequence[str]) -> list[str]:
    """Return the columns that may be features, in the order of the table.

    Parameters
    ----------
    question : Question
    columns : sequence of str
        All columns of the table.

    Returns
    -------
    list of str
    """
    roles = question.roles
    taken = {_known(columns, name, option) for option, name in roles.items()}
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
            _known(columns, name, option)
            if option not in ("--categorical", "--numeric") and name in taken:
                role = next(one for one, other in roles.items() if other == name)
                raise InputError(f"{option} names {quoted(name)}, which is the column of {role}")
    names = [
        name
        for name in columns
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
                    f"{option} names {quoted(name)}, which is not among the features: take it out "
                    "of "
                    "--exclude, or into --features"
                )
    if not names:
        raise InputError("no column is left as a feature; see --features and --exclude")
    return names
