#!/bin/sh
# Programs that the tests use and that are in no wheel: a browser, a pooler before PostgreSQL, and the PostgreSQL of the
# distribution. They are installed where that is possible without asking anybody, and otherwise named. Tests of what is
# missing are left out, or fail in CI.
is_installed() {
    case "$1" in
        chromium) command -v chromium || command -v chromium-browser || command -v google-chrome ;;
        postgresql) ls /usr/lib/postgresql/*/bin/postgres ;;  # the tests start servers of their own from there
        *) command -v "$1" || [ -x "/usr/sbin/$1" ] ;;
    esac >/dev/null 2>&1
}
missing=""
for program in chromium pgbouncer postgresql; do
    is_installed "$program" || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing for the tests:$missing" >&2
    clusters=/etc/postgresql-common/createcluster.conf
    if ! is_installed postgresql && ! [ -e "$clusters" ]; then  # else the package makes a server, and starts it
        mkdir -p "${clusters%/*}" && echo "create_main_cluster = false" >"$clusters"
    fi
    timeout 120 apt-get update -qq >/dev/null 2>&1
    for program in $missing; do  # one by one: what is not to be had shall not keep back the other
        DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -yqq --no-install-recommends "$program" >/dev/null 2>&1
    done
fi
for program in $missing; do
    is_installed "$program" ||
        echo "$(echo "$program" | tr '[:lower:]' '[:upper:]') IS NOT INSTALLED: what needs it cannot be tried" >&2
done
exit 0
