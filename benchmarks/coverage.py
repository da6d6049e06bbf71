"""Whether the chunks of real pages hold all of their words, within the token limit.

    python -m benchmarks.coverage --corpora DIR --tokenizer tokenizer.json [--max-tokens 512]

DIR holds checkouts of sites, one folder each; every markdown file in them is taken as one page, front matter
included. Exits with 1 when a word is missing or a chunk is too long.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import regex
from tokenizers import Tokenizer

from handler.bundle.passage import passage_text
from handler.bundle.types import Chunk
from pipeline.chunk import MAX_CHARS, chunk_page
from pipeline.page import Page

_WORD = regex.compile(r"\w+")


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each site and for all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--max-tokens", type=int, default=512)
    arguments = parser.parse_args(argv)
    count_tokens = token_counter(arguments.tokenizer)
    total: Counter[str] = Counter()
    for folder in sorted(path for path in arguments.corpora.iterdir() if path.is_dir()):
        counts = measure(pages_of(folder), count_tokens, arguments.max_tokens)
        print(f"{folder.name}: {summary(counts)}")
        most_tokens = max(total["most tokens"], counts["most tokens"])
        total += counts
        total["most tokens"] = most_tokens
    print(f"all: {summary(total)}")
    return 1 if total["missing words"] or total["too long"] else 0


def token_counter(tokenizer_path: Path) -> Callable[[str], int]:
    """Counts a text's tokens, special ones included, nothing cut off."""
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text).ids)


def pages_of(folder: Path) -> Iterator[Page]:
    """Every markdown file below the folder as a page."""
    for path in sorted(folder.rglob("*.md*")):
        name = path.relative_to(folder).as_posix()
        yield Page(
            site=folder.name,
            collection=folder.name,
            path=name,
            url=f"https://example.org/{name}",
            title=path.stem.replace("-", " "),
            description="",
            body=path.read_text(encoding="utf-8", errors="replace"),
            anchor_style="github",
            sha256="",
        )


def measure(pages: Iterator[Page], count_tokens: Callable[[str], int], max_tokens: int) -> Counter[str]:
    """Counts over all pages and their chunks, and the seconds that chunking took."""
    counts: Counter[str] = Counter()
    for page in pages:
        start = time.perf_counter()
        chunks = chunk_page(page, count_tokens, max_tokens)
        counts["milliseconds"] += round((time.perf_counter() - start) * 1000)
        counts["pages"] += 1
        counts["chunks"] += len(chunks)
        counts["words"] += len(_WORD.findall(page.body))
        counts["missing words"] += len(missing_words(page.body, chunks))
        for chunk in chunks:
            texts = chunk.text, passage_text(chunk.title, chunk.heading, chunk.text)
            n_tokens = max(count_tokens(text) for text in texts)
            counts["most tokens"] = max(counts["most tokens"], n_tokens)
            counts["too long"] += n_tokens > max_tokens or len(chunk.text) > MAX_CHARS
            counts[f"under {next(step for step in _STEPS if len(chunk.text) < step)}"] += 1
    return counts


_STEPS = (40, 100, 200, 400, 800, 1200, MAX_CHARS + 1)


def missing_words(body: str, chunks: Sequence[Chunk]) -> list[str]:
    """The words of a body that do not stand in its chunks in the same order."""
    words = _WORD.findall("\n".join(chunk.text for chunk in chunks))
    missing = []
    position = 0
    for word in _WORD.findall(body):
        try:
            position = words.index(word, position) + 1
        except ValueError:
            if len(word) < _ENDLESS_CHARS or not _is_spread(word, words[position:]):
                missing.append(word)
    return missing


# A word this long may be longer than a chunk's tokens allow, and is then spread over several.
_ENDLESS_CHARS = 60


def _is_spread(word: str, words: Sequence[str]) -> bool:
    """Whether the word is made up of some of the words, in order (between them stand fences and headers)."""
    reached = {0}
    for part in words:
        reached |= {end + len(part) for end in reached if word.startswith(part, end)}
    return len(word) in reached


def summary(counts: Counter[str]) -> str:
    """The counts on one line."""
    sizes = ", ".join(f"<{step}: {counts[f'under {step}']}" for step in _STEPS)
    rate = counts["pages"] / max(counts["milliseconds"] / 1000, 0.001)
    return (
        f"{counts['pages']} pages, {counts['words']} words, {counts['missing words']} missing, "
        f"{counts['chunks']} chunks, {counts['too long']} too long, at most {counts['most tokens']} tokens, "
        f"{rate:.0f} pages/s; characters {sizes}"
    )


if __name__ == "__main__":
    sys.exit(main())
