#!/bin/sh
# Makes a virtual environment and installs the project into it, for `make setup`. Runs on Debian and macOS.
# What pip cannot install (Python, a JDK, kcat) is installed with apt where possible, or else named in one sentence.
set -eu

venv=$1

say() {
    printf '%s\n' "$*" >&2
}

# Is this a Python that is new enough?
new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3.14 python3 python; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
}

# apt-get install, if we are root and there is an apt-get.
apt_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    say "Installing $* with apt-get."
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -qq -y "$@" >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 && apt-get install -qq -y "$@" >/dev/null 2>&1; }
}

python=$(find_python)
if [ -z "$python" ]; then
    say "Python 3.11 or newer is needed: install it (Debian: apt install python3 python3-venv; macOS: brew install python@3.13) and run make again."
    exit 1
fi

if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    if ! "$python" -c 'import venv, ensurepip' 2>/dev/null && ! apt_install python3-venv; then
        say "Python's venv module is missing: install it (Debian: apt install python3-venv) and run make again."
        exit 1
    fi
    "$python" -m venv --clear "$venv"
fi

say "Installing into $venv; this takes a minute the first time."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'

# Cordwood itself needs no Java, but Spark and ZooKeeper do, and tests and benchmarks run Kafka's own client, tools and
# broker.
# macOS has a javac that only says that there is none.
if ! javac -version >/dev/null 2>&1 || ! command -v mvn >/dev/null; then
    apt_install default-jdk-headless maven ||
        say "Without a JDK (17 or newer) and Maven, Spark and ZooKeeper cannot run, tests that need them or Kafka's Java tools are skipped, and make bench cannot run: install both (Debian: apt install default-jdk-headless maven; macOS: brew install openjdk maven)."
fi
if sentence=$("$venv/bin/python" -c 'from cordwood.cli.spark_ready import missing_for_spark; print(missing_for_spark() or "")') && [ -n "$sentence" ]; then
    say "$sentence. Until then make demo shows the half without Spark."
fi

# kcat is a widely used client: the tests run it.
if ! command -v kcat >/dev/null; then
    apt_install kcat ||
        say "Without kcat its tests are skipped: install it (Debian: apt install kcat; macOS: brew install kcat)."
fi
