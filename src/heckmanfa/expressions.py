"""What a factor of a formula names: Python, but for names in backticks and ``Q("...")``."""

from __future__ import annotations

import ast
import re

__all__ = ["parse_factor"]


def parse_factor(expression: str) -> tuple[ast.expr, list[str]]:
    """Parse a factor, and list the variables that it may name.

    Parameters
    ----------
    expression : str
        As in ``center(age)``, ``np.log(`hours worked`)`` or ``Q("hours worked")``.

    Returns
    -------
    tree : ast.expr
        With stand-ins for names in backticks.
    names : list of str
        In order, without functions that are called; modules may be among them.
    """
    quoted = list(dict.fromkeys(re.findall("`[^`]*`", expression)))
    alias = {f"quoted_{place}_": name for place, name in enumerate(quoted)}
    text = expression
    for stand_in, name in alias.items():
        text = text.replace(name, stand_in)
    tree = ast.parse(text, mode="eval").body
    nodes = list(ast.walk(tree))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    found = [node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in functions]
    found += [
        str(node.args[0].value)
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Q"
        if node.args and isinstance(node.args[0], ast.Constant)
    ]
    return tree, [alias.get(name, name).strip("`") for name in dict.fromkeys(found)]
