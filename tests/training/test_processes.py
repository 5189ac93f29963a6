"""Two processes that share each batch do what one does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from process_child import language_model, settings
from safetensors.torch import load_file
from toy import run

from seqloom import LanguageModel

CHILD = Path(__file__).with_name("process_child.py")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("two")
    common = {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, str(CHILD), str(place / "out")],
            env=os.environ | common | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=100)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(said)
    return place


def assert_close_enough(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert (found - expected).abs().max() <= 1e-6 * expected.abs().max()


def test_both_end_with_the_same_weights(two):
    first, second = (load_file(two / f"rank{rank}.safetensors") for rank in range(2))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_weights_and_losses_are_those_of_one_process(two):
    found = load_file(two / "rank0.safetensors")
    model, result = run(settings(clip_norm=1.0))
    for name, weight in model.state_dict().items():
        assert_close_enough(found[f"toy.{name}"], weight)
    losses = torch.tensor([row["loss"] for row in result.rows], dtype=torch.float64)
    assert_close_enough(found["losses"], losses)


def test_a_language_model_is_that_of_one_process(two):
    found = load_file(two / "rank0.safetensors")
    one = language_model(None)
    for name, weight in one.model_.state_dict().items():
        assert_close_enough(found[f"lm.{name}"], weight)
    saved = LanguageModel.load(two / "out" / "model")
    assert saved.metrics_["valid_perplexity"] == pytest.approx(one.metrics_["valid_perplexity"])
    assert not list((two / "out").rglob(".*"))
