"""Answers in use: windows of long passages, several passages, attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.errors import InputError
from seqloom.models.reader_parts import SpanOutput
from seqloom.tasks.reader_data import (
    PassageQuestions,
    encode_texts,
    encode_windows,
    reader_input,
)
from seqloom.tasks.reader_ranking import (
    WindowFeatures,
    best_windows,
    read_ranking,
    unread_features,
)
from seqloom.tasks.reader_results import AttentionMap, FoundAnswer
from seqloom.tasks.reader_spans import (
    SPANS,
    FoundSpans,
    as_answer,
    find_spans,
    joined,
    merge_windows,
)
from seqloom.tasks.reader_text import Words, words_of
from seqloom.tasks.reader_windows import cut_passage

if TYPE_CHECKING:
    from seqloom.tasks.reader import Reader


def passages_and_questions(asked: Any) -> list[tuple[list[str], str]]:
    """Return what is asked as (passages, question) each.

    Raises:
        InputError: If something is no question with its passages.
    """
    if not isinstance(asked, Iterable):
        raise InputError(f"what is asked must be a list of pairs, got {asked!r}")
    found = []
    for number, each in enumerate(asked):
        if not isinstance(each, Sequence) or isinstance(each, str) or len(each) != 2:
            raise InputError(
                f"question {number + 1} must be a pair (passage or passages, question), got "
                f"{each!r}"
            )
        passages, question = each
        if not isinstance(passages, str) and not isinstance(passages, Iterable):
            raise InputError(
                f"question {number + 1} must come with a passage or several, got {passages!r}"
            )
        found.append(([passages] if isinstance(passages, str) else list(passages), question))
    return found


class ReadWindows(NamedTuple):
    """The windows that were read for some questions, those of one question side by side.

    Args:
        data: The windows.
        found: The best spans of each.
        features: What the windows of one question are told apart by.
        edges: Where the windows of each question begin, and the end of all.
        given: Which of the passages of its question each is from.
        passages: The words of the different passages.
    """

    data: PassageQuestions
    found: FoundSpans
    features: WindowFeatures
    edges: NDArray[np.int64]
    given: NDArray[np.int64]
    passages: list[Words]

    def rows(self, question: int) -> NDArray[np.int64]:
        """The windows of a question."""
        return np.arange(self.edges[question], self.edges[question + 1])


def read_windows(
    reader: Reader, asked: Sequence[tuple[Sequence[str], str]], *, window: int, spans: int
) -> ReadWindows:
    """Read the windows that are most probable to have the answer to each question.

    A passage that comes twice with one question is read once, and is the first of them.

    Args:
        reader: The reader.
        asked: (passages, question) each.
        window: The most words of a window.
        spans: How many spans of each are looked for.
    """
    places: dict[str, int] = {}
    passages: list[Words] = []
    questions = []
    pairs: dict[tuple[int, int], int] = {}  # (passage, question): its place among those given
    for number, (texts, question) in enumerate(asked):
        if not texts:
            raise InputError(f"question {number + 1} must come with a passage, got none")
        questions.append(_words(reader, question, f"question {number + 1}").words)
        for place, text in enumerate(texts):
            if not isinstance(text, str) or text not in places:
                places[text] = len(passages)
                passages.append(_words(reader, text, f"passage {place + 1}"))
            pairs.setdefault((places[text], number), place)
    encoded = encode_texts([each.words for each in passages], questions, reader.words_)
    cuts = [
        cut_passage(
            text,
            each.spans,
            window=window,
            piece=reader.piece,
            overlap=reader.overlap,
            language=reader.splitter_.pipeline.config.language,
        )
        for text, each in zip(places, passages, strict=True)
    ]
    data, pair_of = encode_windows(encoded, list(pairs), cuts)
    owners = np.array([question for _, question in pairs])[pair_of]
    vectors, unknown = reader.model_.input.embedding.weight, reader.words_.unknown
    features = unread_features(data, owners, vectors, unknown)
    kept = best_windows(features.scores(read_ranking(reader.ranking)), owners, reader.max_windows)
    data = data.part(kept)
    found = find_spans(reader.model_, data, reader.max_words, spans)
    return ReadWindows(
        data,
        found,
        features.part(kept)._replace(reading=found.norms),
        np.searchsorted(owners[kept], np.arange(len(asked) + 1)),
        np.array([*pairs.values()])[pair_of[kept]],
        passages,
    )


def answer_questions(
    reader: Reader,
    asked: Sequence[tuple[Sequence[str], str]],
    *,
    top: int,
    threshold: float,
    window: int,
) -> list[list[FoundAnswer]]:
    """Return the best answers to each question.

    Args:
        reader: The reader.
        asked: (passages, question) each.
        top: How many answers.
        threshold: The least probability of one.
        window: The most words of a window.
    """
    if not asked:
        return []
    ranking, spans_each = read_ranking(reader.ranking), max(SPANS, 2 * top)
    read = read_windows(reader, asked, window=window, spans=spans_each)
    favor = np.zeros(len(read.data))  # ln P(w) - ln Z_w, but for a constant of the question
    for number in range(len(asked)):
        rows = read.rows(number)
        if len(rows) > 1:
            favor[rows] = read.features.part(rows).scores(ranking) - read.found.norms[rows]
    found = read.found.favor(favor)
    answers = []
    for number, (texts, _) in enumerate(asked):
        rows = read.rows(number)
        given: dict[int, int] = {}
        for row in rows.tolist():
            given.setdefault(int(read.data.which[row]), int(read.given[row]))
        said = []
        for one in merge_windows(read.data, found, rows, spans_each):
            place = given[one.passage]
            said.append(as_answer(one, read.passages[one.passage].spans, texts[place], place))
        best = [each for each in joined(said, reader.rules)[:top] if each.probability >= threshold]
        answers.append(best or [FoundAnswer("", 0, 0, 0.0)])
    return answers


def look(reader: Reader, passage: str, question: str) -> AttentionMap:
    """Return which words of a question each word of a passage looked at."""
    read, asked = _words(reader, passage, "passage"), _words(reader, question, "question")
    data, _ = encode_windows(encode_texts([read.words], [asked.words], reader.words_), [(0, 0)])
    batch = data.batch(np.zeros(1, np.int64)).tensors(next(reader.model_.parameters()).device)
    with torch.no_grad():
        output: SpanOutput = reader.model_(reader_input(batch))
    weights = output.attention[0].double().cpu().numpy()
    return AttentionMap(tuple(read.words), tuple(asked.words), weights)


def _words(reader: Reader, text: str, name: str) -> Words:
    if not isinstance(text, str):
        raise InputError(f"{name} must be a text, got {type(text).__name__}")
    return words_of(text, reader.splitter_, name)
