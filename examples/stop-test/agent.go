// An agent that can be stopped, with the protocol of `stop-test`: Go, nothing beyond its standard library.
//
// A stop cancels the context of the turn. Each request has that context and closes its connection, and each call without a result gets one.
package main

import (
	"bufio"
	"bytes"
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

type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type Call struct {
	Index    int      `json:"index"`
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []Call `json:"tool_calls,omitempty"`
	CallID  string `json:"tool_call_id,omitempty"`
}

const tools = `[{"type": "function", "function": {"name": "work", "description": "Works.",
	"parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}}]`

var history []Message

func tell(line any) { json.NewEncoder(os.Stdout).Encode(line) }

func post(ctx context.Context, url string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	return http.DefaultClient.Do(request)
}

// ask streams one answer of the model, and returns it as a message.
func ask(ctx context.Context) (message Message, err error) {
	body, _ := json.Marshal(map[string]any{"model": "m", "stream": true, "messages": history, "tools": json.RawMessage(tools)})
	answer, err := post(ctx, os.Getenv("OPENAI_BASE_URL")+"/chat/completions", body)
	if err != nil {
		return message, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		select {
		case <-time.After(time.Duration(max(seconds, 1)) * time.Second):
			return ask(ctx)
		case <-ctx.Done():
			return message, ctx.Err()
		}
	}
	if answer.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(answer.Body)
		return message, fmt.Errorf("the model says %s: %s", answer.Status, why)
	}
	message.Role = "assistant"
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, isData := strings.CutPrefix(lines.Text(), "data:")
		if data = strings.TrimSpace(data); data == "[DONE]" {
			return message, nil
		}
		var event struct{ Choices []struct{ Delta Message } }
		if !isData || json.Unmarshal([]byte(data), &event) != nil {
			continue
		}
		for _, choice := range event.Choices {
			message.add(choice.Delta)
		}
	}
	if err = lines.Err(); err == nil {
		err = io.ErrUnexpectedEOF
	}
	return message, err
}

func (message *Message) add(piece Message) {
	message.Content += piece.Content
	for _, more := range piece.Calls {
		for len(message.Calls) <= more.Index {
			message.Calls = append(message.Calls, Call{Index: len(message.Calls), Type: "function"})
		}
		call := &message.Calls[more.Index]
		call.ID += more.ID
		call.Function.Name += more.Function.Name
		call.Function.Arguments += more.Function.Arguments
	}
}

// run runs a call of the tool, and returns its result.
func run(ctx context.Context, call Call) Message {
	var text []byte
	answer, err := post(ctx, os.Getenv("STOP_TEST_TOOLS")+"/"+call.Function.Name, []byte(call.Function.Arguments))
	if err == nil {
		defer answer.Body.Close()
		text, err = io.ReadAll(answer.Body)
	}
	// A provider refuses a history in which a call has no result.
	if ctx.Err() != nil && err != nil {
		text = []byte("stopped before it was done")
	} else if err != nil {
		text = []byte("it failed: " + err.Error())
	}
	return Message{Role: "tool", Content: string(text), CallID: call.ID}
}

// turn asks the model, and runs what it calls, until it calls nothing.
func turn(ctx context.Context) error {
	for {
		message, err := ask(ctx)
		if err != nil {
			return err
		}
		history = append(history, message)
		if len(message.Calls) == 0 {
			return nil
		}
		var calls sync.WaitGroup
		results := make([]Message, len(message.Calls))
		for at, call := range message.Calls {
			calls.Add(1)
			go func() {
				defer calls.Done()
				results[at] = run(ctx, call)
			}()
		}
		calls.Wait()
		history = append(history, results...)
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
