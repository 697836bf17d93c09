"""A small GPT-style decoder and the token stream it learns.

Pre-norm blocks with causal attention, learned positions, no biases, output head apart from the embedding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

_NOISE = 0.1  # share of tokens that cannot be foretold


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """The decoder's sizes: `sequence` is in tokens, `heads` divide `width`."""

    vocabulary: int
    sequence: int
    width: int
    layers: int
    heads: int


class Block(nn.Module):
    """Attention, then a two-layer perceptron of four times the width, each on a normalised input and added to it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attention_norm = nn.LayerNorm(shape.width, bias=False)
        self.qkv = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.projection = nn.Linear(shape.width, shape.width, bias=False)
        self.mlp_norm = nn.LayerNorm(shape.width, bias=False)
        self.up = nn.Linear(shape.width, 4 * shape.width, bias=False)
        self.down = nn.Linear(4 * shape.width, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, sequence, width) to the same."""
        x = x + self._attend(self.attention_norm(x))
        hidden: Tensor = self.down(functional.gelu(self.up(self.mlp_norm(x))))
        return x + hidden

    def _attend(self, x: Tensor) -> Tensor:
        batch, sequence, width = x.shape
        by_head = self.qkv(x).view(batch, sequence, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(by_head[0], by_head[1], by_head[2], is_causal=True)
        projected: Tensor = self.projection(mixed.transpose(1, 2).reshape(batch, sequence, width))
        return projected


class Decoder(nn.Module):
    """Logits for the next token at each place."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.places = nn.Embedding(shape.sequence, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width, bias=False)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.apply(_initialise)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, sequence) token numbers to (batch, sequence, vocabulary) logits."""
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def _initialise(module: nn.Module) -> None:
    """Normal with 0.02, as GPT-2."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)


def flops_per_token(model: Decoder, shape: Shape) -> float:
    """6(N - N_embed) + 12 L d S: forward and backward, no causal discount, nothing recomputed counted
    (pytorch/torchtitan models/utils.py)."""
    total = sum(parameter.numel() for parameter in model.parameters())
    embedding = model.tokens.weight.numel() + model.places.weight.numel()
    return 6.0 * (total - embedding) + 12.0 * shape.layers * shape.width * shape.sequence


def batch_of(shape: Shape, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens and the tokens that follow them, (batch, sequence) each, made on the generator's device.

    Each sequence counts up from a random start in one fixed stride, with a tenth of its tokens replaced: a model
    learns it within a few hundred steps, down to the noise.
    """
    device = generator.device
    size = (batch, shape.sequence + 1)
    start = torch.randint(shape.vocabulary, (batch, 1), generator=generator, device=device)
    counted = (start + 7 * torch.arange(size[1], device=device)) % shape.vocabulary
    noise = torch.randint(shape.vocabulary, size, generator=generator, device=device)
    replaced = torch.rand(size, generator=generator, device=device) < _NOISE
    stream = torch.where(replaced, noise, counted)
    return stream[:, :-1], stream[:, 1:]


def loss_of(logits: Tensor, following: Tensor) -> Tensor:
    """Cross entropy in nats a token, in fp32."""
    return functional.cross_entropy(logits.float().flatten(0, 1), following.flatten())
