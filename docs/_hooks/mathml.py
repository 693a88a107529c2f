"""Turn the formulas marked by arithmatex into MathML while the site is built."""

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

# A warning from this logger makes `mkdocs build --strict` fail.
_log = logging.getLogger("mkdocs.hooks.mathml")


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """Convert the formulas of one page; MkDocs calls this once its Markdown has become HTML."""

    def to_mathml(formula: re.Match[str]) -> str:
        tag = formula["tag"]
        latex = html.unescape(formula["latex"]).strip()
        mathml = convert(latex, display="block" if tag == "div" else "inline")
        # The converter copies unknown commands instead of raising an error.
        for command in sorted(set(re.findall(r"\\\w+", mathml))):
            _log.warning("%s: %s is not understood in %r", page.file.src_uri, command, latex)
        return f'<{tag} class="arithmatex">{mathml}</{tag}>'

    return _FORMULA.sub(to_mathml, content)
