import { parseArgs } from 'node:util';

/** What can be measured alone. */
export const parts = ['edits', 'streams', 'burst', 'folder', 'kubernetes'] as const;

/** One of them. */
export type Part = (typeof parts)[number];

/** What the user asked for. */
export interface XdsBenchOptions {
  readonly parts: readonly Part[];
  readonly quick: boolean;
  /** Write docs/benchmarks-xds.md. */
  readonly write: boolean;
  /** Flags of Node for the services. */
  readonly nodeFlags: readonly string[];
}

/** Options, a request for help, or what is wrong with them. */
export type ParsedXdsOptions =
  | { readonly kind: 'run'; readonly options: XdsBenchOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problem: string };

/** What `--help` prints. */
export const helpText = `make bench-xds ARGS="..."       or: node hack/bench/xds/main.ts ...

Measures services/xds with real limiters and a real kube-apiserver on this machine: how long an edit takes
until it is enforced, what 10,000 objects and 500 streams cost, and what becomes of 1,000 edits at once.

  --quick            a tenth of it: for trying, not for comparing
  --only <part>      only this one (may be repeated): ${parts.join(', ')}
                     (folder and kubernetes: where the 10,000 objects come from)
  --node-flag=<flag> run the services with this flag of Node (may be repeated), such as --cpu-prof
  --write            write docs/benchmarks-xds.md (all of it)
  --help             print this
`;

/** Reads command-line arguments. */
export function parseXdsOptions(args: readonly string[]): ParsedXdsOptions {
  const parsed = readArguments(args);
  if (typeof parsed === 'string') return { kind: 'wrong', problem: parsed };
  const { quick = false, write = false, help = false, only = [], 'node-flag': nodeFlags = [] } = parsed;
  if (help) return { kind: 'help' };
  const unknown = only.find((name) => !parts.some((part) => part === name));
  if (unknown !== undefined)
    return { kind: 'wrong', problem: `--only: there is no part '${unknown}'; there are ${parts.join(', ')}` };
  if (write && (quick || only.length > 0 || nodeFlags.length > 0))
    return {
      kind: 'wrong',
      problem: '--write: goes with the whole bench, without --quick, --only and --node-flag',
    };
  const chosen = only.length === 0 ? parts : parts.filter((part) => only.includes(part));
  return { kind: 'run', options: { parts: chosen, quick, write, nodeFlags } };
}

function readArguments(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        quick: { type: 'boolean' },
        write: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        only: { type: 'string', multiple: true },
        'node-flag': { type: 'string', multiple: true },
      },
    });
    return values;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
