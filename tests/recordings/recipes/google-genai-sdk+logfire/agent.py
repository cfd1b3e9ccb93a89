"""A plain loop of Gemini calls, which Logfire instruments, with tools in spans of the program's own."""

import lab
import logfire
from google import genai
from google.genai import types

logfire.configure(send_to_logfire=False, console=False, service_name="agent")
logfire.instrument_google_genai()
client = genai.Client(api_key="scripted", http_options=types.HttpOptions(base_url=lab.URL.removesuffix("/v1")))


def loop(system: str, question: str, tools: dict) -> str:
    offered = [
        types.FunctionDeclaration(
            name=name, description=tool.__doc__, parameters_json_schema=lab.schema(tool)["function"]["parameters"]
        )
        for name, tool in tools.items()
    ]
    config = types.GenerateContentConfig(system_instruction=system, tools=[types.Tool(function_declarations=offered)])
    contents = [types.Content(role="user", parts=[types.Part(text=question)])]
    while True:
        said = client.models.generate_content(model=lab.MODEL, contents=contents, config=config).candidates[0].content
        contents.append(said)
        calls = [part.function_call for part in said.parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in said.parts)
        parts = []
        for call in calls:
            with logfire.span("running {tool}", tool=call.name, arguments=dict(call.args)) as span:
                try:
                    result = {"result": tools[call.name](**call.args)}
                except Exception as error:
                    span.record_exception(error)
                    span.set_level("error")
                    result = {"error": str(error)}
            parts.append(types.Part(function_response=types.FunctionResponse(name=call.name, response=result)))
        contents.append(types.Content(role="user", parts=parts))


with logfire.span("assistant"):
    lab.answer(loop(lab.SYSTEM, lab.QUESTION, {tool.__name__: tool for tool in lab.TOOLS}))
logfire.shutdown()
