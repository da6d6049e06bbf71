"""Chunks of pages: small enough for the embedding model, and all of a page's text among them."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from handler.bundle.passage import PREFIX_BYTES, passage_text
from handler.bundle.types import Chunk
from pipeline.anchors import Anchors
from pipeline.blocks import Block, has_words, parse_blocks
from pipeline.page import Page
from pipeline.split import split_block, tail_of

MAX_CHARS = 1500
OVERLAP_CHARS = 150

# Below this a chunk says too little to be found, or finds too much: it joins its neighbour.
MIN_CHARS = 40

# The prefix may take PREFIX_BYTES tokens; a chunk needs room for some words beside it.
MIN_TOKEN_LIMIT = PREFIX_BYTES + 32


def chunk_page(
    page: Page,
    count_tokens: Callable[[str], int],
    max_tokens: int,
    max_chars: int = MAX_CHARS,
    overlap_chars: int = OVERLAP_CHARS,
) -> list[Chunk]:
    """The chunks of a page, in order; none when its body is blank.

    Of each, the text and its passage_text are at most `max_tokens` long by `count_tokens`, which counts
    special tokens too, and the text is at most `max_chars` characters.
    """
    if max_tokens < MIN_TOKEN_LIMIT:
        raise ValueError(f"max_tokens: {max_tokens} is too few; at least {MIN_TOKEN_LIMIT}")
    limit = _Limit(page.title, count_tokens, max_tokens, max_chars)
    drafts: list[_Draft] = []
    for section in _sections(page):
        drafts.extend(_pack_section(section, limit, overlap_chars))
    # Nothing is lost with what has no words; but a page of emoji alone is a page.
    drafts = [draft for draft in drafts if draft.text.strip()]
    drafts = [draft for draft in drafts if has_words(draft.text)] or drafts[:1]
    drafts = _without_fragments(drafts, limit)
    texts = _with_overlap(drafts, limit, overlap_chars)
    return [
        Chunk(
            url=page.url,
            title=page.title,
            path=page.path,
            collection=page.collection,
            heading=draft.heading,
            anchor=draft.anchor,
            ordinal=ordinal,
            text=text,
        )
        for ordinal, (draft, text) in enumerate(zip(drafts, texts, strict=True))
    ]


def chunk_pages(
    pages: Iterable[Page], count_tokens: Callable[[str], int], max_tokens: int
) -> Iterator[Chunk]:
    """The chunks of all pages, page by page."""
    for page in pages:
        yield from chunk_page(page, count_tokens, max_tokens)


def write_chunks(chunks: Iterable[Chunk], path: Path) -> None:
    """Chunks as JSON lines, by path and ordinal: the same chunks make the same bytes."""
    ordered = sorted(chunks, key=lambda chunk: (chunk.path, chunk.url, chunk.ordinal))
    partial = unfinished(path)
    with partial.open("w", encoding="utf-8", newline="\n") as file:
        for chunk in ordered:
            file.write(json.dumps(asdict(chunk), ensure_ascii=False) + "\n")
    partial.replace(path)


def unfinished(path: Path) -> Path:
    """Where chunks stand until all of them are written; what an interrupt leaves behind."""
    return path.with_name(path.name + ".partial")


def read_chunks(path: Path) -> list[Chunk]:
    """The chunks that write_chunks wrote."""
    with path.open(encoding="utf-8", newline="\n") as file:
        rows = [json.loads(line) for line in file]
    return [Chunk(**{**row, "heading": tuple(row["heading"])}) for row in rows]


@dataclass(frozen=True, slots=True)
class _Limit:
    """How long a chunk of one page may be."""

    title: str
    count_tokens: Callable[[str], int]
    max_tokens: int
    max_chars: int

    def load(self, heading: tuple[str, ...], text: str) -> float:
        """How full the chunk is; more than 1 is too full."""
        n_tokens = max(self.count_tokens(text), self.count_tokens(passage_text(self.title, heading, text)))
        return max(len(text) / self.max_chars, n_tokens / self.max_tokens)

    def admits(self, heading: tuple[str, ...], text: str) -> bool:
        return len(text) <= self.max_chars and self.load(heading, text) <= 1


@dataclass(frozen=True, slots=True)
class _Section:
    """The blocks under one heading, that heading first; headings without text go before."""

    heading: tuple[str, ...]
    anchor: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A chunk without its overlap.

    `gap` parted it from the draft before, `continues` says that both are of one section, and `prose` is
    what the next draft may repeat of this one.
    """

    heading: tuple[str, ...]
    anchor: str
    text: str
    gap: str
    continues: bool
    prose: str


def _sections(page: Page) -> Iterator[_Section]:
    anchors = Anchors(page.anchor_style)
    path: list[tuple[int, str, str]] = []  # level, text and anchor of the headings that are open
    blocks: list[Block] = []

    def section() -> _Section:
        heading = tuple(text for _, text, _ in path if text)
        # Without an anchor of its own, a section is best reached by the one around it.
        anchor = next((anchor for _, _, anchor in reversed(path) if anchor), "")
        return _Section(heading, anchor, tuple(blocks))

    for block in parse_blocks(page.body):
        fragments = [anchors.add(heading) for heading in block.headings]
        if block.kind == "heading":
            if any(other.kind != "heading" and has_words(other.text) for other in blocks):
                yield section()
                blocks = []
            (heading,) = block.headings
            while path and path[-1][0] >= heading.level:
                path.pop()
            path.append((heading.level, heading.text, fragments[0]))
        blocks.append(block)
    if blocks:
        yield section()


