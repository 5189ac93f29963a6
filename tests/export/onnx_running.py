"""What the tests of export share: a session of one thread, and batches of several sizes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import torch

SIZES = [
    {"batch": 3, "steps": 5, "words": 7, "characters": 4, "asked": 5, "terms": 3},
    {"batch": 1, "steps": 1, "words": 1, "characters": 1, "asked": 1, "terms": 1},
    {"batch": 2, "steps": 9, "words": 5, "characters": 6, "asked": 2, "terms": 8},
    {"batch": 4, "steps": 1, "words": 2, "characters": 2, "asked": 7, "terms": 2},
]
COUNTED = {
    "lengths": "steps",
    "passage_lengths": "steps",
    "question_lengths": "asked",
    "spelling_lengths": "characters",
}
PICKED = {"which": "words", "passage": "words", "question": "words"}


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    content = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(opened, feed):
    names = [each.name for each in opened.get_outputs()]
    arrays = {name: np.asarray(value) for name, value in feed.items()}
    return dict(zip(names, opened.run(None, arrays), strict=True))


def drawn(program, sizes, *, values, shortest=1):
    """Inputs of these sizes at random; rows are ragged, the first is whole."""
    feed = {}
    for each in program.inputs:
        shape = [sizes[axis] if isinstance(axis, str) else axis for axis in each.axes]
        if each.name in COUNTED:
            most = sizes[COUNTED[each.name]]
            feed[each.name] = torch.randint(shortest, most + 1, shape)
            feed[each.name][0] = most
        elif each.sample.is_floating_point():
            feed[each.name] = torch.randn(shape, dtype=each.sample.dtype)
        else:
            most = sizes[PICKED[each.name]] if each.name in PICKED else values
            feed[each.name] = torch.randint(0, most, shape)
    return feed


def real(output, feed, array):
    """The part of an output that is not padding."""
    lengths = feed.get("lengths", feed.get("passage_lengths"))
    if "steps" not in output.axes:
        return array
    mask = torch.arange(array.shape[1]) < lengths[:, None]
    if "asked" in output.axes:
        asked = torch.arange(array.shape[2]) < feed["question_lengths"][:, None]
        mask = mask[:, :, None] & asked[:, None]
    return np.asarray(array)[np.asarray(mask)]
