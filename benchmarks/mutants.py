"""Small changes of the package's source that a test ought to notice.

A mutant changes one place inside a function: an operator, a number, a condition, a statement that
goes. A returned value that becomes None is not among them: nearly every test notices, and the score
would flatter. Defaults of signatures count. Annotations, decorators, text, asserts and what runs
when a module is imported do not: the constants there are choices rather than logic. The `strict` of
a zip is an assert too: what it compares has the same length by construction. Modules that run on a
GPU alone are left out, since the machines that run the tests have none. The rest of the file keeps
its text and its line numbers.

A mutant is known by its text (module, function, source line, change), not by its line number. Which
ones a seed picks depends on that text alone, so a change elsewhere leaves the sample as it was.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOMS = ("model", "search", "inference", "fit", "data", "results")
_ON_GPU = ("search/training/gpu.py", "search/training/kernel.py")

_COMPARE = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_BINARY = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_UNARY = {ast.Not: "not", ast.USub: "-", ast.Invert: "~"}
_CALLS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "nanmin": "nanmax",
    "nanmax": "nanmin",
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: str
    """of the module, inside the package"""
    line: int
    where: str
    """the function, with the classes and functions around it"""
    source: str
    """the line as it stands, without its indentation"""
    change: str
    lines: range
    """whose tests may notice"""
    start: int
    end: int
    """bytes of the file that are replaced"""
    new: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same while lines move."""
        return self.path, self.where, self.source, self.change

    def rank(self, seed: int) -> bytes:
        return hashlib.sha256("\0".join((str(seed), *self.key)).encode()).digest()

    def apply(self, text: bytes) -> bytes:
        gone = text[self.start : self.end]
        missing = gone.count(b"\n") - self.new.count("\n")
        return text[: self.start] + self.new.encode() + b"\\\n" * missing + text[self.end :]


def pick(package: Path, number: int, seed: int) -> list[Mutant]:
    """Draw lines with one change each: some of every room, the others wherever they fall."""

    # A second digest: the smallest of many changes would bring lines with many to the front.
    def order(mutant: Mutant) -> bytes:
        return hashlib.sha256(mutant.rank(seed)).digest()

    first, rest = [], []
    for room in ROOMS:
        drawn = []
        for path in sorted((package / room).rglob("*.py")):
            by_line: dict[int, list[Mutant]] = defaultdict(list)
            for mutant in mutants_of(path, package):
                by_line[mutant.line].append(mutant)
            drawn += [min(several, key=lambda one: one.rank(seed)) for several in by_line.values()]
        drawn.sort(key=order)
        share = number // (3 * len(ROOMS))
        first += drawn[:share]
        rest += drawn[share:]
    return first + sorted(rest, key=order)[: max(number - len(first), 0)]


def mutants_of(path: Path, package: Path) -> list[Mutant]:
    """Return every mutant of a module."""
    if path.relative_to(package).as_posix() in _ON_GPU:
        return []
    return list(_Reader(path, package).read())


