"""Traces as other tools export them, as requests of OTLP: one module per form, which `decode/foreign_forms.py` recognises."""
