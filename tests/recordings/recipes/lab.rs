//! What the agent programs of the Rust recipes share: the tools, which log their own calls, the answer and the exporter.
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde_json::{Value, json};
use std::io::Write;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub const QUESTION: &str = "What is the weather in Paris?";

pub fn scenario() -> String {
    std::env::args().nth(1).unwrap()
}

/// The questions of the scenario, one a turn.
pub fn questions() -> Vec<&'static str> {
    if scenario() == "two_turns" { vec![QUESTION, "And in Oslo?"] } else { vec![QUESTION] }
}

#[derive(Clone, Copy)]
pub struct Lab {
    pub name: &'static str,
    pub description: &'static str,
    parameter: &'static str,
    kind: &'static str,
    body: fn(&Value) -> Result<String, String>,
}

pub const TOOLS: [Lab; 4] = [
    Lab { name: "get_weather", description: "The weather in a city", parameter: "city", kind: "string", body: |city| Ok(format!("21 degrees in {}", city.as_str().unwrap())) },
    Lab { name: "get_population", description: "How many people live in a city", parameter: "city", kind: "string", body: |city| Ok(format!("2100000 people in {}", city.as_str().unwrap())) },
    Lab { name: "convert_temp", description: "Celsius to Fahrenheit", parameter: "celsius", kind: "number", body: |celsius| Ok(format!("{} F", celsius.as_f64().unwrap() * 9.0 / 5.0 + 32.0)) },
    Lab { name: "refund_order", description: "Refund an order", parameter: "order_id", kind: "string", body: |id| Err(format!("refund of {} failed", id.as_str().unwrap())) },
];

impl Lab {
    pub fn schema(&self) -> Value {
        json!({"type": "object", "properties": {self.parameter: {"type": self.kind}}, "required": [self.parameter]})
    }

    /// Executes the tool and logs the call.
    pub fn run(&self, arguments: &Value) -> Result<String, String> {
        let result = (self.body)(&arguments[self.parameter]);
        log(json!({"name": self.name, "arguments": arguments, "error": result.is_err()}));
        result
    }
}

/// Writes down a call.
pub fn log(call: Value) {
    let path = std::env::var("TOOLS_LOG").unwrap();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{call}").unwrap();
}

/// A tracing subscriber that exports each span at once to the endpoint of the environment.
pub fn export() -> SdkTracerProvider {
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().build().unwrap();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    let filter = tracing_subscriber::filter::LevelFilter::INFO;
    tracing_subscriber::registry().with(filter).with(tracing_opentelemetry::layer().with_location(false).with_threads(false).with_tracer(provider.tracer("agent"))).init();
    provider
}

/// Exports what is left, writes down what the agent answered and ends the process.
pub fn finish<E: std::fmt::Display>(provider: SdkTracerProvider, answer: Result<String, E>) {
    provider.shutdown().unwrap();
    match answer {
        Ok(text) => std::fs::write(std::env::var("ANSWER_FILE").unwrap(), json!(text).to_string()).unwrap(),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
