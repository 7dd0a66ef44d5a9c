// Serves the scenarios of `cargo xtask peers` with @copilotkit/aimock, which is written by others.
// First line on stdout: {"url": …}. Each line on stdin asks for the requests so far, as one line of JSON.
import { createInterface } from "node:readline";
import { LLMock } from "@copilotkit/aimock";

const said = (message) =>
  typeof message.content === "string" ? message.content : message.content.map((part) => part.text ?? "").join("");
const asked = (request) => said(request.messages.findLast((message) => message.role === "user"));

const mock = new LLMock({ port: 0, latency: 40, chunkSize: 6, strict: true });
mock.onMessage(/and then\?$/, { content: "and so it went on" });
mock.on({ hasToolResult: true }, { content: "the command has ended" });
mock.onMessage(/^run: /, (request) => ({
  toolCalls: [{ name: "shell", arguments: JSON.stringify({ command: asked(request).slice("run: ".length) }) }],
}));
mock.onMessage(/^say: /, (request) => ({ content: asked(request).slice("say: ".length) }));

await mock.start();
console.log(JSON.stringify({ url: mock.url }));
const lines = createInterface({ input: process.stdin });
lines.on("line", () => {
  const requests = mock.getRequests().map(({ path, body, response }) => ({ path, body, status: response?.status }));
  console.log(JSON.stringify(requests));
});
lines.on("close", () => process.exit(0));
