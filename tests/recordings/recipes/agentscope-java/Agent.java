import io.agentscope.core.ReActAgent;
import io.agentscope.core.memory.InMemoryMemory;
import io.agentscope.core.message.Msg;
import io.agentscope.core.message.MsgRole;
import io.agentscope.core.message.TextBlock;
import io.agentscope.core.message.ToolResultBlock;
import io.agentscope.core.model.OpenAIChatModel;
import io.agentscope.core.tool.AgentTool;
import io.agentscope.core.tool.ToolCallParam;
import io.agentscope.core.tool.Toolkit;
import io.agentscope.core.tool.subagent.SubAgentConfig;
import io.agentscope.core.tool.subagent.SubAgentTool;
import io.agentscope.core.tracing.TracerRegistry;
import io.agentscope.core.tracing.telemetry.TelemetryTracer;
import java.util.Map;
import reactor.core.publisher.Mono;

public class Agent {
    record Called(Lab.Tool tool) implements AgentTool {
        public String getName() {
            return tool.name();
        }

        public String getDescription() {
            return tool.description();
        }

        public Map<String, Object> getParameters() {
            return tool.schema();
        }

        public Mono<ToolResultBlock> callAsync(ToolCallParam call) {
            return Mono.fromCallable(() -> ToolResultBlock.text(tool.run(call.getInput())));
        }
    }

    record Asked(SubAgentTool tool) implements AgentTool {
        public String getName() {
            return tool.getName();
        }

        public String getDescription() {
            return tool.getDescription();
        }

        public Map<String, Object> getParameters() {
            return tool.getParameters();
        }

        public Mono<ToolResultBlock> callAsync(ToolCallParam call) {
            Lab.logAgent(getName(), call.getInput());
            return tool.callAsync(call);
        }
    }

    static ReActAgent.Builder agent(String name, Toolkit tools, boolean streaming) {
        var model = OpenAIChatModel.builder().apiKey("scripted").baseUrl(Lab.URL).modelName("gpt-4o").stream(streaming).build();
        return ReActAgent.builder().name(name).sysPrompt("You are the " + name + ".").model(model).toolkit(tools).memory(new InMemoryMemory());
    }

    public static void main(String[] arguments) throws Exception {
        var sdk = Lab.export();
        TracerRegistry.register(TelemetryTracer.builder().tracer(sdk.getTracer("agentscope-java", "1.0.9")).build());
        var scenario = arguments[0];
        var streaming = scenario.equals("streaming");
        var tools = new Toolkit();
        Lab.TOOLS.forEach(tool -> tools.registerAgentTool(new Called(tool)));
        var offered = tools;
        if (scenario.equals("delegation")) {
            offered = new Toolkit();
            offered.registerAgentTool(new Asked(new SubAgentTool(() -> agent("researcher", tools, false).description("Finds things out").build(), SubAgentConfig.defaults())));
        }
        var assistant = agent("assistant", offered, streaming).build();
        Lab.run(sdk, () -> {
            var text = "";
            for (var question : Lab.questions(scenario)) {
                var asked = Msg.builder().name("user").role(MsgRole.USER).content(TextBlock.builder().text(question).build()).build();
                text = assistant.call(asked).block().getTextContent();
            }
            Thread.sleep(500); // the last spans end after the answer was handed over
            return text;
        });
    }
}
