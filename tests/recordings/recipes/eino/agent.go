// Eino's agent, whose developer writes a span for each callback of a component: its type, its name, what goes in and out as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

var tracer trace.Tracer

func text(value any) string {
	if said, ok := value.(string); ok {
		return said
	}
	line, _ := json.Marshal(value)
	return string(line)
}

func start(ctx context.Context, info *callbacks.RunInfo, input callbacks.CallbackInput) context.Context {
	name := string(info.Component)
	if info.Name != "" {
		name = info.Name
	}
	ctx, span := tracer.Start(ctx, name)
	span.SetAttributes(attribute.String("eino.component", string(info.Component)), attribute.String("eino.type", info.Type), attribute.String("eino.name", info.Name))
	switch info.Component {
	case components.ComponentOfChatModel:
		asked := model.ConvCallbackInput(input)
		span.SetAttributes(attribute.String("eino.input", text(asked.Messages)))
		if asked.Config != nil {
			span.SetAttributes(attribute.String("eino.model", asked.Config.Model))
		}
	case components.ComponentOfTool:
		span.SetAttributes(attribute.String("eino.input", tool.ConvCallbackInput(input).ArgumentsInJSON))
	default:
		if messages, ok := input.([]*schema.Message); ok {
			span.SetAttributes(attribute.String("eino.input", text(messages)))
		}
	}
	return ctx
}

func end(ctx context.Context, info *callbacks.RunInfo, output callbacks.CallbackOutput) context.Context {
	span := trace.SpanFromContext(ctx)
	switch info.Component {
	case components.ComponentOfChatModel:
		answered(span, model.ConvCallbackOutput(output))
	case components.ComponentOfTool:
		span.SetAttributes(attribute.String("eino.output", tool.ConvCallbackOutput(output).Response))
	default:
		if message, ok := output.(*schema.Message); ok {
			span.SetAttributes(attribute.String("eino.output", text(message.Content)))
		}
	}
	span.End()
	return ctx
}

func answered(span trace.Span, answer *model.CallbackOutput) {
	span.SetAttributes(attribute.String("eino.output", text(answer.Message)))
	if used := answer.TokenUsage; used != nil {
		span.SetAttributes(attribute.Int("eino.usage.prompt_tokens", used.PromptTokens), attribute.Int("eino.usage.completion_tokens", used.CompletionTokens))
	}
}

func failed(ctx context.Context, info *callbacks.RunInfo, err error) context.Context {
	span := trace.SpanFromContext(ctx)
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
	span.End()
	return ctx
}

func streamed(ctx context.Context, info *callbacks.RunInfo, output *schema.StreamReader[callbacks.CallbackOutput]) context.Context {
	span := trace.SpanFromContext(ctx)
	defer output.Close()
	defer span.End()
	var last *model.CallbackOutput
	var parts []*schema.Message
	for {
		part, err := output.Recv()
		if err != nil {
			break
		}
		if info.Component == components.ComponentOfChatModel {
			last = model.ConvCallbackOutput(part)
			parts = append(parts, last.Message)
		}
	}
	if last != nil {
		whole, err := schema.ConcatMessages(parts)
		Must(err)
		last.Message = whole
		answered(span, last)
	}
	return ctx
}

type logged struct{ Tool }

func (one logged) Info(context.Context) (*schema.ToolInfo, error) {
	kind := map[string]schema.DataType{"string": schema.String, "number": schema.Number}[one.Type]
	parameters := map[string]*schema.ParameterInfo{one.Parameter: {Type: kind, Required: true}}
	return &schema.ToolInfo{Name: one.Name, Desc: one.Description, ParamsOneOf: schema.NewParamsOneOfByParams(parameters)}, nil
}

func (one logged) InvokableRun(_ context.Context, arguments string, _ ...tool.Option) (string, error) {
	var given map[string]any
	if err := json.Unmarshal([]byte(arguments), &given); err != nil {
		return "", err
	}
	return one.Run(given)
}

type researcher struct{ agent *react.Agent }

func (researcher) Info(context.Context) (*schema.ToolInfo, error) {
	parameters := map[string]*schema.ParameterInfo{"query": {Type: schema.String, Required: true}}
	return &schema.ToolInfo{Name: "researcher", Desc: "Ask the researcher", ParamsOneOf: schema.NewParamsOneOfByParams(parameters)}, nil
}

func (one researcher) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	var given map[string]any
	Must(json.Unmarshal([]byte(arguments), &given))
	Log(map[string]any{"name": "researcher", "arguments": given, "error": false, "kind": "agent_as_tool"})
	answer, err := one.agent.Generate(ctx, []*schema.Message{schema.UserMessage(given["query"].(string))})
	if err != nil {
		return "", err
	}
	return answer.Content, nil
}

func agent(ctx context.Context, name string, tools []tool.BaseTool) *react.Agent {
	chat, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{APIKey: "scripted", BaseURL: os.Getenv("OPENAI_BASE_URL"), Model: "gpt-4o"})
	Must(err)
	one, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: chat, ToolsConfig: compose.ToolsNodeConfig{Tools: tools}, GraphName: name, MaxStep: 20,
		MessageModifier: react.NewPersonaModifier("You are the " + name + "."),
	})
	Must(err)
	return one
}

func run(ctx context.Context, first *react.Agent) (string, error) {
	question := []*schema.Message{schema.UserMessage(Question)}
	if Scenario != "streaming" {
		answer, err := first.Generate(ctx, question)
		if err != nil {
			return "", err
		}
		return answer.Content, nil
	}
	stream, err := first.Stream(ctx, question)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var said strings.Builder
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return said.String(), nil
		}
		if err != nil {
			return "", err
		}
		said.WriteString(part.Content)
	}
}

func main() {
	ctx := context.Background()
	provider := Export()
	tracer = provider.Tracer("weather/tracing")
	callbacks.AppendGlobalHandlers(callbacks.NewHandlerBuilder().OnStartFn(start).OnEndFn(end).OnErrorFn(failed).OnEndWithStreamOutputFn(streamed).Build())
	var tools []tool.BaseTool
	for _, each := range Tools {
		tools = append(tools, logged{each})
	}
	if Scenario == "delegation" {
		tools = []tool.BaseTool{researcher{agent(ctx, "researcher", tools)}}
	}
	said, err := run(ctx, agent(ctx, "assistant", tools))
	Finish(provider, said, err)
}
