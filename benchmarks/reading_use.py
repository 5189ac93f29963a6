"""Readers in use: how fast they answer, long documents, and the sliding-window baseline."""

from __future__ import annotations

import random
import resource
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from math import log
from typing import Any

PASSAGE_WORDS = 150
DOCUMENT_WORDS = 20_000
WINDOWS = (300, 400, 600)
DEV_PASSAGES = 2067


def measure_cpu(place: str, count: int) -> None:
    """Print the median latency of one answer about 150 words, and the throughput of many."""
    from seqloom import Reader

    reader = Reader.load(place)
    asked = []
    for each in _dev(reader):
        words = reader.splitter_(each.passage).spans
        if len(words) >= PASSAGE_WORDS:
            asked.append((each.passage[: words[PASSAGE_WORDS - 1][1]], each.question))
        if len(asked) == count:
            break
    for passage, question in asked[:5]:
        reader.answer(passage, question)
    times = []
    for passage, question in asked[:200]:
        began = time.perf_counter()
        reader.answer(passage, question)
        times.append(1000 * (time.perf_counter() - began))
    print(
        f"{PASSAGE_WORDS} words: median {statistics.median(times):.1f} ms, "
        f"90% within {statistics.quantiles(times, n=10)[-1]:.1f} ms"
    )
    began = time.perf_counter()
    reader.answer_all(asked)
    seconds = time.perf_counter() - began
    print(f"{len(asked)} at once: {len(asked) / seconds:.1f} questions a second")


def measure_long(place: str, count: int, *, kind: str, held_out: bool) -> None:
    """Print exact match alone and in long documents, for windows of several sizes.

    Args:
        place: The model.
        count: How many questions.
        kind: What the documents are: "mixed" has 20,000 words of passages in any order, "flat" the
            same without ends of paragraphs, "foreign" has no other passage of the question's
            article, "article" is the passages of that article.
        held_out: Whether questions are of the training articles that training held out, on which
            settings are chosen; else they are of dev.
    """
    from seqloom import Reader
    from seqloom.metrics.reading import score_answers

    reader = Reader.load(place)
    asked, others = questions_around(reader, held_out=held_out)
    chosen = random.Random(0).sample(asked, min(count, len(asked)))
    gold = {each.id: [answer.text for answer in each.answers] for each in chosen}
    alone = {
        each.id: found[0].text
        for each, found in zip(
            chosen,
            reader.answer_all([(each.passage, each.question) for each in chosen]),
            strict=True,
        )
    }
    first = score_answers(alone, gold, reader.rules)
    print(f"alone: EM {first['exact']:.1f}, F1 {first['f1']:.1f}", flush=True)
    for window in WINDOWS:
        found, inside, seconds = {}, 0, 0.0
        for each, document in documents(chosen, asked, others, kind):
            began = time.process_time()
            answer = reader.answer(document, each.question, window=window)
            seconds += time.process_time() - began
            assert document[answer.start : answer.end] == answer.text
            found[each.id] = answer.text
            place_of = document.index(each.passage)
            inside += place_of <= answer.start and answer.end <= place_of + len(each.passage)
        scores = score_answers(found, gold, reader.rules)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"windows of {window}: EM {scores['exact']:.1f}, F1 {scores['f1']:.1f}, "
            f"in the right passage {100 * inside / len(chosen):.1f}%, "
            f"{seconds / len(chosen):.2f} s of a processor a question, peak {peak:.0f} MB",
            flush=True,
        )


def documents(
    chosen: list[Any], asked: list[Any], others: list[str], kind: str = "mixed"
) -> Iterator[tuple[Any, str]]:
    """Questions with a document each in which their passage is hidden; see `measure_long`."""
    sizes = {text: len(text.split()) for text in others}
    for number, each in enumerate(chosen):
        draw = random.Random(number)
        around, words = [each.passage], sizes[each.passage]
        article = [*dict.fromkeys(q.passage for q in asked if q.title == each.title)]
        if kind == "article":
            around, words = article, DOCUMENT_WORDS
        left_out = {*article} if kind == "foreign" else set()
        while words < DOCUMENT_WORDS:
            other = draw.choice(others)
            if other not in around and other not in left_out:
                around.append(other)
                words += sizes[other]
        if kind != "article":
            draw.shuffle(around)
        yield each, (" " if kind == "flat" else "\n\n").join(around)


