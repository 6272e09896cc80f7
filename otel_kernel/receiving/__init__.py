"""OTLP over HTTP into a recording, as a Collector's exporter sends it."""
