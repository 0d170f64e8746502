// What a program with the TypeScript SDK does through the proxy; tells what it saw as one line of JSON.
// Arguments: address of the proxy, key of Plimsoll.
import Anthropic from "@anthropic-ai/sdk";

const [baseURL, key] = process.argv.slice(2);
const make = (given) =>
  new Anthropic({ baseURL, apiKey: "sk-ant-test", maxRetries: 0, defaultHeaders: { "X-Plimsoll-Key": given } });
const client = make(key);
const question = { model: "claude-opus-5-5", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
const fail = async (call) => {
  try {
    await call();
    return null;
  } catch (error) {
    return { name: error.constructor.name, status: error.status, words: error.message };
  }
};

const { data, request_id } = await client.messages.create(question).withResponse();
const told = { text: data.content[0].text, read: data.usage.cache_read_input_tokens, request: request_id };

const stream = client.messages.stream(question);
let words = "";
stream.on("text", (text) => (words += text));
const final = await stream.finalMessage();
told.stream = { words, stop: final.stop_reason, output: final.usage.output_tokens };

told.beta = (await client.beta.messages.create({ ...question, betas: ["context-management-2025-06-27"] })).id;
told.count = (await client.messages.countTokens({ model: question.model, messages: question.messages })).input_tokens;
told.refused = await fail(() => make("plk_wrong").messages.create(question));
told.overloaded = await fail(() => client.messages.create({ ...question, max_tokens: 529 }));
console.log(JSON.stringify(told));
