import { busyLoad, type MachineFacts } from './machine-facts.ts';
import { type DecisionResult, measureDecisions } from './measure-decisions.ts';
import { measureRules, type RulesResult } from './measure-rules.ts';
import { measureStandAlone, type StandAloneResult } from './measure-stand-alone.ts';
import type { BenchOptions } from './options.ts';
import { profileScenario } from './profile-scenario.ts';
import { writeBenchmarksPage } from './report/benchmarks-page.ts';
import { columnNotes, decisionColumns, rulesColumns, standAloneColumns } from './report/columns.ts';
import { formatFacts } from './report/format-facts.ts';
import { formatTable } from './report/format-table.ts';

/** What the bench needs from outside. */
export interface BenchDeps {
  facts: MachineFacts;
  /** Takes the results, a line or more at a time. */
  print: (text: string) => void;
  /** Takes what happens meanwhile, without a line end. */
  progress: (text: string) => void;
}

/** Everything that was measured. */
export interface BenchResults {
  decisions: DecisionResult[];
  rules: RulesResult[];
  standAlone: StandAloneResult[];
}

/**
 * Runs the scenarios one after the other and prints what they gave. Answers whether the numbers can be trusted: false
 * when a call failed or was over a limit, which no call of the bench should be.
 */
export async function runBench(options: BenchOptions, deps: BenchDeps): Promise<boolean> {
  if (deps.facts.load > busyLoad) {
    deps.progress(`bench: this machine is busy (load ${deps.facts.load.toFixed(1)}): expect worse numbers\n`);
  }
  if (options.profile) {
    for (const scenario of options.scenarios) {
      if (scenario.kind === 'stand-alone') continue;
      deps.progress(`bench: profiling ${scenario.name}\n`);
      deps.print(await profileScenario(scenario, options));
    }
    return true;
  }
  const results = await measureAll(options, deps);
  if (options.json) {
    deps.print(
      JSON.stringify({ facts: deps.facts, options: jsonOptions(options), ...results }, undefined, 2),
    );
  } else {
    printTables(results, deps);
  }
  if (options.write) deps.progress(`bench: wrote ${writeBenchmarksPage(results, options, deps.facts)}\n`);
  return reportUnsound(results, deps);
}

async function measureAll(options: BenchOptions, { progress }: BenchDeps): Promise<BenchResults> {
  const results: BenchResults = { decisions: [], rules: [], standAlone: [] };
  for (const scenario of options.scenarios) {
    progress(`bench: ${scenario.name} ...`);
    const startedAt = performance.now();
    if (scenario.kind === 'decisions') results.decisions.push(await measureDecisions(scenario, options));
    else if (scenario.kind === 'rules') results.rules.push(await measureRules(scenario, options.nodeFlags));
    else results.standAlone.push(...(await measureStandAlone()));
    progress(` ${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`);
  }
  return results;
}

function printTables({ decisions, rules, standAlone }: BenchResults, { facts, print }: BenchDeps): void {
  print(`\n${formatFacts(facts)}\n`);
  if (decisions.length > 0) print(`${formatTable(decisionColumns, decisions)}\n`);
  if (rules.length > 0) print(`${formatTable(rulesColumns, rules)}\n`);
  if (standAlone.length > 0) print(`${formatTable(standAloneColumns, standAlone)}\n`);
  print(columnNotes.join('\n'));
}

function reportUnsound({ decisions }: BenchResults, { progress }: BenchDeps): boolean {
  let sound = true;
  for (const { scenario, failures, overLimit } of decisions) {
    const faults = Object.entries(failures).map(([what, count]) => `${count} × grpc-status ${what}`);
    if (overLimit > 0) faults.push(`${overLimit} × OVER_LIMIT`);
    if (faults.length === 0) continue;
    progress(`bench: ${scenario.name}: ${faults.join(', ')}\n`);
    sound = false;
  }
  return sound;
}

function jsonOptions({ scenarios, ...options }: BenchOptions) {
  return { ...options, scenarios: scenarios.map(({ name }) => name) };
}
