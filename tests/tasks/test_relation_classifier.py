"""Relation classifiers: markers among words, honest validation, vectors, and everyday use."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from seqloom import RelationClassifier, load
from seqloom.data.examples import Relation
from seqloom.data.relations import mark, parse_marked, read_relations
from seqloom.errors import ConfigError, DataError, InputError, NotFittedError
from seqloom.metrics.relations import relation_name
from seqloom.tasks.classifier_sequences import CutTextWarning
from seqloom.tasks.recipe import load_recipe, read_recipe
from seqloom.tasks.relation_text import marked_words
from seqloom.tasks.relation_training import split_by_seed
from seqloom.tasks.relation_words import choose_words
from seqloom.tasks.text_features import TermLimits
from seqloom.text import Normalizer, TextConfig, TextPipeline
from seqloom.text.vectors import WordVectors

NOUNS = "storm flood fire noise pain fear heat dust rust smoke rain loss joy debt light".split()
VERBS = {"causes": "Cause-Effect(e1,e2)", "comes from": "Cause-Effect(e2,e1)", "and": "Other"}
ARCHITECTURES = ("brnn", "blstm", "att-blstm", "cnn", "joint-attention", "transformer")
FAST = {"epochs": 1, "device": "cpu", "batch": {"batch_size": 8}}


def sentences(count: int, seed: int = 0) -> list[Relation]:
    """Which relation holds is said by the words between; nouns are drawn by chance."""
    chance, found = random.Random(seed), []
    for _ in range(count):
        a, b = chance.sample(NOUNS, 2)
        verb = chance.choice([*VERBS])
        before = " ".join(chance.choices(["the", "old", "see"], k=chance.randint(0, 3)))
        text = f"{before} <e1>{a}</e1> {verb} <e2>{b}</e2> again."
        found.append(Relation(*parse_marked(text), VERBS[verb]))
    return found


@pytest.fixture(scope="module")
def model() -> RelationClassifier:
    """A small Att-BLSTM that has learned the sentences above."""
    settings = {"epochs": 12, "optimizer": {"name": "adam", "rate": 0.02}, "device": "cpu"}
    return RelationClassifier(
        "att-blstm", embed_size=12, hidden_size=8, dropout=0.1, training=settings
    ).fit(sentences(240))


# -- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lowercase", [False, True])
def test_words_lead_back_into_the_text(shared_data, lowercase):
    pipeline = TextPipeline(TextConfig(normalizer=Normalizer(lowercase=lowercase)))
    place = shared_data / "semeval2010-task8/TEST_FILE_FULL.TXT.xz"
    for relation in list(read_relations(place))[:400]:
        sentence = parse_marked(mark(relation.text, relation.first, relation.second))
        words, spans = marked_words(pipeline, sentence)
        assert len(words) == len(spans)
        for k, span in (("1", relation.first), ("2", relation.second)):
            start, end = words.index(f"<e{k}>"), words.index(f"</e{k}>")
            assert (spans[start], spans[end]) == ((span[0],) * 2, (span[1],) * 2)
            inside = [relation.text[slice(*each)] for each in spans[start + 1 : end]]
            assert "".join(inside) == "".join(relation.text[slice(*span)].split())
        read = [(w, relation.text[slice(*s)]) for w, s in zip(words, spans, strict=True)]
        plain = [(w, t) for w, t in read if w[:2] not in ("<e", "</")]
        assert all((t.lower() if lowercase else t) == w for w, t in plain)
        assert "".join(t for _, t in plain) == "".join(relation.text.split())


def test_entities_in_any_order_and_side_by_side():
    found = marked_words(TextPipeline(), parse_marked("<e2>tea</e2><e1>pot</e1>"))
    assert found.words == ["<e2>", "tea", "</e2>", "<e1>", "pot", "</e1>"]
    assert found.spans == [(0, 0), (0, 3), (3, 3), (3, 3), (3, 6), (6, 6)]


def test_near_the_entities_are_so_many_words_on_either_side():
    found = marked_words(TextPipeline(), parse_marked("a b <e2>tea</e2> c <e1>pot</e1> d e f"))
    whole = ["a", "b", "<e2>", "tea", "</e2>", "c", "<e1>", "pot", "</e1>", "d", "e", "f"]
    assert found.words == whole
    for around, part in ((0, slice(2, 9)), (1, slice(1, 10)), (2, slice(0, 11)), (9, slice(12))):
        near = found.near(around)
        assert near.words == whole[part] and near.spans == found.spans[part]


def test_words_further_away_are_not_read():
    model = RelationClassifier("cnn", embed_size=4, around=1, training=FAST, valid_share=0)
    model.fit(sentences(40))
    entities = "old <e1>dust</e1> and <e2>fire</e2> again"
    texts = [entities, f"the see the {entities} . the fire", entities.replace("old", "see")]
    shares = model.predict_proba(texts)
    np.testing.assert_array_equal(shares[0], shares[1])
    assert (shares[0] != shares[2]).any()
    one = model.relate(texts[1])
    assert (one.first, one.second) == ("dust", "fire")


@pytest.mark.parametrize(("before", "after"), [(0, 9), (9, 0), (2, 9), (9, 2), (5, 5), (1, 0)])
def test_as_many_words_around_the_entities_as_may_be_read(before, after):
    text = "a " * before + "<e2>tea</e2> c <e1>pot</e1>" + " z" * after
    whole = marked_words(TextPipeline(), parse_marked(text))
    for most in range(7, 22):
        found = whole.within(most)
        fits = [whole.near(k) for k in range(10) if len(whole.near(k).words) <= most]
        assert found == max(fits, key=lambda each: len(each.words))
    with pytest.raises(InputError, match="must be at most 6 words, got 7"):
        whole.within(6)


@pytest.mark.parametrize("arch", ["joint-attention", "transformer"])
def test_of_long_sentences_what_is_near_the_entities_counts(arch):
    model = RelationClassifier(arch, hidden_size=8, embed_size=4, training=FAST, valid_share=0)
    model.fit(sentences(20))
    near = "<e1>dust</e1> and <e2>fire</e2>"  # 7 words of 1,024: 508 on either side
    long = f"{'see ' * 1000}{near}{' old' * 3000}"
    with pytest.warns(CutTextWarning, match="1 of 2 sentences have more than the 1024 .* has 4007"):
        shares = model.predict_proba([long, near])
    wanted = model.predict_proba([f"{'see ' * 508}{near}{' old' * 508}", near])
    np.testing.assert_array_equal(shares, wanted)
    far = f"<e1>dust</e1>{' and' * 1018} <e2>fire</e2>"
    model.predict([far])
    with pytest.raises(InputError, match=r"sentence 1: .* at most 1024 words, got 1025"):
        model.predict([near, far.replace(" <e2>", " and <e2>")])


def test_a_marker_as_a_word_is_refused():
    pipeline = TextPipeline(TextConfig(unit="space"))
    with pytest.raises(InputError, match="got '<e1>'"):
        marked_words(
            pipeline, type(parse_marked("<e1>a</e1><e2>b</e2>"))("a <e1> b", (0, 1), (7, 8))
        )


def test_markers_are_words_of_every_vocabulary():
    words = choose_words([["<e1>", "a", "</e1>"]], TermLimits(min_count=5))
    assert words.encode(["<e1>", "</e1>", "<e2>", "</e2>", "a"]).tolist() == [2, 3, 4, 5, 1]


# -- learning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("reads", [{}, {"position_size": 4}, {"entity_states": True}], ids=str)
def test_every_architecture_learns_what_relates(arch, reads):
    settings = {
        "epochs": 15,
        "optimizer": {"name": "adam", "rate": 0.01},
        "batch": {"batch_size": 16},
        "device": "cpu",
    }
    small = {"cnn": {"num_maps": 8}, "transformer": {"num_layers": 1}}.get(arch, {})
    small |= {} if arch == "cnn" else {"hidden_size": 16}
    model = RelationClassifier(
        arch, training=settings, dropout=0.1, embed_size=12, **reads, **small
    ).fit(sentences(300))
    assert model.evaluate(sentences(60, seed=9))["macro_f1"] > 0.95


def test_evaluation_is_the_official_score_of_the_predictions(model):
    data = sentences(80, seed=4)
    turned = [x.label.translate(str.maketrans("12", "21")) if i % 3 else x.label
              for i, x in enumerate(data)]  # fmt: skip
    texts = [mark(x.text, x.first, x.second) for x in data]
    found = model.evaluate(texts, turned)
    predicted = model.predict(texts).tolist()
    true = sum(p == k for p, k in zip(predicted, turned, strict=True) if k != "Other")
    both = sum(p != "Other" for p in predicted) + sum(k != "Other" for k in turned)
    assert found["macro_f1"] == pytest.approx(2 * true / both)  # there is one relation
    assert found["f1/Cause-Effect"] == found["macro_f1"]
    assert found["accuracy"] == pytest.approx(np.mean(np.array(predicted) == np.array(turned)))
    assert found["examples"] == 80
    assert model.evaluate((texts, turned)) == found
    assert "OFFICIAL" in str(model.report(texts, turned))


def test_the_validation_part_is_the_seeds_and_is_not_learned_from():
    targets = np.array([0] * 50 + [1] * 30 + [2])
    kept, apart = split_by_seed(targets, 0.2, seed=3)
    assert sorted([*kept, *apart]) == list(range(81))
    assert np.bincount(targets[apart], minlength=3).tolist() == [10, 6, 0]
    again = split_by_seed(targets, 0.2, seed=3)
    assert all(np.array_equal(a, b) for a, b in zip((kept, apart), again, strict=True))
    assert not np.array_equal(split_by_seed(targets, 0.2, seed=4)[1], apart)


def test_validation_metrics_are_those_of_the_weights_that_are_kept():
    data = sentences(200)
    settings = {
        "epochs": 6,
        "seed": 5,
        "device": "cpu",
        "optimizer": {"name": "adam", "rate": 0.01},
    }
    model = RelationClassifier("cnn", embed_size=8, num_maps=4, training=settings).fit(data)
    classes = sorted({x.label for x in data})
    targets = np.array([classes.index(x.label) for x in data])
    apart = [data[i] for i in split_by_seed(targets, 0.1, seed=5)[1]]
    found = model.evaluate(apart)
    assert found["macro_f1"] == pytest.approx(model.metrics_["valid_macro_f1"])
    assert found["accuracy"] == pytest.approx(model.metrics_["valid_accuracy"])
    assert model.provenance_["examples"] == len(data) - len(apart)


def test_words_of_the_validation_part_are_not_known_unless_they_have_a_vector():
    train, valid = sentences(60), [Relation("zebu eats hay", (0, 4), (10, 13), "Other")]
    vectors = WordVectors(["zebu", "storm"], np.eye(2, dtype=np.float32))
    plain = RelationClassifier("cnn", num_maps=4, training=FAST).fit(train, valid=valid)
    assert "zebu" not in plain.vocabulary_
    given = RelationClassifier("cnn", num_maps=4, vectors=vectors, training=FAST)
    assert "zebu" in given.fit(train, valid=valid).vocabulary_
    assert "hay" not in given.vocabulary_
    blind = RelationClassifier(
        "cnn", num_maps=4, vectors=vectors, unseen_vectors=False, training=FAST
    )
    assert "zebu" not in blind.fit(train, valid=valid).vocabulary_


# -- vectors -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    words = [*NOUNS, "causes", "brings", "yeti"]
    drawn = np.random.default_rng(0).standard_normal((len(words), 6)).astype(np.float32)
    return WordVectors(words, drawn)


@pytest.mark.parametrize("reads", [{}, {"position_size": 3, "entity_states": True}], ids=str)
def test_unseen_words_with_a_vector_change_nothing_else(vectors, reads):
    options = {"vectors": vectors, "training": FAST, **reads}
    more, less = (
        RelationClassifier("att-blstm", hidden_size=5, unseen_vectors=known, **options).fit(
            sentences(60)
        )
        for known in (True, False)
    )
    texts = ["the <e1>storm</e1> causes <e2>fire</e2>", "<e1>fire</e1> and <e2>rain</e2>"]
    np.testing.assert_allclose(more.predict_proba(texts), less.predict_proba(texts), rtol=1e-6)
    table = more.model_.input.embedding.weight.detach().numpy()
    for word in ("brings", "yeti"):
        assert word not in less.vocabulary_
        own = vectors.matrix[vectors.index[word]]
        np.testing.assert_array_equal(table[more.vocabulary_[word]], own)
    unseen = ["<e1>yeti</e1> brings <e2>fire</e2>"]
    assert not np.allclose(more.predict_proba(unseen), less.predict_proba(unseen))


def test_vectors_that_are_not_tuned_stay(vectors):
    options = {"vectors": vectors, "training": FAST, "hidden_size": 5}
    model = RelationClassifier("att-blstm", tune_vectors=False, **options).fit(sentences(60))
    tuned = RelationClassifier("att-blstm", **options).fit(sentences(60))
    for fitted, same in ((model, True), (tuned, False)):
        table = fitted.model_.input.embedding.weight.detach().numpy()
        row = table[fitted.vocabulary_["storm"]]
        assert np.array_equal(row, vectors.matrix[vectors.index["storm"]]) == same
    assert model.model_.config.embed_size == 6  # as wide as the vectors


# -- use -----------------------------------------------------------------------------------------


def test_alone_and_among_others_is_the_same(model):
    data = sentences(40, seed=8)
    texts = [mark(x.text, x.first, x.second) for x in data]
    together = model.predict_proba(texts)
    np.testing.assert_allclose(together.sum(axis=1), 1)
    for text, relation, row in zip(texts, data, together, strict=True):
        alone = model.predict_proba([text])[0]
        np.testing.assert_allclose(alone, row, rtol=1e-5)
        np.testing.assert_array_equal(model.predict_proba([relation])[0], alone)
        spans = (relation.text, relation.first, relation.second)
        np.testing.assert_array_equal(model.predict_proba([spans])[0], alone)


def test_relate_names_entities_roles_and_words(model):
    found = model.relate("see the <e1>dust</e1> comes from <e2>fire</e2>.", explain=True)
    assert (found.label, found.relation) == ("Cause-Effect(e2,e1)", "Cause-Effect")
    assert (found.first, found.second, found.arguments) == ("dust", "fire", ("fire", "dust"))
    assert found.probability == max(found.probabilities.values())
    assert next(iter(found.probabilities)) == found.label
    assert sum(found.probabilities.values()) == pytest.approx(1)
    why = found.explanation
    assert why.words == (
        *("see", "the", "<e1>", "dust", "</e1>", "comes", "from", "<e2>", "fire", "</e2>", "."),
    )
    assert sum(why.weights) == pytest.approx(1, abs=1e-5)
    assert "fire → dust" in found._repr_html_()
    assert model.relate(["<e1>dust</e1> and <e2>fire</e2>"])[0].explanation is None


def test_a_model_without_attention_explains_nothing():
    model = RelationClassifier("cnn", num_maps=4, embed_size=5, training=FAST).fit(sentences(40))
    with pytest.raises(ConfigError, match="attention"):
        model.relate("<e1>dust</e1> and <e2>fire</e2>", explain=True)


@pytest.mark.parametrize(
    "reads", [{}, {"position_size": 3, "entity_states": True}, {"around": 0}], ids=str
)
def test_saved_and_loaded_is_the_same(tmp_path, vectors, reads):
    model = RelationClassifier(
        "att-blstm",
        hidden_size=5,
        vectors=vectors,
        **reads,
        max_distance=4,
        other="Other",
        text={"normalizer": {"lowercase": True}},
        training=FAST,
    ).fit(sentences(60))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, RelationClassifier)
    texts = ["The <e1>Yeti</e1> brings <e2>fire</e2>", "<e1>fire</e1> and <e2>rain</e2>"]
    np.testing.assert_array_equal(model.predict_proba(texts), again.predict_proba(texts))
    assert {name: again.get_params()[name] for name in reads} == reads
    assert again.metrics_ == model.metrics_
    assert again.classes_.tolist() == model.classes_.tolist()


@pytest.mark.parametrize(
    ("fitted", "changes"),
    [
        ({}, {"position_size": 5}),
        ({"position_size": 3, "max_distance": 4}, {"position_size": 0}),
        ({"position_size": 3, "max_distance": 30}, {"max_distance": 3}),
        ({"position_size": 3, "max_distance": 30}, {"max_distance": 60}),
        ({}, {"entity_states": True}),
        ({"entity_states": True}, {"entity_states": False}),
        ({}, {"around": 0}),
        ({}, {"around": -3}),
        ({"around": 1}, {"around": "x"}),
        ({}, {"other": "Cause-Effect(e1,e2)"}),
        ({}, {"arch": "cnn"}),
        ({"position_size": 3}, {"arch": "transformer"}),
    ],
    ids=str,
)
def test_settings_of_entities_wait_for_the_next_fit(tmp_path, fitted, changes):
    data = sentences(40)
    options = {"hidden_size": 4, "embed_size": 4, "training": FAST}
    model = RelationClassifier("blstm", **options, **fitted).fit(data)
    shares, measured = model.predict_proba(data), model.evaluate(data)
    model.set_params(**changes)
    again = load(model.save(tmp_path / "model"))
    for one in (model, again):
        np.testing.assert_array_equal(one.predict_proba(data), shares)
        assert one.evaluate(data) == measured
    assert again.arch == "blstm"
    assert {name: again.get_params()[name] for name in fitted} == fitted


def test_same_seed_same_model_and_a_run_that_resumes(tmp_path):
    data = sentences(60)
    options = {"hidden_size": 5, "embed_size": 5, "training": FAST | {"epochs": 3}}
    first, second = (RelationClassifier("att-blstm", **options).fit(data) for _ in range(2))
    texts = [mark(x.text, x.first, x.second) for x in data[:5]]
    np.testing.assert_array_equal(first.predict_proba(texts), second.predict_proba(texts))

    class StoppedError(Exception):
        """Ends a run."""

    def stop(report):
        if report.step >= 14:
            raise StoppedError

    model = RelationClassifier("att-blstm", **options)
    with pytest.raises(StoppedError):
        model.fit(data, out=tmp_path / "run", callbacks=[stop])
    with pytest.raises(NotFittedError):
        model.predict(texts)
    resumed = model.fit(data, out=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(first.predict_proba(texts), resumed.predict_proba(texts))


# -- data and settings ---------------------------------------------------------------------------


def test_tables_and_the_tasks_own_format(tmp_path, model):
    data = sentences(40)
    rows = [{"text": mark(x.text, x.first, x.second), "label": x.label} for x in data]
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = tmp_path / "TRAIN_FILE.TXT"
    file.write_text(
        "".join(
            f'{i}\t"{r["text"]}"\n{r["label"]}\nComment:\n\n' for i, r in enumerate(rows, start=1)
        )
    )
    assert model.evaluate(table) == model.evaluate(str(file)) == model.evaluate(data)
    assert model.evaluate(table.rename(tmp_path / "rows.ndjson")) == model.evaluate(data)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (["no entity"], ["Other"], "sentence 0: must have each of <e1>"),
        (["<e1>a</e1> <e2>b</e2>", 5], ["Other"] * 2, "sentence 1 must be a text with <e1>"),
        ([("a b", (0, 1), (0, 3))], ["Other"], "sentence 0: one entity must end before"),
        ([("a b", 0, 1)], ["Other"], r"sentence 0: an entity must be \(start, end\), .* got 0 in"),
        ([("a b", (0, 1), (2, None))], ["x"], r"two whole numbers, got \(2, None\) in 'a b'"),
        ([Relation("a b", (0, 1), (2, 3), None)], None, "sentence 0 must be a text, got None"),
        (["<e1>a</e1> <e2>b</e2>"], None, "training data must have a label a sentence"),
        (["<e1>a</e1> <e2>b</e2>"], ["x", "y"], "got 2 labels for 1 sentences"),
        (["<e1>a</e1> <e2>b</e2>"], [1], "the label of sentence 0 must be a text, got 1"),
        (
            ["<e1>a</e1> <e2>b</e2>"] * 2,
            ["x", None],
            "label of sentence 1 must be a text, got None",
        ),
        (["<e1>a</e1> <e2>b</e2>"] * 2, "xy", "y must be a list of one text a sentence, got 'xy'"),
        (["<e1>a</e1> <e2>b</e2>"], 5, "y must be a list of one text a sentence, got 5"),
        ("<e1>a</e1> <e2>b</e2>", ["x"], "sentences must be a list, got one sentence, '<e1>a"),
        ([], None, "at least one sentence, got none"),
        (["<e1>a</e1> <e2>b</e2>"] * 2, ["x"] * 2, "at least two classes"),
        ([Relation("a b", (0, 1), (2, 3), "x")], ["x"], "labels must be given once"),
    ],
)
def test_wrong_data_is_refused(x, y, message):
    with pytest.raises(InputError, match=message):
        RelationClassifier("cnn").fit(x, y)


def test_a_data_set_of_something_else_is_refused(shared_data):
    with pytest.raises(DataError, match="must hold sentences with two entities, got LabeledText"):
        RelationClassifier("cnn").fit("sst:train")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"valid_share": 1.0}, "valid_share must lie in .* got 1.0"),
        ({"position_size": -1}, "position_size must be a whole number of at least 0, got -1"),
        ({"position_size": 2.5}, "position_size must be a whole number of at least 0, got 2.5"),
        ({"position_size": "abc"}, "position_size must be a whole number .* got 'abc'"),
        ({"max_distance": 0}, "max_distance must be a whole number of at least 1, got 0"),
        ({"max_distance": None}, "max_distance must be a whole number of at least 1, got None"),
        ({"max_distance": 2.5}, "max_distance must be a whole number of at least 1, got 2.5"),
        ({"around": -1}, "around must be a whole number of at least 0, got -1"),
        ({"around": "two"}, "around must be a whole number of at least 0, got 'two'"),
        ({"around": 1.5}, "around must be a whole number of at least 0, got 1.5"),
        ({"other": None}, "other must be the name of a label, got None"),
        ({"unseen_vectors": "all"}, "unseen_vectors must be true, false or .* got 'all'"),
        ({"training": "x"}, "training must be a table of settings, got 'x'"),
        ({"tune_vectors": False}, "got vectors=None"),
        ({"tune_vectors": "False"}, "tune_vectors must be true or false, got 'False'"),
        ({"entity_states": "no"}, "entity_states must be true or false, got 'no'"),
        ({"valid_share": 0, "training": {"patience": 2}}, "need validation data"),
        ({"vocabulary": {"min_count": 0}}, "min_count must be at least 1"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        RelationClassifier("cnn", **settings).fit(sentences(20))


def test_a_name_for_no_relation_that_no_sentence_has_is_refused():
    """Else what is no relation would be in the official score like one."""
    data = sentences(40)
    settings = {"num_maps": 4, "embed_size": 4, "training": FAST}
    with pytest.raises(InputError, match="unknown label 'other'; did you mean 'Other'"):
        RelationClassifier("cnn", other="other", **settings).fit(data)
    related = [each for each in data if each.label != "Other"]
    RelationClassifier("cnn", **settings).fit(related)
    RelationClassifier("cnn", other="Cause-Effect(e1,e2)", **settings).fit(related)


def test_lines_are_named_by_their_number(model):
    lines = ["<e1>dust</e1> and <e2>fire</e2>", "<e1>dust</e1> and fire"]
    with pytest.raises(DataError, match=r"must have each of .* got <e1> </e1> in") as caught:
        list(model.predict_lines(lines))
    assert caught.value.line == 2


def test_a_misspelled_option_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'hidden_size'"):
        RelationClassifier("blstm", hiden_size=3)


def test_recipes_are_read_and_build_their_estimators():
    optimizers = {"att-blstm": "adam", "blstm": "adam", "brnn": "adam", "cnn": "adadelta"}
    for arch, optimizer in optimizers.items():
        name = f"semeval-{arch}"
        recipe = load_recipe(name)
        model = recipe.estimator(seed=3)
        training = model.build_training()
        assert (model.task, model.arch) == ("relate", arch)
        assert (training.seed, training.optimizer.name) == (3, optimizer)
        assert recipe.target.is_met(recipe.target.value + 0.01)
        assert not recipe.target.is_met(recipe.target.value - 0.01)


def test_the_papers_training_is_the_default():
    training = RelationClassifier("blstm", training={"epochs": 3}).build_training()
    assert (training.epochs, training.batch.batch_size) == (3, 10)
    assert (training.optimizer.name, training.optimizer.rate) == ("adadelta", 1.0)
    assert RelationClassifier("transformer").build_training().optimizer.name == "adam"


def test_the_penalty_leaves_vectors_of_rare_words_alone():
    """A word of the validation data has no gradient but the penalty's: Adam would move it by its
    rate at every update, to 0.09 and less.
    """
    own = np.full((1, 4), 0.1, np.float32)
    vectors = WordVectors(["zebu", *NOUNS], np.concatenate([own, np.eye(15, 4)]).astype("float32"))
    valid = [Relation("zebu eats hay", (0, 4), (10, 13), "Other")]
    settings = {"epochs": 3, "device": "cpu"}
    model = RelationClassifier("att-blstm", hidden_size=4, vectors=vectors, training=settings)
    model.fit(sentences(100), valid=valid)
    table = model.model_.input.embedding.weight.detach().numpy()
    np.testing.assert_allclose(table[model.vocabulary_["zebu"]], 0.1, rtol=0.01)


def test_fields_of_a_table_can_be_named(tmp_path):
    from seqloom.tasks.recipe import open_data

    place = tmp_path / "rows.csv"
    place.write_text("clause,kind\n<e1>a</e1> <e2>b</e2>,x\n")
    recipe = {"task": "relate", "arch": "cnn", "data": {"train": str(place)}}
    fields = {"text": "clause", "label": "kind"}
    plan = read_recipe({**recipe, "data": {"train": str(place), "fields": fields}})
    (found,) = open_data("relate", plan.data.train, plan.data.fields)
    assert [(x.text, x.label, relation_name(x.label)) for x in found] == [("a b", "x", "x")]


def test_scikit_learns_tools_take_it():
    model_selection = pytest.importorskip("sklearn.model_selection")
    base = pytest.importorskip("sklearn.base")
    data = sentences(60)
    texts, labels = [mark(x.text, x.first, x.second) for x in data], [x.label for x in data]
    model = RelationClassifier(
        "cnn", num_maps=4, embed_size=5, position_size=2, valid_share=0, training=FAST
    )
    copy = base.clone(model)
    assert copy.get_params() == model.get_params()
    found = model_selection.cross_val_score(copy, texts, labels, cv=3)
    assert found.shape == (3,)
    fitted = copy.fit(texts, labels)
    assert fitted.score(texts, labels) == fitted.evaluate(texts, labels)["macro_f1"]
