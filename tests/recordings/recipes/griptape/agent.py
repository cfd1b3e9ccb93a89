"""Griptape's agent, observed by its own OpenTelemetry driver."""

import lab
from griptape.artifacts import TextArtifact
from griptape.drivers.observability.open_telemetry import OpenTelemetryObservabilityDriver
from griptape.drivers.prompt.openai import OpenAiChatPromptDriver
from griptape.observability import Observability
from griptape.structures import Agent
from griptape.tools import BaseTool
from griptape.utils.decorators import activity
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from schema import Schema


def model() -> OpenAiChatPromptDriver:
    return OpenAiChatPromptDriver(
        model=lab.MODEL, api_key="scripted", base_url=lab.URL, stream=lab.SCENARIO == "streaming"
    )


def called(function, params: dict) -> TextArtifact:
    """Run a tool, logged as the model asks for it."""
    with lab.logged(f"Weather_{function.__name__}", params["values"]):
        return TextArtifact(function.__wrapped__(**params["values"]))


class Weather(BaseTool):
    @activity(config={"description": "The weather in a city", "schema": Schema({"city": str})})
    def get_weather(self, params: dict) -> TextArtifact:
        return called(lab.get_weather, params)

    @activity(config={"description": "Fahrenheit", "schema": Schema({"celsius": float})})
    def convert_temp(self, params: dict) -> TextArtifact:
        return called(lab.convert_temp, params)

    @activity(config={"description": "Refund an order", "schema": Schema({"order_id": str})})
    def refund_order(self, params: dict) -> TextArtifact:
        return called(lab.refund_order, params)


driver = OpenTelemetryObservabilityDriver(service_name="agent", span_processor=SimpleSpanProcessor(OTLPSpanExporter()))
with Observability(observability_driver=driver):
    agent = Agent(prompt_driver=model(), tools=[Weather()])
    lab.answer(str(agent.run(lab.QUESTION).output.value))
