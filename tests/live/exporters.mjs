// An agent whose exporters are written into its code, without an address, whatever protocol the environment announces.
// Arguments: grpc, proto or json for each exporter, in order. Each has a separate provider, and records one tool of its name.
import { ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { OTLPTraceExporter as GrpcExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as JsonExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtoExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { defaultResource, detectResources, envDetector } from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";

const EXPORTERS = { grpc: GrpcExporter, proto: ProtoExporter, json: JsonExporter };
const resource = defaultResource().merge(detectResources({ detectors: [envDetector] }));

for (const kind of process.argv.slice(2)) {
  const provider = new BasicTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(new EXPORTERS[kind]())] });
  const tracer = provider.getTracer("test-agent");
  const root = tracer.startSpan("invoke_agent a", { attributes: { "gen_ai.operation.name": "invoke_agent" } });
  const attributes = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": kind };
  tracer.startSpan(`execute_tool ${kind}`, { attributes }, trace.setSpan(ROOT_CONTEXT, root)).end();
  root.end();
  await provider.shutdown();
}
