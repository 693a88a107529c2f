"""Words of results that name parameters and methods, for who asked a question about a table.

Other rooms name options as values of `heckmanfa.text.option_words`. Results do not yet, so what
they say about estimators is put in the words of a question here.
"""

from __future__ import annotations

from heckmanfa.text.option_words import EXCLUDED, option, told

_REPORT = f"the report ({option('report')})"
_PHRASES = {
    "bootstrap() repeats the search; honest=True": option("honest", True),
    "conditioned on by rho_range": f"conditioned on by {option('rho_range')}",
    "fit with rho_range=None": f"fit without {option('rho_range')}",
    "method='two-step'": option("method", "two-step"),
    "cov_type='robust'": option("cov_type", "robust"),
    "(scale='link')": f"({option('scale', 'link')})",
    " (train_rows)": "",
    "or is known only with it, and leave it out": "or is known only with it, and leave it out"
    + EXCLUDED,
    "diagnostics()": "the diagnostics",
    "; see uncertainty_interval()": f"; see the picture over rho in {_REPORT}",
    "; search_report() has them": f"; {_REPORT} has them",
    " search_report() has": f" T{_REPORT[1:]} has",
    "; see search_report()": "",
    "; see what_if()": "",
    " See what_if().": "",
    "; what_if() uses it": "",
    " See profile_rho().": "",
    "See profile() for intervals of slopes, which cover better than standard errors.": "",
    "; margins() has these": "",
}


def in_options(message: str) -> str:
    """Name options of a question in place of parameters: flags at a prompt, else keywords."""
    message = told(message, keywords=True)
    for python, words in _PHRASES.items():
        message = message.replace(python, words)
    return told(message, keywords=True)
