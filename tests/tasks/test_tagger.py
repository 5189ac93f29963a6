"""Taggers from end to end: data in every form, illegal tags, saving, probabilities, readings."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch

from seqloom import Tagger, load
from seqloom.data.examples import TaggedTokens
from seqloom.errors import ConfigError, DataError, InputError, NotFittedError
from seqloom.metrics.spans import first_illegal, read_spans
from seqloom.tasks.classifier_sequences import SPECIALS
from seqloom.tasks.tagger_objective import run_tagger
from seqloom.tasks.tagger_results import FoundSpan, Tagged
from seqloom.tasks.tagger_words import MAX_CHARACTERS, TokenReader
from seqloom.text import Vocabulary

TINY = {"hidden_size": 8, "embed_size": 6, "char_embed_size": 4, "char_size": 4, "dropout": 0.0}
TINY |= {"embedding_dropout": 0.0, "word_dropout": 0.0}
QUICK = {"epochs": 40, "device": "cpu", "patience": None, "optimizer": {"rate": 0.02}}
PEOPLE, PLACES = ["Ada", "Bob Lee", "Eve"], ["Rome", "New York", "Oslo"]


def sentences() -> list[TaggedTokens]:
    """People that go to places, in BIO."""
    found = []
    for person, place in itertools.product(PEOPLE, PLACES):
        who, where = person.split(), place.split()
        words = [*who, "went", "to", *where, "."]
        tags = ["B-PER", *["I-PER"] * (len(who) - 1), "O", "O"]
        tags += ["B-LOC", *["I-LOC"] * (len(where) - 1), "O"]
        found.append(TaggedTokens(tuple(words), tuple(tags)))
    return found


def write_columns(path, examples, separator=" "):
    rows = [
        "\n".join(f"{word}{separator}{tag}" for word, tag in zip(e.tokens, e.tags, strict=True))
        for e in examples
    ]
    path.write_text("\n\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def fitted() -> Tagger:
    return Tagger(
        "blstm", encode="bioes", features=["shape"], valid_share=0, training=QUICK, **TINY
    ).fit(sentences())


def test_another_architecture_waits_for_the_next_fit(fitted, tmp_path):
    changed = copy.deepcopy(fitted).set_params(arch="cnn")
    loaded = load(changed.save(tmp_path / "model"))
    assert loaded.arch == loaded.arch_ == "blstm"
    words = [each.tokens for each in sentences()]
    assert loaded.predict(words) == changed.predict(words) == fitted.predict(words)


def test_learns_spans_and_says_where_they_are(fitted):
    found = fitted.tag("Bob Lee went to  New York.")
    assert found.tags == ("B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "O")
    assert [(span.text, span.type, span.offsets) for span in found.spans] == [
        ("Bob Lee", "PER", (0, 7)),
        ("New York", "LOC", (17, 25)),
    ]
    assert fitted.evaluate(sentences())["f1"] == 1.0
    assert fitted.score(sentences()) == 1.0
    assert "found: 18 phrases; correct: 18" in str(fitted.report(sentences()))


def test_trained_in_another_scheme_and_never_illegal(fitted):
    assert fitted.tags_.scheme == "bio"
    assert {"S-PER", "E-LOC"} <= set(fitted.tags_.names)
    assert set(fitted.evaluate(sentences())) >= {"f1/PER", "f1/LOC", "accuracy", "words"}
    rows = [["to", "Lee", "York", "Bob"], ["New"], ["York", "York", "went"]]
    for tagged in fitted.tag(rows, best=4):
        for tags, _ in tagged.alternatives:
            assert first_illegal(tags, "bio") is None


def test_readings_and_probabilities_are_those_of_all_paths(fitted):
    """The network's scores of a short sentence, summed over every legal path."""
    words = ["Eve", "went"]
    (tagged,) = fitted.tag([words], probabilities=True, best=3)
    batch = fitted.reader_([words]).batch(np.array([0])).tensors()
    scores = run_tagger(fitted.model_, batch)[0][0].detach().numpy()
    crf, names = fitted.model_.output, fitted.tags_.names
    steps, start, end = (w.detach().numpy() for w in (crf.transitions, crf.start, crf.end))
    totals = {
        (a, b): start[a] + scores[0, a] + steps[a, b] + scores[1, b] + end[b]
        for a, b in itertools.product(range(len(names)), repeat=2)
        if first_illegal([names[a], names[b]], "bioes") is None
    }
    whole = np.logaddexp.reduce([*totals.values()])
    ranked = sorted(totals, key=totals.__getitem__, reverse=True)
    for (tags, score), path in zip(tagged.alternatives, ranked, strict=False):
        assert score == pytest.approx(totals[path] - whole, abs=1e-4)
        assert tags == tuple(fitted.tags_.outward(np.array(path)))
    said = {path: fitted.tags_.outward(np.array(path))[0] for path in totals}
    first = sum(np.exp(v - whole) for p, v in totals.items() if said[p] == tagged.tags[0])
    assert tagged.probabilities[0] == pytest.approx(first, abs=1e-5)
    assert tagged.alternatives[0][0] == tagged.tags


