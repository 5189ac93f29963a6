"""Several labels an example, weights of classes, and probabilities that mean what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.class_weight import compute_class_weight

from seqloom import Classifier, load
from seqloom.data.examples import LabeledText
from seqloom.data.prepare import prepare
from seqloom.errors import ConfigError, InputError
from seqloom.tasks.classifier_calibration import calibration_error, fit_temperature
from seqloom.tasks.classifier_multilabel import (
    LabelSets,
    as_label_sets,
    multilabel_metrics,
    tuned_thresholds,
)
from seqloom.tasks.classifier_training import class_weights

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


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(arch, **more):
    return Classifier(arch, **{"training": LOOP, **OPTIONS[arch], **more})


# -- several labels -------------------------------------------------------------------------------

TOPICS = ["sport and money", "sport", "money", "weather", "weather and sport", "nothing"] * 8
SETS = [{w for w in text.split() if w in ("sport", "money", "weather")} for text in TOPICS]


@pytest.mark.parametrize("arch", ["logistic", "mlp", *OPTIONS])
def test_learns_sets_of_labels(arch, tmp_path):
    options = {} if arch == "logistic" else {"training": {**LOOP, "epochs": 60}}
    model = Classifier(arch, multilabel=True, **options, **OPTIONS.get(arch, {}))
    model.fit(TOPICS, SETS)
    assert model.classes_.tolist() == ["money", "sport", "weather"]
    assert model.predict(TOPICS) == SETS
    assert model.score(TOPICS, SETS) == 1.0
    chances = model.predict_proba(TOPICS)
    np.testing.assert_allclose(chances, 1 / (1 + np.exp(-model.decision_function(TOPICS))))
    assert set(model.classify("sport and money").labels) == {"sport", "money"}
    assert model.classify("nothing").labels == ()
    loaded = Classifier.load(model.save(tmp_path / "model"))
    assert loaded.predict(TOPICS) == SETS
    assert loaded.multilabel
    rows = list(model.predict_lines(["sport"]))
    assert rows[0]["labels"] == ["sport"] and rows[0]["text"] == "sport"


def test_several_labels_equal_one_logistic_regression_each():
    x, _ = load_iris(return_X_y=True)
    y = np.stack([x[:, 0] > 5.8, x[:, 2] > 4.0, x[:, 1] > 3.0], axis=1).astype(int)
    model = Classifier("logistic", multilabel=True).fit(x, y)
    inner = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    oracle = OneVsRestClassifier(inner).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x), oracle.predict_proba(x), atol=1e-4)
    assert model.predict(x).tolist() == oracle.predict(x).tolist()  # a table in, a table out
    found = model.evaluate(x, y)
    assert found["accuracy"] == oracle.score(x, y)
    for kind in ("micro", "macro"):
        wanted = f1_score(y, oracle.predict(x), average=kind)
        assert found[f"{kind}_f1"] == pytest.approx(wanted)
    ours = cross_val_score(Classifier("logistic", multilabel=True), x, y, cv=3)
    assert ours.tolist() == cross_val_score(oracle, x, y, cv=3).tolist()


def test_a_nested_list_is_a_table_where_a_row_repeats_a_value():
    x = np.eye(4)
    rows = [[1, 0, 1], [0, 0, 0], [1, 1, 0], [0, 1, 0]]
    wanted = Classifier("logistic", multilabel=True).fit(x, np.array(rows))
    for y in (rows, [tuple(map(bool, row)) for row in rows], [[*map(np.float32, r)] for r in rows]):
        model = Classifier("logistic", multilabel=True).fit(x, y)
        np.testing.assert_array_equal(model.predict_proba(x), wanted.predict_proba(x))
        assert model.predict(x).tolist() == wanted.predict(x).tolist()
        assert model.evaluate(x, y) == wanted.evaluate(x, np.array(rows))
    two = [[0, 1], [1, 0], [0, 1], [0, 1]]  # no row repeats a value: sets of the labels 0 and 1
    assert as_label_sets(two, 4) == LabelSets([frozenset({0, 1})] * 4, None)
    assert as_label_sets([*two[:3], [1, 1]], 4).columns == 2
    assert as_label_sets([[0, 0], [1]], 2) == LabelSets([frozenset({0}), frozenset({1})], None)
    assert as_label_sets([[], []], 2).columns is None
    assert as_label_sets([[2, 2], [1, 0]], 2).columns is None


def test_a_table_of_other_columns_is_refused():
    x, table = np.eye(3), np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0]])
    model = Classifier("logistic", multilabel=True).fit(x, table)
    for y in (table[:, :2], np.hstack([table, table])):
        with pytest.raises(InputError, match=f"a column a label, 3, got {y.shape[1]}"):
            model.evaluate(x, y)
        with pytest.raises(InputError, match=f"a column a label, 3, got {y.shape[1]}"):
            model.fit(x, table, valid=(x, y))


def test_metrics_of_sets_by_hand():
    predicted = [frozenset("ab"), frozenset(), frozenset("c")]
    actual = [frozenset("a"), frozenset(), frozenset("ad")]
    # a: 1 hit of 1 + 2; b: 0 of 1; c: 0 of 1; d: 0 of 1.
    found = multilabel_metrics(predicted, actual)
    assert found["accuracy"] == pytest.approx(1 / 3)
    assert found["micro_f1"] == pytest.approx(2 * 1 / (2 * 1 + 2 + 2))
    assert found["macro_f1"] == pytest.approx((2 / 3 + 0 + 0 + 0) / 4)


def test_thresholds_by_hand():
    chances = np.array([[0.9, 0.2], [0.6, 0.3], [0.55, 0.1], [0.2, 0.05]])
    truth = np.array([[1, 1], [0, 1], [0, 0], [0, 0]])
    found = tuned_thresholds(chances, truth)
    # Of the first label only above 0.6 is right, of the second all above 0.1.
    np.testing.assert_allclose(found, [0.75, 0.15])
    for c in range(2):
        wanted = max(f1_score(truth[:, c], chances[:, c] >= t) for t in np.linspace(0, 1, 41)[1:])
        assert f1_score(truth[:, c], chances[:, c] >= found[c]) == pytest.approx(wanted)
    assert tuned_thresholds(chances, np.zeros((4, 2))).tolist() == [0.5, 0.5]


def test_thresholds_are_as_good_as_any():
    assert tuned_thresholds(np.array([[0.3], [0.4]]), np.array([[1], [1]])).tolist() == [0.15]
    chance = np.random.default_rng(0)
    for _ in range(200):
        chances = np.round(chance.random((chance.integers(1, 8), 1)), 1)
        truth = chance.integers(0, 2, chances.shape)
        found = tuned_thresholds(chances, truth)[0]
        if not truth.any():
            assert found == 0.5
            continue
        wanted = max(f1_score(truth[:, 0], chances[:, 0] >= t / 100) for t in range(0, 101, 5))
        assert f1_score(truth[:, 0], chances[:, 0] >= found) == pytest.approx(wanted)


def test_a_threshold_decides_which_labels_are_given(tmp_path):
    strict = Classifier("logistic", multilabel=True, threshold={"sport": 1.0}).fit(TOPICS, SETS)
    assert all("sport" not in labels for labels in strict.predict(TOPICS))
    assert any("money" in labels for labels in strict.predict(TOPICS))
    assert Classifier.load(strict.save(tmp_path / "a")).predict(TOPICS) == strict.predict(TOPICS)
    loose = Classifier("logistic", multilabel=True, threshold=0.0).fit(TOPICS, SETS)
    assert all(len(labels) == 3 for labels in loose.predict(TOPICS))
    tuned = Classifier("logistic", multilabel=True, threshold="tune")
    with pytest.raises(ConfigError, match="threshold='tune' need validation data, got valid=None"):
        tuned.fit(TOPICS, SETS)
    tuned.fit(TOPICS, SETS, valid=(TOPICS, SETS))
    chances, truth = (
        tuned.predict_proba(TOPICS),
        np.array([[c in s for c in tuned.classes_] for s in SETS]),
    )
    np.testing.assert_allclose(tuned.decision_.thresholds, tuned_thresholds(chances, truth))
    assert Classifier.load(tuned.save(tmp_path / "b")).threshold == "tune"


def test_sets_of_labels_from_files_and_examples(tmp_path):
    examples = [LabeledText(t, tuple(sorted(s))) for t, s in zip(TOPICS, SETS, strict=True)]
    wanted = Classifier("logistic", multilabel=True).fit(TOPICS, SETS).decision_function(TOPICS)
    for source in (examples, prepare(examples, tmp_path / "prepared")):
        model = Classifier("logistic", multilabel=True).fit(source)
        np.testing.assert_allclose(model.decision_function(TOPICS), wanted, atol=1e-8)
        assert model.evaluate(source)["accuracy"] == 1.0


def test_a_file_may_have_texts_without_a_label(tmp_path):
    rows = [{"text": t, "label": sorted(s)} for t, s in zip(TOPICS, SETS, strict=True)]
    path = tmp_path / "topics.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    model = Classifier("logistic", multilabel=True).fit(path)
    assert model.predict(TOPICS) == SETS and model.evaluate(path)["accuracy"] == 1.0
    one = tmp_path / "one.jsonl"
    one.write_text('{"text": "a b", "label": "x"}\n{"text": "c d", "label": []}\n')
    with pytest.raises(InputError, match=r"must have one label, got \(\) for text 1"):
        Classifier("logistic").fit(one)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["sport"] * 48, "must have a set of labels, got 'sport' for example 0; write {'sport'}"),
        ([set()] * 48, "at least one label to learn, got none in any example"),
        ([{"a"}] * 47, "inconsistent numbers of samples: 48 and 47"),
        ([{"a"}, {1}] * 24, "all of one type, got int, str"),
        ([{b"a"}, {b"b"}] * 24, "must be names or numbers, got bytes in y"),
        ([{("a", 1)}, {("b", 2)}] * 24, "must be names or numbers, got tuple in y"),
        (np.full((48, 2), 3), "must hold 0 and 1 alone, got 3"),
        (None, "requires y to be passed"),
        ([{"a": 0.5, "b": 0.5}] * 48, "for one label an example, got {'a': 0.5, 'b': 0.5} for"),
        ([[["a"]]] * 48, r"must be names or numbers, got \[\['a'\]\] for example 0"),
    ],
)
def test_bad_sets_are_refused(y, message):
    with pytest.raises(InputError, match=message):
        Classifier("logistic", multilabel=True).fit(TOPICS, y)


def test_a_label_that_was_never_learned():
    model = Classifier("logistic", multilabel=True).fit(TOPICS, SETS)
    found = model.evaluate(["sport", "money"], [{"sport"}, {"money", "crime"}])
    assert found["accuracy"] == 0.5
    assert found["micro_f1"] == pytest.approx(2 * 2 / (2 * 2 + 0 + 1))
    with pytest.raises(InputError, match=r"validation data must occur.* got 'crime'"):
        Classifier("logistic", multilabel=True).fit(TOPICS, SETS, valid=(["x"], [{"crime"}]))
    with pytest.raises(InputError, match="was learned, str such as 'money', got int such as 1"):
        model.evaluate(["sport", "money"], [{1}, set()])
    assert model.evaluate(["sport", "money"], [{1}, {"crime"}])["accuracy"] == 0.0
    one = make("cnn", training={**LOOP, "epochs": 1}).fit(TEXTS, LABELS)
    assert one.evaluate(TEXTS, ["never"] * len(TEXTS))["accuracy"] == 0.0


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([b"a", b"b"], r"names or numbers, got \|S1 such as np\.bytes_\(b'a'\) in y"),
        (np.array(["2026-01-01", "2026-01-02"], "datetime64[D]"), r"numbers, got datetime64\[D\]"),
        (np.array([1, 2], "timedelta64[D]"), r"names or numbers, got timedelta64\[D\]"),
        (np.array([1j, 2]), "names or numbers, got complex128"),
        (np.array([(1, 2), (2, 3)], [("a", int), ("b", int)]), "names or numbers, got "),
    ],
)
def test_labels_that_no_directory_could_keep_are_refused(y, message):
    with pytest.raises(InputError, match=message):
        Classifier("softmax").fit(np.eye(2), y)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2 has them")
def test_labels_in_numpys_strings_of_any_length_are_kept(tmp_path):
    y = np.array(["a", "bb"], np.dtypes.StringDType())
    model = Classifier("softmax").fit(np.eye(2), y)
    again = load(model.save(tmp_path / "model"))
    assert model.predict(np.eye(2)).tolist() == again.predict(np.eye(2)).tolist() == ["a", "bb"]
    assert model.score(np.eye(2), y) == 1


def test_sets_of_numpys_and_of_pythons_texts_are_alike():
    mixed = [{np.str_(label) for label in row} if i % 2 else row for i, row in enumerate(SETS)]
    found, plain = (
        Classifier("logistic", multilabel=True).fit(TOPICS, sets) for sets in (mixed, SETS)
    )
    np.testing.assert_array_equal(found.predict_proba(TOPICS), plain.predict_proba(TOPICS))


def test_labels_of_another_type_are_refused():
    x = np.eye(2)
    texts, numbers = (Classifier("softmax").fit(x, y) for y in (["1", "2"], [1, 2]))
    with pytest.raises(InputError, match="was learned, str such as '1', got int such as 1"):
        texts.evaluate(x, [1, 2])
    with pytest.raises(InputError, match=r"was learned, int such as 1, got str such as '.'"):
        numbers.score(x, ["1", "2"])
    assert numbers.score(x, [1.0, 2.0]) == numbers.score(x, np.array([1, 2], object)) == 1.0
    assert numbers.score(x, [7, 8]) == 0.0


# -- weights of classes ---------------------------------------------------------------------------


@pytest.mark.parametrize("weight", ["balanced", {0: 3.0, 2: 0.5}])
def test_weights_of_classes_equal_scikit_learn(weight):
    x, y = load_iris(return_X_y=True)
    keep = np.r_[:50, 50:70, 100:140]
    x, y = x[keep], y[keep]
    model = Classifier("softmax", class_weight=weight).fit(x, y)
    oracle = LogisticRegression(class_weight=weight, solver="newton-cholesky", tol=1e-10).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x), oracle.predict_proba(x), atol=1e-3)
    two = y > 0
    model = Classifier("logistic", class_weight={True: 4.0}).fit(x, two)
    oracle = LogisticRegression(class_weight={True: 4.0}, solver="newton-cholesky", tol=1e-10)
    np.testing.assert_allclose(model.coef_, oracle.fit(x, two).coef_, atol=1e-3)


def test_weights_of_labels_by_hand():
    x = np.array([[0.0], [0.0], [0.0], [0.0]])
    y = [{"a"}, set(), set(), {"b"}]
    # All examples look alike, so the probability is w n / (w n + N - n); balanced, w n = N - n.
    for weight, chances in [
        (None, [0.25, 0.25]),
        ("balanced", [0.5, 0.5]),
        ({"a": 9.0}, [0.75, 0.25]),
    ]:
        model = Classifier("logistic", multilabel=True, l2=0.0, class_weight=weight).fit(x, y)
        np.testing.assert_allclose(model.predict_proba(x[:1])[0], chances, atol=1e-5)


def test_weights_of_classes_in_a_network():
    texts, labels = ["a b"] * 30, ["x"] * 24 + ["y"] * 6
    for weight, chance in [(None, 0.2), ("balanced", 0.5), ({"y": 12.0}, 0.75)]:
        own = {**LOOP, "epochs": 60, "optimizer": {"rate": 0.03}}
        model = make("cnn", dropout=0.0, class_weight=weight, valid_share=0, training=own)
        found = model.fit(texts, labels).predict_proba(texts[:1])[0, 1]
        assert found == pytest.approx(chance, abs=0.02)
    for arch in ("softmax", "logistic", "mlp"):
        with pytest.raises(InputError, match=r"a weight above 0, got \{'x': 0, 'y': 0\.0\}"):
            Classifier(arch, class_weight={"x": 0, "y": 0.0}).fit(texts, labels)
    balanced = compute_class_weight("balanced", classes=np.array(["x", "y"]), y=labels)
    ours = class_weights("balanced", np.array(["x", "y"]), np.array([0] * 24 + [1] * 6))
    np.testing.assert_allclose(ours, balanced)


# -- calibration ----------------------------------------------------------------------------------


def overconfident(count=400, seed=0):
    """Scores four times as large as the truth has them."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(count, 3)) * 2
    chances = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    labels = np.array([rng.choice(3, p=row) for row in chances])
    return 4 * scores, labels


