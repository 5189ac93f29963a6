"""What a task learns from: one small frozen dataclass a kind of example."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence or a document, for language models and summaries."""

    text: str


@dataclass(frozen=True, slots=True)
class LabeledText:
    """A text and its class; any number of classes when the data is multi-label."""

    text: str
    labels: tuple[str, ...]

    @property
    def label(self) -> str:
        """The only label of a single-label example."""
        (label,) = self.labels
        return label


@dataclass(frozen=True, slots=True)
class TaggedTokens:
    """Words of a sentence with one tag each (part of speech, chunk, entity, slot).

    `line` is the line of its file the first word stands in, 0 where that is not known.
    """

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    line: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextPair:
    """A source and what it becomes: a translation, a summary, a title."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A span of a passage: `passage[start : start + len(text)] == text`."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a passage, with every answer the annotators accepted."""

    id: str
    passage: str
    question: str
    answers: tuple[Answer, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A sentence with two marked entities, as character spans, and the relation between them."""

    text: str
    first: tuple[int, int]
    second: tuple[int, int]
    label: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """A node of a bracketed tree: a label over children, or over one word if it is a leaf."""

    label: str
    children: tuple[Tree, ...] = ()
    word: str | None = None

    def leaves(self) -> list[str]:
        """The words below this node, left to right."""
        words, waiting = [], [self]
        while waiting:
            node = waiting.pop()
            if node.word is not None:
                words.append(node.word)
            waiting.extend(reversed(node.children))
        return words

    def nodes(self) -> list[Tree]:
        """This node and all below it, parents before children, left to right."""
        found, waiting = [], [self]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting.extend(reversed(node.children))
        return found
