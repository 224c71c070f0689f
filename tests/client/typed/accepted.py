"""What type checkers accept of a user's code, in their strict modes. Nothing here is run."""

from array import array
from datetime import UTC, datetime, timedelta

import numpy as np
from anthropic import Anthropic
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessage

from remora import (
    AsyncRemora,
    Condition,
    Context,
    Conversation,
    Embedding,
    HistoryEntry,
    Hit,
    Message,
    MessageExtras,
    Remora,
    RemoraError,
    Role,
    SearchOptions,
    SearchResult,
    Step,
    Suspension,
    Vector,
    VectorSearchResult,
    WorkflowRun,
    WorkflowRunFields,
    WorkflowStep,
    edits,
    errors,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def turn(llm: OpenAI) -> str | None:
    with Remora.start() as memory:
        chat = memory.conversation("support-42", user_id="sarah", title="Leave", metadata={"team": 7})
        chat.append({"role": "user", "content": "Can I work abroad?", "id": "m1", "sent_time": NOON})
        context: Context = chat.context(4000, recall={"k": 5, "profile": "hybrid"}, recall_scope="user")
        reply = llm.chat.completions.create(model="gpt-5", messages=context.messages)
        said: ChatCompletionMessage = reply.choices[0].message
        chat.append(said)
        chat.append([said, {"role": "user", "content": "Thanks."}, Message(Role.custom("narrator"), "Night falls.")])
        return said.content


def other_providers(llm: OpenAI, claude: Anthropic, chat: Conversation) -> None:
    context = chat.context(4000, model="gpt-5", system="Be brief.", allow_partial=True)
    chat.append(llm.responses.create(model="gpt-5", input=context.to_responses()).output)
    messages = context.to_anthropic()["messages"]
    chat.append(claude.messages.create(model="opus", max_tokens=1000, messages=messages))


async def async_turn(llm: AsyncOpenAI) -> str | None:
    async with await AsyncRemora.start(":memory:") as memory:
        chat = memory.conversation("support-42", user_id="sarah")
        await chat.append({"role": "user", "content": "Can I work abroad?"}, request_id="turn-1")
        context = await chat.context(max_tokens=4000)
        reply = await llm.chat.completions.create(model="gpt-5", messages=context.messages)
        await chat.append(reply.choices[0].message)
        return reply.choices[0].message.content


def search(memory: Remora) -> list[Hit]:
    where = Condition("age", ">=", 18) & ~Condition("topic", "in", "visa", "tax")
    options: SearchOptions = {"k": 3, "sent_after": NOON, "weights": {"bm25": 0.5}, "where": where}
    result: SearchResult = memory.search("leave", user_id="sarah", **options)
    everyone = memory.search_all_users(Embedding.of("mine", [0.1, 0.2]), explain=True, roles=["user"])
    found = memory.conversation("c").search("leave", where={"topic": "visa"}, received_before=NOON)
    return [*result, *everyone, *found]


def rest(memory: Remora) -> str:
    chat = memory.conversation("c", user_id="sarah")
    extras: MessageExtras = {"id": "m1", "attributes": {"age": 18}}
    chat.edit([edits.Append(Message.from_openai({"role": "user", "content": "hello"}, **extras)), edits.Keep(-20)])
    chat.save_steps([Step("s1", "tool_call", arguments={"city": "Rome"})])
    try:
        return chat.messages(limit=5, after=3)[0].text
    except errors.ConversationNotFoundError as error:
        return error.message
    except RemoraError as error:
        fields = [violation.field for violation in error.field_violations]
        return f"{error.reason} {error.code} {error.request_id} {fields}"


def workflows(memory: Remora) -> timedelta | None:
    waits = Suspension(reason="waits for Ana", checkpoint={"at": 2})
    memory.workflows.save_run(WorkflowRun("r", "orders", "suspended", suspension=waits, metadata={"shop": "Rome"}))
    for run in memory.workflows.list_runs(status="suspended", created_from=NOON, metadata={"shop": "Rome"}):
        revision: int = memory.workflows.resume_run(run.id, expected_revision=run.revision)
        changes: WorkflowRunFields = {"status": "completed", "output": [1], "end_time": NOON}
        memory.workflows.update_run(run.id, expected_revision=revision, **changes)
    memory.workflows.save_steps([WorkflowStep("s", "r", "running", input={"order": 5})])
    memory.workflows.update_step("s", run_id="r", status="completed")
    return memory.workflows.get_stats("orders").mean_duration


async def history(memory: AsyncRemora) -> list[str]:
    await memory.history.save_entry(HistoryEntry("e", "support", input="Can I work abroad?"))
    await memory.history.update_entry("e", status="completed", output={"text": "Yes."})
    related = await memory.history.get_entry_with_related("e")
    spans = await memory.history.list_spans("t")
    return [*(step.name for step in related.steps), *(span.kind for span in spans)]


def vectors(memory: Remora) -> list[float]:
    docs = memory.vectors("docs", user_id="ana")
    docs.upsert([Vector("a", [1, 0.5]), Vector("b", np.ones(2)), Vector("c", array("f", [1, 2]))])
    docs.upsert(Vector("d", memory.embed("leave")[0], attributes={"year": 2026}))
    nearest: VectorSearchResult = docs.search(np.zeros(2, np.float32), k=3, where={"year": 2026})
    found = docs.search("work abroad", where=Condition("year", ">", 2025) | Condition("topic", "present"))
    return [*(hit.score for hit in nearest), *found[0].vector.values]
