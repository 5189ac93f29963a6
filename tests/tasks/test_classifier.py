"""Classifiers against scikit-learn's, on vectors and on texts; saved, resumed, and refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import seqloom
from seqloom import Classifier
from seqloom.data.examples import LabeledText
from seqloom.data.inputs import read_input
from seqloom.data.prepare import prepare
from seqloom.errors import ConfigError, DataError, InputError, NotFittedError, NotSeparableWarning
from seqloom.training import STOP

TEXTS = ["a good film", "a bad film", "good good plot", "bad plot", "so good", "so bad"] * 4
LABELS = ["pos", "neg"] * 12
SPACE = {"unit": "space"}
SMALL_MLP = {"hidden_sizes": (8,), "training": {"epochs": 20, "optimizer": {"rate": 0.02}}}
OPTIONS = {"softmax": {}, "logistic": {}, "perceptron": {}, "mlp": SMALL_MLP}
ARCHITECTURES = pytest.mark.parametrize("arch", list(OPTIONS))


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def data_of(name):
    return (load_iris if name == "iris" else load_digits)(return_X_y=True)


# -- vectors: the same solution as scikit-learn ---------------------------------------------------


@pytest.mark.parametrize(("name", "l2"), [("iris", 1.0), ("iris", 0.01), ("digits", 1.0)])
def test_softmax_equals_logistic_regression(name, l2):
    x, y = data_of(name)
    model = Classifier("softmax", l2=l2).fit(x, y)
    oracle = LogisticRegression(C=1 / l2, solver="newton-cholesky", tol=1e-10).fit(x, y)
    np.testing.assert_allclose(model.coef_, oracle.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, oracle.intercept_, atol=1e-2)
    np.testing.assert_allclose(model.predict_proba(x), oracle.predict_proba(x), atol=1e-3)
    assert model.score(x, y) == oracle.score(x, y)
    assert model.predict(x).tolist() == oracle.predict(x).tolist()


@pytest.mark.parametrize(("name", "l2"), [("iris", 1.0), ("iris", 0.01), ("digits", 1.0)])
def test_logistic_equals_one_versus_rest(name, l2):
    x, y = data_of(name)
    model = Classifier("logistic", l2=l2).fit(x, y)
    inner = LogisticRegression(C=1 / l2, solver="newton-cholesky", tol=1e-10)
    oracle = OneVsRestClassifier(inner).fit(x, y)
    rows = np.vstack([each.coef_ for each in oracle.estimators_])
    np.testing.assert_allclose(model.coef_, rows, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(x), oracle.predict_proba(x), atol=1e-3)
    assert model.score(x, y) == oracle.score(x, y)


def test_validation_measures_but_does_not_choose_an_unfinished_solution():
    x, y = data_of("iris")
    wanted = Classifier("softmax", l2=0.01).fit(x[::2], y[::2])
    model = Classifier("softmax", l2=0.01).fit(x[::2], y[::2], valid=(x[1::2], y[1::2]))
    assert model.coef_.tolist() == wanted.coef_.tolist()
    assert model.metrics_["valid_accuracy"] == wanted.score(x[1::2], y[1::2])


def test_two_classes():
    x, y = data_of("iris")
    x, y = x[y > 0], y[y > 0]
    oracle = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(x, y)
    # Two rows w and -w of a softmax cost half of what one row 2 w of a sigmoid costs.
    for model in (Classifier("logistic"), Classifier("softmax", l2=2.0)):
        model.fit(x, y)
        np.testing.assert_allclose(model.coef_, oracle.coef_, atol=1e-5)
        np.testing.assert_allclose(model.intercept_, oracle.intercept_, atol=1e-4)
        np.testing.assert_allclose(model.decision_function(x), oracle.decision_function(x), 1e-3)
        np.testing.assert_allclose(model.predict_proba(x), oracle.predict_proba(x), atol=1e-5)


def test_unscaled_and_constant_features_converge():
    x, y = data_of("iris")
    units = np.array([1e6, 1e-4, 1.0, 30.0])
    strange = np.hstack([x * units + [1e7, 0, -5, 0], np.full((len(x), 1), 3.0)])
    model = Classifier("softmax", l2=1e-3).fit(strange, y)
    # A penalty of nearly nothing does not know the units, so predictions are those of plain data.
    plain = Classifier("softmax", l2=1e-3).fit(x[:, [0, 2, 3]], y)
    assert model.score(strange, y) >= plain.score(x[:, [0, 2, 3]], y) - 0.01
    assert np.isfinite(model.coef_).all()


def test_weights_give_the_decisions():
    x, y = data_of("iris")
    for arch in ("softmax", "logistic", "perceptron"):
        model = Classifier(arch).fit(x[:100], y[:100])
        expected = (x @ model.coef_.T + model.intercept_)[:, 0]
        np.testing.assert_allclose(model.decision_function(x), expected, atol=1e-8)
    with pytest.raises(AttributeError, match=r"coef_ is there after a linear.* got 'mlp'"):
        _ = Classifier("mlp", **SMALL_MLP).fit(x, y).coef_


def test_another_optimizer_comes_to_the_same_place():
    x, y = data_of("iris")
    loop = {
        "epochs": 300,
        "batch": {"batch_size": 50},
        "optimizer": {"name": "adam", "rate": 0.1},
        "schedule": {"name": "cosine"},
    }
    slow = Classifier("softmax", training=loop).fit(x, y)
    fast = Classifier("softmax").fit(x, y)
    np.testing.assert_allclose(slow.coef_, fast.coef_, atol=0.02)


def test_mlp_learns_what_no_line_separates():
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 20, float)
    y = np.array([0, 1, 1, 0] * 20)
    loop = {"epochs": 60, "optimizer": {"rate": 0.02}}
    assert Classifier("mlp", hidden_sizes=(16,), training=loop).fit(x, y).score(x, y) == 1.0
    assert Classifier("softmax").fit(x, y).score(x, y) <= 0.75


def test_mlp_stops_early_on_a_share_of_its_data():
    x, y = data_of("iris")
    model = Classifier("mlp", training={"optimizer": {"rate": 0.02}, "patience": 3}).fit(x, y)
    assert model.provenance_["examples"] == 135  # a tenth of each class is held out
    assert model.provenance_["epochs"] < 200
    assert {"valid_loss", "valid_accuracy", "valid_macro_f1"} == set(model.metrics_)
    assert model.score(x, y) > 0.9


# -- the perceptron -------------------------------------------------------------------------------


@st.composite
def separable(draw):
    """Points with a margin to a random hyperplane, or to several."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes, width = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    weights, bias = rng.normal(size=(width, classes)), rng.normal(size=classes)
    x = rng.normal(size=(200, width)) * draw(st.sampled_from([1.0, 1e-3, 1e4]))
    scores = np.sort(x / np.abs(x).max() @ weights + bias, axis=1)
    x = x[scores[:, -1] - scores[:, -2] > 0.1]
    y = (x / max(np.abs(x).max(initial=0), 1e-300) @ weights + bias).argmax(axis=1)
    return x, y


