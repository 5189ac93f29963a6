"""Questions about passages, in the JSON of SQuAD and of the sets that follow it."""

from __future__ import annotations

from collections.abc import Iterator
from os import fspath
from typing import NamedTuple, TypeVar

from seqloom.data.examples import Answer, Question, Text
from seqloom.data.json_values import parse_json
from seqloom.data.problems import OnError, Problems, Records, shown
from seqloom.data.sources import read_whole
from seqloom.errors import DataError
from seqloom.files import Source

Value = TypeVar("Value")


def read_questions(path: Source, *, on_error: OnError = "raise") -> Records[Question]:
    """Read a SQuAD file (v1.1 or v2; also CMRC 2018, DRCD, BiPaR), which is held in memory whole.

    What counts is the text of an answer. Where the passage has something else at `answer_start`,
    the nearest place that has the text is taken, and `mended` of the records counts it. An answer
    whose text is nowhere in the passage is a problem: when it is skipped, the question keeps its
    other answers, and goes too if there is none. A question marked `is_impossible` has no answers.

    Args:
        path: The file, compressed or not.
        on_error: "raise" at the first malformed question or answer, or "skip" and count.

    Examples:
        >>> records = read_questions("dev-v1.1.json")  # doctest: +SKIP
        >>> for question in records:  # doctest: +SKIP
        ...     print(question.question, question.answers[0].text)
        >>> records.mended, records.skipped  # doctest: +SKIP
        (0, 0)
    """

    def read(problems: Problems) -> Iterator[Question]:
        whole = parse_json(read_whole(path), path)
        seen: set[str] = set()
        for entry in _entries(whole, path, problems):
            try:
                question = _question(entry, path, problems)
                if question is None:
                    continue
                if question.id in seen:
                    raise DataError(
                        f"question ids must differ, got {question.id!r} twice, at {entry.place}",
                        path,
                    )
            except DataError as problem:
                problems.add(problem)
            else:
                seen.add(question.id)
                yield question

    return Records(read, fspath(path), on_error)


def read_passages(path: Source, *, on_error: OnError = "raise") -> Records[Text]:
    """Read the passages of a SQuAD file as texts, each once, in the order of the file."""

    def read(problems: Problems) -> Iterator[Text]:
        seen: set[str] = set()
        for entry in _entries(parse_json(read_whole(path), path), path, problems):
            if entry.passage not in seen:
                seen.add(entry.passage)
                yield Text(entry.passage)

    return Records(read, fspath(path), on_error)


class _Entry(NamedTuple):
    """A question as written, with its passage, the article's title and its place in words."""

    written: object
    passage: str
    title: str
    place: str


def _entries(whole: object, path: Source, problems: Problems) -> Iterator[_Entry]:
    """Yield each question as it is written."""
    for i, article in enumerate(_field(whole, "data", list, "the file", path)):
        where = f"article {i + 1}"
        try:
            paragraphs = _field(article, "paragraphs", list, where, path)
            title = _field({"title": "", **article}, "title", str, where, path)
        except DataError as problem:
            problems.add(problem)
            continue
        for j, paragraph in enumerate(paragraphs):
            place = f"paragraph {j + 1} of {where}"
            try:
                passage = _field(paragraph, "context", str, place, path)
                entries = _field(paragraph, "qas", list, place, path)
            except DataError as problem:
                problems.add(problem)
                continue
            for k, entry in enumerate(entries):
                yield _Entry(entry, passage, title, f"question {k + 1} of {place}")


def _field(holder: object, name: str, kind: type[Value], where: str, path: Source) -> Value:
    """Return a field of a JSON object, which must be there and of this kind."""
    if not isinstance(holder, dict):
        raise DataError(f"{where} must be an object with {name!r}, got {shown(holder)}", path)
    if name not in holder:
        keys = ", ".join(map(repr, holder)) or "none"
        raise DataError(f"{where} must have {name!r}, got {keys}", path)
    value = holder[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DataError(f"{name!r} of {where} must be {kind.__name__}, got {shown(value)}", path)
    return value


def _question(found: _Entry, path: Source, problems: Problems) -> Question | None:
    """Return the question, or None if all its answers were reported and skipped."""
    entry, passage, title, place = found
    name = _field(entry, "id", str, place, path)
    where = f"question {name!r}" + (f" of article {title!r}" if title else "")
    asked = _field(entry, "question", str, where, path)
    if not asked.strip():
        raise DataError(f"{where} must have a text, got {asked!r}", path)
    impossible: object = False
    if isinstance(entry, dict) and "is_impossible" in entry:
        impossible = _field(entry, "is_impossible", bool, where, path)
        if impossible:
            entry = {"answers": [], **entry}
        elif entry.get("answers") == []:
            raise DataError(f"{where} is not impossible and must have answers, got []", path)
    given = _field(entry, "answers", list, where, path)
    if impossible and given:
        raise DataError(f"{where} is impossible, yet has answers: {shown(given)}", path)
    answers = []
    for answer in given:
        try:
            answers.append(_answer(answer, passage, where, path, problems))
        except DataError as problem:
            problems.add(problem)
    if given and not answers:
        return None
    return Question(name, passage, asked, tuple(answers), title)


def _answer(given: object, passage: str, where: str, path: Source, problems: Problems) -> Answer:
    text = _field(given, "text", str, f"an answer of {where}", path)
    start = _field(given, "answer_start", int, f"an answer of {where}", path)
    if not text.strip():
        raise DataError(f"an answer of {where} must have a text, got {text!r}", path)
    if start >= 0 and passage.startswith(text, start):
        return Answer(text, start)
    start = min(max(start, 0), len(passage))
    before, after = passage.rfind(text, 0, start + len(text)), passage.find(text, start)
    places = [place for place in (before, after) if place >= 0]
    if not places:
        raise DataError(f"an answer of {where} is not in the passage: {shown(text)}", path)
    problems.mended += 1
    return Answer(text, min(places, key=lambda place: abs(place - start)))
