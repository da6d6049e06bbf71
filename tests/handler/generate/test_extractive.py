from __future__ import annotations

import pytest

from handler.bundle.encoder import Encoder
from handler.bundle.gate import Verdict
from handler.bundle.search import Hit, SearchResult
from handler.bundle.types import Chunk
from handler.generate.extractive import MAX_QUOTES, best_quotes, numbered_text
from handler.terminal import format_answer, format_hits


def hit(text: str, title: str = "Notes") -> Hit:
    chunk = Chunk(f"https://example.org/{title}", title, "a.md", "notes", (), "", 0, text)
    return Hit(chunk, 1.0, 0.9, 1.0, 1, 1, "")


def test_without_hits_there_are_no_quotes(tiny_encoder: Encoder) -> None:
    assert best_quotes("server", [], tiny_encoder) == []


def test_the_sentence_that_has_the_words_is_quoted_as_it_stands(tiny_encoder: Encoder) -> None:
    text = "The piano is old. The **server** restarts at night. The pond has algae."
    quotes = best_quotes("when does the server restart", [hit(text)], tiny_encoder)
    assert "The **server** restarts at night." in [quote.text for quote in quotes]
    for quote in quotes:
        assert text[quote.start :].startswith(quote.text)


def test_the_best_quote_comes_first_wherever_it_stands(tiny_encoder: Encoder) -> None:
    hits = [hit("Old server restarts at night."), hit("The server restarts at night, restarts.")]
    quotes = best_quotes("server restart at night", hits, tiny_encoder)
    assert [quote.source for quote in quotes] == [2, 1]


def test_what_two_sources_say_in_the_same_words_is_quoted_once_from_the_first(tiny_encoder: Encoder) -> None:
    same = "Restart it:\n\n```\nserver --restart\n```\n"
    quotes = best_quotes("how to restart the server", [hit(same), hit(same)], tiny_encoder)
    assert [quote.text for quote in quotes].count("server --restart") == 1
    assert {quote.source for quote in quotes} == {1}


def test_there_are_not_more_quotes_than_a_reader_takes_in(tiny_encoder: Encoder) -> None:
    text = " ".join(f"The server restarts at night {n}." for n in range(9))
    assert len(best_quotes("server restart at night", [hit(text)], tiny_encoder)) == MAX_QUOTES


@pytest.mark.parametrize("text", ["![](a.png)", "<br/>\n\n---", "", "## Only a heading"])
def test_what_has_no_words_is_not_quoted(tiny_encoder: Encoder, text: str) -> None:
    assert best_quotes("server", [hit(text)], tiny_encoder) == []


def test_the_code_that_a_sentence_announces_comes_with_it(tiny_encoder: Encoder) -> None:
    text = "The piano is old.\n\nWhen the server restarts at night, do:\n\n```\nmake pond\n```\n\nAlgae."
    quotes = best_quotes("when does the server restart at night", [hit(text)], tiny_encoder)
    assert [quote.text for quote in quotes][:2] == ["When the server restarts at night, do:", "make pond"]


def test_code_stands_below_the_sentence_that_announces_it_even_where_it_is_nearer(
    tiny_encoder: Encoder,
) -> None:
    text = "The server restarts at night, old:\n\n```\nserver restart night\n```\n"
    quotes = best_quotes("server restart night", [hit(text)], tiny_encoder)
    assert [quote.is_code for quote in quotes] == [False, True]


@pytest.mark.parametrize("lead", ["The server restarts at times:", "The server restarts"])
def test_the_list_that_a_sentence_announces_comes_whole_and_with_it(tiny_encoder: Encoder, lead: str) -> None:
    """Whether the sentence has a colon, or goes on in the items."""
    items = "- at **night**. Or\n  in the morning\n- [on Monday](https://example.org/)"
    text = f"{lead}\n\n{items}\n\nThe piano is old."
    quotes = best_quotes("when does the server restart", [hit(text)], tiny_encoder)[:2]
    assert [text[quote.start : quote.end] for quote in quotes] == [
        lead,
        items.removeprefix("- "),
    ]
    assert quotes[1].shown == "- at night. Or in the morning\n- on Monday"
    assert numbered_text(quotes) == (f"“{lead}” [1]\n- at night. Or in the morning\n- on Monday\n[1]")
    found = SearchResult("server", (hit(text),), Verdict(True, ""))
    assert format_answer(found, quotes).split("\n")[:4] == [
        f"“{lead}” [1]",
        "- at night. Or in the morning",
        "- on Monday",
        "[1]",
    ]


def test_the_table_that_a_sentence_announces_comes_whole_and_with_it(tiny_encoder: Encoder) -> None:
    text = "The server restarts:\n\n| day | hour |\n|---|---|\n| Monday | `1 \\| 2` |\n| Sunday | 3 |\n"
    _, table = best_quotes("when does the server restart", [hit(text)], tiny_encoder)[:2]
    assert table.shown == "- day | hour\n- Monday | 1 | 2\n- Sunday | 3"


