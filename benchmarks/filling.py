"""Which way to fill a blank works: words of held-out text taken out and looked for.

    python benchmarks/filling.py --sentences 300
    python benchmarks/filling.py --train pd199801:train:text --valid pd199801:valid:text --notes

Models are fitted (n-grams of order 4, one from the left and one from the right) or given.
"""

from __future__ import annotations

import argparse
from itertools import islice

import numpy as np

from seqloom import LanguageModel, load
from seqloom.data.inputs import read_input
from seqloom.tasks.filling import sentence_scores, unigram
from seqloom.tasks.generation import next_log_probs

CANDIDATES, FLOOR = 200, np.log(1e-4)


def blanks(model, texts, count):
    """Sentences with a known word taken out: left, word, right, as ids."""
    chance = np.random.default_rng(0)
    for text in texts:
        words = text.split()
        if len(words) < 5:
            continue
        place = int(chance.integers(len(words)))
        if words[place] not in model.vocabulary_ or words[place].startswith("<"):
            continue
        ids = model.vocabulary_.encode(words)
        yield ids[:place], int(ids[place]), ids[place + 1 :]
        count -= 1
        if not count:
            return


def ways(left, right, before, after):
    """By name, the words tried and their scores."""
    end = left.reader.end
    plain = np.arange(len(left.vocabulary_.specials.names()), len(left.vocabulary_))
    ours = next_log_probs(left.engine_, before, end)
    theirs = next_log_probs(right.engine_, after[::-1], end)
    product = ours + theirs - unigram(left)
    by_left = plain[np.argsort(-ours[plain])[:CANDIDATES]]
    by_both = plain[np.argsort(-product[plain])[:CANDIDATES]]
    mean = sentence_scores(left, right, before, after, by_both)
    return {
        "p(w given the left)": (plain, ours[plain]),
        "p(w given the right)": (plain, theirs[plain]),
        "product of both, divided by p(w)": (plain, product[plain]),
        "sentence, by the left model": (
            by_left,
            sentence_scores(left, None, before, after, by_left),
        ),
        "sentence, mean of both models": (by_both, mean),
        "sentence, sum of both models": (by_both, 2 * mean),
    }


def judged(ids, scores, word):
    """Whether the word came first, among five, 1 / its rank, and its log-probability."""
    place = np.flatnonzero(ids == word)
    if not len(place):
        return 0.0, 0.0, 0.0, FLOOR
    own = scores[place[0]]
    rank = int((scores > own).sum()) + 1
    log_prob = own - np.logaddexp.reduce(scores)
    return float(rank == 1), float(rank <= 5), 1 / rank, max(log_prob, FLOOR)


BEGIN = "我 高考 考 了 700 分 ， 我 想 上 ___ 学习"
NOTES = (
    f"{BEGIN} 。",
    f"{BEGIN} ， 我 喜欢 天津 这 座 城市 。",
    f"{BEGIN} ， 我 喜欢 天津 这 座 城市 ， 我 想 学 文科 。",
)


def main():
    """Fit both models and print a row a way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", default="ptb:train")
    parser.add_argument("--valid", default="ptb:valid")
    parser.add_argument("--left", help="a model directory")
    parser.add_argument("--right", help="a model directory, of a model that reads backwards")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--lines", type=int, default=8000, help="of the training text")
    parser.add_argument("--size", type=int, default=4000, help="of the vocabulary")
    parser.add_argument("--notes", action="store_true", help="fill three Chinese sentences too")
    options = parser.parse_args()
    texts = [example.text for example in islice(read_input(options.valid, "text"), 2000)]
    if options.left:
        left, right = load(options.left), load(options.right)
    else:
        lines = islice(read_input(options.train, "text"), options.lines)
        train = [example.text for example in lines]
        vocabulary = {"max_size": options.size}
        settings = {"order": 4, "text": {"unit": "space"}, "vocabulary": vocabulary}
        left = LanguageModel("ngram", **settings).fit(train)
        right = LanguageModel("ngram", reverse=True, **settings).fit(train)
    results: dict[str, list[tuple[float, ...]]] = {}
    for before, word, after in blanks(left, texts, options.sentences):
        for name, (ids, scores) in ways(left, right, before, after).items():
            results.setdefault(name, []).append(judged(ids, scores, word))
    print("| by | right | among 5 | mean 1 / rank | mean log p |\n|---|---|---|---|---|")
    for name, rows in results.items():
        first, five, rank, log_prob = np.mean(rows, axis=0)
        print(f"| {name} | {first:.3f} | {five:.3f} | {rank:.3f} | {log_prob:.2f} |")
    for text in NOTES if options.notes else ():
        for who, other in (("left alone", None), ("both", right)):
            found = left.fill(text, k=8, right=other)
            print(
                text.replace(" ", ""),
                who,
                ", ".join(f"{f.word} {f.probability:.2f}" for f in found),
            )


if __name__ == "__main__":
    main()
