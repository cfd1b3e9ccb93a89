package main

import (
	"context"
	"os"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core/tracing"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai/openai"
	"github.com/openai/openai-go/option"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"
)

func main() {
	ctx := context.Background()
	provider := tracing.TracerProvider()
	exporter, err := otlptracehttp.New(ctx)
	Must(err)
	provider.RegisterSpanProcessor(trace.NewSimpleSpanProcessor(exporter))
	plugin := &openai.OpenAI{APIKey: "scripted", Opts: []option.RequestOption{option.WithBaseURL(os.Getenv("OPENAI_BASE_URL")), option.WithMaxRetries(0)}}
	g := genkit.Init(ctx, genkit.WithPlugins(plugin))
	var tools []ai.ToolRef
	for _, each := range Tools {
		tools = append(tools, genkit.DefineToolWithInputSchema(g, each.Name, each.Description, each.Schema(),
			func(_ *ai.ToolContext, input any) (string, error) { return each.Run(input.(map[string]any)) }))
	}
	var history []*ai.Message
	ask := func(ctx context.Context, name, question string, tools []ai.ToolRef) (string, error) {
		history = append(history, ai.NewUserTextMessage(question))
		options := []ai.GenerateOption{ai.WithModelName("openai/gpt-4o"), ai.WithSystem("You are the " + name + "."), ai.WithMessages(history...), ai.WithTools(tools...)}
		if Scenario == "streaming" {
			options = append(options, ai.WithStreaming(func(context.Context, *ai.ModelResponseChunk) error { return nil }))
		}
		response, err := genkit.Generate(ctx, g, options...)
		if err != nil {
			return "", err
		}
		history = append(history, response.Message)
		return response.Text(), nil
	}
	if Scenario == "delegation" {
		whole := tools
		schema := map[string]any{"type": "object", "properties": map[string]any{"query": map[string]any{"type": "string"}}, "required": []string{"query"}}
		tools = []ai.ToolRef{genkit.DefineToolWithInputSchema(g, "researcher", "Finds things out", schema, func(tool *ai.ToolContext, input any) (string, error) {
			Log(map[string]any{"name": "researcher", "arguments": input, "error": false, "kind": "agent_as_tool"})
			history = nil
			return ask(tool, "researcher", input.(map[string]any)["query"].(string), whole)
		})}
	}
	flow := genkit.DefineFlow(g, "assistant", func(ctx context.Context, question string) (string, error) { return ask(ctx, "assistant", question, tools) })
	var text string
	for _, question := range Questions() {
		if text, err = flow.Run(ctx, question); err != nil {
			break
		}
	}
	Finish(provider, text, err)
}
