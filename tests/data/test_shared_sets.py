"""Every data set of the catalogue, read whole, with the counts its manifest gives.

The counts are copied by hand from the manifest that comes with the files, or from the papers.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from seqloom.data.datasets import (
    dataset_file,
    dataset_names,
    find_dataset,
    open_dataset,
    verify,
)
from seqloom.data.datasets.archives import iter_members
from seqloom.data.datasets.corpora import read_tree_texts
from seqloom.data.questions import read_questions
from seqloom.data.relations import read_relations

MEASURES = {
    "words": lambda example: len(example.text.split()),
    "words and line ends": lambda example: len(example.text.split()) + 1,
    "characters": lambda example: len(example.text.replace("\n", "")),
    "characters and line ends": lambda example: len(example.text) + 1,
    "tokens": lambda example: len(example.tokens),
    "answers": lambda example: len(example.answers),
    "nodes": lambda example: len(example.nodes()),
}

# data set, split, variant, examples, further counts
COUNTS = [
    ("ptb", "train", None, 42_068, {"words": 887_521, "words and line ends": 929_589}),
    ("ptb", "valid", None, 3_370, {"words": 70_390, "words and line ends": 73_760}),
    ("ptb", "test", None, 3_761, {"words": 78_669, "words and line ends": 82_430}),
    ("wikitext-2", "train", None, 36_718, {"words and line ends": 2_088_628}),
    ("wikitext-2", "valid", None, 3_760, {"words and line ends": 217_646}),
    ("wikitext-2", "train", "plain", 23_767, {}),
    ("wikitext-2", "valid", "plain", 2_461, {}),
    ("brown", "all", None, 57_340, {"tokens": 1_161_192}),  # as NLTK's book counts them
    ("brown", "all", "text", 57_340, {}),
    ("brown", "train", "text", 35_523, {}),
    ("brown", "valid", "text", 11_690, {}),
    ("brown", "test", "text", 10_127, {}),
    ("tinyshakespeare", "all", None, 40_000, {"characters and line ends": 1_115_394}),
    ("pd199801", "all", None, 19_484, {"tokens": 1_121_447}),
    ("pd199801", "train", None, 15_587, {}),
    ("pd199801", "valid", None, 1_948, {}),
    ("pd199801", "test", None, 1_949, {}),
    *(
        ("pd199801", *part)
        for part in (
            ("all", "text", 19_484, {}),
            ("train", "text", 15_587, {}),
            ("valid", "text", 1_948, {}),
            ("test", "text", 1_949, {}),
        )
    ),
    ("tang-poems", "all", None, 57_607, {"characters": 3_668_082}),
    ("tang-poems", "all", "rows", 57_607, {}),
    ("tang-poems", "train", None, 51_846, {}),
    ("tang-poems", "valid", None, 2_881, {}),
    ("tang-poems", "test", None, 2_880, {}),
    ("squad-v1.1", "train", None, 87_599, {}),
    ("squad-v1.1", "valid", None, 10_570, {"answers": 34_726}),
    ("squad-v1.1", "train", "passages", 18_896 - 5, {}),  # five repeat
    ("squad-v1.1", "valid", "passages", 2_067, {}),
    ("cmrc2018", "trial", None, 1_000, {}),  # two have no text
    ("cmrc2018", "valid", None, 3_219, {"answers": 9_657 - 193}),  # 193 are not in the passage
    ("drcd", "valid", None, 3_524, {}),
    ("squad-zh-mt", "train", None, 6_387, {}),
    ("bipar-zh", "valid", None, 1_500, {}),
    ("semeval2010-task8", "train", None, 8_000, {}),
    ("semeval2010-task8", "test", None, 2_717, {}),
    ("sst", "train", "binary", 6_920, {}),
    ("sst", "valid", "binary", 872, {}),
    ("sst", "test", "binary", 1_821, {}),
    ("sst", "train", "fine", 8_544, {}),
    ("sst", "valid", "fine", 1_101, {}),
    ("sst", "test", "fine", 2_210, {}),
    ("sst-trees", "train", None, 8_544, {"nodes": 318_582}),
    ("sst-trees", "valid", None, 1_101, {}),
    ("sst-trees", "test", None, 2_210, {}),
    ("sst-trees", "train", "binary", 6_920, {}),
    ("sst-trees", "valid", "binary", 872, {}),
    ("sst-trees", "test", "binary", 1_821, {}),
    ("mr", "all", None, 10_662, {}),
    ("imdb", "train", None, 25_000, {}),
    ("imdb", "test", None, 25_000, {}),
    ("chnsenticorp", "train", None, 9_600, {}),
    ("chnsenticorp", "valid", None, 1_200, {}),
    ("chnsenticorp", "test", None, 1_200, {}),
    ("thucnews-headlines-20k", "valid", None, 10_000, {}),
    ("thucnews-headlines-20k", "test", None, 10_000, {}),
    ("ud-english-ewt", "train", "upos", 12_544, {}),
    ("ud-english-ewt", "valid", "upos", 2_001, {}),
    ("ud-english-ewt", "test", "upos", 2_077, {}),
    ("ud-english-ewt", "train", "xpos", 12_544, {}),
    ("ud-english-ewt", "valid", "xpos", 2_001, {}),
    ("ud-english-ewt", "test", "xpos", 2_077, {}),
    ("ud-chinese-gsd-v1.4", "train", "upos", 3_997, {"tokens": 98_608}),
    ("ud-chinese-gsd-v1.4", "valid", "upos", 500, {"tokens": 12_663}),
    ("ud-chinese-gsd-v1.4", "test", "upos", 500, {"tokens": 12_012}),
    ("ud-chinese-gsd-v1.4", "train", "xpos", 3_997, {}),
    ("ud-chinese-gsd-v1.4", "valid", "xpos", 500, {}),
    ("ud-chinese-gsd-v1.4", "test", "xpos", 500, {}),
    ("ud-chinese-gsdsimp", "valid", "upos", 500, {}),
    ("ud-chinese-gsdsimp", "test", "upos", 500, {}),
    ("ud-chinese-gsdsimp", "valid", "xpos", 500, {}),
    ("ud-chinese-gsdsimp", "test", "xpos", 500, {}),
    ("conll2000-chunking", "train", "chunk", 8_936, {"tokens": 211_727}),
    ("conll2000-chunking", "test", "chunk", 2_012, {"tokens": 47_377}),
    ("conll2000-chunking", "train", "pos", 8_936, {"tokens": 211_727}),
    ("conll2000-chunking", "test", "pos", 2_012, {"tokens": 47_377}),
    ("wnut17", "train", None, 3_394, {}),
    ("wnut17", "valid", None, 1_009, {}),
    ("wnut17", "test", None, 1_287, {}),
    ("weibo-ner-zh", "train", None, 1_350, {}),
    ("weibo-ner-zh", "valid", None, 270, {}),
    ("weibo-ner-zh", "test", None, 270, {}),
    ("resume-ner-zh", "train", None, 3_821, {}),
    ("resume-ner-zh", "valid", None, 463, {}),
    ("resume-ner-zh", "test", None, 477, {}),
    ("atis", "train", "slots", 4_478, {}),
    ("atis", "valid", "slots", 500, {}),
    ("atis", "test", "slots", 893, {}),
    ("atis", "train", "intents", 4_478, {}),
    ("atis", "valid", "intents", 500, {}),
    ("atis", "test", "intents", 893, {}),
    ("multi30k-en-de", "train", "en-de", 29_000, {}),
    ("multi30k-en-de", "valid", "en-de", 1_014, {}),
    ("multi30k-en-de", "test", "en-de", 1_000, {}),
    ("multi30k-en-de", "train", "de-en", 29_000, {}),
    ("multi30k-en-de", "valid", "de-en", 1_014, {}),
    ("multi30k-en-de", "test", "de-en", 1_000, {}),
    ("tatoeba-cmn-eng", "all", "en-zh", 22_075, {}),
    ("tatoeba-cmn-eng", "all", "zh-en", 22_075, {}),
    # Split by a hash of one side, counted over the raw files by the hash's definition.
    ("tatoeba-cmn-eng", "train", "en-zh", 19_906, {}),
    ("tatoeba-cmn-eng", "valid", "en-zh", 1_081, {}),
    ("tatoeba-cmn-eng", "test", "en-zh", 1_088, {}),
    ("tatoeba-cmn-eng", "train", "zh-en", 19_906, {}),
    ("tatoeba-cmn-eng", "valid", "zh-en", 1_081, {}),
    ("tatoeba-cmn-eng", "test", "zh-en", 1_088, {}),
    ("bbc-news-summary", "train", "title", 1_964, {}),
    ("bbc-news-summary", "valid", "title", 134, {}),
    ("bbc-news-summary", "test", "title", 127, {}),
    ("tatoeba-cmn-eng", "all", "rows", 22_075, {}),
    ("debian-synopsis", "train", None, 40_893, {}),
    ("debian-synopsis", "valid", None, 2_322, {}),
    ("debian-synopsis", "test", None, 2_353, {}),
    ("debian-synopsis", "train", "descriptions", 40_893, {}),
    ("debian-synopsis", "valid", "descriptions", 2_322, {}),
    ("treebank-sample", "all", None, 3_914, {}),
    ("bbc-news-summary", "all", "summary", 2_225, {}),
    ("bbc-news-summary", "all", "topic", 2_225, {}),
    ("scitldr-a", "train", "first", 1_992, {}),
    ("scitldr-a", "valid", "first", 619, {}),
    ("scitldr-a", "test", "first", 618, {}),
    ("scitldr-a", "train", "rows", 1_992, {}),
    ("scitldr-a", "valid", "rows", 619, {}),
    ("scitldr-a", "test", "rows", 618, {}),
    ("csl-ts-zh", "valid", None, 1_000, {}),
    ("csl-ts-zh", "test", None, 1_000, {}),
    ("word-similarity", "analogies", None, 19_544, {}),
    ("word-similarity", "simlex999", None, 999, {}),
    ("word-similarity", "wordsim353", None, 353, {}),
    ("names-18-languages", "all", None, 20_050, {}),
    ("udhr-langid", "all", "texts", 52, {}),
    ("udhr-langid", "train", "snippets", 38_406, {"characters": 768_120}),
    ("udhr-langid", "valid", "snippets", 3_156, {"characters": 63_120}),
    ("udhr-langid", "test", "snippets", 5_139, {"characters": 102_780}),
    ("time-series", "airline", None, 144, {}),
    ("time-series", "sunspots", None, 2_820, {}),
    ("time-series", "temperatures", None, 3_650, {}),
]


@pytest.mark.parametrize(("name", "split", "variant", "examples", "further"), COUNTS)
def test_read_whole(shared_data, name, split, variant, examples, further):
    count, totals = 0, Counter()
    for example in open_dataset(name, split, variant=variant):
        count += 1
        for measure in further:
            totals[measure] += MEASURES[measure](example)
    assert (count, dict(totals)) == (examples, further)


def test_every_split_is_counted():
    listed = {(name, split, variant or "") for name, split, variant, *_ in COUNTS}
    known = {
        (name, split.name, split.variant)
        for name in dataset_names()
        for split in find_dataset(name).splits
    }
    usual = {(name, find_dataset(name).split(s, v or None).name, v) for name, s, v in listed}
    assert len(usual) == len(listed)
    missing = {
        (name, split, variant)
        for name, split, variant in known
        if (name, split, variant) not in listed
        and not (variant == find_dataset(name).split(split).variant and (name, split, "") in listed)
    }
    assert missing == {
        ("udhr-langid", "all", "lines"),
        ("udhr-langid", "train", "dense"),  # the same snippets, and those between them
        ("sst-trees", "train", "phrases"),  # no published count is the same
        ("imdb", "train", "sentences"),  # nobody has counted them
        ("wikitext-2", "train", "known"),  # nobody else leaves these sentences out
        ("wikitext-2", "valid", "known"),
    }


@pytest.mark.parametrize("name", dataset_names())
def test_every_file_has_its_checksum(shared_data, name):
    assert [(s.name, s.detail) for s in verify(name) if s.state != "ok"] == []


def test_every_folder_is_in_the_catalogue(shared_data):
    assert dataset_names() == sorted(p.name for p in shared_data.iterdir() if p.is_dir())


@pytest.mark.parametrize(
    ("name", "split", "articles", "paragraphs"),
    [
        ("squad-v1.1", "train", 442, 18_896),
        ("squad-v1.1", "valid", 48, 2_067),
        ("cmrc2018", "trial", None, 256),
        ("cmrc2018", "valid", None, 848),
        ("drcd", "valid", None, 1_000),
        ("squad-zh-mt", "train", None, 1_807),
    ],
)
def test_passages_of_questions(shared_data, name, split, articles, paragraphs):
    questions = list(open_dataset(name, split))
    if name == "squad-v1.1" and split == "train":  # its ids number the paragraphs; five repeat
        passages = {question.id.rpartition("-")[0] for question in questions}
    else:
        passages = {(question.title, question.passage) for question in questions}
    assert len(passages) == paragraphs
    if articles is not None:
        assert len({question.title for question in questions}) == articles
    for question in questions:
        for answer in question.answers:
            end = answer.start + len(answer.text)
            assert question.passage[answer.start : end] == answer.text


@pytest.mark.parametrize(
    ("split", "mended", "skipped"),
    [("valid", 200 - 193, 193), ("trial", 5, 2)],  # answers not in the passage; empty questions
)
def test_wrong_answer_positions_of_cmrc_are_put_right(shared_data, split, mended, skipped):
    questions = open_dataset("cmrc2018", split)
    for _ in questions:
        pass
    assert (questions.mended, questions.skipped) == (mended, skipped)


@pytest.mark.parametrize(
    ("name", "split", "variant", "labels"),
    [
        ("mr", "all", None, [5_331, 5_331]),
        ("imdb", "train", None, [12_500, 12_500]),
        ("imdb", "test", None, [12_500, 12_500]),
        ("bbc-news-summary", "all", "topic", [511, 510, 417, 401, 386]),
        ("thucnews-headlines-20k", "test", None, [1_000] * 10),
    ],
)
def test_classes(shared_data, name, split, variant, labels):
    counts = Counter(example.label for example in open_dataset(name, split, variant=variant))
    assert sorted(counts.values(), reverse=True) == labels


@pytest.mark.parametrize(
    ("name", "split", "variant", "classes"),
    [
        ("semeval2010-task8", "train", None, 19),
        ("sst", "train", "binary", 2),
        ("sst", "train", "fine", 5),
        ("names-18-languages", "all", None, 18),
        ("udhr-langid", "all", "texts", 52),
        ("udhr-langid", "all", "lines", 52),
    ],
)
def test_number_of_classes(shared_data, name, split, variant, classes):
    records = open_dataset(name, split, variant=variant)
    assert len({example.label for example in records}) == classes


def test_sentences_and_trees_of_sst_have_the_same_labels(shared_data):
    fine = Counter(example.label for example in open_dataset("sst", "train", variant="fine"))
    assert fine == Counter(tree.label for tree in open_dataset("sst-trees", "train"))
    for split in ("train", "valid", "test"):
        binary = Counter(example.label for example in open_dataset("sst", split))
        trees = open_dataset("sst-trees", split, variant="binary")
        assert binary == Counter(example.label for example in trees)


def test_dense_snippets_hold_the_others(shared_data):
    some, dense = (
        Counter(e.text + e.label for e in open_dataset("udhr-langid", "train", variant=variant))
        for variant in ("snippets", "dense")
    )
    assert some <= dense
    assert sum(dense.values()) == pytest.approx(5 * sum(some.values()), rel=0.001)


def test_phrases_of_a_tree(tmp_path):
    (tmp_path / "trees.txt").write_text(
        "(4 (2 It) (3 (2 is) (3 good)))\n(1 (3 good) (1 (2 but) (0 dull)))\n(2 (2 A) (2 film))\n"
    )
    both = {
        phrases: [
            (e.text, e.label) for e in read_tree_texts(tmp_path / "trees.txt", phrases=phrases)
        ]
        for phrases in (False, True)
    }
    assert both[False] == [("It is good", "1"), ("good but dull", "0")]
    assert both[True] == [
        ("It is good", "1"),
        ("is good", "1"),
        ("good", "1"),
        ("good but dull", "0"),
        ("but dull", "0"),
        ("dull", "0"),
    ]


def test_wikitext_has_its_vocabulary(shared_data):
    lines = open_dataset("wikitext-2", "train")
    assert len({word for line in lines for word in line.text.split()} | {"<eos>"}) == 33_278


def test_brown_has_500_texts(shared_data):
    members = [m.name for m in iter_members(dataset_file("brown", "brown.tar"))]
    assert sum(len(Path(name).name) == 4 for name in members) == 500


def test_the_first_compound_of_peoples_daily_is_opened(shared_data):
    for sentence in open_dataset("pd199801"):
        if "广播" in sentence.tokens:
            at = sentence.tokens.index("广播")
            assert sentence.tokens[at - 2 : at + 2] == ("中央", "人民", "广播", "电台")
            assert sentence.tags[at - 2 : at + 2] == ("n", "n", "vn", "n")
            break


def test_synopses_have_the_stated_lengths(shared_data):
    pairs = list(open_dataset("debian-synopsis", "train"))
    means = [
        sum(len(text.split()) for text in side) / len(pairs)
        for side in ([p.source for p in pairs], [p.target for p in pairs])
    ]
    assert means == [pytest.approx(61, abs=0.6), pytest.approx(6.6, abs=0.06)]


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("glove-6b-100d-subset", "glove-100d-restricted.f16.npz", 121_423),
        ("zh-word2vec-100d", "zh-w2v-100d-top60k.f16.npz", 66_643),
    ],
)
def test_vectors(shared_data, name, file, words):
    with np.load(dataset_file(name, file)) as table:
        assert table["words"].shape == (words,)
        assert table["vectors"].shape == (words, 100)
        assert table["vectors"].dtype == np.float16


def test_files_to_compare_with(shared_data):
    golden = find_dataset("lmplz-golden").files
    assert sum(file.name.endswith(".arpa") for file in golden) == 8
    assert sum(file.name.endswith(".txt") for file in golden) == 2
    fixtures = dataset_file("semeval2010-task8", "scorer-fixtures.tar")
    names = [Path(member.name).name for member in iter_members(fixtures)]
    assert sum(name.startswith("answer_key") for name in names) == 4
    assert sum(name.startswith("result_scores") for name in names) == 4


def test_answers_of_cmrc_that_are_misplaced_or_absent(shared_data):
    """Of 200 wrong `answer_start`, 7 have their text elsewhere in the passage and 193 nowhere."""
    records = read_questions(shared_data / "cmrc2018/cmrc2018_dev.json.xz", on_error="skip")
    questions = list(records)
    assert len(questions) == 3219
    assert (records.mended, records.skipped) == (7, 193)
    assert sum(len(question.answers) for question in questions) == 9657 - 193
    for question in questions:
        for answer in question.answers:
            assert question.passage[answer.start :].startswith(answer.text)


def test_relations_have_19_labels_and_the_entities_they_mark(shared_data):
    relations = list(read_relations(shared_data / "semeval2010-task8/TRAIN_FILE.TXT.xz"))
    assert len({relation.label for relation in relations}) == 19
    first = relations[0]
    assert first.text[slice(*first.first)] == "configuration"
    assert first.text[slice(*first.second)] == "elements"
    assert not any("<e" in relation.text or "</e" in relation.text for relation in relations)


@pytest.mark.parametrize(
    ("name", "variant"), [("brown", "text"), ("pd199801", None), ("tang-poems", None)]
)
def test_parts_of_a_file_are_all_of_it_once_and_in_order(shared_data, name, variant):
    whole = list(open_dataset(name, "all", variant=variant))
    parts = [list(open_dataset(name, s, variant=variant)) for s in ("train", "valid", "test")]
    assert [example for part in parts for example in part] == whole


def test_the_parts_of_brown_begin_where_bengio_cut(shared_data):
    words = [
        sum(len(e.text.split()) for e in open_dataset("brown", s, variant="text"))
        for s in ("train", "valid")
    ]
    longest = max(len(e.text.split()) for e in open_dataset("brown", "all", variant="text"))
    assert 0 <= words[0] - 800_000 < longest and 0 <= sum(words) - 1_000_000 < longest
