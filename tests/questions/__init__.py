"""The twelve questions, asked of a fleet of which the answers are known."""
