"""Passages and questions as numbers: windows of passages, batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.data.batches import Batch, Padded
from seqloom.data.ragged import Ragged
from seqloom.models.reader_parts import ReaderInput
from seqloom.tasks.reader_text import ReadQuestions
from seqloom.tasks.reader_words import ReaderVocabulary, WordTable


class EncodedTexts(NamedTuple):
    """Passages and questions as numbers.

    Args:
        passages: The words of each passage, by their places in `words`.
        questions: The words of each question.
        words: The ids of the different words.
        forms: Numbers of the different words in lower case.
        roots: Numbers of what they begin with, the same for most forms of a word.
        rarities: How rare they are, from 0 to 1.
        spellings: Their characters (W, C) and how many, if they are read.
        context: What there is of the context of the words of passages and of questions, if it is
            read.
    """

    passages: Ragged
    questions: Ragged
    words: NDArray[np.int32]
    forms: NDArray[np.int32]
    roots: NDArray[np.int32]
    rarities: NDArray[np.float64]
    spellings: tuple[NDArray[np.int32], NDArray[np.int64]] | None
    context: tuple[Ragged, Ragged] | None = None


@dataclass(frozen=True, eq=False)
class PassageQuestions:
    """Questions with a stretch of a passage each, as a reader reads them.

    Args:
        texts: The passages and the questions.
        which: The passage of each example.
        asked: The question of each example.
        first: The first word of the passage that an example reads.
        sizes: How many words it reads.
        spans: The first and last word (N, 2) of the answers, counted from `first`.
    """

    texts: EncodedTexts
    which: NDArray[np.int64]
    asked: NDArray[np.int64]
    first: NDArray[np.int64]
    sizes: NDArray[np.int64]
    spans: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.which)

    def lengths(self, index: ArrayLike) -> NDArray[np.int64]:
        """(B, 2), the words of passages and of questions at these places."""
        places = np.asarray(index, np.int64)
        questions = self.texts.questions.lengths(self.asked[places])
        return np.stack([self.sizes[places], questions], axis=1)

    def part(self, rows: NDArray[np.int64]) -> PassageQuestions:
        """The examples at these places, without answers."""
        picked = (column[rows] for column in (self.which, self.asked, self.first, self.sizes))
        return PassageQuestions(self.texts, *picked)

    def batch(self, index: NDArray[np.int64]) -> Batch:
        """Return the examples at these places as one padded batch."""
        passages, questions = self.texts.passages, self.texts.questions
        words, forms, spellings = self.texts.words, self.texts.forms, self.texts.spellings
        context = self.texts.context
        asked, question_lengths = questions.pad(self.asked[index], fill=-1)
        lengths = self.sizes[index]
        begins = passages.offsets[self.which[index]] + self.first[index]
        passage = _stretches(passages, begins, lengths, -1)
        used, places = _distinct(np.concatenate([passage.ravel(), asked.ravel()]), len(words))
        values: dict[str, NDArray[Any]] = {"words": words[used], "forms": forms[used]}
        if spellings is not None:
            counts = spellings[1][used]
            values["spellings"] = spellings[0][used][:, : int(counts.max())]
            values["spelling_lengths"] = counts
        if self.spans is not None:
            values["spans"] = self.spans[index]
        sequences = {
            "passage": Padded(places[: passage.size].reshape(passage.shape), lengths),
            "question": Padded(places[passage.size :].reshape(asked.shape), question_lengths),
        }
        if context is not None:
            stretches = _stretches(context[0], begins, lengths, 0)
            sequences["passage_context"] = Padded(stretches, lengths)
            sequences["question_context"] = Padded(*context[1].pad(self.asked[index]))
        return Batch(index, sequences, values)


def _stretches(
    texts: Ragged, begins: NDArray[np.int64], lengths: NDArray[np.int64], fill: int
) -> NDArray[Any]:
    """Stretches of what lies end to end, padded."""
    shape = (len(begins), int(lengths.max()), *texts.flat.shape[1:])
    found = np.full(shape, fill, texts.flat.dtype)
    for row, begin, length in zip(found, begins, lengths, strict=True):
        row[:length] = texts.flat[begin : begin + length]
    return found


def _distinct(items: NDArray[np.int32], count: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The different items, and the place of each among them; -1 is padding and gets place 0."""
    seen = np.zeros(count + 1, bool)  # the last is padding
    seen[items] = True
    used = np.flatnonzero(seen[:-1])
    places = np.zeros(count + 1, np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    return used, places[items]


def reader_input(batch: Batch) -> ReaderInput:
    """Return a batch of tensors as a model takes it."""
    passage, question = batch["passage"], batch["question"]
    context = [
        batch[name].values if name in batch.sequences else None
        for name in ("passage_context", "question_context")
    ]
    return ReaderInput(
        passage.values,
        passage.lengths,
        question.values,
        question.lengths,
        batch.values["words"],
        batch.values.get("spellings"),
        batch.values.get("spelling_lengths"),
        batch.values["forms"],
        *context,
    )


def encode_training(
    data: ReadQuestions, known: ReaderVocabulary, max_length: int
) -> tuple[PassageQuestions, int]:
    """Return training questions as numbers, and how many were left out.

    Of a passage longer than `max_length` words the stretch around the answer is read. Questions
    without an answer that words can be found for are left out.

    Args:
        data: The questions as words.
        known: What the reader knows of words.
        max_length: Words of a passage that are read.
    """
    texts = encode_texts(data.passages_words(), data.questions, known)
    spans = np.array(data.spans, np.int64).reshape(-1, 2)
    max_length = min(max_length, int(texts.passages.lengths().max()))
    kept = np.flatnonzero((spans[:, 0] >= 0) & (spans[:, 1] - spans[:, 0] < max_length))
    which, spans = np.array(data.which, np.int64)[kept], spans[kept]
    sizes = texts.passages.lengths(which)
    middle = (spans.sum(axis=1) + 1 - max_length) // 2  # a span's last word is in it
    first = np.where(sizes > max_length, np.clip(middle, 0, sizes - max_length), 0)
    sizes = np.minimum(sizes, max_length)
    found = PassageQuestions(texts, which, kept, first, sizes, spans - first[:, None])
    return found, len(data) - len(kept)


def encode_windows(
    texts: EncodedTexts,
    pairs: Sequence[tuple[int, int]],
    cuts: Sequence[Sequence[tuple[int, int]]] | None = None,
) -> tuple[PassageQuestions, NDArray[np.int64]]:
    """Return pairs of a passage and a question, long passages as windows.

    Args:
        texts: The passages and the questions.
        pairs: (passage, question) of each pair.
        cuts: The windows of each passage, as `cut_passage` gives them; None reads all whole.

    Returns:
        The windows, and the pair that each belongs to.
    """
    if cuts is None:
        cuts = [[(0, length)] for length in texts.passages.lengths().tolist()]
    rows = [
        (passage, question, begin, end - begin, number)
        for number, (passage, question) in enumerate(pairs)
        for begin, end in cuts[passage]
    ]
    which, asked, first, sizes, owners = np.array(rows, np.int64).reshape(-1, 5).T
    return PassageQuestions(texts, which, asked, first, sizes), owners


def encode_texts(
    passages: Sequence[Sequence[str]], questions: Sequence[Sequence[str]], known: ReaderVocabulary
) -> EncodedTexts:
    """Return passages and questions as numbers; each different word is looked up once."""
    table = WordTable(known)
    context = None
    if known.context is not None:
        context = known.context(passages), known.context(questions)
    return EncodedTexts(
        Ragged.of([table.number(words) for words in passages], np.int32),
        Ragged.of([table.number(words) for words in questions], np.int32),
        table.ids(),
        table.forms(),
        table.roots(),
        table.rarities(),
        table.spellings(),
        context,
    )
