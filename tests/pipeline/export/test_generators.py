"""Hugo, Zola and Jekyll: addresses, inherited privacy and template tags."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from pipeline.export.exporters import export
from pipeline.export.types import Window
from pipeline.site import Site, SiteError

TODAY = date(2026, 1, 1)

MakeSite = Callable[..., Site]

DRAFT_SECTION = "---\ntitle: S\ndraft: true\n---\n"


@pytest.mark.parametrize(
    ("path", "front", "options", "url"),
    [
        ("content/posts/My Post.md", "", {}, "posts/my-post/"),
        ("content/_index.md", "", {}, ""),
        ("content/posts/_index.md", "", {}, "posts/"),
        ("content/posts/bundle/index.md", "", {}, "posts/bundle/"),
        ("content/posts/a.md", "slug: Other", {}, "posts/other/"),
        ("content/posts/bundle/index.md", "slug: other", {}, "posts/other/"),
        ("content/posts/a.md", "url: /Exact/Path/", {}, "Exact/Path/"),
        ("content/posts/a.md", "url: exact", {}, "exact/"),
        ("content/posts/a.md", "url: /a.html\naliases: [/b/]", {}, "a.html"),
        ("content/en/posts/a.md", "", {"content": "content/en"}, "posts/a/"),
        ("content/about.fr.md", "", {"languages": ["fr"]}, "fr/about/"),
        ("content/about.en.md", "", {"languages": ["fr"]}, "about/"),
        ("content/v1.2.md", "", {}, "v1.2/"),
        (
            "content/posts/a.md",
            "date: 2024-05-01",
            {"permalinks": {"posts": "/:year/:month/:slugorfilename/"}},
            "2024/05/a/",
        ),
        ("posts/a.md", "", {}, "posts/a/"),
    ],
)
def test_hugo_addresses(
    path: str, front: str, options: dict[str, Any], url: str, make_site: MakeSite
) -> None:
    site = make_site("hugo", {path: f"---\n{front}\n---\nText"}, options=options)
    assert [page.url for page in export(site, TODAY).pages] == [f"https://example.org/{url}"]


def hidden(site: Site) -> dict[str, str]:
    return {exclusion.path: exclusion.reason for exclusion in export(site, TODAY).exclusions}


def test_hugo_hides_what_it_does_not_render(make_site: MakeSite) -> None:
    files = {
        "content/headless/index.md": "+++\nheadless = true\n+++\nsecret",
        "content/never.md": "---\nbuild:\n  render: never\n---\nsecret",
        "content/part/_index.md": "---\nbuild: {render: always}\ncascade: {build: {render: never}}\n---\n",
        "content/part/deep/a.md": "secret",
        "content/wip/_index.md": DRAFT_SECTION,
        "content/wip/a.md": "secret",
        "content/params/_index.md": "---\ncascade: [{target: {path: /params/x/**}, private: 1}]\n---\n",
        "content/params/x/a.md": "secret",
        "content/params/y/a.md": "Text",
        "content/broken/_index.md": "---\ntitle: A: B\ncascade: {draft: true\n---\n",
        "content/broken/a.md": "secret",
        "content/bundle/index.md": "Text",
        "content/bundle/part.md": "secret",
        "README.md": "secret",
    }
    assert hidden(make_site("hugo", files)) == {
        "content/headless/index.md": "headless",
        "content/never.md": "build.render: never",
        "content/part/deep/a.md": "build.render: never (from a section's cascade)",
        "content/wip/_index.md": "draft",
        "content/wip/a.md": "below wip/_index.md: draft",
        "content/params/x/a.md": "private (from a section's cascade)",
        "content/broken/_index.md": "malformed front matter that speaks of drafts or visibility",
        "content/broken/a.md": "below broken/_index.md, whose front matter is malformed",
        "content/bundle/part.md": "a resource of the page bundle bundle",
        "README.md": "outside of the content folder",
    }


TEMPLATE = "---\ntitle: {{ .Name }}\ndraft: true\n---\n"


@pytest.mark.parametrize(
    ("files", "options"),
    [
        (
            {"content/a.md": "Text", "archetypes/default.md": TEMPLATE, "themes/x/archetypes/a.md": TEMPLATE},
            {},
        ),
        ({"content/en/a.md": "Text", "archetypes/posts/index.md": TEMPLATE}, {"content": "content/en"}),
        ({"hugo.toml": "archetypeDir = 'kinds'", "content/a.md": "Text", "kinds/a.md": TEMPLATE}, {}),
        ({"hugo.toml": "title = 'x'", "posts/a.md": "Text", "archetypes/a.md": TEMPLATE}, {}),
    ],
)
def test_templates_of_hugo_are_neither_read_nor_warned_about(
    files: dict[str, str], options: dict[str, Any], make_site: MakeSite
) -> None:
    exported = export(make_site("hugo", files, options=options), TODAY)
    assert (exported.n_pages_in, exported.exclusions, exported.warnings) == (1, (), ())


@pytest.mark.parametrize("path", ["content/archetypes/a.md", "archetypes/a.md"])
def test_a_section_of_hugo_can_be_called_archetypes(path: str, make_site: MakeSite) -> None:
    assert len(export(make_site("hugo", {path: "Text"}), TODAY).pages) == 1


def test_a_page_can_undo_its_sections_cascade(make_site: MakeSite) -> None:
    files = {
        "content/s/_index.md": "---\ntitle: S\ndraft: false\ncascade:\n  draft: true\n---\n",
        "content/s/a.md": "---\ndraft: false\n---\nText",
        "content/s/b.md": "secret",
    }
    assert list(hidden(make_site("hugo", files))) == ["content/s/b.md"]


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("date: 2026-01-01", None),
        ("date: 2026-01-02", "dated ahead: 2026-01-02"),
        ("date: 2026-01-02T00:30:00+09:00", "dated ahead: 2026-01-02"),
        ("Date: Fri, 02 Jan 2026 08:00:00 GMT", "dated ahead: 2026-01-02"),
        ("date: 2 Jan 2026", "dated ahead: 2026-01-02"),
        ("publishDate: 2026-01-02\ndate: 2020-01-01", "dated ahead: 2026-01-02"),
        ("publishdate: 2020-01-01\ndate: 2026-01-02", None),
        ("pubdate: 2026-01-02", "dated ahead: 2026-01-02"),
        ("lastmod: 2026-01-02", None),
        ("expiryDate: 2026-01-01", "expired: 2026-01-01"),
        ("expiryDate: 2026-01-02", None),
        ("unpublishdate: 2000-01-01", "expired: 2000-01-01"),
        ("date: 2026-02-30", None),
        ("date: [2026-01-02]", None),
    ],
)
def test_hugo_shows_a_page_from_its_publish_date_until_it_expires(
    front: str, reason: str | None, make_site: MakeSite
) -> None:
    site = make_site("hugo", {"content/a.md": f"---\n{front}\n---\nText"})
    assert hidden(site) == ({"content/a.md": reason} if reason else {})


AHEAD = "---\ntitle: A\ndate: 2999-01-01\n---\nText"
EXPIRED = "---\ntitle: A\nexpiryDate: 2000-01-01\n---\nText"
CASCADED = "---\ncascade: {date: 2999-01-01}\ndate: 2000-01-01\n---\n"


@pytest.mark.parametrize(
    ("kind", "files", "options", "is_shown"),
    [
        ("hugo", {"hugo.toml": "buildFuture = true", "content/a.md": AHEAD}, {}, True),
        ("hugo", {"hugo.toml": "buildfuture = false", "content/a.md": AHEAD}, {}, False),
        ("hugo", {"hugo.toml": "buildFuture = 'maybe'", "content/a.md": AHEAD}, {}, False),
        ("hugo", {"content/a.md": AHEAD}, {"future": True}, True),
        ("hugo", {"config/_default/hugo.yaml": "buildExpired: true", "content/a.md": EXPIRED}, {}, True),
        ("hugo", {"content/a.md": EXPIRED}, {"future": True}, False),
        ("hugo", {"hugo.toml": "frontmatter.publishDate = ['x']", "content/a.md": AHEAD}, {}, True),
        ("hugo", {"hugo.toml": "frontmatter.publishDate = [':default']", "content/a.md": AHEAD}, {}, False),
        ("hugo", {"content/_index.md": CASCADED, "content/a.md": "Text"}, {}, True),
        ("jekyll", {"_config.yml": "future: true", "_posts/2999-01-01-a.md": "---\n---\nText"}, {}, True),
        ("jekyll", {"_config.yml": "future: false", "_posts/2999-01-01-a.md": "---\n---\nText"}, {}, False),
        ("jekyll", {"_config.yml": "future: false", "_posts/2999-01-01-a.md": AHEAD}, {"future": True}, True),
        ("jekyll", {"_posts/2999-01-01-a.md": "---\ndate: 2000-01-01\n---\nText"}, {}, True),
        ("jekyll", {"_posts/2000-01-01-a.md": AHEAD}, {}, False),
        ("jekyll", {"a.md": AHEAD}, {}, True),
        ("jekyll", {"_notes/a.md": AHEAD}, {"collections": ["notes"]}, False),
        ("zola", {"content/a.md": "+++\ndate = 2999-01-01\n+++\nText"}, {}, True),
    ],
)
def test_dates_ahead_and_past_count_as_the_generator_is_configured(
    kind: str, files: dict[str, str], options: dict[str, Any], is_shown: bool, make_site: MakeSite
) -> None:
    assert len(export(make_site(kind, files, options=options), TODAY).pages) == is_shown


def test_a_date_that_cannot_be_read_is_said(make_site: MakeSite) -> None:
    exported = export(make_site("hugo", {"content/a.md": "---\nexpiryDate: soon\n---\nText"}), TODAY)
    assert [w.message for w in exported.warnings] == [
        "expiryDate: 'soon' is no date, and holds nothing back; write YYYY-MM-DD"
    ]


@pytest.mark.parametrize(
    ("today", "first", "end", "n_pages"),
    [
        (date(2024, 4, 30), date.min, date(2024, 5, 1), 1),
        (date(2024, 5, 1), date(2024, 5, 1), date(2024, 6, 1), 2),
        (date(2024, 5, 31), date(2024, 5, 1), date(2024, 6, 1), 2),
        (date(2024, 6, 1), date(2024, 6, 1), date.max, 1),
    ],
)
def test_an_export_says_from_when_and_until_when_it_holds(
    today: date, first: date, end: date, n_pages: int, make_site: MakeSite
) -> None:
    files = {
        "content/a.md": "---\ndate: 2024-05-01\nexpiryDate: 2024-06-01\n---\nText",
        "content/b.md": "---\ntitle: b\n---\nText",
        "content/draft.md": "---\ndraft: true\ndate: 2024-05-15\n---\nText",
    }
    exported = export(make_site("hugo", files), today)
    assert (exported.window, len(exported.pages)) == (Window(first, end), n_pages)


def test_a_missing_content_folder_is_an_error(make_site: MakeSite) -> None:
    with pytest.raises(SiteError, match=r"options\.content"):
        export(make_site("hugo", {"a.md": "x"}, options={"content": "nowhere"}), TODAY)


@pytest.mark.parametrize(
    ("path", "front", "url"),
    [
        ("content/blog/2024-05-01-My Post.md", "", "blog/my-post/"),
        ("content/blog/2024-05-01.md", "", "blog/2024-05-01/"),
        ("content/_index.md", "", ""),
        ("content/blog/_index.md", "", "blog/"),
        ("content/blog/post/index.md", "", "blog/post/"),
        ("content/blog/a.md", 'slug = "B c"', "blog/b-c/"),
        ("content/blog/a.md", 'path = "Exact/path"', "Exact/path/"),
    ],
)
def test_zola_addresses(path: str, front: str, url: str, make_site: MakeSite) -> None:
    site = make_site("zola", {path: f"+++\n{front}\n+++\nText"})
    assert [page.url for page in export(site, TODAY).pages] == [f"https://example.org/{url}"]


def test_zola_hides_unrendered_sections_and_what_lies_below_drafts(make_site: MakeSite) -> None:
    files = {
        "content/quiet/_index.md": "+++\nrender = false\n+++\n",
        "content/quiet/a.md": "+++\n+++\nText",
        "content/wip/_index.md": "+++\ndraft = true\n+++\n",
        "content/wip/deep/a.md": "+++\n+++\nsecret",
    }
    assert hidden(make_site("zola", files)) == {
        "content/quiet/_index.md": "render = false",
        "content/wip/_index.md": "draft",
        "content/wip/deep/a.md": "below wip/_index.md: draft",
    }


@pytest.mark.parametrize(
    ("path", "front", "options", "url"),
    [
        ("_posts/2024-05-01-my-post.md", "", {}, "2024/05/01/my-post.html"),
        ("_posts/2024-5-1-My_Post.md", "", {}, "2024/05/01/My-Post.html"),
        ("_posts/2024-05-01-a.md", "categories: [One, two]", {}, "one/two/2024/05/01/a.html"),
        ("work/_posts/2024-05-01-a.md", "", {}, "work/2024/05/01/a.html"),
        ("_posts/2024-05-01-a.md", "", {"permalink": "pretty"}, "2024/05/01/a/"),
        ("_posts/2024-03-01-a.md", "", {"permalink": "ordinal"}, "2024/061/a.html"),
        (
            "_posts/2024-05-01-a.md",
            "date: 2024-06-02",
            {"permalink": "/blog/:year/:i_month/:title"},
            "blog/2024/6/a",
        ),
        ("_posts/2024-05-01-a.md", "permalink: /exact/", {}, "exact/"),
        ("_posts/2024-05-01-a.md", "slug: b c", {"permalink": "/:slug/"}, "b-c/"),
        ("about.md", "title: x", {}, "about.html"),
        ("about.md", "title: x", {"permalink": "pretty"}, "about/"),
        ("guide/index.md", "title: x", {}, "guide/"),
        ("_pages/about.md", "permalink: /about/", {}, "about/"),
        (
            "_articles/de/legal.md",
            "title: x",
            {"collections": {"articles": {"permalink": "/:path/"}}},
            "de/legal/",
        ),
        ("_articles/legal.md", "title: x", {"collections": ["articles"]}, "articles/legal.html"),
    ],
)
def test_jekyll_addresses(
    path: str, front: str, options: dict[str, Any], url: str, make_site: MakeSite
) -> None:
    site = make_site("jekyll", {path: f"---\n{front}\n---\nText"}, options=options)
    assert [page.url for page in export(site, TODAY).pages] == [f"https://example.org/{url}"]


def test_jekyll_reads_its_config(make_site: MakeSite) -> None:
    config = "permalink: /:title/\ncollections:\n  kept: {output: true}\n  data: {output: false}\n"
    files = {
        "_config.yml": config,
        "_posts/2024-05-01-a.md": "---\n---\nText",
        "_data/x.md": "---\n---\nsecret",
        "_drafts/y.md": "---\n---\nsecret",
        "_posts/undated.md": "---\ntitle: x\n---\nsecret",
        "README.md": "no page",
    }
    exported = export(make_site("jekyll", files), TODAY)
    assert [page.url for page in exported.pages] == ["https://example.org/a/"]
    assert {e.path: e.reason for e in exported.exclusions} == {
        "README.md": "no front matter: Jekyll copies it as it is",
        "_data/x.md": "the collection data has output: false",
        "_drafts/y.md": "draft",
        "_posts/undated.md": "a post whose name has no date: Jekyll passes it over",
    }


JEKYLL_HTML = """---
layout: page
---
<h1>About</h1>
<div>

    {% if site.x %}<p>We grow <b>herbs</b>. <a href="{{ "/seeds" | relative_url }}">Seeds</a></p>{% endif %}
    <h2 id="where">Where</h2>
{% highlight ruby %}
puts 1 < 2
{% endhighlight %}
    <!-- secret --> {% comment %}secret{% endcomment %}
