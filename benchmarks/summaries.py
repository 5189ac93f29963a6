"""ROUGE of extractive summarizers beside lead, sumy and summa, and Chinese beside lead.

    pip install sumy summa rouge-score
    python benchmarks/summaries.py [--set bbc|scitldr|csl] [--examples N] [--only SYSTEM]
    python benchmarks/summaries.py --articles

Every system gets the same sentences (ours), without headings, and returns as many: for the BBC
articles two fifths of them, which is what their summaries have on average; for abstracts one. The
weights of `features` are fitted on one part of each set, and all systems are compared on another.
Intervals are of 1,000 bootstrap samples of the test part; those of differences are paired.

`--articles` shows one sentence each of ten articles of the People's Daily: of those of 8 to 30
sentences, in the order of the file, the first of each tenth part.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from seqloom import Summarizer
from seqloom.data.datasets import open_dataset
from seqloom.data.datasets.store import dataset_file
from seqloom.extract import Reader, split_units
from seqloom.files import open_bytes
from seqloom.metrics.bootstrap import paired_bootstrap
from seqloom.metrics.rouge import MEASURES, rouge

Example = tuple[str, list[str]]
System = Callable[[str, list[str], int], list[int]]  # text, sentences, how many -> which
SHARE = 0.4
SEED = 7


def bbc() -> tuple[list[Example], list[Example]]:
    """Articles with their summaries, sentences a line; every second one of a fixed shuffle."""
    pairs = [
        (p.source, [spaced(p.target)])
        for p in open_dataset("bbc-news-summary", "all", variant="summary")
    ]
    random.Random(SEED).shuffle(pairs)
    return pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]


def spaced(summary: str) -> str:
    """Put the line ends back that the set lost between the sentences of a summary."""
    return re.sub(r"(?<=[a-z0-9)%][.!?])(?=[A-Z£$])|(?<=[.!?]\")(?=[A-Z£$])", "\n", summary)


def scitldr() -> tuple[list[Example], list[Example]]:
    """Abstracts, a sentence a line, with every summary there is."""
    parts = []
    for split in ("train", "test"):
        rows = open_dataset("scitldr-a", split, variant="rows")
        parts.append(
            [
                (" ".join(s.strip() for s in row.fields["source"]), list(row.fields["target"]))
                for row in rows
            ]
        )
    return parts[0], parts[1]


def csl() -> tuple[list[Example], list[Example]]:
    """Chinese abstracts and titles."""
    return tuple(
        [(p.source, [p.target]) for p in open_dataset("csl-ts-zh", split)]
        for split in ("valid", "test")
    )


SETS = {"bbc": bbc, "scitldr": scitldr, "csl": csl}


def sentences_of(text: str) -> list[str]:
    units, _ = split_units(text)
    plain = [u for u in units if not u.is_heading] or units
    return [text[u.start : u.end] for u in plain]


def ours(model: Summarizer) -> System:
    def choose(text: str, _: list[str], count: int) -> list[int]:
        return [s.index for s in model.summarize(text, sentences=count)]

    return choose


def oracle(references: dict[str, list[str]]) -> System:
    """The sentences that share most with the reference: what no system can know."""
    from seqloom.extract.learning import gains

    reader = Reader()

    def choose(text: str, _: list[str], count: int) -> list[int]:
        found = gains(reader.read(text), references[text])
        return sorted(np.argsort(-found, kind="stable")[:count].tolist())

    return choose


def peers() -> dict[str, System]:
    """The four of sumy, with stemming and stop words as its manual has it, and summa."""
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from summa import summarizer as summa
    from summa.preprocessing import textcleaner
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
    from sumy.nlp.stemmers import Stemmer
    from sumy.nlp.tokenizers import Tokenizer
    from sumy.summarizers.lex_rank import LexRankSummarizer
    from sumy.summarizers.lsa import LsaSummarizer
    from sumy.summarizers.luhn import LuhnSummarizer
    from sumy.summarizers.text_rank import TextRankSummarizer
    from sumy.utils import get_stop_words

    class Words:
        """sumy's own rule of what a word is, over nltk's words."""

        split = NLTKWordTokenizer().tokenize

        def to_words(self, text: str) -> tuple[str, ...]:
            return tuple(w for w in self.split(text) if Tokenizer._WORD_PATTERN.match(w))

    words = Words()

    def of_sumy(make: Any) -> System:
        model = make(Stemmer("english"))
        model.stop_words = get_stop_words("english")

        def choose(_: str, sentences: list[str], count: int) -> list[int]:
            made = [Sentence(s, words) for s in sentences]
            found = model(ObjectDocumentModel([Paragraph(made)]), count)
            places = {s: i for i, s in reversed(list(enumerate(made)))}
            return sorted(places[s] for s in found)

        return choose

    def of_summa(_: str, sentences: list[str], count: int) -> list[int]:
        kept = textcleaner.split_sentences
        textcleaner.split_sentences = lambda _: sentences
        try:
            scored = summa.summarize(" ".join(sentences), ratio=1.0, scores=True)
        finally:
            textcleaner.split_sentences = kept
        score = dict(scored)
        ranked = sorted(range(len(sentences)), key=lambda i: -score.get(sentences[i], 0.0))
        return sorted(ranked[:count])

    return {
        "sumy TextRank": of_sumy(TextRankSummarizer),
        "sumy LexRank": of_sumy(LexRankSummarizer),
        "sumy LSA": of_sumy(LsaSummarizer),
        "sumy Luhn": of_sumy(LuhnSummarizer),
        "summa": of_summa,
    }


def systems(name: str, train: list[Example], test: list[Example]) -> dict[str, System]:
    found: dict[str, System] = {
        "lead": ours(Summarizer("lead")),
        "tfidf": ours(Summarizer("tfidf")),
        "tfidf, summed": ours(Summarizer("tfidf", length_power=0.0)),
        "textrank": ours(Summarizer("textrank")),
        "textrank, unweighted": ours(Summarizer("textrank", weighted=False)),
        "lexrank": ours(Summarizer("lexrank")),
        "lexrank, continuous": ours(Summarizer("lexrank", threshold=None)),
        "features": ours(Summarizer("features")),
    }
    began = time.monotonic()
    fitted = Summarizer("features").fit(train)
    print(f"features fitted on {len(train)} examples in {time.monotonic() - began:.1f} s: ", end="")
    print(", ".join(f"{k} {v:.3f}" for k, v in fitted.model_.weights.items()))
    found["features, fitted"] = ours(fitted)
    if name != "csl":
        found |= peers()
    found["(oracle)"] = oracle(dict(test))
    return found


def measure(name: str, number: int, only: list[str]) -> None:
    train, test = SETS[name]()
    test = test[:number]
    language = "zh" if name == "csl" else "en"
    rows: dict[str, dict[str, list[float]]] = {}
    for system, choose in systems(name, train, test).items():
        if only and system not in only:
            continue
        values: dict[str, list[float]] = {measure: [] for measure in MEASURES}
        for text, references in test:
            sentences = sentences_of(text)
            count = max(1, math.ceil(SHARE * len(sentences))) if name == "bbc" else 1
            chosen = choose(text, sentences, min(count, len(sentences)))
            scores = rouge([sentences[i] for i in chosen], references, language=language)
            for key, value in scores.items():
                values[key].append(value.f1)
        rows[system] = values
    report(name, rows, len(test))


def report(name: str, rows: dict[str, dict[str, list[float]]], count: int) -> None:
    print(f"\n{name}, {count} examples, ROUGE F1 x 100 (95% interval)\n")
    print(
        "| system | ROUGE-1 | ROUGE-2 | ROUGE-L sentence | ROUGE-L summary |\n|---|---|---|---|---|"
    )
    for system, values in rows.items():
        cells = [interval(values[measure]) for measure in MEASURES]
        print(f"| {system} | {' | '.join(cells)} |")
    outside = [s for s in rows if s.startswith("sum")]
    fitted = [s for s in rows if s == "features, fitted"]
    unfitted = [s for s in rows if s not in outside and s not in ("features, fitted", "(oracle)")]
    print("\n| difference | ROUGE-1 | ROUGE-2 | ROUGE-L sentence | ROUGE-L summary |")
    print("|---|---|---|---|---|")
    for title, first, second in (
        ("our best unfitted, less the best peer", unfitted, outside),
        ("features fitted, less the best peer", fitted, outside),
        ("features fitted, less our best unfitted", fitted, unfitted),
    ):
        if set(first) & set(rows) and set(second) & set(rows):
            print(f"| {title} | {' | '.join(difference(rows, first, second))} |")


def best(rows: dict[str, dict[str, list[float]]], names: Sequence[str], measure: str) -> str:
    return max(names, key=lambda n: np.mean(rows[n][measure]))


def difference(rows: Any, first: Sequence[str], second: Sequence[str]) -> list[str]:
    cells = []
    for measure in MEASURES:
        a, b = best(rows, first, measure), best(rows, second, measure)
        x, y = np.array(rows[a][measure]), np.array(rows[b][measure])
        low, high = paired_bootstrap(x, y, np.ones(len(x)))
        cells.append(
            f"{100 * (x - y).mean():+.1f} [{100 * low:+.1f}, {100 * high:+.1f}] ({a}; {b})"
        )
    return cells


def interval(values: list[float]) -> str:
    array = np.array(values)
    low, high = paired_bootstrap(array, np.zeros(len(array)), np.ones(len(array)))
    return f"{100 * array.mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def newspaper() -> list[str]:
    """The articles of the People's Daily as they were typed, paragraphs a line, title first."""
    found: list[list[str]] = [[]]
    with open_bytes(dataset_file("pd199801", "199801.txt")) as stream:
        for line in stream.read().decode().split("\n"):
            words = [re.sub(r"\]\S*$", "", word.lstrip("[")) for word in line.split()]
            if words:
                found[-1].append("".join(word.rpartition("/")[0] for word in words))
            elif found[-1]:
                found.append([])
    return ["\n".join(lines) for lines in found if lines]


def show_articles(count: int = 10) -> None:
    model = Summarizer("textrank")
    kept = [text for text in newspaper() if 8 <= len(sentences_of(text)) <= 30]
    print(f"{len(kept)} articles of 8 to 30 sentences\n\n| title | sentence | of |\n|---|---|---|")
    for text in [kept[i * len(kept) // count] for i in range(count)]:
        summary = model.summarize(text, sentences=1)
        title = text.partition("\n")[0][:40]
        print(f"| {title} | {summary.text} | {summary[0].index + 1} of {summary.total} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--set", choices=SETS, default="bbc")
    parser.add_argument("--examples", type=int, default=400)
    parser.add_argument("--only", action="append", default=[], help="a system; again for another")
    parser.add_argument("--articles", action="store_true")
    arguments = parser.parse_args()
    if arguments.articles:
        show_articles()
        return
    measure(arguments.set, arguments.examples, arguments.only)


if __name__ == "__main__":
    main()
