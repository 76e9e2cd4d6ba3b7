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

tollgate-ratelimit-client calls a running service, tollgate-ratelimit-check validates rule files.
`;

/** The outcome of command line arguments; undefined without arguments, which starts the service. */
export function handleArguments(args: readonly string[]): Outcome | undefined {
  if (args.length === 0) return undefined;
  const parsed = parseFlags({ version: { kind: 'switch', doc: 'Print the version.' } }, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'values') return { exitCode: 0, output: `tollgate-ratelimit ${packageJson.version}\n` };
  return wrongUsage('tollgate-ratelimit', [
    ...parsed.problems,
    'the service is configured by environment variables',
  ]);
}
