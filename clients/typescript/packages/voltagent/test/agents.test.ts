// Whole turns of VoltAgent's agents, with a model that always gives the same answers.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import {
  Agent,
  AiSdkEmbeddingAdapter,
  type Conversation,
  type CreateConversationInput,
  createTool,
  Memory,
} from "@voltagent/core";
import type { UIMessage } from "ai";
import { MockEmbeddingModelV3, MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { z } from "zod";
import { RemoraMemory, RemoraMemoryAdapter } from "../src/index.js";
import { counted } from "../../client/test/counting.js";
import { type Fresh, server } from "./fresh.js";

const { fresh, restart } = server(true);
let options: Fresh;

beforeEach(() => {
  options = fresh();
});

type Answer = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;
type Chunk = Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"] extends ReadableStream<infer C> ? C : never;
type Prompt = MockLanguageModelV3["doGenerateCalls"][number]["prompt"];

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

function saying(text: string): Answer {
  return { content: [{ type: "text", text }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] };
}

function calling(toolName: string, input: object): Answer {
  const call = {
    type: "tool-call",
    toolCallId: `call of ${toolName}`,
    toolName,
    input: JSON.stringify(input),
  } as const;
  return { content: [call], finishReason: { unified: "tool-calls", raw: "tool-calls" }, usage, warnings: [] };
}

/** A model that gives these answers one after the other, the last for ever. */
function answering(...answers: [Answer, ...Answer[]]): MockLanguageModelV3 {
  return thinking(async () => {}, ...answers);
}

/** The same, of a model that thinks before each: until what VoltAgent stores meanwhile, in the background, is there. */
function thinking(think: () => Promise<unknown>, ...answers: [Answer, ...Answer[]]): MockLanguageModelV3 {
  let next = 0;
  const doGenerate = async () => {
    await think();
    return answers[Math.min(next++, answers.length - 1)] as Answer;
  };
  return new MockLanguageModelV3({ doGenerate });
}

/** A model that streams its answer, as VoltAgent lets sub-agents do. */
function streaming(text: string): MockLanguageModelV3 {
  const finishReason = { unified: "stop", raw: "stop" } as const;
  const chunks: Chunk[] = [
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: text },
    { type: "text-end", id: "t" },
    { type: "finish", finishReason, usage },
  ];
  return new MockLanguageModelV3({ doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) });
}

/** All that a model was given of the conversation in its last call. */
function heard(model: MockLanguageModelV3): string {
  const prompt = model.doGenerateCalls.at(-1)?.prompt as Prompt;
  return JSON.stringify(prompt.filter(({ role }) => role !== "system"));
}

