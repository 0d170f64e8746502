"""The engine: context windows, prompt caches and compactions of coding agents. No network, no clock, no files.

Doors:
    transcripts.transcript.read_transcript      lines of a transcript -> entries
    timeline.read_entries.read_observation      entry -> observation, which is stored
    timeline.build.build_timeline               observations of all sources -> threads and calls
    cache.breaks.judge_thread                   calls -> cache breaks, expected rebuilds and their causes
    context.thresholds.compute_thresholds       policy and model -> thresholds of the context window
    compactors.selections.compact_full          conversation -> summary; also compact_from, compact_up_to
    compactors.auto.run_auto                    the automatic compaction of an agent's turn
    compactors.restore.restorer.ContextRestorer files, plan and skills that follow a summary
    audit.audit.audit_compaction                conversation before and after -> what was lost and retained

Floors, each of which imports only those before it:
    llm, transcripts, context, prompt, timeline, cache, activity, compactors and audit

Rules by file:
    transcripts.user_lines   which user lines start a turn
    timeline.sources         whose report wins when several sources report one call
    cache.policy             what counts as a loss: 5% and 2,000 tokens
    cache.causes             the table of causes, and where each one is detected
    llm.table                a model: its windows, output limit and least cacheable prefix
    context.margins          distances between thresholds, the reserve, the output cap of a summary
    transcripts.rounds       where a partial compaction may cut
    audit.score              the weights of what a compaction retained

docs/mechanisms.md maps every mechanism to its file, its test and the page where a user meets it.
"""
