"""A selection model in R, written out with base packages alone.

No version of the package sampleSelection is needed, and a comment names its one line. Names of
columns that R could not read in a formula get another name first, so no name is ever code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from heckmanfa.data.columns.values import TRUE_WORDS, as_number
from heckmanfa.report.plain_model import PlainModel, Reading
from heckmanfa.report.plain_names import plain_names

# What is not a name in R, and the names of who is selected and of the outcome.
_RESERVED = re.compile(
    r"if|else|repeat|while|function|for|next|break|TRUE|FALSE|NULL|Inf|NaN|NA|T|F|in|s|y"
)
_MARKS = ("", "NA", "N/A", "NaN", "null", ".", "-", "?")
_ENCODINGS = {"utf-8": "", "utf-8-sig": "UTF-8-BOM", "cp1252": "latin1", "utf-16": "UTF-16"}
_LINE, _MANY = 88, 20
_TRANSFORMS = {"log": "log", "log1p": "log1p", None: ""}

_MILLS = "mills <- function(u) exp(dnorm(u, log = TRUE) - pnorm(u, log.p = TRUE))"
_PROBIT = """
# A probit of who is selected, by Newton's method from R's estimates.
sign <- ifelse(s, 1, -1)
g <- glm.fit(Z, s, {weights}family = quasibinomial("probit"))$coefficients
for (step in 1:6) {{
  u <- sign * drop(Z %*% g)
  m <- mills(u)
  Vg <- solve(crossprod(Z, {w}m * (m + u) * Z))
  g <- g + drop(Vg %*% crossprod(Z, {w}sign * m))
}}"""
_SECOND = """
# Least squares of the selected rows, with the inverse Mills ratio.
u <- drop(Z[s, , drop = FALSE] %*% g)
lambda <- mills(u)
delta <- {ws}lambda * (lambda + u)
W <- cbind(X[s, , drop = FALSE], lambda)
b <- qr.coef(qr({root}W), {root}y[s])
e <- drop(y[s] - W %*% b)
A <- solve(crossprod(W, {ws}W))
sigma <- sqrt((sum({ws}e^2) + b[["lambda"]]^2 * sum(delta)) / {n})
rho <- b[["lambda"]] / sigma"""
_ALONE = """
# Least squares: no outcome is missing.
b <- qr.coef(qr({root}X), {root}y)
e <- drop(y - X %*% b)
A <- solve(crossprod(X, {w}X))
V <- A * sum({w}e^2) / ({n} - ncol(X))"""
_ALONE_ROBUST = """
moves <- (e * X) %*% A
{middle}"""
_HECKMAN = """
# Heckman's standard errors, which allow for the first step.
D <- crossprod(W, delta * Z[s, , drop = FALSE])
V <- A %*% (sigma^2 * solve(A) + b[["lambda"]]^2 *
  (D %*% Vg %*% t(D) - crossprod(W, delta * W))) %*% A"""
_STACKED = """
# {kind} standard errors: how much each row moves the estimates of both steps.
slope <- b[["lambda"]] * crossprod(W, delta * Z[s, , drop = FALSE])
slope["lambda", ] <- slope["lambda", ] - colSums(delta * e * Z[s, , drop = FALSE])
first <- (sign * m * Z) %*% Vg
moves <- first %*% t(slope)
moves[s, ] <- moves[s, ] + e * W
moves <- cbind(moves %*% A, first)
{middle}
Vg <- V[-seq_along(b), -seq_along(b)]
V <- V[seq_along(b), seq_along(b)]"""
_LINEAR = """
# Maximum likelihood of both equations together, from the two-step estimates.
p <- ncol(Z)
k <- ncol(X)
theta <- c(b[seq_len(k)], g, log(sigma), atanh({start}))
parts <- function(theta) {{
  rho <- tanh(theta[k + p + 2])
  e <- drop(y - X %*% theta[seq_len(k)]) / exp(theta[k + p + 1])
  z <- drop(Z %*% theta[k + seq_len(p)])
  list(sigma = exp(theta[k + p + 1]), rho = rho, r = sqrt(1 - rho^2), e = ifelse(s, e, 0), z = z)
}}
logliks <- function(theta) with(parts(theta), ifelse(s, dnorm(e, log = TRUE) - log(sigma) +
  pnorm((z + rho * e) / r, log.p = TRUE), pnorm(-z, log.p = TRUE)))
