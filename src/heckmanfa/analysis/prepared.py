"""The encoded rows of a question, the estimator that answers it, and how it is fitted to them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from heckmanfa.analysis.column_roles import errors_in_sources, joint_groups
from heckmanfa.analysis.model_classes import class_named
from heckmanfa.analysis.profiles import read_profiles
from heckmanfa.analysis.request import Question, references_in, steps_in
from heckmanfa.analysis.targets import Target
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_hints import CodedNumbers
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.feature_reading import to_device
from heckmanfa.data.columns.missing_codes import Suspicion
from heckmanfa.data.columns.total_rows import TotalRows
from heckmanfa.data.fitted_levels import LevelsChangedError, recoded
from heckmanfa.data.missing_features import LostRows, explain_lost
from heckmanfa.data.row_rules import FeatureCounts, RowStatus, decide_rows, explain_known_only
from heckmanfa.data.rows import Mask
from heckmanfa.data.scan.arrow_rows import ArrowRows
from heckmanfa.data.survey import Survey, SurveyUnits
from heckmanfa.errors import (
    InputError,
    MissingValueError,
    NoOutcomeError,
    UnknownFeatureError,
)
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import EncodedRows, name_outcome
from heckmanfa.inference.people import profile_level, profile_number
from heckmanfa.model.equations import refuse_partial_copies
from heckmanfa.search.strategies import Extraction
from heckmanfa.tables.codebook import Codebook
from heckmanfa.tables.streamed import StoredTable
from heckmanfa.text.option_types import CovType
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import CRITERIA

Model = SelectionModel
"""an estimator that answers a question"""

EXCLUDE = f"Leave such columns out with {option('exclude')}."


@dataclass(frozen=True, eq=False)
class Loaded:
    """The rows that have every feature, in memory."""

    X: pd.DataFrame
    """(n, K) encoded features"""
    y: Floats
    """(n,) NaN where missing; 0 and 1 for the two classes of a binary outcome"""
    selected: Mask | Floats | None
    """who is selected or treated; of a treatment, NaN is not known"""
    weight: Floats | None
    groups: Any
    flagged: str = "selected"
    """what the model calls the former: "selected" or "treated" """
    by: Any = None
    """groups whose effects are asked for"""

    @property
    def designed(self) -> SurveyUnits | None:
        """The units of a survey, if its design is asked for."""
        return self.groups if isinstance(self.groups, SurveyUnits) else None

    @property
    def fold_groups(self) -> Any:
        """Groups of rows that must not be split: clusters, or the sampling units of a survey."""
        return self.groups if self.designed is None else self.designed.codes

    @property
    def roles(self) -> dict[str, Any]:
        """What `fit` and other methods of a model take beside the features and the outcome."""
        return {
            self.flagged: self.selected,
            "sample_weight": self.weight,
            "groups": self.groups,
        }


@dataclass(frozen=True, eq=False)
class Prepared:
    """The encoded rows and columns that a question is about."""

    question: Question
    encoding: Encoding
    rows: Loaded | ArrowRows
    """in memory, or read in passes"""
    n_rows: int
    """rows of the table"""
    n_dropped: int
    """rows beside these that the user says are not data"""
    n_columns: int
    """columns of the table"""
    switches: frozenset[str]
    """features that hold only 0 and 1"""
    files: tuple[Path, ...]
    """files of the table; none if it was in memory, or came through a pipe"""
    notes: tuple[str, ...]
    """sentences about how the table was read, if that could be done in several ways"""
    suspicions: tuple[Suspicion, ...]
    """numbers that may be codes for missing, those of the outcome first"""
    coded_numbers: tuple[CodedNumbers, ...]
    """features that are used as amounts and may be codes"""
    target: Target
    """what the outcome is, and the model that fits it"""
    total_rows: tuple[TotalRows, ...]
    """rows that look like totals or notes; none of rows read in passes"""
    lost: LostRows | None
    """rows left out because they lack a feature; of rows read in passes, only the fit knows"""
    codebook: Codebook
    """what readers call the columns: as the user says, or as the table has it"""

    def __post_init__(self) -> None:
        """Refuse steps of columns that take none, and profiles with values that columns lack."""
        encoding, outcome = self.encoding, self.question.outcome
        for profile in read_profiles(
            self.question.profile, [*encoding.sources, *encoding.left_out]
        ):
            for name, value in profile.items():
                if name in encoding.levels:
                    profile_level(name, value, encoding.levels[name])
                elif name in encoding.sources:
                    profile_number(name, value)
        try:
            steps = steps_in(self.question, self.encoding.sources)
        except UnknownFeatureError as error:
            # The outcome is a column of the data, and none of the features, which are suggested.
            if quoted(outcome) not in str(error):
                raise
            raise InputError(
                f"{option('step')}: {quoted(outcome)} is the outcome; a step is about features"
            ) from None
        for name in steps:
            what = "is a category" if name in self.encoding.levels else ""
            if name in self.switches:
                what = "holds only 0 and 1"
            if what:
                raise InputError(
                    f"{option('step')}: {quoted(name)} {what}, so its effect is that of a level "
                    "rather than its reference"
                )

    @property
    def missing_counts(self) -> dict[str, int]:
        """Rows left out because a column is missing, by column; a row may count in several."""
        return _missing_counts(self.encoding)

    @property
    def loaded(self) -> Loaded | None:
        """The rows, if they are in memory."""
        return self.rows if isinstance(self.rows, Loaded) else None

    @cached_property
    def outcome(self) -> Any:
        """The outcome of the rows in memory as a model takes it: amounts, or ordered classes."""
        return None if self.loaded is None else self.target.labels(self.loaded.y)

    @property
    def streamed(self) -> bool:
        """Whether rows are read in passes instead of loaded."""
        return self.loaded is None

    @property
    def how_read(self) -> str:
        """How rows that were not loaded were read, in words."""
        assert isinstance(self.rows, ArrowRows)
        source = StoredTable(self.rows.engine).described
        return f"rows were read from {source} in passes, not loaded"

    def with_encoding(self, encoding: Encoding) -> Self:
        """Return the same rows as an encoding with some of these levels makes them."""
        rows: Loaded | ArrowRows
        if isinstance(self.rows, ArrowRows):
            rows = self.rows.re_encoded(encoding.as_fitted())
        else:
            rows = replace(self.rows, X=recoded(self.rows.X, self.encoding, encoding))
        switches = switches_after(self.switches, self.encoding, encoding)
        return replace(self, encoding=encoding, rows=rows, switches=switches)

    def fit(self, model: Model, *, settle: bool = False) -> None:
        """Fit a model to the rows; errors name the columns of the table.

        If it is to ``settle`` the levels of categories, it takes the references that the question
        names, and raises `LevelsChangedError` if the rows of the fit need another encoding.
        """
        settle = settle and bool(self.encoding.levels)
        if settle and self.question.reference:
            model.set_params(reference=references_in(self.question, self.encoding.sources))
        with explain_lost(self.lost), errors_in_sources(self.encoding):
            if isinstance(self.rows, ArrowRows):
                rows = EncodedRows(self.rows, self.encoding) if settle else self.rows
                _fit_streamed(self.rows, model, self.encoding, rows)
            else:
                X: Any = self.rows.X
                device = self.question.device
                if device != "cpu" and not self.question.honest:
                    X = to_device(X, device)
                rows_of_fit = EncodedRows(X, self.encoding) if settle else X
                model.fit(rows_of_fit, self.outcome, **self.rows.roles)
        if self.question.outcome_transform is not None:
            # Its caveats tell the outcome from its logarithm.
            name_outcome(model, self.question.outcome)


def switches_after(switches: frozenset[str], before: Encoding, after: Encoding) -> frozenset[str]:
    """Return which features hold only 0 and 1 after another encoding made them."""
    columns = {column for column in after.columns if column in switches}
    for name, dummies in before.groups.items():
        if switches.issuperset(dummies):
            columns |= {*after.columns_of(name)}
    return frozenset(columns)


def _fit_streamed(rows: ArrowRows, model: Model, encoding: Encoding, fit_rows: Any) -> None:
    """Fit a model to rows in files, which only the fit itself can check.

    ``fit_rows`` is what the model gets, the rows or these with their encoding.
    """
    try:
        model.fit(fit_rows)
    except MissingValueError as error:
        raise InputError(f"{error.words} {EXCLUDE}") from error
    except NoOutcomeError as error:
        if not _missing_counts(encoding):
            raise
        raise InputError(
            f"no outcome is observed in any row that has every feature. {_missing_advice(encoding)}"
        ) from error
    counts, n_rows = model.row_counts_, rows.n_rows
    assert n_rows is not None
    kept = n_rows - counts["left_out_regressor_missing"]
    refuse_rows(
        encoding,
        n_rows=n_rows,
        kept=kept,
        selected=kept if counts["unselected"] == 0 else counts["selected"],
        observed=counts["selected"],
        everyone=model.fit_.family.sees_everyone,
    )


def _missing_counts(encoding: Encoding) -> dict[str, int]:
    """Count the rows that lack each column, if such rows are left out."""
    return encoding.n_missing if encoding.missing == "drop" else {}


def _missing_advice(encoding: Encoding, lost: LostRows | None = None) -> str:
    """Name the columns that cost most rows, and the options for missing values."""
    advice = f"Pass {option('missing', 'mean')}, or {option('exclude')} the columns with the gaps."
    if lost is not None:
        return f"{lost.advice} {advice}".lstrip()
    counts = _missing_counts(encoding)
    if not counts:
        return advice
    worst = max(counts, key=lambda name: counts[name])
    return f"{quoted(worst)} is missing in {counts[worst]}. {advice}"


def refuse_rows(
    encoding: Encoding,
    *,
    n_rows: int,
    kept: int,
    selected: int,
    observed: int,
    lost: LostRows | None = None,
    everyone: bool = False,
) -> None:
    """Refuse a table whose complete rows say nothing about selection.

    Of ``n_rows`` rows, ``kept`` have every feature; ``selected`` of these are selected, and
    ``observed`` of those have an outcome. ``lost`` are the others, if they are counted by column.
    If ``everyone`` has an outcome, the selected are the treated.
    """
    if kept == 0:
        raise InputError(
            f"no row is left: every one of the {n_rows} rows lacks a feature. "
            f"{_missing_advice(encoding, lost)}"
        )
    if selected == kept or observed == 0:
        all_are, none_is = "no outcome is missing in", "no outcome is observed in any of"
        if everyone:
            all_are, none_is = "everybody is treated in", "nobody with an outcome is treated in"
        what = all_are if selected == kept else none_is
        raise InputError(
            f"{what} the {kept} rows that have every feature; {n_rows - kept} rows lack one. "
            f"{_missing_advice(encoding, lost)}"
        )


def decide_flagged(
    outcome: Floats,
    flags: Mask | Floats | None,
    complete: Mask | None = None,
    *,
    everyone: bool = False,
) -> RowStatus:
    """Decide about rows whose flags may be missing, as `decide_rows` does."""
    if flags is None or flags.dtype == bool:
        return decide_rows(outcome, flags, complete=complete, everyone=everyone)
    unknown = np.isnan(flags)
    return decide_rows(outcome, flags == 1.0, complete=complete, unknown=unknown, everyone=everyone)


def refuse_leaks(
    encoding: Encoding,
    frame: pd.DataFrame,
    X: pd.DataFrame,
    outcome: Floats,
    selected: Mask | Floats | None,
    *,
    everyone: bool = False,
) -> None:
    """Refuse columns with missing values that give away the selection or the outcome.

    Such a column is known for selected rows only, or copies the outcome wherever it is known. A
    fit cannot notice this once missing values are replaced with means.
    """
    chosen = decide_flagged(outcome, selected).selected
    if chosen.all():
        return
    gaps = _gaps(encoding, frame, X)
    names = list(gaps)
    counts = FeatureCounts.of_gaps(list(gaps.values()), chosen)
    known_only = explain_known_only(names, counts, everyone=everyone)
    if known_only is not None:
        raise InputError(f"{known_only} {EXCLUDE}")
    observed = chosen & ~np.isnan(outcome)
    refuse_partial_copies(
        (name, X[name].to_numpy()[observed & ~gaps[name]], outcome[observed & ~gaps[name]])
        for name in names
        if name not in encoding.levels
    )


def _gaps(encoding: Encoding, frame: pd.DataFrame, X: pd.DataFrame) -> dict[str, Mask]:
    """Find the rows in which each column of the table is missing, whether or not it was filled."""
    first = {name: encoding.groups.get(name, [name])[0] for name in encoding.n_missing}
    first = {name: column for name, column in first.items() if column in X}
    if encoding.missing == "mean" and first:
        filled = {
            name: X[column].to_numpy() == encoding.means[column] for name, column in first.items()
        }
        if all(np.count_nonzero(filled[name]) == encoding.n_missing[name] for name in first):
            return filled
        # Some rows hold the mean itself.
        X = replace(encoding, missing="drop").transform(frame)
    return {name: np.isnan(X[column].to_numpy()) for name, column in first.items()}


EXTRACTIONS: dict[str, Extraction] = {
    "fa": "sample",
    "fa-star": "rank",
    "correlation": "correlation",
}
"""how the paper's searches extract features, by the option that names them"""