class _Reader:
    def __init__(self, path: Path, package: Path) -> None:
        self.path = path.relative_to(package).as_posix()
        self.text = path.read_bytes()
        self.lines = self.text.split(b"\n")
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line) + 1)
        self.seen: Counter[tuple[str, str, str, str]] = Counter()

    def read(self) -> Iterator[Mutant]:
        yield from self._scope(ast.parse(self.text), "")

    def _scope(self, node: ast.AST, where: str) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from self._scope(child, f"{where}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._function(child, f"{where}{child.name}")
            elif isinstance(child, ast.stmt):
                yield from self._scope(child, where)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, where: str
    ) -> Iterator[Mutant]:
        if any("overload" in ast.dump(one) for one in node.decorator_list):
            return
        body = range(node.body[0].lineno, (node.end_lineno or 0) + 1)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                yield from self._expression(default, where, body)
        for statement in node.body:
            yield from self._statement(statement, where)

    def _statement(self, node: ast.stmt, where: str) -> Iterator[Mutant]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from self._function(node, f"{where}.{node.name}")
            return
        if isinstance(node, ast.ClassDef | ast.Assert | ast.Import | ast.ImportFrom):
            return
        blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        inner = [one for block in blocks for one in block if isinstance(one, ast.stmt)]
        handlers = getattr(node, "handlers", [])
        last = (min(one.lineno for one in inner) - 1) if inner else (node.end_lineno or 0)
        lines = range(node.lineno, max(last, node.lineno) + 1)
        for start, end, new, change in self._statement_changes(node):
            yield self._mutant(node.lineno, where, lines, start, end, new, change)
        for name, value in ast.iter_fields(node):
            if name in ("body", "orelse", "finalbody", "handlers", "annotation", "type_comment"):
                continue
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.expr | ast.withitem | ast.match_case):
                    yield from self._expression(one, where, lines)
        for one in inner:
            yield from self._statement(one, where)
        for handler in handlers:
            for one in handler.body:
                yield from self._statement(one, where)
        for case in getattr(node, "cases", []):
            for one in case.body:
                yield from self._statement(one, where)

    def _statement_changes(self, node: ast.stmt) -> Iterator[tuple[int, int, str, str]]:
        start, end = self._span(node)
        if isinstance(node, ast.If | ast.While):
            first, last = self._span(node.test)
            for constant in ("True", "False"):
                if isinstance(node, ast.If) or constant == "False":
                    yield first, last, constant, f"condition to {constant}"
        called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        stored = isinstance(node, ast.Assign) and all(
            isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
        )
        if called or stored or isinstance(node, ast.AugAssign | ast.Raise):
            yield start, end, "pass", "statement to pass"
        if isinstance(node, ast.Continue):
            yield start, end, "break", "continue to break"
        if isinstance(node, ast.Break):
            yield start, end, "pass", "break to pass"

    def _expression(self, node: ast.AST, where: str, lines: range) -> Iterator[Mutant]:
        # Positions inside an f-string are not those of the file before Python 3.12.
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return
        if isinstance(node, ast.expr):
            for start, end, new, change in self._expression_changes(node):
                yield self._mutant(node.lineno, where, lines, start, end, new, change)
        for child in ast.iter_child_nodes(node):
            yield from self._expression(child, where, lines)

    def _expression_changes(self, node: ast.expr) -> Iterator[tuple[int, int, str, str]]:
        start, end = self._span(node)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
                yield from self._between(left, right, *_COMPARE[type(operator)])
        elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY and not _is_text(node):
            yield from self._between(node.left, node.right, *_BINARY[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._between(left, right, *words)
        elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            word = _UNARY[type(node.op)]
            # A space: `return-x` is not written, and `x if-y` neither.
            yield start, start + len(word), " " if word == "not" else "", f"{word} gone"
        elif isinstance(node, ast.IfExp):
            for constant in ("True", "False"):
                yield *self._span(node.test), constant, f"condition to {constant}"
        elif isinstance(node, ast.Constant):
            for value in _other_values(node.value):
                yield start, end, repr(value), f"{node.value!r} to {value!r}"
        elif isinstance(node, ast.Call):
            name = node.func
            word = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
            if word in _CALLS:
                last = self._span(name)[1]
                yield last - len(word), last, _CALLS[word], f"{word} to {_CALLS[word]}"

    def _between(
        self, left: ast.expr, right: ast.expr, old: str, new: str
    ) -> Iterator[tuple[int, int, str, str]]:
        start, end = self._span(left)[1], self._span(right)[0]
        words = r"\s+".join(map(re.escape, old.split()))
        found = re.search(words.encode(), self.text[start:end])
        if found is not None:
            yield start + found.start(), start + found.end(), new, f"{old} to {new}"

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            self.offsets[node.lineno - 1] + node.col_offset,
            self.offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0),
        )

    def _mutant(
        self, line: int, where: str, lines: range, start: int, end: int, new: str, change: str
    ) -> Mutant:
        source = self.lines[line - 1].decode().strip()
        key = self.path, where, source, change
        self.seen[key] += 1
        if self.seen[key] > 1:
            change = f"{change} (number {self.seen[key]})"
        return Mutant(self.path, line, where, source, change, lines, start, end, new)


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(one, ast.JoinedStr)
        or (isinstance(one, ast.Constant) and isinstance(one.value, str | bytes))
        for one in sides
    )


def _other_values(value: object) -> Sequence[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value + 1.0, 2.0 * value] if value else [1.0]
    return []
