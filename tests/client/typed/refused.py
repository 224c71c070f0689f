"""What type checkers refuse of a user's code: each line with the mark, and no other. Nothing here is run."""

from remora import Condition, Message, Remora, SearchOptions

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
options: SearchOptions = {"limit": 3}  # refused
chat.append({"role": "user", "content": "hello"})
