"""`python -m ralph_fs`: the server, on standard input and output."""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

from ralph_fs.settings import SettingsError, read_settings


def main() -> int:
    """Serves until standard input ends; 2 for a setting that is wrong, or on Windows itself."""
    if os.open not in os.supports_dir_fd:
        print("ralph-fs: this system opens no file from a folder's descriptor; use WSL", file=sys.stderr)
        return 2
    try:
        settings = read_settings(os.environ, Path.cwd())
    except SettingsError as error:
        print(f"ralph-fs: {error}", file=sys.stderr)
        return 2
    except FileNotFoundError:  # of Path.cwd
        print("ralph-fs: the folder that it is started in is gone", file=sys.stderr)
        return 2
    # Python's own way would wait for the next line of standard input. Nothing is ever half written.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The MCP library makes many objects, all of which stay: looking for garbage is a sixth of the start.
    gc.disable()
    # After the settings are known to be good: a typing error is answered before the library is loaded.
    from ralph_fs.server import make_server

    server = make_server(settings)
    gc.enable()
    server.run("stdio")
    return 0


if __name__ == "__main__":
    sys.exit(main())
