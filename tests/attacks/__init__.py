"""What a hostile agent would try, one file per attack."""
