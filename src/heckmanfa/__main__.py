"""The command line as a module: ``python -m heckmanfa`` does what ``heckmanfa`` does."""

from __future__ import annotations

from heckmanfa.cli import main

if __name__ == "__main__":
    main()
