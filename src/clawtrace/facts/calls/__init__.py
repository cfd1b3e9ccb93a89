"""Which spans are one logical call, and which parent each call has."""
