"""What the readers return for well-formed files, against hand-written values and other readers."""

import csv
import gzip
import io
import json
import lzma
import sys
import threading

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.columns import read_conllu, read_tagged
from seqloom.data.delimited import read_quoted
from seqloom.data.examples import (
    Answer,
    LabeledText,
    Question,
    Relation,
    TaggedTokens,
    Text,
    TextPair,
    Tree,
)
from seqloom.data.fields import read_labeled, read_pairs
from seqloom.data.lines import read_parallel, read_text, read_token_lines
from seqloom.data.problems import Problems
from seqloom.data.questions import read_questions
from seqloom.data.relations import read_relations
from seqloom.data.rows import Row, read_rows
from seqloom.data.trees import parse_trees, read_trees
from seqloom.errors import BackendError, ConfigError, DataError


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


# Text lines


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress],
    ids=["plain", "gz", "xz", "zst"],
)
def test_text_is_the_same_however_it_is_packed(write, pack):
    path = write("a.txt", pack("  one \n\n \t\n二 three\u2028four\x85five\r\nlast".encode()))
    expected = ["  one ", "二 three\u2028four\x85five", "last"]
    assert [t.text for t in read_text(path)] == expected


def test_text_of_several_files_stripped(write):
    paths = [write("a.txt", " one \n"), str(write("b.txt", "\ufefftwo\t\n"))]
    assert list(read_text(paths, strip=True)) == [Text("one"), Text("two")]


def test_text_with_its_blank_lines(write):
    path = write("a.txt", "one\n\n two\n")
    assert [t.text for t in read_text(path, keep_blank=True)] == ["one", "", " two"]


def test_text_of_no_file():
    with pytest.raises(ConfigError, match="at least one file, got none"):
        read_text([])


def test_records_can_be_read_again(write):
    records = read_text(write("a.txt", "one\ntwo\n"))
    assert list(records) == list(records) == [Text("one"), Text("two")]


def test_parallel_lines(write):
    en, de = write("a.en", "a dog\r\na cat\r\n"), write("a.de", gzip.compress(b"ein Hund\nKatze"))
    assert list(read_parallel(en, de)) == [
        TextPair("a dog", "ein Hund"),
        TextPair("a cat", "Katze"),
    ]


def test_token_lines(write):
    tokens, tags = write("seq.in", "to  new york \n"), write("seq.out", "O B-city I-city\n")
    assert list(read_token_lines(tokens, tags)) == [
        TaggedTokens(("to", "new", "york"), ("O", "B-city", "I-city"))
    ]


# Tables

TRICKY = [
    ["text", "label"],
    ['say "hi", twice', "1"],
    ["two\nlines\n\nand a blank one", "2"],
    ["", "3"],
    [" 5\" pipe'", "四"],
]


def as_csv(rows, **options):
    file = io.StringIO()
    csv.writer(file, **options).writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_csv_reads_what_the_csv_module_writes(write, end):
    path = write("a.csv", as_csv(TRICKY, lineterminator=end))
    rows = list(read_rows(path))
    assert [list(row.fields.values()) for row in rows] == TRICKY[1:]
    assert [row.line for row in rows] == [2, 3, 7, 8]
    assert {row.path for row in rows} == {str(path)}


def test_csv_agrees_with_pandas(write):
    path = write("a.csv", as_csv(TRICKY))
    expected = pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")
    assert [row.fields for row in read_rows(path)] == expected


