"""An agent that can be stopped, with the protocol of `stop-test`: Python 3.11, nothing beyond its standard library.

A turn is a thread. A stop shuts down each connection for which the turn waits, and each call without a result gets one.
"""

import contextlib, http.client, json, os, socket, sys, threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

HEADERS = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
PARAMETERS = {"type": "object", "properties": {"what": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "work", "description": "Works.", "parameters": PARAMETERS}}]
history = []


def tell(**line):
    print(json.dumps(line), flush=True)


class Turn(threading.Thread):
    def __init__(self, text):
        super().__init__(daemon=True)
        self.stopped, self.lock, self.sockets = threading.Event(), threading.Lock(), []
        history.append({"role": "user", "content": text})

    def stop(self):
        with self.lock:
            self.stopped.set()
            for each in self.sockets:
                with contextlib.suppress(OSError):  # The other side was first.
                    each.shutdown(socket.SHUT_RDWR)

    def post(self, url, body, read):
        """Posts this, and returns what `read` makes of the answer. A stop ends the wait with an error."""
        to = urlsplit(url)
        kind = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
        connection = kind(to.netloc)
        connection.connect()
        with self.lock:
            if self.stopped.is_set():
                raise ConnectionAbortedError("stopped before it was asked")
            self.sockets.append(own := connection.sock)
        try:
            connection.request("POST", to.path, json.dumps(body), HEADERS)
            return read(connection.getresponse())
        finally:
            with self.lock:
                self.sockets.remove(own)
            connection.close()

    def ask(self):
        """Streams one answer of the model, and returns it as a message."""
        request = {"model": "m", "stream": True, "messages": history, "tools": TOOLS}
        while True:
            message = self.post(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", request, read_message)
            if isinstance(message, dict):
                return message
            if self.stopped.wait(message):
                raise InterruptedError("stopped before it was asked again")

    def call(self, call):
        """Runs a call of the tool, and returns its result. A provider refuses a history in which a call has none."""
        try:
            arguments = json.loads(call["function"]["arguments"])
            url = f"{os.environ['STOP_TEST_TOOLS']}/{call['function']['name']}"
            result = self.post(url, arguments, lambda answer: answer.read().decode())
        except (OSError, ValueError, http.client.HTTPException) as error:
            result = "stopped before it was done" if self.stopped.is_set() else f"it failed: {error}"
        return {"role": "tool", "tool_call_id": call["id"], "content": result}

    def run(self):
        """Asks the model, and runs what it calls, until it calls nothing; says what the caller learns then."""
        try:
            while not self.stopped.is_set():
                history.append(message := self.ask())
                if not (calls := message.get("tool_calls")):
                    return tell(at="told", says="done")
                with ThreadPoolExecutor(len(calls)) as pool:
                    history.extend(pool.map(self.call, calls))
        except Exception as error:
            if not self.stopped.is_set():
                print(repr(error), file=sys.stderr)
        tell(at="told", says="stopped" if self.stopped.is_set() else "failed")


def read_message(answer):
    """The message of an answer that is streamed; when to ask again, in seconds, if the model is busy."""
    if answer.status == 429:
        return float(answer.headers.get("Retry-After", 1))
    if answer.status != 200:
        raise ValueError(f"the model says {answer.status}: {answer.read().decode()}")
    text, calls = "", {}
    for line in answer:
        data = line.decode().removeprefix("data:").strip()
        if data == "[DONE]":
            message = {"role": "assistant", "content": text}
            return message | {"tool_calls": list(calls.values())} if calls else message
        for choice in json.loads(data)["choices"] if data.startswith("{") else []:
            text += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls") or []:
                new = {"id": piece.get("id"), "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(piece["index"], new)
                for name, more in piece["function"].items():
                    call["function"][name] += more or ""
    raise ValueError("the model's answer was cut")


turn = None
tell(at="ready", stops=["stop"])
for line in sys.stdin:
    wish = json.loads(line)
    if wish["do"] in ("start", "next"):
        turn = Turn(wish["text"])
        turn.start()
    elif wish["do"] == "stop" and turn:
        turn.stop()
