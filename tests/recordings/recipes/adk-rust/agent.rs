//! ADK-Rust's agent, whose spans are those of `tracing`.
mod lab;

use adk_rust::model::openai::{OpenAIClient, OpenAIConfig};
use adk_rust::prelude::*;
use adk_rust::session::{CreateRequest, InMemorySessionService, SessionService};
use async_trait::async_trait;
use futures::StreamExt;
use lab::Lab;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

struct Called(Lab);

#[async_trait]
impl Tool for Called {
    fn name(&self) -> &str {
        self.0.name
    }

    fn description(&self) -> &str {
        self.0.description
    }

    fn parameters_schema(&self) -> Option<Value> {
        Some(self.0.schema())
    }

    async fn execute(&self, _context: Arc<dyn ToolContext>, arguments: Value) -> Result<Value> {
        self.0.run(&arguments).map(|said| json!({"result": said})).map_err(|error| AdkError::tool(error))
    }
}

/// An agent as a tool, which logs its calls.
struct Asked(adk_rust::tool::AgentTool);

#[async_trait]
impl Tool for Asked {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn description(&self) -> &str {
        self.0.description()
    }

    fn parameters_schema(&self) -> Option<Value> {
        self.0.parameters_schema()
    }

    async fn execute(&self, context: Arc<dyn ToolContext>, arguments: Value) -> Result<Value> {
        lab::log(json!({"name": "researcher", "arguments": arguments, "error": false, "kind": "agent_as_tool"}));
        self.0.execute(context, arguments).await
    }
}

fn agent(name: &str) -> LlmAgentBuilder {
    let config = OpenAIConfig::compatible("scripted", std::env::var("OPENAI_BASE_URL").unwrap(), "gpt-4o");
    let model = OpenAIClient::new(config).unwrap();
    LlmAgentBuilder::new(name).description(format!("The {name}")).instruction(format!("You are the {name}.")).model(Arc::new(model))
}

fn with_tools(builder: LlmAgentBuilder) -> Arc<dyn Agent> {
    Arc::new(lab::TOOLS.into_iter().fold(builder, |builder, tool| builder.tool(Arc::new(Called(tool)))).build().unwrap())
}

async fn ask() -> anyhow::Result<String> {
    let root: Arc<dyn Agent> = match lab::scenario().as_str() {
        "delegation" => Arc::new(agent("assistant").tool(Arc::new(Asked(adk_rust::tool::AgentTool::new(with_tools(agent("researcher")))))).build()?),
        "transfer" => Arc::new(agent("assistant").sub_agent(with_tools(agent("researcher"))).build()?),
        _ => with_tools(agent("assistant")),
    };
    let sessions: Arc<dyn SessionService> = Arc::new(InMemorySessionService::new());
    sessions.create(CreateRequest { app_name: "lab".into(), user_id: "user".into(), session_id: Some("one".into()), state: HashMap::new() }).await?;
    let runner = Runner::builder().app_name("lab").agent(root).session_service(sessions).build()?;
    let mut text = String::new();
    for question in lab::questions() {
        let mut events = runner.run_str("user", "one", Content::new("user").with_text(question)).await?;
        while let Some(event) = events.next().await {
            let event = event?;
            if event.llm_response.partial {
                continue;
            }
            let parts = event.content().map(|content| content.parts.clone()).unwrap_or_default();
            let said: String = parts.iter().filter_map(|part| part.text()).collect();
            if !said.is_empty() {
                text = said;
            }
        }
    }
    Ok(text)
}

#[tokio::main]
async fn main() {
    let provider = lab::export();
    let answer = ask().await;
    tokio::task::spawn_blocking(move || lab::finish(provider, answer)).await.unwrap();
}
