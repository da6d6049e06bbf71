"""Apache or nginx with the snippet that ships, on loopback.

with web_server("nginx", folder, "http://127.0.0.1:8080") as url:
    httpx.get(f"{url}/ask/widget.js")
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.fakes.loopback import free_port
from tests.fakes.server_process import PATIENCE_S

INFRA = Path(__file__).resolve().parent.parent.parent / "infra"
MODULES = Path("/usr/lib/apache2/modules")
# By the name of the snippet's folder; None for one that is not installed.
PROGRAMS = {
    name: shutil.which(program, path="/usr/sbin:/usr/local/sbin:/usr/bin:/bin")
    for name, program in (("apache", "apache2"), ("nginx", "nginx"))
}
BACKEND = "127.0.0.1:3001"

NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off; gzip on; gzip_types *; gzip_proxied any;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{ listen 127.0.0.1:{port}; include {folder}/davo-bot.conf; }}
}}
"""
APACHE = """
ServerRoot {folder}
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile {folder}/pid
ErrorLog {folder}/error.log
DefaultRuntimeDir {folder}
{modules}
AddOutputFilterByType DEFLATE text/event-stream text/javascript application/json
<VirtualHost 127.0.0.1:{port}>
Include {folder}/davo-bot.conf
</VirtualHost>
"""
APACHE_MODULES = (
    "mpm_event",
    "authz_core",
    "proxy",
    "proxy_http",
    "headers",
    "setenvif",
    "deflate",
    "filter",
)


@contextmanager
def web_server(name: str, folder: Path, backend_url: str) -> Iterator[str]:
    """The address of a web server that passes /ask/ on to a handler; its files are in a new folder."""
    folder.mkdir()
    snippet = (INFRA / name / "davo-bot.conf").read_text()
    assert BACKEND in snippet
    (folder / "davo-bot.conf").write_text(snippet.replace(BACKEND, backend_url.removeprefix("http://")))
    port = free_port()
    with subprocess.Popen(
        _argv(name, folder, port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            transport = httpx.HTTPTransport(retries=8)  # until it listens; pauses grow from half a second
            with httpx.Client(transport=transport, timeout=PATIENCE_S) as client:
                client.get(f"http://127.0.0.1:{port}/")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _argv(name: str, folder: Path, port: int) -> list[str]:
    """What starts a web server, whose configuration it writes."""
    program = PROGRAMS[name]
    assert program
    if name == "nginx":
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
        return [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    modules = "\n".join(f"LoadModule {each}_module {MODULES}/mod_{each}.so" for each in APACHE_MODULES)
    (folder / "apache.conf").write_text(APACHE.format(folder=folder, port=port, modules=modules))
    return [program, "-d", str(folder), "-f", str(folder / "apache.conf"), "-DFOREGROUND"]
