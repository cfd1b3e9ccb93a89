"""A pipeline of Pipecat with its own tracing: texts in place of voices."""

import asyncio
import os
from pathlib import Path

import lab
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from pipecat.adapters.schemas.function_schema import FunctionSchema
from pipecat.adapters.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    EndFrame,
    LLMFullResponseEndFrame,
    LLMRunFrame,
    LLMTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.utils.tracing.setup import setup_tracing

setup_tracing("agent", OTLPSpanExporter())


class Ends(FrameProcessor):
    """Ends the pipeline after an answer that asks for no tool."""

    text, calls = "", False

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMTextFrame):
            self.text += frame.text
        if isinstance(frame, LLMFullResponseEndFrame) and self.text:
            lab.answer(self.text)
            await self.push_frame(frame, direction)
            await task.queue_frame(EndFrame())
            return
        await self.push_frame(frame, direction)


def handler(tool):
    async def call(params: FunctionCallParams):
        await params.result_callback(tool(**params.arguments))

    return call


async def main():
    global task
    llm = OpenAILLMService(api_key="scripted", base_url=lab.URL, model=lab.MODEL)
    schemas = []
    for tool in lab.TOOLS:
        said = lab.schema(tool)["function"]
        llm.register_function(tool.__name__, handler(tool))
        schemas.append(
            FunctionSchema(
                said["name"], said["description"], said["parameters"]["properties"], said["parameters"]["required"]
            )
        )
    context = LLMContext(
        [{"role": "system", "content": lab.SYSTEM}, {"role": "user", "content": lab.QUESTION}],
        tools=ToolsSchema(schemas),
    )
    pair = LLMContextAggregatorPair(context)
    task = PipelineTask(
        Pipeline([pair.user(), llm, Ends(), pair.assistant()]),
        params=PipelineParams(enable_metrics=True, enable_usage_metrics=True),
        enable_tracing=True,
        enable_turn_tracking=True,
        idle_timeout_secs=8,
    )
    await task.queue_frame(LLMRunFrame())
    await PipelineRunner(handle_sigint=False).run(task)


asyncio.run(main())
trace.get_tracer_provider().shutdown()
os._exit(0 if Path(os.environ["ANSWER_FILE"]).exists() else 1)
