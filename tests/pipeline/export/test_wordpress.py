"""WordPress: markdown with permalinks, and WXR files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from pipeline.export.exporters import export
from pipeline.site import Site, SiteError

TODAY = date(2026, 1, 1)

MakeSite = Callable[..., Site]
WXR = Path(__file__).parents[2] / "data" / "sites" / "wordpress.xml"


@pytest.mark.parametrize(
    ("front", "url"),
    [
        ("permalink: https://old.example/about/", "https://example.org/about/"),
        (
            "permalink: >\n  https://old.example/nobuyuki-%e8%be%bb%e4%ba%95/",
            "https://example.org/nobuyuki-%e8%be%bb%e4%ba%95/",
        ),
        ("permalink: https://old.example/?p=12", "https://example.org/?p=12"),
        ("permalink: /2024/05/a/", "https://example.org/2024/05/a/"),
        ("post_title: x", "https://example.org/turbo-tax/"),
        ("post_name: tax", "https://example.org/tax/"),
    ],
)
def test_permalinks_move_to_the_sites_address(front: str, url: str, make_site: MakeSite) -> None:
    site = make_site("wordpress", {"_posts/2008-04-10-turbo-tax.md": f"---\n{front}\n---\nText"})
    assert [page.url for page in export(site, TODAY).pages] == [url]


def test_files_that_wordpress_did_not_write_and_private_posts_are_left_out(make_site: MakeSite) -> None:
    files = {
        "README.md": "# About this repository",
        "_posts/a.md": "---\npermalink: /a/\npublished: false\n---\nsecret",
        "_posts/b.md": "---\npermalink: /b/\npost_status: private\n---\nsecret",
        "_posts/c.md": "---\npermalink: /c/\npost_password: x\n---\nsecret",
    }
    exported = export(make_site("wordpress", files), TODAY)
    assert exported.pages == ()
    assert len(exported.exclusions) == 4


def test_a_wxr_file_publishes_its_public_posts_and_pages(make_site: MakeSite) -> None:
    exported = export(
        make_site("wordpress", {"export.xml": WXR.read_bytes()}, source=_source(make_site)), TODAY
    )
    assert [(p.path, p.url, p.title) for p in exported.pages] == [
        ("page/about", "https://example.org/about/", "About"),
        ("post/tea-coffee", "https://example.org/2024/05/tea-coffee/", "Tea & coffee – both"),
    ]
    assert {e.path: e.reason for e in exported.exclusions} == {
        "attachment/teapot": "a WordPress attachment",
        "nav_menu_item/12": "a WordPress nav_menu_item",
        "post/13": "status: draft",
        "post/diary": "status: private",
        "post/members": "password-protected",
    }
    assert "secret" not in "".join(page.body for page in exported.pages)


def test_patterns_leave_out_posts_of_a_wxr_file(make_site: MakeSite) -> None:
    site = make_site(
        "wordpress", {"export.xml": WXR.read_bytes()}, source=_source(make_site), exclude=("post/*",)
    )
    assert [page.path for page in export(site, TODAY).pages] == ["page/about"]


def test_the_html_of_a_wxr_post_becomes_markdown(make_site: MakeSite) -> None:
    exported = export(
        make_site("wordpress", {"export.xml": WXR.read_bytes()}, source=_source(make_site)), TODAY
    )
    about, post = (page.body for page in exported.pages)
    assert about == "## Who\n\nA block *editor* page.\n\n- one\n- two\n"
    assert post == (
        "A classic post,\nwith **lines**.\n\n![](tea.png) A picture of tea\n\n"
        "```\nx = 1\n\ny = 2\n```\n\nThe end.\n"
    )


def test_entities_that_expand_are_refused(make_site: MakeSite) -> None:
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa">]><rss><channel><item><title>&a;</title></item></channel></rss>'
    with pytest.raises(SiteError, match="WXR"):
        export(make_site("wordpress", {"export.xml": bomb}, source=_source(make_site)), TODAY)


@pytest.mark.parametrize("text", ["not XML", "<rss><channel></channel></rss>", "<rss><channel><item>"])
def test_a_file_that_is_no_export_is_an_error(text: str, make_site: MakeSite) -> None:
    with pytest.raises(SiteError):
        export(make_site("wordpress", {"export.xml": text}, source=_source(make_site)), TODAY)


def _source(make_site: MakeSite) -> str:
    return str(make_site("wordpress", {}).source_path / "export.xml")


def test_a_permalink_that_is_no_address_is_an_error_that_names_page_and_key(make_site: MakeSite) -> None:
    with pytest.raises(SiteError, match=r"a\.md: permalink: 'http://\[bad' is not an address"):
        export(make_site("wordpress", {"a.md": "---\npermalink: 'http://[bad'\n---\nText"}), TODAY)
