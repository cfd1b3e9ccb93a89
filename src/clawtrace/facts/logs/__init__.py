"""Log records joined to spans, or standing in for them."""