def softmax(scores):
    return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))


def test_calibration_error_by_hand():
    chances = np.array([0.95, 0.92, 0.55, 0.52])
    right = np.array([True, False, True, True])
    # Two bins of ten: |1 - 1.87| and |2 - 1.07|, over four.
    assert calibration_error(chances, right, bins=10) == pytest.approx((0.87 + 0.93) / 4)
    assert calibration_error(np.ones(3), np.ones(3, bool)) == 0.0
    assert calibration_error(np.array([1.0, 0.0]), np.array([True, False])) == 0.0


def test_the_temperature_equals_scipys_optimum_and_improves_other_data():
    scores, labels = overconfident()
    found = fit_temperature(scores, labels, softmax)

    def loss(t):
        return -np.log(softmax(scores / t))[np.arange(len(labels)), labels].mean()

    oracle = minimize_scalar(loss, bounds=(0.1, 50), method="bounded", options={"xatol": 1e-10})
    assert found == pytest.approx(oracle.x, rel=1e-5)
    assert 3 < found < 5
    new, truth = overconfident(seed=1)
    before, after = softmax(new), softmax(new / found)
    right = new.argmax(axis=1) == truth
    error = calibration_error(before.max(axis=1), right)
    assert calibration_error(after.max(axis=1), right) < error / 2
    assert (before.argmax(axis=1) == after.argmax(axis=1)).all()


