"""The grammar as people use it: `LanguageModel("pcfg")` and `seqloom parse`."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from trees import treebank

import seqloom
from seqloom import LanguageModel
from seqloom.data.examples import Tree
from seqloom.errors import ConfigError, DataError
from seqloom.grammar import PcfgConfig, bracketed, plain_tree, sentences
from seqloom.grammar.arrays import arrays_to_bytes, read_arrays
from seqloom.tasks.grammar_language import parse_text

TREES = treebank(200)
HELD_OUT = treebank(40, seed=1)
TEXTS = [" ".join(words) for words in sentences(HELD_OUT)]
SCRIPT = str(Path(sys.executable).with_name("seqloom"))


@pytest.fixture(scope="module")
def model():
    return LanguageModel("pcfg", horizontal=1, vocabulary={"min_count": 2}).fit(TREES)


def test_the_next_word_is_a_distribution(model):
    for prompt in ["", "the", "the old cat", "zzz", "the the the and zzz ( )"]:
        found = dict(model.next(prompt))
        assert sum(found.values()) == pytest.approx(1, abs=1e-9)
        scored = model.score(f"{prompt} cat").log_probs[-2]
        assert math.log(found["cat"]) == pytest.approx(scored, abs=1e-9)
        assert math.log(found["</s>"]) == pytest.approx(model.score(prompt).log_probs[-1], abs=1e-9)
        unknown = model.score(f"{prompt} quux")
        assert unknown.unknown[-2]
        assert math.log(found["<unk>"]) == pytest.approx(unknown.log_probs[-2], abs=1e-9)


def test_sentences_of_a_length_and_longer_ones_sum_to_one():
    """Every sentence of up to two words, and every beginning of three, over a small vocabulary."""
    trees = [Tree("S", (Tree("N", (), "a"), Tree("V", (), "b"))), Tree("N", (), "a")] * 2
    fitted = LanguageModel("pcfg", fallback=0.2).fit(trees)
    words = ["a", "b", "?"]
    total = math.exp(fitted.score("").total)
    for one in words:
        total += math.exp(fitted.score(one).total)
        for two in words:
            total += math.exp(fitted.score(f"{one} {two}").total)
            for three in words:
                total += math.exp(sum(fitted.score(f"{one} {two} {three}").log_probs[:3]))
    assert total == pytest.approx(1, abs=1e-9)


def test_a_mixture_of_the_grammar_and_the_flat_grammar(model):
    """Both parts computed apart: the grammar by its chart, the flat one by its equation."""
    own = model.model_
    for text in TEXTS[:10]:
        ids = model.vocabulary_.encode(model.pipeline_.words(text))
        reader = own.start()._chart
        for id_ in ids:
            reader.advance(own.emission(int(id_)))
        by_grammar = math.exp(reader.log_prob) * reader.end
        flat = own.end_prob * (1 - own.end_prob) ** len(ids)
        for id_ in ids:
            flat *= sum(own.tag_probs * own.emission(int(id_)))
        expected = (1 - 1e-3) * by_grammar + 1e-3 * flat
        assert model.score(text).total == pytest.approx(math.log(expected), rel=1e-9)


def test_every_sentence_has_a_finite_score(model):
    for text in ["", "and", "quux " * 5, "and the with the ) ( ?", "the " * 30, "北京 很 大"]:
        score = model.score(text)
        assert all(math.isfinite(value) and value < 0 for value in score.log_probs)
    assert model.score("quux blah").unknown == (True, True, False)


def test_after_the_longest_the_flat_grammar_goes_on():
    short = LanguageModel("pcfg", longest=3).fit(TREES)
    usual = LanguageModel("pcfg").fit(TREES)
    text = "the cat sees the dog"
    assert short.score(text).log_probs[:3] == usual.score(text).log_probs[:3]
    own = short.model_
    word = own.emission(short.vocabulary_["dog"])
    expected = math.log((1 - own.end_prob) * (own.tag_probs @ word))
    assert short.score(text).log_probs[4] == pytest.approx(expected)
    assert sum(chance for _, chance in short.next(text)) == pytest.approx(1)


def test_better_than_a_unigram(model):
    texts = [" ".join(words) for words in sentences(TREES)]
    options = {"text": {"unit": "space"}, "vocabulary": {"min_count": 2}}
    unigram = LanguageModel("ngram", order=1, smoothing="witten-bell", **options).fit(texts)
    assert unigram.vocabulary_ == model.vocabulary_
    assert model.evaluate(TEXTS)["perplexity"] < unigram.evaluate(TEXTS)["perplexity"] / 2


def test_alone_together_and_step_by_step_are_the_same(model):
    together = model.score(TEXTS)
    assert [model.score(text) for text in TEXTS] == together
    ids = np.concatenate([model.vocabulary_.encode([*t.split(), "</s>"]) for t in TEXTS[:6]])
    expected = [value for score in together[:6] for value in score.log_probs]
    streamed, _ = model.engine_.stream(ids)
    assert streamed.tolist() == pytest.approx(expected, abs=1e-12)
    assert [*begun_and_ended(model, ids, [])] == streamed.tolist()
    for cuts in ([5], [1, 2], [int(np.flatnonzero(ids == model.model_.end_id)[0]) + 1], range(30)):
        assert [*begun_and_ended(model, ids, cuts)] == streamed.tolist()
    loss, items = model.engine_.loss(ids)
    assert (loss, items) == (pytest.approx(-sum(expected)), len(ids))
    with pytest.raises(DataError, match="closed by the end-of-sentence word"):
        model.engine_.loss(ids[:3])


def begun_and_ended(model, ids, cuts):
    """The text read in pieces, each going on from the one before."""
    reading = None
    for piece in np.split(ids, list(cuts)):
        values, reading = model.engine_.stream(piece, reading)
        yield from values


def test_rows_of_a_step_do_not_touch_each_other(model):
    end, cat, the = (model.vocabulary_[word] for word in ("</s>", "cat", "the"))
    last, state = model.engine_.read(np.array([[end, the], [end, cat]]))
    values, after = model.engine_.step(last, state)
    again, _ = model.engine_.step(last, state)
    assert np.array_equal(values, again)
    alone, _ = model.engine_.step(*model.engine_.read(np.array([[end, cat]])))
    assert np.array_equal(values[1], alone[0])
    both, _ = model.engine_.step(np.array([cat, end]), after)
    assert np.exp(both).sum(axis=1) == pytest.approx([1, 1])


def test_it_writes(model):
    assert model.generate(seed=1) == model.generate(seed=1)
    assert len({model.generate(seed=seed) for seed in range(5)}) > 1
    assert model.generate("the old", temperature=0, max_words=3).startswith("the old ")
    assert model.generate("the", beam=2, max_words=4).startswith("the ")


def test_an_end_in_the_text_begins_a_sentence():
    fitted = LanguageModel("pcfg", text={"unit": "space"}).fit(TREES)
    score = fitted.score("the cat sees </s> the <pad>")
    assert score.log_probs[:4] == fitted.score("the cat sees").log_probs
    assert score.log_probs[4:] == fitted.score("the quux").log_probs


# -- trees ---------------------------------------------------------------------------------------


def test_trees_come_back_as_in_the_treebank(model):
    right = 0
    for tree in HELD_OUT:
        gold = plain_tree(tree)
        parse = model.model_.best_tree(gold.leaves())
        assert not parse.is_flat
        assert parse.tree.leaves() == gold.leaves()
        assert {node.label for node in parse.tree.nodes()} <= {
            "TOP", "S", "NP", "VP", "PP", "ADVP", "DT", "NN", "JJ", "NNP", "VB", "IN", "RB", "CC",
        }  # fmt: skip
        right += bracketed(parse.tree) == bracketed(gold)
    assert right > len(HELD_OUT) / 2


@pytest.mark.parametrize("min_count", [1, 2])
def test_the_shape_of_an_unknown_word_decides_its_tag(min_count):
    def said(tag, word):
        verb = Tree("VP", (Tree("VB", (), "sees"), Tree("NP", (Tree(tag, (), word),))))
        return Tree("S", (Tree("NP", (Tree("NNP", (), "Ann"),)), verb))

    rare = [said("NNP", word) for word in ("Petra", "Olga", "Zoltan")]
    rare += [said("NN", word) for word in ("knitting", "sailing", "reading")]
    fitted = LanguageModel("pcfg", vocabulary={"min_count": min_count}).fit([*TREES, *rare])

    def tag(word):
        tree = fitted.model_.best_tree(["Ann", "sees", word]).tree
        return next(node.label for node in tree.nodes() if node.word == word)

    assert tag("Bobby") == "NNP"
    assert tag("gardening") == "NN"


def test_what_the_grammar_lacks_gets_the_flat_tree():
    fitted = LanguageModel("pcfg", horizontal=3).fit([Tree("S", (Tree("N", (), "a"),))])
    parse = parse_text(fitted, "a a")
    assert parse.is_flat
    assert bracketed(parse.tree) == "(TOP (N a) (N a))"
    assert parse.log_prob == pytest.approx(fitted.score("a a").total)
    with pytest.raises(DataError, match="a tree stands over words, got none"):
        parse_text(fitted, " ")


def test_only_a_grammar_has_trees():
    other = LanguageModel("ngram", order=2, smoothing="witten-bell").fit(TEXTS)
    with pytest.raises(ConfigError, match="arch='pcfg', got arch='ngram'"):
        parse_text(other, "a b")


def test_trees_can_be_drawn(model, tmp_path):
    from seqloom.figures import save, tree

    figure = tree(parse_text(model, "Ann sees the cat").tree)
    assert save(figure, tmp_path / "tree.svg").stat().st_size > 1000


# -- saving --------------------------------------------------------------------------------------


def test_saved_and_loaded_it_is_the_same_to_the_last_bit(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = seqloom.load(tmp_path / "m")
    assert loaded.score(TEXTS) == model.score(TEXTS)
    assert loaded.next("the") == model.next("the")
    assert loaded.generate(seed=5) == model.generate(seed=5)
    assert parse_text(loaded, TEXTS[0]) == parse_text(model, TEXTS[0])
    assert loaded.get_params()["horizontal"] == 1
    for name, array in model.model_.arrays().items():
        assert np.array_equal(loaded.model_.arrays()[name], array), name
    assert loaded.shapes() == model.shapes()


def test_the_arrays_are_what_safetensors_reads(model, tmp_path):
    arrays = model.model_.arrays()
    path = tmp_path / "arrays"
    path.write_bytes(arrays_to_bytes(arrays))
    peer, own = load_file(path), read_arrays(path)
    assert peer.keys() == own.keys() == arrays.keys()
    for name, array in arrays.items():
        assert np.array_equal(peer[name], array)
        assert np.array_equal(own[name], array)
        assert peer[name].dtype == own[name].dtype == array.dtype


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 20, b"\x02" + b"\0" * 7 + b"{", b"\x08\0\0\0\0\0\0\0[1,2,3] "]
)
def test_other_files_are_no_arrays(content, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataError, match="is no file of arrays"):
        read_arrays(tmp_path / "x")


def test_arrays_that_do_not_fit_are_refused(model):
    own = model.model_
    arrays = own.arrays()
    arrays.pop("flat.tags")
    with pytest.raises(ConfigError, match=r"must be complete, got 'flat.tags'"):
        type(own).restore(own.symbols(), arrays, own.vocabulary, own.config)
    other = LanguageModel("pcfg", vocabulary={"max_size": 3}).fit(TREES).vocabulary_
    assert other != own.vocabulary
    with pytest.raises(ConfigError, match="the words of the vocabulary beside it"):
        type(own).restore(own.symbols(), own.arrays(), other, own.config)


EVERYTHING = """
import sys
for name in sys.argv[3:]:
    sys.modules[name] = None  # as if it were not installed
