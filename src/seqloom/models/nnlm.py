"""The neural probabilistic language model of Bengio et al."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seqloom.errors import ConfigError, one_of
from seqloom.models.inputs import check_lm_input
from seqloom.models.outputs import LMOutput, OutputOptions

UnknownWords = Literal["word", "average"]
UNKNOWN = ("word", "average")


@dataclass(frozen=True, kw_only=True)
class NNLMConfig(OutputOptions):
    """Settings of `NNLM`, besides those of `OutputOptions`.

    Args:
        vocab_size: Words known.
        order: How many words an n-gram has: the model sees order - 1 words of context.
        embed_size: Width of a word's feature vector.
        hidden_size: Units of the hidden layer; 0 leaves it out, which needs `direct`.
        direct: Whether the features also reach the output directly.
        dropout: Share of features and hidden units dropped in training.
        unknown: What an unknown word in the context looks like once the model is trained: "word"
            takes the vector it was given in training, as for any other word; "average" the mean of
            the known words' vectors, weighted by what the model expects in its place.
    """

    vocab_size: int
    order: int = 5
    embed_size: int = 100
    hidden_size: int = 200
    direct: bool = False
    dropout: float = 0.0
    unknown: UnknownWords = "word"

    def __post_init__(self) -> None:
        if self.order < 2:
            raise ConfigError(f"order must be at least 2, got {self.order}")
        if self.vocab_size < 1 or self.embed_size < 1 or self.hidden_size < 0:
            raise ConfigError(
                "vocab_size and embed_size must be positive and hidden_size not negative, got "
                f"{self.vocab_size}, {self.embed_size} and {self.hidden_size}"
            )
        if self.hidden_size == 0 and not self.direct:
            raise ConfigError("hidden_size 0 leaves nothing to predict with; set direct=true")
        self.check_output()
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")
        if self.unknown not in UNKNOWN:
            raise ConfigError(one_of("unknown", self.unknown, UNKNOWN))


class NNLMState(NamedTuple):
    """The words that precede the next one, the latest last."""

    words: Int[Tensor, "B C"]


class NNLMVectorState(NamedTuple):
    """The same, with the vectors that stand in for unknown words; others are not looked at."""

    words: Int[Tensor, "B C"]
    vectors: Float[Tensor, "B C D"]


class NNLM(nn.Module):
    r"""A feed-forward network over the last n - 1 words.

    $$y = b + W x + U \tanh(d + H x), \quad x = (C(w_{t-n+1}), \ldots, C(w_{t-1}))$$

    With `unknown="average"` an unknown word j in a text that is scored or continued has the vector

    $$C(j) = \sum_i C(i)\, \hat P(i \mid w_{t-n+1}, \ldots, w_{t-1})$$

    over the known words i, in the context it stands in; their probabilities sum to 1 without that
    of the unknown word. In training an unknown word is a word like the others.

    Paper: Bengio et al. (2003), "A Neural Probabilistic Language Model", JMLR 3, equation 1, and
    its section on out-of-vocabulary words.
    Differs from the paper: optional dropout; before the first word the context is the padding word;
    the probability of an unknown word is that of `<unk>`, not a share of the probabilities of words
    with similar vectors.
    Parameters: C = embedding.weight; H, d = hidden; b = output.bias; [U W] = output.weight: the
    first `hidden_size` columns are U, those after them, with `direct`, are W. So the features that
    the output layer reads are [tanh(d + H x), x], and y is one product.

    Args:
        config: The settings.
    """

    unknown: Tensor

    def __init__(self, config: NNLMConfig) -> None:
        super().__init__()
        self.config = config
        width = (config.order - 1) * config.embed_size
        self.embedding = nn.Embedding(config.vocab_size, config.embed_size)
        self.dropout = nn.Dropout(config.dropout)
        self.hidden = nn.Linear(width, config.hidden_size) if config.hidden_size else None
        features = config.hidden_size + (width if config.direct else 0)
        self.output = config.build_output(features, config.vocab_size)
        nn.init.normal_(self.embedding.weight, std=0.1)
        if config.unknown == "average":
            self.register_buffer("unknown", torch.tensor(-1))  # its id, when it is known

    def set_unknown(self, word: int) -> None:
        """Say which id is the unknown word; kept with the weights."""
        if self.config.unknown == "average":
            self.unknown.fill_(word)

    def initial_state(self, batch_size: int) -> NNLMState | NNLMVectorState:
        """A context of padding."""
        weight, context = self.embedding.weight, self.config.order - 1
        words = weight.new_zeros((batch_size, context), dtype=torch.long)
        if self.config.unknown == "word":
            return NNLMState(words)
        return NNLMVectorState(words, weight.new_zeros(batch_size, context, weight.shape[1]))

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        state: NNLMState | NNLMVectorState | None = None,
    ) -> LMOutput:
        """Read `ids`, each with those before it."""
        check_lm_input(ids, lengths, state)
        B, T = ids.shape
        context = self.config.order - 1
        before = state or self.initial_state(B)
        words = torch.cat([before.words, ids], dim=1)  # (B, C + T)
        vectors = self.embedding(words)  # (B, C + T, D)
        if isinstance(before, NNLMVectorState) and not self.training:
            vectors = self._averaged(words, vectors, before.vectors)
        # The window that ends at ids[:, t] holds words[:, t + 1 : t + 1 + C].
        windows = vectors[:, 1:].unfold(1, context, 1).transpose(2, 3)  # (B, T, C, D)
        features = self._features(windows.flatten(2))
        places = torch.arange(context, device=ids.device).expand(B, -1)
        places = places + (T if lengths is None else lengths[:, None])  # (B, C)
        after = words.gather(1, places)
        if isinstance(before, NNLMState):
            return LMOutput(features, NNLMState(after))
        rows = torch.arange(B, device=ids.device)[:, None]
        return LMOutput(features, NNLMVectorState(after, vectors[rows, places]))

    def _features(self, x: Float[Tensor, "*B X"]) -> Float[Tensor, "*B F"]:
        """What the output layer reads: [tanh(d + H x), x], or one of the two."""
        x = self.dropout(x)
        parts = [] if self.hidden is None else [self.dropout(torch.tanh(self.hidden(x)))]
        if self.config.direct:
            parts.append(x)
        return torch.cat(parts, dim=-1)

    def _averaged(
        self,
        words: Int[Tensor, "B S"],
        vectors: Float[Tensor, "B S D"],
        carried: Float[Tensor, "B C D"],
    ) -> Float[Tensor, "B S D"]:
        """The vectors with those of unknown words put in, one place after another.

        An unknown word's context may hold another one, so the order matters.
        """
        context, unknown = carried.shape[1], words == self.unknown  # (B, S)
        old = torch.where(unknown[:, :context, None], carried, vectors[:, :context])
        found = list(torch.cat([old, vectors[:, context:]], dim=1).unbind(dim=1))  # S of (B, D)
        (places,) = unknown[:, context:].any(dim=0).nonzero(as_tuple=True)
        for t in (places + context).tolist():
            x = torch.cat(found[t - context : t], dim=-1)  # (B, C D)
            chances = self.output.log_probs(self._features(x)).exp()  # (B, V)
            known = chances.index_fill(1, self.unknown, 0.0)
            mean = known / known.sum(dim=1, keepdim=True) @ self.embedding.weight
            found[t] = torch.where(unknown[:, t, None], mean.to(vectors.dtype), found[t])
        return torch.stack(found, dim=1)
