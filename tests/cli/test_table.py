"""Saved models side by side, from the command line."""

from __future__ import annotations

import pytest
from openpyxl import load_workbook

import heckmanfa
from heckmanfa import etable
from heckmanfa.datasets import load_mroz

FIT = ("fit", "m.csv", "--outcome", "lwage", "--quiet", "--save")


@pytest.fixture(scope="module")
def made():
    """What the files of `saved` hold, which are fitted once."""
    return {}


@pytest.fixture
def saved(shell, made):
    """a.heckmanfa and b.heckmanfa: features named, and searched for."""
    names = ["a.heckmanfa", "b.heckmanfa"]
    if not made:
        frame = load_mroz()[["lwage", "educ", "exper", "age", "kids5", "nwifeinc"]]
        frame.assign(region=["north", "south", "east"] * 251).to_csv("m.csv", index=False)
        shell.runs(*FIT, names[0], "--search", "none", "--select-only", "age,kids5")
        shell.runs(*FIT, names[1], "--search", "best-subset")
        made |= {name: (shell.folder / name).read_bytes() for name in [*names, "m.csv"]}
    for name, content in made.items():
        (shell.folder / name).write_bytes(content)
    return names


def test_models_are_named_by_their_files_and_printed(shell, saved):
    said = shell.runs("table", *saved)
    table = etable([heckmanfa.load(name) for name in saved], names=["a", "b"])
    # Models in files do not know the name of their outcome; the command line does.
    printed = " ".join(str(table).replace("-0.", "−0.").split())
    for line in str(table).replace("-0.", "−0.").splitlines():
        if line.startswith(("educ", "Intercept", "age", "  north")):
            assert " ".join(line.split()) in said
    assert "region (reference: east)" in printed
    assert "Outcome lwage lwage" in said
    assert "-0." not in said
    assert "b: The search left age, kids5, nwifeinc and region out" in said


def test_options_are_those_of_etable(shell, saved):
    labels = shell.folder / "labels.csv"
    labels.write_text("column,label,levels\neduc,Schooling,\nregion,Region,north=N; south=S\n")
    options = ("--names", "One,Two", "--labels", "labels.csv", "--keep", "educ,region,rho")
    options += ("--order", "region", "--drop", "BIC,selection.region", "--under", "none")
    options += ("--stars", "0.5,0.1", "--digits", "6", "--equations", "errors,prediction")
    shell.runs("table", *saved, *options, "--out", "t.csv")
    text = shell.runs("table", *saved, *options, "--out", "t.txt")
    table = etable(
        [heckmanfa.load(name) for name in saved],
        names=["One", "Two"],
        labels="labels.csv",
        keep=["educ", "region", "rho"],
        order=["region"],
        drop=["BIC", "selection.region"],
        under=None,
        stars=(0.5, 0.1),
        digits=6,
        equations=["errors", "prediction"],
    )
    whole = (shell.folder / "t.txt").read_text(encoding="utf-8").splitlines()
    own = str(table).splitlines()
    assert whole[5:] == own[3:]
    assert whole[3].split() == ["Outcome", "lwage", "lwage"]
    assert "Schooling" in text
    assert "written to t.txt" in text
    frame = (shell.folder / "t.csv").read_text(encoding="utf-8").splitlines()
    assert len(frame) == 1 + len(table.frame)


@pytest.mark.parametrize("ending", ["tex", "docx", "xlsx", "md", "html"])
def test_every_format_is_written(shell, saved, ending):
    said = shell.runs("table", *saved, "--out", f"t.{ending}", "--conf-level", "0.9")
    assert f"written to t.{ending}" in said
    assert (shell.folder / f"t.{ending}").stat().st_size > 500
    if ending == "xlsx":
        assert load_workbook("t.xlsx").sheetnames == ["table", "numbers"]
    assert "exists; pass --force" in shell.refuses("table", *saved, "--out", f"t.{ending}")
    shell.runs("table", *saved, "--out", f"t.{ending}", "--force")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.heckmanfa", "m.csv"), "m.csv is not a model file"),
        (("a.heckmanfa", "c.heckmanfa"), "there is no file c.heckmanfa"),
        (("a.heckmanfa", "a.heckmanfa"), "two models are called 'a': name each with --names"),
        (("a.heckmanfa", "b.heckmanfa", "--names", "x"), "--names has 1 name for 2 models"),
        (("a.heckmanfa", "--out", "t.pdf"), "t.pdf must end in .tex"),
        (("a.heckmanfa", "--out", "a.heckmanfa", "--force"), "must end in"),
        (("a.heckmanfa", "--keep", "edu"), "--keep: no model has 'edu'. Did you mean 'educ'?"),
        (("a.heckmanfa", "--under", "sd"), "--under must be se, interval, t, p or none; got 'sd'"),
        (("a.heckmanfa", "--stars", "x"), "--stars must be p-values such as 0.05,0.01; got 'x'"),
        (("a.heckmanfa", "--stars", "5"), "between 0 and 1; got 5"),
        (("a.heckmanfa", "--digits", "0"), "--digits must be a number from 1 to 15"),
        (("a.heckmanfa", "--labels", "no.csv"), "no.csv"),
    ],
)
def test_what_cannot_be_a_table_is_refused(shell, saved, arguments, said):
    before = {path.name: path.read_bytes() for path in shell.folder.iterdir()}
    assert said in shell.refuses("table", *arguments)
    assert {path.name: path.read_bytes() for path in shell.folder.iterdir()} == before
