"""One folder for each runtime, imported as `otel_kernel.instrumentors.<runtime>`."""

if __name__ != "otel_kernel.instrumentors":
    # A checkout's root is on the path of whoever works in it. Under two names each instrumentor would be two
    # classes, which wrap the same functions twice.
    raise ImportError(f"import otel_kernel.instrumentors instead of {__name__}", name=__name__)
