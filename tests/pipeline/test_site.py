from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.site import Instance, MissingSite, SiteError, load_collections, load_site, load_sites

COLLECTIONS = '[notes]\ntitle = "Notes"\npublic = true\n[diary]\npublic = false\n'
SITE = 'kind = "markdown"\nsource = "."\nbase_url = "https://example.org/notes"\ncollection = "notes"\n'


def sites_with(tmp_path: Path, toml: str, collections: str = COLLECTIONS) -> Path:
    folder = tmp_path / "sites"
    (folder / "blog").mkdir(parents=True)
    (folder / "collections.toml").write_text(collections)
    (folder / "blog" / "site.toml").write_text(toml)
    return folder


def load(sites: Path, **environ: str) -> object:
    return load_site(sites / "blog" / "site.toml", load_collections(sites), environ)


def test_a_site_knows_its_source_and_a_base_url_that_ends_in_a_slash(tmp_path: Path) -> None:
    sites = sites_with(tmp_path, SITE)
    (site,), missing = load_sites(sites, load_collections(sites), {})
    assert site.name == "blog"
    assert site.source_path == sites / "blog"
    assert site.base_url == "https://example.org/notes/"
    assert missing == []


def test_a_collection_is_private_only_when_it_says_so_and_must_say_either(tmp_path: Path) -> None:
    collections = load_collections(sites_with(tmp_path, SITE))
    assert collections["notes"].public
    assert not collections["diary"].public
    with pytest.raises(SiteError, match=r"collections.toml: \[notes\] public: say true or false"):
        load_collections(sites_with(tmp_path / "other", SITE, '[notes]\ntitle = "Notes"\n'))


def test_a_variable_in_the_source_is_filled_in_from_the_environment(tmp_path: Path) -> None:
    sites = sites_with(tmp_path, SITE.replace('source = "."', 'source = "${NOTES}/docs"'))
    (tmp_path / "docs").mkdir()
    site = load(sites, NOTES=str(tmp_path))
    assert getattr(site, "source", None) == str(tmp_path / "docs")


@pytest.mark.parametrize("environ", [{}, {"NOTES": ""}])
def test_a_site_whose_variable_is_unset_is_missing_with_a_reason(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    sites = sites_with(tmp_path, SITE.replace('source = "."', 'source = "${NOTES}"'))
    assert load(sites, **environ) == MissingSite("blog", "NOTES is not set")


@pytest.mark.parametrize("language", ["en", "en-US", "pt_BR"])
def test_a_site_can_name_its_language(tmp_path: Path, language: str) -> None:
    assert getattr(load(sites_with(tmp_path / "one", SITE)), "language", None) == ""
    named = sites_with(tmp_path / "two", f'{SITE}language = "{language}"\n')
    assert getattr(load(named), "language", None) == language


def test_a_site_whose_folder_is_not_there_is_missing_with_its_path(tmp_path: Path) -> None:
    sites = sites_with(tmp_path, SITE.replace('source = "."', 'source = "../../elsewhere"'))
    assert load(sites) == MissingSite("blog", f"{tmp_path / 'elsewhere'} is not there")


def test_instances_of_a_docusaurus_site_have_routes_without_slashes(tmp_path: Path) -> None:
    toml = SITE.replace("markdown", "docusaurus")
    sites = sites_with(tmp_path, toml + '[[instances]]\ntype = "docs"\nfolder = "docs/"\nroute = "/"\n')
    assert getattr(load(sites), "instances", None) == (Instance("docs", "docs", ""),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('collection = "notes"', 'collection = "other"'), "collection: 'other' is none of notes, diary"),
        (('collection = "notes"', ""), "collection: missing; write collection ="),
        (("https://example.org/notes", "example.org"), "base_url: 'example.org' is not an http"),
        (("https://example.org/notes", "https://"), "base_url: 'https://' is not an http"),
        (("https://example.org/notes", "javascript:alert(1)"), "base_url: 'javascript"),
        (("https://example.org/notes", "https://[::1"), "base_url: "),
        (("https://example.org/notes", "https://example.org/?p=1"), "has more than host and path"),
        (("https://example.org/notes", "https://example.org/#top"), "has more than host and path"),
        (("https://example.org/notes", "https://me:secret@example.org/"), "has more than host and path"),
        (('"markdown"', '"gopher"'), "kind: 'gopher' is none of markdown, docusaurus"),
        (('source = "."', "source = 3"), "source: 3 is not a text in quotes"),
        (('source = "."', 'source = "."\nsorce = "."'), "sorce: unknown key; known are base_url"),
        (('source = "."', 'source = "."\nexclude = "drafts"'), "exclude: write a list of patterns"),
        (
            ('source = "."', 'source = "."\ntrailing_slash = "yes"'),
            "trailing_slash: 'yes' is not true or false",
        ),
        (('source = "."', 'source = "."\ninstances = [{type = "docs"}]'), "instances: each has exactly"),
        (
            ('"markdown"', '"docusaurus"\ninstances = [{type = "docs", folder = 1, route = ""}]'),
            "instances: folder: 1 is not a text in quotes",
        ),
        (
            ('source = "."', 'source = "."\ninstances = [{type = "docs", folder = "a", route = ""}]'),
            'instances: only kind = "docusaurus" has them',
        ),
        (
            ('"markdown"', '"jekyll"\noptions = {permalinks = "pretty"}'),
            "options: permalinks: unknown key; known are collections, future, permalink",
        ),
        (
            ('source = "."', 'source = "."\noptions = {x = 1}'),
            "options: x: unknown key; kind markdown has none",
        ),
        (('source = "."', 'source = "."\nlanguage = "English"'), "language: 'English' is no language tag"),
        (
            ('source = "."', 'source = "."\nlanguage = ""'),
            "language: '' is no language tag (BCP 47); write language = \"en\"",
        ),
        (('source = "."', 'source = "."\nlanguage = ["en"]'), "language: ['en'] is not a text in quotes"),
        (('source = "."', "source = "), "not valid TOML"),
    ],
)
def test_a_wrong_site_toml_is_an_error_that_names_file_and_key(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    sites = sites_with(tmp_path, SITE.replace(*change))
    with pytest.raises(SiteError) as error:
        load(sites)
    assert str(error.value).startswith(f"{sites / 'blog' / 'site.toml'}: ")
    assert message in str(error.value)


def test_a_sites_folder_without_collections_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"collections\.toml: not found.*\[garden\]"):
        load_collections(tmp_path)


def test_a_sites_folder_that_is_a_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "sites").write_text("")
    with pytest.raises(SiteError, match=r"collections\.toml: cannot be read"):
        load_collections(tmp_path / "sites")
