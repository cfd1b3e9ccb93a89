"""Questions about files, processes and endpoints."""
