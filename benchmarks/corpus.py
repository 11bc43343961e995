"""Sentences to store: seeded, of everyday length, with words as unevenly frequent as in real text."""

from __future__ import annotations

import random

_SYLLABLES = """ba be bo da de di fa fe ga go ka ke ko la le li lo ma me mi na ne no pa pe ra re ri ro sa se si ta te ti
to va ve""".split()
_NAMES = "Alice Bora Chen Dina Emeka Farah Goran Hana Ivo Jun Kemal Lena Mats Nora Omar Pia Quinn Rosa Sven".split()


def words(count: int = 20_000, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(_SYLLABLES, k=rng.choice((1, 2, 2, 3, 3, 4)))) for _ in range(count)]


def sentences(count: int, seed: int = 2) -> list[str]:
    """15 to 30 words each, drawn by Zipf's law, with a name in every one."""
    rng = random.Random(seed)
    vocabulary = words()
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    pool = iter(rng.choices(vocabulary, weights, k=count * 30))
    return [
        " ".join([rng.choice(_NAMES), *(next(pool) for _ in range(rng.randint(14, 29)))]) + "." for _ in range(count)
    ]


def questions(count: int, texts: list[str], seed: int = 3) -> list[str]:
    """Four words of some stored sentence, asked for in a question."""
    return [question for question, _ in answered(count, texts, seed)]


def answered(count: int, texts: list[str], seed: int = 3) -> list[tuple[str, int]]:
    """Questions, each with the number of the sentence that it was made of."""
    rng, found = random.Random(seed), list[tuple[str, int]]()
    for _ in range(count):
        number = rng.choice(range(len(texts)))
        found.append((f"what did {' '.join(rng.sample(texts[number].rstrip('.').split(), 4))} do?", number))
    return found
