"""Drives Pydantic AI as its documentation says, for `stop-test`.

A turn is streamed by `agent.run_stream_events()`. The caller keeps the history, as the documentation has it: the messages of the result, or,
of a run that was cancelled, those of `RunCancelled`, which the next run is given as `message_history`.

Its ways to stop:
  token   `CancellationToken.cancel()`, which the documentation prefers for a stop button
  events  `AgentRunEvents.cancel()`, of the handle by which the events are read
  task    cancels the asyncio task that reads the events, and takes the history from `RunCancelled.from_cancellation()`
"""

import asyncio
import json
import os
import sys

import httpx
from pydantic_ai import Agent, AgentRunResultEvent, CancellationToken
from pydantic_ai.exceptions import RunCancelled

TOOLS = os.environ["STOP_TEST_TOOLS"]
agent = Agent("openai:stop-test")
history = []
events = None


@agent.tool_plain
async def work(what: str = "") -> str:
    """Works."""
    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.post(f"{TOOLS}/work", json={"what": what})).text


@agent.tool_plain
def deaf(what: str = "") -> str:
    """Works, and looks at no stop."""
    return httpx.post(f"{TOOLS}/deaf", json={"what": what}, timeout=None).text


def write(**line):
    print(json.dumps(line), flush=True)


async def turn(stream):
    global events, history
    says = "nothing"
    try:
        async with stream as events:
            async for event in events:
                if isinstance(event, AgentRunResultEvent):
                    history, says = event.result.all_messages(), "done"
    except RunCancelled as cancelled:
        history, says = cancelled.all_messages(), "stopped"
    except asyncio.CancelledError as error:
        if cancelled := RunCancelled.from_cancellation(error):
            history = cancelled.all_messages()
        says = "stopped"
    except Exception as error:
        print(repr(error), file=sys.stderr)
        says = "failed"
    write(at="told", says=says)


async def main():
    write(at="ready", stops=["token", "events", "task"])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        wish = json.loads(line)
        if wish["do"] in ("start", "next"):
            token = CancellationToken()
            stream = agent.run_stream_events(wish["text"], message_history=history, cancellation_token=token)
            task = asyncio.create_task(turn(stream))
        elif wish["how"] == "token":
            token.cancel()
        elif wish["how"] == "events":
            events.cancel()
        else:
            task.cancel()
    os._exit(0)


asyncio.run(main())
