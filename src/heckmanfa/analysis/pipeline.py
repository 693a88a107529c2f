"""A question about a table with its answer, of which the console, JSON and the report are views."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike

import pandas as pd

from heckmanfa.analysis.checking import checks_of_answer
from heckmanfa.analysis.feature_table import feature_frame, table_blocks, with_labels
from heckmanfa.analysis.fitted_question import FittedQuestion
from heckmanfa.analysis.prepared import Loaded
from heckmanfa.analysis.profiles import read_profiles
from heckmanfa.analysis.question_code import code_of
from heckmanfa.analysis.question_words import describe_question, row_blocks, run_again
from heckmanfa.analysis.refits import HeldOut, hold_out
from heckmanfa.data.files.outputs import replacing
from heckmanfa.data.files.paths import refuse_clashes
from heckmanfa.inference.pictures import Pictures
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.inference.uncertainty import bounds_of
from heckmanfa.plots.people_intervals import people_frame
from heckmanfa.report.programs import Programs
from heckmanfa.report.reported import Reported, ReportedAnswer
from heckmanfa.results.answer import Answer, answer_of, roles_frame
from heckmanfa.results.answer_html import card_html, card_or_summary
from heckmanfa.results.checks import Check
from heckmanfa.results.claims import Claim, claims_of
from heckmanfa.results.document import Block
from heckmanfa.results.may_write import may_write
from heckmanfa.results.table_files import SavedTable, check_table_path, write_saved
from heckmanfa.text.labels import in_labels, said
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import plural


@dataclass(frozen=True, eq=False)
class Analysis(FittedQuestion):
    r"""A question about a table, and its answer; made by `analyse`.

    A notebook shows the answer and the first picture. ``print(analysis)`` prints the sentences,
    and `heckmanfa.report.write_report` writes them as a page with every picture.

    Examples
    --------
    >>> from heckmanfa.analysis import analyse
    >>> from heckmanfa.datasets import load_mroz
    >>> table = load_mroz()[["lwage", "educ", "exper", "age", "kids5"]]
    >>> analysis = analyse(table, outcome="lwage")
    >>> analysis
    <Analysis of 'lwage' in frame: 753 rows, 428 with an outcome, 4 features, HeckmanAverage>
    >>> print(*(analysis.roles["feature"] + ": " + analysis.roles["role"]), sep="\n")
    educ: predicts
    exper: predicts, on its own or as it drives selection
    age: cannot be told: only as it drives selection
    kids5: cannot be told: only as it drives selection
    """

    def __str__(self) -> str:
        """Return the sentences of the answer."""
        return str(self.answer)

    def __repr__(self) -> str:
        """Name the question and the model, at once: an answer may take seconds."""
        return (
            f"<Analysis of {quoted(self.question.fitted)} in {shown(self.question.called)}: "
            f"{plural(self.row_counts['total'], 'row')}, {self.row_counts['selected']:,} "
            f"{self.funnel.parts[0] or 'with an outcome'}, "
            f"{plural(len(self.feature_columns), 'feature')}, "
            f"{type(self.model).__name__}>"
        )

    def _repr_html_(self) -> str:
        return card_or_summary(self._card, self.model.summary)

    @in_labels
    def _card(self) -> str:
        return card_html(self.answer, self.pictures().forest, self.evidence.outcome_names)

    @cached_property
    @in_labels
    def answer(self) -> Answer:
        """The answer in sentences: which features predict, how much, and how far to trust it."""
        asked = self.evidence.no_exclusion and "bounds of rho" in self.model.fit_.family.supports
        bounds = bounds_of(self.model.fit_, self.evidence.naming) if asked else None
        written = may_write(self.evidence, self.checks)
        return answer_of(self.evidence, self.checks, bounds=bounds, may_write=written)

    @cached_property
    def roles(self) -> pd.DataFrame:
        """A row for each column of the table: feature, chance, role, effect, ci_low, ci_high.

        Columns come by role, the likeliest first. A category has the effect of the level furthest
        from its reference. What is not known is NaN.
        """
        return roles_frame(self.evidence)

    @property
    @in_labels
    def people(self) -> pd.DataFrame:
        """What the model expects of typical rows, or of those that ``profile`` describes.

        A row for each of them and each expectation: ``person``, ``described``, ``quantity``
        (anyone, selected, unselected, or selection, the probability of having an outcome),
        ``estimate``, ``ci_low`` and ``ci_high``. Without rows in memory there are no typical ones.
        """
        people = self.pictures().people
        return people_frame(() if people is None else people.people)

    @cached_property
    @in_labels
    def held_out(self) -> HeldOut | str | None:
        """Scores of selected rows by fits without them, or why not; None without classes."""
        if not self.target.family.has_classes or not self.is_corrected:
            return None
        return hold_out(self)

    def pictures(self) -> Pictures:
        """Return the pictures of the answer, each made when it is first read."""
        return self._pictures

    @cached_property
    def _pictures(self) -> Pictures:
        rows = self.rows
        picture_rows = partial(PictureRows, self.model.fit_, self.evidence.naming)
        profiles = read_profiles(
            self.question.profile, [*self.encoding.sources, *self.encoding.left_out]
        )
        if not isinstance(rows, Loaded):
            return Pictures(self.evidence, picture_rows(rows), self.labels, profiles)
        made = picture_rows(
            *(rows.X, self.outcome, rows.selected, rows.weight),
            derived=self.derived_columns,
            groups=rows.designed,
        )
        return Pictures(self.evidence, made, self.labels, profiles)

    @cached_property
    @in_labels
    def checks(self) -> tuple[Check, ...]:
        """How far to trust the answer, the gravest first."""
        return checks_of_answer(self)

    @cached_property
    @in_labels
    def claims(self) -> tuple[Claim, ...]:
        """What may not be claimed, the gravest first."""
        return claims_of(self.evidence, self.facts, self.checks)

    @cached_property
    def code(self) -> Programs:
        """Code in Python, R and Stata (``python``, ``r``, ``stata``) that gives these numbers."""
        return code_of(self)

    def save_table(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write roles and coefficients to a file; the ending of its name decides the format.

        Parameters
        ----------
        path : str or path
            ``.csv`` and ``.parquet`` hold chances, roles and effects of all features and levels.
            ``.xlsx`` has sheets for these, for the coefficients of both equations, and for the
            answer. ``.docx``, ``.tex`` and ``.md`` hold the answer with tables to read. Excel needs
            the extra ``excel``, and Parquet ``parquet``.
        force : bool
            Whether an existing file may be replaced.
        """
        check_table_path(path)
        labels = self.question.labels
        reads = {"the analysis": self.question.data}
        reads |= {"labels": labels} if isinstance(labels, str) else {}
        refuse_clashes(reads, {"path": path})
        with replacing(path, force=force) as part:
            write_saved(self._saved_table(), part)

    @in_labels
    def _saved_table(self) -> SavedTable:
        estimates = self.estimates
        selection = estimates[estimates["equation"] == "selection"].drop(columns="equation")
        sheets = {
            "Features": feature_frame(self.pictures()),
            "Coefficients": with_labels(self.coefficients.dropna(axis=1, how="all")),
            "Selection": with_labels(selection.dropna(axis=1, how="all")),
            "Answer": pd.DataFrame({"answer": self.answer.sentences}),
        }
        filled = {title: frame for title, frame in sheets.items() if len(frame)}
        return SavedTable(filled, self._table_blocks)

    @in_labels
    def _table_blocks(self) -> list[Block]:
        reported = self.reported()
        assert isinstance(reported, Reported)
        return table_blocks(reported)

    @in_labels
    def reported(self) -> ReportedAnswer:
        """Return what the page of `heckmanfa.report.write_report` shows."""
        held = self.held_out
        streamed = "Not shown: needs all rows in memory." if self.streamed else ""
        why = held if isinstance(held, str) and not self.streamed else ""
        notes = [*self.notes, *self.explain(), *self.warnings]
        return Reported(
            evidence=self.evidence,
            answer=self.answer,
            checks=self.checks,
            claims=self.claims,
            caveats=self.caveats,
            pictures=self.pictures(),
            comparison=self.comparison,
            outcome_column=self.question.outcome,
            title=self.question.title
            or f"{said(self.question.fitted)}: a selection model of {shown(self.question.called)}",
            heading=self.question.title or "",
            labels=self.labels,
            made_on=self.made_on,
            called=self.question.called,
            row_counts=self.row_counts,
            funnel=self.funnel,
            n_features=len(self.feature_columns),
            settings=describe_question(self),
            rows=row_blocks(self, notes),
            again=run_again(self),
            without_rows=streamed,
            held_out=held.picture if isinstance(held, HeldOut) else None,
            held_out_note=held.how if isinstance(held, HeldOut) else why,
        )