@settings(max_examples=25)
@given(separable())
def test_perceptron_separates_what_can_be_separated(data):
    x, y = data
    if len(set(y.tolist())) < 2:
        return
    oracle = LogisticRegression(C=1e8, max_iter=10_000, tol=1e-8).fit(x / np.abs(x).max(), y)
    if oracle.score(x / np.abs(x).max(), y) < 1:
        return
    model = Classifier("perceptron", training={"epochs": 20_000}).fit(x, y)
    assert model.separable_
    assert model.score(x, y) == 1.0


def test_perceptron_says_when_it_cannot():
    x, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float), [0, 1, 1, 0]
    model = Classifier("perceptron", training={"epochs": 30})
    with pytest.warns(NotSeparableWarning, match="within 30 epochs .* mistakes in the last"):
        model.fit(x, y)
    assert model.separable_ is False
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="'perceptron' gives no probabilities"):
        model.predict_proba(x)


def test_perceptron_refuses_settings_of_the_loop():
    with pytest.raises(
        ConfigError, match=r"training.epochs and training.seed.*training.patience=3"
    ):
        Classifier("perceptron", training={"patience": 3}).fit(TEXTS, LABELS)


# -- texts ----------------------------------------------------------------------------------------


def oracle_tokens(**options):
    return {"token_pattern": r"\S+", "lowercase": False, **options}


@pytest.mark.parametrize(
    ("options", "vectorizer"),
    [
        ({}, CountVectorizer(**oracle_tokens())),
        ({"weighting": "binary"}, CountVectorizer(**oracle_tokens(binary=True))),
        (
            {"features": "ngrams", "max_n": 3},
            CountVectorizer(**oracle_tokens(ngram_range=(1, 3))),
        ),
        ({"weighting": "tfidf"}, TfidfVectorizer(**oracle_tokens())),
        (
            {"features": "ngrams", "weighting": "tfidf"},
            TfidfVectorizer(**oracle_tokens(ngram_range=(1, 2))),
        ),
    ],
    ids=["count", "binary", "ngrams", "tfidf", "ngrams-tfidf"],
)
def test_text_features_equal_a_vectorizer(options, vectorizer):
    model = Classifier("logistic", text=SPACE, **options).fit(TEXTS, LABELS)
    oracle = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    oracle.fit(vectorizer.fit_transform(TEXTS).toarray(), LABELS)
    known = model.features_.vocabulary
    assert sorted(known) == sorted(vectorizer.vocabulary_)
    ours = model.model_.weight.detach().numpy()[:, 0]
    for term, column in vectorizer.vocabulary_.items():
        assert ours[known[term]] == pytest.approx(oracle.coef_[0, column], abs=1e-5)
    new = ["a good so so film", "unknown words", "bad bad bad"]
    expected = oracle.predict_proba(vectorizer.transform(new).toarray())
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-5)


def test_reads_reviews_as_well_as_scikit_learn(shared_data):
    train = list(read_input("sst:train", "labeled"))[:2500]
    test = list(read_input("sst:test", "labeled"))
    texts, labels = [e.text for e in test], [e.label for e in test]
    oracle = make_pipeline(
        CountVectorizer(**oracle_tokens()), LogisticRegression(max_iter=1000)
    ).fit([e.text for e in train], [e.label for e in train])
    wanted = oracle.score(texts, labels)
    assert wanted > 0.7
    for arch in ("softmax", "logistic"):
        reached = Classifier(arch, text=SPACE).fit(train).evaluate(test)
        assert reached["accuracy"] == pytest.approx(wanted, abs=0.015)
    averaged = Classifier(
        "mlp",
        features="embedding",
        hidden_sizes=(),
        embed_size=32,
        text=SPACE,
        training={"epochs": 12, "patience": 4, "optimizer": {"rate": 0.01}},
    ).fit(train)
    assert averaged.score(texts, labels) > wanted - 0.03


@ARCHITECTURES
@pytest.mark.parametrize("features", ["bag", "ngrams", "embedding"])
def test_a_text_is_classified_the_same_alone_and_among_others(arch, features):
    if features == "embedding" and arch != "mlp":
        pytest.skip("learns no vectors")
    model = Classifier(arch, features=features, **OPTIONS[arch]).fit(TEXTS, LABELS)
    mixed = ["good", "a bad film and a good plot " * 30, "", "nothing known here", "so bad"]
    together = model.decision_function(mixed)
    alone = np.concatenate([model.decision_function([text]) for text in mixed])
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)
    back = model.decision_function(mixed[::-1])[::-1]
    np.testing.assert_allclose(together, back, rtol=1e-5, atol=1e-6)


