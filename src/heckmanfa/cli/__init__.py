"""The command line: ``heckmanfa``, a module for each command."""

from __future__ import annotations

from heckmanfa.cli.app import app, main

__all__ = ["app", "main"]
