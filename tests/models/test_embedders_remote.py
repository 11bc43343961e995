"""An OpenAI-compatible endpoint, spoken to over a real connection: what works, and all that can go wrong."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.web import Request, Server, closed_port, serving

from recollect import InputError, ModelError
from recollect.models.embedders import open_embedder
from recollect.models.embedders.remote import RemoteEmbedder
from recollect.models.endpoint import wait_asked

KEY = "sk-Secret0123456789"


def vector(text: str) -> list[float]:
    """Made of the text, so that a mix-up shows."""
    return [float(len(text)), float(sum(map(ord, text)) % 97), 1.0]


def embed(request: Request) -> None:
    texts = json.loads(request.body)["input"]
    items = [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(texts)]
    request.reply(json.dumps({"object": "list", "data": items, "model": "m"}).encode())


def says(content: bytes | str, status: int = 200, **headers: str) -> Callable[[Request], None]:
    encoded = content.encode() if isinstance(content, str) else content
    return lambda request: request.reply(encoded, status, headers)


def in_turn(*answers: Callable[[Request], None]) -> Callable[[Request], None]:
    """The first answer to the first request, and so on; the last to all others."""
    left = list(answers)
    lock = threading.Lock()

    def answer(request: Request) -> None:
        with lock:
            chosen = left.pop(0) if len(left) > 1 else left[0]
        chosen(request)

    return answer


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECOLLECT_EMBEDDING_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(embed) as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    """How long the embedder would have slept, had it not been told to do this instead."""
    return []


@pytest.fixture
def connect(server: Server, pauses: list[float]) -> Iterator[Callable[..., RemoteEmbedder]]:
    made: list[RemoteEmbedder] = []

    def connect(**options: Any) -> RemoteEmbedder:
        made.append(RemoteEmbedder(f"{server.url}/v1", "m", sleep=pauses.append, **options))
        return made[-1]

    yield connect
    for embedder in made:
        embedder.close()


Connect = Callable[..., RemoteEmbedder]


def unit(text: str) -> list[float]:
    row = np.array(vector(text))
    return pytest.approx(row / np.linalg.norm(row), abs=1e-6)


# What works


def test_documents_and_queries_become_vectors_of_length_one(server: Server, connect: Connect) -> None:
    embedder = connect()

    rows = embedder.embed_documents(["one", "three"])
    query = embedder.embed_query("two")

    assert rows.dtype == query.dtype == np.float32
    assert rows.shape == (2, 3)
    assert query.shape == (3,)
    assert [*rows[0]] == unit("one")
    assert [*rows[1]] == unit("three")
    assert [*query] == unit("two")
    assert (embedder.model, embedder.dimensions) == ("m", 3)
    assert [request.path for request in server.requests] == ["/v1/embeddings"] * 2
    assert json.loads(server.requests[0].body) == {"model": "m", "input": ["one", "three"]}
    assert "Authorization" not in server.requests[0].headers


def test_prefixes_tell_questions_from_documents(server: Server, connect: Connect) -> None:
    embedder = connect(query_prefix="query: ", document_prefix="passage: ")

    embedder.embed_documents(["tea"])
    embedder.embed_query("tea")

    assert [json.loads(request.body)["input"] for request in server.requests] == [["passage: tea"], ["query: tea"]]


def test_no_texts_are_no_rows(connect: Connect) -> None:
    assert connect(dimensions=3).embed_documents([]).shape == (0, 3)


def test_one_text_is_not_taken_for_a_list_of_letters(connect: Connect) -> None:
    with pytest.raises(InputError, match="texts"):
        connect().embed_documents("tea")


def test_the_dimensions_are_learnt_from_the_endpoint(server: Server, connect: Connect) -> None:
    embedder = connect()

    assert embedder.dimensions == 3
    assert embedder.dimensions == 3
    assert len(server.requests) == 1


def test_fewer_dimensions_can_be_asked_for(server: Server, connect: Connect) -> None:
    connect(dimensions=3).embed_query("tea")

    assert json.loads(server.requests[0].body)["dimensions"] == 3


def test_batches_are_limited_by_count_and_by_characters(server: Server, connect: Connect) -> None:
    texts = [f"text {number}" for number in range(10)] + ["x" * 90, "y" * 90, "z"]

    rows = connect(batch_size=4, batch_characters=100).embed_documents(texts)

    sent = [json.loads(request.body)["input"] for request in server.requests]
    assert [text for batch in sent for text in batch] == texts
    assert [len(batch) for batch in sent] == [4, 4, 2, 1, 2]
    for row, text in zip(rows, texts, strict=True):
        assert [*row] == unit(text)


def test_one_text_longer_than_a_batch_goes_alone(server: Server, connect: Connect) -> None:
    connect(batch_characters=10).embed_documents(["x" * 50, "y"])

    assert [len(json.loads(request.body)["input"]) for request in server.requests] == [1, 1]


def test_long_texts_are_cut_and_odd_ones_made_fit(server: Server, connect: Connect) -> None:
    connect(max_characters=10).embed_documents(["x" * 50, "", "half \ud800 pair"])

    assert json.loads(server.requests[0].body)["input"] == ["x" * 10, " ", "half ? pai"]


def test_shuffled_answers_are_put_in_order(server: Server, connect: Connect) -> None:
    def backwards(request: Request) -> None:
        texts = json.loads(request.body)["input"]
        items = [{"index": at, "embedding": vector(text)} for at, text in enumerate(texts)]
        request.reply(json.dumps({"data": items[::-1]}).encode())

    server.answer = backwards

    rows = connect().embed_documents(["one", "three", "fifteen"])

    assert [[*row] for row in rows] == [unit("one"), unit("three"), unit("fifteen")]


def test_answers_without_indices_are_in_order(server: Server, connect: Connect) -> None:
    server.answer = says('{"data": [{"embedding": [2, 0]}, {"embedding": [0, 3.5]}]}')

    assert connect().embed_documents(["a", "b"]).tolist() == [[1, 0], [0, 1]]


def test_many_threads_can_share_one(server: Server, connect: Connect) -> None:
    embedder = connect()
    texts = [f"text number {number}" for number in range(40)]
    found: dict[str, list[float]] = {}

    def work(mine: list[str]) -> None:
        for text in mine:
            found[text] = [*embedder.embed_query(text)]

    threads = [threading.Thread(target=work, args=(texts[at::4],)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 40
    assert all(found[text] == unit(text) for text in texts)


def test_it_can_be_closed_and_used_again(connect: Connect) -> None:
    embedder = connect()
    embedder.embed_query("tea")
    embedder.close()
    embedder.close()

    assert [*embedder.embed_query("tea")] == unit("tea")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_connections_of_its_own(
    server: Server, connect: Connect, tmp_path: Path, run: Callable[..., str]
) -> None:
    script = """
