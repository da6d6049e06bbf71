"""Exported pages as files: build/pages/<site>/…md with front matter, and build/pages/<site>.json."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

import yaml

from handler.bundle.counted import counted
from pipeline.export.types import Exclusion, Export, ExportWarning
from pipeline.page import Page
from pipeline.site import SiteError

_KEYS = ("url", "title", "collection", "path", "description", "anchor_style", "sha256")
_NOT_IN_YAML = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# Most file systems allow 255 bytes a name; this leaves room for suffixes.
_MAX_NAME_BYTES = 200
# Of the places that a warning is said of: enough to go and look, in one line.
_PLACES = 3


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page as the report lists it.

    `file` is relative to the site's folder of pages, and `sha256` is its digest: whatever changes of a
    page, the report changes with it, so that what is built from pages need depend on the report only.
    `language` is the one it says it is in, or empty; always empty where site.toml names the language.
    """

    path: str
    url: str
    title: str
    file: str
    sha256: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The account of one site's export: what went in, what came out, and what was left out and why.

    `first_day` and `end_day` are the export's window in ISO 8601: from the end on it is another.
    """

    site: str
    n_pages_in: int
    n_pages_out: int
    first_day: str
    end_day: str
    pages: tuple[PageEntry, ...]
    exclusions: tuple[Exclusion, ...]
    warnings: tuple[ExportWarning, ...]


def write_export(export: Export, pages_dir: Path) -> None:
    """Write an export's pages and its report; files of earlier exports of the site that are no pages go.

    A page that has not changed is not written again. Same export in, same bytes out.
    """
    folder = pages_dir / export.site
    report = make_report(export)
    for page, entry in zip(export.pages, report.pages, strict=True):
        write_if_changed(folder / entry.file, page_text(page).encode("utf-8"))
    remove_others(folder, {folder / entry.file for entry in report.pages})
    table = json.dumps(asdict(report), ensure_ascii=False, indent=1) + "\n"
    write_if_changed(pages_dir / f"{export.site}.json", table.encode("utf-8"))


def read_pages(pages_dir: Path, site_name: str) -> list[Page]:
    """The pages of a site exactly as they were exported, by path.

    Raises SiteError when the site was not exported, or a file of the export is missing or damaged.
    """
    report = read_report(pages_dir / f"{site_name}.json")
    return [_read_page(pages_dir / site_name / entry.file, site_name) for entry in report.pages]


def read_report(path: Path) -> Report:
    """The report that write_export wrote. Raises SiteError when it is missing or damaged."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        return Report(
            site=table["site"],
            n_pages_in=table["n_pages_in"],
            n_pages_out=table["n_pages_out"],
            first_day=table["first_day"],
            end_day=table["end_day"],
            pages=tuple(PageEntry(**entry) for entry in table["pages"]),
            exclusions=tuple(Exclusion(**entry) for entry in table["exclusions"]),
            warnings=tuple(ExportWarning(**entry) for entry in table["warnings"]),
        )
    except FileNotFoundError:
        raise SiteError(f"{path}: not found; run `doit export:{path.stem}` first") from None
    except (ValueError, KeyError, TypeError) as error:
        raise SiteError(f"{path}: damaged ({error}); delete it, then `doit export:{path.stem}`") from None


def exported_sites(pages_dir: Path, known: AbstractSet[str] = frozenset()) -> list[str]:
    """The sites, beside the known ones, whose exports are in the folder: those that a report there is of."""
    others = (path for path in sorted(pages_dir.glob("*.json")) if path.stem not in known)
    return [path.stem for path in others if _is_report_of(path, path.stem)]


