"""Output layers that look at a few sampled words in training: importance sampling and NCE.

Both have the weights of a full softmax and are evaluated as one.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, one_of
from seqloom.nn.softmax import copy_counts, exact, softmax_log_probs

ProposalName = Literal["unigram", "log-uniform"]
PROPOSALS = ("unigram", "log-uniform")


class Proposal(nn.Module):
    r"""A distribution q over words to draw from.

    "unigram": $q(w) \propto c(w) + 1$ for the counts c of the training data. "log-uniform":
    $q(w) = \log((r + 2) / (r + 1)) / \log(V + 1)$ for the word of rank r = 0, 1, ..., which is
    about Zipf's law. Until counts are set, all words count alike and rank by their ids.

    Args:
        name: Which of the two.
        vocab_size: Words V.
    """

    counts: Tensor

    def __init__(self, name: ProposalName, vocab_size: int) -> None:
        super().__init__()
        if name not in PROPOSALS:
            raise ConfigError(one_of("proposal", name, PROPOSALS))
        self.name = name
        self.register_buffer("counts", torch.zeros(vocab_size, dtype=torch.long))
        self._log_q: Tensor | None = None
        self._until = torch.empty(0)
        self.register_load_state_dict_post_hook(_forget_chances)  # type: ignore[no-untyped-call]

    def set_counts(self, counts: Int[Tensor, " V"]) -> None:
        """Take in how often each word occurs."""
        copy_counts(self.counts, counts)
        self._log_q = None

    def log_q(self) -> Float[Tensor, " V"]:
        """The natural logarithm of q of every word, in float64."""
        if self._log_q is None or self._log_q.device != self.counts.device:
            if self.name == "unigram":
                q = (self.counts + 1).double()
            else:
                ranks = self.counts.argsort(descending=True, stable=True).argsort().double()
                q = ((ranks + 2) / (ranks + 1)).log()
            q = q / q.sum()
            self._log_q, self._until = q.log(), q.cumsum(0)
        return self._log_q

    def draw(self, size: int) -> Int[Tensor, " S"]:
        """Words drawn with replacement, by torch's own generator of the device."""
        device = self.log_q().device
        points = torch.rand(size, dtype=torch.float64, device=device)
        found = torch.searchsorted(self._until, points, right=True)
        return found.clamp(max=len(self._until) - 1)  # the last sum may be a hair below 1


def _forget_chances(module: Proposal, _: object) -> None:
    module._log_q = None


