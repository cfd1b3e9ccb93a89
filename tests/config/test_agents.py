"""Agents: folders with a workspace, and which case has which (spec: config.md §1, §2)."""

from __future__ import annotations

import pytest

AGENT = "schema_version: 1\nagent_id: {agent_id}\ntitle: An agent\n"
PROFILE = """\
schema_version: 1
run_profile_id: p
title: P
openclaw: {agent_id: helper, image: null, timeout_seconds: 60}
"""


@pytest.fixture
def agents(files):
    """Three cases and two agents; the run profile's is `helper`."""
    for case_id, tags in [("a", "long"), ("b", "long"), ("c", "")]:
        files.case(case_id, tags)
    for agent_id in ("helper", "expert"):
        agent(files, agent_id)
    files.write("configs/run_profiles/p.yaml", PROFILE)
    return files


def agent(files, agent_id: str, more: str = "") -> None:
    files.write(f"configs/agents/{agent_id}/agent.yaml", AGENT.format(agent_id=agent_id) + more)
    files.write(f"configs/agents/{agent_id}/workspace/SOUL.md", agent_id)


def assign(files, *assignments: str) -> None:
    listed = "".join(f"    - {one}\n" for one in assignments)
    files.suite("openclaw:\n  agent_assignments:\n" + listed)


def of_cases(suite) -> dict[str, str | None]:
    return {case.config.case_id: case.agent.config.agent_id if case.agent else None for case in suite.cases}


class TestAssignment:
    def test_ids_tags_and_the_default(self, agents):
        """An assignment selects by id and tag, exclusions hold; the run profile's agent has the rest."""
        assign(agents, "{agent_id: expert, case_selection: {include_tags: [long], exclude_case_ids: [b]}}")

        assert of_cases(agents.load(run_profile="p")) == {"a": "expert", "b": "helper", "c": "helper"}
        assert of_cases(agents.load()) == {"a": "expert", "b": None, "c": None}

    def test_a_case_of_two_agents_is_refused(self, agents):
        """The problem names the case, both agents and both places."""
        assign(
            agents,
            "{agent_id: expert, case_selection: {include_tags: [long]}}",
            "{agent_id: helper, case_selection: {include_case_ids: [b, c]}}",
        )

        assert agents.problems() == [
            "configs/suites/main.yaml:7:7: `openclaw.agent_assignments.1` `helper` selects the case `b`, which `expert` "
            "(line 6) selects as well. A case has one agent."
        ]

    def test_an_assignment_includes_something(self, agents):
        """An empty selection, unknown cases and unknown agents are all reported at once."""
        assign(
            agents,
            "{agent_id: expert, case_selection: {exclude_tags: [long]}}",
        )
        assert agents.problems() == [
            "configs/suites/main.yaml:6:42: `openclaw.agent_assignments.0.case_selection` an assignment needs "
            "`include_case_ids` or `include_tags`; the agent of all other cases is `openclaw.agent_id` of the run profile"
        ]
        assign(agents, "{agent_id: export, case_selection: {include_case_ids: [x], exclude_case_ids: [y]}}")

        assert agents.problems() == [
            "configs/suites/main.yaml:6:18: `openclaw.agent_assignments.0.agent_id` there is no agent 'export' in "
            "configs/agents (export/agent.yaml). Did you mean `expert`?",
            "configs/suites/main.yaml:6:62: `openclaw.agent_assignments.0.case_selection.include_case_ids.0` there is no "
            "case 'x'",
            "configs/suites/main.yaml:6:85: `openclaw.agent_assignments.0.case_selection.exclude_case_ids.0` there is no "
            "case 'y'",
        ]

    def test_an_assignment_without_cases_is_a_warning(self, agents):
        """An assignment that selects no case of the suite is probably a mistake, and harmless."""
        assign(agents, "{agent_id: expert, case_selection: {include_tags: [short]}}")

        assert agents.load().warnings == (
            "configs/suites/main.yaml: the assignment of the agent `expert` selects no case of the suite",
        )


