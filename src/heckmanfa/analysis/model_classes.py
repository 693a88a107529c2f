"""The classes that a model file may hold, and the shapes of their fields.

A class that is not listed here is not made. A field of arrays, positions or values of any type is
declared in `FIELDS`; other fields need their annotation only. A declaration is a text of clauses:

=================  ==========================================================================
``[N, k + 2]``     the shape of an array; several are alternatives, or those of a list's items
``#K``             that many items, or at most that many characters of a text
``@K``             positions among K, none of them twice
``=K``, ``<=K``    an integer that is K, or from 0 to K
``>k``             from here on, k is the number of items
``~``              numbers that may be NaN or infinite; all others are finite
``-``              integers that may be negative
``!``              None
=================  ==========================================================================

K is the number of columns of the model. A size that is not known yet is learned from the first
array that has it; `MOST` bounds those that grow with K.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

MODELS = {
    "DoublyRobust": "heckmanfa.estimators.doubly_robust",
    "Heckman": "heckmanfa.estimators.heckman",
    "HeckmanAverage": "heckmanfa.estimators.averaged",
    "HeckmanBestSubset": "heckmanfa.estimators.searches",
    "HeckmanFA": "heckmanfa.estimators.searches",
    "HeckmanLasso": "heckmanfa.estimators.searches",
    "HeckmanOrdered": "heckmanfa.estimators.heckman_ordered",
    "HeckmanOrderedAverage": "heckmanfa.estimators.ordered_searches",
    "HeckmanOrderedBestSubset": "heckmanfa.estimators.ordered_searches",
    "HeckmanProbit": "heckmanfa.estimators.heckman_probit",
    "HeckmanProbitAverage": "heckmanfa.estimators.averaged",
    "HeckmanProbitBestSubset": "heckmanfa.estimators.probit_searches",
    "InverseProbabilityWeighted": "heckmanfa.estimators.weighted",
    "NaiveOLS": "heckmanfa.estimators.baselines",
    "RURegressor": "heckmanfa.estimators.ru",
    "TreatmentAverage": "heckmanfa.estimators.treatment_searches",
    "TreatmentBestSubset": "heckmanfa.estimators.treatment_searches",
    "TreatmentModel": "heckmanfa.estimators.treatment",
}
PARTS = {
    "AllFeatures": "heckmanfa.search.searched",
    "AtanhRho": "heckmanfa.analysis.model_state",
    "Average": "heckmanfa.search.averaging.result",
    "AveragedTreatment": "heckmanfa.fit.treatment_details",
    "AverageOutcome": "heckmanfa.search.averaging.result",
    "BinaryOutcome": "heckmanfa.fit.binary",
    "Choices": "heckmanfa.search.choices",
    "Coordinates": "heckmanfa.model.linalg",
    "DateScale": "heckmanfa.data.columns.dates",
    "Encoding": "heckmanfa.data.columns.encoding",
    "Equation": "heckmanfa.data.formula.design",
    "EquationEstimate": "heckmanfa.fit.fitted",
    "ErrorEstimate": "heckmanfa.fit.fitted",
    "ExactRefits": "heckmanfa.search.searched",
    "Fit": "heckmanfa.fit.fitted",
    "FittedColumns": "heckmanfa.data.columns.features",
    "Form": "heckmanfa.search.form",
    "FormulaDesign": "heckmanfa.data.formula.design",
    "Goal": "heckmanfa.search.goal",
    "Honest": "heckmanfa.inference.honest",
    "LikelihoodGuards": "heckmanfa.model.likelihood_guards",
    "LinearDetails": "heckmanfa.fit.linear",
    "Moments": "heckmanfa.model.moments",
    "Network": "heckmanfa.estimators.ru",
    "OrderedOutcome": "heckmanfa.fit.ordered_cut",
    "Origin": "heckmanfa.fit.fitted",
    "Overlap": "heckmanfa.model.inverse_probabilities",
    "OwnScale": "heckmanfa.model.own_scale",
    "PlainEstimates": "heckmanfa.results.plain_estimates",
    "Probit": "heckmanfa.model.probit",
    "QuadraticForm": "heckmanfa.analysis.model_state",
    "Search": "heckmanfa.search.searched",
    "SearchOutcome": "heckmanfa.search.searched",
    "SeriesDetails": "heckmanfa.fit.series",
    "Spec": "heckmanfa.fit.fitted",
    "StudentDetails": "heckmanfa.fit.student",
    "Survey": "heckmanfa.data.survey",
    "SurveyDesign": "heckmanfa.data.survey_design",
    "Trained": "heckmanfa.search.training.assignment_function",
    "TreatmentDetails": "heckmanfa.fit.treatment_details",
}


def class_named(name: str) -> Any:
    """Return a class that is listed here."""
    return getattr(import_module((MODELS | PARTS)[name]), name)


_RENAMED = {"AverageOutcome.average": "mixture", "SearchOutcome.honest": "halves"}
"""fields that had another name in earlier files"""
_GONE = {"Average.correction_excess", "Average.n_fixed", "Goal.column_penalty"}
"""fields of earlier files that follow from others"""
_FLAT = {
    "equations": {
        "prediction": ("EquationEstimate", {"coef": "coef", "intercept": "intercept"}),
        "selection": (
            "EquationEstimate",
            {"coef": "selection_coef", "intercept": "selection_intercept"},
        ),
    },
    "errors": {
        "imr": ("ErrorEstimate", {"value": "imr_coef"}),
        "rho": ("ErrorEstimate", {"value": "rho", "transformed": "atanh_rho"}),
        "sigma": ("ErrorEstimate", {"value": "sigma", "transformed": "log_sigma"}),
    },
}
"""fields of a `Fit` that earlier files have side by side, by where they are now"""


def as_now(name: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a class as they are named now, given those of any file."""
    fields = {
        _RENAMED.get(f"{name}.{key}", key): value
        for key, value in content.items()
        if f"{name}.{key}" not in _GONE
    }
    if name == "Spec" and "rho" in fields:
        rho = fields.pop("rho")
        fields["held"] = {} if rho is None else {"rho": rho}
    if name != "Fit":
        return fields
    _tell_form(fields)
    guards = fields.pop("guards", None)
    if "coef" in fields:
        _gather_flat(fields)
    if guards is not None:
        (details,) = (fields.get("details") or {"LinearDetails": {}}).values()
        fields["details"] = {"LinearDetails": details | {"guards": guards}}
    return fields


