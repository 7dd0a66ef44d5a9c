// The Vercel AI SDK as its documentation has a chat written: streamText with tools and a limit of steps, the messages kept by the caller.
// After an abort the finished steps that onAbort names are kept.
//
// Way to stop: `abort-signal`, the abortSignal given to streamText.
import { createInterface } from 'node:readline';
import { createOpenAI } from '@ai-sdk/openai';
import { isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
const messages = [];
let controller;

const write = line => process.stdout.write(JSON.stringify(line) + '\n');

async function post(name, args, signal) {
  const url = `${process.env.STOP_TEST_TOOLS}/${name}`;
  const answer = await fetch(url, { method: 'POST', body: JSON.stringify(args), signal });
  return answer.text();
}

const inputSchema = z.object({ what: z.string().optional() });
const tools = {
  work: tool({
    description: 'Works',
    inputSchema,
    execute: (args, { abortSignal }) => post('work', args, abortSignal),
  }),
  deaf: tool({ description: 'Works, and looks at no stop', inputSchema, execute: args => post('deaf', args) }),
};

async function turn(text) {
  messages.push({ role: 'user', content: text });
  controller = new AbortController();
  let says = 'nothing';
  try {
    const result = streamText({
      model: openai.chat('stop-test'),
      messages,
      tools,
      stopWhen: isStepCount(10),
      abortSignal: controller.signal,
      onAbort: ({ steps }) => messages.push(...steps.flatMap(step => step.response.messages)),
    });
    for await (const part of result.stream) {
      if (part.type === 'abort') says = 'stopped';
      if (part.type === 'finish') says = 'done';
      if (part.type === 'error') {
        console.error(part.error);
        says = 'failed';
      }
    }
    if (says === 'done') messages.push(...(await result.responseMessages));
  } catch (error) {
    console.error(error);
    says = error.name === 'AbortError' ? 'stopped' : 'failed';
  }
  write({ at: 'told', says });
}

write({ at: 'ready', stops: ['abort-signal'] });
for await (const line of createInterface({ input: process.stdin })) {
  const wish = JSON.parse(line);
  if (wish.do === 'stop') controller?.abort();
  else turn(wish.text);
}
process.exit(0);
