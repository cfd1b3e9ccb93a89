"""A store on ClickHouse: what the OpenTelemetry Collector wrote there is read, and asked there."""
