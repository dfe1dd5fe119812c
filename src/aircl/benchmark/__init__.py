"""The benchmark: streams, methods, metrics and resumable runs."""
