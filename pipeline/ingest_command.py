"""`ralph ingest PATH… --collection C`: files of this machine into the local index."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from handler.bundle.counted import counted
from handler.bundle.encoder import Encoder
from handler.bundle.types import BundleError
from pipeline.ingest import (
    MAX_FILE_BYTES,
    SUFFIXES,
    Outcome,
    SourceFile,
    bundle_model,
    find_collection,
    ingest,
    take_out_gone,
)
from pipeline.local_index import LocalIndex, open_local_index
from pipeline.printable import printable
from pipeline.progress import show_progress
from pipeline.settings import IngestSettings, read_ingest_settings
from pipeline.site import SiteError, load_collections


def main(argv: Sequence[str]) -> int:
    """Put files into the local index, beside the bundle; or list what is there, or take it out.

    0 when it was done, 2 when the command line, a setting or the index is wrong, 130 when interrupted.
    """
    options = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace, IngestSettings], None] = options.command or _ingest
    try:
        command(options, read_ingest_settings(os.environ))
    except (SiteError, BundleError) as error:
        print(f"ralph: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _ingest(options: argparse.Namespace, settings: IngestSettings) -> None:
    if options.collection is None:
        listed = ", ".join(load_collections(settings.collections)) or "none yet"
        raise SiteError(f"no collection: name one with --collection: {listed}")
    collection = find_collection(options.collection, settings.collections)
    files = list(find_sources(options.paths, Path.cwd()))
    if not files:
        named = " ".join(map(str, options.paths)) or "nothing"
        raise SiteError(f"no {', '.join(SUFFIXES)} file in {named}; --delete takes out what is indexed of it")
    spec = bundle_model(settings.bundle)
    encoder = Encoder.load(settings.bundle.resolve(), spec)
    if options.dry_run and not settings.database.exists():
        outcomes = _ingested(files, collection.name, None, encoder, dry_run=True)
        _report(collection.name, outcomes)
    else:
        with open_local_index(settings.database, spec) as index:
            gone = _gone(options.paths, files, index, dry_run=options.dry_run)
            outcomes = _ingested(files, collection.name, index, encoder, dry_run=options.dry_run)
            _report(collection.name, [*gone, *outcomes])
    if options.dry_run:
        print("Nothing was changed.")
    else:
        where = printable(str(settings.database))
        print(f"In {where}: `ralph local` and ralph-fs ask it, with RAG_DB_PATH as it is here.")


def _gone(
    paths: Iterable[Path], files: Sequence[SourceFile], index: LocalIndex, *, dry_run: bool
) -> Iterator[Outcome]:
    """What the folders have no longer; taken out before another file claims its address."""
    cwd = Path.cwd()
    for path in paths:
        yield from take_out_gone(
            str(path.resolve()),
            files,
            index,
            lambda location: _name(Path(location), cwd),
            dry_run=dry_run,
        )


def _ingested(
    files: Sequence[SourceFile], collection: str, index: LocalIndex | None, encoder: Encoder, *, dry_run: bool
) -> Iterable[Outcome]:
    outcomes = ingest(files, collection, index, encoder, dry_run=dry_run)
    return show_progress("ingest", "files")(outcomes, len(files))


def _report(collection: str, outcomes: Iterable[Outcome]) -> None:
    done = list(outcomes)
    for outcome in done:
        if outcome.kind != "unchanged":
            print(printable(str(outcome)))
    counts = Counter(outcome.kind for outcome in done)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    print(f"{collection}: {kinds}; {counted(sum(outcome.n_chunks for outcome in done), 'chunk')}")


def _list(options: argparse.Namespace, settings: IngestSettings) -> None:
    with open_local_index(settings.database, None) as index:
        for document in index.documents(options.collection):
            collection = document.collection or "(no collection)"
            path = printable(document.path)
            print(f"{collection}  {path}  {counted(document.n_chunks, 'chunk')}  {document.ingested_at}")


def _delete(options: argparse.Namespace, settings: IngestSettings) -> None:
    """Takes out the files that are named, and those in the folders that are, be they still there or not."""
    if not options.paths:
        raise SiteError("--delete: name the files or folders to take out (ralph ingest --list)")
    with open_local_index(settings.database, None) as index:
        documents = index.documents(options.collection)
        for named in options.paths:
            path = named.resolve()
            found = [document for document in documents if Path(document.path).is_relative_to(path)]
            found = found or [document for document in documents if document.url == str(named)]
            if not found:
                raise SiteError(f"{named}: the index has nothing of it (ralph ingest --list)")
            for document in found:
                n_chunks = index.delete(document.url)
                print(f"{printable(document.path)}: {counted(n_chunks, 'chunk')} taken out")


def find_sources(paths: Sequence[Path], cwd: Path) -> Iterator[SourceFile]:
    """The files that are named, and in folders all that end in SUFFIXES, each once, in order.

    What is hidden, a symbolic link or no plain file is passed over, but for what is named itself. Raises
    SiteError for what is not there, and for a named file of another kind.
    """
    seen: set[Path] = set()
    for named in paths:
        path = _real(named)
        if not path.is_dir() and path.suffix.lower() not in SUFFIXES:
            raise SiteError(f"{named}: only {', '.join(SUFFIXES)} files can be ingested")
        if not path.is_dir() and not path.is_file():  # reading a FIFO would wait for ever
            raise SiteError(f"{named}: is no regular file")
        for file in _walk(path) if path.is_dir() else [path]:
            if file not in seen:
                seen.add(file)
                yield SourceFile(str(file), _name(file, cwd), partial(_read, file))


def _name(file: Path, cwd: Path) -> str:
    return (file.relative_to(cwd) if file.is_relative_to(cwd) else file).as_posix()


def _real(named: Path) -> Path:
    try:
        return Path(os.path.realpath(named, strict=True))  # Path.resolve has no OSError for a loop of links
    except FileNotFoundError:
        raise SiteError(f"{named}: is not there") from None
    except OSError as error:
        raise SiteError(f"{named}: cannot be read ({error.strerror})") from None


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(names):
            file = Path(folder, name)
            is_text = not name.startswith(".") and file.suffix.lower() in SUFFIXES
            if is_text and file.is_file() and not file.is_symlink():
                yield file


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SiteError(f"cannot be read ({error.strerror})") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ralph ingest", description=main.__doc__ and main.__doc__.partition("\n")[0]
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files, or folders of them")
    parser.add_argument("--collection", metavar="NAME", help="one of sites/collections.toml")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument(
        "--list", dest="command", action="store_const", const=_list, help="list what is in the index"
    )
    actions.add_argument(
        "--delete", dest="command", action="store_const", const=_delete, help="take files out of the index"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
