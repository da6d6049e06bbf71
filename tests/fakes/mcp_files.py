"""A folder that an MCP server may touch, what lies around it, and a client that calls the server's tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent

from pipeline.settings import IngestSettings
from ralph_fs.roots import Scope, read_scope
from ralph_fs.settings import Settings

SECRET = "what stands outside"
# One call of each file tool that works, in this order.
CALLS: Mapping[str, Mapping[str, Any]] = {
    "read_file": {"path": "note.txt"},
    "read_multiple_files": {"paths": ["note.txt", "docs/page.md"]},
    "list_directory": {},
    "directory_tree": {},
    "file_info": {"path": "note.txt"},
    "search_files": {"pattern": "*.md"},
    "search_text": {"query": "algae"},
    "write_file": {"path": "new.txt", "content": "new"},
    "edit_file": {"path": "new.txt", "edits": [{"old_text": "new", "new_text": "newer"}]},
    "create_directory": {"path": "folder"},
    "move_file": {"source": "new.txt", "destination": "folder/new.txt"},
    "delete_file": {"path": "folder", "recursive": True},
}
T = TypeVar("T")


@dataclass(frozen=True)
class Ground:
    """`root` is allowed; `outside` and `root-evil`, beside it, are not."""

    root: Path
    outside: Path
    sibling: Path
    settings: Settings

    @property
    def scope(self) -> Scope:
        """The scope of the settings, on Linux."""
        return read_scope(self.settings, "linux")

    def outside_is_untouched(self) -> bool:
        """Whether everything around the root is as it was."""
        return all(
            tree_of(folder) == {"secret.txt": SECRET} and len(list(folder.iterdir())) == 1
            for folder in (self.outside, self.sibling)
        )


@dataclass(frozen=True)
class Answer:
    """What a tool answered: its blocks of text."""

    is_error: bool
    blocks: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.blocks)


def make_ground(folder: Path) -> Ground:
    """Two files in a folder that is allowed, and a secret in each of two others."""
    root, outside, sibling = folder / "root", folder / "outside", folder / "root-evil"
    for new in (root, outside, sibling, root / "docs"):
        new.mkdir(parents=True)
    (root / "note.txt").write_text("one\ntwo\nthree\n")
    (root / "docs" / "page.md").write_text("# Page\n\nThe pond has algae.\n")
    for other in (outside, sibling):
        (other / "secret.txt").write_text(SECRET)
    rag = IngestSettings(folder / "rag.db", folder / "no-bundle", folder)
    return Ground(root, outside, sibling, Settings(root, (root,), rag))


async def answer_of(client: Client, tool: str, arguments: Mapping[str, Any]) -> Answer:
    """The answer of one call."""
    result = await client.call_tool(tool, dict(arguments))
    assert isinstance(result, CallToolResult)
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    assert len(texts) == len(result.content)
    return Answer(bool(result.is_error), tuple(texts))


def with_client(
    server: MCPServer, use: Callable[[Client], Awaitable[T]], mode: Literal["legacy", "auto"] = "auto"
) -> T:
    """What `use` makes of a client that is connected to the server."""

    async def connected() -> T:
        async with Client(server, mode=mode) as client:
            return await use(client)

    return anyio.run(connected)


def tree_of(folder: Path) -> dict[str, str]:
    """Every file and link beneath a folder, and its content."""
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }
