"""Word vectors as people use them: fit, ask, evaluate, save, export, hand on."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

import seqloom
from commands import call_command, start_command
from seqloom import Embedder
from seqloom.data import PrepareConfig, Text, prepare
from seqloom.errors import ConfigError, DataError, InputError, NotFittedError
from seqloom.tasks.pretrained import embedding_matrix, open_vectors
from seqloom.tasks.word_tests import evaluate_vectors, known_word
from seqloom.text import TextConfig, Vocabulary, WordVectors, read_vectors

TOPICS = {
    "zoo": "cat dog horse cow pig fur paw tail bark meow",
    "sea": "ship boat sail wave tide anchor harbor sailor deck mast",
    "food": "bread butter cheese salt soup spoon bowl plate cook oven",
}


def corpus(sentences=1200, seed=0):
    """Sentences of eight words of one topic, so that words of a topic are near each other."""
    chance, topics = np.random.default_rng(seed), [t.split() for t in TOPICS.values()]
    return [" ".join(chance.choice(topics[i % 3], 8)) for i in range(sentences)]


SMALL = {"vector_size": 16, "epochs": 8, "sample": 0, "threads": 1, "rate": 0.05}


@pytest.fixture(scope="module")
def model():
    return Embedder(**SMALL).fit(corpus())


def test_another_architecture_waits_for_the_next_fit(model, tmp_path):
    changed = copy.deepcopy(model).set_params(arch="transformer")
    assert not changed.is_contextual
    loaded = Embedder.load(changed.save(tmp_path / "model"))
    assert loaded.arch == "word2vec"
    for one in (changed, loaded):
        np.testing.assert_array_equal(one.embed(["cat"]), model.embed(["cat"]))


def test_words_of_a_topic_are_nearest(model):
    for words in TOPICS.values():
        for word in words.split():
            near = {name for name, _ in model.nearest(word, k=5)}
            assert near < set(words.split()), word
    assert model.similarity("cat", "dog") > 0.5 > model.similarity("cat", "ship")


def test_words_come_by_falling_count(model):
    counts = model.vocabulary_.counts
    assert list(counts) == sorted(counts, reverse=True) and len(counts) == 30
    assert tuple(model.vectors.words) == model.vocabulary_.words
    assert sum(counts) == 1200 * 8


def test_cosines_and_analogies_by_hand(model):
    cat, dog, ship = (model.vectors.vector(w).astype(float) for w in ("cat", "dog", "ship"))
    norm = np.linalg.norm
    assert model.similarity("cat", "dog") == pytest.approx(cat @ dog / norm(cat) / norm(dog))
    wanted = dog / norm(dog) - cat / norm(cat) + ship / norm(ship)
    rows = model.vectors.matrix.astype(float)
    cosines = rows @ wanted / norm(rows, axis=1) / norm(wanted)
    for word in ("cat", "dog", "ship"):
        cosines[model.vectors.index[word]] = -2
    (found, value), _ = model.analogy("cat", "dog", "ship", k=2)
    assert found == model.vectors.words[int(cosines.argmax())]
    assert value == pytest.approx(cosines.max(), abs=1e-6)


def test_embed_gives_rows(model):
    np.testing.assert_array_equal(
        model.embed(["cat", "mast"]),
        np.stack([model.vectors.vector("cat"), model.vectors.vector("mast")]),
    )
    assert model.embed([]).shape == (0, 16)


def test_unknown_words_are_refused_with_the_nearest_spelling(model):
    with pytest.raises(DataError, match=r"got 'anchr'; did you mean 'anchor'\?"):
        model.nearest("anchr")
    with pytest.raises(DataError, match=r"got 'zzzz'; it is not among those that were learned"):
        model.similarity("cat", "zzzz")
    with pytest.raises(DataError, match="got 'bred'; did you mean 'bread'"):
        model.analogy("cat", "dog", "bred")
    assert model.nearest("Anchor", 1) == model.nearest("anchor", 1)


def test_words_are_spelled_as_the_text_was():
    text = {"normalizer": {"lowercase": True}}
    model = Embedder(text=text, **SMALL).fit(["The Cat saw the dog"] * 30)
    assert "cat" in model.vectors and "Cat" not in model.vectors
    assert model.similarity("CAT", "cat") == pytest.approx(1)


# -- what is learned from ------------------------------------------------------------------------


def test_a_file_prepared_data_and_texts_give_the_same_bits(tmp_path, model):
    (tmp_path / "text.txt").write_text("\n".join(corpus()) + "\n", encoding="utf-8")
    from_file = Embedder(**SMALL).fit(tmp_path / "text.txt")
    prepared = prepare(
        (Text(line) for line in corpus()), tmp_path / "p", PrepareConfig(ends=True, min_count=1)
    )
    from_data = Embedder(**SMALL).fit(tmp_path / "p")
    from_object = Embedder(**SMALL).fit(prepared)
    assert from_file.vectors.matrix.tobytes() == model.vectors.matrix.tobytes()
    assert from_object.vectors.matrix.tobytes() == from_data.vectors.matrix.tobytes()
    assert set(from_data.vectors.words) == set(model.vectors.words), "</s> is no word of the text"


def test_the_vocabulary_is_limited(tmp_path):
    texts = ["a b c d"] * 6 + ["a b e"] * 4 + ["a x"]
    assert Embedder(**SMALL).fit(texts).vectors.words == ("a", "b", "c", "d")
    few = Embedder(vocabulary={"min_count": 1, "max_size": 2}, **SMALL).fit(texts)
    assert few.vectors.words == ("a", "b")
    prepare((Text(line) for line in texts), tmp_path / "p")
    assert Embedder(**SMALL).fit(tmp_path / "p").vectors.words == ("a", "b", "c", "d")


def test_unknown_words_of_a_text_are_passed_over():
    settings = {**SMALL, "vocabulary": {"min_count": 1}, "text": {"unit": "space"}}
    plain = Embedder(**settings).fit(["a b c d"] * 20)
    marked = Embedder(**settings).fit(["a <unk> b c <unk> <unk> d"] * 20)
    assert marked.vectors.matrix.tobytes() == plain.vectors.matrix.tobytes()


def test_all_four_kinds_fit_and_load(tmp_path):
    for kind in ("skip-gram", "cbow"):
        for loss in ("negative", "hierarchical"):
            place = tmp_path / f"{kind}-{loss}"
            model = Embedder(model=kind, loss=loss, **SMALL).fit(corpus(60), out=place)
            loaded = seqloom.load(place)
            assert loaded.vectors.matrix.tobytes() == model.vectors.matrix.tobytes()
            assert loaded.shapes() == model.shapes()
            assert loaded.shapes()["output"] == (30 - (loss == "hierarchical"), 16)


def test_progress_is_told():
    told = []
    Embedder(**SMALL).fit(corpus(60), callbacks=[told.append])
    assert [p.epoch for p in told] == list(range(1, 9)) and told[-1].share == 1


# -- evaluation ----------------------------------------------------------------------------------


def test_judged_pairs(tmp_path, model):
    lines = ["# comment", "cat\tdog\t9", "cat\tship\t1", "Sail\tboat\t8", "cat\tunicorn\t5"]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines), encoding="utf-8")
    found = model.evaluate(tmp_path / "pairs.tsv")
    assert (found["pairs"], found["unknown"]) == (3, 1)
    cosines = [
        model.similarity(*pair) for pair in (("cat", "dog"), ("cat", "ship"), ("sail", "boat"))
    ]
    order = np.argsort(np.argsort(cosines)) + 1
    by_hand = 1 - 6 * ((order - np.array([3, 1, 2])) ** 2).sum() / (3 * 8)
    assert found["spearman"] == pytest.approx(by_hand)


def test_analogies_by_section(tmp_path, model):
    answer, _ = model.analogy("cat", "dog", "ship")[0]
    wrong = next(w for w in model.vectors.words if w not in (answer, "cat", "dog", "ship"))
    lines = [
        ": right", f"cat dog ship {answer}",
        ": both", f"cat dog ship {answer}", f"cat dog ship {wrong}", "cat dog ship unicorn",
    ]  # fmt: skip
    (tmp_path / "questions.txt").write_text("\n".join(lines), encoding="utf-8")
    assert model.evaluate(tmp_path / "questions.txt") == {
        "accuracy": pytest.approx(2 / 3),
        "accuracy right": 1.0,
        "accuracy both": 0.5,
        "questions": 3,
        "unknown": 1,
    }


def test_a_test_of_other_words_is_refused(model):
    with pytest.raises(DataError, match=r"pairs must have known words only, got none among 1"):
        model.evaluate([{"first": "rot", "second": "blau", "score": 3}])
    with pytest.raises(DataError, match=r"questions must have known words only, got none among 0"):
        model.evaluate([])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("cat", "dog", 1.0)], r"must be tables of first.* got \('cat', 'dog', 1\.0\) as row 0"),
        ([{"first": "cat", "second": "dog", "score": 1}, {"first": "cat"}], "as row 1"),
        ([{"first": "cat", "second": None, "score": 1}], "'second': None"),
        ([{"first": "cat", "second": "dog", "score": "high"}], "must be a number, got 'high'"),
        ([{"a": "cat", "b": "dog", "c": "cat", "section": "x"}], "of section, a, b, c and d, got"),
    ],
)
def test_rows_that_are_no_test_are_refused(model, rows, message):
    with pytest.raises(InputError, match=message):
        model.evaluate(rows)


def test_what_is_no_word_is_refused(model):
    with pytest.raises(InputError, match=r"words must be a list, got 'cat'; write \['cat'\]"):
        model.embed("cat")
    for ask in (model.nearest, lambda w: model.embed([w]), lambda w: model.similarity("cat", w)):
        with pytest.raises(InputError, match="a word must be a text, got None"):
            ask(None)
    for k in (0, 2.5, None, True):
        for ask in (model.nearest, lambda w, k: model.analogy(w, w, w, k)):
            with pytest.raises(
                ConfigError, match=f"k must be a whole number of at least 1, got {k}"
            ):
                ask("cat", k)


def test_words_of_the_data_sets(shared_data):
    vectors = open_vectors("glove-6b-100d-subset")
    pairs = evaluate_vectors(vectors, "word-similarity:wordsim353")
    # Pennington et al. (2014), table 3, have 65.8 for 300 numbers of the same text.
    assert 0.5 < pairs["spearman"] < 0.66 and pairs["pairs"] + pairs["unknown"] == 353
    assert known_word(vectors, "Tiger") == "tiger"


# -- saving and handing on -----------------------------------------------------------------------


def test_a_model_directory(tmp_path, model):
    model.save(tmp_path / "model")
    loaded = Embedder.load(tmp_path / "model")
    assert loaded.vectors.matrix.tobytes() == model.vectors.matrix.tobytes()
    own = model.get_params(deep=False) | {"text": TextConfig()}
    assert loaded.get_params(deep=False) == own
    assert loaded.nearest("cat") == model.nearest("cat")
    assert not [p for p in (tmp_path / "model").iterdir() if p.suffix in (".pkl", ".pickle")]
    table = tmp_path / "model" / "vectors.npy"
    table.write_bytes(table.read_bytes()[:-4] + b"\0\0\0\0")
    with pytest.raises(DataError, match="it was altered"):
        Embedder.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["v.vec", "v.bin", "v.txt", "v.npz", "store"])
def test_exports_are_read_back(tmp_path, model, name):
    model.export(tmp_path / name)
    read = read_vectors(tmp_path / name)
    assert list(read.words) == list(model.vectors.words)
    np.testing.assert_array_equal(read.matrix, model.vectors.matrix)


def test_vectors_are_handed_on_as_an_object_a_directory_or_a_file(tmp_path, model):
    model.save(tmp_path / "model")
    model.export(tmp_path / "v.bin")
    vocabulary = Vocabulary(["cat", "unicorn", "mast"])
    tables = [
        embedding_matrix(vocabulary, source, 16)
        for source in (model, tmp_path / "model", tmp_path / "v.bin", model.vectors)
    ]
    for table in tables:
        assert table.found.tolist() == [False] * 4 + [True, False, True]
        np.testing.assert_array_equal(table.matrix, tables[0].matrix)
    np.testing.assert_array_equal(tables[0].matrix[[4, 6]], model.embed(["cat", "mast"]))


def test_a_model_of_another_task_has_no_vectors(tmp_path):
    seqloom.LanguageModel("ngram", order=2, smoothing="witten-bell").fit(
        ["a b", "b a"], out=tmp_path / "lm"
    )
    with pytest.raises(ConfigError, match=r"one of task 'embed', got 'lm'"):
        open_vectors(tmp_path / "lm")
    begins = seqloom.LanguageModel("rnn", vectors=WordVectors(["a"], np.ones((1, 2), np.float32)))
    with pytest.raises(ConfigError, match="an Embedder or WordVectors, got LanguageModel"):
        open_vectors(begins)


def test_what_does_not_belong_is_refused(tmp_path):
    for name, given in (("training", {"epochs": 3}), ("valid", ["a b"]), ("resume", True)):
        settings = {"training": given} if name == "training" else {}
        call = {} if name == "training" else {name: given}
        with pytest.raises(ConfigError, match=rf"{name} does not belong to arch='word2vec'"):
            Embedder(**settings).fit(corpus(10), **call)
    with pytest.raises(ConfigError, match=r"'vector_sze'; did you mean 'vector_size'"):
        Embedder(vector_sze=3)
    with pytest.raises(NotFittedError, match="has not been fitted"):
        Embedder().nearest("cat")
    with pytest.raises(DataError, match=r"got none in 9 sentences of 27 tokens.*sample=0"):
        Embedder(sample=1e-9, threads=1).fit(["a b c"] * 9)
    with pytest.raises(DataError, match="at least 2 words that occur often enough, got 0"):
        Embedder().fit(["a b c"], out=tmp_path / "m")
    assert not (tmp_path / "m").exists(), "a run that failed leaves nothing"


WITHOUT_TORCH = """
import sys
for name in ("torch", "safetensors", "jaxtyping"):
    sys.modules[name] = None  # as if it were not installed
