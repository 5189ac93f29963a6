"""What the readers say about malformed input: one line that names the file, the line, the value."""

import gzip
import io
import json
import lzma
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.data import sources
from seqloom.data.columns import read_conllu, read_tagged
from seqloom.data.fields import read_labeled, read_pairs
from seqloom.data.lines import read_parallel, read_text, read_token_lines
from seqloom.data.problems import Problems
from seqloom.data.questions import read_questions
from seqloom.data.relations import read_relations
from seqloom.data.rows import read_rows
from seqloom.data.trees import read_trees
from seqloom.errors import DataError


def csv_rows(path, **options):
    return read_rows(path, format="csv", **options)


def tsv_rows(path, **options):
    return read_rows(path, format="tsv", **options)


def json_rows(path, **options):
    return read_rows(path, format="jsonl", **options)


def parquet_rows(path, **options):
    return read_rows(path, format="parquet", **options)


def labeled_csv(path, **options):
    return read_labeled(path, format="csv", **options)


def labeled_jsonl(path, **options):
    return read_labeled(path, format="jsonl", **options)


def pairs_jsonl(path, **options):
    return read_pairs(path, format="jsonl", **options)


def tagged_tabs(path, **options):
    return read_tagged(path, separator="\t", **options)


def tagged_digits(path, **options):
    return read_tagged(path, drop_digit=True, **options)


def beside(read):
    """A reader of two files: the second is named as the first, with ".other"."""

    def read_both(path, **options):
        return read(path, f"{path}.other", **options)

    return read_both


parallel, token_lines = beside(read_parallel), beside(read_token_lines)

LINE_READERS = [
    read_text, csv_rows, tsv_rows, json_rows, read_tagged, read_conllu, read_trees, read_relations,
]  # fmt: skip
READERS = [*LINE_READERS, parquet_rows, read_questions, parallel, token_lines]


def message_of(records):
    """Read to the first error and return its message, which must be one line."""
    with pytest.raises(DataError) as caught:
        list(records)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


# Files that cannot be read at all


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("read", READERS)
def test_missing_file(tmp_path, read, on_error):
    path = tmp_path / "gone"
    assert message_of(read(path, on_error=on_error)) == f"{path}: no such file; check the path"


@pytest.mark.parametrize("read", READERS)
def test_directory(tmp_path, read):
    assert message_of(read(tmp_path)) == f"{tmp_path}: this is a directory; name a file in it"


@pytest.mark.parametrize("read", READERS)
def test_unreadable_file(tmp_path, read, monkeypatch):
    def refuse(self, *args):
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "secret"
    path.touch()
    monkeypatch.setattr(Path, "open", refuse)  # root, who may run this, can read any file
    assert message_of(read(path)) == f"{path}: may not be read; check its permissions"


@pytest.mark.parametrize("read", READERS)
def test_empty_file(tmp_path, read):
    path = tmp_path / "empty"
    path.touch()
    (tmp_path / "empty.other").touch()
    expected = {
        read_questions: f"{path}:1: is not JSON: Expecting value at column 1, near ''",
        parquet_rows: f"{path}: is not a whole Parquet file (",
    }.get(read, f"{path}: no record was found; give a file that holds at least one")
    assert message_of(read(path)).startswith(expected)


@pytest.mark.parametrize("read", [csv_rows, tsv_rows])
def test_header_without_rows(tmp_path, read):
    path = tmp_path / "a"
    path.write_text("text\n")
    assert message_of(read(path)).startswith(f"{path}: no record was found")


# Bytes that are no text: the line is named, whatever the format


