import { type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import packageJson from '../../package.json' with { type: 'json' };

const help = `tollgate-ratelimit

The rate limit service for Envoy (envoy.service.ratelimit.v3). It reads rules from YAML files or from a management server
(xDS), and keeps counters in Redis, memcached or memory.

It is configured by environment variables, see docs/settings-ratelimit.md. To try it:

  BACKEND_TYPE=memory USE_PUSHSTATS=false RUNTIME_ROOT=<folder> RUNTIME_APPDIRECTORY=<folder of rule files in it> tollgate-ratelimit

  -version
        Print the version.
  -help
        Print this help.

  test <folder of rule files> <file of cases>
        Decide requests by the rules and compare the decisions; test -help has more.

  counters <command>
        Read and change the counters of a running service; counters -help has more.

  trial
        Show what the rules on trial of a running service would change; trial -help has more.

tollgate-ratelimit-client calls a running service, tollgate-ratelimit-check validates rule files.
`;

/** The outcome of command line arguments; undefined without arguments, which starts the service. */
export async function handleArguments(args: readonly string[]): Promise<Outcome | undefined> {
  const [first, ...rest] = args;
  if (first === undefined) return undefined;
  if (first === 'test') {
    const { testRules } = await import('./test-rules.ts');
    return testRules(rest);
  }
  if (first === 'counters') {
    const { runCounters } = await import('./counters.ts');
    return runCounters(rest, process.env);
  }
  if (first === 'trial') {
    const { showTrial } = await import('./trial.ts');
    return showTrial(rest);
  }
  const parsed = parseFlags({ version: { kind: 'switch', doc: 'Print the version.' } }, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'values') return { exitCode: 0, output: `tollgate-ratelimit ${packageJson.version}\n` };
  return wrongUsage('tollgate-ratelimit', [
    ...parsed.problems,
    'the service is configured by environment variables',
  ]);
}