def all_readings(model, words):
    """The log-probability of each reading of a sentence, and of each tag at each place."""
    batch = model.reader_([words]).batch(np.array([0])).tensors()
    scores = run_tagger(model.model_, batch)[0][0].detach().double()
    layer, tags = model.model_.output, model.tags_
    steps = start = end = None
    if hasattr(layer, "transitions"):
        steps, start, end = (w.detach() for w in (layer.transitions, layer.start, layer.end))
    total: dict[tuple[str, ...], float] = {}
    for path in itertools.product(range(len(tags.names)), repeat=len(words)):
        score = sum(float(scores[t, i]) for t, i in enumerate(path))
        if steps is not None:
            score += float(start[path[0]] + end[path[-1]])
            score += sum(float(steps[a, b]) for a, b in itertools.pairwise(path))
        said = tuple(tags.outward(np.array(path)))
        total[said] = float(np.logaddexp(total.get(said, -np.inf), score))
    whole = np.logaddexp.reduce([*total.values()])
    return {said: score - whole for said, score in total.items()}


@pytest.mark.parametrize(
    "options",
    [{"output": "softmax", "encode": "bmes"}, {"constrained": False, "encode": "bioes"}],
    ids=["softmax", "unconstrained"],
)
def test_each_reading_comes_once_with_the_sum_of_all_that_say_it(options):
    quick = {**QUICK, "epochs": 4}
    model = Tagger("cnn", valid_share=0, training=quick, **TINY, **options).fit(sentences())
    words = ["Bob", "Lee", "went"]
    (tagged,) = model.tag([words], probabilities=True, best=8)
    found = [tags for tags, _ in tagged.alternatives]
    assert len(found) == len({*found}) == 8 and found[0] == tagged.tags
    scores = [score for _, score in tagged.alternatives]
    assert scores == sorted(scores, reverse=True)
    (tagged,) = model.tag([words[:2]], probabilities=True, best=500)  # all there are
    expected = all_readings(model, words[:2])
    assert dict(tagged.alternatives) == pytest.approx(expected, abs=1e-4)


def test_every_length_has_a_legal_reading_and_a_probability():
    x, y = [["a", "b"], ["c", "d", "e", "f"]] * 6, [["B-X", "E-X"], ["B-X", "E-X"] * 2] * 6
    training = {"epochs": 2, "device": "cpu"}
    model = Tagger("cnn", valid_share=0, training=training).fit(x, y)
    for words in (["a"], ["a", "b", "c"], ["d", "e"]):
        (found,) = model.tag([words], probabilities=True, best=3)
        assert first_illegal(model.predict([words])[0], "bioes") is None
        for tags in (found.tags, *(tags for tags, _ in found.alternatives)):
            assert first_illegal(tags, "bioes") is None
        assert all(0 <= share <= 1 for share in found.probabilities)
    assert model.tag([["a"]])[0].tags == ("S-X",)
    model.tags_ = model.tags_._replace(names=["B-X", "E-X", "I-X"])
    model.model_.output.constrain(*model.tags_.constraints())  # as fitted before
    with pytest.raises(InputError, match=r"of 1 words must have legal tags.*B-X, E-X, I-X"):
        model.tag([["a"]], best=2)


@pytest.mark.parametrize(
    ("scheme", "tags", "told"),
    [
        ("bio", ["B-X", "0"], "'bio' must be O or begin with one of B, I, got '0'.*word 1"),
        ("bio", ["B-X", "E-X"], "got 'E-X'"),
        ("bioes", ["N", "V"], "B, I, E, S, got 'N'"),
        ("iob1", ["I-X", "-X"], "got '-X'"),
        ("bmes", ["O", "O-X"], "got 'O-X'"),
    ],
)
def test_tags_of_another_scheme_are_refused(scheme, tags, told):
    with pytest.raises(InputError, match=told):
        Tagger("cnn", scheme=scheme, valid_share=0).fit([["a", "b"]], [tags])


def test_repair_reads_other_schemes_and_refuses_what_is_of_none():
    quick = {"training": {"max_steps": 1, "device": "cpu"}, "valid_share": 0, **TINY}
    model = Tagger("cnn", scheme="bio", illegal="repair", **quick)
    assert model.fit([["a", "b"]], [["B-X", "E-X"]]).tags_.names == ["B-X", "I-X"]
    with pytest.raises(InputError, match="got '0'"):
        model.fit([["a", "b"]], [["B-X", "0"]])
    with pytest.raises(InputError, match=r"encode='bioes' needs tags that mark spans.*'N'"):
        Tagger("cnn", encode="bioes", **quick).fit([["a", "b"]], [["N", "V"]])


