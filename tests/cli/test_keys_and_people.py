"""Keys and people on the command line."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from server.conftest import quick_passwords as quick_passwords
from support.command_line import called

from recollect import Memory
from recollect.memory import view_of
from recollect.server.access.accounts import Accounts


def recollect(folder: Path, *words: str, stdin: str = "", fails: bool = False) -> str:
    """What the command prints, in the folder where each test of the command is."""
    assert Path.cwd() == folder
    done = called(*words, input=stdin, COLUMNS="120")
    assert (done.returncode != 0) is fails, done.stderr
    return done.stderr if fails else done.stdout


def test_a_key_is_made_listed_rotated_and_revoked(tmp_path: Path) -> None:
    assert "There are no keys yet" in recollect(tmp_path, "keys")
    made = json.loads(recollect(tmp_path, "keys", "create", "laptop", "--role", "reader", "--tenant", "acme", "--json"))
    assert made["key"]["tenant"] == "acme"
    listed = recollect(tmp_path, "keys")
    assert "laptop" in listed
    assert made["secret"] not in listed
    rotated = recollect(tmp_path, "keys", "rotate", made["key"]["id"]).strip()
    with Memory(tmp_path / "memory") as memory:
        accounts = Accounts(view_of(memory).store)
        assert accounts.keys.caller_of(rotated).bound == {"tenant": "acme"}
    assert "Removed laptop" in recollect(tmp_path, "keys", "revoke", made["key"]["id"])
    assert "revoked" in recollect(tmp_path, "keys")
    assert json.loads(recollect(tmp_path, "keys", "--json"))[0]["revoked_at"]
    assert "there is no key 0" in recollect(tmp_path, "keys", "revoke", "0", fails=True)


def test_a_key_for_all_tenants_is_bound_to_nothing(tmp_path: Path) -> None:
    made = json.loads(recollect(tmp_path, "keys", "create", "service", "--role", "owner", "--all-tenants", "--json"))
    assert made["key"]["tenant"] is None
    assert "all tenants" in recollect(tmp_path, "keys")
    words = ("keys", "create", "x", "--all-tenants", "--tenant", "acme")
    assert "do not go together" in recollect(tmp_path, *words, fails=True)


def test_a_key_ends_at_a_time_or_after_one(tmp_path: Path) -> None:
    made = json.loads(recollect(tmp_path, "keys", "create", "short", "--expires", "7d", "--json"))["key"]
    ends, begun = (datetime.fromisoformat(made[name]) for name in ("expires_at", "created_at"))
    assert timedelta(days=7) - timedelta(minutes=5) < ends - begun < timedelta(days=7, minutes=5)
    assert "a distance such as" in recollect(tmp_path, "keys", "create", "x", "--expires", "soon", fails=True)


def test_a_person_is_added_with_a_password_from_a_pipe(tmp_path: Path) -> None:
    assert "There is nobody yet" in recollect(tmp_path, "people")
    assert "12 to 200" in recollect(tmp_path, "people", "add", "ada", stdin="short\n", fails=True)
    told = recollect(tmp_path, "people", "add", "Ada", "--role", "admin", "--json", stdin="a long enough password\n")
    assert json.loads(told)["rank"] == "admin"
    assert "password" not in json.loads(told)
    assert "already" in recollect(tmp_path, "people", "add", "ada", stdin="a long enough password\n", fails=True)
    assert "ada" in recollect(tmp_path, "people")
    assert json.loads(recollect(tmp_path, "people", "list", "--json"))[0]["name"] == "ada"
    recollect(tmp_path, "people", "password", "ada", stdin="another long password\n")
    with Memory(tmp_path / "memory") as memory:
        Accounts(view_of(memory).store).logins.log_in("ada", "another long password")
    recollect(tmp_path, "people", "remove", "ada", "--yes")
    assert "There is nobody yet" in recollect(tmp_path, "people")


def test_somebody_without_a_password_is_asked_for_none(tmp_path: Path) -> None:
    words = ("people", "add", "ada@example.org", "--no-password", "--subject", "00u1", "--json")
    told = json.loads(recollect(tmp_path, *words))
    assert (told["comes_by"], told["subject"]) == ("oidc", "00u1")
    again = ("people", "add", "bo@example.org", "--no-password", "--subject", "00u1")
    assert "somebody else" in recollect(tmp_path, *again, fails=True)


def test_a_login_by_a_provider_is_named_in_full(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x\n")
    given = ("serve", "--oidc-issuer", "http://login.example.org", "--oidc-client-id", "recollect")
    assert "come together" in recollect(tmp_path, *given, fails=True)
    secret = "--oidc-client-secret-file"
    assert "cannot be read" in recollect(tmp_path, *given, secret, "nowhere", fails=True)
    assert "must begin with https" in recollect(tmp_path, *given, secret, "secret", fails=True)