def questions_around(reader: Any, *, held_out: bool) -> tuple[list[Any], list[str]]:
    """Questions, and the passages that stand around theirs."""
    from seqloom.tasks.reader_text import open_questions
    from seqloom.tasks.reader_training import article
    from seqloom.tasks.reader_training import held_out as articles

    if not held_out:
        asked = list(_dev(reader))
        return asked, [*dict.fromkeys(each.passage for each in asked)]
    whole = list(open_questions("squad-v1.1:train"))
    chosen = articles(whole, reader.valid_share, 0)
    asked = [each for each in whole if article(each) in chosen]
    others = dict.fromkeys(each.passage for each in asked)
    rest: dict[str, dict[str, None]] = {}
    for each in whole:
        if article(each) not in chosen:
            rest.setdefault(article(each), {})[each.passage] = None
    names = random.Random(7).sample(sorted(rest), len(rest))
    for name in names:  # as many as dev has, so that as many are of the question's article
        if len(others) >= DEV_PASSAGES:
            break
        others.update(rest[name])
    return asked, [*others]


def _dev(reader: Any) -> Any:
    from seqloom.tasks.reader_text import open_questions

    name = "cmrc2018:valid" if reader.rules == "cmrc" else "squad-v1.1:valid"
    return open_questions(name)


def measure_baseline(count: int | None = None) -> None:
    """Print what a sliding window over the passage reaches, in both languages.

    Of each run of words as long as the question, the inverse counts of the words it shares with the
    question are summed (Richardson et al. 2013, as Rajpurkar et al. 2016, section 5.1, use it).
    The answer is the best stretch of up to 4 words (10 characters) that has no word of the question
    and lies in the best run's sentence-wide surroundings.
    """
    from seqloom.metrics.reading import score_answers
    from seqloom.tasks.reader_text import WordSplitter, open_questions
    from seqloom.text import TextConfig, TextPipeline

    settings = (
        ("squad-v1.1:valid", TextConfig(language="en"), "squad", 4),
        ("cmrc2018:valid", TextConfig(unit="character"), "cmrc", 10),
    )
    for name, text, rules, longest in settings:
        splitter = WordSplitter(TextPipeline(text))
        found, gold = {}, {}
        for each in islice(open_questions(name), count):
            found[each.id] = sliding_window(each.passage, each.question, splitter, longest)
            gold[each.id] = [answer.text for answer in each.answers]
        scores = score_answers(found, gold, rules)
        print(f"sliding window on {name}: EM {scores['exact']:.1f}, F1 {scores['f1']:.1f}")


def sliding_window(passage: str, question: str, splitter: Any, longest: int) -> str:
    """Answer by the words that surround a candidate and occur in the question."""
    read = splitter(passage)
    words = [word.lower() for word in read.words]
    asked = {word.lower() for word in splitter(question).words}
    counts = Counter(words)
    worth = [log(1 + 1 / counts[word]) if word in asked else 0.0 for word in words]
    reach = max(4, len(asked))
    sums = [0.0]
    for each in worth:
        sums.append(sums[-1] + each)
    best, answer = -1.0, (0, 0)
    for begin in range(len(words)):
        for end in range(begin, min(len(words), begin + longest)):
            if words[end] in asked or not any(map(str.isalnum, words[end])):
                break
            low, high = max(0, begin - reach), min(len(words), end + 1 + reach)
            score = sums[high] - sums[low] + 1e-3 * (end - begin)
            if score > best:
                best, answer = score, (begin, end)
    return passage[read.spans[answer[0]][0] : read.spans[answer[1]][1]]
