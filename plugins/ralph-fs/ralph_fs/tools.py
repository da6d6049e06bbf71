"""The file tools: what a client can call, in as few words as say it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from ralph_fs import listing, reading
from ralph_fs.refusal import RefusedError
from ralph_fs.roots import Scope

P = ParamSpec("P")
T = TypeVar("T")

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def register(server: MCPServer, scope: Scope) -> None:
    """Adds the file tools to the server."""

    def read_file(path: str) -> str:
        """Read a file."""
        return reading.read_text(scope.place(path))

    def list_directory(path: str = ".") -> str:
        """List a folder."""
        return listing.list_folder(scope.place(path))

    for tool in (read_file, list_directory):
        server.add_tool(answering(tool), annotations=_READS, structured_output=False)


def answering(tool: Callable[P, T]) -> Callable[P, T]:
    """The tool, whose refusals are answers that the client reads."""

    @wraps(tool)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return tool(*args, **kwargs)
        except RefusedError as refusal:
            raise ToolError(str(refusal)) from refusal

    return answer
