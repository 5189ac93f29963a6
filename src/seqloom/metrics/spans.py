"""Spans written as tags: the schemes, what is legal in them, and scores by the rules of conlleval.

| scheme | a span of one word | of two | of three |
|---|---|---|---|
| iob1 | I | I I | I I I, and B for I where the span before is of the same type and adjacent |
| bio (iob2) | B | B I | B I I |
| bioes | S | B E | B I E |
| bmes | S | B E | B M E |

A tag is "O", or a prefix, a hyphen and a type ("B-NP"). A prefix alone ("B") is of type "".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from seqloom.errors import ConfigError, InputError, one_of

Scheme = Literal["iob1", "bio", "bioes", "bmes"]
PREFIXES: dict[Scheme, str] = {"iob1": "BI", "bio": "BI", "bioes": "BIES", "bmes": "BMES"}
OUTSIDE = "O"


class TagSpan(NamedTuple):
    """Words `start` to `end` (excluded) of a sentence, and their type."""

    start: int
    end: int
    type: str


def split_tag(tag: str) -> tuple[str, str]:
    """Return prefix and type of a tag.

    >>> split_tag("B-creative-work"), split_tag("S"), split_tag("O")
    (('B', 'creative-work'), ('S', ''), ('O', ''))
    """
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def join_tag(prefix: str, kind: str) -> str:
    """Return the tag with a prefix and a type."""
    return f"{prefix}-{kind}" if kind else prefix


def find_scheme(tags: Iterable[str]) -> Scheme | None:
    """Return the scheme tags are written in, None if they mark no spans.

    Tags are of a scheme if each is "O" or has one of its prefixes. "B" and "I" alone mean "bio":
    "iob1" has to be asked for, as the tags do not tell.

    >>> find_scheme(["O", "B-NP", "I-NP"]), find_scheme(["B", "M", "E", "S"]), find_scheme(["NN"])
    ('bio', 'bmes', None)
    """
    kinds = {split_tag(tag) for tag in tags if tag != OUTSIDE}
    prefixes = {prefix for prefix, _ in kinds}
    if not prefixes or not (prefixes & {"B", "S", "I"}):
        return None
    for scheme in ("bio", "bioes", "bmes"):
        if prefixes <= set(PREFIXES[scheme]):
            return scheme
    return None


def _check_scheme(scheme: str) -> None:
    if scheme not in get_args(Scheme):
        raise ConfigError(one_of("scheme", scheme, get_args(Scheme)))


def belongs(tag: str, scheme: Scheme) -> bool:
    """Whether a tag is one of a scheme.

    >>> belongs("I-PER", "bio"), belongs("E-PER", "bio"), belongs("NN", "bio")
    (True, False, False)
    """
    _check_scheme(scheme)
    return tag == OUTSIDE or split_tag(tag)[0] in tuple(PREFIXES[scheme])


def is_allowed(before: str | None, tag: str | None, scheme: Scheme) -> bool:
    """Whether one tag may follow another; None stands for the edge of the sentence.

    Tags that are not of the scheme may stand nowhere.

    >>> is_allowed("B-PER", "I-PER", "bio"), is_allowed("O", "I-PER", "bio")
    (True, False)
    """
    if not all(belongs(each, scheme) for each in (before, tag) if each is not None):
        return False
    left, old = (OUTSIDE, "") if before is None else split_tag(before)
    right, new = (OUTSIDE, "") if tag is None else split_tag(tag)
    if scheme == "iob1":
        return right != "B" or (left in ("B", "I") and old == new)
    goes_on = right in ("I", "M", "E")
    if scheme == "bio":
        return not goes_on or (left in ("B", "I") and old == new)
    is_open = left in ("B", "I", "M")
    return is_open == goes_on and (not goes_on or old == new)


def first_illegal(tags: Sequence[str], scheme: Scheme) -> int | None:
    """Return the place of the first tag that may not stand where it stands, None if all may.

    A span that is not closed at the end is blamed on the last tag.

    >>> first_illegal(["O", "I-PER"], "bio"), first_illegal(["B-PER"], "bioes")
    (1, 0)
    """
    before = None
    for place, tag in enumerate(tags):
        if not is_allowed(before, tag, scheme):
            return place
        before = tag
    return None if is_allowed(before, None, scheme) else len(tags) - 1


def read_spans(tags: Sequence[str]) -> list[TagSpan]:
    """Return the spans of a sentence by the rules of conlleval, whatever the scheme.

    A span begins at B or S, at anything that follows E, S or O, and where the type changes; it ends
    before such a place, before O, and after E or S. So illegal sequences have spans too: I after O
    begins one. (The program itself does not know S, nor that B after E begins a span.)

    Paper: Tjong Kim Sang and Buchholz (2000), "Introduction to the CoNLL-2000 Shared Task:
    Chunking", section 3; the rules are those of its program, conlleval.

    >>> read_spans(["I-NP", "I-NP", "B-NP", "O", "E-VP"])
    [TagSpan(start=0, end=2, type='NP'), TagSpan(start=2, end=3, type='NP'), TagSpan(start=4, end=5, type='VP')]
    """  # noqa: E501
    found: list[TagSpan] = []
    begin, left, old = 0, OUTSIDE, ""
    for place, tag in enumerate(tags):
        right, new = split_tag(tag)
        is_new = right in ("B", "S") or left in ("E", "S", OUTSIDE) or old != new
        if left != OUTSIDE and (right == OUTSIDE or is_new):
            found.append(TagSpan(begin, place, old))
        if right != OUTSIDE and is_new:
            begin = place
        left, old = right, new
    if left != OUTSIDE:
        found.append(TagSpan(begin, len(tags), old))
    return found


def write_spans(spans: Iterable[TagSpan], length: int, scheme: Scheme) -> list[str]:
    """Return the tags of spans in a sentence of so many words.

    >>> write_spans([TagSpan(0, 2, "NP"), TagSpan(3, 4, "VP")], 4, "bioes")
    ['B-NP', 'E-NP', 'O', 'S-VP']
    """
    _check_scheme(scheme)
    tags = [OUTSIDE] * length
    before: TagSpan | None = None
    for span in sorted(spans):
        start, end, kind = span
        if not (0 <= start < end <= length) or (before is not None and start < before.end):
            raise InputError(f"spans must lie in {length} words and not overlap, got {span}")
        middle = "M" if scheme == "bmes" else "I"
        first, last = "B", "I"
        if scheme == "iob1":
            adjacent = before is not None and before.end == start and before.type == kind
            first = "B" if adjacent else "I"
        elif scheme != "bio":
            first, last = ("S", "S") if end - start == 1 else ("B", "E")
        tags[start:end] = [join_tag(middle, kind)] * (end - start)
        if end - start > 1:
            tags[end - 1] = join_tag(last, kind)
        tags[start] = join_tag(first, kind)
        before = span
    return tags


def convert_tags(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Return the same spans in another scheme; what conlleval reads in illegal tags is repaired.

    >>> convert_tags(["I-PER", "I-PER", "O"], "bioes")
    ['B-PER', 'E-PER', 'O']
    """
    return write_spans(read_spans(tags), len(tags), scheme)


