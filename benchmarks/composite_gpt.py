"""The model of `examples/scalar_gpt.py` with gradwalk's composites: one node for a dot product or a softmax.

The parameters, their order and the losses (to 1e-12) are those of the example; only the number of nodes differs.
"""

from __future__ import annotations


def logits_at(position, token, parameters, keys, values, composites, heads):
    """One position of the model; it leaves its own key and value, split into heads, behind."""
    matvec, rmsnorm, softmax = composites.matvec, composites.rmsnorm, composites.softmax
    embedded = zip(parameters["token_embedding"][token], parameters["position_embedding"][position], strict=True)
    residual = rmsnorm([by_token + by_position for by_token, by_position in embedded])
    size = len(residual) // heads

    x = rmsnorm(residual)
    query = matvec(parameters["query"], x)
    key = matvec(parameters["key"], x)
    value = matvec(parameters["value"], x)
    gathered = []
    for head in range(heads):
        of_head = slice(head * size, (head + 1) * size)
        keys[head].append(key[of_head])
        values[head].append(value[of_head])
        weights = softmax([score / size**0.5 for score in matvec(keys[head], query[of_head])])
        gathered += matvec(list(zip(*values[head], strict=True)), weights)
    branch = matvec(parameters["attention_out"], gathered)
    residual = [xi + yi for xi, yi in zip(residual, branch, strict=True)]

    hidden = [h.relu() ** 2 for h in matvec(parameters["mlp_in"], rmsnorm(residual))]
    branch = matvec(parameters["mlp_out"], hidden)
    residual = [xi + yi for xi, yi in zip(residual, branch, strict=True)]
    return matvec(parameters["lm_head"], residual)


def loss_of(parameters, tokens, composites, heads=4):
    """The mean cross entropy over the positions, as in `scalar_gpt.loss_of`."""
    keys, values = [[] for _ in range(heads)], [[] for _ in range(heads)]
    positions = min(len(tokens) - 1, len(parameters["position_embedding"]))
    return composites.mean(
        [
            composites.cross_entropy(
                logits_at(position, tokens[position], parameters, keys, values, composites, heads),
                tokens[position + 1],
            )
            for position in range(positions)
        ]
    )
