"""Template tags go, words stay."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.export.shortcodes import strip_hugo, strip_liquid, strip_wordpress


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("a {{< new-in 0.1 />}}b", "a b"),
        ("{{< details >}}inner{{< /details >}}", "inner"),
        ('{{< figure src="a.png" caption="A cat" >}}', "A cat"),
        ("{{% note %}}*inner*{{% /note %}}", "*inner*"),
        ("{{< comment >}}hidden{{< /comment >}}shown", "shown"),
        ("{{% comment %}}hidden{{% /comment %}}shown", "shown"),
        ("write {{</* figure */>}} or `{{%/* x */%}}`", "write {{< figure >}} or `{{% x %}}`"),
        ("`{{< live >}}` in code", "`{{< live >}}` in code"),
    ],
)
def test_hugo_shortcodes(text: str, stripped: str) -> None:
    assert strip_hugo(text) == stripped


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("{% if x %}shown{% endif %} {{ site.name }}end", "shown end"),
        ("{% comment %}hidden{% endcomment %}shown", "shown"),
        ("{% raw %}{{ shown }}{% endraw %}", "{{ shown }}"),
        ("{% raw %}{{ hidden }}shown", "shown"),
        ("{% comment %}a{% endcomment %}b{% comment %}c", "bc"),
        ("{% highlight ruby %}\nputs 1\n{% endhighlight %}", "```ruby\nputs 1\n```"),
        ('{% include figure.html caption="A cat" %}', "A cat"),
        ("`{{ code }}` and\n\n```\n{% code %}\n```", "`{{ code }}` and\n\n```\n{% code %}\n```"),
        ('{% quote(author="V") %}words{% end %}', "Vwords"),
    ],
)
def test_liquid_tags(text: str, stripped: str) -> None:
    assert strip_liquid(text) == stripped


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("<div>\n\n    {% if x %}<p>shown</p>{% endif %}", "<div>\n\n    <p>shown</p>"),
        ('<a href="{{ "/a" | relative_url }}">A</a>', '<a href="">A</a>'),
        ("<code>`{% raw %}{{ shown }}{% endraw %}`</code>", "<code>`{{ shown }}`</code>"),
        (
            "{% highlight html %}\n<p>\n{% endhighlight %}",
            '<pre><code class="language-html">&lt;p&gt;</code></pre>',
        ),
        ("a{% comment %}hidden{% endcomment %}", "a"),
    ],
)
def test_liquid_tags_in_html(text: str, stripped: str) -> None:
    assert strip_liquid(text, is_html=True) == stripped


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ('[caption id="x" width="3"]<img> A cat[/caption]', "<img> A cat"),
        ("[gallery]", ""),
        ("[embed]https://example.org/[/embed]", "https://example.org/"),
        ('[gravityform id=2 name="Guest"]', ""),
        ("[note]words[/note]", "words"),
        ("he [sic] said [1] and [private]", "he [sic] said [1] and [private]"),
        ("[a link](x) and [ref][id]\n\n[id]: y", "[a link](x) and [ref][id]\n\n[id]: y"),
        ("[members]hidden[/members]shown", "shown"),
        ("[Private]hidden[/private]shown", "shown"),
        ("`[gallery]`\n\n```\n[caption]x[/caption]\n```", "`[gallery]`\n\n```\n[caption]x[/caption]\n```"),
        ("- [ ] open\n- [x] done", "- [ ] open\n- [x] done"),
    ],
)
def test_wordpress_shortcodes(text: str, stripped: str) -> None:
    assert strip_wordpress(text) == stripped


@pytest.mark.parametrize(
    ("strip", "unit", "kept"),
    [
        (strip_hugo, "{{< comment >}}a", "a"),
        (strip_liquid, "{% raw %}a", "a"),
        (strip_liquid, "{% highlight x %}a", "a"),
        (strip_wordpress, "[private]a", "[private]a"),
    ],
)
def test_tags_never_closed_take_linear_time(strip: Callable[[str], str], unit: str, kept: str) -> None:
    assert strip(unit * 20_000) == kept * 20_000
