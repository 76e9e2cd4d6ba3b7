import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { runLoad } from './load/run-load.ts';
import { fullTimes, loadPlan } from './measure-decisions.ts';
import type { BenchOptions } from './options.ts';
import { formatTable } from './report/format-table.ts';
import { type CpuProfile, topFunctions } from './report/top-functions.ts';
import type { DecisionScenario, RulesScenario } from './scenario.ts';
import { startTestBed } from './test-bed.ts';

/** Where profiles are kept: not under version control. */
const profilesFolder = join(import.meta.dirname, '../../.tools/profiles');
const root = join(import.meta.dirname, '../..');
const shownFunctions = 25;

/** The part of a profile that is of interest, on the clock that V8 uses (CLOCK_MONOTONIC). */
interface ProfiledPart {
  fromMicros: number;
  toMicros: number;
  /** Decisions made in it; 0 when it is about loading rules. */
  decisions: number;
}

/**
 * Runs a scenario with V8's CPU profiler on, keeps the profile, and answers its busiest functions as a table.
 * For decisions that is the measured part of the maximum load; for rules it is the start of the service.
 */
export async function profileScenario(
  scenario: DecisionScenario | RulesScenario,
  options: BenchOptions,
): Promise<string> {
  const folder = join(profilesFolder, scenario.name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const part = await runProfiled(scenario, options, folder);
  const kept = join(profilesFolder, `${scenario.name}.cpuprofile`);
  const written = readdirSync(folder).find((name) => name.endsWith('.cpuprofile'));
  if (written === undefined) throw new Error('the service wrote no CPU profile');
  renameSync(join(folder, written), kept);
  rmSync(folder, { recursive: true });
  // V8's own format.
  const profile = JSON.parse(readFileSync(kept, 'utf8')) as CpuProfile;
  return formatProfile(scenario.name, relative(root, kept), profile, part);
}

async function runProfiled(
  scenario: DecisionScenario | RulesScenario,
  options: BenchOptions,
  profileFolder: string,
): Promise<ProfiledPart> {
  const part: ProfiledPart = { fromMicros: nowMicros(), toMicros: Number.POSITIVE_INFINITY, decisions: 0 };
  const backend = scenario.kind === 'decisions' ? scenario.backend : 'memory';
  const bed = await startTestBed({
    backend,
    rules: scenario.rules,
    nodeFlags: [...options.nodeFlags, '--cpu-prof', `--cpu-prof-dir=${profileFolder}`],
  });
  try {
    part.toMicros = nowMicros();
    if (scenario.kind !== 'decisions') return part;
    const factor = options.quick ? 0.1 : 1;
    const { counts } = await runLoad(
      {
        ...loadPlan(bed, scenario.keys, options),
        warmUpMs: fullTimes.warmUpMs * factor,
        measureMs: fullTimes.maximumMs * factor,
        load: { kind: 'closed', streams: options.streams },
      },
      {
        onMeasuring: () => {
          part.fromMicros = nowMicros();
        },
        onMeasured: () => {
          part.toMicros = nowMicros();
        },
      },
    );
    return { ...part, decisions: counts.decisions };
  } finally {
    await bed.close();
  }
}

function nowMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

function formatProfile(name: string, file: string, profile: CpuProfile, part: ProfiledPart): string {
  const functions = topFunctions(profile, root, part);
  const totalMicros = functions.reduce((sum, { selfMicros }) => sum + selfMicros, 0);
  const perDecision = (micros: number) => (part.decisions > 0 ? (micros / part.decisions).toFixed(2) : '–');
  const table = formatTable(
    [
      { head: '%', cell: ({ selfMicros }) => ((selfMicros / totalMicros) * 100).toFixed(1) },
      { head: 'ms', cell: ({ selfMicros }) => (selfMicros / 1000).toFixed(0) },
      { head: 'µs/decision', cell: ({ selfMicros }) => perDecision(selfMicros) },
      { head: 'function', align: 'left', cell: (row) => row.name },
      { head: 'place', align: 'left', cell: (row) => row.place },
    ],
    functions.slice(0, shownFunctions),
  );
  const total = `${(totalMicros / 1000).toFixed(0)} ms, ${perDecision(totalMicros)} µs a decision, profiler included`;
  return `${name}: ${file}\n${total}\n${table}\n`;
}
