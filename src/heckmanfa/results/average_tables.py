"""What an average over assignments says: chances, roles, assignments, and intervals.

The distribution of an averaged estimate is a mixture: with the weight of assignment S, normal
about the estimate in S, and a point mass at zero if S does not hold the feature. The model of all
features has a share of its own. The quantiles of the mixture are the intervals. What surely
predicts has the interval over the assignments in which it does; what does not surely predict has
zero in its interval. Chances follow the weights of `heckmanfa.text.chances`, whatever weighs the
estimates: under AIC, a feature without any effect has a share of about 38%, under BIC typically of
about 1 / (1 + sqrt(m)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.model.student_problem import DF
from heckmanfa.results.distribution import check_level, distribution_of, tails
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.averaging.weights import WEIGHT_CRITERIA
from heckmanfa.text.chances import CHANCES_BY, says
from heckmanfa.text.wording import percent

PREDICTS = "predicts"
PREDICTS_AS_INDEX = "predicts, on its own or as it drives selection"
UNSURE = "cannot be told"
UNSURE_AS_INDEX = "cannot be told: only as it drives selection"
NO_SIGN = "no sign that it predicts"
ALWAYS = "always included"
SURELY = (PREDICTS, PREDICTS_AS_INDEX)
"""roles of features that predict"""
UNTOLD = (UNSURE, UNSURE_AS_INDEX)
"""roles of features for which it cannot be told"""

DRIVES_SELECTION = "drives selection"
NO_SIGN_OF_SELECTION = "no sign that it drives selection"

OFTEN_OUTSIDE = 0.05
"""From this weight on, assignments whose rho is no correlation are worth a word."""

_MANY_ROWS = 100


def has_pseudo_weights(fit: Fit) -> bool:
    """Whether only a pseudo-likelihood could weigh the assignments."""
    return fit.weighted and fit.spec.weight_kind == "sampling"


def role_of(chance: float, alone: float) -> str:
    """Return the role of a feature with this chance, and this share of predicting on its own."""
    said = says(chance)
    if said == "sure":
        return PREDICTS if says(alone) == "sure" else PREDICTS_AS_INDEX
    if said == "no sign":
        return NO_SIGN
    return UNSURE_AS_INDEX if says(alone) == "no sign" else UNSURE


def selection_role(chance: float) -> str:
    """Return the role in the selection equation of a feature with this chance."""
    return {"sure": DRIVES_SELECTION, "no sign": NO_SIGN_OF_SELECTION}.get(says(chance), UNSURE)


def shares_frame(fit: Fit, mixture: Average, units: Sequence[Sequence[int]]) -> pd.DataFrame:
    """Return a row for each feature or group: its share by each kind of weights, and its role.

    The share by a kind is that in which it predicts, on its own ("aic_alone") or with the index
    ("aic_index").
    """
    named = [tuple(fit.spec.feature_names(unit)) for unit in units]
    ways = {"": mixture.shares, "_alone": mixture.alone, "_index": mixture.with_index}
    return pd.DataFrame(
        [
            {
                "feature": names[0] if len(names) == 1 else names,
                **{
                    f"{kind}{way}": float(of[kind][unit[0]])
                    for way, of in ways.items()
                    for kind in WEIGHT_CRITERIA
                },
                "role": role_of(
                    *(float(of[CHANCES_BY][unit[0]]) for of in (mixture.shares, mixture.alone))
                ),
            }
            for unit, names in zip(units, named, strict=True)
        ],
        columns=["feature", *(f"{kind}{way}" for way in ways for kind in WEIGHT_CRITERIA), "role"],
    )


def units_of(fit: Fit) -> list[tuple[int, ...]]:
    """Return the columns that every assignment holds, and the features and groups that may go."""
    choices = fit.way.averaging.mixture.choices
    return sorted([*((column,) for column in choices.always), *choices.units])


def unit_names(fit: Fit, unit: Sequence[int]) -> list[str]:
    """Name a feature; a group by its column of X, its term in the formula, or its columns."""
    names = fit.spec.columns.labels_of(unit)
    design = fit.origin.design
    if design is not None and len(unit) > 1:
        for term, columns in design.selection_terms.items():
            if [*columns] == names:
                return [term]
    return names


def null_share(m: float) -> str:
    """Say what share of weight a feature without any effect typically has, by BIC and by AIC."""
    by_bic = f"{percent(1.0 / (1.0 + np.sqrt(m)), 0)} here"
    # The small-sample term of AIC weights lowers it with fewer rows.
    return by_bic if m < _MANY_ROWS else f"{by_bic}, and of about 38% by AIC"


def average_facts(fit: Fit) -> list[tuple[str, str]]:
    """Return what a summary says of an average in place of AIC and BIC."""
    mixture = fit.way.averaging.mixture
    how = "all" if mixture.exhaustive else "sampled"
    weights = "AIC and BIC" if mixture.weights == "mean" else mixture.weights.upper()
    return [
        ("Assignments", f"{mixture.n_assignments:,}, {how}"),
        ("Weights by", weights),
        ("Best, BIC weight", percent(mixture.best_weight["bic"])),
        ("Half of it in", f"{mixture.n_half['bic']:,}"),
    ]


def assignments_frame(fit: Fit) -> pd.DataFrame:
    """Return `HeckmanAverage.assignments_`."""
    mixture, form = fit.way.averaging.mixture, fit.way.averaging.form
    states, masks = mixture.leading_states, mixture.leading_masks
    named = [tuple(fit.spec.feature_names(np.flatnonzero(mask).tolist())) for mask in masks]
    frame = pd.DataFrame({"features": named, "n_features": masks.sum(axis=1)})
    if mixture.searches_both:
        selecting = states[:, fit.n_features : -2]
        frame["selection_features"] = [
            tuple(fit.spec.feature_names(np.flatnonzero(mask).tolist())) for mask in selecting
        ]
    frame["correction"], frame["index"] = states[:, -2], states[:, -1]
    frame["weight"] = mixture.leading_weight
    frame = frame.assign(**mixture.criteria(form, states, mixture.leading_cost))
    members = Members(form, states, mixture.leading_weight)
    values = form.error_terms(members.estimates)
    for name in form.ends.averaged:
        if name.startswith("rho"):
            frame[name] = mixture.leading_rho if name == "rho" else values[name]
    for name in form.ends.shown:
        if name.startswith("imr"):
            frame[name] = values[name]
    return frame.assign(**_tests_of_correction(fit, members))


def _tests_of_correction(fit: Fit, members: Members) -> dict[str, Floats]:
    """Test the correction in each assignment on its own scale: beta_H, or atanh rho.

    One parameter has a z value; several have the chi2 of all of them.
    """
    form, distribution = members.form, distribution_of(fit)
    held, c = members.states[:, -2], form.n_corrections
    own = slice(form.correction, form.correction + c)
    values = members.estimates[:, own]
    if c == 1:
        error = members.variances(np.eye(len(form.estimates))[own])[:, 0] ** 0.5
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(held, values[:, 0] / error, np.nan)
        return {"imr_statistic": statistic, "imr_p_value": distribution.p_value(statistic)}
    eye, pairs = np.eye(len(form.estimates))[own], [*combinations_with_replacement(range(c), 2)]
    variance = np.zeros((len(values), c, c))
    # Covariances follow from the variances of sums.
    of_sums = members.variances(np.array([eye[a] + eye[b] for a, b in pairs]))
    for (a, b), of_sum in zip(pairs, of_sums.T, strict=True):
        variance[:, a, b] = variance[:, b, a] = of_sum
    single = np.einsum("naa->na", variance) / 4.0
    variance = (variance - single[:, :, None] - single[:, None, :]) / 2.0
    statistic, p_value = np.full((2, len(values)), np.nan)
    inverse = np.linalg.inv(variance[held])
    statistic[held] = np.einsum("na,nab,nb->n", values[held], inverse, values[held])
    p_value[held] = distribution.joint_p_value(statistic[held], c)
    return {"correction_statistic": statistic, "correction_p_value": p_value}


@dataclass(frozen=True, eq=False)
class TermMixture:
    """The estimates of N assignments, for each of the T terms that are averaged."""

    weight: Floats
    """(N,)"""
    centres: Floats
    """(N, T)"""
    errors: Floats
    """(N, T) zero where the feature is absent"""

    @classmethod
    def of(cls, fit: Fit) -> TermMixture:
        """Return the mixtures of the rows of ``fit.terms`` that `averaged_terms` marks."""
        members, averaged = fit.way.averaging.interval_members, averaged_terms(fit)
        # Degrees of freedom may be infinite; their interval is that of their root's inverse.
        centres = np.nan_to_num(members.terms[:, averaged], posinf=0.0)
        return cls(members.weights, centres, members.term_errors[:, averaged])

    @cached_property
    def std_errors(self) -> Floats:
        """Standard deviations of the mixtures, (T,)."""
        mean = self.weight @ self.centres
        within = self.weight @ self.errors**2
        return np.asarray(np.sqrt(within + self.weight @ (self.centres - mean) ** 2))

    def intervals(self, levels: Floats, df: float | None, chances: Floats) -> Floats:
        """Return intervals of the terms, (T, 2), by their chances, (T,), NaN if they have none.

        They are quantiles of the mixtures. What is surely there has those of the assignments that
        hold it; of what is not, zero is in the interval.
        """
        ends = mixture_quantiles(self.weight, self.centres, self.errors, levels, df)
        for term in np.flatnonzero(np.isfinite(chances)):
            if says(float(chances[term])) != "sure":
                ends[term] = min(ends[term, 0], 0.0), max(ends[term, 1], 0.0)
                continue
            held = (self.centres[:, term] != 0.0) & (self.weight > 0.0)
            if held.any() and not held.all():
                share = self.weight[held] / self.weight[held].sum()
                own = self.centres[held][:, [term]], self.errors[held][:, [term]]
                ends[term] = mixture_quantiles(share, *own, levels, df)[0]
        return ends


def tidy_average(fit: Fit, estimates: Floats, conf_level: float) -> pd.DataFrame:
    """Return `Heckman.tidy` of an average: intervals of mixtures, chances, and no tests.

    The selection equation of two-step fits is not averaged, so it keeps its tests.
    """
    check_level(conf_level)
    distribution = distribution_of(fit)
    table = pd.DataFrame(fit.terms, columns=["equation", "term"])
    table = table.assign(
        **distribution.columns(estimates, np.sqrt(np.diag(fit.covariance)), conf_level)
    )
    mixture, averaged, chances = TermMixture.of(fit), averaged_terms(fit), term_chances(fit)
    limits = mixture.intervals(tails(conf_level), distribution.df, chances[averaged])
    # Quantiles may lie beyond any correlation, or below any deviation.
    first = len(limits) - len(fit.way.averaging.form.ends.shown)
    for term in fit.family.error_terms:
        if term.name in fit.way.averaging.form.ends.shown:
            place = first + fit.way.averaging.form.ends.shown.index(term.name)
            limits[place] = limits[place].clip(term.lowest, term.highest)
    table.loc[averaged, ["statistic", "p_value"]] = np.nan
    table.loc[averaged, "std_error"] = mixture.std_errors
    table.loc[averaged, ["ci_low", "ci_high"]] = limits
    _on_own_scale(fit, table, conf_level)
    # Nothing identifies the intercept of a series.
    table.loc[np.isnan(estimates), ["std_error", "ci_low", "ci_high"]] = np.nan
    return table.assign(chance=chances)


def _on_own_scale(fit: Fit, table: pd.DataFrame, conf_level: float) -> None:
    """Put in the interval of degrees of freedom: that of their root's inverse, turned around."""
    members, form = fit.way.averaging.interval_members, fit.way.averaging.form
    if DF.name not in form.ends.names:
        return
    place = form.correction + form.ends.names.index(DF.name)
    error = np.sqrt(members.variances(np.eye(len(form.estimates))[[place]]))
    values = members.estimates[:, [place]]
    ends = mixture_quantiles(
        members.weights, values, error, tails(conf_level), distribution_of(fit).df
    )[0]
    row = (table["equation"] == "errors") & (table["term"] == DF.name)
    table.loc[row, ["ci_low", "ci_high"]] = [DF.back(end) for end in ends[::-1]]
    if not np.isfinite(members.terms[:, form.place_of(DF.name)]).all():
        table.loc[row, "std_error"] = np.nan


