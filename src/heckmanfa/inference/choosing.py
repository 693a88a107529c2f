"""How a fit gets its prediction features: as the user names them, by a search, or as an average.

An average starts from the model with every candidate in it, fitted as any other. Its estimates and
their covariance, the `Form`, then give every assignment.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import (
    AllObservedWarning,
    ConvergenceWarning,
    HeckmanfaWarning,
    NoExclusionWarning,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    SearchWarning,
    TooFewRowsError,
    warn,
)
from heckmanfa.fit import Choice, Choose, FirstStep, Fit, Inputs, Spec, label_terms
from heckmanfa.fit.full_form import form_of_fit, form_of_two_steps, with_equations
from heckmanfa.fit.linear import with_linear_details
from heckmanfa.inference.average_effects import group_fits
from heckmanfa.model.covariance import sums_groups
from heckmanfa.model.equations import Selection, check_prediction, weighted_count
from heckmanfa.model.held_two_step import gather_rho_scores
from heckmanfa.model.moments import Moments
from heckmanfa.search.averaging import average
from heckmanfa.search.averaging.averages import with_drivers
from heckmanfa.search.averaging.gibbs import LEAST_SWEEPS
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.averaging.result import PROBABLE, AverageOutcome
from heckmanfa.search.averaging.weights import (
    ALL_FEATURES_SHARE,
    MOST_COLUMNS,
    Correction,
    Weighting,
)
from heckmanfa.search.choices import (
    Choices,
    feasible_choices,
    in_each_equation,
    join_equations,
)
from heckmanfa.search.fitted_form import FittedForm
from heckmanfa.search.form import Form, form_of_all
from heckmanfa.search.full_model import (
    FullModel,
    centred,
    fit_all,
    fit_both,
    without_collinear,
)
from heckmanfa.search.goal import Goal
from heckmanfa.search.searched import SearchOutcome
from heckmanfa.search.strategies import SearchProblem, Strategy
from heckmanfa.text.chances import CHANCES_BY
from heckmanfa.text.option_types import CovType, Criterion
from heckmanfa.text.option_words import IN_NEVER, OUT_OF_PREDICTION, option
from heckmanfa.text.wording import NO_EXCLUSION, ONLY_NORMALITY, listed

# The same fit gets the same chance.
_SEED = 0
_COULD_IDENTIFY = f"A feature that drives selection alone, named {IN_NEVER}, would identify it."


def _warn_no_exclusion(what: str, advice: str) -> None:
    """Warn that nothing is excluded; ``what`` says of every selection feature that it predicts."""
    warn(
        f"every selection feature {what}: {NO_EXCLUSION}, and {ONLY_NORMALITY}. {advice}",
        NoExclusionWarning,
    )


@dataclass(frozen=True)
class GivenFeatures(Choose):
    """Uses all columns that may predict: the choice of `Heckman`."""

    def __call__(self, first: FirstStep) -> Choice:
        """Refuse or drop collinear columns, and warn if a correction has no excluded feature."""
        spec, selection, moments = first.spec, first.selection, first.moments
        prediction = [column for column in spec.prediction if column not in selection.separating]
        n_least = len(prediction) + 1 + len(spec.correction_terms)
        if moments.n_fitted <= n_least:
            terms = f"{len(prediction)} prediction features", "an intercept", *spec.correction_terms
            raise TooFewRowsError(
                f"{listed(terms)} need more than {n_least} selected rows; there are "
                f"{weighted_count(moments.n_fitted)}"
            )
        features, dropped = check_prediction(moments, prediction, spec.labels, spec.on_collinear)
        if spec.correction_terms and set(selection.probit.features) <= set(features):
            _warn_no_exclusion(
                "also predicts", f"Leave a feature that drives selection alone {OUT_OF_PREDICTION}."
            )
        return Choice(tuple(features), tuple(dropped))


@dataclass(frozen=True)
class Searching(Choose):
    """Chooses the prediction features by a search."""

    choices: Choices
    criterion: Criterion
    rho_range: tuple[float, float] | None
    max_features: int | None
    strategy: Strategy
    cov_type: CovType | None = None
    """covariance of the estimates of all features in the corrected BIC; None is classical"""
    selecting: Choices | None = None
    """what may drive selection, if both equations are searched"""

    def __call__(self, first: FirstStep) -> Choice:
        """Search, and choose the best assignment."""
        outcome = self.search(first)
        assert outcome.result is not None
        return choice_of(first.selection, outcome.result.best, outcome)

    def search(self, first: FirstStep) -> SearchOutcome:
        """Evaluate assignments of the features that can predict."""
        spec, selection, moments = first.spec, first.selection, first.moments
        choices = _feasible(self.choices, first)
        if not choices.columns:
            raise NoFeasibleAssignmentError(
                "no feature can predict: all that may are constant or collinear among the "
                "selected rows, or were left out for separation"
            )
        full: FullModel | FittedForm | None = None
        compressed = spec.family.can("compressed data")
        if self.selecting is not None or not compressed:
            choices = without_collinear(choices, moments, spec.labels, spec.on_collinear)
        allowed = choices
        if self.selecting is not None:
            full = fit_both(moments, selection, choices.columns, binary=not compressed)
            away = [*selection.dropped, *selection.separating]
            allowed = join_equations(choices, self.selecting.without_columns(away))
        elif spec.family.can("shared refits"):
            full = fit_all(moments, selection, choices.columns)
            full = centred(full, selection.rows, choices, self.criterion)
        elif not compressed:
            full = _fitted_form(first, choices)
            allowed = in_each_equation(choices, full.form.n_equations)
        if full is None:
            form = self._form(first, choices)
            goal = Goal.of(moments, self.criterion, self.rho_range, form)
        else:
            goal = Goal.of_form(full.form, allowed, self.criterion)
        rows, seed = selection.rows, first.random_state
        result, training = self.strategy(
            SearchProblem(moments, rows, allowed, goal, spec.labels, seed, full)
        )
        return SearchOutcome(
            *(self.choices, choices.columns, result, allowed.n_assignments, training),
            selecting=self.selecting,
            form=None if full is None or self.selecting is None else full.form,
        )

    def _form(self, first: FirstStep, choices: Choices) -> Form | None:
        """Return the form of the corrected BIC; None for other criteria."""
        if self.criterion != "corrected_bic":
            return None
        # A fit of many knows no covariance but the classical; its search has the model's.
        cov_type = self.cov_type or "classical"
        if sums_groups(cov_type) and not first.kind.n_groups:
            cov_type = "robust"  # a bootstrap weights rows, which have no groups then
        kind, rows = replace(first.kind, cov_type=cov_type), first.selection.rows
        return form_of_all(first.moments, choices.columns, first.spec.labels, kind, rows)

    def without_selection(self, spec: Spec) -> SearchOutcome:
        """Say that nothing was searched, since no outcome is missing."""
        n = len(spec.prediction)
        if self.max_features is not None and self.max_features < n:
            warn(
                f"nothing was searched, so all {n} features that may predict do: max_features = "
                f"{self.max_features} is not used",
                AllObservedWarning,
            )
        return SearchOutcome(self.choices, spec.prediction)

    def finish(self, fit: Fit, first: FirstStep) -> Fit:
        """Warn if maximum likelihood left the window of rho."""
        window = self.rho_range
        outside = window is not None and not window[0] <= fit.rho <= window[1]
        if fit.spec.method == "ml" and window is not None and outside and fit.probit is not None:
            warn(
                f"maximum likelihood puts rho at {fit.rho:.4g}, outside {option('rho_range')} = "
                f"[{window[0]:g}, {window[1]:g}]: the search uses the two-step estimate",
                SearchWarning,
            )
        return fit

    @property
    def by_covariance(self) -> bool:
        """Whether the criterion depends on the covariance of the estimates of all features."""
        return self.criterion == "corrected_bic"

    def for_replicates(self) -> Self:
        """Return the same search for many fits of which only the estimates are used."""
        return replace(self, strategy=self.strategy.for_replicates())


def _feasible(choices: Choices, first: FirstStep) -> Choices:
    """Leave out the features that cannot predict in these rows."""
    selection = first.selection
    given = first.moments, selection.separating, selection.dropped, first.spec.labels
    return feasible_choices(choices, *given)


def choice_of(selection: Selection, best: Mask, outcome: SearchOutcome) -> Choice:
    """Return an assignment as the choice of a search; warn if it excludes no feature."""
    features = tuple(int(column) for column in np.flatnonzero(best))
    result = outcome.result
    driving: tuple[int, ...] | None = None
    if result is not None and result.selecting is not None:
        driving = tuple(int(column) for column in np.flatnonzero(result.selecting[0]))
    if {*(selection.probit.features if driving is None else driving)} <= {*features}:
        _warn_no_exclusion("is among those chosen to predict", _COULD_IDENTIFY)
    rho = None
    if result is not None and result.refits is not None and np.array_equal(best, result.best):
        rho = float(result.rho[0])
    return Choice(features, search=outcome, selection=driving, rho=rho)


def _fitted_form(first: FirstStep, choices: Choices) -> FittedForm:
    """Fit the model of all candidates, and say how its family fits others."""
    spec = replace(first.spec, guarded=False, start=first.spec.start_elsewhere)
    family = spec.family
    given = Inputs(**vars(replace(first, spec=spec)), choice=Choice(()))
    everything = Choice(choices.columns, everything=True)
    whole: Fit = family.estimate(replace(given, choice=everything))
    form = form_of_fit(whole, first.moments)
    if whole.log_likelihood is None:
        return FittedForm(form, float("nan"), None)
    name = next(each.name for each in family.equations if each.columns == "prediction")

    def refit_of(columns: tuple[int, ...]) -> tuple[float, Floats, float] | None:
        try:
            with warnings.catch_warnings():
                # Of the features chosen, the fit says what is wrong.
                warnings.simplefilter("ignore", HeckmanfaWarning)
                fit: Fit = family.estimate(replace(given, choice=Choice(columns)))
        except NotIdentifiedError:
            return None
        if not fit.converged or fit.log_likelihood is None:
            return None
        rho = fit.errors["rho"].value if "rho" in fit.errors else float("nan")
        return fit.log_likelihood, fit.equations[name].coef, rho

    return FittedForm(form, whole.log_likelihood, refit_of)


# Averages. -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Averaging(Choose):
    """Averages over the assignments that are allowed."""

    choices: Choices
    weights: Weighting
    all_features_share: float = ALL_FEATURES_SHARE
    correction: Correction = "optional"
    rho_range: tuple[float, float] | None = None
    verbose: int = 0
    errors: bool = True
    """whether standard errors are needed"""
    selecting: Choices | None = None
    """those of the selection equation, if both equations are searched"""

    def __call__(self, first: FirstStep) -> Choice:
        """Let all candidates predict, as far as they can together."""
        spec, moments = first.spec, first.moments
        choices = _feasible(self.choices, first)
        choices = without_collinear(choices, moments, spec.labels, spec.on_collinear)
        k, m = len(choices.columns), moments.n_fitted
        if k > MOST_COLUMNS * m:
            raise TooFewRowsError(
                f"an average starts from the model of all {k} columns that may predict, and that "
                f"needs three selected rows for each; there are {weighted_count(m)}. Name at most "
                f"{int(MOST_COLUMNS * m)} in {option('prediction_features')}, or leave some out "
                f"with {option('never', [...])}. To predict with so few rows, least squares "
                "(NaiveOLS) had a smaller error in simulations than any search."
            )
        return Choice(choices.columns, everything=True)

    def finish(self, fit: Fit, first: FirstStep) -> Fit:
        """Put averages in place of the estimates of the model with everything in it."""
        away = {*self.choices.columns} - {*fit.features}
        choices = self.choices.without_columns([*away])
        selecting = self.selecting
        if selecting is not None:
            unable = [*first.selection.dropped, *first.selection.separating]
            selecting = selecting.without_columns(unable)
        fit, form = _with_form(fit, first, both=selecting is not None)
        if selecting is not None:
            form = with_drivers(form, selecting)
        mixture = average(
            form,
            choices,
            weights=self.weights,
            all_features_share=self.all_features_share,
            correction=self.correction if form.knows_correction else "never",
            rho_range=self.rho_range,
            random_state=first.random_state,
            verbose=self.verbose,
            selecting=selecting,
        )
        chance = None
        two_steps = fit.family.can("two steps") and not form.shares_selection
        if two_steps and self.errors and mixture.correction == "optional":
            chance = _two_step_chance(fit, first, choices)
        outcome = AverageOutcome(self.choices, mixture, form, self.selecting, chance)
        probable = mixture.shares[CHANCES_BY] >= PROBABLE
        features = [int(column) for column in np.flatnonzero(probable)]
        fit = replace(fit, support=probable, average=outcome)
        if np.all(mixture.alone[CHANCES_BY][fit.driving] >= PROBABLE):
            _warn_no_exclusion("probably predicts as well", _COULD_IDENTIFY)
        fit = _with_averages(fit, outcome, errors=self.errors)
        details_of = fit.family.average_details
        if details_of is not None and self.errors:
            groups = [(group.weight, group.fit) for group in group_fits(fit)]
            fit = replace(fit, details=details_of(fit, groups, first))
        known = "compressed data" in fit.family.supports
        if not (fit.spec.errors_differ and fit.spec.guarded and known):
            return fit
        probit, rows = first.selection.probit, first.selection.rows
        scores = gather_rho_scores(fit.moments, probit, features, first.kind, rows)
        return with_linear_details(fit, rho_scores=scores)

    @property
    def by_covariance(self) -> bool:
        """Whether assignments are weighed by the covariance of all features' estimates: always."""
        return True

    def for_replicates(self) -> Self:
        """Return the same average for many fits of which only the estimates are used."""
        return replace(self, verbose=0, errors=False)


