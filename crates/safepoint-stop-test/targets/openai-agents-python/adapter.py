"""Drives the OpenAI Agents SDK as its documentation says, for `stop-test`.

A turn is `Runner.run_streamed()`, read by `stream_events()` to its end, also after a cancel, as the documentation asks for. A `SQLiteSession`
keeps the conversation. The model is asked by the Responses API, which is the SDK's default.

Its ways to stop:
  immediate   `result.cancel()`: "Stop immediately, cancel all tasks, clear queues (default)"
  after-turn  `result.cancel(mode="after_turn")`: waits by its documentation for the model's answer and its tools
"""

import asyncio
import json
import os
import sys

import httpx
from agents import Agent, Runner, SQLiteSession, function_tool

TOOLS = os.environ["STOP_TEST_TOOLS"]


@function_tool
async def work(what: str = "") -> str:
    """Works."""
    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.post(f"{TOOLS}/work", json={"what": what})).text


@function_tool
def deaf(what: str = "") -> str:
    """Works, and looks at no stop."""
    return httpx.post(f"{TOOLS}/deaf", json={"what": what}, timeout=None).text


agent = Agent(name="agent", model="stop-test", tools=[work, deaf])


def write(**line):
    print(json.dumps(line), flush=True)


async def turn(result):
    try:
        async for _event in result.stream_events():
            pass
        # A stream that was cancelled ends like any other: only that there is no final output tells.
        says = "nothing" if result.final_output is None else "done"
    except Exception as error:
        print(repr(error), file=sys.stderr)
        says = "failed"
    write(at="told", says=says)


async def main():
    session, turns = SQLiteSession("1"), set()
    write(at="ready", stops=["immediate", "after-turn"])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        wish = json.loads(line)
        if wish["do"] in ("start", "next"):
            result = Runner.run_streamed(agent, wish["text"], session=session)
            turns.add(asyncio.create_task(turn(result)))
        else:
            result.cancel(mode="immediate" if wish["how"] == "immediate" else "after_turn")
    os._exit(0)


asyncio.run(main())
