"""Sentences with two marked entities: markers out, markers in, and tables of them."""

from __future__ import annotations

import json
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.relations import (
    Marked,
    check_spans,
    mark,
    parse_marked,
    read_marked,
    read_relations,
)
from seqloom.errors import DataError, InputError

PIECE = st.text(alphabet="ab <>/e12é", max_size=5).filter(
    lambda t: "<e" not in t and "</e" not in t
)
ENTITY = PIECE.filter(str.strip)


@given(PIECE, ENTITY, PIECE, ENTITY, PIECE, st.booleans())
def test_spans_lead_to_the_entities_and_back(a, first, b, second, c, turned):
    one, other = ("2", "1") if turned else ("1", "2")
    sentence = f"{a}<e{one}>{first}</e{one}>{b}<e{other}>{second}</e{other}>{c}"
    found = parse_marked(sentence)
    entities = [found.text[slice(*found.first)], found.text[slice(*found.second)]]
    assert entities == ([second, first] if turned else [first, second])
    assert found.text == a + first + b + second + c
    assert mark(*found) == sentence


def test_every_sentence_of_the_task_comes_back(shared_data):
    place = shared_data / "semeval2010-task8/TRAIN_FILE.TXT.xz"
    text = lzma.decompress(place.read_bytes()).decode()
    rows = (line.rstrip() for line in text.split("\n"))
    sentences = [row.split("\t", 1)[1][1:-1] for row in rows if row[:1].isdigit()]
    relations = list(read_relations(place))
    assert len(sentences) == len(relations) == 8000
    assert all(
        mark(r.text, r.first, r.second) == sentence
        for r, sentence in zip(relations, sentences, strict=True)
    )


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("a b", "each of <e1> </e1> <e2> </e2> once, got none in 'a b'"),
        ("<e1>a</e1> <e2>b", "once, got <e1> </e1> <e2> in"),
        ("<e1>a</e1> <e2>b</e2> <e2>c</e2>", "once, got <e1> </e1> <e2> </e2> <e2> </e2> in"),
        ("<e1>a <e2>b</e2></e1>", "must end before the other begins, got <e1> <e2> </e2> </e1>"),
        ("<e1>a <e2>b</e1> c</e2>", "must end before the other begins, got <e1> <e2> </e1> </e2>"),
        ("<e1> </e1> <e2>b</e2>", "an entity must not be empty, got <e1></e1> in"),
    ],
)
def test_wrong_markers_are_refused(sentence, message):
    with pytest.raises(InputError, match=message):
        parse_marked(sentence)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((0, 9), (2, 3), r"within 0..5, got \(0, 9\)"),
        ((0, 0), (2, 3), r"within 0..5, got \(0, 0\)"),
        ((1, 2), (3, 4), r"must not be empty, got \(1, 2\)"),
        ((0, 1), (2, 3.0), r"two whole numbers, got \(2, 3\.0\) in 'a b c'"),
        ((0, 1, 2), (2, 3), r"two whole numbers, got \(0, 1, 2\) in"),
        ("ab", (2, 3), "two whole numbers, got 'ab' in"),
        ((0, 1), None, "two whole numbers, got None in"),
        ((False, True), (2, 3), r"two whole numbers, got \(False, True\) in"),
        ((0, 3), (2, 5), r"before the other begins, got \(0, 3\) and \(2, 5\)"),
    ],
)
def test_wrong_spans_are_refused(first, second, message):
    with pytest.raises(InputError, match=message):
        check_spans("a b c", first, second)


def test_a_table(tmp_path):
    place = tmp_path / "clauses.jsonl"
    rows = [
        {"clause": "<e1>A</e1> owns <e2>B</e2>", "kind": " owner "},
        {"clause": "<e1>A</e1> owns B", "kind": "owner"},
        {"clause": "<e2>B</e2> of <e1>A</e1>", "kind": None},
        {"clause": "<e2>B</e2> of <e1>A</e1>", "kind": "owner"},
    ]
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    records = read_marked(place, text="clause", label="kind", on_error="skip")
    relations = list(records)
    assert [(r.text, r.first, r.second, r.label) for r in relations] == [
        ("A owns B", (0, 1), (7, 8), "owner"),
        ("B of A", (5, 6), (0, 1), "owner"),
    ]
    assert [problem.line for problem in records.problems] == [2, 3]
    with pytest.raises(DataError, match=r"clauses.jsonl:2: must have each of <e1>"):
        list(read_marked(place, text="clause", label="kind"))


def test_marked_is_a_plain_triple():
    assert parse_marked("<e1>a</e1><e2>b</e2>") == Marked("ab", (0, 1), (1, 2))
