"""All methods of the package compared on held-out rows that have an outcome."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from heckmanfa.analysis import methods_compared
from heckmanfa.analysis.bounds_compared import WithoutModel, bounds_of
from heckmanfa.analysis.estimates_compared import (
    EVERYONE,
    Everyone,
    Making,
    about_estimates,
    all_estimates,
    assumption_of,
    grouped,
    side_by_side,
)
from heckmanfa.analysis.method_scores import (
    AMOUNTS,
    CLASSES,
    ORDERED_CLASSES,
    HeldFold,
    Measure,
    MethodVerdict,
    judge_methods,
)
from heckmanfa.analysis.outcome_models import OUTCOME_MODELS, USUAL_KIND
from heckmanfa.data.arrays import Floats, is_dask
from heckmanfa.data.ordered_classes import MOST_CLASSES, OrderedClasses
from heckmanfa.data.outcome_classes import Classes
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_rules import RowCounts, count_rows
from heckmanfa.data.sample import DecidedRows, check_frequencies, read_rows
from heckmanfa.data.survey import Survey
from heckmanfa.errors import (
    HeckmanfaError,
    HeckmanfaWarning,
    InputError,
    InputTypeError,
    UnknownFeatureError,
)
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.fit.family import Family, family_named
from heckmanfa.model_selection import SelectionKFold
from heckmanfa.results.document import Section
from heckmanfa.results.naming import EffectWords
from heckmanfa.results.reports import Report
from heckmanfa.text.option_types import SearchIn
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray


_NO_DESIGN = f"To compare predictions alone, leave the Survey out of {option('cov_type')}"
_USUAL = {"average": "average by BIC", "best-subset": "best subset"}
_FIRST, _LAST = ("method", "n_features", "rho"), ("difference", "difference_se", "seconds", "note")


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Report):
    """Held-out errors of several methods, and their estimates from all rows."""

    table: pd.DataFrame
    """one row for each method, as `tidy` returns it"""
    n_folds: int
    n_repeats: int
    features: dict[str, list[Any]]
    """prediction features of each method, in all rows"""
    coefficients: pd.DataFrame
    """term, then a column of coefficients for each method that has any"""
    verdict: MethodVerdict
    """which method to use and why, from paired differences of the folds' errors"""
    measure: Measure = AMOUNTS
    """how predictions are judged: errors of amounts, or probabilities of classes"""
    models: tuple[str, ...] = ()
    """methods that model selection and outcome together"""
    in_both: tuple[str, ...] = ()
    """methods that search both equations"""
    n_obs: int = 0
    """rows of the fits, each counted as often as its weight says"""
    estimates: pd.DataFrame = field(default_factory=pd.DataFrame)
    """method, equation, term, estimate, std_error, ci_low, ci_high: the mean of everyone and the
    coefficients, in all rows"""
    assumptions: Mapping[str, str] = field(default_factory=dict)
    """what each method assumes, in a clause"""
    bounds: WithoutModel | None = None
    """worst-case bounds of the first row of ``estimates`` and of the coefficients of naive least
    squares, and what they assume; None if the outcome shows no range"""
    everyone: Everyone = EVERYONE
    """what the first row is: the mean of everyone, or the probability of a class"""
    making: Mapping[str, Making] = field(default_factory=dict)
    """how the estimates of each method came about"""

    @property
    def failures(self) -> dict[str, list[str]]:
        """The methods that failed in some rows, for each reason."""
        notes = self.table.set_index("method")["note"]
        return grouped({str(name): str(why) for name, why in notes.items() if why})

    @property
    def searched(self) -> str:
        """A sentence that names the methods that search both equations; empty if none does."""
        if not self.in_both:
            return ""
        return f"{listed(self.in_both)} may leave features out of the selection equation, too."

    @property
    def beside(self) -> list[str]:
        """Methods to set side by side: those without a model of the errors, and the recommended."""
        plain = [name for name in self.assumptions if name not in self.models]
        return [*plain, *([self.verdict.method] if self.verdict.method else self.models)]

    def assumed(self) -> list[str]:
        """Return a line for each assumption, with the methods that make it."""
        lines = [f"{listed(names)}: {words}." for words, names in grouped(self.assumptions).items()]
        return lines if self.bounds is None else [*lines, f"bounds: {self.bounds.assumes}."]

    def estimated(self) -> pd.DataFrame:
        """Return a row for each term, with the estimates of `beside` and the bounds."""
        table = side_by_side(self.estimates, self.beside)
        return table if self.bounds is None else self.bounds.beside(table)

    @property
    def about_estimates(self) -> list[str]:
        """Sentences that a reader of `estimated` needs."""
        own = {name: self.making[name] for name in self.beside}
        said = about_estimates(self.estimated(), own, self.everyone)
        return said if self.bounds is None else [*said, self.bounds.words]

    def tidy(self) -> pd.DataFrame:
        """Return one row for each method.

        Returns
        -------
        DataFrame
            method; n_features and rho in all rows; mse and r2 (of a binary outcome auc, brier and
            log_loss), averages over the repeats, with mse_sd and r2_sd, their standard deviations
            between repeats; difference, the mean over folds of the method's mse (brier) less that
            of the method that ``verdict`` names, and its standard error; seconds of one fit to all
            rows; note, if a fit failed.
        """
        return self.table.copy()

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        how = f"{self.n_folds} folds" + (f", {self.n_repeats} times" if self.n_repeats > 1 else "")
        what = "Held-out errors" if self.measure is AMOUNTS else "Held-out probabilities"
        spread = " and ".join(f"{name.replace('_', ' ')} sd" for name in self.measure.columns)
        return [
            Section(
                f"{what} of rows with an outcome, {how}",
                table=self.table.drop(columns=["difference", "difference_se", "note"]),
                notes=(
                    *([self.searched] if self.searched else []),
                    self.measure.caution,
                    f"{spread} are standard deviations between repeats.",
                    *(f"{listed(names)}: {why}" for why, names in self.failures.items()),
                ),
            ),
            Section("Coefficients, in all rows", table=self.coefficients),
            Section(
                "Estimates for everyone, with standard errors",
                table=self.estimated(),
                notes=tuple(self.about_estimates),
            ),
            Section("What each method assumes", notes=tuple(self.assumed())),
            Section("Which method to use", notes=(str(self.verdict),)),
        ]