GOOD = {
    read_text: b"good\n",
    csv_rows: b"good\n",
    tsv_rows: b"good\n",
    json_rows: b'{"a": 1}\n',
    read_tagged: b"word TAG\n\n",
    read_conllu: b"1\tword\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n",
    read_trees: b"(A word)\n",
    read_relations: b'1\t"<e1>a</e1> <e2>b</e2>"\nOther\n\n',
}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        pytest.param(
            b"gr\xfcn", "is not UTF-8: byte 0xfc at column 3; convert it first", id="utf-8"
        ),
        pytest.param(b"a\0b", "holds a NUL byte; is this a text file?", id="nul"),
        pytest.param(
            b"x" * 50_000_000, "the line is longer than 16,777,216 bytes; is this", id="50-mb"
        ),
    ],
)
@pytest.mark.parametrize("read", LINE_READERS)
def test_bytes_that_are_no_text(tmp_path, read, bad, said):
    path = tmp_path / "a"
    good = GOOD[read]
    path.write_bytes(good * 2 + bad + b"\n\n" + good)
    line = good.count(b"\n") * 2 + 1
    assert message_of(read(path)).startswith(f"{path}:{line}: {said}")
    records = read(path, on_error="skip")
    assert len(list(records)) == (2 if read in (csv_rows, tsv_rows) else 3)
    assert records.skipped == len(records.problems) == 1
    assert str(records.problems[0]).startswith(f"{path}:{line}: {said}")


@pytest.mark.parametrize("bad", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("read", LINE_READERS)
def test_utf_16(tmp_path, read, bad):
    path = tmp_path / "a"
    path.write_bytes("text\nmore\n".encode(bad))
    said = "is UTF-16 text; convert it first" if bad == "utf-16" else "holds a NUL byte"
    assert message_of(read(path)).startswith(f"{path}:1: {said}")


def test_utf_16_json(tmp_path):
    path = tmp_path / "a"
    path.write_bytes('{"data": []}'.encode("utf-16"))
    assert message_of(read_questions(path)).startswith(f"{path}:1: is UTF-16 text")


@pytest.mark.parametrize("read", LINE_READERS)
def test_mark_and_carriage_returns_change_nothing(tmp_path, read):
    path, other = tmp_path / "a", tmp_path / "b"
    good = GOOD[read] * 2
    path.write_bytes(good)
    other.write_bytes(b"\xef\xbb\xbf" + good.replace(b"\n", b"\r\n"))
    plain, marked = list(read(path)), list(read(other))
    if hasattr(plain[0], "fields"):
        plain, marked = [row.fields for row in plain], [row.fields for row in marked]
    assert plain == marked


def test_unicode_line_separators_stay_inside_the_line(tmp_path):
    path = tmp_path / "a"
    words = "a\u2028b\x85c\x0bd\x0ce\x1cf\u2029g"
    path.write_text(f"text\n{words}\n", newline="\n")
    assert [row.fields["text"] for row in csv_rows(path)] == [words]
    assert [row.fields["text"] for row in tsv_rows(path)] == [words]
    assert [text.text for text in read_text(path)] == ["text", words]


@pytest.mark.parametrize(
    ("read", "lines"),
    [
        (read_tagged, [b"a X", b"gr\xfcn X", b"b X"]),
        (read_conllu, [GOOD[read_conllu].strip(), b"2\tgr\xfcn", b"3\tb"]),
        (read_relations, [b'1\t"<e1>a</e1> <e2>b</e2>"', b"Oth\xfcr", b"Comment:"]),
        (read_trees, [b"( (S", b" (A gr\xfcn)", b" (B b) ))"]),
        (csv_rows, [b'"a', b"gr\xfcn", b'b"']),
    ],
)
def test_record_that_lost_a_line_is_no_record(tmp_path, read, lines):
    path = tmp_path / "a"
    path.write_bytes(GOOD[read] * 2 + b"\n".join([*lines, b"", GOOD[read]]))
    records = read(path, on_error="skip")
    assert len(list(records)) == (2 if read is csv_rows else 3)
    assert records.skipped == 1


@pytest.mark.parametrize("read", [csv_rows, tsv_rows])
def test_header_is_never_skipped(tmp_path, read):
    path = tmp_path / "a"
    path.write_bytes(b"t\xffxt\ngood\n")
    assert message_of(read(path, on_error="skip")).startswith(f"{path}:1: is not UTF-8: byte 0xff")


# Compressed files


PACKERS = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
NOISE = "".join(chr(97 + i * i * 7919 % 26) + "\n" * (i % 11 == 0) for i in range(200_000)).encode()


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_truncated_archive(tmp_path, pack):
    path = tmp_path / "a"
    packed = pack(NOISE)
    path.write_bytes(packed[: len(packed) - 12])
    message = message_of(read_text(path, on_error="skip"))
    assert message.startswith(f"{path}:")
    assert "the compressed data is damaged or cut off (" in message


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_corrupt_archive(tmp_path, pack):
    path = tmp_path / "a"
    packed = bytearray(pack(NOISE))
    middle = len(packed) // 2
    packed[middle : middle + 8] = b"\xff" * 8
    path.write_bytes(packed)
    message = message_of(read_text(path, on_error="skip"))
    assert message.startswith(f"{path}:")
    assert "the compressed data is damaged or cut off (" in message


def test_corrupt_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    texts = [f"text {i * i * 7919 % 10007}" for i in range(4096)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=2048, compression="gzip")
    data = bytearray(path.read_bytes())
    middle = pq.ParquetFile(path).metadata.row_group(1).column(0).file_offset
    middle = middle or pq.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
    data[middle + 40 : middle + 400] = b"\xff" * 360
    path.write_bytes(data)
    assert next(iter(read_rows(path))).fields == {"text": texts[0]}  # it streams
    assert message_of(read_rows(path)).startswith(f"{path}:2049: is damaged (")
    path.write_bytes(data[:-100])
    assert message_of(read_rows(path)).startswith(f"{path}: is not a whole Parquet file (")
    path.write_bytes(PACKERS["zst"](bytes(data)))
    assert message_of(read_rows(path)) == (
        f"{path}: Parquet must be a plain file, got a pipe or a .zst file"
    )


def test_parquet_with_a_missing_column(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"texts": ["a"], "label": ["b"]}), path)
    assert message_of(read_labeled(path, on_error="skip")) == (
        f"{path}: must have a column 'text', got 'texts', 'label'; did you mean 'texts'?"
    )


