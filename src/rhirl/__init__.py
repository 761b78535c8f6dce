"""Learn a cost function from state-only, noisy demonstrations by planning with a simulator, and plan with it."""
