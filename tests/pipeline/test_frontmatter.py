"""Front matter as people really write it: nothing crashes, nothing is lost, nothing private leaks."""

from __future__ import annotations

import pytest

from pipeline.frontmatter import is_false, parse, private_reason, text_value


@pytest.mark.parametrize(
    "opening",
    ["---\n", "--- \t\n", "\ufeff---\n", "\n\n---\n", "\ufeff\r\n---\r\n"],
    ids=["plain", "trailing space", "byte-order mark", "blank lines before", "mark and CRLF"],
)
def test_yaml_is_found_behind_every_usual_opening(opening: str) -> None:
    front = parse(f"{opening}title: A page\n---\nText\n")
    assert (front.meta, front.body, front.error) == ({"title": "A page"}, "Text\n", "")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_kind_are_read_and_kept_in_the_body(newline: str) -> None:
    front = parse(newline.join(["---", "title: A", "tags: [x]", "---", "One", "Two", ""]))
    assert front.meta == {"title": "A", "tags": ["x"]}
    assert front.body == newline.join(["One", "Two", ""])
    assert front.body_line == 5


def test_mixed_line_ends_are_read() -> None:
    front = parse("---\r\ntitle: A\ndraft: no\r\n---\nText")
    assert (front.meta, front.body) == ({"title": "A", "draft": "no"}, "Text")


def test_toml_is_read_with_its_dates_and_numbers_as_written() -> None:
    front = parse(
        '+++\ntitle = "A: B"\ndate = 2024-02-29\nweight = 1.10\n[extra]\nprivate = true\n+++\nText\n'
    )
    assert text_value(front.meta["date"]) == "2024-02-29"
    assert text_value(front.meta["weight"]) == "1.10"
    assert private_reason(front.meta) == "private"
    assert front.body == "Text\n"


@pytest.mark.parametrize("block", ['{"title": "A", "draft": true}', '{\n  "title": "A",\n  "draft": true\n}'])
def test_json_front_matter_is_read(block: str) -> None:
    front = parse(f"{block}\n\nText\n")
    assert front.meta == {"title": "A", "draft": True}
    assert front.body == "\nText\n"


@pytest.mark.parametrize("text", ["{{< shortcode >}}\nText", '{"a": 1} is JSON\nText', "{ not json }\nText"])
def test_a_page_that_begins_with_a_brace_keeps_its_text(text: str) -> None:
    front = parse(text)
    assert (front.body, front.error) == (text, "")


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("2024-05-01", "2024-05-01"),
        ("1.10", "1.10"),
        ("007", "007"),
        ("yes", "yes"),
        ("2024-02-31", "2024-02-31"),
    ],
)
def test_scalars_stay_as_they_are_written(written: str, title: str) -> None:
    assert parse(f"---\ntitle: {written}\n---\n").meta["title"] == title


@pytest.mark.parametrize("written", ["null", "~", ""])
def test_null_is_none(written: str) -> None:
    assert parse(f"---\ntitle: {written}\n---\n").meta["title"] is None


@pytest.mark.parametrize(
    ("block", "line", "title"),
    [
        ("title: A: B\ndescription: x", 2, "A: B"),
        ("title: A page\ntags:\n\t- x", 4, "A page"),
        ('title: "never closed\nslug: a', 2, None),
        ("title: A\ntitle: B", 3, "A"),
        ("title: A\n<!-- a comment\nthat goes on -->\nslug: x", 4, "A"),
    ],
    ids=["unquoted colon", "tab", "open quote", "a key twice", "comment"],
)
def test_malformed_yaml_keeps_the_text_and_names_the_line(block: str, line: int, title: str | None) -> None:
    front = parse(f"---\n{block}\n---\nAll of the text.\n")
    assert front.body.endswith("All of the text.\n")
    assert front.error
    assert front.error_line == line
    assert not front.unreadable_privacy
    if title is not None:
        assert front.meta["title"] == title


def test_malformed_toml_names_the_line() -> None:
    front = parse('+++\ntitle = "A"\nslug = \n+++\nText\n')
    assert front.error_line == 3
    assert front.meta["title"] == "A"


def test_a_slug_beside_a_malformed_title_is_still_read() -> None:
    assert parse("---\ntitle: A: B\nslug: a-b\n---\nText").meta["slug"] == "a-b"


def test_a_comment_as_a_key_is_no_error() -> None:
    front = parse("---\ntitle: A\n<!--- authors:\n  - name: B -->\ntags: [x]\n---\nText\n")
    assert front.error == ""
    assert front.meta["title"] == "A"


@pytest.mark.parametrize(
    "block",
    [
        "title: A: B\ndraft: true",
        "title: [A\nprivate: yes",
        "title: A: B\n  unlisted : true",
        "draft:true\ntitle: x",
        "title: A: B\ndraft true",
        '"draft": true\ntitle: A: B',
        "title: x\ndraft: false\ndraft: true",
        "{title: A: B, draft: true}",
        "title: A: B\nstatus: private",
        "title: A: B\nvisibility: hidden",
        'title: A: B\n"dr\\u0061ft": true',
    ],
)
def test_malformed_front_matter_that_speaks_of_privacy_says_so(block: str) -> None:
    assert parse(f"---\n{block}\n---\nText\n").unreadable_privacy


def test_malformed_json_that_speaks_of_drafts_says_so() -> None:
    assert parse('{"title": "A", "draft": true,\n\nText').unreadable_privacy