@given(
    st.lists(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_characters="\r\0")),
            min_size=2,
            max_size=2,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_csv_of_any_text_comes_back(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(as_csv(rows, lineterminator="\n").encode())
    read = list(read_rows(path, header=("a", "b")))
    assert [[row.fields["a"], row.fields["b"]] for row in read] == rows


def test_csv_field_beyond_the_limit_of_the_csv_module(write):
    long, limit = "x" * (csv.field_size_limit() + 1), csv.field_size_limit()
    path = write("a.csv", f'text,label\n{long},1\n"{long}\n{long}",2\n')
    assert [row.fields["text"] for row in read_rows(path)] == [long, f"{long}\n{long}"]
    assert csv.field_size_limit() == limit


def test_csv_limit_holds_while_several_threads_read(write):
    limit = csv.field_size_limit()
    path = write("a.csv", "t\n" + ("x" * (limit + 1) + "\n") * 20)
    counts = []

    def read():
        counts.append(sum(1 for _ in read_quoted(path, ",", Problems())))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [21] * 4
    assert csv.field_size_limit() == limit


def test_tsv_keeps_quotes_and_blanks(write):
    path = write("a.tsv.gz", gzip.compress(b'label\ttext\n0\t"open\n1\t a "b" \n'))
    assert [row.fields for row in read_rows(path)] == [
        {"label": "0", "text": '"open'},
        {"label": "1", "text": ' a "b" '},
    ]


def test_tsv_with_quotes_on_request(write):
    path = write("a.tsv", 'a\tb\n"x\ty"\t1\n')
    assert [row.fields for row in read_rows(path, quoted=True)] == [{"a": "x\ty", "b": "1"}]


def test_tsv_without_a_header(write):
    path = write("a.txt", "hello\t3\n")
    rows = read_rows(path, format="tsv", header=("text", "label"))
    assert list(rows) == [Row({"text": "hello", "label": "3"}, str(path), 1)]


def test_jsonl_agrees_with_json(write):
    objects = [{"text": "a\u2028b", "n": [1, {"x": None}]}, {"text": "😀\\", "n": 2.5}]
    content = "\n\n".join(json.dumps(value) for value in objects)
    rows = list(read_rows(write("a.JSONL", content)))
    assert [row.fields for row in rows] == objects
    assert [row.line for row in rows] == [1, 3]


def test_parquet_over_several_row_groups(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {"text": [f"t{i}" for i in range(2500)], "labels": [["a", "b"]] * 2499 + [None]}
    pq.write_table(pa.table(columns), path, row_group_size=700)
    rows = list(read_rows(path))
    assert [row.fields["text"] for row in rows] == columns["text"]
    assert [row.fields["labels"] for row in rows] == columns["labels"]
    assert [row.line for row in rows] == list(range(1, 2501))


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BackendError, match=r"a\.pq: .* pip install 'seqloom\[tables\]'"):
        list(read_rows(tmp_path / "a.pq"))


def test_pandas_frame_has_none_for_what_is_missing():
    frame = pd.DataFrame(
        {
            "text": ["a", None],
            "label": [1.0, float("nan")],
            "when": [pd.NaT, pd.Timestamp(2020, 1, 1)],
            "kind": pd.array([pd.NA, 3], dtype="Int64"),
        }
    )
    first, second = read_rows(frame)
    assert first == Row({"text": "a", "label": 1.0, "when": None, "kind": None}, "data frame", 1)
    assert second.fields["text"] is None
    assert second.fields["label"] is None
    assert second.fields["kind"] == 3


class PolarsLike:
    """polars is no dependency of ours; this has the two attributes we use of it."""

    columns = ("text", "label")

    def iter_rows(self):
        return iter([("a", "x"), ("b", None)])


def test_polars_frame():
    assert [row.fields for row in read_rows(PolarsLike())] == [
        {"text": "a", "label": "x"},
        {"text": "b", "label": None},
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "cvs"}, "unknown format 'cvs'; did you mean 'csv'?"),
        ({"header": False}, "header must be True or the names of the columns, got False"),
        ({"header": "text"}, "got 'text'"),
        ({"header": ["a", "a"]}, r"distinct names, none of them empty, got \['a', 'a'\]"),
        ({"header": ["a", ""]}, r"got \['a', ''\]"),
        ({"format": "jsonl", "header": ["a"]}, "for csv and tsv, got them with format 'jsonl'"),
        ({"format": "parquet", "quoted": True}, "got them with format 'parquet'"),
        ({"on_error": "ignore"}, "unknown on_error 'ignore'"),
    ],
)
def test_settings_of_a_table_are_checked_at_once(options, message):
    with pytest.raises(ConfigError, match=message):
        read_rows("a.csv", **options)


def test_source_of_a_wrong_type():
    with pytest.raises(ConfigError, match="a path or a data frame, got int"):
        read_rows(3)


def test_format_that_the_name_does_not_tell():
    with pytest.raises(DataError, match=r"^a\.json\.gz: .* format= csv, tsv, jsonl, parquet"):
        read_rows("a.json.gz")


# Labeled texts and pairs


