// An agent that can be stopped, with the protocol of `stop-test`: TypeScript for Node 20, nothing beyond its own `fetch`.
//
// A stop aborts the signal of the turn. Each `fetch` has that signal and closes its connection, and each call without a result gets one.
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

type Call = { id: string; type: "function"; function: { name: string; arguments: string } };
type Message = { role: string; content: string; tool_calls?: Call[]; tool_call_id?: string };

const env = (name: string): string => process.env[name] ?? "";
const tell = (line: object): void => console.log(JSON.stringify(line));
const parameters = { type: "object", properties: { what: { type: "string" } } };
const tools = [{ type: "function", function: { name: "work", description: "Works.", parameters } }];
const history: Message[] = [];

function post(url: string, body: string, signal: AbortSignal): Promise<Response> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${env("OPENAI_API_KEY")}` };
  return fetch(url, { method: "POST", headers, body, signal });
}

/** The data of each event of a stream. */
async function* events(answer: Response): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const bytes of answer.body!) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) if (line.startsWith("data:")) yield line.slice(5).trim();
  }
}

/** Streams one answer of the model, and returns it as a message. */
async function ask(signal: AbortSignal): Promise<Message> {
  const body = JSON.stringify({ model: "m", stream: true, messages: history, tools });
  const answer = await post(`${env("OPENAI_BASE_URL")}/chat/completions`, body, signal);
  if (answer.status === 429) {
    await answer.text();
    await pause(1000 * Number(answer.headers.get("retry-after") ?? 1), undefined, { signal });
    return ask(signal);
  }
  if (!answer.ok) throw new Error(`the model says ${answer.status}: ${await answer.text()}`);
  let content = "";
  const calls: Call[] = [];
  for await (const data of events(answer)) {
    if (data === "[DONE]") return { role: "assistant", content, ...(calls.length > 0 && { tool_calls: calls }) };
    for (const { delta } of JSON.parse(data).choices) {
      content += delta.content ?? "";
      for (const piece of delta.tool_calls ?? []) {
        const call = (calls[piece.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
        call.id ||= piece.id ?? "";
        call.function.name += piece.function?.name ?? "";
        call.function.arguments += piece.function?.arguments ?? "";
      }
    }
  }
  throw new Error("the model's answer was cut");
}

/** Runs a call of the tool, and returns its result. */
async function run(call: Call, signal: AbortSignal): Promise<Message> {
  const result = (content: string): Message => ({ role: "tool", tool_call_id: call.id, content });
  try {
    const answer = await post(`${env("STOP_TEST_TOOLS")}/${call.function.name}`, call.function.arguments, signal);
    return result(await answer.text());
  } catch (error) {
    // A provider refuses a history in which a call has no result.
    return result(signal.aborted ? "stopped before it was done" : `it failed: ${error}`);
  }
}

/** Asks the model, and runs what it calls, until it calls nothing; says what the caller learns then. */
async function turn(text: string, signal: AbortSignal): Promise<void> {
  history.push({ role: "user", content: text });
  try {
    for (;;) {
      const message = await ask(signal);
      history.push(message);
      if (!message.tool_calls) break;
      history.push(...(await Promise.all(message.tool_calls.map((call) => run(call, signal)))));
      signal.throwIfAborted();
    }
    tell({ at: "told", says: "done" });
  } catch (error) {
    if (!signal.aborted) console.error(error);
    tell({ at: "told", says: signal.aborted ? "stopped" : "failed" });
  }
}

let stop = new AbortController();
tell({ at: "ready", stops: ["abort"] });
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const wish = JSON.parse(line);
    if (wish.do === "stop") stop.abort();
    else turn(wish.text, (stop = new AbortController()).signal);
  })
  .on("close", () => process.exit(0));