# With so few features and no range of rho, all assignments that are worse by at most this much are
# found quickly, and the report shows them.
_FEW_FEATURES = 26
_NEAR = {criterion: None if criterion == "adjusted_r2" else 10.0 for criterion in CRITERIA}
# Training steps that a plot shows.
_PATH_POINTS = 200


def model_of(question: Question, encoding: Encoding) -> Model:
    """Return the unfitted estimator of a question."""
    cov_type: CovType | Survey | None = None
    if question.cluster:
        cov_type = "cluster"
    elif question.survey is not None:
        cov_type = question.survey
    elif question.robust or question.weight_kind == "sampling":
        cov_type = "robust"
    candidates = _columns_of(encoding, question, "predict_with") or None
    may = {*(encoding.columns if candidates is None else candidates)}
    never = [name for name in _columns_of(encoding, question, "select_only") if name in may]
    if question.searched == "none":
        names = encoding.columns if candidates is None else candidates
        candidates = [name for name in names if name not in never]
    # Columns that must not predict are in no group.
    groups = [group for group in joint_groups(encoding).values() if may.issuperset(group)]
    options: dict[str, Any] = {
        # What an estimator calls the features of the outcome.
        "prediction_features": candidates,
        "outcome_features": candidates,
        "regimes": question.regimes,
        "never": never,
        "always": _columns_of(encoding, question, "always"),
        "feature_groups": groups or None,
        "method": question.estimated,
        "errors": question.errors,
        "n_terms": question.n_terms,
        "intercept": question.intercept,
        "outcome_transform": question.outcome_transform,
        "rho": question.rho,
        "rho_range": question.rho_range,
        "honest": question.honest,
        "start": question.start,
        "cov_type": cov_type,
        "weight_kind": question.counts_as,
        "on_collinear": "drop",
        "on_separation": question.on_separation,
        "random_state": question.seed,
        **searched_equations(question, encoding),
    }
    if question.criterion is not None:
        options["criterion"] = question.criterion
    if question.searched in EXTRACTIONS:
        options["extraction"] = EXTRACTIONS[question.searched]
    estimator = class_named(question.models.estimators[question.searched])
    # A question has options that only some estimators have, and checks that those asked for do.
    known = signature(estimator).parameters
    model: Model = estimator(**{name: options[name] for name in options if name in known})
    if "tolerance" in known and question.rho_range is None and question.search_in != "both":
        few = len(encoding.columns) <= _FEW_FEATURES
        model.set_params(tolerance=_NEAR[model.get_params()["criterion"]] if few else None)
    if "record_path" in known:
        model.set_params(record_path=max(model.get_params()["epochs"] // _PATH_POINTS, 1))
    return model


def searched_equations(question: Question, encoding: Encoding) -> dict[str, Any]:
    """Return the parameters of a search that leaves features out of both equations, if asked."""
    if question.search_in != "both":
        return {}
    named = ("selection_always", "selection_never")
    columns = {name: _columns_of(encoding, question, name) for name in named}
    return {"search_in": "both", **columns}


def fit_question(prepared: Prepared) -> tuple[Prepared, Model, list[warnings.WarningMessage]]:
    """Fit the model of a question, with the levels that the rows of the fit have.

    Returns the rows as the model took them, the model, and the warnings of its fit.
    """
    # Each time, a category has fewer levels, or another reference.
    for _ in range(len(prepared.encoding.columns) + 1):
        model = model_of(prepared.question, prepared.encoding)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                prepared.fit(model, settle=True)
            except LevelsChangedError as changed:
                prepared = prepared.with_encoding(changed.encoding)
                continue
        fitted = model.fit_.spec.columns.encoding
        if prepared.encoding.levels and fitted is not None:
            encoding = replace(prepared.encoding, level_rows=fitted.level_rows)
            prepared = replace(prepared, encoding=encoding)
        return prepared, model, caught
    raise InputError(
        f"{option('on_separation', 'drop')} leaves no level that every part of the rows has as a "
        f"reference; merge rare levels with {option('min_level_rows')}"
    )


def _columns_of(encoding: Encoding, question: Question, field: str) -> list[str]:
    """Return the encoded columns of those columns of the table that an option names."""
    columns: list[str] = []
    for name in getattr(question, field):
        if name in encoding.left_out:
            raise InputError(
                f"{option(field)} names {quoted(name)}, which cannot be used: "
                f"{encoding.reasons[name]}"
            )
        columns += encoding.groups.get(name, [name])
    return columns
