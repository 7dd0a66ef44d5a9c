"""Serves the streams that the provider's own client is tested with, and says how that client reads each of them.

python fixtures.py SDIST EXPECTED; it writes what the client read to EXPECTED, and then `{"url": …}` to stdout. A stream is
served at /NAME/v1/messages to the first message of a conversation; to every later one a plain text.
"""
import json
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anthropic

PLAIN = "basic_response"
streams = {}
with tarfile.open(sys.argv[1]) as archive:
    for member in archive.getmembers():
        path = Path(member.name)
        if path.parent.match("tests/lib/streaming/fixtures") or path.suffix == ".sse":
            streams[path.stem] = archive.extractfile(member).read()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = self.path.split("/")[1] if len(asked["messages"]) == 1 else PLAIN
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(streams[name])))
        self.end_headers()
        self.wfile.write(streams[name])

    def log_message(self, *_):
        pass


def read(url):
    """What the client makes of it: the last message, or its failure."""
    client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    asked = [{"role": "user", "content": "go"}]
    text = ""
    try:
        with client.messages.stream(model="m", max_tokens=9, messages=asked) as stream:
            for piece in stream.text_stream:
                text += piece
            final = stream.get_final_message()
    except Exception as error:  # noqa: BLE001: whatever it has for a stream that it cannot read
        return {"text": text, "failed": f"{type(error).__name__}: {error}"}
    used = final.usage
    cached = (used.cache_creation_input_tokens or 0) + (used.cache_read_input_tokens or 0)
    return {
        "text": text,
        "calls": [[block.name, block.input] for block in final.content if block.type == "tool_use"],
        "end": final.stop_reason,
        "input": used.input_tokens + cached,
        "output": used.output_tokens,
    }


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_address[1]}"
expected = {name: read(f"{address}/{name}") for name in sorted(streams)}
Path(sys.argv[2]).write_text(json.dumps(expected))
print(json.dumps({"url": address}), flush=True)
sys.stdin.read()
