"""`seqloom demo`: what there is, on the texts that come with the package."""

from __future__ import annotations

from collections import Counter
from typing import Any

from seqloom.cli.output import JsonOption, note, print_rows


def run(as_json: JsonOption = False) -> None:
    """Detect, split, tokenize and count the embedded English and Chinese texts."""
    from seqloom.resources import TEXTS, read_embedded

    found = {language: describe(read_embedded(name)) for language, name in TEXTS.items()}
    rows = [
        {"what": what, **{language: facts[what] for language, facts in found.items()}}
        for what in found["en"]
    ]
    print_rows(rows, as_json=as_json, title="The Universal Declaration of Human Rights")
    if not as_json:
        note("next: seqloom list, seqloom data list, seqloom prepare --help")


def describe(text: str) -> dict[str, Any]:
    """Return what reading a text finds in it."""
    from seqloom.text import Vocabulary, WordTokenizer, detect_language
    from seqloom.text import split_sentences as split

    language = detect_language(text)
    sentences = [sentence for line in text.splitlines() for sentence in split(line, language)]
    tokenizer = WordTokenizer("zh" if language == "zh" else "en")
    tokenized = [tokenizer.words(sentence.text) for sentence in sentences]
    vocabulary = Vocabulary.build(tokenized)
    counts = Counter(word for words in tokenized for word in words if len(word) > 1)
    return {
        "detected language": language,
        "characters": len(text),
        "sentences": len(sentences),
        "words": sum(map(len, tokenized)),
        "different words": len(vocabulary) - len(vocabulary.specials.names()),
        "longest sentence": max(map(len, tokenized)),
        "most frequent": [f"{word} {n}" for word, n in counts.most_common(6)],
    }
