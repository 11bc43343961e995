from support import code_map


def test_the_map_of_the_code_is_that_of_the_tree() -> None:
    assert code_map.written() == code_map.drawn(), "run: PYTHONPATH=tests python -m support.code_map"


def test_few_things_stand_at_the_top() -> None:
    layers = code_map._layers()
    assert len(layers) <= 16
    assert sum(map(len, layers)) <= 28  # and __init__.py