def test_frame_with_a_missing_value():
    frame = pd.DataFrame({"text": ["a", "b", None], "label": ["x", None, "y"]})
    assert message_of(read_labeled(frame)) == "data frame:2: 'label' must be a label, got None"
    records = read_labeled(frame, on_error="skip")
    assert len(list(records)) == 1
    assert [str(problem) for problem in records.problems] == [
        "data frame:2: 'label' must be a label, got None",
        "data frame:3: 'text' must be a text, got None",
    ]


def test_frame_with_a_column_twice():
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert (
        message_of(read_rows(frame))
        == "data frame: columns must have distinct names, got 'a' twice"
    )


# Malformed records: (reader, content, what is said after the path, records left when skipping or
# None where the whole file is refused)

CONLLU = "1\tI\t_\tPRON\t_\t_\t_\t_\t_\t_\n"
RELATION = '1\t"<e1>a</e1> <e2>b</e2>"\nOther\n\n'
HALF = '{"text": "\\ud83d", "label": "x"}'


def entry(**changed):
    given = {"id": "q7", "question": "?", "answers": [{"text": "Bo", "answer_start": 8}], **changed}
    return {name: value for name, value in given.items() if value is not ...}


def squad(*entries, context="Ann met Bo. Bo met Cy."):
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": entries}]}]})


GOOD_ENTRY = entry(id="good")

