"""ResidentCache in memory of what every recall looks at."""
