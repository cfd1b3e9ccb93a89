"""NeMo Guardrails' rails around a model, with its OpenTelemetry adapter: two checks by the model, its answer, and an action."""

import lab
from nemoguardrails import LLMRails, RailsConfig

provider = lab.export()
CONFIG = f"""
models:
  - type: main
    engine: openai
    model: {lab.MODEL}
    parameters: {{base_url: "{lab.URL}", api_key: scripted, max_retries: 0}}
instructions:
  - type: general
    content: {lab.SYSTEM}
rails:
  input:
    flows: [self check input]
  output:
    flows: [self check output]
prompts:
  - task: self_check_input
    content: 'Should this be blocked (yes or no)? User: "{{{{ user_input }}}}"'
  - task: self_check_output
    content: 'Should this be blocked (yes or no)? Bot: "{{{{ bot_response }}}}"'
tracing:
  enabled: true
  enable_content_capture: true
  adapters: [{{name: OpenTelemetry}}]
"""
rails = LLMRails(RailsConfig.from_content(yaml_content=CONFIG))
try:
    reply = rails.generate(messages=[{"role": "user", "content": lab.QUESTION}])
    reply = reply.response if hasattr(reply, "response") else reply
    lab.answer((reply[-1] if isinstance(reply, list) else reply)["content"])
finally:
    provider.shutdown()