import seqloom
model = seqloom.Embedder(vector_size=4, sample=0).fit(["a b c"] * 9, out=sys.argv[1])
assert seqloom.load(sys.argv[1]).nearest("a") == model.nearest("a")
"""


def test_no_torch_is_needed(tmp_path):
    subprocess.run([sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "m")], check=True)


# -- the command line ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embed")
    (folder / "text.txt").write_text("\n".join(corpus()) + "\n", encoding="utf-8")
    settings = [f"--set=model.{name}={value}" for name, value in SMALL.items()]
    result = start_command(
        *("train", "--task", "embed", "--arch", "word2vec", "--train", folder / "text.txt"),
        *("--out", folder / "model", *settings),
    )
    assert result.returncode == 0, result.stderr
    return folder / "model"


def test_the_command_line_trains_what_python_does(trained, model):
    assert Embedder.load(trained).vectors.matrix.tobytes() == model.vectors.matrix.tobytes()


def test_the_command_line_answers(trained, model, tmp_path):
    found = json.loads(call_command("embed", "nearest", trained, "cat", "-k", 3, "--json").stdout)
    assert [(row["word"], row["cosine"]) for row in found] == model.nearest("cat", 3)
    found = json.loads(
        call_command("embed", "analogy", trained, "cat", "dog", "ship", "--json").stdout
    )
    assert found[0]["word"] == model.analogy("cat", "dog", "ship")[0][0]
    found = call_command("embed", "similarity", trained, "cat", "dog").stdout
    assert float(found) == pytest.approx(model.similarity("cat", "dog"), rel=1e-5)
    assert call_command("embed", "export", trained, tmp_path / "v.bin").returncode == 0
    assert isinstance(read_vectors(tmp_path / "v.bin"), WordVectors)
    (tmp_path / "pairs.tsv").write_text("cat\tdog\t9\ncat\tship\t1\n", encoding="utf-8")
    for verb in (("embed", "evaluate"), ("evaluate",)):
        rows = json.loads(call_command(*verb, trained, tmp_path / "pairs.tsv", "--json").stdout)
        assert {row["what"]: row["value"] for row in rows}["spearman"] == 1
    wrong = call_command("embed", "nearest", trained, "anchr")
    assert wrong.returncode == 1 and "did you mean 'anchor'" in wrong.stderr


@pytest.mark.parametrize("given", [None, 5])
def test_what_is_no_text_is_refused(given):
    with pytest.raises(
        InputError, match=f"texts must be a file, NAME:SPLIT or a list, got {given}"
    ):
        Embedder().fit(given)