class DrawnSoftmax(nn.Module):
    """What layers have in common that are trained on drawn words and evaluated on all of them.

    Args:
        in_features: Width D of the features.
        vocab_size: Words V.
        samples: Words drawn an update, k.
        proposal: What they are drawn from.
    """

    def __init__(
        self,
        in_features: int,
        vocab_size: int,
        *,
        samples: int = 1024,
        proposal: ProposalName = "unigram",
    ) -> None:
        super().__init__()
        check_samples(samples)
        self.in_features, self.vocab_size, self.samples = in_features, vocab_size, samples
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(vocab_size, in_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(vocab_size))
        self.proposal = Proposal(proposal, vocab_size)
        begin_at_proposal(self.bias, self.proposal)

    def set_counts(self, counts: Int[Tensor, " V"]) -> None:
        """Draw words by how often each occurs; the bias begins anew at log q."""
        self.proposal.set_counts(counts)
        begin_at_proposal(self.bias, self.proposal)

    def tie(self, embedding: nn.Embedding) -> None:
        """Share the weights of word vectors."""
        self.weight = embedding.weight  # type: ignore[assignment]

    def loss(self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]) -> Float[Tensor, ""]:
        """What is estimated from drawn words in training, else the cross-entropy; summed."""
        if not self.training:
            return -self.target_log_probs(features, targets).sum()
        drawn, log_q = self.proposal.draw(self.samples), self.proposal.log_q()
        own, others = sampled_scores(features, targets.long(), drawn, self.weight, self.bias)
        log_q = log_q.to(own.dtype)
        return self._estimate(own, others, log_q[targets.long()], log_q[drawn])

    def _estimate(
        self,
        own: Float[Tensor, " N"],
        others: Float[Tensor, "N S"],
        log_q: Float[Tensor, " N"],
        log_q_drawn: Float[Tensor, " S"],
    ) -> Float[Tensor, ""]:
        """The summed loss, from the scores of the targets and of the drawn words."""
        raise NotImplementedError

    def target_log_probs(
        self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]
    ) -> Float[Tensor, " N"]:
        """The log-probability of one word a row under the full softmax."""
        return softmax_log_probs(features, targets, self.weight, self.bias)

    def log_probs(self, features: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
        """The log-probability of every word under the full softmax."""
        return exact(functional.linear(features, self.weight, self.bias)).log_softmax(dim=-1)


class SampledSoftmax(DrawnSoftmax):
    r"""A softmax whose normalizer is estimated in training from a few words drawn from q.

    $$\ell = \log \hat Z - s_w, \quad \hat Z = \frac{1}{k + 1} \sum_{v \in \{w\} \cup S}
    \frac{e^{s_v}}{q(v)}, \quad s_v = W_v x + b_v$$

    over the target w and k words S drawn from q with replacement, the same for all rows of a batch.
    A drawn word that is the target stays: so the gradient is that of the probability of w among
    w and S, whose optimum is the true distribution for any k (Ma and Collins 2018, "Noise
    Contrastive Estimation and Negative Sampling for Conditional Models", ranking objective).
    Paper: Bengio and Senecal (2008), "Adaptive Importance Sampling to Accelerate Training of a
    Neural Probabilistic Language Model"; Jean et al. (2015), "On Using Very Large Target
    Vocabulary for Neural Machine Translation", section 3.
    Differs from the papers: q is fixed, and draws are shared by a batch. The bias begins at log q,
    since that of a rare word is seldom moved.
    Parameters: as `FullSoftmax`; counts = proposal.counts.

    Args:
        in_features: Width D of the features.
        vocab_size: Words V.
        samples: Words drawn an update, k.
        proposal: What they are drawn from.
    """

    def _estimate(
        self,
        own: Float[Tensor, " N"],
        others: Float[Tensor, "N S"],
        log_q: Float[Tensor, " N"],
        log_q_drawn: Float[Tensor, " S"],
    ) -> Float[Tensor, ""]:
        weighed = torch.cat([(own - log_q)[:, None], others - log_q_drawn], dim=1)  # (N, 1 + k)
        return (weighed.logsumexp(dim=1) - math.log(self.samples + 1) - own).sum()


class NCESoftmax(DrawnSoftmax):
    r"""A softmax trained to tell the words of the text from words drawn from a noise distribution.

    $$\ell = -\log \sigma(\Delta_w) - \sum_{v \in S} \log(1 - \sigma(\Delta_v)), \quad
    \Delta_v = s_v - \log(k\, q(v)), \quad s_v = W_v x + b_v$$

    over the target w and k words S drawn from q with replacement, the same for all rows of a batch.
    No normalizer is computed in training: the scores learn to have the normalizer 1, which a bias
    of log q begins with. In evaluation they are normalized exactly. The loss is no cross-entropy,
    so the training loss that is reported does not compare with that of other layers.
    Paper: Mnih and Teh (2012), "A fast and simple algorithm for training neural probabilistic
    language models", ICML.
    Differs from the paper: noise shared by a batch.
    Parameters: as `FullSoftmax`; counts = proposal.counts.

    Args:
        in_features: Width D of the features.
        vocab_size: Words V.
        samples: Noise words drawn an update, k.
        proposal: The noise distribution.
    """

    def _estimate(
        self,
        own: Float[Tensor, " N"],
        others: Float[Tensor, "N S"],
        log_q: Float[Tensor, " N"],
        log_q_drawn: Float[Tensor, " S"],
    ) -> Float[Tensor, ""]:
        log_k = math.log(self.samples)
        real, noise = own - (log_k + log_q), others - (log_k + log_q_drawn)
        return functional.softplus(-real).sum() + functional.softplus(noise).sum()


def check_samples(samples: int) -> None:
    """Refuse to draw nothing."""
    if samples < 1:
        raise ConfigError(f"samples must be at least 1, got {samples}")


@torch.no_grad()
def begin_at_proposal(bias: nn.Parameter, proposal: Proposal) -> None:
    """Set a bias so that with features of 0 the softmax is the proposal."""
    bias.copy_(proposal.log_q())


def sampled_scores(
    features: Float[Tensor, "N D"],
    targets: Int[Tensor, " N"],
    drawn: Int[Tensor, " S"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"],
) -> tuple[Float[Tensor, " N"], Float[Tensor, "N S"]]:
    """The score of each row's target, and those of the drawn words in every row."""
    both = torch.cat([targets, drawn])
    rows, shifts = functional.embedding(both, weight), bias[both]
    n = len(targets)
    own = exact((rows[:n] * features).sum(dim=-1)) + shifts[:n]
    return own, exact(functional.linear(features, rows[n:])) + shifts[n:]
