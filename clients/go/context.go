package remora

import remorav1 "remora.dev/remora/v1"

// ContextMessages gives the messages that a model is sent of a context, in their order. `Memory` and `Earlier` take the place of the
// items that they quote: facts and recalled messages by themselves would look like what was said just now. A transcript is one
// message of the user.
func ContextMessages(reply *remorav1.AssembleContextResponse) []*remorav1.Message {
	if text := reply.GetText(); text != "" {
		return []*remorav1.Message{{Role: "user", Text: text}}
	}
	var messages []*remorav1.Message
	var last *remorav1.Message
	for _, item := range reply.GetItems() {
		quoting := quotingMessage(reply, item.GetSection())
		if quoting == nil {
			messages = append(messages, item.GetMessage())
		} else if quoting != last {
			messages = append(messages, quoting)
		}
		last = quoting
	}
	return messages
}

// quotingMessage is the message that takes the place of a section's items, nil if they stand by themselves.
func quotingMessage(reply *remorav1.AssembleContextResponse, section remorav1.Section) *remorav1.Message {
	inSystem := reply.GetMemory().GetRole() == "system"
	switch section {
	case remorav1.Section_SECTION_STATIC_FACTS, remorav1.Section_SECTION_FACTS:
		return reply.GetMemory()
	case remorav1.Section_SECTION_SYSTEM:
		if inSystem {
			return reply.GetMemory()
		}
	case remorav1.Section_SECTION_RECALLED:
		if inSystem {
			return reply.GetMemory()
		}
		return reply.GetEarlier()
	}
	return nil
}
