"""Our transformer's weights in CTranslate2, which then translates the same sentences.

pip install ctranslate2
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

from seqloom.nn.positions import sinusoids


def peer(
    model: Any, sources: list[str], *, threads: int, exactly: int | None
) -> Callable[[], list[str]]:
    """A function that translates `sources` with beam 5 and the same length penalty.

    CTranslate2 divides by length to a power, so its ranking is not quite ours.
    """
    folder = tempfile.mkdtemp(prefix="ctranslate2-")
    convert(model).save(folder)
    translator = ctranslate2.Translator(
        folder, device="cpu", inter_threads=threads, intra_threads=1
    )  # faster here than one batch by all threads
    text = model.text_
    pieces = [list(text.read(source).words) for source in sources]

    def run() -> list[str]:
        found = translator.translate_batch(
            pieces,
            beam_size=5,
            length_penalty=0.6,
            max_batch_size=64,
            min_decoding_length=exactly or 1,
            max_decoding_length=exactly or 100,
        )
        return [text.target.detokenize(each.hypotheses[0]) for each in found]

    return run


def convert(model: Any) -> Any:
    """The specification of a transformer with our weights."""
    import torch

    network, config = model.model_, model.model_.config
    weights = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    depth = config.decoder_layers or config.num_layers
    spec = transformer_spec.TransformerSpec.from_config(
        (config.num_layers, depth),
        config.num_heads,
        pre_norm=config.norm == "pre",
        activation=common_spec.Activation.RELU,
    )
    places = sinusoids(torch.arange(512), config.hidden_size).float().numpy()
    scale = np.float32(np.sqrt(config.hidden_size))
    source = "input.embedding.weight"
    target = source if config.shared else "embedding.weight"
    for side, table in ((spec.encoder, source), (spec.decoder, target)):
        embeddings = side.embeddings
        (embeddings[0] if isinstance(embeddings, list) else embeddings).weight = weights[table]
        side.scale_embeddings = scale
        side.position_encodings.encodings = places
        name = "encoder" if side is spec.encoder else "decoder"
        if config.norm == "pre":
            set_norm(side.layer_norm, weights, f"{name}_norm")
        for number, layer in enumerate(side.layer):
            set_block(layer, weights, f"{name}.{number}")
    spec.decoder.projection.weight = weights["output.softmax.weight"]
    spec.decoder.projection.bias = weights["output.softmax.bias"]
    words = list(model.text_.target_vocabulary.words)
    spec.register_source_vocabulary(list(model.text_.source_vocabulary.words))
    spec.register_target_vocabulary(words)
    spec.config.bos_token, spec.config.eos_token = "<s>", "</s>"
    spec.config.decoder_start_token = "<s>"
    spec.validate()
    return spec


def set_norm(spec: Any, weights: dict[str, np.ndarray], name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def set_linear(spec: Any, weight: np.ndarray, bias: np.ndarray) -> None:
    spec.weight, spec.bias = weight, bias


def set_block(spec: Any, weights: dict[str, np.ndarray], name: str) -> None:
    """A block of the encoder or of the decoder."""
    own = spec.self_attention
    set_norm(own.layer_norm, weights, f"{name}.norm1")
    set_linear(
        own.linear[0],
        weights[f"{name}.self_attn.in_proj_weight"],
        weights[f"{name}.self_attn.in_proj_bias"],
    )
    out = f"{name}.self_attn.out_proj"
    set_linear(own.linear[1], weights[f"{out}.weight"], weights[f"{out}.bias"])
    last = "norm2"
    if hasattr(spec, "attention"):
        both, last = spec.attention, "norm3"
        set_norm(both.layer_norm, weights, f"{name}.norm2")
        weight = weights[f"{name}.multihead_attn.in_proj_weight"]
        bias = weights[f"{name}.multihead_attn.in_proj_bias"]
        third = len(weight) // 3
        set_linear(both.linear[0], weight[:third], bias[:third])
        set_linear(both.linear[1], weight[third:], bias[third:])
        out = f"{name}.multihead_attn.out_proj"
        set_linear(both.linear[2], weights[f"{out}.weight"], weights[f"{out}.bias"])
    set_norm(spec.ffn.layer_norm, weights, f"{name}.{last}")
    for inside, given in ((spec.ffn.linear_0, "linear1"), (spec.ffn.linear_1, "linear2")):
        set_linear(inside, weights[f"{name}.{given}.weight"], weights[f"{name}.{given}.bias"])