def test_labeled_csv(write):
    path = write("a.csv", "id,text,label\n1,good film, pos \n2,bad film,neg\n")
    assert list(read_labeled(path)) == [
        LabeledText("good film", ("pos",)),
        LabeledText("bad film", ("neg",)),
    ]


def test_several_labels_by_separator_or_list(write):
    by_separator = write("a.csv", "text,label\nx,a|b| c|\ny,a\n")
    expected = [LabeledText("x", ("a", "b", "c")), LabeledText("y", ("a",))]
    assert list(read_labeled(by_separator, separator="|")) == expected
    by_list = write("a.jsonl", '{"text":"x","label":["a","b","c","a"]}\n{"text":"y","label":"a"}')
    assert list(read_labeled(by_list)) == expected


def test_no_label_is_an_empty_list_or_an_empty_field_with_a_separator(write):
    expected = [LabeledText("x", ("a", "b")), LabeledText("y", ())]
    by_list = write("a.jsonl", '{"text":"x","label":["a","b"]}\n{"text":"y","label":[]}')
    assert list(read_labeled(by_list)) == expected
    by_separator = write("a.csv", "text,label\nx,a|b\ny,\n")
    assert list(read_labeled(by_separator, separator="|")) == expected
    with pytest.raises(DataError, match=r"a\.csv:3: 'label' must be a label, got ''"):
        list(read_labeled(by_separator))


@pytest.mark.parametrize(
    ("value", "label"),
    [("1", "1"), ("1.5", "1.5"), ("2.0", "2"), ("true", "True"), ('"1.0"', "1.0")],
)
def test_labels_become_text(write, value, label):
    path = write("a.jsonl", f'{{"text": "x", "label": {value}}}')
    assert next(iter(read_labeled(path))).label == label


def test_labeled_frame_with_lists_and_numbers():
    frame = pd.DataFrame({"text": ["x"], "label": [pd.Series([3, 4]).to_numpy()]})
    assert list(read_labeled(frame)) == [LabeledText("x", ("3", "4"))]


def test_pairs_join_lists_of_sentences(write):
    path = write("a.jsonl", json.dumps({"source": ["One.", "Two."], "target": "Both."}))
    assert list(read_pairs(path)) == [TextPair("One. Two.", "Both.")]


def test_pairs_of_named_columns(write):
    path = write("cmn.txt", "Hi.\t嗨。\tCC-BY\n")
    pairs = read_pairs(
        path, format="tsv", header=("en", "zh", "by"), source_field="zh", target_field="en"
    )
    assert list(pairs) == [TextPair("嗨。", "Hi.")]


def test_empty_separators_are_refused():
    with pytest.raises(ConfigError, match="separator must not be empty"):
        read_labeled("a.csv", separator="")
    with pytest.raises(ConfigError, match="separator must not be empty"):
        read_tagged("a.txt", separator="")


# Columns


def test_conll_columns(write):
    path = write(
        "a.txt",
        "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\n\n \t\nGer\u00a0man\u3000 JJ B-MISC",
    )
    assert list(read_tagged(path)) == [
        TaggedTokens(("EU", "rejects"), ("B-ORG", "O")),
        TaggedTokens(("Ger\u00a0man\u3000",), ("B-MISC",)),
    ]
    assert next(iter(read_tagged(path, tag=1))).tags == ("NNP", "VBZ")


def test_conll_columns_with_a_separator_and_digits(write):
    path = write("a.txt", "口0\tB-PER\r\n10\tO\r\n")
    assert list(read_tagged(path, separator="\t")) == [TaggedTokens(("口0", "10"), ("B-PER", "O"))]
    assert list(read_tagged(path, drop_digit=True)) == [TaggedTokens(("口", "1"), ("B-PER", "O"))]


CONLLU = """\
# sent_id = 1
# text = I don't.
1\tI\tI\tPRON\tPRP\t_\t3\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
3.2\tout\tout\tADP\tRP\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

0.1\tone\t_\tNUM\tCD\t_\t_\t_\t_\t_
1\ta b\ta b\tX\tFW\t_\t0\troot\t_\t_
"""


def test_conllu_words(write):
    path = write("a.conllu", CONLLU)
    assert list(read_conllu(path)) == [
        TaggedTokens(("I", "do", "n't", "."), ("PRON", "AUX", "PART", "PUNCT")),
        TaggedTokens(("a b",), ("X",)),
    ]
    assert [s.tags for s in read_conllu(path, tag="xpos")] == [("PRP", "VBP", "RB", "."), ("FW",)]


