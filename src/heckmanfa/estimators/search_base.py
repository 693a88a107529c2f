"""Bases of models that settle their prediction features themselves.

`ChoiceModel` has the parameters that say which assignments are allowed; `SearchModel` chooses one
of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import BaseEstimator

from heckmanfa.data.arrays import on_host
from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.survey import kind_of_covariance
from heckmanfa.errors import InputError
from heckmanfa.estimators.fitting import groups_of_columns, make_spec
from heckmanfa.estimators.scoring import PARAMETERS, one_of
from heckmanfa.fit import Choose, Family, Fit, Spec
from heckmanfa.inference.assessment import answer_of_facts, diagnose_fit
from heckmanfa.inference.choosing import Searching
from heckmanfa.inference.honest import Honest, HonestSearch
from heckmanfa.inference.replicates import Refit
from heckmanfa.results.answer_html import card_html, card_or_summary
from heckmanfa.results.assignment_weights import QUICK_UNITS
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.evidence_pictures import forest_of
from heckmanfa.results.search_report import SearchReport, report_search
from heckmanfa.search.choices import Choices, check_window, read_choices
from heckmanfa.search.refitted_subset import RefittedSubset
from heckmanfa.search.searched import Search, SearchOutcome
from heckmanfa.search.strategies import Strategy
from heckmanfa.text.option_types import SearchIn
from heckmanfa.text.option_words import option

if TYPE_CHECKING:
    import pandas as pd


class ChoiceModel(BaseEstimator):
    """A model that is told which features may predict, and not which do.

    It comes before the model that it settles the features of: ``class Search(ChoiceModel,
    Heckman)``, with the constraints of both.
    """

    _by_method: ClassVar[Mapping[str, Family]] = {}
    """none: what is searched for is of the family of the class"""
    roles: ClassVar[tuple[str, str]]
    # Searches that have no such parameters leave the selection equation as it is.
    search_in: SearchIn = "prediction"
    selection_always: Any = ()
    selection_never: Any = ()

    def _fit_rows(self, *rows: Any, **formulas: Any) -> None:
        # Before the data are read.
        if check_window(self.rho_range) is not None:
            self._family.require("single rho")
        super()._fit_rows(*rows, **formulas)

    @abstractmethod
    def _choose(self, choices: Choices, selecting: Choices | None = None) -> Choose:
        """Return how the prediction features are settled, among the assignments allowed.

        ``selecting`` is what may drive selection, if both equations are searched.
        """

    def _specify(self, table: FeatureTable, design: FormulaDesign | None) -> tuple[Spec, Choose]:
        """Return what to fit, and the search for the prediction features."""
        choices = read_choices(
            table,
            resolve(table, getattr(self, self.roles[0]), self.roles[0]),
            features=self.roles[0],
            always=self.always,
            never=self.never,
            feature_groups=self.feature_groups,
            default_groups=[table.labels(group) for group in table.columns.groups],
            max_features=self.max_features,
        )
        groups = groups_of_columns(table, design)
        selecting = self._selecting(table, groups)
        if self.feature_groups and design is None:
            groups = _lists_of(self.feature_groups)
        # Columns in ``never`` are not read.
        spec = make_spec(self, table, choices.columns, groups)
        if selecting is not None:
            spec = replace(spec, selection=selecting.columns)
        return spec, self._choose(choices, selecting)

    def _selecting(self, table: FeatureTable, groups: list[list[str]]) -> Choices | None:
        """Return what may drive selection; None unless both equations are searched."""
        if self.search_in != "both":
            for name in ("selection_always", "selection_never"):
                if (columns := getattr(self, name)) is None or not len(columns):
                    continue
                raise InputError(
                    f"{option(name)} is about a search of both equations: pass "
                    f"{option('search_in', 'both')}, or name the selection equation's columns in "
                    f"{option('selection_features')}"
                )
            return None
        self._check_both()
        return read_choices(
            table,
            resolve(table, self.selection_features, "selection_features"),
            always=self.selection_always,
            never=self.selection_never,
            feature_groups=self.feature_groups,
            default_groups=groups,
            selecting=True,
        )

    def _check_both(self) -> None:
        """Refuse options that a search of both equations does not have."""
        if getattr(self, "method", "ml") not in ("two-step", "ml"):
            raise InputError(
                f"{option('search_in', 'both')} needs the joint likelihood of both equations, and "
                f"{option('method', self.method)} has none: use {option('method', 'ml')}, or "
                f"{option('search_in', 'prediction')}"
            )
        if self.max_features is not None:
            raise InputError(
                f"max_features counts prediction features, and {option('search_in', 'both')} "
                "searches two equations: leave one of them out, or name columns in "
                f"{option('never')} and {option('selection_never')}"
            )

    def _refit(self) -> Refit:
        """Return how to settle the features and fit again in resampled rows."""
        fit: Fit = self.fit_
        outcome = fit.search if fit.average is None else fit.average
        assert outcome is not None
        choose = self._choose(outcome.choices, outcome.selecting)
        spec = fit.spec.for_replicates(by_covariance=choose.by_covariance)
        return Refit(spec, choose.for_replicates())

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # scikit-learn's is a property, which has nothing to show if its display is "text".
        diagram: Callable[[], str] = super()._repr_html_
        return self._card if hasattr(self, "_fit") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show the answer in a notebook, or the parameters before the fit."""
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown and hasattr(self, "_fit"):
            shown["text/html"] = self._card()
        return shown

    def _card(self) -> str:
        """Return the answer and its first picture as HTML, or the summary if that fails."""
        family: Family = self.fit_.family
        if not (family.can("report") and family.can("single outcome equation")):
            return str(self.summary()._repr_html_())
        return card_or_summary(self._answer_card, self.summary)

    def _answer_card(self) -> str:
        fit: Fit = self.fit_
        quick = len(fit.feature_names) <= QUICK_UNITS
        evidence = evidence_of(fit, effort="rough" if quick else "quick")
        facts = diagnose_fit(fit, None, (), evidence.weights).facts
        _, answer = answer_of_facts(evidence, facts)
        return card_html(answer, forest_of(evidence), evidence.outcome_names)

    @classmethod
    def _with_terms(
        cls,
        parameters: dict[str, Any],
        terms: dict[str, list[str]],
        selection_terms: dict[str, list[str]],
    ) -> dict[str, Any]:
        """Replace terms of the formulas by their columns, and group those that predict."""

        def columns_of(names: Any, terms: dict[str, list[str]] = terms) -> Any:
            if names is None or isinstance(names, str):
                return names
            by_text = {text.replace(" ", ""): own for text, own in terms.items()}
            columns: list[Any] = []
            for name in names:
                key = name.replace(" ", "") if isinstance(name, str) else name
                columns += by_text.get(key, [name])
            return columns

        parameters = dict(parameters)
        for role in ("always", "never", "selection_always", "selection_never"):
            if role in parameters:
                own = selection_terms if role.startswith("selection") else terms
                parameters[role] = columns_of(parameters[role], own)
        asked = parameters.get("feature_groups") or []
        if isinstance(asked, str):
            return parameters
        groups = [columns_of(group) for group in _lists_of(asked)]
        taken = {name for group in groups if not isinstance(group, str) for name in group}
        groups += [
            columns for columns in terms.values() if len(columns) > 1 and not taken & {*columns}
        ]
        parameters["feature_groups"] = groups or None
        return parameters


