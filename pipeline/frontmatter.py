"""Front matter read tolerantly: what a page says about itself, and whether it may be published."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

Meta = Mapping[str, Any]

_HIDE_IF_TRUE = ("draft", "private", "unlisted", "hidden", "noindex")
_HIDE_IF_FALSE = ("published", "publish", "public")
_STATUS = ("status", "post_status")
_PASSWORD = ("password", "post_password")
_PRIVACY_KEYS = (
    *_HIDE_IF_TRUE, *_HIDE_IF_FALSE, *_STATUS, *_PASSWORD, "visibility", "robots", "headless", "render",
    "build", "_build",
)  # fmt: skip
_PRIVATE_STATUS = frozenset(
    ("draft", "auto-draft", "private", "pending", "future", "scheduled", "trash", "inherit", "unpublished",
     "hidden", "unlisted")
)  # fmt: skip
_FALSE = frozenset(("", "false", "no", "off", "0", "n", "f", "none", "null", "~"))

_OPEN = re.compile(r"\ufeff?(?:[ \t]*(?:\r\n|\n|\r))*(---|\+\+\+)[ \t]*(?:\r\n|\n|\r)")
_JSON_OPEN = re.compile(r"\ufeff?\s*(?=\{\s*(?:\"|\}))")
_CLOSE = {
    "---": re.compile(r"(?:^|(?<=\r))(?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)", re.M),
    "+++": re.compile(r"(?:^|(?<=\r))\+\+\+[ \t]*(?:\r\n|\n|\r|\Z)", re.M),
}
_ENTRY = re.compile(r"""["']?[A-Za-z_][\w.-]*["']?\s*[:=]""")
_CONTINUED = re.compile(r"""[ \t#\-\]}"']|<!--|$""")
_PRIVACY_MENTION = re.compile(
    rf"""^[ \t"']*(?:{"|".join((*_HIDE_IF_TRUE, *_HIDE_IF_FALSE))})\b"""
    rf"""|\b(?:{"|".join(_PRIVACY_KEYS)})["']?\s*[:=]"""
    r"""|^[ \t]*"[^"\n]*\\[^"\n]*"\s*:""",  # a key written in escapes may be any
    re.M | re.I,
)

# What a person may have meant as front matter, and no generator reads as such: behind marks that nobody sees,
# comments or imports stands another delimiter than the known ones, or a second block begins below the first.
_NEARLY_OPEN = re.compile(
    r"(?:[\s\ufeff\xad\u200b-\u200f\u2060]|<!--.*?-->|(?:import|export)\b[^\r\n]*)*+"
    r"(?:-{3,}|\+{3,}|;{3,}|\{(?![{%/])"
    r"|(?=(?:[A-Za-z_][\w.-]*[ \t]*[:=][^\r\n]*[\r\n]+)++(?:---|\+\+\+)[ \t]*[\r\n]))",
    re.S,
)
_HIDING_ENTRY = re.compile(
    rf"""(?:^|[{{,])[ \t"'?\-]*(?:
        (?:{"|".join(_HIDE_IF_TRUE)})["']?\s*[:=]\s*["']?(?:true|yes|on|y|1)\b
        |(?:{"|".join(_HIDE_IF_FALSE)})["']?\s*[:=]\s*["']?(?:false|no|off|n|0)\b
        |(?:{"|".join(_STATUS)}|visibility)["']?\s*[:=]\s*["']?(?:{"|".join(sorted(_PRIVATE_STATUS))})\b
    )""",
    re.M | re.I | re.X,
)
_CODE_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
# How far such a block is looked through, in characters.
_NEARLY_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of one file, and the text that follows it.

    Every scalar of YAML is text as its author wrote it (`1.10`, `2024-02-30` and `yes` included), or
    None: nothing that is written can then crash the build or change on the way to a title. `error` is a
    sentence, and `error_line` its line in the file (from 1), when the front matter is malformed; `meta`
    then holds the entries that can be read one by one. `unreadable_privacy` means that malformed front
    matter says something of drafts or visibility, so that the page must not be published. `body_line`
    is the line that the body starts on.
    """

    meta: dict[str, Any] = field(default_factory=dict)
    body: str = ""
    body_line: int = 1
    error: str = ""
    error_line: int = 0
    unreadable_privacy: bool = False


class _TextLoader(yaml.SafeLoader):
    """YAML whose scalars stay text, but for null and merge keys; a key given twice is an error."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class declares it so
        first: [
            resolver
            for resolver in resolvers
            if resolver[0] in ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a node. Raises ConstructorError for a key that stands there twice."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} stands there twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse(text: str) -> FrontMatter:
    """The front matter of a file's text (YAML, TOML or JSON), and its body. Never raises.

    A byte-order mark, blank lines before the opening line, spaces after a delimiter and any kind of line
    end are allowed. A `---` that turns out to be a thematic break is body. What looks like front matter that
    no generator would read, and hides the page, counts as malformed.
    """
    front = _parse(text)
    if front.unreadable_privacy or not (stray := _stray_entry(front.body)):
        return front
    line = front.body_line + _count_lines(front.body[: stray.start()])
    message = f"{stray[0].strip()!r} stands where no front matter is read"
    return replace(front, error=message, error_line=line, unreadable_privacy=True)


def _stray_entry(body: str) -> re.Match[str] | None:
    """The entry that hides a page, where it stands at the top of a body in what is nearly front matter."""
    opened = _NEARLY_OPEN.match(body)
    if opened is None:
        return None
    end = opened.end() + _NEARLY_CHARS
    fence = _CODE_FENCE.search(body, opened.end(), end)
    return _HIDING_ENTRY.search(body, opened.start(), fence.start() if fence else end)


def _parse(text: str) -> FrontMatter:
    if opened := _OPEN.match(text):
        closed = _CLOSE[opened[1]].search(text, opened.end())
        if closed is None:
            return _unclosed(text, opened.end())
        block = text[opened.end() : closed.start()]
        first_line = _count_lines(text[: opened.end()]) + 1
        body_line = first_line + _count_lines(text[opened.end() : closed.end()])
        return _read_block(text, opened[1], block, first_line, text[closed.end() :], body_line)
    if opened := _JSON_OPEN.match(text):
        return _read_json(text, opened.end())
    return FrontMatter(body=text.removeprefix("\ufeff"))


def private_reason(meta: Meta) -> str | None:
    """Why a page with this front matter is not published, or None when it may be.

    Keys are read in any case, at the top level and under `params` (Hugo) and `extra` (Zola). A value that
    is not clearly false hides the page: what is unclear is not published. Dates are none of it: what they
    mean, each generator says for itself.
    """
    for scope in (meta, _mapping(meta.get("params")), _mapping(meta.get("extra"))):
        for key, value in scope.items():
            if reason := _hiding_reason(_plain_key(key), value):
                return reason
    return None


def _hiding_reason(key: str, value: object) -> str | None:
    words = [_word(each) for each in value] if isinstance(value, list) else [_word(value)]
    if key in _HIDE_IF_TRUE and not is_false(value):
        return key
    if key in _HIDE_IF_FALSE and value is not None and _says_unpublished(value):
        return f"{key}: false"
    if key in _STATUS and (status := next((word for word in words if word in _PRIVATE_STATUS), None)):
        return f"{key}: {status}"
    if key == "visibility" and words[0] not in ("", "public", "published", "visible"):
        return f"visibility: {words[0]}"
    if key == "robots" and re.search(r"\b(?:noindex|none)\b", " ".join(words)):
        return "noindex"
    if key in _PASSWORD and not is_false(value):
        return "password-protected"
    return None


def _plain_key(key: object) -> str:
    """A key in lower case, without full-width letters and marks that nobody sees."""
    return re.sub(r"^\W+|\W+$", "", unicodedata.normalize("NFKC", str(key))).lower()


def is_false(value: object) -> bool:
    """Whether a front matter value says no: false, "no", "off", 0, null or nothing at all."""
    return not value if isinstance(value, (list, dict, tuple)) else _word(value) in _FALSE


def text_value(value: object) -> str:
    """A front matter value as one line of text; empty for null, lists and tables.

    Escapes can write what no text holds: two halves of a character are joined, one alone and NUL replaced.
    """
    if value is None or isinstance(value, (list, dict, tuple)):
        return ""
    text = str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(text.replace("\0", "\N{REPLACEMENT CHARACTER}").split())


def _says_unpublished(value: object) -> bool:
    return _word(value) in _FALSE or _word(value) in _PRIVATE_STATUS


def _word(value: object) -> str:
    return "" if value is None else str(value).strip().lower()


def _mapping(value: object) -> Meta:
    return value if isinstance(value, dict) else {}


def _count_lines(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _unclosed(text: str, start: int) -> FrontMatter:
    """All the text as body: with no closing line, what looks like front matter may be the page itself."""
    head = re.match(r"(?:.*\S.*(?:\r\n|\n|\r|\Z))*", text[start : start + 10_000])
    block = head[0] if head else ""
    if not _ENTRY.match(block):
        return FrontMatter(body=text.removeprefix("\ufeff"))
    return FrontMatter(
        meta={key: value for key, value in _readable_entries(block).items() if key == "title"},
        body=text.removeprefix("\ufeff"),
        error="the front matter has no closing line",
        error_line=max(1, _count_lines(text[:start])),
        unreadable_privacy=bool(_PRIVACY_MENTION.search(block)),
    )


def _read_block(
    text: str, delimiter: str, block: str, first_line: int, body: str, body_line: int
) -> FrontMatter:
    unified = re.sub(r"\r\n?", "\n", block)
    error, error_line = "front matter is not a table of keys and values", first_line
    try:
        if delimiter == "---":
            meta = YAMLHandler().load(unified, Loader=_TextLoader)
        else:
            meta = tomllib.loads(unified, parse_float=str)
        if meta is None and not re.sub(r"(?m)^\s*#.*$", "", unified).strip():
            meta = {}
        if isinstance(meta, dict):
            return FrontMatter({str(key): value for key, value in meta.items()}, body, body_line)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        if problem.context and "quoted scalar" in problem.context:
            mark = problem.context_mark  # where the quote opens, rather than where the file ends
        error = f"malformed YAML: {problem.problem or problem.context or 'unreadable'}"
        error_line = first_line + (mark.line if mark else 0)
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        error = f"malformed front matter: {str(problem).splitlines()[0]}"
        line = re.search(r"line (\d+)", str(problem))
        error_line = first_line + (int(line[1]) - 1 if line else 0)
    lines = unified.split("\n")
    written = [line for line in lines if line.strip() and not line.startswith(("#", "<!--"))]
    if not written or not _ENTRY.match(written[0]):
        # Prose between two thematic breaks. A line in it that speaks of drafts is taken at its word.
        return FrontMatter(body=text.removeprefix("\ufeff"), **_suspicion(unified, error_line))
    prose = [line for line in lines if not _ENTRY.match(line) and not _CONTINUED.match(line)]
    return FrontMatter(
        meta=_readable_entries(unified),
        body="\n".join(prose) + "\n\n" + body if prose else body,
        body_line=body_line,
        error=error,
        error_line=error_line,
        unreadable_privacy=bool(_PRIVACY_MENTION.search(unified)),
    )


def _suspicion(block: str, line: int) -> dict[str, Any]:
    mention = _PRIVACY_MENTION.search(block)
    if mention is None:
        return {}
    message = f"{mention[0].strip()!r} between two thematic breaks: neither front matter nor plain prose"
    return {"error": message, "error_line": line, "unreadable_privacy": True}


def _read_json(text: str, start: int) -> FrontMatter:
    try:
        meta, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError) as problem:  # ValueError also for a number of thousands of digits
        line = getattr(problem, "lineno", 1)
        head = text[start : start + 10_000]
        return FrontMatter(
            body=text.removeprefix("\ufeff"),
            error=f"malformed JSON front matter: {problem}",
            error_line=line,
            unreadable_privacy=bool(_PRIVACY_MENTION.search(head)),
        )
    after = re.compile(r"[ \t]*(?:\r\n|\n|\r|\Z)").match(text, end)
    if after is None or not isinstance(meta, dict):
        return FrontMatter(body=text.removeprefix("\ufeff"))  # a page that begins with a bit of JSON
    return FrontMatter(meta, text[after.end() :], _count_lines(text[: after.end()]) + 1)


def _readable_entries(block: str) -> dict[str, Any]:
    """The top-level entries of a malformed block that can be read one by one.

    The text of a one-line entry that is no YAML by itself (`title: A: B`) is taken as it stands.
    """
    entries: dict[str, Any] = {}
    for entry in re.split(r"\n(?=[^\s#\-])", re.sub(r"\r\n?", "\n", block)):
        key, colon, value = re.sub(r"^[\"']?([\w.-]+)[\"']?\s*[:=]", r"\1\0", entry).partition("\0")
        if not colon:
            continue
        try:
            loaded = YAMLHandler().load(f"value:{value}" if value[:1].isspace() else f"value: {value}",
                                        Loader=_TextLoader)  # fmt: skip
            entries.setdefault(key, loaded["value"])
        except (yaml.YAMLError, ValueError, TypeError, KeyError, RecursionError):
            if "\n" not in value.strip():
                entries.setdefault(key, value.strip().strip("\"'"))
    return entries
