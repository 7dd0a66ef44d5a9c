// Eino ADK, as its quick start has a user write it: a ChatModelAgent with two inferred tools, a streaming Runner, the events read to
// their end. The history is the caller's: what the events brought is appended.
//
// Ways to stop: `immediate` and `after-tools` are adk.WithCancel with these modes, `context` is the context given to Run.
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

type what struct {
	What string `json:"what"`
}

var (
	output  sync.Mutex
	history []adk.Message
)

func tell(line any) {
	output.Lock()
	defer output.Unlock()
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

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

// collect reads the events of a turn to their end.
func collect(events *adk.AsyncIterator[*adk.AgentEvent]) (err error) {
	for {
		event, ok := events.Next()
		if !ok {
			return err
		}
		if event.Err != nil {
			err = event.Err
			continue
		}
		if event.Output == nil || event.Output.MessageOutput == nil {
			continue
		}
		message, failed := event.Output.MessageOutput.GetMessage()
		if failed != nil {
			err = failed
			continue
		}
		history = append(history, message)
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
	deaf := must(utils.InferTool("deaf", "Works", func(_ context.Context, asked *what) (string, error) {
		return post(background, "deaf", asked)
	}))
	agent := must(adk.NewChatModelAgent(background, &adk.ChatModelAgentConfig{
		Name: "agent", Description: "an agent", Model: model,
		Handlers: []adk.ChatModelAgentMiddleware{must(patchtoolcalls.New(background, nil))},
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{work, deaf}}}}))
	runner := adk.NewRunner(background, adk.RunnerConfig{Agent: agent, EnableStreaming: true})

	tell(map[string]any{"at": "ready", "stops": []string{"immediate", "after-tools", "context"}})
	stops := map[string]func(){}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var wish struct{ Do, Text, How string }
		if json.Unmarshal(lines.Bytes(), &wish) != nil {
			continue
		}
		switch wish.Do {
		case "start", "next":
			history = append(history, schema.UserMessage(wish.Text))
			ctx, end := context.WithCancel(background)
			option, cancel := adk.WithCancel()
			stops["context"] = end
			stops["immediate"] = func() { cancel(adk.WithAgentCancelMode(adk.CancelImmediate)) }
			stops["after-tools"] = func() { cancel(adk.WithAgentCancelMode(adk.CancelAfterToolCalls)) }
			go func() {
				err := collect(runner.Run(ctx, history, option))
				// The context of a run ends with it, as its documentation asks.
				end()
				says := "done"
				var stopped *adk.CancelError
				if errors.As(err, &stopped) || errors.Is(err, context.Canceled) {
					says = "stopped"
				} else if err != nil {
					fmt.Fprintln(os.Stderr, err)
					says = "failed"
				}
				tell(map[string]any{"at": "told", "says": says})
			}()
		case "stop":
			if stop := stops[wish.How]; stop != nil {
				go stop()
			}
		}
	}
}
