"""Drives Microsoft's Agent Framework (Python) as its documentation says, for `stop-test`.

A turn is `agent.run(text, stream=True, session=...)`, read to its end. The session keeps the conversation. The model is asked by the
Responses API, which is what `OpenAIChatClient` speaks.

Its way to stop:
  cancel  cancels the asyncio task that reads the stream, as the sample `chat_response_cancellation.py` does
"""

import asyncio
import json
import os
import sys

import httpx
from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient

TOOLS = os.environ["STOP_TEST_TOOLS"]


async def work(what: str = "") -> str:
    """Works."""
    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.post(f"{TOOLS}/work", json={"what": what})).text


def deaf(what: str = "") -> str:
    """Works, and looks at no stop."""
    return httpx.post(f"{TOOLS}/deaf", json={"what": what}, timeout=None).text


agent = Agent(client=OpenAIChatClient(model="stop-test"), tools=[work, deaf])
session = agent.create_session()


def write(**line):
    print(json.dumps(line), flush=True)


async def turn(text):
    try:
        async for _update in agent.run(text, stream=True, session=session):
            pass
        says = "done"
    except asyncio.CancelledError:
        says = "stopped"
    except Exception as error:
        print(repr(error), file=sys.stderr)
        says = "failed"
    write(at="told", says=says)


async def main():
    write(at="ready", stops=["cancel"])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        wish = json.loads(line)
        if wish["do"] in ("start", "next"):
            task = asyncio.create_task(turn(wish["text"]))
        else:
            task.cancel()
    os._exit(0)


asyncio.run(main())
