"""What type checkers refuse of a user's code: each line with the mark, and no other. Nothing here is run."""

from remora import Condition, Message, Remora, SearchOptions, Vector, WorkflowRun

memory = Remora()
chat = memory.conversation("c", user_id="ana")

chat.append("hello")  # refused
chat.append(5)  # refused
chat.append(None)  # refused
chat.append(["hello"])  # refused
chat.append(role="user", content="hello")  # refused
memory.search("PIN")  # refused
memory.search("PIN", user_id=None)  # refused
memory.search("PIN", user="ana")  # refused
memory.search_all_users("PIN", user_id="ana")  # refused
chat.search("PIN", top_k=3)  # refused
chat.search("PIN", k="3")  # refused
chat.search("PIN", profile="vectors")  # refused
chat.search("PIN", sent_after="2026-11-21")  # refused
chat.search("PIN", weights={"bm52": 1})  # refused
chat.context(recall={"top_k": 3})  # refused
chat.context("my PIN")  # refused
chat.context(recall_scope="tenant")  # refused
memory.conversation("c", titel="Leave")  # refused
memory.conversation(7)  # refused
memory.list_conversations(order_by="updated")  # refused
Condition("age", "gte", 18)  # refused
Message("user", content="hello")  # refused
Remora(timeout=None)  # refused
chat.search("PIN", timeout=None)  # refused
WorkflowRun("r", "orders", "done")  # refused
memory.workflows.save_run({"id": "r"})  # refused
memory.workflows.update_run("r", state={})  # refused
memory.workflows.resume_run("r")  # refused
memory.workflows.list_runs(status="paused")  # refused
memory.history.update_entry("e", agent_id="a")  # refused
memory.vectors("docs").upsert({"id": "v"})  # refused
memory.vectors("docs").search(5)  # refused
Vector("v", "text")  # refused
options: SearchOptions = {"limit": 3}  # refused
chat.append({"role": "user", "content": "hello"})
