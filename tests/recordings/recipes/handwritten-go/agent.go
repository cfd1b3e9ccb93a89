// A Go program that asks OpenAI by its official client; tools are a service in another process, whose spans join by HTTP's headers.
// otelhttp writes a span of each request, the program its own with a few attributes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var (
	tracer  trace.Tracer
	service string
	httpc   = &http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}
	client  openai.Client
)

type agent struct {
	name  string
	tools []Tool
}

// run of an agent: ask, let tools run side by side, ask again.
func (a agent) run(ctx context.Context, question string) (answer string, err error) {
	ctx, span := tracer.Start(ctx, "Agent.Run", trace.WithAttributes(attribute.String("agent", a.name), attribute.String("question", question)))
	defer func() { end(span, err) }()
	var offered []openai.ChatCompletionToolUnionParam
	for _, tool := range a.tools {
		offered = append(offered, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: tool.Name, Description: openai.String(tool.Description), Parameters: tool.Schema()}))
	}
	messages := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are the " + a.name + "."), openai.UserMessage(question)}
	for turn := 1; ; turn++ {
		message, err := a.ask(ctx, turn, messages, offered)
		if err != nil {
			return "", err
		}
		messages = append(messages, message.ToParam())
		if len(message.ToolCalls) == 0 {
			span.SetAttributes(attribute.Int("turns", turn), attribute.String("answer", message.Content))
			return message.Content, nil
		}
		results := make([]string, len(message.ToolCalls))
		var all sync.WaitGroup
		for at, call := range message.ToolCalls {
			all.Add(1)
			go func() {
				defer all.Done()
				results[at] = dispatch(ctx, call.ID, call.Function.Name, call.Function.Arguments)
			}()
		}
		all.Wait()
		for at, call := range message.ToolCalls {
			messages = append(messages, openai.ToolMessage(results[at], call.ID))
		}
	}
}

func (a agent) ask(ctx context.Context, turn int, messages []openai.ChatCompletionMessageParamUnion, offered []openai.ChatCompletionToolUnionParam) (message openai.ChatCompletionMessage, err error) {
	ctx, span := tracer.Start(ctx, "llm.Complete", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("llm.vendor", "openai"), attribute.String("llm.model", "gpt-4o"), attribute.String("agent", a.name), attribute.Int("turn", turn)))
	defer func() { end(span, err) }()
	answer, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: "gpt-4o", Messages: messages, Tools: offered})
	if err != nil {
		return message, err
	}
	message = answer.Choices[0].Message
	span.SetAttributes(attribute.String("llm.response.model", answer.Model), attribute.String("llm.finish_reason", answer.Choices[0].FinishReason),
		attribute.Int64("llm.tokens.input", answer.Usage.PromptTokens), attribute.Int64("llm.tokens.output", answer.Usage.CompletionTokens),
		attribute.Int("llm.tool_calls", len(message.ToolCalls)), attribute.String("llm.content", message.Content))
	return message, nil
}

func dispatch(ctx context.Context, id, name, arguments string) string {
	ctx, span := tracer.Start(ctx, "Tool.Call", trace.WithAttributes(attribute.String("tool.name", name), attribute.String("tool.call_id", id), attribute.String("tool.args", arguments)))
	result, err := func() (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, service+"/tools/"+name, bytes.NewBufferString(arguments))
		if err != nil {
			return "", err
		}
		response, err := httpc.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode >= 400 {
			err = fmt.Errorf("tool service: %d %s", response.StatusCode, body)
		}
		return string(body), err
	}()
	if err == nil {
		span.SetAttributes(attribute.String("tool.result", result))
	}
	end(span, err)
	if err != nil {
		return "error: " + err.Error()
	}
	return result
}

func end(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

func handle(writer http.ResponseWriter, request *http.Request) {
	name := request.PathValue("name")
	var given map[string]any
	body, err := io.ReadAll(request.Body)
	Must(err)
	Must(json.Unmarshal(body, &given))
	if name == "researcher" {
		Log(map[string]any{"name": name, "arguments": given, "error": false, "kind": "agent_as_tool"})
		said, err := agent{"researcher", Tools}.run(request.Context(), given["query"].(string))
		reply(writer, said, err)
		return
	}
	_, span := tracer.Start(request.Context(), "exec "+name)
	defer span.End()
	for _, tool := range Tools {
		if tool.Name == name {
			said, err := tool.Run(given)
			if err != nil {
				span.RecordError(err)
				span.SetStatus(codes.Error, err.Error())
			}
			reply(writer, said, err)
			return
		}
	}
	http.Error(writer, "no such tool", http.StatusNotFound)
}

func reply(writer http.ResponseWriter, said string, err error) {
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(writer, said)
}

func main() {
	provider := Export()
	tracer = provider.Tracer("github.com/acme/assistant")
	otel.SetTextMapPropagator(propagation.TraceContext{})
	client = openai.NewClient(option.WithBaseURL(os.Getenv("OPENAI_BASE_URL")), option.WithAPIKey("scripted"), option.WithMaxRetries(1), option.WithHTTPClient(httpc))
	ctx := context.Background()
	if len(os.Args) > 2 {
		service = "http://" + os.Args[2]
		routes := http.NewServeMux()
		routes.HandleFunc("POST /tools/{name}", handle)
		listener, err := net.FileListener(os.NewFile(3, "socket"))
		Must(err)
		Must(http.Serve(listener, otelhttp.NewHandler(routes, "tool-service")))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Must(err)
	service = "http://" + listener.Addr().String()
	socket, err := listener.(*net.TCPListener).File()
	Must(err)
	server := exec.Command(os.Args[0], Scenario, listener.Addr().String())
	server.ExtraFiles, server.Stderr = []*os.File{socket}, os.Stderr
	Must(server.Start())
	listener.Close()
	tools := Tools
	if Scenario == "delegation" {
		tools = []Tool{{Name: "researcher", Description: "Ask the researcher", Parameter: "query", Type: "string"}}
	}
	said, err := agent{"assistant", tools}.run(ctx, Question)
	Must(server.Process.Signal(syscall.SIGTERM))
	server.Wait()
	Finish(provider, said, err)
}