def _with_form(fit: Fit, first: FirstStep, *, both: bool) -> tuple[Fit, Form]:
    """Return a fit of everything and its form, with the selection equation's units if ``both``.

    A likelihood that rises towards |rho| = 1, or is flat in rho, has no covariance. The model is
    then fitted with rho = 0, and nothing can be said of the correction.
    """
    try:
        return fit, form_of_fit(fit, first.moments, both=both)
    except NotIdentifiedError:
        # Only some models have one rho that could be held at 0.
        if not fit.family.can("refits") or fit.atanh_rho is None:
            raise
    inputs = Inputs(
        replace(fit.spec, held={"rho": 0.0}, start=None),
        *(first.selection, fit.moments, first.kind),
        choice=Choice(tuple(fit.features), everything=True),
        counts=fit.row_counts,
    )
    held: Fit = fit.family.estimate(inputs)
    form = form_of_fit(held, first.moments, both=both)
    warn(
        "the likelihood of all features has no maximum with rho inside (-1, 1) that standard "
        "errors could be taken from, so the correction cannot be weighed, and is left out. A "
        f"feature that drives selection alone, named {IN_NEVER}, may identify it.",
        ConvergenceWarning,
    )
    held = replace(
        held,
        n_clusters=fit.n_clusters,
        n_first_clusters=fit.n_first_clusters,
        n_second_clusters=fit.n_second_clusters,
        design=fit.design,
        weighted=fit.weighted,
        origin=fit.origin,
    )
    return replace(held, spec=fit.spec), form


