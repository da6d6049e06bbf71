"""The RAG tools: what a client can call. What they do is imported when one of them is first called."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import anyio
from anyio.from_thread import check_cancelled
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

from ralph_fs.roots import read_scope
from ralph_fs.settings import Settings
from ralph_fs.tools import READS, answering, changes

if TYPE_CHECKING:
    from ralph_fs.rag_corpus import Corpus


def register(server: MCPServer, settings: Settings) -> None:
    """Adds the RAG tools to the server."""
    scope = read_scope(settings)

    @cache
    def corpus() -> Corpus:
        # numpy, onnxruntime and apsw are not for those who only read files.
        from ralph_fs.rag_corpus import Corpus

        return Corpus(settings)

    def add(tool: Callable[..., str], annotations: ToolAnnotations) -> None:
        server.add_tool(answering(tool), annotations=annotations, structured_output=False)

    def rag_search(query: str, collections: list[str] = [], top_k: int = 6, explain: bool = False) -> str:  # noqa: B006
        """Search the indexed pages and notes by meaning and words. Off-topic finds nothing."""
        from ralph_fs.rag_search import search

        return search(corpus(), query, collections, top_k, explain=explain)

    def rag_get_chunk(id: str, around: int = 1, whole_page: bool = False) -> str:  # noqa: A002
        """A found chunk with its neighbours, or its whole page."""
        from ralph_fs.rag_search import get_chunk

        return get_chunk(corpus(), id, around, whole_page=whole_page)

    def rag_ingest_file(path: str, collection: str = "") -> str:
        """Index a md, mdx or txt file, in place of what it had. Needs a collection."""
        from ralph_fs.rag_documents import ingest_file

        return ingest_file(corpus(), scope.place(path), collection, check_cancelled)

    def rag_ingest_directory(context: Context, path: str, collection: str = "", dry_run: bool = False) -> str:
        """Index the md, mdx and txt files beneath a folder. Needs a collection."""
        from ralph_fs.rag_documents import ingest_folder

        def report(done: int, total: int) -> None:
            # What is in by now stays; the next call goes on from there.
            check_cancelled()
            anyio.from_thread.run(context.report_progress, done, total)

        return ingest_folder(
            corpus(), scope.place(path), collection, dry_run=dry_run, check=check_cancelled, report=report
        )

    def rag_list_documents(collection: str = "") -> str:
        """What is indexed, by collection."""
        from ralph_fs.rag_documents import list_documents

        return list_documents(corpus(), collection)

    def rag_delete_document(path: str) -> str:
        """Take a file out of the index, by path or address. The file stays."""
        from ralph_fs.rag_documents import delete_document

        return delete_document(corpus(), path)

    add(rag_search, READS)
    add(rag_get_chunk, READS)
    add(rag_list_documents, READS)
    add(rag_ingest_file, changes(destroys=False, idempotent=True))
    add(rag_ingest_directory, changes(destroys=False, idempotent=True))
    add(rag_delete_document, changes(destroys=True, idempotent=True))
