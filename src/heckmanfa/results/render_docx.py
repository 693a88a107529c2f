"""Documents as Word files: the few XML parts that Word needs, in a zip.

Names of columns and levels can hold anything; all text is made printable, then escaped for XML.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from itertools import groupby
from xml.sax.saxutils import escape as escape_xml

from heckmanfa.results.document import Block, Facts, Heading, Notes, Paragraph
from heckmanfa.text.printable import printable
from heckmanfa.text.table import INDENT, Column, Table

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"

_TYPES = (
    f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{_TYPE}.document.main+xml"/>'
    f'<Override PartName="/word/styles.xml" ContentType="{_TYPE}.styles+xml"/></Types>'
)
_RELATIONS = (
    f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/relationships/{{kind}}" Target="{{target}}"/></Relationships>'
)


def _style(name: str, title: str, run: str, paragraph: str = "") -> str:
    return (
        f'<w:style w:type="paragraph" w:styleId="{name}"><w:name w:val="{title}"/>'
        f'<w:basedOn w:val="Normal"/><w:qFormat/><w:pPr>{paragraph}</w:pPr>'
        f"<w:rPr>{run}</w:rPr></w:style>"
    )


# Sizes are in half points, and spaces in twentieths of a point.
_STYLES = (
    f'{_HEAD}<w:styles xmlns:w="{_WORD}"><w:docDefaults><w:rPrDefault><w:rPr>'
    '<w:rFonts w:ascii="Calibri" w:hAnsi="Calibri" w:cs="Calibri"/><w:sz w:val="21"/>'
    '<w:lang w:val="en-GB"/></w:rPr></w:rPrDefault><w:pPrDefault><w:pPr>'
    '<w:spacing w:after="120"/></w:pPr></w:pPrDefault></w:docDefaults>'
    '<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/>'
    "</w:style>"
    + _style("Heading1", "heading 1", '<w:b/><w:sz w:val="30"/>', '<w:outlineLvl w:val="0"/>')
    + _style(
        "Caption", "caption", "<w:b/>", '<w:keepNext/><w:spacing w:before="240" w:after="80"/>'
    )
    + _style("Cell", "Table text", '<w:sz w:val="18"/>', '<w:spacing w:after="0"/>')
    + _style("Note", "Table note", '<w:sz w:val="18"/>', '<w:spacing w:before="60" w:after="60"/>')
    + "</w:styles>"
)
# A4, upright or on its side, with margins of 2 cm.
_UPRIGHT, _ON_ITS_SIDE = 'w:w="11906" w:h="16838"', 'w:w="16838" w:h="11906" w:orient="landscape"'
_PAGE = (
    '<w:sectPr><w:pgSz {size}/><w:pgMar w:top="1134" '
    'w:right="1134" w:bottom="1134" w:left="1134" w:header="567" w:footer="567" w:gutter="0"/>'
    "</w:sectPr>"
)


def _rule(side: str, size: int, colour: str) -> str:
    return f'<w:{side} w:val="single" w:sz="{size}" w:space="0" w:color="{colour}"/>'


_RULES = _rule("top", 8, "17202C") + _rule("bottom", 8, "17202C")
_BETWEEN_ROWS = _rule("insideH", 4, "D5DBE3")
_ABOVE = f"<w:tcBorders>{_rule('top', 4, '17202C')}</w:tcBorders>"
# Twentieths of a point between the margins of a page on its side, to which Word fits a table;
# characters of a line of words in a cell, and of a table that fits an upright page.
_TEXT_WIDTH, _LONGEST_TEXT, _NARROW = 14570, 26, 90


def render_docx(blocks: Iterable[Block]) -> bytes:
    """Render a document as a Word file; the same blocks give the same bytes."""
    blocks = list(blocks)
    body = "".join(_block(block) for block in blocks)
    wide = any(isinstance(block, Table) and sum(_characters(block)) > _NARROW for block in blocks)
    page = _PAGE.format(size=_ON_ITS_SIDE if wide else _UPRIGHT)
    document = f'{_HEAD}<w:document xmlns:w="{_WORD}"><w:body>{body}{page}</w:body></w:document>'
    parts = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _RELATIONS.format(kind="officeDocument", target="word/document.xml"),
        "word/_rels/document.xml.rels": _RELATIONS.format(kind="styles", target="styles.xml"),
        "word/styles.xml": _STYLES,
        "word/document.xml": document,
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            # A part without a date of its own has the first that a zip can hold.
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _block(block: Block) -> str:
    match block:
        case Heading():
            return _paragraph(block.text, "Heading1")
        case Paragraph():
            return _paragraph(block.text)
        case Facts():
            is_number = block.is_number
            columns = (Column("Quantity", is_number=False), Column("Value", is_number=is_number))
            return _table(Table(columns, block.pairs))
        case Table():
            return _table(block)
        case Notes():
            return "".join(_paragraph(item, "Note") for item in block.items)


def _paragraph(text: str, style: str = "Normal", more: str = "", run: str = "") -> str:
    words = escape_xml(" ".join(printable(text, None).split()))
    return (
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{more}</w:pPr><w:r><w:rPr>{run}</w:rPr>'
        f'<w:t xml:space="preserve">{words}</w:t></w:r></w:p>'
    )


def _characters(table: Table) -> list[int]:
    """Return how wide each column wants to be, in characters; words can wrap."""
    lines = [row for _, rows in table.parts() for row in rows]
    longest = [
        max(len(text) for text in (column.title, *(row[place] for row in lines)))
        for place, column in enumerate(table.columns)
    ]
    return [
        max(length + 4, 10) if column.is_number else 2 + min(length, _LONGEST_TEXT)
        for column, length in zip(table.columns, longest, strict=True)
    ]


def _widths(table: Table) -> list[int]:
    """Return the width of each column of a table that is as wide as the text."""
    wanted = _characters(table)
    return [_TEXT_WIDTH * width // sum(wanted) for width in wanted]


def _table(table: Table) -> str:
    columns, widths = table.columns, _widths(table)
    rows = _heads(columns, widths)
    # A row without a name goes with the row above it: no rule parts them, but one parts groups.
    goes_on = any(not line[0] for _, lines in table.parts() for line in lines)
    for title, lines in table.parts():
        above = _ABOVE if goes_on else ""
        if title:
            rows += _row(_cell(title, widths, is_number=False, run="<w:i/>", rule=above))
            above = ""
        for line in lines:
            cells = zip(columns, widths, line, strict=True)
            rows += _row(
                "".join(
                    _cell(text, [width], is_number=column.is_number, rule=above)
                    for column, width, text in cells
                )
            )
            above = ""
    caption = _paragraph(table.caption, "Caption") if table.caption else ""
    borders = _RULES if goes_on else _RULES + _BETWEEN_ROWS
    grid = "".join(f'<w:gridCol w:w="{width}"/>' for width in widths)
    return (
        f'{caption}<w:tbl><w:tblPr><w:tblW w:w="5000" w:type="pct"/><w:tblBorders>{borders}'
        f"</w:tblBorders></w:tblPr><w:tblGrid>{grid}</w:tblGrid>{rows}</w:tbl>"
        # Without a paragraph between them, Word joins two tables.
        + _paragraph("", "Note")
    )


def _heads(columns: Sequence[Column], widths: Sequence[int]) -> str:
    """Return the rows of titles, which Word repeats on every page."""
    heads, over, place = "", "", 0
    for name, members in groupby(columns, lambda one: one.group):
        end = place + len(list(members))
        over += _cell(name, widths[place:end], is_number=False, run="<w:b/>", is_centred=True)
        place = end
    if any(column.group for column in columns):
        heads = _row(over, head=True)
    titles = (
        _cell(column.title, [width], is_number=column.is_number, run="<w:b/>")
        for column, width in zip(columns, widths, strict=True)
    )
    return heads + _row("".join(titles), head=True)


def _row(cells: str, *, head: bool = False) -> str:
    repeated = "<w:tblHeader/>" if head else ""
    return f"<w:tr><w:trPr><w:cantSplit/>{repeated}</w:trPr>{cells}</w:tr>"


def _cell(
    text: str,
    widths: Sequence[int],
    *,
    is_number: bool,
    run: str = "",
    is_centred: bool = False,
    rule: str = "",
) -> str:
    """Return a cell over columns with these widths, and with a ``rule`` of its own."""
    size = f'<w:tcW w:w="{sum(widths)}" w:type="dxa"/>'
    wide = f'<w:gridSpan w:val="{len(widths)}"/>' if len(widths) > 1 else ""
    side = "right" if is_number else "center" if is_centred else ""
    aligned = f'<w:jc w:val="{side}"/>' if side else ""
    aligned = '<w:ind w:left="240"/>' + aligned if text.startswith(INDENT) else aligned
    whole = "<w:noWrap/>" if is_number else ""
    words = _paragraph(text, "Cell", aligned, run)
    return f"<w:tc><w:tcPr>{size}{wide}{rule}{whole}</w:tcPr>{words}</w:tc>"
