"""What the cosines of a model mean: fits the scale that turns them into a similarity from 0 to 1.

    python benchmarks/scale.py LOCOMO.json LONGMEMEVAL.json [EMBEDDER]

Pairs of a question and a turn that answers it, against pairs of a question and a turn drawn from all. Both data sets
and both kinds of pair count as much. At a similarity of 0.7, seven of ten pairs belong together.
"""

from __future__ import annotations

import random
import sys

import numpy as np
from numpy.typing import NDArray

from recollect.evaluation.datasets import Dataset, load
from recollect.models.embedders import Scale, open_embedder

Floats = NDArray[np.float64]
QUESTIONS, TURNS, LONGEST = 200, 150, 600


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    embedder = open_embedder(sys.argv[3] if len(sys.argv) > 3 else "local")
    if embedder is None:
        sys.exit("There is no model.")
    sets = [load("locomo", sys.argv[1]), load("longmemeval", sys.argv[2])]
    pairs = [sample(data, random.Random(2)) for data in sets]
    questions = [np.stack([embedder.embed_query(question) for question, _ in those]) for those, _ in pairs]
    answers = [embedder.embed_documents([answer for _, answer in those]) for those, _ in pairs]
    turns = [embedder.embed_documents(drawn) for _, drawn in pairs]
    together = [(q * a).sum(axis=1).astype(np.float64) for q, a in zip(questions, answers, strict=True)]
    apart = [(q @ t.T).ravel().astype(np.float64) for q in questions for t in turns]
    scale = fit(together, apart)
    print(f"{embedder.model}: middle {scale.middle:.4f}, slope {scale.slope:.1f}")
    least = scale.middle + np.log(0.7 / 0.3) / scale.slope
    print(f"a similarity of 0.7 is a cosine of {least:.4f}")
    for data, cosines in zip(sets, together, strict=True):
        print(f"  {data.title}: {np.mean(cosines >= least):.1%} of {len(cosines)} answers are above it")
    print(f"  {np.mean(np.concatenate(apart) >= least):.1%} of other turns are")


def sample(data: Dataset, rng: random.Random) -> tuple[list[tuple[str, str]], list[str]]:
    """Questions with an answer each, and turns from everywhere."""
    answered: list[tuple[str, str]] = []
    drawn: list[str] = []
    for corpus in data.corpora:
        texts = {turn.id: turn.text for turn in corpus.turns if len(turn.text) < LONGEST}
        drawn += texts.values()
        for question in corpus.questions:
            answered += [(question.text, texts[turn]) for turn in sorted(question.turns) if turn in texts]
    return rng.sample(answered, min(QUESTIONS, len(answered))), rng.sample(drawn, min(TURNS, len(drawn)))


def fit(together: list[Floats], apart: list[Floats]) -> Scale:
    """Logistic regression by Newton's method, each group of pairs with the same weight."""
    x = np.concatenate([*together, *apart])
    y = np.concatenate([np.ones(len(g)) for g in together] + [np.zeros(len(g)) for g in apart])
    halves = [np.full(len(g), 0.5 / len(groups) / len(g)) for groups in (together, apart) for g in groups]
    weight = np.concatenate(halves)
    slope, offset = 20.0, -20.0 * float(np.mean(x))
    for _ in range(100):
        chance = 1.0 / (1.0 + np.exp(-(slope * x + offset)))
        error, spread = weight * (y - chance), weight * chance * (1.0 - chance)
        hessian = np.array([[(spread * x * x).sum(), (spread * x).sum()], [(spread * x).sum(), spread.sum()]])
        step = np.linalg.solve(hessian, np.array([(error * x).sum(), error.sum()]))
        slope, offset = slope + float(step[0]), offset + float(step[1])
    return Scale(middle=-offset / slope, slope=slope)


if __name__ == "__main__":
    main()
