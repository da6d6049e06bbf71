"""A site's questions.jsonl: what visitors may ask, and which pages answer it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.site import SiteError


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `expected` are the acceptable public URLs; empty when it must be refused.

    `where` is the file and line that it stands in, which do not make it another question.
    """

    id: str
    text: str
    expected: tuple[str, ...]
    where: str = field(default="", compare=False)


def read_questions(path: Path) -> list[Question]:
    """The questions of a JSON-lines file, in its order; none when there is no such file.

    Each line is {"id", "text", "expected"}; further keys are the author's own and ignored. Raises
    SiteError naming file, line and key.
    """
    if not path.exists():
        return []
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if line.strip():
            questions.append(_question(f"{path}:{number}", line))
    repeated = {question.id for question in questions if sum(q.id == question.id for q in questions) > 1}
    if repeated:
        raise SiteError(f"{path}: id: {min(repeated)!r} names two questions")
    return questions


def _question(where: str, line: str) -> Question:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise SiteError(f"{where}: not a line of JSON: {error}") from None
    if not isinstance(row, dict):
        raise SiteError(f'{where}: write an object, {{"id": …, "text": …, "expected": […]}}')
    identity, text, expected = row.get("id"), row.get("text"), row.get("expected")
    if not isinstance(identity, str | int) or isinstance(identity, bool):
        raise SiteError(f"{where}: id: {identity!r} is neither a text nor a number")
    if not isinstance(text, str) or not text.strip():
        raise SiteError(f"{where}: text: {text!r} is no question")
    if not isinstance(expected, list) or not all(isinstance(url, str) for url in expected):
        raise SiteError(f"{where}: expected: write a list of public URLs, [] for a question to refuse")
    return Question(str(identity), text, tuple(expected), where)