import os, sys
from recollect.models.embedders import open_embedder
embedder = open_embedder(sys.argv[1])
before = embedder.embed_query("tea").tolist()
child = os.fork()
if not child:
    assert embedder.embed_query("tea").tolist() == before
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert embedder.embed_query("tea").tolist() == before
"""
    run(script, f"{server.url}/v1#m")

    ports = [request.port for request in server.requests]
    assert ports[0] == ports[2] != ports[1]


# Keys


def authorization(server: Server) -> str | None:
    return server.requests[-1].headers.get("Authorization")


def test_the_key_comes_from_the_parameter_or_a_variable(
    server: Server, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "third")
    connect().embed_query("tea")
    assert authorization(server) == "Bearer third"

    monkeypatch.setenv("RECOLLECT_EMBEDDING_KEY", "second\n")
    connect().embed_query("tea")
    assert authorization(server) == "Bearer second"

    connect(key="first").embed_query("tea")
    assert authorization(server) == "Bearer first"


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500])
def test_the_key_is_in_no_error_and_no_repr(server: Server, connect: Connect, status: int) -> None:
    server.answer = says(json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}}), status)
    embedder = connect(key=KEY, retries=0)

    with pytest.raises(ModelError, match=rf"answered with {status} \(Incorrect API key provided: \*\*\*\.\)") as caught:
        embedder.embed_query("tea")

    assert KEY not in f"{caught.value!r} {embedder!r} {embedder._endpoint!r}"


def test_no_part_of_the_key_is_left_where_a_message_is_cut(server: Server, connect: Connect) -> None:
    server.answer = says("x" * 290 + KEY, 400)

    with pytest.raises(ModelError) as caught:
        connect(key=KEY).embed_query("tea")

    assert KEY[:5] not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_user_and_password_in_the_url_are_not_shown() -> None:
    embedder = RemoteEmbedder(f"http://user:pass@127.0.0.1:{closed_port()}/v1?key=query-secret", "m", retries=0)

    with pytest.raises(ModelError) as caught:
        embedder.embed_query("tea")

    assert "127.0.0.1" in str(caught.value)
    for secret in ("user", "pass", "query-secret"):
        assert secret not in f"{caught.value} {embedder!r}"


def test_a_key_that_cannot_be_sent_is_refused_without_being_shown() -> None:
    with pytest.raises(InputError, match=r"^key: ") as caught:
        RemoteEmbedder("https://localhost/v1", "m", key="ключ\nX-Injected: yes")

    assert "ключ" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "sent"), [("http://example.test/v1", None), ("https://example.test/v1", "key"), ("http://[::1]/v1", "key")]
)
def test_a_key_of_another_program_is_not_sent_unencrypted(
    monkeypatch: pytest.MonkeyPatch, url: str, sent: str | None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")

    assert RemoteEmbedder(url, "m")._endpoint._key == sent


# What can go wrong


def test_a_full_endpoint_is_asked_again_when_it_says(server: Server, connect: Connect, pauses: list[float]) -> None:
    busy = says('{"error": "slow down"}', 429, **{"Retry-After": "7"})
    server.answer = in_turn(busy, busy, embed)

    assert [*connect().embed_query("tea")] == unit("tea")
    assert pauses == [7.0, 7.0]


def test_a_failing_endpoint_is_asked_again_ever_more_slowly(
    server: Server, connect: Connect, pauses: list[float]
) -> None:
    server.answer = in_turn(says("oops", 500), says("", 502), says("", 503), embed)

    assert [*connect().embed_query("tea")] == unit("tea")
    assert len(server.requests) == 4
    for pause, most in zip(pauses, [0.5, 1.0, 2.0], strict=True):
        assert most / 2 <= pause <= most


def test_an_endpoint_that_fails_for_ever_is_given_up(server: Server, connect: Connect, pauses: list[float]) -> None:
    server.answer = says("the database\nis\x1b[31m down", 500)

    with pytest.raises(ModelError, match=r"answered with 500 \(the database is \[31m down\)"):
        connect(retries=2).embed_query("tea")

    assert len(server.requests) == 3
    assert len(pauses) == 2


def test_a_wait_of_hours_is_not_waited_for(server: Server, connect: Connect, pauses: list[float]) -> None:
    server.answer = says("", 429, **{"Retry-After": "7200"})

    with pytest.raises(ModelError, match="429; try again later"):
        connect().embed_query("tea")

    assert pauses == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("2.5", 2.5),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("-5", None),
        ("", None),
        (None, None),
    ],
)
def test_the_wait_is_given_as_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert wait_asked(header, datetime(2026, 3, 1, 12, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "the text is too long"),
        (401, "RECOLLECT_EMBEDDING_KEY"),
        (404, "/v1"),
        (413, "batch_size"),
        (422, "the text is too long"),
        (302, "answered with 302"),
    ],
)
def test_a_refusal_is_not_repeated(server: Server, connect: Connect, status: int, advice: str) -> None:
    server.answer = says('{"error": {"message": "the text is too long"}}', status, Location="/elsewhere")

    with pytest.raises(ModelError, match=advice):
        connect().embed_query("tea")

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "<html>welcome</html>",
        '{"data": [{"embed',
        "[]",
        "{}",
        '{"data": null}',
        '{"data": []}',
        '{"data": [{"index": 0}]}',
        '{"data": [{"index": 0, "embedding": []}]}',
        '{"data": [{"index": 0, "embedding": ["x"]}]}',
        '{"data": [{"index": 0, "embedding": [1, null]}]}',
        '{"data": [{"index": 1, "embedding": [1, 2]}]}',
        '{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1, 2]}]}',
        '{"data": [{"index": 0, "embedding": [1, 1e300]}]}',
        b'\xff\xfe{"data"',
    ],
    ids=str,
)
def test_nonsense_is_refused_and_not_asked_for_again(server: Server, connect: Connect, answer: bytes | str) -> None:
    server.answer = says(answer)

    with pytest.raises(ModelError):
        connect().embed_query("tea")

    assert len(server.requests) == 1


@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize("item", ['{{"index": {}, "embedding": [1]}}', '{{"embedding": [1, {}]}}'])
def test_too_few_or_too_many_vectors_are_refused(server: Server, connect: Connect, number: int, item: str) -> None:
    server.answer = says(f'{{"data": [{", ".join(item.format(at) for at in range(number))}]}}')

    with pytest.raises(ModelError, match=f"{number} vectors for 2 texts"):
        connect().embed_documents(["a", "b"])


def test_two_vectors_for_one_place_are_refused(server: Server, connect: Connect) -> None:
    server.answer = says('{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}')

    with pytest.raises(ModelError, match="indices"):
        connect().embed_documents(["a", "b"])


def test_vectors_of_another_size_are_refused(server: Server, connect: Connect) -> None:
    with pytest.raises(ModelError, match=r"vectors of \[3\] dimensions, where 256 were expected"):
        connect(dimensions=256).embed_query("tea")

    embedder = connect()
    embedder.embed_query("tea")
    server.answer = says('{"data": [{"index": 0, "embedding": [1, 2]}]}')
    with pytest.raises(ModelError, match=r"vectors of \[2\] dimensions, where 3 were expected"):
        embedder.embed_query("tea")


def late(request: Request) -> None:
    """An answer, but long after a timeout of a tenth of a second."""
    time.sleep(2)
    embed(request)


def test_an_endpoint_that_is_silent_is_not_waited_for_without_end(server: Server, connect: Connect) -> None:
    server.answer = late

    with pytest.raises(ModelError, match=r"gave no answer within 0\.1 s"):
        connect(timeout=0.1, retries=1).embed_query("tea")

    assert len(server.requests) == 2


def test_an_endpoint_that_is_silent_once_is_asked_again(server: Server, connect: Connect) -> None:
    server.answer = in_turn(late, embed)

    assert [*connect(timeout=0.5).embed_query("tea")] == unit("tea")
    assert len(server.requests) == 2


def test_nothing_that_listens_says_so(pauses: list[float]) -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    embedder = RemoteEmbedder(url, "m", retries=2, sleep=pauses.append)

    with pytest.raises(ModelError, match=f"{url}/embeddings: cannot be reached .*is it running"):
        embedder.embed_query("tea")

    assert len(pauses) == 2


def half(request: Request) -> None:
    request.begin(1000)
    request.wfile.write(b'{"data": [')
    request.drop()


def test_a_connection_that_breaks_in_the_middle_is_made_again(server: Server, connect: Connect) -> None:
    server.answer = in_turn(half, lambda request: request.drop(), embed)

    assert [*connect().embed_query("tea")] == unit("tea")
    assert len(server.requests) == 3


def test_a_connection_that_always_breaks_is_given_up(server: Server, connect: Connect) -> None:
    server.answer = half

    with pytest.raises(ModelError, match="cannot be reached"):
        connect(retries=1).embed_query("tea")

    assert len(server.requests) == 2


# The specification as a text


def test_an_endpoint_and_its_model_are_one_text(server: Server) -> None:
    embedder = open_embedder(f"{server.url}/v1#text-embedding-3-small", dimensions=3, key=KEY)

    assert isinstance(embedder, RemoteEmbedder)
    assert embedder.embed_query("tea").shape == (3,)
    assert embedder.model == "text-embedding-3-small"
    assert json.loads(server.requests[0].body)["model"] == "text-embedding-3-small"
    assert KEY not in repr(embedder)
    embedder.close()


@pytest.mark.parametrize("ending", ["", "/", "/embeddings"])
def test_the_url_may_end_in_any_way_people_write_it(server: Server, ending: str) -> None:
    embedder = open_embedder(f"{server.url}/openai/v1{ending}?api-version=1#m")
    assert embedder is not None
    embedder.embed_query("tea")
    embedder.close()

    assert server.requests[0].path == "/openai/v1/embeddings?api-version=1"


def test_the_model_may_be_an_option(server: Server) -> None:
    embedder = open_embedder(f"{server.url}/v1", model="m")

    assert embedder is not None
    assert embedder.model == "m"


@pytest.mark.parametrize("spec", ["https://host/v1", "https://host/v1#", "https://#m", "ftp://host/v1#m", "openai", ""])
def test_a_text_that_names_no_embedder_is_refused(spec: str) -> None:
    with pytest.raises(InputError):
        open_embedder(spec)


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"retries": -1}, {"dimensions": 99_999}, {"max_characters": 0}])
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        RemoteEmbedder("https://host/v1", "m", **options)  # type: ignore[arg-type]


def test_without_httpx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)

    with pytest.raises(ModelError, match=r"pip install httpx"):
        open_embedder("https://host/v1#m")