CASES = {
    # tables
    "csv-missing-column": (
        labeled_csv,
        "text,labels\na,b\n",
        ":1: must have a column 'label', got 'text', 'labels'; did you mean 'labels'?",
        None,
    ),
    "csv-ragged": (
        csv_rows,
        "a,b\n1,2\n1,2,3\n1\n3,4\n",
        ":3: must have 2 fields as the header has, got 3: ['1', '2', '3']",
        (2, 2),
    ),
    "csv-quote-never-closed": (
        csv_rows,
        'a,b\n1,2\n"x\ny","z\n3,4\n5,6\n',
        ":4: a quote is opened and never closed: 'y\",\"z'",
        (3, 1),
    ),
    "csv-text-after-quote": (
        csv_rows,
        'a,b\n1,2\n"x"y,2\n3,4\n',
        ":3: is not well-formed CSV (',' expected after '\"'): '\"x\"y,2'",
        (2, 1),
    ),
    "csv-carriage-return-alone": (
        csv_rows,
        "a,b\n1,2\rx\n3,4\n",
        ":2: is not well-formed CSV (new-line character seen in unquoted field",
        (1, 1),
    ),
    "csv-duplicate-header": (
        csv_rows,
        "a,b,a\n1,2,3\n",
        ":1: columns must have distinct names, got 'a' twice",
        None,
    ),
    "csv-empty-header": (
        csv_rows,
        ",text\n0,a\n",
        ":1: every column must have a name, got '' for column 1 of 2 (pandas writes its index so",
        None,
    ),
    "tsv-ragged": (
        tsv_rows,
        "a\tb\n1\t2\n\nx y\n",
        ":4: must have 2 fields as the header has, got 1: ['x y']",
        (1, 1),
    ),
    "json-broken-in-line-17": (
        json_rows,
        '{"a": 1}\n' * 16 + '{"a": 1,, "b"}\n{"a": 1}\n',
        ":17: is not JSON: Expecting property name enclosed in double quotes at column 9, "
        'near \'{"a": 1,, "b"}\'',
        (17, 1),
    ),
    "json-no-object": (
        json_rows,
        '{"a": 1}\n[1, 2]\n',
        ":2: must be a JSON object, got [1, 2]",
        (1, 1),
    ),
    "json-too-deep": (
        json_rows,
        '{"a": 1}\n' + "[" * 100_000 + "]" * 100_000,
        ":2: is nested too deeply to be data",
        (1, 1),
    ),
    "json-huge-number": (
        json_rows,
        '{"a": 1}\n{"a": ' + "9" * 5000 + "}\n",
        ":2: is not JSON we can hold: Exceeds the limit (4300",
        (1, 1),
    ),
    "json-half-a-pair": (
        json_rows,
        '{"a": "\\ud83d\\ude00"}\n' + HALF,
        ":2: holds half a surrogate pair (\\ud83d); was a text cut?",
        (1, 1),
    ),
    "label-missing-key": (
        labeled_jsonl,
        '{"text": "a", "label": 1}\n{"text": "a", "lable": 1}\n',
        ":2: must have a column 'label', got 'text', 'lable'; did you mean 'lable'?",
        (1, 1),
    ),
    "label-null": (
        labeled_jsonl,
        '{"text": "a", "label": 1}\n{"text": "a", "label": null}\n',
        ":2: 'label' must be a label, got None",
        (1, 1),
    ),
    "label-nan": (
        labeled_jsonl,
        '{"text": "a", "label": 1}\n{"text": "a", "label": NaN}\n',
        ":2: 'label' must be a label, got nan",
        (1, 1),
    ),
    "label-object": (
        labeled_jsonl,
        '{"text": "a", "label": 1}\n{"text": "a", "label": [{"x": 1}]}\n',
        ":2: 'label' must be a label, got [{'x': 1}]",
        (1, 1),
    ),
    "label-empty-in-list": (
        labeled_jsonl,
        '{"text": "a", "label": 1}\n{"text": "a", "label": ["b", ""]}\n',
        ":2: 'label' must be a label, got ['b', '']",
        (1, 1),
    ),
    "label-blank": (
        labeled_csv,
        "text,label\na,1\nb, \n",
        ":3: 'label' must be a label, got ' '",
        (1, 1),
    ),
    "text-blank": (
        labeled_csv,
        'text,label\na,1\n" ",2\n',
        ":3: 'text' must be a text, got ' '",
        (1, 1),
    ),
    "text-number": (
        labeled_jsonl,
        '{"text": "a", "label": 1}\n{"text": 5, "label": 1}\n',
        ":2: 'text' must be a text, got 5",
        (1, 1),
    ),
    "pair-without-target": (
        pairs_jsonl,
        '{"source": "a", "target": "b"}\n{"source": "a", "target": []}\n',
        ":2: 'target' must be a text, got ''",
        (1, 1),
    ),
    # columns
    "columns-ragged": (
        read_tagged,
        "a X\n\nb X\nc\nd X\n\ne X\n",
        ":4: must have 2 columns as line 1 has, got 1: ['c']",
        (2, 1),
    ),
    "columns-too-few": (
        read_tagged,
        "word\n\nword\n",
        ":1: must have a column for token=0 and another for tag=-1, got 1 in all",
        None,
    ),
    "columns-without-a-word": (
        tagged_tabs,
        "a\tX\n\n\tX\n",
        ":3: must have a word and a tag, got ['', 'X']",
        (1, 1),
    ),
    "columns-without-a-digit": (
        tagged_digits,
        "口0 O\n\n腔 O\n",
        ":3: a word must end in a digit, got '腔'",
        (1, 1),
    ),
    "conllu-9-columns": (
        read_conllu,
        CONLLU + "\n" + "1\tyou\t_\tPRON\t_\t_\t_\t_\t_\n",
        ":3: must have 10 columns with tabs between, got 9: '1\\tyou\\t_\\tPRON\\t_\\t_\\t_",
        (1, 1),
    ),
    "conllu-id-jumps": (
        read_conllu,
        CONLLU + CONLLU.replace("1", "3", 1) + "\n" + CONLLU,
        ":2: the id must be 2, or a range or empty node that fits there, got '3'",
        (1, 1),
    ),
    "conllu-id-no-number": (
        read_conllu,
        CONLLU + "\n" + CONLLU.replace("1", "one", 1),
        ":3: the id must be 1, or a range or empty node that fits there, got 'one'",
        (1, 1),
    ),
    "conllu-range-backwards": (
        read_conllu,
        CONLLU + "\n" + CONLLU.replace("1", "1-1", 1) + CONLLU,
        ":3: the id must be 1, or a range or empty node that fits there, got '1-1'",
        (1, 1),
    ),
    "conllu-range-beyond-the-end": (
        read_conllu,
        CONLLU + "\n" + CONLLU.replace("1", "1-2", 1) + CONLLU,
        ":3: the sentence must hold 2 words or more, got 1",
        (1, 1),
    ),
    "conllu-empty-node-misplaced": (
        read_conllu,
        CONLLU + CONLLU.replace("1", "2.1", 1) + "\n" + CONLLU,
        ":2: the id must be 2, or a range or empty node that fits there, got '2.1'",
        (1, 1),
    ),
    "conllu-without-a-tag": (
        read_conllu,
        CONLLU + "\n" + CONLLU.replace("PRON", "_"),
        ":3: 'I' must have a tag in upos, got '_'",
        (1, 1),
    ),
    # trees
    "tree-never-closed": (
        read_trees,
        "(A a)\n(B (C c) (D d)\n(E e)\n(F f)\n",
        ":2: a bracket is opened and never closed: '(B (C c) (D d)'",
        (3, 1),
    ),
    "tree-never-closed-over-lines": (
        read_trees,
        "( (S\n  (A a)\n  (B b)\n( (S\n  (A a) ))\n",
        ":1: a bracket is opened and never closed: '( (S'",
        (1, 1),
    ),
    "tree-closed-twice": (
        read_trees,
        "(A a)\n(B b))\n(C c)\n",
        ":2: a bracket is closed that was never opened: '(B b))'",
        (2, 1),
    ),
    "tree-without-brackets": (
        read_trees,
        "(A a)\nhello\n",
        ":2: a tree must begin with '(', got 'hello': 'hello'",
        (1, 1),
    ),
    "tree-two-words": (
        read_trees,
        "(A a)\n(B b c)\n",
        ":2: a node must hold one word or nodes, got 'c' besides: '(B b c)'",
        (1, 1),
    ),
    "tree-word-and-node": (
        read_trees,
        "(A a)\n(B b (C c))\n",
        ":2: a node must hold one word or nodes, got 'b' and a node: '(B b (C c))'",
        (1, 1),
    ),
    "tree-empty-node": (
        read_trees,
        "(A a)\n(B (C))\n",
        ":2: a node must hold a word or nodes, got none below 'C': '(B (C))'",
        (1, 1),
    ),
    "tree-without-a-label": (
        read_trees,
        "(A a)\n(B ((C c)))\n",
        ":2: a node within a tree must have a label, got '': '(B ((C c)))'",
        (1, 1),
    ),
    "tree-too-deep": (
        read_trees,
        "(A a)\n" + "(B " * 100_000 + "b" + ")" * 100_000 + "\n",
        ":2: brackets must not be nested deeper than 200: '(B (B ",
        (1, 1),
    ),
    # questions: JSON has no lines to name, so the question is named instead
    "squad-broken": (
        read_questions,
        '{"data": [\n{"paragraphs": }\n]}',
        ":2: is not JSON: Expecting value at column 16, near '",
        None,
    ),
    "squad-no-data": (
        read_questions,
        '{"questions": []}',
        ": the file must have 'data', got 'questions'",
        None,
    ),
    "squad-list": (read_questions, "[]", ": the file must be an object with 'data', got []", None),
    "squad-article-without-paragraphs": (
        read_questions,
        squad(GOOD_ENTRY).replace('"data": [', '"data": [{"title": "x"}, '),
        ": article 1 must have 'paragraphs', got 'title'",
        (1, 1),
    ),
    "squad-paragraph-without-context": (
        read_questions,
        squad(GOOD_ENTRY).replace('"paragraphs": [', '"paragraphs": [{"qas": []}, '),
        ": paragraph 1 of article 1 must have 'context', got 'qas'",
        (1, 1),
    ),
    "squad-answer-not-in-the-passage": (
        read_questions,
        squad(GOOD_ENTRY, entry(answers=[{"text": "Di", "answer_start": 0}])),
        ": an answer of question 'q7' is not in the passage: 'Di'",
        (1, 1),
    ),
    "squad-one-answer-of-two-not-in-the-passage": (
        read_questions,
        squad(
            entry(answers=[{"text": "Di", "answer_start": 0}, {"text": "Bo", "answer_start": 8}])
        ),
        ": an answer of question 'q7' is not in the passage: 'Di'",
        (1, 1),
    ),
    "squad-empty-answer": (
        read_questions,
        squad(GOOD_ENTRY, entry(answers=[{"text": "", "answer_start": 0}])),
        ": an answer of question 'q7' must have a text, got ''",
        (1, 1),
    ),
    "squad-start-is-text": (
        read_questions,
        squad(GOOD_ENTRY, entry(answers=[{"text": "Bo", "answer_start": "8"}])),
        ": 'answer_start' of an answer of question 'q7' must be int, got '8'",
        (1, 1),
    ),
    "squad-start-is-true": (
        read_questions,
        squad(GOOD_ENTRY, entry(answers=[{"text": "Bo", "answer_start": True}])),
        ": 'answer_start' of an answer of question 'q7' must be int, got True",
        (1, 1),
    ),
    "squad-duplicate-id": (
        read_questions,
        squad(GOOD_ENTRY, GOOD_ENTRY),
        ": question ids must differ, got 'good' twice, at question 2 of paragraph 1 of article 1",
        (1, 1),
    ),
    "squad-no-id": (
        read_questions,
        squad(GOOD_ENTRY, entry(id=...)),
        ": question 2 of paragraph 1 of article 1 must have 'id', got 'question', 'answers'",
        (1, 1),
    ),
    "squad-no-answers": (
        read_questions,
        squad(GOOD_ENTRY, entry(answers=...)),
        ": question 'q7' must have 'answers', got 'id', 'question'",
        (1, 1),
    ),
    "squad-question-is-a-number": (
        read_questions,
        squad(GOOD_ENTRY, entry(question=7)),
        ": 'question' of question 'q7' must be str, got 7",
        (1, 1),
    ),
    "squad-impossible-with-answers": (
        read_questions,
        squad(GOOD_ENTRY, entry(is_impossible=True)),
        ": question 'q7' is impossible, yet has answers: [{'text': 'Bo', 'answer_start': 8}]",
        (1, 1),
    ),
    "squad-possible-without-answers": (
        read_questions,
        squad(GOOD_ENTRY, entry(is_impossible=False, answers=[])),
        ": question 'q7' is not impossible and must have answers, got []",
        (1, 1),
    ),
    # relations
    "relation-marker-missing": (
        read_relations,
        RELATION + '2\t"<e1>a</e1> b</e2>"\nOther\n',
        ":4: must have each of <e1> </e1> <e2> </e2> once, got <e1> </e1> </e2> in "
        "'<e1>a</e1> b</e2>'",
        (1, 1),
    ),
    "relation-without-markers": (
        read_relations,
        RELATION + '2\t"a b"\nOther\n',
        ":4: must have each of <e1> </e1> <e2> </e2> once, got none in 'a b'",
        (1, 1),
    ),
    "relation-marker-doubled": (
        read_relations,
        RELATION + '2\t"<e1>a</e1> <e1>b</e1>"\nOther\n',
        ":4: must have each of <e1> </e1> <e2> </e2> once, got <e1> </e1> <e1> </e1> in",
        (1, 1),
    ),
    "relation-markers-nested": (
        read_relations,
        RELATION + '2\t"<e1>a <e2>b</e2></e1>"\nOther\n',
        ":4: one entity must end before the other begins, got <e1> <e2> </e2> </e1> in",
        (1, 1),
    ),
    "relation-markers-crossed": (
        read_relations,
        RELATION + '2\t"</e1>a<e1> <e2>b</e2>"\nOther\n',
        ":4: one entity must end before the other begins, got </e1> <e1> <e2> </e2> in",
        (1, 1),
    ),
    "relation-entity-empty": (
        read_relations,
        RELATION + '2\t"<e1></e1> <e2>b</e2>"\nOther\n',
        ":4: an entity must not be empty, got <e1></e1> in '<e1></e1> <e2>b</e2>'",
        (1, 1),
    ),
    "relation-without-a-label": (
        read_relations,
        RELATION + '2\t"<e1>a</e1> <e2>b</e2>"\nComment: none\n',
        ":5: a sentence must be followed by its label, got 'Comment: none' after 2",
        (1, 1),
    ),
    "relation-without-a-blank-line": (
        read_relations,
        RELATION + RELATION.strip() + "\n" + RELATION,
        ":6: a label must be followed by a comment at most and a blank line, got '1\\t",
        (1, 1),
    ),
    "relation-without-a-number": (
        read_relations,
        RELATION + '"<e1>a</e1> <e2>b</e2>"\nOther\n',
        ":4: must be a number, a tab and a sentence, got '\"<e1>",
        (1, 1),
    ),
}


