"""Starts the real binary for a test, and talks to it: with httpx where HTTP itself is not the matter,
else with a socket that says exactly what the test wrote."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import httpx

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("BODEGA_BINARY", ROOT / "build/release/bodega"))
# Prices are measured once for all tests; KV from an earlier test would change what a test sees.
CACHE = {
    "BODEGA_CACHE_DIR": os.environ.get("BODEGA_CACHE_DIR", tempfile.gettempdir() + "/bodega-tests"),
    "BODEGA_SSD_CACHE": "false",
}
FAKE_WORKER = f"{sys.executable},{pathlib.Path(__file__).with_name('fake_worker.py')}"


class RawSocket:
    """A client that says exactly what it is told."""

    def __init__(self, port, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(10)
        self.socket.connect(("127.0.0.1", port))
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def read_until(self, mark):
        while mark not in self.buffer:
            data = self.socket.recv(65536)
            if not data:
                break
            self.buffer += data
        at = self.buffer.find(mark)
        end = len(self.buffer) if at < 0 else at + len(mark)
        out, self.buffer = self.buffer[:end], self.buffer[end:]
        return out

    def read_answer(self):
        """Head and body of one answer with a content-length."""
        head = self.read_until(b"\r\n\r\n")
        length = 0
        for line in head.decode().lower().split("\r\n"):
            if line.startswith("content-length:"):
                length = int(line.split(":")[1])
        while len(self.buffer) < length:
            data = self.socket.recv(65536)
            if not data:
                break
            self.buffer += data
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return head.decode(), body

    def read_all(self):
        while data := self.socket.recv(65536):
            self.buffer += data
        out, self.buffer = self.buffer, b""
        return out

    def close(self):
        self.socket.close()

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()


class Server:
    """`bodega serve` on a free port. `fake`: with the fake worker in place of models."""

    def __init__(self, folder, *arguments, fake=True, environment=None, wait=True):
        self.port_file = folder / "port"
        self.log_file = folder / "log"
        command = [BINARY, "serve", *arguments, "--port-file", self.port_file]
        if "--port" not in arguments:
            command += ["--port", "0"]
        if fake:
            command += ["--worker-command", FAKE_WORKER]
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "BODEGA_LOG": "info", **CACHE, **(environment or {})},
            )
        if wait:
            self.wait_for_port()
            self.wait_until_ready()

    def wait_for_port(self, seconds=20):
        until = time.monotonic() + seconds
        while not self.port_file.exists():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < until, self.log()
            time.sleep(0.01)
        self.port = int(self.port_file.read_text())
        self.url = f"http://127.0.0.1:{self.port}"

    def wait_until_ready(self, seconds=60):
        until = time.monotonic() + seconds
        while self.get("/health").status_code != 200:
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < until, self.log()
            time.sleep(0.02)

    def get(self, path, **more):
        return httpx.get(self.url + path, timeout=20, **more)

    def post(self, path, **more):
        return httpx.post(self.url + path, timeout=20, **more)

    def ask(self, prompt, model=None, **more):
        """Lets the fake worker do something."""
        return self.post("/v1/completions", json={"model": model, "prompt": prompt}, **more)

    def worker(self, index=0):
        return self.get("/v1/admin/loaded-models").json()["data"][index]

    def raw(self, **more):
        return RawSocket(self.port, **more)

    def log(self):
        return self.log_file.read_text(errors="replace")

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait(10)


def post_head(path, length, *headers):
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}", *headers]
    return "\r\n".join(lines) + "\r\n\r\n"


def eventually(condition, seconds=10):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())
