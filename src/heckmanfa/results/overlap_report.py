"""What a model that weighs by probabilities of selection says of itself: facts and its summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from heckmanfa.model.inverse_probabilities import Bounds, Overlap
from heckmanfa.results.distribution import clusters_text
from heckmanfa.results.document import Findings
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact, Level
from heckmanfa.results.plain_estimates import PlainEstimates
from heckmanfa.results.reports import Printed, Report
from heckmanfa.results.summary import ROW_WORDS, Summary
from heckmanfa.text.option_words import told
from heckmanfa.text.wording import number, plural

_MUCH, _MOST = 0.1, 0.25
"""shares of the weight that the largest 1% carry: ten times theirs, and a quarter"""
_FEW, _VERY_FEW = 0.5, 0.1
"""effective rows, as shares of those that are weighted"""
_ALL_OBSERVED = "Least squares (no outcome is missing)"
_MANY_TOUCHED = 0.05
"""share of the weight"""


@dataclass(frozen=True, repr=False)
class OverlapDiagnostics(Printed):
    """What the weights of a model show, in words."""

    _kind = "diagnostics"

    facts: tuple[Fact, ...]
    overlap: Overlap | None = None
    """the numbers; None if no outcome is missing"""

    def lines(self) -> list[tuple[str, str, str, str]]:
        """Return the name, value, verdict and meaning of each diagnostic."""
        named = [fact for fact in self.facts if fact.name]
        return [(fact.name, fact.value, fact.verdict, told(fact.meaning)) for fact in named]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each diagnostic: its name, value and verdict."""
        rows = [line[:3] for line in self.lines()]
        return pd.DataFrame(rows, columns=["diagnostic", "value", "verdict"])

    def parts(self) -> list[Findings]:
        """Return the diagnostics as one block."""
        return [Findings(tuple(self.lines()))]


def overlap_facts(
    overlap: Overlap | None, bounds: Bounds, assumption: str, beyond: float | None = None
) -> list[Fact]:
    """Return what is worth telling about weights; ``beyond`` is a share of rows to predict for."""
    facts = [tell(None, "missing_at_random", "caution", "assumed", assumption=assumption)]
    if overlap is None:
        return []
    share, worth = overlap.share_largest, overlap.effective / overlap.n_rows
    facts.append(
        tell(
            None,
            "largest_weights",
            _level(share >= _MUCH, share >= _MOST),
            f"largest {number(overlap.largest)}; the largest 1% carry {_percent(share)}",
            largest=number(overlap.largest),
            share=_percent(share),
            effective=f"{overlap.effective:,.0f}",
        )
    )
    facts.append(
        tell(
            None,
            "effective_rows",
            _level(worth < _FEW, worth < _VERY_FEW),
            f"{overlap.effective:,.0f} of {overlap.n_rows:,.0f} rows",
        )
    )
    if overlap.n_capped:
        rows = plural(overlap.n_capped, "row")
        facts.append(
            tell(
                None,
                "capped_weights",
                _level(overlap.share_capped >= _MANY_TOUCHED),
                f"{_percent(overlap.share_capped)} of the weight",
                rows=rows,
                short=rows,
                clip=f"{bounds.clip:g}",
            )
        )
    if overlap.n_low:
        rows = plural(overlap.n_low, "row")
        facts.append(
            tell(
                None,
                "trimmed_rows",
                _level(overlap.share_dropped >= _MANY_TOUCHED),
                f"{rows}, of which {overlap.n_dropped:,} with an outcome "
                f"({_percent(overlap.share_dropped)} of the weight)",
                trim=f"{bounds.trim:g}",
            )
        )
    if beyond is not None:
        facts.append(
            tell(None, "beyond_overlap", _level(beyond >= _MANY_TOUCHED), _percent(beyond))
        )
    return facts


def _level(caution: bool, problem: bool = False) -> Level:
    return "problem" if problem else "caution" if caution else "ok"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


@dataclass(frozen=True)
class Described:
    """What a summary says of a model besides its estimates."""

    title: str
    headings: Mapping[str, str]
    """above the rows of each equation"""
    row_counts: Mapping[str, int]
    facts: Sequence[Fact]
    overlap: Overlap | None


def summarize_weighted(
    estimates: PlainEstimates,
    about: Described,
    conf_level: float,
    reports: Sequence[Report],
) -> Summary:
    """Summarize a model that weighs by probabilities of selection."""
    counts = about.row_counts
    left_out = {words: counts[key] for key, words in ROW_WORDS.items() if counts.get(key)}
    facts = [
        ("Rows given", str(counts["total"])),
        ("Selected", str(counts["selected"])),
        ("Not selected", str(counts["unselected"])),
        ("Left out", str(sum(left_out.values()))),
        ("Covariance", estimates.cov_type),
    ]
    if estimates.n_clusters is not None:
        clusters = clusters_text(estimates.n_clusters, estimates.cluster_counts)
        facts.append(("Clusters", clusters))
    if estimates.design is not None:
        facts += estimates.design.facts
    if about.overlap is not None:
        facts.append(("Effective rows", f"{about.overlap.effective:,.1f}"))
        facts.append(("Largest weight", number(about.overlap.largest)))
    if estimates.weights:
        facts.append(("Weights", estimates.weights))
    notes = [fact.sentence for fact in about.facts if fact.sentence]
    notes += estimates.notes()
    notes += [f"{n} rows left out: {words}." for words, n in left_out.items()]
    return Summary(
        title=_ALL_OBSERVED if about.overlap is None else about.title,
        facts=facts,
        table=estimates.tidy(conf_level),
        headings=dict(about.headings),
        conf_level=conf_level,
        notes=notes,
        sections=tuple(section for report in reports for section in report.sections()),
        letter=estimates.distributions[0].letter,
    )
