"""What tests share: models that answer at once, files written by hand, disks that fail, threads that are watched."""
