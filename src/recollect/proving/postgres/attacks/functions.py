"""The functions that run as the owner of the tables, and names put in the way of theirs."""

from __future__ import annotations

from recollect.proving.postgres.isolation import Attack

_NOBODY = "SET LOCAL recollect.tenant = ''"


def attacks() -> list[Attack]:
    return [*_searching(), *_names()]


def _calls(place: str, queries: str) -> list[str]:
    """Of each function that searches words; of the last one also as for a place where every word is common.

    For the attacker itself they are called for a row of its own, as the store calls them: on Citus that is on a worker.
    """
    arguments = f"{place}, {queries}"
    functions = f"having({arguments})", f"postings({arguments}, 1000)", f"postings({arguments}, 0)"
    if not place.startswith("{me}"):
        return [f"SELECT number, seq FROM {{s}}.{function}" for function in functions]
    row = "{s}.places WHERE tenant = {me} AND workspace = {workspace}"
    return [
        f"SELECT f.number, f.seq FROM (SELECT FROM {row}) p CROSS JOIN LATERAL {{s}}.{function} f"
        for function in functions
    ]


def _searching() -> list[Attack]:
    return [
        Attack(
            "words of another",
            "the functions that search words were called for the victim, for nobody, and with no tenant said",
            [
                *([call] for call in _calls("{tenant}, {workspace}", "ARRAY[{word}]")),
                *([call] for call in _calls("NULL, {workspace}", "ARRAY[{word}]")),
                *([_NOBODY, call] for call in _calls("'', {workspace}", "ARRAY[{word}]")),
                *(["RESET recollect.tenant", call] for call in _calls("{tenant}, {workspace}", "ARRAY[{word}]")),
            ],
            "refused",
        ),
        Attack(
            "the victim's words",
            "the functions were called for the attacker itself, for words as the victim has them and for all there are",
            [
                *([call] for call in _calls("{me}, {workspace}", "ARRAY[{word}, {word}]")),
                *(  # the victim has more than the attacker
                    [f"SELECT h.seq FROM ({call}) h WHERE h.seq NOT IN (SELECT seq FROM {{s}}.memories)"]
                    for call in _calls("{me}, {workspace}", "ARRAY['!nothing']")
                ),
            ],
            "nothing",
            control=False,
        ),
        Attack(
            "hostile words",
            "the functions were called with what is no query",
            [
                *([call] for call in _calls("{me}, {workspace}", "ARRAY[NULL]")),
                *([call] for call in _calls("{me}, {workspace}", "NULL")),
                *([call] for call in _calls("{me}, {tenant}", "ARRAY[$$' | '$$ || {tenant}]")),
            ],
            control=False,
        ),
        Attack(
            "the index of words",
            "the words themselves were read",
            [
                ["SELECT words FROM {s}.search WHERE {others}"],
                ["SELECT * FROM {s}.search WHERE {others}"],
                ["SELECT count(*) FROM {s}.search WHERE {others} AND words @@ {word}"],
                ["COPY (SELECT * FROM {s}.search WHERE {others}) TO STDOUT"],
                ["SELECT word FROM ts_stat($$SELECT words FROM {s}.search WHERE {others}$$)"],
            ],
            "refused",
        ),
    ]


def _names() -> list[Attack]:
    shadows = [
        "CREATE TEMP TABLE search (tenant text, workspace text, seq bigint, part integer, words tsvector)",
        "CREATE FUNCTION pg_temp.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT {tenant} $$",
        "CREATE FUNCTION pg_temp.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE FUNCTION pg_temp.yes(tsvector, tsquery) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.yes)",
        "CREATE OPERATOR pg_temp.@@ (LEFTARG = tsvector, RIGHTARG = tsquery, FUNCTION = pg_temp.yes)",
        "SET LOCAL search_path = pg_temp, pg_catalog",
    ]
    return [
        Attack(
            "names that shadow",
            "a table, functions and operators called as ours were put first on the search path, for a function's sake",
            [
                *([*shadows, call] for call in _calls("{tenant}, {workspace}", "ARRAY[{word}]")),
                [*shadows, "SELECT {s}.drop_place({tenant}, {workspace})"],
            ],
            "refused",
        ),
        Attack(
            "names that shadow a policy",
            "the same, for the sake of what the policy and the function compare",
            [
                *([*shadows, call] for call in _calls("{me}, {workspace}", "ARRAY[{word}]")),
                [*shadows, "SELECT * FROM {s}.contents WHERE {others}"],
            ],
            "nothing",
            control=False,
        ),
        Attack(
            "names in our schema",
            "tables, functions and views were put into our schema, and the function that searches was replaced",
            [
                ["CREATE TABLE {s}.spy (t text)"],
                ["CREATE VIEW {s}.spy AS SELECT * FROM {s}.contents"],
                ["CREATE FUNCTION {s}.spy() RETURNS text LANGUAGE sql AS 'SELECT 1::text'"],
                [
                    "CREATE OR REPLACE FUNCTION {s}.having(of_tenant text, of_workspace text, queries text[]) "
                    "RETURNS TABLE (number integer, seq bigint) LANGUAGE sql SECURITY DEFINER "
                    "AS 'SELECT 1, seq FROM {s}.search'"
                ],
                ["ALTER FUNCTION {s}.having(text, text, text[]) SET search_path = pg_temp"],
                ["ALTER FUNCTION {s}.having(text, text, text[]) RESET ALL"],
            ],
            "refused",
        ),
    ]
