"""What models return, by job, so that tasks never ask which architecture they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from jaxtyping import Float
from torch import Tensor

from seqloom.errors import ConfigError, one_of
from seqloom.nn.softmax import FullSoftmax, OutputLayer
from seqloom.nn.softmax_adaptive import AdaptiveSoftmax
from seqloom.nn.softmax_sampled import NCESoftmax, Proposal, ProposalName, SampledSoftmax
from seqloom.nn.softmax_tree import HierarchicalSoftmax

SoftmaxName = Literal["full", "adaptive", "hierarchical", "sampled", "nce"]
SOFTMAXES = ("full", "adaptive", "hierarchical", "sampled", "nce")
TIEABLE = ("full", "sampled", "nce")


class LMOutput(NamedTuple):
    """Of a language model: what its output layer reads at every step, and the state to go on from.

    A language model has an output layer under the name `output` (`seqloom.nn.softmax`), which makes
    a loss or log-probabilities of features; `forward` does not call it, so that whoever needs the
    probability of one word a step does not pay for those of all.

    Args:
        features: By row and step; on padding they mean nothing.
        state: What to hand in to go on after the last word of each row.
        activations: The outputs of the last layer before dropout, for whoever regularizes them.
    """

    features: Float[Tensor, "B T D"]
    state: Any  # a NamedTuple of tensors whose first axis is the batch
    activations: Float[Tensor, "B T H"] | None = None


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What the configuration of every language model says of its output layer.

    A configuration inherits these, calls `check_output` in `__post_init__`, and its model builds
    `self.output` with `build_output`.

    Args:
        softmax: "full"; "adaptive" (Grave et al. 2017); "hierarchical" (Morin and Bengio 2005);
            "sampled" (Jean et al. 2015) or "nce" (Mnih and Teh 2012), which train on sampled
            words. Probabilities are exact with each of them.
        cutoffs: Of "adaptive": the ranks of words at which clusters begin; by default 2,000,
            10,000 and 50,000, as far as the vocabulary goes.
        div_value: Of "adaptive": how many times narrower each cluster is than the one before.
        samples: Of "sampled" and "nce": words drawn an update.
        proposal: Of "sampled" and "nce": what they are drawn from, "unigram" or "log-uniform".
    """

    softmax: SoftmaxName = "full"
    cutoffs: tuple[int, ...] = ()
    div_value: float = 4.0
    samples: int = 1024
    proposal: ProposalName = "unigram"

    def check_output(self, *, tied: bool = False) -> None:
        """Refuse settings that no vocabulary would make possible.

        Args:
            tied: Whether the output layer is to share the word vectors.
        """
        if self.softmax not in SOFTMAXES:
            raise ConfigError(one_of("softmax", self.softmax, SOFTMAXES))
        if tied and self.softmax not in TIEABLE:
            raise ConfigError(
                f"tied weights need softmax 'full', 'sampled' or 'nce', got {self.softmax!r}; "
                "set tied=false or another softmax"
            )
        if list(self.cutoffs) != sorted({cut for cut in self.cutoffs if cut > 0}):
            raise ConfigError(f"cutoffs must be positive and increase, got {list(self.cutoffs)}")
        if self.div_value <= 0:
            raise ConfigError(f"div_value must be positive, got {self.div_value}")
        if self.samples < 1:
            raise ConfigError(f"samples must be at least 1, got {self.samples}")
        Proposal(self.proposal, 1)  # refuses an unknown name

    def build_output(self, in_features: int, vocab_size: int) -> OutputLayer:
        """The output layer.

        Args:
            in_features: Width of the features it reads.
            vocab_size: Words known.
        """
        match self.softmax:
            case "full":
                return FullSoftmax(in_features, vocab_size)
            case "adaptive":
                return AdaptiveSoftmax(
                    in_features, vocab_size, cutoffs=self.cutoffs, div_value=self.div_value
                )
            case "hierarchical":
                return HierarchicalSoftmax(in_features, vocab_size)
            case "sampled":
                return SampledSoftmax(
                    in_features, vocab_size, samples=self.samples, proposal=self.proposal
                )
            case "nce":
                return NCESoftmax(
                    in_features, vocab_size, samples=self.samples, proposal=self.proposal
                )


class ScoreOutput(NamedTuple):
    """Of a classifier or a regressor: one score a class, or one number a target.

    Args:
        scores: By row.
        attention: How much each item of a sequence counted; a row sums to 1 and is 0 on padding.
        matrix: By head, how much each item looked at each other one; 0 on padding.
        states: The vectors of a sequence before pooling; on padding they mean nothing.
    """

    scores: Float[Tensor, "B C"]
    attention: Float[Tensor, "B T"] | None = None
    matrix: Float[Tensor, "B N T S"] | None = None
    states: Float[Tensor, "B T H"] | None = None
