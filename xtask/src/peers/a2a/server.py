# Serves `cargo xtask peers` with A2A servers that are written by others. The first argument says which: `sdk-ends` (the
# PyPI package `a2a-sdk`, with work that ends on request), `sdk-continues` (with work that does not: another thread,
# another process, another machine), `sdk-refuses`, `sdk-unwritten`, `adk` (`google-adk`) or `framework`
# (`agent-framework-a2a`). The second is the port. PEER_LOG is a file for what its work really does, PEER_STEPS how long
# that is, PEER_WIRE the only version of the protocol that its card names.
import asyncio
import os
import sys

import uvicorn

KIND, PORT = sys.argv[1], int(sys.argv[2])
URL = f"http://127.0.0.1:{PORT}/"
STEPS, PAUSE = int(os.environ.get("PEER_STEPS", "40")), 0.1


def note(word):
    with open(os.environ["PEER_LOG"], "a") as log:
        log.write(word + "\n")


async def work():
    note("began")
    try:
        for step in range(1, STEPS + 1):
            await asyncio.sleep(PAUSE)
            note(f"step {step}")
            yield f"step {step}. "
        note("ended")
    except (asyncio.CancelledError, GeneratorExit):
        note("torn down")
        raise


def sdk():
    from a2a.helpers import new_task_from_user_message
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.tasks import TaskUpdater
    from a2a.types import Part
    from a2a.utils.errors import UnsupportedOperationError

    class Executor(AgentExecutor):
        async def execute(self, context, queue):
            task = context.current_task
            if not task:
                task = new_task_from_user_message(context.message)
                await queue.enqueue_event(task)
            updater = TaskUpdater(queue, task.id, task.context_id)
            await updater.start_work()
            steps = asyncio.ensure_future(self.steps(updater))
            await (asyncio.shield(steps) if KIND == "sdk-continues" else steps)

        async def steps(self, updater):
            is_first = True
            async for text in work():
                await self.tell(updater.add_artifact([Part(text=text)], artifact_id="text", append=not is_first))
                is_first = False
            await self.tell(updater.complete())

        async def tell(self, telling):
            try:
                await telling
            except Exception as error:
                note(f"no listener: {type(error).__name__}")

        async def cancel(self, context, queue):
            note("asked to cancel")
            if KIND == "sdk-refuses":
                raise UnsupportedOperationError("cancel is not supported")
            if KIND == "sdk-unwritten":
                raise NotImplementedError("cancellation is not supported")
            await TaskUpdater(queue, context.task_id, context.context_id).cancel()

    return served(Executor())


def framework():
    from agent_framework import Agent, BaseChatClient, ChatResponse, ChatResponseUpdate, Content, ResponseStream
    from agent_framework_a2a import A2AExecutor

    class Fake(BaseChatClient):
        def _inner_get_response(self, *, messages, stream, options, **kwargs):
            async def updates():
                async for text in work():
                    yield ChatResponseUpdate(contents=[Content.from_text(text)], role="assistant")

            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    return served(A2AExecutor(Agent(client=Fake(), name="peer"), stream=True))


def served(executor):
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface
    from starlette.applications import Starlette

    wires = os.environ.get("PEER_WIRE", "1.0 0.3").split()
    interfaces = [AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version=wire) for wire in wires]
    card = AgentCard(
        name="peer", description="counts", version="1", supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True), default_input_modes=["text"], default_output_modes=["text"],
    )
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
    rpc = create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)
    return Starlette(routes=[*create_agent_card_routes(card), *rpc])


def adk():
    from google.adk.a2a.utils.agent_to_a2a import to_a2a
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.genai import types

    class Fake(BaseLlm):
        async def generate_content_async(self, request, stream=False):
            said = ""
            async for text in work():
                said += text
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=True)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]), turn_complete=True)

    return to_a2a(LlmAgent(name="peer", model=Fake(model="fake")), host="127.0.0.1", port=PORT)


app = {"adk": adk, "framework": framework}.get(KIND, sdk)()
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="error")