@pytest.mark.parametrize(("read", "content", "said", "left"), CASES.values(), ids=CASES)
def test_malformed_record(tmp_path, read, content, said, left):
    path = tmp_path / "a"
    path.write_text(content, newline="\n")
    assert message_of(read(path)).startswith(f"{path}{said}")
    records = read(path, on_error="skip")
    if left is None:
        assert message_of(records).startswith(f"{path}{said}")
        return
    assert (len(list(records)), records.skipped) == left
    assert str(records.problems[0]).startswith(f"{path}{said}")


def test_file_of_malformed_records_only(tmp_path):
    path = tmp_path / "a"
    path.write_text("[]\n[]\n")
    message = message_of(json_rows(path, on_error="skip"))
    assert message.startswith(f"{path}: no record was found (all 2 records were malformed)")


PIECES = b'" , \t \n \r ( ) { } [ ] : # - 1 2 a \\u d <e1> </e1> <e2> </e2> \xff \xef\xbb\xbf \0'


@pytest.mark.parametrize("read", [*LINE_READERS, parquet_rows, read_questions, labeled_jsonl])
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*PIECES.split(b" "), b" ", b"\n"]), max_size=40).map(b"".join))
def test_any_bytes_give_records_or_our_error(tmp_path_factory, read, content):
    path = tmp_path_factory.getbasetemp() / f"any-{read.__name__}"
    path.write_bytes(content)
    for on_error in ("raise", "skip"):
        try:
            list(read(path, on_error=on_error))
        except DataError as error:
            assert str(error).startswith(str(path))
            assert len(str(error).splitlines()) == 1


