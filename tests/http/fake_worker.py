"""A worker without a model, for tests of the front. It speaks HTTP/1.1 over the Unix socket that it is
told, and does what a request's "prompt" says:

    echo                 the request as JSON: model, path, headers, length of the body
    stream N SECONDS     N events, so far apart
    flood BYTES          a stream of events as fast as the front takes them
    hang                 no answer until the client leaves
    die                  kill -9 of itself before any answer
    stream-die N         the same after N events and half of another
    body-die             the same inside a body of known length
    status CODE          that status, with an error body
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import threading

FACTS = {"left": 0, "served": 0, "sent_bytes": 0}


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket-path", required=True)
    parser.add_argument("--lifeline-fd", type=int, default=-1)
    parser.add_argument("--model-id", default="")
    parser.add_argument("--model-path", default="")
    return parser.parse_known_args()


OPTIONS, OTHER_ARGUMENTS = parse_arguments()


def end_with_the_front():
    os.read(OPTIONS.lifeline_fd, 1)
    with contextlib.suppress(OSError):  # the folder goes with the last of the front's workers
        os.unlink(OPTIONS.socket_path)
        os.rmdir(os.path.dirname(OPTIONS.socket_path))
    os._exit(0)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def head(status, content_type, length=None):
    framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    return f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\n{framing}\r\n\r\n".encode()


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(value):
    return chunk(f"data: {json.dumps(value)}\n\n".encode())


async def answer_json(writer, value, status=200):
    body = json.dumps(value).encode()
    writer.write(head(status, "application/json", len(body)) + body)
    await writer.drain()


async def stream(writer, count, pause, value):
    writer.write(head(200, "text/event-stream"))
    for index in range(count):
        writer.write(event({"index": index, **value}))
        await writer.drain()
        FACTS["sent_bytes"] += len(event({"index": index, **value}))
        if pause:
            await asyncio.sleep(pause)


async def finish_stream(writer):
    writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    await writer.drain()


async def obey(words, request, writer):
    verb = words[0]
    if verb == "echo":
        await answer_json(writer, request)
    elif verb == "stream":
        await stream(writer, int(words[1]), float(words[2]), {})
        await finish_stream(writer)
    elif verb == "flood":
        await stream(writer, int(words[1]) // 1000, 0, {"padding": "x" * 970})
        await finish_stream(writer)
    elif verb == "hang":
        await asyncio.sleep(3600)
    elif verb == "die":
        die()
    elif verb == "stream-die":
        await stream(writer, int(words[1]), 0.01, {})
        writer.write(chunk(b'data: {"half'))
        await writer.drain()
        await asyncio.sleep(0.05)
        die()
    elif verb == "body-die":
        writer.write(head(200, "application/json", 100) + b'{"half')
        await writer.drain()
        await asyncio.sleep(0.05)
        die()
    elif verb == "status":
        await answer_json(
            writer, {"error": {"message": "no", "type": "t", "param": None, "code": "c"}}, int(words[1])
        )
    else:
        await answer_json(writer, {"unknown": verb}, 400)


def status_routes():
    card = {
        "id": OPTIONS.model_id,
        "object": "model",
        "created": 1,
        "owned_by": "fake",
        "context_length": 128,
    }
    numbers = {
        "queue_size": 100,
        "active_requests": 1,
        "waiting": 0,
        "running": 1,
        "preempted": 2,
        "predicted_wait_seconds": 0.5,
    }
    return {
        "/health": {"status": "ok", "model_id": OPTIONS.model_id, "exact": True},
        "/v1/models": {"object": "list", "data": [card]},
        "/v1/queue/stats": {"status": "ok", "queue_stats": numbers},
        "/v1/admin/loaded-models": {
            "object": "list",
            "data": [
                {
                    "id": OPTIONS.model_id,
                    "type": "lm",
                    "pid": os.getpid(),
                    "memory": {"rss_mb": 1.0},
                    "engine": FACTS,
                    "arguments": OTHER_ARGUMENTS,
                }
            ],
        },
    }


async def read_request(reader):
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = lines[0].split(" ")
    headers = dict(line.split(": ", 1) for line in lines[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return method, path, headers, body


async def serve_one(reader, writer):
    method, path, headers, body = await read_request(reader)
    if path == "/metrics":
        text = f'# TYPE fake counter\nfake{{model="{OPTIONS.model_id}"}} 1\n'.encode()
        writer.write(head(200, "text/plain", len(text)) + text)
        await writer.drain()
    elif method == "GET":
        await answer_json(writer, status_routes().get(path, {}))
    else:
        await serve_post(path, headers, body, reader, writer)


async def serve_post(path, headers, body, reader, writer):
    fields = json.loads(body)
    request = {"model": fields.get("model"), "path": path, "headers": headers, "length": len(body)}
    FACTS["served"] += 1
    work = asyncio.ensure_future(obey(str(fields["prompt"]).split(), request, writer))
    gone = asyncio.ensure_future(reader.read(1))
    await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
    # Who writes to a front that left may learn it before the reader does.
    if not work.done() or isinstance(work.exception(), ConnectionError):
        FACTS["left"] += 1
    work.cancel()
    gone.cancel()


async def on_connection(reader, writer):
    try:
        await serve_one(reader, writer)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main():
    await asyncio.sleep(float(os.environ.get("FAKE_LOAD_SECONDS", "0")))
    if OPTIONS.model_path == "broken":
        print("fake worker: the model is broken", file=sys.stderr)
        sys.exit(1)
    server = await asyncio.start_unix_server(on_connection, OPTIONS.socket_path, backlog=1024)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: os._exit(0))
    async with server:
        await server.serve_forever()


if OPTIONS.lifeline_fd >= 0:
    threading.Thread(target=end_with_the_front, daemon=True).start()
asyncio.run(main())
