"""Small neural networks over Values, with micrograd's names, initial values and parameter order."""

from gradwalk.nn.mlp import MLP, Layer, Neuron
from gradwalk.nn.module import Module

__all__ = ["MLP", "Layer", "Module", "Neuron"]
