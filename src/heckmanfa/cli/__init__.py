"""The command line: its options, its console, and a module that runs each command."""

from __future__ import annotations

from heckmanfa.cli.commands import app, main

__all__ = ["app", "main"]
