mod lab;

use futures::StreamExt;
use lab::Lab;
use rig::agent::{Agent, MultiTurnStreamItem};
use rig::client::CompletionClient;
use rig::completion::{Message, Prompt, PromptError, ToolDefinition};
use rig::providers::openai;
use rig::streaming::StreamingPrompt;
use rig::tool::{Tool, ToolDyn, ToolError};
use rig::wasm_compat::WasmBoxedFuture;
use serde_json::{Value, json};

type Model = openai::completion::CompletionModel;

struct Called(Lab);

impl ToolDyn for Called {
    fn name(&self) -> String {
        self.0.name.to_string()
    }

    fn definition<'a>(&'a self, _prompt: String) -> WasmBoxedFuture<'a, ToolDefinition> {
        Box::pin(async { ToolDefinition { name: self.name(), description: self.0.description.to_string(), parameters: self.0.schema() } })
    }

    fn call<'a>(&'a self, arguments: String) -> WasmBoxedFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            let parsed: Value = serde_json::from_str(&arguments)?;
            self.0.run(&parsed).map_err(|error| ToolError::ToolCallError(error.into()))
        })
    }
}

/// An agent as a tool, which logs its calls.
struct Asked(Agent<Model>);

impl ToolDyn for Asked {
    fn name(&self) -> String {
        Tool::name(&self.0)
    }

    fn definition<'a>(&'a self, prompt: String) -> WasmBoxedFuture<'a, ToolDefinition> {
        Box::pin(Tool::definition(&self.0, prompt))
    }

    fn call<'a>(&'a self, arguments: String) -> WasmBoxedFuture<'a, Result<String, ToolError>> {
        let parsed: Value = serde_json::from_str(&arguments).unwrap();
        lab::log(json!({"name": "researcher", "arguments": parsed, "error": false, "kind": "agent_as_tool"}));
        ToolDyn::call(&self.0, arguments)
    }
}

fn agent(name: &str, tools: Vec<Box<dyn ToolDyn>>) -> Agent<Model> {
    let client = openai::Client::builder().api_key("scripted").base_url(std::env::var("OPENAI_BASE_URL").unwrap()).build().unwrap().completions_api();
    client.agent("gpt-4o").name(name).preamble(&format!("You are the {name}.")).tools(tools).default_max_turns(5).build()
}

async fn ask(assistant: &Agent<Model>) -> Result<String, PromptError> {
    let mut history: Vec<Message> = vec![];
    let mut text = String::new();
    for question in lab::questions() {
        text = assistant.prompt(question).with_history(history.clone()).await?;
        history.extend([Message::user(question), Message::assistant(text.clone())]);
    }
    Ok(text)
}

async fn stream(assistant: &Agent<Model>) -> Result<String, PromptError> {
    let mut text = String::new();
    let mut items = assistant.stream_prompt(lab::QUESTION).await;
    while let Some(item) = items.next().await {
        if let Ok(MultiTurnStreamItem::FinalResponse(last)) = item {
            text = last.response().to_string();
        }
    }
    Ok(text)
}

#[tokio::main]
async fn main() {
    let provider = lab::export();
    let tools = || lab::TOOLS.map(|tool| Box::new(Called(tool)) as Box<dyn ToolDyn>).into_iter().collect::<Vec<_>>();
    let assistant = match lab::scenario().as_str() {
        "delegation" => agent("assistant", vec![Box::new(Asked(agent("researcher", tools())))]),
        _ => agent("assistant", tools()),
    };
    let answer = if lab::scenario() == "streaming" { stream(&assistant).await } else { ask(&assistant).await };
    tokio::task::spawn_blocking(move || lab::finish(provider, answer)).await.unwrap();
}
