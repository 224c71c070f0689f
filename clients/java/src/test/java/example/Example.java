package example;

import dev.remora.Contexts;
import dev.remora.Reason;
import dev.remora.Remora;
import dev.remora.RemoraException;
import dev.remora.v1.AppendMessagesRequest;
import dev.remora.v1.AssembleContextRequest;
import dev.remora.v1.Conversation;
import dev.remora.v1.GetConversationRequest;
import dev.remora.v1.Message;
import io.grpc.StatusRuntimeException;
import java.time.Duration;

/** A conversation that is stored and given back as the context for the next call of a model. */
public final class Example {
    private static final String CONVERSATION = "support-42";

    private Example() {}

    /** Calls the server that {@code $REMORA_ENDPOINT} names. */
    public static void main(String[] arguments) {
        try (Remora memory = Remora.builder().tenant("acme").timeout(Duration.ofMinutes(1)).build()) {
            greet(memory);
            memory.conversations().appendMessages(AppendMessagesRequest.newBuilder()
                    .setConversationId(CONVERSATION)
                    .setCreateIfMissing(Conversation.newBuilder().setUserId("sarah"))
                    .addMessages(Message.newBuilder().setRole("user").setText("Can I work abroad?"))
                    .build());
            // It sees the message, whose write this client was told of.
            Contexts.messages(memory.memory().assembleContext(
                            AssembleContextRequest.newBuilder().setConversationId(CONVERSATION).setMaxTokens(4000).build()))
                    .forEach(message -> System.out.println(message.getRole() + ": " + message.getText()));
        }
    }

    private static void greet(Remora memory) {
        try {
            memory.conversations().getConversation(GetConversationRequest.newBuilder().setConversationId(CONVERSATION).build());
        } catch (StatusRuntimeException failed) {
            if (!RemoraException.of(failed).is(Reason.CONVERSATION_NOT_FOUND)) {
                throw failed;
            }
            System.out.println("a new conversation");
        }
    }
}