def test_classify_gives_labels_with_probabilities():
    model = Classifier("softmax").fit(TEXTS, LABELS)
    one = model.classify("a good film")
    assert one.label == "pos"
    assert one.probability == one.probabilities["pos"] > 0.5
    assert list(one.probabilities) == ["pos", "neg"]
    assert sum(one.probabilities.values()) == pytest.approx(1)
    assert [each.label for each in model.classify(["good", "bad"])] == ["pos", "neg"]
    mistake_driven = Classifier("perceptron").fit(TEXTS, LABELS).classify("good")
    assert (mistake_driven.label, mistake_driven.probability) == ("pos", None)


def test_every_source_gives_the_same_model(tmp_path):
    examples = [LabeledText(text, (label,)) for text, label in zip(TEXTS, LABELS, strict=True)]
    table = tmp_path / "reviews.tsv"
    rows = [f"{e.text}\t{e.label}" for e in examples]
    table.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    prepared = prepare(examples, tmp_path / "prepared")
    wanted = Classifier().fit(TEXTS, LABELS).decision_function(TEXTS)
    for source in (examples, iter(examples), table, str(table), prepared, tmp_path / "prepared"):
        model = Classifier().fit(source)
        np.testing.assert_allclose(model.decision_function(TEXTS), wanted, atol=1e-12)
    assert model.evaluate(table)["accuracy"] == 1.0
    assert model.evaluate(prepared) == model.evaluate((TEXTS, LABELS))


