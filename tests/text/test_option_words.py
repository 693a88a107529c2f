"""A message names options as its reader knows them: parameters, keywords or flags."""

from __future__ import annotations

import ast
import functools
import pickle
import re
import warnings
from pathlib import Path

import pytest

import heckmanfa
from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso, predict_batches
from heckmanfa.analysis import Question, analyse
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaWarning, InputError, warn
from heckmanfa.text.option_words import at_command_line, instead, option, told
from heckmanfa.text.passage import passage
from heckmanfa.text.printable import quoted

# Rooms whose messages Python users and the command line share.
SHARED = {"data", "tables", "model", "search", "fit", "estimators", "analysis"}
# What only Python's interface says, and the command line cannot meet.
PYTHON = (
    *("compress again", "max_features ", "feature_groups ", "init_prob ", "step_on ", "train_rows"),
    *("temperature and ", "within max_nodes", "groups are used", "needs groups", "on_collinear="),
    *("a random_state, or", "raise max_features", "group some with", "own group in feature_groups"),
    *("group them with", "learning_rate", "raise n_refits", "max_nodes = ", "params={'selected'"),
    *("search_in is for the methods", "weight_kind='sampling' with", "out of prediction_features"),
    *("the clusters as groups", "the weights as sample_weight", "its columns in never"),
)


@functools.cache
def texts():
    """Return the texts of the package with blanks in them that are not documentation."""
    root, found = Path(heckmanfa.__file__).parent, []
    for path in sorted(root.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        found += [
            (path.relative_to(root).parts, node.lineno, node.value)
            for node in nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documents
            and " " in node.value
        ]
    return found


def test_messages_name_no_flag_outside_the_command_line():
    # Help is read at a prompt; pip has flags of its own, and style sheets have variables.
    elsewhere = re.compile(r"install --upgrade|var\(--[a-z-]+\)|--[a-z-]+:")
    found = [
        f"{'/'.join(parts)}:{line}: {text}"
        for parts, line, text in texts()
        if parts[0] not in {"cli", "plots"}
        and parts[-1] != "options.py"
        and re.search(r"(?<![\w-])--[a-z]", elsewhere.sub("", text))
    ]
    assert [words for words in found if "fit --save" not in words] == []


def test_messages_name_parameters_by_value():
    kinds = (Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso)
    names = {name for kind in kinds for name in kind._get_param_names() if "_" in name}
    named = re.compile(rf"\b({'|'.join(sorted(names | {'sample_weight'}))})\b")
    found = [
        f"{'/'.join(parts)}:{line}: {text}"
        for parts, line, text in texts()
        if parts[0] in SHARED and named.search(text) and len(text) < 1000
    ]
    assert [words for words in found if not any(only in words for only in PYTHON)] == []


@pytest.mark.parametrize(
    ("words", "parameters", "keywords", "flags"),
    [
        (option("never", [...]), "never=[...]", "select_only=[...]", "--select-only"),
        (option("exclude"), "exclude", "exclude", "--exclude"),
        (option("method", "ml"), "method='ml'", "method='ml'", "--method ml"),
        (option("cov_type", "robust"), "cov_type='robust'", "robust=True", "--robust"),
        (option("cov_type", "cluster"), "cov_type='cluster'", "cluster=...", "--cluster"),
        (option("header_row", ...), "header_row=...", "header_row=...", "--header-row"),
        (option("decimal", ","), "decimal=','", "decimal=','", "--decimal ','"),
        (option("sheet", "Wages 2020"), *["sheet='Wages 2020'"] * 2, "--sheet 'Wages 2020'"),
        (option("rho_range", (0.1, 0.9)), *["rho_range=(0.1, 0.9)"] * 2, "--rho-range 0.1 0.9"),
        (
            option("na_values", ["y=not done"]),
            "na_values=['y=not done']",
            "na_values=['y=not done']",
            "--na-values 'y=not done'",
        ),
        (
            instead("; see what_if()", f" or {option('exclude')}"),
            "; see what_if()",
            " or exclude",
            " or --exclude",
        ),
    ],
)
def test_each_reader_has_words_for_an_option(words, parameters, keywords, flags):
    assert told(words) == parameters
    assert told(words, keywords=True) == keywords
    with at_command_line():
        assert told(words) == told(words, keywords=True) == flags
    assert told(words) == parameters


def test_errors_warnings_and_passages_are_told_to_their_reader():
    words = f"leave it out with {option('exclude')}"
    error = pickle.loads(pickle.dumps(InputError(words)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(words, HeckmanfaWarning)
    told_of = [error, caught[0].message, passage(words)]
    assert [str(one) for one in told_of] == ["leave it out with exclude"] * 3
    assert repr(error) == "InputError('leave it out with exclude')"
    with at_command_line():
        assert [str(one) for one in told_of] == ["leave it out with --exclude"] * 3


def test_names_of_columns_are_never_taken_for_options():
    name = option("exclude")
    with at_command_line():
        assert "--exclude'" not in told(f"column {quoted(name)} and {option('never')}")


def test_a_web_service_is_told_what_it_can_do(tmp_path):
    rows = load_mroz()[["educ", "age", "kids5", "lwage"]]
    model = Heckman(["educ"]).fit(rows.drop(columns="lwage"), rows["lwage"])
    path = tmp_path / "rows.parquet"
    rows.assign(educ=["refused", *rows["educ"].astype(str)[1:]]).to_parquet(path)
    with pytest.raises(InputError, match="mark it missing with NaN") as refused:
        list(predict_batches(model, path))
    assert "--" not in str(refused.value)


def test_analyse_names_its_keywords():
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
