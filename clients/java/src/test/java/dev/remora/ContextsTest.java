package dev.remora;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.remora.v1.AddFactsRequest;
import dev.remora.v1.AppendMessagesRequest;
import dev.remora.v1.AssembleContextRequest;
import dev.remora.v1.AssembleContextResponse;
import dev.remora.v1.ContextFacts;
import dev.remora.v1.Conversation;
import dev.remora.v1.Fact;
import dev.remora.v1.Item;
import dev.remora.v1.Message;
import dev.remora.v1.Rendering;
import dev.remora.v1.SearchOptions;
import dev.remora.v1.Section;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ContextsTest {
    @Test
    void aModelIsSentFactsAndRecalledMessagesAsWhatTheyAre() throws Exception {
        Map<Rendering, List<String>> expected = Map.of(
                Rendering.RENDERING_MESSAGES,
                List.of("system Be brief.", "user lives in Colombo", "user 4711", "user What is the alarm code"),
                Rendering.RENDERING_SYSTEM_PROMPT,
                List.of("system Be brief. lives in Colombo 4711", "user What is the alarm code"),
                Rendering.RENDERING_TRANSCRIPT,
                List.of("user Be brief. lives in Colombo 4711 What is the alarm code"));
        try (RealServer server = RealServer.start(RealServer.overUnix());
                Remora memory = RealServer.client(server.endpoint())) {
            memory.conversations().appendMessages(AppendMessagesRequest.newBuilder()
                    .setConversationId("hr")
                    .setCreateIfMissing(Conversation.newBuilder().setUserId("sarah"))
                    .addMessages(said("user", "The alarm code of Colombo is 4711."))
                    .addMessages(said("assistant", "Noted."))
                    .addMessages(said("user", "What is the alarm code of Colombo?"))
                    .build());
            memory.memory().addFacts(AddFactsRequest.newBuilder()
                    .setUserId("sarah")
                    .addFacts(Fact.newBuilder().setSubject("user").setPredicate("lives in").setObject("Colombo"))
                    .build());
            expected.forEach((rendering, messages) -> {
                AssembleContextRequest request = AssembleContextRequest.newBuilder()
                        .setConversationId("hr").setMaxTokens(500).setSystem("Be brief.").setRecentMessages(1)
                        .setRendering(rendering).setQuery("alarm code of Colombo")
                        .setSearch(SearchOptions.getDefaultInstance()).setFacts(ContextFacts.getDefaultInstance()).build();
                requireSaid(messages, Contexts.messages(memory.memory().assembleContext(request)));
            });
        }
    }

    @Test
    void recalledMessagesOfOtherOrdersStandByThemselves() {
        AssembleContextResponse reply = AssembleContextResponse.newBuilder()
                .addItems(item(Section.SECTION_RECALLED, "a"))
                .addItems(item(Section.SECTION_RECENT, "b"))
                .addItems(item(Section.SECTION_RECALLED, "c"))
                .build();
        assertEquals(List.of("a", "b", "c"), Contexts.messages(reply).stream().map(Message::getText).toList());
    }

    /** Each of `expected` is a role and words. */
    private static void requireSaid(List<String> expected, List<Message> messages) {
        assertEquals(expected.size(), messages.size(), messages.toString());
        for (int at = 0; at < messages.size(); at++) {
            String[] parts = expected.get(at).split(" ");
            Message message = messages.get(at);
            assertEquals(parts[0], message.getRole());
            for (int word = 1; word < parts.length; word++) {
                assertTrue(message.getText().contains(parts[word]), message.getText());
            }
        }
    }

    private static Item item(Section section, String text) {
        return Item.newBuilder().setSection(section).setMessage(said("user", text)).build();
    }

    private static Message said(String role, String text) {
        return Message.newBuilder().setRole(role).setText(text).build();
    }
}
