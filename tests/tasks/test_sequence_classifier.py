"""Classifiers of sequences as people use them: words in order, or vectors."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import seqloom
from seqloom import Classifier
from seqloom.data.bucketing import BatchConfig
from seqloom.data.examples import LabeledText
from seqloom.data.inputs import read_input
from seqloom.data.prepare import prepare
from seqloom.data.ragged import Ragged
from seqloom.errors import ConfigError, DataError, InputError
from seqloom.figures import heatmap, word_weights
from seqloom.models.cnn_classifier import CNNClassifier, CNNClassifierConfig
from seqloom.models.recurrent_classifier import BLSTMConfig, RecurrentClassifier
from seqloom.tasks.class_scores import divergence, softmax_loss
from seqloom.tasks.classifier_sequences import CutTextWarning
from seqloom.tasks.classifier_training import class_goal
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.supervised_objective import Examples, Goal, SupervisedObjective, all_scores
from seqloom.text import WordVectors

REPOSITORY = Path(__file__).resolve().parents[2]

# The order of the words decides, not which words there are.
TEXTS = ["good not bad", "bad not good", "so good not so bad", "so bad not so good"] * 8
LABELS = ["pos", "neg"] * 16
LOOP = {"epochs": 25, "batch": {"batch_size": 8}, "optimizer": {"rate": 0.01}, "device": "cpu"}
OPTIONS = {
    "cnn": {"num_maps": 8, "embed_size": 8},
    "brnn": {"hidden_size": 8, "embed_size": 8, "hidden_sizes": (8,)},
    "blstm": {"hidden_size": 8, "embed_size": 8, "hidden_sizes": (8,)},
    "att-blstm": {
        "hidden_size": 8,
        "embed_size": 8,
        "embedding_dropout": 0.0,
        "layer_dropout": 0.0,
    },
    "joint-attention": {"hidden_size": 8, "embed_size": 8, "num_heads": 2},
    "transformer": {"hidden_size": 8, "embed_size": 8, "num_heads": 2, "num_layers": 1},
}
EVERY = pytest.mark.parametrize("arch", list(OPTIONS))
LOOK = {"pooling": "attention"}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(arch, **more):
    return Classifier(arch, **{"training": LOOP, **OPTIONS[arch], **more})


@pytest.fixture(scope="module")
def fitted():
    return make("att-blstm").fit(TEXTS, LABELS)


def some_sequences(count=60, width=3, seed=0):
    """Series that rise or fall."""
    rng = np.random.default_rng(seed)
    x, y = [], []
    for i in range(count):
        slope = 1 if i % 2 else -1
        steps = np.arange(rng.integers(3, 9))[:, None]
        x.append(slope * steps * np.ones(width) + rng.normal(size=(len(steps), width)) * 0.3)
        y.append("up" if i % 2 else "down")
    return x, y


# -- texts in order -------------------------------------------------------------------------------


@EVERY
def test_learns_what_no_bag_of_words_can(arch):
    model = make(arch).fit(TEXTS, LABELS, valid=(TEXTS, LABELS))
    assert model.score(TEXTS, LABELS) == 1.0
    assert Classifier("softmax").fit(TEXTS, LABELS).score(TEXTS, LABELS) == 0.5
    assert model.classes_.tolist() == ["neg", "pos"]
    chances = model.predict_proba(TEXTS)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert model.predict(TEXTS).tolist() == model.classes_[chances.argmax(axis=1)].tolist()


@EVERY
def test_a_text_is_classified_the_same_alone_among_others_and_in_any_order(arch):
    model = make(arch, training={**LOOP, "epochs": 3}).fit(TEXTS, LABELS)
    mixed = ["good", "so bad " * 30, "", "nothing known here", "so bad", "good not bad"] * 3
    together = model.decision_function(mixed)
    alone = np.concatenate([model.decision_function([text]) for text in mixed])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)
    back = model.decision_function(mixed[::-1])[::-1]
    np.testing.assert_allclose(together, back, rtol=1e-4, atol=1e-5)


def test_a_text_without_words_is_one_unknown_word(fitted):
    same = fitted.predict_proba(["", "   ", "neverheard"])
    np.testing.assert_allclose(same, same[[0, 0, 0]], atol=1e-6)


@EVERY
def test_same_seed_same_result(arch):
    loop = {**LOOP, "epochs": 2}
    torch.manual_seed(1)
    first = make(arch, training=loop).fit(TEXTS, LABELS).decision_function(TEXTS)
    torch.manual_seed(2)
    again = make(arch, training=loop).fit(TEXTS, LABELS).decision_function(TEXTS)
    other = make(arch, training={**loop, "seed": 5}).fit(TEXTS, LABELS).decision_function(TEXTS)
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


def test_a_resumed_run_ends_where_an_unbroken_one_does(tmp_path):
    def model():
        return make("cnn", word_dropout=0.1, training={**LOOP, "epochs": 4, "log_every": 1})

    unbroken = model().fit(TEXTS, LABELS, out=tmp_path / "a")

    def stop(report):
        if report.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model().fit(TEXTS, LABELS, out=tmp_path / "b", callbacks=[stop])
    resumed = model().fit(TEXTS, LABELS, out=tmp_path / "b", resume=True)
    assert resumed.decision_function(TEXTS).tolist() == unbroken.decision_function(TEXTS).tolist()


def test_every_source_gives_the_same_model(tmp_path):
    examples = [LabeledText(text, (label,)) for text, label in zip(TEXTS, LABELS, strict=True)]
    table = tmp_path / "reviews.tsv"
    rows = [f"{e.text}\t{e.label}" for e in examples]
    table.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    loop = {**LOOP, "epochs": 2}
    wanted = make("cnn", training=loop).fit(TEXTS, LABELS).decision_function(TEXTS)
    for source in (examples, table, prepare(examples, tmp_path / "prepared")):
        model = make("cnn", training=loop).fit(source)
        np.testing.assert_allclose(model.decision_function(TEXTS), wanted, atol=1e-6)


@EVERY
def test_a_text_of_a_hundred_thousand_words(arch):
    model = make(arch, training={**LOOP, "epochs": 1}).fit(TEXTS, LABELS)
    long = "good not bad " * 33_334
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CutTextWarning)
        chances = model.predict_proba([long, "good"])
    assert np.isfinite(chances).all()
    if arch in ("joint-attention", "transformer"):
        assert "1 of 2 sequences are longer than max_length=1024" in str(caught[0].message)
    else:
        assert not caught


def test_max_length_reads_the_beginning(tmp_path):
    model = make("cnn", max_length=3)
    with pytest.warns(CutTextWarning, match="16 of 32 sequences.*max_length=3 words.*has 5"):
        model.fit(TEXTS, LABELS)
    loaded = Classifier.load(model.save(tmp_path / "model"))
    for one in (model, loaded):
        with pytest.warns(CutTextWarning):
            cut = one.predict_proba(["good not bad", "good not bad bad bad"])
        np.testing.assert_allclose(cut[0], cut[1], atol=1e-6)
    assert loaded.max_length == 3


def test_batches_are_shared_among_processes_even_if_one_has_none():
    data = Sequences(Ragged.of([[1], [2, 3], [4] * 9]), 5)
    examples = Examples(data, np.array([0, 1, 0]))
    goal = Goal(softmax_loss, None, lambda scores, targets: {})
    objective = SupervisedObjective(examples, None, goal, BatchConfig(batch_size=2, max_waste=0.0))
    config = CNNClassifierConfig(vocab_size=5, input_size=0, output_size=2, embed_size=3)
    model = CNNClassifier(config).eval()
    shares = [[*objective.batches(0, 0, rank=rank, world_size=2)] for rank in range(2)]
    assert sorted(len(batch) for batch in shares[1]) == [0] * len(shares[1])
    losses = [[objective.loss(model, b.tensors()) for b in share] for share in shares]
    assert all(float(each.total.detach()) == 0 == each.items for each in losses[1])
    scores = torch.from_numpy(all_scores(model, data))
    wanted = softmax_loss(scores, torch.tensor([0, 1, 0]))
    total = sum(each.total.detach() for each in losses[0])
    torch.testing.assert_close(total.double(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_reads_reviews_better_than_a_bag_of_words(shared_data):
    train = list(read_input("sst:train", "labeled"))
    texts, labels = zip(
        *((e.text, e.label) for e in read_input("sst:test", "labeled")), strict=True
    )
    oracle = make_pipeline(
        TfidfVectorizer(token_pattern=r"\S+"), LogisticRegression(C=3, max_iter=1000)
    ).fit([e.text for e in train], [e.label for e in train])
    model = Classifier(
        "att-blstm",
        text={"unit": "space"},
        vectors="glove-6b-100d-subset",
        word_dropout=0.1,
        training={"epochs": 4, "patience": 3},
    ).fit(train, valid="sst:valid")
    assert model.score(texts, labels) > oracle.score(texts, labels)


# -- word vectors ---------------------------------------------------------------------------------


def test_given_vectors_are_begun_with_and_kept_or_tuned(tmp_path):
    rng = np.random.default_rng(0)
    source = WordVectors(["good", "bad", "other"], rng.normal(size=(3, 6)).astype(np.float32))
    for tuned in (False, True):  # 300, which is the default, gives way to the vectors
        model = make("cnn", vectors=source, tune_vectors=tuned, embed_size=300).fit(TEXTS, LABELS)
        assert model.model_.config.embed_size == 6
        table = model.model_.input.embedding.weight.detach().numpy()
        known = model.features_.vocabulary
        for word in ("good", "bad"):
            kept = np.array_equal(table[known[word]], source.vector(word))
            assert kept == (not tuned), word
        loaded = Classifier.load(model.save(tmp_path / str(tuned)))
        assert loaded.predict_proba(TEXTS).tolist() == model.predict_proba(TEXTS).tolist()
        assert "other" not in known


def test_settings_of_vectors_are_checked():
    source = WordVectors(["good"], np.ones((1, 6), np.float32))
    for options, message in [
        ({"vectors": source, "embed_size": 5}, "as wide as the model's, 5, got 6"),
        ({"tune_vectors": False}, "keeps given vectors as they are, got vectors=None"),
        ({"unseen_vectors": True}, "knows words by given vectors, got vectors=None"),
        ({"vectors": "no-such-file.txt"}, "no such file of word vectors"),
    ]:
        with pytest.raises((ConfigError, DataError), match=message):
            make("blstm", **options).fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match="vectors is for architectures that read words in order"):
        Classifier("softmax", vectors=source).fit(TEXTS, LABELS)


def test_unseen_words_are_known_by_their_vectors_and_change_nothing_else(tmp_path):
    rows = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    source = WordVectors(["good", "bad", "fine", "dull", "Grand"], rows)
    less, more = (
        make("cnn", vectors=source, unseen_vectors=known, embed_size=6).fit(TEXTS, LABELS)
        for known in (False, True)
    )
    np.testing.assert_allclose(more.predict_proba(TEXTS), less.predict_proba(TEXTS), atol=1e-6)
    assert not np.allclose(more.predict_proba(["fine"]), more.predict_proba(["dull"]))
    np.testing.assert_array_equal(less.predict_proba(["fine"]), less.predict_proba(["dull"]))
    # Those of the validation data are known while it chooses, and not moved by training.
    more.fit(TEXTS, LABELS, valid=(["fine not bad", "bad not fine"], ["pos", "neg"]))
    words, kept = more.features_.vocabulary, more.model_.input.embedding.weight.detach().numpy()
    assert len(words) == len(less.features_.vocabulary) + 3
    for i, word in enumerate(("fine", "dull", "Grand"), start=2):
        np.testing.assert_array_equal(kept[words[word]], rows[i])
    more.save(tmp_path / "model")
    again = Classifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(["Grand"]), more.predict_proba(["Grand"]))


# -- sequences of vectors -------------------------------------------------------------------------


@EVERY
def test_learns_sequences_of_vectors(arch, tmp_path):
    x, y = some_sequences()
    model = make(arch).fit(x, y)
    assert model.score(x, y) > 0.9
    assert model.n_features_in_ == 3
    loaded = seqloom.load(model.save(tmp_path / "model"))
    assert loaded.predict_proba(x).tolist() == model.predict_proba(x).tolist()
    same = np.stack([one[:3] for one in x])  # an array of three axes is one list of them
    np.testing.assert_allclose(model.predict_proba(same), model.predict_proba(list(same)))
    with pytest.raises(InputError, match=r"X has 4 features in sequence 1, but .*expecting 3"):
        model.predict([np.zeros((2, 3)), np.zeros((2, 4))])
    with pytest.raises(InputError, match="sequences of vectors as in training, got texts"):
        model.predict(["good"])


def test_the_units_of_vectors_do_not_matter(tmp_path):
    x, y = some_sequences()
    units, offset = np.array([1e4, 1e-4, 1.0]), np.array([5e4, 0.0, -3.0])
    strange = [one * units + offset for one in x]
    plain, model = make("brnn").fit(x, y), make("brnn").fit(strange, y)
    np.testing.assert_allclose(model.predict_proba(strange), plain.predict_proba(x), atol=0.02)
    loaded = seqloom.load(model.save(tmp_path / "model"))
    assert loaded.predict_proba(strange).tolist() == model.predict_proba(strange).tolist()


def test_tables_are_arrays_tensors_or_data_frames():
    pandas = pytest.importorskip("pandas")
    x = [np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32) for n in (1, 4, 2, 3)]
    fit = lambda x: make("cnn", training={**LOOP, "epochs": 1}).fit(x, [0, 1] * 2)  # noqa: E731
    plain = fit(x).predict_proba(x)
    for kind in (torch.tensor, pandas.DataFrame):
        tables = [kind(one) for one in x]
        np.testing.assert_array_equal(fit(tables).predict_proba(tables), plain)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([np.zeros((2, 3)), np.zeros((0, 3))], r"sequence 1 must be .* one step, got shape \(0, 3"),
        ([np.zeros((2, 3)), np.full((1, 3), np.nan)], "sequence 1 of X contains NaN"),
        ([np.zeros((2, 3)), "text"], "sequence 1 must be a table of numbers, got str"),
        ([np.zeros((2, 3)), np.zeros(3)], r"sequence 1 must be \(steps, features\)"),
        (np.zeros((2, 3)), r"got one vector an example \(shape \(2, 3\)\); use arch='softmax'"),
    ],
)
def test_bad_sequences_are_refused(x, message):
    with pytest.raises(InputError, match=message):
        make("cnn").fit(x, [0, 1])


def test_a_model_of_texts_refuses_vectors(fitted):
    with pytest.raises(InputError, match="X must be texts as in training, got sequences of vec"):
        fitted.predict([np.zeros((2, 3))])


# -- explanations ---------------------------------------------------------------------------------


@EVERY
def test_attention_over_words(arch, tmp_path):
    model = make(arch, training={**LOOP, "epochs": 2}, **LOOK).fit(TEXTS, LABELS)
    texts = ["good not bad", "", "so bad not so good <b>"]
    for found in model.classify(texts, explain=True):
        told = found.explanation
        assert len(told.words) == len(told.weights)
        assert sum(told.weights) == pytest.approx(1, abs=1e-5)
        alone = model.classify([" ".join(told.words)], explain=True)[0].explanation
        if "<unk>" not in told.words:
            np.testing.assert_allclose(alone.weights, told.weights, atol=1e-5)
        page = found._repr_html_()
        assert str(found.label) in page and "<b>" not in page
    first = model.classify("good not bad", explain=True).explanation
    assert first.words == ("good", "not", "bad")
    assert word_weights(first.words, first.weights).axes
    if arch == "joint-attention":
        assert first.matrix.shape == (2, 3, 3)
        np.testing.assert_allclose(first.matrix.sum(axis=2), 1, atol=1e-5)
        assert heatmap(first.matrix[0], first.words, first.words).axes


def test_attention_over_vectors():
    x, y = some_sequences(20)
    model = make("att-blstm", training={**LOOP, "epochs": 1}).fit(x, y)
    told = model.classify(x, explain=True)
    for one, found in zip(x, told, strict=True):
        assert found.explanation.words == tuple(str(i) for i in range(len(one)))


def test_no_attention_no_explanation():
    for model in (make("cnn", training={**LOOP, "epochs": 1}), Classifier("softmax")):
        model.fit(TEXTS, LABELS)
        assert model.classify("good").explanation is None
        with pytest.raises(ConfigError, match=r"explain=True shows attention.*pooling='attention'"):
            model.classify("good", explain=True)


# -- penalties ------------------------------------------------------------------------------------


def test_the_penalties_draw_weights_and_attention():
    loop = {**LOOP, "epochs": 30}
    free = make("joint-attention", identity_weight=0.0, training=loop).fit(TEXTS, LABELS)
    drawn = make("joint-attention", identity_weight=5.0, training=loop).fit(TEXTS, LABELS)

    def diagonal(model):
        matrix = model.classify(TEXTS[0], explain=True).explanation.matrix
        return np.mean([np.diag(head).mean() for head in matrix])

    assert diagonal(drawn) > 0.8 > diagonal(free)

    def size(model):
        return sum(float(w.detach().square().sum()) for w in model.model_.parameters())

    plain = make("cnn", training=loop).fit(TEXTS, LABELS)
    assert size(make("cnn", l2=0.1, training=loop).fit(TEXTS, LABELS)) < size(plain) / 2


def test_max_norm_holds_after_training():
    model = make("cnn", max_norm=0.3, training={**LOOP, "epochs": 5}).fit(TEXTS, LABELS)
    assert model.model_.head.output.weight.norm(dim=1).max() <= 0.3 + 1e-5
    free = make("cnn", max_norm=None, training={**LOOP, "epochs": 5}).fit(TEXTS, LABELS)
    assert free.model_.head.output.weight.norm(dim=1).max() > 0.3


# -- scikit-learn ---------------------------------------------------------------------------------


def test_scikit_learns_tools_take_lists_of_strings():
    model = make("cnn")
    assert cross_val_score(model, TEXTS, LABELS, cv=2).tolist() == [1.0, 1.0]
    search = GridSearchCV(Classifier(training=LOOP), {"class_weight": [None, "balanced"]}, cv=2)
    assert search.fit(TEXTS, LABELS).best_score_ == 0.5  # a bag of words cannot
    copy = clone(make("blstm", vectors=None, calibrate=True))
    assert copy.get_params() == make("blstm", vectors=None, calibrate=True).get_params()
    assert copy.set_params(hidden_size=3, training__epochs=1).get_params()["hidden_size"] == 3


def test_scikit_learns_tools_take_lists_of_tables():
    x, y = some_sequences(40)
    assert cross_val_score(make("brnn"), x, y, cv=2).mean() > 0.9


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "options", "message"),
    [
        ("cnn", {"features": "ngrams"}, "reads words in order and takes no features.*'ngrams'"),
        ("cnn", {"weighting": "tfidf"}, "takes no features, max_n or weighting.*'tfidf'"),
        ("softmax", {"max_length": 5}, "max_length is for architectures that read words in order"),
        ("cnn", {"max_length": 0}, "max_length must be a whole number of at least 1, got 0"),
        ("cnn", {"multilabel": "False"}, "multilabel must be true or false, got 'False'"),
        ("cnn", {"calibrate": "no"}, "calibrate must be true or false, got 'no'"),
        ("cnn", {"tune_vectors": 1}, "tune_vectors must be true or false, got 1"),
        ("softmax", {"multilabel": True}, "'softmax' chooses one class, got multilabel=True"),
        ("cnn", {"threshold": 1.5}, "threshold must be 'tune'.* got 1.5"),
        ("cnn", {"threshold": "best"}, "threshold must be 'tune'.* got 'best'"),
        ("cnn", {"class_weight": "even"}, "class_weight must be None, 'balanced'.* got 'even'"),
        ("cnn", {"class_weight": {"pos": -1}}, "class_weight must be .* got -1"),
        ("cnn", {"class_weight": {"what": 1}}, "labels of the training data, got 'what'"),
        ("perceptron", {"class_weight": "balanced"}, "takes no class_weight, got 'balanced'"),
        ("cnn", {"poling": "max"}, "'poling'; did you mean 'pooling'"),
        ("cnn", {"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ("cnn", {"vocabulary": {"min_count": 99}}, "often enough, got none .*min_count=99"),
    ],
)
def test_wrong_settings_are_refused(arch, options, message):
    with pytest.raises((ConfigError, InputError), match=message):
        Classifier(arch, **options).fit(TEXTS, LABELS)


def test_scores_that_are_no_numbers_are_refused():
    x, y = some_sequences(20)
    model = make("transformer", training={"epochs": 1, "device": "cpu"}).fit(x, y)
    far = [x[0], np.full_like(x[1], 1e30)]
    for use in (model.predict, model.predict_proba, model.classify, model.decision_function):
        with pytest.raises(InputError, match="finite scores, got nan for example 1"):
            use(far)
    with pytest.raises(InputError, match="finite scores, got nan for example 1"):
        model.evaluate(far, y[:2])


def test_one_class_is_refused():
    with pytest.raises(InputError, match="at least two classes to tell apart, got 1 class: 'pos'"):
        make("cnn").fit(TEXTS, ["pos"] * len(TEXTS))


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    page = (REPOSITORY / "docs" / "classification.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 5
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in (blocks[0], blocks[4], blocks[1]):  # the picture is of the first one's text
        exec(block, names)
    assert (tmp_path / "attention.png").stat().st_size > 1000
    assert names["model"].predict(["money and weather"]) == [{"money", "weather"}]
    exec(blocks[2], names)
    good, bad, long = names["model"].predict_proba(["good film", "bad film", "long film"])[:, 0]
    assert good > 0.7 > 0.5 > long > bad
    exec(blocks[3], names)
    assert names["model"].provenance_["teaching"]["further"] == 20


def test_divergence_is_the_mean_of_both_ways_of_torchs():
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64)
    p, q = a.log_softmax(1), b.log_softmax(1)
    kl = torch.nn.functional.kl_div
    expected = (
        kl(p, q, reduction="sum", log_target=True) + kl(q, p, reduction="sum", log_target=True)
    ) / 2
    torch.testing.assert_close(divergence(a, b), expected)
    bernoulli = [torch.distributions.Bernoulli(logits=each) for each in (a, b)]
    both = torch.distributions.kl_divergence(*bernoulli) + torch.distributions.kl_divergence(
        *bernoulli[::-1]
    )
    torch.testing.assert_close(divergence(a, b, multilabel=True), both.sum() / 2)


def test_consistency_reads_a_batch_twice_and_adds_how_far_apart_that_is():
    config = CNNClassifierConfig(
        vocab_size=9, input_size=0, output_size=3, consistency=0.7, widths=(2,)
    )
    torch.manual_seed(0)
    model = CNNClassifier(config).train()
    ids = np.random.default_rng(0).integers(2, 9, (4, 6))
    sequences = Sequences(Ragged.of(ids.tolist()), 9)
    examples = Examples(sequences, np.array([0, 1, 2, 1]))
    goal = class_goal(model, "cnn", None, multilabel=False)
    objective = SupervisedObjective(examples, None, goal, BatchConfig(batch_size=4, shuffle=False))
    (batch,) = objective.batches(0, 0, rank=0, world_size=1)
    torch.manual_seed(1)
    found = objective.loss(model, batch.tensors("cpu"))
    torch.manual_seed(1)
    target = torch.from_numpy(examples.targets[batch.index])
    inputs = batch.tensors("cpu")["sequences"].values
    a, b = (model(inputs).scores for _ in range(2))
    assert not torch.equal(a, b)
    mean = (softmax_loss(a, target) + softmax_loss(b, target)) / 2
    torch.testing.assert_close(found.total, mean + 0.7 * divergence(a, b))
    once = (
        softmax_loss(model.eval()(inputs).scores, target) / 4
    )  # no penalty where nothing is trained
    assert goal.measure(model, examples)["loss"] == pytest.approx(float(once.detach()), rel=1e-5)


def test_the_second_pass_reads_words_shifted_against_the_model():
    """By hand: the loss of vectors given outright, its slope, and the loss of vectors shifted."""
    torch.manual_seed(0)
    config = BLSTMConfig(
        vocab_size=9, input_size=0, output_size=3, adversarial=0.5, embed_size=4,
        hidden_size=5, dropout=0.0,
    )  # fmt: skip
    model = RecurrentClassifier(config).double()
    ids = [[2, 3, 4], [5, 6], [7, 8, 2]]
    targets = np.array([0, 2, 1])
    examples = Examples(Sequences(Ragged.of(ids), 9), targets)
    goal = class_goal(model, "blstm", None, multilabel=False)
    objective = SupervisedObjective(examples, None, goal, None)
    batch = next(iter(objective.batches(0, 0, rank=0, world_size=1))).tensors()
    found = objective.loss(model, batch).total
    padded, true = batch["sequences"], batch.values["target"]
    table = model.input.embedding.weight.detach()

    def loss(vectors):
        class Given(torch.nn.Module):
            def forward(self, _ids):
                return vectors

        kept, model.input.embedding = model.input.embedding, Given()
        scores = model(padded.values, padded.lengths).scores
        model.input.embedding = kept
        return torch.nn.functional.cross_entropy(scores, true, reduction="sum")

    vectors = table[padded.values].requires_grad_()
    first = loss(vectors)
    (slope,) = torch.autograd.grad(first, vectors)
    length = slope.square().sum(dim=(1, 2), keepdim=True).sqrt()
    second = loss(vectors.detach() + 0.5 * slope / length)
    assert second > first
    torch.testing.assert_close(found, (first + second) / 2)


def test_adversarial_training_fits_and_is_refused_of_vectors():
    model = Classifier("cnn", adversarial=1.0, consistency=1.0, training={"epochs": 2})
    assert model.fit(TEXTS, LABELS).predict(TEXTS[:2]) is not None
    with pytest.raises(ConfigError, match="adversarial must be a number not below 0, got -1"):
        Classifier("cnn", adversarial=-1).fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match=r"shifts word vectors, got 1.0 with vectors as input"):
        Classifier("cnn", adversarial=1.0).fit([np.ones((3, 2)), np.zeros((2, 2))] * 8, [0, 1] * 8)


def test_a_negative_consistency_is_refused():
    with pytest.raises(ConfigError, match="consistency must be a number not below 0, got -1"):
        Classifier("cnn", consistency=-1).fit(TEXTS, LABELS)
