"""The file tools: what a client can call, in as few words as say it.

Their schemas are paid for in every session, so the names of arguments do most of the explaining; a test holds
them to a number of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from ralph_fs import editing, finding, listing, moving, reading, text_search, writing
from ralph_fs.editing import Edit
from ralph_fs.globs import Glob, read_glob
from ralph_fs.reading import Excerpt, Lines
from ralph_fs.refusal import RefusedError
from ralph_fs.roots import Place, Scope
from ralph_fs.text_search import Query
from ralph_fs.writing import Encoding

P = ParamSpec("P")
T = TypeVar("T")

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def changes(*, destroys: bool, idempotent: bool) -> ToolAnnotations:
    """The annotations of a tool that changes files."""
    return ToolAnnotations(
        read_only_hint=False, destructive_hint=destroys, idempotent_hint=idempotent, open_world_hint=False
    )


def register(server: MCPServer, scope: Scope) -> None:
    """Adds the file tools to the server."""

    def add(tool: Callable[..., str | list[str]], annotations: ToolAnnotations) -> None:
        server.add_tool(answering(tool), annotations=annotations, structured_output=False)

    def read_file(
        path: str,
        encoding: Encoding = "utf8",
        head: int = 0,
        tail: int = 0,
        from_line: int = 0,
        to_line: int = 0,
        offset: int = 0,
    ) -> list[str]:
        """Read a file: all, its first or last lines, some lines, or from a byte on. Says what is cut."""
        place = scope.place(path)
        _refuse_two_choices(head=head, tail=tail, from_line=from_line or to_line, offset=offset)
        if encoding == "base64":
            if head or tail or from_line or to_line:
                raise RefusedError("base64 knows no lines; read it from an offset")
            return _blocks(reading.read_base64(place, offset))
        if offset:
            return _blocks(reading.read_text_from(place, offset))
        return _blocks(reading.read_text(place, Lines(from_line, to_line or head, tail)))

    def read_multiple_files(paths: list[str]) -> list[str]:
        """Read several text files."""
        if not 1 <= len(paths) <= reading.MAX_FILES:
            raise RefusedError(f"give 1 to {reading.MAX_FILES} paths")
        return reading.read_several([_place_or_refusal(scope, path) for path in paths])

    def list_directory(path: str = ".") -> str:
        """List a folder, with sizes in bytes; name/ is a folder, name@ a link."""
        return listing.list_folder(scope.place(path))

    def directory_tree(path: str = ".", depth: int = 3, exclude: Sequence[str] = ()) -> str:
        """Folders and files beneath a folder, indented. exclude: globs."""
        return listing.tree(scope.place(path), depth, _globs(exclude))

    def file_info(path: str) -> str:
        """Type, size, mode and times of a file or folder."""
        return listing.info(scope.place(path))

    def search_files(pattern: str, path: str = ".", exclude: Sequence[str] = ()) -> str:
        """Find files and folders by glob, such as docs/**/*.{md,mdx}; one without / fits at any depth."""
        return finding.find_files(scope.place(path), read_glob(pattern), _globs(exclude))

    def search_text(
        query: str, path: str = ".", glob: str = "*", regex: bool = False, ignore_case: bool = False
    ) -> str:
        """Find lines with a text or regex in a file, or in the files beneath a folder that fit the glob."""
        return text_search.search_text(scope.place(path), Query(query, regex, ignore_case), read_glob(glob))

    add(read_file, READS)
    add(read_multiple_files, READS)
    add(list_directory, READS)
    add(directory_tree, READS)
    add(file_info, READS)
    add(search_files, READS)
    add(search_text, READS)

    def write_file(path: str, content: str, encoding: Encoding = "utf8") -> str:
        """Create a file or replace all of it, atomically."""
        return writing.write_file(scope.place(path), content, encoding)

    def edit_file(path: str, edits: list[Edit], dry_run: bool = False) -> str:
        """Replace texts that each occur once, all or none; returns the diff. Indentation may differ."""
        return editing.edit_file(scope.place(path), edits, dry_run=dry_run)

    def create_directory(path: str) -> str:
        """Create a folder, with its parents."""
        return moving.create_folder(scope.place(path))

    def move_file(source: str, destination: str) -> str:
        """Move or rename a file or folder; never over another."""
        return moving.move(scope.removable(source), scope.place(destination), scope.kept_folders)

    def delete_file(path: str, recursive: bool = False) -> str:
        """Delete a file or folder; one that is not empty needs recursive."""
        return moving.delete(scope.removable(path), scope.kept_folders, recursive=recursive)

    add(write_file, changes(destroys=True, idempotent=True))
    add(edit_file, changes(destroys=True, idempotent=False))
    add(create_directory, changes(destroys=False, idempotent=True))
    add(move_file, changes(destroys=True, idempotent=False))
    add(delete_file, changes(destroys=True, idempotent=True))


def answering(tool: Callable[P, T]) -> Callable[P, T]:
    """The tool, whose refusals are answers that the client reads."""

    @wraps(tool)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return tool(*args, **kwargs)
        except RefusedError as refusal:
            raise ToolError(str(refusal)) from refusal

    return answer


def _refuse_two_choices(**given: int) -> None:
    """Raises RefusedError when a part of a file is asked for in two ways, or in a way that makes no sense."""
    if any(number < 0 for number in given.values()):
        raise RefusedError("lines and bytes are counted from the beginning: no negative numbers")
    names = [name for name, number in given.items() if number]
    if len(names) > 1:
        raise RefusedError(f"give one of {' and '.join(names)}")


def _blocks(excerpt: Excerpt) -> list[str]:
    """The text alone, so that it is the file's to the byte, and the note in a block of its own."""
    return [excerpt.text, f"[{excerpt.note}]"] if excerpt.note else [excerpt.text]


def _place_or_refusal(scope: Scope, path: str) -> Place | RefusedError:
    try:
        return scope.place(path)
    except RefusedError as refusal:
        return refusal


def _globs(patterns: Sequence[str]) -> list[Glob]:
    return [read_glob(pattern) for pattern in patterns]
