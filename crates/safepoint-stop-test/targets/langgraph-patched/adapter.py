"""Drives LangGraph as its documentation says, for `stop-test`.

Before a message it answers the calls that have no result, as the page of the error `INVALID_CHAT_HISTORY` says.

The graph is the one of LangGraph's quickstart: a node that asks the model, a `ToolNode`, and an edge back. A checkpointer keeps the
conversation. A turn is streamed by `astream_events(version="v3")`, which LangGraph recommends for applications ("Event streaming").

Its ways to stop:
  abort   `AsyncGraphRunStream.abort()`: "Stop the run early. [...] running nodes and nested subgraphs are cancelled"
  cancel  cancels the asyncio task that reads the stream ("For a hard upper bound, pair drain with [...] task cancellation")
  drain   `RunControl.request_drain()`: the graceful shutdown, which by its documentation waits for the node that runs
"""

import asyncio
import json
import os
import sys

import httpx
from langchain_core.messages import AIMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import RunControl

TOOLS = os.environ["STOP_TEST_TOOLS"]


async def work(what: str = "") -> str:
    """Works."""
    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.post(f"{TOOLS}/work", json={"what": what})).text


def deaf(what: str = "") -> str:
    """Works, and looks at no stop."""
    return httpx.post(f"{TOOLS}/deaf", json={"what": what}, timeout=None).text


model = ChatOpenAI(model="stop-test").bind_tools([work, deaf])


async def ask(state: MessagesState):
    return {"messages": [await model.ainvoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("ask", ask)
builder.add_node("tools", ToolNode([work, deaf]))
builder.add_edge(START, "ask")
builder.add_conditional_edges("ask", tools_condition)
builder.add_edge("tools", "ask")
graph = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}


def write(**line):
    print(json.dumps(line), flush=True)


def is_answer(state) -> bool:
    """Whether a graph's state is that after an answer: the end of the stream itself does not tell."""
    last = state["messages"][-1] if state else None
    return isinstance(last, AIMessage) and not last.tool_calls


async def turn(run):
    try:
        async with run:
            async for _event in run:
                pass
            says = "done" if is_answer(await run.output()) else "nothing"
    except (asyncio.CancelledError, GraphDrained):
        says = "stopped"
    except Exception as error:
        print(repr(error), file=sys.stderr)
        says = "failed"
    write(at="told", says=says)


async def unanswered():
    """An answer to each call that has none."""
    messages = (await graph.aget_state(config)).values.get("messages", [])
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    open_calls = [call["id"] for call in calls if call["id"] not in answered]
    return [ToolMessage("stopped before it was done", tool_call_id=call) for call in open_calls]


async def main():
    write(at="ready", stops=["abort", "cancel", "drain"])
    loop, background = asyncio.get_running_loop(), set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        wish = json.loads(line)
        if wish["do"] in ("start", "next"):
            control = RunControl()
            message = {"messages": [*await unanswered(), {"role": "user", "content": wish["text"]}]}
            run = await graph.astream_events(message, config, version="v3", control=control)
            task = asyncio.create_task(turn(run))
        elif wish["how"] == "abort":
            background.add(asyncio.create_task(run.abort()))
        elif wish["how"] == "cancel":
            task.cancel()
        else:
            control.request_drain()
    os._exit(0)


asyncio.run(main())
