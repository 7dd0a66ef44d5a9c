// An agent that can be stopped, with the protocol of `stop-test`: Go 1.22, nothing beyond its standard library.
//
// A stop cancels the context of the turn. Each request has that context and closes its connection, and each call without a result gets one.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []Call `json:"tool_calls,omitempty"`
	CallID  string `json:"tool_call_id,omitempty"`
}

type Call struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

const tools = `[{"type": "function", "function": {"name": "work", "description": "Works.",
	"parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}}]`

var history []Message

func tell(line any) { json.NewEncoder(os.Stdout).Encode(line) }

// post asks again as long as the other side is busy.
func post(ctx context.Context, url, body string) (*http.Response, error) {
	for {
		request, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
		answer, err := http.DefaultClient.Do(request)
		if err != nil || answer.StatusCode != http.StatusTooManyRequests {
			return answer, err
		}
		answer.Body.Close()
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		select {
		case <-time.After(time.Duration(max(seconds, 1)) * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ask streams one answer of the model, and returns it as a message.
func ask(ctx context.Context) (message Message, err error) {
	body, _ := json.Marshal(map[string]any{"model": "m", "stream": true, "messages": history, "tools": json.RawMessage(tools)})
	answer, err := post(ctx, os.Getenv("OPENAI_BASE_URL")+"/chat/completions", string(body))
	if err != nil {
		return message, err
	}
	defer answer.Body.Close()
	message.Role = "assistant"
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		var event struct{ Choices []struct{ Delta Message } }
		data := strings.TrimPrefix(lines.Text(), "data: ")
		if data == "[DONE]" {
			return message, nil
		} else if json.Unmarshal([]byte(data), &event) != nil || len(event.Choices) == 0 {
			continue
		}
		delta := event.Choices[0].Delta
		message.Content += delta.Content
		for _, piece := range delta.Calls {
			for len(message.Calls) <= piece.Index {
				message.Calls = append(message.Calls, Call{Index: len(message.Calls), Type: "function"})
			}
			call := &message.Calls[piece.Index]
			call.ID += piece.ID
			call.Function.Name += piece.Function.Name
			call.Function.Arguments += piece.Function.Arguments
		}
	}
	return message, fmt.Errorf("the model's answer was cut: %s, %v", answer.Status, lines.Err())
}

// run runs a call of the tool, and returns its result. A provider refuses a history in which a call has none.
func run(ctx context.Context, call Call) Message {
	result := Message{Role: "tool", Content: "stopped before it was done", CallID: call.ID}
	answer, err := post(ctx, os.Getenv("STOP_TEST_TOOLS")+"/"+call.Function.Name, call.Function.Arguments)
	if err == nil {
		defer answer.Body.Close()
		var text []byte
		if text, err = io.ReadAll(answer.Body); err == nil {
			result.Content = string(text)
		}
	}
	if err != nil && ctx.Err() == nil {
		result.Content = "it failed: " + err.Error()
	}
	return result
}

// turn asks the model, and runs what it calls, until it calls nothing.
func turn(ctx context.Context) error {
	for {
		message, err := ask(ctx)
		if err != nil {
			return err
		}
		var calls sync.WaitGroup
		results := make([]Message, len(message.Calls))
		for at, call := range message.Calls {
			calls.Add(1)
			go func() { results[at] = run(ctx, call); calls.Done() }()
		}
		calls.Wait()
		history = append(append(history, message), results...)
		if len(results) == 0 {
			return nil
		}
	}
}

func main() {
	tell(map[string]any{"at": "ready", "stops": []string{"context"}})
	stop := func() {}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var wish struct{ Do, Text string }
		if json.Unmarshal(lines.Bytes(), &wish); wish.Do == "stop" {
			stop()
			continue
		}
		history = append(history, Message{Role: "user", Content: wish.Text})
		ctx, cancel := context.WithCancel(context.Background())
		stop = cancel
		go func() {
			says := "done"
			if err := turn(ctx); ctx.Err() != nil {
				says = "stopped"
			} else if err != nil {
				fmt.Fprintln(os.Stderr, err)
				says = "failed"
			}
			tell(map[string]any{"at": "told", "says": says})
		}()
	}
}
