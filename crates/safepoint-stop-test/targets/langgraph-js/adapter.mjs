// LangGraph for JavaScript as its documentation has an agent written: createAgent with two tools and a MemorySaver that keeps the
// conversation; the stream of messages is read to its end.
//
// Way to stop: `signal`, the AbortSignal in the configuration of the run.
import { tool } from '@langchain/core/tools';
import { MemorySaver } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent } from 'langchain';
import { createInterface } from 'node:readline';
import { z } from 'zod';

let controller;

const tell = line => process.stdout.write(JSON.stringify(line) + '\n');

async function post(name, args, signal) {
  const answer = await fetch(`${process.env.STOP_TEST_TOOLS}/${name}`, { method: 'POST', body: JSON.stringify(args), signal });
  return answer.text();
}

const schema = z.object({ what: z.string().optional() });
const work = tool((args, config) => post('work', args, config?.signal), { name: 'work', description: 'Works', schema });
const deaf = tool(args => post('deaf', args), { name: 'deaf', description: 'Works', schema });
const llm = new ChatOpenAI({ model: 'stop-test', configuration: { baseURL: process.env.OPENAI_BASE_URL } });
const agent = createAgent({ model: llm, tools: [work, deaf], checkpointer: new MemorySaver() });

async function turn(text) {
  controller = new AbortController();
  const { signal } = controller;
  let says = 'done';
  try {
    const input = { messages: [{ role: 'user', content: text }] };
    const stream = await agent.stream(input, { configurable: { thread_id: '1' }, streamMode: 'messages', signal });
    for await (const _part of stream);
  } catch (error) {
    says = signal.aborted && /abort/i.test(`${error?.name} ${error?.message}`) ? 'stopped' : 'failed';
    console.error(error);
  }
  tell({ at: 'told', says });
}

tell({ at: 'ready', stops: ['signal'] });
for await (const line of createInterface({ input: process.stdin })) {
  const wish = JSON.parse(line);
  if (wish.do === 'start' || wish.do === 'next') turn(wish.text);
  if (wish.do === 'stop') controller?.abort();
}
process.exit(0);