/** Waits until an agent has stored all that it says, which it does in the background. */
async function settled(memory: Memory, count: number, user = "u", conversation = "c"): Promise<UIMessage[]> {
  for (;;) {
    const messages = await memory.getMessages(user, conversation);
    if (messages.length >= count) {
      return messages;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const turn = { memory: { userId: "u", conversationId: "c" } };

function texts(messages: UIMessage[]): string[] {
  return messages.map(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
}

describe("an agent with RemoraMemory", () => {
  /** The calls of a question and of an answer. */
  const ASKED = ["appendMessages", "readConversation"];
  const ANSWERED = ["appendMessages", "saveSteps"];

  async function arrived(calls: string[], count: number): Promise<void> {
    while (calls.length < count) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  for (const thinks of [true, false]) {
    test(`makes at most five calls in a turn, with a model that ${thinks ? "thinks" : "does not think"}`, async () => {
      const { client, calls } = counted(options);
      let asked = 0;
      // It thinks until all that VoltAgent stores of the question is under way.
      const think = async () => {
        if (thinks) {
          await arrived(calls, asked);
        }
      };
      const memory = new RemoraMemory({ client });
      const agent = new Agent({
        name: "guide",
        instructions: "Guide.",
        model: thinking(think, saying("Sure.")),
        memory,
      });

      const expected: string[][] = [];
      const made: string[][] = [];
      for (let number = 0; number < 3; number++) {
        const begun = calls.length;
        const first = number === 0 ? ["createConversation", ...ASKED] : ASKED;
        asked = begun + first.length;
        expected.push([...first, ...ANSWERED].toSorted());
        await agent.generateText(`Question ${number}`, turn);
        await arrived(calls, asked + ANSWERED.length);
        made.push(calls.slice(begun).toSorted());
      }
      const all = calls.length;
      await memory.close();

      assert.deepEqual(made, expected);
      assert.deepEqual(calls.slice(all), []);
    });
  }

  test("stores an answer after its question, also while the conversation is still being created", async () => {
    let creating = false;
    class SlowToCreate extends RemoraMemoryAdapter {
      override async createConversation(input: CreateConversationInput): Promise<Conversation> {
        creating = true;
        await new Promise((resolve) => setTimeout(resolve, 50));
        return super.createConversation(input);
      }
    }
    const untilCreating = async () => {
      while (!creating) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    };
    const memory = new RemoraMemory({ storage: new SlowToCreate(options) });
    const model = thinking(untilCreating, saying("Answer"));
    const agent = new Agent({ name: "guide", instructions: "Guide.", model, memory });

    await agent.generateText("Question", turn);
    const stored = await settled(memory, 2);
    await memory.close();

    assert.deepEqual(texts(stored), ["Question", "Answer"]);
  });

  test("remembers after the sidecar was killed between its turns", async () => {
    const memory = new RemoraMemory(options);
    const first = thinking(() => settled(memory, 1), saying("Nice to meet you, Ann."));
    await new Agent({ name: "guide", instructions: "Guide.", model: first, memory }).generateText("I am Ann.", turn);
    await settled(memory, 2);

    await restart();

    const later = new RemoraMemory(options);
    const second = thinking(() => settled(later, 3), saying("Ann."));
    const agent = new Agent({ name: "guide", instructions: "Guide.", model: second, memory: later });
    const { text } = await agent.generateText("Who am I?", turn);
    assert.equal(text, "Ann.");
    assert.match(heard(second), /I am Ann\..*Nice to meet you, Ann\..*Who am I\?/);
    const messages = await settled(later, 4);
    assert.deepEqual(texts(messages), ["I am Ann.", "Nice to meet you, Ann.", "Who am I?", "Ann."]);
    assert.deepEqual(
      (await later.getConversationSteps("u", "c")).map(({ content }) => content),
      ["Nice to meet you, Ann.", "Ann."],
    );
    assert.equal((await later.queryConversations({ userId: "u" })).length, 1);
  });

  test("keeps the tools that it used, and their results", async () => {
    const memory = new RemoraMemory(options);
    const look = createTool({
      name: "look",
      description: "Looks up the weather.",
      parameters: z.object({ city: z.string() }),
      execute: async ({ city }) => ({ city, sky: "blue" }),
    });
    const model = thinking(() => settled(memory, 1), calling("look", { city: "Vienna" }), saying("Blue."));
    const agent = new Agent({ name: "guide", instructions: "Guide.", model, memory, tools: [look] });

    await agent.generateText("How is the sky in Vienna?", turn);

    const [, answer] = await settled(memory, 2);
    const part = answer?.parts.find(({ type }) => type === "tool-look");
    const output = { type: "json", value: { city: "Vienna", sky: "blue" } };
    assert.deepEqual(part && "output" in part && part.output, output);
    await agent.generateText("And now?", turn);
    assert.match(heard(model), /"toolName":"look".*"sky":"blue"/);
    const types = (await memory.getConversationSteps("u", "c")).map(({ type }) => type);
    // VoltAgent gives the result the id of the call, which it replaces, in memory as well.
    assert.deepEqual(types.slice(0, 2), ["tool_result", "text"]);
  });

  test("keeps working memory across turns and restarts", async () => {
    const workingMemory = { enabled: true, scope: "user", template: "# Profile\n- Name:" } as const;
    const memory = new RemoraMemory({ ...options, workingMemory });
    const model = answering(
      calling("update_working_memory", { content: "# Profile\n- Name: Ann", mode: "replace" }),
      saying("Noted."),
    );
    await new Agent({ name: "guide", instructions: "Guide.", model, memory }).generateText("I am Ann.", turn);
    await settled(memory, 2);

    await restart();

    const later = new RemoraMemory({ ...options, workingMemory });
    const second = answering(saying("Ann."));
    const agent = new Agent({ name: "guide", instructions: "Guide.", model: second, memory: later });
    await agent.generateText("Who am I?", { memory: { userId: "u", conversationId: "another" } });
    assert.match(JSON.stringify(second.doGenerateCalls.at(-1)?.prompt), /- Name: Ann/);
  });

  test("is not shown what its sub-agents were told and said, which is kept", async () => {
    const memory = new RemoraMemory(options);
    const agent = (id: string, model: MockLanguageModelV3, subAgents: Agent[] = []) =>
      new Agent({ id, name: id, instructions: `Be a ${id}.`, model, memory, subAgents });
    const helper = agent("helper", streaming("At ten."));
    const task = { task: "Look up the train.", targetAgents: ["helper"] };
    const model = answering(calling("delegate_task", task), saying("It leaves at ten."));
    const guide = agent("guide", model, [helper]);

    await guide.generateText("When does the train leave?", turn);
    const messages = await settled(memory, 4);
    await guide.generateText("Thanks.", turn);

    const of = (message: UIMessage) => (message.metadata as { subAgentId?: string }).subAgentId;
    const delegated = messages.filter((message) => of(message) === "helper");
    assert.deepEqual(
      delegated.map(({ role }) => role),
      ["user", "assistant"],
    );
    assert.match(texts(delegated).join(), /Look up the train.*At ten\./s);
    const told = model.doGenerateCalls.at(-1)?.prompt.filter(({ role }) => role === "user") ?? [];
    assert.deepEqual(
      told.map(({ content }) => JSON.stringify(content).match(/"text":"(.*?)"/)?.[1]),
      ["When does the train leave?", "Thanks."],
    );
  });

  test("embeds with a model of the AI SDK", async () => {
    const doEmbed = async ({ values }: { values: string[] }) => ({
      embeddings: values.map((value) => [value.length, 1, value.includes("train") ? 50 : 0]),
      warnings: [],
    });
    const embedding = new AiSdkEmbeddingAdapter(new MockEmbeddingModelV3({ doEmbed }));
    const memory = new RemoraMemory({ ...options, embedding });
    await memory.createConversation({ id: "c", userId: "u", resourceId: "guide", title: "T", metadata: {} });
    const said = (id: string, text: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] });
    await memory.addMessages([said("a", "The train is late."), said("b", "Hello."), said("d", "Bye.")], "u", "c");
    const model = answering(saying("Late."));
    const agent = new Agent({ name: "guide", instructions: "Guide.", model, memory });

    const semanticMemory = { semanticLimit: 1 };
    await agent.generateText("What about the train?", { memory: { ...turn.memory, options: { semanticMemory } } });

    assert.match(heard(model), /Bye\..*The train is late\./);
    assert.doesNotMatch(heard(model), /Hello\./);
  });

  for (const [contextLimit, recent] of [
    [undefined, 5],
    [20, 12],
  ] as const) {
    test(`with a contextLimit of ${contextLimit}, a semantic read has ${recent} of 12 recent messages`, async () => {
      const memory = new RemoraMemory({ ...options, contextLimit });
      await memory.createConversation({ id: "c", userId: "u", resourceId: "guide", title: "T", metadata: {} });
      const ids = Array.from({ length: 12 }, (_, place) => `m${place}`);
      const said = (id: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text: `${id} is here.` }] });
      await memory.addMessages(ids.map(said), "u", "c");
      const model = answering(saying("Late."));
      const agent = new Agent({ name: "guide", instructions: "Guide.", model, memory });

      const semanticMemory = { semanticThreshold: 1 };
      const asked = { contextLimit: 20, semanticMemory };
      await agent.generateText("zebra", { memory: { ...turn.memory, options: asked } });

      assert.deepEqual(heard(model).match(/m\d+ is here/g)?.length, recent);
    });
  }
});

test("an agent with VoltAgent's Memory on the adapter remembers after the sidecar was killed", async () => {
  const remembering = () => new Memory({ storage: new RemoraMemoryAdapter(options) });
  const memory = remembering();
  const first = thinking(() => settled(memory, 1), saying("Nice to meet you, Ann."));
  await new Agent({ name: "guide", instructions: "Guide.", model: first, memory }).generateText("I am Ann.", turn);
  await settled(memory, 2);

  await restart();

  const second = answering(saying("Ann."));
  const agent = new Agent({ name: "guide", instructions: "Guide.", model: second, memory: remembering() });
  await agent.generateText("Who am I?", turn);
  assert.match(heard(second), /I am Ann\..*Nice to meet you, Ann\..*Who am I\?/);
});
