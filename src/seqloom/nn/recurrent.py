"""Recurrent layers of any cell: stacked, in one direction or two, over rows of any length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import BackendError, ConfigError, ShapeError, one_of
from seqloom.kernels.backends import BACKENDS, run_layer
from seqloom.kernels.choice import choose
from seqloom.kernels.keys import key_of
from seqloom.kernels.layer import CellShape, Direction, Kind, Settings, Weights
from seqloom.kernels.walking import in_order
from seqloom.nn.cells import GRU, LSTM, Cell, Elman, ElmanRelu, cell_step, find_cell
from seqloom.nn.dropping import dropped
from seqloom.nn.masking import lengths_to_mask

Merge = Literal["concat", "sum", "mean", "product", "weighted"]
MERGES = ("concat", "sum", "mean", "product", "weighted")
TORCH_NAMES = {Elman: "rnn_tanh", ElmanRelu: "rnn_relu", GRU: "gru", LSTM: "lstm"}


class RecurrentOutput(NamedTuple):
    """What a recurrent layer gives.

    Args:
        outputs: By row and step; 0 on padding.
        states: By state of the cell, its value after each row's last step, by layer and direction:
            (L, B, H) with the two directions of a layer side by side, as torch has it.
    """

    outputs: Float[Tensor, "B T O"]
    states: tuple[Float[Tensor, "L B _"], ...]


class Recurrent(nn.Module):
    r"""A cell run over sequences.

    Weights are named as torch names them (`weight_ih_l0`, `weight_hh_l0_reverse`, ...), with the
    cell's gates in its own order, and begin as torch's do, uniformly within $1 / \sqrt{H}$; so
    those of `nn.RNN`, `nn.GRU` and `nn.LSTM` load unchanged. Vectors are `vector_NAME_l0`.

    Args:
        cell: A cell's name (see `seqloom.nn.cells.CELLS`) or a subclass of `Cell`.
        input_size: Width D of each input vector.
        hidden_size: Width H of the states.
        num_layers: Layers stacked.
        bidirectional: Whether each layer also runs from the end to the beginning.
        merge: How the two directions become one output: side by side, their sum, mean or product,
            or a sum with two learned weights.
        projection_size: Width R the first state is projected to after each step; 0 for none.
        bias: Whether there are biases.
        dropout: Share of outputs dropped between layers.
        variational: Whether `dropout` drops the same units at every step (Gal and Ghahramani 2016).
        state_dropout: Share of the state dropped before its product, the same at every step.
        weight_dropout: Share of recurrent weights dropped in each call (Merity et al. 2018).
        zoneout: Share of state values that stay what they were (Krueger et al. 2017).
        clip: The largest absolute value a state may have.
        residual: Whether a layer's input is added to its output where the widths agree.
        layer_norm: Whether a layer's output is normalized (Ba et al. 2016).
        products: "full", or "bf16" for products of numbers rounded to bfloat16, where the processor
            has them: about 1 part in 300 of a step's result is lost (see the page on cells).
        backend: "reference" is the visible loop, "torch" torch's own layer where it has the cell
            and the options, "cpu" our printed loops; "auto" takes the fastest that can. One that
            is named runs or raises.

    Examples:
        >>> layer = Recurrent("gru", 3, 5, bidirectional=True)
        >>> layer(torch.zeros(2, 7, 3)).outputs.shape
        torch.Size([2, 7, 10])
    """

    def __init__(
        self,
        cell: str | type[Cell],
        input_size: int,
        hidden_size: int,
        *,
        num_layers: int = 1,
        bidirectional: bool = False,
        merge: Merge = "concat",
        projection_size: int = 0,
        bias: bool = True,
        dropout: float = 0.0,
        variational: bool = False,
        state_dropout: float = 0.0,
        weight_dropout: float = 0.0,
        zoneout: float = 0.0,
        clip: float | None = None,
        residual: bool = False,
        layer_norm: bool = False,
        products: Literal["full", "bf16"] = "full",
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.cell = find_cell(cell)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bidirectional, self.merge, self.projection_size = bidirectional, merge, projection_size
        self.dropout, self.variational, self.state_dropout = dropout, variational, state_dropout
        self.weight_dropout, self.zoneout, self.clip = weight_dropout, zoneout, clip
        self.residual, self.backend, self.bias, self.products = residual, backend, bias, products
        self._check()
        self._kind = _kind_of(self.cell)
        for layer in range(num_layers):
            for direction in self._directions:
                self._make_weights(layer, direction)
            if bidirectional and merge == "weighted":
                self.register_parameter(f"merge_l{layer}", nn.Parameter(torch.full((2,), 0.5)))
        self.norms = nn.ModuleList(
            nn.LayerNorm(self.output_size) for _ in range(num_layers if layer_norm else 0)
        )

    def _check(self) -> None:
        sizes = (self.input_size, self.hidden_size, self.num_layers)
        if min(sizes) < 1 or not 0 <= self.projection_size < max(self.hidden_size, 1):
            raise ConfigError(
                "input_size, hidden_size and num_layers must be positive and projection_size "
                f"below hidden_size, got {sizes} and {self.projection_size}"
            )
        if self.products not in ("full", "bf16"):
            raise ConfigError(one_of("products", self.products, ("full", "bf16")))
        if self.merge not in MERGES:
            raise ConfigError(one_of("merge", self.merge, MERGES))
        if self.backend not in ("auto", *BACKENDS):
            raise BackendError(one_of("backend", self.backend, ("auto", *BACKENDS)))
        for name in ("dropout", "state_dropout", "weight_dropout", "zoneout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must lie in [0, 1), got {getattr(self, name)}")
        if self.clip is not None and not self.clip > 0:
            raise ConfigError(f"clip must be above 0, got {self.clip}")
        traced = self.cell.traced()  # refuses a step that is not elementwise
        if self.projection_size:
            used = {n.value for n in in_order([*traced.outputs.values(), *traced.late.values()])}
            if traced.late or f"s.{traced.states[0]}" in used:
                raise ConfigError(
                    f"a cell whose step uses its state {traced.states[0]!r} cannot be projected, "
                    f"got {self.cell.__name__} with projection_size={self.projection_size}"
                )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kind"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy, or a layer from a file, runs the equations that this process has of its cell."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._kind = _kind_of(self.cell)

    # -- weights ---------------------------------------------------------------------------------

    @property
    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    @property
    def state_size(self) -> int:
        """Width R of the first state: `projection_size`, or else `hidden_size`."""
        return self.projection_size or self.hidden_size

    @property
    def output_size(self) -> int:
        """Width of the output."""
        both = self.bidirectional and self.merge == "concat"
        return self.state_size * (2 if both else 1)

    def _make_weights(self, layer: int, direction: str) -> None:
        H, R, G = self.hidden_size, self.state_size, len(self.cell.gates)
        width = self.input_size if layer == 0 else self.output_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (G * H, width), "weight_hh": (G * H, R)}
        if self.bias:
            shapes |= {"bias_ih": (G * H,), "bias_hh": (G * H,)}
        if self.projection_size:
            shapes["weight_hr"] = (R, H)
        shapes |= {f"vector_{name}": (H,) for name in self.cell.vectors}
        bound = 1 / math.sqrt(H)
        for name, shape in shapes.items():
            weight = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
            self.register_parameter(f"{name}_l{layer}{direction}", weight)

    def load_torch(self, module: nn.RNNBase) -> None:
        """Take over the weights of torch's layer of the same cell and size.

        Raises:
            ShapeError: If names or shapes differ.
        """
        own, given = dict(self.named_parameters()), dict(module.named_parameters())
        if {k: v.shape for k, v in own.items()} != {k: v.shape for k, v in given.items()}:
            raise ShapeError(
                f"the module must have {_shapes(own)}, got {_shapes(given)}; "
                "build both with the same sizes and options"
            )
        self.load_state_dict(module.state_dict())

    # -- running ---------------------------------------------------------------------------------

    def initial_states(self, batch_size: int) -> tuple[Float[Tensor, "L B _"], ...]:
        """Zeros, as `forward` begins with if nothing is given."""
        rows = self.num_layers * len(self._directions)
        like: Tensor = self.weight_ih_l0  # type: ignore[assignment]
        return tuple(like.new_zeros(rows, batch_size, width) for width in self._widths)

    @property
    def _widths(self) -> list[int]:
        """Of the states."""
        return [self.state_size, *[self.hidden_size] * (len(self.cell.states) - 1)]

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        lengths: Int[Tensor, " B"] | None = None,
        states: Sequence[Float[Tensor, "L B _"]] | None = None,
    ) -> RecurrentOutput:
        """Run over sequences; padding never changes a result.

        Args:
            x: The inputs.
            lengths: How many steps of each row are real; all if not given.
            states: The states to begin with, as `RecurrentOutput.states` has them.
        """
        device = x.device.type
        if not torch.is_autocast_enabled(device):
            self._check_input(x, lengths, states)
            return self._run(x, lengths, states)
        dtype = torch.get_autocast_dtype(device)
        if device != "cuda":  # a processor has no fast steps in 16 bits
            dtype = self.weight_ih_l0.dtype  # type: ignore[assignment]
        x = x.to(dtype)
        states = None if states is None else [state.to(dtype) for state in states]
        self._check_input(x, lengths, states)
        with torch.autocast(device, enabled=False):
            return self._run(x, lengths, states)

    def _run(
        self, x: Tensor, lengths: Tensor | None, states: Sequence[Tensor] | None
    ) -> RecurrentOutput:
        T = x.shape[1]
        # Zeros are made where they are needed.
        begin = [state.unbind() for state in states or ()]  # (B, _) each
        ended: list[list[Tensor]] = [[] for _ in self.cell.states]
        for layer in range(self.num_layers):
            given, first = x, layer * len(self._directions)
            jobs = [
                self._direction(x, [s[first + i] for s in begin], layer, direction)
                for i, direction in enumerate(self._directions)
            ]
            backend = choose(self.backend, self._kind, x, lengths, jobs)
            ran = run_layer(backend, self._kind, x, lengths, jobs)
            for each, state in zip(ended, ran.states, strict=True):
                each.append(state)
            x = self._merged(ran.outputs, layer)
            adds = self.residual and given.shape == x.shape
            if adds:
                x = x + given
            if len(self.norms):
                x = self.norms[layer](x)
            if lengths is not None and (adds or len(self.norms)):
                x = x * lengths_to_mask(lengths, T)[..., None]
            if layer + 1 < self.num_layers:
                x = self._dropped(x)
        return RecurrentOutput(
            x, tuple(each[0] if len(each) == 1 else torch.cat(each) for each in ended)
        )

    def step(
        self, x: Float[Tensor, "B D"], states: Sequence[Float[Tensor, "L B _"]] | None = None
    ) -> tuple[Float[Tensor, "B O"], tuple[Float[Tensor, "L B _"], ...]]:
        """One step of a stream; step by step equals the whole."""
        if self.bidirectional:
            raise ConfigError("a stream has no end to begin from; use bidirectional=False")
        outputs, after = self(x[:, None], None, states)
        return outputs[:, 0], after

    def _direction(
        self,
        x: Float[Tensor, "B T D"],
        states: Sequence[Tensor],
        layer: int,
        direction: str,
    ) -> Direction:
        """One direction of a layer with what is drawn at random for this call."""
        B, T, _ = x.shape

        def weight(name: str) -> Tensor:
            found: Tensor = getattr(self, f"{name}_l{layer}{direction}")
            return found

        weight_hh, mask = weight("weight_hh"), None
        keep: tuple[Tensor, ...] = ()
        if self.training:
            if self.weight_dropout:
                weight_hh = functional.dropout(weight_hh, self.weight_dropout)
            if self.state_dropout:
                mask = functional.dropout(x.new_ones(B, self.state_size), self.state_dropout)
        if self.zoneout:
            keep = tuple(x.new_full((B, T, width), self.zoneout) for width in self._widths)
            if self.training:
                keep = tuple(each.bernoulli_(self.zoneout) for each in keep)
        weights = Weights(
            weight("weight_ih"),
            weight_hh,
            weight("bias_ih") if self.bias else None,
            weight("bias_hh") if self.bias else None,
            [weight(f"vector_{name}") for name in self.cell.vectors],
            weight("weight_hr") if self.projection_size else None,
        )
        return Direction(
            weights,
            Settings(self.clip, mask, keep, bool(direction), self.products == "bf16"),
            states,
        )

    def _merged(self, outputs: Float[Tensor, "B T N R"], layer: int) -> Float[Tensor, "B T O"]:
        if outputs.shape[2] == 1:
            return outputs.squeeze(2)
        if self.merge == "concat":
            return outputs.flatten(2)
        forward, backward = outputs.unbind(2)
        if self.merge == "product":
            return forward * backward
        if self.merge == "weighted":
            weights = getattr(self, f"merge_l{layer}")
            return weights[0] * forward + weights[1] * backward  # type: ignore[no-any-return]
        return (forward + backward) / (2 if self.merge == "mean" else 1)

    def _dropped(self, x: Float[Tensor, "B T O"]) -> Float[Tensor, "B T O"]:
        return dropped(x, self.dropout, training=self.training, variational=self.variational)

    def _check_input(
        self, x: Tensor, lengths: Tensor | None, states: Sequence[Tensor] | None
    ) -> None:
        if x.ndim != 3 or x.shape[-1] != self.input_size or 0 in x.shape:
            raise ShapeError(
                f"x must be (batch, steps, input_size={self.input_size}) with at least one row and "
                f"one step, got shape {tuple(x.shape)}"
            )
        weight: Tensor = self.weight_ih_l0  # type: ignore[assignment]
        casts = torch.is_autocast_enabled(x.device.type)
        if (x.dtype != weight.dtype and not casts) or x.device != weight.device:
            raise ShapeError(
                f"x must be {weight.dtype} on {weight.device} as the weights are, got {x.dtype} on "
                f"{x.device}; move one of them with .to()"
            )
        if lengths is not None:
            if not isinstance(lengths, Tensor):
                raise ShapeError(f"lengths must be a tensor, got {lengths!r}")
            if lengths.shape != x.shape[:1]:
                raise ShapeError(
                    f"lengths must have shape ({x.shape[0]},), got {tuple(lengths.shape)}"
                )
            if lengths.device != x.device or lengths.is_floating_point():
                raise ShapeError(
                    f"lengths must be whole numbers on {x.device} as x is, got {lengths.dtype} on "
                    f"{lengths.device}"
                )
            # On a card nobody waits for values to be looked at; the kernels look at them.
            if x.device.type != "cuda" and not torch.compiler.is_compiling():
                low, high = int(lengths.min()), int(lengths.max())
                if low < 1 or high > x.shape[1]:
                    raise ShapeError(
                        f"lengths must lie between 1 and the {x.shape[1]} steps of x, "
                        f"got {low} to {high}"
                    )
        if states is not None:
            rows = self.num_layers * len(self._directions)
            expected = [(rows, x.shape[0], width) for width in self._widths]
            if [tuple(s.shape) for s in states] != expected:
                raise ShapeError(
                    f"states must have shapes {expected} ({', '.join(self.cell.states)}), "
                    f"got {[tuple(s.shape) for s in states]}"
                )
            for state in states:
                if state.dtype != x.dtype or state.device != x.device:
                    raise ShapeError(
                        f"states must be {x.dtype} on {x.device} as x is, got {state.dtype} on "
                        f"{state.device}"
                    )

    def extra_repr(self) -> str:
        """What `print` shows besides the submodules."""
        sizes = f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"
        return f"{self.cell.__name__}, {sizes}, bidirectional={self.bidirectional}"


def _kind_of(cell: type[Cell]) -> Kind:
    """A cell as the backends see it, known to them from now on."""
    shape = CellShape(cell_step(cell), cell.gates, cell.states, cell.vectors, cell.late)
    key = key_of(cell.traced(), cell.__name__)
    return Kind(cell.__name__, shape, cell.traced(), key, TORCH_NAMES.get(cell, ""))


def _shapes(weights: dict[str, nn.Parameter]) -> str:
    return ", ".join(f"{name} {tuple(weight.shape)}" for name, weight in weights.items())
