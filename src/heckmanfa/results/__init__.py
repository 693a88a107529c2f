"""What a fitted model reports: estimates, tests, summary, diagnostics, caveats."""
