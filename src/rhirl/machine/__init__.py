"""The machine that work is done on: what it is, its cores and who has them, processes side by side on them."""

from rhirl.machine.cores import claim_cores, hardware, thread_environment
from rhirl.machine.processes import side_by_side
from rhirl.machine.versions import surroundings

__all__ = ["claim_cores", "hardware", "side_by_side", "surroundings", "thread_environment"]