class TestAgentFile:
    def test_every_key(self, agents):
        """What the OpenClaw CLI will be given arrives as written."""
        agent(
            agents,
            "expert",
            "description: Knows\ntags: [x]\nopenclaw:\n  agents_defaults: {sandbox: {mode: off}}\n"
            "  agent: {id: the-expert, prompt: Be precise.}\n  model_defaults: {aliases: {default: main}, fallbacks: []}\n",
        )
        assign(agents, "{agent_id: expert, case_selection: {include_case_ids: [a]}}")
        found = agents.load().cases[0].agent

        assert (found.config.description, found.config.tags) == ("Knows", ["x"])
        assert found.config.openclaw.agents_defaults == {"sandbox": {"mode": False}}
        assert found.config.openclaw.agent.id == "the-expert"
        assert found.config.openclaw.model_defaults.aliases == {"default": "main"}
        assert found.workspace == agents.root / "configs/agents/expert/workspace"

    @pytest.mark.parametrize(
        ("more", "sentence"),
        [
            (
                "openclaw: {identity: {name: X}}\n",
                "agent.yaml:4:22: `openclaw.identity` the OpenClaw CLI does not take `identity` from its configuration; "
                "write the persona into `workspace/IDENTITY.md` and `workspace/SOUL.md`",
            ),
            (
                "openclaw: {model_defaults: {fallbacks: [x]}}\n",
                "`openclaw.model_defaults.fallbacks` a run uses exactly one model; `fallbacks` are rejected",
            ),
            (
                "openclaw: {agents_defaults: {model: {fallbacks: [x]}}}\n",
                "`openclaw.agents_defaults` `model`: a run uses exactly one model; `fallbacks` are rejected",
            ),
            (
                "openclaw: {model_defaults: {aliases: {other: x}}}\n",
                "a run uses one model, whose alias is `default`; found 'other'",
            ),
            ("openclaw: {agent: {name: x}}\n", "`openclaw.agent.name` is not a known key; known are `id`, `prompt`"),
            ("opencalw: {}\n", "`opencalw` is not a known key"),
        ],
    )
    def test_what_cannot_be_meant(self, agents, more, sentence):
        """A persona in the configuration, fallbacks and misspelt keys are reported with their place."""
        agent(agents, "expert", more)
        assign(agents, "{agent_id: expert, case_selection: {include_case_ids: [a]}}")

        (problem,) = agents.problems()
        assert problem.startswith("configs/agents/expert/agent.yaml:4:")
        assert sentence in problem

    def test_the_folder_is_the_name_and_holds_a_workspace(self, agents):
        """An id that is not the folder's, and a missing workspace, are reported together with the file."""
        (agents.root / "configs/agents/expert").rename(agents.root / "configs/agents/wizard")
        (agents.root / "configs/agents/wizard/workspace/SOUL.md").unlink()
        (agents.root / "configs/agents/wizard/workspace").rmdir()
        assign(agents, "{agent_id: wizard, case_selection: {include_case_ids: [a]}}")

        assert agents.problems() == [
            "configs/agents/wizard/agent.yaml:1:1: the folder configs/agents/wizard/workspace does not exist; create "
            "it for the agent's files; it may be empty",
            "configs/agents/wizard/agent.yaml:2:11: `agent_id` must be the name of the agent's folder, 'wizard', found "
            "'expert'",
        ]

    def test_yml_works(self, agents):
        """Both suffixes are good, as everywhere."""
        home = agents.root / "configs/agents/helper"
        (home / "agent.yaml").rename(home / "agent.yml")
        agents.suite()

        assert of_cases(agents.load(run_profile="p"))["a"] == "helper"


class TestRunProfile:
    def test_the_block(self, agents):
        """`image: null` is the CLI of this machine; docker is the default program."""
        agents.suite()
        block = agents.load(run_profile="p").run_profile.openclaw

        assert (block.agent_id, block.image, block.timeout_seconds, block.docker_cli) == ("helper", None, 60, "docker")

    def test_the_block_goes_over_the_defaults_and_the_case_over_it(self, agents):
        """Only for the runner that it is about."""
        agents.suite("models: [{model_id: m}]\n")
        more = "runner_defaults: {timeout_seconds: 7, deny_tools: [exec]}\nmodel_overrides: {m: {timeout_seconds: 8}}\n"
        agents.write("configs/run_profiles/p.yaml", PROFILE + more)
        text = "schema_version: 1\ncase_id: {}\ntitle: A\nrunner: {{type: openclaw{}}}\n"
        message = "input: {messages: [{role: user, content: hello}]}\n"
        agents.case("b", text=text.format("b", "") + message)
        agents.case("c", text=text.format("c", ", timeout_seconds: 9") + message)
        found = {case.config.case_id: case.settings["m"] for case in agents.load(run_profile="p").cases}

        assert [found[name].timeout_seconds for name in "abc"] == [8, 60, 9]
        assert (found["b"].image, found["b"].deny_tools) == (None, ["exec"])

    def test_an_image_that_no_case_uses_is_a_warning(self, agents):
        """Cases of other runners have the block's agent, and nothing else of it."""
        agents.suite()
        agents.write("configs/run_profiles/p.yaml", PROFILE.replace("image: null", "image: 'claw:1'"))
        warnings = agents.load(run_profile="p").warnings

        assert [one for one in warnings if "no effect" in one] == [
            "configs/run_profiles/p.yaml:4:30: `openclaw.image` has no effect: no case of the suite has the runner `openclaw`"
        ]

    def test_what_is_required(self, agents):
        """Agent, image and time limit must be said; the agent must exist."""
        agents.suite()
        agents.write("configs/run_profiles/p.yaml", PROFILE.replace("{agent_id: helper, image: null,", "{"))
        assert [problem.split(": ", 1)[1] for problem in agents.problems(run_profile="p")] == [
            "`openclaw.agent_id` is required",
            "`openclaw.image` is required",
        ]
        agents.write("configs/run_profiles/p.yaml", PROFILE.replace("agent_id: helper", "agent_id: nobody"))

        assert agents.problems(run_profile="p") == [
            "configs/run_profiles/p.yaml:4:22: `openclaw.agent_id` there is no agent 'nobody' in configs/agents "
            "(nobody/agent.yaml). Known are expert, helper."
        ]