def test_a_label_comes_with_what_it_announces_or_not_at_all(tiny_encoder: Encoder) -> None:
    long = "\n".join(f"- The piano, number {n} of many in this long list of pianos" for n in range(20))
    for text in (f"The server restarts:\n\n{long}\n", "The server restarts:\n\nThe piano is old.\n"):
        hits = [hit(text), hit("The server restarts at night.")]
        quotes = best_quotes("when does the server restart at night", hits, tiny_encoder)
        assert "The server restarts:" not in [quote.text for quote in quotes]
    code = "The server restarts at night {}:\n\n```\nrestart {} night\n```\n"
    hits = [hit(code.format(n, n)) for n in ("one", "two")]
    quotes = best_quotes("when does the server restart at night", hits, tiny_encoder)
    assert [quote.kind for quote in quotes] == ["prose", "code"]


def test_an_item_is_not_quoted_again_beside_its_list(tiny_encoder: Encoder) -> None:
    text = "The server restarts:\n\n- server restarts at night\n- server restarts on Monday\n"
    quotes = best_quotes("when does the server restart", [hit(text)], tiny_encoder)
    assert sum("at night" in quote.text for quote in quotes) == 1


@pytest.mark.parametrize("echo", ["- server", "| **The server** |", "- [Server](https://example.org/a)"])
def test_what_the_question_says_itself_is_no_answer(tiny_encoder: Encoder, echo: str) -> None:
    hits = [hit(f"{echo}\n"), hit("It restarts at night.")]
    quotes = best_quotes("the server?", hits, tiny_encoder)
    assert [quote.text for quote in quotes] == ["It restarts at night."]


def test_a_link_or_a_picture_comes_behind_a_sentence_that_is_not_much_further(tiny_encoder: Encoder) -> None:
    question, sentence = "does the server restart at night?", "The old server restarts on Monday."
    link, picture = "[Server restart options](#server)", "![Server restarts diagram](a.png)"
    beside_link = best_quotes(question, [hit(f"- {link}\n- {sentence}\n")], tiny_encoder)
    assert sentence in [quote.text for quote in beside_link]
    beside_picture = best_quotes(question, [hit(f"- {picture}\n- {sentence}\n")], tiny_encoder)
    assert [quote.text for quote in beside_picture] == [sentence]


def test_a_list_of_links_is_quoted(tiny_encoder: Encoder) -> None:
    links = hit("- [The pond](https://example.org/a)\n- [A piano](https://example.org/b)\n")
    assert best_quotes("which pages are there?", [links], tiny_encoder)


def test_names_of_columns_are_no_answer_unless_they_have_a_word_of_the_question(
    tiny_encoder: Encoder,
) -> None:
    names = hit("| option | meaning |\n|---|---|\n| `--port` | the port of the server |\n")
    assert [q.text for q in best_quotes("what is this", [names], tiny_encoder)] == [
        "| `--port` | the port of the server |"
    ]
    named = best_quotes("what is the meaning of --port", [names], tiny_encoder)
    assert named[0].text == "| `--port` | the port of the server |"
    assert numbered_text(named[:1]) == "“`--port` | the port of the server” [1]"
    data = hit("| Tuesday | nine to six |\n|---|---|\n")
    assert best_quotes("open on Tuesday?", [data], tiny_encoder)[0].text == "| Tuesday | nine to six |"


def test_code_is_answered_line_for_line_with_every_sign(tiny_encoder: Encoder) -> None:
    code = "# server logs\nrm -rf *.log __init__\n  echo <server> | grep server"
    hits = (hit(f"```sh\n{code}\n```"),)
    quotes = best_quotes("server logs", hits, tiny_encoder)
    assert numbered_text(quotes) == f"```\n{code}\n```\n[1]"
    shown = format_answer(SearchResult("server logs", hits, Verdict(True, "")), quotes).split("\n")
    assert [line.removeprefix("    ") for line in shown[:3]] == code.split("\n")
    assert shown[3] == "[1]"


def test_a_terminal_gets_no_control_characters_of_a_page_and_code_without_its_indent(
    tiny_encoder: Encoder,
) -> None:
    hits = (hit("- Item\n\n  ```py\n  def server():  # \x1b[31mred\n      pass\n  ```", "A\x9b"),)
    found = SearchResult("server", hits, Verdict(True, ""))
    shown = format_answer(found, best_quotes("server", hits, tiny_encoder))
    assert not {"\x1b", "\x9b"}.intersection(shown)
    assert shown.startswith("    def server():  # [31mred\n        pass\n[1]")
    assert not {"\x1b", "\x9b"}.intersection(format_hits(found))
