"""Scenario files: read (`reading`), played in the model world (`production`), told (`timeline`), kept (`failure`).

    scenario = load_scenario(Path("scenarios/incidents/702.toml"))
    report = play(scenario, "codex@0.146.0", Seeded(7))
    report.verdict, report.failures, report.events, report.decisions

`README.md` is for whoever writes one.
"""