</div>
"""


def test_pages_and_posts_of_jekyll_in_html_become_markdown(make_site: MakeSite) -> None:
    names = {
        "about.html": "about.html",
        "_posts/2024-05-01-a.html": "2024/05/01/a.html",
        "_notes/B.HTM": "notes/B.html",
    }
    site = make_site("jekyll", dict.fromkeys(names, JEKYLL_HTML), options={"collections": ["notes"]})
    exported = export(site, TODAY)
    assert {page.path: page.url.removeprefix(site.base_url) for page in exported.pages} == names
    for page in exported.pages:
        assert (page.title, page.anchor_style) == ("About", "none")
        assert page.body == (
            "# About\n\nWe grow **herbs**. Seeds\n\n## Where {#where}\n\n```ruby\nputs 1 < 2\n```\n"
        )


def test_html_that_is_no_page_of_jekyll_is_listed_and_templates_are_passed_over(make_site: MakeSite) -> None:
    front, words = "---\ntitle: x\n---\n", "<p>secret</p>"
    files = {
        "static.html": words,
        "index.html": front + "{% for post in site.posts %}<h2>{{ post.title }}</h2>{% endfor %}",
        "noindex.html": front
        + '<html><head><meta name="robots" content="noindex"></head><body>secret</body>',
        "_posts/2999-01-01-a.html": front + words,
        "_drafts/a.html": front + words,
        "unpublished.html": "---\npublished: false\n---\n" + words,
        "404.html": front + words,
        "_layouts/page.html": front + words,
        "_site/index.html": words,
        "vendor/bundle/gems/a.md": front + words,
    }
    assert hidden(make_site("jekyll", files)) == {
        "static.html": "no front matter: Jekyll copies it as it is",
        "index.html": "a template: no text of its own",
        "noindex.html": "noindex",
        "_posts/2999-01-01-a.html": "dated ahead: 2999-01-01",
        "_drafts/a.html": "draft",
        "unpublished.html": "published: false",
        "404.html": "an error page",
    }


def test_a_page_of_jekyll_without_layout_leaves_its_navigation_out(make_site: MakeSite) -> None:
    text = "<head><title>A</title></head><body><nav>Menu</nav><main><p>Text</p></main></body>"
    (page,) = export(make_site("jekyll", {"a.html": f"---\n---\n{text}"}), TODAY).pages
    assert (page.title, page.body) == ("A", "Text\n")


@pytest.mark.parametrize(
    ("kind", "config", "secret"),
    [
        ("jekyll", {"_config.yml": "exclude: [notes/]"}, "notes/a.md"),
        ("jekyll", {"_config.yml": 'exclude: ["*.wip.md"]'}, "notes/a.wip.md"),
        (
            "jekyll",
            {"_config.yml": "defaults: [{scope: {path: notes}, values: {published: false}}]"},
            "notes/a.md",
        ),
        ("jekyll", {"_config.yml": "defaults: [{scope: {type: pages}, values: {draft: true}}]"}, "a.md"),
        ("hugo", {"hugo.toml": "ignoreFiles = ['/notes/']"}, "content/notes/a.md"),
        ("hugo", {"config/_default/hugo.yaml": "ignorefiles: ['\\.wip\\.md$']"}, "content/a.wip.md"),
        (
            "hugo",
            {"hugo.toml": "[[cascade]]\ndraft = true\n[cascade.target]\npath = '/notes/**'"},
            "content/notes/a.md",
        ),
        ("hugo", {}, "content/_notes/a.md"),
        ("zola", {"config.toml": "ignored_content = ['*.wip.md']"}, "content/notes/a.wip.md"),
        ("zola", {}, "content/_notes.md"),
    ],
)
def test_what_the_sites_configuration_hides_is_left_out(
    kind: str, config: dict[str, str], secret: str, make_site: MakeSite
) -> None:
    shown = "_posts/2024-05-01-a.md" if kind == "jekyll" else "content/shown/b.md"
    files = {**config, secret: "---\ntitle: x\n---\nsecret", shown: "---\ntitle: y\n---\nText"}
    exported = export(make_site(kind, files), TODAY)
    assert [page.path for page in exported.pages] == [shown]
    assert [exclusion.path for exclusion in exported.exclusions] == [secret]


def test_defaults_of_jekyll_give_addresses_that_a_page_can_change(make_site: MakeSite) -> None:
    config = "defaults:\n- {scope: {path: '', type: posts}, values: {permalink: '/blog/:title/'}}\n"
    files = {
        "_config.yml": config,
        "_posts/2024-05-01-a.md": "---\n---\nText",
        "_posts/2024-05-01-b.md": "---\npermalink: /mine/\n---\nText",
    }
    urls = [page.url for page in export(make_site("jekyll", files), TODAY).pages]
    assert urls == ["https://example.org/blog/a/", "https://example.org/mine/"]


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("jekyll", "_config.yml", "a: b: c"),
        ("hugo", "hugo.toml", "a = "),
        ("hugo", "hugo.toml", "ignoreFiles = ['(']"),
        ("zola", "config.toml", "="),
    ],
)
def test_a_configuration_that_cannot_be_read_is_an_error(
    kind: str, name: str, text: str, make_site: MakeSite
) -> None:
    with pytest.raises(SiteError):
        export(make_site(kind, {name: text, "content/a.md": "---\n---\nText"}), TODAY)


def test_settings_of_other_types_than_jekyll_knows_are_passed_over(make_site: MakeSite) -> None:
    config = "defaults: [a, {scope: b, values: c}]\nexclude: d\ncollections: 3\npermalink: [e]\n"
    files = {"_config.yml": config, "a.md": "---\ncategories: 5\n---\nText"}
    assert [page.url for page in export(make_site("jekyll", files), TODAY).pages] == [
        "https://example.org/a.html"
    ]


def test_jekyll_folders_that_no_option_calls_a_collection_are_named(make_site: MakeSite) -> None:
    files = {"_articles/a.md": "---\ntitle: x\n---\nText", "_includes/b.md": "---\n---\nText"}
    (articles, includes) = export(make_site("jekyll", files), TODAY).exclusions
    assert articles.reason == "in _articles, which is no collection of _config.yml or of options in site.toml"
    assert includes.reason == "a partial"
