"""An analysis as JSON: the same sentences and numbers as on the console and in the report."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from heckmanfa import __version__
from heckmanfa.analysis import Analysis
from heckmanfa.analysis.outcome_models import outcome_of
from heckmanfa.analysis.refits import HeldOut
from heckmanfa.analysis.treatment_analysis import TreatmentAnalysis
from heckmanfa.results.answer import in_percents
from heckmanfa.results.cut_points import cut_points
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.evidence import BestAssignment
from heckmanfa.results.facts import Fact
from heckmanfa.results.search_report import inclusion_frame
from heckmanfa.results.selection_numbers import rivals_of
from heckmanfa.results.summary import likelihood_name
from heckmanfa.results.treatment_evidence import TreatmentEvidence
from heckmanfa.text.chances import CHANCES_BY
from heckmanfa.text.option_words import told


def json_text(analysis: Analysis) -> str:
    """Return all results as JSON, with a line break at the end."""
    return json.dumps(as_json(analysis), indent=1, allow_nan=False) + "\n"


def as_json(analysis: Analysis) -> dict[str, Any]:
    """Return all results in plain types; NaN and infinity become None."""
    made: Callable[[Any], dict[str, Any]] = _RESULTS.get(type(analysis), _of_features)
    results = made(analysis)
    return {key: plain(value) for key, value in results.items()}


def _opening(analysis: Analysis) -> dict[str, Any]:
    """What was asked, and the code that asks it again."""
    question = analysis.question
    return {
        "heckmanfa": __version__,
        "question": dataclasses.asdict(question)
        | {"data": question.place, "search": question.searched, "method": question.estimated},
        "command": question.command(),
        "code": dataclasses.asdict(analysis.code),
    }


def _words(analysis: Analysis) -> dict[str, Any]:
    """How far to trust the answer, and what may and may not be said."""
    return {
        "checks": [dataclasses.asdict(check) for check in analysis.checks],
        "claims": [
            {"key": claim.key, "claim": str(claim.lead), "why": str(claim.why)}
            for claim in analysis.claims
        ],
        "not_to_be_claimed": [str(claim) for claim in analysis.claims],
        "may_write": [
            {"key": item.key, "paper": str(item.paper), "news": str(item.news)}
            for item in analysis.answer.may_write
        ],
    }


def _rows(analysis: Analysis) -> dict[str, Any]:
    """The rows and columns of the table."""
    return {
        "streamed": analysis.streamed,
        "rows": analysis.row_counts,
        "funnel": analysis.funnel.as_dict(),
        "people": analysis.people.to_dict("records"),
        "rows_missing": analysis.missing_counts,
        "columns_left_out": analysis.left_out,
        "reference_levels": analysis.encoding.references,
        "codebook": {
            name: dataclasses.asdict(words) for name, words in analysis.codebook.columns.items()
        },
        "reading": list(analysis.notes),
    }


def _caveats(analysis: Analysis) -> list[dict[str, Any]]:
    return [
        {
            "key": fact.key,
            "severity": fact.level,
            "sentence": told(fact.sentence, keywords=True),
            "claim": fact.claim,
            "why": told(fact.because, keywords=True),
        }
        for fact in analysis.caveats
    ]


def _errors(analysis: Analysis) -> dict[str, Any]:
    """Weights and standard errors."""
    return {
        "weights": _weights(analysis),
        "standard_errors": analysis.errors_kind,
        "clusters": _clusters(analysis),
        "design": _design(analysis),
        "reference_distribution": distribution_of(analysis.model.fit_).name,
        "converged": analysis.model.converged_,
    }


def _diagnostics(facts: Iterable[Fact]) -> list[dict[str, str]]:
    return [
        {
            "diagnostic": fact.name,
            "value": fact.value,
            "verdict": fact.verdict,
            "meaning": told(fact.meaning, keywords=True),
        }
        for fact in facts
    ]


def _of_features(analysis: Analysis) -> dict[str, Any]:
    """Return the results of an answer about which features predict."""
    model = analysis.model
    return {
        **_opening(analysis),
        "model": _model(analysis),
        "answer": _answer(analysis),
        "selection": _selection(analysis),
        "roles": _roles(analysis),
        "best": _best(analysis.evidence.best),
        **_words(analysis),
        **_rows(analysis),
        "predict": analysis.predicting,
        "only_select": analysis.driving_selection,
        "kept_out": analysis.kept_out,
        "no_evidence": analysis.without_evidence,
        "not_tested": analysis.not_tested,
        "caveats": _caveats(analysis),
        "inclusion": _inclusion(analysis),
        "estimates": analysis.estimates.to_dict("records"),
        "rho": getattr(model, "rho_", None),
        "rho_held": model.fit_.held_rho is not None,
        **_scale(analysis),
        "aic": model.aic_,
        "bic": model.bic_,
        **_likelihood(analysis),
        "held_out": _held_out(analysis.held_out),
        **_by_class(analysis),
        **_series(analysis),
        **_errors(analysis),
        "diagnostics": _diagnostics(analysis.diagnostics.checks()),
        "warnings": list(analysis.warnings),
    }


def _of_treatment(analysis: Any) -> dict[str, Any]:
    """Return the results of an answer about a treatment."""
    evidence, model = analysis.treatment, analysis.model
    words, measured, test = evidence.words, evidence.measured, evidence.test
    other = analysis.other_method
    name = None if model.log_likelihood_ is None else likelihood_name(model.fit_)
    return {
        **_opening(analysis),
        "model": {
            "outcome_kind": analysis.target.family.name,
            "estimator": type(model).__name__,
            "treated": evidence.treated,
            "regimes": analysis.question.regimes,
            "effects_are_on": str(words.target),
            "percents_are_of": None if words.log is None else str(words.log.target),
            "words": analysis.target.words,
        },
        "answer": _answer(analysis),
        "effects": [_effect(evidence, row) for row in analysis.effects.to_dict("records")],
        "least_squares": dataclasses.asdict(evidence.least_squares),
        "difference_of_means": dataclasses.asdict(evidence.means),
        "untreated_less_treated": dataclasses.asdict(evidence.gap),
        "other_method": None if other is None else dataclasses.asdict(other),
        "selection": {
            "verdict": evidence.choice,
            "doubt": evidence.doubt,
            "p_value": test.p_value,
            "rho": {each: model.fit_.errors[each].value for each in measured.rho_walds},
        },
        "instruments": {
            "columns": list(evidence.instruments),
            "p_value": getattr(measured.instruments_wald, "p_value", None),
        },
        "overlap": {
            "treated": list(measured.treated_range),
            "untreated": list(measured.untreated_range),
            "outside": None if evidence.outside is None else dataclasses.asdict(evidence.outside),
        },
        **_words(analysis),
        **_rows(analysis),
        "caveats": _caveats(analysis),
        "estimates": analysis.estimates.to_dict("records"),
        "aic": model.aic_,
        "bic": model.bic_,
        "log_likelihood": model.log_likelihood_,
        "log_likelihood_is": name,
        **_errors(analysis),
        "diagnostics": _diagnostics(fact for fact in measured.facts if fact.name),
        "warnings": list(analysis.warnings),
    }


def _effect(evidence: TreatmentEvidence, row: dict[Any, Any]) -> dict[Any, Any]:
    """Return an average effect; one on a logarithm also in percent."""
    if evidence.words.log is None:
        return row
    ends = ("estimate", "ci_low", "ci_high")
    return row | {f"{name}_percent": evidence.words.drawn(row[name]) for name in ends}


_RESULTS: Mapping[type[Analysis], Callable[[Any], dict[str, Any]]] = {
    TreatmentAnalysis: _of_treatment
}
"""results of answers that are not about which features predict"""


def _answer(analysis: Analysis) -> dict[str, Any]:
    answer = analysis.answer
    return {
        "headline": str(answer.headline),
        "lede": str(answer.lede),
        "sentences": list(answer.sentences),
        "verdicts": {
            name: {
                "question": tile.question,
                "title": tile.title,
                "kind": tile.kind,
                "words": str(tile.words),
                "numbers": str(tile.numbers),
            }
            for name, tile in answer.tiles.items()
        },
    }


def _selection(analysis: Analysis) -> dict[str, Any]:
    """Whether selection mattered, as a value: every sentence about it follows from this."""
    judged = analysis.evidence.judgement
    whole = judged.all_features
    return {
        "verdict": judged.kind,
        "chance": judged.chance,
        "chance_by": None if judged.chance is None else CHANCES_BY,
        "rivals": str(rivals_of(analysis.evidence)),
        "doubt": judged.doubt,
        "p_value": None if judged.test is None else judged.test.p_value,
        "all_features_p_value": None if whole is None else whole.test.p_value,
    }


def _model(analysis: Analysis) -> dict[str, Any]:
    """Which model was fitted; a binary outcome has two classes, and effects on a probability."""
    classes, log = analysis.target.classes, analysis.evidence.words.log
    return {
        "outcome_kind": outcome_of(analysis.target.family.name),
        "estimator": type(analysis.model).__name__,
        "outcome_transform": analysis.question.outcome_transform,
        "classes": None if classes is None else list(classes),
        "positive": analysis.target.positive,
        "effects_are_on": str(analysis.evidence.words.target),
        "percents_are_of": None if log is None else str(log.target),
        "words": analysis.target.words,
    }


def _scale(analysis: Analysis) -> dict[str, Any]:
    """What only outcomes with a scale have."""
    fit = analysis.model.fit_
    if not fit.family.has_sigma:
        return {"sigma": None, "adjusted_r2": None}
    return {"sigma": fit.sigma, "adjusted_r2": fit.adjusted_r2} | _mean_ratio(analysis)


def _mean_ratio(analysis: Analysis) -> dict[str, Any]:
    """How outcomes compare with their means on their own scale, if they are fitted on the log."""
    ratio = analysis.transform_ratio
    if ratio is None:
        return {}
    return {
        "transform_ratio": ratio[0],
        "transform_ratio_error": ratio[1],
        "transform_ratio_of": "model" if analysis.ratio_model is analysis.model else "best set",
    }


def _series(analysis: Analysis) -> dict[str, Any]:
    """What only a series has: its terms, the test of all of them, and its correction."""
    fit, curve = analysis.model.fit_, analysis.pictures().correction
    if curve is None or fit.details is None:
        return {}
    test = analysis.evidence.judgement.test
    return {
        "series": {
            "terms": curve.n_terms,
            "left_out_errors": list(fit.details.left_out_errors),
            "level_rows": fit.details.level_rows,
            "test": None if test is None else dataclasses.asdict(test),
            "correction": [dataclasses.asdict(point) for point in curve.points],
        }
    }


def _by_class(analysis: Analysis) -> dict[str, Any]:
    """What only ordered classes have: cut points, effects on each class, and predicted shares."""
    fit = analysis.model.fit_
    if fit.ordered_classes is None:
        return {}
    pictures = analysis.pictures()
    effects, shares = pictures.class_effects, pictures.class_shares
    by_feature = () if effects is None else effects.effects
    by_group = () if shares is None else shares.shares
    return {
        "cut_points": cut_points(fit, CONF_LEVEL).reset_index().to_dict("records"),
        "effects_by_class": [
            {
                "feature": each.feature,
                "change": each.change,
                "class": each.named,
                "points": each.value,
                "ci_low": each.low,
                "ci_high": each.high,
            }
            for each in by_feature
        ],
        "shares_of_classes": [dataclasses.asdict(each) for each in by_group],
    }


def _held_out(held_out: HeldOut | str | None) -> dict[str, Any] | None:
    """Scores of probabilities of held-out selected rows; None for a linear outcome."""
    if held_out is None:
        return None
    if isinstance(held_out, str):
        return {"words": held_out}
    picture = held_out.picture
    return {
        "folds": held_out.n_folds,
        "folds_failed": held_out.n_failed,
        "rows": picture.n_rows,
        "share": picture.share,
        "auc": picture.auc,
        "brier": picture.brier,
        "brier_of_share": picture.brier_of_share,
        "log_loss": picture.log_loss,
        "calibration": [dataclasses.asdict(point) for point in picture.points],
        "words": held_out.words,
    }


def _roles(analysis: Analysis) -> list[dict[str, Any]]:
    evidence = analysis.evidence
    naive = evidence.words.naive_short.replace(" ", "_")
    return [
        {
            "feature": feature.name,
            "chance": feature.chance,
            "chance_alone": feature.alone,
            "role": feature.role,
            "level": feature.level or None,
            "reference": feature.reference or None,
            "step": feature.step,
            "change": evidence.naming.step_words(feature.lead),
            "effect": feature.effect.estimate,
            "ci_low": feature.effect.low,
            "ci_high": feature.effect.high,
            naive: feature.least_squares.estimate,
            f"{naive}_low": feature.least_squares.low,
            f"{naive}_high": feature.least_squares.high,
            "selection_p": feature.selection_p,
            "selection_chance": feature.selection_chance,
            **in_percents(evidence.words, feature, naive),
        }
        for feature in evidence.ordered()
    ]


def _best(best: BestAssignment | None) -> dict[str, Any] | None:
    """The best set of features by BIC, beside the average; None without weights."""
    if best is None:
        return None
    return {
        "features": list(best.names),
        "weight": best.weight,
        "bic": best.bic,
        "rho": best.rho,
        "lambda": dataclasses.asdict(best.imr),
    }


def _inclusion(analysis: Analysis) -> list[dict[Any, Any]] | None:
    fit = analysis.model.fit_
    if not fit.way.is_average or not analysis.evidence.has_chances:
        return None
    return list(inclusion_frame(fit).to_dict("records"))


def _likelihood(analysis: Analysis) -> dict[str, Any]:
    model, second = analysis.model, analysis.diagnostics.second_maximum
    name = None if model.log_likelihood_ is None else likelihood_name(model.fit_)
    other = None if second is None else {"log_likelihood": second[0], "rho": second[1]}
    return {
        "log_likelihood": model.log_likelihood_,
        "log_likelihood_is": name,
        "second_maximum": other,
    }


def _weights(analysis: Analysis) -> dict[str, Any] | None:
    model = analysis.model
    if analysis.question.weights is None:
        return None
    return {
        "column": analysis.question.weights,
        "kind": model.weight_kind,
        "rows": model.row_counts_["selected"] + model.row_counts_["unselected"],
        "n_obs": model.n_obs_,
    }


def _clusters(analysis: Analysis) -> list[dict[str, Any]] | None:
    """Each column that errors are clustered by; None if they are not."""
    return [{"column": name, "number": n} for name, n in analysis.clusters] or None


def _design(analysis: Analysis) -> dict[str, Any] | None:
    """The design of a survey; None without one."""
    question, design = analysis.question, analysis.model.fit_.design
    if design is None:
        return None
    return {
        "strata": {"column": question.strata, "number": design.n_strata},
        "psu": {"column": question.psu, "number": design.n_psu},
        "degrees_of_freedom": design.df,
        "strata_of_one_psu": design.n_single,
        **{name: getattr(question, name) for name in ("fpc", "nest", "single_psu", "subpop")},
        "replicate_weights": None
        if not question.replicate_weights
        else {
            "columns": list(question.replicate_weights),
            "number": design.n_replicates,
            "kind": question.replicate_kind,
            "fay": question.fay,
            "scale": question.replicate_scale,
            "mse": question.replicate_mse,
        },
    }


def plain(value: Any) -> Any:
    """Return a value in plain types; NaN and infinity become None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and value - value != 0:
        return None
    return value
