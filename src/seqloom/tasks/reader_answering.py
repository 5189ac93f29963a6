"""Answers in use: windows of long passages, several passages, attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from seqloom.errors import InputError
from seqloom.models.reader_parts import SpanOutput
from seqloom.tasks.reader_data import encode_texts, encode_windows, reader_input
from seqloom.tasks.reader_ranking import best_windows
from seqloom.tasks.reader_results import AttentionMap, FoundAnswer
from seqloom.tasks.reader_spans import SPANS, as_answer, find_spans, joined, merge_windows
from seqloom.tasks.reader_text import Words
from seqloom.tasks.reader_windows import cut_passage

if TYPE_CHECKING:
    from seqloom.tasks.reader import Reader


def passages_and_questions(asked: Any) -> list[tuple[list[str], str]]:
    """Return what is asked as (passages, question) each.

    Raises:
        InputError: If something is no question with its passages.
    """
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
    places: dict[str, int] = {}
    passages: list[Words] = []
    questions, pairs, owners, own = [], [], [], []
    for number, (texts, question) in enumerate(asked):
        if not texts:
            raise InputError(f"question {number + 1} must come with a passage, got none")
        questions.append(_words(reader, question, f"question {number + 1}").words)
        for place, text in enumerate(texts):
            if not isinstance(text, str) or text not in places:
                places[text] = len(passages)
                passages.append(_words(reader, text, f"passage {place + 1}"))
            pairs.append((places[text], number))
            owners.append(number)
            own.append(place)
    texts_read = [each.words for each in passages]
    encoded = encode_texts(texts_read, questions, reader.words_)
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
    data, pair_of = encode_windows(encoded, pairs, cuts)
    owner_of = np.array(owners)[pair_of]
    kept, shared = best_windows(data, owner_of, reader.max_windows)
    data, pair_of, owner_of = data.part(kept), pair_of[kept], owner_of[kept]
    spans_each = max(SPANS, 2 * top)
    found = find_spans(reader.model_, data, reader.max_words, spans_each)
    found = found.favor(reader.ranking * shared)
    edges = np.searchsorted(owner_of, np.arange(len(asked) + 1))
    answers = []
    for number, (texts, _) in enumerate(asked):
        rows = np.arange(edges[number], edges[number + 1])
        given: dict[int, int] = {}
        for row in rows.tolist():
            given.setdefault(int(data.which[row]), own[pair_of[row]])
        said = []
        for one in merge_windows(data, found, rows, spans_each):
            place = given[one.passage]
            said.append(as_answer(one, passages[one.passage].spans, texts[place], place))
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
    found = reader.splitter_(text)
    if not found.words:
        raise InputError(f"{name} must have at least one word, got {text[:40]!r}")
    return found
