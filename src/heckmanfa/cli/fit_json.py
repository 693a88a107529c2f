"""The results of ``heckmanfa fit`` as JSON."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from heckmanfa import __version__
from heckmanfa.analysis import Analysis
from heckmanfa.report.answer import answer
from heckmanfa.results.coefficients import likelihood_name
from heckmanfa.results.reference import reference_of
from heckmanfa.text.option_names import in_options


def write_json(analysis: Analysis, path: Path) -> None:
    """Write all results of an analysis."""
    text = json.dumps(as_json(analysis), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def as_json(analysis: Analysis) -> dict[str, Any]:
    """Return all results in plain types; NaN and infinity become None."""
    model, question = analysis.model, analysis.question
    which, how_much, not_claimed = answer(analysis)
    weights = clusters = second = None
    if question.weights is not None:
        weights = {
            "column": question.weights,
            "kind": model.weight_kind,
            "rows": model.row_counts_["selected"] + model.row_counts_["unselected"],
            "n_obs": model.n_obs_,
        }
    if model.n_clusters_ is not None:
        clusters = {"column": question.cluster, "number": model.n_clusters_}
    if analysis.diagnostics.second_maximum is not None:
        log_likelihood, rho = analysis.diagnostics.second_maximum
        second = {"log_likelihood": log_likelihood, "rho": rho}
    likelihood = None if model.log_likelihood_ is None else likelihood_name(model.fit_)
    results = {
        "heckmanfa": __version__,
        "question": dataclasses.asdict(question),
        "command": question.command(),
        "streamed": analysis.streamed,
        "rows": analysis.row_counts,
        "rows_missing": analysis.missing_counts,
        "columns_left_out": analysis.left_out,
        "reference_levels": analysis.encoding.references,
        "reading": list(analysis.notes),
        "predict": analysis.predicting,
        "only_select": analysis.driving_selection,
        "kept_out": analysis.kept_out,
        "no_evidence": analysis.without_evidence,
        "not_tested": analysis.not_tested,
        "answer": [which, how_much],
        "not_to_be_claimed": not_claimed,
        "caveats": [dataclasses.asdict(caveat) for caveat in analysis.caveats],
        "estimates": analysis.estimates.to_dict("records"),
        "rho": model.rho_,
        "sigma": model.sigma_,
        "adjusted_r2": model.adjusted_r2_,
        "aic": model.aic_,
        "bic": model.bic_,
        "log_likelihood": model.log_likelihood_,
        "log_likelihood_is": likelihood,
        "weights": weights,
        "standard_errors": analysis.errors_kind,
        "clusters": clusters,
        "reference_distribution": reference_of(model.fit_).name,
        "converged": model.converged_,
        "second_maximum": second,
        "diagnostics": [
            {"diagnostic": name, "value": value, "verdict": verdict, "meaning": in_options(words)}
            for name, value, verdict, words in analysis.diagnostics.lines()
        ],
        "warnings": list(analysis.warnings),
    }
    return {key: _plain(value) for key, value in results.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and value - value != 0:
        return None
    return value
