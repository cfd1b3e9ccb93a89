"""A plain loop of calls of Mistral's SDK, which traces itself and which OpenLLMetry instruments."""

import lab
from opentelemetry.instrumentation.mistralai import MistralAiInstrumentor

provider = lab.export()
MistralAiInstrumentor().instrument(tracer_provider=provider)

from mistralai import Mistral  # noqa: E402

client = Mistral(api_key="scripted", server_url=lab.URL.removesuffix("/v1"))


def asking(messages: list, tools: list) -> dict:
    said = client.chat.complete(model=lab.MODEL, messages=messages, tools=tools).choices[0].message
    return said.model_dump(exclude_none=True, mode="json", by_alias=False)


lab.answer(lab.loop(asking, lab.SYSTEM, lab.QUESTION, {tool.__name__: tool for tool in lab.TOOLS}))
provider.shutdown()