def test_evaluate_equals_scikit_learn():
    model = Classifier("softmax").fit(TEXTS, LABELS)
    truth = ["pos"] * 20 + ["never seen"] * 4
    found = model.evaluate(TEXTS, truth)
    predicted = model.predict(TEXTS)
    assert found["accuracy"] == np.mean(predicted == np.array(truth))
    assert found["macro_f1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert found["examples"] == 24


# -- directories ----------------------------------------------------------------------------------


@ARCHITECTURES
@pytest.mark.parametrize("kind", ["text", "vectors"])
def test_save_and_load_predict_the_same(arch, kind, tmp_path):
    x, y = (TEXTS, LABELS) if kind == "text" else data_of("iris")
    if kind == "vectors":
        x, y = x[:100], y[:100]
    model = Classifier(arch, **OPTIONS[arch]).fit(x, y)
    model.save(tmp_path / "model")
    for loaded in (Classifier.load(tmp_path / "model"), seqloom.load(tmp_path / "model")):
        assert loaded.decision_function(x).tolist() == model.decision_function(x).tolist()
        assert loaded.predict(x).tolist() == model.predict(x).tolist()
        assert loaded.classes_.dtype == model.classes_.dtype
        assert getattr(loaded, "separable_", None) == getattr(model, "separable_", None)
        assert loaded.evaluate(x, y) == model.evaluate(x, y)


@pytest.mark.parametrize("other", ["logistic", "perceptron", "mlp", "cnn"])
def test_another_architecture_waits_for_the_next_fit(other, tmp_path):
    model = Classifier("softmax").fit(TEXTS, LABELS)
    wanted = model.predict_proba(TEXTS).tolist()
    model.set_params(arch=other)
    assert model.predict_proba(TEXTS).tolist() == wanted
    loaded = Classifier.load(model.save(tmp_path / "model"))
    assert loaded.arch == loaded.arch_ == "softmax"
    assert loaded.predict_proba(TEXTS).tolist() == wanted


def test_a_perceptron_gives_no_probabilities_until_the_next_fit():
    model = Classifier("perceptron").fit(TEXTS, LABELS).set_params(arch="softmax")
    assert not hasattr(model, "predict_proba")
    assert hasattr(model.fit(TEXTS, LABELS), "predict_proba") and model.arch_ == "softmax"


def test_what_is_learned_waits_for_the_next_fit(tmp_path):
    sets = [{label} for label in LABELS]
    model = Classifier("logistic", multilabel=True, threshold=0.4).fit(TEXTS, sets)
    single = Classifier("softmax").fit(TEXTS, LABELS)
    changes = {"threshold": "tune", "calibrate": True, "max_length": 0, "features": "ngrams"}
    for fitted, labels in ((model, sets), (single, LABELS)):
        scores, measured = fitted.decision_function(TEXTS), fitted.evaluate(TEXTS, labels)
        lines = list(fitted.predict_lines(TEXTS[:2]))
        fitted.set_params(multilabel=not fitted.multilabel, **changes)
        loaded = Classifier.load(fitted.save(tmp_path / fitted.arch))
        for one in (fitted, loaded):
            assert one.decision_function(TEXTS).tolist() == scores.tolist()
            assert one.evaluate(TEXTS, labels) == measured
            assert list(one.predict_lines(TEXTS[:2])) == lines
        assert not loaded.calibrate and loaded.threshold != "tune"


@pytest.mark.parametrize("weighting", ["binary", "tfidf"])
def test_a_loaded_model_keeps_its_features(weighting, tmp_path):
    model = Classifier(features="ngrams", max_n=3, weighting=weighting).fit(TEXTS, LABELS)
    loaded = Classifier.load(model.save(tmp_path / "model"))
    assert (loaded.features, loaded.max_n, loaded.weighting) == ("ngrams", 3, weighting)
    assert loaded.predict_proba(TEXTS).tolist() == model.predict_proba(TEXTS).tolist()


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1],
        [2.0, 7.0],
        [False, True],
        ["a", "b"],
        np.array([3, 4], np.uint8),
        np.array(["x", "longer"], object),
    ],
    ids=["int", "float", "bool", "str", "uint8", "object"],
)
def test_labels_come_back_as_what_they_were(labels, tmp_path):
    y = np.array([*labels] * 12, getattr(labels, "dtype", None))
    model = Classifier().fit(TEXTS, y)
    loaded = Classifier.load(model.save(tmp_path / "model"))
    assert loaded.classes_.dtype == y.dtype
    assert loaded.predict(TEXTS).dtype == y.dtype
    assert loaded.predict(TEXTS).tolist() == y.tolist()
    assert type(loaded.classify("good").label) is type(y.tolist()[0])


