"""The counted language model as people use it, without torch."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

import seqloom
from commands import call_command, start_command
from seqloom import LanguageModel
from seqloom.data import PrepareConfig, Text, prepare
from seqloom.errors import ConfigError, DataError, NotFittedError, SeqloomError
from seqloom.tasks import directory as directory_module
from seqloom.text import SubwordTokenizer, TextConfig
from seqloom.text.vocabulary import Specials

TEXTS = ["the cat sat on the mat", "a dog ran", "the bird saw a fish", "a cat ate the fish"] * 4
VALID = ["the dog sat", "a fish ran"]


def small(**options):
    return LanguageModel("ngram", **({"order": 3, "smoothing": "witten-bell"} | options))


@pytest.fixture(scope="module")
def model():
    return small().fit(TEXTS)


# -- without torch -------------------------------------------------------------------------------

EVERYTHING = """
import sys
for name in sys.argv[2:]:
    sys.modules[name] = None  # as if it were not installed
import seqloom
from seqloom import LanguageModel
texts = ["the cat sat on the mat", "a dog ran"] * 4
model = LanguageModel("ngram", order=3, smoothing="witten-bell")
model.fit(texts, valid=["the dog sat"], out=sys.argv[1])
loaded = seqloom.load(sys.argv[1])
assert loaded.evaluate(texts) == model.evaluate(texts)
assert loaded.score(texts) == model.score(texts)
assert loaded.generate("the", seed=3) == model.generate("the", seed=3)
assert loaded.next("the") == model.next("the")
list(loaded.predict_lines(["the"]))
loaded.save(sys.argv[1] + "-again")
repr(loaded), loaded._repr_html_(), loaded.get_params()
neural = {"torch", "safetensors", "jaxtyping", "accelerate"}
print([name for name in neural if sys.modules.get(name) is not None])
"""


@pytest.mark.parametrize("blocked", [[], ["torch", "safetensors", "jaxtyping", "accelerate"]])
def test_the_base_install_is_enough(blocked, tmp_path):
    arguments = [sys.executable, "-c", EVERYTHING, str(tmp_path / "m"), *blocked]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[]\n"


# -- text ----------------------------------------------------------------------------------------


def test_chinese_characters(tmp_path):
    texts = ["我爱北京", "北京很大", "我爱你"] * 6
    fitted = small(text={"unit": "character"}).fit(texts)
    assert fitted.score("我爱").words == ("我", "爱", "</s>")
    assert fitted.next("我", k=1)[0][0] == "爱"
    text = fitted.generate("我", max_words=5, seed=3)
    assert text.startswith("我") and " " not in text
    fitted.save(tmp_path / "m")
    assert seqloom.load(tmp_path / "m").score("北京") == fitted.score("北京")


def test_chinese_words():
    fitted = small(text={"language": "zh"}).fit(["我来到北京清华大学", "我来到北京"] * 3)
    assert fitted.score("我来到北京").words == ("我", "来到", "北京", "</s>")
    assert fitted.generate("我", temperature=0) == "我来到北京"


def test_subword_pieces(tmp_path):
    pieces = SubwordTokenizer.train(TEXTS, vocab_size=280, specials=Specials().names())
    config = PrepareConfig(text=TextConfig(unit="subword"))
    data = prepare((Text(t) for t in TEXTS), tmp_path / "data", config, subword=pieces)
    fitted = small().fit(data)
    loaded = seqloom.load(fitted.save(tmp_path / "m"))
    assert loaded.score("the catfish") == fitted.score("the catfish")
    assert not any(fitted.score("the catfish").unknown)
    assert loaded.generate("the", temperature=0) == fitted.generate("the", temperature=0)
    assert math.isfinite(fitted.evaluate(["quite other words, 中国"])["perplexity"])


def test_blanks_are_words_of_a_character_model(tmp_path):
    texts = ["a b\tc", "a ␣b", "a\0b ␛"] * 4
    fitted = small(text={"unit": "character"}).fit(texts)
    assert fitted.score("a b\tc").words == ("a", " ", "b", "\t", "c", "</s>")
    assert not any(fitted.score(texts[1]).unknown + fitted.score(texts[2]).unknown)
    assert fitted.next("a", k=1)[0][0] == " "
    assert fitted.generate("a", temperature=0).startswith("a ")
    assert dict(fitted.next("a ", k=2)).keys() == {"b", "␣"}
    assert seqloom.load(fitted.save(tmp_path / "m")).score(texts) == fitted.score(texts)
    assert fitted.evaluate(texts)["tokens"] == sum(len(text) + 1 for text in texts)


def test_marks_in_a_text_keep_their_places(model):
    """</s> ends a sentence; <s> and <pad>, which nothing predicts, are unknown words."""
    fitted = small(text={"unit": "space"}).fit(TEXTS)
    score = fitted.score("a dog ran </s> the <s> cat <pad>")
    assert len(score.log_probs) == len(score.words) == 9
    assert score.log_probs[:4] == fitted.score("a dog ran").log_probs
    assert score.log_probs[4:] == fitted.score("the <unk> cat <unk>").log_probs
    assert fitted.evaluate(["a </s> <s> b"])["tokens"] == 5
    assert fitted.next("a dog ran </s>") == fitted.next("")
    assert small(text={"unit": "space"}).fit(["a </s> <s> b <pad>"]).evaluate(["a"])["tokens"] == 2


def test_the_unknown_word_of_the_text_is_a_word():
    fitted = small(text={"unit": "space"}).fit(["the <unk> sat", "a <unk> ran"] * 3)
    assert dict(fitted.next("the", k=1)).keys() == {"<unk>"}
    assert fitted.score("the zebra").log_probs == fitted.score("the <unk>").log_probs
    assert "<unk>" not in fitted.generate("the", seed=1)


def test_perplexities_compare_with_those_of_networks():
    """The same tokens, the same unknown words, all of them predicted."""
    settings = {"vocabulary": {"min_count": 5, "max_size": 3}}
    counted = small(**settings).fit(TEXTS)
    training = {"epochs": 1, "device": "cpu"}
    network = LanguageModel("rnn", hidden_size=4, training=training, **settings).fit(TEXTS)
    assert counted.vocabulary_ == network.vocabulary_
    ours, theirs = counted.evaluate([*VALID, ""]), network.evaluate([*VALID, ""])
    assert ours.keys() == theirs.keys()
    assert (ours["tokens"], ours["unknown"]) == (theirs["tokens"], theirs["unknown"])
    assert ours["unknown"] > 0
    # Rare words of the training text are unknown words with a probability of their own.
    assert dict(counted.next("", k=9))["<unk>"] < dict(counted.next("a"))["<unk>"]
    assert [s.unknown for s in counted.score(VALID)] == [s.unknown for s in network.score(VALID)]


def test_a_vocabulary_of_nothing_generates_nothing():
    fitted = small(vocabulary={"max_size": 0}).fit(TEXTS)
    assert fitted.generate() == ""
    assert fitted.evaluate(TEXTS)["unknown"] > 0.7


# -- sources -------------------------------------------------------------------------------------


def test_a_list_a_file_and_prepared_data_are_the_same(tmp_path, model):
    (tmp_path / "train.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    data = prepare((Text(text) for text in TEXTS), tmp_path / "prepared", PrepareConfig())
    for source in (tmp_path / "train.txt", tmp_path / "prepared", data, iter(TEXTS)):
        assert small().fit(source).score("the cat") == model.score("the cat")
    for source in (tmp_path / "train.txt", tmp_path / "prepared", data):
        assert model.evaluate(source).items() <= model.evaluate(TEXTS).items()


def test_text_without_ends_is_refused(tmp_path):
    config = PrepareConfig(ends=False)
    data = prepare((Text(text) for text in TEXTS), tmp_path / "prepared", config)
    with pytest.raises(DataError, match=r"closed by the end-of-sentence word.*ends=true"):
        small().fit(data, out=tmp_path / "m")
    assert not (tmp_path / "m").exists()


# -- smoothing -----------------------------------------------------------------------------------


def test_jelinek_mercer_finds_its_weights_on_validation_text():
    fitted = small(smoothing="jelinek-mercer").fit(TEXTS, VALID)
    weights = fitted.model_.about["weights"]
    assert len(weights) == 3 and all(0 <= weight <= 1 for weight in weights)
    found = fitted.evaluate(VALID)["perplexity"]
    assert fitted.metrics_ == {"valid_perplexity": pytest.approx(found)}
    for weights in ((0.5, 0.5, 0.5), (0.9, 0.2, 0.2), (0.9, 0.8, 0.8)):
        given = small(smoothing="jelinek-mercer", weights=weights).fit(TEXTS)
        assert found <= given.evaluate(VALID)["perplexity"] * (1 + 1e-6)


def test_pruning_leaves_out_long_rare_ngrams(model):
    texts = [*TEXTS, "the cat saw the dog"]
    whole, pruned = small().fit(texts), small(prune=(0, 0, 1)).fit(texts)
    assert pruned.shapes()["1-grams"] == whole.shapes()["1-grams"]
    assert pruned.shapes()["2-grams"] == whole.shapes()["2-grams"]
    assert pruned.shapes()["3-grams"] < whole.shapes()["3-grams"]
    assert math.fsum(chance for _, chance in pruned.next("the cat", k=99)) == pytest.approx(1)


def test_little_memory_changes_nothing(tmp_path, model):
    lean = small(memory="384M").fit(TEXTS, out=tmp_path / "lean")
    plain = model.save(tmp_path / "plain")
    store = (tmp_path / "lean" / "model.ngram").read_bytes()
    assert store == (plain / "model.ngram").read_bytes()
    assert lean.score(TEXTS) == model.score(TEXTS)


def test_scores_that_are_no_probabilities_have_no_perplexity():
    fitted = small(smoothing="stupid-backoff").fit(TEXTS, VALID)
    assert fitted.metrics_ == {}
    assert math.isfinite(fitted.score("the cat").total)
    with pytest.raises(ConfigError, match="got smoothing='stupid-backoff', whose scores do not"):
        fitted.evaluate(VALID)


def test_what_cannot_happen_has_infinite_perplexity():
    fitted = small(smoothing="maximum-likelihood").fit(TEXTS)
    assert fitted.evaluate(["the cat sat on a dog"])["perplexity"] == math.inf
    assert fitted.generate("the cat", temperature=0).startswith("the cat ")
    assert fitted.generate("zebra", max_words=3).startswith("zebra")


def test_the_published_perplexity_of_the_penn_treebank(shared_data):
    """Mikolov (2012): 141.2 for 5-grams with Kneser-Ney smoothing."""
    fitted = LanguageModel("ngram", order=5, text={"unit": "space"}).fit("ptb:train")
    found = fitted.evaluate("ptb:test")
    assert found["perplexity"] == pytest.approx(141.19, abs=0.05)
    assert found["tokens"] == 82430
    assert fitted.provenance_["train"] == "ptb:train"


# -- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "fitting", "message"),
    [
        ({"training": {"epochs": 2}}, {}, "training belongs to models trained by gradients"),
        ({"window": 20}, {}, "window belongs to.*arch='ngram'.*leave window out"),
        ({}, {"resume": True}, "resume belongs to"),
        ({}, {"callbacks": [print]}, "callbacks belongs to"),
        ({"order": 0}, {}, "order must lie between 1 and 8, got 0"),
        ({"order": "five"}, {}, "'order' must be a whole number, got 'five'"),
        ({"smoothing": "witten-bel"}, {}, "'witten-bel'; did you mean 'witten-bell'"),
        ({"smoothing": "jelinek-mercer"}, {}, "on validation text, got valid=None"),
        ({"prune": 1}, {}, "'prune' must be a list, got 1"),
        ({"vocabulary": {"min_cont": 2}}, {}, "'min_cont'; did you mean 'min_count'"),
        ({"text": {"unit": "charcter"}}, {}, "'text.unit'.*did you mean 'character'"),
        ({"hidden_size": 3}, {}, "option of architecture 'ngram' 'hidden_size'"),
        ({"vocab_size": 3}, {}, "option of architecture 'ngram' 'vocab_size'"),
    ],
)
def test_bad_settings_are_refused_and_leave_nothing(options, fitting, message, tmp_path):
    def unread():
        pytest.fail("a text was read")
        yield

    with pytest.raises(ConfigError, match=message) as caught:
        small(**options).fit(unread(), out=tmp_path / "out", **fitting)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "at least one example"),
        (["a", 5], "text 1 must be a string or a Text, got 5"),
        ("no-such-file.txt", "no-such-file.txt"),
    ],
)
def test_bad_texts_are_refused_and_leave_nothing(source, message, tmp_path):
    fitted = small()
    with pytest.raises(SeqloomError, match=message):
        fitted.fit(source, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(NotFittedError):
        fitted.score("the")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_words": 0}, "max_words must be a whole number of at least 1, got 0"),
        ({"temperature": -0.5}, "temperature must be a number not below 0, got -0.5"),
        ({"temperature": math.inf}, "got inf"),
        ({"top_k": -1}, "top_k must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_ways_to_generate(options, message, model):
    with pytest.raises(ConfigError, match=message):
        model.generate(**options)


def test_generation_stops_and_chooses_as_asked(model):
    assert model.generate("the cat", max_words=2, seed=4).startswith("the cat")
    assert all(len(model.generate(max_words=3, seed=seed).split()) <= 3 for seed in range(9))
    likely = {word for word, _ in model.next("the", k=3)} - {"<unk>"}
    for seed in range(20):
        words = model.generate("the", max_words=1, top_k=len(likely), seed=seed).split()
        assert words[1:] == [] or words[1] in likely
    assert model.generate("the", seed=-1) == model.generate("the", seed=-1)


def test_params_round_trip_and_other_architectures():
    sklearn_base = pytest.importorskip("sklearn.base")
    clone = sklearn_base.clone(small(prune=(0, 1)))
    assert clone.get_params() == small(prune=(0, 1)).get_params()
    assert clone.build_config(vocab_size=9).prune == (0, 1)
    clone.set_params(order=2).set_params(arch="nnlm")
    assert clone.build_config(vocab_size=9).order == 2


# -- directories ---------------------------------------------------------------------------------


def test_the_directory_of_a_run(tmp_path):
    fitted = small().fit(TEXTS, VALID, tmp_path / "m")
    names = sorted(path.name for path in (tmp_path / "m").iterdir())
    assert names == ["README.md", "model.ngram", "seqloom.json", "vocabulary.json"]
    header = json.loads((tmp_path / "m" / "seqloom.json").read_text())
    assert header["metrics"] == fitted.metrics_ and fitted.metrics_["valid_perplexity"] > 1
    assert header["provenance"]["versions"].keys() == {"seqloom", "python", "numba"}
    ngrams = sum(size for (size,) in fitted.shapes().values())
    assert f"{ngrams:,} numbers" in (tmp_path / "m" / "README.md").read_text()
    with pytest.raises(DataError, match="exists already"):
        small().fit(TEXTS, out=tmp_path / "m")


def put_store(source: Path, target: Path, **changes) -> None:
    """Exchange the store of a model, with honest hashes."""
    (target / "model.ngram").write_bytes((source / "model.ngram").read_bytes())
    path = target / "seqloom.json"
    values = json.loads(path.read_text())
    values["files"]["model.ngram"] = directory_module._describe(target / "model.ngram")
    values |= changes
    values["digest"] = directory_module._digest(values)
    path.write_text(json.dumps(values))


def test_a_store_of_another_model_is_refused(tmp_path, model):
    place = model.save(tmp_path / "m")
    with pytest.raises(DataError, match=r"model\.ngram: does not hold the words of the vocabulary"):
        put_store(small().fit(["quite other words"]).save(tmp_path / "other"), place)
        seqloom.load(place)
    with pytest.raises(DataError, match=r"model\.ngram: must be of order 3, got 2"):
        put_store(small(order=2).fit(TEXTS).save(tmp_path / "short"), place)
        seqloom.load(place)
    (place / "model.ngram").write_bytes(b"nothing")
    with pytest.raises(DataError, match="it was cut"):
        seqloom.load(place)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "model.ngram").write_bytes(b"nothing")
    put_store(tmp_path / "bad", place)
    with pytest.raises(DataError, match="not a Seqloom n-gram store"):
        seqloom.load(place)


# -- the command line ----------------------------------------------------------------------------


def test_the_verbs(tmp_path):
    (tmp_path / "text.txt").write_text("a rose is a rose\na thorn is a thorn\n" * 9)
    trained = start_command(
        *("train", "--task", "lm", "--arch", "ngram", "--train", tmp_path / "text.txt"),
        *("--valid", tmp_path / "text.txt", "--out", tmp_path / "model", "--json"),
        *("--set", "model.order=3", "--set", "model.smoothing=witten-bell"),
    )
    assert trained.returncode == 0, trained.stderr
    found = {row["what"]: row["value"] for row in json.loads(trained.stdout)}
    measured = call_command("evaluate", tmp_path / "model", tmp_path / "text.txt", "--json")
    rows = {row["what"]: row["value"] for row in json.loads(measured.stdout)}
    assert rows["perplexity"] == pytest.approx(found["valid_perplexity"])
    assert rows["tokens"] == 18 * 6
    scored = call_command(
        "score", tmp_path / "model", "--json", input="a rose is a rose\na rose a dog\n"
    )
    good, bad = (json.loads(line) for line in scored.stdout.splitlines())
    assert good["log_prob"] > bad["log_prob"] and bad["unknown"] == 1
    predicted = call_command("predict", tmp_path / "model", input="a rose is\n")
    assert predicted.stdout.splitlines()[1].startswith("a\t")
    written = call_command(
        "generate", tmp_path / "model", "a rose", "--temperature", 0, "--max-words", 1
    )
    assert written.stdout.startswith("a rose")
    shown = json.loads(call_command("inspect", tmp_path / "model", "--json").stdout)
    assert shown["config"]["order"] == 3
    assert shown["weights"][0] == {"weight": "1-grams", "shape": [7], "numbers": 7}
    assert "1-grams" in call_command("inspect", tmp_path / "model").stdout
    refused = call_command(
        *("train", "--task", "lm", "--arch", "ngram", "--train", tmp_path / "text.txt"),
        *("--out", tmp_path / "no", "--set", "training.epochs=2"),
    )
    assert refused.returncode == 1 and "training belongs to" in refused.stderr


@pytest.mark.parametrize(("within", "reached"), [(0.0, False), (9.0, True)])
def test_a_recipe_compares_with_the_target(within, reached, tmp_path):
    (tmp_path / "text.txt").write_text("a rose is a rose\n" * 30)
    (tmp_path / "toy.toml").write_text(
        f"""
task = "lm"
arch = "ngram"
[data]
train = "{tmp_path / "text.txt"}"
test = "{tmp_path / "text.txt"}"
[model]
order = 2
smoothing = "witten-bell"
[target]
metric = "perplexity"
value = 1.0
within = {within}
source = "nothing is that good"
"""
    )
    result = call_command("reproduce", tmp_path / "toy.toml", "--json")
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(result.stdout)
    assert row["reached"] is reached and row["to reach"] == 1.0


def test_the_shipped_recipe_is_sound():
    from seqloom.tasks.recipe import load_recipe

    recipe = load_recipe("ptb-kn5")
    assert recipe.estimator(seed=1, max_steps=1).get_params()["order"] == 5
    assert recipe.target.is_met(141.29) and not recipe.target.is_met(141.31)
