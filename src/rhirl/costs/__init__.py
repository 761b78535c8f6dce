"""Cost networks g(x; θ) with their input normaliser; save and load."""

from rhirl.costs.files import CostFileError, load_cost, save_cost
from rhirl.costs.mlp import MLP, Cost, Normaliser

__all__ = ["MLP", "Cost", "CostFileError", "Normaliser", "load_cost", "save_cost"]
