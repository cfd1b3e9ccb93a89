/* Written by `npm run types` from the JSON Schema; change the struct in Python and run it again. */

export type RunId = string;
export type StartedNs = number | null;
export type FinalOutput = string | null;
export type SpanId = string;
export type ParentSpanId = string | null;
export type TraceId = string;
export type Depth = number;
export type Name = string;
export type Kind = string;
export type Dialect = string;
export type Service = string | null;
export type Scope = string | null;
export type StartUs = number | null;
export type DurationUs = number | null;
export type Ended = boolean;
export type Turn = number | null;
export type Model = string | null;
export type InputTokens = number | null;
export type OutputTokens = number | null;
export type CostUsd = number | null;
export type Agent = string | null;
export type Tool = string | null;
export type CallId = string | null;
export type Error = string | null;
export type CountedAs = string;
export type CountedIn = string | null;
export type CountedBy = string | null;
export type Spans = SpanDetails[];
export type SpanId1 = string;
export type Direction = string;
export type MessageNo = number;
export type Role = string | null;
export type Type = string | null;
export type CallId1 = string | null;
export type Name1 = string | null;
export type Text = string | null;
export type Messages = MessagePart[];
export type CallNo = number;
export type SpanId2 = string | null;
export type AgentSpanId = string | null;
export type Name2 = string;
export type CallId2 = string | null;
export type Arguments = string | null;
export type Result = string | null;
export type Outcome = string | null;
export type Error1 = string | null;
export type ToolCalls = ToolCallDetails[];
export type CallNo1 = number;
export type SpanId3 = string;
export type AgentSpanId1 = string | null;
export type Model1 = string | null;
export type InputTokens1 = number | null;
export type OutputTokens1 = number | null;
export type CacheReadTokens = number | null;
export type ReasoningTokens = number | null;
export type CostUsd1 = number | null;
export type Outcome1 = string;
export type Attempts = number | null;
export type FinishReason = string | null;
export type ModelCalls = ModelCallDetails[];
export type ActivationNo = number;
export type SpanId4 = string | null;
export type Name3 = string | null;
export type ParentActivationNo = number | null;
export type Via = string;
export type Agents = AgentDetails[];
export type ToolCallNo = number;
export type Text1 = string | null;
export type ExitCode = number | null;
export type Commands = CommandDetails[];

/**
 * A run as the page shows it.
 */
export interface RunDetails {
  run_id: RunId;
  started_ns: StartedNs;
  final_output: FinalOutput;
  spans: Spans;
  messages: Messages;
  tool_calls: ToolCalls;
  model_calls: ModelCalls;
  agents: Agents;
  commands: Commands;
}
/**
 * One span, in depth-first order.
 */
export interface SpanDetails {
  span_id: SpanId;
  parent_span_id: ParentSpanId;
  trace_id: TraceId;
  depth: Depth;
  name: Name;
  kind: Kind;
  dialect: Dialect;
  service: Service;
  scope: Scope;
  start_us: StartUs;
  duration_us: DurationUs;
  ended: Ended;
  turn: Turn;
  model: Model;
  input_tokens: InputTokens;
  output_tokens: OutputTokens;
  cost_usd: CostUsd;
  agent: Agent;
  tool: Tool;
  call_id: CallId;
  error: Error;
  counted_as: CountedAs;
  counted_in: CountedIn;
  counted_by: CountedBy;
}
/**
 * One part of a message.
 */
export interface MessagePart {
  span_id: SpanId1;
  direction: Direction;
  message_no: MessageNo;
  role: Role;
  type: Type;
  call_id: CallId1;
  name: Name1;
  text: Text;
}
/**
 * One logical tool call.
 */
export interface ToolCallDetails {
  call_no: CallNo;
  span_id: SpanId2;
  agent_span_id: AgentSpanId;
  name: Name2;
  call_id: CallId2;
  arguments: Arguments;
  result: Result;
  outcome: Outcome;
  error: Error1;
}
/**
 * One logical model call.
 */
export interface ModelCallDetails {
  call_no: CallNo1;
  span_id: SpanId3;
  agent_span_id: AgentSpanId1;
  model: Model1;
  input_tokens: InputTokens1;
  output_tokens: OutputTokens1;
  cache_read_tokens: CacheReadTokens;
  reasoning_tokens: ReasoningTokens;
  cost_usd: CostUsd1;
  outcome: Outcome1;
  attempts: Attempts;
  finish_reason: FinishReason;
}
/**
 * One period in which an agent works.
 */
export interface AgentDetails {
  activation_no: ActivationNo;
  span_id: SpanId4;
  name: Name3;
  parent_activation_no: ParentActivationNo;
  via: Via;
}
/**
 * The whole text of one shell command that a tool call ran.
 */
export interface CommandDetails {
  tool_call_no: ToolCallNo;
  text: Text1;
  exit_code: ExitCode;
}