def _gather_flat(fields: dict[str, Any]) -> None:
    """Put what earlier files have side by side where it is now."""
    for place, parts in _FLAT.items():
        fields[place] = {
            name_now: {kind: {new: fields.pop(old) for new, old in names.items() if old in fields}}
            for name_now, (kind, names) in parts.items()
        }
    linear = {key: fields.pop(key) for key in ("own_scale", "rho_scores") if key in fields}
    binary = [fields.pop(key) for key in ("binary", "probability") if key in fields]
    fields["details"] = next((kept for kept in binary if kept), {"LinearDetails": linear})


def _tell_form(fit: dict[str, Any]) -> None:
    """Tell the form of a search in an earlier file what only other parts of its fit have."""
    moments = _inside(fit, "moments.Moments")
    search = _inside(fit, "search.SearchOutcome.result.Search")
    form = _inside(search, "goal.Goal.form.QuadraticForm")
    if form:
        form["selection"] = _inside(moments, "probit.Probit").get("features")
        form["n_features"] = moments.get("n_features")
        form["n_selected"] = moments.get("n_selected")
        form["errors"] = "binary" if search.get("refits") else "two-step"


def _inside(node: Any, path: str) -> dict[str, Any]:
    """Return what lies on a path in JSON; nothing if it is not there."""
    for key in path.split("."):
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