def test_fit_into_a_directory(tmp_path, capsys):
    model = Classifier("mlp", **SMALL_MLP)
    model.fit(TEXTS, LABELS, valid=(TEXTS, LABELS), out=tmp_path / "model")
    loaded = seqloom.load(tmp_path / "model")
    assert loaded.predict_proba(TEXTS).tolist() == model.predict_proba(TEXTS).tolist()
    assert loaded.metrics_["valid_accuracy"] == 1.0
    assert "epoch" in capsys.readouterr().err
    Classifier("mlp", **SMALL_MLP).fit(TEXTS, LABELS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arch", ["softmax", "mlp"])
def test_a_resumed_run_ends_where_an_unbroken_one_does(arch, tmp_path):
    x, y = data_of("iris")
    options = {
        "training": {"epochs": 4, "log_every": 1},
        **({"hidden_sizes": (8,)} if arch == "mlp" else {}),
    }
    unbroken = Classifier(arch, **options).fit(x, y, valid=(x, y), out=tmp_path / "a")

    def stop(report):
        if report.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Classifier(arch, **options).fit(x, y, valid=(x, y), out=tmp_path / "b", callbacks=[stop])
    resumed = Classifier(arch, **options).fit(x, y, valid=(x, y), out=tmp_path / "b", resume=True)
    assert resumed.decision_function(x).tolist() == unbroken.decision_function(x).tolist()


@ARCHITECTURES
def test_same_seed_same_result(arch):
    x, y = data_of("iris")
    x, y = x[:100], y[:100]
    torch.manual_seed(1)
    first = Classifier(arch, **OPTIONS[arch]).fit(x, y).decision_function(x)
    torch.manual_seed(2)
    again = Classifier(arch, **OPTIONS[arch]).fit(x, y).decision_function(x)
    assert first.tolist() == again.tolist()
    if arch in ("mlp", "perceptron"):
        other = Classifier(arch, **OPTIONS[arch]).set_params(training__seed=5).fit(x, y)
        assert other.decision_function(x).tolist() != first.tolist()


def test_fitting_leaves_the_generator_alone_and_listens_to_callbacks():
    before = torch.get_rng_state()
    seen = []
    model = Classifier("mlp", **SMALL_MLP)
    model.fit(TEXTS, LABELS, callbacks=[lambda report: seen.append(report) or STOP])
    assert len(seen) == 1
    assert torch.equal(before, torch.get_rng_state())


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arch": "sofmax"}, "'sofmax'; did you mean 'softmax'"),
        ({"arch": "mlp", "hiden_sizes": (3,)}, "'hiden_sizes'; did you mean 'hidden_sizes'"),
        ({"l_2": 3}, r"'l_2'; did you mean 'l2'"),
        ({"weights": "tfidf"}, "'weights'; did you mean 'weighting'"),
        ({"arch": "mlp", "vocab_size": 3}, "option of architecture 'mlp' 'vocab_size'"),
    ],
)
def test_unknown_options_name_the_nearest(options, message):
    with pytest.raises(ConfigError, match=message):
        Classifier(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l2": -1.0}, "l2 must be a number not below 0, got -1.0"),
        ({"features": "bags"}, "'features' must be one of .*, got 'bags'; did you mean 'bag'"),
        ({"features": "ngrams", "max_n": 0}, "max_n must be at least 1, got 0"),
        ({"features": "embedding"}, "'mlp' does, got 'softmax'; use arch='mlp'"),
        ({"weighting": "tf"}, "'weighting' must be one of .* got 'tf'"),
        (
            {"arch": "mlp", "features": "embedding", "weighting": "tfidf"},
            "averages all words alike, got weighting='tfidf'",
        ),
        ({"valid_share": 1.5}, r"valid_share must lie in \[0, 1\), got 1.5"),
        ({"vocabulary": {"min_cout": 2}}, "'vocabulary.min_cout'; did you mean 'min_count'"),
        ({"vocabulary": {"min_count": 99}}, "often enough, got none .*min_count=99"),
        ({"training": {"epoch": 3}}, "'training.epoch'; did you mean 'epochs'"),
        ({"training": "x"}, "training must be a table of settings, got 'x'"),
        ({"training": {"patience": 3}}, "need validation data, got valid=None"),
        ({"arch": "mlp", "dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises((ConfigError, InputError), match=message):
        Classifier(**options).fit(TEXTS, LABELS)


X, Y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (TEXTS, ["pos"] * 24, "at least two classes to tell apart, got 1 class: 'pos'"),
        (TEXTS, LABELS[:-1], "inconsistent numbers of samples: 24 and 23"),
        (X, Y[:2], "inconsistent numbers of samples: 3 and 2"),
        (X, None, "requires y to be passed"),
        (TEXTS, None, "requires y to be passed"),
        ([[0.0, np.nan], [1.0, 0.0]], [0, 1], r"Input X contains NaN \(first at \(0, 1\)\)"),
        ([[0.0, 1.0], [np.inf, 0.0]], [0, 1], r"Input X contains infinity \(first at \(1, 0\)\)"),
        ([], [], "at least one text, got none"),
        (["", ""], [0, 1], "hold at least one word.* got none"),
        (TEXTS, [["a"], ["b", "c"]] * 12, "one label, got several.*set multilabel=True"),
        (X, [[0, 1], [1, 0], [1, 1]], "one label, got several.*set multilabel=True"),
        (X, [0.5, 1.5, 2.5], "Unknown label type.*continuous numbers such as 0.5"),
        (X, ["a", None, "b"], "must have a label, got None"),
        (X, ["a", float("nan"), "b"], "must have a label, got nan"),
        (X, np.array(["a", 1, "b"], object), "all of one type, got int, str"),
        (X, ["a", 1, "b"], "all of one type, got int, str"),
        ([1.0, 2.0], [0, 1], "Expected 2D array, got 1D array"),
        ([[1.0], [2.0, 3.0]], [0, 1], "rows of different lengths"),
        ([["a", "b"], ["c", "d"]], [0, 1], "X must hold numbers, got something else"),
        (["a", 3], [0, 1], "text 1 must be a string or a LabeledText, got 3"),
        (np.array([], str), [], "at least one text, got none"),
        ([None, "a"], [0, 1], "text 0 must be a string or a LabeledText, got None"),
        (np.array([np.nan, "a"], object), [0, 1], "text 0 must be a string .* got nan"),
        ([LabeledText("a", ("x", "y"))], None, r"one label, got \('x', 'y'\) for text 0"),
        ([LabeledText("a", ("x",)), "b"], None, "labeled or none, got 1 labels for 2 texts"),
        ([LabeledText("a", ("x",))], ["x"], "labels must be given once"),
    ],
)
def test_bad_data_is_refused(x, y, message):
    with pytest.raises(InputError, match=message):
        Classifier().fit(x, y)


def test_a_failed_fit_leaves_the_estimator_and_the_disk_as_they_were(tmp_path):
    model = Classifier().fit(TEXTS, LABELS)
    with pytest.raises(InputError):
        model.fit(X, Y[:2], out=tmp_path / "model")
    assert model.predict(["good"]).tolist() == ["pos"]
    assert not (tmp_path / "model").exists()


def test_use_is_refused_before_fit_and_with_other_data():
    for method in ("predict", "predict_proba", "decision_function", "classify", "evaluate"):
        with pytest.raises(NotFittedError, match="this Classifier has not been fitted"):
            getattr(Classifier(), method)(["good"])
    on_text, on_vectors = Classifier().fit(TEXTS, LABELS), Classifier().fit(X, Y)
    with pytest.raises(InputError, match="must be texts as in training"):
        on_text.predict(X)
    with pytest.raises(InputError, match="table of numbers as in training, got texts"):
        on_vectors.predict(TEXTS)
    with pytest.raises(InputError, match="X has 3 features, but Classifier is expecting 2"):
        on_vectors.predict([[1, 2, 3]])
    with pytest.raises(InputError, match="list of texts or a table, got 'good'; classify"):
        on_text.predict("good")


def test_validation_data_must_fit_the_training_data():
    with pytest.raises(InputError, match=r"validation data must occur.* got 'so-so'; known: 'neg'"):
        Classifier().fit(TEXTS, LABELS, valid=(["fine"], ["so-so"]))
    with pytest.raises(InputError, match="X has 1 features, but Classifier is expecting 2"):
        Classifier().fit(X, Y, valid=([[1.0]], [0]))
    with pytest.raises(InputError, match="table of numbers as in training"):
        Classifier().fit(X, Y, valid=(TEXTS, LABELS))
    model = Classifier().fit(TEXTS, LABELS, valid=[LabeledText("good", ("pos",))] * 2)
    assert model.metrics_["valid_accuracy"] == 1.0


def test_a_directory_of_another_task_or_vocabulary_is_refused(tmp_path):
    place = Classifier().fit(TEXTS, LABELS).save(tmp_path / "model")
    with pytest.raises(ConfigError, match="holds a model of task 'classify', not 'lm'"):
        seqloom.LanguageModel.load(place)
    (place / "vocabulary.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"vocabulary.json: must hold .* it was cut"):
        seqloom.load(place)
