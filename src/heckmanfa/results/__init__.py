"""What a fitted model reports: estimates, tests, summary, diagnostics, caveats."""

from __future__ import annotations

from heckmanfa.results.coefficients import Summary, Wald
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.search_report import SearchReport

__all__ = ["Diagnostics", "SearchReport", "Summary", "Wald"]
