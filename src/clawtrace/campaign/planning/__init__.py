"""What a campaign will run, and what need not run again."""