# Files whose lines belong together


@pytest.mark.parametrize(("read", "line"), [(parallel, "a b"), (token_lines, "a b")])
def test_unequal_numbers_of_lines(tmp_path, read, line):
    path, other = tmp_path / "a", tmp_path / "a.other"
    path.write_text(f"{line}\n" * 3)
    other.write_bytes(f"{line}\n".encode() * 4 + b"\xff\n")  # a skipped line is still a line
    assert message_of(read(path, on_error="skip")) == (
        f"{path}:4: must have as many lines as {other}, got 3 and 5"
    )


@pytest.mark.parametrize(
    ("read", "first", "second", "said"),
    [
        pytest.param(
            parallel,
            "a\n\nc\n",
            "x\ny\nz\n",
            ":2: a pair must have two sides, got an empty source beside 'y'",
            id="source",
        ),
        pytest.param(
            parallel,
            "a\nb\nc\n",
            "x\n \nz\n",
            ".other:2: a pair must have two sides, got an empty target beside 'b'",
            id="target",
        ),
        pytest.param(
            token_lines,
            "a\nb c\nd\n",
            "X\nX\nX\n",
            ":2: must have one tag a token, got 2 tokens and 1 tags for 'b c'",
            id="tags",
        ),
        pytest.param(
            token_lines,
            "a\n\nd\n",
            "X\n\nX\n",
            ":2: must have one tag a token, got 0 tokens and 0 tags for ''",
            id="no-tokens",
        ),
    ],
)
def test_lines_that_do_not_match(tmp_path, read, first, second, said):
    path = tmp_path / "a"
    path.write_text(first)
    (tmp_path / "a.other").write_text(second)
    assert message_of(read(path)) == f"{path}{said}"
    records = read(path, on_error="skip")
    assert (len(list(records)), records.skipped) == (2, 1)


