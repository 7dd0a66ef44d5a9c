// An editor for `cargo xtask peers`, made with the npm package @agentclientprotocol/sdk, which is written by others: it drives
// `safepoint acp` over standard input and output. Its arguments: a scenario, how long the command sleeps, and the agent's
// command. It prints what it saw as JSON.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [scenario, mark, ...command] = process.argv.slice(2);
const updates = [];
let works, asks, answers;
const working = new Promise((resolve) => (works = resolve));
const asked = new Promise((resolve) => (asks = resolve));
const answered = new Promise((resolve) => (answers = resolve));

function sleepers() {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith(`sleep\0${mark}\0`);
    } catch {
      return false;
    }
  }).length;
}

const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((resolve) => child.on("exit", resolve));
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const { agent, client } = acp.methods;
const saw = {};

const editor = acp
  .client({ name: "peer" })
  .onRequest(client.session.requestPermission, async ({ params }) => {
    asks();
    if (scenario === "cancel-asking") {
      await answered;
      return { outcome: { outcome: "cancelled" } };
    }
    const chosen = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: chosen.optionId } };
  })
  .onNotification(client.session.update, ({ params }) => {
    updates.push(params.update);
    if (params.update.status === "in_progress") works();
  });

await editor.connectWith(stream, async (ctx) => {
  const hello = await ctx.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  saw.version = hello.protocolVersion;
  const { sessionId } = await ctx.request(agent.session.new, { cwd: process.cwd(), mcpServers: [] });
  const prompt = (text, options) =>
    ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }, options);
  const abort = new AbortController();
  const first = prompt(scenario === "plain" ? "hello" : `run: sleep ${mark}`, { cancellationSignal: abort.signal });
  const cancel = () => ctx.notify(agent.session.cancel, { sessionId });
  if (scenario === "cancel-asking") {
    await asked;
    await cancel();
    answers();
  } else if (scenario === "cancel-working") {
    await working;
    await cancel();
  } else if (scenario === "cancel-at-once") {
    await cancel();
  } else if (scenario === "cancel-request") {
    await working;
    abort.abort();
  }
  try {
    const answer = await first;
    saw.first = answer.stopReason;
    saw.meta = answer._meta;
  } catch (error) {
    saw.first = `error ${error.code}`;
  }
  saw.alive = sleepers();
  saw.updates = updates.map((update) => update.sessionUpdate);
  const count = updates.length;
  if (scenario !== "plain") {
    saw.second = (await prompt("hello")).stopReason;
    saw.late = updates.slice(count).filter((update) => update.sessionUpdate.startsWith("tool_call")).length;
  }
  const { sessions } = await ctx.request(agent.session.list, {});
  saw.listed = sessions.length === 1 && sessions[0].sessionId === sessionId;
  if (scenario === "plain") {
    const before = updates.length;
    await ctx.request(agent.session.load, { sessionId, cwd: process.cwd(), mcpServers: [] });
    saw.loaded = updates.slice(before).map((update) => update.sessionUpdate);
    await ctx.request(agent.session.close, { sessionId });
  }
});
child.stdin.end();
saw.exit = await exited;
saw.alive_after = sleepers();
console.log(JSON.stringify(saw));
