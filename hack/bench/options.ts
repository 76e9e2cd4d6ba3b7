import { parseArgs } from 'node:util';
import { type Scenario, scenarios, usualScenarios } from './scenario.ts';

/** What the user asked for. */
export interface BenchOptions {
  scenarios: readonly Scenario[];
  /** A tenth of the time: for trying, not for comparing. */
  quick: boolean;
  /** Print JSON in place of the table. */
  json: boolean;
  /** Write docs/benchmarks.md. */
  write: boolean;
  /** Profile the service in place of measuring it. */
  profile: boolean;
  /** Calls a second while waiting times are measured. */
  rate: number;
  connections: number;
  /** Calls in flight on each connection while the maximum is sought. */
  streams: number;
  /** Command-line flags of Node for the service, to try what they change. */
  nodeFlags: readonly string[];
}

/** Options, a request for help, or what is wrong with them. */
export type ParsedOptions =
  | { kind: 'run'; options: BenchOptions }
  | { kind: 'help' }
  | { kind: 'wrong'; problems: readonly string[] };

const maxRate = 100_000;
const maxConnections = 100;
/** What every gRPC server allows on a connection. */
const maxStreams = 100;

const names = scenarios.map(({ name }) => name);

/** What `--help` prints. */
export const helpText = `make bench ARGS="..."       or: node hack/bench/main.ts ...

Measures services/ratelimit on this machine, over loopback only: decisions a second, CPU time of the
service a decision, waiting times at a fixed rate, memory, and the time that rules take to load.

  --quick            a tenth of the time: for trying, not for comparing
  --only <scenario>  only this one (may be repeated): ${names.slice(0, 3).join(', ')},
                     ${names.slice(3, 6).join(', ')},
                     ${names[6]} (a Redis Cluster of three nodes; not unless it is named),
                     ${names.slice(7).join(', ')}
  --rate <n>         calls a second while waiting times are measured (default 2000, at most ${maxRate})
  --connections <n>  connections to the service (default 8, at most ${maxConnections})
  --streams <n>      calls in flight on each, while the maximum is sought (default 16, at most ${maxStreams})
  --node-flag=<flag> run the service with this flag of Node (may be repeated), such as --max-semi-space-size=32
  --profile          keep a CPU profile of the service for each scenario and print its busiest functions
  --json             print JSON in place of the table
  --write            write docs/benchmarks.md (all scenarios, full time)
  --help             print this
`;

/** Reads command-line arguments; all problems are listed at once where the parser lets us. */
export function parseOptions(args: readonly string[]): ParsedOptions {
  const parsed = readArguments(args);
  if (typeof parsed === 'string') return { kind: 'wrong', problems: [parsed] };
  if (parsed.help === true) return { kind: 'help' };

  const problems: string[] = [];
  const count = (name: 'rate' | 'connections' | 'streams', fallback: number, max: number): number => {
    const text = parsed[name];
    if (text === undefined) return fallback;
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
    problems.push(`--${name}: expected a whole number from 1 to ${max}, not '${text}'`);
    return fallback;
  };
  const only = parsed.only ?? [];
  for (const name of only) {
    if (!scenarios.some((scenario) => scenario.name === name)) {
      problems.push(`--only: there is no scenario '${name}'; there are ${names.join(', ')}`);
    }
  }
  const options: BenchOptions = {
    scenarios: only.length === 0 ? usualScenarios : scenarios.filter(({ name }) => only.includes(name)),
    quick: parsed.quick === true,
    json: parsed.json === true,
    write: parsed.write === true,
    profile: parsed.profile === true,
    rate: count('rate', 2000, maxRate),
    connections: count('connections', 8, maxConnections),
    streams: count('streams', 16, maxStreams),
    nodeFlags: parsed['node-flag'] ?? [],
  };
  if (
    options.write &&
    (options.quick || options.profile || only.length > 0 || options.nodeFlags.length > 0)
  ) {
    problems.push('--write: goes with the whole bench, without --quick, --only, --profile and --node-flag');
  }
  return problems.length > 0 ? { kind: 'wrong', problems } : { kind: 'run', options };
}

function readArguments(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      strict: true,
      options: {
        quick: { type: 'boolean' },
        json: { type: 'boolean' },
        write: { type: 'boolean' },
        profile: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        only: { type: 'string', multiple: true },
        rate: { type: 'string' },
        connections: { type: 'string' },
        streams: { type: 'string' },
        'node-flag': { type: 'string', multiple: true },
      },
    });
    return values;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