class _Fitted(NamedTuple):
    """A method fitted to some rows."""

    model: Any
    """None if that failed"""
    error: HeckmanfaError | None
    seconds: float


@dataclass(frozen=True, eq=False)
class _FoldedRows:
    """Rows, and how they are split into folds."""

    X: pd.DataFrame
    rows: DecidedRows
    splits: list[tuple[int, NDArray[np.intp], NDArray[np.intp]]]
    """the repeat, the rows to fit and the held-out rows of each fold"""
    n_folds: int
    n_repeats: int
    n_classes: int = 0
    """of an ordered outcome, which the rows have as codes from 0"""
    everyone: Everyone = EVERYONE

    def fit(self, estimator: Any, chosen: Any = slice(None)) -> _Fitted:
        """Fit a clone to all rows, or to some of them."""
        start, rows = time.perf_counter(), self.rows
        model, failure = clone(estimator), None
        options = {} if rows.weight is None else {"sample_weight": rows.weight[chosen]}
        options["selected"] = rows.status.selected[chosen]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HeckmanfaWarning)
            try:
                model = model.fit(self.X.iloc[chosen], rows.outcome[chosen], **options)
            except HeckmanfaError as error:
                model, failure = None, error
        return _Fitted(model, failure, time.perf_counter() - start)

    def held(
        self, estimator: Any, repeat: int, train: NDArray[np.intp], test: NDArray[np.intp]
    ) -> HeldFold | None:
        """Predict the selected rows of a fold by a fit to the others; None if that fails."""
        model, rows = self.fit(estimator, train).model, self.rows
        if model is None:
            return None
        test = test[rows.status.selected[test] & ~np.isnan(rows.outcome[test])]
        weight = np.ones(len(test)) if rows.weight is None else rows.weight[test]
        kind = {} if isinstance(model, ObservedRegressor) else {"kind": "selected"}
        if self.n_classes:
            predicted = _every_class(model, self.X.iloc[test], self.n_classes)
        elif hasattr(model, "predict_proba"):
            predicted = np.asarray(model.predict_proba(self.X.iloc[test], **kind))[:, 1]
        else:
            predicted = np.asarray(model.predict(self.X.iloc[test], **kind))
        return HeldFold(repeat, rows.outcome[test], predicted, weight)


def _every_class(model: Any, X: pd.DataFrame, n_classes: int) -> Floats:
    """Return the probability of every class given selection; zero if a fit did not have it."""
    known = np.asarray(model.predict_proba(X, kind="selected"))
    predicted = np.zeros((len(X), n_classes))
    predicted[:, np.asarray(model.classes_, dtype=np.intp)] = known
    return predicted


