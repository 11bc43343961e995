"""What is done to memories as time goes by."""
