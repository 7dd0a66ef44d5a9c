"""The client of OpenAI against `safepoint serve`; every object is checked with the types of Open Responses."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import openai
from openresponses_types import types

BINARY, MODEL, FOLDER, SCENARIO = sys.argv[1:5]
EVENTS = {
    kind.model_fields["type"].annotation: kind
    for name, kind in vars(types).items()
    if name.startswith("Response") and name.endswith("StreamingEvent")
}
EVENTS = {member.value: kind for names, kind in EVENTS.items() for member in names}
OVER = ("completed", "cancelled", "failed", "incomplete")


class Server:
    """`safepoint serve` with a scripted model behind it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "config.toml").write_text(
            f'[agents.helper]\nmodel = "openai:m"\nbase_url = "{MODEL}"\nsurfaces = ["responses"]\n'
            'tools = "shell"\napprove = "ask"\n'
        )
        tokens = self.folder / "tokens.toml"
        self.args = ["--tokens", str(tokens)]
        made = ["token", "new", "--name", "peer", "--scope", "read,talk,approve,stop", *self.args]
        self.token = subprocess.run([BINARY, *made], check=True, capture_output=True, text=True, env=self.env()).stdout.strip()
        self.start()

    def env(self):
        home = str(self.folder)
        return {**os.environ, "OPENAI_API_KEY": "none", "HOME": home, "XDG_RUNTIME_DIR": home, "XDG_DATA_HOME": home}

    def start(self):
        command = [BINARY, "serve", "--config", str(self.folder / "config.toml"), "--listen", "127.0.0.1:0"]
        command += ["--store", str(self.folder / "store.db"), "--drain", "1s", *self.args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.env())
        self.url = json.loads(self.process.stdout.readline())["listening"]
        self.client = openai.OpenAI(base_url=self.url + "/openai/v1", api_key=self.token, max_retries=0)
        self.responses = self.client.responses

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self):
        self.kill()
        self.start()


def plain(response):
    """Without the items of tools that a server runs itself, which Open Responses has no type for."""
    response = dict(response)
    response["output"] = [item for item in response["output"] if not item["type"].startswith("mcp_")]
    return response


def checked(response):
    types.ResponseResource.model_validate(plain(response.to_dict()))
    return response


def checked_event(event):
    data = event.to_dict()
    if "response" in data:
        data["response"] = plain(data["response"])
    if not data["type"].startswith("response.mcp_") and not (data.get("item") or {}).get("type", "").startswith("mcp_"):
        EVENTS[data["type"]].model_validate(data)
    return event


def text_of(events):
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def others_of(events):
    return [(event.sequence_number, event.type) for event in events if event.type != "response.output_text.delta"]


def over(server, id, within=60):
    until = time.monotonic() + within
    while (response := checked(server.responses.retrieve(id))).status not in OVER:
        assert time.monotonic() < until, response.status
        time.sleep(0.1)
    return response


def foreground(server):
    made = checked(server.responses.create(model="helper", input="go"))
    assert (made.status, made.output_text) == ("completed", WORDS), made
    with server.responses.stream(model="helper", input="more", previous_response_id=made.id) as stream:
        for event in stream:
            assert event.sequence_number >= 0
        last = stream.get_final_response()
    assert last.output_text == WORDS and last.previous_response_id == made.id, last
    with server.responses.stream(response_id=last.id) as stream:
        assert stream.get_final_response().output_text == WORDS


def resumed(server):
    """In the background, streamed, dropped, and read on behind every number."""
    made = checked(server.responses.create(model="helper", input="go", background=True))
    seen = []
    for event in server.responses.retrieve(made.id, stream=True):
        seen.append(checked_event(event))
        if len(text_of(seen)) > len(WORDS) // 3:
            break
    rest = list(server.responses.retrieve(made.id, stream=True, starting_after=seen[-1].sequence_number))
    whole = seen + [checked_event(event) for event in rest]
    numbers = [event.sequence_number for event in whole]
    assert numbers == sorted(set(numbers)) and text_of(whole) == WORDS, numbers
    assert whole[-1].type == "response.completed"
    for restart in (False, True):
        if restart:
            server.restart()
        for place, event in enumerate(whole):
            again = list(server.responses.retrieve(made.id, stream=True, starting_after=event.sequence_number))
            assert text_of(whole[: place + 1]) + text_of(again) == WORDS, event
            assert others_of(again) == others_of(whole[place + 1 :]), event


def cancelled(server):
    made = server.responses.create(model="helper", input="go", background=True)
    for event in server.responses.retrieve(made.id, stream=True):
        if event.type == "response.output_text.delta":
            break
    for _ in range(2):
        assert checked(server.responses.cancel(made.id)).status == "cancelled"
    events = [checked_event(event) for event in server.responses.retrieve(made.id, stream=True)]
    assert (events[-1].type, events[-1].response.status) == ("response.incomplete", "cancelled"), events[-1]
    server.restart()
    assert checked(server.responses.retrieve(made.id)).status == "cancelled"
    assert server.responses.cancel(made.id).status == "cancelled"
    made = server.responses.create(model="helper", input="go", background=True)
    assert server.responses.cancel(made.id).status == "cancelled"


def killed(server):
    """The server dies while a response streams: its id is found, and says that it is cut."""
    made = server.responses.create(model="helper", input="go", background=True)
    for event in server.responses.retrieve(made.id, stream=True):
        if event.type == "response.output_text.delta":
            break
    server.restart()
    last = over(server, made.id)
    assert (last.status, last.metadata["safepoint_outcome"]) == ("failed", "crashed"), last
    events = list(server.responses.retrieve(made.id, stream=True, starting_after=event.sequence_number))
    assert events[-1].type == "response.failed", events
    made = server.responses.create(model="helper", input="go", background=True)
    for event in server.responses.retrieve(made.id, stream=True):
        if event.type == "response.output_text.delta":
            break
    stops = threading.Thread(target=lambda: quietly(lambda: server.responses.cancel(made.id)))
    stops.start()
    server.restart()
    stops.join()
    assert over(server, made.id).status in ("cancelled", "failed")


def quietly(act):
    try:
        act()
    except openai.APIError:
        pass


def keyed(server):
    ids, key = [], {"Idempotency-Key": "one"}
    def create():
        ids.append(server.responses.create(model="helper", input="go", background=True, extra_headers=key).id)
    threads = [threading.Thread(target=create) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 50 and len(set(ids)) == 1, ids
    assert over(server, ids[0]).output_text == WORDS
    server.restart()
    create()
    assert len(set(ids)) == 1


def refused(server):
    for wanted, code, param in [
        ({"tools": [{"type": "web_search"}]}, "unsupported_parameter", "tools"),
        ({"instructions": "x"}, "unsupported_parameter", "instructions"),
        ({"previous_response_id": "resp_none_1"}, "no_such_response", "previous_response_id"),
    ]:
        try:
            server.responses.create(model="helper", input="go", **wanted)
        except openai.APIStatusError as error:
            assert (error.code, error.param) == (code, param), error
        else:
            raise AssertionError(wanted)
    assert [model.id for model in server.client.models.list()] == ["helper"]
    conversation = server.client.conversations.create()
    made = server.responses.create(model="helper", input="go", conversation=conversation.id)
    assert made.conversation.id == conversation.id and made.output_text == WORDS


WORDS = "a long text in several pieces, with ünïcödé and more of it"
server = Server(FOLDER)
try:
    globals()[SCENARIO](server)
finally:
    server.kill()
