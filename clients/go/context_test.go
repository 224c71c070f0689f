package remora_test

import (
	"context"
	"strings"
	"testing"

	"remora.dev/remora"
	remorav1 "remora.dev/remora/v1"
)

func TestAModelIsSentFactsAndRecalledMessagesAsWhatTheyAre(t *testing.T) {
	memory := connect(t, remora.WithEndpoint(startServer(t, overUnix(t))))
	said := []*remorav1.Message{
		{Role: "user", Text: "The alarm code of Colombo is 4711."},
		{Role: "assistant", Text: "Noted."},
		{Role: "user", Text: "What is the alarm code of Colombo?"},
	}
	_, err := memory.Conversations.AppendMessages(context.Background(), &remorav1.AppendMessagesRequest{
		ConversationId: "hr", CreateIfMissing: &remorav1.Conversation{UserId: "sarah"}, Messages: said,
	})
	must(t, err)
	_, err = memory.Memory.AddFacts(context.Background(), &remorav1.AddFactsRequest{
		UserId: "sarah", Facts: []*remorav1.Fact{{Subject: "user", Predicate: "lives in", Object: "Colombo"}},
	})
	must(t, err)

	for rendering, expected := range map[remorav1.Rendering][]string{
		remorav1.Rendering_RENDERING_MESSAGES:      {"system Be brief.", "user lives in Colombo", "user 4711", "user What is the alarm code"},
		remorav1.Rendering_RENDERING_SYSTEM_PROMPT: {"system Be brief. lives in Colombo 4711", "user What is the alarm code"},
		remorav1.Rendering_RENDERING_TRANSCRIPT:    {"user Be brief. lives in Colombo 4711 What is the alarm code"},
	} {
		newest := int32(1)
		reply, err := memory.Memory.AssembleContext(context.Background(), &remorav1.AssembleContextRequest{
			ConversationId: "hr", MaxTokens: 500, System: "Be brief.", RecentMessages: &newest, Rendering: rendering,
			Query: "alarm code of Colombo", Search: &remorav1.SearchOptions{}, Facts: &remorav1.ContextFacts{},
		})
		must(t, err)
		messages := remora.ContextMessages(reply)
		if len(messages) != len(expected) {
			t.Fatalf("%v: %v", rendering, messages)
		}
		for at, message := range messages {
			role, parts, _ := strings.Cut(expected[at], " ")
			if message.GetRole() != role {
				t.Errorf("%v: message %d has the role %s", rendering, at, message.GetRole())
			}
			for _, part := range strings.Fields(parts) {
				if !strings.Contains(message.GetText(), part) {
					t.Errorf("%v: message %d has no %q: %s", rendering, at, part, message.GetText())
				}
			}
		}
	}
}

func TestRecalledMessagesOfOtherOrdersStandByThemselves(t *testing.T) {
	item := func(section remorav1.Section, text string) *remorav1.Item {
		return &remorav1.Item{Section: section, Message: &remorav1.Message{Role: "user", Text: text}}
	}
	recalled, recent := remorav1.Section_SECTION_RECALLED, remorav1.Section_SECTION_RECENT
	reply := &remorav1.AssembleContextResponse{Items: []*remorav1.Item{item(recalled, "a"), item(recent, "b"), item(recalled, "c")}}

	var texts []string
	for _, message := range remora.ContextMessages(reply) {
		texts = append(texts, message.GetText())
	}
	if strings.Join(texts, " ") != "a b c" {
		t.Fatal(texts)
	}
}
