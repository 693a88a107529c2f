"""The report of an analysis or a fitted model: one HTML file that needs nothing else."""

from __future__ import annotations

from heckmanfa.report.page import render, write_report

__all__ = ["render", "write_report"]
