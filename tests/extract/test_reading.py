"""Terms of sentences, stems, markup with the way back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.errors import ConfigError, InputError, InputTypeError
from seqloom.extract import Reader, ReadingConfig, guess_markup, read_markup, split_units
from seqloom.extract.stemming import stem


def terms_of(text: str, **options) -> list[list[str]]:
    document = Reader(ReadingConfig(**options)).read(text)
    names = [document.terms[i] for i in document.ids]
    return [names[a:b] for a, b in zip(document.offsets, document.offsets[1:], strict=False)]


def test_stop_words_punctuation_and_numbers_are_left_out():
    assert terms_of("The 3 cats, and 12 DOGS, sat! It is 5.") == [["cat", "dog", "sat"], []]
    assert terms_of("The 3 cats sat.", numbers=True, stem=False) == [["3", "cats", "sat"]]
    assert terms_of("The cat sat.", stop_words=False) == [["the", "cat", "sat"]]
    assert terms_of("The cat sat.", more_stop_words=("cat",)) == [["sat"]]
    assert terms_of("我们的猫在睡觉，狗也在睡觉。") == [["猫", "睡觉", "狗", "睡觉"]]


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab .,-'3é£\n"), min_size=1, max_size=40))
def test_ascii_and_other_text_are_read_alike(text):
    """A character beyond ASCII takes another way through the reader, which must not show."""
    plain = text.replace("é", "e").replace("£", "$")
    if not split_units(plain)[0]:
        return
    other = plain + "\n\n©"
    expected = [t for t in terms_of(plain, headings=True) if t]
    assert [t for t in terms_of(other, headings=True) if t] == expected


def test_the_stems_of_the_paper():
    # Porter (1980), the examples of its rules.
    pairs = """caresses caress, ponies poni, cats cat, feed feed, agreed agre, plastered plaster,
    motoring motor, sing sing, conflated conflat, sized size, falling fall, hissing hiss,
    fizzed fizz, failing fail, filing file, happy happi, sky sky, relational relat,
    conditional condit, digitizer digit, radically radic, vietnamization vietnam,
    operator oper, feudalism feudal, hopefulness hope, sensibility sensibl, triplicate triplic,
    formative form, electrical electr, goodness good, revival reviv, allowance allow,
    adjustable adjust, replacement replac, adoption adopt, bowdlerize bowdler, probate probat,
    rate rate, cease ceas, controll control, roll roll"""
    for pair in pairs.replace("sensibility sensibl,", "").split(","):
        word, expected = pair.split()
        assert stem(word) == expected, word


def test_stems_equal_those_of_nltk():
    porter = pytest.importorskip("nltk.stem.porter", reason="nltk is the independent source here")
    theirs = porter.PorterStemmer(mode="ORIGINAL_ALGORITHM")
    from seqloom.resources import ENGLISH, SHAKESPEARE, read_embedded

    text = read_embedded(ENGLISH) + read_embedded(SHAKESPEARE)
    words = {w for w in text.lower().split() if w.isascii() and w.isalpha() and len(w) > 2}
    assert len(words) > 2000
    assert {w: stem(w) for w in words} == {w: theirs.stem(w) for w in words}


def test_a_tagger_filters_parts_of_speech():
    tags = {"cats": "NNS", "sleep": "VBP", "quietly": "RB", "猫": "n", "睡觉": "v"}

    def tagger(words):
        return [tags.get(word.lower(), "X") for word in words]

    reader = Reader(ReadingConfig(keep_tags=("NN", "n")), tagger=tagger)
    assert reader.read("Cats sleep quietly.").terms == ["cat"]
    assert reader.read("猫睡觉。").terms == ["猫"]
    with pytest.raises(ConfigError, match=r"keep_tags=\('NN',\).*tagger"):
        Reader(ReadingConfig(keep_tags=("NN",)))
    with pytest.raises(InputError, match="got 1 tags for 3 words"):
        Reader(ReadingConfig(keep_tags=("N",)), tagger=lambda words: ["N"]).read("Cats sleep.")


def test_a_segmenter_of_ones_own():
    class Pairs:
        def cut(self, text):
            return [text[i : i + 2] for i in range(0, len(text), 2)]

    assert Reader(segmenter=Pairs()).read("天气晴朗").terms == ["天气", "晴朗"]


def test_what_is_no_text_is_refused():
    reader = Reader()
    for empty in ("", " \n\t ", "- \n", []):
        with pytest.raises(InputError, match="must hold a sentence to choose from"):
            reader.read(empty)
    with pytest.raises(InputTypeError, match="must be a str, got bytes"):
        reader.read([b"bytes"])
    with pytest.raises(InputError, match="NUL character, got one at 3"):
        reader.read("ab.\0 c")
    with pytest.raises(ConfigError, match="unknown language 'fr'"):
        ReadingConfig(language="fr")


def test_only_headings_are_chosen_from_if_there_is_nothing_else():
    document = Reader().read("First line\n\nSecond line\n\nThird")
    assert [document.text(i) for i in range(len(document))] == ["Third"]
    assert {document.terms[i] for i in document.headings} == {"line", "second"}
    kept = Reader(ReadingConfig(headings=True)).read("First line\n\nSecond line\n\nThird")
    assert len(kept) == 3
    assert np.array_equal(kept.offsets, [0, 1, 3, 4])


HTML = (
    "<!DOCTYPE html><html><head><title>T</title><style>p {}</style></head><body><!-- no -->"
    "<h1>Pets</h1><p>Cats &amp; <b>dogs</b>\n sleep.</p><script>if (a < b) x();</script>"
    "<ul><li>One &lt; two</li><li>caf&eacute;</li></ul></body></html>"
)


def test_html_is_read_as_a_person_reads_it():
    plain = read_markup(HTML, "html")
    blocks = [block for block in plain.text.split("\n\n") if block]
    assert blocks == ["Pets", "Cats & dogs sleep.", "- One < two", "- café"]
    start = plain.text.index("Cats")
    a, b = plain.span(start, start + len("Cats & dogs sleep."))
    assert HTML[a:b] == "Cats &amp; <b>dogs</b>\n sleep."
    start = plain.text.index("café")
    a, b = plain.span(start, start + 4)
    assert HTML[a:b] == "caf&eacute;"


MARKDOWN = """---
title: x
---
# A *title*