@dataclass(frozen=True)
class SpanCounts:
    """How many spans were right, how many were found, and how many there are."""

    correct: int
    found: int
    gold: int

    @property
    def precision(self) -> float:
        """The share of those found that are right."""
        return self.correct / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of those there are that were found."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Their harmonic mean."""
        return 2 * self.correct / (self.found + self.gold) if self.found + self.gold else 0.0


@dataclass(frozen=True)
class SpanReport:
    """What conlleval counts; `str` of it is what that prints.

    Args:
        tokens: Words.
        right_tags: Those whose tag is right.
        total: Over all types.
        by_type: Of each.
    """

    tokens: int
    right_tags: int
    total: SpanCounts
    by_type: dict[str, SpanCounts] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """The share of words whose tag is right."""
        return self.right_tags / self.tokens

    def metrics(self) -> dict[str, float]:
        """Return `f1`, `precision`, `recall`, `accuracy`, and `f1/TYPE` of each type."""
        total = self.total
        found = {"f1": total.f1, "precision": total.precision, "recall": total.recall}
        types = {f"f1/{kind}": counts.f1 for kind, counts in self.by_type.items() if kind}
        return {**found, "accuracy": self.accuracy, **types}

    def __str__(self) -> str:
        total = self.total
        lines = [
            f"processed {self.tokens} tokens with {total.gold} phrases; "
            f"found: {total.found} phrases; correct: {total.correct}.",
            f"accuracy: {100 * self.accuracy:6.2f}%; {_percent(total)}",
        ]
        for kind, counts in self.by_type.items():
            lines.append(f"{kind:>17}: {_percent(counts)}  {counts.found}")
        return "\n".join(lines) + "\n"


def _percent(counts: SpanCounts) -> str:
    return (
        f"precision: {100 * counts.precision:6.2f}%; recall: {100 * counts.recall:6.2f}%; "
        f"FB1: {100 * counts.f1:6.2f}"
    )


def score_spans(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> SpanReport:
    """Compare the spans of sentences as conlleval does: one counts if all of it is right.

    Args:
        predicted: A list of tags a sentence.
        gold: The true ones.

    Raises:
        InputError: If they are not of one length, or there is no word.

    Examples:
        >>> report = score_spans([["B-NP", "O", "B-VP"]], [["B-NP", "I-NP", "B-VP"]])
        >>> report.total.correct, report.total.f1
        (1, 0.5)
    """
    if len(predicted) != len(gold):
        raise InputError(
            f"there must be as many sentences as true ones, got {len(predicted)} and {len(gold)}"
        )
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    tokens = right = 0
    for number, (ours, theirs) in enumerate(zip(predicted, gold, strict=True)):
        if len(ours) != len(theirs):
            raise InputError(
                f"sentence {number} must have {len(theirs)} tags as the true ones, got {len(ours)}"
            )
        tokens += len(theirs)
        right += sum(a == b for a, b in zip(ours, theirs, strict=True))
        own, true = read_spans(ours), read_spans(theirs)
        found.update(span.type for span in own)
        there.update(span.type for span in true)
        correct.update(span.type for span in {*own} & {*true})
    if not tokens:
        raise InputError("there must be at least one word to score, got none")
    kinds = sorted({*found, *there})
    by_type = {kind: SpanCounts(correct[kind], found[kind], there[kind]) for kind in kinds}
    total = SpanCounts(correct.total(), found.total(), there.total())
    return SpanReport(tokens, right, total, by_type)