@pytest.mark.parametrize("best", ["2", None, 1.5, float("nan"), 0, True, 1001])
def test_how_many_readings_must_be_a_whole_number(fitted, best):
    with pytest.raises(ConfigError, match="best must be"):
        fitted.tag([["Ada"]], best=best)


def test_spans_of_vectors():
    draw = np.random.default_rng(0)
    x = [draw.standard_normal((4, 3)) for _ in range(10)]
    y = [["B-X", "I-X", "O", "B-Y"]] * 10
    training = {"epochs": 30, "device": "cpu", "optimizer": {"rate": 0.05}}
    model = Tagger("cnn", valid_share=0, training=training).fit(x, y)
    found = model.tag(x, best=2)[0]
    assert [(span.type, span.start, span.end) for span in found.spans] == [
        (span.type, span.start, span.end) for span in read_spans(found.tags)
    ]
    assert found.spans and {span.text for span in found.spans} == {""}
    assert list(found) == [("", tag) for tag in found.tags]
    assert found._repr_html_().count("<tr>") == len(found.spans)


def test_a_notebook_shows_spans_of_one_text_apart():
    spans = (FoundSpan("A&B", "X", 0, 1), FoundSpan("A&B", "Y", 1, 2))
    shown = Tagged(("A&B", "A&B"), ("B-X", "B-Y"), spans)._repr_html_()
    assert shown.count("<tr>") == 2 and shown.count("A&amp;B<") == 2


def test_batched_equals_alone(fitted):
    rows = [list(e.tokens) for e in sentences()] + [["Zoe"], ["to", "Oslo"]]
    together = fitted.tag(rows, probabilities=True)
    for row, found in zip(rows, together, strict=True):
        (alone,) = fitted.tag([row], probabilities=True)
        assert alone.tags == found.tags
        assert alone.probabilities == pytest.approx(found.probabilities, abs=1e-5)


def test_saving_and_loading_change_nothing(fitted, tmp_path):
    again = load(fitted.save(tmp_path / "model"))
    rows = [list(e.tokens) for e in sentences()]
    assert again.predict(rows) == fitted.predict(rows)
    assert again.tag("Ada went to Oslo.") == fitted.tag("Ada went to Oslo.")
    assert torch.equal(again.model_.output.allowed, fitted.model_.output.allowed)


def test_a_softmax_and_plain_tags():
    rows = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    tags = [["DET", "NOUN", "VERB"]] * 2
    model = Tagger("cnn", output="softmax", valid_share=0, training=QUICK, **TINY).fit(rows, tags)
    assert model.tags_.scheme is None
    assert set(model.evaluate(rows, tags)) == {"accuracy", "sentences", "words"}
    assert model.evaluate((rows, tags))["accuracy"] == 1.0
    (found,) = model.tag(rows[:1], probabilities=True, best=2)
    assert found.tags == ("DET", "NOUN", "VERB")
    total = sum(np.log(found.probabilities))
    assert found.alternatives[0][1] == pytest.approx(total, abs=1e-5)


def test_sequences_of_vectors(tmp_path):
    draw = np.random.default_rng(0)
    x = [5 + 100 * draw.standard_normal((n, 3)) for n in (4, 7, 2, 5) * 3]
    y = [["up" if v[0] > 5 else "down" for v in one] for one in x]
    training = {**QUICK, "batch": {"batch_size": 4}}
    model = Tagger("cnn", valid_share=0, training=training, hidden_size=16, dropout=0.0).fit(x, y)
    assert model.evaluate(x, y)["accuracy"] > 0.95
    again = load(model.save(tmp_path / "model"))
    assert again.predict(x) == model.predict(x)
    with pytest.raises(InputError, match="expecting 3 features"):
        model.predict([np.zeros((2, 4))])
    with pytest.raises(InputError, match="NaN"):
        model.predict([np.full((2, 3), np.nan)])


def test_the_same_seed_gives_the_same_model():
    training = {"epochs": 2, "device": "cpu"}
    options = {"training": training, **TINY}
    first, second = (Tagger("cnn", **options).fit(sentences()) for _ in range(2))
    for a, b in zip(first.model_.parameters(), second.model_.parameters(), strict=True):
        assert torch.equal(a, b)