# The most that sizes may be which arrays have twice, or which are not counted by other fields.
MOST = {
    "T": "3 K + 60",
    "P": "3 K + 11",
    "d": "3 K + 60",
    "q": "K + 2",
    "f": "2 K + 50",
    "b": "1 + 2 K/8",
    "s": "3 K + 5",
    "z": "K + 1",
    "j": "K",
    "c": "48",
}
_DECLARED = """
NaiveOLS: _support [K]; coef_ [K]; sigma_ ~; adjusted_r2_ ~; dropped_features_
InverseProbabilityWeighted: _support [K]; coef_ [K]; sigma_ ~; adjusted_r2_ ~;
    dropped_features_; selection_coef_ [K]; selection_intercept_ ~; max_weight_ ~;
    effective_rows_ ~
DoublyRobust: _support [K]; coef_ [K]; dropped_features_; max_weight_ ~; effective_rows_ ~
RURegressor: _support [K]; loss_ ~
AllFeatures: columns @K >k; coef [1 + k] ~; atanh_rho ~; slopes [k] ~; slope_errors [k] ~
AtanhRho: estimate ~; variance ~; covariance [k] ~; excess ~
Average: rho_range ~; shares [K]; alone [K]; correction_share ~; index_share ~; own_share [K];
    positive [K]; negative [K]; correction_signs ~; free [f]; rho ~; sigma ~; outside ~;
    best_weight ~; leading [N, b]; leading_weight [N] ~; leading_cost [N] ~; leading_rho [N] ~;
    components [C, b]; component_weights [C]; all_features_share ~; disagreement ~;
    selection_shares [K]; selection_signs [2, K]; ends ~
AverageOutcome: two_step_chance ~
AveragedTreatment: effects [4] ~; gradients [4, T] ~; n_rows [4]; means ~; least_squares ~;
    naive [z] ~; apart ~; ranges [2, 2] ~; group_effects [G, 4] ~; group_gradients [G, 4, T] ~
BinaryOutcome: independent_log_likelihood ~; naive_coef [z] ~; naive_covariance [z, z] ~;
    mean_slope ~; mean_slope_gradient [z] ~; naive_mean_slope ~; naive_mean_slope_gradient [z]
    ~; separated @K; deciding @K
Choices: n_features =K; always @K; units @K; max_features <=K; min_features <=K
Coordinates: centre [p]; transform [p, p]; mean [p]; scale [p]
Encoding: decimal #4; thousands #4; means ~; level_rows
Equation: transforms; encodings
ExactRefits: approximate [N] ~; log_likelihood [N] ~; coef [N, K] ~; beyond ~;
    full_log_likelihood ~
EquationEstimate: coef [K]; intercept ~
ErrorEstimate: value ~; transformed ~
Fit: part !; dropped @K; support [K]; adjusted_r2 ~; aic ~; bic ~; terms >T; covariance [T, T] ~;
    index_range ~; log_likelihood ~; params [P]; second_maximum ~
FittedColumns: labels_given
Form: columns @K >k; selection @K; n_features =K; estimates [d]; covariance [d, d]; mean_delta ~;
    correction_excess ~; searched @K; drivers @K; mean_deltas ~
FormulaDesign: features !; outcome !; selected !; kept !; lost !; factors !; dropped_levels;
    reference
Goal: rho_range ~; units @K
Honest: labels #K; names #K; candidates @K; error_terms >E; estimates [R, K + 1 + E] ~;
    variances [R, K + 1 + E] ~
LinearDetails: rho_scores [s, s]
LikelihoodGuards: two_step ~; difference ~; variance ~; spread [q] ~
Moments: columns @K >k; n_features =K; factor [k + 3, k + 3]; factor_delta [k + 2, k + 2];
    index_range ~
Network: centre [j]; scale [j]; weights [64, j] [64] [64, 64] [64] [1, 64] [1]
OrderedOutcome: class_counts; independent_log_likelihood ~; naive_coef [z] ~;
    naive_steps [c] ~; naive_covariance [v, v] ~; mean_slopes [2, g] ~;
    mean_slope_gradients [2, g, z] ~
Origin: classes -
Overlap: share_capped ~; share_dropped ~; largest ~; effective ~; share_largest ~; lowest ~;
    highest ~
OwnScale: ratio ~; ratio_error ~; sigma_on [T + 1] ~
PlainEstimates: terms >T; values [T]; covariance [T, T] ~; df [T] ~
Probit: features @K >p; coef [1 + p]; covariance [1 + p, 1 + p] ~; inner_coef [1 + p];
    inner_covariance [1 + p, 1 + p] ~
QuadraticForm: columns @K >k; estimates [k]; covariance [k, k]; selection @K; n_features =K
Search: packed [N, K/8]; n_columns =K; n_features [N]; rho [N] ~; adjusted_r2 [N] ~; aic [N] ~;
    bic [N] ~; in_range [N]; gap ~; tolerance ~; corrected_bic [N] ~; selection_packed [N, K/8];
    joint_ebic [N] ~
SearchOutcome: candidates @K
SeriesDetails: left_out_errors ~; level_rows ~
Spec: labels #K; selection @K; prediction @K; groups @K; start; number <=50; class_order -
StudentDetails: normal_log_likelihood ~
Trained: log_pi [2, K] ~; mae ~; path [E, K]; path_epochs [E]; path_mae [E] ~
TreatmentDetails: effects [4] ~; gradients [4, T] ~; n_rows [4]; means ~; least_squares ~;
    naive [z] ~; apart ~; ranges [2, 2] ~
"""


def _declared() -> dict[str, dict[str, str]]:
    """Read the declarations: a class, and its fields with theirs."""
    entries = re.findall(r"^(\w+): (.*(?:\n .*)*)", _DECLARED, re.MULTILINE)
    fields = {
        name: [field.split(maxsplit=1) for field in text.split(";")] for name, text in entries
    }
    return {
        name: {field[0]: " ".join(field[1:]) for field in parts} for name, parts in fields.items()
    }


FIELDS = _declared()


