import { type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import packageJson from '../../package.json' with { type: 'json' };

interface Command {
  readonly args?: string;
  readonly doc: string;
  readonly run: (args: readonly string[]) => Promise<Outcome>;
}

/** Commands by name. Only the code of the one that runs is loaded. */
const commands: Readonly<Record<string, Command>> = {
  test: {
    args: '<folder of rule files> <file of cases>',
    doc: 'Decide requests by the rules and compare the decisions; test -help has more.',
    run: async (args) => (await import('./test-rules.ts')).testRules(args),
  },
  counters: {
    args: '<command>',
    doc: 'Read and change the counters of a running service; counters -help has more.',
    run: async (args) => (await import('./counters.ts')).runCounters(args, process.env),
  },
  trial: {
    doc: 'Show what the rules on trial of a running service would change; trial -help has more.',
    run: async (args) => (await import('./trial.ts')).showTrial(args),
  },
};

function describeCommand([name, { args, doc }]: readonly [string, Command]): string {
  return `  ${[name, args].filter(Boolean).join(' ')}\n        ${doc}`;
}

const help = `tollgate-ratelimit

The rate limit service for Envoy (envoy.service.ratelimit.v3). It reads rules from YAML files or from a management server
(xDS), and keeps counters in Redis, memcached or memory.

It is configured by environment variables, see docs/settings-ratelimit.md. To try it:

  BACKEND_TYPE=memory USE_PUSHSTATS=false RUNTIME_ROOT=<folder> RUNTIME_APPDIRECTORY=<folder of rule files in it> tollgate-ratelimit

  -version
        Print the version.
  -help
        Print this help.

${Object.entries(commands).map(describeCommand).join('\n\n')}

tollgate-ratelimit-client calls a running service, tollgate-ratelimit-check validates rule files.
`;

/** The outcome of command line arguments; undefined without arguments, which starts the service. */
export async function handleArguments(args: readonly string[]): Promise<Outcome | undefined> {
  const [first, ...rest] = args;
  if (first === undefined) return undefined;
  const command = Object.hasOwn(commands, first) ? commands[first] : undefined;
  if (command !== undefined) return command.run(rest);
  const parsed = parseFlags({ version: { kind: 'switch', doc: 'Print the version.' } }, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'values') return { exitCode: 0, output: `tollgate-ratelimit ${packageJson.version}\n` };
  return wrongUsage('tollgate-ratelimit', [
    ...parsed.problems,
    'the service is configured by environment variables',
  ]);
}