scores <- function(theta) with(parts(theta), {{
  m <- ifelse(s, mills((z + rho * e) / r), 0)
  cbind(s * (e - m * rho / r) / sigma * X, ifelse(s, m / r, -mills(-z)) * Z,
    s * (e^2 - 1 - m * rho * e / r), s * m * (e + rho * z) / r)
}})
size <- c(sigma * sqrt(diag(A)[seq_len(k)]), sqrt(diag(Vg)), 0.1, 0.1)"""
_BINARY = """
# A probit of the outcome, and maximum likelihood of both equations together.
p <- ncol(Z)
k <- ncol(X)
b <- glm.fit(X[s, , drop = FALSE], y[s], {weights_s}family = quasibinomial("probit"))$coefficients
theta <- c(b, g, atanh({start}))
# The distribution function of two normals with correlation q rho, by Gauss and Legendre's rule.
j <- 1:63
rule <- diag(0, 64)
rule[cbind(j, j + 1)] <- rule[cbind(j + 1, j)] <- j / sqrt(4 * j^2 - 1)
rule <- eigen(rule, symmetric = TRUE)
both <- function(a, z, q, rho) {{
  angle <- asin(rho) * (rule$values + 1) / 2
  height <- asin(rho) * rule$vectors[1, ]^2 / (2 * pi)
  inner <- function(t, h) h * exp(-(a^2 + z^2 - 2 * q * a * z * sin(t)) / (2 * cos(t)^2))
  pnorm(a) * pnorm(z) + q * Reduce(`+`, Map(inner, angle, height))
}}
parts <- function(theta) {{
  q <- ifelse(s, 2 * y - 1, 1)
  rho <- tanh(theta[k + p + 1])
  a <- ifelse(s, q * drop(X %*% theta[seq_len(k)]), 0)
  z <- drop(Z %*% theta[k + seq_len(p)])
  P <- pmax(both(a, z, q, rho), 1e-300)
  list(q = q, rho = rho, r = sqrt(1 - rho^2), a = a, z = z, P = P)
}}
logliks <- function(theta) with(parts(theta), ifelse(s, log(P), pnorm(-z, log.p = TRUE)))
scores <- function(theta) with(parts(theta), {{
  in_a <- dnorm(a) * pnorm((z - q * rho * a) / r) / P
  in_z <- dnorm(z) * pnorm((a - q * rho * z) / r) / P
  in_rho <- q * dnorm(a) * dnorm((z - q * rho * a) / r) * r / P
  cbind(s * q * in_a * X, ifelse(s, in_z, -mills(-z)) * Z, s * in_rho)
}})
size <- c(rep(0.1, k), sqrt(diag(Vg)), 0.1)"""
_MAXIMIZE = """
minus <- function(theta) -sum({w}logliks(theta))
slopes <- function(theta) -colSums({w}scores(theta))
curve <- function(theta) {{
  optimHess(theta, minus, slopes, control = list(parscale = size, ndeps = 0 * size + 1e-5))
}}
theta <- optim(theta, minus, slopes, method = "BFGS",
  control = list(parscale = size, maxit = 5000, reltol = 1e-14))$par
for (step in 1:4) theta <- theta - drop(solve(curve(theta), slopes(theta)))
V <- solve(curve(theta))"""
_ROBUST = """
moves <- scores(theta) %*% V
{middle}"""


def text(value: str) -> str:
    """Write a text as R reads it: in quotes, with escapes for what is not plain."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    made = [
        escapes.get(c, c if c.isprintable() else f"\\u{{{ord(c):x}}}" if ord(c) > 127 else _byte(c))
        for c in value
    ]
    return f'"{"".join(made)}"'


def _byte(character: str) -> str:
    return f"\\{ord(character):03o}"


def r_code(model: PlainModel, reading: Reading) -> str:
    """Return a program in R that fits a model."""
    if model.ordered:
        why = "sampleSelection, R's package for selection models, fits no ordered outcome."
        return f"# {why}"
    names = plain_names([*reading.columns, *model.used], _is_name, most=None)
    equations = {"X": model.prediction, "Z": model.selection}
    sides = {
        # Of many features, the list of all is not written again.
        matrix: "reformulate(features)"
        if columns == model.features and len(columns) > _MANY
        else _formula(columns, names)
        for matrix, columns in equations.items()
        if columns is not None
    }
    weighted = model.roles.weights is not None
    parts = [
        *_opening(model, reading, sides),
        *_read(model, reading, names),
        *(f"{matrix} <- model.matrix({side}, rows)" for matrix, side in sides.items()),
        *_guard(model),
        _MILLS,
        *_estimates(model, weighted),
        "",
        *_printed(model),
    ]
    return "\n".join(line.rstrip() for part in parts for line in part.split("\n"))


def _is_name(name: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9._]*", name)) and not _RESERVED.fullmatch(name)


def _opening(model: PlainModel, reading: Reading, sides: dict[str, str]) -> list[str]:
    how = "two steps" if model.method == "two-step" else "maximum likelihood"
    lines = _comment(
        f"R 4.0 or later, base packages alone. {model.instead} By {how}, this gives {model.gives}."
    )
    function = "heckit" if model.method == "two-step" else "selection"
    plain = model.errors == "classical" and model.roles.weights is None
    if plain and "Z" in sides and len(model.features) <= _MANY:
        one = f"sampleSelection::{function}(s {sides['Z']}, y {sides['X']}, data = rows)"
        lines += _comment(f"With s and y below, the package sampleSelection has it as {one}")
    return [*lines, *(_comment(reading.first) if reading.first else [])]