def _two_step_chance(fit: Fit, first: FirstStep, choices: Choices) -> float | None:
    """Return the chance of the correction by two-step estimates; None if these are not known.

    Their covariance is robust: maximum likelihood is doubted where errors are not normal.
    """
    kind = first.kind
    robust = replace(kind, cov_type="robust") if kind.cov_type == "classical" else kind
    try:
        form = form_of_two_steps(fit, choices.columns, robust, first.selection.rows)
    except NotIdentifiedError:
        return None
    with warnings.catch_warnings():
        # Chains that agree roughly are enough to confirm a chance.
        warnings.simplefilter("ignore", SearchWarning)
        mixture = average(form, choices, random_state=_SEED, max_sweeps=LEAST_SWEEPS)
    return mixture.correction_share[CHANCES_BY]


def _with_averages(fit: Fit, outcome: AverageOutcome, *, errors: bool) -> Fit:
    """Return the fit of everything with the averages in place of its estimates."""
    mixture, form, nan = outcome.mixture, outcome.form, float("nan")
    members, probit = outcome.members, fit.probit
    assert probit is not None
    terms = label_terms(fit.spec, form.columns, probit, form.ends.shown)
    covariance = np.full((len(terms), len(terms)), nan)
    if errors:
        covariance = outcome.interval_members.term_covariance()[1]
    family = fit.family
    of_lambda = (
        family.has_imr and family.can("single outcome equation") and family.can("normal errors")
    )
    means: dict[str, float] = {"rho": mixture.rho, "sigma": mixture.sigma} | mixture.ends
    for name in form.ends.shown:
        if name in form.ends.correction:
            place = form.n_slopes + form.ends.correction.index(name)
            means.setdefault(name, float(mixture.free[place]))
        means.setdefault(name, members.mean_of(name))
    fit = replace(
        fit.with_errors(**{name: mean for name, mean in means.items() if name in fit.errors}),
        adjusted_r2=_adjusted_r2(fit.moments, members) if of_lambda else nan,
        aic=nan,
        bic=nan,
        log_likelihood=None,
        params=None,
        doubts=(),
        second_maximum=None,
        details=None if fit.details is None else fit.details.averaged(),
        terms=terms,
        covariance=covariance,
    )
    return with_equations(fit, form.all_of(mixture.free))


def _adjusted_r2(moments: Moments, members: Members) -> float:
    """Average of adjusted R^2 over the assignments that intervals use."""
    form, m = members.form, moments.n_selected
    r = moments.subset(form.columns)
    estimates = members.estimates
    imr = members.terms[:, form.correction]
    coef = np.column_stack([estimates[:, : 1 + len(form.columns)], imr, -np.ones(len(imr))])
    squares = np.sum((coef @ r.T) ** 2, axis=1)
    held = members.states[:, : form.n_features].sum(axis=1) + members.states[:, -1]
    ratio = squares / moments.total_squares * (m - 1.0) / (m - held - 1.0)
    return float(1.0 - members.weights @ ratio)
