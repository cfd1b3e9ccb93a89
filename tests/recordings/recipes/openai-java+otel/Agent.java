import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import io.opentelemetry.instrumentation.openai.v1_1.OpenAITelemetry;
import java.util.Map;

/** A plain loop of chat completions; tools and agent have no spans. */
public class Agent {
    static ChatCompletion ask(OpenAIClient client, ChatCompletionCreateParams params, boolean streaming) {
        if (!streaming) {
            return client.chat().completions().create(params);
        }
        var whole = ChatCompletionAccumulator.create();
        var counted = params.toBuilder().streamOptions(ChatCompletionStreamOptions.builder().includeUsage(true).build()).build();
        try (var stream = client.chat().completions().createStreaming(counted)) {
            stream.stream().forEach(whole::accumulate);
        }
        return whole.chatCompletion();
    }

    @SuppressWarnings("unchecked")
    static String run(String name, Map<String, Object> arguments) {
        try {
            return Lab.TOOLS.stream().filter(tool -> tool.name().equals(name)).findFirst().orElseThrow().run(arguments);
        } catch (RuntimeException error) {
            return "error: " + error.getMessage();
        }
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] arguments) throws Exception {
        var sdk = Lab.export();
        var scenario = arguments[0];
        var plain = OpenAIOkHttpClient.builder().apiKey("scripted").baseUrl(Lab.URL).maxRetries(0).build();
        var client = OpenAITelemetry.builder(sdk).setCaptureMessageContent(true).build().wrap(plain);
        var params = ChatCompletionCreateParams.builder().model("gpt-4o").addSystemMessage("You are the assistant.");
        for (var tool : Lab.TOOLS) {
            var schema = FunctionParameters.builder();
            tool.schema().forEach((key, value) -> schema.putAdditionalProperty(key, JsonValue.from(value)));
            params.addFunctionTool(FunctionDefinition.builder().name(tool.name()).description(tool.description()).parameters(schema.build()).build());
        }
        Lab.run(sdk, () -> {
            var text = "";
            for (var question : Lab.questions(scenario)) {
                params.addUserMessage(question);
                for (var more = true; more; ) {
                    var message = ask(client, params.build(), scenario.equals("streaming")).choices().get(0).message();
                    params.addMessage(message);
                    var calls = message.toolCalls().orElse(java.util.List.of());
                    for (var call : calls) {
                        var function = call.asFunction().function();
                        var result = run(function.name(), function.arguments(Map.class));
                        params.addMessage(ChatCompletionToolMessageParam.builder().toolCallId(call.asFunction().id()).content(result).build());
                    }
                    text = message.content().orElse("");
                    more = !calls.isEmpty();
                }
            }
            return text;
        });
    }
}
