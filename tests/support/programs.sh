#!/bin/sh
# Programs that the tests use and that are in no wheel: a browser, and a pooler before PostgreSQL. They are installed
# where that is possible without asking anybody, and otherwise named. Tests of what is missing are left out, or fail in CI.
missing=""
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
    missing="chromium"
command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || missing="$missing pgbouncer"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing for the tests: $missing" >&2
    timeout 120 apt-get update -qq >/dev/null 2>&1
    for one in $missing; do  # one by one: what is not to be had shall not keep back the other
        DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -yqq --no-install-recommends "$one" >/dev/null 2>&1
    done
fi
for one in $missing; do
    command -v "$one" >/dev/null || [ -x "/usr/sbin/$one" ] ||
        echo "$(echo "$one" | tr '[:lower:]' '[:upper:]') IS NOT INSTALLED: what needs it cannot be tried" >&2
done
exit 0
