"""A stopped run of our binary, as a receiver of OpenTelemetry that others wrote has it.

python otel.py BINARY URL FOLDER SCENARIO; it ends with 0, or says what is not as it must be.
"""
import asyncio
import os
import signal
import socket
import subprocess
import sys
import time

from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings

WITHIN = 30
ERROR = 2
AGENT = "---\ndescription: Helps\ntools: shell\n---\nYou help.\n"


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, not {wanted!r}")


def plain(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(one) for one in value.array_value.values]
    return getattr(value, kind)


def fields(of):
    return {attribute.key: plain(attribute.value) for attribute in of.attributes}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(binary, url, folder, endpoint):
    """Our binary with an agent that has an agent, which runs a command that leaves a mark and sleeps."""
    agents = os.path.join(folder, ".config/safepoint/agents")
    os.makedirs(agents, exist_ok=True)
    with open(os.path.join(agents, "helper.md"), "w") as file:
        file.write(AGENT)
    command = [binary, "run", "--model", "openai:x", "--base-url", url, "--tools", "shell", "--approve", "auto"]
    command += ["--sandbox", "off", "--root", folder, "--grace", "0", "go"]
    variables = {"HOME": folder, "PATH": os.environ["PATH"], "OPENAI_API_KEY": "k", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    return subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def interrupted(run, mark):
    over = time.monotonic() + WITHIN
    while not os.path.exists(mark):
        if time.monotonic() > over or run.poll() is not None:
            run.kill()
            sys.exit(f"the command did not begin: {run.communicate()[1].decode()}")
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    try:
        words = run.communicate(timeout=WITHIN)[1].decode()
    except subprocess.TimeoutExpired:
        run.kill()
        sys.exit("the program did not end")
    return run.returncode, words


async def kept(stream, into):
    async for one in stream:
        into.append(one)


def tree(spans):
    names = {span.span_id: span.name for span in spans}
    above = {span.span_id: span.parent_span_id for span in spans}

    def path(span):
        return f"{path(above[span])}/{names[span]}" if above[span] in names else names[span]

    return sorted(path(span) for span in names)


async def one_tree(binary, url, folder):
    port = free_port()
    spans, metrics = [], []
    mark = os.path.join(folder, "mark")
    async with OtelTapHttpProtobufReceiver(OtelTapHttpProtobufReceiverSettings(http_port=port)) as receiver:
        readers = [
            asyncio.create_task(kept(receiver.stream_traces(), spans)),
            asyncio.create_task(kept(receiver.stream_metrics(), metrics)),
        ]
        await asyncio.sleep(0)
        run = started(binary, url, folder, f"http://127.0.0.1:{port}")
        code, words = await asyncio.to_thread(interrupted, run, mark)
        check(f"the exit code ({words})", code, 130)
        over = time.monotonic() + WITHIN
        while len(spans) < 6 or len(metrics) < 4:
            if time.monotonic() > over:
                sys.exit(f"exported: {[span.name for span in spans]}, {[metric.name for metric in metrics]}")
            await asyncio.sleep(0.05)
        for reader in readers:
            reader.cancel()
    run, helper = "invoke_agent", "invoke_agent/invoke_agent helper"
    check(
        "the tree",
        tree(spans),
        sorted([run, f"{run}/chat x", helper, f"{helper}/chat x", f"{helper}/execute_tool shell", f"{run}/safepoint.stop"]),
    )
    check("traces", len({span.trace_id for span in spans}), 1)
    check("errors", [span.name for span in spans if span.status.code == ERROR or "error.type" in fields(span)], [])
    stop = next(span for span in spans if span.name == "safepoint.stop")
    check("the events of the stop", [event.name for event in stop.events], ["requested", "observed", "settled"])
    times = [stop.start_time_unix_nano, *(event.time_unix_nano for event in stop.events), stop.end_time_unix_nano]
    check("their times in order", times, sorted(times))
    said = fields(stop)
    check("quiet", said.get("safepoint.stop.quiet"), True)
    check("fired", said.get("safepoint.stop.fired"), "now")
    root = next(span for span in spans if not span.parent_span_id)
    check("how the run ended", fields(root).get("safepoint.ending"), "stopped")
    chat = next(span for span in spans if span.name == "chat x")
    check("finish reasons", fields(chat).get("gen_ai.response.finish_reasons"), ["stop"])
    used = sorted(fields(span).get("gen_ai.usage.input_tokens") for span in spans if span.name == "chat x")
    check("tokens", used, [5, 11])
    check("the provider", fields(chat).get("gen_ai.provider.name"), "openai")
    names = {metric.name for metric in metrics}
    wanted = {"safepoint.stop.settled", "safepoint.stop.quiet"}
    wanted |= {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"}
    check("measures", wanted - names, set())


def no_collector(binary, url, folder):
    """A collector that accepts and never answers delays the end by a bound, and changes nothing else."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        run = started(binary, url, folder, f"http://127.0.0.1:{deaf.getsockname()[1]}")
        began = time.monotonic()
        code, words = interrupted(run, os.path.join(folder, "mark"))
        check(f"the exit code ({words})", code, 130)
        check("what it says of the collector", "elemetry" in words, False)
        if time.monotonic() - began > WITHIN / 2:
            sys.exit("the collector was waited for")


binary, url, folder, scenario = sys.argv[1:]
if scenario == "tree":
    asyncio.run(one_tree(binary, url, folder))
else:
    no_collector(binary, url, folder)
