"""setup.sh where it can be tested without changing the machine, and ask.py against a small server."""

import http.server
import os
import pathlib
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(*command, cwd=ROOT, stdin=None, **environment):
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


def test_piped_outside_a_checkout_it_says_what_to_do(tmp_path):
    script = (ROOT / "setup.sh").read_text(encoding="utf-8")
    result = run("sh", "-s", cwd=tmp_path, stdin=script, BODEGA_REPO="")
    assert result.returncode == 1
    assert "BODEGA_REPO=<git URL>" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_piped_with_a_repository_it_clones_and_goes_on_there(tmp_path):
    script = (ROOT / "setup.sh").read_text(encoding="utf-8")
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "CMakeLists.txt").write_text("project(bodega VERSION 0)\n", encoding="utf-8")
    (origin / "setup.sh").write_text('#!/bin/sh\necho "inside $(pwd) with $*"\n', encoding="utf-8")
    (origin / "setup.sh").chmod(0o755)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-C", origin]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        assert run(*git, *words).returncode == 0
    target = tmp_path / "there"
    result = run(
        *("sh", "-s", "--", "--no-serve"),
        cwd=tmp_path,
        stdin=script,
        BODEGA_REPO=f"file://{origin}",
        BODEGA_DIR=str(target),
    )
    assert result.returncode == 0, result.stderr
    assert f"inside {target} with --no-serve" in result.stdout


def test_unknown_options_are_refused():
    result = run("./setup.sh", "--serve-me")
    assert result.returncode == 1
    assert "unknown option --serve-me" in result.stderr


@pytest.fixture
def old_debian(tmp_path):
    """Commands of a Debian where nothing is installed and Boost has only its plain name."""

    def command(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    command("apt-get", "exit 0")
    command("dpkg-query", "exit 1")
    command("apt-cache", "case $2 in libboost1.81*|libboost-json1.81*) exit 1 ;; *) exit 0 ;; esac")
    command("cargo", "echo cargo 1.63.0")
    return f"{tmp_path}:{os.environ['PATH']}"


def test_check_lists_what_is_missing_under_the_names_this_system_has(old_debian):
    result = run("./setup.sh", "--check", PATH=old_debian)
    assert result.returncode == 1
    missing = result.stdout.removeprefix("missing: ").split()
    assert {"libboost-dev", "libboost-json-dev", "g++", "cargo-web", "rustc-web"} <= set(missing)
    assert "libboost1.81-dev" not in missing and "|" not in missing
    assert "clang-19" not in missing
    with_tests = run("./setup.sh", "--check", "--for-tests", PATH=old_debian)
    assert "clang-19" in with_tests.stdout


STREAM = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n: keep-alive\n\n'
    b'data: {"choices":[{"index":0,"delta":{"content":"Paris"}}],"usage":null}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"content":"."},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"completion_tokens":3}}\n\n'
)


@pytest.mark.parametrize(
    ("answer", "code", "shown"),
    [
        (STREAM + b"data: [DONE]\n\n", 0, "Paris.\n    [3 tokens,"),
        (STREAM, 1, "ended without an answer"),
        (b'data: {"error":{"message":"out of luck"}}\n\n', 1, "out of luck"),
        (b'{"error":{"message":"no model"}}', 1, "no model"),
    ],
)
def test_ask_shows_the_answer_or_fails(answer, code, shown):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        result = run(sys.executable, "scripts/ask.py", url, "Where?")
    assert result.returncode == code, result.stderr
    assert shown in result.stdout + result.stderr