def column_chances(fit: Fit) -> Floats:
    """Return the chance of each column of an average's equation to predict, (k,).

    NaN for what every assignment holds, and with sampling weights.
    """
    mixture, columns = fit.way.averaging.mixture, fit.equation
    if has_pseudo_weights(fit):
        return np.full(len(columns), np.nan)
    shares = mixture.shares[CHANCES_BY][columns]
    return np.where(np.isin(columns, mixture.choices.always), np.nan, shares)


def term_chances(fit: Fit) -> Floats:
    """Return the chance of each row of ``fit.terms``, (T,): of slopes, lambda and rho.

    NaN for what every assignment holds, or none, and with sampling weights.
    """
    mixture, form = fit.way.averaging.mixture, fit.way.averaging.form
    chances = np.full(len(fit.terms), np.nan)
    if has_pseudo_weights(fit):
        return chances
    for span in form.outcomes:
        chances[span[1:]] = column_chances(fit)
    if mixture.selection_shares is not None and fit.probit is not None:
        selects = [*fit.probit.features]
        chances[form.selecting[1:]] = mixture.selection_shares[CHANCES_BY][selects]
    if mixture.correction == "optional" and mixture.rho_range is None:
        for name in form.ends.shown:
            if name in form.ends.correction or name.startswith(("imr", "rho")):
                chances[form.place_of(name)] = mixture.correction_share[CHANCES_BY]
    return chances


