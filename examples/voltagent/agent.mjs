// An agent that remembers, with a model that says what it was given.
import { Agent } from "@voltagent/core";
import { MockLanguageModelV3 } from "ai/test";
import { RemoraMemory } from "@remora/voltagent";

const usage = { inputTokens: { total: 0 }, outputTokens: { total: 0 } };

/** In place of a real model, such as `openai/gpt-4o-mini`: it lists all that users have said to it. */
const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const said = prompt
      .filter(({ role }) => role === "user")
      .flatMap(({ content }) => content.map(({ text }) => `- ${text}`));
    const text = `You have told me:\n${said.join("\n")}`;
    return { content: [{ type: "text", text }], finishReason: { unified: "stop" }, usage, warnings: [] };
  },
});

const memory = new RemoraMemory();
const agent = new Agent({ name: "guide", instructions: "Guide travellers.", model, memory });

const question = process.argv[2] ?? "Hello!";
const { text } = await agent.generateText(question, { memory: { userId: "ann", conversationId: "trip" } });
console.log(text);
await memory.close();
process.exit(); // VoltAgent would keep the process
