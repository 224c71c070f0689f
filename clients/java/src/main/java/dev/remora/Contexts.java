package dev.remora;

import dev.remora.v1.AssembleContextResponse;
import dev.remora.v1.Item;
import dev.remora.v1.Message;
import dev.remora.v1.Section;
import java.util.ArrayList;
import java.util.List;

/** What a model is sent of a context. */
public final class Contexts {
    private Contexts() {}

    /**
     * The messages that a model is sent, in their order. {@code memory} and {@code earlier} take the place of the items that they
     * quote: facts and recalled messages by themselves would look like what was said just now. A transcript is one message of the
     * user.
     */
    public static List<Message> messages(AssembleContextResponse reply) {
        if (!reply.getText().isEmpty()) {
            return List.of(Message.newBuilder().setRole("user").setText(reply.getText()).build());
        }
        List<Message> messages = new ArrayList<>();
        Message last = null;
        for (Item item : reply.getItemsList()) {
            Message quoting = quoting(reply, item.getSection());
            if (quoting == null) {
                messages.add(item.getMessage());
            } else if (quoting != last) {
                messages.add(quoting);
            }
            last = quoting;
        }
        return messages;
    }

    /** The message that takes the place of a section's items; null if they stand by themselves. */
    private static Message quoting(AssembleContextResponse reply, Section section) {
        Message memory = reply.hasMemory() ? reply.getMemory() : null;
        Message earlier = reply.hasEarlier() ? reply.getEarlier() : null;
        boolean inSystem = memory != null && memory.getRole().equals("system");
        return switch (section) {
            case SECTION_STATIC_FACTS, SECTION_FACTS -> memory;
            case SECTION_SYSTEM -> inSystem ? memory : null;
            case SECTION_RECALLED -> inSystem ? memory : earlier;
            default -> null;
        };
    }
}
