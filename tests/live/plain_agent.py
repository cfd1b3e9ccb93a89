"""An agent that exports what the test says, span for span: argument 1 is a list of requests, each a list of spans (JSON)."""

from __future__ import annotations

import json
import sys

from otlp_wire import Exporter, pairs_of

exporter = Exporter(pairs_of("OTEL_EXPORTER_OTLP_HEADERS"))
for request in json.loads(sys.argv[1]):
    exporter.export(request, pairs_of("OTEL_RESOURCE_ATTRIBUTES"), "plain")
