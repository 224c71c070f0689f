// What `check_npm.sh` runs where the packed client is installed.
import { randomUUID } from "node:crypto";
import { ConversationNotFoundError, Remora } from "@remora/client";
import { type ListMessagesResponse, Profile } from "@remora/client/v1";

async function use(): Promise<void> {
  const remora = new Remora({ tenant: randomUUID(), timeoutMs: 60_000 });
  await remora.conversations.appendMessages({
    conversationId: "support-42",
    createIfMissing: { userId: "sarah" },
    messages: [{ role: "user", text: "Can I work abroad?" }],
  });
  const { messages }: ListMessagesResponse = await remora.conversations.listMessages({ conversationId: "support-42" });
  const { hits } = await remora.memory.searchMessages({
    scope: { case: "userId", value: "sarah" },
    query: { case: "text", value: "abroad" },
    options: { profile: Profile.LEXICAL },
  });
  const missing = await remora.conversations
    .getConversation({ conversationId: "none" })
    .catch((error: unknown) => error);
  if (messages.length !== 1 || hits.length !== 1 || !(missing instanceof ConversationNotFoundError)) {
    throw new Error("the packed client does not work");
  }
}

use();
