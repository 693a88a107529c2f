"""From a table and a question to a fitted model, with every row and column accounted for.

The command line and the report are two views of an `Analysis`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from heckmanfa.analysis.column_sources import in_sources
from heckmanfa.analysis.loading import Prepared, load, prepare
from heckmanfa.analysis.option_names import in_options
from heckmanfa.analysis.request import SEARCHES, Question
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.errors import HeckmanfaWarning, InputError
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.searches import HeckmanBestSubset, HeckmanFA
from heckmanfa.results.caveats import Caveat, Table, of_table
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.exclusions import KeptOut, kept_out
from heckmanfa.results.side_by_side import SideBySide, side_by_side
from heckmanfa.text.numbers import plural
from heckmanfa.text.printable import quoted, shown

if TYPE_CHECKING:
    from heckmanfa.inference.uncertainty import UncertaintyInterval
    from heckmanfa.inference.what_if import WhatIf
    from heckmanfa.results.coefficients import Summary

__all__ = ["SEARCHES", "Analysis", "Prepared", "Question", "analyse", "load", "prepare"]

_EXTRACTIONS = {"fa": "sample", "fa-star": "rank", "correlation": "correlation"}
# With so few features and no window, assignments that are worse by this much are found in no time:
# the report shows them all.
_FEW_FEATURES, _NEAR = 26, {"bic": 10.0, "aic": 10.0}
# So many points are enough for a picture of the training.
_PATH_POINTS = 200


@dataclass(frozen=True, eq=False)
class Analysis(Prepared):
    """A question, its data and the fitted model."""

    model: Heckman
    row_counts: dict[str, int]
    """every row of the table by what became of it"""
    warnings: tuple[str, ...]
    """what the fit warned of, in the words of the command line"""

    @cached_property
    def uncertainty(self) -> UncertaintyInterval | None:
        """Where each coefficient lies for rho in a range; None without a selection equation."""
        return self.model.uncertainty_interval() if self.is_corrected else None

    @cached_property
    def what_if(self) -> WhatIf | None:
        """What other exclusions would have given; None without a selection equation."""
        return self.model.what_if() if self.is_corrected else None

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Diagnostics of the model, for the rows of the fit if these are in memory."""
        X = None if self.loaded is None else self.loaded.X
        known = [report for report in (self.uncertainty, self.what_if) if report is not None]
        return self.model.diagnostics(X, include=known)

    @cached_property
    def exclusions(self) -> KeptOut:
        """Encoded columns kept out of the prediction equation, and which drive selection."""
        return kept_out(self.model, self._groups)

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """Estimates of the model, as `Heckman.tidy` returns them."""
        return self.model.tidy()

    @cached_property
    def summary(self) -> Summary:
        """Summary of the model."""
        return self.model.summary()

    @cached_property
    def comparison(self) -> SideBySide:
        """The model beside least squares and the all-features model."""
        groups = self.encoding.groups
        never = {
            column for name in self.question.select_only for column in groups.get(name, [name])
        }
        return side_by_side(self.model, never)

    @cached_property
    def coefficients(self) -> pd.DataFrame:
        """That comparison with standard errors; see `SideBySide.with_errors`."""
        return self.comparison.with_errors(self.estimates)

    @cached_property
    def caveats(self) -> list[Caveat]:
        """What a reader of the answer has to know, the gravest first."""
        table = Table(
            outcome=shown(self.question.outcome),
            n_rows=self.row_counts["total"],
            n_missing=self.row_counts.get("left_out_regressor_missing", 0),
            filled=self.question.missing == "mean",
            sources=lambda names: [name for name in self._sources(names) if name in self.kept_out],
            exclusions=self.exclusions,
        )
        return [
            replace(caveat, sentence=in_options(caveat.sentence), claim=in_options(caveat.claim))
            for caveat in of_table(self.model, self.diagnostics, table)
        ]

    @property
    def is_corrected(self) -> bool:
        """Whether the model has a selection equation: some outcome was missing in the fit."""
        return self.model.row_counts_["unselected"] > 0

    @property
    def predicting(self) -> list[str]:
        """Columns of the table that predict."""
        return self._sources(self.model.prediction_features_)

    @property
    def kept_out(self) -> list[str]:
        """Columns of the table that are in the selection equation and do not predict."""
        predicting = self.predicting
        selecting = self._sources(self.model.selection_features_)
        return [name for name in selecting if name not in predicting]

    @property
    def driving_selection(self) -> list[str]:
        """Those kept out that drive selection, by the rule of `heckmanfa.results.exclusions`."""
        driving = self._sources(self.exclusions.driving)
        return [name for name in self.kept_out if name in driving]

    @property
    def without_evidence(self) -> list[str]:
        """Those kept out that were tested, without evidence that they drive selection."""
        others = {*self.driving_selection, *self.not_tested}
        return [name for name in self.kept_out if name not in others]

    @property
    def not_tested(self) -> list[str]:
        """Those kept out of which it could not be tested whether they drive selection."""
        unknown = self._sources(self.exclusions.not_tested)
        driving = self.driving_selection
        return [name for name in self.kept_out if name in unknown and name not in driving]

    @property
    def errors_kind(self) -> str:
        """Which covariance standard errors are from: classical, robust or cluster."""
        return self.model.cov_type or "classical"

    @property
    def errors(self) -> str:
        """That kind in words, with the clusters, and why it is not classical if nobody said so."""
        if self.model.n_clusters_ is not None:
            n = plural(self.model.n_clusters_, "cluster")
            return f"{self.errors_kind} ({n} of {shown(self.question.cluster)})"
        if self.errors_kind == "robust" and not self.question.robust:
            return "robust, as sampling weights need"
        return self.errors_kind

    @property
    def left_out(self) -> dict[str, str]:
        """Columns of the table that are in neither equation though they were not taken out, why."""
        model = self.model
        used = self._sources([*model.prediction_features_, *model.selection_features_])
        lost = [one for one in self._sources(model.dropped_features_) if one not in used]
        why = "says what other features say (it is collinear), or does not vary in these rows"
        if self.row_counts.get("left_out_separation"):
            why = "is collinear with other features, or decides selection with certainty"
        return self.encoding.left_out | dict.fromkeys(lost, why)

    def explain(self) -> list[str]:
        """Say in sentences what became of the columns."""
        return self.encoding.explain(self.left_out)

    @property
    def _groups(self) -> list[list[str]]:
        """Columns of X that are tested together: the dummies of a column, those in the model."""
        known = {str(one) for one in self.model.selection_features_}
        groups = ([one for one in group if one in known] for group in self.encoding.groups.values())
        return [group for group in groups if len(group) > 1]

    def _sources(self, columns: Sequence[Any]) -> list[str]:
        of = {dummy: name for name, dummies in self.encoding.groups.items() for dummy in dummies}
        return list(dict.fromkeys(of.get(str(column), str(column)) for column in columns))


