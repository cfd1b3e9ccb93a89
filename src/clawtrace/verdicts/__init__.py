"""Relations and assertions become verdicts."""
