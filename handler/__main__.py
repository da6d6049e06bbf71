"""The `ralph` command."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from handler.bundle.types import BundleError, Mode
from handler.settings import SettingsError

# Commands of the build side are found where it is installed; the handler never imports it.
COMMANDS = "ralph.commands"
# Told here, so that `ralph --help` does not load them. One that is not listed is named without a word.
HELP = {
    "add": "describe another site: a folder, an export, an address",
    "ingest": "put files into the local index, list them, take them out",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; 2 for whatever is the caller's to mend."""
    argv = sys.argv[1:] if argv is None else argv
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without a sign that a page has shows a question mark for it.
        sys.stdout.reconfigure(errors="replace")
    others = {entry.name: entry for entry in entry_points(group=COMMANDS)}
    try:
        if argv and argv[0] in others:
            command: Callable[[Sequence[str]], int] = others[argv[0]].load()
            return command(argv[1:])
        code = _run(_parser(sorted(others)).parse_args(argv))
    except (BundleError, SettingsError) as error:
        print(f"ralph: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130  # what shells say of a command that Ctrl-C ended
    except BrokenPipeError:
        # `ralph search … | head`: the reader has enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _run(arguments: argparse.Namespace) -> int:
    # After the arguments are known to be good: a typing error is answered before numpy is loaded.
    if arguments.command == "serve":
        from handler.serve import serve

        return serve(os.environ, arguments.bundle, arguments.host, arguments.port)
    if arguments.command == "local":
        from handler.local.serve import serve as serve_locally

        return serve_locally(os.environ, arguments.bundle, arguments.host, arguments.port)
    from handler import commands

    code: int = getattr(commands, arguments.command)(arguments, os.environ)
    return code


def _parser(others: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ralph",
        description="Asks a bundle of websites, and looks after bundles.",
        epilog="`ralph COMMAND --help` explains one.",
    )
    commands = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")

    ask = commands.add_parser("ask", help="answer a question from the pages, with links")
    ask.add_argument("question")
    _add_search_options(ask)
    ask.add_argument("--json", action="store_true", help="print one JSON object")

    search = commands.add_parser("search", help="find the parts of pages that are about something")
    search.add_argument("question", nargs="?", help="words or a question; omitted with --batch")
    search.add_argument(
        "--batch",
        metavar="FILE",
        help='read JSON lines {"id", "text", "page"?}, write one object for each; - is stdin',
    )
    _add_search_options(search)
    search.add_argument("--top-k", type=_positive, default=6, metavar="N", help="how many hits (default 6)")
    search.add_argument("--mode", choices=get_args(Mode), default="hybrid", help="how hits are ranked")
    search.add_argument("--all-chunks", action="store_true", help="let several parts of one page compete")
    search.add_argument("--explain", action="store_true", help="show ranks, scores and reasons")
    search.add_argument("--json", action="store_true", help="print one JSON object")

    serve = commands.add_parser("serve", help="answer questions from browsers")
    serve.add_argument(
        "--bundle", type=Path, metavar="DIR", help="a bundle's folder (default: the current one)"
    )
    serve.add_argument("--host", metavar="NAME", help="the address to listen on (default: HOST, or loopback)")
    serve.add_argument(
        "--port", type=_port, metavar="N", help="the port to listen on (default: PORT, or 3001); 0 is any"
    )

    if find_spec("handler.local"):  # what ships to a server is without it
        _add_local(commands)

    verify = commands.add_parser("verify", help="check everything about a bundle")
    verify.add_argument("bundle", nargs="?", type=Path, help="a bundle's folder (default: the current one)")

    diff = commands.add_parser("diff", help="compare two bundles; exit code 1 if the second one is worse")
    diff.add_argument("old", type=Path)
    diff.add_argument("new", type=Path)

    for name in others:  # which read their arguments for themselves
        commands.add_parser(name, help=HELP.get(name, ""))
    return parser


def _add_local(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    local = commands.add_parser(
        "local", help="chat with everything, private pages too, on this machine alone"
    )
    local.add_argument(
        "--bundle", type=Path, metavar="DIR", help="a bundle's folder (default: the current one)"
    )
    local.add_argument(
        "--host", metavar="NAME", help="the loopback address to listen on (default: 127.0.0.1)"
    )
    local.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help="the port to listen on (default: LOCAL_PORT, or 3002); 0 is any",
    )


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bundle", type=Path, metavar="DIR", help="a bundle's folder (default: the current one)"
    )
    parser.add_argument(
        "--collection", action="append", metavar="NAME", help="only in this collection; may be repeated"
    )
    parser.add_argument("--page", metavar="URL", help="the page that the reader is on")
    parser.add_argument(
        "--no-gate", action="store_true", help="show hits however far they are from the question"
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
