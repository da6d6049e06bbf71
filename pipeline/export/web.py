"""One live page, fetched once. Nothing that it links to is followed."""

from __future__ import annotations

import http.client
import re
from dataclasses import dataclass
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pipeline import urls
from pipeline.export.html import html_page
from pipeline.export.tree import Rules, Tree, publish, read_draft
from pipeline.export.types import Exclusion, Export, ExportWarning
from pipeline.site import Site, SiteError

TIMEOUT_S = 30.0
MAX_SIZE_BYTES = 20_000_000
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = ("text/markdown", "text/plain", "text/x-markdown")


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered: the address after redirects, the media type, the charset and the bytes."""

    url: str
    media_type: str
    charset: str | None
    data: bytes
    robots: str


def export_url(site: Site) -> Export:
    """The one page at the site's source.

    Raises SiteError when it cannot be fetched, is too large, or is neither HTML, markdown nor plain text.
    """
    response = fetch(site.source, where=str(site.toml))
    own_url = response.url.partition("#")[0]
    path = _path(own_url)
    if re.search(r"\b(?:noindex|none)\b", response.robots.lower()):
        return Export(site.name, 1, (), (Exclusion(path, "noindex"),))
    if response.media_type not in _HTML_TYPES:
        warnings: list[ExportWarning] = []
        draft = read_draft(path, response.data, warnings)
        return publish(site, Tree((draft,), (), tuple(warnings)), Rules("github", url=lambda _: own_url))
    read = html_page(site, path, response.data, own_url, response.charset)
    if isinstance(read, Exclusion):
        return Export(site.name, 1, (), (read,))
    return Export(site.name, 1, (read.page,), languages={path: read.language} if read.language else {})


def fetch(
    url: str, where: str, timeout_s: float = TIMEOUT_S, max_size_bytes: int = MAX_SIZE_BYTES
) -> Response:
    """The answer of an http(s) address. Raises SiteError beginning with `where`."""
    if not urls.is_http_url(url):
        raise SiteError(f"{where}: source: {url!r} is not an http(s) address")
    address = quote(urls.quote_address(url), safe="%/:=&?~#+!$,;'@()*[]")  # urllib takes ASCII only
    request = Request(address, headers={"User-Agent": "ralph/0.1"})  # noqa: S310 - http(s), checked above
    opener = build_opener(_HttpRedirects())
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            media_type = answer.headers.get_content_type()
            if media_type not in _HTML_TYPES + _TEXT_TYPES:
                raise SiteError(f"{where}: source: {url} is {media_type}, not HTML, markdown or plain text")
            data = answer.read(max_size_bytes + 1)
            if len(data) > max_size_bytes:
                raise SiteError(f"{where}: source: {url} is larger than {max_size_bytes:,} bytes")
            return Response(
                url=answer.url,
                media_type=media_type,
                charset=answer.headers.get_content_charset(),
                data=data,
                robots=answer.headers.get("X-Robots-Tag", ""),
            )
    except HTTPError as error:
        with error:
            raise SiteError(f"{where}: source: {url} answered {error.code} {error.reason}") from None
    except (URLError, OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise SiteError(f"{where}: source: {url} cannot be fetched: {reason}") from None


class _HttpRedirects(HTTPRedirectHandler):
    """Redirects, but to http(s) addresses alone: urllib would follow one to ftp."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> Request | None:
        """The request to follow. Raises URLError when the address is of another scheme."""
        if not urls.is_http_url(newurl):
            raise URLError(f"it redirects to {newurl}, which is not http(s)")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _path(url: str) -> str:
    """What stands for the page's file: its host and path."""
    parts = urlsplit(url)
    path = f"{parts.hostname}/{parts.path.strip('/')}" + (f"?{parts.query}" if parts.query else "")
    return re.sub(r"(^|/)\.+(?=/|$)", r"\1_", re.sub(r"//+", "/", path)).strip("/")
