// /// script
// dependencies = [
//     "ai@5.0.277",
//     "@ai-sdk/openai@2.0.130",
//     "@arizeai/openinference-vercel@2.8.1",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-trace-node@2.8.0",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["native", "native,openinference"]
// helpers = ["tool"]
// ///
// The agent of `vercel_ai6.mjs` with version 5.
import './vercel_ai6.mjs';