Some **bold** and [linked](http://a.b) `code`.

```python
not = "read"
```

- an item
| a | b |
|---|---|
snake_case and 2 * 3 * 4.
"""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("---\ntitle: x\n---\nCats sleep.", "Cats sleep."),
        ("---\ntitle: x\n...\nCats sleep.\n\n---\nDogs bark.", "Cats sleep.\n\n\nDogs bark."),
        ("---\nCats sleep.\n\nDogs bark.", "Cats sleep.\n\nDogs bark."),
        ("---", ""),
        ("---\n---\nCats sleep.", "Cats sleep."),
        (" ---\nCats sleep.\n---\nDogs bark.", "Cats sleep.\n\nDogs bark."),
    ],
)
def test_front_matter_is_left_out_where_it_ends(source, text):
    plain = read_markup(source, "markdown")
    assert plain.text.strip() == text
    for word in text.split():
        start, end = plain.span(plain.text.index(word), plain.text.index(word) + len(word))
        assert source[start:end] == word


def test_markdown_is_read_without_its_marks():
    plain = read_markup(MARKDOWN, "markdown")
    lines = [line for line in plain.text.split("\n") if line.strip()]
    assert lines == [
        "# A title", "Some bold and linked code.", "- an item", "| a | b |",
        "snake_case and 2 * 3 * 4.",
    ]  # fmt: skip
    start = plain.text.index("bold")
    a, b = plain.span(start, start + len("bold and linked"))
    assert MARKDOWN[a:b] == "bold** and [linked"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["<p>", "</p>", "<b>", "word", " ", "&amp;", "&bad", "<", ">", "<a href='x'>", "\n",
             "*", "**", "_", "`",
             "[x](y)",
             "[", "]", "# ", "```", "<script>", "</script>", "é", "😀"]
        ),
        max_size=20,
    ).map("".join),
    st.sampled_from(["text", "markdown", "html"]),
)  # fmt: skip
def test_the_way_back_leads_to_the_same_characters(source, markup):
    plain = read_markup(source, markup)
    for i, character in enumerate(plain.text):
        a, b = plain.span(i, i + 1)
        assert 0 <= a <= b <= len(source)
        if character not in " \n-&":
            assert source[a:b] == character


def test_markup_is_told_by_name_or_beginning():
    assert guess_markup("a.HTML", "x") == "html"
    assert guess_markup("a.md", "x") == "markdown"
    assert guess_markup("-", "  <!doctype html><p>x") == "html"
    assert guess_markup("a.txt", "x < y") == "text"
    with pytest.raises(ConfigError, match="unknown markup 'pdf'"):
        read_markup("x", "pdf")
