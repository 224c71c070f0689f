// A conversation that is stored and given back as the context for the next call of a model.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"remora.dev/remora"
	remorav1 "remora.dev/remora/v1"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	memory, err := remora.New(remora.WithTenant("acme"), remora.WithTimeout(time.Minute))
	if err != nil {
		return err
	}
	defer memory.Close()

	_, err = memory.Conversations.GetConversation(ctx, &remorav1.GetConversationRequest{ConversationId: "support-42"})
	if errors.Is(err, remora.ConversationNotFound) {
		fmt.Println("a new conversation")
	} else if err != nil {
		return err
	}

	_, err = memory.Conversations.AppendMessages(ctx, &remorav1.AppendMessagesRequest{
		ConversationId:  "support-42",
		CreateIfMissing: &remorav1.Conversation{UserId: "sarah"},
		Messages:        []*remorav1.Message{{Role: "user", Text: "Can I work abroad?"}},
	})
	if err != nil {
		return err
	}

	// It sees the message, whose write this client was told of.
	next, err := memory.Memory.AssembleContext(ctx, &remorav1.AssembleContextRequest{ConversationId: "support-42", MaxTokens: 4000})
	if err != nil {
		return err
	}
	for _, message := range remora.ContextMessages(next) {
		fmt.Printf("%s: %s\n", message.GetRole(), message.GetText())
	}
	return nil
}