def _comment(sentence: str) -> list[str]:
    """Break a comment into lines; it holds no name that is not plain."""
    lines, line = [], "#"
    for word in sentence.split():
        if len(line) + len(word) >= _LINE:
            lines.append(line)
            line = "#"
        line += f" {word}"
    return [*lines, line]


def _vector(values: Iterable[str]) -> str:
    items = list(values)
    one = f"c({', '.join(items)})" if len(items) != 1 else items[0]
    return one if len(one) < _LINE - 20 else "c(\n" + _wrapped(items) + "\n)"


def _wrapped(items: Sequence[str], mark: str = ",") -> str:
    """Set items in lines of code."""
    lines, line = [], " "
    for place, item in enumerate(items):
        piece = f" {item}{mark if place < len(items) - 1 else ''}"
        if len(line) + len(piece) > _LINE and line.strip():
            lines.append(line)
            line = " "
        line += piece
    return "\n".join([*lines, line])


def _formula(columns: Sequence[str], names: dict[str, str]) -> str:
    terms = [names[name] for name in columns] or ["1"]
    one = f"~ {' + '.join(terms)}"
    return one if len(one) < _LINE - 26 else "~\n" + _wrapped(terms, " +")


def _read(model: PlainModel, reading: Reading, names: dict[str, str]) -> list[str]:
    """Read the rows of the fit: those that are data, and have every feature."""
    roles = model.roles
    levels = {level for group in model.levels.values() for level in group}
    codes = [code for codes in reading.codes.values() for code in codes if as_number(code) is None]
    marks = [mark for mark in (*_MARKS, *dict.fromkeys(codes)) if mark not in levels]
    options = ["check.names = FALSE", f"na.strings = {_vector(map(text, marks))}"]
    options += [f"sep = {text(reading.delimiter)}"] if reading.delimiter != "," else []
    options += [f"dec = {text(reading.decimal)}"] if reading.decimal != "." else []
    options += [f"skip = {reading.skipped}"] if reading.skipped else []
    encoding = _ENCODINGS.get(reading.encoding, reading.encoding)
    options += [f"fileEncoding = {text(encoding)}"] if encoding else []
    if model.texts:
        classes = ", ".join(f'{text(name)} = "character"' for name in model.texts)
        options.append(f"colClasses = c({classes})")
    lines = [f"rows <- read.csv({text(reading.path)},\n{_wrapped(options)})"]
    if any(" " in name for name in model.used):
        # A name in several lines of a cell is read as one line.
        lines.append('names(rows) <- trimws(gsub("[[:space:]]+", " ", names(rows)))')
    lines += [
        f"names(rows)[names(rows) == {text(name)}] <- {text(names[name])}"
        for name in dict.fromkeys([*model.used, *(pair[0] for pair in reading.dropped if pair)])
        if names[name] != name
    ]
    for pair in reading.dropped:
        if pair is None:
            lines.append("rows <- head(rows, -1)")
        else:
            lines.append(f"rows <- rows[!(rows${names[pair[0]]} %in% {text(pair[1])}), ]")
    for name, own in reading.codes.items():
        numbers = [code for code in own if as_number(code) is not None]
        if numbers and name in model.used:
            column = f"rows${names[name]}"
            many = _vector(numbers if name in model.numbers else map(text, numbers))
            lines.append(f"{column}[{column} %in% {many}] <- NA")
    for name, value in model.fills.items():
        column = f"rows${names[name]}"
        lines.append(f"{column}[is.na({column})] <- {value!r}")
    for name, own in model.levels.items():
        lines += _factor(f"rows${names[name]}", own, model.merged.get(name, ()), model.ignore_case)
    lines.append(f"features <- {_vector(text(names[name]) for name in model.features)}")
    lines.append("rows <- rows[complete.cases(rows[features]), ]")
    lines += [f"rows <- rows[rows${names[roles.weights]} > 0, ]"] if roles.weights else []
    outcome = f"rows${names[roles.outcome]}"
    if roles.selected is not None:
        words = _vector(text(word) for word in sorted(TRUE_WORDS))
        who = f"tolower(trimws(rows${names[roles.selected]})) %in% {words}"
        lines += [f"rows <- rows[!({who} & is.na({outcome})), ]"]
        lines.append(f"s <- {who}")
    else:
        lines.append(f"s <- !is.na({outcome})")
    if model.classes:
        lines.append(f"y <- as.numeric(trimws({outcome}) == {text(model.classes[1])})")
    else:
        scale = _TRANSFORMS[model.transform]
        lines.append(f"y <- {scale}({outcome})" if scale else f"y <- {outcome}")
    lines += [f"w <- rows${names[roles.weights]}"] if roles.weights else []
    lines += [f"clusters <- rows${names[roles.cluster]}"] if roles.cluster else []
    return lines


