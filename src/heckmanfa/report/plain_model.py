"""One selection model of given features, as other programs fit it, and the table that they read.

The tabs of a report hold code in Python, R and Stata. No other program averages over assignments
or searches for one, so for R and Stata a fit stands for one model whose numbers its report shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.values import label_of
from heckmanfa.fit import Fit
from heckmanfa.text.option_types import CovType, Method, OutcomeTransform, WeightKind

_OF_REPORT = "the estimates and standard errors of this report"
_OF_ALL = "what this report calls All features, the model with every feature that may predict"
_NO_AVERAGE = "R and Stata have no average over sets of features."
_OF_TREATMENT = (
    "Code for treatment models is written in Python alone. With common regimes, etregress in Stata "
    "and treatReg of R's sampleSelection fit the same model by maximum likelihood; with separate "
    "ones, Stata's movestay does."
)
_NO_HALVES = "R and Stata have no search by halves of the rows."


@dataclass(frozen=True)
class Roles:
    """The columns of a table that are not features, by what they say."""

    outcome: str
    selected: str | None = None
    """who is selected; None if all rows with an outcome are"""
    weights: str | None = None
    cluster: str | None = None

    @property
    def names(self) -> list[str]:
        """Those that there are."""
        named = (self.outcome, self.selected, self.weights, self.cluster)
        return [name for name in named if name is not None]


@dataclass(frozen=True)
class Reading:
    """How a program reads the table of a fit from a text file."""

    path: str
    columns: tuple[str, ...]
    """all columns of the file, in order"""
    first: str = ""
    """what to do first, in a sentence: save such a file"""
    delimiter: str = ","
    decimal: str = "."
    skipped: int = 0
    """lines above the names"""
    encoding: str = "utf-8"
    codes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """values that mean missing, by column"""
    dropped: Sequence[tuple[str, str] | None] = ()
    """rows that are not data, by a column and what it holds there; None is the last row"""


@dataclass(frozen=True)
class PlainModel:
    """One selection model of given features."""

    roles: Roles
    prediction: tuple[str, ...]
    """columns of the table in the prediction equation"""
    selection: tuple[str, ...] | None
    """columns of the selection equation; None if no outcome is missing"""
    features: tuple[str, ...]
    """columns that every row must have"""
    levels: Mapping[str, tuple[str, ...]]
    """levels of each category, the reference first"""
    n_rows: int
    n_selected: int
    method: Method
    errors: CovType
    weight_kind: WeightKind
    gives: str
    """which numbers of the report it gives, as the end of a sentence"""
    instead: str = ""
    """why not those of the fit, in a sentence; empty if it does"""
    transform: OutcomeTransform | None = None
    classes: tuple[str, ...] | None = None
    """of a binary outcome: the class coded 0 and the class coded 1"""
    ordered: bool = False
    """whether classes are all of an ordered outcome, the lowest first"""
    start: float | None = None
    """the rho that maximum likelihood starts from"""
    fills: Mapping[str, float] = field(default_factory=dict)
    """what stands for missing values of a column"""
    merged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """levels of categories that are one level, the last of ``levels``"""
    ignore_case: bool = False

    @property
    def used(self) -> list[str]:
        """Every column of the table that it needs, each once."""
        return list(dict.fromkeys([*self.roles.names, *self.features]))

    @property
    def numbers(self) -> list[str]:
        """Those of them that hold numbers."""
        outcome = [] if self.classes else [self.roles.outcome]
        weights = [] if self.roles.weights is None else [self.roles.weights]
        return [*outcome, *weights, *(name for name in self.features if name not in self.levels)]

    @property
    def texts(self) -> list[str]:
        """The others, which are read as text."""
        numbers = {*self.numbers}
        return [name for name in self.used if name not in numbers]


def plain_model(fit: Fit, encoding: Encoding, roles: Roles) -> PlainModel | str:
    """Return the model that other programs can fit, or why there is none, in a sentence.

    ``encoding`` is how the columns of the table became those of the model.
    """
    why = _cannot(fit, encoding)
    if why:
        return why
    both = fit.way.is_average and fit.way.form_of_both is not None
    whole = not fit.way.is_one_fit
    prediction = fit.way.candidates if whole else None
    predicting = _sources(encoding, fit.equation if prediction is None else prediction)
    driving = fit.spec.selection if both or fit.probit is None else fit.probit.features
    selecting = _sources(encoding, driving)
    if predicting is None or selecting is None:
        return "Some levels of a category were left out here, as R and Stata would not do."
    filled = [name for name in encoding.sources if name in encoding.n_missing]
    fills = {name: encoding.means[name] for name in filled} if encoding.missing == "mean" else {}
    halves = fit.way.halves_rows
    return PlainModel(
        roles=roles,
        prediction=predicting,
        selection=None if fit.probit is None else selecting,
        features=encoding.sources,
        levels=encoding.levels,
        n_rows=fit.row_counts["selected"] + fit.row_counts["unselected"],
        n_selected=fit.row_counts["selected"],
        method="two-step" if halves or fit.probit is None else fit.spec.method,
        errors="classical" if halves else fit.spec.cov_type or "classical",
        weight_kind=fit.spec.weight_kind,
        gives=_OF_ALL if whole else _OF_REPORT,
        instead=_NO_HALVES if halves else _NO_AVERAGE if whole else "",
        transform=fit.spec.outcome_transform,
        classes=_labels(fit),
        ordered=fit.family.is_ordered,
        start=fit.spec.start if isinstance(fit.spec.start, float | int) else None,
        fills=fills,
        merged=encoding.merged,
        ignore_case=encoding.ignore_case,
    )


def _labels(fit: Fit) -> tuple[str, ...] | None:
    classes = fit.classes if fit.ordered_classes is None else fit.ordered_classes
    return None if classes is None else tuple(map(label_of, classes))


def _cannot(fit: Fit, encoding: Encoding) -> str:
    """Say why no other program gives numbers of the report; empty if one does."""
    if fit.origin.design is not None:
        return "The columns of this model are made by formulas, which Python alone reads."
    if fit.family.sees_everyone:
        return _OF_TREATMENT
    if fit.probit is None and fit.family.has_classes:
        return "No outcome is missing, so this is an ordinary probit."
    if not fit.family.can("programs"):
        return fit.family.words.lacking["programs"]
    if not fit.family.can("normal errors"):
        return "The errors are t here, and the programs of a report have normal ones."
    if fit.design is not None:
        return "Standard errors are by the design of a survey here, which only Python is told."
    if fit.cluster_counts:
        return "Errors are clustered by two columns here, and the programs of a report by one."
    if fit.held_rho is not None:
        return "rho is held at a value here, and R and Stata estimate it."
    if fit.way.halves_rows and fit.family.has_classes:
        return _NO_HALVES
    if fit.row_counts.get("left_out_separation"):
        return "Rows were left out here because a column decides them, which R and Stata do not do."
    if encoding.dates:
        return "Dates became numbers here, which R and Stata would read as text."
    filled = {name for name in encoding.levels if name in encoding.n_missing}
    if encoding.missing == "mean" and filled:
        return "Missing levels were filled with shares here, which R and Stata do not do."
    return ""


def _sources(encoding: Encoding, places: Sequence[int]) -> tuple[str, ...] | None:
    """Return the columns of the table behind columns of the model; None if some levels lack."""
    wanted = {*places}
    sources = []
    for source, group in encoding.positions.items():
        inside = wanted.intersection(group)
        if not inside:
            continue
        if len(inside) < len(group) or len(encoding.levels.get(source, "ab")) < 2:
            return None
        sources.append(source)
    return tuple(sources)
