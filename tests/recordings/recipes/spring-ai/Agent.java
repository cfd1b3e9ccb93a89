import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.tool.ToolCallback;
import org.springframework.ai.tool.function.FunctionToolCallback;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Configuration;
import tools.jackson.databind.json.JsonMapper;

@Configuration
@EnableAutoConfiguration
public class Agent {
    static final JsonMapper JSON = JsonMapper.shared();

    static ToolCallback called(String name, String description, Map<String, Object> schema, Function<Map<String, Object>, Object> body) {
        return FunctionToolCallback.builder(name, body).description(description).inputSchema(JSON.writeValueAsString(schema)).inputType(Map.class).build();
    }

    static String ask(ChatClient client, String name, List<Message> messages, List<ToolCallback> tools, boolean streaming) {
        var spec = client.prompt().system("You are the " + name + ".").messages(messages).toolCallbacks(tools);
        return streaming ? String.join("", spec.stream().content().collectList().block()) : spec.call().content();
    }

    public static void main(String[] arguments) throws Exception {
        var application = new SpringApplication(Agent.class);
        application.setDefaultProperties(Map.of(
            "spring.application.name", "agent", "spring.main.banner-mode", "off", "spring.ai.openai.base-url", Lab.URL, "spring.ai.openai.api-key", "scripted",
            "spring.ai.openai.chat.model", "gpt-4o", "spring.ai.openai.chat.options.model", "gpt-4o", "spring.ai.tools.observations.include-content", "true",
            "management.tracing.sampling.probability", "1.0",
            "management.opentelemetry.tracing.export.otlp.endpoint", System.getenv("OTEL_EXPORTER_OTLP_ENDPOINT") + "/v1/traces"));
        var context = application.run();
        var client = context.getBean(ChatClient.Builder.class).build();
        var scenario = arguments[0];
        var streaming = scenario.equals("streaming");
        List<ToolCallback> tools = Lab.TOOLS.stream().map(tool -> called(tool.name(), tool.description(), tool.schema(), input -> Map.of("result", tool.run(input)))).toList();
        var query = Map.<String, Object>of("type", "object", "properties", Map.of("query", Map.of("type", "string")), "required", List.of("query"));
        List<ToolCallback> offered = !scenario.equals("delegation") ? tools : List.of(called("researcher", "Finds things out", query, input -> {
            Lab.logAgent("researcher", input);
            return ask(client, "researcher", List.of(new UserMessage(input.get("query").toString())), tools, false);
        }));
        Lab.run(context, () -> {
            var messages = new ArrayList<Message>();
            var text = "";
            for (var question : Lab.questions(scenario)) {
                messages.add(new UserMessage(question));
                text = ask(client, "assistant", messages, offered, streaming);
                messages.add(new AssistantMessage(text));
            }
            return text;
        });
    }
}