def compare_methods(
    X: pd.DataFrame,
    y: Any,
    *,
    selected: Any = None,
    sample_weight: Any = None,
    outcome_kind: str = USUAL_KIND,
    estimators: dict[str, Any] | None = None,
    search_in: SearchIn = "prediction",
    selection_always: Any = (),
    selection_never: Any = (),
    never: Sequence[Any] = (),
    positive: Any = None,
    n_folds: int = 5,
    n_repeats: int = 3,
    random_state: int = 0,
    say: Callable[[str], None] | None = None,
) -> Comparison:
    """Fit every method to the same folds, and predict held-out rows given that they are selected.

    Parameters
    ----------
    X : DataFrame
    y, selected, sample_weight
        As in `Heckman.fit`; weights are frequencies.
    outcome_kind : {"linear", "binary", "ordered"}
        Whether outcomes are amounts, two classes as in `HeckmanProbit.fit`, or ordered classes as
        in `HeckmanOrdered.fit`.
    estimators : dict, optional
        Estimators by name; by default, all methods of the package.
    search_in, selection_always, selection_never
        As in `HeckmanAverage`, for the best subset and the averages of the package. Estimators
        that are given have their own.
    never : sequence, optional
        Columns of X that drive selection and must not predict, for the methods of the package. The
        series, which needs one, is compared only if there is any.
    positive : label, optional
        Of an ordered outcome, the class whose probability, with that of higher ones, is estimated
        for everyone; by default the highest.
    n_folds, n_repeats : int
        Each repeat is another partition into folds.
    say : callable, optional
        Called with a few words at each step.

    Raises
    ------
    HeckmanfaError
        If several Heckman methods are given, and all fail on all rows for the same reason.
    """
    if n_folds < 2 or n_repeats < 1:
        raise InputError(
            f"n_folds must be at least 2 and n_repeats at least 1; got {n_folds} and {n_repeats}"
        )
    family, own = family_named(outcome_kind), estimators is None
    if positive is not None and not family.is_ordered:
        raise InputError("positive is for ordered outcomes: leave it out")
    rows = _read(X, y, selected, sample_weight, family)
    if estimators is None:
        equations = {
            "search_in": search_in,
            "selection_always": selection_always,
            "selection_never": selection_never,
        }
        may = [name for name in X.columns if name not in {*never}] if len(never) else None
        estimators = methods_compared.methods(
            seed=random_state, family=family, equations=equations, predicting=may
        )
    elif search_in != "prediction":
        raise InputError(
            "search_in is for the methods of the package: set it in the estimators that are given"
        )
    for estimator in estimators.values():
        if isinstance(getattr(estimator, "cov_type", None), Survey):
            raise InputError(
                "held-out rows of a survey would need folds of whole sampling units, and errors "
                "weighted by the population, which not all methods have: fit each model with its "
                f"Survey, and set them side by side with etable. {_NO_DESIGN}"
            )
        if isinstance(estimator, SelectionModel):
            estimator.family.require("single outcome equation")
    splits = [
        (repeat, train, test)
        for repeat in range(n_repeats)
        for train, test in SelectionKFold(
            n_folds, shuffle=True, random_state=random_state + repeat
        ).split(X, rows.outcome, selected=rows.status.selected)
    ]
    n_classes = len(rows.classes or ()) if family.is_ordered else 0
    everyone = _everyone(rows.classes or (), positive, y) if family.is_ordered else EVERYONE
    folded = _FoldedRows(X, rows, splits, n_folds, n_repeats, n_classes, everyone)
    # These come first: if none of them can be fitted, the table is of no use.
    wholes = {
        name: folded.fit(estimator)
        for name, estimator in estimators.items()
        if isinstance(estimator, SelectionModel)
    }
    _refuse_all([whole.error for whole in wholes.values()], options=own)
    return _compare(folded, estimators, wholes, family, say or (lambda words: None))