def test_front_matter_that_is_never_closed_is_text_unless_it_speaks_of_drafts() -> None:
    front = parse("---\ntitle: A\n\nText\n")
    assert (front.meta, front.error_line) == ({"title": "A"}, 1)
    assert "Text" in front.body
    assert parse("---\ndraft: true\n\nText\n").unreadable_privacy


@pytest.mark.parametrize(
    "text",
    [
        " ---\ndraft: true\n---\nText",
        "----\ndraft: true\n----\nText",
        "---yaml\ndraft: true\n---\nText",
        "--- # settings\ndraft: true\n---\nText",
        "\ufeff\ufeff---\ndraft: true\n---\nText",
        "\u200b---\ndraft: true\n---\nText",
        "<!-- one --><!-- two -->\n---\ndraft: true\n---\nText",
        'import A from "a"\n\n---\npublished: false\n---\nText',
        ';;;\n{"draft": true}\n;;;\nText',
        "{'private': true}\nText",
        '{"draft": true} Text',
        '{\n// settings\n"draft": true\n}\nText',
        "---\n\ndraft: true\n\nText",
        "---\n# settings\ntitle: A\n\nstatus: draft\nText",
        "---\ntitle: |\n  A\n---\ndraft: true\n---\nText",
        "---\n%YAML 1.2\n---\ndraft: true\n---\nText",
    ],
)
def test_what_is_nearly_front_matter_and_hides_the_page_is_taken_at_its_word(text: str) -> None:
    front = parse(text)
    assert front.unreadable_privacy
    assert front.error_line >= 1


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nDrafts and private: what they are.\n",
        "---\n\n```yaml\n---\ndraft: true\n---\n```\n",
        "```yaml\n---\ndraft: true\n---\n```\n",
        "{{< note draft=true >}}\n",
        "Status: Draft\n\nText\n",
        "<!-- " * 5000,
        "<!-- -->\n" * 5000,
        " " * 100_000,
    ],
)
def test_text_about_drafts_is_text(text: str) -> None:
    front = parse(text)
    assert (front.body, front.unreadable_privacy) == (text, False)


def test_a_number_of_thousands_of_digits_is_an_error_of_the_page() -> None:
    assert parse('{"a": ' + "9" * 5000 + ', "draft": true}\nText').unreadable_privacy


@pytest.mark.parametrize("text", ["---\n\nProse.\n\n---\n\nMore.\n", "---\nProse, and\nmore\n---\n", "---\n"])
def test_thematic_breaks_are_no_front_matter(text: str) -> None:
    front = parse(text)
    assert (front.body, front.error) == (text, "")


def test_prose_inside_malformed_front_matter_is_kept() -> None:
    assert "A sentence of its own." in parse("---\ntitle: A: B\nA sentence of its own.\n---\nText\n").body


@pytest.mark.parametrize("text", ["", "\ufeff", "---\n---\n", "---\n# only a comment\n---\n"])
def test_empty_files_and_blocks_are_empty(text: str) -> None:
    front = parse(text)
    assert (front.meta, front.body, front.error) == ({}, "", "")


@pytest.mark.parametrize("value", ["true", "yes", "on", "1", '"yes"', "True", "maybe", "[x]"])
@pytest.mark.parametrize("key", ["draft", "Draft", "private", "unlisted"])
def test_whatever_is_not_clearly_false_hides_a_page(key: str, value: str) -> None:
    assert private_reason(parse(f"---\n{key}: {value}\n---\n").meta) == key.lower()


@pytest.mark.parametrize("value", ["false", "no", "off", "0", "False", '""', "null", ""])
def test_what_is_clearly_false_hides_nothing(value: str) -> None:
    assert private_reason(parse(f"---\ndraft: {value}\nprivate: {value}\n---\n").meta) is None


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("published: false", "published: false"),
        ("published: no", "published: false"),
        ("status: draft", "status: draft"),
        ("post_status: pending", "post_status: pending"),
        ("status: Future", "status: future"),
        ("visibility: private", "visibility: private"),
        ("visibility: members", "visibility: members"),
        ("post_password: secret", "password-protected"),
        ("params:\n  draft: true", "draft"),
        ("extra:\n  unlisted: true", "unlisted"),
        ("published: 'False'", "published: false"),
        ('draft: "true "', "draft"),
        ("Draft: true\ndraft: false", "draft"),
        ("status: [stable, draft]", "status: draft"),
        ("post_status: inherit", "post_status: inherit"),
        ("publish: false", "publish: false"),
        ("public: no", "public: false"),
        ("hidden: true", "hidden"),
        ("robots: noindex, nofollow", "noindex"),
        ("\u200bdraft: true", "draft"),
        ("ｄｒａｆｔ: true", "draft"),
        ("on: &on true\ndraft: *on", "draft"),
        ("all: &all {draft: true}\n<<: *all", "draft"),
        ("? draft\n: true", "draft"),
        ('"dr\\u0061ft": true', "draft"),
    ],
)
def test_every_way_to_be_private_has_its_reason(block: str, reason: str) -> None:
    assert private_reason(parse(f"---\n{block}\n---\n").meta) == reason


@pytest.mark.parametrize(
    "block",
    ["published: 2019-05-01", "published: true", "published:", "status: stable", "visibility: public"],
)
def test_public_values_hide_nothing(block: str) -> None:
    assert private_reason(parse(f"---\n{block}\n---\n").meta) is None


def test_false_is_false_in_every_language_of_front_matter() -> None:
    assert is_false(False) and is_false(None) and is_false(0) and is_false("No") and is_false([])
    assert not is_false(True) and not is_false(1) and not is_false("yes")
