"""Measuring recall on public data sets: LoCoMo and LongMemEval, in the files that their authors publish."""