def test_conllu_tag_must_be_known():
    with pytest.raises(ConfigError, match="unknown tag 'pos'; did you mean 'xpos'"):
        read_conllu("a.conllu", tag="pos")


# Trees


def test_sentiment_trees(write):
    path = write("a.txt", "(3 (2 It) (4 (2 8\u00a01\\/2) (3 lovely)))\n(2 Yes)\n")
    assert list(read_trees(path)) == [
        Tree(
            "3",
            (
                Tree("2", (), "It"),
                Tree("4", (Tree("2", (), "8\u00a01\\/2"), Tree("3", (), "lovely"))),
            ),
        ),
        Tree("2", (), "Yes"),
    ]


def test_penn_trees_over_many_lines(write):
    path = write(
        "wsj.mrg",
        "\n( (S \n    (NP-SBJ (NNP Ann) )\n    (VP (VBZ sleeps)\n(ADVP (-NONE- *T*-1)) )\n"
        " (. .) ))\n"
        "((X (Y z))) (A\nb)\n( (S (A a)) (S (B b)))\n",
    )
    trees = list(read_trees(path))
    assert [tree.label for tree in trees] == ["S", "X", "A", ""]
    assert [tree.leaves() for tree in trees] == [
        ["Ann", "sleeps", "*T*-1", "."],
        ["z"],
        ["b"],
        ["a", "b"],
    ]
    assert [node.label for node in trees[0].nodes()] == [
        "S", "NP-SBJ", "NNP", "VP", "VBZ", "ADVP", "-NONE-", ".",
    ]  # fmt: skip


def test_deepest_tree_allowed_can_be_printed_and_compared(write):
    text = "(a " * 200 + "x" + ")" * 200
    (tree,) = read_trees(write("a.txt", text))
    assert len(tree.nodes()) == 200
    assert repr(tree).count("Tree(") == 200
    assert tree == parse_trees(text)[0]


# Questions


def squad(*entries, passage="Ann met Bo. Bo met Cy.", **article):
    return json.dumps({"data": [{"paragraphs": [{"context": passage, "qas": entries}], **article}]})


def test_questions(write):
    given = {
        "id": "q1",
        "question": "Who?",
        "answers": [{"text": "Bo", "answer_start": 8}, {"text": "Cy", "answer_start": 19}],
    }
    records = read_questions(write("a.json", squad(given, title="People")))
    passage = "Ann met Bo. Bo met Cy."
    assert list(records) == [
        Question("q1", passage, "Who?", (Answer("Bo", 8), Answer("Cy", 19)), "People")
    ]
    assert records.mended == 0


@pytest.mark.parametrize(
    ("start", "found"), [(-1, 8), (0, 8), (9, 8), (11, 12), (13, 12), (999, 12), (10, 8)]
)
def test_answer_is_taken_from_the_nearest_place_that_has_it(write, start, found):
    given = {"id": "q", "question": "?", "answers": [{"text": "Bo", "answer_start": start}]}
    records = read_questions(write("a.json", squad(given)))
    assert [question.answers for question in records] == [(Answer("Bo", found),)]
    assert records.mended == 1


def test_impossible_questions_have_no_answers(write):
    entries = [
        {"id": "a", "question": "?", "answers": [], "is_impossible": True},
        {"id": "b", "question": "?", "is_impossible": True, "plausible_answers": []},
        {"id": "c", "question": "?", "answers": []},
    ]
    assert [q.answers for q in read_questions(write("a.json", squad(*entries)))] == [()] * 3


# Relations


def test_relations(write):
    path = write(
        "a.TXT",
        '1\t"The <e1>child</e1> lay in a <e2>small cradle</e2>, it said "so"."\r\n'
        "Content-Container(e1,e2)\r\nComment: none\r\n\r\n"
        '2\t"<e2>Oil</e2> <e1>press</e1>"\r\nOther\r\n',
    )
    first, second = read_relations(path)
    text = 'The child lay in a small cradle, it said "so".'
    assert first == Relation(text, (4, 9), (19, 31), "Content-Container(e1,e2)", "1")
    assert (text[4:9], text[19:31]) == ("child", "small cradle")
    assert second == Relation("Oil press", (4, 9), (0, 3), "Other", "2")
