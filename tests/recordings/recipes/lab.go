// What the agent programs of the Go recipes share: the tools, which log their own calls, the answer and the exporter.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"
)

const Question = "What is the weather in Paris?"

var Scenario = os.Args[1]

// Questions are those of the scenario, one a turn.
func Questions() []string {
	if Scenario == "two_turns" {
		return []string{Question, "And in Oslo?"}
	}
	return []string{Question}
}

type Tool struct {
	Name, Description, Parameter, Type string
	body                               func(value any) (string, error)
}

var Tools = []Tool{
	{"get_weather", "The weather in a city", "city", "string", func(city any) (string, error) { return fmt.Sprintf("21 degrees in %v", city), nil }},
	{"get_population", "How many people live in a city", "city", "string", func(city any) (string, error) { return fmt.Sprintf("2100000 people in %v", city), nil }},
	{"convert_temp", "Celsius to Fahrenheit", "celsius", "number", func(celsius any) (string, error) { return fmt.Sprintf("%v F", celsius.(float64)*9/5+32), nil }},
	{"refund_order", "Refund an order", "order_id", "string", func(id any) (string, error) { return "", fmt.Errorf("refund of %v failed", id) }},
}

// Schema is the JSON schema of a tool's arguments.
func (tool Tool) Schema() map[string]any {
	return map[string]any{
		"type": "object", "properties": map[string]any{tool.Parameter: map[string]any{"type": tool.Type}}, "required": []string{tool.Parameter},
	}
}

// Run executes a tool and logs the call.
func (tool Tool) Run(arguments map[string]any) (string, error) {
	result, err := tool.body(arguments[tool.Parameter])
	Log(map[string]any{"name": tool.Name, "arguments": arguments, "error": err != nil})
	return result, err
}

// Log writes down a call.
func Log(call map[string]any) {
	line, err := json.Marshal(call)
	Must(err)
	file, err := os.OpenFile(os.Getenv("TOOLS_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	Must(err)
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	Must(err)
}

// Answer writes down what the agent answered.
func Answer(text string) {
	line, err := json.Marshal(text)
	Must(err)
	Must(os.WriteFile(os.Getenv("ANSWER_FILE"), line, 0o644))
}

// Export is a global tracer provider that exports each span at once to the endpoint of the environment.
func Export() *trace.TracerProvider {
	exporter, err := otlptracehttp.New(context.Background())
	Must(err)
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	otel.SetTracerProvider(provider)
	return provider
}

func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Finish exports what is left, whether the agent failed or not.
func Finish(provider *trace.TracerProvider, text string, err error) {
	Must(provider.Shutdown(context.Background()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	Answer(text)
}
