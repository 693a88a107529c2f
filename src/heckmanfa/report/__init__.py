"""The report of an analysis: one HTML file that needs nothing else, and the answer in words."""

from __future__ import annotations

from heckmanfa.report.page import render, write_report
from heckmanfa.report.words import answer

__all__ = ["answer", "render", "write_report"]
