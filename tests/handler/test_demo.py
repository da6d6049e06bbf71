from __future__ import annotations

from pathlib import Path

from handler.bundle.bundle import Bundle
from handler.demo import demo_page, page_questions
from tests.conftest import MakeBundle


def filled(template: str, bundle: Path, *starters: str) -> str:
    return demo_page(template, "n0nce", Bundle.open(bundle), starters, "Nothing leaves this site.")


def test_the_page_says_what_the_bundle_is_about(make_bundle: MakeBundle) -> None:
    bundle = make_bundle({"notes/boat.md": "Boat\n\nThe boat is red.\n"})
    assert (
        filled("{{nonce}}: {{title}}, {{pages}}. {{privacy}}", bundle)
        == "n0nce: Notes, 1 page. Nothing leaves this site."
    )


def test_pages_of_a_collection_that_is_not_public_are_neither_named_nor_counted(
    make_bundle: MakeBundle,
) -> None:
    pages = {"notes/boat.md": "Boat\n\nRed.\n", "diary/lake.md": "Lake\n\nDeep.\n"}
    page = filled("{{title}} {{pages}} {{questions}} {{starters}}", make_bundle(pages))
    assert "1 page" in page and "Boat" in page
    assert "Lake" not in page and "Diary" not in page


def test_the_longest_pages_are_asked_about_and_a_title_that_asks_stays(make_bundle: MakeBundle) -> None:
    long = "".join(f"\n## Part {n}\n\n{'The boat is red. ' * 100}\n" for n in range(4))
    pages = {
        "notes/a.md": "A\n\nShort.\n",
        "notes/b.md": "B | C\n\nA title that a script tag cannot hold.\n",
        "notes/boat.md": f"Why a boat?\n{long}",
        "notes/d.md": "D\n\nShort.\n",
        "notes/e.md": "E\n\nShort.\n",
    }
    questions = page_questions(Bundle.open(make_bundle(pages)))
    assert questions[0] == "Why a boat?"
    assert questions[1:] == ["What is “A” about?", "What is “D” about?"]


def test_starters_that_were_set_are_the_ones(make_bundle: MakeBundle) -> None:
    assert filled("{{starters}}", make_bundle(), "Who?", "Why?") == "Who? | Why?"


def test_what_a_title_has_of_markup_is_text(make_bundle: MakeBundle) -> None:
    bundle = make_bundle({"notes/a.md": '"><script>{{nonce}}</script>\n\nText.\n'})
    page = filled('<i title="{{starters}}"></i>{{questions}}', bundle)
    assert "<script" not in page and "n0nce" not in page


def test_a_bundle_without_public_pages_has_a_page_without_questions(make_bundle: MakeBundle) -> None:
    bundle = make_bundle({"diary/a.md": "A\n\nText.\n"})
    assert filled("{{title}}, {{pages}}, {{questions}}{{starters}}", bundle) == "this site, 0 pages, "