def analyse(
    question: Question,
    say: Callable[[str], None] | None = None,
    *,
    frame: pd.DataFrame | None = None,
) -> Analysis:
    """Read the table, encode it, and fit what is asked.

    Parameters
    ----------
    question : Question
    say : callable, optional
        Told in a few words what is going on.
    frame : DataFrame, optional
        The table itself, where it is in memory; ``question.data`` is then what it is called. Its
        types say which columns are text, as the schema of a Parquet file does, so that both give
        the same model.

    Returns
    -------
    Analysis
    """
    tell = say or (lambda words: None)
    given = prepare(question, tell, frame)
    loaded = given.loaded
    tell(f"fitting {given.n_rows if loaded is None else len(loaded.y):,} rows")
    model = _model(question, given.encoding)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given.fit(model)
    said = [
        in_options(in_sources(str(one.message), given.encoding))
        for one in caught
        if issubclass(one.category, HeckmanfaWarning)
    ]
    counts = dict(model.row_counts_)
    counts["total"] = given.n_rows
    # Rows that are not in memory were counted by the fit.
    lost = counts.pop("left_out_regressor_missing", 0)
    counts["left_out_regressor_missing"] = lost if loaded is None else given.n_rows - len(loaded.y)
    return Analysis(
        **{one.name: getattr(given, one.name) for one in fields(given)},
        model=model,
        row_counts=counts,
        warnings=tuple(dict.fromkeys(said)),
    )


def _columns_of(encoding: Encoding, names: tuple[str, ...], option: str) -> list[str]:
    """Encoded columns of some columns of the table."""
    found: list[str] = []
    for name in names:
        if name in encoding.left_out:
            raise InputError(
                f"{option} names {quoted(name)}, which cannot be used: {encoding.left_out[name]}"
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
        "start": question.start,
        "cov_type": cov_type,
        "weight_kind": question.weight_kind,
        "on_collinear": "drop",
        "on_separation": question.on_separation,
    }
    if question.search == "none":
        names = encoding.columns if candidates is None else candidates
        return Heckman([name for name in names if name not in never], **common)
    # What may not predict is in no group.
    may = {*(encoding.columns if candidates is None else candidates)}
    groups = [list(one) for one in encoding.groups.values() if len(one) > 1 and may.issuperset(one)]
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
