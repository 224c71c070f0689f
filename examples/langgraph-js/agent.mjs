// An agent of LangGraph.js that remembers its threads and its users: node agent.mjs THREAD "What it is told."

import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import { HumanMessage, SystemMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { RemoraSaver, RemoraStore } from "@remora/langgraph";

/** Answers without a key: it repeats what it was given. */
class Echo extends SimpleChatModel {
  _llmType() {
    return "echo";
  }

  async _call(messages) {
    const heard = messages.map(
      (message) => `- ${message.type}: ${message.text.replaceAll("\n", " ")}`,
    );
    return `I was given:\n${heard.join("\n")}`;
  }
}

const model = new Echo({});

/** What the user said in any thread that has to do with what is said now. */
async function recalled(store, question) {
  const found = await store.search(["users", "ann", "said"], {
    query: question,
    limit: 3,
  });
  return found
    .map(({ value }) => value.text)
    .filter((text) => text !== question);
}

async function answer({ messages }, { store }) {
  const question = messages.at(-1).text;
  const known = await recalled(store, question);
  const system =
    known.length > 0
      ? [new SystemMessage(`Earlier the user said: ${known.join(" | ")}`)]
      : [];
  const reply = await model.invoke([...system, ...messages]);
  await store.put(["users", "ann", "said"], messages.at(-1).id, {
    text: question,
  });
  return { messages: [reply] };
}

const checkpointer = new RemoraSaver();
// Remora's own model embeds. The second label of a namespace is its user: DeleteUser deletes that user's items.
const store = new RemoraStore({ index: { fields: ["text"] }, userLabel: 1 });
const graph = new StateGraph(MessagesAnnotation)
  .addNode("answer", answer)
  .addEdge(START, "answer")
  .compile({ checkpointer, store });

const [
  thread = "trip",
  told = "I am Ann, and I take the night train to Vienna.",
] = process.argv.slice(2);
const { messages } = await graph.invoke(
  { messages: [new HumanMessage(told)] },
  { configurable: { thread_id: thread, user_id: "ann" } },
);
console.log(messages.at(-1).text);