def test_files_and_illegal_tags_are_told_with_their_line(tmp_path):
    examples = sentences()
    path = write_columns(tmp_path / "train.txt", examples)
    quick = {"training": {"max_steps": 1, "device": "cpu"}, **TINY}
    assert Tagger("cnn", **quick).fit(path).tags_.scheme == "bio"
    wrong = examples[1].__class__(examples[1].tokens, ("I-PER", *examples[1].tags[1:]))
    path = write_columns(tmp_path / "wrong.txt", [examples[0], wrong])
    with pytest.raises(DataError, match=r"wrong.txt:7: .*'I-PER' after the beginning"):
        Tagger("cnn", **quick).fit(path)
    assert Tagger("cnn", illegal="repair", valid_share=0, **quick).fit(path).tags_.scheme == "bio"
    ends = [TaggedTokens(("a", "b"), ("S-X", "B-X")), TaggedTokens(("a", "b"), ("B-X", "E-X"))]
    with pytest.raises(InputError, match=r"'B-X' after 'S-X' at the end \(sentence 0, word 1\)"):
        Tagger("cnn", **quick).fit(ends)
    (tmp_path / "uneven.txt").write_text("a B-X\nb\n")
    with pytest.raises(DataError, match=r"uneven.txt:2: must have 2 columns"):
        Tagger("cnn", **quick).fit(tmp_path / "uneven.txt")


def test_what_does_not_fit_is_refused():
    model = Tagger("cnn", training={"max_steps": 1, "device": "cpu"}, **TINY)
    with pytest.raises(InputError, match="3 words and 2 tags"):
        model.fit([["a", "b", "c"]], [["X", "Y"]])
    with pytest.raises(InputError, match="sentence 1 of the training data must have a word"):
        model.fit([["a"], []], [["X"], []])
    with pytest.raises(InputError, match="got 1 for 2 sentences"):
        model.fit([["a"], ["b"]], [["X"]])
    with pytest.raises(InputError, match="give y"):
        model.fit([["a"], ["b"]])
    with pytest.raises(InputError, match="must be a list of words, got str"):
        model.fit(["a text"], [["X"]])
    with pytest.raises(InputError, match="at least two tags"):
        model.fit([["a"]], [["X"]])
    with pytest.raises(NotFittedError):
        model.predict([["a"]])
    for wrong, told in (
        ({"scheme": "bilou"}, "'bilou'"),
        ({"features": ["case"]}, "'case'"),
        ({"features": "shape"}, "'shape'"),
        ({"illegal": "skip"}, "'skip'"),
        ({"valid_share": 1}, "got 1"),
        ({"tune_vectors": False}, "vectors=None"),
        ({"tune_vectors": 0}, "tune_vectors must be true or false, got 0"),
        ({"segment": "False"}, "segment must be true or false, got 'False'"),
        ({"constrained": "no"}, "constrained must be true or false, got 'no'"),
        ({"fold": None}, "fold must be true or false, got None"),
        ({"output": "hmm"}, "'hmm'"),
        ({"widths": (0,)}, r"\(0,\)"),
    ):
        with pytest.raises(ConfigError, match=told):
            Tagger("cnn", **wrong).fit(sentences())


def test_a_sentence_without_words_has_no_tags(fitted):
    assert fitted.tag(" ").tags == ()
    assert [found.tags for found in fitted.tag([[], ["Ada"]])] == [(), ("B-PER",)]
    assert fitted.predict([[]]) == [[]]
    assert fitted.tag([]) == []


def test_tags_of_other_data_need_not_be_known(fitted):
    found = fitted.evaluate([["Ada", "sang"]], [["B-PER", "B-VERB"]])
    assert (found["precision"], found["recall"]) == (1.0, 0.5)


def test_words_are_read_by_form_shape_and_spelling():
    rows = [["Ada", "ADA", "x" * 40], ["ada", "42", "17"]]
    words = TokenReader.learn_characters(rows)
    features = TokenReader.learn_features([["Ada", "Bob"]], ["shape"])
    reader = TokenReader(
        Vocabulary.build([["ada", "00"]], specials=SPECIALS),
        folds=True,
        features=features,
        characters=words,
    )
    batch = reader(rows).batch(np.array([1, 0]))
    ada, number = reader.words["ada"], reader.words["00"]
    assert batch["items"].values.tolist() == [[ada, number, number], [ada, ada, 1]]
    assert batch["feature0"].values.tolist() == [[1, 1, 1], [2, 1, 1]]
    spelled, lengths = batch.values["spellings"], batch.values["spelling_lengths"]
    assert lengths.tolist().count(MAX_CHARACTERS) == 1
    for row, sentence in zip(batch["which"].values, (rows[1], rows[0]), strict=True):
        for place, word in zip(row, sentence, strict=True):
            known = [words.words[i] for i in spelled[place][: lengths[place]]]
            assert "".join(known) == word[:MAX_CHARACTERS]
