"""An agent that Braintrust's SDK logs to the address in the environment."""

from braintrust import init_logger, start_span
from steps import CALLS, refused, work

logger = init_logger(project="p")


def llm(messages, answer, usage):
    metrics = {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "tokens": usage["total_tokens"],
    }
    with start_span(name="Chat Completion", type="llm") as span:
        output = [{"index": 0, "finish_reason": "stop", "message": answer}]
        span.log(input=messages, output=output, metadata={"model": "gpt-4o", "provider": "openai"}, metrics=metrics)


def get_weather(**arguments):
    with start_span(name="get_weather", type="tool") as span:
        span.log(input=arguments, output="21 degrees")


def refund(**arguments):
    with start_span(name="refund", type="tool") as span:
        span.log(input=arguments)
        refused()


def researcher():
    with start_span(name="researcher", type="task") as span:
        llm(*CALLS["inner"])
        span.log(output="Read it.")


with logger.start_span(name="assistant", type="task") as span:
    span.log(input="How is the weather?", output=work(llm, get_weather, refund, researcher))
logger.flush()
