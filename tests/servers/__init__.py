"""Real servers for the tests: the Collector with contrib components, and Jaeger, on loopback."""
