"""The MCP server: its tools, the schemas that clients see, and which arguments it takes."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, InputRequiredResult, Tool

from ralph_fs import __version__, rag_tools, tools
from ralph_fs.refusal import shown
from ralph_fs.roots import read_scope
from ralph_fs.settings import Settings
from ralph_fs.unreadable import relay

# Every client pays for schemas in every session; pydantic's titles repeat the names.
_DROPPED = "title"
MAX_ERROR_CHARS = 2_000


class Server(MCPServer):
    """An MCP server whose schemas are short, and which takes no argument that it does not know."""

    def __init__(self, instructions: str) -> None:
        # Refusals are answers, not events: a client shows standard error as what is wrong with the server.
        super().__init__("ralph-fs", version=__version__, instructions=instructions, log_level="WARNING")
        self._arguments: dict[str, list[str]] = {}  # by tool, from the first call on

    async def list_tools(self) -> list[Tool]:
        """The tools, as clients see them."""
        return [
            tool.model_copy(update={"input_schema": _short(tool.input_schema)})
            for tool in await super().list_tools()
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool. Raises ToolError for an argument that it does not have.

        Other servers' names for an argument come naturally to a model: one that says `dryRun` must not have
        its edit done because ours is `dry_run`.
        """
        if name not in self._arguments:
            listed = await self.list_tools()
            self._arguments = {tool.name: list(tool.input_schema["properties"]) for tool in listed}
        known = self._arguments.get(name, arguments)
        if wrong := sorted(arguments.keys() - set(known)):
            raise ToolError(f"{name} has no argument {shown(', '.join(wrong))}; it has {', '.join(known)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            # Of a hundred edits that are spelled wrong, each would be answered with a paragraph.
            if len(text := str(error)) <= MAX_ERROR_CHARS:
                raise
            raise ToolError(f"{text[:MAX_ERROR_CHARS]}…") from error

    async def run_stdio_async(self) -> None:
        """Serves standard input and output until input ends. A line that is no message is answered too."""
        served = self._lowlevel_server
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception]()
        async with stdio_server() as (lines, answers), anyio.create_task_group() as tasks:
            tasks.start_soon(relay, lines, send, answers.send)
            await served.run(receive, answers, served.create_initialization_options())
            tasks.cancel_scope.cancel()


def make_server(settings: Settings) -> Server:
    """The server of the settings, with all of its tools."""
    server = Server(_instructions(settings))
    tools.register(server, read_scope(settings))
    rag_tools.register(server, settings)
    return server


def _instructions(settings: Settings) -> str:
    others = ", ".join(str(folder) for folder in settings.allowed_dirs if folder != settings.root_dir)
    if not settings.root_is_allowed:
        return f"Write absolute paths. Allowed: {others}."
    text = f"Relative paths start in {settings.root_dir}."
    return f"{text} Also allowed: {others}." if others else text


def _short(schema: Any) -> Any:
    """The schema without the titles; a property that is called `title` stays."""
    if isinstance(schema, list):
        return [_short(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _short(value) for name, value in inner.items()}
        if key in ("properties", "$defs")
        else _short(inner)
        for key, inner in schema.items()
        if key != _DROPPED
    }
