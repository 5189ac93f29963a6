"""Passages and questions as words, and answers as spans of them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seqloom.data.examples import Answer, Question
from seqloom.data.inputs import read_input
from seqloom.data.problems import shown
from seqloom.data.questions import read_questions
from seqloom.errors import InputError
from seqloom.text import TextPipeline

MAX_CHARACTERS = 50_000_000  # of one passage
# Answers begin and end inside of words such as "1990-95", "$5" or "20km": there they are cut.
_PIECES = re.compile(
    r"['’]?[^\W\d_]+(?:['’.][^\W\d_]+)*\.?|\d+(?:[.,:]\d+)*(?:(?:st|nd|rd|th|s)(?!\w))?|\S"
)


class Words(NamedTuple):
    """The words of a text, and where each begins and ends in it."""

    words: list[str]
    spans: list[tuple[int, int]]


class WordSplitter:
    """Texts to words for a reader: those of a text pipeline, cut once more where answers may end.

    Args:
        pipeline: What cuts a text into words; blanks are left out.
        cut: Whether words are cut once more at hyphens, slashes, other symbols, and between
            letters and digits.
    """

    def __init__(self, pipeline: TextPipeline, *, cut: bool = True) -> None:
        self.pipeline, self.cut = pipeline, cut
        self._pieces: dict[str, list[tuple[str, int, int]] | None] = {}

    def __call__(self, text: str) -> Words:
        """The words of a text with their places; the text at a place is the word's own spelling."""
        tokens = self.pipeline(text)
        words: list[str] = []
        spans: list[tuple[int, int]] = []
        for word, (start, end) in zip(tokens.words, tokens.spans, strict=True):
            pieces = self._cut(word) if end - start == len(word) else None
            if pieces is None:
                words.append(word)
                spans.append((start, end))
                continue
            for piece, a, b in pieces:
                words.append(piece)
                spans.append((start + a, start + b))
        return Words(words, spans)

    def _cut(self, word: str) -> list[tuple[str, int, int]] | None:
        """The pieces of a word; None where it is whole. Each different word is cut once."""
        if word.isalpha():
            return None
        if word not in self._pieces:
            if len(self._pieces) > 1 << 20:
                self._pieces.clear()
            found = [(m[0], *m.span()) for m in _PIECES.finditer(word)]
            whole = not self.cut and bool(found)
            self._pieces[word] = None if whole or len(found) == 1 else found
        return self._pieces[word]


