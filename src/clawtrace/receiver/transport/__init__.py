"""Ports, servers and connections: OTLP over gRPC and HTTP."""
