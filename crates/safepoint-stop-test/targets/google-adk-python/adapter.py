"""Drives Google's Agent Development Kit (Python) as its documentation says, for `stop-test`.

A turn is `runner.run_async()` with streaming (SSE) on, read to its end. An `InMemorySessionService` keeps the conversation. The model is
asked by Gemini's own API. Tools that block run in ADK's pool of threads, as its documentation advises: else they would block its loop.

Its way to stop:
  abort-signal  sets the `asyncio.Event` that `run_async()` was given: "abort_signal: Optional asyncio.Event to cancel the invocation"
"""

import asyncio
import json
import os
import sys

import httpx
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode, ToolThreadPoolConfig
from google.adk.models import Gemini
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

TOOLS = os.environ["STOP_TEST_TOOLS"]
WHO = {"user_id": "user", "session_id": "1"}


async def work(what: str = "") -> str:
    """Works."""
    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.post(f"{TOOLS}/work", json={"what": what})).text


def deaf(what: str = "") -> str:
    """Works, and looks at no stop."""
    return httpx.post(f"{TOOLS}/deaf", json={"what": what}, timeout=None).text


agent = LlmAgent(name="agent", model=Gemini(model="stop-test"), tools=[work, deaf])
sessions = InMemorySessionService()
runner = Runner(app_name="stop-test", agent=agent, session_service=sessions)
config = RunConfig(streaming_mode=StreamingMode.SSE, tool_thread_pool_config=ToolThreadPoolConfig())


def write(**line):
    print(json.dumps(line), flush=True)


async def turn(text, abort):
    says = "nothing"
    message = types.Content(role="user", parts=[types.Part(text=text)])
    try:
        async for event in runner.run_async(**WHO, new_message=message, run_config=config, abort_signal=abort):
            if event.error_code:
                says = "stopped" if event.error_code == "INVOCATION_ABORTED" else "failed"
            elif event.is_final_response() and not event.partial:
                says = "done"
    except Exception as error:
        print(repr(error), file=sys.stderr)
        says = "failed"
    write(at="told", says=says)


async def main():
    await sessions.create_session(app_name="stop-test", **WHO)
    write(at="ready", stops=["abort-signal"])
    loop, turns = asyncio.get_running_loop(), set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        wish = json.loads(line)
        if wish["do"] in ("start", "next"):
            abort = asyncio.Event()
            turns.add(asyncio.create_task(turn(wish["text"], abort)))
        else:
            abort.set()
    os._exit(0)


asyncio.run(main())
