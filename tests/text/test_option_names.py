"""Messages on the command line name options, not parameters."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import heckmanfa
from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso, predict_batches
from heckmanfa.analysis import Question, analyse
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError
from heckmanfa.text.option_names import in_keywords, in_options

# What the command line never runs: the rest of Python's interface.
ELSEWHERE = {"plots", "paper", "datasets", "training", "inference"}
RUN = {"honest.py", "uncertainty.py"}


# Rooms whose messages Python users read: these name parameters, never options.
PYTHON = {"data", "tables", "model", "search", "fit", "inference", "estimators", "datasets"}
# Values that mean missing can be named on the command line alone.
OF_COMMANDS = {"missing_codes.py"}


def parameters():
    kinds = (Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso)
    names = {name for kind in kinds for name in kind._get_param_names()}
    return {name for name in names if "_" in name} | {"sample_weight"}


def texts():
    """Yield the texts of the package with blanks in them that are not documentation."""
    root = Path(heckmanfa.__file__).parent
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in documents
                and " " in node.value
            ):
                yield path.relative_to(root).parts, node.lineno, node.value


def messages():
    """Yield those that name a parameter, where the command line may run."""
    named = re.compile(rf"\b({'|'.join(sorted(parameters()))})\b")
    for parts, line, text in texts():
        if parts[0] in ELSEWHERE and parts[-1] not in RUN:
            continue
        if named.search(text):
            yield f"{'/'.join(parts)}:{line}", text


def test_messages_in_python_name_no_options_of_the_command_line():
    found = [
        f"{'/'.join(parts)}:{line}: {text}"
        for parts, line, text in texts()
        if parts[0] in PYTHON
        and parts[-1] not in OF_COMMANDS
        # Those of pip are for everybody.
        and re.search(r"(?<![\w-])--[a-z]", text.replace("install --upgrade", ""))
    ]
    assert found == []


def test_every_message_that_names_a_parameter_has_a_form_with_options():
    found = dict(messages())
    assert len(found) > 20
    names = re.compile(rf"\b({'|'.join(sorted(parameters()))})\b")
    left = {where: in_options(text) for where, text in found.items()}
    assert {where: text for where, text in left.items() if names.search(text)} == {}


def spoken_in(tree):
    """Texts of a module that may be shown: no docstrings, and whole f-strings."""
    silent = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            silent.add(node.value)
        if isinstance(node, ast.JoinedStr):
            parts = [getattr(part, "value", None) for part in node.values]
            yield "".join(part if isinstance(part, str) else "it" for part in parts)
            silent.update(node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in silent and isinstance(node.value, str):
            yield node.value


def test_no_message_with_options_offers_a_function_or_an_argument_of_python():
    texts = [
        HERE.read_text(encoding="utf-8")
        for folder in ("results", "report", "cli", "analysis")
        for HERE in sorted((Path(heckmanfa.__file__).parent / folder).glob("*.py"))
    ]
    spoken = [one for text in texts for one in spoken_in(ast.parse(text))]
    calls = re.compile(r"\b(?:bootstrap|what_if|search_report|margins|uncertainty_interval)\(\)")
    assert len(spoken) > 200
    # The command line has nothing like include.
    shown = [one for one in spoken if not one.startswith("include takes ")]
    assert [one for one in map(in_options, shown) if calls.search(one)] == []


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "drives selection alone, named in never=[...], would",
            "drives selection alone, named with --select-only, would",
        ),
        ("leave some out with never=[...]", "leave some out with --select-only"),
        ("None is significant. See what_if().", "None is significant."),
        ("in the equation; see what_if().", "in the equation."),
        ("within 2. search_report() has it.", "within 2. The report (--report) has it."),
        ("Use device='cpu', or", "Use --device cpu, or"),
        ("use method='ml'.", "use --method ml."),
        ("Widen rho_range or leave it out.", "Widen --rho-range or leave it out."),
        ("need cov_type='robust' or 'cluster': x", "need --robust or --cluster: x"),
        ("or pass on_separation='drop' to", "or pass --on-separation drop to"),
        ('or pass on_separation="drop" to', "or pass --on-separation drop to"),
        ("honest=True estimates", "--honest estimates"),
        (
            "name it in categorical_features, or leave that at its default; convert",
            "name it with --categorical; convert",
        ),
        ("the method of the fit", "the method of the fit"),
        # Names of columns stay, whatever they are called.
        ("column 'rho_range' is; rho_range is", "column 'rho_range' is; --rho-range is"),
        ("column \"it's method='ml'\" is", "column \"it's method='ml'\" is"),
    ],
)
def test_parameters_become_options_and_quoted_names_stay(message, said):
    assert in_options(message) == said
    assert in_options(said) == said


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("pass decimal='.' or decimal=','", "pass --decimal '.' or --decimal ','"),
        ("decimal=... must be '.' or ','", "--decimal must be '.' or ','"),
        ("pass sheet='Wages 2020'", "pass --sheet 'Wages 2020'"),
        ("pass sheet='Data'", "pass --sheet Data"),
        ("such as years (dates='years')", "such as years (--dates years)"),
        ("correct it or mark it missing with NaN", "correct it or mark it missing (--na-values)"),
        ("name 'in categorical' in categorical", "name 'in categorical' with --categorical"),
        ("pass it to numeric or categorical.", "pass it to --numeric or --categorical."),
        ("categorical names 'sheet=...'", "--categorical names 'sheet=...'"),
    ],
)
def test_how_a_table_is_read_is_said_in_the_words_of_who_reads_it(python, shell):
    assert in_options(python) == shell


def test_a_web_service_is_told_what_it_can_do(tmp_path):
    rows = load_mroz()[["educ", "age", "kids5", "lwage"]]
    model = Heckman(["educ"]).fit(rows.drop(columns="lwage"), rows["lwage"])
    path = tmp_path / "rows.parquet"
    rows.assign(educ=["refused", *rows["educ"].astype(str)[1:]]).to_parquet(path)
    with pytest.raises(InputError, match="mark it missing with NaN") as refused:
        list(predict_batches(model, path))
    assert "--" not in str(refused.value)


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ("--weights: column '--w' holds", "weights: column '--w' holds"),
        ("pass --na-values lwage=-99.", "pass na_values=['lwage=-99']."),
        ("as in --na-values 'y=not done'; a", "as in na_values=['y=not done']; a"),
        ("Pass --missing mean, or --exclude it", "Pass missing='mean', or exclude it"),
        ("use --search best-subset", "use search='best-subset'"),
        ("out of --min-level-rows", "out of min_level_rows"),
        ("add --robust", "add robust=True"),
    ],
)
def test_a_question_asked_in_python_is_answered_in_keywords(shell, python):
    assert in_keywords(shell) == python


def test_analyse_names_its_keywords_and_the_command_line_its_options():
    table = load_mroz()[["educ", "age", "kids5", "lwage"]]
    coded = table.fillna({"lwage": -99})
    for ask in (
        lambda: analyse(coded, outcome="lwage"),
        lambda: analyse(Question("mroz", "lwage"), frame=coded),
        lambda: analyse(table, outcome="lwage", weights="educ", weight_kind="x"),
        lambda: analyse(table, outcome="lwage", search="none", always=["educ"]),
    ):
        with pytest.raises(InputError) as refused:
            ask()
        assert "--" not in str(refused.value)
