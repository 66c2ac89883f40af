"""Training: memory, step time, layouts, goodput. Pure and vectorised over candidate layouts."""
