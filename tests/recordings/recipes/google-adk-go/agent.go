package main

import (
	"context"
	"os"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log/global"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/telemetry"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/agenttool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
)

func main() {
	ctx := context.Background()
	provider := Export()
	exporter, err := otlploghttp.New(ctx)
	Must(err)
	logs := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(exporter)))
	global.SetLoggerProvider(logs)
	_, err = telemetry.New(ctx, telemetry.WithTracerProvider(provider), telemetry.WithLoggerProvider(logs), telemetry.WithGenAICaptureMessageContent(true))
	Must(err)
	var tools []tool.Tool
	for _, each := range Tools {
		schema := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{each.Parameter: {Type: each.Type}}, Required: []string{each.Parameter}}
		made, err := functiontool.New(functiontool.Config{Name: each.Name, Description: each.Description, InputSchema: schema},
			func(_ tool.Context, arguments map[string]any) (map[string]any, error) {
				result, err := each.Run(arguments)
				return map[string]any{"result": result}, err
			})
		Must(err)
		tools = append(tools, made)
	}
	assistant := newAgent(ctx, "assistant", tools, nil)
	switch Scenario {
	case "delegation":
		assistant = newAgent(ctx, "assistant", []tool.Tool{agenttool.New(newAgent(ctx, "researcher", tools, nil), nil)}, nil)
	case "transfer":
		assistant = newAgent(ctx, "assistant", nil, []agent.Agent{newAgent(ctx, "researcher", tools, nil)})
	}
	text, err := ask(ctx, assistant)
	Must(logs.Shutdown(ctx))
	Finish(provider, text, err)
}

// logAgent writes down a call of an agent that is a tool of another one.
func logAgent(_ tool.Context, called tool.Tool, arguments map[string]any) (map[string]any, error) {
	if called.Name() == "researcher" {
		Log(map[string]any{"name": called.Name(), "arguments": arguments, "error": false, "kind": "agent_as_tool"})
	}
	return nil, nil
}

func newAgent(ctx context.Context, name string, tools []tool.Tool, agents []agent.Agent) agent.Agent {
	model, err := gemini.NewModel(ctx, "gpt-4o", &genai.ClientConfig{
		APIKey: "scripted", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: strings.TrimSuffix(os.Getenv("MODEL_URL"), "/v1")},
	})
	Must(err)
	made, err := llmagent.New(llmagent.Config{Name: name, Model: model, Description: "The " + name, Instruction: "You are the " + name + ".", Tools: tools, SubAgents: agents, BeforeToolCallbacks: []llmagent.BeforeToolCallback{logAgent}})
	Must(err)
	return made
}

func ask(ctx context.Context, of agent.Agent) (string, error) {
	run, err := runner.New(runner.Config{AppName: "agent", Agent: of, SessionService: session.InMemoryService(), AutoCreateSession: true})
	Must(err)
	mode := agent.StreamingModeNone
	if Scenario == "streaming" {
		mode = agent.StreamingModeSSE
	}
	text := ""
	for _, question := range Questions() {
		for event, err := range run.Run(ctx, "user", "session", genai.NewContentFromText(question, genai.RoleUser), agent.RunConfig{StreamingMode: mode}) {
			if err != nil {
				return "", err
			}
			if event.IsFinalResponse() && !event.Partial && event.Content != nil {
				text = ""
				for _, part := range event.Content.Parts {
					text += part.Text
				}
			}
		}
	}
	return text, nil
}
