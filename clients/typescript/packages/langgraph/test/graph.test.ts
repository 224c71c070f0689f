// A graph of LangGraph's with Remora beneath: interrupts, resuming, going back in time, subgraphs, and a server that dies.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, Command, interrupt, MessagesAnnotation, Send, START, StateGraph } from "@langchain/langgraph";
import { server } from "../../client/test/fresh.js";
import { RemoraSaver, RemoraStore } from "../src/index.js";
import { collected } from "./collected.js";

const { fresh, restart } = server(true);

const State = Annotation.Root({
  steps: Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
  answer: Annotation<string>(),
});

function refunds(checkpointer: RemoraSaver) {
  return new StateGraph(State)
    .addNode("check", () => ({ steps: ["check"] }))
    .addNode("ask", () => ({ steps: ["ask"], answer: interrupt<string, string>("Refund 20?") }))
    .addNode("pay", ({ answer }) => ({ steps: [`pay ${answer}`] }))
    .addEdge(START, "check")
    .addEdge("check", "ask")
    .addEdge("ask", "pay")
    .compile({ checkpointer });
}

function thread(id = "t1"): { configurable: { thread_id: string } } {
  return { configurable: { thread_id: id } };
}

describe("a graph", () => {
  test("waits at an interrupt through a crash of the server, and is resumed by another process", async () => {
    const options = fresh();
    const waiting = await refunds(new RemoraSaver(options)).invoke({ steps: ["begin"] }, thread());
    await restart();

    const later = refunds(new RemoraSaver(options));
    const state = await later.getState(thread());
    const done = await later.invoke(new Command({ resume: "yes" }), thread());

    assert.deepEqual(waiting.steps, ["begin", "check"]);
    assert.deepEqual(state.next, ["ask"]);
    assert.equal(state.tasks[0]?.interrupts[0]?.value, "Refund 20?");
    assert.deepEqual(done.steps, ["begin", "check", "ask", "pay yes"]);
    assert.equal(done.answer, "yes");
  });

  test("goes back to a checkpoint and on from there, and keeps both ways", async () => {
    const graph = refunds(new RemoraSaver(fresh()));
    await graph.invoke({ steps: [] }, thread());
    await graph.invoke(new Command({ resume: "yes" }), thread());
    const history = await collected(graph.getStateHistory(thread()));
    const asked = history.find(({ next }) => next[0] === "ask");
    assert.ok(asked);

    const forked = await graph.updateState(asked.config, { steps: ["changed"] });
    await graph.invoke(null, forked);
    const other = await graph.invoke(new Command({ resume: "no" }), thread());

    assert.deepEqual(other.steps, ["check", "changed", "ask", "pay no"]);
    const first = history[0];
    assert.ok(first);
    assert.deepEqual((await graph.getState(first.config)).values.steps, ["check", "ask", "pay yes"]);
  });

  test("copies a checkpoint with its own values, where another branch has others of the same versions", async () => {
    const graph = refunds(new RemoraSaver(fresh()));
    await graph.invoke({ steps: [] }, thread());
    const asked = await graph.getState(thread());
    const paid = await graph.invoke(new Command({ resume: "yes" }), thread());
    const first = await graph.getState(thread());
    const forked = await graph.updateState(asked.config, { steps: ["changed"] });
    await graph.invoke(null, forked);
    await graph.invoke(new Command({ resume: "no" }), thread());

    const copy = await graph.updateState(first.config, null, "__copy__");

    const { steps, answer } = (await graph.getState(copy)).values;
    assert.deepEqual({ steps, answer }, { steps: paid.steps, answer: "yes" });
  });

  test("keeps the writes of tasks that were done when one of them failed", async () => {
    const runs: string[] = [];
    let fails = true;
    const work = async ({ name }: { name: string }): Promise<Partial<typeof State.State>> => {
      runs.push(name);
      await new Promise((resolve) => setTimeout(resolve, name === "c" ? 50 : 0));
      if (name === "c" && fails) {
        throw new Error("c failed");
      }
      return { steps: [name] };
    };
    const graph = new StateGraph(State)
      .addNode("work", work as never)
      .addConditionalEdges(START, () => ["a", "b", "c"].map((name) => new Send("work", { name })))
      .compile({ checkpointer: new RemoraSaver(fresh()) });

    await assert.rejects(graph.invoke({ steps: [] }, thread()), /c failed/);
    fails = false;
    const done = await graph.invoke(null, thread());

    assert.deepEqual(done.steps, ["a", "b", "c"]);
    assert.deepEqual(runs.sort(), ["a", "b", "c", "c"]);
  });

  test("has subgraphs with interrupts of their own", async () => {
    const checkpointer = new RemoraSaver(fresh());
    const inner = new StateGraph(State)
      .addNode("ask", () => ({ answer: interrupt<string, string>("inside"), steps: ["inner"] }))
      .addEdge(START, "ask")
      .compile();
    const outer = new StateGraph(State).addNode("inner", inner).addEdge(START, "inner").compile({ checkpointer });
    await outer.invoke({ steps: ["outer"] }, thread());

    const state = await outer.getState(thread(), { subgraphs: true });
    const done = await outer.invoke(new Command({ resume: "yes" }), thread());

    const within = state.tasks[0]?.state;
    assert.ok(within && "values" in within);
    assert.match(String(within.config.configurable?.checkpoint_ns), /^inner:/);
    assert.equal(done.answer, "yes");
  });

  test("keeps messages as messages, over many turns", async () => {
    const options = fresh();
    const chat = (checkpointer: RemoraSaver) =>
      new StateGraph(MessagesAnnotation)
        .addNode("answer", ({ messages }) => ({ messages: [new AIMessage(`I saw ${messages.length}`)] }))
        .addEdge(START, "answer")
        .compile({ checkpointer });
    const graph = chat(new RemoraSaver(options));
    for (let turn = 0; turn < 10; turn++) {
      await graph.invoke({ messages: [new HumanMessage(`turn ${turn}`)] }, thread());
    }

    const { messages } = (await chat(new RemoraSaver(options)).getState(thread())).values as {
      messages: BaseMessage[];
    };

    assert.equal(messages.length, 20);
    assert.ok(messages[0] instanceof HumanMessage && messages[19] instanceof AIMessage);
    assert.equal(messages[19].content, "I saw 19");
  });

  test("reads and writes the store of its nodes", async () => {
    const options = fresh();
    const store = new RemoraStore(options);
    const graph = new StateGraph(State)
      .addNode("note", async (_state, { store: given }) => {
        await given?.put(["users", "ana"], "diet", { text: "no fish" });
        const found = await given?.search(["users"]);
        return { steps: (found ?? []).map(({ value }) => String((value as { text: string }).text)) };
      })
      .addEdge(START, "note")
      .compile({ checkpointer: new RemoraSaver(options), store });

    await graph.invoke({ steps: [] }, thread());
    const again = await graph.invoke({ steps: [] }, thread("t2"));

    assert.deepEqual(again.steps, ["no fish"]);
    assert.deepEqual((await store.get(["users", "ana"], "diet"))?.value, { text: "no fish" });
  });
});