def _pack_section(section: _Section, limit: _Limit, overlap_chars: int) -> list[_Draft]:
    spare = MIN_CHARS + len("\n\n")  # lets a fragment join later
    cap = limit.max_chars - spare
    if len(_join(section.blocks)) > cap:
        cap = limit.max_chars - max(overlap_chars, spare) - len("\n\n")
    groups = list(_fitting(section.blocks, cap, section.heading, limit))
    return [
        _Draft(
            heading=section.heading,
            anchor=section.anchor,
            text=_join(group),
            gap=group[0].gap,
            continues=i > 0,
            prose=_final_prose(group, overlap_chars),
        )
        for i, group in enumerate(groups)
    ]


def _fitting(
    blocks: Sequence[Block], cap: int, heading: tuple[str, ...], limit: _Limit
) -> Iterator[list[Block]]:
    """The blocks in groups within the limit: packed by characters, and packed again where tokens are over."""
    for group in _pack(blocks, cap):
        text = _join(group)
        load = limit.load(heading, text)
        if load <= 1 or len(text) == 1:
            yield group
        else:
            n_parts = math.ceil(load / 0.95)  # the parts differ in tokens a character
            share = min(0.95 / load, 1.1 / n_parts)  # even parts, not full ones and a rest
            yield from _fitting(group, max(1, int(len(text) * share)), heading, limit)


def _pack(blocks: Iterable[Block], cap: int) -> Iterator[list[Block]]:
    """The blocks in groups of at most `cap` characters, split where need be."""
    queue = deque(blocks)
    group: list[Block] = []
    size = 0
    while queue:
        block = queue.popleft()
        room = cap - size - len(block.gap) if group else cap
        if len(block.text) <= room:
            size = cap - room + len(block.text)
            group.append(block)
            continue
        # A heading stays with what it heads, if it leaves some room for that.
        only_headings = size <= cap // 2 and all(other.kind == "heading" for other in group)
        if only_headings or (len(block.text) > cap and room >= cap // 3):
            parts = split_block(block, room, cap)
            queue.extendleft(reversed(parts))
            if block.children or len(parts[0].text) <= room:
                continue
        else:
            queue.appendleft(block)
        yield group
        group, size = [], 0
    if group:
        yield group


def _join(blocks: Sequence[Block]) -> str:
    parts = [part for block in blocks for part in (block.gap, block.text)]
    return "".join(parts[1:])


def _final_prose(blocks: Sequence[Block], n_chars: int) -> str:
    """The end of a group as far as it is prose, and long enough to take an overlap from."""
    prose: list[Block] = []
    size = 0
    for leaf in reversed([leaf for block in blocks for leaf in _leaves(block)]):
        if leaf.kind != "prose" or size > n_chars:
            break
        prose.insert(0, leaf)
        size += len(leaf.text)
    text = _join(prose)
    if prose and not prose[0].gap:  # it may begin within a word, which is no place to begin
        return tail_of(text, len(text) - 1)
    return text


def _leaves(block: Block) -> Iterator[Block]:
    if not block.children:
        yield block
    for i, child in enumerate(block.children):
        yield from _leaves(child if i else replace(child, gap=block.gap))


def _without_fragments(drafts: Iterable[_Draft], limit: _Limit) -> list[_Draft]:
    """The drafts, those under MIN_CHARS joined to the one before or else after, where there is room."""
    joined: list[_Draft] = []
    for draft in drafts:
        if joined and min(len(joined[-1].text), len(draft.text)) < MIN_CHARS:
            both = _joined(joined[-1], draft)
            if limit.admits(both.heading, both.text):
                joined[-1] = both
                continue
        joined.append(draft)
    return joined


def _joined(first: _Draft, second: _Draft) -> _Draft:
    """Two drafts as one, which goes by the place of the longer."""
    place = first if len(first.text) >= len(second.text) else second
    goes_on = first.prose and second.prose == second.text
    return replace(
        place,
        text=first.text + second.gap + second.text,
        gap=first.gap,
        continues=first.continues,
        prose=first.prose + second.gap + second.prose if goes_on else second.prose,
    )


def _with_overlap(drafts: Sequence[_Draft], limit: _Limit, overlap_chars: int) -> Iterator[str]:
    """The drafts' texts; within a section each begins with the end of the one before."""
    before = ""
    for draft in drafts:
        yield _overlapped(draft, before, limit, overlap_chars) if draft.continues else draft.text
        before = draft.prose


def _overlapped(draft: _Draft, before: str, limit: _Limit, overlap_chars: int) -> str:
    room = min(overlap_chars, limit.max_chars - len(draft.text) - len(draft.gap))
    while room > 0 and (tail := tail_of(before, room)):
        text = tail + draft.gap + draft.text
        if limit.admits(draft.heading, text):
            return text
        room //= 2  # tokens are over: a shorter overlap may do
    return draft.text
