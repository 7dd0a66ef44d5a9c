"""The providers' own clients against our scripted server: what they read of its wire is what it meant.

python sdks.py SDK SCENARIO URL; it ends with 0, or says what is not as it must be.
"""
import json
import sys

import anthropic
import openai

TEXT = "a long text in several pieces, with ünïcödé"
ARGS = {"city": "Lisbon", "days": 3}


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, not {wanted!r}")


def chat(url):
    stream = openai.OpenAI(base_url=url, api_key="k", max_retries=0).chat.completions.create(
        model="m", stream=True, stream_options={"include_usage": True}, messages=[{"role": "user", "content": "go"}]
    )
    reply = {"text": "", "calls": [], "finish": None, "usage": None}
    for chunk in stream:
        if chunk.usage:
            reply["usage"] = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        for choice in chunk.choices:
            reply["text"] += choice.delta.content or ""
            reply["finish"] = choice.finish_reason or reply["finish"]
            for call in choice.delta.tool_calls or []:
                if call.index == len(reply["calls"]):
                    reply["calls"].append([call.function.name, ""])
                reply["calls"][call.index][1] += call.function.arguments or ""
    if reply["finish"] is None:
        raise ConnectionError("the stream ended without a reason")
    reply["calls"] = [(name, json.loads(args)) for name, args in reply["calls"]]
    return reply


def responses(url):
    client = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    reply = {"text": "", "calls": [], "finish": None, "usage": None}
    with client.responses.create(model="m", stream=True, input="go") as stream:
        final = None
        for event in stream:
            if event.type == "response.output_text.delta":
                reply["text"] += event.delta
            if event.type == "response.completed":
                final = event.response
    if final is None:
        raise ConnectionError("the stream ended without its last event")
    check("the whole text beside its pieces", final.output_text, reply["text"])
    reply["finish"] = final.status
    reply["usage"] = (final.usage.input_tokens, final.usage.output_tokens)
    calls = [item for item in final.output if item.type == "function_call"]
    reply["calls"] = [(call.name, json.loads(call.arguments)) for call in calls]
    return reply


def messages(url):
    base = url.removesuffix("/v1")
    client = anthropic.Anthropic(base_url=base, api_key="k", max_retries=0)
    reply = {"text": "", "calls": [], "finish": None, "usage": None}
    asked = [{"role": "user", "content": "go"}]
    with client.messages.stream(model="m", max_tokens=9, messages=asked) as stream:
        for text in stream.text_stream:
            reply["text"] += text
        final = stream.get_final_message()
    if final.stop_reason is None:
        raise ConnectionError("the stream ended without a reason")
    reply["finish"] = final.stop_reason
    reply["usage"] = (final.usage.input_tokens, final.usage.output_tokens)
    reply["calls"] = [(block.name, block.input) for block in final.content if block.type == "tool_use"]
    return reply


ENDS = {"chat": ("stop", "tool_calls"), "responses": ("completed", "completed"), "messages": ("end_turn", "tool_use")}


def text(wire, url):
    reply = wire(url)
    check("the text", reply["text"], TEXT)
    check("the end", reply["finish"], ENDS[wire.__name__][0])
    check("the usage", reply["usage"], (11, 7))


def call(wire, url):
    reply = wire(url)
    check("the calls", reply["calls"], [("weather", ARGS), ("weather", ARGS)])
    check("the end", reply["finish"], ENDS[wire.__name__][1])


def cut(wire, url):
    try:
        reply = wire(url)
    except Exception as error:  # noqa: BLE001: each client has its own
        print(f"as it must: {type(error).__name__}: {error}")
        return
    sys.exit(f"a stream that was cut was taken for a whole one: {reply}")


def refused(wire, url):
    try:
        reply = wire(url)
    except (openai.RateLimitError, anthropic.RateLimitError) as error:
        check("the status", error.status_code, 429)
        return
    sys.exit(f"a refusal was taken for an answer: {reply}")


_, sdk, scenario, address = sys.argv
{"text": text, "call": call, "cut": cut, "refused": refused}[scenario](
    {"chat": chat, "responses": responses, "messages": messages}[sdk], address
)