def _lists_of(feature_groups: Any) -> list[Any]:
    """Return groups of columns without the names that a dict gives them."""
    named = isinstance(feature_groups, Mapping)
    return list(feature_groups.values() if named else feature_groups)


class SearchModel(ChoiceModel):
    """The parameters, the fit and the report that all searches share."""

    @abstractmethod
    def _strategy(self) -> Strategy:
        """Return the search with its options."""

    def _fit_rows(self, *rows: Any, **formulas: Any) -> None:
        # Random halves are drawn in memory.
        super()._fit_rows(*(map(on_host, rows) if self.honest else rows), **formulas)

    def _check_both(self) -> None:
        super()._check_both()
        why = {
            "adjusted_r2": "the joint likelihood has no sum of squares to compare",
            "corrected_bic": "it corrects the BIC of two-step estimates, and both equations are "
            "searched by maximum likelihood, whose BIC needs no correction",
        }.get(self.criterion)
        if why is not None:
            raise InputError(
                f"{option('search_in', 'both')} has the criteria 'bic', 'ebic' and 'aic', not "
                f"'{self.criterion}': {why}"
            )
        if self.rho_range is not None:
            raise InputError(
                f"{option('rho_range')} is for {option('search_in', 'prediction')}: the "
                "approximation that searches both equations knows the rho of each assignment only "
                "roughly"
            )
        if getattr(self, "tolerance", None) is not None:
            raise InputError(
                f"tolerance is for {option('search_in', 'prediction')}: with 'both', candidates_ "
                "holds the assignments that maximum likelihood refitted"
            )
        if self.honest:
            raise InputError(
                f"{option('honest', True)} estimates the prediction equation alone on the other "
                f"half of the rows: use it with {option('search_in', 'prediction')}"
            )

    def _choose(
        self, choices: Choices, selecting: Choices | None = None
    ) -> Searching | HonestSearch:
        window = check_window(self.rho_range)
        search = Searching(
            *(choices, self.criterion, window, self.max_features),
            strategy=self._strategy(),
            cov_type=kind_of_covariance(self.cov_type),
            selecting=selecting,
        )
        return HonestSearch(search, self.n_splits, self.verbose) if self.honest else search

    @property
    def honest_(self) -> Honest:
        """Estimates over the random halves of ``honest``."""
        outcome = self.fit_.search
        if outcome is None or not isinstance(outcome.halves, Honest):
            raise AttributeError("honest_ needs a fit with honest=True")
        return outcome.halves

    @property
    def candidates_(self) -> pd.DataFrame:
        """The best 10,000 distinct assignments evaluated, those in the window first."""
        return self._result("candidates_").to_frame(self.fit_.spec.feature_names)

    @property
    def n_assignments_(self) -> int:
        """Number of distinct assignments evaluated."""
        outcome = self.fit_.search
        assert outcome is not None
        return 0 if outcome.result is None else outcome.result.n_assignments

    def _result(self, needing: str | None = None) -> Search:
        """Return the result; ``needing`` all candidates names what a file may be without."""
        outcome: SearchOutcome | None = self.fit_.search
        assert outcome is not None
        return outcome.check_searched() if needing is None else outcome.check_candidates(needing)

    def search_report(self, tolerance: float | None = None) -> SearchReport:
        """Report how the features were found, the runners-up, and how much the choice matters.

        Parameters
        ----------
        tolerance : float, optional
            How much worse in the criterion counts as nearly as good: by default the
            ``tolerance`` of the search, or 0.001 of adjusted R^2 and 2 of the other criteria.

        Returns
        -------
        SearchReport
            With the runners-up, and how rho and each coefficient vary among the assignments
            nearly as good. `HeckmanBestSubset` keeps all of these; other searches only know the
            assignments that they evaluated. ``weights`` and ``shares`` are about all assignments,
            evaluated or not: the BIC weight of the chosen one, and the share of weight that holds
            each feature. With more than 22 features or groups, these are sampled, which takes
            seconds.
        """
        self._result("search_report()")
        return report_search(self.fit_, tolerance)


class ProvenSearch(SearchModel):
    """A search that proves its result the best, or bounds how much better another could be."""

    @property
    def optimal_(self) -> bool:
        """Whether the assignment is proven optimal."""
        return bool(self._result().optimal)

    @property
    def gap_(self) -> float:
        """By how much the criterion of another assignment could be better."""
        return float(self._result().gap or 0.0)


class RefittingSearch:
    """A search by the form of the model of all features, whose best the family's likelihood refits.

    It comes before `ProvenSearch`, and is about the features of the outcome, by the criteria that
    likelihoods have.
    """

    n_refits: int
    max_nodes: int | None
    verbose: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PARAMETERS | {
        "criterion": [one_of("bic", "ebic", "aic")]
    }
    rho_range: ClassVar[None] = None
    honest: ClassVar[bool] = False

    def _strategy(self) -> RefittedSubset:
        return RefittedSubset(self.n_refits, self.max_nodes, self.verbose)
