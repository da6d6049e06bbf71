"""The MCP server: its tools, the schemas that clients see, and which arguments it takes."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, Tool

from ralph_fs.roots import read_scope
from ralph_fs.settings import Settings
from ralph_fs.tools import register

# Every client pays for schemas in every session; pydantic's titles repeat the names.
_DROPPED = "title"


class Server(MCPServer):
    """An MCP server whose schemas are short, and which takes no argument that it does not know."""

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
        for tool in await super().list_tools():
            known = tool.input_schema["properties"]
            if tool.name == name and not arguments.keys() <= known.keys():
                wrong = ", ".join(sorted(arguments.keys() - known.keys()))
                raise ToolError(f"{name} has no argument {wrong}; it has {', '.join(known)}")
        return await super().call_tool(name, arguments, context)


def make_server(settings: Settings) -> Server:
    """The server of the settings, with all of its tools."""
    server = Server(
        "ralph-fs",
        instructions=_instructions(settings),
        # Refusals are answers, not events; the client shows what goes to standard error as the server's.
        log_level="WARNING",
    )
    register(server, read_scope(settings))
    if find_spec("ralph_fs.rag_tools"):
        import_module("ralph_fs.rag_tools").register(server, settings)
    return server


def _instructions(settings: Settings) -> str:
    others = [str(folder) for folder in settings.allowed_dirs if folder != settings.root_dir]
    text = f"Relative paths start in {settings.root_dir}."
    return f"{text} Also allowed: {', '.join(others)}." if others else text


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
