"""Cost networks g(x; θ) with their input normaliser; save and load."""

from rhirl.costs.cnn import CNN, Pixels
from rhirl.costs.cost import Cost, Network, network_of, normaliser_of
from rhirl.costs.files import CostFileError, load_cost, load_notes, save_cost
from rhirl.costs.mlp import MLP, Normaliser

__all__ = [
    "CNN",
    "MLP",
    "Cost",
    "CostFileError",
    "Network",
    "Normaliser",
    "Pixels",
    "load_cost",
    "load_notes",
    "network_of",
    "normaliser_of",
    "save_cost",
]
