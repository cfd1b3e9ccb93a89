"""The service behind `clawtrace serve`: runs are announced, ended, inspected and judged over HTTP, next to OTLP."""
