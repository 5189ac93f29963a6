"""Words to numbers and back, files, and the hash that says two vocabularies number alike."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.datasets import open_dataset
from seqloom.errors import ConfigError, DataError
from seqloom.text import Specials, Vocabulary, vocabulary

words = st.text(st.characters(), min_size=1, max_size=5)  # lone surrogates too
sentences = st.lists(st.lists(words, max_size=8), max_size=8)
NAMES = ["<pad>", "<unk>", "<s>", "</s>"]


# Building


@given(sentences, st.integers(1, 3), st.none() | st.integers(0, 5))
def test_words_are_ordered_by_count_then_spelling(text, min_count, max_size):
    built = Vocabulary.build(text, min_count=min_count, max_size=max_size)
    counts = Counter(word for sentence in text for word in sentence)
    expected = sorted(
        (w for w, n in counts.items() if n >= min_count and w not in NAMES),
        key=lambda w: (-counts[w], w),
    )[:max_size]
    assert built.words == (*NAMES, *expected)
    assert list(built) == list(built.words)
    assert built.counts == tuple(counts[w] for w in expected)
    assert len(built) == 4 + len(expected)


@given(sentences)
def test_ids_lead_back_to_words(text):
    built = Vocabulary.build(text)
    for sentence in text:
        ids = built.encode(sentence)
        assert ids.dtype == np.int32
        assert built.decode(ids) == sentence
        assert [built[word] for word in sentence] == ids.tolist()
        assert all(word in built for word in sentence)


@given(sentences, st.randoms(use_true_random=False))
def test_the_order_of_building_does_not_matter(text, random):
    shuffled = [sorted(sentence, key=lambda _: random.random()) for sentence in text]
    random.shuffle(shuffled)
    counts = Counter(word for sentence in text for word in sentence)
    one, two, three = map(Vocabulary.build, (text, shuffled, counts))
    assert one.hash == two.hash == three.hash
    assert one == two and hash(one) == hash(two)


def test_a_special_in_the_text_is_the_special():
    built = Vocabulary.build([["<unk>", "a", "</s>", "a"]])
    assert built.words == (*NAMES, "a")
    assert built.encode(["<unk>", "a", "</s>", "new"]).tolist() == [1, 4, 3, 1]


def test_specials_may_be_left_out_and_added():
    specials = Specials(pad="", bos="", more=("<mask>", "<sep>"))
    built = Vocabulary.build([["a"]], specials=specials)
    assert built.words == ("<unk>", "</s>", "<mask>", "<sep>", "a")
    assert built["new"] == 0


def test_nothing_to_count_leaves_the_specials():
    assert Vocabulary.build([]).words == tuple(NAMES)
    assert Vocabulary.build([[]]).encode([]).tolist() == []
    assert repr(Vocabulary([])).startswith("Vocabulary(4 ids, hash ")


def test_the_penn_treebank_has_ten_thousand_words(shared_data):
    # Mikolov et al. (2010): 10,000 words, two of which are our specials <unk> and </s>.
    text = (example.text.split() for example in open_dataset("ptb", "train"))
    built = Vocabulary.build(text)
    assert len(built) - len(["<pad>", "<s>"]) == 10_000
    assert "<unk>" in built and built["N"] > 3
    assert built.decode([4]) == ["the"]


# Words that are not there


def test_unknown_words_become_unk():
    assert Vocabulary(["a"]).encode(["a", "b", "A"]).tolist() == [4, 1, 1]


def test_unknown_words_raise():
    with pytest.raises(DataError, match="'b' is not in the vocabulary of 5 words"):
        Vocabulary(["a"], out_of_vocabulary="error").encode(["a", "b"])


@given(words)
def test_unknown_words_are_spread_over_buckets(word):
    made = Vocabulary(["a"], out_of_vocabulary="hash", buckets=7)
    assert len(made) == 5 + 7
    number = made[word]
    if word in made:
        assert made.decode([number]) == [word]
    else:
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        bucket = int.from_bytes(digest, "little") % 7
        assert number == 5 + bucket
        assert made.decode([number]) == [f"<bucket:{bucket}>"]


def test_every_bucket_is_used():
    made = Vocabulary([], out_of_vocabulary="hash", buckets=5)
    assert set(made.encode(map(str, range(200))).tolist()) == {4, 5, 6, 7, 8}


def test_looking_for_a_word_does_not_add_it():
    made = Vocabulary(["a"])
    made.encode(["b"])
    assert "b" not in made and len(made) == 5


# The hash


def test_the_hash_is_that_of_a_json_text():
    made = Vocabulary(["b", "é"], [2, 1])
    text = (
        '{"buckets":0,"format":1,"out_of_vocabulary":"unk",'
        '"specials":{"bos":"<s>","eos":"</s>","more":[],"pad":"<pad>","unk":"<unk>"},'
        '"words":["b","\\u00e9"]}'
    )
    assert made.hash == hashlib.sha256(text.encode("ascii")).hexdigest()


def test_the_hash_differs_when_ids_may():
    different = [
        Vocabulary(["a", "b"]),
        Vocabulary(["b", "a"]),
        Vocabulary(["a"]),
        Vocabulary(["ab"]),
        Vocabulary(["a", "B"]),
        Vocabulary(["a", "b"], specials=Specials(unk="<UNK>")),
        Vocabulary(["a", "b"], specials=Specials(bos="")),
        Vocabulary(["b"], specials=Specials(more=("a",))),
        Vocabulary(["a", "b"], out_of_vocabulary="error"),
        Vocabulary(["a", "b"], out_of_vocabulary="hash", buckets=1),
        Vocabulary(["a", "b"], out_of_vocabulary="hash", buckets=2),
    ]
    assert len({made.hash for made in different}) == len(different)
    assert len(set(different)) == len(different)
    assert different[0] != "a vocabulary"


def test_counts_are_no_part_of_the_hash():
    assert (
        Vocabulary(["a", "b"], [2, 1]) == Vocabulary(["a", "b"]) == Vocabulary(["a", "b"], [9, 3])
    )


# Files


@given(text=sentences, policy=st.sampled_from([("unk", 0), ("error", 0), ("hash", 3)]))
def test_saved_and_loaded(tmp_path_factory, text, policy):
    built = Vocabulary.build(text, out_of_vocabulary=policy[0], buckets=policy[1])
    path = tmp_path_factory.mktemp("vocabulary") / "words.json"
    built.save(path)
    loaded = Vocabulary.load(path)
    assert loaded == built
    assert (loaded.words, loaded.counts) == (built.words, built.counts)
    assert loaded.to_dict() == built.to_dict()


@pytest.mark.parametrize("word", ["\n", '"', "\\", "a\u2028b", "\ud800", "\x00", " ", "中", "👍🏽"])
def test_awkward_words_survive(tmp_path, word):
    made = Vocabulary(["a", word])
    made.save(tmp_path / "words.json")
    assert Vocabulary.load(tmp_path / "words.json").decode([5]) == [word]


def test_copies_work():
    made = Vocabulary(["a"], out_of_vocabulary="hash", buckets=3)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other == made and other["new"] == made["new"]


GOOD = Vocabulary(["a", "b"], [2, 1]).to_dict()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Expecting value"),
        ("[]", "format 1"),
        ("null", "format 1"),
        ("{}", "format 1"),
        (json.dumps(GOOD)[:-5], "Expecting"),
        (json.dumps(GOOD | {"format": 2}), "format 1"),
        (json.dumps(GOOD | {"format": "1"}), "format 1"),
        (json.dumps(GOOD | {"wrds": []}), "unknown setting 'wrds'; did you mean 'words'"),
        (json.dumps(GOOD | {"words": "ab"}), "'words' must be a list, got 'ab'"),
        (json.dumps(GOOD | {"words": ["a", 3]}), r"'words\[1\]' must be text, got 3"),
        (json.dumps(GOOD | {"words": ["a", "a"]}), "got 'a'"),
        (json.dumps(GOOD | {"words": ["a", "<s>"]}), "got '<s>'"),
        (json.dumps(GOOD | {"counts": [1]}), "2 words need as many counts, got 1"),
        (json.dumps(GOOD | {"buckets": 5}), "got 5 with 'unk'"),
        (json.dumps(GOOD | {"buckets": -1, "out_of_vocabulary": "hash"}), "got -1 with 'hash'"),
        (json.dumps(GOOD | {"out_of_vocabulary": "drop"}), "got 'drop'"),
        (json.dumps(GOOD | {"out_of_vocabulary": 7}), "got 7"),
        (json.dumps(GOOD | {"specials": {"pad": None}}), r"'specials\.pad' must be text, got None"),
        (json.dumps(GOOD | {"specials": {"pad": "<s>"}}), "differ.*<s>"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_broken_files_are_refused_with_their_path(tmp_path, content, message):
    path = tmp_path / "words.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=rf"words\.json: is not a vocabulary .*{message}"):
        Vocabulary.load(path)


def test_missing_binary_and_large_files_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "words.json"
    with pytest.raises(DataError, match=r"words\.json: no such file"):
        Vocabulary.load(path)
    with pytest.raises(DataError, match=f"{tmp_path.name}: is not a vocabulary"):
        Vocabulary.load(tmp_path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"words\.json: is not a vocabulary .*0xff"):
        Vocabulary.load(path)
    monkeypatch.setattr(vocabulary, "MAX_FILE_BYTES", 2)
    with pytest.raises(DataError, match=r"words\.json: is larger than 2 bytes"):
        Vocabulary.load(path)


# What is refused


@pytest.mark.parametrize("ids", [[-1], [0, 6], [[2, 3], [4, 99]], np.array([2**40])])
def test_ids_out_of_range_are_refused(ids):
    wrong = next(i for i in np.ravel(ids).tolist() if not 0 <= i < 6)
    with pytest.raises(DataError, match=rf"0\.\.5, got {wrong}"):
        Vocabulary(["a", "b"]).decode(ids)


@pytest.mark.parametrize("ids", [[1.5], ["a"], [True]])
def test_ids_that_are_no_whole_numbers_are_refused(ids):
    with pytest.raises(DataError, match=f"whole numbers, got .*{ids[0]}"):
        Vocabulary(["a", "b"]).decode(ids)


def test_ids_of_any_shape_are_decoded_in_order():
    assert Vocabulary(["a", "b"]).decode(np.array([[4, 5], [5, 1]])) == ["a", "b", "b", "<unk>"]
    assert Vocabulary(["a"]).decode(4) == ["a"]
    assert Vocabulary(["a"]).decode([]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out_of_vocabulary": "ukn"}, "policy 'ukn'; did you mean 'unk'"),
        ({"out_of_vocabulary": "hash"}, "got 0 with 'hash'"),
        ({"buckets": 3}, "got 3 with 'unk'"),
        ({"specials": Specials(unk="")}, "got unk=''"),
        ({"counts": [1, 2, 3]}, "1 words need as many counts, got 3"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Vocabulary(["a"], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"min_count": 0}, "got 0 and None"), ({"max_size": -1}, "got 1 and -1")],
)
def test_limits_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Vocabulary.build([["a"]], **options)


def test_words_must_differ():
    with pytest.raises(ConfigError, match="got 'b'"):
        Vocabulary(["a", "b", "c", "b"])
    with pytest.raises(ConfigError, match="got '</s>'"):
        Vocabulary(["a", "</s>"])
    with pytest.raises(ConfigError, match=r"must differ from each other, got .*'<s>', '<s>'"):
        Specials(eos="<s>")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(DataError, match=r"missing/words.json: cannot be written \(No such file"):
        Vocabulary(["a"]).save(tmp_path / "missing" / "words.json")
