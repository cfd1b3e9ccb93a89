// What the agent programs of the JavaScript recipes share: the tools, which log their own calls, and the answer.
import { appendFileSync, writeFileSync } from 'node:fs';

export const SCENARIO = process.argv[2] ?? 'one_tool';
export const QUESTION = 'What is the weather in Paris?';

export const log = (line) => appendFileSync(process.env.TOOLS_LOG, JSON.stringify(line) + '\n');

const logged = (own, body) => async (args) => {
  const name = (process.env.TOOL_PREFIX ?? '') + own;
  try {
    const result = await body(args);
    log({ name, arguments: args, error: false });
    return result;
  } catch (error) {
    log({ name, arguments: args, error: true });
    throw error;
  }
};

export const tools = {
  get_weather: {
    description: 'The weather in a city',
    parameters: { city: 'string' },
    run: logged('get_weather', () => '21 degrees'),
  },
  get_population: {
    description: 'How many people live in a city',
    parameters: { city: 'string' },
    run: logged('get_population', () => '2100000'),
  },
  convert_temp: {
    description: 'Celsius to Fahrenheit',
    parameters: { celsius: 'number' },
    run: logged('convert_temp', ({ celsius }) => String(celsius * 1.8 + 32)),
  },
  refund_order: {
    description: 'Give the money of an order back',
    parameters: { order_id: 'string' },
    run: logged('refund_order', () => {
      throw new Error('payment service is down');
    }),
  },
};

export const schema = (parameters) => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(parameters).map(([name, type]) => [name, { type }])),
  required: Object.keys(parameters),
  additionalProperties: false,
});

export const zodSchema = (z, parameters) =>
  z.object(Object.fromEntries(Object.entries(parameters).map(([name, type]) => [name, z[type]()])));

// An agent that is a tool of another one.
export const agentAsTool = (run) => async (args) => {
  const line = { name: 'researcher', arguments: args, error: false, kind: 'agent_as_tool' };
  log(line);
  return await run(args);
};

export const answer = (text) => writeFileSync(process.env.ANSWER_FILE, JSON.stringify(text));

// Runs the agent and exports what is left, whether it fails or not.
export const run = async (agent, flush) => {
  try {
    answer(await agent());
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  } finally {
    await flush();
  }
};
