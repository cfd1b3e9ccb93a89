"""What a campaign keeps on disk."""
