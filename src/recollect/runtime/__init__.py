"""What concerns the process: logs, forks, and imports that wait."""
