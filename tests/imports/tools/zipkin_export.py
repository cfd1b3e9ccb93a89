"""Export the spans of a recording to the Zipkin address in the environment, with OpenTelemetry's exporter."""

import sys

from opentelemetry.exporter.zipkin.json import ZipkinExporter
from sdk_spans import read

done = ZipkinExporter(max_tag_value_length=1 << 30).export(list(read(sys.argv[1])))
sys.exit(done.value)
