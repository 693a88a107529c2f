"""What a fitted model reports: estimates, tests, summary, diagnostics, caveats."""

from __future__ import annotations

from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.reference import Wald
from heckmanfa.results.search_report import SearchReport
from heckmanfa.results.summary import Summary

__all__ = ["Diagnostics", "SearchReport", "Summary", "Wald"]
