"""Two campaigns, or a campaign and a baseline, compared."""
