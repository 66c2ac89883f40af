"""A discrete-event simulator of an inference fleet: compiled, deterministic by seed.

Only workers and commands import the compiled parts (they need numba); the web process never does, so
this package's own import stays empty and ``planner.engine`` doesn't import it.
"""
