"""The client of a2a-sdk against our server, over both of its bindings: what it reads is what the session says.

python a2a_server.py SCENARIO BINDING URL TOKEN; it ends with 0, or says what is not as it must be.
"""
import asyncio
import re
import sys
import uuid

import httpx
from a2a.client import ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, Role, SendMessageConfiguration,
    SendMessageRequest, SubscribeToTaskRequest, TaskState,
)

TERMINAL = (TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED)


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, not {wanted!r}")


def message(text, task=""):
    said = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], task_id=task)
    return SendMessageRequest(message=said)


class Said:
    """What a stream said: its task, the states in their order, and the text of the artifact."""

    def __init__(self):
        self.task, self.states, self.text, self.stop = "", [], "", ""

    def take(self, event):
        kind = event.WhichOneof("payload")
        if kind == "task":
            check("the first piece", self.task, "")
            self.task = event.task.id
            self.state(event.task)
            for artifact in event.task.artifacts:
                self.text = "".join(part.text for part in artifact.parts)
        elif kind == "status_update":
            self.state(event.status_update)
        elif kind == "artifact_update":
            piece = "".join(part.text for part in event.artifact_update.artifact.parts)
            self.text = self.text + piece if event.artifact_update.append else piece
        else:
            sys.exit(f"a piece of another kind: {kind}")

    def state(self, of):
        if not self.states or self.states[-1] != of.status.state:
            self.states.append(of.status.state)
        own = of.metadata["safepoint"]
        self.stop = self.stop or ("stop" in own and own["stop"])


async def read(stream, said=None):
    said = said or Said()
    async for event in stream:
        said.take(event)
    return said


async def first(stream):
    said = Said()
    said.take(await anext(stream))
    return said


async def canceled(client, task):
    answer = await client.cancel_task(CancelTaskRequest(id=task))
    check("the state of a canceled task", answer.status.state, TaskState.TASK_STATE_CANCELED)
    own = answer.metadata["safepoint"]
    check("nothing is alive", own["quiet"], True)
    return answer


async def send(client, _plain):
    said = await read(client.send_message(message("say: hello")))
    check("the end", said.states[-1], TaskState.TASK_STATE_COMPLETED)
    task = await client.get_task(GetTaskRequest(id=said.task))
    check("the answer", task.artifacts[0].parts[0].text, said.text)
    check("it says something", bool(said.text), True)
    page = await client.list_tasks(ListTasksRequest(context_id=task.context_id))
    check("the tasks of the context", [one.id for one in page.tasks], [said.task])


async def whole(_client, plain):
    said = await read(plain.send_message(message("say: hello")))
    check("the end", said.states, [TaskState.TASK_STATE_COMPLETED])
    check("it says something", bool(said.text), True)


async def cancel_twice(client, _plain):
    stream = client.send_message(message("sleep: 60"))
    said = await first(stream)
    answer = await canceled(client, said.task)
    check("the same task", await canceled(client, said.task), answer)
    await read(stream, said)
    check("the end of the stream", said.states[-1], TaskState.TASK_STATE_CANCELED)
    try:
        done = await read(client.send_message(message("say: hello")))
        await client.cancel_task(CancelTaskRequest(id=done.task))
    except Exception as error:  # noqa: BLE001: the class is what is checked
        check("the refusal", type(error).__name__, "TaskNotCancelableError")
        return
    sys.exit("a task that was over was canceled")


async def resubscribe(client, _plain):
    stream = client.send_message(message("sleep: 2"))
    said = await first(stream)
    await stream.aclose()
    again = await read(client.subscribe(SubscribeToTaskRequest(id=said.task)))
    check("the end", again.states[-1], TaskState.TASK_STATE_COMPLETED)
    task = await client.get_task(GetTaskRequest(id=said.task))
    check("the answer", task.artifacts[0].parts[0].text, again.text)
    try:
        await read(client.subscribe(SubscribeToTaskRequest(id=said.task)))
    except Exception as error:  # noqa: BLE001
        check("the refusal", type(error).__name__, "UnsupportedOperationError")
        return
    sys.exit("a task that was over had a stream")


async def steer(client, _plain):
    stream = client.send_message(message("sleep: 2"))
    said = await first(stream)
    while TaskState.TASK_STATE_WORKING not in said.states:
        said.take(await anext(stream))
    steering = message("only the summary", said.task)
    steering.configuration.return_immediately = True
    steered = await read(client.send_message(steering))
    check("the same task", steered.task, said.task)
    await read(stream, said)
    check("the end", said.states[-1], TaskState.TASK_STATE_COMPLETED)
    task = await client.get_task(GetTaskRequest(id=said.task))
    texts = [part.text for one in task.history for part in one.parts]
    check("what was said to it", texts, ["sleep: 2", "only the summary"])


async def answer(client, _plain):
    for is_yes, ran in ((True, True), (False, False)):
        said = await read(client.send_message(message("run: echo from-the-tool")))
        check("the question", said.states[-1], TaskState.TASK_STATE_INPUT_REQUIRED)
        task = await client.get_task(GetTaskRequest(id=said.task))
        words = "".join(part.text for part in task.status.message.parts)
        text = re.search("`(approve [0-9a-z]+)`", words)[1] if is_yes else "yes"
        over = await read(client.send_message(message(text, said.task)))
        check("the end", over.states[-1], TaskState.TASK_STATE_COMPLETED)
        check(f"`{text}` is a yes", "from-the-tool" in over.text, ran)


SCENARIOS = {
    "send": send, "whole": whole, "cancel": cancel_twice, "resubscribe": resubscribe, "steer": steer, "answer": answer,
}


async def main():
    _, scenario, binding, url, token = sys.argv
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        clients = [
            await create_client(url, ClientConfig(streaming=streams, httpx_client=http, supported_protocol_bindings=[binding]))
            for streams in (True, False)
        ]
        await SCENARIOS[scenario](*clients)


asyncio.run(main())
