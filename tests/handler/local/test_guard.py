"""What may come in: this machine's own page, and what no page sent."""

from __future__ import annotations

import pytest

from tests.handler.local.conftest import Chat

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def port(chat: Chat) -> str:
    return chat.url.rpartition(":")[2]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "LocalHost"])
def test_this_machine_has_these_names(chat: Chat, port: str, name: str) -> None:
    assert chat.client.get("/api/about", headers={"Host": f"{name}:{port}"}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "",
        "192.168.1.2:{port}",
    ],
)
@pytest.mark.parametrize("path", ["/", "/chat.js", "/api/conversations"])
def test_no_other_host_reads_anything(chat: Chat, port: str, host: str, path: str) -> None:
    response = chat.client.get(path, headers={"Host": host.format(port=port)})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "refused")


CHANGES = [
    ("POST", "/api/chat", b'{"question": "Why?"}'),
    ("PATCH", "/api/conversations/1", b'{"title": "x"}'),
    ("DELETE", "/api/conversations/1", b""),
]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "https://{host}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://{host}", "Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_other_sites_change_nothing(
    chat: Chat, method: str, path: str, body: bytes, headers: dict[str, str]
) -> None:
    chat.conversations.start("Mine?")
    host = chat.url.removeprefix("http://")
    sent = {name: value.format(host=host) for name, value in headers.items()}
    assert chat.client.request(method, path, content=body, headers={**JSON, **sent}).status_code == 403
    assert [conversation.title for conversation in chat.conversations.all()] == ["Mine?"]
    assert chat.api.chats == []


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_the_own_page_and_the_command_line_do(chat: Chat, method: str, path: str, body: bytes) -> None:
    chat.conversations.start("Mine?")
    own = {"Origin": chat.url, "Sec-Fetch-Site": "same-origin"}
    assert chat.client.request(method, path, content=body, headers={**JSON, **own}).is_success
    chat.conversations.start("Mine?")
    again = path.replace("/1", "/2")
    assert chat.client.request(method, again, content=body, headers=JSON).is_success


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"])
def test_what_forms_can_send_is_not_taken(chat: Chat, kind: str) -> None:
    response = chat.client.post("/api/chat", content=b'{"question": "Why?"}', headers={"Content-Type": kind})
    assert (response.status_code, chat.api.chats) == (415, [])


def test_other_sites_read_nothing(chat: Chat) -> None:
    response = chat.client.get("/api/conversations", headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 403
    response = chat.client.options(
        "/api/chat", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert response.status_code == 403
    assert not any(name.startswith("access-control") for name in response.headers)


def test_a_link_from_elsewhere_leads_to_the_page(chat: Chat) -> None:
    assert chat.client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_every_response_tells_the_browser_to_keep_to_itself(chat: Chat) -> None:
    for path in ("/", "/chat.js", "/api/conversations", "/nothing"):
        headers = chat.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] in ("no-store", "no-cache")