def test_lines_stay_aligned_when_one_is_skipped(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"1\n\xff\n3\n")
    (tmp_path / "a.other").write_bytes(b"one\ntwo\nthree\n")
    pairs = [(pair.source, pair.target) for pair in parallel(path, on_error="skip")]
    assert pairs == [("1", "one"), ("3", "three")]


# Streams without an end: what is read stays small


class Endless(io.RawIOBase):
    """A file that begins with some bytes, repeats others for ever, and counts what is taken."""

    def __init__(self, start, again):
        self.taken, self._pending, self._again = 0, start, again * (1 + 4096 // len(again))

    def readable(self):
        return True

    def readinto(self, buffer):
        self._pending = self._pending or self._again
        piece, self._pending = self._pending[: len(buffer)], self._pending[len(buffer) :]
        buffer[: len(piece)] = piece
        self.taken += len(piece)
        return len(piece)


@pytest.fixture
def endless(monkeypatch):
    def start(start, again):
        raw = Endless(start, again)
        monkeypatch.setattr(Path, "open", lambda self, mode: io.BufferedReader(raw))
        return raw

    return start


@pytest.mark.parametrize("read", LINE_READERS)
def test_first_records_of_an_endless_file(endless, read):
    raw = endless(b"", GOOD[read])
    records = iter(read("endless"))
    for _ in range(10):
        next(records)
    assert raw.taken < 1 << 17


@pytest.mark.parametrize(
    ("read", "start", "again", "said"),
    [
        pytest.param(
            csv_rows,
            b'a,b\n1,"open\n',
            b"3,4\n",
            ":2: a quote is opened and never closed: '1,\"open'",
            id="csv",
        ),
        pytest.param(
            read_trees,
            b"(A a)\n(B (C c)\n",
            b"(D d)\n",
            ":2: a bracket is opened and never closed: '(B (C c)'",
            id="trees",
        ),
        pytest.param(
            read_tagged,
            b"a X\n\nb X\n",
            b"cccccccc X\n",
            ":3: the record that begins here does not end within 2",
            id="columns",
        ),
    ],
)
def test_record_without_an_end_is_given_up(endless, read, start, again, said):
    raw = endless(start, again)
    assert message_of(read("endless")).startswith(f"endless{said}")
    assert raw.taken < 20 << 20


def test_stray_quote_costs_one_line(endless):
    endless(b'a,b\n1,"open\n', b"3,4\n")
    records = csv_rows("endless", on_error="skip")
    assert next(iter(records)).line == 3
    assert records.skipped == 1


def test_a_line_without_an_end_is_refused_as_soon_as_it_is_too_long(tmp_path, monkeypatch):
    read = []

    class Endless(io.RawIOBase):
        def readable(self):
            return True

        def readline(self, size=-1):
            read.append(size)
            assert sum(read) < 100 << 20
            return b"x" * size

    monkeypatch.setattr(sources, "open_bytes", lambda _: Endless())
    with pytest.raises(DataError, match="the line is longer than 16,777,216 bytes"):
        list(sources.read_lines("endless"))
    assert len(read) == 1
    monkeypatch.setattr(sources, "MAX_FILE_BYTES", 32 << 20)
    with pytest.raises(DataError, match="the line is longer than 33,554,432 bytes"):
        list(sources.read_lines("endless", Problems("skip")))