def _is_report_of(path: Path, site_name: str) -> bool:
    """Whether it is a report of this or an earlier version, rather than a file of somebody else's."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(table, dict) and table.get("site") == site_name and "n_pages_in" in table


def make_report(export: Export) -> Report:
    """The account of an export."""
    files = page_files(page.path for page in export.pages)
    return Report(
        site=export.site,
        n_pages_in=export.n_pages_in,
        n_pages_out=len(export.pages),
        first_day=export.window.first.isoformat(),
        end_day=export.window.end.isoformat(),
        pages=tuple(
            PageEntry(
                path=p.path,
                url=p.url,
                title=p.title,
                file=files[p.path],
                sha256=hashlib.sha256(page_text(p).encode()).hexdigest(),
                language=export.languages.get(p.path, ""),
            )
            for p in export.pages
        ),
        exclusions=export.exclusions,
        warnings=export.warnings,
    )


def format_report(report: Report, most: int | None = None) -> str:
    """A report as a person reads it: counts, then what is left out by reason, then warnings.

    Warnings that say the same are one. `most` is how many pages of a reason are shown, and how many warnings;
    by default all.
    """
    lines = [f"{report.site}: {report.n_pages_out:,} of {counted(report.n_pages_in, 'page')} exported"]
    if told := _languages_told(report.pages):
        lines.append(f"  {told}")
    by_reason: dict[str, list[str]] = {}
    for exclusion in report.exclusions:
        by_reason.setdefault(exclusion.reason, []).append(exclusion.path)
    for reason, paths in sorted(by_reason.items()):
        lines.append(f"  left out, {reason}: {len(paths)}")
        lines += shortened([f"    {path}" for path in paths], "    … and {} more", most)
    warnings = [f"  warning: {warning}" for warning in _distinct(report.warnings)]
    lines += shortened(warnings, "  … and {} more warnings", most)
    return "\n".join(lines)


def _languages_told(pages: Iterable[PageEntry]) -> str:
    """How many pages are in which language, when they are in several, and what to do about it; else empty.

    Pages that say no language are taken for English: where others are beside them, they are translations.
    """
    counts = Counter(page.language for page in pages)
    if len({language or "en" for language in counts}) < 2:
        return ""
    n_unsaid = counts.pop("", 0)
    listed = ", ".join(f"{language} {n:,}" for language, n in sorted(counts.items(), key=_by_count))
    unsaid = f", none said {n_unsaid:,}" if n_unsaid else ""
    return (
        f"pages in {counted(len(counts), 'language')}: {listed}{unsaid}; the model reads English: "
        'language = "en" in site.toml leaves the others out'
    )


def _by_count(language_and_n: tuple[str, int]) -> tuple[int, str]:
    language, n = language_and_n
    return -n, language


def _distinct(warnings: Iterable[ExportWarning]) -> list[str]:
    """Each warning as a person reads it; what is said of several places once, with the first of them."""
    by_message: dict[str, list[ExportWarning]] = {}
    for warning in warnings:
        by_message.setdefault(warning.message, []).append(warning)
    return [
        format_warning(same[0]) if len(same) == 1 else f"{message} ({_places(same)})"
        for message, same in by_message.items()
    ]


def _places(warnings: Sequence[ExportWarning]) -> str:
    """The number of places, and the first of them: "12 times: a.md:3, b.md, c.md, …"."""
    first = [_place(warning) for warning in warnings[:_PLACES]]
    rest = ["…"] if len(warnings) > _PLACES else []
    return f"{len(warnings):,} times: {', '.join([*first, *rest])}"


def shortened(lines: Sequence[str], rest: str, most: int | None) -> list[str]:
    """The first lines and how many more there are, which is never one; all of them where `most` is None."""
    if most is None or len(lines) <= most + 1:
        return [*lines]
    return [*lines[:most], rest.format(f"{len(lines) - most:,}")]


def format_warning(warning: ExportWarning) -> str:
    """A warning as a person reads it, with file and line."""
    return f"{_place(warning)}: {warning.message}"


def _place(warning: ExportWarning) -> str:
    return f"{warning.path}:{warning.line}" if warning.line else warning.path


def page_files(paths: Iterable[str], name: Callable[[str], str] | None = None) -> dict[str, str]:
    """A file name below the site's folder for each page path, by `name` or else like the path.

    Names stay apart on disks that ignore case or Unicode form, and none is longer than a disk allows: a
    page whose name would meet another's gets the digest of its path in front of its suffix.
    """
    files: dict[str, str] = {}
    taken: set[str] = set()
    for path in sorted(paths):
        file = (name or file_name)(path)
        if _folded(file) in taken:
            file = f"{file.removesuffix('.md')}~{hashlib.sha256(path.encode()).hexdigest()[:8]}.md"
        taken.add(_folded(file))
        files[path] = file
    return files


def page_text(page: Page) -> str:
    """A page as the text of a markdown file: front matter, and right below it the body as it is."""
    lines = [f"{key}: {yaml_string(getattr(page, key))}" for key in _KEYS]
    return "\n".join(["---", *lines, "---", page.body])


def yaml_string(text: str) -> str:
    """Text as a YAML double-quoted string: JSON's, with what YAML cannot hold as it is escaped too."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def write_if_changed(path: Path, data: bytes) -> None:
    """Writes a file, unless it holds these bytes already."""
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _read_page(path: Path, site_name: str) -> Page:
    try:
        text = path.read_bytes().decode("utf-8")
        end = text.index("\n---\n")
        values = yaml.safe_load(text[len("---\n") : end])
        return Page(site=site_name, body=text[end + len("\n---\n") :], **{key: values[key] for key in _KEYS})
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise SiteError(
            f"{path}: missing or damaged ({error}); run `doit export:{site_name}` again"
        ) from None


def file_name(path: str) -> str:
    """The file for a page path: the path itself, with .md behind it where it has another suffix."""
    name = "/".join(_short(part) for part in PurePosixPath(path).parts)
    return name if name.endswith(".md") else f"{name}.md"


def _short(part: str) -> str:
    data = part.encode("utf-8")
    if len(data) <= _MAX_NAME_BYTES:
        return part
    return data[: _MAX_NAME_BYTES - 20].decode("utf-8", "ignore") + "~" + hashlib.sha256(data).hexdigest()[:8]


def _folded(file: str) -> str:
    return unicodedata.normalize("NFC", file).casefold()


def remove_others(folder: Path, kept: set[Path]) -> None:
    """Removes all files of a folder but those, and the folders in it that are left empty."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in kept:
            path.unlink()
