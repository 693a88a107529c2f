"""Turn the formulas that arithmatex has marked into MathML while the site is built."""

from __future__ import annotations

import html
import logging
import re
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>',
    re.DOTALL,
)

# A warning of this logger makes `mkdocs build --strict` fail.
_log = logging.getLogger("mkdocs.hooks.mathml")


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """Called by MkDocs for each page, after Markdown and docstrings have become HTML."""

    def to_mathml(formula: re.Match[str]) -> str:
        tag = formula["tag"]
        latex = html.unescape(formula["latex"]).strip()
        mathml = convert(latex, display="block" if tag == "div" else "inline")
        # The converter copies a command that it does not know instead of refusing it.
        for command in sorted(set(re.findall(r"\\\w+", mathml))):
            _log.warning("%s: %s is not understood in %r", page.file.src_uri, command, latex)
        return f'<{tag} class="arithmatex">{mathml}</{tag}>'

    return _FORMULA.sub(to_mathml, content)