def test_where_all_is_right_nothing_is_made_colder():
    scores = np.array([[3.0, 0.0], [0.0, 2.0]])
    assert fit_temperature(scores, np.array([0, 1]), softmax) == 1.0


@pytest.mark.parametrize("arch", ["mlp", "cnn"])
def test_a_calibrated_classifier(arch, tmp_path):
    rng = np.random.default_rng(0)
    words = rng.choice(["good", "bad", "so", "film", "plot"], size=(300, 4))
    texts = [" ".join(row) for row in words]
    noisy = [
        "pos" if (row == "good").sum() - (row == "bad").sum() + rng.normal() * 1.5 > 0 else "neg"
        for row in words
    ]
    loop = {"epochs": 40, "patience": 40, "optimizer": {"rate": 0.01}, "device": "cpu"}
    options = OPTIONS.get(arch, {"hidden_sizes": (32,)})
    half = (texts[150:], noisy[150:])
    plain = Classifier(arch, training=loop, **options).fit(texts[:150], noisy[:150], valid=half)
    model = clone(plain).set_params(calibrate=True).fit(texts[:150], noisy[:150], valid=half)
    scores, labels = plain.decision_function(half[0]), np.array(half[1]) == "pos"

    def loss(t):
        return np.logaddexp(0, -np.where(labels, scores, -scores) / t).mean()

    oracle = minimize_scalar(loss, bounds=(0.1, 50), method="bounded", options={"xatol": 1e-10})
    assert model.decision_.temperature == pytest.approx(oracle.x, rel=1e-4)
    expected = 1 / (1 + np.exp(-scores / oracle.x))
    np.testing.assert_allclose(model.predict_proba(half[0])[:, 1], expected, atol=1e-4)
    assert model.predict(half[0]).tolist() == plain.predict(half[0]).tolist()
    assert model.decision_function(half[0]).tolist() == scores.tolist()
    found = model.evaluate(*half)
    chances = model.predict_proba(half[0])
    right = model.predict(half[0]) == np.array(half[1])
    assert found["ece"] == calibration_error(chances.max(axis=1), right)
    loaded = Classifier.load(model.save(tmp_path / "model"))
    assert loaded.predict_proba(half[0]).tolist() == chances.tolist()
    assert loaded.calibrate


def test_calibration_needs_validation_data_and_probabilities():
    with pytest.raises(
        ConfigError, match=r"calibrate=True and .* need validation data, got valid="
    ):
        Classifier("softmax", calibrate=True).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="name labels of the training data, got 'x'"):
        Classifier("logistic", multilabel=True, threshold={"x": 0.1}).fit(TOPICS, SETS)
    with pytest.raises(ConfigError, match="gives no probabilities, got calibrate=True"):
        Classifier("perceptron", calibrate=True).fit(TEXTS, LABELS)
    assert "ece" not in Classifier("perceptron").fit(["a", "b"], [0, 1]).evaluate(["a"], [0])
