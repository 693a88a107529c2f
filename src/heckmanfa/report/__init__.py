"""The report of an analysis: one HTML file that needs nothing else, and the answer in words."""

from __future__ import annotations

from heckmanfa.report.answer import answer
from heckmanfa.report.page import render, write_report

__all__ = ["answer", "render", "write_report"]
