"""Walking expression graphs: every node after its arguments, derivatives, nodes replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seqloom.kernels.expressions import OPERATIONS, Expression
from seqloom.kernels.folding import is_number


def in_order(outputs: Iterable[Expression]) -> list[Expression]:
    """Every node the outputs need, each after its arguments."""
    done: dict[Expression, None] = {}
    for output in outputs:
        waiting = [(output, iter(output.arguments))]
        while waiting:
            node, arguments = waiting[-1]
            following = next((a for a in arguments if a not in done), None)
            if following is not None:
                waiting.append((following, iter(following.arguments)))
            else:
                done.setdefault(node)
                waiting.pop()
    return list(done)


def adjoints(
    outputs: Sequence[Expression], seeds: Sequence[Expression], inputs: Sequence[Expression]
) -> list[Expression]:
    r"""The derivative of $\sum_k \mathrm{seed}_k \, \mathrm{output}_k$ by each input.

    Reverse mode on the graph: nodes are visited from the outputs back, and what each receives is
    passed on to its arguments times the operation's derivative.
    """
    graph = outputs[0].graph
    zero = graph.number(0)
    received: dict[Expression, Expression] = {}
    for output, seed in zip(outputs, seeds, strict=True):
        received[output] = received.get(output, zero) + seed
    for node in reversed(in_order(outputs)):
        adjoint = received.get(node, zero)
        if node.operation in ("input", "number") or is_number(adjoint, 0):
            continue
        derivative = OPERATIONS[node.operation].derivative
        if derivative is None:
            continue  # flat but for a point
        for argument, factor in zip(node.arguments, derivative(node), strict=True):
            received[argument] = received.get(argument, zero) + adjoint * factor
    return [received.get(each, zero) for each in inputs]


def replaced(
    outputs: Sequence[Expression], others: Mapping[Expression, Expression]
) -> list[Expression]:
    """The same outputs with some nodes replaced by others."""
    made: dict[Expression, Expression] = dict(others)
    for node in in_order(outputs):
        if node in made:
            continue
        arguments = tuple(made[argument] for argument in node.arguments)
        made[node] = node.graph.node(node.operation, *arguments) if arguments else node
    return [made[output] for output in outputs]
