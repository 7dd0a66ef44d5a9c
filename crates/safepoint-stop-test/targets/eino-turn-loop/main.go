// Eino's TurnLoop, as its quick start (chapter 11) has a user write it: a loop for a session, each message pushed to it, GenInput that
// takes the session's history, OnAgentEvents that reads the events to their end and keeps what they brought, whole or as far as it came.
// Once stopped, a loop is over, so the next message is pushed to a new one. The middleware patchtoolcalls is what Eino's documentation
// names for a history in which calls were interrupted.
//
// Ways to stop: `immediate`, `graceful` and `turn-end` are Stop(WithImmediate()), Stop(WithGraceful()) and Stop().
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/adk/middlewares/patchtoolcalls"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
)

type loop = adk.TurnLoop[string, *schema.Message]

type what struct {
	What string `json:"what,omitempty"`
}

var (
	output  sync.Mutex
	history []adk.Message
)

func write(line any) {
	output.Lock()
	defer output.Unlock()
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func told(says string) { write(map[string]any{"at": "told", "says": says}) }

// post calls a tool of the test and waits for its answer, or for the end of the context.
func post(ctx context.Context, name string, asked *what) (string, error) {
	body, _ := json.Marshal(asked)
	request, err := http.NewRequestWithContext(ctx, "POST", os.Getenv("STOP_TEST_TOOLS")+"/"+name, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// message is what an event brought, as far as it came.
func message(output *adk.MessageVariant) (adk.Message, error) {
	if !output.IsStreaming {
		return output.Message, nil
	}
	defer output.MessageStream.Close()
	var pieces []adk.Message
	for {
		piece, err := output.MessageStream.Recv()
		if err == nil {
			pieces = append(pieces, piece)
			continue
		}
		if len(pieces) == 0 {
			return nil, err
		}
		whole, failed := schema.ConcatMessages(pieces)
		if err == io.EOF {
			err = failed
		}
		return whole, err
	}
}

func onAgentEvents(_ context.Context, _ *adk.TurnContext[string, *schema.Message], events *adk.AsyncIterator[*adk.AgentEvent]) error {
	var failure error
	for {
		event, ok := events.Next()
		if !ok {
			break
		}
		if event.Err != nil {
			failure = event.Err
		} else if event.Output != nil && event.Output.MessageOutput != nil {
			came, err := message(event.Output.MessageOutput)
			if came != nil {
				history = append(history, came)
			}
			if err != nil {
				failure = err
			}
		}
	}
	if failure == nil {
		told("done")
	}
	return failure
}

// tellEnd says how a loop ended, if it ended in a turn or before the turn of a message.
func tellEnd(session *loop, stop context.CancelFunc) {
	end := session.Wait()
	// The context of a run ends with it, as its documentation asks.
	stop()
	var cancelled *adk.CancelError
	switch {
	case errors.As(end.ExitReason, &cancelled), errors.Is(end.ExitReason, adk.ErrStreamCanceled), len(end.UnhandledItems) > 0:
		told("stopped")
	case end.ExitReason != nil:
		fmt.Fprintln(os.Stderr, end.ExitReason)
		told("failed")
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	background := context.Background()
	model := must(openai.NewChatModel(background, &openai.ChatModelConfig{
		BaseURL: os.Getenv("OPENAI_BASE_URL"), APIKey: os.Getenv("OPENAI_API_KEY"), Model: "stop-test"}))
	work := must(utils.InferTool("work", "Works", func(ctx context.Context, asked *what) (string, error) {
		return post(ctx, "work", asked)
	}))
	deaf := must(utils.InferTool("deaf", "Works, and looks at no stop", func(_ context.Context, asked *what) (string, error) {
		return post(background, "deaf", asked)
	}))
	agent := must(adk.NewChatModelAgent(background, &adk.ChatModelAgentConfig{
		Name: "agent", Description: "an agent", Model: model,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{work, deaf}}},
		Handlers:    []adk.ChatModelAgentMiddleware{must(patchtoolcalls.New(background, nil))}}))
	config := adk.TurnLoopConfig[string, *schema.Message]{
		GenInput: func(_ context.Context, _ *loop, items []string) (*adk.GenInputResult[string, *schema.Message], error) {
			history = append(history, schema.UserMessage(items[0]))
			input := &adk.AgentInput{Messages: append([]adk.Message{}, history...), EnableStreaming: true}
			return &adk.GenInputResult[string, *schema.Message]{Input: input, Consumed: items[:1], Remaining: items[1:]}, nil
		},
		PrepareAgent:  func(context.Context, *loop, []string) (adk.Agent, error) { return agent, nil },
		OnAgentEvents: onAgentEvents,
	}
	stops := map[string][]adk.StopOption{"immediate": {adk.WithImmediate()}, "graceful": {adk.WithGraceful()}, "turn-end": nil}

	write(map[string]any{"at": "ready", "stops": []string{"immediate", "graceful", "turn-end"}})
	var session *loop
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var wish struct{ Do, Text, How string }
		if json.Unmarshal(lines.Bytes(), &wish) != nil {
			continue
		}
		if wish.Do == "stop" {
			session.Stop(stops[wish.How]...)
			continue
		}
		if session != nil {
			if taken, _ := session.Push(wish.Text); taken {
				continue
			}
		}
		session = adk.NewTurnLoop(config)
		session.Push(wish.Text)
		ctx, stop := context.WithCancel(background)
		session.Run(ctx)
		go tellEnd(session, stop)
	}
}