def align(spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """Return the first and the last word that an answer touches; None if it touches none.

    Args:
        spans: Where each word begins and ends.
        start: Where the answer begins.
        end: Where it ends.

    >>> align([(0, 3), (4, 9), (9, 10)], 4, 9)
    (1, 1)
    """
    first = bisect_right(spans, start, key=lambda span: span[1])
    last = bisect_left(spans, end, key=lambda span: span[0]) - 1
    return (first, last) if first <= last else None


@dataclass(frozen=True)
class Misaligned:
    """A question whose answer does not begin and end with words.

    Args:
        id: The question.
        answer: The answer as given.
        words: What the words that it touches say.
    """

    id: str
    answer: str
    words: str


@dataclass(frozen=True)
class ReadQuestions:
    """Questions as words. Each different passage is there once.

    Args:
        examples: The questions as they were given.
        passages: The words of the different passages.
        which: The passage of each question, by its place.
        questions: The words of each question.
        spans: The first and the last word of each question's first answer; (-1, -1) where there
            is none.
        misaligned: The questions whose answer is not made of whole words.
        mended: How many answers of files were not where they said, and were taken from the nearest
            place that has them.
    """

    examples: list[Question]
    passages: list[Words]
    which: list[int]
    questions: list[list[str]]
    spans: list[tuple[int, int]]
    misaligned: list[Misaligned]
    mended: int = 0

    def __len__(self) -> int:
        return len(self.examples)

    def passages_words(self) -> list[list[str]]:
        """The words of the different passages."""
        return [passage.words for passage in self.passages]

    def texts(self) -> Iterator[list[str]]:
        """The words of all passages and all questions, one text after the other."""
        yield from self.passages_words()
        yield from self.questions

    def part(self, places: Sequence[int]) -> ReadQuestions:
        """The questions at these places, with their passages."""
        used = {old: new for new, old in enumerate(dict.fromkeys(self.which[i] for i in places))}
        names = {self.examples[i].id for i in places}
        return ReadQuestions(
            [self.examples[i] for i in places],
            [self.passages[old] for old in used],
            [used[self.which[i]] for i in places],
            [self.questions[i] for i in places],
            [self.spans[i] for i in places],
            [each for each in self.misaligned if each.id in names],
            self.mended,
        )


def open_questions(source: Any) -> Iterable[Question]:
    """Return the questions of a SQuAD file, of "NAME:SPLIT", or those given.

    Several files or splits are named with a "+" between them.

    Raises:
        InputError: If something else than questions is given.
    """
    return chain.from_iterable(_parts(source))


def _parts(source: Any) -> Iterator[Iterable[Question]]:
    if not isinstance(source, str | PathLike):
        if not isinstance(source, Iterable):
            raise InputError(f"questions must be a file, a data set or a list, got {source!r}")
        yield list(source)
        return
    name = fspath(source)
    names = [name] if Path(name).exists() else name.split("+")
    for each in names:
        plain = Path(each).exists() or ":" not in each
        yield read_questions(each) if plain else read_input(each, "text")


def read_all(source: Any, splitter: WordSplitter, what: str) -> ReadQuestions:
    """Return questions as words.

    Args:
        source: What `open_questions` takes.
        splitter: What cuts texts into words.
        what: What they are for, in messages.

    Raises:
        InputError: If there is no question, or one has an empty text, naming its article and id.
    """
    examples: list[Question] = []
    passages: list[Words] = []
    places: dict[str, int] = {}
    which, questions, spans, misaligned = [], [], [], []
    parts, ids = list(_parts(source)), set()
    for example in chain.from_iterable(parts):
        if not isinstance(example, Question):
            raise InputError(
                f"{what} data must be questions about passages, got {type(example).__name__}"
            )
        check_question(example)
        if example.passage not in places:
            places[example.passage] = len(passages)
            passages.append(
                words_of(example.passage, splitter, f"the passage of {_where(example)}")
            )
        place = places[example.passage]
        if example.id in ids:
            raise InputError(
                f"ids of {what} questions must differ, got {example.id!r} twice; results are by id"
            )
        ids.add(example.id)
        examples.append(example)
        which.append(place)
        asked = words_of(example.question, splitter, f"the question of {_where(example)}")
        questions.append(asked.words)
        span, problem = _span(example, passages[place])
        spans.append(span)
        if problem is not None:
            misaligned.append(problem)
    if not examples:
        raise InputError(f"{what} data must hold at least one question, got none")
    mended = sum(getattr(part, "mended", 0) for part in parts)
    return ReadQuestions(examples, passages, which, questions, spans, misaligned, mended)


def words_of(text: str, splitter: WordSplitter, name: str) -> Words:
    """Return the words of a passage or a question.

    Args:
        text: The passage or the question.
        splitter: What cuts it into words.
        name: What to call it in messages.

    Raises:
        InputError: If it has no word, or too many characters.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"{name} must have at most {MAX_CHARACTERS:,} characters, got {len(text):,}; split it"
        )
    found = splitter(text)
    if not found.words:
        raise InputError(f"{name} must have at least one word, got {text[:40]!r}")
    return found


def _where(example: Question) -> str:
    title = f" of article {example.title!r}" if example.title else ""
    return f"question {example.id!r}{title}"


def _span(example: Question, passage: Words) -> tuple[tuple[int, int], Misaligned | None]:
    if not example.answers:
        return (-1, -1), None
    answer = example.answers[0]
    text, start = answer.text, answer.start
    lead = len(text) - len(text.lstrip())
    end, start = start + len(text.rstrip()), start + lead
    found = align(passage.spans, start, end)
    if found is None:
        return (-1, -1), Misaligned(example.id, text, "")
    a, b = passage.spans[found[0]][0], passage.spans[found[1]][1]
    if (a, b) == (start, end):
        return found, None
    return found, Misaligned(example.id, text, example.passage[a:b])


def check_question(example: Question) -> None:
    """Refuse a question that is not made of texts, or with an answer that is not where it says.

    Raises:
        InputError: Naming the question, its article and what is wrong.
    """
    for name in ("id", "title", "passage", "question"):
        value = getattr(example, name)
        if not isinstance(value, str):
            raise InputError(
                f"the {name} of {_where(example)} must be a text, got {type(value).__name__}"
            )
    if not isinstance(example.answers, tuple | list):
        raise InputError(
            f"the answers of {_where(example)} must be a tuple, got {shown(example.answers)}"
        )
    for answer in example.answers:
        check_answer(example, answer)


def check_answer(example: Question, answer: Answer) -> None:
    """Refuse what is no answer, and an answer that is not where it says it is.

    Raises:
        InputError: Naming the question, its article and the place.
    """
    if not isinstance(answer, Answer):
        raise InputError(f"an answer of {_where(example)} must be an Answer, got {shown(answer)}")
    if not isinstance(answer.text, str) or not answer.text.strip():
        raise InputError(
            f"an answer of {_where(example)} must have a text, got {shown(answer.text)}"
        )
    if isinstance(answer.start, bool) or not isinstance(answer.start, int | np.integer):
        raise InputError(
            f"the start of an answer of {_where(example)} must be a whole number, got "
            f"{shown(answer.start)}"
        )
    end = answer.start + len(answer.text)
    if answer.start < 0 or end > len(example.passage):
        raise InputError(
            f"an answer of {_where(example)} must lie within the {len(example.passage)} "
            f"characters of its passage, got {answer.start} to {end}"
        )
    if example.passage[answer.start : end] != answer.text:
        raise InputError(
            f"an answer of {_where(example)} must be the text at {answer.start} of its passage, "
            f"got {answer.text!r} and there is {example.passage[answer.start : end]!r}"
        )
