"""What otel-kernel costs, as ratios to what cannot be done without: `make bench`."""
