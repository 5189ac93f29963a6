"""Data sets by name, as examples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from seqloom.data.columns import read_conllu, read_tagged
from seqloom.data.datasets import corpora
from seqloom.data.datasets.catalog import Split, find_dataset
from seqloom.data.datasets.declaration import read_snippets
from seqloom.data.datasets.hashed import read_hashed_pairs, read_titles
from seqloom.data.datasets.store import dataset_file
from seqloom.data.examples import Text
from seqloom.data.fields import read_labeled, read_pairs, read_texts
from seqloom.data.lines import read_parallel, read_text, read_token_lines
from seqloom.data.problems import OnError, Problems, Records
from seqloom.data.questions import read_passages, read_questions
from seqloom.data.relations import read_relations
from seqloom.data.rows import read_rows
from seqloom.data.trees import read_trees
from seqloom.errors import DataError

READERS: dict[str, Callable[..., Records[Any]]] = {
    "analogies": corpora.read_analogies,
    "brown": corpora.read_brown,
    "wikitext": corpora.read_wikitext,
    "conllu": read_conllu,
    "first-target": corpora.read_first_target,
    "hashed-pairs": read_hashed_pairs,
    "label-by-file": corpora.read_label_by_file,
    "label-first": corpora.read_label_first,
    "label-lines": corpora.read_label_lines,
    "labeled": read_labeled,
    "lines": corpora.read_every_text,
    "lines-by-member": corpora.read_lines_by_member,
    "numbered-labels": corpora.read_numbered_labels,
    "pairs": read_pairs,
    "passages": read_passages,
    "parallel": read_parallel,
    "pku": corpora.read_pku,
    "poems": corpora.read_poems,
    "questions": read_questions,
    "relations": read_relations,
    "review-sentences": corpora.read_review_sentences,
    "rows": read_rows,
    "scored-pairs": corpora.read_scored_pairs,
    "snippets": read_snippets,
    "tagged": read_tagged,
    "text": read_text,
    "text-by-member": corpora.read_text_by_member,
    "texts": read_texts,
    "titles": read_titles,
    "token-lines": read_token_lines,
    "tree-texts": corpora.read_tree_texts,
    "trees": read_trees,
}
"""Every reader a split of the catalogue may name."""


def open_dataset(
    name: str,
    split: str | None = None,
    *,
    variant: str | None = None,
    on_error: OnError = "raise",
) -> Records[Any]:
    """Open one split of a data set that is on this machine.

    What the examples are depends on the set: `Text`, `LabeledText`, `TaggedTokens`, `TextPair`,
    `Question`, `Relation`, `Tree` or `Row`.

    Args:
        name: The data set.
        split: "train", "valid", "test", ...; may be left out where there is one, or an "all".
        variant: One of several ways to read it (see the entry's notes); by default the first.
        on_error: "raise" at the first malformed record, or "skip" and count. The records a set is
            known to have wrong are skipped and counted either way.

    Returns:
        The records, read anew each time they are iterated.

    Raises:
        ConfigError: If the name, the split or the variant is unknown.
        DataError: If a file is not on this machine (the message says how to get it), or the set
            has files only.

    Examples:
        >>> for example in open_dataset("sst", "train", variant="fine"):  # doctest: +SKIP
        ...     print(example.label, example.text)
    """
    part = find_dataset(name).split(split, variant)
    paths = [dataset_file(name, file) for file in part.files]
    if part.faults and on_error == "raise":
        records = READERS[part.reader](*paths, **part.options, on_error="skip")
        return _part_of(_without_known_faults(records, part.faults), part)
    return _part_of(READERS[part.reader](*paths, **part.options, on_error=on_error), part)


def _part_of(records: Records[Any], part: Split) -> Records[Any]:
    """The records of a split that is a stretch of a file, or is read as text."""
    if part.records is None and part.words is None and not part.as_text:
        return records

    def read(problems: Problems) -> Iterator[Any]:
        first, last = part.records or part.words or (0, sys.maxsize)
        place = 0
        for record in records:
            if place >= last:
                break
            if place >= first:
                yield Text(" ".join(record.tokens)) if part.as_text else record
            place += len(record.tokens) if part.words is not None else 1
        problems.count, problems.mended = records.skipped, records.mended
        problems.first.extend(records.problems)

    return Records(read, records.name)


def _without_known_faults(records: Records[Any], faults: int) -> Records[Any]:
    """The records, which skip malformed ones, with an error if those are more than we know of."""

    def read(problems: Problems) -> Iterator[Any]:
        yield from records
        problems.count, problems.mended = records.skipped, records.mended
        problems.first.extend(records.problems)
        if records.skipped > faults:
            raise DataError(
                f"has {records.skipped} malformed records, and {faults} are known; the first: "
                f"{records.problems[0].message}",
                records.name,
            )

    return Records(read, records.name)
