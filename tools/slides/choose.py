"""What of a lesson's Markdown stands on a slide: a few of its own sentences, never new ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

LINE = 74  # characters of a line of text on a slide, in a broad font
MOST_LINES = 11
MOST_PREDICTED = 13
WHOLE_LINES = 6  # a text of this length needs no choice
MOST_TABLE_ROWS = 9


def _formula(text: str, options: dict[str, bool]) -> str:
    left, right = ("\\[", "\\]") if options["display_mode"] else ("\\(", "\\)")
    return f"{left}{text.strip().replace('&', '&amp;').replace('<', '&lt;')}{right}"


MARKDOWN = (
    MarkdownIt("commonmark")
    .enable("table")
    .use(dollarmath_plugin, allow_space=False, double_inline=True, renderer=_formula)
)


@dataclass(frozen=True)
class Block:
    """A block of Markdown: ``kind`` is markdown-it's token type without ``_open``."""

    kind: str
    text: str

    @property
    def pieces(self) -> list[str]:
        """What can be shown by itself: the sentences of a paragraph, the items of a list."""
        if self.kind == "paragraph":
            return sentences(self.text)
        if self.kind in ("bullet_list", "ordered_list"):
            return re.split(r"\n(?=(?:[-*]|\d+\.) )", self.text)
        return [self.text]


@dataclass(frozen=True)
class Segment:
    """The part of a cell that belongs to one slide: what follows a heading, or a *Predict*.

    ``heading`` is empty where the text goes on from the cell before: it says what came out there.
    """

    heading: str
    level: int
    predicts: bool
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """All of it as Markdown."""
        return "\n\n".join(block.text for block in self.blocks)


def blocks(markdown: str) -> Iterator[Block]:
    """The blocks of a cell, in order."""
    lines = markdown.splitlines()
    for token in MARKDOWN.parse(markdown):
        if token.level == 0 and token.map and token.nesting >= 0:
            text = "\n".join(lines[slice(*token.map)]).strip()
            yield Block(token.type.removesuffix("_open"), text)


def segments(markdown: str) -> list[Segment]:
    """A Markdown cell, divided before each heading and before each *Predict*."""
    heading, level, predicts = "", 0, False
    found: list[Segment] = []
    collected: list[Block] = []

    def close() -> None:
        if collected or (heading and not predicts):
            found.append(Segment(heading, level, predicts, tuple(collected)))
            collected.clear()

    for block in blocks(markdown):
        if block.kind == "heading":
            close()
            marks, heading = block.text.split(" ", 1)
            level, predicts = len(marks), False
        else:
            if block.text.startswith("**Predict"):
                close()
                predicts = True
            collected.append(block)
    close()
    return found


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph; code, formulas and brackets are not divided."""
    text = " ".join(paragraph.split())
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    hidden = re.sub(r"`[^`]+`|\$\$.+?\$\$|\$[^$]+\$|\*\*[^*]+\*\*|\([^()]*\)", keep, text)
    parts = re.split(r"(?<=[.?!])\s+(?=[A-Z\0\[*])", hidden)
    while any("\0" in part for part in parts):
        parts = [re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], part) for part in parts]
    # A lead in bold, as in "**Lab.** You write", goes with its sentence.
    joined: list[str] = []
    for part in parts:
        if joined and re.fullmatch(r"\*\*[^*]+\*\*", joined[-1]):
            joined[-1] += f" {part}"
        else:
            joined.append(part)
    return joined


def plain(markdown: str) -> str:
    """Without marks, as one would read it aloud: by this a beginning is found."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    text = re.sub(r"^\s*(?:[-*>]|\d+\.)\s+", "", text)
    return " ".join(re.sub(r"[*`$\\]", "", text).split())


def length(markdown: str) -> float:
    """How many lines of a slide a text takes, about."""
    return _lines([(block, block.text) for block in blocks(markdown)])


def lines_of(kind: str, text: str) -> float:
    """How many lines of a slide a piece takes, about."""
    if kind == "table":
        return 1.3 * len(text.splitlines())
    if kind == "math_block":
        return 2.5 * max(1, text.count("\\\\") + 1)
    if kind in ("fence", "code_block", "html_block"):
        return 1.0 * len(text.splitlines())
    return 0.45 + math.ceil(len(plain(text)) / (LINE - 4 * kind.endswith("list")))


def shown(segment: Segment, beginnings: Sequence[str] | None, used: set[str]) -> str:
    """The Markdown of the slide for ``segment``; empty when there is none.

    With ``beginnings``: the sentences, list items and blocks that begin so; ``used`` is given
    those that were found. ``Predict`` stands for all of a prediction. Without: what a speaker
    would point at first (formula, belief, table, list), and the first sentence of each paragraph.
    """
    if beginnings is None:
        return _by_weight(segment)
    chosen: list[tuple[Block, str]] = []
    for block in segment.blocks:
        for piece in block.pieces:
            found = [b for b in beginnings if plain(piece).startswith(plain(b))]
            used.update(found)
            if segment.predicts and "Predict" in found:
                return _by_weight(segment)
            if found:
                chosen.append((block, piece))
    return _joined(chosen)


def _by_weight(segment: Segment) -> str:
    whole = [(block, piece) for block in segment.blocks for piece in block.pieces]
    if _lines(whole) <= (MOST_PREDICTED if segment.predicts else WHOLE_LINES):
        return _joined(whole)
    ranked: list[tuple[int, int, Block, str]] = []
    place = 0
    for block in segment.blocks:
        for number, piece in enumerate(block.pieces):
            place += 1
            text = block.kind == "paragraph"
            if block.kind in ("html_block", "hr") or (
                block.kind == "table" and piece.count("\n") > MOST_TABLE_ROWS + 1
            ):
                continue
            if not (text and number):
                rank = -1 if piece.startswith("**Predict") else int(text)
                ranked.append((rank, place, block, piece))
    chosen: list[tuple[int, int, Block, str]] = []
    for entry in sorted(ranked, key=lambda one: one[:2]):
        if _lines([one[2:] for one in (*chosen, entry)]) <= MOST_LINES:
            chosen.append(entry)
    return _joined([one[2:] for one in sorted(chosen, key=lambda one: one[1])])


def _lines(pieces: Sequence[tuple[Block, str]]) -> float:
    return sum(lines_of(block.kind, piece) for block, piece in pieces)


def _joined(pieces: Sequence[tuple[Block, str]]) -> str:
    """Sentences of one paragraph stay one paragraph, items of one list one list.

    A remark in brackets before a sentence is left out.
    """
    out: list[str] = []
    last: Block | None = None
    for block, piece in pieces:
        piece = re.sub(r"^\([^()]*[.?!]\) ", "", piece)
        if block is last:
            out[-1] += ("\n" if block.kind.endswith("list") else " ") + piece
        else:
            out.append(piece)
        last = block
    return "\n\n".join(out)
