// Serves the scenarios of `cargo xtask peers` with @modelcontextprotocol/sdk, which is written by others: over standard
// input and output, or over HTTP on the port that is its argument. PEER_LOG is a file for what it notices.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";
const note = (word) => appendFileSync(process.env.PEER_LOG, word + "\n");
const said = (text) => ({ content: [{ type: "text", text }] });
const made = () => {
  const server = new McpServer({ name: "peer", version: "1" });
  server.registerTool("add", { inputSchema: { a: z.number(), b: z.number() } }, async ({ a, b }) => said(String(a + b)));
  server.registerTool("steps", {}, async ({ _meta, sendNotification }) => {
    for (const step of [1, 2, 3]) {
      const params = { progressToken: _meta.progressToken, progress: step, total: 3, message: `step ${step}` };
      await sendNotification({ method: "notifications/progress", params });
    }
    return said("done");
  });
  server.registerTool("slow", {}, ({ signal }) => {
    note("began");
    return new Promise((_, reject) => signal.addEventListener("abort", () => (note("cancelled"), reject(new Error("cancelled")))));
  });
  server.registerTool("grow", {}, () => {
    server.registerTool("grown", {}, () => (note("grown"), said("I am new")));
    return said("one more");
  });
  return server;
};
if (process.argv[2]) {
  const sessions = new Map();
  createServer(async (request, response) => {
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await made().connect(transport);
    }
    await transport.handleRequest(request, response);
  }).listen(Number(process.argv[2]), "127.0.0.1");
} else {
  await made().connect(new StdioServerTransport());
}
