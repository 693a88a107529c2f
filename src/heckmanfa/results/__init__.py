"""What a fitted model reports: estimates, tests, summary, diagnostics, caveats, the answer."""

from __future__ import annotations

from heckmanfa.results.answer import Answer, Tile
from heckmanfa.results.checks import Check
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.distribution import Wald
from heckmanfa.results.etable import ModelTable
from heckmanfa.results.search_report import SearchReport
from heckmanfa.results.summary import Summary

__all__ = [
    "Answer",
    "Check",
    "Diagnostics",
    "ModelTable",
    "SearchReport",
    "Summary",
    "Tile",
    "Wald",
]