class UnsoundError(Exception):
    """A part of a model file has the wrong type, shape or value."""


# Products of a few finite numbers stay finite.
_LARGEST = np.float64(1e100)
Shape = tuple[str, ...]
_CLAUSE = re.compile(r"\[([^][]*)\]|(<=|[#@=>~!-])(\w*)")


@dataclass(frozen=True)
class Rule:
    """What is declared of a field."""

    shapes: tuple[Shape, ...] = ()
    length: str = ""
    positions: str = ""
    equal: str = ""
    most: str = ""
    names: str = ""
    any_number: bool = False
    signed: bool = False
    absent: bool = False

    @property
    def longest(self) -> int | None:
        """The most characters of a text; None if not declared."""
        return int(self.length) if self.length.isdigit() else None

    @property
    def item(self) -> Rule:
        """What is declared of each item."""
        return replace(self, length="", names="")

    def each(self) -> list[Rule]:
        """Return what is declared of each array of a list."""
        return [replace(self, shapes=(shape,), length="", names="") for shape in self.shapes]

    def allows(self, numbers: Any) -> bool:
        """Whether numbers are finite, and not too large; or NaN or infinite if declared."""
        allowed = np.abs(numbers) <= _LARGEST
        return bool(np.all(allowed | ~np.isfinite(numbers) if self.any_number else allowed))

    def check_length(self, count: int, sizes: Sizes) -> None:
        """Refuse another number of items than declared, and learn it."""
        if self.length and count != sizes.of(self.length):
            raise UnsoundError(f"it has {count:,} entries, not {sizes.of(self.length):,}")
        if self.positions and not self.shapes and count > sizes.of(self.positions):
            raise UnsoundError(f"it has {count:,} entries, more than {sizes.of(self.positions):,}")
        if self.names:
            sizes.learn(self.names, count)

    def check_integer(self, number: int, sizes: Sizes) -> None:
        """Refuse an integer outside its bounds."""
        low, high = 0, None
        if self.positions:
            high = sizes.of(self.positions) - 1
        if self.most:
            high = sizes.of(self.most)
        if self.equal:
            low = high = sizes.of(self.equal)
        if (number < low and not self.signed) or (high is not None and number > high):
            raise UnsoundError(f"{number:,} is out of bounds")


ANYTHING = Rule()


def parse_rule(text: str) -> Rule:
    """Read a declaration."""
    if _CLAUSE.sub("", text).strip():
        raise ValueError(f"{text!r} is not a declaration")
    shapes, marks = [], dict[str, str]()
    for shape, mark, name in _CLAUSE.findall(text):
        if mark:
            marks[mark] = name
        else:
            shapes.append(tuple(size.strip() for size in shape.split(",")))
    return Rule(
        shapes=tuple(shapes),
        length=marks.get("#", ""),
        positions=marks.get("@", ""),
        equal=marks.get("=", ""),
        most=marks.get("<=", ""),
        names=marks.get(">", ""),
        any_number="~" in marks,
        signed="-" in marks,
        absent="!" in marks,
    )


@dataclass
class Sizes:
    """The sizes that are known, by name."""

    known: dict[str, int]
    most: Mapping[str, str]
    """the most that a size may be, in sizes that are known"""

    def inside(self) -> Sizes:
        """Return the sizes for an object inside this one, which may have its own."""
        return Sizes(dict(self.known), self.most)

    def of(self, text: str) -> int:
        """Return a size such as ``2 K + 3``; ``K/8`` is in bytes of eight."""
        total = 0
        for term in text.split("+"):
            *factor, name = term.split()
            name, _, per = name.partition("/")
            if not name.isdigit() and name not in self.known:
                raise UnsoundError(f"the size {name} is not known")
            value = int(name) if name.isdigit() else self.known[name]
            total += (int(factor[0]) if factor else 1) * (-(-value // int(per)) if per else value)
        return total

    def learn(self, name: str, value: int) -> None:
        """Take a size from the first part that has it."""
        if name in self.most and value > self.of(self.most[name]):
            raise UnsoundError(f"{value:,} is more than {self.of(self.most[name]):,}")
        self.known[name] = value

    def match(self, shape: Sequence[int], declared: Sequence[Shape]) -> None:
        """Refuse a shape that is not a declared one."""
        for wanted in declared:
            if len(wanted) == len(shape):
                for size, text in zip(shape, wanted, strict=True):
                    if text.isalpha() and text not in self.known:
                        self.learn(text, size)
                    if size != self.of(text):
                        raise UnsoundError(f"an array of shape {(*shape,)} is there")
                return
        raise UnsoundError(f"an array of {len(shape)} dimensions is there")