def all_features_terms(fit: Fit) -> Floats:
    """Return estimates and standard errors of the model with everything in it, (T, 2)."""
    form = fit.way.averaging.form
    whole = Members(form, form.everything()[None], np.ones(1))
    both = np.column_stack([whole.terms[0], whole.term_errors[0]])
    constants = [i for i, (name, _) in enumerate(fit.terms) if name != "errors"]
    unknown = [i for i in constants[:1] if np.isnan(fit.equations[fit.terms[i][0]].intercept)]
    both[unknown] = np.nan
    return both


def averaged_terms(fit: Fit) -> Mask:
    """Which rows of ``fit.terms`` are averages: all but the selection equation of two steps."""
    refitted = not fit.way.averaging.form.shares_selection
    return np.array([refitted or equation != "selection" for equation, _ in fit.terms])


def refuse_averaged(fit: Fit, matrix: Floats) -> None:
    """Refuse a Wald test of what was averaged."""
    if fit.way.is_average and np.any(matrix[:, averaged_terms(fit)]):
        raise NotIdentifiedError(
            "an average over assignments has no Wald test: its estimates are mixtures with a point "
            "mass at zero. tidy() has their intervals, and inclusion_ the weight that holds each "
            "feature. To test, fit Heckman with features chosen beforehand."
        )
