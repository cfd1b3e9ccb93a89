import com.google.adk.agents.LlmAgent;
import com.google.adk.agents.RunConfig;
import com.google.adk.models.Gemini;
import com.google.adk.runner.InMemoryRunner;
import com.google.adk.tools.AgentTool;
import com.google.adk.tools.BaseTool;
import com.google.adk.tools.ToolContext;
import com.google.genai.Client;
import com.google.genai.types.Content;
import com.google.genai.types.FunctionDeclaration;
import com.google.genai.types.HttpOptions;
import com.google.genai.types.Part;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Single;
import java.util.List;
import java.util.Map;
import java.util.Optional;

public class Agent {
    static class Called extends BaseTool {
        private final Lab.Tool tool;

        Called(Lab.Tool tool) {
            super(tool.name(), tool.description());
            this.tool = tool;
        }

        @Override
        public Optional<FunctionDeclaration> declaration() {
            return Optional.of(FunctionDeclaration.builder().name(name()).description(description()).parametersJsonSchema(tool.schema()).build());
        }

        @Override
        public Single<Map<String, Object>> runAsync(Map<String, Object> arguments, ToolContext context) {
            return Single.fromCallable(() -> Map.of("result", tool.run(arguments)));
        }
    }

    static LlmAgent.Builder agent(String name) {
        var options = HttpOptions.builder().baseUrl(Lab.URL.replace("/v1", "")).build();
        var client = Client.builder().apiKey("scripted").httpOptions(options).build();
        var model = Gemini.builder().modelName("gpt-4o").apiClient(client).build();
        return LlmAgent.builder().name(name).model(model).description("The " + name).instruction("You are the " + name + ".");
    }

    public static void main(String[] arguments) throws Exception {
        var sdk = Lab.export();
        var scenario = arguments[0];
        var tools = Lab.TOOLS.stream().map(Called::new).toList();
        var assistant = switch (scenario) {
            case "delegation" -> agent("assistant").tools(List.of(AgentTool.create(agent("researcher").tools(tools).build())))
                .beforeToolCallback((context, tool, input, of) -> { Lab.logAgent(tool.name(), input); return Maybe.empty(); }).build();
            case "transfer" -> agent("assistant").subAgents(agent("researcher").tools(tools).build()).build();
            default -> agent("assistant").tools(tools).build();
        };
        var runner = new InMemoryRunner(assistant);
        var mode = scenario.equals("streaming") ? RunConfig.StreamingMode.SSE : RunConfig.StreamingMode.NONE;
        var config = RunConfig.builder().streamingMode(mode).build();
        Lab.run(sdk, () -> {
            var session = runner.sessionService().createSession(runner.appName(), "user").blockingGet();
            var text = "";
            for (var question : Lab.questions(scenario)) {
                for (var event : runner.runAsync("user", session.id(), Content.fromParts(Part.fromText(question)), config).blockingIterable()) {
                    if (event.finalResponse() && !event.partial().orElse(false) && event.content().isPresent()) {
                        text = event.stringifyContent();
                    }
                }
            }
            return text;
        });
    }
}
