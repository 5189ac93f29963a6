"""An epoch of a two-layer LSTM on the Penn Treebank on a GPU, by our kernels and by cuDNN.

    python benchmarks/ptb_gpu.py --data FOLDER --save FILE

The medium model of Zaremba et al. (2014): 650 units, dropout 0.5, windows of 35 words, the state
carried along, SGD. The same script runs both layers in turn; only the recurrent layer differs. Once
as it is, and once with the step captured in a CUDA graph, which takes the time of launching kernels
from Python out of both. FOLDER has ptb.train.txt.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from datetime import date
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src")]

from seqloom.kernels.gpu_launch import check_flags  # noqa: E402
from seqloom.nn.recurrent import Recurrent  # noqa: E402

SIZE, WINDOW, LAYERS, DROPOUT = 650, 35, 2, 0.5


class Model(nn.Module):
    """Word vectors, recurrent layers, a softmax."""

    def __init__(self, words: int, *, ours: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, SIZE)
        self.ours = ours
        if ours:
            self.rnn: nn.Module = Recurrent(
                "lstm", SIZE, SIZE, num_layers=LAYERS, dropout=DROPOUT, backend="triton"
            )
        else:
            self.rnn = nn.LSTM(SIZE, SIZE, LAYERS, dropout=DROPOUT, batch_first=True)
        self.output = nn.Linear(SIZE, words)
        for weight in self.parameters():
            nn.init.uniform_(weight, -0.05, 0.05)

    def recur(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run the layers."""
        if self.ours:
            y, after = self.rnn(x, None, state)
        else:
            y, after = self.rnn(x, state)
        return y, tuple(after)

    def forward(self, ids: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The cross-entropy of a window, and the state after it."""
        x = functional.dropout(self.embedding(ids[:, :-1]), DROPOUT)
        y, after = self.recur(x, state)
        logits = self.output(functional.dropout(y, DROPOUT)).flatten(0, 1)
        return functional.cross_entropy(logits.float(), ids[:, 1:].flatten()), after


def stream(folder: Path) -> tuple[Tensor, int]:
    words = (folder / "ptb.train.txt").read_text(encoding="utf-8").replace("\n", " <eos> ").split()
    numbers = {word: i for i, (word, _) in enumerate(Counter(words).most_common())}
    return torch.tensor([numbers[word] for word in words]), len(numbers)


class Trainer:
    """Steps of training, plain or as a graph."""

    def __init__(self, model: Model, batch: int, dtype: torch.dtype, *, graph: bool) -> None:
        self.model = model
        if not model.ours:
            model.rnn.flatten_parameters()  # what `to` has torn apart
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        self.ids = torch.zeros(batch, WINDOW + 1, dtype=torch.long, device="cuda")
        shape = (LAYERS, batch, SIZE)
        self.state = tuple(torch.zeros(shape, device="cuda", dtype=dtype) for _ in range(2))
        self.loss = torch.zeros((), device="cuda")
        self.graph = None
        if graph:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.plain()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.plain()

    def plain(self) -> None:
        """A step, kernel by kernel."""
        self.optimizer.zero_grad(set_to_none=self.graph is None)
        loss, after = self.model(self.ids, self.state)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0, foreach=True)
        self.optimizer.step()
        for old, new in zip(self.state, after, strict=True):
            old.copy_(new.detach())
        self.loss.copy_(loss.detach())

    def step(self, ids: Tensor) -> None:
        """A step on a window."""
        self.ids.copy_(ids, non_blocking=True)
        if self.graph is None:
            self.plain()
        else:
            self.graph.replay()


def epoch(ids: Tensor, words: int, batch: int, kind: str, *, ours: bool, graph: bool, most: int,
          ) -> tuple[float, float]:  # fmt: skip
    """Seconds of an epoch's steps (of the first `most`), and the last perplexity."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if kind == "bf16" else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = kind != "bf16"
    trainer = Trainer(Model(words, ours=ours).to("cuda", dtype), batch, dtype, graph=graph)
    lanes = ids[: len(ids) // batch * batch].view(batch, -1).cuda()
    windows = [lanes[:, i : i + WINDOW + 1] for i in range(0, lanes.shape[1] - WINDOW - 1, WINDOW)]
    for window in windows[:5]:
        trainer.step(window)
    torch.cuda.synchronize()
    began = time.perf_counter()
    total = 0.0
    for window in windows[:most]:
        trainer.step(window)
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    total = float(trainer.loss)
    check_flags(torch.device("cuda", torch.cuda.current_device()))
    return took, torch.tensor(total).exp().item()


def recurrent_part(batch: int, kind: str, *, ours: bool, graph: bool) -> float:
    """Milliseconds of the recurrent layers alone, forward and backward."""
    dtype = torch.bfloat16 if kind == "bf16" else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = kind != "bf16"
    model = Model(8, ours=ours).to("cuda", dtype)
    if not ours:
        model.rnn.flatten_parameters()
    x = torch.randn(batch, WINDOW, SIZE, device="cuda", dtype=dtype, requires_grad=True)
    shape = (LAYERS, batch, SIZE)
    state = tuple(torch.zeros(shape, device="cuda", dtype=dtype) for _ in range(2))
    grad = torch.randn(batch, WINDOW, SIZE, device="cuda", dtype=dtype)
    weights = [x, *model.rnn.parameters()]

    def job() -> None:
        torch.autograd.grad(model.recur(x, state)[0], weights, grad)

    run = job
    if graph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                job()
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            job()
        run = captured.replay
    for _ in range(3):
        run()
    found = []
    for _ in range(5):
        one, two = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        one.record()
        for _ in range(20):
            run()
        two.record()
        two.synchronize()
        found.append(one.elapsed_time(two) / 20)
    return sorted(found)[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--most", type=int, default=10_000, help="steps of an epoch")
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    ids, words = stream(given.data)
    lines = [
        "# An epoch on the Penn Treebank, two layers of 650",
        "",
        f"{date.today()}, {torch.cuda.get_device_name()}, torch {torch.__version__}. "
        "Recurrent part: forward and backward of both layers. Epoch: the first "
        f"{given.most} steps of one, or all if it has fewer, with embedding, output layer, "
        "clipping and SGD.",
        "",
        "| precision | B | graph | recurrent, ms: ours | cuDNN | ratio | epoch, s: ours | cuDNN "
        "| ratio | last perplexity, ours | cuDNN |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for kind in ("bf16", "tf32"):
        for batch in (20, 64):
            for graph in (False, True):
                try:
                    part = [recurrent_part(batch, kind, ours=o, graph=graph) for o in (True, False)]
                    whole = [
                        epoch(ids, words, batch, kind, ours=o, graph=graph, most=given.most)
                        for o in (True, False)
                    ]
                except RuntimeError as problem:
                    said = str(problem).splitlines()[0][:100]
                    lines.append(f"| {kind} | {batch} | {graph} | {said} | | | | | | | |")
                    print(lines[-1], flush=True)
                    continue
                lines.append(
                    f"| {kind} | {batch} | {'yes' if graph else 'no'} | {part[0]:.2f} | "
                    f"{part[1]:.2f} | {part[1] / part[0]:.2f} | {whole[0][0]:.2f} | "
                    f"{whole[1][0]:.2f} | {whole[1][0] / whole[0][0]:.2f} | {whole[0][1]:.0f} | "
                    f"{whole[1][1]:.0f} |"
                )
                print(lines[-1], flush=True)
    if given.save:
        given.save.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
