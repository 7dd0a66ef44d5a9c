// The OpenAI Agents SDK for JavaScript as its documentation has a chat written: an Agent with two tools, run with a stream, over chat
// completions; the history of the result is the input of the next run.
//
// Way to stop: `signal`, the AbortSignal given to run.
import { Agent, run, setOpenAIAPI, setTracingDisabled, tool } from '@openai/agents';
import { createInterface } from 'node:readline';
import { z } from 'zod';

setOpenAIAPI('chat_completions');
setTracingDisabled(true);

let history = [];
let controller;

const tell = line => process.stdout.write(JSON.stringify(line) + '\n');

async function post(name, args, signal) {
  const answer = await fetch(`${process.env.STOP_TEST_TOOLS}/${name}`, { method: 'POST', body: JSON.stringify(args), signal });
  return answer.text();
}

const parameters = z.object({ what: z.string() });
const work = tool({
  name: 'work',
  description: 'Works',
  parameters,
  execute: (args, _context, details) => post('work', args, details?.signal),
});
const deaf = tool({ name: 'deaf', description: 'Works', parameters, execute: args => post('deaf', args) });
const agent = new Agent({ name: 'agent', model: 'stop-test', tools: [work, deaf] });

async function turn(text) {
  controller = new AbortController();
  const { signal } = controller;
  let result;
  let says = 'done';
  try {
    result = await run(agent, [...history, { role: 'user', content: text }], { stream: true, signal });
    for await (const _event of result);
    await result.completed;
    if (result.cancelled) says = 'stopped';
    else if (result.error) throw result.error;
  } catch (error) {
    says = signal.aborted && /abort/i.test(`${error?.name} ${error?.constructor?.name}`) ? 'stopped' : 'failed';
    console.error(error);
  }
  if (result) history = result.history;
  tell({ at: 'told', says });
}

tell({ at: 'ready', stops: ['signal'] });
for await (const line of createInterface({ input: process.stdin })) {
  const wish = JSON.parse(line);
  if (wish.do === 'start' || wish.do === 'next') turn(wish.text);
  if (wish.do === 'stop') controller?.abort();
}
process.exit(0);
