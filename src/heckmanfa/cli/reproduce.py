"""``heckmanfa reproduce``: the tables of the paper, with our figures beside the printed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heckmanfa.cli.common import dispatch
from heckmanfa.cli.options import Force

Tables = Annotated[
    list[str] | None,
    typer.Argument(
        help="Tables by their label in the paper (sampling, topjfeats, moretopj, "
        "testingmsespi0, significance, executiontimes, selfeatures), and beyond and splits, "
        "which go further; all of them unless given."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Only the deterministic rows, in seconds.")]
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="Judge as the published run did: lambda = 0 where Phi underflows, and the lost "
        "sign in Heckman-FA*'s sigma.",
    ),
]
Seeds = Annotated[
    int, typer.Option(min=1, help="Runs of whatever depends on a seed (the t-tests have ten).")
]
Splits = Annotated[int, typer.Option(min=2, help="Random splits, beyond the paper.")]
Ru = Annotated[bool, typer.Option("--ru/--no-ru", help="Run RU regression, which needs Torch.")]
Beyond = Annotated[
    bool,
    typer.Option(
        "--beyond/--no-beyond", help="Whether to run and show what the paper does not have."
    ),
]
Folder = Annotated[
    Path | None, typer.Option(help="A folder for each table as CSV, JSON and Markdown.")
]


def reproduce(
    tables: Tables = None,
    quick: Quick = False,
    as_published: AsPublished = False,
    seeds: Seeds = 5,
    splits: Splits = 20,
    ru: Ru = True,
    beyond: Beyond = True,
    out: Folder = None,
    force: Force = False,
) -> None:
    """Rerun the tables of Mai and Wu's paper, with our figures beside the printed ones.

    All of them take two to three minutes on two cores. The data are read from the folder that
    HECKMANFA_DATA names, or from the cache, or are downloaded. The exit status is 1 if a
    deterministic row does not come out.

    Example: heckmanfa reproduce --quick
    """
    dispatch("reproduce", locals(), progress=False)  # it has a progress bar of its own
