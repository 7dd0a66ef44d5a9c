// Mastra as its documentation has an agent written: an Agent with two tools and a Memory that keeps the thread, registered with a Mastra
// that has a storage; each message is streamed, and the chunks of the stream are read to its end.
//
// Ways to stop: `abort-signal`, the abortSignal given to stream(), and `abort-thread`, agent.abortThreadStream() of the thread.
import { createInterface } from 'node:readline';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { LibSQLStore } from '@mastra/libsql';
import { Memory } from '@mastra/memory';
import { z } from 'zod';

const write = line => process.stdout.write(JSON.stringify(line) + '\n');

async function post(name, args, signal) {
  const url = `${process.env.STOP_TEST_TOOLS}/${name}`;
  const answer = await fetch(url, { method: 'POST', body: JSON.stringify(args), signal });
  return answer.text();
}

const inputSchema = z.object({ what: z.string().optional() });
const work = createTool({
  id: 'work',
  description: 'Works',
  inputSchema,
  execute: (args, context) => post('work', args, context?.abortSignal),
});
const deaf = createTool({
  id: 'deaf',
  description: 'Works, and looks at no stop',
  inputSchema,
  execute: args => post('deaf', args),
});

const agent = new Agent({
  id: 'agent',
  name: 'Agent',
  instructions: 'Do what you are asked to do.',
  model: { id: 'custom/stop-test', url: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY },
  tools: { work, deaf },
  memory: new Memory(),
});
// Without a logger that writes to the standard output, on which the test listens.
new Mastra({ agents: { agent }, storage: new LibSQLStore({ id: 'store', url: ':memory:' }), logger: false });

const thread = { resourceId: 'user', threadId: 'thread' };
let controller;

async function turn(text) {
  controller = new AbortController();
  let says = 'nothing';
  try {
    const memory = { resource: thread.resourceId, thread: thread.threadId };
    const stream = await agent.stream(text, { memory, abortSignal: controller.signal });
    for await (const chunk of stream.fullStream) {
      if (chunk.type === 'abort') says = 'stopped';
      if (chunk.type === 'finish' && chunk.payload.stepResult.reason === 'stop') says = 'done';
      if (chunk.type === 'error') {
        console.error(chunk.payload.error);
        says = 'failed';
      }
    }
  } catch (error) {
    console.error(error);
    says = error.name === 'AbortError' ? 'stopped' : 'failed';
  }
  write({ at: 'told', says });
}

write({ at: 'ready', stops: ['abort-signal', 'abort-thread'] });
for await (const line of createInterface({ input: process.stdin })) {
  const wish = JSON.parse(line);
  if (wish.do !== 'stop') turn(wish.text);
  else if (wish.how === 'abort-signal') controller?.abort();
  else agent.abortThreadStream(thread);
}
process.exit(0);
