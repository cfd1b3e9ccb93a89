"""What a campaign will run, and by what it is known again."""