import seqloom
from seqloom import LanguageModel
model = LanguageModel("pcfg").fit(sys.argv[2], valid=["a cat sees"], out=sys.argv[1])
assert model.metrics_["valid_perplexity"] > 1
loaded = seqloom.load(sys.argv[1])
assert loaded.score("the cat") == model.score("the cat")
neural = {"torch", "safetensors", "jaxtyping", "accelerate"}
print([name for name in neural if sys.modules.get(name) is not None])
"""


@pytest.fixture
def file_of_trees(tmp_path):
    path = tmp_path / "bank.mrg"
    path.write_text("\n".join(bracketed(plain_tree(tree)) for tree in TREES), encoding="utf-8")
    return path


def test_the_base_install_is_enough_and_so_is_the_command_line(file_of_trees, tmp_path):
    blocked = ["torch", "safetensors", "jaxtyping", "accelerate"]
    place = str(tmp_path / "m")
    arguments = [sys.executable, "-c", EVERYTHING, place, str(file_of_trees), *blocked]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[]\n"
    for options in (["--json"], ["--draw", str(tmp_path / "tree.png")]):
        command = [SCRIPT, "parse", place, *options]
        run = subprocess.run(
            command, input="Ann sees\n\nthe cat\n", capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        lines = run.stdout.splitlines()
        assert len(lines) == 2
        trees = [json.loads(line)["tree"] for line in lines] if "--json" in options else lines
        assert trees[0] == "(TOP (S (NP (NNP Ann)) (VP (VB sees))))"
    assert (tmp_path / "tree.png").stat().st_size > 1000


# -- what is refused -----------------------------------------------------------------------------

BAD_SETTINGS = [
    ({"horizontal": 4}, "horizontal must lie between 0 and 3, got 4"),
    ({"vertical": 0}, "vertical must be 1 or 2, got 0"),
    ({"vertical": 3}, "vertical must be 1 or 2, got 3"),
    ({"fallback": 0.0}, "fallback must lie between 0 and 1, got 0.0"),
    ({"longest": 0}, "longest must be at least 1, got 0"),
    ({"horizontl": 1}, "did you mean 'horizontal'"),
    ({"training": {"epochs": 3}}, "training belongs to models trained by gradients"),
    ({"window": 10}, "window belongs to models trained by gradients"),
    ({"reverse": True}, "reads from left to right, got reverse=True"),
    ({"text": {"unit": "character"}}, "leaves of trees are words, got unit='character'"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS, ids=lambda v: str(v)[:30])
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ConfigError, match=message):
        LanguageModel("pcfg", **settings).fit(TREES)


BAD_TREES = [
    ([], "read off trees, got none"),
    ([Tree("S", (Tree("-NONE-", (), "*"),))], "read off trees, got none"),
    (["the cat"], "got 'the cat' as tree 0"),
    (5, "read off trees, got 5"),
    ("nowhere.mrg", "nowhere.mrg"),
    ("udhr-langid:all", "udhr"),
]


@pytest.mark.parametrize(("trees", "message"), BAD_TREES, ids=lambda v: str(v)[:20])
def test_what_is_no_treebank(trees, message, tmp_path):
    with pytest.raises((DataError, ConfigError), match=message):
        LanguageModel("pcfg").fit(trees, out=tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_malformed_tree_names_its_line(tmp_path):
    path = tmp_path / "bad.mrg"
    path.write_text("(S (NP (NN a)) (VP (VB b)))\n(S (NP a (NN b)))\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad.mrg:2: .*must hold one word or nodes"):
        LanguageModel("pcfg").fit(path)
    path.write_text("just words\n", encoding="utf-8")
    with pytest.raises(DataError, match="a tree must begin with"):
        LanguageModel("pcfg").fit(path)


def test_a_vocabulary_without_words_is_all_unknown():
    fitted = LanguageModel("pcfg", vocabulary={"max_size": 0}).fit(TREES)
    score = fitted.score("the cat")
    assert score.unknown == (True, True, False)
    assert math.isfinite(score.total)
    found = dict(fitted.next("the"))
    assert found.keys() == {"<unk>", "</s>"}
    assert sum(found.values()) == pytest.approx(1)


def test_the_settings_are_light():
    code = "import sys, seqloom.grammar.config; print({'torch', 'numba'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
    assert PcfgConfig().vertical == 2


# -- the treebank --------------------------------------------------------------------------------


def test_on_the_treebank_every_sentence_is_scored_and_the_unigram_beaten(shared_data):
    from seqloom.data.datasets import open_dataset

    trees = list(open_dataset("treebank-sample", "all"))
    cut = len(trees) * 9 // 10
    test = [" ".join(words) for words in sentences(trees[cut:])]
    options = {"text": {"unit": "space"}, "vocabulary": {"min_count": 2}}
    fitted = LanguageModel("pcfg", vertical=1, **options).fit(trees[:cut])
    scores = fitted.score(test)
    assert all(math.isfinite(score.total) for score in scores)
    train = [" ".join(words) for words in sentences(trees[:cut])]
    unigram = LanguageModel("ngram", order=1, smoothing="witten-bell", **options).fit(train)
    assert unigram.vocabulary_ == fitted.vocabulary_
    total = -sum(score.total for score in scores) / sum(len(score.words) for score in scores)
    assert math.exp(total) < unigram.evaluate(test)["perplexity"] * 0.75
    parse = parse_text(fitted, test[0])
    assert not parse.is_flat
    assert parse.log_prob < scores[0].total or any(scores[0].unknown)
