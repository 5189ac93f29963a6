"""ONNX Runtime's outputs equal ours, for every architecture, over several lengths and batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx_running import SIZES, drawn, real, run, session

from seqloom.architectures import find_architecture, load_config_class, load_model_class
from seqloom.errors import BackendError, ConfigError
from seqloom.export.classifiers import (
    bag_inputs,
    classifier_program,
    sequence_inputs,
    vector_inputs,
)
from seqloom.export.graphs import OPSET, build_graph
from seqloom.export.language import language_program
from seqloom.export.program import Input, Output, Program
from seqloom.export.reading import reader_program
from seqloom.export.tagging import tagger_program
from seqloom.models.entity_distances import EntityDistances
from seqloom.models.entity_states import EntityStates
from seqloom.nn.recurrent import Recurrent

V = 11


def network(task, arch, **options):
    """A network with weights that make padding matter."""
    torch.manual_seed(1)
    entry = find_architecture(task, arch)
    config = load_config_class(entry)(**{**options, **entry.preset})
    return shaken(load_model_class(entry)(config))


def shaken(model):
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    for module in model.modules():
        if isinstance(module, Recurrent):
            module.backend = "reference"
    return model.eval()


def check(program, *, sizes=SIZES, shortest=1, expected=None):
    """The graph of a program gives what its network gives."""
    model, became = build_graph(program)
    if expected is not None:
        assert set(became) == expected
    assert [each.name for each in model.graph.output] == [each.name for each in program.outputs]
    assert [(each.domain, each.version) for each in model.opset_import] == [("", OPSET)]
    opened = session(model)
    for each in sizes:
        feed = drawn(program, each, values=V, shortest=shortest)
        with torch.no_grad():
            wanted = list(program.network(*feed.values()))
            if program.finish is not None:
                wanted.append(program.network.model.output.decode(wanted[0], feed["lengths"]))
        found = run(opened, feed)
        compare(program, feed, found, wanted)
    return model


def compare(program, feed, found, wanted):
    for output, right in zip(program.outputs, wanted, strict=True):
        got, known = (real(output, feed, array) for array in (found[output.name], right))
        np.testing.assert_allclose(got, known, atol=1e-4, rtol=1e-4, err_msg=output.name)


SMALL = {"vocab_size": V, "hidden_size": 6, "num_layers": 1}


@pytest.mark.parametrize(
    ("arch", "options", "expected"),
    [
        ("nnlm", {"vocab_size": V, "order": 3, "embed_size": 4, "hidden_size": 5}, set()),
        ("rnn", SMALL, {"RNN"}),
        ("gru", SMALL, {"GRU"}),
        ("recurrent", {**SMALL, "cell": "gru-before", "softmax": "hierarchical"}, {"GRU"}),
        (
            "lstm",
            {**SMALL, "num_layers": 2, "last_size": 4, "tied": True, "embed_size": 4},
            {"LSTM"},
        ),
        ("peephole", {**SMALL, "softmax": "adaptive", "cutoffs": (4,)}, {"LSTM"}),
        ("attention", {**SMALL, "context_size": 3}, {"LSTM"}),
        ("cnn", {**SMALL, "kernel_size": 3, "weight_norm": True}, set()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_language_models(arch, options, expected):
    program = language_program(network("lm", arch, **options))
    check(program, shortest=0, expected=expected)  # a row without a word keeps its state


def test_a_transformer_that_reads_on():
    # Texts are longer than the 4 positions that are seen, and the state holds some of them.
    model = network(
        "lm", "transformer", vocab_size=V, hidden_size=4, num_layers=1, num_heads=2,
        context_size=4,
    )  # fmt: skip
    program = language_program(model)
    opened = session(build_graph(program)[0])
    for each in SIZES:
        feed = drawn(program, each, values=V, shortest=0)
        before = model(
            torch.randint(0, V, (each["batch"], 6)), torch.tensor([6, 2, 0, 3])[: each["batch"]]
        )
        feed |= {f"state_{k}": part.detach() for k, part in before.state._asdict().items()}
        with torch.no_grad():
            wanted = program.network(*feed.values())
        found = run(opened, feed)
        compare(program, feed, found, wanted)


def test_a_model_that_restores_words():
    model = network(
        "lm", "transformer", vocab_size=V - 1, hidden_size=4, num_layers=1, num_heads=2,
        context_size=9, positions="sinusoidal", objective="masked",
    )  # fmt: skip
    program = language_program(model)
    assert program.facts == {"blank": V - 1, "max_steps": 10}
    check(program)


def test_a_text_in_pieces_is_the_text_as_a_whole():
    opened = session(build_graph(language_program(network("lm", "gru", **SMALL)))[0])
    ids = np.random.default_rng(0).integers(0, V, (2, 7))
    whole = run(opened, {"ids": ids, "lengths": [7, 7], "state_h": np.zeros((2, 1, 6), "f4")})
    state, logs = np.zeros((2, 1, 6), "f4"), []
    for piece in (ids[:, :1], ids[:, 1:5], ids[:, 5:]):
        lengths = np.full(2, piece.shape[1])
        found = run(opened, {"ids": piece, "lengths": lengths, "state_h": state})
        state = found["next_h"]
        logs.append(found["log_probs"])
    np.testing.assert_allclose(np.concatenate(logs, axis=1), whole["log_probs"], atol=1e-5)
    np.testing.assert_allclose(state, whole["next_h"], atol=1e-5)


TEXT = {"vocab_size": V, "input_size": 0, "output_size": 3, "embed_size": 4}


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("cnn", {"num_maps": 4, "widths": (2,), "pooling": "attention"}),
        ("brnn", {"hidden_size": 3}),
        ("att-blstm", {"hidden_size": 3}),
        ("joint-attention", {"hidden_size": 2, "num_heads": 2}),
        ("transformer", {"hidden_size": 4, "num_heads": 2, "num_layers": 1}),
    ],
)
def test_classifiers_of_sequences(arch, options):
    model = network("classify", arch, **TEXT, **options)
    check(classifier_program(model, sequence_inputs(model), "softmax", 1.5))


def test_a_classifier_of_sequences_of_vectors_and_several_labels():
    options = {"hidden_size": 3, "pooling": "last", "merge": "weighted"}
    model = network("classify", "blstm", vocab_size=0, input_size=2, output_size=3, **options)
    check(classifier_program(model, sequence_inputs(model), "labels"))


def test_classifiers_of_bags_and_vectors():
    bags = network("classify", "softmax", input_size=V, output_size=3)
    check(classifier_program(bags, bag_inputs(), "softmax"), sizes=SIZES[:2])
    mlp = network("classify", "mlp", input_size=V, output_size=3, embedded=True, embed_size=4)
    check(classifier_program(mlp, bag_inputs(), "softmax"), sizes=SIZES[1:3])
    logistic = network("classify", "logistic", input_size=3, output_size=1)
    check(classifier_program(logistic, vector_inputs(logistic), "logistic"), sizes=SIZES[:2])


def test_a_classifier_of_relations_reads_where_its_entities_are():
    entry = find_architecture("relate", "blstm")
    config = load_config_class(entry)(**TEXT, hidden_size=3)
    inner = EntityDistances(
        load_model_class(entry), config, position_size=2, max_distance=3, markers=(2, 3, 4, 5)
    )
    model = shaken(EntityStates(inner, (3, 5)))
    inputs = sequence_inputs(model)
    sample = torch.tensor([[2, 1, 3, 4, 5], [4, 5, 2, 3, 1], [2, 3, 4, 1, 5]])
    inputs = [Input("ids", sample, inputs[0].axes, ""), inputs[1]]
    program = classifier_program(model, inputs, "softmax")
    opened = session(build_graph(program)[0])
    for rows in ([[2, 6, 3, 7, 4, 8, 5, 9, 1]], [[2, 3, 4, 5, 0, 0], [4, 9, 5, 2, 8, 3]]):
        ids = torch.tensor(rows)
        lengths = torch.tensor([9] if len(rows) == 1 else [4, 6])
        found = run(opened, {"ids": ids, "lengths": lengths})
        with torch.no_grad():
            scores = model(ids, lengths).scores
        np.testing.assert_allclose(found["scores"], scores, atol=1e-4)
        np.testing.assert_allclose(found["probabilities"], scores.softmax(dim=1), atol=1e-4)


TAGS = {
    "vocab_size": V, "input_size": 0, "output_size": 4, "char_vocab_size": V, "char_size": 3,
    "embed_size": 4, "hidden_size": 5,
}  # fmt: skip


def test_a_tagger_finds_the_best_path_in_the_graph():
    model = network("tag", "blstm", **TAGS, feature_sizes=(V,), characters="rnn")
    allowed = torch.ones(4, 4, dtype=torch.bool)
    allowed[0, 1] = allowed[2, 2] = False
    ends = torch.tensor([True, True, True, False])
    model.output.constrain(allowed, ends, ends.flip(0))
    check(tagger_program(model), expected={"LSTM"})


def test_a_tagger_whose_tags_are_chosen_one_by_one():
    model = network("tag", "cnn", **TAGS, feature_sizes=(), characters="cnn", output="softmax")
    check(tagger_program(model))


READER = {
    "vocab_size": V, "char_vocab_size": 0, "embed_size": 4, "hidden_size": 3, "num_layers": 1,
}  # fmt: skip


def test_bidaf():
    model = network("answer", "bidaf", **READER, num_highways=1)
    check(reader_program(model), expected={"LSTM"})


def test_rnet_whose_matching_goes_word_after_word():
    model = network(
        "answer", "rnet", **READER, num_highways=0, matching="recurrent", attention="additive"
    )
    program = reader_program(model)
    check(program, expected={"GRU", "Scan"})
    assert model.match.forward.__func__ is type(model.match).forward  # as it was


def test_rnet_whose_matching_goes_in_parallel():
    # Words that occur on both sides are marked.
    options = {"num_highways": 0, "self_matching": False, "exact_match": True}
    model = network("answer", "rnet-notes", **READER, **options)
    check(reader_program(model), expected={"GRU"}, sizes=SIZES[1:3])


# -- what cannot be exported -----------------------------------------------------------------------


def test_unknown_words_by_their_average_are_refused():
    model = network("lm", "nnlm", vocab_size=V, unknown="average")
    with pytest.raises(ConfigError, match="unknown='average' cannot be exported"):
        language_program(model)


def test_a_network_that_looks_at_values_is_refused():
    class Looking(torch.nn.Module):
        def forward(self, x):
            return (x * 2 if x.sum() > 0 else x,)

    given = [Input("x", torch.ones(2, 3), ("batch", 3), "")]
    program = Program(Looking(), given, [Output("y", ("batch", 3), "")])
    with pytest.raises(BackendError, match="Looking cannot be exported to ONNX"):
        build_graph(program)


def test_a_network_that_fixes_a_length_is_refused():
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return (torch.stack([row * 2 for row in x]),)

    given = [Input("x", torch.ones(2, 3), ("batch", 3), "")]
    program = Program(Fixed(), given, [Output("y", ("batch", 3), "")])
    with pytest.raises(BackendError, match="Fixed cannot be exported to ONNX"):
        build_graph(program)