def _compare(
    folded: _FoldedRows,
    estimators: Mapping[str, Any],
    wholes: Mapping[str, _Fitted],
    family: Family,
    say: Callable[[str], None],
) -> Comparison:
    """Judge every method by its folds; ``wholes`` are the selection models, fitted to all rows."""
    measure = CLASSES if family.has_classes else AMOUNTS
    if family.is_ordered:
        measure = ORDERED_CLASSES
    records: list[dict[str, Any]] = []
    fitted, errors = {}, {}
    for name, estimator in estimators.items():
        say(f"{name}: {len(folded.splits)} folds")
        whole = wholes.get(name) or folded.fit(estimator)
        model = whole.model
        records.append({"method": name, "seconds": whole.seconds, "note": str(whole.error or "")})
        if model is not None:
            # What is not a selection model corrects for nothing.
            fitted[name] = model
            rho = getattr(model, "rho_", np.nan) if name in wholes else np.nan
            held = [folded.held(estimator, *split) for split in folded.splits]
            errors[name], judged = measure.judge(held, folded.n_repeats)
            records[-1] |= {"n_features": len(model.prediction_features_), "rho": rho, **judged}
    counts = _counts(folded.rows)
    share = float(np.mean([len(test) / len(train) for _, train, test in folded.splits]))
    usual = _USUAL.get(OUTCOME_MODELS[family.name].usual, "")
    verdict = judge_methods(errors, list(wholes), share, measure, usual)
    return Comparison(
        table=_table(records, verdict, measure),
        n_folds=folded.n_folds,
        n_repeats=folded.n_repeats,
        features={name: list(model.prediction_features_) for name, model in fitted.items()},
        coefficients=_coefficients(fitted, [str(name) for name in folded.X.columns]),
        verdict=verdict,
        measure=measure,
        models=tuple(name for name in fitted if name in wholes),
        estimates=all_estimates(fitted, folded.X, folded.rows.weight, folded.everyone),
        everyone=folded.everyone,
        making={name: Making.of(model) for name, model in fitted.items()},
        assumptions={name: assumption_of(model) for name, model in fitted.items()},
        n_obs=counts.kept if folded.rows.weight is None else round(counts.weight_sum),
        bounds=bounds_of(folded.rows, folded.X, family, fitted.values(), folded.everyone),
        in_both=tuple(
            name for name, model in fitted.items() if getattr(model, "search_in", None) == "both"
        ),
    )


def _table(records: list[dict[str, Any]], verdict: MethodVerdict, measure: Measure) -> pd.DataFrame:
    """Return the records of methods as a table, with their differences from the verdict's."""
    for record in records:
        difference = verdict.differences.get(record["method"])
        if difference is not None:
            record |= {"difference": difference.mean, "difference_se": difference.std_error}
    scores = [score for name in measure.columns for score in (name, f"{name}_sd")]
    return pd.DataFrame(records, columns=[*_FIRST, *scores, *_LAST])


def _read(
    X: pd.DataFrame, y: Any, selected: Any, sample_weight: Any, family: Family
) -> DecidedRows:
    arguments = {"X": X, "y": y, "selected": selected, "sample_weight": sample_weight}
    for name, values in arguments.items():
        if is_dask(values):
            raise InputTypeError(
                f"compare_methods needs its rows in memory, and {name} is a Dask "
                f"{type(values).__name__}: call {name}.compute() first"
            )
    match_rows(arguments)
    learn = OrderedClasses().of if family.is_ordered else None
    rows = read_rows(y, len(X), selected, sample_weight, binary=family.has_classes, learn=learn)
    if rows.weight is not None:
        # Warn once for all methods and folds, whose own warnings are not shown.
        check_frequencies(_counts(rows), own=False)
    return rows


def _everyone(classes: Classes, positive: Any, y: Any) -> Everyone:
    """Return the probability of a class of an ordered outcome, and of those above it."""
    if positive is not None and positive not in classes[1:]:
        raise InputError(
            f"positive must be a class above the lowest: {quoted_list(classes[1:], MOST_CLASSES)}; "
            f"got {quoted(positive)}"
        )
    place = len(classes) - 1 if positive is None else classes.index(positive)
    name = getattr(y, "name", None)
    words = EffectWords(
        name if isinstance(name, str) else "y",
        (classes[place - 1], classes[place]),
        or_higher=place < len(classes) - 1,
    )
    return Everyone(str(words.target), str(words.target), place)


def _counts(rows: DecidedRows) -> RowCounts:
    return count_rows(rows.status, rows.outcome, rows.weight)


def _refuse_all(errors: list[HeckmanfaError | None], *, options: bool) -> None:
    """Raise the error of the Heckman methods if all of several fail for the same reason.

    The data are then the cause; if one method is tried alone, it may be the cause itself. With
    ``options``, an error about an option, which only some of the methods have, is raised too.
    """
    for error in errors if options else ():
        if error is not None and type(error) in (InputError, UnknownFeatureError):
            raise error
    first = errors[0] if len(errors) > 1 else None
    if first is not None and all(type(error) is type(first) for error in errors):
        raise first


def _coefficients(fitted: dict[str, Any], names: list[str]) -> pd.DataFrame:
    table = pd.DataFrame({"term": ["Intercept", *names]})
    for name, model in fitted.items():
        coef = getattr(model, "coef_", None)
        if coef is not None:
            # An average has coefficients of features that probably do not predict.
            held = np.where(model.support_ | (coef != 0.0), coef, np.nan)
            table[name] = [model.intercept_, *held]
    return table
