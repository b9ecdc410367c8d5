"""Neural networks over Values: micrograd's MLP, and a GPT made of composites."""

from gradwalk.nn.gpt import GPT, Block, CausalSelfAttention, FeedForward
from gradwalk.nn.layers import Embedding, LayerNorm, Linear, RMSNorm
from gradwalk.nn.mlp import MLP, Layer, Neuron
from gradwalk.nn.module import Module

__all__ = [
    "GPT",
    "MLP",
    "Block",
    "CausalSelfAttention",
    "Embedding",
    "FeedForward",
    "Layer",
    "LayerNorm",
    "Linear",
    "Module",
    "Neuron",
    "RMSNorm",
]
