"""Readers in use: how fast they answer, long documents, and the sliding-window baseline."""

from __future__ import annotations

import random
import resource
import statistics
import time
from collections import Counter
from itertools import islice
from math import log
from typing import Any

PASSAGE_WORDS = 150
DOCUMENT_WORDS = 20_000
WINDOWS = (300, 400, 600)


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


def measure_long(place: str, count: int) -> None:
    """Print exact match alone and hidden among other passages, for windows of several sizes."""
    from seqloom import Reader
    from seqloom.metrics.reading import score_answers

    reader = Reader.load(place)
    dev = list(_dev(reader))
    others = [*dict.fromkeys(each.passage for each in dev)]
    sizes = {text: len(text.split()) for text in others}
    chosen = random.Random(0).sample(dev, min(count, len(dev)))
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
        began, found = time.perf_counter(), {}
        for number, each in enumerate(chosen):
            draw = random.Random(number)
            around, words = [each.passage], sizes[each.passage]
            while words < DOCUMENT_WORDS:
                other = draw.choice(others)
                if other not in around:
                    around.append(other)
                    words += sizes[other]
            draw.shuffle(around)
            document = "\n\n".join(around)
            answer = reader.answer(document, each.question, window=window)
            assert document[answer.start : answer.end] == answer.text
            found[each.id] = answer.text
        scores = score_answers(found, gold, reader.rules)
        seconds = (time.perf_counter() - began) / len(chosen)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"windows of {window}: EM {scores['exact']:.1f}, F1 {scores['f1']:.1f}, "
            f"{seconds:.2f} s a question, peak {peak:.0f} MB",
            flush=True,
        )


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
