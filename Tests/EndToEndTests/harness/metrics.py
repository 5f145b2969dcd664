"""`/metrics` as Prometheus reads it: parsed by its own Python client, and checked against its guide."""

import re
import time

from prometheus_client.parser import text_string_to_metric_families

from . import http

TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """One response. `families`: by name. `values`: by name and labels."""

    def __init__(self, weir):
        # Requests within a fifth of a second share a response. This one is newer than any before the call.
        time.sleep(0.25)
        answer = http.fetch(f"{weir.web}/metrics").good()
        assert answer.headers["content-type"] == TYPE
        assert answer.headers["cache-control"] == "no-store"
        self.text = answer.text
        self.families = {family.name: family for family in text_string_to_metric_families(self.text)}
        self.values: dict[tuple, float] = {}
        for family in self.families.values():
            assert family.documentation and family.type in ("counter", "gauge", "summary"), family
            for sample in family.samples:
                key = (sample.name, *sorted(sample.labels.items()))
                assert key not in self.values, f"told twice: {key}"
                self.values[key] = sample.value
                assert re.fullmatch(r"[a-z_]+", sample.name) and not sample.name.endswith(("_ms", "_milliseconds"))
                if family.type == "counter":
                    assert sample.name.endswith("_total") and sample.value >= 0, sample

    def __call__(self, name: str, **labels: str) -> float:
        return self.values[(name, *sorted(labels.items()))]

    def total(self, name: str, **labels: str) -> float:
        """The sum of all series with this name and these labels."""
        return sum(value for (found, *have), value in self.values.items()
                   if found == name and set(labels.items()) <= set(have))