def _factor(
    column: str, levels: Sequence[str], merged: Sequence[str], ignore_case: bool
) -> list[str]:
    known = _vector(map(text, levels))
    lines = [f'{column} <- gsub("[[:space:]]+", " ", trimws({column}))']
    if ignore_case:
        flat = 'function(v) tolower(gsub("[[:space:]]+", "", v))'
        lines += [
            f"flat <- {flat}",
            f"{column} <- {known}[match(flat({column}), flat({known}))]",
        ]
    if merged:
        other = next(level for level in levels if level not in merged)
        other = "(other)" if "(other)" in levels else other
        lines.append(f"{column}[{column} %in% {_vector(map(text, merged))}] <- {text(other)}")
    return [*lines, f"{column} <- factor({column}, levels = {known})"]


def _guard(model: PlainModel) -> list[str]:
    """Stop unless these are the rows of the report, and its numbers are numbers."""
    return [
        "# These must be the rows of the report.",
        f"stopifnot(nrow(rows) == {model.n_rows}, sum(s) == {model.n_selected})",
        "stopifnot(!sapply(rows[features], is.character))",
    ]


def _estimates(model: PlainModel, weighted: bool) -> list[str]:
    w = {
        "w": "w * " if weighted else "",
        "ws": "w[s] * " if weighted else "",
        "root": "sqrt(w[s]) * " if weighted else "",
        "n": "sum(w[s])" if weighted else "sum(s)",
        "weights": "weights = w, " if weighted else "",
        "weights_s": "weights = w[s], " if weighted else "",
    }
    middle = _middle(model)
    if model.selection is None:
        made = [_ALONE.format(**w)]
        robust = _ALONE_ROBUST.format(middle=middle)
        return made if model.errors == "classical" else [*made, robust]
    kind = model.errors.capitalize()
    start = "max(min(rho, 0.9), -0.9)" if model.start is None else repr(float(model.start))
    if model.classes is not None:
        start = "0" if model.start is None else start
        steps = [_PROBIT, _BINARY.replace("{start}", start), _MAXIMIZE]
    elif model.method == "ml":
        steps = [_PROBIT, _SECOND, _LINEAR.replace("{start}", start), _MAXIMIZE]
    elif model.errors == "classical":
        return [part.format(**w) for part in (_PROBIT, _SECOND, _HECKMAN)]
    else:
        made = [part.format(**w) for part in (_PROBIT, _SECOND)]
        return [*made, _STACKED.format(middle=middle, kind=kind)]
    made = [part.format(**w) for part in steps]
    return made if model.errors == "classical" else [*made, _ROBUST.format(middle=middle)]


def _middle(model: PlainModel) -> str:
    """Return the line that makes the covariance of how rows move the estimates."""
    weighted, sampling = model.roles.weights is not None, model.weight_kind == "sampling"
    if model.errors == "cluster":
        return (
            f"moves <- rowsum({'w * ' if weighted else ''}moves, clusters)\n"
            "V <- crossprod(moves) * nrow(moves) / (nrow(moves) - 1)"
        )
    if not weighted:
        return "V <- crossprod(moves) * nrow(moves) / (nrow(moves) - 1)"
    root, n = ("w", "nrow(moves)") if sampling else ("sqrt(w)", "sum(w)")
    return f"V <- crossprod({root} * moves) * {n} / ({n} - 1)"


def _printed(model: PlainModel) -> list[str]:
    if model.selection is None:
        return ["print(cbind(estimate = b, std_error = sqrt(diag(V))), digits = 10)"]
    if model.method == "two-step":
        return [
            "print(cbind(estimate = b, std_error = sqrt(diag(V))), digits = 10)",
            "print(cbind(estimate = g, std_error = sqrt(diag(Vg))), digits = 10)",
            "print(c(rho = rho, sigma = sigma), digits = 10)",
        ]
    ends, slopes = "sigma = exp(theta[k + p + 1]), rho = tanh(theta[k + p + 2])", "ends[1], "
    last = 2
    if model.classes is not None:
        ends, slopes, last = "rho = tanh(theta[k + p + 1])", "", 1
    return [
        f"ends <- c({ends})",
        f"std_error <- sqrt(diag(V)) * c(rep(1, k + p), {slopes}1 - ends[{last}]^2)",
        "estimate <- c(theta[seq_len(k + p)], ends)",
        'terms <- c(colnames(X), paste("selection:", colnames(Z)), names(ends))',
        "print(data.frame(terms, estimate, std_error, row.names = NULL), digits = 10)",
    ]
