"""An MCP server for files of allowed folders, and for search over notes and websites."""

__version__ = "0.1.0"  # as in pyproject.toml, which is not there when the wheel is installed
